"""Several sessions on one crawl, at random, against a model of plain dictionaries; and spiders that are killed."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from crawlstrategies import Clock, frontier_in, opened
from inlink.crawl.crawl import Crawl
from inlink.errors import SessionError
from inlink.protocol import Crawled, Failed, Receipt, Released, Tasks

LEASE, RETRY, SILENT, MOST = 100.0, 10.0, 70.0, 2
OWNERS = st.sampled_from(["a", "b", "c"])


@dataclass
class Held:
    """A task that a session holds."""

    url: str
    expires: float
    alone: bool


@dataclass
class Life:
    """A session as the model knows it."""

    number: int
    heard: float
    held: dict[int, Held] = field(default_factory=dict)
    request: int = 0
    given: list[int] = field(default_factory=list)


class Desks(RuleBasedStateMachine):
    """Each page is waiting, lost, out, crawled or failed; the model says which."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.lives: dict[str, Life] = {}
        self.state: dict[str, str] = {}
        self.losses: dict[str, int] = {}
        self.due: dict[str, float] = {}
        self.open()
        self.add(6)

    def open(self) -> None:
        self.crawl = opened(
            Path(self.folder.name) / "c",
            self.clock,
            policy="first-come",
            lease_seconds=LEASE,
            retry_seconds=RETRY,
            max_losses=MOST,
        )

    def teardown(self) -> None:
        """All sessions end, and one takes all that is left: nothing is lost for good."""
        for owner in list(self.lives):
            self.bye(owner)
        self.hello("a")
        life = self.lives["a"]
        for _ in range(3 * len(self.state)):
            found = self.crawl.desk.next(life.number, 2)
            self.take(life, found)
            if not found.tasks and found.due_in is None:
                break
            if found.due_in:
                self.clock.now += found.due_in
            for lease in list(life.held):
                self.answer(life, lease, "crawled")
        assert set(self.state.values()) <= {"crawled", "failed"}
        self.crawl.close()
        self.folder.cleanup()

    # -- the model ----------------------------------------------------------------------------------------------------

    def lose(self, held: dict[int, Held]) -> None:
        for task in held.values():
            self.losses[task.url] += 1
            if self.losses[task.url] >= MOST:
                self.state[task.url], self.losses[task.url] = "failed", 0
            else:
                self.state[task.url] = "lost"
                self.due[task.url] = self.clock.now + RETRY * 2 ** (self.losses[task.url] - 1)

    def pass_time(self) -> None:
        """Let leases expire that are due by now, as :meth:`inlink.Crawl.due_in` does."""
        self.crawl.due_in()
        for life in self.lives.values():
            over = {lease: task for lease, task in life.held.items() if task.expires <= self.clock.now}
            for lease in over:
                del life.held[lease]
            self.lose(over)
        for owner, life in list(self.lives.items()):
            if self.clock.now - life.heard >= SILENT:
                del self.lives[owner]
                self.lose(life.held)

    def take(self, life: Life, found: Tasks) -> None:
        """Tasks are of waiting pages; a lost page comes when it is due, alone, to a session that holds nothing."""
        before = dict(life.held)
        waits = [
            url for url, state in self.state.items() if state == "lost" and self.due[url] <= self.clock.now
        ]
        for task in found.tasks:
            lost = self.state[task.url] == "lost"
            assert lost or self.state[task.url] == "waiting"
            assert not lost or (task.url in waits and not before and len(found.tasks) == 1)
            self.state[task.url] = "out"
            life.held[task.lease] = Held(task.url, self.clock.now + LEASE, lost)
        assert not found.tasks or not any(task.alone for task in before.values())
        busy = any(one.held for one in self.lives.values() if one is not life)
        if not before and len(waits) > busy:  # another session may drain for one of them
            assert found.tasks
            assert life.held[found.tasks[0].lease].alone

    def answer(self, life: Life, lease: int, kind: str) -> None:
        task = life.held.pop(lease)
        answer = {
            "crawled": Crawled(lease),
            "failed": Failed(lease, "no", retry=False),
            "released": Released(lease),
        }[kind]
        # After a failure, the receipt also says how long the host waits.
        assert [receipt.counted for receipt in self.crawl.desk.report(life.number, [answer])] == [True]
        life.heard = self.clock.now
        self.state[task.url] = kind
        if kind != "released":
            self.losses[task.url] = 0
        elif self.losses[task.url]:
            self.state[task.url], self.due[task.url] = "lost", self.clock.now
        else:
            self.state[task.url] = "waiting"

    # -- what is done -------------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 3))
    def add(self, count: int) -> None:
        urls = [f"http://h{len(self.state) + k}.com/" for k in range(count)]
        assert self.crawl.seed(urls) == count
        self.state |= dict.fromkeys(urls, "waiting")
        self.losses |= dict.fromkeys(urls, 0)

    @rule(owner=OWNERS)
    def hello(self, owner: str) -> None:
        self.pass_time()
        session = self.crawl.desk.hello(owner, silent_after=SILENT)
        old = self.lives.pop(owner, None)
        held = {} if old is None else old.held
        assert session.lost == len(held)
        self.lose(held)
        self.lives[owner] = Life(session.number, self.clock.now)

    @precondition(lambda self: self.lives)
    @rule(data=st.data())
    def goodbye(self, data: st.DataObject) -> None:
        self.bye(data.draw(st.sampled_from(sorted(self.lives))))

    def bye(self, owner: str) -> None:
        self.pass_time()
        life = self.lives.pop(owner, None)
        if life is None:
            return
        assert self.crawl.desk.bye(life.number) == len(life.held)
        for task in life.held.values():
            self.state[task.url] = "lost" if self.losses[task.url] else "waiting"
            self.due[task.url] = self.clock.now
        with pytest.raises(SessionError):
            self.crawl.desk.next(life.number, 1)

    @precondition(lambda self: self.lives)
    @rule(data=st.data(), count=st.integers(0, 4))
    def ask(self, data: st.DataObject, count: int) -> None:
        self.pass_time()
        if not self.lives:
            return
        life = self.lives[data.draw(st.sampled_from(sorted(self.lives)))]
        found = self.crawl.desk.next(life.number, count, life.request + 1)
        life.heard = self.clock.now
        others = sum(len(one.held) for one in self.lives.values() if one is not life)
        assert found.out_elsewhere == others
        if found.tasks:
            life.request, life.given = life.request + 1, [task.lease for task in found.tasks]
        if count:
            self.take(life, found)
        else:
            assert not found.tasks

    @precondition(lambda self: any(life.request for life in self.lives.values()))
    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        self.pass_time()
        lives = [life for life in self.lives.values() if life.request]
        if lives:
            life = data.draw(st.sampled_from(lives))
            found = self.crawl.desk.next(life.number, 4, life.request)
            life.heard = self.clock.now
            assert {task.lease: task.url for task in found.tasks} == {
                lease: life.held[lease].url for lease in life.given if lease in life.held
            }

    @precondition(lambda self: any(life.held for life in self.lives.values()))
    @rule(data=st.data(), kind=st.sampled_from(["crawled", "failed", "released"]), foreign=st.booleans())
    def tell(self, data: st.DataObject, kind: str, foreign: bool) -> None:
        self.pass_time()
        lives = [life for life in self.lives.values() if life.held]
        if not lives:
            return
        life = data.draw(st.sampled_from(lives))
        lease = data.draw(st.sampled_from(sorted(life.held)))
        if foreign:
            for other in self.lives.values():
                if other is not life:
                    other.heard = self.clock.now
                    assert self.crawl.desk.report(other.number, [Crawled(lease)]) == [Receipt(False)]
        self.answer(life, lease, kind)
        assert self.crawl.desk.report(life.number, [Crawled(lease)]) == [Receipt(False)]

    @rule(seconds=st.sampled_from([1.0, 9.0, 10.0, 35.0, 69.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @precondition(lambda self: self.lives)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        self.pass_time()
        if self.lives:
            life = self.lives[data.draw(st.sampled_from(sorted(self.lives)))]
            self.crawl.desk.renew(life.number)
            life.heard = self.clock.now
            for task in life.held.values():
                task.expires = self.clock.now + LEASE

    @rule(down=st.sampled_from([0.0, 50.0, 5000.0]))
    def reopen(self, down: float) -> None:
        self.pass_time()
        self.add(1)  # the last event: all that passes from now on is time in which the crawl is down
        self.crawl.close()
        self.clock.now += down
        self.open()
        for life in self.lives.values():
            life.heard = self.clock.now
            for task in life.held.values():
                task.expires += down

    @invariant()
    def agrees(self) -> None:
        self.pass_time()
        names = {"waiting": "discovered", "lost": "discovered", "out": "leased"}
        for url, state in self.state.items():
            page = self.crawl.page(url)
            assert page is not None
            assert page.state == names.get(state, state), url
            assert frontier_in(self.crawl).pages.losses[page.id] == self.losses[url], url


TestDesks = pytest.mark.slow(Desks.TestCase)
TestDesks.settings = settings(
    max_examples=settings.default.max_examples // 2, stateful_step_count=40, deadline=None
)


# -- spiders that are killed ------------------------------------------------------------------------------------------

KILLER = "http://host3.com/"

CHILD = """
    import asyncio, os, random, signal, sys
    from inlink.client.spider import connect
    from inlink.frontier.settings import Politeness
    from inlink.protocol import Crawled

    async def main():
        polite = Politeness(delay=0.0, in_flight=1000)
        client, _ = await connect(sys.argv[1], policy="first-come", politeness=polite, retry_seconds=0.05)
        await client.seed([f"http://host{k}.com/" for k in range(12)])
        out, rng = [], random.Random(int(sys.argv[2]))
        while True:
            found = await client.next(5 - len(out))
            out += found.tasks
            if not out:
                if found.due_in is None and not found.out_elsewhere:
                    break
                await asyncio.sleep(0.01 if found.due_in is None else found.due_in)
                continue
            task = out.pop(rng.randrange(len(out)))
            if task.url == "http://host3.com/":
                os.kill(os.getpid(), signal.SIGKILL)
            await client.report([Crawled(task.lease)])
        await client.close()

    asyncio.run(main())
"""


@pytest.mark.slow
def test_a_page_that_kills_its_spider_fails_and_no_other_does(tmp_path):
    deaths = 0
    for turn in range(10):
        command = [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path / "c"), str(turn)]
        run = subprocess.run(command, capture_output=True, text=True, env=os.environ)
        if run.returncode == 0:
            break
        assert run.returncode == -signal.SIGKILL, run.stderr
        deaths += 1
    assert deaths == 3
    with Crawl(tmp_path / "c", policy="first-come") as crawl:
        for k in range(12):
            page = crawl.page(f"http://host{k}.com/")
            assert page is not None
            assert page.state == ("failed" if page.url == KILLER else "crawled")
        page = crawl.page(KILLER)
        assert page is not None
        assert page.error == "lost 3 times: the spider ended or did not answer"

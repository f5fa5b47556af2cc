"""One call at a time, in one process, and no call after an interrupted change, whatever interrupts it."""

import errno
import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np
import pytest

import inlink
from crawlstrategies import Clock, differences, memory, opened, stored_pages, whole
from gatecalls import CALLS, A, B, clocked, refusals
from inlink.crawl import intake
from inlink.crawl import journal as journal_module
from inlink.crawl.crawl import Crawl
from inlink.crawl.desk import Desk
from inlink.crawl.journal import Journal
from inlink.crawl.links import LinkIntake
from inlink.crawl.view import CrawlView
from inlink.errors import InUseError, ParameterError, StoreError
from inlink.frontier import frontier
from inlink.frontier.frontier import Frontier
from inlink.frontier.leases import LeaseBook
from inlink.frontier.policies import Policy
from inlink.frontier.queue import Queue
from inlink.frontier.rules import Rules
from inlink.protocol import Link
from inlink.store import log as logs
from inlink.store.log import Log
from inlink.store.pages import Pages
from inlink.store.spill import Spill
from inlink.store.urls import UrlTable
from interrupts import interrupted


def test_no_method_is_missing_here():
    found = {name for name, value in vars(Crawl).items() if callable(value) and name[0] != "_"}
    found |= {f"desk.{name}" for name, value in vars(Desk).items() if callable(value) and name[0] != "_"}
    found |= {f"view.{name}" for name, value in vars(CrawlView).items() if callable(value) and name[0] != "_"}
    # Any thread may ask for an owner at any time, whatever the crawl does. `view.stop` ends a thread, as `close` does.
    # The desk and the view of a crawl are closed by the crawl only, so their `close` does nothing before.
    others = {"close", "desk.owner_of", "view.close", "view.stop"}
    assert found - others == set(CALLS)


def test_a_closed_crawl_says_so(tmp_path):
    crawl = clocked(tmp_path / "c")
    crawl.seed([A])
    crawl.close()
    crawl.close()
    assert refusals(crawl) == {("StoreError", f"{tmp_path / 'c'}: this crawl is closed: open it again")}
    with crawl:
        pass


# -- changes that are interrupted -------------------------------------------------------------------------------------

STEPS = [
    (UrlTable, "take_links"),
    (UrlTable, "number"),
    (Log, "append"),
    (logs, "_write"),
    (frontier, "fold"),
    (Frontier, "fold"),
    (Frontier, "discovered"),
    (Frontier, "prioritise"),
    (Journal, "append"),
    (Journal, "admit"),
    (Journal, "redirect"),
    (Journal, "name_canonical"),
    (Journal, "merge_canonicals"),
    (Journal, "note_outcome"),
    (Journal, "lease"),
    (LeaseBook, "close"),
    (LeaseBook, "add"),
    (Queue, "take"),
    (Queue, "remove"),
    (Policy, "fold"),
    (Policy, "priority"),
    (intake, "encoded_list"),
    (LinkIntake, "number"),
    (journal_module, "encode_carried"),
]
ERRORS = [
    KeyboardInterrupt(),
    MemoryError(),
    OSError(errno.ENOSPC, "No space left on device"),
    TypeError("no"),
]


def story(number: int) -> list[Callable[[Crawl], Any]]:
    """Calls of a crawl."""
    rng = random.Random(number)
    names = [f"http://h{k}.com/" for k in range(3)]
    steps: list[Callable[[Crawl], Any]] = [methodcaller("seed", names)]
    for turn in range(14):
        name = rng.choice(names)
        links: list[Any] = [f"http://h{rng.randrange(30)}.com/{turn}" for _ in range(3)]
        carried = Link(f"/{turn}", data=b"x" * turn)
        calls = [
            methodcaller("seed", links),
            methodcaller("crawled", name, links, score=0.5),
            methodcaller("crawled", name, links, canonical_link=f"{name}{turn % 2}"),
            methodcaller("crawled", name, [*links, carried]),
            methodcaller("crawled", name, links, redirected_to=f"http://to{turn}.com/"),
            methodcaller("failed", name, "no", status=503),
            methodcaller("exclude", name, "robots.txt"),
            methodcaller("next", 2),
        ]
        steps.append(rng.choice(calls))
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("rest", [False, pytest.param(True, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("owner", "name"), STEPS, ids=lambda one: getattr(one, "__name__", str(one)))
def test_an_exception_at_any_step_costs_nothing_that_was_acknowledged(
    owner, name, rest, tmp_path, monkeypatch
):
    """After it, the crawl goes on as if the call had not been made, or refuses all; reopened, it is as its twin."""
    settings: dict[str, Any] = {"policy": "first-come", "rules": Rules(deny=["h1[0-9][.]com/3"])}
    original = getattr(owner, name)
    broken = 0
    # `make test` tries two of the eight combinations of error and moment for each step. `make soak` tries the others.
    first = STEPS.index((owner, name))
    two = [(first % 4, False), ((first + 1) % 4, True)]
    others = [(k, after) for k in range(4) for after in (False, True) if (k, after) not in two]
    for number, after in others if rest else two:
        rng, error = random.Random(number), ERRORS[number]
        clock, folder = inlink.VirtualClock(), tmp_path / f"{number}{after}"
        crawl = opened(folder / "c", clock, **settings)
        steps = story(number)
        done: list[int] = []
        armed = [rng.randrange(1, 12)]

        def step(
            *given: Any, armed: Any = armed, after: bool = after, error: Any = error, **named: Any
        ) -> Any:
            armed[0] -= 1
            if armed[0] == 0 and not after:
                raise error
            found = original(*given, **named)
            if armed[0] == 0:
                raise error
            return found

        monkeypatch.setattr(owner, name, step)
        for k, call in enumerate(steps):
            before = memory(crawl)
            try:
                call(crawl)
                done.append(k)
                continue
            except BaseException as caught:
                if not (caught is error or isinstance(caught, StoreError)):
                    raise
                # The error is used again. Its frames would keep this crawl's files open.
                error.__traceback__ = None
            monkeypatch.setattr(owner, name, original)
            said = ""
            try:
                crawl.next(0)
                assert differences(before, memory(crawl)) == {}
            except StoreError as caught:
                broken, said = broken + 1, str(caught)
            if said:
                assert refusals(crawl) == {("StoreError", said)}
                crawl.close()
                crawl = opened(folder / "c", clock, **settings)
            told = crawl.view.info().events
            call(crawl)
            done.append(k)
            assert crawl.view.info().events >= told
        monkeypatch.setattr(owner, name, original)
        # Every page that was acknowledged is the page that it was: its links, its URL, what it carries.
        stored = stored_pages(crawl)
        expected = [stored.url(page) for page in range(crawl.view.info().pages)]
        assert len(set(expected)) == len(expected)
        live = whole(crawl)
        crawl.close()
        crawl = opened(folder / "c", clock, **settings)
        found = whole(crawl)
        names = ("pages", "links", "states", "found", "hosts", "scores", "depths", "survivors", "visits")
        assert {one: found[one] for one in names} == {one: live[one] for one in names}
        twin = opened(folder / "twin", clock, **settings)
        for k in done:
            steps[k](twin)
        mine, other = stored_pages(crawl), stored_pages(twin)
        for url in expected:
            page, same = int(mine.table.find([url])[0]), int(other.table.find([url])[0])
            assert sorted(mine.urls(mine.links(page))) == sorted(other.urls(other.links(same))), url
            assert mine.carried(page) == other.carried(same)
        crawl.close()
        twin.close()
    if name in ("append", "fold", "_write", "take_links"):
        assert broken


BUSY = """
    import hashlib, random, signal, sys
    from inlink.crawl.crawl import Crawl
    from inlink.errors import StoreError
    from inlink.frontier.settings import Politeness
    from inlink.store.reader import known_pages

    def expected(url):
        return [f"{url}{k}" for k in range(hash_of(url)[0] % 4)]

    def hash_of(url):
        return hashlib.sha256(url.encode()).digest()[:8]

    def opened():
        return Crawl(sys.argv[1], policy="first-come", politeness=Politeness(delay=0.0, in_flight=1000))

    def interrupt(*_):
        raise KeyboardInterrupt

    rng = random.Random(int(sys.argv[2]))
    crawl, crawled, known, counts = opened(), set(), set(), [0, 0, 0]
    def work(turn):
        for k in range(200):
            url = f"http://h{rng.randrange(50)}.com/{turn}/{k}/"
            crawl.seed([url])
            known.add(url)
            for lease in crawl.next(2):
                crawl.crawled(lease, expected(lease.url), content_hash=hash_of(lease.url))
                crawled.add(lease.url)

    # Kernels are compiled once, uninterrupted.
    work("first")
    signal.signal(signal.SIGALRM, interrupt)
    for turn in range(int(sys.argv[3])):
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.00002, 0.002))
            work(turn)
            counts[0] += 1
        except KeyboardInterrupt:
            counts[1] += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            crawl.next(0)
        except StoreError as error:
            assert "was not completed" in str(error), error
            counts[2] += 1
            crawl.close()
            crawl = opened()
    for again in range(2):
        for url in known:
            assert crawl.page(url) is not None, url
        for url in crawled:
            page = crawl.page(url)
            assert (page.state, page.content_hash) == ("crawled", hash_of(url)), page
            assert sorted(row.url for row in crawl.view.links(url).rows) == sorted(expected(url)), page
        pages = known_pages(sys.argv[1])
        for page in pages.crawled()[0].tolist():
            assert pages.visit(page).content_hash == hash_of(pages.url(page)), page
        crawl.close()
        crawl = opened()
    print(*counts)
"""


@pytest.mark.slow
def test_interrupts_at_random_moments_of_a_real_process_cost_nothing(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BUSY), str(tmp_path / "c"), "0", "90"],
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert run.returncode == 0, run.stderr
    _, interrupted, broken = map(int, run.stdout.split())
    assert interrupted > 25
    assert broken > 5


def test_an_iterator_that_fails_changes_nothing(tmp_path):
    def links() -> Any:
        yield B
        raise ZeroDivisionError

    with opened(tmp_path / "c", Clock()) as crawl:
        crawl.seed([A])
        for call in (crawl.seed, lambda some: crawl.crawled(A, some), crawl.sitemap):
            with pytest.raises(ZeroDivisionError):
                call(links())
        assert [lease.url for lease in crawl.next(3)] == [A]
        # A caller may look while it makes the links.
        assert crawl.crawled(A, (url for url in (A, B) if crawl.page(url) is None))
        assert crawl.page(B).state == "discovered"


def test_an_interruption_at_the_gate_itself_leaves_it_open(tmp_path):
    with opened(tmp_path / "c", inlink.VirtualClock()) as crawl:
        gate = crawl._gate
        for shut in (False, True):
            # What an interruption leaves that comes before the call begins, or after it has ended.
            gate._acquire()
            gate._shut = shut
            crawl.seed([A])
        gate._shut = True
    assert {kind for kind, _ in refusals(crawl)} == {"StoreError"}


class Asks(Policy):
    """A policy that calls its crawl."""

    crawl: Crawl | None = None

    def priority(self, pages: Any) -> Any:
        if Asks.crawl is not None:
            Asks.crawl.next()
        return np.zeros(len(pages), np.float32)


def test_a_call_from_within_a_call_is_refused(tmp_path):
    Asks.crawl = crawl = clocked(tmp_path / "c", policy=Asks)
    with pytest.raises(InUseError, match="another call on this crawl has not returned"):
        crawl.seed([A])
    with pytest.raises(StoreError, match=r"was not completed \(.*another call"):
        crawl.seed([A])
    crawl.close()


# -- opening ----------------------------------------------------------------------------------------------------------


class Refuses(Policy):
    """A policy that cannot be made."""

    def __init__(self, *_: Any) -> None:
        raise ParameterError("no such order")


def test_a_policy_that_cannot_be_made_leaves_no_folder(tmp_path):
    with pytest.raises(ParameterError, match="no such order"):
        clocked(tmp_path / "c", policy=Refuses)
    assert list(tmp_path.iterdir()) == []
    with clocked(tmp_path / "c") as crawl:
        crawl.seed([A])
    with pytest.raises(ParameterError, match="no such order"):
        clocked(tmp_path / "c", policy=Refuses)
    with clocked(tmp_path / "c") as crawl:
        assert crawl.page(A) is not None


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), OSError(errno.EIO, "Input/output error")])
def test_a_close_that_is_interrupted_keeps_the_folder(tmp_path, monkeypatch, fault):
    crawl = clocked(tmp_path / "c")
    crawl.seed([A])

    def fails(_self):
        raise fault

    monkeypatch.setattr(Spill, "close", fails)
    with pytest.raises((KeyboardInterrupt, StoreError)) as error:
        crawl.close()
    monkeypatch.undo()
    assert isinstance(error.value, KeyboardInterrupt) or str(error.value) == (
        f"{tmp_path / 'c'}: Input/output error: look for faults of the disk in the system's log"
    )
    with clocked(tmp_path / "c") as again:
        assert again.page(A).state == "discovered"


@pytest.mark.slow
def test_a_close_that_is_interrupted_at_any_line_can_be_completed(tmp_path):
    files = ("store/log.py", "crawl/gate.py", "crawl/crawl.py")
    line, came = 0, True
    while came:
        line += 1
        crawl = clocked(tmp_path / "c")
        crawl.seed([f"http://a{line}.example/"])
        came = interrupted(crawl.close, line, lambda code: code.co_filename.endswith(files))
        crawl.close()
    assert line > 30
    with clocked(tmp_path / "c") as crawl:
        assert all(crawl.page(f"http://a{number}.example/") for number in range(1, line + 1))


def test_an_error_of_the_system_names_file_and_remedy(tmp_path, monkeypatch):
    def full(*_arguments, **_named):
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "c" / "x"))

    with clocked(tmp_path / "c") as crawl:
        crawl.seed([A])
        monkeypatch.setattr(Pages, "page", full)
        with pytest.raises(StoreError, match=r"c/x: No space left on device: free some space$"):
            crawl.page(A)
        monkeypatch.undo()
        # A question changes nothing, so the crawl goes on.
        assert crawl.page(A).state == "discovered"
        monkeypatch.setattr(Frontier, "fold", full)
        for _ in range(2):
            with pytest.raises(StoreError, match=r"free some space.*close this crawl"):
                crawl.seed([B])

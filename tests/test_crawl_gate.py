"""One call at a time, in one process, and never after a change that was broken off: whatever goes wrong in between."""

import errno
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inlink
from crawlstrategies import EAGER, Clock, columns, differences, opened, whole
from inlink.crawl import answers as answers_module
from inlink.crawl import journal as journal_module
from inlink.crawl import seeding, visiting
from inlink.crawl.crawl import Crawl
from inlink.crawl.desk import Desk
from inlink.crawl.journal import Journal
from inlink.crawl.view import CrawlView
from inlink.errors import InlinkError, InUseError, ParameterError, StoreError
from inlink.frontier.frontier import Frontier
from inlink.frontier.leases import LeaseBook
from inlink.frontier.policies import Policy
from inlink.frontier.queue import Queue
from inlink.frontier.rules import Rules
from inlink.protocol import Crawled, Link
from inlink.store import log as logs
from inlink.store.log import Log
from inlink.store.pages import Pages
from inlink.store.urls import UrlTable
from patience import wait_until

A, B = "http://a.com/", "http://b.com/"

CALLS: dict[str, Callable[[Crawl], Any]] = {
    "seed": lambda crawl: crawl.seed([A]),
    "sitemap": lambda crawl: crawl.sitemap([(A, None, None)]),
    "crawled": lambda crawl: crawl.crawled(A),
    "failed": lambda crawl: crawl.failed(A),
    "exclude": lambda crawl: crawl.exclude(A),
    "redirected": lambda crawl: crawl.redirected(1, B),
    "release": lambda crawl: crawl.release(A),
    "release_all": lambda crawl: crawl.release_all(),
    "reload": lambda crawl: crawl.reload(),
    "host_delay": lambda crawl: crawl.host_delay(A, 1.0),
    "pause": lambda crawl: crawl.pause(),
    "resume": lambda crawl: crawl.resume(),
    "next": lambda crawl: crawl.next(),
    "due_in": lambda crawl: crawl.due_in(),
    "page": lambda crawl: crawl.page(A),
    "why": lambda crawl: crawl.why(A),
    "standing": lambda crawl: crawl.standing(),
    "rerank": lambda crawl: crawl.rerank(),
    "wait": lambda crawl: crawl.wait(),
    "desk.hello": lambda crawl: crawl.desk.hello("one"),
    "desk.renew": lambda crawl: crawl.desk.renew(1),
    "desk.bye": lambda crawl: crawl.desk.bye(1),
    "desk.next": lambda crawl: crawl.desk.next(1, 1),
    "desk.report": lambda crawl: crawl.desk.report(1, [Crawled(1)]),
    "view.number": lambda crawl: crawl.view.number(A),
    "view.page": lambda crawl: crawl.view.page(A),
    "view.why": lambda crawl: crawl.view.why(A),
    "view.path": lambda crawl: crawl.view.path(A),
    "view.links": lambda crawl: crawl.view.links(A),
    "view.find": lambda crawl: crawl.view.find("a"),
    "view.top": lambda crawl: crawl.view.top(),
    "view.dump": lambda crawl: crawl.view.dump(),
    "view.order": lambda crawl: crawl.view.order(),
    "view.hosts": lambda crawl: crawl.view.hosts(),
    "view.standing": lambda crawl: crawl.view.standing(),
    "view.harvest": lambda crawl: crawl.view.harvest(),
    "view.info": lambda crawl: crawl.view.info(),
}
"""Every public method of a crawl, its desk and its view that looks at it or changes it."""


def test_no_method_is_missing_here():
    found = {name for name, value in vars(Crawl).items() if callable(value) and name[0] != "_"}
    found |= {f"desk.{name}" for name, value in vars(Desk).items() if callable(value) and name[0] != "_"}
    found |= {f"view.{name}" for name, value in vars(CrawlView).items() if callable(value) and name[0] != "_"}
    assert found - {"close", "desk.advance"} == set(CALLS)


def refusals(crawl: Crawl) -> set[tuple[str, str]]:
    """What each method says: the errors' types and messages; it fails if a method works."""
    said = set()
    for name, call in CALLS.items():
        try:
            call(crawl)
        except InlinkError as error:
            said.add((type(error).__name__, str(error)))
        else:
            raise AssertionError(f"{name} was not refused")
    assert not any("\n" in message for _, message in said)
    return said


def clocked(folder: Path, **settings: Any) -> Crawl:
    return Crawl(folder, clock=inlink.VirtualClock(), politeness=EAGER, **settings)


def test_a_closed_crawl_says_so(tmp_path):
    crawl = clocked(tmp_path / "c")
    crawl.seed([A])
    crawl.close()
    crawl.close()
    assert refusals(crawl) == {
        ("StoreError", f"{tmp_path / 'c'}: this crawl is closed: open it again with inlink.Crawl")
    }
    with crawl:
        pass


# -- changes that are broken off --------------------------------------------------------------------------------------

STEPS = [
    (UrlTable, "number_lines"),
    (Log, "append"),
    (logs, "_write"),
    (Pages, "fold_frame"),
    (Frontier, "fold"),
    (Frontier, "discovered"),
    (Frontier, "prioritise"),
    (Journal, "append"),
    (Journal, "admit"),
    (Journal, "merge"),
    (Journal, "landed"),
    (Journal, "carrying"),
    (LeaseBook, "close"),
    (LeaseBook, "add"),
    (Queue, "take"),
    (Queue, "remove"),
    (Policy, "fold"),
    (Policy, "priority"),
    (seeding, "coded"),
    (visiting, "coded"),
    (visiting, "to_lines"),
    (journal_module, "encode_carried"),
    (answers_module, "lease_pages"),
]
ERRORS = [
    KeyboardInterrupt(),
    MemoryError(),
    OSError(errno.ENOSPC, "No space left on device"),
    TypeError("no"),
]


def story(number: int) -> list[tuple[str, Callable[[Crawl], Any]]]:
    """What is done to a crawl: each step is one call."""
    rng = random.Random(number)
    names = [f"http://h{k}.com/" for k in range(12)]
    steps: list[tuple[str, Callable[[Crawl], Any]]] = [("seed", lambda crawl: crawl.seed(names[:3]))]
    for turn in range(14):
        name = rng.choice(names[:3])
        links: list[Any] = [f"http://h{rng.randrange(30)}.com/{turn}" for _ in range(3)]
        kind = rng.choice(["seed", "crawled", "crawled", "carried", "merged", "failed", "next", "exclude"])
        if kind == "seed":
            steps.append((kind, lambda crawl, links=links: crawl.seed(links)))
        elif kind == "crawled":
            steps.append((kind, lambda crawl, name=name, links=links: crawl.crawled(name, links, score=0.5)))
        elif kind == "carried":
            links = [*links, Link(f"/{turn}", data=b"x" * turn)]
            steps.append((kind, lambda crawl, name=name, links=links: crawl.crawled(name, links)))
        elif kind == "merged":
            to = f"http://to{turn}.com/"
            steps.append(
                (
                    kind,
                    lambda crawl, name=name, links=links, to=to: crawl.crawled(name, links, redirected_to=to),
                )
            )
        elif kind == "failed":
            steps.append((kind, lambda crawl, name=name: crawl.failed(name, "no", status=503)))
        elif kind == "exclude":
            steps.append((kind, lambda crawl, name=name: crawl.exclude(name, "robots.txt")))
        else:
            steps.append((kind, lambda crawl: crawl.next(2)))
    return steps


@pytest.mark.parametrize(("owner", "name"), STEPS, ids=lambda one: getattr(one, "__name__", str(one)))
def test_an_exception_at_any_step_costs_nothing_that_was_acknowledged(owner, name, tmp_path, monkeypatch):
    """After it, the crawl goes on as if the call had not been made, or refuses all; reopened, it is as its twin."""
    settings: dict[str, Any] = {"policy": "first-come", "rules": Rules(deny=["h1[0-9][.]com/3"])}
    original = getattr(owner, name)
    broken = 0
    for number, after in ((k, after) for k in range(4) for after in (False, True)):
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
        for k, (_, call) in enumerate(steps):
            before = columns(crawl._pages)
            try:
                call(crawl)
                done.append(k)
                continue
            except BaseException as caught:
                if not (caught is error or isinstance(caught, StoreError)):
                    raise
            monkeypatch.setattr(owner, name, original)
            said = ""
            try:
                crawl.next(0)
                assert differences(before, columns(crawl._pages)) == {}
            except StoreError as caught:
                broken, said = broken + 1, str(caught)
            if said:
                assert refusals(crawl) == {("StoreError", said)}
                crawl.close()
                crawl = opened(folder / "c", clock, **settings)
            told = crawl._pages.num_events
            call(crawl)
            done.append(k)
            assert crawl._pages.num_events >= told
        monkeypatch.setattr(owner, name, original)
        # Every page that was acknowledged is the page that it was: its links, its URL, what it carries.
        expected = {page: crawl._pages.url(page) for page in range(crawl._pages.num_pages)}
        assert len(set(expected.values())) == len(expected)
        live = whole(crawl)
        crawl.close()
        crawl = opened(folder / "c", clock, **settings)
        found = whole(crawl)
        names = ("pages", "links", "states", "found", "hosts", "scores", "depths", "survivors", "visits")
        assert {one: found[one] for one in names} == {one: live[one] for one in names}
        twin = opened(folder / "twin", clock, **settings)
        for k in done:
            steps[k][1](twin)
        for url in expected.values():
            mine, other = crawl._pages, twin._pages
            page, same = int(mine.find([url])[0]), int(other.find([url])[0])
            assert sorted(mine.urls(mine.links(page))) == sorted(other.urls(other.links(same))), url
            assert mine.carried(page) == other.carried(same)
        crawl.close()
        twin.close()
    if name in ("append", "fold", "fold_frame", "_write", "number_lines"):
        assert broken


BUSY = """
    import hashlib, random, signal, sys
    from inlink.crawl.crawl import Crawl
    from inlink.errors import StoreError
    from inlink.frontier.settings import Politeness

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
            assert "broken off" in str(error), error
            counts[2] += 1
            crawl.close()
            crawl = opened()
    for again in range(2):
        pages = crawl._pages
        for url in known:
            assert crawl.page(url) is not None, url
        for url in crawled:
            page = crawl.page(url)
            assert page.state == "crawled", page
            assert pages.visit(page.id).content_hash == hash_of(url), page
            assert sorted(pages.urls(pages.links(page.id))) == sorted(expected(url)), page
        for page, _ in zip(*pages.crawled()):
            url = pages.url(page)
            assert pages.visit(page).content_hash == hash_of(url), url
        crawl.close()
        crawl = opened()
    print(*counts)
"""


def test_interrupts_at_random_moments_of_a_real_process_cost_nothing(tmp_path):
    runs = [
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(BUSY), str(tmp_path / f"{seed}"), str(seed), "150"],
            capture_output=True,
            text=True,
            env=os.environ,
        )
        for seed in range(2)
    ]
    assert [run.returncode for run in runs] == [0, 0], [run.stderr for run in runs]
    _, interrupted, broken = (sum(int(run.stdout.split()[k]) for run in runs) for k in range(3))
    assert interrupted > 50
    assert broken > 10


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
    with pytest.raises(StoreError, match=r"broken off by .*another call"):
        crawl.seed([A])
    crawl.close()


# -- threads ----------------------------------------------------------------------------------------------------------


class Slow(Policy):
    """A policy that waits until the test lets it go on."""

    inside, go_on = threading.Event(), threading.Event()
    waits = False

    def priority(self, pages: Any) -> Any:
        if Slow.waits:
            Slow.waits = False
            Slow.inside.set()
            Slow.go_on.wait()
        return np.zeros(len(pages), np.float32)


def test_a_second_thread_is_refused_at_once(tmp_path):
    crawl = clocked(tmp_path / "c", policy=Slow)
    crawl.seed([A])
    Slow.waits = True
    thread = threading.Thread(target=crawl.seed, args=([B],))
    thread.start()
    Slow.inside.wait()
    said = refusals(crawl)
    with pytest.raises(InUseError, match="has not returned"):
        crawl.close()
    Slow.go_on.set()
    thread.join()
    assert said == {
        (
            "InUseError",
            f"{tmp_path / 'c'}: another call on this crawl has not returned: use a crawl from one thread at a time, "
            "with a threading.Lock of your own around each call",
        )
    }
    assert crawl.page(B) is not None
    crawl.close()


def test_many_threads_on_one_crawl_are_refused_or_served(tmp_path):
    """The process survives, and every URL that was acknowledged is there with its own links."""
    crawl = Crawl(tmp_path / "c", policy="best-first", politeness=EAGER)
    known: list[list[str]] = [[] for _ in range(4)]
    refused = [0] * 4
    begin = threading.Barrier(4)

    def work(which: int) -> None:
        begin.wait()
        for turn in range(400):
            url = f"http://h{which}.com/{turn}/"
            calls: list[Callable[..., Any]] = [
                partial(crawl.seed, [url]),
                partial(crawl.crawled, url, [f"{url}{k}" for k in range(3)]),
                partial(crawl.next, 1),
                partial(crawl.why, url),
            ]
            for call in calls:
                try:
                    call()
                except InUseError:
                    refused[which] += 1
                except InlinkError:
                    pass
                else:
                    known[which].append(url)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert sum(refused) > 0
    for _ in range(2):
        for url in {url for some in known for url in some}:
            page = crawl.page(url)
            assert page is not None
            links = crawl._pages.urls(crawl._pages.links(page.id))
            assert set(links) <= {f"{url}{k}" for k in range(3)}
        crawl.close()
        crawl = Crawl(tmp_path / "c")
    crawl.close()


def test_a_view_of_a_folder_is_for_one_thread_at_a_time_too(tmp_path):
    with clocked(tmp_path / "c") as crawl:
        crawl.seed([A])
    view = CrawlView.open(tmp_path / "c")
    said: list[str] = []

    def look() -> None:
        try:
            view.page(A)
        except InUseError as error:
            said.append(str(error))

    with view._gate:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert "has not returned" in said[0]
    assert view.page(A) is not None


# -- forks ------------------------------------------------------------------------------------------------------------


def in_fork(work: Callable[[], Any]) -> Any:
    """What ``work`` returns in the child of a fork, by way of JSON."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(work()).encode())
        except BaseException as error:
            os.write(writing, json.dumps(repr(error)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def test_a_forked_child_is_refused_and_writes_nothing(tmp_path):
    crawl = clocked(tmp_path / "c")
    crawl.seed([A])
    size = (tmp_path / "c" / logs.EVENTS).stat().st_size

    def child() -> list[list[str]]:
        said = [list(one) for one in refusals(crawl)]
        crawl.close()
        return said

    said = in_fork(child)
    assert [kind for kind, _ in said] == ["InUseError"]
    assert f"is a fork of process {os.getpid()}" in said[0][1]
    assert (tmp_path / "c" / logs.EVENTS).stat().st_size == size
    # The parent goes on, and still holds the folder.
    assert crawl.seed([B]) == 1
    with pytest.raises(InUseError, match=f"process {os.getpid()}"):
        clocked(tmp_path / "c")
    crawl.close()
    with clocked(tmp_path / "c") as crawl:
        assert [lease.url for lease in crawl.next(3)] == [A, B]


def _seed_there(crawl: Crawl, told: Any) -> None:
    try:
        crawl.seed([B])
    except InlinkError as error:
        told.send(f"{type(error).__name__}: {error}")
    else:
        told.send("it worked")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_multiprocessing_is_refused(tmp_path):
    with clocked(tmp_path / "c") as crawl:
        crawl.seed([A])
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        child = context.Process(target=_seed_there, args=(crawl, there))
        child.start()
        told = here.recv()
        child.join()
        assert told.startswith("InUseError")
        assert "is a fork of process" in told
        assert crawl.page(B) is None


def test_a_child_can_open_the_crawl_once_its_parent_has_closed_it(tmp_path):
    crawl = clocked(tmp_path / "c")
    crawl.seed([A])
    crawl.close()

    def child() -> int:
        with clocked(tmp_path / "c") as own:
            return own.seed([B])

    assert in_fork(child) == 1
    with clocked(tmp_path / "c") as crawl:
        assert crawl.page(B) is not None


PARENT = """
    import os, sys, time
    from inlink.crawl.crawl import Crawl

    crawl = Crawl(sys.argv[1], rerank_share=0.1)
    crawl.seed(["http://a.com/"])
    crawl.rerank()
    child = os.fork()
    if child:
        print(child, crawl._upkeep.reranker._process.pid, flush=True)
    time.sleep(10_000)
"""


def test_the_death_of_the_parent_frees_the_folder_though_a_child_lives(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path / "c")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert parent.stdout is not None
    child, ranking = map(int, parent.stdout.readline().split())
    try:
        with pytest.raises(InUseError, match=f"process {parent.pid}"):
            Crawl(tmp_path / "c")
        parent.kill()
        parent.wait()
        wait_until(lambda: not Path(f"/proc/{ranking}").exists(), "the ranking process to end")
        with Crawl(tmp_path / "c") as crawl:
            assert crawl.page(A) is not None
        os.kill(child, 0)  # it lives
    finally:
        os.kill(child, signal.SIGKILL)
        parent.kill()
        parent.stdout.close()


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

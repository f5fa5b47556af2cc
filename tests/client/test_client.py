"""One contract for the doors to a crawl: the clients of a folder, of a server and in memory answer alike.

The client in memory holds to what spiders may do. The others also keep settings, leases, failures and delays.
"""

import asyncio
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import EAGER, Clock
from inlink.client.folder import FolderClient
from inlink.client.spider import Client, connect
from inlink.crawl.crawl import Crawl
from inlink.crawl.desk import Desk
from inlink.crawl.view import CrawlView
from inlink.errors import InUseError, ParameterError
from inlink.frontier.settings import Politeness
from inlink.protocol import (
    OWNER,
    Answer,
    Crawled,
    Excluded,
    Failed,
    HostDelay,
    Link,
    Receipt,
    Redirected,
    Released,
    Task,
    Tasks,
)
from inlink.store.page import Page
from memoryclient import MemoryClient
from served import served

URLS = [f"http://a.com/{name}" for name in "abcdef"]
A, B, C = URLS[:3]
COUNTED = [Receipt(True)]


Spider = Callable[..., str]


async def working(where: str, work: Callable[[Client], Awaitable[Any]], seeds: Any, settings: Any) -> str:
    client, line = await connect(where, **settings)
    try:
        if seeds:
            await client.seed(seeds)
        await work(client)
    finally:
        await client.close()
    return line


def spider(folder: Path, work: Callable[[Client], Awaitable[Any]], *seeds: Any, **settings: Any) -> str:
    """Do some work with a folder's client; return the line about the folder."""
    chosen = {"policy": "first-come", "politeness": EAGER, **settings}
    return asyncio.run(working(str(folder), work, seeds, chosen))


def on_server(folder: Path, work: Callable[[Client], Awaitable[Any]], *seeds: Any, **settings: Any) -> str:
    """The same with the client of a server of the folder."""
    with served(folder, **{"policy": "first-come", "politeness": EAGER, **settings}) as server:
        return asyncio.run(working(f"{server.url}/v1/crawls/{folder.name}", work, seeds, {}))


def in_memory(work: Callable[[Client], Awaitable[Any]]) -> MemoryClient:
    """The same with a client in memory, which is returned."""

    async def run() -> MemoryClient:
        client = MemoryClient()
        await work(client)
        await client.close()
        return client

    return asyncio.run(run())


@pytest.fixture(params=[spider, on_server], ids=["folder", "server"])
def either(request) -> Spider:
    """:func:`spider`, in a folder or on a server of it."""
    return request.param


def page(folder: Path, url: str) -> Page:
    with Crawl(folder, policy="first-come") as crawl:
        found = crawl.page(url)
        assert found is not None
        return found


def test_tasks_and_their_answers(tmp_path, either):
    """All that a task tells, and each answer's outcome."""
    clock = Clock()

    async def work(client: Client) -> None:
        first = await client.next(9)
        (task,) = first.tasks
        assert task == Task(task.lease, A, 0, 0, 0, None, b"carried")
        assert (first.due_in, first.out_elsewhere, first.paused) == (
            None,
            0,
            False,
        )  # only its answer brings more
        links = [B, (C, 0.5), "/d", "/e", "/g", Link("/f", 1.0, b"more", "POST:1")]
        assert await client.report([Crawled(task.lease, links, 0.25, b"hash", noindex=True)]) == COUNTED
        tasks = (await client.next(9)).tasks
        found = {task.url: task for task in tasks}
        assert list(found) == [
            B,
            C,
            "http://a.com/d",
            "http://a.com/e",
            "http://a.com/g",
            "http://a.com/f#POST:1",
        ]
        assert found["http://a.com/f#POST:1"].carried == b"more"
        assert {(task.depth, task.linked_from) for task in tasks} == {(1, A)}
        leases = [task.lease for task in tasks]
        answers = [
            Failed(leases[0], "no route", None, True),
            Failed(leases[1], "", 404),
            Excluded(leases[2], "robots"),
            Released(leases[3]),
            Redirected(leases[4], "/h", b"kept"),
            Crawled(leases[5], [], error="ValueError: oh"),
        ]
        *told, lead = await client.report(answers[:4] + [answers[5], answers[4]])
        # The failure holds its host back.
        assert told == [Receipt(True, None, 60.0), *COUNTED * 4]
        assert lead.counted
        lead = lead.task
        assert isinstance(lead, Task)
        # A redirect is no click.
        assert (lead.url, lead.carried, lead.depth) == ("http://a.com/h", b"kept", 1)
        assert await client.report(answers + [Released(12345)]) == [Receipt(False)] * 7  # each counts once
        assert await client.report([Crawled(lead.lease)]) == COUNTED
        assert (await client.next(9)).tasks == []  # the host did not answer, and waits
        clock.now += 3600
        again = sorted((task.url, task.failures, task.crawls) for task in (await client.next(9)).tasks)
        assert again == [(B, 1, 0), ("http://a.com/e", 0, 0)]
        assert (await client.standing()).known == 8

    either(tmp_path / "c", work, Link(A, 1.0, b"carried"), clock=clock)
    with Crawl(tmp_path / "c", policy="first-come", clock=clock) as crawl:
        found = {
            name: crawl.page(f"http://a.com/{name}") for name in ("b", "c", "d", "e", "f#POST:1", "g", "h")
        }
        states = {name: one.state for name, one in found.items() if one is not None}
        assert states == {
            "b": "discovered",
            "c": "gone",
            "d": "excluded",
            "e": "discovered",
            "f#POST:1": "failed",
            "g": "merged",
            "h": "crawled",
        }
        assert found["f#POST:1"] is not None
        assert (found["f#POST:1"].error, found["f#POST:1"].crawls) == ("ValueError: oh", 1)
        first = crawl.page(A)
        assert first is not None
        assert (first.score, first.content_hash, first.noindex) == (0.25, b"hash", True)


@pytest.mark.parametrize(
    "link", [None, 7, ("/x", "good"), ("/x", float("inf")), Link("/x", 1.0, b"", "b d"), b"/x"]
)
def test_a_link_that_is_none_fails_its_page_and_nothing_else(tmp_path, either, link):
    """The spider's fault is told with the page, and not held against its host."""

    async def work(client: Client) -> None:
        for _ in range(9):  # eight failures of a host in a row would park it
            (task,) = (await client.next(1)).tasks
            assert await client.report([Crawled(task.lease, ["/fine", link])]) == COUNTED
        (task,) = (await client.next(1)).tasks
        assert await client.report([Crawled(task.lease, ["/fine"])]) == COUNTED
        assert [task.url for task in (await client.next(9)).tasks] == ["http://a.com/fine"]

    either(tmp_path / "c", work, *[f"http://a.com/{k}" for k in range(10)])
    found = page(tmp_path / "c", "http://a.com/0")
    assert found.state == "failed"
    assert found.error
    assert found.crawls == 1


def test_other_mistakes_are_raised(tmp_path, either):
    async def work(client: Client) -> None:
        (task,) = (await client.next(1)).tasks
        with pytest.raises(ParameterError, match="status"):
            await client.report([Crawled(task.lease, status=1000)])
        with pytest.raises(ParameterError):
            await client.seed([("http://a.com/", "good")])  # type: ignore[list-item]

    either(tmp_path / "c", work, A)


def test_a_predecessor_that_broke_off_loses_its_tasks_and_nobody_elses(tmp_path):
    clock = Clock()
    with Crawl(tmp_path / "c", policy="first-come", politeness=EAGER, clock=clock) as crawl:
        crawl.seed([A, B, C])
        assert len(crawl.next(1)) == 1  # of a caller without a session
        assert len(crawl.desk.next(crawl.desk.hello(OWNER).number, 1).tasks) == 1

    async def work(client: Client) -> None:
        found = await client.next(9)
        assert [task.url for task in found.tasks] == [C]
        assert (found.due_in, found.out_elsewhere) == (60.0, 1)
        await client.report([Crawled(found.tasks[0].lease)])
        clock.now += 60
        assert [task.url for task in (await client.next(9)).tasks] == [B]

    told = spider(tmp_path / "c", work, clock=clock)
    assert told.endswith("; the last session of 'spider' left 1 task for later")
    assert "\n" not in told
    assert page(tmp_path / "c", A).state == "leased"
    assert page(tmp_path / "c", B).state == "discovered"  # close() has given it back
    assert "broke off" not in spider(tmp_path / "c", nothing, clock=clock)


async def nothing(client: Client) -> None:
    """Work that is none."""


def test_a_living_spider_renews_its_tasks(tmp_path, monkeypatch):
    """It takes more than three times as long as a lease runs."""
    clock = Clock()
    renewals: list[int] = []
    renew = Desk.renew

    def noted(desk: Desk, session: int) -> int:
        count = renew(desk, session)
        renewals.extend([count] * bool(count))
        return count

    async def work(client: Client) -> None:
        (slow,) = (await client.next(1)).tasks
        for turn in range(1, 6):
            clock.now += 0.2
            while len(renewals) < turn:
                await asyncio.sleep(0.01)
        assert await client.next(9) == Tasks([])
        assert await client.report([Crawled(slow.lease, [B])]) == COUNTED
        assert [task.url for task in (await client.next(9)).tasks] == [B]

    monkeypatch.setattr(Desk, "renew", noted)
    spider(tmp_path / "c", work, A, lease_seconds=0.3, clock=clock)


def test_a_task_that_was_lost_may_still_be_answered_for(tmp_path, either):
    clock = Clock()

    async def work(client: Client) -> None:
        slow, other = (await client.next(2)).tasks
        clock.now += 11
        assert await client.next(9) == Tasks([], 60.0)
        assert await client.report([Failed(slow.lease, "no", retry=True)]) == [Receipt(True, None, 60.0)]
        assert await client.report([Crawled(other.lease)]) == COUNTED
        clock.now += 3600
        (again,) = (await client.next(9)).tasks
        assert (again.url, again.failures) == (A, 1)

    either(tmp_path / "c", work, A, B, lease_seconds=10.0, clock=clock)


def test_a_delay_that_a_host_asks_for(tmp_path, either):
    clock = Clock()

    async def work(client: Client) -> None:
        answers = [HostDelay(A, 30.0), HostDelay(A, 20.0), HostDelay("http://unknown.com/", 5.0)]
        assert await client.report(answers) == [Receipt(True), Receipt(False), Receipt(False)]
        assert len((await client.next(9)).tasks) == 1
        assert await client.next(9) == Tasks([], 30.0)

    either(tmp_path / "c", work, A, B, clock=clock, politeness=Politeness(delay=0, in_flight=9))


def test_the_end(tmp_path, either):
    async def work(client: Client) -> None:
        (task,) = (await client.next(9)).tasks
        await client.report([Crawled(task.lease)])
        assert await client.next(9) == Tasks([])

    either(tmp_path / "c", work, A)


def test_the_crawl_has_a_thread_of_its_own(tmp_path):
    """The event loop goes on while the crawl is busy, and calls come one after the other."""
    entered, go = threading.Event(), threading.Event()

    def clock() -> float:
        if threading.current_thread() is not threading.main_thread() and busy:
            entered.set()
            assert go.wait(30)
        return 1e6

    busy: list[bool] = []

    async def work(client: Client) -> None:
        busy.append(True)
        asking = asyncio.ensure_future(client.next(1))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        busy.clear()
        second = asyncio.ensure_future(client.next(1))
        await asyncio.sleep(0)
        assert not asking.done()
        go.set()
        assert [task.url for task in (await asking).tasks + (await second).tasks] == [A, B]

    spider(tmp_path / "c", work, A, B, clock=clock)


def test_the_url_of_a_server_makes_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for opened in (Crawl, CrawlView.open):
        with pytest.raises(ParameterError, match=r"inlink\.connect reaches a crawl on a server"):
            opened("http://127.0.0.1:8000/v1/crawls/c")
    assert list(tmp_path.iterdir()) == []


def test_refusals(tmp_path):
    with pytest.raises(ParameterError, match="policy must be"):
        spider(tmp_path / "c", nothing, policy="none")
    with Crawl(tmp_path / "c"), pytest.raises(InUseError):
        spider(tmp_path / "c", nothing)
    assert not [one for one in threading.enumerate() if one.name.startswith("inlink-crawl")]
    spider(tmp_path / "c", nothing)


def test_an_opening_that_is_cancelled_leaves_no_crawl_open(tmp_path, monkeypatch):
    begun, go = threading.Event(), threading.Event()

    def slow(*given: Any, **settings: Any) -> Crawl:
        begun.set()
        assert go.wait(30)
        return Crawl(*given, **settings)

    async def run() -> None:
        monkeypatch.setattr("inlink.client.folder.Crawl", slow)
        opening = asyncio.ensure_future(connect(str(tmp_path / "c"), policy="first-come"))
        await asyncio.to_thread(begun.wait, 30)
        opening.cancel()
        timer = threading.Timer(0.2, go.set)
        timer.start()
        with pytest.raises(asyncio.CancelledError):
            await opening
        timer.join()

    asyncio.run(run())
    with Crawl(tmp_path / "c", policy="first-come") as crawl:
        assert crawl.seed([A]) == 1


def test_closing_lets_go_even_if_nothing_can_be_written(tmp_path, monkeypatch):
    async def run() -> None:
        client = FolderClient(tmp_path / "c", policy="first-come")
        await client.open()
        await client.seed([A])
        monkeypatch.setattr(Desk, "bye", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await client.close()
        await client.close()  # is no harm
        monkeypatch.undo()

    asyncio.run(run())
    assert page(tmp_path / "c", A).state == "discovered"  # another may have the folder


# -- whatever a spider does -------------------------------------------------------------------------------------------

STEPS = st.one_of(
    st.tuples(st.just("seed"), st.lists(st.sampled_from(URLS), max_size=3)),
    st.tuples(st.just("next"), st.integers(1, 3)),
    st.tuples(st.just("crawled"), st.integers(0, 3), st.lists(st.sampled_from(URLS), max_size=3)),
    st.tuples(st.just("failed"), st.integers(0, 3)),
    st.tuples(st.just("excluded"), st.integers(0, 3)),
    st.tuples(st.just("redirected"), st.integers(0, 3), st.sampled_from(URLS)),
)


def answer(kind: str, lease: int, rest: list[Any]) -> Answer:
    if kind == "crawled":
        return Crawled(lease, rest[1])
    if kind == "failed":
        return Failed(lease, "no", retry=False)
    return Excluded(lease, "no") if kind == "excluded" else Redirected(lease, rest[1])


async def replies(steps: list[tuple[Any, ...]], client: Client) -> list[Any]:
    """Do these steps and return the replies; leases are named by their place in the order of tasks."""
    heard: list[Any] = []
    leases: list[int] = []
    for kind, *rest in steps:
        tasks: list[Task | None] = []
        if kind == "seed":
            heard.append(await client.seed(rest[0]))
        elif kind == "next":
            tasks += (await client.next(rest[0])).tasks
        elif rest[0] < len(leases):
            for receipt in await client.report([answer(kind, leases[-1 - rest[0]], rest)]):
                heard.append(receipt.counted)
                tasks.append(receipt.task)
        leases += [task.lease for task in tasks if task is not None]
        heard.append([task and (task.url, task.depth) for task in tasks])
        standing = await client.standing()
        heard.append((standing.known, standing.crawled, standing.waiting, standing.leased))
    return heard


@pytest.mark.slow
@pytest.mark.parametrize("door", [spider, on_server])
@settings(max_examples=25)
@given(st.lists(STEPS, max_size=12))
def test_whatever_a_spider_does_the_client_in_memory_answers_alike(door, steps):
    heard: list[list[Any]] = []

    async def work(client: Client) -> None:
        heard.append(await replies(steps, client))

    with tempfile.TemporaryDirectory() as place:
        door(Path(place) / "c", work)
    in_memory(work)
    assert heard[0] == heard[1]


async def give_back(client: Client) -> None:
    await client.seed([A, B])
    (task,) = (await client.next(1)).tasks
    assert await client.report([Released(task.lease), Released(task.lease)]) == [*COUNTED, Receipt(False)]
    assert len((await client.next(5)).tasks) == 2


def test_open_tasks_come_back_when_a_client_closes(tmp_path, either):
    either(tmp_path / "c", give_back)
    assert CrawlView.open(tmp_path / "c").standing().states == {"discovered": 2}
    client = in_memory(give_back)
    assert (len(client.waiting), client.out) == (2, {})

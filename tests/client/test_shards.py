"""The client of a crawl that several servers share: tasks, answers, seeds, a shard that is away, and the end."""

import asyncio
import contextlib
import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink
from crawlstrategies import EAGER, frontier_in
from inlink.client import channel, shards
from inlink.client.remote import RemoteCrawl
from inlink.client.shards import RemoteShards
from inlink.client.spider import connect
from inlink.crawl.crawl import Crawl
from inlink.errors import ParameterError, ServerError
from inlink.protocol import (
    Answer,
    Crawled,
    HostDelay,
    Link,
    Receipt,
    Redirected,
    Released,
    ShardOf,
    Task,
    Tasks,
)
from inlink.store import log
from inlink.urls.shards import owner_of
from patience import wait_until
from served import Served, served

N = 3


def url_of(shard: int, path: str = "/", number: int = 0) -> str:
    """A URL on the ``number``-th host of a shard."""
    hosts = [host for host in (f"{k}.example" for k in range(100)) if owner_of(host, N) == shard]
    return f"http://{hosts[number]}{path}"


ONE, TWO, THREE = (url_of(k) for k in (1, 2, 3))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(channel, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(channel, "LONGEST_PAUSE", 0.1)
    # A shard sends pages and ranks to other shards only after it has synced its log.
    monkeypatch.setattr(log, "SYNC_EVERY", 0.05)


class Fleet:
    """Three shards, each on a server in this process, whose exchange happens only when a test asks for it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._stacks = folder, [contextlib.ExitStack() for _ in range(N)]
        self.servers: list[Served] = []
        for k in range(1, N + 1):
            self.servers.append(self._serve(k, 0))
        self.urls = [f"{server.url}/v1/crawls/{k}" for k, server in enumerate(self.servers, 1)]

    def _serve(self, k: int, port: int) -> Served:
        rules = {"shard": f"{k}/{N}"}
        serving = served(self.folder / str(k), port=port, policy="first-come", rules=rules, politeness=EAGER)
        return self._stacks[k - 1].enter_context(serving)

    def stop(self, k: int) -> None:
        """Let the server of shard ``k`` end."""
        self._stacks[k - 1].close()

    def start(self, k: int) -> None:
        """Start the server of shard ``k`` again, on its old port."""
        self.servers[k - 1] = self._serve(k, self.servers[k - 1].port)

    def run(self, k: int, work: Callable[[Crawl], Any]) -> Any:
        """Call ``work`` with the crawl of shard ``k``."""
        server = self.servers[k - 1]
        keeper = server.site.keepers[str(k)]
        return asyncio.run_coroutine_threadsafe(keeper.change(work), server.loop).result()

    def pull(self, into: int, other: int) -> int:
        """Let a shard take in what another shard shows; return the number of new pages."""
        pages = self.run(other, lambda crawl: crawl.exchange.progress().pages)
        begin = self.run(into, lambda crawl: crawl.exchange.end(other))
        show = lambda: self.run(other, lambda crawl: crawl.exchange.discovered(into, N, begin))  # noqa: E731
        wait_until(lambda: show().end == pages, "pages to be synced")
        batch = show()
        return int(self.run(into, lambda crawl: crawl.exchange.receive(begin, batch)))

    def exchange(self) -> None:
        """Let all shards take in everything."""
        pairs = [(k, j) for k in range(1, N + 1) for j in range(1, N + 1) if j != k]
        while True:
            before = self.progress()
            for into, other in pairs:
                self.pull(into, other)
            if self.progress() == before:
                return

    def progress(self) -> list[ShardOf]:
        return [self.run(k, lambda crawl: crawl.exchange.progress()) for k in range(1, N + 1)]

    def page(self, k: int, url: str) -> Any:
        return self.run(k, lambda crawl: crawl.page(url))

    def close(self) -> None:
        for stack in self._stacks:
            stack.close()


@pytest.fixture
def fleet(tmp_path) -> Iterator[Fleet]:
    started = Fleet(tmp_path)
    try:
        yield started
    finally:
        started.close()


@pytest.fixture
def client(fleet) -> Iterator[RemoteShards]:
    with RemoteShards(fleet.urls, "me", None) as crawl:
        crawl.begin()
        yield crawl


def all_tasks(client: RemoteCrawl | RemoteShards, count: int) -> dict[str, Task]:
    """Tasks, until there are ``count``."""
    found: dict[str, Task] = {}

    def more() -> bool:
        found.update((task.url, task) for task in client.next(count - len(found)).tasks)
        return len(found) >= count

    wait_until(more, f"{count} tasks")
    return found


def is_over(tasks: Tasks) -> bool:
    return not (tasks.tasks or tasks.out_elsewhere or tasks.paused) and tasks.due_in is None


# -- tasks and answers ------------------------------------------------------------------------------------------------


def test_tasks_of_all_shards_have_leases_of_their_own(fleet, client):
    client.seed([ONE, TWO, THREE])
    tasks = all_tasks(client, 3)
    assert set(tasks) == {ONE, TWO, THREE}
    # Each shard gave its first lease.
    locals_ = [fleet.run(k, lambda crawl: crawl.view.standing().leased) for k in (1, 2, 3)]
    assert locals_ == [1, 1, 1]
    assert len({task.lease for task in tasks.values()}) == 3
    answers = [
        Crawled(tasks[TWO].lease, ["/two"]),
        Released(tasks[ONE].lease),
        HostDelay(THREE, 7.0),
        Redirected(tasks[THREE].lease, "/three", b"kept"),
    ]
    counted, released, delayed, moved = client.report(answers)
    assert counted == released == delayed == Receipt(True)
    assert moved.counted
    assert moved.task is not None
    assert moved.task.url == THREE + "three"
    assert moved.task.carried == b"kept"
    assert fleet.page(2, TWO).state == "crawled"
    assert fleet.page(1, ONE).state == "discovered"
    assert fleet.page(3, THREE).state == "merged"
    # The task of the redirect is answered for like any other; a second answer does not count.
    last = Crawled(moved.task.lease)
    assert client.report([last, last]) == [Receipt(True), Receipt(False)]
    assert fleet.page(3, THREE + "three").state == "crawled"


def test_shards_take_turns(fleet, client):
    """A spider with little room gets tasks of all shards, although each has enough for it."""
    for k in (1, 2, 3):
        client.seed([url_of(k, f"/{path}", number) for path in range(3) for number in range(3)])
    owners = []
    for _ in range(12):
        (task,) = all_tasks(client, 1).values()
        owners.append(owner_of(task.url.split("/")[2], N))
        client.report([Crawled(task.lease)])
    assert {owners.count(k) for k in (1, 2, 3)} == {4}
    # A request for many gets as many as there are, although one shard alone has most of them.
    client.seed([url_of(1, "/x", number) for number in range(12)])
    found = all_tasks(client, 9)
    assert len(found) == 9


def test_a_request_that_waits_ends_with_the_first_task(fleet, client):
    """The shards without tasks do not hold back the reply."""
    client.seed([TWO])
    (held,) = all_tasks(client, 1).values()
    tasks: list[Tasks] = []
    waiting = threading.Thread(target=lambda: tasks.append(client.next(5, wait=20)))
    waiting.start()
    fleet.run(1, lambda crawl: crawl.seed([ONE]))
    waiting.join()
    assert [task.url for task in tasks[0].tasks] == [ONE]
    client.report([Released(held.lease)])


# -- seeds ------------------------------------------------------------------------------------------------------------

SEEDS = [
    Link(url_of(2, "/form"), 0.25, b"body", "POST:1"),
    (url_of(2, "/scored"), 0.75),
    url_of(2, "/plain"),
]


def test_seeds_go_to_their_owners(fleet, client):
    assert client.seed([*SEEDS, ONE, "no url"]).new == 4
    assert {task.url: task.carried for task in all_tasks(client, 4).values()} == {
        url_of(2, "/form") + "#POST:1": b"body",
        url_of(2, "/scored"): None,
        url_of(2, "/plain"): None,
        ONE: None,
    }
    assert [shard.pages for shard in fleet.progress()] == [1, 3, 0]


@pytest.mark.slow
def test_seeds_of_a_shard_that_is_away_reach_it_with_all_that_they_carry(fleet, client):
    fleet.stop(2)
    assert client.seed(SEEDS).new == 3
    fleet.start(2)
    fleet.exchange()
    tasks = all_tasks(client, 3)
    assert {task.url: (task.carried, task.depth) for task in tasks.values()} == {
        url_of(2, "/form") + "#POST:1": (b"body", 0),
        url_of(2, "/scored"): (None, 0),
        url_of(2, "/plain"): (None, 0),
    }
    scores = fleet.run(
        2, lambda crawl: [frontier_in(crawl).pages.scores[crawl.view.number(url)] for url in tasks]
    )
    assert scores == [0.25, 0.75, 1.0]


def test_the_date_of_a_sitemap_reaches_the_owner(fleet, client):
    client.seed([THREE])
    (task,) = all_tasks(client, 1).values()
    client.report([Crawled(task.lease)])
    time.sleep(0.01)
    assert client.sitemap([(THREE, time.time(), None), (TWO, None, 0.5)]).new == 1
    assert set(all_tasks(client, 2)) == {THREE, TWO}


# -- a shard that is away ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_shard_that_is_away_costs_its_tasks_only(fleet, client, caplog):
    caplog.set_level(logging.INFO, "inlink.client")
    client.seed([ONE, TWO, THREE])
    tasks = all_tasks(client, 3)
    fleet.stop(2)
    receipts: list[list[Receipt]] = []
    report = threading.Thread(
        target=lambda: receipts.append(client.report([Crawled(tasks[TWO].lease, ["/more"])]))
    )
    report.start()
    answers = [Crawled(tasks[url].lease, ["/next"]) for url in (ONE, TWO, THREE)]
    assert sorted(client.split(answers)) == [[0], [1], [2]]
    # The others go on, without an end.
    client.report([answers[0], answers[2]])
    assert set(all_tasks(client, 2)) == {ONE + "next", THREE + "next"}
    for _ in range(5):
        assert client.next(5).out_elsewhere
    assert client.standing().crawled == 2
    assert report.is_alive()
    fleet.start(2)
    report.join()
    assert receipts == [[Receipt(True)]]
    assert set(all_tasks(client, 1)) == {TWO + "more"}
    assert client.standing().crawled == 3
    away = [line for line in caplog.messages if "is away" in line]
    back = [line for line in caplog.messages if "is back after" in line]
    assert len(away) == len(back) == 1
    assert fleet.urls[1] in away[0]
    assert fleet.urls[1] in back[0]


@pytest.mark.slow
def test_a_client_begins_without_a_shard(fleet):
    fleet.stop(3)
    with RemoteShards(fleet.urls, "me", None) as client:
        begun = client.begin(at_once=True)
        assert begun.session.owner == "me"
        client.seed([ONE, THREE])
        assert set(all_tasks(client, 1)) == {ONE}
        fleet.start(3)
        fleet.exchange()
        assert set(all_tasks(client, 1)) == {THREE}


def test_a_client_without_any_shard_is_refused(fleet):
    for k in (1, 2, 3):
        fleet.stop(k)
    client = RemoteShards(fleet.urls, "me", None)
    with pytest.raises(ServerError, match="cannot be reached"):
        client.begin(at_once=True)
    client.close()

    def ask_until_refused() -> None:
        for _ in range(1000):
            impatient.next(1, wait=1)

    with (
        RemoteShards(fleet.urls, "me", 0.2) as impatient,
        pytest.raises(ServerError, match="cannot be reached"),
    ):
        ask_until_refused()


# -- a spider in plain Python -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_program_crawls_all_shards(fleet):
    """It needs no more than next() and report()."""
    links = {ONE: [TWO, f"{ONE}a"], TWO: [THREE, f"{TWO}a"], THREE: [ONE]}
    fetched: list[str] = []
    with inlink.connect(" , ".join(fleet.urls)) as crawl:
        crawl.seed([ONE, f"{THREE}a"])
        while not is_over(tasks := crawl.next(5)):
            fetched += [task.url for task in tasks.tasks]
            assert all(
                receipt.counted
                for receipt in crawl.report([Crawled(t.lease, links.get(t.url, [])) for t in tasks.tasks])
            )
            fleet.exchange()
        assert crawl.standing().crawled == 6
        assert crawl.missing == {}
    assert sorted(fetched) == sorted([ONE, TWO, THREE, f"{ONE}a", f"{TWO}a", f"{THREE}a"])


def test_calls_in_a_row_give_and_take_each_task_once(fleet):
    with inlink.connect(",".join(fleet.urls)) as crawl:
        crawl.seed([ONE, TWO, THREE])
        first = all_tasks(crawl, 2)
        second = all_tasks(crawl, 1)
        assert {*first, *second} == {ONE, TWO, THREE}
        answers = [Crawled(task.lease) for task in (*first.values(), *second.values())]
        assert crawl.report(answers) == [Receipt(True)] * 3
        assert crawl.report(answers) == [Receipt(False)] * 3


def test_a_shard_that_dies_between_a_task_and_its_answer_costs_that_answer_only(fleet):
    with inlink.connect(",".join(fleet.urls), patience=0.2) as crawl:
        crawl.seed([ONE, TWO, THREE])
        tasks = all_tasks(crawl, 3)
        fleet.stop(2)
        answers = [
            *(Crawled(tasks[url].lease, [f"{url}a"]) for url in (ONE, TWO)),
            Redirected(tasks[THREE].lease, f"{THREE}a"),
        ]
        with pytest.raises(ServerError, match=rf"{fleet.urls[1]} .*\(done at 2 of 3 shards\)"):
            crawl.report(answers)
        # The report failed, so its receipt with the task of the redirect was not returned.
        assert set(all_tasks(crawl, 2)) == {f"{ONE}a", f"{THREE}a"}
        assert crawl.find("a$").searched == 4
        assert list(crawl.missing) == [2]
        fleet.start(2)
        assert crawl.report(answers) == [Receipt(False), Receipt(True), Receipt(False)]
        assert set(all_tasks(crawl, 1)) == {f"{TWO}a"}


@pytest.mark.slow
def test_a_request_waits_for_pages_that_another_shard_discovers(fleet):
    """All shards are idle at first. The request ends with the task, and at the end of the crawl."""
    with inlink.connect(",".join(fleet.urls)) as crawl:
        crawl.seed([ONE])
        (task,) = all_tasks(crawl, 1).values()
        crawl.report([Crawled(task.lease, [TWO])])
        began = time.monotonic()
        timer = threading.Timer(0.7, fleet.exchange)
        timer.start()
        (task,) = crawl.next(5, wait=60).tasks
        timer.join()
        assert task.url == TWO
        crawl.report([Crawled(task.lease)])
        fleet.exchange()
        assert is_over(crawl.next(5, wait=60))
        assert 0.7 <= time.monotonic() - began < 50


def test_two_threads_use_a_client_at_once(fleet):
    urls = [url_of(k, f"/{path}") for k in (1, 2, 3) for path in range(10)]
    fetched: list[str] = []
    faults: list[BaseException] = []

    def work(crawl: RemoteShards) -> None:
        try:
            while len(fetched) < len(urls):
                tasks = crawl.next(2).tasks
                fetched.extend(task.url for task in tasks)
                assert crawl.report([Crawled(task.lease) for task in tasks]) == [Receipt(True)] * len(tasks)
                assert crawl.standing().known == len(urls)
        except BaseException as error:
            faults.append(error)

    with RemoteShards(fleet.urls) as crawl:
        crawl.seed(urls)
        threads = [threading.Thread(target=work, args=(crawl,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
        assert sorted(fetched) == sorted(urls)
        assert crawl.standing().crawled == len(urls)


@pytest.mark.slow
def test_a_question_waits_if_all_shards_are_away(fleet):
    with inlink.connect(",".join(fleet.urls)) as crawl:
        for k in (1, 2, 3):
            fleet.stop(k)
        timers = [threading.Timer(0.3, fleet.start, (k,)) for k in (1, 2, 3)]
        for timer in timers:
            timer.start()
        assert crawl.info().pages == 0
        assert crawl.missing == {}
        for timer in timers:
            timer.join()


def test_a_closed_client_says_so(fleet):
    crawl = inlink.connect(",".join(fleet.urls))
    crawl.seed([ONE])
    tasks = all_tasks(crawl, 1)
    crawl.close()
    for call in (
        lambda: crawl.next(1),
        lambda: crawl.next(1, wait=5),
        lambda: crawl.report([Crawled(tasks[ONE].lease)]),
        lambda: crawl.seed([TWO]),
        lambda: crawl.sitemap([(TWO, None, None)]),
        crawl.info,
        crawl.pause,
    ):
        with pytest.raises(ServerError, match="this client was closed"):
            call()
    # The task was given back.
    assert fleet.page(1, ONE).state == "discovered"


@pytest.mark.parametrize(
    "where", ["a:8000,b:8000", "http://a:8000/v1/crawls/c,", ",", "http://a:8000,http://b:8000"]
)
def test_a_list_needs_full_urls(where):
    with pytest.raises(ParameterError, match="is not the URL of a crawl"):
        inlink.connect(where)


def test_no_call_of_a_program_goes_to_a_part_of_the_shards(fleet):
    with inlink.connect(",".join(fleet.urls[:2])) as crawl:
        for call in (lambda: crawl.next(1), lambda: crawl.seed([ONE]), crawl.pause, crawl.info):
            with pytest.raises(ParameterError, match="the list has 2 URLs: give the URLs of all 3 shards"):
                call()
    assert not fleet.run(1, lambda crawl: crawl.paused)


# -- which servers ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_urls_must_be_those_of_all_shards(fleet, tmp_path, caplog):
    twice = [fleet.urls[0], fleet.urls[1], fleet.urls[0] + "/"]
    with RemoteShards(twice, "me") as client, pytest.raises(ParameterError, match="both shard 1/3"):
        client.begin()
    with RemoteShards(fleet.urls[:2], "me") as client, pytest.raises(ParameterError, match="all 3 shards"):
        client.begin()
    with served(tmp_path / "c") as server:
        urls = [*fleet.urls[:2], f"{server.url}/v1/crawls/c"]
        with RemoteShards(urls, "me") as client, pytest.raises(ParameterError, match="is not a shard"):
            client.begin()
    with served(tmp_path / "d", rules={"shard": "2/3"}) as server:
        urls = [*fleet.urls[:2], f"{server.url}/v1/crawls/d"]
        with RemoteShards(urls, "me") as client, pytest.raises(ParameterError, match="both shard 2/3"):
            client.begin()


def test_a_spider_of_one_shard_is_warned(fleet, caplog):
    async def work(where: str) -> str:
        client, told = await connect(where, owner="me")
        await client.close()
        return told

    asyncio.run(work(fleet.urls[1]))
    (line,) = caplog.messages
    assert "is shard 2/3: this spider gets no pages of the others" in line
    caplog.clear()
    assert asyncio.run(work(" , ".join(fleet.urls))).startswith(fleet.urls[0])
    assert not caplog.messages


# -- redirects --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("way", ["redirected", "crawled"])
def test_the_target_of_a_redirect_is_fetched_by_its_owner(fleet, client, way):
    """Whether the spider reports the redirect alone, or has followed it itself."""
    target = url_of(2, "/target")
    client.seed([ONE])
    (task,) = all_tasks(client, 1).values()
    answer: Answer = (
        Redirected(task.lease, target, b"kept", status=302)
        if way == "redirected"
        else Crawled(task.lease, [url_of(3, "/linked")], redirected_to=target, score=0.5)
    )
    assert client.report([answer]) == [Receipt(True)]
    # A repeat does not count again, as for all answers.
    assert client.report([answer]) == [Receipt(False)]
    assert not is_over(client.next(9))
    fleet.exchange()
    (follower,) = all_tasks(client, 1).values()
    assert follower.url == target
    assert follower.depth == 0
    assert follower.carried == (b"kept" if way == "redirected" else None)
    client.report([Crawled(follower.lease, [url_of(3, "/linked")])])
    fleet.exchange()
    (linked,) = all_tasks(client, 1).values()
    assert linked.url == url_of(3, "/linked")
    client.report([Crawled(linked.lease)])
    assert fleet.page(1, ONE).state == "merged"
    assert fleet.page(1, target).state == "excluded"
    assert fleet.page(2, target).crawls == 1
    # The links of the target count once: at its owner.
    assert fleet.page(1, url_of(3, "/linked")) is None
    fleet.exchange()
    wait_until(lambda: is_over(client.next(9)), "the end")


def test_a_circle_of_redirects_between_shards_ends(fleet, client):
    client.seed([ONE])
    (task,) = all_tasks(client, 1).values()
    client.report([Redirected(task.lease, TWO)])
    fleet.exchange()
    (task,) = all_tasks(client, 1).values()
    assert task.url == TWO
    client.report([Redirected(task.lease, ONE)])
    fleet.exchange()
    wait_until(lambda: is_over(client.next(9)), "the end")


def test_a_late_answer_for_a_page_that_was_merged_into_a_page_of_another_shard_does_not_count(fleet, client):
    """Otherwise the page of the other shard would be crawled here too."""
    client.seed([ONE])
    (task,) = all_tasks(client, 1).values()
    fleet.run(1, lambda crawl: crawl.redirected(ONE, TWO))
    assert client.report([Crawled(task.lease, ["/never"])]) == [Receipt(False)]
    assert fleet.page(1, TWO).crawls == 0


# -- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_end_is_not_before_all_pages_have_arrived(fleet, client):
    client.seed([ONE])
    (task,) = all_tasks(client, 1).values()
    client.report([Crawled(task.lease, [TWO])])
    for _ in range(5):
        assert not is_over(client.next(5))
    # Not even shards without pages are done before all others have looked at them.
    fleet.pull(2, 1)
    (task,) = all_tasks(client, 1).values()
    assert task.url == TWO
    client.report([Crawled(task.lease)])
    for _ in range(5):
        assert not is_over(client.next(5))
    fleet.exchange()
    # One look at the figures does not suffice.
    assert not is_over(client.next(5))
    assert is_over(client.next(5))
    fleet.stop(3)
    assert not is_over(client.next(5))


def test_tasks_of_other_spiders_and_a_pause_delay_the_end(fleet, client):
    fleet.run(1, lambda crawl: crawl.seed([ONE]))
    with RemoteCrawl(fleet.urls[0], "other") as other:
        (task,) = other.next(1).tasks
        for _ in range(3):
            assert not is_over(client.next(5))
        other.report([Crawled(task.lease)])
    fleet.run(3, lambda crawl: crawl.pause())
    fleet.exchange()
    for _ in range(3):
        assert not is_over(client.next(5))
    wait_until(lambda: client.next(5).paused, "the reply of the paused shard")
    fleet.run(3, lambda crawl: crawl.resume())
    wait_until(lambda: is_over(client.next(5)), "the end")


class World:
    """A model of a crawl with shards: pages, leases and exchange, in which anything may happen between two requests.

    It also is the client's clock and network: a request reaches its shard at any time, and its reply comes at any later
    time.
    """

    def __init__(self, dice: random.Random, shards: int, pages: int) -> None:
        self.dice, self.shards, self.is_quiet = dice, range(shards), False
        self.owners = [dice.randrange(shards) for _ in range(pages)]
        self.links: list[list[int]] = [[] for _ in range(pages)]
        for page in range(1, pages):
            self.links[dice.randrange(page)].append(page)
        self.known: list[list[int]] = [[] for _ in range(shards)]
        self.waiting: list[list[int]] = [[] for _ in range(shards)]
        # The session and the page of each lease.
        self.leases: list[dict[int, tuple[str, int]]] = [{} for _ in range(shards)]
        self.ends = [[0] * shards for _ in range(shards)]
        self.number, self.now = 0, 0.0
        self.crawled: list[int] = []
        self.requests: list[tuple[float, Future[Any], Callable[[], Any]]] = []
        self.replies: list[tuple[float, Future[Any], Any]] = []
        if pages:
            self.know(dice.randrange(shards), 0)

    # -- the crawl ----------------------------------------------------------------------------------------------------

    def know(self, shard: int, page: int) -> None:
        if page not in self.known[shard]:
            self.known[shard].append(page)
            if self.owners[page] == shard:
                self.waiting[shard].append(page)

    def lease(self, shard: int, session: str) -> int | None:
        if not self.waiting[shard]:
            return None
        self.number += 1
        page = self.waiting[shard].pop(0)
        self.leases[shard][self.number] = session, page
        return self.number

    def answer(self, shard: int, lease: int) -> bool:
        if lease not in self.leases[shard]:
            return False
        _, page = self.leases[shard].pop(lease)
        self.crawled.append(page)
        for other in self.links[page]:
            self.know(shard, other)
        return True

    def pull(self, into: int, other: int, most: int) -> None:
        begin = self.ends[into][other]
        pages = self.known[other][begin : begin + most] if into != other else []
        self.ends[into][other] += len(pages)
        for page in pages:
            if self.owners[page] == into:
                self.know(into, page)

    @property
    def is_over(self) -> bool:
        return not (any(self.waiting) or any(self.leases)) and all(
            self.ends[into][other] == len(self.known[other])
            for into in self.shards
            for other in self.shards
            if into != other
        )

    def something(self) -> None:
        """Let the other spider, or the exchange, take a step."""
        shard, step = self.dice.choice(self.shards), self.dice.randrange(4)
        if step == 0:
            self.lease(shard, "other")
        elif step == 1:
            held = [lease for lease, (session, _) in self.leases[shard].items() if session == "other"]
            if held:
                self.answer(shard, self.dice.choice(held))
        else:
            self.pull(shard, self.dice.choice(self.shards), self.dice.randint(1, 3))

    def rest(self) -> None:
        """Let the other spider answer for all that it holds, and each shard look at the others; then all is quiet."""
        self.is_quiet = True
        for shard in self.shards:
            for lease in [lease for lease, (session, _) in self.leases[shard].items() if session == "other"]:
                self.answer(shard, lease)
        for into in self.shards:
            for other in self.shards:
                self.pull(into, other, len(self.owners))

    # -- the network and the clock ------------------------------------------------------------------------------------

    FIRST_COMPLETED = "first"

    def monotonic(self) -> float:
        return self.now

    def spawn(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        reply: Future[Any] = Future()
        self.requests.append((self.later(), reply, lambda: work(*arguments)))
        return reply

    def later(self) -> float:
        """When something on the network arrives."""
        return self.now + self.dice.choice([0.0, 0.0, 0.02, 0.5])

    def wait(self, replies: Any, timeout: float | None = None, when: str = "all") -> None:
        """Let replies come until all or one of those that are waited for have come."""
        until = math.inf if timeout is None else self.now + timeout
        enough = any if when == self.FIRST_COMPLETED else all
        while not enough([reply.done() for reply in replies]) and self.now < until:
            requests = [row for row in self.requests if row[0] <= self.now]
            arrived = [row for row in self.replies if row[0] <= self.now]
            if not self.is_quiet and self.dice.random() < 0.6:
                self.something()
            elif requests and self.dice.random() < 0.6:
                request = self.dice.choice(requests)
                self.requests.remove(request)
                self.replies.append((self.later(), request[1], request[2]()))
            elif arrived:
                row = self.dice.choice(arrived)
                self.replies.remove(row)
                row[1].set_result(row[2])
            else:
                self.now += 0.01


class ModelShard:
    """A shard of the model, as :class:`RemoteShards` uses it."""

    is_away = False

    def __init__(self, world: World, place: int) -> None:
        self.world, self.place, self.url = world, place, f"shard {place}"

    def next(self, count: int, wait: float, *, lost: bool) -> Tasks:
        world, place = self.world, self.place
        leases = [world.lease(place, "me") for _ in range(count)]
        tasks = [Task(lease, f"http://a.example/{lease}") for lease in leases if lease is not None]
        elsewhere = sum(session == "other" for session, _ in world.leases[place].values())
        return Tasks(tasks, 0.0 if world.waiting[place] else None, elsewhere)

    def report(self, answers: list[Crawled]) -> list[Receipt]:
        return [Receipt(self.world.answer(self.place, answer.lease)) for answer in answers]

    def shard(self, *, at_once: bool) -> ShardOf:
        world, place = self.world, self.place
        return ShardOf(place + 1, len(world.shards), len(world.known[place]), list(world.ends[place]))


@pytest.mark.slow
@given(st.integers(0, 1 << 32), st.integers(2, 4), st.integers(0, 12))
def test_a_client_neither_ends_early_nor_hangs(seed, count, pages):
    """The model knows whether anything is left. Requests, replies, other spiders and the exchange come in any order."""
    dice = random.Random(seed)
    for _ in range(20):
        world = World(dice, count, pages)
        client = RemoteShards([f"http://a.example/v1/crawls/{k}" for k in range(count)], "me", None)
        client.shards = [ModelShard(world, place) for place in range(count)]  # type: ignore[misc]
        client.places = {place + 1: place for place in range(count)}
        with patch.multiple(shards, time=world, futures=world, spawn=world.spawn):
            _work(client, world)
        assert sorted(world.crawled) == list(range(pages))


def _work(client: RemoteShards, world: World) -> None:
    """Work as a spider does until the crawl has ended."""
    held: list[Task] = []
    for turn in range(1000):
        if turn >= 30:
            # From now on, each turn brings the crawl nearer to its end.
            world.rest()
        found = client.next(world.dice.randint(1, 4))
        world.wait((), 0.1, world.FIRST_COMPLETED)
        held += found.tasks
        if is_over(found) and not held:
            assert world.is_over
            return
        answered = [task for task in held if turn >= 30 or world.dice.random() < 0.5]
        held = [task for task in held if task not in answered]
        assert all(receipt.counted for receipt in client.report([Crawled(task.lease) for task in answered]))
    raise AssertionError("the client never ended")

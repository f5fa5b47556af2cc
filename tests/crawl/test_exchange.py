"""Shards: pages and ranks go to their owner exactly once, whatever is lost between two shards."""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import inlink
from crawlstrategies import frontier_in
from inlink.base.clock import VirtualClock
from inlink.crawl import exchange
from inlink.crawl.journal import Journal
from inlink.errors import FolderError, ParameterError
from inlink.frontier import owners
from inlink.frontier.rules import Rules
from inlink.protocol import Crawled, Discovered, DiscoveredPage, Link, Redirected
from inlink.store import format as kinds
from inlink.store.format import BY_SHARD, EXCLUDE, SEED
from inlink.store.received import FLOW, Inflow, Received, other_shards
from inlink.urls.shards import Shard, owner_of
from shardworld import Views

DAMPING = 0.85


class Fleet:
    """The shards of a crawl in one process. Their exchange is called by hand, so that replies can be lost."""

    def __init__(self, folder: Path, count: int, **settings) -> None:
        self.folder, self.count, self.clock = folder, count, VirtualClock()
        self.settings = {"politeness": {"delay": 0, "in_flight": 1000}, "sync": "full", **settings}
        self.last: dict[tuple[int, int], int] = {}
        self.crawls = {number: self.open(number) for number in range(1, count + 1)}

    def open(self, number: int) -> inlink.Crawl:
        rules = {"shard": f"{number}/{self.count}"}
        return inlink.Crawl(self.folder / str(number), clock=self.clock, rules=rules, **self.settings)

    def again(self, number: int) -> None:
        self.crawls[number].close()
        self.crawls[number] = self.open(number)
        self.last = {pair: last for pair, last in self.last.items() if pair[0] != number}

    def owner(self, url: str) -> inlink.Crawl:
        return self.crawls[owner_of(url.split("/")[2], self.count)]

    def ask(self, to: int, by: int) -> tuple[int, Discovered]:
        begin = self.crawls[by].exchange.end(to)
        last = self.last.get((by, to), 0)
        return begin, self.crawls[to].exchange.discovered(by, self.count, begin, last)

    def take(self, to: int, by: int) -> int:
        """Let one shard take in all pages that another has for it; return their number."""
        new = 0
        while True:
            begin, batch = self.ask(to, by)
            new += self.crawls[by].exchange.receive(begin, batch)
            self.last[by, to] = batch.round
            if not batch.pages:
                return new

    def exchange(self) -> int:
        pairs = [(to, by) for to in self.crawls for by in self.crawls if to != by]
        return sum(self.take(to, by) for to, by in pairs)

    def crawl(self, web: dict[str, list[str]], at_once: int = 5) -> list[str]:
        """Crawl a web to its end; return the fetched URLs."""
        fetched = []
        while True:
            before = len(fetched)
            for crawl in self.crawls.values():
                for lease in crawl.next(at_once):
                    assert self.owner(lease.url) is crawl
                    crawl.crawled(lease, web[lease.url])
                    fetched.append(lease.url)
            self.clock.advance(1)
            if not self.exchange() and len(fetched) == before:
                return fetched

    def close(self) -> None:
        for crawl in self.crawls.values():
            crawl.close()


@pytest.fixture
def fleet(tmp_path):
    fleets = []

    def make(count=3, **settings):
        fleets.append(Fleet(tmp_path / str(len(fleets)), count, **settings))
        return fleets[-1]

    yield make
    for each in fleets:
        each.close()


def random_web(seed: int, hosts: int = 30, pages: int = 20) -> dict[str, list[str]]:
    random = np.random.default_rng(seed)
    urls = [f"http://h{host}.test/{page}" for host in range(hosts) for page in range(pages)]
    web = {}
    for k, url in enumerate(urls):
        own = k // pages * pages + random.integers(pages, size=5)
        across = random.integers(len(urls), size=3)
        web[url] = sorted({urls[place] for place in (*own.tolist(), *across.tolist())})
    return web


def reached(web: dict[str, list[str]], seeds: list[str]) -> set[str]:
    found, todo = set(), list(seeds)
    while todo:
        if (url := todo.pop()) not in found:
            found.add(url)
            todo += web[url]
    return found


# -- who owns what --------------------------------------------------------------------------------------------------


def test_all_hosts_of_a_domain_have_one_owner_and_shards_have_equal_parts():
    hosts = [f"h{k}.example" for k in range(8000)]
    for count in (1, 2, 7, 64):
        owners = np.array([owner_of(host, count) for host in hosts])
        assert [owner_of(f"www.a.{host}.", count) for host in hosts[:50]] == owners[:50].tolist()
        sizes = np.bincount(owners, minlength=count + 1)
        assert sizes[0] == 0
        assert len(sizes) == count + 1
        # Six standard deviations of a binomial.
        mean = len(hosts) / count
        assert np.all(np.abs(sizes[1:] - mean) <= 6 * np.sqrt(mean) + mean * count / 4096)
    assert owner_of("127.0.0.1", 9) == owner_of("127.0.0.1", 9)


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/5000", "1/2/3", "a/b", "-1/3", "1 /3", "²/3"])
def test_a_wrong_shard_is_refused_before_a_folder_is_made(tmp_path, text):
    with pytest.raises(ParameterError, match="`shard` must be K/N"):
        inlink.Crawl(tmp_path / "c", rules={"shard": text})
    assert not (tmp_path / "c").exists()


def test_a_shard_stays_the_same_shard(tmp_path):
    with (
        inlink.Crawl(tmp_path / "one") as crawl,
        pytest.raises(ParameterError, match=r"`rules\.shard` cannot change"),
    ):
        crawl.change_settings(rules={"shard": "1/2"})
    with inlink.Crawl(tmp_path / "c", rules={"shard": "1/2"}) as crawl:
        crawl.change_settings(rules=Rules(deny=["x"]))
        assert crawl.settings.rules == Rules(deny=["x"], shard="1/2")
        crawl.change_settings(rules=None)
        assert crawl.settings.rules == Rules(shard="1/2")
    for rules in ({"shard": "2/2"}, {"shard": "1/3"}):
        with pytest.raises(ParameterError, match=r"`rules\.shard` cannot change"):
            inlink.Crawl(tmp_path / "c", rules=rules)
    with inlink.Crawl(tmp_path / "c", rules={"max_depth": 3}) as crawl:
        assert crawl.exchange.shard == Shard(1, 2)


def test_a_crawl_without_shards_gives_no_pages(tmp_path):
    with inlink.Crawl(tmp_path / "c") as crawl, pytest.raises(ParameterError, match="is not a shard"):
        crawl.exchange.discovered(1, 2, 0)


# -- pages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, pytest.param(8, marks=pytest.mark.slow)])
def test_each_page_is_fetched_once_by_its_owner(fleet, count):
    web = random_web(count, hosts=20, pages=6)
    seed = next(iter(web))
    shards = fleet(count)
    # The seed goes to a shard that does not own it.
    other = next(crawl for crawl in shards.crawls.values() if crawl is not shards.owner(seed))
    other.seed([Link(seed, 0.5, b"data", "v")])
    shards.exchange()
    page = shards.owner(seed).page(f"{seed}#v")
    assert (page.state, page.depth, page.score) == ("discovered", 0, 0.5)
    other.seed([seed])
    (lease,) = shards.owner(seed).next(1)
    assert (lease.url, lease.carried) == (f"{seed}#v", b"data")
    shards.owner(seed).crawled(lease, [])
    fetched = shards.crawl(web)
    assert len(fetched) == len(set(fetched))
    assert set(fetched) == reached(web, [seed])
    for url in fetched:
        for crawl in shards.crawls.values():
            page = crawl.page(url)
            assert page is None or page.state == ("crawled" if crawl is shards.owner(url) else "excluded")
        assert {row.url for row in shards.owner(url).view.links(url).rows} == set(web[url])


def test_owners_of_many_hosts_are_looked_up_in_several_calls(fleet, monkeypatch):
    """Until all are known, a reply has no pages, and begins where the request did."""
    shards = fleet(2)
    shards.crawls[1].seed([f"http://h{k}.test/" for k in range(40)])
    monkeypatch.setattr(owners, "_NAMES", 8)
    monkeypatch.setattr(exchange, "_LOOK_UP_SECONDS", 0)
    shards.again(1)
    expected = sum(owner_of(f"h{k}.test", 2) == 2 for k in range(40))
    replies = []
    for _ in range(6):
        begin, batch = shards.ask(1, 2)
        replies.append((begin, batch.end, len(batch.pages), shards.crawls[2].exchange.receive(begin, batch)))
        shards.last[2, 1] = batch.round
    assert replies == [(0, 0, 0, 0)] * 5 + [(0, 40, expected, expected)]


def test_pages_keep_depth_score_and_data(fleet):
    shards = fleet(2)
    a = next(f"http://a{k}.test/" for k in range(99) if owner_of(f"a{k}.test", 2) == 1)
    b = next(f"http://b{k}.test/" for k in range(99) if owner_of(f"b{k}.test", 2) == 2)
    one, two = shards.crawls[1], shards.crawls[2]
    one.seed([a])
    one.crawled(one.next(1)[0], [a + "deep"])
    one.crawled(one.next(1)[0], [Link(b + "x", 0.25, b"callback"), (b + "y", 0.75)])
    shards.exchange()
    for url, score in ((b + "x", 0.25), (b + "y", 0.75)):
        page = two.page(url)
        assert (page.state, page.depth, page.score) == ("discovered", 2, score)
    leases = {lease.url: lease for lease in two.next(5)}
    assert leases[b + "x"].carried == b"callback"
    two.crawled(leases[b + "y"], [a + "back"])
    shards.exchange()
    assert one.page(a + "back").depth == 3
    # An excluded page of another shard is not handed out, and stays excluded after a reopening.
    shards.again(1)
    assert [lease.url for lease in shards.crawls[1].next(9)] == [a + "back"]
    assert shards.crawls[1].page(b + "x").state == "excluded"


@pytest.mark.slow
@settings(max_examples=10)
@given(st.data())
def test_lost_replies_and_reopened_shards_cost_nothing(tmp_path_factory, data):
    web = random_web(data.draw(st.integers(0, 99)), 8, 6)
    shards = Fleet(tmp_path_factory.mktemp("fleet"), 3)
    try:
        seed = next(iter(web))
        shards.owner(seed).seed([seed])
        fetched = []
        numbers = st.sampled_from([1, 2, 3])
        for _ in range(30):
            step = data.draw(st.sampled_from(["fetch", "take", "lose", "repeat", "again"]))
            to, by = data.draw(st.permutations([1, 2, 3]))[:2]
            if step == "fetch":
                crawl = shards.crawls[data.draw(numbers)]
                for lease in crawl.next(3):
                    crawl.crawled(lease, web[lease.url])
                    fetched.append(lease.url)
            elif step == "take":
                shards.take(to, by)
            elif step == "lose":
                shards.ask(to, by)
            elif step == "repeat":
                begin, batch = shards.ask(to, by)
                shards.crawls[by].exchange.receive(begin, batch)
                shards.last[by, to] = batch.round
                again = shards.crawls[by].exchange.receive(begin, batch)
                assert again == 0
            else:
                shards.again(to)
            shards.clock.advance(1)
        fetched += shards.crawl(web)
        assert sorted(fetched) == sorted(reached(web, [seed]))
        for number, crawl in shards.crawls.items():
            crawl.close()
            shards.again(number)
            shown = shards.crawls[number].exchange
            for other in {1, 2, 3} - {number}:
                assert shown.discovered(other, 3, 0).end == len(shards.crawls[number])
    finally:
        shards.close()


def reported(crawl: inlink.Crawl, web: dict[str, list[str]], count: int, **named) -> None:
    """Fetch pages, and hand them in by one report."""
    session = crawl.desk.hello("spider").number
    tasks = crawl.desk.next(session, count).tasks
    assert len(tasks) == count
    crawl.desk.report(session, [Crawled(task.lease, web[task.url], **named) for task in tasks])


def foreign_states(crawl: inlink.Crawl) -> set[str]:
    """The states of the pages of other shards; none of them may wait."""
    waiting = {row.url for row in crawl.view.order(100).rows}
    urls = [url for url in frontier_in(crawl).pages.urls(range(len(crawl))) if not owned(crawl, url)]
    assert urls
    assert not waiting.intersection(urls)
    return {crawl.page(url).state for url in urls}


def owned(crawl: inlink.Crawl, url: str) -> bool:
    return crawl.exchange.shard.owns(url.split("/")[2])


@pytest.mark.parametrize("order", ["pagerank", "host-diverse", "breadth-first"])
def test_a_report_excludes_pages_of_other_shards_by_one_event(fleet, order):
    web, shards = random_web(3), fleet(2, policy=order)
    crawl = shards.crawls[1]
    crawl.seed([url for url in web if owned(crawl, url)][:6])
    reported(crawl, web, 6)
    assert foreign_states(crawl) == {"excluded"}
    assert len(frontier_in(crawl).pages.frames.of_kind(EXCLUDE)) == 1
    before = len(crawl)
    reported(crawl, web, 6)
    assert len(crawl) > before
    assert foreign_states(crawl) == {"excluded"}
    assert len(frontier_in(crawl).pages.frames.of_kind(EXCLUDE)) == 2


def test_a_redirect_in_a_report_leads_to_no_page_of_another_shard(fleet):
    shards = fleet(2)
    crawl = shards.crawls[1]
    here = [f"http://h{k}.test/" for k in range(20) if owned(crawl, f"http://h{k}.test/")]
    there = next(f"http://h{k}.test/" for k in range(20) if not owned(crawl, f"http://h{k}.test/"))
    crawl.seed(here[:2])
    session = crawl.desk.hello("spider").number
    one, two = crawl.desk.next(session, 2).tasks
    answers = [Crawled(one.lease, [there]), Redirected(two.lease, there)]
    assert [receipt.task for receipt in crawl.desk.report(session, answers)] == [None, None]
    assert crawl.page(there).state == "excluded"
    assert crawl.desk.next(session, 9).tasks == []


@pytest.mark.parametrize("where", ["interrupted", "killed"])
def test_pages_of_other_shards_are_excluded_after_a_report_that_did_not_end(fleet, monkeypatch, where):
    web, shards = random_web(4), fleet(2)
    crawl = shards.crawls[1]
    crawl.seed([url for url in web if owned(crawl, url)][:6])
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_exclude", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            reported(crawl, web, 3)
    if where == "killed":
        shards.again(1)
        crawl = shards.crawls[1]
    else:
        assert all(owned(crawl, lease.url) for lease in crawl.next(1000))
    assert foreign_states(crawl) == {"excluded"}


def test_only_synced_pages_are_shown(fleet):
    shards = fleet(2, sync="second")
    urls = [f"http://h{k}.test/" for k in range(20)]
    one = shards.crawls[1]
    one.exchange._journal.log._stop.set()  # no thread syncs
    one.seed(urls)
    assert one.exchange.discovered(2, 2, 0).pages == []
    one.exchange._journal.log.sync()
    assert [page.url for page in one.exchange.discovered(2, 2, 0).pages] == [
        url for url in urls if owner_of(url.split("/")[2], 2) == 2
    ]


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (DiscoveredPage("http://h0.test/A B", 0.0, 0, 0.0), "which is no page of shard"),
        (DiscoveredPage("http://own.test/", 0.0, 0, 0.0), "which is no page of shard"),
        (DiscoveredPage("nonsense", 0.0, 0, 0.0), "which is no page of shard"),
        (DiscoveredPage("", 0.0, 0, 0.0), "which is no page of shard"),
        (DiscoveredPage("http://mine.test/#", 0.0, 0, 0.0), "which is no page of shard"),
        (DiscoveredPage("http://mine.test/#a\nhttp://mine.test/b", 0.0, 0, 0.0), "variant"),
        (DiscoveredPage("http://mine.test/\nhttp://mine.test/b", 0.0, 0, 0.0), "which is no page of shard"),
        (DiscoveredPage("http://mine.test/#é", 0.0, 0, 0.0), "variant"),
        (DiscoveredPage("http://mine.test/\ud800", 0.0, 0, 0.0), "which is no page of shard"),
        (DiscoveredPage("http://mine.test/", 1e39, 0, 0.0), "score"),
        (DiscoveredPage("http://mine.test/", float("nan"), 0, 0.0), "score"),
        (DiscoveredPage("http://mine.test/", 0.0, 0, 0.0, bytes(70_000)), "data"),
    ],
)
def test_a_wrong_page_of_another_shard_changes_nothing(fleet, page, message):
    shards = fleet(2)
    number = 3 - owner_of("own.test", 2)
    crawl = shards.crawls[number]
    mine = next(f"h{k}.test" for k in range(99) if owner_of(f"h{k}.test", 2) == number)
    page = replace(page, url=page.url.replace("mine.test", mine))
    before = crawl.view.info().pages
    with pytest.raises(ParameterError, match=message):
        crawl.exchange.receive(0, Discovered(3 - number, 1, 7, [page]))
    assert crawl.view.info().pages == before
    assert crawl.exchange.end(3 - number) == 0
    for shard in (number, 3):
        with pytest.raises(ParameterError, match="takes no pages of shard"):
            crawl.exchange.receive(0, Discovered(shard, 1, 7, []))


@pytest.mark.parametrize(
    "change",
    [
        {"changed": b"\0\0\0\0"},
        {"changed": b"\0\0\0\0", "ranks": np.float32(1).tobytes()},
        {"changed": b"\0"},
        {"ranks": b"\0\0\0"},
    ],
)
def test_wrong_ranks_of_another_shard_change_nothing(fleet, change):
    crawl = fleet(2).crawls[1]
    with pytest.raises(ParameterError, match="shard 2 sent ranks"):
        crawl.exchange.receive(0, Discovered(2, 1, 7, [], **change))
    assert crawl.exchange.end(2) == 0


@pytest.mark.parametrize("rank", [float("nan"), float("inf"), -1.0])
def test_a_rank_that_is_no_rank_changes_nothing(fleet, rank):
    crawl = fleet(2).crawls[1]
    url = next(f"http://a{k}.test/" for k in range(99) if owner_of(f"a{k}.test", 2) == 1)
    with pytest.raises(ParameterError, match="shard 2 sent ranks"):
        crawl.exchange.receive(0, Discovered(2, 1, 7, [DiscoveredPage(url, 0.0, 0, rank)]))
    assert crawl.page(url) is None


@pytest.mark.parametrize(("shard", "count"), [(1, 2), (0, 2), (3, 2), (2, 3)])
def test_strangers_get_no_pages(fleet, shard, count):
    with pytest.raises(ParameterError, match="this is shard 1 of 2"):
        fleet(2).crawls[1].exchange.discovered(shard, count, 0)


# -- ranks ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ranks_of_shards_at_rest_are_those_of_the_whole_web(fleet):
    web = random_web(5, hosts=20, pages=6)
    shards = fleet(3, rerank_share=None)
    seed = next(iter(web))
    shards.owner(seed).seed([seed])
    urls = sorted(shards.crawl(web))
    exact = _exact(web, urls)
    errors = []
    shards.exchange()
    shards.clock.advance(exchange.REST_SECONDS)
    for _ in range(12):
        for crawl in shards.crawls.values():
            crawl.rerank()
            crawl.next(0)
        shards.exchange()
        errors.append(_error(shards, urls, exact) / float(exact.sum()))
    assert errors[0] > 0.02
    # The bound of each shard's ranking is 1e-4, and each round leaves at most `DAMPING` of the error between them.
    assert errors[-1] < errors[0] * DAMPING**11 + 2e-3
    # Ranks of other shards are folded from the log, so a crawl that is opened again has the same keys, bit by bit.
    for number, crawl in shards.crawls.items():
        pages = np.arange(len(crawl), dtype=np.uint32)
        before = frontier_in(crawl).policy.shares[pages].tobytes()
        shards.again(number)
        assert frontier_in(shards.crawls[number]).policy.shares[pages].tobytes() == before


def _exact(web: dict[str, list[str]], urls: list[str], damping: float = DAMPING) -> np.ndarray:
    place = {url: k for k, url in enumerate(urls)}
    shares = np.zeros((len(urls), len(urls)))
    for url in urls:
        for link in web[url]:
            shares[place[link], place[url]] = 1 / len(web[url])
    return np.linalg.solve(np.eye(len(urls)) - damping * shares, np.full(len(urls), 1 - damping))


def _error(shards: Fleet, urls: list[str], exact: np.ndarray) -> float:
    return float(np.abs(np.array([_rank(shards.owner(url), url) for url in urls]) - exact).sum())


def _bound(shards: Fleet) -> float | None:
    parts = [crawl.standing(hosts=0).rank_error for crawl in shards.crawls.values()]
    return None if None in parts else sum(parts)


def _settle(shards: Fleet, rounds: int) -> None:
    """Rank at all shards and exchange ranks, again and again."""
    for _ in range(rounds):
        shards.clock.advance(exchange.REST_SECONDS)
        for crawl in shards.crawls.values():
            crawl.rerank(wait=True)
        # Later requests confirm the replies before them.
        for _ in range(3):
            shards.exchange()


@pytest.mark.slow
@given(st.integers(0, 10**6))
@settings(max_examples=4)
def test_the_error_of_ranks_is_within_its_bound_whatever_is_lost(tmp_path_factory, seed):
    dice, web = Random(seed), random_web(seed, hosts=9, pages=5)
    # Each round leaves at most `damping` of the error, so fewer rounds settle the ranks than with the default.
    shards = Fleet(tmp_path_factory.mktemp("fleet"), 3, rerank_share=None, damping=0.5)
    try:
        first = next(iter(web))
        shards.owner(first).seed([first])
        urls = sorted(shards.crawl(web))
        exact = _exact(web, urls, 0.5)
        assert _bound(shards) is None
        bounds = []
        pairs = [(to, by) for to in shards.crawls for by in shards.crawls if to != by]
        for step in range(16):
            shards.clock.advance(exchange.REST_SECONDS if dice.random() < 0.2 else 1)
            if dice.random() < 0.1:
                shards.again(dice.choice([1, 2, 3]))
            for number, crawl in shards.crawls.items():
                if dice.random() < 0.7:
                    crawl.rerank(wait=True)
                    bounds.append((_bound(shards), _error(shards, urls, exact), step, number))
            for to, by in dice.sample(pairs, 6 if dice.random() < 0.8 else 3):
                (shards.take if dice.random() < 0.6 else shards.ask)(to, by)
                bounds.append((_bound(shards), _error(shards, urls, exact), step, to, by))
        assert [row for row in bounds if row[0] is not None and row[1] > row[0]] == []
        _settle(shards, 9)
        assert _error(shards, urls, exact) <= _bound(shards) < 5e-3 * float(exact.sum())
        shards.owner(first).crawled(first, [])
        assert _bound(shards) is None
    finally:
        shards.close()


def test_there_is_no_bound_while_the_sender_does_not_know_what_has_arrived(fleet):
    shards = fleet(2, rerank_share=None)
    here = [f"http://a{k}.test/" for k in range(99) if owner_of(f"a{k}.test", 2) == 1]
    there = next(f"http://b{k}.test/" for k in range(99) if owner_of(f"b{k}.test", 2) == 2)
    one, two = shards.crawls.values()
    one.seed(here[:1])
    two.seed([there])
    one.crawled(here[0], [there])
    two.crawled(there, [])
    _settle(shards, 2)
    assert _bound(shards) is not None
    # The page of the other shard loses most of its rank, and both replies that say so are lost.
    one.crawled(here[0], [there, *here[1:9]])
    one.rerank(wait=True)
    shards.ask(1, 2)
    shards.ask(1, 2)
    assert one.exchange.stale() is None
    _settle(shards, 2)
    assert _bound(shards) is not None


class _Meanwhile(Views):
    """Calls a function after each question to all shards."""

    def __init__(self, crawls: list[inlink.Crawl], happens: Callable[[], object]) -> None:
        super().__init__(crawls)
        self._happens = happens

    def ask_each(self, *args, **named):
        answers = super().ask_each(*args, **named)
        self._happens()
        return answers


@pytest.mark.slow
def test_the_whole_has_a_bound_if_no_shard_changes_while_all_are_asked(fleet):
    web = random_web(3, hosts=9, pages=5)
    shards = fleet(3, rerank_share=None)
    first = next(iter(web))
    shards.owner(first).seed([first])
    urls = sorted(shards.crawl(web))
    exact = _exact(web, urls)
    whole = Views(list(shards.crawls.values()))
    assert whole.whole("about").ranking is None
    _settle(shards, 30)
    standing = whole.whole("standing")
    assert standing.rank_error == _bound(shards)
    assert _error(shards, urls, exact) <= standing.rank_error < 5e-3 * standing.rank
    relative = whole.whole("about").ranking.error
    assert relative == pytest.approx(standing.rank_error / standing.rank, rel=1e-2)
    whole.away = {2}
    assert whole.whole("standing").rank_error is whole.whole("about").ranking.error is None
    happens = Mock(side_effect=lambda: shards.crawls[2].rerank(wait=True))
    crawls = list(shards.crawls.values())
    assert _Meanwhile(crawls, happens).whole("standing").rank_error is None
    happens.assert_called()
    # Once the new ranks have arrived, there is a bound again.
    for _ in range(3):
        shards.exchange()
    assert _Meanwhile(crawls, lambda: None).whole("standing").rank_error == _bound(shards) is not None


def _rank(crawl: inlink.Crawl, url: str) -> float:
    return float(frontier_in(crawl).policy.ranks(np.array([crawl.view.number(url)], np.uint32))[0])


def test_a_page_gets_the_rank_of_its_foreign_links_at_once(fleet):
    shards = fleet(2, rerank_share=None)
    a = next(f"http://a{k}.test/" for k in range(99) if owner_of(f"a{k}.test", 2) == 1)
    b = next(f"http://b{k}.test/" for k in range(99) if owner_of(f"b{k}.test", 2) == 2)
    one, two = shards.crawls[1], shards.crawls[2]
    one.seed([a, a + "2"])
    two.seed([b + "seed"])
    one.crawled(one.next(1)[0], [b])
    shards.exchange()
    assert _rank(two, b) == pytest.approx(0.15 + 0.85 * 0.15)
    one.crawled(one.next(1)[0], [b, a])
    shards.exchange()
    assert _rank(two, b) == pytest.approx(0.15 + 0.85 * 0.15 * 1.5)
    assert Inflow(frontier_in(two).pages).values()[two.view.number(b)] == pytest.approx(0.85 * 0.15 * 1.5)
    assert other_shards(frontier_in(two).pages.frames)[1].ranks == pytest.approx([0.85 * 0.15 * 1.5])
    assert [lease.url for lease in two.next(1)] == [b]


def test_pages_of_other_shards_are_no_sections_of_seeds(fleet):
    shards = fleet(2)
    one = shards.crawls[1]
    urls = [f"http://h{k}.test/{page}" for k in range(20) for page in range(3)]
    one.seed(urls)
    shards.exchange()
    two = shards.crawls[2]
    events = [
        frontier_in(two).pages.frames.frame(place) for place in frontier_in(two).pages.frames.of_kind(SEED)
    ]
    assert all(event.flags & BY_SHARD for event in events)
    for lease in two.next(10):
        two.crawled(lease, [])
    two.rerank()
    two.next(0)
    assert not frontier_in(two).policy.has_sections


def test_a_log_with_wrong_pages_or_ranks_is_refused(fleet, tmp_path):
    shards = fleet(2)
    one, two = shards.crawls[1], shards.crawls[2]
    one.seed([f"http://h{k}.test/" for k in range(20)])
    shards.exchange()
    flows = np.zeros(1, FLOW)
    for number, event in enumerate(
        (
            Received(1, 99, np.array([5000], np.uint32), flows[:0]),
            Received(1, 99, np.empty(0, np.uint32), np.array([(5000, 1.0)], FLOW)),
            Received(1, 99, np.empty(0, np.uint32), np.array([(0, np.nan)], FLOW)),
        )
    ):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(two.folder, copy)
        with inlink.Crawl(copy) as crawl:
            journal = crawl._journal
            journal.log.append(
                kinds.RECEIVED,
                journal.now,
                listed=len(event.pages),
                payload=event.encoded(),
                first=len(crawl),
            )
        with pytest.raises(FolderError, match="damaged"):
            inlink.Crawl(copy)

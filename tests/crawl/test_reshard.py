"""``inlink reshard``: the same crawl with another number of shards, compared with the crawl before, page by page."""

import dataclasses
import errno
import shutil
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import inlink
from crawlstrategies import OPERATIONS, SEEDED, URLS, Clock, frontier_in, opened, perform, waiting
from goldencrawl import GOLDEN, GOLDEN_2
from inlink.base.clock import VirtualClock
from inlink.cli import commands
from inlink.crawl.crawl import Crawl
from inlink.crawl.folder import look
from inlink.crawl.reshard import reshard
from inlink.crawl.settings import stored
from inlink.errors import FolderError, InlinkError, InUseError, OutputError, ParameterError, SessionError
from inlink.frontier.rules import host_of
from inlink.protocol import Failed, Link, PageFacts, Redirected
from inlink.store import inbox
from inlink.store.log import lock
from inlink.store.newlog import NewLog
from inlink.store.reader import known_pages
from inlink.store.repair import repair
from inlink.store.verify import verify
from inlink.urls.shards import owner_of
from storefolders import flip

LAST = 2_000_000.0
"""A time after all events."""


# -- the oracle: all that is in folders, by URL -----------------------------------------------------------------------


def contents(folder: Path, owned: tuple[int, int] | None = None) -> dict[str, Any]:
    """All that a crawl's folder has, by URL and by host, of the pages that shard K of N owns."""
    front = look(folder, Clock(LAST))
    pages, log = front.pages, front.pages.frames
    url, mine = pages.url, list(range(pages.num_pages))
    if owned is not None:
        mine = [page for page in mine if owner_of(host_of(url(page)), owned[1]) == owned[0]]
    keys, found = waiting(front), dict[str, Any]()
    for page in mine:
        data = dataclasses.asdict(pages.page(page))
        # A page of another shard may have discovered it, or may be its last canonical page.
        shown = {
            name: data[name] for name in data.keys() - {"id", "linked_from", "linked_text", "merged_into"}
        }
        visit = pages.visit(page)
        links = log.list_at(visit.place).tolist() if visit else []
        anchors = log.anchors(visit.place) if visit else {}
        stored_facts = log.facts(visit.place) if visit else None
        places = stored_facts.places if stored_facts else b""
        lease = front.leases.current(page)
        found[url(page)] = shown | {
            "losses": int(pages.losses[page]),
            "carried": pages.carried(page),
            "given": pages.given.get(page),
            "merged": url(pages.merged[page]) if page in pages.merged else None,
            "visit": visit and visit._replace(place=0),
            "links": {
                url(link): (anchors.get(link, ""), places[row : row + 1]) for row, link in enumerate(links)
            },
            "waits": page in keys,
            "planned": front.plans.get(page),
            "never": page in front.never,
            "lost until": front.lost.dates.get(page),
            "lease": None if lease is None else front.leases.get(lease.number).expires,
        }
    hosts = {front.queue.slot(page) for page in mine}
    states = [front.hosts.state(slot, LAST) for slot in hosts]
    return {
        "pages": found,
        "hosts": {state.name: state for state in states},
        "items": sorted(items_of(folder)),
        "paused": front.paused,
    }


def items_of(folder: Path) -> list[str]:
    return CliRunner().invoke(commands, ["dump", "items", str(folder)]).output.splitlines()


def together(folders: Sequence[Path]) -> dict[str, Any]:
    """All that the shards of a crawl have, each of the pages that it owns."""
    parts = [contents(folder, (k, len(folders))) for k, folder in enumerate(folders, 1)]
    return {
        "pages": {url: page for part in parts for url, page in part["pages"].items()},
        "hosts": {name: host for part in parts for name, host in part["hosts"].items()},
        "items": sorted(line for part in parts for line in part["items"]),
        "paused": parts[0]["paused"],
    }


def compare(before: dict[str, Any], after: dict[str, Any]) -> None:
    for name in ("hosts", "items", "paused"):
        assert after[name] == before[name]
    assert after["pages"].keys() == before["pages"].keys()
    for url, page in before["pages"].items():
        there = after["pages"][url]
        assert {name: (page[name], there[name]) for name in page if page[name] != there[name]} == {}, url


def split(folder: Path, shards: int, *sources: Path) -> list[Path]:
    """Write a crawl as so many shards into a folder; return the shards' folders."""
    made = reshard(sources, shards, folder)
    assert [one.folder for one in made] == (
        [folder] if shards == 1 else [folder / f"{k + 1}" for k in range(shards)]
    )
    for one in made:
        assert (one.pages, one.size) == (
            known_pages(one.folder).num_pages,
            (one.folder / "events.log").stat().st_size,
        )
        verify(one.folder)
    return [one.folder for one in made]


def files_of(folder: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


# -- crawls at random --------------------------------------------------------------------------------------------------

RICH = st.lists(
    st.builds(
        Link,
        URLS,
        st.sampled_from([None, 0.25, 0.75]),
        st.sampled_from([b"", b"request", b"other"]),
        st.sampled_from(["", "v1"]),
        st.sampled_from(["", "über", "text"]),
        place=st.sampled_from(["", "nav", "main"]),
    ),
    max_size=5,
)
MORE = st.one_of(
    OPERATIONS,
    OPERATIONS,
    st.tuples(st.just("rich"), st.integers(0, 5), RICH, st.booleans()),
    st.tuples(st.just("redirected"), st.integers(0, 5), URLS, st.sampled_from([None, b"moved"])),
    st.tuples(
        st.just("host"),
        st.integers(0, 30),
        st.sampled_from([{"block": 50.0}, {"delay": 3.5}, {"budget": 2}, {"delay": None}, {"block": 0}]),
    ),
    st.tuples(st.just("due"), st.integers(0, 30), st.sampled_from([0.0, 5e6, float("inf")])),
    st.tuples(st.just("no host"), st.integers(0, 30)),
    st.tuples(st.just("host delay"), st.integers(0, 5), st.sampled_from([1.0, 9.0])),
    st.tuples(st.just("sitemap"), URLS, st.booleans()),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(
        st.just("session"), st.integers(1, 3), st.sampled_from(["bye", "renew", "lose", "answer", "moved"])
    ),
    st.tuples(st.just("reopen")),
)


def more(crawl: Crawl, clock: Clock, leases: list[Any], done: tuple[Any, ...]) -> None:
    """One operation, of those of ``crawlstrategies`` too."""
    what, *args = done
    url = (
        crawl.view.path(args[0] % crawl.view.info().pages, 1).rows[0].url
        if what in ("host", "due", "no host")
        else ""
    )
    if what == "host":
        crawl.set_host(url, **args[1])
    elif what == "due":
        crawl.set_due(url, args[1])
    elif what == "no host":
        crawl.exclude_host(url, "not wanted")
    elif what == "sitemap":
        crawl.sitemap([(args[0], clock.now if args[1] else None, 0.25)])
    elif what == "pause":
        (crawl.pause if args[0] else crawl.resume)()
    elif what == "session":
        with_session(crawl, clock, *args)
    elif what == "rich" and leases:
        facts = PageFacts(title="title", size=7) if args[2] else None
        crawl.crawled(
            leases.pop(args[0] % len(leases)), args[1], facts=facts, items=b'{"a": 1}\n' if args[2] else b""
        )
    elif what == "redirected" and leases:
        crawl.redirected(leases.pop(args[0] % len(leases)), args[1], carried=args[2])
    elif what == "host delay" and leases:
        crawl.host_delay(leases[args[0] % len(leases)], args[1])
    elif what not in ("rich", "redirected", "host delay"):
        perform(crawl, clock, leases, done)


def with_session(crawl: Crawl, clock: Clock, count: int, end: str) -> None:
    session = crawl.desk.hello("spider", silent_after=50.0).number
    tasks = crawl.desk.next(session, count, request=1).tasks
    if end == "renew":
        clock.now += 5
        crawl.desk.renew(session)
    elif end == "answer":
        crawl.desk.report(session, [Failed(task.lease, "no answer", 500) for task in tasks], request=1)
    elif end == "moved":
        crawl.desk.report(
            session, [Redirected(task.lease, "http://b.com/moved") for task in tasks], request=1
        )
    elif end == "bye":
        crawl.desk.bye(session)
    elif end == "lose":
        clock.now += 700
        crawl.next(0)


def at_random(folder: Path, history: Sequence[tuple[Any, ...]], **given: Any) -> Clock:
    """Make a crawl by operations, each at its own time."""
    clock, leases = Clock(), list[Any]()
    crawl = opened(folder, clock, policy="breadth-first", **given)
    for done in history:
        clock.now += 0.25
        if done[0] == "reopen":
            crawl.close()
            crawl, leases = opened(folder, clock), []
        else:
            more(crawl, clock, leases, done)
    crawl.close()
    return clock


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(MORE, max_size=30), st.sampled_from([{}, {"rules": {"deny": ["/ab"], "max_depth": 2}}]))
def test_shards_together_are_the_crawl_and_so_is_what_they_become(tmp_path_factory, history, given):
    root = tmp_path_factory.mktemp("r")
    at_random(root / "c", SEEDED + history, **given)
    before, sources = contents(root / "c"), [root / "c"]
    for number in (3, 2):
        sources = split(root / f"in {number}", number, *reversed(sources))
        compare(before, together(sources))
    (one,) = split(root / "one", 1, *sources)
    compare(before, contents(one))
    assert stored(one) == stored(root / "c")
    # These columns name the pages that discovered others, and the pages into which others were merged.
    old, new = known_pages(root / "c"), known_pages(one)
    for page in range(old.num_pages):
        there = new.table.page_of(old.url(page))
        assert dataclasses.replace(new.page(there), id=0) == dataclasses.replace(old.page(page), id=0)
    shutil.rmtree(root)


def test_texts_stay_with_their_links(tmp_path):
    links = [Link(f"http://h{k}.com/", text="long" * (9 - k), place="main") for k in range(9)]
    at_random(tmp_path / "c", [("seed", ["http://a.com/"]), ("next", 1), ("rich", 0, links, True)])
    before = contents(tmp_path / "c")
    assert [text for text, _ in before["pages"]["http://a.com/"]["links"].values()] == [
        link.text for link in links
    ]
    compare(before, together(split(tmp_path / "three", 3, tmp_path / "c")))


STEPS = st.one_of(
    # Without visits of other shards' pages.
    OPERATIONS.filter(lambda done: done[0] != "crawled by URL" and "redirected_to" not in str(done)),
    st.tuples(st.just("rich"), st.integers(0, 5), RICH, st.booleans()),
    st.tuples(st.just("host"), st.integers(0, 30), st.sampled_from([{"block": 50.0}, {"delay": 3.5}])),
    st.tuples(st.just("redirected"), st.integers(0, 5), URLS, st.none()),
    st.tuples(st.just("exchange")),
)


@pytest.mark.slow
@settings(max_examples=12)
@given(st.lists(st.tuples(st.integers(0, 2), STEPS), max_size=40))
def test_shards_that_crawled_become_others_and_one(tmp_path_factory, history):
    root, clock, leases = tmp_path_factory.mktemp("r"), Clock(), ([], [], [])
    crawls = shards_of(root / "old", 3, clock)
    for row, done in [(0, SEEDED[0]), (0, ("exchange",)), *history]:
        clock.now += 0.25
        if done[0] == "exchange":
            exchanged(crawls)
        else:
            more(crawls[row], clock, leases[row], done)
    for crawl in crawls:
        crawl.close()
    old = [root / "old" / f"{k}" for k in (1, 2, 3)]
    before = together(old)
    for number in (4, 1):
        pages = together(split(root / f"in {number}", number, *old))["pages"]
        for url, page in before["pages"].items():
            there = pages.pop(url)
            # A shard sends score, depth and data of a page once. The new shards have what all old shards know of it.
            apart = (
                {"score", "depth", "carried", "given"}
                if page["visit"] is None
                else {"depth", "carried", "given"}
            )
            differing = {
                name: (page[name], there[name]) for name in page.keys() - apart if page[name] != there[name]
            }
            assert differing == {}, url
        # The others are those that their owners have not received.
        assert {page["state"] for page in pages.values()} <= {"discovered"}
    shutil.rmtree(root)


# -- crawls that go on -------------------------------------------------------------------------------------------------

HOSTS = [f"http://h{k}.com" for k in range(9)]


def links_of(url: str) -> list[str]:
    """The links of a page of a web of 180 pages: a third lead to other hosts."""
    host, _, path = url.removeprefix("http://h").partition(".com/")
    k, page = int(host), int(path or 0)
    near = [f"{HOSTS[k]}/{(page * 3 + step) % 20}" for step in (1, 2)]
    return [*near, f"{HOSTS[(k * 2 + page) % 9]}/{(page + k) % 20}"]


def fetch(crawl: Crawl, clock: Clock, count: int) -> list[str]:
    """Fetch so many pages; page 13 of a host redirects to another host, and page 17 is gone."""
    fetched, leases = [], crawl.next(count)
    while leases:
        lease = leases.pop()
        clock.now += 0.5
        fetched.append(lease.url)
        if lease.url.endswith("/17"):
            crawl.failed(lease, "gone", status=410)
        elif lease.url.endswith("/13"):
            target = crawl.redirected(lease, HOSTS[(int(lease.url[8]) + 4) % 9] + "/5")
            leases += [target] if target else []
        else:
            crawl.crawled(lease, links_of(lease.url))
    return fetched


def exchanged(crawls: Sequence[Crawl]) -> int:
    """Let each shard take the pages of the others in; return their number."""
    count = 0
    for owner in crawls:
        for other in crawls:
            if owner is not other:
                numbers = owner.exchange.shard.number, other.exchange.shard.number
                begin = owner.exchange.end(numbers[1])
                batch = other.exchange.discovered(numbers[0], len(crawls), begin)
                owner.exchange.receive(begin, batch)
                count += len(batch.pages)
    return count


def shards_of(root: Path, count: int, clock: Clock, **more: Any) -> list[Crawl]:
    given = {"policy": "breadth-first", "sync": "full", **more}
    return [
        opened(root / f"{k}", clock, rules={"shard": f"{k}/{count}"}, **given) for k in range(1, count + 1)
    ]


def go_on(crawls: Sequence[Crawl], clock: Clock, rounds: int) -> list[str]:
    """Crawl in so many rounds, or to the end; return the pages that were fetched."""
    fetched = list[str]()
    for _ in range(rounds):
        batch = [url for crawl in crawls for url in fetch(crawl, clock, 4)]
        received = exchanged(crawls) if len(crawls) > 1 else 0
        fetched += batch
        if not batch and not received:
            break
    return fetched


def graph_of(folders: Sequence[Path]) -> set[tuple[str, str]]:
    """All links of crawled and merged pages, by the shards that own them."""
    found = set()
    for k, folder in enumerate(folders, 1):
        pages = known_pages(folder)
        for page in pages.crawled()[0].tolist():
            url = pages.url(page)
            if len(folders) == 1 or owner_of(host_of(url), len(folders)) == k:
                targets = [pages.merged[page]] if page in pages.merged else pages.links(page).tolist()
                found |= {(url, pages.url(target)) for target in targets}
    return found


@pytest.mark.parametrize("counts", [pytest.param((1, 2, 5, 3, 1), marks=pytest.mark.slow), (3, 1, 4)])
def test_a_crawl_that_goes_on_with_other_shards_fetches_each_page_once(tmp_path: Path, counts):
    clock, seeds = Clock(), [f"{host}/" for host in HOSTS[:3]]
    with opened(tmp_path / "never", clock, policy="breadth-first") as crawl:
        crawl.seed(seeds)
        expected = sorted(go_on([crawl], clock, 1000))
    assert len(expected) > 150
    fetched, folders = list[str](), [tmp_path / "first" / f"{k}" for k in range(1, counts[0] + 1)]
    for turn, count in enumerate(counts):
        if turn:
            folders = split(tmp_path / f"{turn}", count, *folders)
        if count == 1:
            crawls = [opened(folders[0], clock, policy="breadth-first")]
        else:
            crawls = shards_of(folders[0].parent, count, clock)
        if not turn:
            # Whichever shard a seed is given to, its owner gets it.
            crawls[0].seed(seeds)
        elif count > 1 and counts[turn - 1] == 1:
            assert exchanged(crawls) == 0
        fetched += go_on(crawls, clock, 1000 if turn == len(counts) - 1 else 5)
        for crawl in crawls:
            crawl.close()
    assert sorted(fetched) == expected
    assert graph_of(folders) == graph_of([tmp_path / "never"])


def test_what_no_owner_has_received_is_not_lost_and_not_exempt_from_rules(tmp_path: Path):
    clock, rules = Clock(), {"deny": ["/secret"]}
    crawls = shards_of(tmp_path, 3, clock)
    for crawl in crawls:
        crawl.change_settings(rules=rules)
    crawls[0].seed([f"{host}/{page}" for host in HOSTS for page in ("", "secret")])
    for crawl in crawls:
        crawl.close()
    for number in (1, 4):
        made = split(tmp_path / f"in {number}", number, *(tmp_path / f"{k}" for k in (1, 2, 3)))
        states = {url: page["state"] for url, page in together(made)["pages"].items()}
        assert {url for url in states if states[url] == "discovered"} == {f"{host}/" for host in HOSTS}
        assert {url for url in states if states[url] == "excluded"} == {f"{host}/secret" for host in HOSTS}


def test_a_visit_of_a_page_of_another_shard_counts(tmp_path: Path):
    clock = Clock()
    crawls = shards_of(tmp_path / "old", 2, clock)
    here = next(host for host in HOSTS if crawls[0].exchange.shard.owns(host[7:]))
    there = next(host for host in HOSTS if not crawls[0].exchange.shard.owns(host[7:]))
    crawls[0].seed([f"{here}/"])
    (lease,) = crawls[0].next(1)
    clock.now += 1
    crawls[0].crawled(lease, [f"{there}/"])
    clock.now += 1
    # A spider may report any page by its URL.
    crawls[0].crawled(f"{there}/", [f"{there}/linked"], items=b'{"a":1}\n')
    clock.now += 1
    assert exchanged(crawls) == 2
    for crawl in crawls:
        crawl.close()
    (one,) = split(tmp_path / "new", 1, tmp_path / "old" / "2", tmp_path / "old" / "1")
    pages = contents(one)["pages"]
    assert {url: page["state"] for url, page in pages.items()} == {
        f"{here}/": "crawled", f"{there}/": "crawled", f"{there}/linked": "discovered",
    }  # fmt: skip
    assert set(pages[f"{there}/"]["links"]) == {f"{there}/linked"}
    assert len(items_of(one)) == 1


# -- ranks -------------------------------------------------------------------------------------------------------------


def ranked(crawl: Crawl) -> tuple[dict[str, float], dict[str, float]]:
    """The ranks of all pages of a crawl, and the keys of those that wait, by the policy in its memory."""
    front = frontier_in(crawl)
    url, known = front.pages.url, np.arange(front.pages.num_pages, dtype=np.uint32)
    ranks = front.policy.ranks(known).tolist()
    return (
        {url(page): ranks[page] for page in range(len(ranks))},
        {url(page): key for page, key in waiting(front).items()},
    )


@pytest.mark.slow
def test_ranks_and_the_order_by_them_are_those_of_the_single_crawl(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("inlink.crawl.exchange.CHANGE", 1e-7)
    clock = Clock()
    with opened(tmp_path / "c", clock, policy="pagerank", damping=0.5, rerank_share=None) as crawl:
        crawl.seed([f"{host}/" for host in HOSTS[:3]])
        go_on([crawl], clock, 14)
    split(tmp_path / "new", 3, tmp_path / "c")
    now = VirtualClock(LAST)
    with opened(tmp_path / "c", now) as crawl:
        crawl.rerank()
        exact, order = ranked(crawl)
    crawls = [opened(tmp_path / "new" / f"{k}", now) for k in (1, 2, 3)]
    for _ in range(25):
        for crawl in crawls:
            crawl.rerank()
            crawl.next(0)
        now.advance(1)
        exchanged(crawls)
    compared = 0
    for crawl in crawls:
        ranks, keys = ranked(crawl)
        owned = [url for url in ranks if crawl.exchange.shard.owns(host_of(url))]
        # Each of the four rankings is within 1e-4 of all rank.
        assert sum(abs(ranks[url] - exact[url]) for url in owned) < 5e-4 * sum(exact.values())
        assert keys.keys() == order.keys() & set(owned)
        for one, other in product(keys, keys):
            if order[one] > 1.02 * order[other]:
                assert keys[one] > keys[other]
                compared += 1
        crawl.close()
    assert compared > 20


@pytest.mark.slow
def test_the_graph_and_its_ranking_are_the_same_after_a_way_through_shards(tmp_path: Path):
    clock = Clock()
    with opened(tmp_path / "c", clock) as crawl:
        crawl.seed([f"{host}/" for host in HOSTS])
        go_on([crawl], clock, 12)
    (one,) = split(tmp_path / "one", 1, *split(tmp_path / "in 4", 4, tmp_path / "c"))
    graphs = [inlink.read(folder) for folder in (tmp_path / "c", one)]
    ranks = [dict(zip(graph.names, inlink.pagerank(graph).values.tolist(), strict=True)) for graph in graphs]
    assert ranks[1] == pytest.approx(ranks[0], rel=1e-6)
    assert [graph.num_arcs for graph in graphs] == [graphs[0].num_arcs] * 2


# -- spiders of the old crawl, golden folders, refusals ----------------------------------------------------------------


def test_a_spider_of_the_old_crawl_cannot_answer_in_the_new_one(tmp_path: Path):
    clock = Clock()
    with opened(tmp_path / "c", clock) as crawl:
        crawl.seed([f"{host}/" for host in HOSTS])
        old = crawl.desk.hello("spider", silent_after=60.0).number
        tasks = crawl.desk.next(old, 4, request=1).tasks
    for folder in split(tmp_path / "new", 2, tmp_path / "c"):
        with opened(folder, clock) as crawl:
            assert crawl.view.info().states["leased"] in (1, 2, 3)
            assert crawl.desk.hello("another", silent_after=60.0).number > old
            with pytest.raises(SessionError):
                crawl.desk.report(old, [Failed(task.lease, "no answer") for task in tasks], request=2)
            # Nobody answers, so the pages are lost once their leases have expired.
            clock.now += 700
            crawl.next(0)
            assert "leased" not in crawl.view.info().states


@pytest.mark.slow
@pytest.mark.parametrize("golden", [GOLDEN, GOLDEN_2], ids=["3", "2"])
def test_golden_folders(tmp_path: Path, golden: Path):
    source = Path(shutil.copytree(golden, tmp_path / "c"))
    before = contents(source)
    sources = [source]
    for number in (4, 2):
        sources = split(tmp_path / f"in {number}", number, *sources)
        compare(before, together(sources))
    (one,) = split(tmp_path / "one", 1, *sources)
    compare(before, contents(one))


def test_a_repaired_crawl_keeps_its_pages(tmp_path: Path):
    at_random(tmp_path / "c", SEEDED)
    with opened(tmp_path / "c", Clock()) as crawl:
        crawl.crawled("http://a.com/", [f"{host}/" for host in HOSTS])
        place = frontier_in(crawl).pages.visit_place(0)
    flip(tmp_path / "c" / "events.log", place + 95)
    repair(tmp_path / "c", tmp_path / "r")
    before = contents(tmp_path / "r")
    assert len(before["pages"]) == 12
    sources = split(tmp_path / "in 3", 3, tmp_path / "r")
    assert {url: page["state"] for url, page in together(sources)["pages"].items()} == {
        url: page["state"] for url, page in before["pages"].items()
    }


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    with opened(tmp_path / "c", Clock()) as crawl:
        crawl.seed([f"{host}/" for host in HOSTS])
    return split(tmp_path / "s", 3, tmp_path / "c")


def test_refusals_are_one_line_and_leave_nothing(tmp_path: Path, three: list[Path]):
    one, two, last = three
    (other, _) = split(tmp_path / "t", 2, tmp_path / "c")
    target = tmp_path / "out"
    for sources, told in [
        ([one, last], "shard 2/3 is missing"),
        ([one, two, two, last], f"{two} and {two} are both shard 2/3"),
        ([one, two, other], f"{other} is a shard of 2, and {one} is a shard of 3"),
        ([one, two, tmp_path / "c"], f"{tmp_path / 'c'} is not a shard"),
        ([tmp_path / "c", one], f"{tmp_path / 'c'} is not a shard"),
        ([tmp_path / "nothing"], "does not exist"),
    ]:
        done = CliRunner().invoke(
            commands, ["reshard", *map(str, sources), "--shards", "2", "-o", str(target)]
        )
        assert isinstance(done.exception, InlinkError), sources
        assert told in str(done.exception)
        assert "\n" not in str(done.exception)
    with opened(two, Clock(), max_retries=7):
        pass
    with pytest.raises(ParameterError, match="max_retries from 3 to 7"):
        reshard(three, 2, target)
    with opened(one, Clock(), max_retries=7), pytest.raises(InUseError):
        reshard(three, 2, target)
    with opened(last, Clock(), max_retries=7):
        pass
    inbox.post(last, inbox.SEED, "http://a.com/\n")
    with pytest.raises(FolderError, match="1 request that the crawl has not taken in"):
        reshard(three, 2, target)
    with pytest.raises(OutputError, match="exists"):
        reshard([tmp_path / "c"], 2, one)
    with pytest.raises(ParameterError, match="from 1 to 4,096"):
        reshard([tmp_path / "c"], 5000, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "s", "t"]


def test_other_rules_for_urls_are_refused(tmp_path: Path):
    for k, rules in ((1, None), (2, {"sort_query": True})):
        with opened(tmp_path / f"{k}", Clock(), rules={"shard": f"{k}/2"}, url_rules=rules):
            pass
    with pytest.raises(ParameterError, match=r"url_rules\.sort_query from False to True"):
        reshard([tmp_path / "1", tmp_path / "2"], 1, tmp_path / "out")


@pytest.mark.slow
def test_sources_stay_as_they_are_and_are_locked_meanwhile(tmp_path: Path, three: list[Path], monkeypatch):
    before = [files_of(folder) for folder in three]
    seen = list[bool]()

    def looking(folder: Path) -> Any:
        for source in three:
            with pytest.raises(InUseError):
                lock(source)
        seen.append(True)
        return known_pages(folder)

    monkeypatch.setattr("inlink.crawl.reshard.known_pages", looking)
    split(tmp_path / "out", 2, *three)
    assert len(seen) == 3
    assert [files_of(folder) for folder in three] == before
    for folder in three:
        lock(folder).close()


@pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("after", [0, 4, 8])
def test_a_full_disk_or_ctrl_c_leaves_nothing(
    tmp_path: Path, three: list[Path], monkeypatch, fault, after: int
):
    append, count = NewLog.append, iter(range(1000))

    def failing(log: NewLog, *arguments: Any) -> int:
        if next(count) == after:
            raise fault(errno.ENOSPC, "No space left on device")
        return append(log, *arguments)

    monkeypatch.setattr(NewLog, "append", failing)
    with pytest.raises(OutputError if fault is OSError else KeyboardInterrupt):
        reshard(three, 2, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "s"]


def test_lists_of_hosts_and_settings_go_along(tmp_path: Path):
    (tmp_path / "spam").write_text("spam.com\n")
    with opened(
        tmp_path / "c", Clock(), policy="pagerank", distrust=tmp_path / "spam", rules={"max_depth": 3}
    ) as crawl:
        crawl.seed(["http://a.com/"])
    for k, folder in enumerate(split(tmp_path / "new", 2, tmp_path / "c"), 1):
        kept = stored(folder)
        assert (kept.rules.shard, kept.rules.max_depth, kept.policy) == (f"{k}/2", 3, "pagerank")
        assert (folder / "distrust" / "header.json").exists()
        with opened(folder, Clock()) as crawl:
            events = crawl.view.info().events
        # Nothing has changed, so opening it writes no settings.
        assert known_pages(folder).tally.events == events == known_pages(folder).tally.events

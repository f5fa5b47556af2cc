"""Views of a crawl: reasons that add up, parts with cursors, and time that a test owns."""

import gc
import math
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import EAGER, Clock, opened, stored_pages
from inlink import Crawl, CrawlView, Politeness, VirtualClock
from inlink.crawl.folder import look
from inlink.errors import FolderError, ParameterError, StoreError, UnknownNodeError
from inlink.factors.parts import combined
from inlink.frontier import inlinks, survey
from inlink.frontier.policies import POLICIES
from inlink.frontier.revisit import FixedInterval
from inlink.protocol import Link
from inlink.rank.pagerank import pagerank
from inlink.sources.crawlgraph import graph_in
from inlink.store.blocks import num_links
from inlink.store.format import STATES
from storefolders import links_from, links_to

HOSTS = 5
NAMES = [f"http://h{k % HOSTS}.example/{k}" for k in range(60)] + [
    f"http://h0.example/a/a/a/a/{k}" for k in range(3)
]


def links_of(k: int) -> list[tuple[str, float]]:
    """A small web with hubs, scores of either sign, and links within and between hosts."""
    ends = {k + 1, 2 * k, 3 * k, k % 5, k + HOSTS, 60 + k % 3}
    return [(NAMES[end % len(NAMES)], (end % 7 - 2) / 4) for end in sorted(ends)]


def crawl_some(crawl: Crawl, count: int) -> None:
    for _ in range(count):
        lease = crawl.next(1)[0]
        crawl.crawled(lease, links_of(NAMES.index(lease.url)), score=(lease.page % 4) / 4)


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def crawl(tmp_path, clock):
    with opened(tmp_path / "c", clock, policy="pagerank", rerank_share=None) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 20)
        yield crawl


# -- reasons --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("use_scores", [False, True])
@pytest.mark.parametrize("cross_domain_only", [False, True])
@pytest.mark.parametrize("ranked", [False, True])
def test_parts_combine_to_the_priority(tmp_path, policy, use_scores, cross_domain_only, ranked):
    given = {"use_scores": use_scores, "cross_domain_only": cross_domain_only, "damping": 0.6}
    revisit = FixedInterval(5.0) if policy == "revisit" else None
    clock = VirtualClock()
    with opened(tmp_path / "c", clock, policy=policy, rerank_share=None, revisit=revisit, **given) as crawl:
        crawl.seed([(NAMES[0], 0.5), NAMES[7]])
        crawl_some(crawl, 12)
        if ranked:
            crawl.rerank(wait=True)
            crawl_some(crawl, 4)
        clock.advance(10.0)
        crawl.next(0)
        crawl.failed(crawl.next(1)[0], "no route")
        rows = crawl.view.order(100).rows
        assert len(rows) > 5
        for row in rows:
            why = crawl.why(row.url)
            assert why.waits
            assert not why.outdated
            assert combined(why.parts) == pytest.approx(why.priority, rel=1e-6, abs=1e-12)
            if POLICIES[policy].sharing != "turns":
                shared = combined(row.host_parts, combined(row.parts))
                assert shared == pytest.approx(row.priority, rel=1e-6, abs=1e-12)
            assert why.inlinks_complete
            same_host = {link.url.split("/")[2] for link in why.inlinks} & {row.url.split("/")[2]}
            if cross_domain_only and POLICIES[policy].algorithm:
                assert not same_host


def test_shares_of_linkers_add_up_to_the_rank_from_links(crawl):
    """At the fixed point of PageRank, the shares of all linkers are the rank from links."""
    for _ in range(3):
        crawl.rerank(wait=True)
    for row in crawl.view.order(100).rows:
        why = crawl.why(row.url)
        if len(why.inlinks) < inlinks.KEPT_LINKERS:
            assert sum(link.gives for link in why.inlinks) == pytest.approx(combined(why.parts[:2]), rel=2e-3)
        assert [link.gives for link in why.inlinks] == sorted(
            (link.gives for link in why.inlinks), reverse=True
        )


def test_hubs_are_the_reason_under_hits(tmp_path):
    """The page with one link to a page of score 1 gives less than the hub with many good links."""
    with opened(tmp_path / "c", Clock(), policy="hits", use_scores=True, rerank_share=None) as crawl:
        crawl.seed(
            ["http://hub.example/", "http://lone.example/", *((f"http://g{k}.example/", 1) for k in range(6))]
        )
        crawl.crawled(
            "http://hub.example/",
            [("http://x.example/", 1)] + [(f"http://g{k}.example/", 1) for k in range(6)],
        )
        crawl.crawled("http://lone.example/", [("http://x.example/", 1)])
        crawl.rerank(wait=True)
        why = crawl.why("http://x.example/")
        assert why.inlinks[0].url == "http://hub.example/"
        gives = {link.url: link.gives for link in why.inlinks}
        assert gives["http://hub.example/"] > 2 * gives.get("http://lone.example/", 0.0)


def test_a_search_for_inlinks_goes_on_and_sees_new_visits(crawl, clock, monkeypatch):
    monkeypatch.setattr(inlinks, "_LINKS", np.uint64(1))
    page, calls = NAMES[1], 0
    while not (why := crawl.view.why(page, seconds=0.0)).inlinks_complete:
        calls += 1
    assert calls > 5
    assert why.inlinks == CrawlView.open(crawl.folder, clock).why(page, seconds=60.0).inlinks
    new = "http://new.example/"
    crawl.seed([new])
    for links in ([page], []):
        crawl.crawled(new, links)
        why = crawl.view.why(page, seconds=60.0)
        assert why.inlinks_complete
        assert (new in {link.url for link in why.inlinks}) == bool(links)


# -- the order ------------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(
    st.sampled_from(["host-diverse", "hosts-in-turns", "best-first", "depth-first"]),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=30),
    st.sampled_from([0.0, 1.0]),
    st.integers(0, 6),
    st.integers(1, 40),
)
def test_the_order_is_that_of_all_pages_sorted(tmp_path_factory, policy, links, delay, taken, count):
    """The order read from the tops of the heaps is the beginning of the order read to its end."""
    clock = VirtualClock()
    polite = Politeness(delay=delay, in_flight=2)
    with opened(tmp_path_factory.mktemp("order") / "c", clock, policy=policy, politeness=polite) as crawl:
        crawl.seed([("http://a.com/", 1)])
        crawl.crawled("http://a.com/", [(f"http://h{host}.com/{k}", (host + k) / 8) for host, k in links])
        crawl.next(taken)
        clock.advance(0.5)
        everything = crawl.view.order(100).rows
        assert crawl.view.order(count).rows == everything[:count]
        assert len(everything) == crawl.standing().waiting
        waits = [row.due_in for row in everything]
        if policy != "hosts-in-turns":
            assert all(one <= other for one, other in pairwise(waits))


def test_the_order_shows_hosts_that_are_busy(tmp_path):
    with opened(tmp_path / "c", Clock(), politeness=Politeness(delay=3.0, in_flight=1)) as crawl:
        crawl.seed(["http://a.com/1", "http://a.com/2", "http://a.com/3"])
        crawl.next(1)
        assert [(row.url, row.due_in) for row in crawl.view.order(9).rows] == [
            ("http://a.com/2", 3.0),
            ("http://a.com/3", 6.0),
        ]


# -- parts and cursors ----------------------------------------------------------------------------------------------


def parts(call, limit=100_000):
    cursor, found = None, []
    for _ in range(limit):
        part = call(cursor)
        found.append(part)
        msgspec.json.decode(msgspec.json.encode(part))
        cursor = part.cursor
        if cursor is None:
            return found
    raise AssertionError("the cursor never ends")


def rows(call):
    return [row for part in parts(call) for row in part.rows]


@pytest.mark.parametrize("seconds", [-1.0, 60.0])
@pytest.mark.parametrize("count", [1, 3, 1000])
def test_find_finds_what_a_plain_search_finds(crawl, monkeypatch, seconds, count):
    monkeypatch.setattr("inlink.crawl.view._SECONDS", seconds)
    view = crawl.view
    pages = stored_pages(crawl)
    known = pages.urls(range(pages.num_pages))
    wanted = [(page, url) for page, url in enumerate(known) if "h2" in url]
    for expression, kind in (("h[2]", "regex"), ("*h2*", "glob"), ("H2", "text")):
        found = rows(lambda cursor, e=expression, k=kind: view.find(e, k, count, cursor))
        assert [(row.page, row.url) for row in found] == wanted
    globbed = rows(lambda cursor: view.find("http://h?.example/7", "glob", count, cursor))
    assert globbed == rows(lambda cursor: view.find("/7$", "regex", count, cursor))
    assert len(globbed) == 1


@pytest.mark.parametrize("seconds", [-1.0, 60.0])
@pytest.mark.parametrize("count", [1, 2, 1000])
def test_links_in_parts_are_all_links(crawl, monkeypatch, seconds, count):
    monkeypatch.setattr("inlink.crawl.view._SECONDS", seconds)
    monkeypatch.setattr("inlink.crawl.questions.searches._VISITS", 3)
    crawl.crawled(NAMES[4], ["http://z.example/y"], redirected_to="http://z.example/")
    crawl.crawled("http://z.example/y", [NAMES[4], "http://z.example/"])
    pages, view = stored_pages(crawl), crawl.view
    for page in range(pages.num_pages):
        found = rows(lambda cursor, page=page: view.links(page, "to", count, cursor))
        assert sorted({row.page for row in found}) == links_to(pages, page).tolist()
        found = rows(lambda cursor, page=page: view.links(page, "from", count, cursor))
        assert [row.page for row in found] == links_from(pages, page).tolist()


def test_paths_lead_to_a_seed(crawl):
    for count in (1, 100):
        for name in (row.url for row in crawl.view.find("").rows):
            chain = rows(lambda cursor, name=name, count=count: crawl.view.path(name, count, cursor))
            assert chain[0].url == name
            assert chain[-1].url == NAMES[0]
            for one, other in pairwise(chain):
                assert crawl.page(one.url).linked_from == other.url


@pytest.mark.parametrize("what", ["pages", "links"])
@pytest.mark.parametrize("aduana", [False, True])
def test_dumps_in_parts_are_whole_dumps(crawl, what, aduana):
    whole = crawl.view.dump(what, aduana=aduana, seconds=60.0)
    assert whole.cursor is None
    assert whole.done == whole.total
    pieces = parts(lambda cursor: crawl.view.dump(what, cursor, aduana=aduana, seconds=0.0))
    assert "".join(part.text for part in pieces) == whole.text
    assert whole.text.count("\n") >= 20


def test_a_part_of_a_dump_ends_after_the_time_that_was_given(crawl, monkeypatch):
    monkeypatch.setattr("inlink.crawl.view._URL_BYTES", 1)
    ticks = iter(range(10_000))
    monkeypatch.setattr("inlink.crawl.view.time.thread_time", lambda: float(next(ticks)))
    monkeypatch.setattr("inlink.crawl.view._SECONDS", 9.5)
    lengths = [crawl.view.dump("pages", seconds=seconds).done for seconds in (0.0, 3.5, 9.5)]
    assert lengths == sorted(set(lengths))
    assert lengths[-1] < crawl.view.dump("pages", seconds=1e6).done == crawl.view.info().pages


def test_hosts_in_parts_are_all_hosts(crawl):
    found = rows(lambda cursor: crawl.view.hosts(2, cursor))
    assert found == crawl.view.hosts(1000).rows
    assert sum(host.waiting for host in found) == crawl.standing().waiting
    assert {host.name for host in found} == {f"h{k}.example" for k in range(HOSTS)}
    fullest = crawl.standing(hosts=3).hosts
    assert [host.waiting for host in fullest] == sorted((host.waiting for host in found), reverse=True)[:3]


@pytest.mark.parametrize("block", [7, 1 << 18])
def test_top_and_harvest_are_those_of_the_ranks(crawl, clock, monkeypatch, block):
    monkeypatch.setattr(survey, "_BLOCK", block)
    if block == 7:
        monkeypatch.setattr("inlink.crawl.view._SECONDS", -1.0)
    crawl.rerank(wait=True)
    pages = stored_pages(crawl)
    ranks = (
        look(crawl.folder, clock).policy.priority(np.arange(pages.num_pages, dtype=np.uint32)).astype(float)
    )
    view = CrawlView.open(crawl.folder, clock)
    last = parts(lambda cursor: view.top(None, 9, cursor))[-1]
    order = np.lexsort((np.arange(len(ranks)), -ranks))[:9]
    assert [row.page for row in last.rows] == order.tolist()
    assert [row.place for row in last.rows] == list(range(1, 10))
    standing = view.standing()
    while standing.harvest is None:
        standing = view.standing()
    share = ranks[pages.crawled()[0]].sum() / ranks.sum()
    assert standing.harvest == pytest.approx(share)
    curve = parts(lambda _: view.harvest())[-1]
    assert [point.fetched for point in curve.points] == list(range(1, 21))
    assert curve.points[-1].share == pytest.approx(share)
    in_order = ranks[pages.crawled()[0]].cumsum() / ranks.sum()
    assert [point.share for point in curve.points] == pytest.approx(in_order.tolist())
    by_discovery = ranks[:20].cumsum() / ranks.sum()
    assert [point.by_discovery for point in curve.points] == pytest.approx(by_discovery.tolist())


@pytest.mark.parametrize("rows", [1, 1 << 16])
def test_the_harvest_leaves_out_what_must_not_be_fetched(tmp_path, monkeypatch, rows):
    """Excluded and gone pages do not count, before they are crawled; pages that wait do."""
    monkeypatch.setattr("inlink.frontier.standing._ROWS", rows)
    urls = [f"http://a.example/{name}" for name in ("gone", "a", "excluded", "b")]
    with opened(tmp_path / "c", Clock(), policy="pagerank", politeness=EAGER) as crawl:
        crawl.seed(urls)
        leases = {lease.url: lease for lease in crawl.next(4)}
        crawl.failed(leases[urls[0]], status=404)
        crawl.exclude(leases[urls[2]], "denied")
        crawl.crawled(leases[urls[1]], urls)
        half = crawl.standing().harvest
        assert half is not None
        assert 0 < half < 1
        crawl.crawled(leases[urls[3]], urls)
        assert crawl.standing().harvest == 1
        curve = parts(lambda _: crawl.view.harvest())[-1]
        # Both pages that may be fetched were fetched in the order of their discovery.
        assert [(point.fetched, point.share) for point in curve.points] == [(1, pytest.approx(0.5)), (2, 1)]
        assert [point.by_discovery for point in curve.points] == [point.share for point in curve.points]
        crawl.failed(urls[3], status=410)
        assert crawl.standing().harvest == 1
        # A page that was merged after its visit was fetched too.
        crawl.crawled(urls[3], canonical_link=urls[1])
        assert [point.fetched for point in parts(lambda _: crawl.view.harvest())[-1].points] == [1, 2]


def test_top_of_a_stored_ranking(crawl, tmp_path):
    graph = graph_in(tmp_path / "c")
    ranking = pagerank(graph)
    ranking.save(graph, "mine")
    found = crawl.view.top("mine", 5)
    assert [(row.url, row.value) for row in found.rows] == [
        (name, pytest.approx(value)) for name, value in ranking.top(5)
    ]
    with pytest.raises(FolderError):
        crawl.view.top("none")


def test_standing_counts_every_state(crawl):
    crawl.exclude(crawl.next(1)[0])
    lease, gone = crawl.next(2)
    crawl.failed(gone, status=404)
    crawl.crawled(NAMES[0], redirected_to="http://z.example/")
    standing = crawl.standing()
    states = stored_pages(crawl).states[: standing.known]
    assert standing.states == {
        name: int((states == code).sum()) for code, name in enumerate(STATES) if (states == code).any()
    }
    assert {"excluded", "leased", "gone", "crawled", "merged", "discovered"} <= standing.states.keys()
    info = crawl.view.info()
    assert (info.pages, info.states, info.crawled) == (standing.known, standing.states, standing.crawled)
    assert info.links == num_links(stored_pages(crawl))
    crawl.release(lease)


def test_a_folder_shows_what_the_crawl_shows(crawl, clock, tmp_path):
    crawl.next(2)
    seen = CrawlView.open(tmp_path / "c", clock)
    for name in NAMES[:12]:
        assert seen.page(name) == crawl.page(name)
    live = crawl.view
    assert seen.order(50) == live.order(50)
    assert seen.hosts(50) == live.hosts(50)
    assert seen.standing() == live.standing()
    assert seen.info() == live.info()
    assert seen.why(NAMES[9]) == live.why(NAMES[9])
    assert (
        seen.path(NAMES[9]) == live.path(f"{live.number(NAMES[9]):016x}") == live.path(live.number(NAMES[9]))
    )
    with pytest.raises(FolderError):
        CrawlView.open(tmp_path / "none")


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@pytest.fixture
def uncollected():
    """Without collections of garbage, which could close files that other tests have dropped."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.slow
@pytest.mark.usefixtures("uncollected")
def test_a_view_of_a_folder_closes_its_files(crawl, clock, tmp_path):
    before = open_files()
    with CrawlView.open(tmp_path / "c", clock) as seen:
        seen.page(NAMES[0])
        seen.why(NAMES[9])
        assert open_files() > before
    assert open_files() == before
    with pytest.raises(StoreError, match="closed"):
        seen.order(1)
    seen.close()
    # The view of a live crawl has no files of its own.
    with crawl.view as live:
        pass
    assert live.order(1).rows


def test_a_page_with_a_variant_is_named_as_it_is_known(tmp_path):
    url = "http://a.com/form"
    with Crawl(tmp_path / "c") as crawl:
        crawl.seed([Link(url, variant="POST:1"), "http://a.com/other"])
    for asked, name in (
        (f"{url}#POST:1", f"{url}#POST:1"),
        ("http://A.com/form#POST:1", f"{url}#POST:1"),
        ("http://a.com/other#place", "http://a.com/other"),
        (f"{url}#POST:2", None),
        (f"{url}#POST:1\nhttp://a.com/other", None),
    ):
        page = CrawlView.open(tmp_path / "c").page(asked)
        assert (page and page.url) == name


def test_a_page_that_is_not_known_is_refused_or_none(crawl):
    for page in ("http://never.example/", 10**6, -1, "f" * 16, "no url"):
        with pytest.raises(UnknownNodeError):
            crawl.view.why(page)
        assert crawl.view.page(page) is None


# -- time -----------------------------------------------------------------------------------------------------------


def test_a_crawl_is_stepped_in_virtual_time(tmp_path):
    clock = VirtualClock(1_000.0)
    with Crawl(tmp_path / "c", clock=clock, politeness=Politeness(delay=7.0)) as crawl:
        crawl.seed([f"http://a.com/{k}" for k in range(4)] + ["http://b.com/"])
        times = []
        while crawl.wait() is not None:
            for lease in crawl.next(9):
                times.append((lease.url, clock.now))
                crawl.crawled(lease)
        assert [time for url, time in times if "a.com" in url] == pytest.approx([1000, 1007, 1014, 1021])
        assert len(times) == 5
        assert crawl.wait() is None


def test_waiting_needs_a_virtual_clock(tmp_path):
    with Crawl(tmp_path / "c") as crawl, pytest.raises(ParameterError, match="VirtualClock"):
        crawl.wait()


@given(st.floats(0, 1e12), st.floats(0, 1e6))
def test_a_virtual_clock_never_stands_still(now, seconds):
    clock = VirtualClock(now)
    clock.advance(seconds)
    assert clock() > now if seconds else clock() == now
    for bad in (-1.0, math.inf, math.nan):
        with pytest.raises(ParameterError):
            clock.advance(bad)


@pytest.mark.parametrize("policy", ["pagerank", "host-diverse", "hits"])
def test_ranking_at_once_is_the_same_each_time_and_in_force(tmp_path, policy):
    found = []
    for name in ("one", "other"):
        with opened(tmp_path / name, VirtualClock(), policy=policy, rerank_share=None) as crawl:
            crawl.seed(NAMES[:1])
            crawl_some(crawl, 15)
            crawl.rerank(wait=True)
            assert not crawl.ranking
            crawl_some(crawl, 5)
            crawl.rerank(wait=True)
            order = crawl.view.order(100).rows
            for row in order:
                assert combined(row.parts) == pytest.approx(crawl.why(row.url).priority, rel=1e-6)
            found.append([(row.url, row.priority) for row in order])
    assert found[0] == found[1]


def test_ranking_at_once_does_nothing_where_nothing_ranks(tmp_path):
    with opened(tmp_path / "c", Clock(), policy="hosts-in-turns", politeness=EAGER) as crawl:
        crawl.seed(NAMES[:1])
        crawl.rerank(wait=True)
        assert not crawl.ranking
        with pytest.raises(ParameterError, match="does not rank"):
            crawl.view.top()
        assert crawl.view.harvest().cursor is None

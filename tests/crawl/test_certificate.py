"""Bounds on the ranks of a finished crawl: the crawl is finished in every way that the tests can think of."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import inlink
from crawlstrategies import EAGER
from inlink.crawl.certificate import certificate_lines, certify, shortened
from inlink.errors import FolderError, ParameterError
from inlink.protocol import Certificate
from strategies import Arcs, arcs

DAMPING = 0.85


def url(node: int, hosts: int = 1) -> str:
    return f"http://h{node % hosts}.example/{node}"


def exact(shares: np.ndarray, links: np.ndarray, damping: float = DAMPING) -> np.ndarray:
    """PageRank with teleports ``shares`` by a direct solve; pages without links teleport too."""
    degrees = links.sum(axis=1)
    walk = np.where(degrees[:, None] > 0, links / np.maximum(degrees, 1)[:, None], shares)
    return np.linalg.solve(np.eye(len(shares)) - damping * walk.T, (1 - damping) * shares)


def holds(found: Certificate, ranks: np.ndarray, fetched: set[int], known: set[int]) -> None:
    """Check a certificate against the ranks of the finished crawl, whose nodes are its pages' names."""
    nodes = [int(row.url.rsplit("/", 1)[1]) for row in found.places]
    for node, row in zip(nodes, found.places, strict=True):
        assert row.lower - 1e-8 <= ranks[node] <= row.upper + 1e-8
    everything = set(range(len(ranks)))
    assert ranks[sorted(everything - fetched)].sum() <= found.outside + 1e-8
    assert ranks[sorted(everything - known)].max(initial=0) <= found.unseen + 1e-8
    for place, row in enumerate(found.places):
        if row.certain:
            before, mine = nodes[:place], ranks[nodes[place]]
            after = sorted(everything - set(nodes[: place + 1]))
            assert ranks[before].min(initial=np.inf) >= mine - found.within - 1e-8
            assert ranks[after].max(initial=0) <= mine + found.within + 1e-8


@st.composite
def unfinished(draw: st.DrawFn) -> tuple[Arcs, list[int], list[tuple[float, bool]]]:
    """A web, seeds, and fetches: which of the waiting pages is fetched, and whether it is gone."""
    web = draw(arcs(min_nodes=1, max_nodes=9))
    seeds = draw(st.lists(st.integers(0, web.num_nodes - 1), min_size=1, max_size=3, unique=True))
    fetch = st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from([False, False, False, True]))
    return web, seeds, draw(st.lists(fetch, max_size=web.num_nodes))


@pytest.mark.parametrize("hosts", [1, 2])
@given(unfinished(), st.sampled_from([0.0, 0.01, 0.1, 0.3]))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_ranks_of_the_finished_crawl_are_within_the_bounds(tmp_path_factory, hosts, case, within):
    web, seeds, fetches = case
    folder = tmp_path_factory.mktemp("crawl") / "c"
    links = web.dense()
    fetched, known = set[int](), set(seeds)
    with inlink.Crawl(folder, politeness=EAGER, rerank_share=None, cross_domain_only=hosts > 1) as crawl:
        crawl.seed([url(seed, hosts) for seed in seeds])
        for pick, gone in fetches:
            if not (waiting := sorted(known - fetched)):
                break
            node = waiting[int(pick * len(waiting))]
            fetched.add(node)
            if gone:
                crawl.failed(url(node, hosts), status=410)
                links[node] = 0
            else:
                targets = np.flatnonzero(links[node]).tolist()
                known.update(targets)
                crawl.crawled(url(node, hosts), [url(target, hosts) for target in targets])
    if hosts > 1:
        nodes = np.arange(len(links))
        links[nodes[:, None] % hosts == nodes % hosts] = 0
    shares = np.isin(np.arange(len(links)), seeds) / len(seeds)
    found = certify(folder, 20, within)
    assert found.waiting == len(known - fetched)
    holds(found, exact(shares, links), fetched, known)
    if not known - fetched:
        assert found.outside == found.unseen == 0
        assert all(row.upper - row.lower < 1e-4 for row in found.places)


@given(arcs(min_nodes=2, max_nodes=7), st.integers(0, 6))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_bounds_hold_if_each_waiting_page_links_to_one_page_alone(tmp_path_factory, web, fetches):
    """This is the worst way to finish a crawl. The web is finished once for each page that could gain."""
    folder = tmp_path_factory.mktemp("crawl") / "c"
    links, fetched = web.dense(), list[int]()
    known = [0]
    with inlink.Crawl(folder, politeness=EAGER, rerank_share=None) as crawl:
        crawl.seed([url(0)])
        while len(fetched) < min(fetches, len(known)):
            node = known[len(fetched)]
            fetched.append(node)
            targets = np.flatnonzero(links[node]).tolist()
            known += [target for target in targets if target not in known]
            crawl.crawled(url(node), [url(target) for target in targets])
    waiting = [node for node in known if node not in fetched]
    found = certify(folder, 20, 0.05)
    size = len(links) + 1
    for winner in [*known, size - 1]:
        finished = np.zeros((size, size))
        finished[fetched, :-1] = links[fetched]
        finished[waiting, winner] = 1
        finished[size - 1, size - 1] = 1
        shares = np.eye(size)[0]
        holds(found, exact(shares, finished), set(fetched), set(known))


def test_the_bounds_are_attained(tmp_path):
    """The seed links to two pages. If both link back, its rank is (1 - c) / (1 - c²)."""
    with inlink.Crawl(tmp_path / "c", politeness=EAGER) as crawl:
        crawl.seed([url(0)])
        crawl.crawled(url(0), [url(1), url(2)])
    found = certify(tmp_path / "c", 3)
    assert found.places[0].lower == pytest.approx(1 - DAMPING)
    assert found.places[0].upper == pytest.approx((1 - DAMPING) / (1 - DAMPING**2))
    assert found.outside == pytest.approx(DAMPING)
    assert found.unseen == pytest.approx(DAMPING**2)
    assert [row.certain for row in found.places] == [False] * 3


def test_a_redirect_counts_as_a_page_with_one_link(tmp_path):
    with inlink.Crawl(tmp_path / "c", politeness=EAGER) as crawl:
        crawl.seed([url(0)])
        (lease,) = crawl.next(1)
        crawl.redirected(lease, url(1))
    found = certify(tmp_path / "c", 2)
    assert [(row.url, row.lower) for row in found.places] == [
        (url(0), pytest.approx(0.15)),
        (url(1), pytest.approx(0.1275)),
    ]
    assert (found.fetched, found.waiting) == (1, 1)


def test_trusted_pages_are_the_teleport_targets(tmp_path):
    (tmp_path / "trust.txt").write_text(f"{url(0)}\t3\n{url(1)}\t1\n")
    with inlink.Crawl(
        tmp_path / "c", policy="pagerank", trust=tmp_path / "trust.txt", politeness=EAGER
    ) as crawl:
        crawl.seed([url(2)])
        for node in range(3):
            crawl.crawled(url(node), [])
    found = certify(tmp_path / "c", 3)
    assert [(row.url, round(row.lower, 9)) for row in found.places] == [
        (url(0), 0.75),
        (url(1), 0.25),
        (url(2), 0),
    ]
    assert found.holds
    assert (found.targets, found.trusted) == (2, True)
    assert "teleports to the 2 trusted pages;" in certificate_lines(found)[2]


@pytest.mark.parametrize(("seeds", "said"), [(1, "to the only seed;"), (2, "to the 2 seeds;")])
def test_the_lines_name_the_seeds(tmp_path, seeds, said):
    with inlink.Crawl(tmp_path / "c", politeness=EAGER) as crawl:
        crawl.seed([url(node) for node in range(seeds)])
    lines = certificate_lines(certify(tmp_path / "c", 1))
    assert said in lines[2]
    assert lines[2].endswith("and no seed is added")


@given(arcs(min_nodes=1, max_nodes=9), st.integers(1, 5), st.sampled_from([0.0, 0.01, 0.2]))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_shortened_certificate_is_that_of_fewer_places(tmp_path_factory, web, count, within):
    folder = tmp_path_factory.mktemp("crawl") / "c"
    with inlink.Crawl(folder, politeness=EAGER, rerank_share=None) as crawl:
        crawl.seed([url(0)])
        for node in range(min(3, web.num_nodes)):
            if crawl.page(url(node)) is not None:
                targets = np.flatnonzero(web.dense()[node]).tolist()
                crawl.crawled(url(node), [url(target) for target in targets])
    short, whole = certify(folder, count, within), certify(folder, 1000)
    found = shortened(whole, count, within)
    assert [(row.page, row.place) for row in found.places] == [(row.page, row.place) for row in short.places]
    assert found.beyond == pytest.approx(short.beyond, abs=1e-5)
    assert found.within == within
    margin = 1e-5
    narrow, wide = (shortened(whole, count, max(within + step, 0.0)) for step in (-margin, margin))
    for less, row, more in zip(narrow.places, short.places, wide.places, strict=True):
        assert less.certain <= row.certain <= more.certain


def test_equal_ranks_have_no_certain_order_unless_a_difference_is_allowed(tmp_path):
    with inlink.Crawl(tmp_path / "c", politeness=EAGER) as crawl:
        crawl.seed([url(0)])
        for node, links in enumerate([[1, 2], [], []]):
            crawl.crawled(url(node), [url(link) for link in links])
    assert [row.certain for row in certify(tmp_path / "c", 3).places] == [True, False, False]
    assert certify(tmp_path / "c", 3, 1e-4).holds


@pytest.mark.slow
def test_the_certificate_follows_a_growing_crawl(tmp_path, data):
    """The real one: bounds of prefixes of a site's crawl, against its end."""
    text = data("graphs/hollins.dat").read_text("latin-1").splitlines()
    count = int(text[0].split()[0])
    links: dict[int, list[str]] = {node: [] for node in range(count)}
    for line in text[1 + count :]:
        if line.split():
            source, target = (int(field) - 1 for field in line.split())
            links[source].append(url(target))
    folder, found = tmp_path / "c", list[Certificate]()
    # This order does not depend on when rankings are ready.
    with inlink.Crawl(folder, clock=inlink.VirtualClock(), politeness=EAGER, policy="breadth-first") as crawl:
        crawl.seed([url(0)])
        for steps in (600, 1800, 1200, count):
            for _ in range(steps):
                for lease in crawl.next(1):
                    crawl.crawled(lease, links[int(lease.url.rsplit("/", 1)[1])])
            found.append(certify(folder, 100, 0.01))
    ranks = {row.url: (row.lower, row.upper) for row in certify(folder, 1000, 0.0).places}
    certain = [sum(row.certain for row in one.places) for one in found]
    assert certain == sorted(certain)
    assert certain[-1] == 100
    assert certain[2] >= 50
    assert [one.outside for one in found] == sorted((one.outside for one in found), reverse=True)
    for one in found:
        for row in one.places:
            if row.url in ranks:
                assert row.lower <= ranks[row.url][1]
                assert ranks[row.url][0] <= row.upper


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"count": 0}, r"count must be a whole number in \[1, 1000\]; got 0"),
        ({"count": 1001}, "count must be a whole number"),
        ({"count": "ten"}, "count must be a whole number"),
        ({"within": -0.1}, r"within must be a number in \[0, 1\]"),
        ({"within": 2}, "within must be a number"),
        ({"within": float("nan")}, "within must be a number"),
    ],
)
def test_wrong_values_are_refused(tmp_path, given, said):
    with inlink.Crawl(tmp_path / "c") as crawl:
        crawl.seed([url(0)])
    with pytest.raises(ParameterError, match=said):
        certify(tmp_path / "c", **given)


def test_a_crawl_without_seeds_or_no_crawl(tmp_path):
    with pytest.raises(FolderError):
        certify(tmp_path / "c")
    inlink.Crawl(tmp_path / "c").close()
    with pytest.raises(ParameterError, match="seed the crawl with at least one URL"):
        certify(tmp_path / "c")

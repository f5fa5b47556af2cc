"""Spam mass in a crawl: hosts whose rank does not come from trusted pages are fetched last."""

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import inlink
from crawlstrategies import frontier_in
from factorcrawls import (
    DAMPING,
    crawl_of,
    die,
    keep_checkpoint,
    order_at_death,
    published,
    rows,
)
from inlink.crawl.asof import as_of
from inlink.crawl.view import CrawlView
from inlink.errors import ParameterError
from inlink.factors.mass import GAMMA, LEAST, trusted_shares
from inlink.factors.parts import combined
from inlink.rank.spam import spam_mass
from inlink.reranking.process import Ranker, RankingOptions
from strategies import Arcs, arcs

GOOD, FARM = "http://good.example/", "http://farm.example/"


@pytest.fixture
def trust(tmp_path):
    file = tmp_path / "trust.txt"
    file.write_text(f"{GOOD}\t2\n")
    return file


def fill(crawl):
    """Crawl a trusted page with twenty links. One of them leads to another host, which has four more pages."""
    crawl.seed([GOOD, *(f"{FARM}{k}" for k in range(1, 5))])
    crawl.crawled(GOOD, [*(f"{GOOD}{k}" for k in range(1, 20)), FARM])


SHARE = GAMMA * 25 * (DAMPING / 20) / (5 + DAMPING / 20)
"""The share of the farm's rank that comes from the trusted page, by hand: 25 pages, 5 of them on the farm."""


def priorities(crawl) -> dict[str, float]:
    """The priorities of all pages by URL, without the turns of hosts."""
    pages, policy = frontier_in(crawl).pages, frontier_in(crawl).policy
    numbers = np.arange(pages.num_pages, dtype=np.uint32)
    return dict(zip(pages.urls(numbers), policy.priority(numbers).tolist(), strict=True))


@pytest.mark.parametrize("policy", ["pagerank", "host-diverse"])
def test_priorities_are_multiplied_by_the_share_that_comes_from_trusted_pages(tmp_path, trust, policy):
    with crawl_of(tmp_path, policy=policy, trust=trust) as crawl:
        fill(crawl)
        crawl.rerank(wait=True)
        before = priorities(crawl)
    with crawl_of(tmp_path, policy=policy, spam_mass=True) as crawl:
        assert priorities(crawl) == before
        assert not frontier_in(crawl).host_factors[0].published
        crawl.rerank(wait=True)
        after, order = priorities(crawl), [url for url, _ in rows(crawl.view)]
        assert frontier_in(crawl).host_factors[0].published
    assert after[FARM] == pytest.approx(before[FARM] * SHARE, rel=2e-3)
    assert after[f"{GOOD}1"] == pytest.approx(before[f"{GOOD}1"], rel=1e-6)
    assert after[f"{FARM}1"] == before[f"{FARM}1"] == 0
    assert before[FARM] == pytest.approx(before[f"{GOOD}1"], rel=1e-6)
    assert order.index(FARM) > order.index(f"{GOOD}1")


def ranked(folder, **options):
    """Rank the crawl in a folder as the ranking process does, and publish the ranking."""
    options = RankingOptions(trust=True, factors=["spam_mass"], **options)
    ranker = Ranker(folder / "c", options, threading.Event())
    try:
        ranker.rank()
    finally:
        ranker.pages.close()


def test_a_ranking_without_spam_mass_is_replaced_at_the_opening(tmp_path, trust):
    with crawl_of(tmp_path, trust=trust) as crawl:
        fill(crawl)
        crawl.rerank(wait=True)
    with crawl_of(tmp_path, spam_mass=True, rerank_share=0.1) as crawl:
        crawl.next(1)
        assert frontier_in(crawl).host_factors[0].published


def test_why_names_the_spam_mass_and_its_parts_give_the_priority(tmp_path, trust):
    with crawl_of(tmp_path, trust=trust, spam_mass=True) as crawl:
        fill(crawl)
        assert "spam mass" not in str(crawl.why(FARM))
        crawl.rerank(wait=True)
        part = crawl.why(FARM).parts[-1]
        assert part.name == (
            "1 − spam mass of farm.example: the share of its rank that comes from trusted pages"
        )
        assert part.value == pytest.approx(SHARE, rel=2e-3)
        assert "spam mass" not in str(crawl.why(f"{GOOD}1"))
        crawl.crawled(f"{GOOD}1", ["http://new.example/"])
        part = crawl.why("http://new.example/").parts[-1]
        assert part.name == "median of 1 − spam mass, because new.example is newer than the ranking"
        assert part.value == pytest.approx((1 + SHARE) / 2, rel=2e-3)
        for row in crawl.view.order(99).rows:
            why = crawl.why(row.url)
            assert combined(why.parts) == pytest.approx(why.priority, rel=1e-5) == row.priority
        assert "not reached from a trusted page" in str(crawl.why(f"{FARM}1"))


def exact_shares(links, weights, hosts, num_hosts):
    """Solve the two systems of equations densely, and divide their sums by host."""
    size = len(links)
    walk = links / np.maximum(links.sum(axis=1), 1)[:, None]
    solve = np.linalg.inv(np.eye(size) - DAMPING * walk.T) * (1 - DAMPING)
    teleport = GAMMA * size * weights / weights.sum()
    whole = np.bincount(hosts, solve @ np.ones(size), num_hosts)
    return np.clip(np.bincount(hosts, solve @ teleport, num_hosts) / whole, LEAST, 1)


@given(arcs(min_nodes=1, max_nodes=10), st.integers(1, 4), st.booleans())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_shares_are_those_of_a_dense_solution(tmp_path_factory, web: Arcs, num_hosts, cross):
    """Node k is a page of host k % num_hosts. The first two pages are trusted. All pages but the last are fetched."""
    folder, size = tmp_path_factory.mktemp("crawl"), web.num_nodes
    urls = [f"http://h{node % num_hosts}.example/{node}" for node in range(size)]
    (folder / "trust.txt").write_text("".join(f"{urls[k]}\t{k + 1}\n" for k in range(min(2, size))))
    links = web.dense()
    given = {"trust": folder / "trust.txt", "spam_mass": True, "cross_domain_only": cross}
    with crawl_of(folder, **given) as crawl:
        crawl.seed(urls)
        for node in range(size - 1):
            crawl.crawled(urls[node], [urls[k] for k in np.flatnonzero(links[node])])
        crawl.rerank(wait=True)
        numbers = np.array([crawl.view.number(url) for url in urls])
        hosts = np.array(frontier_in(crawl).pages.hosts[: frontier_in(crawl).pages.num_pages])[numbers]
        found = frontier_in(crawl).host_factors[0].factor(numbers.astype(np.uint32))
    links[size - 1] = 0
    if cross:
        links[hosts[:, None] == hosts[None, :]] = 0
    weights = np.where(np.arange(size) < 2, np.arange(size) + 1.0, 0)
    expected = exact_shares(links, weights, hosts, int(hosts.max()) + 1)
    np.testing.assert_allclose(found, expected[hosts], atol=0.02)
    ranked(folder, tol=1e-9, cross_domain_only=cross)
    np.testing.assert_allclose(published(folder).array("trusted_share"), expected, rtol=1e-5)


@given(arcs(min_nodes=2, max_nodes=12), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_a_host_of_one_page_has_the_spam_mass_of_a_node(web: Arcs, trusted):
    size = web.num_nodes
    core = np.arange(size) < min(trusted, size)
    links = web.dense()
    walk = links / np.maximum(links.sum(axis=1), 1)[:, None]
    solve = np.linalg.inv(np.eye(size) - DAMPING * walk.T) * (1 - DAMPING)
    hosts = np.arange(size, dtype=np.uint32)
    found = trusted_shares(solve @ np.ones(size), solve @ core, float(core.sum()), hosts, size)
    masses = spam_mass(web.graph(), np.flatnonzero(core), tol=1e-9).values
    np.testing.assert_allclose(found, np.clip(1 - masses, LEAST, 1), rtol=1e-5)


def test_shares_are_between_the_least_share_and_1_and_a_host_without_pages_has_the_least():
    whole, trusted = np.array([1.0, 1.0, 2.0]), np.array([4.0, 0.0, 0.0])
    found = trusted_shares(whole, trusted, 1.0, np.array([0, 1, 3], np.uint32), 5)
    assert found.tolist() == [1.0, *[np.float32(LEAST)] * 4]
    assert found.dtype == np.float32


def fetch(crawl, count, new="late"):
    """Fetch pages that lead to a new host, and to a farm that has pages of its own."""
    for _ in range(count):
        (lease,) = crawl.next(1)
        number = lease.url.rpartition("/")[2]
        links = [f"/{2 * len(number) + k}{number[:2]}" for k in range(3)] + [GOOD]
        if number in ("", "31"):
            links += [FARM, f"{FARM}2{number}"]
        links.append(f"http://{new}.example/{number}")
        crawl.crawled(lease, links)


def crawl_until_killed(folder, policy, checkpoint):
    """Crawl, print the order of waiting pages, and kill this process."""
    crawl = crawl_of(Path(folder), policy=policy, trust=Path(folder) / "trust.txt", spam_mass=True)
    crawl.seed([GOOD, "http://mill.example/", *(f"{FARM}{k}" for k in range(40))])
    fetch(crawl, 8)
    crawl.rerank(wait=True)
    keep_checkpoint(crawl, checkpoint)
    fetch(crawl, 6, new="newer")
    die(crawl)


# `test_crawl_distrust.py` has the other pairs.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "checkpoint"),
    [
        pytest.param("pagerank", "none", marks=pytest.mark.soak),
        ("host-diverse", "live"),
        ("pagerank", "log"),
    ],
)
def test_a_crawl_that_was_killed_has_the_same_order_again(tmp_path, trust, policy, checkpoint):
    """Pages and hosts that were found after the ranking do not change the shares, before the end and after it."""
    before = order_at_death("test_crawl_spam_mass", str(tmp_path), policy, checkpoint)
    trust.unlink()
    assert rows(CrawlView.open(tmp_path / "c")) == before
    with inlink.Crawl(tmp_path / "c", clock=inlink.VirtualClock()) as crawl:
        assert (frontier_in(crawl).pages.checkpoint is not None) == (checkpoint != "none")
        assert crawl.settings.spam_mass
        assert rows(crawl.view) == before
        told = [str(crawl.why(url)) for url, _ in before]
        assert any("1 − spam mass of farm.example" in text for text in told)
        assert any("because newer.example is newer than the ranking" in text for text in told)
        crawl.rerank(wait=True)
        assert rows(crawl.view) != before


def test_each_moment_before_and_after_the_trusted_pages_has_an_order(tmp_path, trust):
    with crawl_of(tmp_path) as crawl:
        crawl.seed([FARM])
        crawl.rerank(wait=True)
    with crawl_of(tmp_path, trust=trust, spam_mass=True) as crawl:
        crawl.rerank(wait=True)
        events, last = crawl.view.info().events, rows(crawl.view)
    orders = []
    for event in range(1, events + 1):
        with as_of(tmp_path / "c", event, tmp_path) as then:
            orders.append(rows(CrawlView.open(then.folder)))
    assert orders[-1] == last
    assert [FARM] in [[url for url, _ in order] for order in orders]


def test_a_crawl_without_trusted_pages_has_no_shares(tmp_path):
    with crawl_of(tmp_path) as crawl:
        crawl.seed([FARM])
    ranked(tmp_path)
    assert published(tmp_path).header.meta["trusted_share"] == 0
    with pytest.raises(KeyError):
        published(tmp_path).array("trusted_share")


def test_spam_mass_and_distrust_both_count(tmp_path, trust):
    (tmp_path / "bad.txt").write_text("farm.example\n")
    with crawl_of(tmp_path, trust=trust, spam_mass=True, distrust=tmp_path / "bad.txt") as crawl:
        fill(crawl)
        crawl.rerank(wait=True)
        names = [part.name for part in crawl.why(FARM).parts]
        assert names[-2] == "farm.example is listed in `distrust`"
        assert names[-1].startswith("1 − spam mass of farm.example")
        assert combined(crawl.why(FARM).parts) == pytest.approx(dict(rows(crawl.view))[FARM], rel=1e-5)


def test_spam_mass_without_trust_is_refused_before_anything_changes(tmp_path, trust):
    told = r"`spam_mass` needs `trust`.*: give trust=FILE, or spam_mass=False"
    for policy in ("pagerank", "opic"):
        with pytest.raises(ParameterError, match=told):
            crawl_of(tmp_path, policy=policy, spam_mass=True)
    with pytest.raises(ParameterError, match="spam_mass must be True or False"):
        crawl_of(tmp_path, trust=trust, spam_mass="much")
    assert not (tmp_path / "c").exists()
    with crawl_of(tmp_path, trust=trust, spam_mass=True) as crawl:
        events = crawl.view.info().events
    with pytest.raises(ParameterError, match=told):
        crawl_of(tmp_path, trust=None)
    with crawl_of(tmp_path) as crawl:
        assert (crawl.settings.trust, crawl.settings.spam_mass) == (str(trust), True)
        assert crawl.view.info().events == events
        with pytest.raises(ParameterError, match="spam_mass"):
            crawl.change_settings(spam_mass=False)
    with crawl_of(tmp_path, trust=None, spam_mass=False) as crawl:
        assert frontier_in(crawl).host_factors == ()

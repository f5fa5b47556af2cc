"""Trust in a crawl: trusted pages are PageRank's teleport, apart from content scores."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import EAGER, frontier_in, opened
from inlink.base.clock import VirtualClock
from inlink.crawl.view import CrawlView
from inlink.errors import InputError, ParameterError
from inlink.factors.parts import combined
from strategies import arcs

GOOD, SPAM = "http://good.example/", "http://spam.example/"


@pytest.fixture
def trust(tmp_path):
    file = tmp_path / "trust.txt"
    file.write_text(f"{GOOD}\t2\nhttp://other.example/\nmailto:nobody\n\n")
    return file


def crawl_of(tmp_path, **settings):
    polite = {"policy": "pagerank", "rerank_share": None, **settings}
    return opened(tmp_path / "c", VirtualClock(), **polite)


def fill(crawl):
    """The good site's pages have no content score; those of the spam site say that they are excellent."""
    crawl.seed([SPAM])
    crawl.crawled(GOOD, [f"{GOOD}{k}" for k in range(3)], score=0.0)
    crawl.crawled(SPAM, [(f"{SPAM}{k}", 1.0) for k in range(3)], score=1.0)


RANKS = "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\n"


@pytest.mark.parametrize("packed", [False, True])
def test_common_crawls_ranks_are_trusted_by_their_pagerank(tmp_path, trust, packed):
    text = (
        RANKS + "1\t9\t2\t0.001\texample.good.www\n2\t8\t1\t0.003\tcom.other\n3\t7\t3\t0\tcom.none\n"
    ).encode()
    trust.write_bytes(gzip.compress(text) if packed else text)
    with crawl_of(tmp_path, trust=trust) as crawl:
        values = {row.url: combined(crawl.why(row.url).parts) for row in crawl.view.order(9).rows}
    assert list(values) == ["https://other.com/", "https://www.good.example/"]
    assert values["https://other.com/"] == pytest.approx(3 * values["https://www.good.example/"], rel=1e-4)


def test_too_many_ranks_would_be_too_many_seeds(tmp_path, trust, monkeypatch):
    monkeypatch.setattr("inlink.factors.trust.MOST_RANKS", 2)
    trust.write_text(RANKS + "".join(f"{k}\t9\t{k}\t0.1\tcom.h{k}\n" for k in range(1, 4)))
    with pytest.raises(InputError, match="more than 2 ranks, and each would become a seed"):
        crawl_of(tmp_path, trust=trust)
    trust.write_text(RANKS + "1\t9\t1\tx\tcom.a\n")
    with pytest.raises(InputError, match=r"trust\.txt, line 2: the value must be a number; got 'x'"):
        crawl_of(tmp_path, trust=trust)
    assert not (tmp_path / "c").exists()


def rank_in(crawl, url):
    """The rank of a page: its priority without the parts that only host-diverse has."""
    parts = crawl.why(url).parts
    return combined(part for part in parts if not part.name.startswith(("(1 + depth)", "rank expected")))


@pytest.mark.parametrize("policy", ["pagerank", "host-diverse"])
@pytest.mark.parametrize("ranked", [False, True])
def test_a_good_sites_links_stand_above_a_spam_sites(tmp_path, trust, policy, ranked):
    with crawl_of(tmp_path, trust=trust, policy=policy) as crawl:
        fill(crawl)
        if ranked:
            crawl.rerank(wait=True)
        order = [row.url for row in crawl.view.order(9).rows]
        assert set(order) == {
            "http://other.example/",
            *(f"{site}{k}" for site in (GOOD, SPAM) for k in range(3)),
        }
        values = {url: rank_in(crawl, url) for url in order}
        assert min(value for url, value in values.items() if GOOD in url) > 0
        assert {value for url, value in values.items() if SPAM in url} == {0.0}
        assert values[f"{GOOD}0"] == pytest.approx(0.85 * 0.15 * 2 / 3, rel=1e-4)
        assert values["http://other.example/"] == pytest.approx(0.15, rel=1e-4)
        why = crawl.why(f"{SPAM}0")
        assert "priority 0 (not reached from a trusted page) by policy" in str(why)
        assert crawl.page(GOOD).score == 0.0


def test_trust_is_kept_in_the_log_and_read_again_when_it_is_given(tmp_path, trust):
    with crawl_of(tmp_path, trust=str(trust)) as crawl:
        fill(crawl)
        crawl.rerank(wait=True)
        assert crawl.refused == {"link is no valid URL": 1} or sum(crawl.refused.values()) == 1
        values = [combined(crawl.why(url).parts) for url in (GOOD + "0", SPAM + "0")]
        events = crawl.view.info().events
    trust.unlink()
    for look in (False, True):
        if look:
            view = CrawlView.open(tmp_path / "c")
            assert combined(view.why(GOOD + "0").parts) == pytest.approx(values[0])
            continue
        with opened(tmp_path / "c", VirtualClock()) as crawl:
            assert frontier_in(crawl).ranked_up_to > 0
            assert [combined(crawl.why(url).parts) for url in (GOOD + "0", SPAM + "0")] == pytest.approx(
                values
            )
            assert crawl.settings.trust == str(trust)
    trust.write_text(f"{GOOD}\t2\nhttp://other.example/\n")
    with opened(tmp_path / "c", VirtualClock(), trust=trust) as crawl:
        assert crawl.view.info().events <= events + 4
    trust.write_text(f"{SPAM}\n")
    with opened(tmp_path / "c", VirtualClock(), trust=trust) as crawl:
        assert frontier_in(crawl).ranked_up_to == 0  # that ranking was by other trust
        assert rank_in(crawl, SPAM + "0") == pytest.approx(0.85 * 0.15 / 3, rel=1e-4)
        assert combined(crawl.why(GOOD + "0").parts) == 0
    with opened(tmp_path / "c", VirtualClock(), trust=None) as crawl:
        assert rank_in(crawl, GOOD + "0") == pytest.approx(0.15 + 0.85 * 0.15 / 3, rel=1e-4)


def test_ranking_with_trust_is_trustrank(tmp_path, trust):
    with crawl_of(tmp_path, trust=trust) as crawl:
        fill(crawl)
        for k in range(3):
            crawl.crawled(f"{GOOD}{k}", [GOOD, f"{GOOD}{(k + 1) % 3}", "http://far.example/"])
        crawl.rerank(wait=True)
        pages = frontier_in(crawl).pages
        n = pages.num_pages
        P, v = np.zeros((n, n)), np.zeros(n)
        for page in range(n):
            links = pages.links(page)
            if len(links):
                P[page, links] = 1 / len(links)
        v[[crawl.view.number(GOOD), crawl.view.number("http://other.example/")]] = 2, 1
        exact = np.linalg.solve(np.eye(n) - 0.85 * P.T, 0.15 * v)
        found = frontier_in(crawl).policy.ranks(np.arange(n, dtype=np.uint32))
        assert np.abs(found - exact).sum() <= 2e-4 * exact.sum()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no URL with a weight above 0"),
        ("http://a.com/\t0\n", "has no URL with a weight above 0"),
        ("http://a.com/\t-1\n", r"must be in \[0, 1e30\]; got -1.0"),
        ("http://a.com/\tmuch\n", "line 1: 'much' is not a score"),
        (None, "cannot be read"),
    ],
)
def test_a_file_without_trust_is_refused(tmp_path, trust, text, message):
    trust.unlink() if text is None else trust.write_text(text)
    with pytest.raises(InputError, match=message):
        crawl_of(tmp_path, trust=trust)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "hits"}, "`trust` does not apply to policy 'hits'"),
        ({"policy": "best-first"}, "`trust` does not apply to policy 'best-first'"),
        ({"use_scores": True}, "`trust` and `use_scores` cannot be combined"),
        ({"trust": 7}, "trust must be"),
    ],
)
def test_trust_is_refused_with_settings_that_it_contradicts(tmp_path, trust, settings, message):
    with pytest.raises(ParameterError, match=message):
        crawl_of(tmp_path, **{"trust": trust, **settings})
    assert not (tmp_path / "c").exists()


def test_rules_hold_for_trusted_pages(tmp_path, trust):
    with crawl_of(tmp_path, trust=trust, rules={"deny": ["host:other.example"]}) as crawl:
        assert [lease.url for lease in crawl.next(9)] == [GOOD]
        assert crawl.page("http://other.example/").state == "excluded"


def test_the_published_ranking_says_by_which_trust(tmp_path, trust):
    with crawl_of(tmp_path, trust=trust) as crawl:
        fill(crawl)
        crawl.rerank(wait=True)
        meta = json.loads((tmp_path / "c" / "ranks" / "header.json").read_text())["meta"]
        assert meta["trust"] == frontier_in(crawl).trusted_at > 0


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(arcs(min_nodes=1), st.lists(st.booleans(), min_size=12, max_size=12))
def test_ranks_by_trust_in_the_seeds_are_lower_bounds_that_rise(tmp_path_factory, made, ranked):
    """Cho & Schonfeld, "RankMass crawler: a crawler with high PageRank coverage guarantee", VLDB 2007."""
    n, seeds = made.num_nodes, list(range(min(2, made.num_nodes)))
    urls = [f"http://h{page % 3}.com/p{page}" for page in range(n)]
    links = {page: sorted({b for a, b in made.pairs if a == page != b}) for page in range(n)}
    chances = np.zeros((n, n))
    for page, row in links.items():
        chances[page, row] = 1 / max(len(row), 1)
    final = np.linalg.solve(np.eye(n) - 0.85 * chances.T, 0.15 * np.isin(np.arange(n), seeds))
    folder = tmp_path_factory.mktemp("rankmass")
    (folder / "seeds.txt").write_text("".join(f"{urls[page]}\n" for page in seeds))
    bounds = np.zeros(n)
    with crawl_of(folder, trust=folder / "seeds.txt", politeness=EAGER) as crawl:
        for again in ranked:
            for lease in crawl.next(1):
                crawl.crawled(lease, [urls[link] for link in links[urls.index(lease.url)]])
            if again:
                crawl.rerank(wait=True)
            pages = frontier_in(crawl).pages
            known = [urls.index(url) for url in pages.urls(range(pages.num_pages))]
            now = np.zeros(n)
            now[known] = frontier_in(crawl).policy.ranks(np.arange(len(known), dtype=np.uint32))
            assert (now <= final + 1e-4 * final.sum()).all()
            assert (now >= bounds - 1e-4 * final.sum()).all()
            bounds = now
        crawl.rerank(wait=True)
        reached = frontier_in(crawl).policy.ranks(np.arange(len(known), dtype=np.uint32))
    np.testing.assert_allclose(reached, final[known], atol=1e-4 * final.sum())

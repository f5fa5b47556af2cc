"""``why`` gives the parts of a priority, and they add up: for every policy and every setting, links included."""

import itertools

import pytest

from crawlstrategies import opened
from inlink.base.clock import VirtualClock
from inlink.base.settings import NO_LIMIT
from inlink.factors.parts import combined
from inlink.frontier.policies import POLICIES

SITES = ("a.com", "b.com", "c.org")
NAMES = [f"http://{SITES[k % 3]}/{k}" for k in range(24)]
SETTINGS = [
    {"use_scores": use_scores, "cross_domain_only": cross, "damping": damping}
    for use_scores, cross, damping in itertools.product([False, True], [False, True], [0.85, 0.5])
]


def links_of(k):
    return [(NAMES[j % len(NAMES)], (j % 7 - 2) / 4) for j in (k + 1, 2 * k + 1, 3 * k + 2, 5 * k, k % 4)]


def crawled(tmp_path, policy, settings):
    """A crawl with scores below 0, a redirect within a host, one between hosts, and a page without links; ranked."""
    crawl = opened(tmp_path / "c", VirtualClock(), policy=policy, rerank_share=None, **settings)
    crawl.seed([(NAMES[0], 0.5), (NAMES[1], -0.5)])
    for turn in range(14):
        (lease,) = crawl.next(1)
        number = NAMES.index(lease.url) if lease.url in NAMES else 0
        if turn == 3:
            crawl.crawled(lease, links_of(number), redirected_to=lease.url + "/moved")
        elif turn == 5:
            crawl.crawled(lease, links_of(number), redirected_to="http://d.org/moved")
        else:
            crawl.crawled(lease, links_of(number) if turn != 7 else [], score=(turn % 4) / 4)
    return crawl


@pytest.mark.slow
@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda given: "-".join(map(str, given.values())))
def test_parts_and_links_add_up(tmp_path, policy, settings):
    with crawled(tmp_path, policy, settings) as crawl:
        for _ in range(4):
            crawl.rerank(wait=True)
        rows = crawl.view.order(100).rows
        assert rows
        for row in rows:
            why = crawl.why(row.url)
            assert combined(why.parts) == pytest.approx(why.priority, rel=1e-5, abs=1e-12)
            assert why.inlinks_complete
            if POLICIES[policy].algorithm is None or len(why.inlinks) == 8:
                continue
            # Expected ranks are of links that are not known yet.
            left_out = ("trap penalty", "rank expected")
            own = [part for part in why.parts if not part.name.startswith(left_out)]
            # What does not come from links is the teleport of PageRank, and nothing of HITS.
            if POLICIES[policy].algorithm == "pagerank":
                (teleport,) = [
                    part for part in own if part.name.startswith("(1 − damping)") or "teleport" in part.name
                ]
                own.remove(teleport)
            given = sum(link.gives for link in why.inlinks)
            assert given == pytest.approx(combined(own), rel=1e-2, abs=1e-3)


def test_the_damping_is_among_the_parts_of_pagerank(tmp_path):
    with crawled(tmp_path, "pagerank", {"damping": 0.5}) as crawl:
        why = crawl.why(crawl.view.order(1).rows[0].url)
        assert [(part.name, part.value) for part in why.parts if "damping" in part.name] == [
            ("damping", 0.5),
            ("1 − damping, from teleport", 0.5),
        ]


def test_hits_is_the_authority_alone_and_times_the_score_by_another_name(tmp_path):
    found = {}
    for policy in ("hits", "hits-by-score"):
        with crawled(tmp_path / policy, policy, {"use_scores": True}) as crawl:
            crawl.rerank(wait=True)
            found[policy] = [crawl.why(url) for url in NAMES if crawl.view.page(url)]
    assert {len(why.parts) for why in found["hits"]} == {1}
    factors = [why.parts[1] for why in found["hits-by-score"]]
    assert {part.operation for part in factors} == {"×"}
    assert len({part.value for part in factors}) > 2


def test_scores_below_0_are_ordered(tmp_path):
    scores = {"http://a.com/": -0.1, "http://b.com/": -5.0, "http://c.org/": 0.0, "http://d.org/": -0.2}
    scores |= {"http://e.org/": 0.5, "http://f.org/": -1e30}
    by_score = sorted(scores, key=scores.get, reverse=True)
    with opened(tmp_path / "c", VirtualClock(), policy="best-first") as crawl:
        crawl.seed(["http://x.org/"])
        crawl.crawled(crawl.next(1)[0], list(scores.items()))
        assert [crawl.page(url).score for url in scores] == pytest.approx(list(scores.values()))
        for row in crawl.view.order(9).rows:
            why = crawl.why(row.url)
            assert combined(why.parts) == pytest.approx(why.priority, rel=1e-6)
            assert why.priority > 0
    with opened(tmp_path / "c", VirtualClock()) as crawl:
        assert [row.url for row in crawl.view.order(9).rows] == by_score
        assert [crawl.page(url).score for url in scores] == pytest.approx(list(scores.values()))
        # A better link raises the score, and a worse one leaves it.
        crawl.seed([("http://b.com/", -0.05), ("http://a.com/", -9.0)])
        assert crawl.page("http://b.com/").score == pytest.approx(-0.05)
        assert crawl.page("http://a.com/").score == pytest.approx(-0.1)


@pytest.mark.parametrize(
    ("policy", "in_flight", "shown"),
    [
        ("pagerank", 3, "0 of at most 3 being fetched"),
        ("pagerank", NO_LIMIT, "0 being fetched"),
        ("host-diverse", NO_LIMIT, "0 of at most 8 being fetched"),
    ],
)
def test_a_limit_that_is_none_is_not_shown(tmp_path, policy, in_flight, shown):
    crawl = opened(tmp_path / "c", VirtualClock(), policy=policy, politeness={"in_flight": in_flight})
    crawl.seed(NAMES[:1])
    assert f" {shown}, " in str(crawl.why(NAMES[0]))

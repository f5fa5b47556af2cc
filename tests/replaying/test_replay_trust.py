"""Replays with trusted pages, and with a list of spam hosts."""

import numpy as np
import pytest

import inlink
from crawlstrategies import EAGER
from inlink.errors import InputError, ParameterError

GOOD = [f"http://good{k}.example/{n}" for k in range(4) for n in range(10)]
SPAM = [f"http://spam{k}.example/{n}" for k in range(4) for n in range(10)]
FRONT = "http://good0.example/0"


def links() -> dict[str, list[str]]:
    """Good pages link to good pages, and one of ten to spam; spam links to spam."""
    found = {}
    for pages in (GOOD, SPAM):
        for k, page in enumerate(pages):
            found[page] = sorted({pages[(k * step + 1) % len(pages)] for step in (1, 3, 7)} - {page})
    for k, page in enumerate(GOOD[::10]):
        found[page].append(SPAM[10 * k])
    return found


@pytest.fixture(scope="module")
def graph() -> inlink.Graph:
    return inlink.Graph.from_arcs([(page, target) for page, row in links().items() for target in row])


@pytest.fixture
def trust(tmp_path):
    file = tmp_path / "trust.txt"
    file.write_text(f"HTTP://good0.example:80/0\t2\n{GOOD[15]}\nhttp://elsewhere.example/\n")
    return file


def wasted(graph, policy="host-diverse", **settings) -> float:
    found = inlink.replay(
        graph, policies=[policy], seeds=[[GOOD[3], SPAM[5]]], budget=0.5, marks=[0.5], wasted="//spam",
        lines=False, tau=False, settings=settings,
    )  # fmt: skip
    return found.runs[0].wasted[0]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["pagerank", "host-diverse"])
def test_a_replay_fetches_in_the_order_of_a_crawl_with_trust(graph, trust, tmp_path, policy):
    web, order = links(), []
    given = {"policy": policy, "trust": trust, "politeness": {"delay": 0.0}, "lease_seconds": 1e9}
    with inlink.Crawl(tmp_path / "c", clock=inlink.VirtualClock(), **given) as crawl:
        crawl.seed(sorted([FRONT, GOOD[3], GOOD[15]]))
        while crawl.wait() is not None:
            for lease in crawl.next(1):
                if lease.url in web:
                    order.append(lease.url)
                    crawl.crawled(lease, web[lease.url])
                else:
                    crawl.exclude(lease, "not in the web")
    found = inlink.replay(
        graph, policies=[policy], seeds=[[GOOD[3]]], budget=1.0, marks=[0.1, 0.2, 1.0], lines=True,
        settings={"trust": trust},
    )  # fmt: skip
    names = list(graph.names)
    assert [names[page] for page in found.seeds[0]] == sorted([FRONT, GOOD[3], GOOD[15]])
    ranks = dict(zip(names, inlink.pagerank(graph).values, strict=True))
    total = sum(ranks.values())
    shares = np.cumsum([ranks[url] for url in order]) / total
    for mark in (0.1, 0.2, 1.0):
        assert found.mean(policy, at=mark).mean == pytest.approx(shares[int(80 * mark) - 1], rel=1e-6)


@pytest.mark.slow
def test_trust_and_distrust_waste_fewer_fetches(graph, trust, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_text("spam0.example\nspam1.example\n")
    assert wasted(graph, trust=str(trust)) < wasted(graph)
    assert wasted(graph, distrust=str(bad)) < wasted(graph)
    assert wasted(graph, trust=str(trust), spam_mass=True) <= wasted(graph, trust=str(trust))
    with pytest.raises(ParameterError, match="`spam_mass` needs `trust`"):
        wasted(graph, spam_mass=True)


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_processes(graph, trust):
    told = [
        inlink.replay(
            graph, policies=["pagerank", "host-diverse"], seeds="2x3", budget=0.2, lines=False,
            settings={"trust": str(trust)}, jobs=jobs,
        ).to_json()
        for jobs in (1, 2)
    ]  # fmt: skip
    assert told[0] == told[1]
    assert str(trust).encode() in told[0]


def test_trusted_urls_get_the_form_of_the_recorded_crawl(tmp_path):
    with inlink.Crawl(tmp_path / "c", politeness=EAGER, url_rules={"sort_query": True}) as crawl:
        crawl.seed(["http://a.example/?b=1&a=2"])
        crawl.crawled("http://a.example/?b=1&a=2", ["/x"])
        crawl.crawled("http://a.example/x", [])
    file = tmp_path / "trust.txt"
    file.write_text("http://a.example/?b=1&a=2\n")
    found = inlink.replay(
        tmp_path / "c", policies=["pagerank"], seeds="recorded", budget=1.0, settings={"trust": file}
    )
    assert found.seeds == [[0]]


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (None, InputError, "cannot be read"),
        (
            "http://none.example/\n",
            InputError,
            "names no page of graph: name URLs of its pages, such as http",
        ),
        (f"{FRONT}\tmuch\n", InputError, "line 1: 'much' is not a score"),
        (f"{FRONT}\tnan\n", InputError, "line 1: 'nan' is not a score"),
        (f"{FRONT}\t-1\n", InputError, r"must be in \[0, 1e30\]"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(graph, trust, text, error, said):
    trust.unlink() if text is None else trust.write_text(text)
    with pytest.raises(error, match=said):
        wasted(graph, trust=str(trust))


def test_settings_that_do_not_go_with_trust(graph, trust):
    with pytest.raises(ParameterError, match="`trust` does not apply to policy 'breadth-first'"):
        wasted(graph, "breadth-first", trust=str(trust))
    with pytest.raises(ParameterError, match="`trust` and `use_scores` cannot be combined"):
        wasted(graph, trust=str(trust), use_scores=True)
    with pytest.raises(ParameterError, match="trust must be"):
        wasted(graph, trust=7)

"""The default order, host-diverse: against a twin without heaps, logs or residuals, and in closed form."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inlink
from crawlstrategies import EAGER, opened
from inlink.base.clock import VirtualClock
from inlink.factors.parts import combined
from strategies import arcs

DAMPING = 0.85
TOLERANCE = 0.97
"""The ranking of a crawl has a relative L1 error of up to 1e-4 of the sum of all ranks."""


def ranks_of(rows: dict[int, list[int]], n: int) -> np.ndarray:
    """x = d·Pᵀx + (1 − d), solved as a dense system; ``rows`` has the links of the crawled pages."""
    chances = np.zeros((n, n))
    for page, links in rows.items():
        for link in links:
            chances[page, link] = 1 / len(links)
    return np.linalg.solve(np.eye(n) - DAMPING * chances.T, np.full(n, 1 - DAMPING))


def expected(rows: dict[int, list[int]], ranks: np.ndarray) -> np.ndarray:
    """The rank that waiting pages can expect of links that are not known yet."""
    found = np.zeros(len(ranks))
    for page, links in rows.items():
        crawled = sum(link in rows for link in links)
        for link in links:
            found[link] += (
                0.5 * DAMPING * ranks[page] / len(links) * (len(links) - crawled - 1) / (1 + crawled)
            )
    return found


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(arcs(min_nodes=2), st.integers(1, 4), st.booleans())
def test_the_next_page_is_the_best_of_a_twin(tmp_path_factory, made, hosts, ranked):
    n = made.num_nodes
    urls = [f"http://h{page % hosts}.com/p{page}" for page in range(n)]
    links = {page: sorted({b for a, b in made.pairs if a == page != b}) for page in range(n)}
    depths, rows, taken = {0: 0, 1: 0}, {}, [0] * hosts
    folder = tmp_path_factory.mktemp("default") / "c"
    with opened(folder, VirtualClock(), policy="host-diverse", politeness=EAGER, rerank_share=None) as crawl:
        crawl.seed(urls[:2])
        while True:
            if ranked and rows:
                crawl.rerank(wait=True)
            leases = crawl.next(1)
            if not leases:
                break
            page = urls.index(leases[0].url)
            if ranked:
                ranks = ranks_of(rows, n)
                ranks += expected(rows, ranks)
                waiting = [one for one in depths if one not in rows]
                values = {one: ranks[one] / (1 + depths[one]) ** 0.125 for one in waiting}
                best: dict[int, float] = {}
                for one, value in values.items():
                    best[one % hosts] = max(best.get(one % hosts, 0.0), value)
                host = page % hosts
                assert values[page] >= TOLERANCE * best[host]
                shared = {one: value / (1 + taken[one]) for one, value in best.items()}
                assert shared[host] >= TOLERANCE * max(shared.values())
            rows[page] = links[page]
            taken[page % hosts] += 1
            for link in links[page]:
                depths.setdefault(link, depths[page] + 1)
            crawl.crawled(leases[0], [urls[link] for link in links[page]])
    # Each page that can be reached is fetched once.
    assert sorted(rows) == sorted(depths)


def chain(crawl, length: int) -> list[str]:
    """Crawl a chain of pages, each of which links to the next."""
    urls = [f"http://a.com/c{k}" for k in range(length + 1)]
    crawl.seed(urls[:1])
    for page, following in pairwise(urls):
        (lease,) = crawl.next(1)
        assert lease.url == page
        crawl.crawled(lease, [following])
    return urls


def test_the_priority_at_the_end_of_a_chain(tmp_path):
    with opened(tmp_path / "c", VirtualClock(), politeness=EAGER, rerank_share=None) as crawl:
        last = chain(crawl, 15)[-1]
        crawl.rerank(wait=True)
        why = crawl.why(last)
        # The rank of the end of a chain of 15 links is 1 − 0.85^16, and (1 + 15)^⅛ is the root of 2.
        assert (why.parts[-1].operation, why.parts[-1].value) == ("÷", pytest.approx(2**0.5))
        assert combined(why.parts) == pytest.approx((1 - DAMPING**16) / 2**0.5, rel=1e-3)
        assert why.priority == pytest.approx(combined(why.parts), rel=1e-6)
        (link,) = why.inlinks
        assert link.gives == pytest.approx(DAMPING * (1 - DAMPING**15) / 2**0.5, rel=1e-3)
    with opened(tmp_path / "c", VirtualClock(), politeness=EAGER, rerank_share=None) as crawl:
        again = crawl.why(last)
        assert (again.parts, again.priority) == (why.parts, why.priority)


def test_the_harvest_counts_ranks_and_not_priorities(tmp_path):
    with opened(tmp_path / "c", VirtualClock(), politeness=EAGER, rerank_share=None) as crawl:
        chain(crawl, 15)
        crawl.rerank(wait=True)
        ranks = 1 - DAMPING ** np.arange(1, 17)
        assert crawl.standing().harvest == pytest.approx(ranks[:15].sum() / ranks.sum(), rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "graph", ["hollins.dat", pytest.param("wikispeedia/links.tsv", marks=pytest.mark.soak)]
)
def test_on_real_graphs_the_default_is_not_below_breadth_first(data, tmp_path, graph):
    path = data(f"graphs/{graph}")
    if graph == "hollins.dat":
        path = tmp_path / "hollins.tsv"
        path.write_text(links_of_hollins(data(f"graphs/{graph}").read_text("latin-1").splitlines()), "utf-8")
    shares = [0.01, 0.02, 0.05]
    found = inlink.replay(
        path,
        policies=["host-diverse", "breadth-first"],
        seeds="8x10",
        budget=0.05,
        marks=shares,
        lines=False,
        tau=False,
    )
    assert all(found.paired("breadth-first", at=share).mean < 0 for share in shares)


def links_of_hollins(lines: list[str]) -> str:
    """Return the links of hollins.dat as pairs of URLs. The file has nodes, then links between their numbers."""
    count = int(lines[0].split()[0])
    urls = dict(line.split(maxsplit=1) for line in lines[1 : count + 1])
    links = [line.split() for line in lines[count + 1 :]]
    return "".join(f"{urls[link[0]]}\t{urls[link[1]]}\n" for link in links if link)

"""What single links would do: its cost, and the truth of its intervals and suggestions.

    python -m bench.whatif cost path/to/cnr-2000.graph   # beside a cold ranking to the same bound
    python -m bench.whatif intervals                     # 1,000 random edits against a direct solve
    python -m bench.whatif suggestions                   # against all links, and all sets of three links

**Cost.** Each link goes from a page outside the first 1,000 to any page. The answer is the change of the target's
PageRank, in an interval of at most 1% of the change. The cold ranking ranks the edited graph from the uniform vector,
until two rankings with its bound would give an interval as narrow. Times are CPU seconds on one thread.

**Intervals.** The direct solve is a sparse LU factorization with iterative refinement in long doubles. Its own error is
bounded by its residual, and is allowed for.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import inlink
from inlink.graph.edits import Edits

FIRST = 1000
"""The best pages, from which no link goes."""

COLD = 20
"""The number of links after which the edited graph is also ranked from the uniform vector."""


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and its CPU seconds."""
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def exact(
    num_nodes: int, arcs: set[tuple[int, int]], teleport: np.ndarray, c: float = 0.85
) -> tuple[np.ndarray, float]:
    """PageRank, longdouble[n], and a bound on its L1 error."""
    from scipy.sparse import csc_array, identity
    from scipy.sparse.linalg import splu

    sources, targets = np.array(sorted(arcs), np.int64).reshape(-1, 2).T
    share = np.longdouble(c) / np.maximum(np.bincount(sources, minlength=num_nodes), 1).astype(np.longdouble)
    entries = share.astype(np.float64)[sources]
    matrix = identity(num_nodes, format="csc") - csc_array(
        (entries, (targets, sources)), shape=(num_nodes, num_nodes)
    )
    factors = splu(csc_array(matrix))
    values = np.zeros(num_nodes, np.longdouble)
    for _ in range(5):
        values += factors.solve(_residual(values, teleport, share, sources, targets).astype(np.float64))
    left = float(np.abs(_residual(values, teleport, share, sources, targets)).sum()) / (1 - c)
    total = values.sum()
    # The rounding of the residual itself is that of long doubles.
    return values / total, 2 * left / float(total) + 1e-17


def _residual(
    values: np.ndarray, teleport: np.ndarray, share: np.ndarray, sources: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    residual: np.ndarray = np.subtract(teleport, values, dtype=np.longdouble)
    np.add.at(residual, targets, share[sources] * values[sources])
    return residual


def outside(
    arcs: set[tuple[int, int]],
    num_nodes: int,
    add: set[tuple[int, int]],
    remove: set[tuple[int, int]],
    personalization: np.ndarray | None = None,
    before: "tuple[inlink.Graph, inlink.Ranking, np.ndarray, float] | None" = None,
    **options: Any,
) -> tuple[int, int, int]:
    """Compare answers with the direct solve; return the numbers of nodes, of undecided and of wrong ones."""
    size = max([num_nodes, *(end + 1 for link in add for end in link)])
    teleport = np.ones(size) if personalization is None else np.zeros(size)
    if personalization is not None:
        teleport[:num_nodes] = personalization
    graph, stored, was, error = before or known(arcs, num_nodes, teleport[:num_nodes])
    now, new_error = exact(size, (arcs - remove) | add, teleport)
    was, error = np.concatenate([was, np.zeros(size - num_nodes)]), error + new_error
    change = inlink.whatif(
        graph, add, remove, personalization=personalization, start=stored, threads=1, **options
    )
    wrong = 0
    for row in change:
        node = int(row.node)
        truths = (was[node], row.before), (now[node], row.after), (now[node] - was[node], row.change)
        right = all(low - error <= value <= high + error for value, (low, high) in truths)
        for values, places in ((was, row.place_before), (now, row.place_after)):
            # Values that the direct solve cannot tell apart may be equal.
            if places is not None:
                right &= places[0] <= int((values > values[node] + error).sum()) + 1
                right &= places[1] >= int((values > values[node] - error).sum()) - _ties(values, node, error)
        wrong += not right
    return len(change), sum(not row.decided for row in change), wrong


def _ties(values: np.ndarray, node: int, error: float) -> int:
    """The number of other nodes whose values the direct solve cannot tell from a node's."""
    return int((np.abs(values - values[node]) <= error).sum()) - 1


def known(
    arcs: set[tuple[int, int]], num_nodes: int, teleport: np.ndarray
) -> tuple[inlink.Graph, inlink.Ranking, np.ndarray, float]:
    """A graph, its ranking, and its exact PageRank with a bound."""
    graph = inlink.Graph.from_arcs(np.array(sorted(arcs), np.uint32).reshape(-1, 2), num_nodes=num_nodes)
    ranking = inlink.pagerank(graph, personalization=teleport, tol=1e-12, threads=1)
    return graph, ranking, *exact(num_nodes, arcs, teleport)


def webs(rng: np.random.Generator) -> dict[str, tuple[int, set[tuple[int, int]]]]:
    """Five graphs, by name: the number of nodes, and the arcs."""
    result: dict[str, tuple[int, set[tuple[int, int]]]] = {}
    # Each page links to its folder's index and to neighbours; a menu is on all pages.
    n = 10_000
    near = {(i, int(j) % n) for i in range(n) for j in i + rng.integers(-20, 21, 4)}
    result["site of 10,000 pages with a menu"] = n, near | {(i, j) for i in range(n) for j in range(5)}
    n = 8_000
    result["chains with dangling ends"] = (
        n,
        {(i, i + int(j)) for i in range(n - 9) if i % 7 for j in rng.integers(1, 9, 2)},
    )
    n = 5_000
    tree = {(i, (i - 1) // 3) for i in range(1, n)} | {((i - 1) // 3, i) for i in range(1, n) if i % 2}
    result["tree with links to parents"] = n, tree | {(i, i) for i in range(0, n, 11)}
    n = 2_000
    ends = (rng.pareto(1.2, (6 * n, 2)) * 20).astype(np.int64) % n
    result["power law with islands"] = n + 200, {(int(i), int(j)) for i, j in ends}
    n = 600
    result["random graph"] = n, {(int(i), int(j)) for i, j in rng.integers(0, n, (4 * n, 2))}
    return result


def edits(
    rng: np.random.Generator, num_nodes: int, arcs: set[tuple[int, int]]
) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Up to five links to add, some to new nodes, and up to three to remove."""
    new = int(rng.integers(0, 2))
    listed = sorted(arcs)
    remove = (
        {listed[int(place)] for place in rng.integers(0, len(listed), int(rng.integers(0, 4)))}
        if listed
        else set()
    )
    pairs = rng.integers(0, num_nodes + new, (int(rng.integers(0, 6)), 2))
    add = {(int(source), int(target)) for source, target in pairs}
    if new:
        add.add((int(rng.integers(num_nodes)), num_nodes))
    return add - remove, remove


def intervals(count: int, seed: int) -> None:
    """Print how many intervals do not contain the exact value."""
    rng = np.random.default_rng(seed)
    for name, (num_nodes, arcs) in webs(rng).items():
        totals = np.zeros(3, np.int64)
        before = known(arcs, num_nodes, np.ones(num_nodes))
        for turn in range(count // 5):
            add, remove = edits(rng, num_nodes, arcs)
            ends = {end for link in add | remove for end in link}
            nodes = sorted(ends | set(rng.integers(0, num_nodes, 3).tolist()) | {0})
            totals += outside(arcs, num_nodes, add, remove, before=before, nodes=nodes, places=bool(turn % 2))
        print(
            f"{name}: {count // 5} edits, {totals[0]:,} nodes, {totals[1]} not decided, {totals[2]} wrong",
            flush=True,
        )


def best_links(graph: inlink.Graph, target: int, links: int) -> float:
    """The largest gain of a target by some links from any nodes, by trying all sets."""
    from itertools import combinations

    n, c = graph.num_nodes, 0.85
    rows = np.zeros((n, n))
    for source, end in graph.edges.numbers:
        rows[source, end] = 1.0
    sources = [
        source for source in range(n) if rows[source].any() and not rows[source, target] and source != target
    ]
    best = before = _dense(rows, c)[target]
    for chosen in combinations(sources, min(links, len(sources))):
        edited = rows.copy()
        edited[list(chosen), target] = 1.0
        best = max(best, _dense(edited, c)[target])
    return float(best - before)


def _dense(rows: np.ndarray, c: float) -> np.ndarray:
    degrees = np.maximum(rows.sum(axis=1, keepdims=True), 1)
    values = np.linalg.solve(np.eye(len(rows)) - c * (rows / degrees).T, np.ones(len(rows)))
    return np.asarray(values / values.sum())


def small_web(rng: np.random.Generator, num_nodes: int) -> inlink.Graph:
    """A graph with a few hubs and some dangling nodes."""
    ends = (rng.random((3 * num_nodes, 2)) ** np.array([1.0, 2.5]) * num_nodes).astype(np.uint32)
    return inlink.Graph.from_arcs(ends, num_nodes=num_nodes)


def suggested(graph: inlink.Graph, target: int, links: int) -> float:
    """The gain of a target by the links that are suggested."""
    from inlink.rank.suggest import suggest

    return sum(link.gain.middle for link in suggest(graph, [target], links, threads=1))


def suggestions(count: int, seed: int) -> None:
    """Print how often the best link is suggested, and how near three links are to the best three."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(count):
        graph, target = small_web(rng, 200), int(rng.integers(200))
        hits += suggested(graph, target, 1) >= 0.999 * best_links(graph, target, 1)
    print(f"best link on graphs of 200 pages: {hits} of {count}", flush=True)
    shares = []
    for _ in range(count // 5):
        graph, target = small_web(rng, 30), int(rng.integers(30))
        shares.append(suggested(graph, target, 3) / best_links(graph, target, 3))
    print(
        f"gain of three links, of the best three on graphs of 30 pages: least {min(shares):.4f}, {len(shares)} graphs"
    )


def cost(path: str, links: int, seed: int) -> None:
    """Print a table of medians."""
    graph, rng = inlink.read(path), np.random.default_rng(seed)
    for bound in (1e-6, 1e-9, 1e-12):
        stored = inlink.pagerank(graph, tol=bound, threads=1)
        stored, seconds = timed(lambda: inlink.pagerank(graph, tol=bound, threads=1))  # noqa: B023
        print(f"cold ranking to {bound:g}: {seconds:.3f} s, {stored.iterations} sweeps", flush=True)
    pool = np.argsort(-stored.values, kind="stable")[FIRST:]
    answers: list[float] = []
    costs: list[float] = []
    ratios: list[float] = []
    colds: list[tuple[float, float, float]] = []
    undecided = 0
    inlink.whatif(graph, [(int(pool[0]), int(pool[-1]))], nodes=[int(pool[-1])], places=False, start=stored)
    while len(costs) < links:
        source, target = int(rng.choice(pool)), int(rng.integers(graph.num_nodes))
        if target in graph.outlinks(source):
            continue
        link = [(source, target)]
        [row], seconds = timed(
            lambda: inlink.whatif(graph, link, nodes=[target], places=False, start=stored, threads=1)  # noqa: B023
        )
        costs.append(seconds)
        undecided += not row.decided
        answers.append((row.change.high - row.change.low) / abs(row.change.middle))
        if len(costs) % (links // COLD or 1) == 0:
            bound = 0.01 * abs(row.change.middle) / 4
            edited = Edits(graph, link).edited()
            _ = edited.split_in_rows
            ranking, cold = timed(lambda: inlink.pagerank(edited, tol=bound, threads=1))  # noqa: B023
            colds.append((cold, float(ranking.iterations), bound))
            ratios.append(cold / seconds)
    print(
        f"{len(costs):,} links: median {np.median(costs):.4f} s, 90% {np.quantile(costs, 0.9):.4f} s,",
        end=" ",
    )
    print(f"largest {max(costs):.4f} s; not decided: {undecided}")
    print(f"width of the interval ÷ change: median {np.median(answers):.2e}, largest {max(answers):.2e}")
    cold, sweeps, bound = np.median(colds, axis=0)
    print(
        f"cold ranking of the edited graph to the same bound (median {bound:.1e}, {len(colds)} links):",
        end=" ",
    )
    print(f"median {cold:.4f} s, {sweeps:.0f} sweeps")
    print(
        f"cold ÷ answer: {cold / np.median(costs):.1f} by medians, {np.median(ratios):.1f} median of the links' own"
    )


def main() -> None:
    """Run a part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["cost", "intervals", "suggestions"])
    parser.add_argument("graph", nargs="?")
    parser.add_argument("--count", type=int, help="links, edits or graphs")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.part == "cost":
        cost(chosen.graph, chosen.count or 1000, chosen.seed)
    elif chosen.part == "intervals":
        intervals(chosen.count or 1000, chosen.seed)
    else:
        suggestions(chosen.count or 100, chosen.seed)


if __name__ == "__main__":
    main()

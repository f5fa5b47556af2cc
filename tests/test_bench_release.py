"""The generated graph of hosts and its twin, and the benchmark of a release from end to end."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import hostgraph, kernels, release, results, tables

from inlink import Graph

pytestmark = pytest.mark.slow

MASK = 2**64 - 1


class Dice:
    """splitmix64 in Python's whole numbers."""

    def __init__(self, state: int) -> None:
        self.state = state & MASK

    def draw(self, below: int) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        return ((z >> 32) * below) >> 32

    def popular(self, count: int) -> int:
        best = min(64, count)
        while 2 * best <= count and self.draw(2**32) < int(0.88 * 2**32):
            best *= 2
        return self.draw(best)


def slow_arcs(num_nodes: int, num_arcs: int, seed: int) -> list[tuple[int, int]]:
    """The arcs by the description of `bench/hostgraph.py`, host by host."""
    graph = hostgraph.layout(num_nodes, num_arcs)
    n, size = int(graph.nodes), int(graph.size)
    arcs = []
    by_popularity = {k * int(graph.spread) % n: k for k in range(n)}
    in_country = {k * int(graph.local) % size: k for k in range(size)}
    for place in range(n):
        host = place * int(graph.order) % n
        dice = Dice(seed * 0xBF58476D1CE4E5B9 ^ host * 0x94D049BB133111EB)
        popular = by_popularity[host] < n // 8 or in_country[host % size] < size // 8
        if dice.draw(2**32) >= int((0.875 if popular else 0.07) * 2**32):
            continue
        uniform = (dice.draw(2**32) + 0.5) / 2**32
        for _ in range(int(min(math.ceil(graph.scale * uniform**graph.power), graph.most))):
            kind = dice.draw(2**32) / 2**32
            if kind < 0.25:
                away = 1 + dice.draw(2 ** dice.draw(10))
                target = (host + away if dice.draw(2**32) < 2**31 else host - away) % n
            elif kind < 0.6:
                target = host - host % size + dice.popular(size) * int(graph.local) % size
            else:
                target = dice.popular(n) * int(graph.spread) % n
            arcs.append((host, target))
    return arcs


def fast_arcs(num_nodes: int, num_arcs: int, seed: int) -> list[tuple[int, int]]:
    pieces = hostgraph.host_arcs(num_nodes, num_arcs, seed)
    return [arc for piece in pieces for arc in zip(*(side.tolist() for side in piece), strict=True)]


@pytest.mark.parametrize(("nodes", "arcs", "seed"), [(4_096, 30_000, 1), (5_000, 70_000, 9)])
def test_the_stream_of_arcs_equals_its_twin(nodes: int, arcs: int, seed: int) -> None:
    assert fast_arcs(nodes, arcs, seed) == slow_arcs(nodes, arcs, seed)


def test_it_looks_like_hosts() -> None:
    pieces = list(hostgraph.host_arcs(200_000, 5_000_000))
    sources, targets = (np.concatenate(side) for side in zip(*pieces, strict=True))
    n = 200_000 // 64 * 64
    assert len(pieces) > 1
    assert len(sources) == pytest.approx(5_000_000, rel=0.03)
    assert int(targets.max()) < n
    # A quarter of the hosts link, and few hosts have most inlinks.
    assert len(np.unique(sources)) / n == pytest.approx(kernels.LINKING, abs=0.01)
    indegrees = np.sort(np.bincount(targets, minlength=n))
    assert indegrees[-n // 100 :].sum() > 0.25 * len(targets)
    # Hosts link in scattered order.
    firsts = sources[np.flatnonzero(np.diff(sources.astype(np.int64))) + 1]
    assert 0.3 < (np.diff(firsts.astype(np.int64)) > 0).mean() < 0.7


@pytest.mark.parametrize("name", ["small", "small-compressed"])
def test_the_steps_build_and_rank_the_graph(name: str, tmp_path: Path) -> None:
    build = release.work("build", tmp_path / "data" / name, 5_000, 40_000, "")
    graph = Graph.open(tmp_path / "data" / name)
    arcs = set(fast_arcs(5_000, 40_000, 1))
    assert (build["nodes"], build["arcs"]) == (graph.num_nodes, graph.num_arcs) == (4_992, len(arcs))
    assert build["drawn"] >= build["arcs"]
    ranked = release.work("rank", tmp_path / "data" / name, 0, 0, "")
    assert ranked["converged"]
    assert ranked["bound"] <= 1e-6
    told = {"machine": results.machine(), "load": [1.0], "steps": {"build": build, "rank": ranked}}
    results.keep(tmp_path / "figures", "release-small", told)
    table = tables.tables(tmp_path / "figures")["release-small"]
    assert f"4,992 hosts, {len(arcs):,} arcs" in table
    assert f"rank, {ranked['sweeps']} sweeps" in table

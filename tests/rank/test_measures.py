"""What every ranking function promises: kinds of graphs, storage, threads, empty graphs, refusals, Ctrl-C."""

import inspect
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import inlink
from inlink import Graph, Ranking
from inlink.base.progress import Work, reporting
from inlink.errors import ParameterError

# Each measure, and the arguments that it needs to be quick and to have an answer.
MEASURES: dict[str, dict[str, Any]] = {
    "pagerank": {"method": "power"},
    "cheirank": {"method": "power"},
    "trustrank": {"trusted": [0], "method": "power"},
    "anti_trustrank": {"spam": [0], "method": "power"},
    "spam_mass": {"trusted": [0], "method": "power"},
    "mcmc": {"walks": 4},
    "hits": {},
    "salsa": {},
    "opic": {},
    "degree": {},
    "closeness": {},
    "harmonic": {"log2m": 4, "runs": 2},
    "betweenness": {"k": 2},
    "percolation": {"k": 2},
    "eigenvector": {},
    "katz": {"alpha": 0.01},
    "linkrank": {"tol": 1e-6},
}
PAIRS = [(0, 1), (1, 2), (2, 0), (0, 2), (3, 0), (2, 4)]
measures = pytest.mark.parametrize("name", MEASURES)


def rank(name: str, graph: Any, **options: Any) -> Ranking:
    return getattr(inlink, name)(graph, **MEASURES[name] | options)


def takes(name: str, parameter: str) -> bool:
    return parameter in inspect.signature(getattr(inlink, name)).parameters


@measures
def test_every_kind_of_graph_has_the_same_ranking(name: str):
    pairs = np.array(PAIRS)
    matrix = scipy.sparse.coo_array((np.arange(1.0, 7.0), tuple(pairs.T)), shape=(5, 5))
    wanted = rank(name, Graph.from_arcs(PAIRS, weights=np.arange(1.0, 7.0)))
    networkx = nx.DiGraph()
    networkx.add_nodes_from(range(5))
    networkx.add_weighted_edges_from(
        (i, j, weight) for (i, j), weight in zip(PAIRS, range(1, 7), strict=True)
    )
    for graph in (matrix, matrix.tocsc(), networkx):
        assert (rank(name, graph).values == wanted.values).all()
    if takes(name, "weighted"):
        plain = rank(name, Graph.from_arcs(PAIRS))
        assert (rank(name, matrix, weighted=False).values == plain.values).all()
        with pytest.raises(ParameterError, match="no weights"):
            rank(name, Graph.from_arcs(PAIRS), weighted=True)


@measures
def test_a_ranking_is_kept_with_its_graph(name: str, tmp_path):
    letters = [("abcde"[i], "abcde"[j]) for i, j in PAIRS]
    graph = Graph.from_arcs(letters, into=tmp_path / "g")
    numbers = {"walks": np.int64(4)} if name == "mcmc" else {"k": np.int64(2)} if takes(name, "k") else {}
    ranking = rank(name, graph, **numbers)
    assert ranking.algorithm == name
    assert 0 < ranking.elapsed < 3600
    ranking.save(graph)
    again = Ranking.load(graph, name)
    for field in (
        "parameters",
        "note",
        "dangling",
        "iterations",
        "converged",
        "error_bound",
        "residual",
        "unique",
    ):
        assert getattr(again, field) == getattr(ranking, field), field
    assert again.verdict() == ranking.verdict()
    assert again.top(5) == ranking.top(5)
    assert {c: v.tobytes() for c, v in again.columns.items()} == {
        c: v.tobytes() for c, v in ranking.columns.items()
    }


@pytest.mark.parametrize("name", [name for name in MEASURES if takes(name, "threads")])
def test_bits_do_not_depend_on_threads(name: str):
    rng = np.random.default_rng(3)
    graph = Graph.from_arcs(rng.integers(0, 4000, (150_000, 2)).astype(np.uint32))
    if name == "closeness":
        graph = Graph.from_arcs(rng.integers(0, 1200, (4000, 2)).astype(np.uint32))
    one, two = (rank(name, graph, threads=threads) for threads in (1, 2))
    for column, values in one.columns.items():
        assert (two.columns[column] == values).all()


@measures
def test_graphs_without_nodes_or_arcs(name: str):
    needed = {parameter for parameter in ("trusted", "spam") if takes(name, parameter)}
    k = {"k": None} if takes(name, "k") else {}
    if not needed:
        nothing = rank(name, Graph.from_arcs([], num_nodes=0), **k)
        assert len(nothing) == 0
        assert nothing.top() == []
    for size in (1, 3):
        bare = rank(name, Graph.from_arcs([], num_nodes=size), **k).values
        assert np.isfinite(bare).all()
        assert needed or len(set(bare.tolist())) == 1
    assert np.isfinite(rank(name, Graph.from_arcs([(0, 0)]), **k).values).all()


@pytest.mark.parametrize("name", sorted(set(MEASURES) - {"linkrank", "hits", "eigenvector"}))
def test_rounds_without_an_end_are_refused(name: str):
    if takes(name, "tol"):
        with pytest.raises(ParameterError, match="without either"):
            rank(name, Graph.from_arcs(PAIRS), tol=None)


class Interrupting:
    """A reporter that presses Ctrl-C after the first piece of work."""

    def task(self, label: str, total: float | None, unit: str) -> Work:
        class Piece(Work):
            def advance(self, amount: float, note: str = "") -> None:
                raise KeyboardInterrupt

        return Piece(label, total, unit)


@pytest.mark.parametrize("name", [name for name in MEASURES if name not in ("salsa", "degree")])
def test_ctrl_c_ends_it(name: str):
    options = {"threads": 2} if takes(name, "threads") else {}
    with reporting(Interrupting()), pytest.raises(KeyboardInterrupt):
        rank(name, Graph.from_arcs(PAIRS), **options)

import math

import igraph
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink import Graph
from inlink.errors import ParameterError, UnknownNodeError
from inlink.rank.sweeps import LONGEST_CYCLE, LastSweeps, Sweeper, linear_problem
from strategies import Arcs, arcs

dampings = st.sampled_from([0.0, 0.3, 0.85, 0.99, 0.9999])


def exact(A: np.ndarray, c: float, v: np.ndarray | None = None) -> np.ndarray:
    """PageRank by a direct solve of the definition, dangling rows replaced by the teleport vector."""
    n = len(A)
    v = np.full(n, 1 / n) if v is None else v / v.sum()
    strength = A.sum(1)
    P = np.where(strength[:, None] > 0, A / np.where(strength, strength, 1)[:, None], v[None, :])
    x = np.linalg.solve(np.eye(n) - c * P.T, (1 - c) * v)
    return x / x.sum()


@given(arcs(min_nodes=1), dampings, st.sampled_from([1, 2]), st.sampled_from(["gauss-seidel", "power"]))
def test_the_bound_holds(a: Arcs, c: float, threads: int, method: str):
    ranking = inlink.pagerank(
        a.graph(), damping=c, tol=1e-8, threads=threads, method=method, max_iter=200_000
    )
    assert np.abs(ranking.values - exact(a.dense(), c)).sum() <= ranking.error_bound + 1e-12
    assert ranking.converged
    assert ranking.error_bound <= 1e-8
    assert ranking.values.sum() == pytest.approx(1, abs=1e-12)
    assert (ranking.values >= 0).all()


@given(arcs(min_nodes=1, weighted=True), dampings, st.data())
def test_personalized_and_weighted(a: Arcs, c: float, data):
    r = data.draw(
        st.lists(st.floats(0, 10), min_size=a.num_nodes, max_size=a.num_nodes).filter(lambda r: max(r) > 0)
    )
    r = np.array(r)
    ranking = inlink.pagerank(a.graph(), damping=c, personalization=r, tol=1e-9)
    assert np.abs(ranking.values - exact(a.dense(), c, r)).sum() <= ranking.error_bound + 1e-12
    unweighted = inlink.pagerank(a.graph(), damping=c, tol=1e-9, weighted=False)
    assert (
        np.abs(unweighted.values - exact((a.dense() > 0).astype(float), c)).sum()
        <= unweighted.error_bound + 1e-12
    )


@given(arcs(min_nodes=1), st.integers(0, 6))
def test_an_unconverged_ranking_says_so_and_its_bound_holds(a: Arcs, rounds: int):
    for method in ("power", "gauss-seidel"):
        ranking = inlink.pagerank(a.graph(), tol=1e-15, max_iter=rounds, method=method)
        assert np.abs(ranking.values - exact(a.dense(), 0.85)).sum() <= ranking.error_bound + 1e-12
        assert ranking.converged == (ranking.error_bound <= 1e-15)


@given(arcs(min_nodes=1, max_nodes=8))
def test_networkx_and_igraph_agree(a: Arcs):
    G = a.digraph()
    ours = inlink.pagerank(a.graph(), tol=1e-11).values
    theirs = nx.pagerank(G, tol=1e-13, max_iter=10_000)
    np.testing.assert_allclose(ours, [theirs[i] for i in range(a.num_nodes)], atol=1e-9)
    g = igraph.Graph(n=a.num_nodes, edges=sorted(set(a.pairs)), directed=True)
    np.testing.assert_allclose(ours, g.pagerank(), atol=1e-9)


def web(n: int = 3000, seed: int = 7) -> scipy.sparse.csr_array:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, n, 40 * n)
    rows = rows[rows % 5 > 0]  # a fifth dangles
    near = (rows + rng.integers(-9, 9, len(rows))) % n
    columns = np.where(rng.random(len(rows)) < 0.7, near, (n * rng.random(len(rows)) ** 4).astype(int))
    A = scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    A.data[:] = 1
    return A


@pytest.mark.slow
def test_threads_give_the_answer_and_one_thread_the_same_bits_each_time():
    A = scipy.sparse.csr_array(web(6000))
    assert A.nnz > 100_000
    one = inlink.pagerank(A, threads=1, tol=1e-10)
    three = inlink.pagerank(A, threads=3, tol=1e-10)
    assert np.abs(one.values - three.values).sum() <= one.error_bound + three.error_bound
    assert (one.values == inlink.pagerank(A, threads=1, tol=1e-10).values).all()
    power = inlink.pagerank(A, threads=3, tol=1e-8, method="power")
    assert (power.values == inlink.pagerank(A, threads=1, tol=1e-8, method="power").values).all()
    v = np.random.default_rng(1).random(A.shape[0])
    shared = inlink.pagerank(A, personalization=v, tol=1e-10, threads=2)
    # A direct solve of 6000 equations would take ten seconds. 0.85 to the power of 250 is below rounding.
    P = scipy.sparse.diags_array(1 / np.maximum(A.sum(1), 1)) @ A
    term = v / v.sum()
    series = term.copy()
    for _ in range(250):
        term = 0.85 * (P.T @ term)
        series += term
    assert np.abs(shared.values - series / series.sum()).sum() <= shared.error_bound


def test_it_stops_where_rounding_allows_no_better():
    ranking = inlink.pagerank(web(), tol=1e-30)
    assert not ranking.converged
    assert 1e-30 < ranking.error_bound < 1e-11
    ranking = inlink.pagerank(web(), tol=1e-30, method="power")
    assert not ranking.converged
    assert ranking.error_bound < 1e-11


def test_a_start_near_the_answer_saves_passes():
    A = web()
    cold = inlink.pagerank(A, tol=1e-8)
    warm = inlink.pagerank(A, tol=1e-8, start=cold)
    assert warm.iterations < cold.iterations / 2
    assert warm.converged


@pytest.mark.parametrize("share", [1e-300, 1e-45, 1e-38, 1e-9])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("kept", [1e-12, 1e-3, 1.0])
def test_the_bound_holds_where_jumps_hardly_ever_lead_to_pages_with_links(share, tol, kept):
    A = np.zeros((6, 6))
    A[0, 1] = A[1, 2] = A[2, 0] = A[2, 3] = A[1, 4] = 1
    v = np.array([share, 0, share / 2, 0.5, 0, 0.5])
    ranking = inlink.pagerank(scipy.sparse.csr_array(A), personalization=v, tol=tol, damping=1 - kept / 2)
    off = np.abs(ranking.values - exact(A, 1 - kept / 2, v)).sum()
    assert off <= ranking.error_bound + 1e-9 * (kept < 1e-6)
    assert ranking.converged or ranking.error_bound < 1e-2


def test_damping_one_runs_its_rounds_and_is_never_converged():
    cycle = Graph.from_arcs([(0, 1), (1, 0)])
    rounds = inlink.pagerank(cycle, damping=1, method="power", tol=None, max_iter=3, start=[1, 0])
    assert rounds.values.tolist() == [0, 1]
    assert not rounds.converged
    assert math.isinf(rounds.error_bound)
    assert rounds.iterations == 3


@given(arcs(min_nodes=1), st.integers(0, 15))
def test_the_power_method_without_tol_runs_exactly_max_iter_rounds(a: Arcs, rounds: int):
    """The rounds of many tutorials on MapReduce, which sum the dangling mass in a job of its own."""
    A, n = a.dense(), a.num_nodes
    x, strength = np.full(n, 1 / n), A.sum(1)
    for _ in range(rounds):
        shares = np.where(strength > 0, x / np.where(strength, strength, 1), 0)
        x = 0.85 * (A.T @ shares) + (0.85 * x[strength == 0].sum() + 0.15) / n
    ranking = inlink.pagerank(a.graph(), method="power", tol=None, max_iter=rounds)
    np.testing.assert_allclose(ranking.values, x, rtol=1e-13)
    assert ranking.iterations == rounds
    assert not ranking.converged


def test_trustrank_reaches_what_trust_reaches():
    graph = Graph.from_arcs([("good", "fine"), ("fine", "good"), ("spam", "good"), ("spam", "spam2")])
    ranking = inlink.trustrank(graph, ["good"], tol=1e-10)
    assert ranking["spam"] == ranking["spam2"] == 0
    A = graph.to_scipy().toarray()
    v = np.array([name == "good" for name in graph.names], float)
    np.testing.assert_allclose(ranking.values, exact(A, 0.85, v), atol=1e-10)
    assert ranking.algorithm == "trustrank"
    with pytest.raises(ParameterError, match="at least one page"):
        inlink.trustrank(graph, [])
    with pytest.raises(UnknownNodeError):
        inlink.trustrank(graph, ["nobody"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"damping": 1}, "nothing bounds the error then"),
        ({"personalization": [1.0]}, "must have 2 numbers, one for each node"),
        ({"personalization": [0.0, -1.0]}, "got -1.0 for node 'b'"),
        ({"personalization": [float("nan"), 1]}, "got nan for node 'a'"),
        ({"personalization": [0.0, 0.0]}, "all are 0"),
    ],
)
def test_parameters_outside_their_meaning_are_refused(options, says):
    with pytest.raises(ParameterError, match=says):
        inlink.pagerank(Graph.from_arcs([("a", "b")]), **options)


def test_mappings_name_nodes():
    graph = Graph.from_arcs([("a", "b"), ("b", "a")])
    ranking = inlink.pagerank(graph, personalization={"a": 2.0}, tol=1e-12)
    assert ranking["a"] == pytest.approx(1 / 1.85)
    with pytest.raises(UnknownNodeError, match="no node is named 'c'"):
        inlink.pagerank(graph, personalization={"c": 2.0})


@pytest.mark.parametrize("name", ["web", pytest.param("graphs/cnr-2000", marks=pytest.mark.slow)])
def test_a_second_implementation_agrees(data, name):
    graph = inlink.read(data(name))
    assert (graph.num_nodes, graph.num_arcs) == {
        "web": (3_000, 22_884),
        "graphs/cnr-2000": (325_557, 3_216_152),
    }[name]
    ranking = inlink.pagerank(graph, tol=1e-10)
    assert ranking.converged
    A = graph.to_scipy()
    n = graph.num_nodes
    strength = A.sum(1)
    dangling = strength == 0
    P = scipy.sparse.diags_array(1 / np.where(dangling, 1, strength)) @ A
    PT, x = P.T.tocsr(), np.full(n, 1 / n)
    for _ in range(160):  # 0.85^160 is 5e-12
        x = 0.85 * (PT @ x) + (0.85 * x[dangling].sum() + 0.15) / n
    assert np.abs(ranking.values - x).sum() < 1e-9


def test_sweeps_without_extrapolation_stay_in_their_room():
    graph = Graph.from_arcs([(0, 1), (1, 2), (2, 0), (2, 1)])
    teleport = np.full(1, 1 / 3)
    with linear_problem(graph, teleport, 0.85, False, 1) as problem:
        z = np.full(problem.size, 0.1)
        sweeper, history = Sweeper(problem), LastSweeps(z, problem)
        changes = []
        for _ in range(5 * LONGEST_CYCLE):
            sweeper.sweep(z)
            changes.append(history.observe(z)[0])
            assert history.count <= len(history.differences)
    assert changes[-1] < 1e-6 < changes[0]

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inlink
from inlink import Graph
from inlink.errors import ParameterError, UnknownNodeError
from inlink.rank.spam import anti_trustrank, spam_mass
from strategies import Arcs, arcs
from test_pagerank import dampings, exact, web

both = st.one_of(arcs(min_nodes=1), arcs(min_nodes=1, weighted=True))

# Gyöngyi et al., Figure 2: x, four good pages, seven of spam
FIGURE = [
    ("g0", "x"), ("g2", "x"), ("s0", "x"), ("g1", "g0"), ("s5", "g0"), ("g3", "g2"), ("s6", "g2"),
    ("s1", "s0"), ("s2", "s0"), ("s3", "s0"), ("s4", "s0"),
]  # fmt: skip
# Table 1: scaled p, p', estimated absolute mass, estimated relative mass, for the core g0, g1, g3
TABLE = {
    "x": (9.33, 2.295, 7.035, 0.754),
    "g0": (2.7, 1.85, 0.85, 0.315),
    "g1": (1, 1, 0, 0),
    "g2": (2.7, 0.85, 1.85, 0.685),
    "g3": (1, 1, 0, 0),
    "s0": (4.4, 0, 4.4, 1),
    **{f"s{i}": (1, 0, 1, 1) for i in range(1, 7)},
}


def scaled(A: np.ndarray, c: float, w: np.ndarray) -> np.ndarray:
    """n/(1 − c) times the paper's linear PageRank: the mass of dangling pages is lost."""
    strength = A.sum(1)
    P = A / np.where(strength, strength, 1)[:, None]
    return np.linalg.solve(np.eye(len(A)) - c * P.T, len(A) * w)


def masses(A: np.ndarray, core: list[int], gamma: float, c: float) -> np.ndarray:
    w = np.zeros(len(A))
    w[core] = gamma / len(set(core))
    return 1 - scaled(A, c, w) / scaled(A, c, np.full(len(A), 1 / len(A)))


def test_the_papers_example():
    graph = Graph.from_arcs(FIGURE)
    ranking = spam_mass(graph, ["g0", "g1", "g3"], gamma=3 / 12, tol=1e-10)
    p = inlink.pagerank(graph, tol=1e-12).values * ranking.parameters["scale"]
    for name, (full, good, absolute, relative) in TABLE.items():
        node = graph.node(name)
        assert p[node] == pytest.approx(full, abs=1e-9)
        assert p[node] * ranking[name] == pytest.approx(absolute, abs=1e-9)
        assert p[node] * (1 - ranking[name]) == pytest.approx(good, abs=1e-9)
        assert ranking[name] == pytest.approx(relative, abs=5e-4)
    assert ranking.converged
    assert ranking.dangling == "lost"


@given(
    both,
    st.data(),
    st.sampled_from([0.0, 0.3, 0.85, 0.99]),
    st.sampled_from([0.01, 0.5, 1.0]),
    st.sampled_from(["gauss-seidel", "power"]),
)
def test_it_is_the_linear_one_and_the_bounds_hold(a: Arcs, data, c: float, gamma: float, method: str):
    core = data.draw(st.lists(st.integers(0, a.num_nodes - 1), min_size=1, max_size=4))
    ours = spam_mass(
        a.graph(), core, gamma=gamma, damping=c, tol=1e-7, method=method, max_iter=300_000, threads=1
    )
    theirs = masses(a.dense(), core, gamma, c)
    off = np.abs(ours.values - theirs)
    ratio = np.maximum(1, 1 - theirs)
    assert ours.converged
    assert (off <= ours.parameters["max_error"] * ratio + 1e-11 * ratio).all()
    assert ours.parameters["max_error"] <= 1e-7
    assert off.sum() <= ours.error_bound + 1e-11 * ratio.sum()
    assert ours.error_bound <= 1e-7 * ratio.sum() * 1.01


@settings(max_examples=25)
@given(both, st.integers(0, 12))
def test_an_unconverged_ranking_says_so_and_its_bounds_hold(a: Arcs, rounds: int):
    for method in ("power", "gauss-seidel"):
        for tol in (None, 1e-15):
            ours = spam_mass(a.graph(), [0], tol=tol, max_iter=rounds, method=method)
            off = np.abs(ours.values - masses(a.dense(), [0], 0.85, 0.85))
            assert off.sum() <= ours.error_bound + 1e-11
            assert not ours.converged
            assert ours.iterations <= 2 * rounds
            if ours.parameters["max_error"] is None:
                assert ours.error_bound == np.inf


def test_pages_of_little_rank_are_as_exact_as_others():
    A = web(1000)
    core = list(range(0, 1000, 50))
    theirs = masses(A.toarray(), core, 0.85, 0.85)
    for tol in (1e-4, 1e-10):
        ours = spam_mass(A, core, tol=tol)
        assert ours.converged
        assert ours.parameters["max_error"] <= tol
        assert (np.abs(ours.values - theirs) <= tol * np.maximum(1, 1 - theirs) + 1e-12).all()
    best = spam_mass(A, core, tol=1e-30)
    assert not best.converged
    assert best.parameters["max_error"] < 1e-10


def test_only_pages_of_high_rank_are_told_where_rho_is_given():
    A = web(1000)
    ours = spam_mass(A, [5], rho=10.0)
    p = scaled(A.toarray(), 0.85, np.full(1000, 1 / 1000))
    theirs = np.where(p >= 10, masses(A.toarray(), [5], 0.85, 0.85), 0)
    assert 5 < (p >= 10).sum() < 200
    assert np.abs(ours.values - theirs).sum() <= ours.error_bound
    assert ours.error_bound < spam_mass(A, [5]).error_bound


@given(both, st.data(), dampings)
def test_anti_trustrank_is_trustrank_of_the_reversed_graph(a: Arcs, data, c: float):
    bad = data.draw(st.lists(st.integers(0, a.num_nodes - 1), min_size=1, max_size=4))
    v = np.zeros(a.num_nodes)
    v[bad] = 1
    ours = anti_trustrank(a.graph(), bad, damping=c, tol=1e-9)
    assert np.abs(ours.values - exact(a.dense().T, c, v)).sum() <= ours.error_bound + 1e-12
    assert ours.converged
    assert ours.parameters["spam"] == len(set(bad))
    assert (ours.values == inlink.trustrank(a.graph().transpose(), bad, damping=c, tol=1e-9).values).all()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"trusted": []}, "`trusted` must have at least one page"),
        ({"trusted": "a"}, "`trusted` must be a list of nodes; got 'a'"),
        ({"trusted": {"a": 1.0}}, "`trusted` must be a list of nodes; got {'a': 1.0}"),
        ({"trusted": 3}, "`trusted` must be a list of nodes; got 3"),
        ({"trusted": [None]}, "a whole number or a name; got None"),
    ],
)
def test_what_is_no_list_of_nodes_is_refused(options, says):
    graph = Graph.from_arcs([("a", "b")])
    with pytest.raises(ParameterError, match=says):
        spam_mass(graph, **{"trusted": ["a"], **options})


def test_unknown_pages_are_told():
    graph = Graph.from_arcs([("a", "b")])
    with pytest.raises(UnknownNodeError, match="`trusted`: "):
        spam_mass(graph, ["c"])
    with pytest.raises(UnknownNodeError, match="`spam`: "):
        anti_trustrank(graph, ["c"])
    with pytest.raises(UnknownNodeError, match="`spam`: "):
        anti_trustrank(graph, [2])
    with pytest.raises(ParameterError, match="`spam` must have at least one page"):
        anti_trustrank(graph, [])

"""LinkRank against a slow twin, written from Nutch's formulas, and against a dense solution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink import Graph
from inlink.errors import ParameterError
from inlink.rank.linkrank import linkrank
from inlink.rank.loops import loops
from inlink.rank.nutch_sites import site_names
from nutchfiles import PAGES, domain, page
from strategies import Arcs, arcs
from test_loops import routes


def twin(pairs, names, rounds, *, d=0.85, initial=1.0, limit_page=True, limit_domain=True, dropped=()):
    """Nutch's Counter, Initializer, Inverter and Analyzer; inlinks in the order of their nodes."""
    n = len(names)
    outlinks = {u: sorted({o for v, o in pairs if v == u}) for u in range(n)}
    score = dict.fromkeys(range(n), initial)
    for _ in range(rounds):
        inlinks = {v: [] for v in range(n)}
        for u in range(n):
            for o in outlinks[u]:
                if (u, o) not in dropped:
                    inlinks[o].append((u, score[u] / len(outlinks[u])))
        new = {}
        for v in range(n):
            total, pages, domains = 1 / n, set(), set()
            for u, share in inlinks[v]:
                if limit_page and page(names[u]) in pages:
                    continue
                if limit_domain and domain(names[u]) in domains:
                    continue
                total += share
                pages |= {page(names[u])} - {None}
                domains |= {domain(names[u])} - {None}
            new[v] = (1 - d) + d * total
        score = new
    return [score[v] for v in range(n)]


@st.composite
def webs(draw: st.DrawFn):
    names = draw(st.lists(st.sampled_from(PAGES), min_size=2, max_size=12, unique=True))
    node = st.sampled_from(names)
    pairs = draw(st.lists(st.tuples(node, node), min_size=1, max_size=40))
    graph = Graph.from_arcs(pairs)
    names = list(graph.names)
    return graph, names, [(names.index(u), names.index(o)) for u, o in pairs]


@given(
    webs(),
    st.integers(0, 12),
    st.sampled_from([0.0, 0.5, 0.85, 1.0]),
    st.booleans(),
    st.booleans(),
    st.integers(-1, 3),
)
def test_rounds_are_nutchs(web, rounds, d, limit_page, limit_domain, depth):
    graph, names, pairs = web
    dropped = routes(Arcs(len(names), pairs), depth) if depth >= 0 else ()
    kind = {"limit_page": limit_page, "limit_domain": limit_domain}
    ranking = linkrank(
        graph, max_iter=rounds, damping=d, start=2.0, loops=depth if depth >= 0 else None, **kind
    )
    expected = twin(pairs, names, rounds, d=d, initial=2.0, dropped=dropped, **kind)
    np.testing.assert_allclose(ranking.values, expected, rtol=1e-13)
    assert ranking.iterations == rounds
    assert not ranking.converged


def fixed_point(a: Arcs, d: float) -> np.ndarray:
    A = a.dense()
    M = A / np.maximum(A.sum(axis=1), 1)[:, None]
    n = a.num_nodes
    return np.linalg.solve(np.eye(n) - d * M.T, np.full(n, 1 - d + d / n))


@given(arcs(min_nodes=1), st.sampled_from([0.0, 0.3, 0.85, 0.99]), st.integers(0, 30))
def test_the_bound_holds_and_tol_is_reached(a, d, rounds):
    exact = fixed_point(a, d)
    cut = linkrank(a.graph(), max_iter=rounds, damping=d)
    assert np.abs(cut.values - exact).sum() <= cut.error_bound + 1e-10
    whole = linkrank(a.graph(), tol=1e-9, damping=d)
    assert whole.converged
    assert whole.error_bound <= 1e-9 * a.num_nodes
    assert np.abs(whole.values - exact).sum() <= whole.error_bound + 1e-10
    asked_for_too_much = linkrank(a.graph(), tol=1e-300, damping=d)
    assert asked_for_too_much.converged == (asked_for_too_much.error_bound <= 1e-300 * a.num_nodes)


def test_the_bound_is_not_idle():
    graph = Graph.from_arcs([(0, 1), (1, 0), (1, 2)])
    exact = linkrank(graph, tol=1e-14).values
    for rounds in (0, 1, 10, 50):
        ranking = linkrank(graph, max_iter=rounds)
        assert (
            0
            < np.abs(ranking.values - exact).sum()
            <= ranking.error_bound
            <= 100 * np.abs(ranking.values - exact).sum()
        )


def test_limits_with_tol_cut_short_says_so():
    ranking = linkrank(Graph.from_arcs([(0, 1), (1, 0)]), tol=1e-12, max_iter=5)
    assert (ranking.iterations, ranking.converged) == (5, False)
    assert "not converged" in ranking.verdict()


@pytest.mark.parametrize("name", ["web", pytest.param("graphs/cnr-2000", marks=pytest.mark.soak)])
def test_any_number_of_threads_gives_the_same(data, name):
    graph = inlink.read(data(name))
    one, two = linkrank(graph, tol=1e-9, threads=1), linkrank(graph, tol=1e-9, threads=2)
    assert np.array_equal(one.values, two.values)
    A = graph.to_scipy()
    M = A.T @ (np.ones(1) / np.maximum(graph.outdegrees, 1) * one.values)
    n = graph.num_nodes
    assert np.abs(0.15 + 0.85 / n + 0.85 * M - one.values).sum() / 0.15 <= 2e-9 * n


def test_host_graphs_are_limited_by_domain():
    arcs_ = [("com.example.a", "org.other"), ("com.example.b", "org.other"), ("net.x", "org.other")]
    page_level = Graph.from_arcs(arcs_)
    hosts = Graph(page_level.out_rows, page_level.in_rows, page_level.names, level="host")
    free = linkrank(hosts, max_iter=1, limit_domain=False)["org.other"]
    assert free - linkrank(hosts, max_iter=1)["org.other"] == pytest.approx(0.85)


def test_parameters_without_meaning_are_refused():
    graph = Graph.from_arcs([("a", "b"), ("b", "a")])
    for options in ({"damping": 1, "tol": 1e-6}, {"loops": -1}):
        with pytest.raises(ParameterError):
            linkrank(graph, **options)
    with pytest.raises(ParameterError, match="another graph"):
        linkrank(graph, loops=loops(Graph.from_arcs([("a", "b")])))
    assert linkrank(graph, damping=1).error_bound == np.inf


SITES = [
    (b"http://a.example.com/X?q=1", b"http://a.example.com/x", b"a.example.com", b"example.com"),
    (
        b"HTTP://User:Pw@A.Example.COM:80/x?a?b#F",
        b"http://user:pw@a.example.com:80/x#f",
        b"a.example.com",
        b"example.com",
    ),
    (b"http://h.de/#a?b", b"http://h.de/#a?b", b"h.de", b"h.de"),
    (b"http://x.y.co.uk", b"http://x.y.co.uk", b"x.y.co.uk", b"y.co.uk"),
    (b"http://co.uk/", b"http://co.uk/", b"co.uk", b"co.uk"),
    (b"http://me.github.io/", b"http://me.github.io/", b"me.github.io", b"github.io"),
    (b"http://10.1.2.3:8/p", b"http://10.1.2.3:8/p", b"10.1.2.3", b"10.1.2.3"),
    (b"http://[::1]:8/p", b"http://[::1]:8/p", b"[::1]", b"[::1]"),
    (b"http://a.b.nosuchtld/", b"http://a.b.nosuchtld/", b"a.b.nosuchtld", b"a.b.nosuchtld"),
    (b"ftp://f.example.org./", b"ftp://f.example.org./", b"f.example.org.", b"example.org"),
    (
        b"http://\xff.example.com/\xc4?\xff",
        b"http://\xff.example.com/\xc4",
        b"\xff.example.com",
        b"\xff.example.com",
    ),
    (
        "http://ÄÖ.Example.com/".encode(),
        "http://äö.example.com/".encode(),
        "äö.example.com".encode(),
        b"example.com",
    ),
    (b"mailto:a@b.com", None, None, None),
    (b"http:///x", None, None, None),
    (b"", None, None, None),
]


@pytest.mark.parametrize(("url", "page_", "host", "domain_"), SITES)
def test_pages_hosts_and_domains_of_urls(url, page_, host, domain_):
    import pyarrow as pa

    names = pa.array([url], pa.large_binary())
    assert site_names(names, "page").to_pylist() == [page_]
    assert site_names(names, "host").to_pylist() == [host]
    assert site_names(names, "domain").to_pylist() == [domain_]
    assert site_names(pa.array([], pa.large_binary()), "page").to_pylist() == []

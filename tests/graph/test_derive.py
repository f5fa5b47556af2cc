from functools import cache

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from publicsuffixlist import PublicSuffixList

import inlink
from inlink import Graph
from inlink.cli import commands
from inlink.errors import InputError, ParameterError, UnknownNodeError
from inlink.graph.components import components, largest_component, reachable
from inlink.graph.interop import as_graph, from_networkx, from_scipy
from strategies import Arcs, arcs


def dense(graph: Graph) -> np.ndarray:
    return graph.to_scipy().toarray()


@given(arcs(weighted=True))
def test_transpose_turns_every_arc(a: Arcs):
    graph = a.graph()
    assert (dense(graph.transpose()) == dense(graph).T).all()
    in_memory = from_scipy(graph.to_scipy())
    assert (dense(in_memory.transpose()) == dense(graph).T).all()
    np.testing.assert_allclose(dense(graph), a.dense())


@given(arcs(), st.data())
def test_subgraph_is_the_submatrix(a: Arcs, data):
    keep = data.draw(st.lists(st.booleans(), min_size=a.num_nodes, max_size=a.num_nodes))
    mask = np.array(keep, np.bool_)
    graph = a.graph()
    part = graph.subgraph(mask)
    assert (dense(part) == a.dense()[np.ix_(mask, mask)]).all()
    assert (dense(graph.subgraph(np.flatnonzero(mask))) == dense(part)).all()
    assert part.from_parent.tolist() == [int(mask[:i].sum()) if k else 2**32 - 1 for i, k in enumerate(keep)]


def test_subgraph_keeps_names_and_finds_them():
    names = ["d", "a", "c", "b"]
    graph = from_networkx(nx.DiGraph([("d", "a"), ("a", "c"), ("c", "b"), ("b", "d")]))
    assert graph.names[:] == names
    part = graph.subgraph(["b", "d", "c"])
    assert part.names[:] == ["d", "c", "b"]
    assert [part.node(n) for n in ("b", "c", "d")] == [2, 1, 0]
    assert part.outlinks("b").tolist() == [0]
    with pytest.raises(UnknownNodeError):
        graph.subgraph(["x"])
    with pytest.raises(UnknownNodeError):
        graph.subgraph([4])
    with pytest.raises(ParameterError, match="mask"):
        graph.subgraph(np.array([True]))


def site(url: str) -> str | None:
    host = url.split("/")[2]
    return None if host[0].isdigit() else ".".join(reversed(host.split(".")))


urls = st.sampled_from(
    [
        f"http://{host}/{path}"
        for host in ("a.example.com", "b.example.com", "example.org", "www.example.org", "10.0.0.1")
        for path in ("", "x", "y")
    ]
)


@given(st.lists(st.tuples(urls, urls), min_size=1, max_size=40), st.booleans())
def test_fold_is_a_group_by(pairs, self_loops):
    graph = Graph.from_arcs(pairs)
    if all(site(u) is None for pair in pairs for u in pair):
        return
    folded = graph.fold("host", self_loops=self_loops)
    expected: dict[tuple[str, str], int] = {}
    for a, b in set(pairs):
        if site(a) and site(b) and (self_loops or site(a) != site(b)):
            expected[site(a), site(b)] = expected.get((site(a), site(b)), 0) + 1
    names = sorted({site(u) for pair in pairs for u in pair} - {None})
    assert folded.names[:] == names
    assert folded.level == "host"
    found = dense(folded)
    assert {(names[i], names[j]): found[i, j] for i, j in zip(*found.nonzero(), strict=True)} == expected
    for i, url in enumerate(graph.names):
        where = int(folded.from_parent[i])
        assert (names[where] if where != 2**32 - 1 else None) == site(url)
    assert folded.meta["left_out"] == sum(site(u) is None for u in graph.names)
    assert folded.meta["parent"] == graph.uuid
    domains = folded.fold("domain")
    assert set(domains.names) <= {"com.example", "org.example"}
    assert dense(domains).sum() == dense(graph.fold("domain")).sum()


# -- lists of hosts ---------------------------------------------------------------------------------------------------

PLAIN_HOSTS = [
    "www.example.com",
    "shop.example.com",
    "b.co.uk",
    "a.b.co.uk",
    "xn--mnchen-3ya.de",
    "x.github.io",
]
NO_HOSTS = [
    "localhost",
    "com",
    "10.0.0.1",
    "1.2.3.4:80",
    "a.invalid",
    "-",
    "a..com",
    "example.com/x",
    "me@example.com",
]


def reverse(host: str) -> str:
    return ".".join(reversed(host.split(".")))


@cache
def suffix_list() -> PublicSuffixList:
    return PublicSuffixList(only_icann=True)


def twin(host: str, level: str) -> str | None:
    """The reversed host or domain of a host as it is written, by the public suffix list alone."""
    host = host.lower().replace("münchen", "xn--mnchen-3ya").partition(":")[0].removesuffix(".")
    if host not in PLAIN_HOSTS:
        return None
    return reverse(host if level == "host" else suffix_list().privatesuffix(host))


@st.composite
def written_hosts(draw: st.DrawFn) -> str:
    """A host in one of the ways to write it, or a name that is none."""
    host = draw(st.sampled_from(PLAIN_HOSTS + NO_HOSTS))
    if host in PLAIN_HOSTS:
        if draw(st.booleans()):
            host = host.replace("xn--mnchen-3ya", "münchen")
        host = draw(st.sampled_from([host, host.upper(), f"{host}.", f"{host}:8080"]))
    return host


@given(
    st.lists(st.tuples(written_hosts(), written_hosts()), min_size=1, max_size=20),
    st.sampled_from(["host", "domain"]),
    st.booleans(),
    st.booleans(),
)
def test_a_list_of_hosts_is_folded_as_by_the_public_suffix_list(pairs, level, backward, declared):
    def written(host: str) -> str:
        name, colon, port = host.partition(":")
        return (reverse(name) if backward else name) + colon + port

    pairs = [("www.example.com", "b.co.uk"), *pairs]
    names = {written(end): end for pair in pairs for end in pair}
    form = "reversed" if backward else "plain"
    graph = Graph.from_arcs([(written(a), written(b)) for a, b in pairs])
    folded = graph.fold(level, self_loops=True, hosts=form if declared else None)
    expected = {twin(host, level) for host in names.values()} - {None}
    assert set(folded.names) == expected
    assert folded.meta["hosts"] == form
    assert folded.meta["left_out"] == sum(twin(host, level) is None for host in names.values())
    for name, place in zip(graph.names, folded.from_parent.tolist(), strict=True):
        assert (None if place == 2**32 - 1 else folded.names[place]) == twin(names[name], level)
    # By way of hosts, the domains are the same.
    if level == "domain":
        assert set(graph.fold("host", self_loops=True, hosts=form).fold("domain").names) == expected


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["de.com", "io.dev"], r"'de.com' \(a plain or a reversed host\)"),
        (
            ["com.example.www", "www.example.com"],
            r"'www.example.com' \(a plain host\), 'com.example.www' \(a rev",
        ),
        (
            ["http://a.com/", "www.example.com"],
            r"'www.example.com' \(a plain host\), 'http://a.com/' \(a URL\)",
        ),
    ],
)
def test_hosts_that_are_ambiguous_or_mixed_are_refused_and_can_be_declared(tmp_path, names, said):
    (tmp_path / "l.tsv").write_text("\t".join(names) + "\n")
    for level in ("host", "domain"):
        with pytest.raises(ParameterError, match=rf"do not tell.*{said}.*--hosts reversed.*--hosts plain"):
            inlink.read(tmp_path / "l.tsv", level=level)
        for form in ("plain", "reversed"):
            graph = inlink.read(tmp_path / "l.tsv", level=level, hosts=form)
            assert (graph.level, graph.meta["hosts"]) == (level, form)


def test_the_commands_print_how_hosts_were_read(tmp_path):
    def said(*given: object) -> str:
        run = CliRunner().invoke(commands, [*map(str, given)], catch_exceptions=False)
        assert run.exit_code == 0, run.output
        return run.output

    for name, text, form in (
        ("r", "com.example.www\torg.test.a\norg.test.b\tlocalhost\n", "reversed hosts (com.example.www)"),
        ("p", "www.example.com\ta.test.org\nb.test.org\t10.0.0.1\n", "plain hosts (www.example.com)"),
    ):
        (tmp_path / f"{name}.tsv").write_text(text)
        told = said("build", tmp_path / f"{name}.tsv", "--level", "host", "-o", tmp_path / name)
        assert f"names are {form}" in told
        assert "left out: 1 node without a host" in told
        graph = Graph.open(tmp_path / name)
        assert (graph.level, list(graph.names)) == ("host", ["com.example.www", "org.test.a", "org.test.b"])
        said("fold", tmp_path / name, "--level", "domain", "-o", tmp_path / "d")
        assert list(Graph.open(tmp_path / "d").names) == ["com.example", "org.test"]
        # A list that was built without a level is folded as well.
        said("build", tmp_path / f"{name}.tsv", "-o", tmp_path / "n")
        assert f"names are {form}" in said("fold", tmp_path / "n", "--level", "domain", "-o", tmp_path / "d")
        assert list(Graph.open(tmp_path / "d").names) == ["com.example", "org.test"]
    with pytest.raises(
        ParameterError, match="`hosts` does not apply: the nodes of this graph are hosts already"
    ):
        Graph.open(tmp_path / "p").fold("domain", hosts="plain")
    with pytest.raises(ParameterError, match="`hosts` applies only if `level` is 'host' or 'domain'"):
        inlink.read(tmp_path / "p.tsv", hosts="plain")


def test_fold_refuses_what_has_no_hosts():
    with pytest.raises(ParameterError, match="no names"):
        Graph.from_arcs([(0, 1)]).fold("host")
    with pytest.raises(ParameterError, match="the first is named 'Apple'"):
        Graph.from_arcs([("Apple", "Pear")]).fold("host")
    with pytest.raises(ParameterError, match="'host' or 'domain'"):
        Graph.from_arcs([("http://a.com/", "http://b.com/")]).fold("page")


def test_without_internal_drops_only_what_stays_inside():
    a, b, c = "http://a.example.com/", "http://b.example.com/", "http://example.org/"
    graph = Graph.from_arcs(
        [(a, a), (a, a + "x"), (a, b), (b, c), (c, c + "y"), ("no url", c), ("no url", "no url")]
    )
    kept = graph.without_internal("host")
    named = {(kept.names[i], kept.names[int(j)]) for i in range(kept.num_nodes) for j in kept.outlinks(i)}
    assert named == {(a, b), (b, c), ("no url", c)}
    assert kept.num_nodes == graph.num_nodes
    kept = graph.without_internal("domain")
    named = {(kept.names[i], kept.names[int(j)]) for i in range(kept.num_nodes) for j in kept.outlinks(i)}
    assert named == {(b, c), ("no url", c)}


@given(arcs())
def test_components_are_networkx_components(a: Arcs):
    graph = a.graph()
    G = nx.DiGraph()
    G.add_nodes_from(range(a.num_nodes))
    G.add_edges_from(a.pairs)
    for strong, theirs in ((False, nx.weakly_connected_components), (True, nx.strongly_connected_components)):
        label = components(graph.out_rows, strong=strong)
        mine = {frozenset(np.flatnonzero(label == x).tolist()) for x in set(label.tolist())}
        assert mine == {frozenset(c) for c in theirs(G)}
        largest = largest_component(graph.out_rows, strong=strong)
        if a.num_nodes:
            best = max(len(c) for c in mine)
            assert set(np.flatnonzero(largest).tolist()) == min((c for c in mine if len(c) == best), key=min)
    for seed in range(min(3, a.num_nodes)):
        assert set(np.flatnonzero(reachable(graph.out_rows, [seed])).tolist()) == nx.descendants(G, seed) | {
            seed
        }


def test_a_deep_chain_needs_no_recursion():
    n = 200_000
    chain = np.stack([np.arange(n), (np.arange(n) + 1) % n], 1)
    graph = Graph.from_arcs(chain)
    assert len(set(components(graph.out_rows, strong=True).tolist())) == 1
    assert graph.reachable([5]).num_nodes == n
    assert graph.largest_component(strong=True).num_arcs == n


@given(arcs())
def test_info_counts(a: Arcs):
    graph, A = a.graph(), a.dense()
    found = graph.info()
    off = A * (1 - np.eye(a.num_nodes))
    assert (found.nodes, found.arcs, found.self_loops) == (a.num_nodes, int(A.sum()), int(np.trace(A)))
    assert found.dangling == int((A.sum(1) == 0).sum())
    assert found.islands == int(((off.sum(0) == 0) & (off.sum(1) == 0)).sum())
    if a.num_nodes:
        assert found.max_indegree == A.sum(0).max()
        assert found.max_indegree_node == int(A.sum(0).argmax())
        assert found.components == scipy.sparse.csgraph.connected_components(A)[0]
    assert found.bytes > 0 or a.num_nodes == 0


@given(arcs(weighted=True))
def test_networkx_and_scipy_come_and_go(a: Arcs):
    graph = a.graph()
    back = as_graph(graph.to_networkx())
    assert (dense(back) == dense(graph)).all()
    matrix = graph.to_scipy()
    assert matrix.nnz == 0 or np.shares_memory(matrix.indices, graph.out_rows.nodes)
    assert (dense(as_graph(matrix)) == dense(graph)).all()
    assert (dense(as_graph(scipy.sparse.coo_matrix(matrix))) == dense(graph)).all()


def test_multigraphs_count_and_undirected_edges_go_both_ways():
    G = nx.MultiDiGraph([("x", "y"), ("x", "y"), ("y", "x")])
    assert dense(as_graph(G)).tolist() == [[0, 2], [1, 0]]
    assert dense(as_graph(nx.Graph([(0, 1)]))).tolist() == [[0, 1], [1, 0]]
    assert as_graph(nx.DiGraph()).num_nodes == 0
    with pytest.raises(InputError, match="same name '1'"):
        as_graph(nx.DiGraph([(1, "1")]))
    with pytest.raises(ParameterError, match="square"):
        as_graph(scipy.sparse.csr_array((2, 3)))
    with pytest.raises(ParameterError, match="an arc must be a pair"):
        as_graph([1])
    with pytest.raises(ParameterError, match=r"above 0; got -1\.0"):
        as_graph(scipy.sparse.csr_array([[0, -1.0], [0, 0]]))


def test_matrices_that_are_not_canonical_are_summed_and_left_alone():
    given_matrix = scipy.sparse.csr_array((np.array([1.0, 2.0, 0.0]), [1, 1, 0], [0, 3, 3]), shape=(2, 2))
    graph = as_graph(given_matrix)
    assert dense(graph).tolist() == [[0, 3], [0, 0]]
    assert given_matrix.nnz == 3

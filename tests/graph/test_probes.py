"""What users of NetworkX and igraph try first: it works as it does there, or one line says what to call."""

import re
from collections.abc import Callable
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars
import pytest

import inlink
from inlink import Graph, Ranking
from inlink.errors import ParameterError, UnknownNodeError
from inlink.graph.names import Names

WEB = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "a"), ("c", "c"), ("d", "c")]
NUMBERS = [("abcd".index(source), "abcd".index(target)) for source, target in WEB]


def value(probe: str, **scope: Any) -> Any:
    return eval(probe, scope)  # noqa: S307 - the probes stand in this file


def reopened(tmp_path: Any, pairs: Any) -> Graph:
    return inlink.read(Graph(pairs), into=tmp_path / "graph", compress=True)


GRAPHS: dict[str, Callable[[Any, Any], Graph]] = {
    "built": lambda _, pairs: Graph.from_arcs(pairs),
    "compressed": reopened,
    "turned twice": lambda _, pairs: Graph([pair[::-1] for pair in pairs]).transpose(),
    "without inlinks": lambda _, pairs: inlink.read(nx.DiGraph(pairs)),
}


@pytest.fixture(params=GRAPHS)
def make(request: Any, tmp_path: Any) -> Callable[[Any], Graph]:
    return lambda pairs: GRAPHS[request.param](tmp_path, pairs)


AS_IN_NETWORKX = """
len(G)
list(G)
sorted(G)
bool(G)
'a' in G
'z' in G
0 in G
None in G
1.5 in G
set(G) & {'a', 'z'}
list(G.nodes)
list(G.nodes())
len(G.nodes)
'a' in G.nodes
sorted(G.edges)
sorted(G.edges())
len(G.edges)
('a', 'b') in G.edges
('b', 'a') in G.edges
('a', 'z') in G.edges
sorted(G.successors('a'))
sorted(G.predecessors('c'))
sorted(G.neighbors('c'))
list(G.successors('b'))
list(G.predecessors('d'))
G.degree('c')
G.degree['c']
G.degree()['c']
G.in_degree('c')
G.in_degree['d']
G.out_degree('c')
G.out_degree['b']
dict(G.degree)
dict(G.degree())
dict(G.in_degree())
sorted(number for _, number in G.out_degree())
max(G.degree, key=lambda pair: pair[1])
len(G.degree)
[G.in_degree(node) for node in G]
{node: G.out_degree[node] for node in G}
G == G
G == 3
G.is_directed()
G.is_multigraph()
len(R)
list(R)
list(R.keys())
'a' in R
'z' in R
round(R['c'], 8)
round(R.get('c'), 8)
R.get('z')
R.get('z', 0.0)
{node: round(value, 8) for node, value in R.items()}
{node: round(value, 8) for node, value in dict(R).items()}
max(R, key=R.get)
sorted(R, key=R.get, reverse=True)
sorted(R.items(), key=lambda item: -item[1])[0][0]
[round(R[node], 8) for node in G]
pd.Series(dict(R)).idxmax()
pd.Series(R.get(node) for node in G).round(8).tolist()
{**R}.keys()
"""


@pytest.mark.slow
@pytest.mark.parametrize("probe", AS_IN_NETWORKX.strip().splitlines())
def test_as_in_networkx(make: Callable[[Any], Graph], probe: str):
    theirs = nx.DiGraph(WEB)
    ours = make(WEB)
    expected = value(probe, pd=pd, G=theirs, R=nx.pagerank(theirs, tol=1e-12))
    assert value(probe, pd=pd, G=ours, R=inlink.pagerank(ours, tol=1e-12)) == expected


AS_IN_IGRAPH = """
g.successors(0)
sorted(g.predecessors(2))
g.degree(2)
[g.degree(node) for node in range(5)]
len(g.successors(4))
g.is_directed()
"""


@pytest.mark.parametrize("probe", AS_IN_IGRAPH.strip().splitlines())
def test_as_in_igraph(probe: str):
    theirs = igraph.Graph(n=5, edges=NUMBERS, directed=True)
    expected = value(probe, g=theirs)
    for ours in (inlink.read(theirs), Graph.from_arcs(NUMBERS, num_nodes=5)):
        assert value(probe, g=ours) == expected


@pytest.mark.parametrize(
    ("probe", "error", "remedy"),
    [
        ("G.number_of_nodes()", AttributeError, "a Graph has no attribute 'number_of_nodes': use graph.num_nodes"),
        ("G.vcount()", AttributeError, "use graph.num_nodes"),
        ("G.has_edge('a', 'b')", AttributeError, "use (source, target) in graph.edges"),
        ("G.add_edge('a', 'b')", AttributeError, "use inlink.Graph(links)"),
        ("G.nonsense", AttributeError, "a Graph has no attribute 'nonsense'"),
        ("G.successors('z')", UnknownNodeError, "no node is named 'z'"),
        ("G.degree('z')", KeyError, "no node is named 'z'"),
        ("G.in_degree[9]", KeyError, "no node 9"),
        ("G.nodes['a']", TypeError, "'str' object cannot be interpreted as an integer"),
        ("N.successors('a')", UnknownNodeError, "there are no names here: give a number instead of 'a'"),
        ("inlink.pagerank(N)['a']", KeyError, "there are no names here: give a number instead of 'a'"),
        ("inlink.pagerank(G, alpha=0.9)", TypeError, "keyword argument 'alpha': it is `damping` here"),
        ("inlink.pagerank(G, weight='weight')", TypeError, "it is `weighted` here"),
        ("inlink.pagerank(G, nstart={})", TypeError, "it is `start` here"),
        ("inlink.pagerank(G, eps=0.1)", TypeError, "it is `tol` here"),
        ("inlink.pagerank(G, niter=9)", TypeError, "it is `max_iter` here"),
        ("inlink.pagerank(G, reset=[1])", TypeError, "it is `personalization` here"),
        ("inlink.pagerank(G=G)", TypeError, "it is `graph` here"),
        ("inlink.degree(G, mode='in')", TypeError, "it is `direction` here"),
        ("inlink.degree(G, alpha=1)", TypeError, "unexpected keyword argument 'alpha'"),
        ("inlink.read('x', sep=',')", TypeError, "it is `separator` here"),
        ("inlink.pagerank('links.tsv')", ParameterError, "got str. inlink.read makes a Graph of a file"),
        ("inlink.pagerank({'a': ['b']})", ParameterError, "got dict. Give pairs: [(node, target) for"),
        ("inlink.pagerank(np.eye(2))", ParameterError, "got ndarray of shape (2, 2). scipy.sparse.csr_array(array)"),
        ("inlink.pagerank([('a', 'b', 2.0)])", ParameterError, "inlink.Graph.from_arcs(pairs, weights=weights)"),
        ("inlink.pagerank(polars.LazyFrame({'a': [0], 'b': [1]}))", ParameterError, "Call its .collect() first"),
        ("inlink.read(Delayed())", ParameterError, "got Delayed. Call its .compute() first"),
        ("inlink.Graph([('a', 'b')], level='host')", ParameterError, "apply only to Rows; got a list"),
        ("inlink.Graph(3)", ParameterError, "`graph` must be a Graph, pairs of nodes, "),
        ("inlink.pagerank(['a.tsv', 'b.tsv'])", ParameterError, "got 'a.tsv'. If these are paths, use inlink.read"),
        ("inlink.read([1, 2])", ParameterError, "an arc must be a pair (source, target); got 1"),
    ],
)  # fmt: skip
def test_one_line_says_what_to_call(probe: str, error: type[Exception], remedy: str):
    class Delayed:
        def compute(self) -> None:
            pass

    with pytest.raises(error, match=re.escape(remedy)) as caught:
        value(probe, inlink=inlink, np=np, polars=polars, Delayed=Delayed, G=Graph(WEB), N=Graph(NUMBERS))
    assert "\n" not in str(caught.value)


def in_igraph(directed: bool) -> igraph.Graph:
    return igraph.Graph.TupleList(WEB, directed=directed, vertex_name_attr="name")


SOURCES: dict[str, Callable[[], Any]] = {
    "list": lambda: WEB,
    "lists": lambda: [list(pair) for pair in WEB],
    "tuple": lambda: tuple(WEB),
    "set": lambda: set(WEB),
    "generator": lambda: (pair for pair in WEB),
    "array of names": lambda: np.array(WEB),
    "array of objects": lambda: np.array(WEB, object),
    "edges": lambda: Graph(WEB).edges,
    "graph": lambda: Graph(WEB),
    "transposed": lambda: Graph([pair[::-1] for pair in WEB]).transpose(),
    "networkx": lambda: nx.DiGraph(WEB),
    "igraph": lambda: in_igraph(directed=True),
    "pandas": lambda: pd.DataFrame(WEB),
    "polars": lambda: polars.DataFrame(WEB, orient="row"),
    "rows": lambda: polars.DataFrame(WEB, orient="row").rows(),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_door_takes_links_in_memory(name: str):
    made = Graph.from_arcs(WEB)
    for graph in (Graph(SOURCES[name]()), inlink.read(SOURCES[name]())):
        assert (graph, hash(graph)) == (made, hash(made))
        assert graph.inlinks("c").tolist() == made.inlinks("c").tolist()
    assert dict(inlink.pagerank(SOURCES[name]())) == pytest.approx(dict(inlink.pagerank(made)), abs=2e-6)


MATRIX = nx.to_scipy_sparse_array(nx.DiGraph(NUMBERS), nodelist=range(4))


@pytest.mark.parametrize("numbers", [NUMBERS, np.array(NUMBERS), np.array(NUMBERS, "u1"), MATRIX])
def test_numbers_are_nodes_without_names(numbers: Any):
    graph = Graph(numbers)
    assert graph == Graph.from_arcs(NUMBERS) == inlink.read(numbers)
    assert list(graph) == [0, 1, 2, 3]
    assert (0 in graph, np.int64(3) in graph, 4 in graph, -1 in graph, True in graph, "0" in graph) == (
        (True, True) + (False,) * 4
    )
    assert graph.successors(np.uint32(0)) == [1, 2]
    assert list(inlink.pagerank(graph)) == [0, 1, 2, 3]


def test_an_igraph_graph_keeps_its_order_weights_and_directions():
    graph = igraph.Graph(
        n=3, edges=[(2, 0), (0, 2), (1, 1)], vertex_attrs={"name": ["z", "y", 7]}, edge_attrs={"weight": [1, 2, 4]}
    )  # fmt: skip
    result = inlink.read(graph)
    assert (list(result), list(result.edges)) == (["z", "y", "7"], [("z", "7"), ("y", "y"), ("7", "z")])
    assert result.out_weights.tolist() == [3, 4, 3]
    assert result == inlink.read(result.to_igraph())
    parallel = igraph.Graph(n=4, edges=[(0, 1), (0, 1)], directed=True)
    assert inlink.read(parallel).out_weights.tolist() == [2]
    assert (len(inlink.read(parallel)), len(inlink.read(igraph.Graph()))) == (4, 0)


def test_a_node_is_found_by_its_name_in_text_or_bytes_or_by_its_number():
    graph = Graph([("\u00e9", 'q"\t'), (b"\xff", "\u00e9")])
    assert list(graph) == ['q"\t', "\u00e9", "\udcff"]
    for node, number in zip(graph, range(3), strict=True):
        raw = node.encode("utf-8", "surrogateescape")
        assert node in graph
        assert raw in graph
        assert number not in graph
        assert graph.successors(node) == graph.successors(raw) == graph.successors(number)
        assert [graph.degree(each) for each in (node, raw, number)] == [graph.degree[node]] * 3


def test_names_are_found_in_any_order():
    names = [f"n{k:03}" for k in (7, 3, 99, 0, 500, 42)]
    column = Names.of(names)
    for order in (names, names[::-1], names[::2] + names[1::2], [*names, *names]):
        assert [column.find(name) for name in order] == [names.index(name) for name in order]
    assert "n001" not in column


@pytest.mark.parametrize(
    "other",
    [
        Graph(WEB[1:]),
        Graph([*WEB[:-1], ("d", "b")]),
        Graph([*WEB[:-1], ("e", "c")]),
        Graph([*WEB, ("e", "e")]),
        Graph(NUMBERS),
        Graph.from_arcs(WEB, weights=[2.0] * 6),
        inlink.read(nx.DiGraph(WEB[::-1])),
        Graph(WEB).transpose(),
    ],
)
def test_other_graphs_are_not_equal(other: Graph):
    assert Graph(WEB) != other
    assert other == Graph(other)


def test_weights_are_compared():
    first, same, other = (Graph.from_arcs(WEB, weights=[2.0] * 5 + [last]) for last in (3, 3.0, 4))
    assert first == same != other


def test_degrees_of_a_node_build_no_rows(tmp_path: Any):
    """Neither the rows of a compressed graph nor the inlinks of a matrix are made."""
    for graph in (reopened(tmp_path, WEB), inlink.read(nx.DiGraph(WEB))):
        assert (graph.degree("c"), graph.in_degree["c"], graph.out_degree("c"), "c" in graph) == (
            6,
            4,
            2,
            True,
        )
        assert not {"out_rows", "in_rows", "split_in_rows"} & graph.__dict__.keys()


def test_a_ranking_is_an_array_for_numpy_and_a_mapping_for_the_rest():
    ranking = inlink.pagerank(WEB)
    assert np.asarray(ranking).tolist() == list(ranking.values) == list(dict(ranking).values())
    assert np.asarray(ranking, np.float32).dtype == np.float32
    assert np.shares_memory(np.asarray(ranking), ranking.values)
    assert float(np.sum(ranking)) == pytest.approx(1)
    assert pd.Series(dict(ranking)).to_dict() == pd.Series(ranking.to_dict()).to_dict() == dict(ranking)
    assert pd.Series(ranking).tolist() == list(ranking.values)
    assert polars.DataFrame(ranking)["name"].to_list() == list(ranking)
    assert inlink.pagerank(WEB, personalization=ranking)["c"] > ranking["c"]
    bare = Ranking(np.array([2.0, 1.0]), algorithm="x")
    assert (dict(bare), 1 in bare, 2 in bare, bare.get(5, -1.0)) == ({0: 2.0, 1: 1.0}, True, False, -1.0)


def test_completion_offers_the_interface_alone():
    import inlink.cli

    assert dir(inlink) == sorted(inlink.__all__)

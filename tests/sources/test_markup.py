"""Graphs in GraphML, GEXF and GML."""

import networkx as nx
import pytest

from graphfiles import content, read
from inlink import Graph
from inlink.errors import InputError
from inlink.sources.write import write_graph


@pytest.mark.parametrize("directed", [True, False])
def test_networkx_writes_what_we_read(tmp_path, directed):
    graph = nx.gnm_random_graph(30, 80, seed=4, directed=directed)
    nx.set_edge_attributes(graph, {edge: k % 5 + 0.5 for k, edge in enumerate(graph.edges)}, "weight")
    graph = nx.relabel_nodes(graph, {k: f"n<{k}>&é" for k in range(29)})
    wanted = {(str(s).encode(), str(t).encode()): w for s, t, w in graph.to_directed().edges(data="weight")}
    nx.write_graphml(graph, tmp_path / "g.graphml")
    nx.write_gexf(graph, tmp_path / "g.gexf")
    nx.write_gml(graph, tmp_path / "g.gml", stringizer=str)
    for name in ("g.graphml", "g.gexf", "g.gml"):
        assert content(read(tmp_path / name)) == ({str(node).encode() for node in graph}, wanted)


def test_we_write_what_networkx_reads(tmp_path):
    graph = Graph.from_arcs([("a", "b"), ("b", "c"), ("c", "c")], weights=[1.5, 2.5, 3.0])
    write_graph(graph, tmp_path / "g.graphml")
    write_graph(graph, tmp_path / "g.gexf")
    for found in (nx.read_graphml(tmp_path / "g.graphml"), nx.read_gexf(tmp_path / "g.gexf")):
        label = nx.get_node_attributes(found, "label")
        arcs = {(label[s], label[t]): w for s, t, w in found.edges(data="weight")}
        assert arcs == {("a", "b"): 1.5, ("b", "c"): 2.5, ("c", "c"): 3.0}


BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;">]><{0}><node id="&b;"/></{0}>'
GML = 'graph [ directed 1 node [ id 1 label "a" ] node [ id 2 label "b&amp;c" graphics [ x 1 ] ] {} ]'


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.graphml", BOMB.format("graphml"), r"g\.graphml, line 1: the file declares an entity"),
        ("g.gexf", BOMB.format("gexf"), r"g\.gexf, line 1: the file declares an entity"),
        ("g.graphml", "<graphml>\n<graph><node/></graph></graphml>", r"line 2: node without id"),
        (
            "g.graphml",
            "<graphml><graph><edge source='a'/></graph></graphml>",
            r"edge without source or target",
        ),
        ("g.graphml", "<graphml><graph><hyperedge/></graph></graphml>", r"hyperedges cannot be read"),
        ("g.graphml", "<graphml><graph>", r"not well-formed XML \(no element found\)"),
        (
            "g.gexf",
            "<gexf><graph><edge source='a' target='b' weight='-1'/></graph></gexf>",
            r"weight of an edge must be .* got '-1'",
        ),
        ("g.gexf", "<?xml version='1.0' encoding='x-no'?><gexf/>", r"g\.gexf"),
        ("g.gml", GML.format("edge [ source 1 target 2 weight 0 ]"), r"weight of an edge must be .* got '0'"),
        ("g.gml", GML.format("edge [ source 1 ]"), r"line 1: edge without source or target"),
        ("g.gml", GML[:-2].format("edge ["), r"ends inside graph edge"),
        ("g.gml", GML.format('edge [ label "x'), r"the quote is not closed"),
        ("g.gml", GML.format("] ]"), r"\] without \["),
        ("g.gml", GML.format("\n="), r"line 2: not GML: '= \](\\n)?'"),
        ("g.gml", GML.format("x [ " * 200), r"too deep"),
    ],
)
def test_wrong_markup(tmp_path, at, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read(at(tmp_path / name), name[2:])


def test_a_tag_without_end_is_bounded(tmp_path, monkeypatch):
    from inlink.sources import markup

    monkeypatch.setattr(markup, "MAX_LINE", 100_000)
    monkeypatch.setattr(markup, "_BYTES", 10_000)
    (tmp_path / "g.graphml").write_text("<graphml><graph><node id='" + "x" * 500_000)
    with pytest.raises(InputError, match="tag of more than"):
        read(tmp_path / "g.graphml")


def test_labels_and_ids(tmp_path):
    node = '<node id="{}" label="{}"/>'
    for labels, wanted in ((("x", "y"), {b"x", b"y"}), (("x", "x"), {b"0", b"1"})):
        nodes = "".join(node.format(k, label) for k, label in enumerate(labels))
        (tmp_path / "g.gexf").write_text(f"<gexf><graph><nodes>{nodes}</nodes></graph></gexf>")
        assert content(read(tmp_path / "g.gexf"))[0] == wanted
    (tmp_path / "g.gml").write_text(
        GML.format("edge [ source 2 target 1 value 2 ] edge [ source 2 target 1 ]")
    )
    assert content(read(tmp_path / "g.gml")) == ({b"a", b"b&c"}, {(b"b&c", b"a"): 3})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "nodes", "arcs"), [("hosts.gml", 196, 514), ("graphs/polblogs.gml", 1490, 19_015)]
)
def test_gml_in_which_arcs_stand_twice(data, name, nodes, arcs):
    graph = read(data(name))
    assert (graph.num_nodes, graph.num_arcs) == (nodes, arcs)


@pytest.mark.parametrize(("name", "nodes"), [("domains.graphml", 196), ("graphs/4867-gephi.graphml", 1845)])
def test_graphml_in_which_an_arc_stands_for_each_day(data, name, nodes):
    graph = read(data(name))
    oracle = nx.read_graphml(data(name))
    assert graph.num_nodes == nodes
    assert graph.num_arcs == len({(s, t) for s, t, *_ in oracle.edges}) < oracle.number_of_edges()
    assert graph.out_rows.weights.sum() == sum(weight for _, _, weight in oracle.edges(data="weight"))
    assert set(graph.names) == set(nx.get_node_attributes(oracle, "label").values())

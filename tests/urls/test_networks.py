"""Other programs read the same graph from our JSON, Pajek, DOT, GML and HTML."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import inlink
from browser import MISSING, browser
from graphfiles import read
from inlink import Graph
from inlink.errors import OutputError, ParameterError, UnknownNodeError
from inlink.graph.names import Names
from inlink.urls.labels import short_labels
from strategies import arcs

_HOSTILE = "</script><script>alert(1)</script> <!-- &lt;b&gt; a\"b a'b \u2028x @data@ %3Cb%3E"
HOSTILE = [*_HOSTILE.split(" "), ""]
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8) | st.sampled_from(HOSTILE)
QUICK = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def named(draw: st.DrawFn, text: st.SearchStrategy[str] = TEXT) -> Graph:
    graph = draw(arcs(weighted=True) | arcs()).graph()
    if draw(st.booleans()):
        size = graph.num_nodes
        names = draw(st.lists(text, unique=True, min_size=size, max_size=size))
        graph = Graph(graph.out_rows, names=Names.of(names))
    return graph


def edges(graph: Graph) -> dict[tuple[int, int], float]:
    weights = [1.0] * graph.num_arcs if graph.out_rows.weights is None else graph.out_rows.weights.tolist()
    return dict(zip(graph.edges.numbers, weights, strict=True))


def same(found: Any, graph: Graph, *, label: str) -> None:
    assert found.is_directed()
    assert not found.is_multigraph()
    assert sorted(found) == list(range(graph.num_nodes))
    assert {(i, j): data.get("weight", 1.0) for i, j, data in found.edges(data=True)} == edges(graph)
    if graph.names is not None:
        assert [found.nodes[k][label] for k in range(graph.num_nodes)] == list(graph.names)


@QUICK
@given(named())
def test_networkx_reads_the_json(tmp_path_factory, graph: Graph):
    path = tmp_path_factory.mktemp("json") / "g.json"
    inlink.write(graph, path, columns={"rank": np.linspace(0, 1, graph.num_nodes)})
    value = json.loads(path.read_text(encoding="utf-8"))
    same(nx.node_link_graph(value, edges="links"), graph, label="name")
    assert [node["rank"] for node in value["nodes"]] == np.linspace(0, 1, graph.num_nodes).tolist()


@QUICK
@given(named(TEXT.filter(lambda text: not set(text) & set('"\\'))))
def test_networkx_reads_the_pajek(tmp_path_factory, graph: Graph):
    path = tmp_path_factory.mktemp("pajek") / "g.net"
    inlink.write(graph, path)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines[0] == f"*Vertices {graph.num_nodes}"
    labels = [re.fullmatch(r'(\d+) "(.*)"', line)[2] for line in lines[1 : graph.num_nodes + 1]]
    assert labels == [str(label) for label in graph.nodes]
    # NetworkX takes a line without nodes for one without arcs, and splits at other ends of lines too.
    if graph.num_nodes and all(len(label.splitlines()) == 1 for label in labels):
        found = nx.DiGraph(nx.parse_pajek(lines[:-1]))
        weights = {
            (labels.index(i), labels.index(j)): data.get("weight", 1.0)
            for i, j, data in found.edges(data=True)
        }
        assert weights == edges(graph)


@QUICK
@given(named())
def test_networkx_and_inlink_read_the_gml(tmp_path_factory, graph: Graph):
    path = tmp_path_factory.mktemp("gml") / "g.gml"
    ranks = np.linspace(0, 1, graph.num_nodes)
    # 66 codes of Unicode are no characters, and HTML drops them.
    if any(
        ord(code) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(code) < 0xFDF0
        for name in graph.names or ()
        for code in name
    ):
        with pytest.raises(OutputError, match="no character"):
            inlink.write(graph, path)
        return
    inlink.write(graph, path, columns={"page-rank": ranks})
    found = nx.read_gml(path, label="id")
    same(found, graph, label="label")
    assert [found.nodes[k]["page_rank"] for k in range(graph.num_nodes)] == ranks.tolist()
    if graph.num_nodes:
        back = read(path)
        assert edges(back) == edges(graph)
        assert list(back.nodes) == list(graph.nodes)


@QUICK
@given(named())
def test_the_dot_has_each_node_and_arc(tmp_path_factory, graph: Graph):
    path = tmp_path_factory.mktemp("dot") / "g.dot"
    inlink.write(graph, path, columns={"rank": np.arange(graph.num_nodes)})
    text = path.read_text(encoding="utf-8")
    assert text.startswith("digraph {\n")
    assert text.endswith("}\n")
    nodes = re.findall(r'^(\d+) \[(?:label="((?:[^"\\]|\\.)*)" )?"rank"=(\d+)\]$', text, re.M | re.S)
    assert (
        [int(node) for node, _, _ in nodes]
        == [int(rank) for *_, rank in nodes]
        == list(range(graph.num_nodes))
    )
    if graph.names is not None:
        plain = [
            label.replace('\\"', '"').replace("\\\\", "\\").replace("&amp;", "&") for _, label, _ in nodes
        ]
        assert plain == list(graph.names)
    found = re.findall(r"^(\d+) -> (\d+)(?: \[weight=([\d.e+-]+)\])?$", text, re.M)
    assert {(int(i), int(j)): float(w or 1) for i, j, w in found} == edges(graph)


@pytest.mark.skipif(shutil.which("dot") is None, reason="no dot: apt-get install graphviz")
def test_graphviz_reads_the_dot(tmp_path: Path):
    names = [name for name in HOSTILE if name]
    graph = Graph(Graph.from_arcs([(0, 1)], num_nodes=len(names)).out_rows, names=Names.of(names))
    inlink.write(graph, tmp_path / "g.gv")
    done = subprocess.run(["dot", "-Tplain", tmp_path / "g.gv"], capture_output=True, text=True, check=True)
    assert done.stdout.count("\nnode ") == len(names)
    assert done.stdout.count("\nedge ") == 1


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("g.json", b"\xff", "is not UTF-8"),
        ("g.dot", b"\xff", "is not UTF-8"),
        ("g.dot", b"a\0", "zero byte"),
        ("g.gml", b"\xff", "is not UTF-8"),
        ("g.gml", b"a\x07", "control character"),
        ("g.net", b"\xff", "is not UTF-8"),
        ("g.net", b'a"', "contains a quote"),
        ("g.net", b"a\n", "line end"),
    ],
)
def test_names_that_do_not_fit_are_refused_before_anything_is_written(tmp_path, name, wrong, message):
    graph = Graph(Graph.from_arcs([(0, 1)]).out_rows, names=Names.of([b"fine", wrong]))
    with pytest.raises(OutputError, match=message):
        inlink.write(graph, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_columns_that_are_not_finite_and_names_of_columns(tmp_path):
    graph = Graph.from_arcs([(0, 1)])
    columns = {"rank": np.array([np.nan, 1.5]), "rank-2": np.array([np.inf, 2.0])}
    inlink.write(graph, tmp_path / "g.json", columns=columns)
    nodes = json.loads((tmp_path / "g.json").read_text())["nodes"]
    assert nodes == [{"id": 0, "rank": None, "rank-2": None}, {"id": 1, "rank": 1.5, "rank-2": 2.0}]
    inlink.write(graph, tmp_path / "g.gml", columns=columns)
    assert dict(nx.read_gml(tmp_path / "g.gml", label="id").nodes(data=True)) == {
        0: {},
        1: {"rank": 1.5, "rank_2": 2.0},
    }
    with pytest.raises(OutputError, match="same name in GML"):
        inlink.write(graph, tmp_path / "h.gml", columns={"a-b": np.zeros(2), "a_b": np.zeros(2)})
    with pytest.raises(OutputError, match="cannot hold columns"):
        inlink.write(graph, tmp_path / "h.net", columns={"rank": np.zeros(2)})


# -- the page -------------------------------------------------------------------------------------------------------


def data_of(path: Path) -> Any:
    found = re.search(
        r'<script id="data" type="application/json">(.*?)</script>', path.read_text("utf-8"), re.S
    )
    assert found
    return json.loads(found[1])


@QUICK
@given(named(), st.integers(1, 5))
def test_the_page_has_the_best_nodes_around_one(tmp_path_factory, graph: Graph, most: int):
    path = tmp_path_factory.mktemp("html") / "g.html"
    if not graph.num_nodes:
        with pytest.raises(OutputError, match="no nodes"):
            inlink.write(graph, path)
        return
    values = np.arange(graph.num_nodes) % 3
    inlink.write(graph, path, columns={"rank": values}, most=most)
    found = data_of(path)
    centre = int(np.argmax(values))
    web = graph.to_networkx().to_undirected()
    labels = list(graph.nodes)
    within = nx.single_source_shortest_path_length(web, labels[centre], 2)
    order = sorted((labels.index(node) for node in within), key=lambda k: (within[labels[k]], -values[k], k))
    chosen = order[:most]
    assert [node["name"] for node in found["nodes"]] == [str(labels[k]) for k in chosen]
    assert [node["value"] for node in found["nodes"]] == values[chosen].tolist()
    assert {(chosen[i], chosen[j]) for i, j in found["links"]} == {
        (i, j) for i, j in graph.edges.numbers if i != j and {i, j} <= set(chosen)
    }


def test_the_page_loads_nothing_and_refuses_what_cannot_be(tmp_path):
    graph = Graph(Graph.from_arcs([(0, 1), (1, 2)]).out_rows, names=Names.of(HOSTILE[:3]))
    inlink.write(graph, tmp_path / "g.html", around=HOSTILE[0])
    text = (tmp_path / "g.html").read_text()
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    assert not re.search(r"(src|href)=|url\((?!#tip)|@(title|hash|data|script)@|import\(|fetch\(", text)
    inlink.write(graph, tmp_path / "h.html", around=HOSTILE[0])
    assert (tmp_path / "h.html").read_text() == text
    for options, error in [
        ({"around": "no"}, UnknownNodeError),
        ({"most": 0}, ParameterError),
        ({"most": 1001}, ParameterError),
        ({"window": 3}, ParameterError),
    ]:
        with pytest.raises(error):
            inlink.write(graph, tmp_path / "i.html", **options)
    assert not (tmp_path / "i.html").exists()


@pytest.mark.slow
@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
def test_the_page_can_be_dragged_and_searched(tmp_path):
    names = ["https://e.org/hub", "https://e.org/caf%C3%A9", *HOSTILE[:4], "https://e.org/x"]
    pairs = [(0, k) for k in range(1, len(names))] + [(1, 2), (6, 0)]
    graph = Graph(Graph.from_arcs(pairs).out_rows, names=Names.of(names))
    inlink.write(graph, tmp_path / "g.html", around=names[0])
    with browser() as window:
        window.size(1000, 700)
        window.open((tmp_path / "g.html").as_uri())
        window.wait("return document.body.dataset.settled === 'yes'", "the layout rests")
        assert window.run("return document.querySelectorAll('g.node').length") == len(names)
        assert window.run("return document.querySelectorAll('script').length") == 2
        assert "café" in window.run(
            "return [...document.querySelectorAll('text')].map(t => t.textContent).join('|')"
        )
        window.type("#search", "caf%C3")
        assert window.run("return document.querySelectorAll('g.node.near').length") == 3
        assert "1 links in" in window.text("#chosen")
        before = window.run("return nodes[1].x")
        window.run(
            "const c = nodes[1].g.querySelector('circle'), b = c.getBoundingClientRect();"
            "const at = (kind, x, y) => c.dispatchEvent(new PointerEvent(kind, {bubbles: true, pointerId: 1,"
            " clientX: b.x + x, clientY: b.y + y})); SVGElement.prototype.setPointerCapture = () => {};"
            "at('pointerdown', 2, 2); at('pointermove', 60, 40); at('pointerup', 60, 40);"
        )
        assert window.run("return nodes[1].x") > before + 10
        assert not [line for line in window.log() if "SEVERE" in str(line)]


# -- labels -----------------------------------------------------------------------------------------------------------


def test_labels_leave_out_what_all_share():
    names = [f"https://docs.example/en/manual/{page}.html" for page in ("index", "caf%C3%A9", "a%20b", "%ff")]
    assert short_labels(names) == (
        ["index.html", "café.html", "a b.html", "%ff.html"],
        "docs.example/en/manual/",
    )
    assert short_labels([*names, "http://other.example/x"])[0][-1] == "other.example/x"
    assert short_labels(["http://a.example/", "http://b.example/x"]) == (["a.example/", "b.example/x"], "")
    assert short_labels(["http://a.example/"]) == (["a.example/"], "")
    assert short_labels(["com.example.www"]) == (["com.example.www"], "")
    assert short_labels([]) == ([], "")
    assert short_labels(["http://a.example/x/", "http://a.example/x/y"])[0] == ["x", "y"]


@given(st.lists(st.text(max_size=60) | st.from_regex(r"https?://[a-z]{1,40}/[a-z/%]{0,60}", fullmatch=True)))
def test_labels_are_short_and_one_for_each_name(names: list[str]):
    labels, left_out = short_labels(names)
    assert len(labels) == len(names)
    assert all(len(label) <= 34 for label in labels)
    assert not left_out or any(left_out in name or "%" in name for name in names)

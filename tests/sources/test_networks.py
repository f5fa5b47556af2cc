"""Other programs read the same graph from our JSON, Pajek, DOT, GML and HTML."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink
from browser import MISSING, browser
from graphfiles import read
from inlink import Graph
from inlink.errors import OutputError, ParameterError, UnknownNodeError
from inlink.graph.names import Names
from inlink.urls.labels import sections, short_labels
from strategies import arcs

_HOSTILE = "</script><script>alert(1)</script> <!-- &lt;b&gt; a\"b a'b \u2028x @data@ %3Cb%3E"
HOSTILE = [*_HOSTILE.split(" "), ""]
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8) | st.sampled_from(HOSTILE)


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


@given(named())
def test_networkx_reads_the_json(tmp_path_factory, graph: Graph):
    path = tmp_path_factory.mktemp("json") / "g.json"
    inlink.write(graph, path, columns={"rank": np.linspace(0, 1, graph.num_nodes)})
    value = json.loads(path.read_text(encoding="utf-8"))
    same(nx.node_link_graph(value, edges="links"), graph, label="name")
    assert [node["rank"] for node in value["nodes"]] == np.linspace(0, 1, graph.num_nodes).tolist()


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


@given(named(), st.integers(1, 5), st.booleans())
def test_the_page_has_the_best_nodes(tmp_path_factory, graph: Graph, most: int, centred: bool):
    path = tmp_path_factory.mktemp("html") / "g.html"
    if not graph.num_nodes:
        with pytest.raises(OutputError, match="no nodes"):
            inlink.write(graph, path)
        return
    values = np.arange(graph.num_nodes) % 3
    labels = list(graph.nodes)
    order = sorted(range(graph.num_nodes), key=lambda k: (-values[k], k))
    if centred:
        centre = labels[order[0]]
        inlink.write(graph, path, columns={"rank": values}, most=most, around=str(centre))
        web = graph.to_networkx().to_undirected()
        within = nx.single_source_shortest_path_length(web, centre, 2)
        order = sorted(
            (labels.index(node) for node in within), key=lambda k: (within[labels[k]], -values[k], k)
        )
    else:
        inlink.write(graph, path, columns={"rank": values}, most=most)
    found = data_of(path)
    chosen = order[:most]
    assert [node["name"] for node in found["nodes"]] == [str(labels[k]) for k in chosen]
    assert [node["value"] for node in found["nodes"]] == values[chosen].tolist()
    assert [node["into"] for node in found["nodes"]] == graph.indegrees[chosen].tolist()
    assert {(chosen[i], chosen[j]) for i, j in found["links"]} == {
        (i, j) for i, j in graph.edges.numbers if i != j and {i, j} <= set(chosen)
    }
    assert found["facts"].startswith(
        "All " if len(chosen) == len(order) else f"The {len(chosen)} best of {len(order)} "
    )


def test_the_page_loads_nothing_and_refuses_what_cannot_be(tmp_path):
    graph = Graph(Graph.from_arcs([(0, 1), (1, 2)]).out_rows, names=Names.of(HOSTILE[:3]))
    inlink.write(graph, tmp_path / "g.html", around=HOSTILE[0])
    text = (tmp_path / "g.html").read_text()
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    assert not re.search(r"(src|href)=|url\((?!#tip)|@(title|data|style|script|hash)|import\(|fetch\(", text)
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


OVERLAPS = """
const texts = [...document.querySelectorAll('#labels text')];
const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
return [texts.length, boxes.flatMap(([name, a], k) =>
  boxes.slice(0, k).filter(([, b]) => meet(a, b)).map(([other]) => [name, other]))];
"""


def site() -> tuple[list[str], list[tuple[int, int]]]:
    """A site with hostile names, in which all pages link to the first by their menu, and to the next page."""
    names = ["https://e.org/", *(f"https://e.org/{part}/page-{k}.html" for part in "abc" for k in range(30))]
    names += ["https://e.org/a/caf%C3%A9", "\u202edesrever", *HOSTILE[:4], f"https://e.org/b/{HOSTILE[0]}"]
    pairs = {(k, end) for k in range(1, len(names)) for end in (0, (k * 7) % len(names), k - 1) if k != end}
    return names, sorted(pairs)


def test_the_page_of_a_folder_with_any_name(tmp_path: Path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/<b>\xff")
    inlink.write(Graph.from_arcs([(0, 1)], into=folder), tmp_path / "g.html")
    assert "<h1>Map of &lt;b&gt;?</h1>" in (tmp_path / "g.html").read_text("utf-8")


def test_a_page_of_many_links_has_the_most_specific(tmp_path: Path):
    everybody = [(i, j) for i in range(150) for j in range(150) if i != j]
    graph = Graph.from_arcs([*everybody, (0, 150), (1, 150)])
    inlink.write(graph, tmp_path / "g.html")
    found = data_of(tmp_path / "g.html")
    assert len(found["links"]) == 20_000 < graph.num_arcs
    # The arcs of everybody to all others are a template's.
    labels = [node["label"] for node in found["nodes"]]
    drawn = [tuple(int(labels[k]) for k in link) for link in found["links"][: found["drawn"]]]
    assert drawn == [(0, 150), (1, 150)]
    assert "the 2 most specific of 22,352 links; a click shows links among the 20,000 most" in found["facts"]


@pytest.mark.slow
@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
@pytest.mark.parametrize(("width", "phone"), [(1200, False), (390, True)])
def test_the_page_shows_searches_and_follows_links(tmp_path: Path, width: int, phone: bool):
    names, pairs = site()
    graph = Graph(Graph.from_arcs(pairs).out_rows, names=Names.of(names))
    inlink.write(graph, tmp_path / "g.html")
    with browser() as window:
        window.size(width, 800, phone=phone)
        window.open((tmp_path / "g.html").as_uri())
        # All nodes are in the picture and in the table. The names are text, and those of the best nodes are written.
        assert window.run("return document.querySelectorAll('circle').length") == len(names)
        assert window.run("return document.querySelectorAll('tbody tr').length") == len(names)
        assert window.run("return document.querySelectorAll('script').length") == 2
        assert window.run("return document.documentElement.scrollWidth") == width
        written, overlaps = window.run(OVERLAPS)
        assert written > 10
        assert overlaps == []
        assert "e.org" in window.run(
            "return [...document.querySelectorAll('#labels text')].map((one) => one.textContent).join(' ')"
        )
        assert "\ufffddesrever" in window.text("tbody")
        # A search finds a node by its name and by its label.
        rows = "return [...document.querySelectorAll('tbody tr:not([hidden]) button')].map((one) => one.textContent)"
        for text in ("caf%C3", "CAFÉ"):
            window.run("document.getElementById('search').value = ''")
            window.type("#search", text)
            assert window.run(rows) == ["a/café"]
            assert window.run("return document.querySelectorAll('circle.lit').length") == 1
        # Its row shows its links: to the first page and to others, and from them.
        window.click_text("tbody button", "café")
        node = names.index("https://e.org/a/caf%C3%A9")
        near = {end for pair in pairs if node in pair for end in pair}
        assert len(window.run(rows)) == len(near)
        drawn = "return document.querySelectorAll(`line.${arguments[0]}`).length"
        assert window.run(drawn, "in") == sum(end == node for _, end in pairs)
        assert window.run(drawn, "out") == sum(begin == node for begin, _ in pairs)
        assert window.run("return document.querySelector('#chosen a').href") == names[node]
        window.click("#closer")
        window.click("#all")
        assert len(window.run(rows)) == len(names)
        assert window.run(OVERLAPS)[1] == []
        # A click into the picture chooses the nearest node.
        window.run("choose(null); $('farther').click(); $('farther').click()")
        window.run(
            "const box = svg.getBoundingClientRect(), [x, y] = nodes[0].at; svg.setPointerCapture = () => {};"
            "for (const kind of ['pointerdown', 'pointerup']) svg.dispatchEvent(new PointerEvent(kind,"
            " {bubbles: true, pointerId: 1, clientX: box.left + x, clientY: box.top + y}))"
        )
        assert window.text("#chosen a") == names[0]
        assert window.log() == []


# -- labels -----------------------------------------------------------------------------------------------------------


def test_sections_are_hosts_folders_and_first_words():
    pages = [f"https://a.example/{part}{k}.html" for part in ("manual/x", "blog/", "sql-") for k in range(5)]
    folders = ["a.example/manual/", "a.example/blog/", "a.example/sql-"]
    assert sections(pages) == [folder for folder in folders for _ in range(5)]
    # Few pages have no section of their own, and a small host is not split.
    others = [f"http://b.example/{part}/{k}" for part in "xy" for k in range(4)]
    found = sections([*pages, *pages[:9], *others, "https://a.example/", "http://c.example/"])
    assert found[-10:] == ["b.example/"] * 8 + ["a.example/", ""]
    assert (
        sections([f"com.example{k % 2}.www{k}" for k in range(8)]) == ["com.example0.", "com.example1."] * 4
    )
    assert sections(["", "a", "/", "://"]) == [""] * 4
    assert sections([]) == []


@given(st.lists(st.text("ab/-_.:", max_size=12), max_size=40), st.integers(1, 5), st.integers(1, 4))
def test_each_name_begins_with_its_section(names: list[str], most: int, least: int):
    found = sections(names, most, least)
    assert len(found) == len(names)
    assert len(set(found)) <= most
    assert all(
        (name.partition("://")[2] or name).startswith(part) for name, part in zip(names, found, strict=True)
    )


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

"""``inlink plot`` as a user runs it, and graphs and rankings in a notebook."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink
from foldercommands import run, shell
from inlink import Graph, Ranking
from inlink.base.table import html_table

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph ``g`` with two rankings, ``numbers`` without names, and a crawl ``c`` that went on after its ranking."""
    folder = tmp_path_factory.mktemp("plot")
    graph = Graph.from_arcs([("a", "b"), ("b", "c"), ("c", "a"), ("a", "c$"), ("d", "a")], into=folder / "g")
    inlink.pagerank(graph).save(graph)
    inlink.hits(graph).save(graph)
    numbers = Graph.from_arcs([(0, 1), (1, 2)], into=folder / "numbers")
    inlink.pagerank(numbers).save(numbers)
    with inlink.Crawl(folder / "c") as crawl:
        crawl.seed(["https://example.org/"])
        crawl.crawled(crawl.next(1)[0], links=["/a", "/b"])
        run("rank", folder / "c")
        crawl.seed(["https://example.com/"])
    return folder


@pytest.mark.parametrize(
    ("output", "kind", "arguments"),
    [
        ("p.png", "degrees", ["g"]),
        ("p.svg", "ranks", ["g"]),
        ("p.png", "ranks", ["g", "--by", "hits"]),
        ("p.svg", "rank-against-degree", ["g", "--by", "pagerank"]),
        ("p.png", "convergence", ["g", "--damping", 0.9, "--tol", 1e-6, "--max-iter", 100]),
        ("p.SVG", "compare", ["g", "pagerank", "hits"]),
        ("p.png", "neighbourhood", ["g", "a"]),
        ("p.svg", "neighbourhood", ["g", "--top", 2, "-n", 3, "--by", "hits"]),
        ("p.png", "neighbourhood", ["numbers", 1]),
        ("p.svg", "degrees", ["c"]),
        ("p.png", "rank-against-degree", ["c"]),
        ("p.svg", "neighbourhood", ["c", "https://example.org/a"]),
    ],
)
def test_pictures(folder: Path, tmp_path: Path, output: str, kind: str, arguments: list[object], monkeypatch):
    graph, *rest = arguments
    monkeypatch.chdir(tmp_path)
    said = run("plot", kind, folder / str(graph), *rest, "-o", output)
    raw = (tmp_path / output).read_bytes()
    assert raw.startswith(b"<?xml" if output.lower().endswith("svg") else b"\x89PNG")
    assert said == f"{output}: {len(raw):,} bytes\n"
    assert [path.name for path in tmp_path.iterdir()] == [output]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("degrees", "g", "-o", "p.eps"), "p.eps: unknown extension: name a .png, .svg or .pdf file"),
        (("degrees", "none", "-o", "p.eps"), "p.eps: unknown extension"),  # told before the graph is read
        (("degrees", "none", "-o", "p.png"), "none does not exist"),
        (("degrees", "g", "-o", "d.png"), "d.png is a folder"),
        (("ranks", "g", "--by", "katz", "-o", "p.png"), "no ranking 'katz' (it has: hits, pagerank)"),
        (("compare", "g", "pagerank", "../x", "-o", "p.png"), "the name of a ranking"),
        (("convergence", "g", "--damping", "1", "-o", "p.png"), "damping"),
        (("neighbourhood", "g", "nobody", "-o", "p.png"), "no node is named 'nobody'"),
        (("neighbourhood", "numbers", "3", "-o", "p.png"), "no node 3"),
        (("neighbourhood", "numbers", "9" * 5000, "-o", "p.png"), "no names"),
        (("neighbourhood", "g", "-n", "1000", "-o", "p.png"), "nodes must be from 1 to 200"),
        (("neighbourhood", "g", "a", "--top", "3", "-o", "p.png"), "not both"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(folder: Path, tmp_path: Path, arguments, says: str):
    for name in ("g", "numbers"):
        (tmp_path / name).symlink_to(folder / name)
    (tmp_path / "d.png").mkdir()
    error = shell("plot", *arguments, cwd=tmp_path, code=2)
    assert says in error
    if not error.startswith("Usage"):
        assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.png", "g", "numbers"]


def test_without_matplotlib_it_says_how_to_get_it(folder: Path):
    hide = "import sys; sys.modules['matplotlib'] = None\n"
    script = hide + "from inlink import InlinkError\ntry:\n    from inlink import plot\n"
    script += "except (InlinkError) as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "Matplotlib is not installed: pip install 'inlink[plot]'\n", done.stderr
    script = hide + "sys.argv = ['inlink', 'plot', 'degrees', 'g', '-o', 'p.png']\n"
    script += "from inlink.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=folder)
    assert done.stderr == "inlink: Matplotlib is not installed: pip install 'inlink[plot]'\n"
    assert done.returncode == 2


def test_help_does_not_load_matplotlib():
    script = "import sys; sys.argv = ['inlink', 'plot', 'degrees', '--help']\nfrom inlink.cli import main\n"
    script += "try:\n    main()\nexcept SystemExit:\n    pass\n"
    script += "assert not {'matplotlib', 'numpy'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--output" in done.stdout


# -- notebooks ----------------------------------------------------------------------------------------------------


class Cells(HTMLParser):
    """The tags of a table, and what its cells say."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag in ("td", "th", "caption"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells and data.strip():
            self.cells[-1] += data


def notebook(value: Any) -> Cells:
    """What a notebook shows of a value."""
    return Cells(value._repr_html_())


@given(st.text(), st.lists(st.text(st.characters(exclude_categories=())), min_size=1))
def test_no_cell_is_markup(title: str, names: list[str]):
    text = html_table(title, ["a<b>"], [(name,) for name in names])
    text.encode()  # no lone surrogate is left
    found = Cells(text)
    assert found.tags <= {"table", "caption", "tr", "th", "td"}
    assert len(found.cells) == 2 + len(names)
    for cell, name in zip(found.cells[2:], names, strict=True):
        if name.isprintable() and len(name) <= 200 and name.strip():
            assert cell == name


def test_a_ranking_in_a_notebook():
    evil = "<script>alert(1)</script>"
    graph = Graph.from_arcs([(f"n{k}", evil) for k in range(1500)] + [(evil, b"\xff\n")])
    ranking = inlink.pagerank(graph)
    found = notebook(ranking)
    best = ranking.top(10)
    assert "script" not in found.tags
    assert found.cells[:4] == [repr(ranking)[1:-1], "place", "value", "node"]
    assert len(found.cells) == 4 + 3 * 10
    assert found.cells[4::3] == [str(k) for k in range(1, 11)]
    assert found.cells[5::3] == [f"{value:.6g}" for _, value in best]
    assert {evil, r"\udcff\n"} <= set(found.cells[6::3])
    numbers = Ranking(np.arange(2000.0), algorithm="x")
    assert notebook(numbers).cells[6] == "1999"
    assert notebook(inlink.hits(graph)).cells[2] == "authorities"
    assert "caption" in notebook(Ranking(np.empty(0), algorithm="x")).tags


def test_a_graph_in_a_notebook(tmp_path: Path):
    graph = Graph.from_arcs([("a", "<b>"), ("c", "<b>"), ("a", "c")], into=tmp_path / "x&y")
    cells = notebook(graph).cells
    rows = dict(zip(cells[1::2], cells[2::2], strict=True))
    assert cells[0] == "inlink graph"
    assert rows == {
        "nodes": "3",
        "arcs": "3",
        "dangling": "1",
        "largest outdegree": "2: a",
        "largest indegree": "2: <b>",
        "folder": str(tmp_path / "x&y"),
    }
    matrix = np.array([[0, 1], [0, 0]])
    import scipy.sparse

    held = inlink.graph.interop.as_graph(scipy.sparse.csr_array(matrix))
    cells = notebook(held).cells
    assert "largest indegree" not in cells  # it would have to be worked out
    assert cells[-1] == "none, it is in memory"
    assert "dangling" not in notebook(Graph.from_arcs([], num_nodes=0)).cells

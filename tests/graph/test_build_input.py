"""Standard input as a file, and links of a node to itself."""

import gzip
import io
import sys
from pathlib import Path

import networkx as nx
import pyarrow as pa
import pytest
from click.testing import CliRunner

import inlink
from archives import response, sample, write
from foldercommands import shell
from graphfiles import content
from inlink import Graph
from inlink.base import opening
from inlink.cli import commands
from inlink.errors import FormatError, InputError, ParameterError

ARCS = [
    ("http://a.org/", "http://b.org/"),
    ("http://b.org/", "http://c.org/x"),
    ("http://c.org/x", "http://c.org/x"),
]


class Pipe(io.BytesIO):
    """Bytes that come in pieces, and only once."""

    def seekable(self) -> bool:
        return False

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size, 1000) if size and size > 0 else size)


@pytest.fixture
def stdin(monkeypatch):
    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(data)))

    return give


@pytest.mark.parametrize(
    "name", ["x.tsv", "x.csv", "x.graphml", "x.gexf", "x.mtx", "x.warc", "x.warc.gz", "x.k"]
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda raw: pa.compress(raw, "zstd", asbytes=True)])
def test_each_format_from_standard_input(tmp_path: Path, stdin, name: str, pack):
    path = tmp_path / name
    if ".warc" in name:
        write(path, sample())
    elif name == "x.k":
        path.write_text("n 0 http://a.org/\nn 1 http://b.org/\ne 0 1\n")
    else:
        inlink.write(Graph.from_arcs([(0, 1), (1, 2)] if name == "x.mtx" else ARCS), path)
    raw = path.read_bytes()
    if ".warc" in name and raw[:4] != b"WARC" and pack is not bytes:
        return
    if ".warc" in name and pack not in (bytes, gzip.compress):
        return
    wanted = content(inlink.read(path))
    stdin(pack(raw))
    graph = inlink.read("-")
    assert content(graph) == wanted
    assert graph.meta["sources"][0].startswith("- (")


@pytest.mark.slow
def test_standard_input_among_files_and_in_the_command(tmp_path: Path):
    (tmp_path / "a.tsv").write_text("a\tb\n")
    run = CliRunner().invoke(
        commands, ["-q", "build", "-", str(tmp_path / "a.tsv"), "-o", str(tmp_path / "g")], input="b\tc\n"
    )
    assert run.exit_code == 0, run.output
    assert Graph.open(tmp_path / "g").num_arcs == 2
    (tmp_path / "nodes").write_text("a\n")
    for command in (
        ["rank", "g", "--scores", "-"],
        ["rank", "g", "--algorithm", "trustrank", "--trusted", "-"],
        ["subgraph", "g", "-o", "part", "--nodes", "-"],
    ):
        shell(*command, cwd=tmp_path, stdin="a,1\n" if "--scores" in command else "a\n")


def test_standard_input_refuses_formats_that_need_files(tmp_path: Path, stdin, monkeypatch):
    inlink.write(Graph.from_arcs(ARCS), tmp_path / "x.parquet")
    stdin((tmp_path / "x.parquet").read_bytes())
    with pytest.raises(FormatError, match="-: format parquet cannot be read from standard input"):
        inlink.read("-")
    with pytest.raises(ParameterError, match="once only"):
        inlink.read(["-", "-"])
    stdin(b"")
    with pytest.raises(FormatError, match="- is empty"):
        inlink.read("-")
    monkeypatch.setattr(opening, "_KEPT", 1000)
    stdin(b"a\tb\n" * 30_000)
    with pytest.raises(InputError, match="standard input cannot be read again"):
        inlink.read("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="no standard input"):
        inlink.read("-")


def test_self_loops_are_kept_or_dropped(tmp_path: Path):
    page = response(
        "http://a.org/", '<a href="/">self</a> <a href="/x">near</a> <a href="http://b.org/">far</a>'
    )
    write(tmp_path / "x.warc", [page])
    (tmp_path / "x.tsv").write_text("a\ta\t2\na\tb\t3\nc\tc\t1\n")
    Graph.from_arcs([("a", "a"), ("a", "b"), ("c", "c")], into=tmp_path / "g")
    for source, arcs in (("x.tsv", 3), ("g", 3), ("x.warc", 3)):
        for keep, wanted in ((None, arcs), (True, arcs), (False, 1 if source != "x.warc" else 2)):
            graph = inlink.read(tmp_path / source, self_loops=keep)
            assert graph.num_arcs == wanted, (source, keep)
            assert graph.num_nodes == 3
    assert inlink.read(tmp_path / "x.tsv", self_loops=False).out_rows.weights.tolist() == [3]
    graph = inlink.read(nx.DiGraph([("a", "a"), ("a", "b")]), self_loops=False, into=tmp_path / "n")
    assert (graph.num_nodes, graph.num_arcs) == (2, 1)
    pages = inlink.read(tmp_path / "x.warc", into=tmp_path / "pages")
    for source in (tmp_path / "x.warc", pages.path):
        for level in ("host", "domain"):
            for keep, wanted in ((None, 1), (False, 1), (True, 2)):
                assert inlink.read(source, level=level, self_loops=keep).num_arcs == wanted
    with pytest.raises(ParameterError, match="`self_loops` must be True or False; got 'no'"):
        inlink.read(tmp_path / "x.tsv", self_loops="no")
    run = CliRunner().invoke(
        commands, ["-q", "build", str(tmp_path / "x.tsv"), "-o", str(tmp_path / "o"), "--no-self-loops"]
    )
    assert "3 nodes, 1 arc" in run.output

"""Each format gives back the graph that was written; faults in a file are named."""

import gzip
import json
import sqlite3
from contextlib import closing

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse
from hypothesis import assume, given
from hypothesis import strategies as st

from graphfiles import content, graphs, read
from inlink import Graph, pagerank
from inlink.errors import FolderError, InputError, OutputError, ParameterError
from inlink.graph.names import Names
from inlink.sources.files import read_source
from inlink.sources.write import write_graph

ODD = [
    b"",
    b"1",
    b"22",
    b"#x",
    b"% y",
    b"%%",
    b"%41",
    b'"',
    b'a"b',
    b"a,b",
    b";",
    b" ",
    b" a ",
    b"from",
    b"to",
]
ODD += [b"<&>", b"http://a.org/?x=1&copy=2", b"\xef\xbb\xbfx", b"n 0", b"\xff", b"\0"]
ODD += [b"PAR1", b"WARC/1.0", b"SQLite format 3\0", b"\x1f\x8b", b"graph [", b"%%MatrixMarket"]
ANY = st.binary(max_size=10) | st.sampled_from(ODD) | st.sampled_from([b"a\tb", b"a\nb", b"a\r", b"\r\n"])
NO_ENDS = (st.binary(max_size=10) | st.sampled_from(ODD)).filter(lambda raw: not set(raw) & set(b"\t\r\n"))
XML_CHARS = st.characters(
    exclude_categories=["Cs"], exclude_characters=[*map(chr, range(32)), "\ufffe", "\uffff"]
)
XML_NAMES = (st.text(XML_CHARS | st.sampled_from("\t\n\r<&>\"'"), max_size=10)).map(str.encode)


NO_COMMENTS = NO_ENDS.filter(lambda raw: raw[:1] != b"#")
ONE_LINE = ANY.filter(lambda raw: b"\n" not in raw)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "names", "islands"),
    [
        ("g.csv", ANY, False),
        ("g.csv", None, False),
        ("g.csv.zst", ANY, False),
        ("g.tsv", NO_COMMENTS, False),
        ("g.tsv", None, False),
        ("g.txt.gz", NO_COMMENTS, False),
        ("g.parquet", ANY, True),
        ("g.parquet", None, True),
        ("g.sqlite", ANY, True),
        ("g.sqlite", None, True),
        ("g.graphml", XML_NAMES, True),
        ("g.graphml", None, True),
        ("g.gexf", XML_NAMES, True),
        ("g.gexf", None, True),
        ("g.mtx", ONE_LINE, True),
        ("g.mtx", None, True),
    ],
)
def test_round_trip(tmp_path_factory, name, names, islands):
    named = names is not None
    folder = tmp_path_factory.mktemp("round")

    @given(graphs(names))
    def check(graph):
        for old in folder.iterdir():
            old.unlink()
        written = write_graph(graph, folder / name)
        assert all(path.is_file() for path in written.paths)
        first = [path.read_bytes() for path in written.paths]
        back = read(folder / name)
        everything = islands or not named
        assert content(back) == content(graph, everything)
        nodes, _ = content(graph)
        lost = 0 if everything else len(nodes) - len(content(graph, False)[0])
        assert written.left_out == lost
        assert not back.num_nodes or (back.names is None) != named
        assert [path.read_bytes() for path in write_graph(graph, folder / name).paths] == first

    check()


@given(graphs(NO_ENDS))
def test_common_crawl_round_trip(tmp_path_factory, graph):
    folder = tmp_path_factory.mktemp("cc") / "out"
    assume(graph.num_nodes)
    write_graph(graph, folder, format="commoncrawl")
    back = read(folder, "commoncrawl")
    wanted = content(graph)
    assert content(back) == (wanted[0], dict.fromkeys(wanted[1], 1.0))
    assert back.names.order is None
    assert [back.names.raw(i) for i in range(back.num_nodes)] == sorted(wanted[0])
    edges = gzip.decompress((folder / "edges.txt.gz").read_bytes()).split(b"\n")[:-1]
    pairs = [tuple(map(int, line.split(b"\t"))) for line in edges]
    assert pairs == sorted(set(pairs))


@pytest.mark.slow
def test_large_graphs_are_written_in_blocks(tmp_path, monkeypatch):
    from inlink.sources import write

    rng = np.random.default_rng(3)
    graph = Graph.from_arcs(rng.integers(0, 300, (5000, 2)) ** 2 // 300, num_nodes=300)
    graph.names = Names.of(rng.bytes(6).hex() + str(i) for i in range(300))
    wanted = content(graph)
    monkeypatch.setattr(write, "ARCS", 37)
    for name in ("g.csv", "g.parquet", "g.sqlite", "g.graphml", "g.gexf", "g.mtx", "cc"):
        write_graph(graph, tmp_path / name, format="commoncrawl" if name == "cc" else None)
        assert content(read(tmp_path / name)) == (wanted if name != "g.csv" else content(graph, False))


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        (
            "g.tsv",
            b"a\tb",
            r"g\.tsv: the name 'a\\tb' of node 1 contains a tab or a line end\. Write \.csv or \.parquet",
        ),
        ("g.tsv", b"a\r", r"the name 'a\\r' of node 1"),
        ("g.txt", b"#a", r"the name '#a' of node 1 begins with #"),
        ("g.mtx", b"a\nb", r"the name 'a\\nb' of node 1 contains a line end"),
        (
            "g.graphml",
            b"a\0",
            r"the name 'a\\x00' of node 1 contains characters that XML cannot represent\. Write \.parquet or",
        ),
        ("g.gexf", b"a\x1b", r"the name 'a\\x1b' of node 1"),
        ("g.graphml", b"\xef\xbf\xbf", r"the name '\\xef\\xbf\\xbf' of node 1"),
        ("g.gexf", b"\xff", r"the name '\\xff' of node 1 is not UTF-8"),
        ("vertices.gz", b"a\nb", r"the name 'a\\nb' of node 1"),
    ],
)
def test_names_that_do_not_fit_are_refused_by_name(tmp_path, name, wrong, message):
    graph = Graph.from_arcs(np.array([[0, 1], [1, 2]]), num_nodes=3)
    graph.names = Names.of([b"x", wrong, b"y"])
    (tmp_path / name).write_text("old")
    with pytest.raises(OutputError, match=message):
        write_graph(graph, tmp_path / name, format="commoncrawl" if name == "vertices.gz" else None)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "old")]


def test_columns(tmp_path):
    graph = Graph.from_arcs([("a", "b"), ("b", "c")])
    columns = {"pagerank": np.array([0.1, 0.2, 1 / 3]), 'in<"degree': np.array([0, 1, 1])}
    write_graph(graph, tmp_path / "g.parquet", columns=columns)
    table = pq.read_table(tmp_path / "g.nodes.parquet")
    assert table.to_pydict() == {"name": ["a", "b", "c"], **{k: v.tolist() for k, v in columns.items()}}
    assert pq.read_table(tmp_path / "g.parquet").to_pydict() == {"source": ["a", "b"], "target": ["b", "c"]}
    write_graph(graph, tmp_path / "g.sqlite", columns=columns)
    with sqlite3.connect(tmp_path / "g.sqlite") as connection:
        found = connection.execute('SELECT name, pagerank, "in<""degree" FROM nodes').fetchall()
        assert found == list(zip("abc", *(v.tolist() for v in columns.values()), strict=True))
    connection.close()
    write_graph(graph, tmp_path / "g.graphml", columns=columns)
    write_graph(graph, tmp_path / "g.gexf", columns=columns)
    for found in (nx.read_graphml(tmp_path / "g.graphml"), nx.read_gexf(tmp_path / "g.gexf")):
        assert [found.nodes[node]["label"] for node in found] == ["a", "b", "c"]
        for name, values in columns.items():
            assert [found.nodes[node][name] for node in found] == values.tolist()
    for name in ("g.csv", "g.mtx"):
        with pytest.raises(OutputError, match="cannot hold columns"):
            write_graph(graph, tmp_path / name, columns=columns)
    for wrong in ({"x": np.zeros(2)}, {"x": np.array(["a", "b", "c"])}, {"Name": np.zeros(3)}):
        with pytest.raises(ParameterError):
            write_graph(graph, tmp_path / "g.parquet", columns=wrong)


def test_sqlite_has_keys_that_datasette_follows(tmp_path):
    graph = Graph.from_arcs([("b", b"\xff"), ("a", "b"), ("a", "c"), ("a", "\0")], into=tmp_path / "g")
    ranking = pagerank(graph)
    write_graph(graph, tmp_path / "g.sqlite", columns={"pagerank": ranking, "degree": graph.outdegrees})
    with closing(sqlite3.connect(tmp_path / "g.sqlite")) as base:
        assert base.execute("PRAGMA foreign_key_check").fetchall() == []
        keys = [row[2:5] for row in base.execute("PRAGMA foreign_key_list(arcs)")]
        assert sorted(keys) == [("nodes", "source", "id"), ("nodes", "target", "id")]
        # Datasette shows the only text column with an index that is unique, else one called name or title.
        text = [row[1] for row in base.execute("PRAGMA table_info(nodes)") if row[2] == "TEXT"]
        (index,) = [row[1] for row in base.execute("PRAGMA index_list(nodes)") if row[2]]
        assert text == [row[2] for row in base.execute(f"PRAGMA index_info({index})")] == ["name"]
        for query in ("target = 1", "source = 1", "source = 1 AND target = 2"):
            plan = base.execute(f"EXPLAIN QUERY PLAN SELECT * FROM arcs WHERE {query}").fetchall()
            assert "SEARCH" in plan[0][3], query
        meta = {about: {} for about in ("graph", "nodes.pagerank")}
        for about, key, value in base.execute("SELECT * FROM meta"):
            meta[about][key] = value
        assert (meta["graph"]["nodes"], meta["graph"]["source"]) == (graph.num_nodes, str(graph.path))
        assert meta["nodes.pagerank"]["error_bound"] == ranking.error_bound
        assert meta["nodes.pagerank"]["date"] == ranking.date
        assert json.loads(meta["nodes.pagerank"]["parameters"]) == ranking.parameters
    write_graph(graph, tmp_path / "g.parquet", columns={"pagerank": ranking})
    metadata = pq.read_schema(tmp_path / "g.nodes.parquet").metadata
    assert json.loads(metadata[b"inlink.ranking.pagerank"]) == ranking.description()
    assert json.loads(metadata[b"inlink.graph"])["arcs"] == graph.num_arcs


def test_a_table_of_no_nodes_beside_numbered_arcs_is_not_used(tmp_path):
    pq.write_table(pa.table({"source": [0, 1], "target": [1, 2]}), tmp_path / "g.parquet")
    pq.write_table(pa.table({"name": pa.array([], pa.string())}), tmp_path / "g.nodes.parquet")
    assert read(tmp_path / "g.parquet").num_nodes == 3


@pytest.mark.parametrize("name", ["g.csv", "g.tsv", "g.csv.gz"])
def test_formulas_are_made_text_on_request(tmp_path, name):
    odd = ["=1+1", "+1", "-1", "@x", *(["\tx", "\rx", "\nx"] if "csv" in name else [])]
    graph = Graph.from_arcs([("a=", node) for node in odd] + [(odd[0], "a=")])
    write_graph(graph, tmp_path / name, safe_cells=True)
    assert set(read(tmp_path / name).names) == {"a=", *(f"'{node}" for node in odd)}
    write_graph(graph, tmp_path / name)
    assert set(read(tmp_path / name).names) == {"a=", *odd}
    with pytest.raises(ParameterError, match="has no option `safe_cells`"):
        write_graph(graph, tmp_path / "g.gml", safe_cells=True)
    with pytest.raises(ParameterError, match="`anchors` applies only to a crawl"):
        write_graph(graph, tmp_path / "g.sqlite", anchors=True)


def test_outputs_that_cannot_be(tmp_path):
    graph = Graph.from_arcs([(0, 1)])
    with pytest.raises(OutputError, match=r"unknown extension"):
        write_graph(graph, tmp_path / "g.xyz")
    with pytest.raises(OutputError, match=r"format npz cannot be written"):
        write_graph(graph, tmp_path / "g.npz")
    with pytest.raises(OutputError, match=r"needs names"):
        write_graph(graph, tmp_path / "g", format="commoncrawl")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"cannot be written"):
        write_graph(graph, tmp_path / "file" / "g.tsv")
    (tmp_path / "g.names.txt").write_text("a\nb\n")
    with pytest.raises(OutputError, match=r"g\.names\.txt exists and would give"):
        write_graph(graph, tmp_path / "g.mtx")


def test_a_format_may_be_named(tmp_path):
    (tmp_path / "g").write_text("a b\n")
    assert read(tmp_path / "g", "edgelist", separator="space").num_arcs == 1
    with pytest.raises(ParameterError, match="no format is called 'edges'"):
        read(tmp_path / "g", "edges")
    with pytest.raises(
        ParameterError,
        match=r"g: format edgelist has no option `table`; it takes `nodes`, `separator`, `weights`, `header`$",
    ):
        read(tmp_path / "g", table="x")
    with pytest.raises(FolderError, match="is a file, not an inlink folder: inlink build makes a folder"):
        read(tmp_path / "g", "graph")


@pytest.mark.parametrize(
    "name",
    [
        "g.csv",
        "g.csv.gz",
        "g.tsv.zst",
        "g.parquet",
        "g.sqlite",
        "g.graphml",
        "g.gexf",
        "g.mtx",
        "g.gml",
        "g.npz",
    ],
)
@pytest.mark.filterwarnings("ignore:.*looks like names of columns")
def test_damaged_files_give_a_graph_or_one_line(tmp_path, name):
    rng = np.random.default_rng(len(name))
    graph = Graph.from_arcs(rng.integers(0, 30, (80, 2)), num_nodes=30, weights=np.arange(1, 81) / 2)
    graph.names = Names.of(f"http://h{i}.org/" for i in range(30))
    path = tmp_path / name
    if name == "g.gml":
        nx.write_gml(graph.to_networkx(), path)
    elif name == "g.npz":
        scipy.sparse.save_npz(path, graph.to_scipy())
    else:
        write_graph(graph, path)
    whole = path.read_bytes()
    (tmp_path / "damaged").mkdir()
    for k in range(60):
        raw = bytearray(whole)
        at = int(rng.integers(0, len(raw)))
        if k % 4 == 0:
            del raw[at:]
        elif k % 4 == 1:
            raw[at] = int(rng.integers(0, 256))
        elif k % 4 == 2:
            raw[at:at] = rng.bytes(5)
        else:
            del raw[at : at + 20]
        (tmp_path / "damaged" / name).write_bytes(raw)
        try:
            source = read_source(tmp_path / "damaged" / name)
            for _ in source.batches:
                pass
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017

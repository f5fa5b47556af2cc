"""What is written is read again as it was, in every format; and what is wrong in a file is told."""

import gzip
import sqlite3

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from inlink import Graph
from inlink.errors import DamageError, FormatError, InputError, OutputError, ParameterError
from inlink.graph.build import build_graph
from inlink.graph.names import Names
from inlink.sources.recognise import read_source
from inlink.sources.write import write_graph

QUICK = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


def read(path, format=None, **options):
    source = read_source(path, format, **options)
    return build_graph(source.batches, names=source.names, num_nodes=source.num_nodes, level=source.level)


def content(graph, islands=True):
    """Names (or numbers) of the nodes, and arcs between them with weights: what a file has to keep."""
    n = graph.num_nodes
    label = list(range(n)) if graph.names is None else [graph.names.raw(i) for i in range(n)]
    rows = graph.out_rows
    arcs = {}
    for i in range(n):
        for k in range(int(rows.offsets[i]), int(rows.offsets[i + 1])):
            weight = 1.0 if rows.weights is None else float(rows.weights[k])
            arcs[label[i], label[int(rows.nodes[k])]] = weight
    nodes = set(label) if islands else {end for arc in arcs for end in arc}
    return nodes, arcs


@st.composite
def graphs(draw, names):
    """Small graphs with names in any order, or numbers where ``names`` is None; with weights or without."""
    n = draw(st.integers(0, 8))
    if names is not None:
        labels = draw(st.lists(names, min_size=n, max_size=n, unique=True))
    pairs = (
        draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20, unique=True))
        if n
        else []
    )
    weights = None
    if pairs and draw(st.booleans()):
        positive = st.floats(min_value=0, exclude_min=True, max_value=1e300) | st.integers(1, 9).map(float)
        weights = draw(st.lists(positive, min_size=len(pairs), max_size=len(pairs)))
    graph = Graph.from_arcs(np.array(pairs, np.uint32).reshape(-1, 2), num_nodes=n, weights=weights)
    if names is not None:
        graph.names = Names.of(labels)
    return graph


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


@pytest.mark.parametrize(
    ("name", "names", "islands"),
    [
        ("g.csv", ANY, False),
        ("g.csv.gz", ANY, False),
        ("g.csv.zst", ANY, False),
        ("g.tsv", NO_ENDS.filter(lambda raw: raw[:1] != b"#"), False),
        ("g.txt.gz", NO_ENDS.filter(lambda raw: raw[:1] != b"#"), False),
        ("g.parquet", ANY, True),
        ("g.sqlite", ANY, True),
        ("g.graphml", XML_NAMES, True),
        ("g.gexf", XML_NAMES, True),
        ("g.mtx", ANY.filter(lambda raw: b"\n" not in raw), True),
        ("g.mtx.gz", ANY.filter(lambda raw: b"\n" not in raw), True),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_round_trip(tmp_path_factory, name, names, islands, named):
    folder = tmp_path_factory.mktemp("round")

    @QUICK
    @given(graphs(names if named else None))
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


@QUICK
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


def test_large_graphs_are_written_in_blocks(tmp_path, monkeypatch):
    from inlink.sources import write, write_markup

    rng = np.random.default_rng(3)
    graph = Graph.from_arcs(rng.integers(0, 300, (5000, 2)) ** 2 // 300, num_nodes=300)
    graph.names = Names.of(rng.bytes(6).hex() + str(i) for i in range(300))
    wanted = content(graph)
    for module in (write, write_markup):
        monkeypatch.setattr(module, "ARCS", 37)
    for name in ("g.csv", "g.parquet", "g.sqlite", "g.graphml", "g.gexf", "g.mtx", "cc"):
        write_graph(graph, tmp_path / name, format="commoncrawl" if name == "cc" else None)
        assert content(read(tmp_path / name)) == (wanted if name != "g.csv" else content(graph, False))


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        (
            "g.tsv",
            b"a\tb",
            r"g\.tsv: the name 'a\\tb' of node 1 holds a tab or a line end: write \.csv or \.parquet",
        ),
        ("g.tsv", b"a\r", r"the name 'a\\r' of node 1"),
        ("g.txt", b"#a", r"the name '#a' of node 1 would begin a line as a comment"),
        ("g.mtx", b"a\nb", r"the name 'a\\nb' of node 1 holds a line end"),
        (
            "g.graphml",
            b"a\0",
            r"the name 'a\\x00' of node 1 holds characters that XML cannot: write \.parquet or",
        ),
        ("g.gexf", b"a\x1b", r"the name 'a\\x1b' of node 1"),
        ("g.graphml", b"\xef\xbf\xbf", r"the name '\\xef\\xbf\\xbf' of node 1"),
        ("g.gexf", b"\xff", r"the name '\\xff' of node 1 is no UTF-8"),
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
        with pytest.raises(OutputError, match="no place for columns"):
            write_graph(graph, tmp_path / name, columns=columns)
    for wrong in ({"x": np.zeros(2)}, {"x": np.array(["a", "b", "c"])}, {"Name": np.zeros(3)}):
        with pytest.raises(ParameterError):
            write_graph(graph, tmp_path / "g.parquet", columns=wrong)


def test_outputs_that_cannot_be(tmp_path):
    graph = Graph.from_arcs([(0, 1)])
    with pytest.raises(OutputError, match=r"no format has this extension"):
        write_graph(graph, tmp_path / "g.xyz")
    with pytest.raises(OutputError, match=r"bvgraph can be read, not written"):
        write_graph(graph, tmp_path / "g.graph")
    with pytest.raises(OutputError, match=r"needs names"):
        write_graph(graph, tmp_path / "g", format="commoncrawl")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"cannot be written"):
        write_graph(graph, tmp_path / "file" / "g.tsv")
    (tmp_path / "g.names.txt").write_text("a\nb\n")
    with pytest.raises(OutputError, match=r"g\.names\.txt would give"):
        write_graph(graph, tmp_path / "g.mtx")


# -- Common Crawl, Kleinberg ---------------------------------------------------------------------------------------


def pack(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.mark.parametrize("given_as", ["folder", "vertices", "edges", "beginning", "pattern", "both"])
def test_ways_to_name_common_crawl(tmp_path, given_as):
    stem = tmp_path / "cc-main-2026-domain"
    vertices, edges = (stem.with_name(f"{stem.name}-{side}.txt.gz") for side in ("vertices", "edges"))
    pack(vertices, b"0\tcom.a\t3\n1\tcom.b\t1\n2\torg.c\t1\n")
    pack(edges, b"0\t1\n2\t0\n")
    pack(tmp_path / "cc-main-2026-domain-ranks.txt.gz", b"#x\n")
    paths = {
        "folder": tmp_path,
        "vertices": vertices,
        "edges": edges,
        "beginning": stem,
        "pattern": f"{stem}-*.gz",
    }
    graph = read(vertices, "commoncrawl", edges=edges) if given_as == "both" else read(paths[given_as])
    assert graph.level == "domain"
    assert content(graph) == (
        {b"com.a", b"com.b", b"org.c"},
        {(b"com.a", b"com.b"): 1, (b"org.c", b"com.a"): 1},
    )


def test_parts_in_their_order_and_names_in_none(tmp_path):
    for part in range(11):
        pack(tmp_path / "vertices" / f"part-{part}.gz", b"%d\tcom.h%d\n" % (part, 20 - part))
        pack(tmp_path / "edges" / f"part-{part}.gz", b"%d\t0\n" % part)
    graph = read(tmp_path)
    assert graph.level == "host"
    assert [graph.names.find(f"com.h{20 - part}") for part in range(11)] == list(range(11))
    assert graph.inlinks("com.h20").tolist() == list(range(11))


@pytest.mark.parametrize(
    ("vertices", "edges", "message"),
    [
        (b"0\ta\n2\tb\n", b"", r"vertices\.txt, line 2: '2': expected vertex 1"),
        (b"1\ta\n", b"", r"vertices\.txt, line 1: '1': expected vertex 0"),
        (b"0\ta\n1\n", b"", r"vertices\.txt, line 2: '1': expected vertex 1"),
        (b"0\ta\n1\ta\n", b"", r"have the same name 'a'"),
        (b"0\ta\n1\tb\n", b"0\t1\n1\t2\n", r"edges\.txt, line 2: node 2 is out of range \(below 2\)"),
        (b"0\ta\n", b"0\tx\n", r"edges\.txt, line 1: 'x' is not a node number"),
        (b"0\ta\n", b"0\n", r"edges\.txt, line 1: '0' has fewer fields"),
    ],
)
def test_wrong_common_crawl(tmp_path, vertices, edges, message):
    pack(tmp_path / "vertices.txt", vertices)
    pack(tmp_path / "edges.txt", edges)
    with pytest.raises(InputError, match=message):
        read(tmp_path, "commoncrawl")


def test_common_crawl_without_edges(tmp_path):
    pack(tmp_path / "vertices.txt", b"0\ta\n")
    with pytest.raises(InputError, match="no edges found"):
        read(tmp_path, "commoncrawl")


def test_kleinberg(tmp_path):
    path = tmp_path / "gr0"
    path.write_bytes(b"n 5 http://b/\r\nn 2 http://a/ x\r\nn 9 http://b/\r\n\r\ne 5 2\ne 9 9\n")
    graph = read(path)
    assert graph.level == "page"
    assert list(graph.names) == ["http://b/", "http://a/ x", "http://b/#9"]
    assert content(graph)[1] == {(b"http://b/", b"http://a/ x"): 1, (b"http://b/#9", b"http://b/#9"): 1}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"n 0 a\ne 0 1\n", r"gr0, line 2: an arc of node 1, which no n line names"),
        (b"n 0 a\nn 0 b\n", r"gr0, line 2: node 0 has a name already"),
        (b"n 0 a\nx 0 1\n", r"gr0, line 2: 'x 0 1' is neither"),
        (b"n 0 a\ne 0 -1\n", r"gr0, line 2: 'e 0 -1' is neither"),
        (b"n 0 a\nn 0\n", r"gr0, line 2: 'n 0' is neither"),
        (b"e 0 99999999999999999999999\n", r"gr0, line 1: an arc of node"),
    ],
)
def test_wrong_kleinberg(tmp_path, raw, message):
    path = tmp_path / "gr0"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=message):
        read(path, "kleinberg")


# -- tables -------------------------------------------------------------------------------------------------------


def test_parquet_columns(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"when": [1, 2], "To": ["b", "c"], "From": pa.array(["a", "a"]).dictionary_encode()}), path
    )
    assert content(read(path))[1] == {(b"a", b"b"): 1, (b"a", b"c"): 1}
    assert content(read(path, columns=["To", "when"]))[1] == {(b"b", b"1"): 1, (b"c", b"2"): 1}
    pq.write_table(pa.table({"x": [0, 1], "y": [1, 5]}), path)
    assert content(read(path)) == (set(range(6)), {(0, 1): 1, (1, 5): 1})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"source": ["a"]}, "needs two columns"),
        ({"source": ["a", None], "target": ["b", "c"]}, "rows from 0: a source, target or weight is null"),
        ({"source": [0, -1], "target": [1, 2]}, r"node -1 is out of range"),
        ({"source": [0], "target": [2**32 - 1]}, r"node 4,294,967,295 is out of range"),
        ({"source": [0.5], "target": [1.5]}, r"nodes are of type double"),
        ({"source": [0], "target": [1], "weight": [0.0]}, r"weight 0.0 is not a finite"),
        ({"source": [0], "target": [1], "weight": ["x"]}, r"weights are of type string"),
    ],
)
def test_wrong_parquet(tmp_path, columns, message):
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=message):
        read(tmp_path / "t.parquet")


def test_damaged_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"source": np.arange(10_000), "target": np.arange(10_000)[::-1]}), path)
    raw = path.read_bytes()
    path.write_bytes(raw[:-100])
    with pytest.raises(DamageError, match="no whole Parquet file"):
        read(path)
    path.write_bytes(raw[:100] + b"\xff" * 300 + raw[400:])
    with pytest.raises(DamageError, match=r"t\.parquet, after row"):
        read(path)


def database(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def test_the_wiki_graph_of_the_seeds(tmp_path):
    path = database(
        tmp_path / "WikiLinks.sqlite",
        "CREATE TABLE WikiLinks (link TEXT PRIMARY KEY, title TEXT, crawled INTEGER)",
        "CREATE TABLE WikiGraph (fromLink TEXT, toLink TEXT)",
        "CREATE TABLE subGraph AS SELECT * FROM WikiGraph",
        "INSERT INTO WikiLinks VALUES ('/wiki/A', 'A', 1)",
        "INSERT INTO WikiGraph VALUES ('/wiki/A', '/wiki/B'), ('/wiki/B', '/wiki/C')",
    )
    assert content(read(path))[1] == {(b"/wiki/A", b"/wiki/B"): 1, (b"/wiki/B", b"/wiki/C"): 1}
    assert read(path, table="subGraph").num_arcs == 0
    with pytest.raises(InputError, match="has no table 'x', only WikiLinks, WikiGraph, subGraph"):
        read(path, table="x")


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["CREATE TABLE a (x)", "CREATE TABLE b (y)"], r"no table has a source and a target \(a, b\)"),
        (
            [f"CREATE TABLE {name} (source, target)" for name in "ab"],
            r"several tables could hold arcs \(a, b\)",
        ),
        (["CREATE TABLE a (x)"], "table a has the columns x"),
        (
            ["CREATE TABLE a (x, y)", "INSERT INTO a VALUES (1, 2), (1, NULL)"],
            "table a, row 2: None is no node number",
        ),
        (
            ["CREATE TABLE a (x, y)", "INSERT INTO a VALUES (1, 2), (1, -2)"],
            "table a, row 2: -2 is no node number",
        ),
        (["CREATE TABLE a (x, y)", "INSERT INTO a VALUES ('u', NULL)"], "table a, row 1: a node is null"),
        (
            ["CREATE TABLE a (source, target, weight)", "INSERT INTO a VALUES (1, 2, 'x')"],
            r"row 1: weight b'x' is not a finite number",
        ),
    ],
)
def test_wrong_databases(tmp_path, statements, message):
    path = database(tmp_path / "w.db", *statements)
    with pytest.raises(InputError, match=message):
        read(path)


def test_damaged_database(tmp_path):
    path = database(tmp_path / "w.db", "CREATE TABLE a (source, target)")
    path.write_bytes(path.read_bytes()[:100] + bytes(500))
    with pytest.raises(DamageError, match=r"w\.db: cannot be read as SQLite"):
        read(path)


# -- matrices -----------------------------------------------------------------------------------------------------


def test_matrices(tmp_path):
    matrix = scipy.sparse.csr_array(np.array([[0, 2.5, 0], [0, 0, 1], [1, 0, 0]]))
    wanted = ({0, 1, 2}, {(0, 1): 2.5, (1, 2): 1.0, (2, 0): 1.0})
    scipy.io.mmwrite(tmp_path / "m.mtx", matrix)
    assert content(read(tmp_path / "m.mtx")) == wanted
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        scipy.sparse.save_npz(tmp_path / "m.npz", matrix.asformat(kind))
        assert content(read(tmp_path / "m.npz")) == wanted
    (tmp_path / "s.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern symmetric\n% x\n3 3 2\n2 1\n3 3\n"
    )
    assert content(read(tmp_path / "s.mtx")) == ({0, 1, 2}, {(0, 1): 1, (1, 0): 1, (2, 2): 1})
    (tmp_path / "z.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n%-- x\n\n2 2 2\n1 2 0\n2 1 3e0\n"
    )
    assert content(read(tmp_path / "z.mtx")) == ({0, 1}, {(1, 0): 3})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("coordinate real general\n2 3 1\n1 2 1\n", r"square, not \(2, 3\)"),
        ("coordinate real general\n2 2 1\n1 2 -1\n", r"line 3: weight '-1' is not a finite"),
        ("coordinate complex general\n2 2 1\n1 2 1 1\n", r"a matrix coordinate complex: only"),
        ("array real general\n1 1\n0\n", r"a matrix array real: only"),
        ("coordinate real skew-symmetric\n1 1 0\n", r"a skew-symmetric matrix"),
        ("coordinate real general\n2 2 2\n1 2 1\n", r"has 1 entries and says 2: cut or damaged"),
        ("coordinate real general\n% x\n2 2 1\n1 3 1\n", r"m\.mtx, line 4: node 3 is out of range"),
        ("coordinate real general\n2 2 1\n0 1 1\n", r"row or column 0"),
        ("coordinate real general\n2 2 1\n1 1\n", r"line 3: '1 1' has no weight"),
        ("coordinate real general\n2 2 1\n1 2\x009 1\n", r"line 3: '2\\x009' is not a node number"),
        ("coordinate real general\n", r"no size line"),
    ],
)
def test_wrong_matrix_market(tmp_path, text, message):
    (tmp_path / "m.mtx").write_text(f"%%MatrixMarket matrix {text}")
    with pytest.raises(InputError, match=message):
        read(tmp_path / "m.mtx")


def test_wrong_npz(tmp_path):
    path = tmp_path / "m.npz"
    np.savez(
        path,
        data=np.ones(1),
        indices=np.array([9]),
        indptr=np.array([0, 1, 1]),
        shape=np.array([2, 2]),
        format=b"csr",
    )
    with pytest.raises(DamageError, match=r"m\.npz"):
        read(path)
    np.savez(path, data=np.array([{}], object), format=b"csr")  # would need pickle
    with pytest.raises(DamageError, match=r"m\.npz"):
        read(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DamageError, match=r"m\.npz"):
        read(path)


# -- GraphML, GEXF, GML --------------------------------------------------------------------------------------------


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
        ("g.graphml", BOMB.format("graphml"), r"g\.graphml, line 1: declares an entity"),
        ("g.gexf", BOMB.format("gexf"), r"g\.gexf, line 1: declares an entity"),
        ("g.graphml", "<graphml>\n<graph><node/></graph></graphml>", r"line 2: a node without id"),
        (
            "g.graphml",
            "<graphml><graph><edge source='a'/></graph></graphml>",
            r"an edge without source or target",
        ),
        ("g.graphml", "<graphml><graph><hyperedge/></graph></graphml>", r"a hyperedge"),
        ("g.graphml", "<graphml><graph>", r"no well-formed XML \(no element found\)"),
        (
            "g.gexf",
            "<gexf><graph><edge source='a' target='b' weight='-1'/></graph></gexf>",
            r"weight '-1' of an edge",
        ),
        ("g.gexf", "<?xml version='1.0' encoding='x-no'?><gexf/>", r"g\.gexf"),
        ("g.gml", GML.format("edge [ source 1 target 2 weight 0 ]"), r"weight '0' of an edge"),
        ("g.gml", GML.format("edge [ source 1 ]"), r"line 1: an edge without source or target"),
        ("g.gml", GML[:-2].format("edge ["), r"ends within graph edge"),
        ("g.gml", GML.format('edge [ label "x'), r"a quote is not closed"),
        ("g.gml", GML.format("] ]"), r"a \] that closes nothing"),
        ("g.gml", GML.format("\n="), r"line 2: '= \](\\n)?' is no GML"),
        ("g.gml", GML.format("x [ " * 200), r"too deep"),
    ],
)
def test_wrong_markup(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / name, name[2:])


def test_a_tag_without_end_is_bounded(tmp_path, monkeypatch):
    from inlink.sources import markup

    monkeypatch.setattr(markup, "MAX_LINE", 100_000)
    monkeypatch.setattr(markup, "_BYTES", 10_000)
    (tmp_path / "g.graphml").write_text("<graphml><graph><node id='" + "x" * 500_000)
    with pytest.raises(InputError, match="a tag of more than"):
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


def test_real_graphs(shared_data):
    blogs = read(shared_data("graphs/polblogs.gml"))
    assert (blogs.num_nodes, blogs.num_arcs) == (1490, 19_015)
    archive = read(shared_data("graphs/4867-gephi.graphml"))
    oracle = nx.read_graphml(shared_data("graphs/4867-gephi.graphml"))
    assert archive.num_nodes == 1845
    assert archive.num_arcs == len({(s, t) for s, t, *_ in oracle.edges})
    total = sum(weight for _, _, weight in oracle.edges(data="weight"))
    assert archive.out_rows.weights.sum() == total
    assert set(archive.names) == set(nx.get_node_attributes(oracle, "label").values())
    california = read(shared_data("graphs/gr0.California"))
    assert (california.num_nodes, california.num_arcs, california.level) == (9664, 16_150, "page")


def test_a_format_may_be_named(tmp_path):
    (tmp_path / "g").write_text("a b\n")
    assert read(tmp_path / "g", "edgelist", separator="space").num_arcs == 1
    with pytest.raises(ParameterError, match="no format is called 'edges'"):
        read(tmp_path / "g", "edges")
    with pytest.raises(ParameterError, match="takes no table"):
        read(tmp_path / "g", table="x")
    with pytest.raises(FormatError, match="open it with"):
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

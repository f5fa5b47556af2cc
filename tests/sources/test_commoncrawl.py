"""Common Crawl's graphs, in parts and by every way to name them, and Kleinberg's."""

import gzip
import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from graphfiles import content, read
from inlink import Graph
from inlink.cli import commands
from inlink.errors import InputError, OutputError, ParameterError
from inlink.graph.names import Names
from inlink.rank.closeness import harmonic
from inlink.sources import write, write_commoncrawl
from inlink.sources.write import write_graph
from inlink.sources.write_commoncrawl import java_numbers


@pytest.mark.parametrize(
    ("name", "nodes", "arcs"), [("gr0.Harbour", 600, 3255), ("graphs/gr0.California", 9664, 16_150)]
)
def test_kleinberg_graphs(data, name, nodes, arcs):
    graph = read(data(name))
    assert (graph.num_nodes, graph.num_arcs, graph.level) == (nodes, arcs, "page")


def test_common_crawl_in_parts_is_the_same_graph_as_gml(data):
    graph, same = read(data("hosts-graph")), read(data("hosts.gml"))
    assert graph.level == "host"
    assert graph.num_arcs == same.num_arcs == 514
    assert {".".join(reversed(name.split("."))) for name in graph.names} == set(same.names)


def pack(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.mark.parametrize("given_as", ["folder", "vertices", "edges", "beginning", "pattern"])
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
    graph = read(paths[given_as])
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
        (b"0\ta\n2\tb\n", b"", r"vertices\.txt, line 2: expected vertex 1, a tab and a name; got '2'"),
        (b"1\ta\n", b"", r"vertices\.txt, line 1: expected vertex 0, a tab and a name; got '1'"),
        (b"0\ta\n1\n", b"", r"vertices\.txt, line 2: expected vertex 1, a tab and a name; got '1'"),
        (b"0\ta\n1\ta\n", b"", r"have the same name 'a'"),
        (b"0\ta\n1\tb\n", b"0\t1\n1\t2\n", r"edges\.txt, line 2: node number must be below 2; got 2"),
        (b"0\ta\n", b"0\tx\n", r"edges\.txt, line 1: expected a node number.* got 'x'"),
        (b"0\ta\n", b"0\n", r"edges\.txt, line 1: expected two fields .* got '0'"),
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
        (b"n 0 a\ne 0 1\n", r"gr0, line 2: arc of node 1, but no n line names this node"),
        (b"n 0 a\nn 0 b\n", r"gr0, line 2: node 0 already has a name"),
        (b"n 0 a\nx 0 1\n", r"gr0, line 2: expected .* got 'x 0 1'"),
        (b"n 0 a\ne 0 -1\n", r"gr0, line 2: expected .* got 'e 0 -1'"),
        (b"n 0 a\nn 0\n", r"gr0, line 2: expected .* got 'n 0'"),
        (b"e 0 99999999999999999999999\n", r"gr0, line 1: arc of node"),
    ],
)
def test_wrong_kleinberg(tmp_path, at, raw, message):
    path = tmp_path / "gr0"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=message):
        read(at(path), "kleinberg")


def published(data, name):
    found = json.loads(data(f"ranks/{name}.json").read_text())
    return found["header"], found["rows"]


@pytest.mark.parametrize("level", ["host", "domain"])
def test_numbers_look_as_published(data, level):
    for release in ("2026-apr-may-jun", "2026-feb-mar-apr"):
        _, rows = published(data, f"{level}-cc-main-{release}")
        for column, kind in ((1, np.float32), (3, np.float64)):
            texts = [row[column] for row in rows]
            assert java_numbers(np.array(texts, kind)).to_pylist() == [text.encode() for text in texts]


def test_numbers_as_java_prints_them():
    shown = {
        0.0: "0.0", 1.0: "1.0", 0.001: "0.001", 9.99e-4: "9.99E-4", 1e-4: "1.0E-4", 2.5e-9: "2.5E-9",
        1234567.0: "1234567.0", 9999999.5: "9999999.5", 1e7: "1.0E7", 12345678.9: "1.23456789E7",
        1e22: "1.0E22", 1.7976931348623157e308: "1.7976931348623157E308",
    }  # fmt: skip
    assert java_numbers(np.array(list(shown))).to_pylist() == [text.encode() for text in shown.values()]
    single = np.array([3.546816e7, 0.1, 1e-10, 16777216.0], np.float32)
    assert java_numbers(single).to_pylist() == [b"3.546816E7", b"0.1", b"1.0E-10", b"1.6777216E7"]


@given(st.lists(st.floats(0, 1e300)))
def test_numbers_read_back(values):
    assert [float(text) for text in java_numbers(np.array(values, np.float64)).to_pylist()] == values


HOSTS = ("com.b.www", "com.a", "com.a.x", "org.c", "com.b", "org.c.y")
HOST_ARCS = [(0, 1), (1, 0), (2, 0), (3, 0), (3, 2), (4, 5), (5, 1), (0, 3), (2, 1)]


def some_hosts(folder):
    pages = ["http://" + ".".join(reversed(host.split("."))) + "/" for host in HOSTS]
    return Graph.from_arcs([(pages[a], pages[b]) for a, b in HOST_ARCS]).fold("host", into=folder)


def unpacked(path):
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def test_domains_are_exported_as_published(tmp_path, data):
    """Every field against a plain computation, and the columns against those of a published file."""
    domains = some_hosts(tmp_path / "hosts").fold("domain", into=tmp_path / "domains")
    values = {"harmonic": np.array([2.5, 1 / 3, 1 / 3 + 1e-12]), "pagerank": np.array([0.2, 0.6, 0.2])}
    written = write_graph(domains, tmp_path / "out", format="commoncrawl", columns=values)
    assert [path.name for path in written.paths] == ["vertices.txt.gz", "edges.txt.gz", "ranks.txt.gz"]
    assert unpacked(tmp_path / "out/vertices.txt.gz") == ["0\tcom.a\t2", "1\tcom.b\t2", "2\torg.c\t2"]
    assert unpacked(tmp_path / "out/edges.txt.gz") == ["0\t1", "1\t0", "1\t2", "2\t0", "2\t1"]
    # Harmonic centrality has 32 bits, so that the last two are equal and have the order of their ids.
    assert unpacked(tmp_path / "out/ranks.txt.gz") == [
        "\t".join(published(data, "domain-cc-main-2026-apr-may-jun")[0]),
        "1\t2.5\t2\t0.2\tcom.a\t2",
        "2\t0.33333334\t1\t0.6\tcom.b\t2",
        "3\t0.33333334\t3\t0.2\torg.c\t2",
    ]
    back = read(tmp_path / "out")
    assert back.level == "domain"
    assert content(back) == (content(domains)[0], dict.fromkeys(content(domains)[1], 1))


def test_places_values_and_names_of_random_ranks(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "ARCS", 7)
    rng = np.random.default_rng(1)
    n = 60
    names = [f"com.{number:03}" for number in rng.permutation(n)]
    graph = Graph.from_arcs(rng.integers(0, n, (200, 2)).astype(np.uint32), num_nodes=n)
    graph.names = Names.of(names)
    harmonic, pagerank = rng.integers(0, 9, n) / 3, rng.integers(1, 9, n) / 1e5
    columns = {"harmonic": harmonic, "pagerank": pagerank}
    write_graph(graph, tmp_path / "x-vertices.gz", format="commoncrawl", columns=columns)
    lines = [line.split("\t") for line in unpacked(tmp_path / "x-ranks.gz")]
    assert lines[0] == ["#harmonicc_pos", "#harmonicc_val", "#pr_pos", "#pr_val", "#host_rev"]
    by = {
        name: sorted(range(n), key=lambda v: (-np.float32(values[v]), names[v]))
        for name, values in columns.items()
    }
    assert len(lines) == n + 1
    for place, (v, line) in enumerate(zip(by["harmonic"], lines[1:], strict=True), 1):
        assert line[0] == str(place)
        assert np.float32(line[1]) == np.float32(harmonic[v])
        assert line[2] == str(by["pagerank"].index(v) + 1)
        assert float(line[3]) == pagerank[v]
        assert line[4] == names[v]


def test_hosts_are_exported_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(write_commoncrawl, "_VERTICES", 4)
    monkeypatch.setattr(write_commoncrawl, "_EDGES", 3)
    hosts = some_hosts(tmp_path / "hosts")
    out = tmp_path / "out"
    write_graph(hosts, out, format="commoncrawl")
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*.gz")) == [
        *(f"edges/part-0000{part}.txt.gz" for part in range(3)),
        *(f"vertices/part-0000{part}.txt.gz" for part in range(2)),
    ]
    assert unpacked(out / "vertices/part-00001.txt.gz") == ["4\torg.c", "5\torg.c.y"]
    edges = [line for part in range(3) for line in unpacked(out / f"edges/part-0000{part}.txt.gz")]
    assert edges == sorted(edges)
    assert len(edges) == len(HOST_ARCS)
    back = read(out)
    assert back.level == "host"
    assert content(back) == content(hosts)
    # A part that is left over would be read with the others.
    monkeypatch.setattr(write_commoncrawl, "_EDGES", 5)
    with pytest.raises(OutputError, match=r"part-00002\.txt\.gz belongs to another graph: remove"):
        write_graph(hosts, out, format="commoncrawl")
    assert content(read(out)) == content(hosts)


def test_a_graph_without_arcs_has_its_files(tmp_path):
    empty = Graph.from_arcs(np.empty((0, 2), np.uint32), num_nodes=1)
    empty.names = Names.of(["com.a"])
    write_graph(empty, tmp_path / "a", format="commoncrawl")
    assert unpacked(tmp_path / "a/edges.txt.gz") == []
    empty.level = "host"
    write_graph(empty, tmp_path / "b", format="commoncrawl")
    assert unpacked(tmp_path / "b/edges/part-00000.txt.gz") == []
    for name in ("a", "b"):
        assert read(tmp_path / name).num_nodes == 1


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"harmonic": [1, 2, 3]}, "need the columns harmonic and pagerank; pagerank is missing"),
        ({"harmonic": [1, 2, 3], "pagerank": [1, 2, np.nan]}, "values of pagerank must be finite"),
        ({"degree": [1, 2, 3]}, r"cannot hold columns \(degree\)"),
    ],
)
def test_wrong_ranks(tmp_path, columns, message):
    graph = Graph.from_arcs([("com.a", "com.b"), ("com.b", "com.c")])
    values = {name: np.array(column, np.float64) for name, column in columns.items()}
    with pytest.raises((OutputError, ParameterError), match=message):
        write_graph(graph, tmp_path / "out", format="commoncrawl", columns=values)
    assert not (tmp_path / "out").exists()


def test_the_command_writes_ranks_or_says_how_to_make_them(tmp_path):
    some_hosts(tmp_path / "hosts").fold("domain", into=tmp_path / "domains")
    domains, out = str(tmp_path / "domains"), str(tmp_path / "out")
    export = ["export", domains, "--format", "commoncrawl", "-o", out]
    found = CliRunner().invoke(commands, export)
    assert found.exit_code == 0
    assert f"Make it with: inlink rank {domains} --algorithm harmonic,pagerank" in found.output
    assert not (tmp_path / "out/ranks.txt.gz").exists()
    assert CliRunner().invoke(commands, ["rank", domains, "--algorithm", "harmonic,pagerank"]).exit_code == 0
    found = CliRunner().invoke(commands, export)
    assert "Make it with" not in found.output
    exact = harmonic(Graph.open(domains), exact=True)
    rows = [line.split("\t") for line in unpacked(tmp_path / "out/ranks.txt.gz")[1:]]
    assert [(row[4], float(row[1])) for row in rows] == exact.top(3)
    assert {row[5] for row in rows} == {"2"}

"""Common Crawl's graphs, in parts and by every way to name them, and Kleinberg's."""

import gzip

import pytest

from graphfiles import content, read
from inlink.errors import InputError


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
def test_wrong_kleinberg(tmp_path, raw, message):
    path = tmp_path / "gr0"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=message):
        read(path, "kleinberg")

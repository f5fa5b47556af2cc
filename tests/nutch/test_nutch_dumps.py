"""NodeDumper, NodeReader and LinkDumper; numbers and dates as Java prints them; Nutch's own node database."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from inlink import Graph
from inlink.base.damage import Tally
from inlink.cli import commands
from inlink.errors import FolderError, OutputError, ParameterError, UnknownNodeError
from inlink.graph.batches import ArcBatch
from inlink.graph.build import build_graph
from inlink.graph.names import Names
from inlink.nutch.dumps import dump_nodes, read_links, read_node, write_nodes
from inlink.nutch.fields import TEXT, Writable
from inlink.nutch.java import java_date, java_float
from inlink.nutch.sequencefile import records, value_class
from inlink.rank.linkrank import linkrank

LINKS = [
    ("http://a.x.com/", "http://b.x.com/"),
    ("http://a.x.com/", "http://c.org/"),
    ("http://b.x.com/", "http://c.org/"),
    ("http://c.org/", "http://a.x.com/"),
    ("http://d.org:80/p", "http://c.org/"),
    ("odd", "http://c.org/"),
]


@pytest.fixture
def web(tmp_path):
    graph = Graph.from_arcs(LINKS, into=tmp_path / "w")
    linkrank(graph, limit_page=False, limit_domain=False).save(graph, "linkrank")
    return graph


def lines(*args, **options):
    return [line.decode() for line in dump_nodes(*args, **options)]


def test_the_largest_come_first_and_equals_in_the_order_of_their_names(web):
    assert lines(web, "inlinks") == [
        "http://c.org/\t4.0", "http://a.x.com/\t1.0", "http://b.x.com/\t1.0", "http://d.org:80/p\t0.0", "odd\t0.0",
    ]  # fmt: skip
    assert lines(web, "outlinks", count=2) == ["http://a.x.com/\t2.0", "http://b.x.com/\t1.0"]
    scores = linkrank(web, limit_page=False, limit_domain=False)
    assert lines(web, "scores", count=1) == [f"http://c.org/\t{np.float32(scores['http://c.org/'])!s}"]
    assert lines(web, count=0) == []
    assert lines(web, "inlinks", count=1, separator="=") == ["http://c.org/=4.0"]


def test_by_host_or_domain(web):
    assert lines(web, "inlinks", group=("domain", "sum")) == ["c.org\t4.0", "x.com\t2.0", "d.org\t0.0"]
    assert lines(web, "inlinks", group=("domain", "max")) == ["c.org\t4.0", "x.com\t1.0", "d.org\t0.0"]
    assert lines(web, "outlinks", group=("host", "sum"), count=3) == [
        "a.x.com\t2.0",
        "b.x.com\t1.0",
        "c.org\t1.0",
    ]


def test_one_url(web):
    ranking = linkrank(web, limit_page=False, limit_domain=False)
    score = str(np.float32(ranking["http://a.x.com/"]))
    assert read_node(web, "http://a.x.com/") == [
        "http://a.x.com/:",
        f"  inlink score: {score}",
        f"  outlink score: {np.float32(ranking['http://a.x.com/'] / 2)!s}",
        "  num inlinks: 1",
        "  num outlinks: 2",
    ]
    found = list(read_links(web, "http://b.x.com/"))
    assert found == [
        "http://b.x.com/:",
        f"  http://a.x.com/ - num inlinks: 1, num outlinks: 2, inlink score: {score}, "
        f"outlink score: {np.float32(ranking['http://a.x.com/'] / 2)!s}, metadata: ",
    ]
    assert list(read_links(web, "odd")) == ["odd:"]
    for reader in (read_node, read_links):
        with pytest.raises(UnknownNodeError, match="absent"):
            list(reader(web, "absent"))


def test_before_linkrank_was_run(tmp_path):
    graph = Graph.from_arcs(LINKS, into=tmp_path / "w")
    assert read_node(graph, "odd")[1] == "  inlink score: 0.0"
    with pytest.raises(FolderError, match="linkrank"):
        lines(graph)
    with pytest.raises(ParameterError, match="no names"):
        lines(Graph.from_arcs([(0, 1)]), "inlinks")


JAVA = [  # as JDK 21 prints them
    (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (0.15, "0.15"), (0.001, "0.001"), (9.999e-4, "9.999E-4"),
    (9999999.0, "9999999.0"), (1e7, "1.0E7"), (16777216.0, "1.6777216E7"), (3.4028235e38, "3.4028235E38"),
    (1.17549435e-38, "1.1754944E-38"), (1e-4, "1.0E-4"), (-2.5, "-2.5"), (100.0, "100.0"), (1e300, "Infinity"),
    (float("nan"), "NaN"), (-float("inf"), "-Infinity"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "printed"), JAVA)
def test_numbers_as_java_prints_them(value, printed):
    assert java_float(value) == printed


@given(st.floats(width=32))
def test_printed_numbers_come_back(value):
    text = java_float(value).replace("Infinity", "inf")
    np.testing.assert_equal(np.float32(text), np.float32(value))


def test_dates_as_java_prints_them():
    assert java_date(0) == "Thu Jan 01 00:00:00 UTC 1970"
    assert java_date(1_795_259_777_123) == "Sat Nov 21 11:16:17 UTC 2026"
    assert java_date(-1) == "Wed Dec 31 23:59:59 UTC 1969"
    assert java_date(1 << 62) == f"{1 << 62} ms"


# -- Nutch's own node database ------------------------------------------------------------------------------------


NODE = Writable(
    "org.apache.nutch.scoring.webgraph.Node",
    lambda fields: (fields.int32(), fields.int32(), fields.float32(), fields.int32()),
)


def nodes_in(folder: Path) -> dict[bytes, tuple[int, int, float, int]]:
    assert [path.name for path in folder.iterdir()] == ["part-r-00000"]
    part = folder / "part-r-00000"
    assert {path.name for path in part.iterdir()} == {"data", "index", ".data.crc", ".index.crc"}
    assert value_class(part / "data") == NODE.name
    found = list(records(part / "data", TEXT, NODE, Tally(strict=True)))
    assert [name for name, _ in found] == sorted(name for name, _ in found)
    return dict(found)


def test_nodes_have_their_degrees_and_scores(tmp_path: Path):
    rng = np.random.default_rng(5)
    arcs = np.unique(rng.integers(0, 400, (2_000, 2)).astype(np.uint32), axis=0)
    ends = rng.permutation(400)
    names = Names.of([f"http://h{k}.org/ö" for k in ends])
    batch = ArcBatch(arcs[:, 0].copy(), arcs[:, 1].copy())
    graph = build_graph([batch], names=names, level="page", into=tmp_path / "web")
    with pytest.raises(FolderError, match="linkrank"):
        write_nodes(graph, tmp_path / "nodes")
    ranking = linkrank(graph)
    ranking.save(graph, "linkrank")
    assert write_nodes(graph, tmp_path / "nodes") == 400
    found = nodes_in(tmp_path / "nodes")
    for node in range(400):
        inlinks, outlinks, score, metadata = found[graph.names.raw(node)]
        assert (inlinks, outlinks, metadata) == (graph.indegrees[node], graph.outdegrees[node], 0)
        assert np.float32(score) == np.float32(ranking.values[node])


def test_the_command_and_what_it_refuses(tmp_path: Path):
    graph = Graph.from_arcs([("http://a.org/", "http://b.org/")], into=tmp_path / "web")
    linkrank(graph).save(graph, "linkrank")
    base = ["-q", "nutch", "scoreupdate", "--db", str(tmp_path / "web"), "--nodes", str(tmp_path / "nodes")]
    done = CliRunner().invoke(commands, base)
    assert done.exit_code == 0, done.output
    assert done.output == f"{tmp_path / 'nodes'}: 2 nodes with their scores\n"
    assert set(nodes_in(tmp_path / "nodes")) == {b"http://a.org/", b"http://b.org/"}
    assert isinstance(CliRunner().invoke(commands, base).exception, OutputError)
    for other in (["--crawl", "x"], ["--output", "x"], ["--format", "csv"]):
        assert CliRunner().invoke(commands, [*base, *other]).exit_code == 2
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        write_nodes(graph, tmp_path / "file" / "nodes")
    numbers = Graph.from_arcs([(0, 1)])
    with pytest.raises(ParameterError, match="no names"):
        write_nodes(numbers, tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "nodes", "web"]

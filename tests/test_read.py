import sqlite3
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import inlink
from inlink import Graph
from inlink.errors import DamageError, FormatError, InputError, ParameterError


def named(graph: Graph) -> set[tuple[str, str]]:
    return {(graph.names[i], graph.names[int(j)]) for i in range(graph.num_nodes) for j in graph.outlinks(i)}


def test_edge_lists_together_make_one_graph(tmp_path: Path):
    (tmp_path / "a.tsv").write_text("x\ty\ny\tz\n")
    (tmp_path / "b.csv").write_text("Source,Target\nz,x\nx,y\n")
    graph = inlink.read([tmp_path / "a.tsv", tmp_path / "b.csv"], count=True)
    assert named(graph) == {("x", "y"), ("y", "z"), ("z", "x")}
    assert graph.out_rows.weights.tolist() == [2, 1, 1]
    assert graph.meta["sources"] == [f"{tmp_path / 'a.tsv'} (edgelist)", f"{tmp_path / 'b.csv'} (edgelist)"]


def test_objects_are_adapted():
    assert inlink.read(nx.DiGraph([("a", "b")])).num_arcs == 1
    assert inlink.read(scipy.sparse.csr_array(np.eye(3))).num_arcs == 3
    pages = nx.DiGraph([("http://a.example.com/", "http://b.example.org/x")])
    hosts = inlink.read(pages, level="host")
    assert hosts.names[:] == ["com.example.a", "org.example.b"]
    with pytest.raises(ParameterError, match="expected a Graph"):
        inlink.read(7)


def test_a_graph_folder_is_read_folded_and_copied(tmp_path: Path):
    graph = Graph.from_arcs([("http://a.example.com/", "http://b.example.org/x")], into=tmp_path / "g")
    assert inlink.read(tmp_path / "g").uuid == graph.uuid
    copy = inlink.read(tmp_path / "g", into=tmp_path / "copy")
    assert copy.uuid != graph.uuid
    assert named(Graph.open(tmp_path / "copy")) == named(graph)
    hosts = inlink.read(tmp_path / "g", level="host", into=tmp_path / "hosts")
    with pytest.raises(ParameterError, match="pages cannot be had"):
        inlink.read(hosts.path, level="page")


def test_archives_at_each_level_and_only_what_was_crawled(shared_data):
    path = shared_data("crawls/aut-example.warc.gz")
    pages = inlink.read(path)
    assert (pages.level, pages.num_nodes, pages.num_arcs) == ("page", 18_207, 20_067)
    hosts = inlink.read(path, level="host")
    folded = pages.fold("host")
    assert set(hosts.names) == set(folded.names)
    assert named(hosts) == named(folded)
    crawled = inlink.read(path, crawled_only=True)
    assert crawled.num_nodes == pages.crawled.sum() == int(pages.meta["pages"])
    assert {*crawled.names} <= {*pages.names}
    assert pages.meta["records"] > 299
    both = inlink.read([path, path], count=True)
    assert (both.num_nodes, both.num_arcs) == (pages.num_nodes, pages.num_arcs)
    assert both.out_rows.weights.sum() == 2 * inlink.read(path, count=True).out_rows.weights.sum()


def test_damage_is_counted_or_refused(shared_data, tmp_path: Path):
    path = shared_data("broken/cut-at-1000000.warc.gz")
    graph = inlink.read(path)
    assert any("first in" in reason for reason in graph.meta["skipped"])
    with pytest.raises(DamageError, match=r"cut-at-1000000\.warc\.gz.*987,735"):
        inlink.read(path, strict=True, into=tmp_path / "g")
    assert not list(tmp_path.iterdir())


def test_wet_files_hold_no_links(shared_data):
    wet = shared_data("crawls/CC-MAIN-20140820021334-00006-ip-10-180-136-8.ec2.internal.warc.wet")
    with pytest.raises(FormatError, match="WET"):
        inlink.read(wet)


def test_the_seeds_own_sqlite_file(tmp_path: Path):
    with sqlite3.connect(tmp_path / "WikiLinks.sqlite") as wiki:
        wiki.execute("CREATE TABLE WikiLinks (link TEXT PRIMARY KEY, title TEXT, crawled INTEGER)")
        wiki.execute("CREATE TABLE WikiGraph (fromLink TEXT, toLink TEXT)")
        wiki.execute("INSERT INTO WikiLinks VALUES ('a', 'A', 1)")
        wiki.executemany("INSERT INTO WikiGraph VALUES (?, ?)", [("a", "b"), ("a", "c"), ("a", "b")])
    wiki.close()
    graph = inlink.read(tmp_path / "WikiLinks.sqlite", count=True)
    assert named(graph) == {("a", "b"), ("a", "c")}
    assert graph.out_rows.weights.tolist() == [2, 1]


def test_what_does_not_go_together_is_refused(tmp_path: Path):
    (tmp_path / "a.tsv").write_text("x\ty\n")
    (tmp_path / "k").write_text("n 0 http://a.com/\nn 1 http://b.com/\ne 0 1\n")
    with pytest.raises(ParameterError, match="different formats"):
        inlink.read([tmp_path / "a.tsv", tmp_path / "k"])
    with pytest.raises(ParameterError, match="several sources of format kleinberg"):
        inlink.read([tmp_path / "k", tmp_path / "k"])
    with pytest.raises(ParameterError, match="no source"):
        inlink.read([])
    with pytest.raises(ParameterError, match="no format is called 'pajek'"):
        inlink.read(tmp_path / "k", format="pajek")
    with pytest.raises(ParameterError, match="which pages were crawled"):
        inlink.read(tmp_path / "a.tsv", crawled_only=True)
    with pytest.raises(InputError, match="does not exist"):
        inlink.read(tmp_path / "none")

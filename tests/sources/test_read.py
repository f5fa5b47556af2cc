import inspect
import re
import sqlite3
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import inlink
from archives import sample, write
from inlink import Graph
from inlink.archives.batches import archive_batches
from inlink.cli.build import build
from inlink.errors import DamageError, FormatError, InputError, ParameterError
from inlink.sources.formats import ARCHIVES, FORMATS, SITES, implementation


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
    with pytest.raises(ParameterError, match=r"`graph` must be a Graph, .*; got int"):
        inlink.read(7)


def test_a_graph_folder_is_read_folded_and_copied(tmp_path: Path):
    graph = Graph.from_arcs([("http://a.example.com/", "http://b.example.org/x")], into=tmp_path / "g")
    assert inlink.read(tmp_path / "g").uuid == graph.uuid
    copy = inlink.read(tmp_path / "g", into=tmp_path / "copy")
    assert copy.uuid != graph.uuid
    assert named(Graph.open(tmp_path / "copy")) == named(graph)
    hosts = inlink.read(tmp_path / "g", level="host", into=tmp_path / "hosts")
    with pytest.raises(ParameterError, match="cannot be 'page': the nodes of this graph are hosts"):
        inlink.read(hosts.path, level="page")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [
    ("web.warc.gz", (967, 1_395)),
    pytest.param("crawls/aut-example.warc.gz", (18_207, 20_067), marks=pytest.mark.soak),
])  # fmt: skip
def test_archives_at_each_level_and_only_what_was_crawled(data, name, size):
    path = data(name)
    pages = inlink.read(path)
    assert (pages.level, pages.num_nodes, pages.num_arcs) == ("page", *size)
    hosts = inlink.read(path, level="host")
    folded = pages.fold("host")
    assert set(hosts.names) == set(folded.names)
    assert named(hosts) == named(folded)
    crawled = inlink.read(path, crawled_only=True)
    assert crawled.num_nodes == pages.crawled.sum() == int(pages.meta["pages"])
    assert {*crawled.names} <= {*pages.names}
    assert pages.meta["records"] > pages.meta["pages"]
    both = inlink.read([path, path], count=True)
    assert (both.num_nodes, both.num_arcs) == (pages.num_nodes, pages.num_arcs)
    assert both.out_rows.weights.sum() == 2 * inlink.read(path, count=True).out_rows.weights.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "at"), [("cut.warc.gz", "51,334"), ("broken/cut-at-1000000.warc.gz", "987,735")]
)
def test_damage_is_counted_or_refused(data, tmp_path: Path, name, at):
    path = data(name)
    graph = inlink.read(path)
    assert any("first in" in reason for reason in graph.meta["skipped"])
    with pytest.raises(DamageError, match=rf"{re.escape(path.name)}.*{at}"):
        inlink.read(path, strict=True, into=tmp_path / "g")
    assert not list(tmp_path.iterdir())


def test_wet_files_hold_no_links(data):
    with pytest.raises(FormatError, match="WET"):
        inlink.read(data("slice.warc.wet"))


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


def test_arguments_that_contradict_each_other_are_refused(tmp_path: Path):
    (tmp_path / "a.tsv").write_text("x\ty\n")
    (tmp_path / "k").write_text("n 0 http://a.com/\nn 1 http://b.com/\ne 0 1\n")
    with pytest.raises(ParameterError, match="different formats"):
        inlink.read([tmp_path / "a.tsv", tmp_path / "k"])
    with pytest.raises(ParameterError, match="Cannot combine several sources of format kleinberg"):
        inlink.read([tmp_path / "k", tmp_path / "k"])
    with pytest.raises(ParameterError, match="no source"):
        inlink.read([])
    with pytest.raises(ParameterError, match="no format is called 'xml'"):
        inlink.read(tmp_path / "k", format="xml")
    with pytest.raises(FormatError, match="format pajek can only be written: convert"):
        inlink.read(tmp_path / "k", format="pajek")
    with pytest.raises(ParameterError, match="which pages were crawled"):
        inlink.read(tmp_path / "a.tsv", crawled_only=True)
    with pytest.raises(InputError, match="does not exist"):
        inlink.read(tmp_path / "none")


OPTIONS = {
    "links": "all",
    "nofollow": False,
    "nodes": "names",
    "separator": "tab",
    "weights": False,
    "table": "arcs",
    "columns": ["a", "b"],
    "count": True,
}


@pytest.fixture(scope="module")
def one_of_each(tmp_path_factory) -> dict[str, Path]:
    """A file or folder of each format that can be written here."""
    folder = tmp_path_factory.mktemp("formats")
    graph = Graph.from_arcs([("http://a.example.com/", "http://b.example.org/x")], into=folder / "g")
    paths = {"graph": folder / "g", "warc": write(folder / "x.warc", sample())}
    for name, entry in FORMATS.items():
        if entry.writer is not None and entry.reader is not None:
            paths[name] = folder / f"{name}{(*entry.extensions, '')[0]}"
            inlink.write(graph, paths[name], format=name)
    return paths


@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_other_formats_are_refused_by_name(one_of_each, option: str):
    for name, path in one_of_each.items():
        entry = FORMATS[name]
        takes = set(entry.options) | ({"count"} if name != "graph" else set())
        if option in takes:
            continue
        with pytest.raises(ParameterError) as caught:
            inlink.read(path, **{option: OPTIONS[option]})
        assert f"{path}: format {name} has no option `{option}`" in str(caught.value)


def test_the_table_and_the_parameters_of_read_are_one():
    """Every option in the table is a parameter of `read` and of each reader that has it, and of the command."""
    declared = {name for entry in FORMATS.values() for name in entry.options}
    general = {"source", "level", "format", "count", "crawled_only", "self_loops", "strict", "into"}
    general |= {"base", "compress", "max_node", "workers"}
    parameters = set(inspect.signature(inlink.read).parameters)
    assert parameters == declared | general | set(SITES)
    command = {parameter.name for parameter in build.params}
    assert parameters - command == {"source", "into"}
    for name, entry in FORMATS.items():
        if entry.reader is not None:
            reads = archive_batches if name in ARCHIVES else implementation(entry.reader)
            reader = inspect.signature(reads).parameters
            assert set(entry.options) <= set(reader), entry.name


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("warc", {"links": "bogus"}, "`links` must be 'a' or 'all'; got 'bogus'"),
        ("warc", {"strict": "yes"}, "`strict` must be True or False; got 'yes'"),
        ("edgelist", {"nodes": "numbers"}, "`nodes` must be 'ids' or 'names'; got 'numbers'"),
        ("edgelist", {"separator": 9}, "`separator` must be text; got 9"),
        (
            "sqlite",
            {"columns": "source"},
            "`columns` must be a list of texts that are not empty; got 'source'",
        ),
        (
            "sqlite",
            {"columns": ["source"]},
            "`columns` must name source, target and, if wanted, weight; got source",
        ),
        (
            "edgelist",
            {"strip_www": True},
            "`strip_www` applies only if `level` is 'host' or 'domain'; got None",
        ),
        ("warc", {"strip_www": True, "level": "page"}, "`strip_www` applies only if .* got 'page'"),
        (
            "warc",
            {"private_suffixes": True, "level": "host"},
            "`private_suffixes` applies only if .* got 'host'",
        ),
        ("warc", {"strip_www": 1, "level": "host"}, "`strip_www` must be True or False; got 1"),
        ("warc", {"level": "site"}, "`level` must be 'page', 'host' or 'domain'; got 'site'"),
        (
            "edgelist",
            {"nofollow": False},
            r"no option `nofollow` \(--drop-nofollow\); it takes `nodes`, `sep",
        ),
        ("gexf", {"table": "x"}, "format gexf has no option `table`; it takes no options$"),
    ],
)
def test_values_that_options_cannot_have_are_refused(one_of_each, name: str, options, message: str):
    with pytest.raises(ParameterError, match=message):
        inlink.read(one_of_each[name], **options)


def test_options_of_files_and_hosts_are_refused_for_objects(tmp_path: Path):
    graph = nx.DiGraph([("http://a.example.com/", "http://b.example.org/x")])
    for option, value in (OPTIONS | {"format": "gml", "strict": True}).items():
        with pytest.raises(ParameterError, match=f"`{option}` applies only to files; got DiGraph"):
            inlink.read(graph, **{option: value})
    hosts = inlink.read(graph, level="host", strip_www=True)
    with pytest.raises(ParameterError, match=r"`strip_www` does not apply: .* are hosts already"):
        inlink.read(hosts, level="host", strip_www=True)


def test_columns_are_chosen_in_tables(tmp_path: Path):
    with sqlite3.connect(tmp_path / "x.db") as base:
        base.execute("CREATE TABLE seen (too TEXT, frm TEXT, who TEXT, n REAL)")
        base.execute("INSERT INTO seen VALUES ('b', 'a', 'c', 2.5)")
    base.close()
    for columns, arc in ((["frm", "too"], ("a", "b")), (("who", "frm", "n"), ("c", "a"))):
        graph = inlink.read(tmp_path / "x.db", table="seen", columns=columns)
        assert named(graph) == {arc}
        assert (graph.out_rows.weights is not None) == (len(columns) == 3)

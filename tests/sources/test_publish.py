"""A published graph holds the graph, sorted; its card and metadata describe it; equal graphs give equal bytes."""

import hashlib
import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foldercommands import shell
from graphfiles import content, graphs
from inlink import Crawl, Graph, hits, pagerank, publish
from inlink.errors import FolderError, OutputError, ParameterError
from inlink.graph.names import Names
from inlink.graph.views import arcs_in_order
from inlink.sources.crawlgraph import graph_in

NAMES = st.binary(max_size=6) | st.sampled_from([b"com.example.www", b"com.example", b"\xff", b"a|`b", b"\n"])
TABLES = ["nodes", "arcs_by_source", "arcs_by_target"]


def as_bytes(values):
    return [value.encode() if isinstance(value, str) else value for value in values]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graphs(NAMES) | graphs(None))
def test_the_tables_hold_the_graph_in_order(tmp_path_factory, graph):
    folder = tmp_path_factory.mktemp("p") / "d"
    publish(graph, folder)
    nodes, by_source, by_target = (pq.read_table(folder / name).to_pydict() for name in TABLES)
    names = nodes["id"] if graph.names is None else as_bytes(nodes["name"])
    assert nodes["id"] == list(range(graph.num_nodes))
    assert names == sorted(names)
    labels, arcs = content(graph)
    assert set(names) == labels
    assert nodes["outdegree"] == [sum(source == name for source, _ in arcs) for name in names]
    assert nodes["indegree"] == [sum(target == name for _, target in arcs) for name in names]
    for table, key in ((by_source, lambda arc: arc), (by_target, lambda arc: arc[::-1])):
        pairs = list(zip(table["source_id"], table["target_id"], strict=True))
        assert pairs == sorted(pairs, key=key)
        weights = table.get("weight", [1.0] * len(pairs))
        assert {(names[i], names[j]): w for (i, j), w in zip(pairs, weights, strict=True)} == arcs
        if graph.names is not None:
            ends = zip(as_bytes(table["source"]), as_bytes(table["target"]), strict=True)
            assert list(ends) == [(names[i], names[j]) for i, j in pairs]


@given(graphs(None), st.data())
def test_arcs_in_any_order_of_nodes(graph, data):
    order = data.draw(st.none() | st.permutations(range(graph.num_nodes)))
    size = data.draw(st.integers(1, 5))
    blocks = list(arcs_in_order(graph, None if order is None else np.array(order, np.uint32), size))
    order = range(graph.num_nodes) if order is None else order
    arcs = [
        (order[i], order[j], 1.0 if weights is None else float(weights[k]))
        for sources, targets, weights in blocks
        for k, (i, j) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True))
    ]
    places = {node: place for place, node in enumerate(order)}
    expected = [(*pair, weight) for pair, weight in content(graph)[1].items()]
    assert arcs == sorted(expected, key=lambda arc: (places[arc[0]], places[arc[1]]))


@pytest.fixture
def ranked(tmp_path):
    arcs = [
        ("com.b", "com.a"),
        ("org.c", "com.a"),
        ("com.a", "net.|`d"),
        ("com.b", "org.c"),
        ("net.|`d", "net.|`d"),
    ]
    graph = Graph.from_arcs(arcs, into=tmp_path / "g")
    pagerank(graph).save(graph)
    hits(graph).save(graph)
    return graph


def test_other_programs_read_the_same_rows(ranked, tmp_path, monkeypatch):
    monkeypatch.setattr("inlink.sources.publish._ARCS", 2)
    monkeypatch.setattr("inlink.sources.publish._GROUPS", 1)
    publish(ranked, tmp_path / "d")
    for name in TABLES:
        folder = str(tmp_path / "d" / name)
        rows = pq.read_table(folder).to_pylist()
        assert rows
        assert pl.read_parquet(f"{folder}/*.parquet").to_dicts() == rows
        assert pd.read_parquet(folder).to_dict("records") == rows
        found = duckdb.sql(f"SELECT * FROM '{folder}/*.parquet'").fetchall()
        assert found == [tuple(row.values()) for row in rows]
    query = f"SELECT source FROM '{tmp_path}/d/arcs_by_target/*.parquet' WHERE target = 'com.a'"
    assert duckdb.sql(query).fetchall() == [("com.b",), ("org.c",)]


def test_rankings_stand_beside_their_nodes(ranked, tmp_path):
    publish(ranked, tmp_path / "d")
    rows = pq.read_table(tmp_path / "d/nodes").to_pylist()
    ranks = pagerank(ranked), hits(ranked)
    for row in rows:
        node = ranked.node(row["name"])
        authority, hub = ranks[1].values[node], ranks[1].columns["hubs"][node]
        assert (row["pagerank"], row["hits"], row["hits_hubs"]) == (ranks[0].values[node], authority, hub)
    publish(ranked, tmp_path / "one", rankings=["pagerank"])
    assert pq.read_schema(tmp_path / "one/nodes/part-00000.parquet").names[-2:] == ["indegree", "pagerank"]


def test_each_table_describes_the_graph_and_its_rankings(ranked, tmp_path):
    publish(ranked, tmp_path / "d")
    for name in TABLES:
        metadata = pq.read_metadata(tmp_path / "d" / name / "part-00000.parquet").metadata
        described = json.loads(metadata[b"inlink"])
        assert (described["graph"]["nodes"], described["graph"]["arcs"]) == (4, 5)
        assert described["graph"]["uuid"] == ranked.uuid
        assert described["rankings"]["pagerank"]["parameters"]["damping"] == 0.85
        assert described["rankings"]["pagerank"]["error_bound"] <= 1e-6
        assert described["rankings"]["hits"]["columns"] == ["hits", "hits_hubs"]
        assert str(tmp_path).encode() not in b"".join(metadata.values())
        index = json.loads((tmp_path / "d/index.json").read_text())
        assert described == {key: value for key, value in index.items() if key != "tables"}


@pytest.mark.slow
def test_readers_find_rows_by_page_indexes(tmp_path):
    hub, leaves = np.zeros(300_000, np.uint32), np.arange(1, 300_001, dtype=np.uint32)
    graph = Graph.from_arcs(np.column_stack([np.append(hub, leaves), np.append(leaves, hub)]))
    graph.names = Names.of(f"com.example.n{node:06}" for node in range(graph.num_nodes))
    publish(graph, tmp_path / "d")
    for name, groups, order in (("nodes", 19, ["name"]), ("arcs_by_source", 10, ["source", "target"])):
        metadata = pq.read_metadata(tmp_path / f"d/{name}/part-00000.parquet")
        # One row of the matrix is longer than a row group.
        assert metadata.num_row_groups >= groups
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            assert group.num_rows <= 1 << 16
            assert all(group.column(k).has_column_index for k in range(group.num_columns))
            columns = [group.column(entry.column_index).path_in_schema for entry in group.sorting_columns]
            assert columns == order
    assert pl.scan_parquet(tmp_path / "d/arcs_by_target/*.parquet").filter(
        pl.col("target") == "com.example.n000000"
    ).collect().get_column("source_id").to_list() == list(range(1, 300_001))


def test_the_same_graph_gives_the_same_bytes_and_checksums_hold(ranked, tmp_path):
    paths = publish(ranked, tmp_path / "d", title="T")
    others = publish(Graph.open(tmp_path / "g"), tmp_path / "e", title="T")
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in others]
    assert sorted(path for path in (tmp_path / "d").rglob("*") if path.is_file()) == sorted(paths)
    sums = dict(line.split("  ")[::-1] for line in (tmp_path / "d/SHA256SUMS").read_text().splitlines())
    tables = {f"{name}/part-00000.parquet" for name in TABLES}
    assert set(sums) == {"README.md", "index.json", "sources.txt", *tables}
    for name, digest in sums.items():
        assert hashlib.sha256((tmp_path / "d" / name).read_bytes()).hexdigest() == digest


def test_the_card_says_what_it_is(ranked, tmp_path):
    publish(ranked, tmp_path / "d", title='Links: "all" of them', licence="CC-BY-4.0")
    _, head, card = (tmp_path / "d/README.md").read_text().split("---\n", 2)
    assert yaml.safe_load(head) == {
        "pretty_name": 'Links: "all" of them',
        "license": "CC-BY-4.0",
        "tags": ["graph", "web-graph"],
        "configs": [{"config_name": name, "data_files": f"{name}/*.parquet"} for name in TABLES],
    }
    assert '# Links: "all" of them\n' in card
    assert "4 nodes and 5 arcs, with 2 rankings" in card
    assert "| `hits`, `hits_hubs` | `hits` |" in card
    assert "## Licence\n\nCC-BY-4.0\n" in card
    for query in (line for line in card.splitlines() if line.startswith("SELECT")):
        duckdb.sql(query.replace("'nodes", f"'{tmp_path}/d/nodes").replace("'arcs", f"'{tmp_path}/d/arcs"))


@pytest.mark.slow
def test_the_card_names_limits(tmp_path):
    with Crawl(tmp_path / "c") as crawl:
        crawl.seed(["https://example.org/"])
        crawl.crawled("https://example.org/", ["https://example.org/a"])
    graph = graph_in(tmp_path / "c")
    pagerank(graph).save(graph)
    with Crawl(tmp_path / "c") as crawl:
        crawl.crawled("https://example.org/a", ["https://example.org/b"])
    assert "d/nodes: 1 part, " in shell("publish", "c", "-o", "d", cwd=tmp_path)
    card = (tmp_path / "d/README.md").read_text()
    assert "2 of 3 nodes were crawled" in card
    assert "`pagerank` has no value (NaN) for 1 node found after the ranking." in card
    assert "No licence is stated." in card
    values = pq.read_table(tmp_path / "d/nodes").column("pagerank").to_pylist()
    assert [value != value for value in values] == [False, False, True]
    assert pq.read_table(tmp_path / "d/nodes").column("crawled").to_pylist() == [True, True, False]
    folded = Graph.from_arcs([("com.a", "com.b")])
    folded.level = "host"
    publish(folded, tmp_path / "e")
    assert "Names of hosts are reversed" in (tmp_path / "e/README.md").read_text()


@pytest.mark.parametrize("name", ["id", "Outdegree", "crawled", "hits_hubs"])
def test_a_ranking_with_the_name_of_a_column_is_refused(ranked, tmp_path, name):
    pagerank(ranked).save(ranked, name)
    with pytest.raises(
        ParameterError, match=f"^ranking {name}: the table of nodes has another column {name}"
    ):
        publish(ranked, tmp_path / "d")
    assert list(tmp_path.iterdir()) == [tmp_path / "g"]
    publish(ranked, tmp_path / "d", rankings=["pagerank"])


@pytest.mark.parametrize("option", ["title", "licence"])
@pytest.mark.parametrize("value", ["", " ", "a\nb", "\ud800", 3])
def test_a_title_or_licence_is_one_line(ranked, tmp_path, option, value):
    with pytest.raises(ParameterError, match=f"^`{option}` must be one line of text"):
        publish(ranked, tmp_path / "d", **{option: value})
    assert not (tmp_path / "d").exists()


def test_nothing_is_replaced_and_nothing_half_written(ranked, tmp_path, monkeypatch):
    publish(ranked, tmp_path / "d")
    with pytest.raises(OutputError, match="exists: name a folder that does not exist"):
        publish(ranked, tmp_path / "d")
    with pytest.raises(FolderError, match="has no ranking 'katz'"):
        publish(ranked, tmp_path / "e", rankings=["katz"])

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(OutputError, match=r"No space left on device"):
        publish(ranked, tmp_path / "e")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "d", tmp_path / "g"]


@pytest.mark.parametrize("rankings", ["pagerank", [3], ["a\nb"], ["\udcff"]])
def test_rankings_are_a_list_of_printable_names(ranked, tmp_path, rankings):
    with pytest.raises(ParameterError, match=r"^`rankings`"):
        publish(ranked, tmp_path / "d", rankings=rankings)
    assert not (tmp_path / "d").exists()


def test_it_takes_what_rankings_take(tmp_path):
    publish([("b", "a"), ("a", "b")], tmp_path / "d")
    assert pq.read_table(tmp_path / "d/nodes").column("name").to_pylist() == ["a", "b"]
    with pytest.raises(ParameterError, match=r"inlink\.read makes a Graph of a file or folder"):
        publish(str(tmp_path), tmp_path / "e")


@pytest.mark.slow
def test_long_names_have_row_groups_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr("inlink.sources.publish._TEXT", 1000)
    names = [f"{node:03}" + "x" * (node % 7 * 200) for node in range(40)]
    graph = Graph.from_arcs([(names[i], names[k]) for i in range(40) for k in range(0, 40, 3)])
    publish(graph, tmp_path / "d")
    for table in TABLES:
        metadata = pq.read_metadata(tmp_path / "d" / table / "part-00000.parquet")
        assert 10 < metadata.num_row_groups < metadata.num_rows
    arcs = pq.read_table(tmp_path / "d/arcs_by_target").to_pylist()
    assert [(row["target"], row["source"]) for row in arcs] == sorted(
        (names[k], names[i]) for i in range(40) for k in range(0, 40, 3)
    )


@pytest.mark.slow
def test_inputs_are_named_without_folders(tmp_path):
    (tmp_path / "my links (old).tsv").write_text("a\tb\n")
    shell("build", tmp_path / "my links (old).tsv", "-o", "g", cwd=tmp_path)
    graph = Graph.open(tmp_path / "g")
    graph.meta["sources"] += ["https://example.org/data/x.tsv (edgelist)", "/home/me/mycrawl/ (crawl)"]
    publish(graph, tmp_path / "d")
    assert (tmp_path / "d/sources.txt").read_text().splitlines() == [
        "my links (old).tsv (edgelist)",
        "https://example.org/data/x.tsv (edgelist)",
        "mycrawl (crawl)",
    ]
    assert "home" not in (tmp_path / "d/README.md").read_text()
    graph.meta["sources"] = [f"{k}.wat" for k in range(25)]
    publish(graph, tmp_path / "e")
    card = (tmp_path / "e/README.md").read_text()
    assert "- `9.wat`\n- and 15 more, which are in `sources.txt`\n" in card


def test_parts_hold_the_table_in_order(tmp_path, monkeypatch):
    for name, size in (("_NODES", 3), ("_ARCS", 5), ("_GROUPS", 2)):
        monkeypatch.setattr(f"inlink.sources.publish.{name}", size)
    names = [f"n{k:03}\udcff" for k in range(40)]
    graph = Graph.from_arcs(
        [(names[k], names[k * 7 % 40]) for k in range(40) for k in range(k, k + 3) if k < 40]
    )
    publish(graph, tmp_path / "d")
    index = json.loads((tmp_path / "d/index.json").read_text())
    for table, parts in index["tables"].items():
        files = sorted((tmp_path / "d" / table).iterdir())
        assert [file.name for file in files] == [f"part-{k:05}.parquet" for k in range(len(parts))]
        assert len(files) > 3
        key = "id" if table == "nodes" else f"{table.removeprefix('arcs_by_')}_id"
        for file, part in zip(files, parts, strict=True):
            rows = pq.read_table(file).to_pylist()
            assert pq.read_metadata(file).num_row_groups <= 2
            assert (part["rows"], part["bytes"], part["id"]) == (len(rows), file.stat().st_size, rows[0][key])
            assert part["footer"] == pq.read_metadata(file).serialized_size + 8
            if table == "nodes":
                assert part["name"].encode("utf-8", "surrogateescape") == rows[0]["name"]


def test_an_empty_graph_has_tables(tmp_path):
    publish(Graph.from_arcs([]), tmp_path / "d")
    for table in TABLES:
        file = str(tmp_path / "d" / table / "part-00000.parquet")
        assert pq.read_table(file).num_rows == len(pl.read_parquet(file)) == len(pd.read_parquet(file)) == 0
        assert duckdb.sql(f"SELECT * FROM '{file}'").fetchall() == []

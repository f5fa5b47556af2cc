import csv
import gzip
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink import Graph, Ranking
from inlink.errors import (
    DamageError,
    FolderError,
    FormatError,
    InputError,
    MissingExtraError,
    OutputError,
    ParameterError,
    UnknownNodeError,
)
from inlink.rank.ranking import list_rankings

values = st.lists(st.sampled_from([0.0, 0.1, 0.25, 1.0, 3.5]), max_size=30)


@given(values, st.integers(0, 35))
def test_top_is_a_stable_sort(numbers: list[float], k: int):
    ranking = Ranking(np.array(numbers), algorithm="degree")
    expected = sorted(range(len(numbers)), key=lambda i: (-numbers[i], i))[:k]
    assert ranking.top(k) == [(i, numbers[i]) for i in expected]
    for i, value in enumerate(numbers):
        assert ranking.rank_of(i) == 1 + sum(other > value for other in numbers)
    assert list(ranking.values) == numbers


def named() -> Graph:
    return Graph.from_arcs(
        [("a", b"\xff\xfe"), ("a", "\rb\r\n"), (b"\xff\xfe", 'c,"\n\t'), ('c,"\n\t', "a"), ("d", "a")]
    )


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("algorithm", ["pagerank", "hits", "degree"])
def test_tables_come_back_with_every_bit(tmp_path: Path, suffix: str, algorithm: str):
    for graph in (named(), Graph.from_arcs([(0, 1), (1, 2), (2, 0), (0, 2)])):
        ranking = getattr(inlink, algorithm)(graph)
        path = tmp_path / f"r.{suffix}"
        (ranking.to_parquet if suffix == "parquet" else ranking.to_csv)(path)
        back = Ranking.read(path)
        assert (back.values == ranking.values).all()
        assert back.columns.keys() == ranking.columns.keys()
        assert all((back.columns[c] == ranking.columns[c]).all() for c in ranking.columns)
        for field in (
            "algorithm",
            "iterations",
            "converged",
            "parameters",
            "dangling",
            "note",
            "error_bound",
            "date",
        ):
            assert getattr(back, field) == getattr(ranking, field), field
        assert (back.names is None) == (graph.names is None)
        if graph.names is not None:
            assert list(back.names) == list(graph.names)


def test_text_files_are_plain_tables(tmp_path: Path):
    graph = Graph.from_arcs([("a", 'b,"\t\n'), ('b,"\t\n', "=c"), ("d", "a")], into=tmp_path / "g")
    inlink.pagerank(graph).save(graph)
    ranking = Ranking.load(tmp_path / "g", "pagerank")
    rows = [(node, name, ranking[node]) for node, name in enumerate(graph.names)]
    for name, separator in (("r.csv", ","), ("r.tsv", "\t")):
        ranking.to_csv(tmp_path / name)
        with (tmp_path / name).open(newline="") as file:
            assert [*csv.reader(file, delimiter=separator)][1:] == [list(map(str, row)) for row in rows]
        assert polars.read_csv(tmp_path / name, separator=separator).rows() == rows
        frame = pandas.read_csv(tmp_path / name, sep=separator, float_precision="round_trip")
        assert [*frame.itertuples(index=False, name=None)] == rows
        meta = json.loads((tmp_path / f"{name}.meta.json").read_text())
        assert (meta["nodes"], meta["source"], meta["error_bound"]) == (
            4,
            str(graph.path),
            ranking.error_bound,
        )
        assert meta["parameters"]["damping"] == 0.85
        assert abs(datetime.now(UTC) - datetime.fromisoformat(meta["date"])) < timedelta(hours=1)
    ranking.to_csv(tmp_path / "r.csv", safe_cells=True)
    assert "'=c" in (tmp_path / "r.csv").read_text()
    ranking.to_csv(tmp_path / "r.csv", plain=True)
    assert not (tmp_path / "r.csv.meta.json").exists()


OLD = """# inlink ranking {"version": 1, "algorithm": "pagerank", "columns": ["value"], "error_bound": "2.5e-14", \
"residual": null, "iterations": 1, "converged": true, "parameters": {"damping": 0.85}, "dangling": "teleport", \
"unique": null, "note": "", "graph_uuid": null, "elapsed": 0.5}
node,name,value
0,a,0.25
1,b,0.75
"""


@pytest.mark.parametrize(
    ("text", "algorithm"),
    [
        (OLD, "pagerank"),
        ("node,name,value\n0,a,0.25\n1,b,0.75\n", "unknown"),
        ("\ufeffnode\tname\tvalue\r\n1\tb\t.75\r\n0\ta\t.25\r\n", "unknown"),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_old_moved_and_sorted_files_are_read(tmp_path: Path, text: str, algorithm: str, pack):
    (tmp_path / "r").write_bytes(pack(text.encode()))
    back = Ranking.read(tmp_path / "r")
    assert (back.to_dict(), back.algorithm) == ({"a": 0.25, "b": 0.75}, algorithm)
    assert back.error_bound == (2.5e-14 if algorithm == "pagerank" else None)
    if algorithm == "unknown":
        assert "exactness unknown" in back.verdict()
        assert back.places() is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node,name,value\n0,a,0.25\n2,b,0.75\n", "has not all nodes"),
        ("name,value\na,0.25\nb,0.75\n", "has not all nodes"),
        ("node,value\n0,0.25\n2,0.75\n", "the nodes are not 0, 1, 2, …, and have no names"),
        ("node,name,value\n0,a,0.25\n1,b\n", "line 3: expected 3 fields; got 2"),
        ("node,name,value\n0,a,0.25\n1,a,0.75\n", "a"),
    ],
)
def test_rankings_with_missing_rows_are_refused(tmp_path: Path, text: str, message: str):
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        Ranking.read(tmp_path / "r.csv")


def test_a_description_of_other_values_is_refused(tmp_path: Path):
    ranking = inlink.pagerank(Graph.from_arcs([("a", "b"), ("b", "c")]))
    ranking.to_csv(tmp_path / "r.csv")
    lines = (tmp_path / "r.csv").read_text().splitlines(keepends=True)
    (tmp_path / "r.csv").write_text("".join(lines[:2]))
    with pytest.raises(DamageError, match="has not all nodes"):
        Ranking.read(tmp_path / "r.csv")
    inlink.hits(Graph.from_arcs([("a", "b"), ("b", "c")])).to_csv(tmp_path / "h.csv")
    (tmp_path / "h.csv.meta.json").rename(tmp_path / "r.csv.meta.json")
    with pytest.raises(DamageError, match=r"r\.csv\.meta\.json does not describe r\.csv: remove it"):
        Ranking.read(tmp_path / "r.csv")


def test_items_and_dicts():
    ranking = inlink.pagerank(named())
    assert ranking.to_dict() == dict(ranking.items())
    assert list(ranking.items()) == [(name, ranking[name]) for name in named().names]
    numbered = inlink.degree(Graph.from_arcs([(0, 1), (1, 2), (2, 1)]), normalized=False)
    assert numbered.to_dict() == {0: 0.0, 1: 2.0, 2: 1.0}


@pytest.mark.parametrize("algorithm", ["pagerank", "hits"])
def test_the_arrow_table_is_the_parquet_file(tmp_path: Path, algorithm: str):
    for graph in (
        named(),
        Graph.from_arcs([("a", "b"), ("b", "c")]),
        Graph.from_arcs([(0, 1), (1, 2)]),
        Graph.from_arcs([], num_nodes=0),
    ):
        ranking = getattr(inlink, algorithm)(graph)
        ranking.to_parquet(tmp_path / "r.parquet")
        assert ranking.to_arrow().equals(pq.read_table(tmp_path / "r.parquet"), check_metadata=True)


def test_data_frames():
    pytest.importorskip("pandas")
    frame = inlink.hits(named()).to_pandas()
    assert list(frame.columns) == ["authorities", "hubs"]
    assert frame["hubs"].to_dict() == dict(
        zip(named().names, inlink.hits(named()).hubs.tolist(), strict=True)
    )
    numbered = inlink.degree(Graph.from_arcs([(0, 1)])).to_pandas()
    assert (numbered.index.name, numbered.index.tolist(), list(numbered.columns)) == (
        "node",
        [0, 1],
        ["value"],
    )


def test_a_missing_pandas_is_one_clear_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"to_pandas\(\) needs pandas: pip install pandas"):
        inlink.degree(named()).to_pandas()


def test_it_is_kept_with_its_graph_and_refused_for_another(tmp_path: Path):
    graph = Graph.from_arcs([("a", "b"), ("b", "a")], into=tmp_path / "g")
    ranking = inlink.pagerank(graph)
    ranking.save(graph)
    ranking.save(graph, "again")
    assert list_rankings(graph) == ["again", "pagerank"]
    loaded = Ranking.load(tmp_path / "g", "pagerank")
    assert (loaded.values == ranking.values).all()
    assert loaded.names[:] == ["a", "b"]
    assert loaded.error_bound == ranking.error_bound
    other = Graph.from_arcs([("a", "b"), ("b", "c")], into=tmp_path / "h")
    with pytest.raises(OutputError, match="another graph"):
        ranking.save(other)
    with pytest.raises(FolderError, match=r"no ranking 'hits' .*again, pagerank"):
        Ranking.load(graph, "hits")
    with pytest.raises(ParameterError, match="the name of a ranking"):
        Ranking.load(graph, "../h")
    rebuilt = Graph.from_arcs([("a", "b"), ("b", "a")], into=tmp_path / "g")
    with pytest.raises(FolderError, match="rank the graph again"):
        Ranking.load(rebuilt, "pagerank")
    assert list_rankings(rebuilt) == []
    with pytest.raises(OutputError, match="another graph"):
        inlink.pagerank(Graph.from_arcs([(0, 1)])).save(rebuilt)


def test_the_golden_folder_still_opens():
    ranking = Ranking.load(Path(__file__).parents[1] / "golden" / "graph-2", "hits")
    assert ranking.top(1) == [("http://a.example/x", 1.0)]
    assert ranking.hubs.tolist() == [1.0, 0.0, 0.0]
    assert ranking.converged
    assert ranking.names[:] == ["http://a.example/", "http://a.example/x", "http://b.example/"]


def test_damaged_and_foreign_tables_are_refused(tmp_path: Path):
    inlink.pagerank(named()).to_csv(tmp_path / "r.csv")
    text = (tmp_path / "r.csv").read_bytes()
    (tmp_path / "cut.csv").write_bytes(text[:-5].replace(b"0.", b"x.", 3))
    with pytest.raises(DamageError, match=r"cut\.csv"):
        Ranking.read(tmp_path / "cut.csv")
    (tmp_path / "foreign.csv").write_text("a,b\n")
    with pytest.raises(FormatError, match=r"foreign\.csv: not a ranking"):
        Ranking.read(tmp_path / "foreign.csv")
    inlink.pagerank(named()).to_parquet(tmp_path / "r.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "r.parquet").read_bytes()[:200])
    with pytest.raises(DamageError, match=r"cut\.parquet"):
        Ranking.read(tmp_path / "cut.parquet")


@pytest.mark.parametrize("iterations", ["[" * 20_000, "Infinity", "1" * 5_000])
def test_descriptions_that_no_ranking_has_are_damage(tmp_path: Path, iterations: str):
    inlink.pagerank(Graph.from_arcs([(0, 1)]), tol=None, max_iter=3).to_csv(tmp_path / "r.csv")
    beside = tmp_path / "r.csv.meta.json"
    text = beside.read_text()
    assert text.count('"iterations": 3,') == 1
    beside.write_text(text.replace('"iterations": 3,', f'"iterations": {iterations},'))
    with pytest.raises(DamageError, match=r"r\.csv.*again"):
        Ranking.read(tmp_path / "r.csv")


def test_nodes_are_found_by_name_and_number():
    ranking = inlink.pagerank(Graph.from_arcs([("a", "b")]))
    assert ranking["b"] == ranking[1] > ranking["a"]
    assert ranking.rank_of("b") == 1
    for node in ("c", 2, -1):
        with pytest.raises(UnknownNodeError):
            ranking[node]
    with pytest.raises(ParameterError, match="has no hubs"):
        _ = ranking.hubs


def test_it_says_how_exact_it_is():
    graph = Graph.from_arcs([("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")])
    assert "L1 error at most" in inlink.pagerank(graph).verdict()
    assert "not converged" in inlink.pagerank(graph, tol=None, max_iter=1).verdict()
    assert "no error bound" in inlink.hits(graph).verdict()
    assert inlink.degree(graph).verdict() == "exact"
    assert "pagerank" in repr(inlink.pagerank(graph))


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
def test_values_that_are_not_finite_are_damage(tmp_path: Path, value: str):
    ranking = inlink.pagerank(Graph.from_arcs([(0, 1)]))
    ranking.to_csv(tmp_path / "r.csv")
    text = (tmp_path / "r.csv").read_text()
    (tmp_path / "r.csv").write_text(text.replace(f"1,{ranking[1]!r}", f"1,{value}"))
    with pytest.raises(DamageError, match=f"the value of node 1 is {float(value)}"):
        Ranking.read(tmp_path / "r.csv")
    ranking.values[0] = float(value)
    ranking.to_parquet(tmp_path / "r.parquet")
    with pytest.raises(DamageError, match=f"the value of node 0 is {float(value)}"):
        Ranking.read(tmp_path / "r.parquet")

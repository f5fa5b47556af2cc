"""Tables to and from other libraries by Arrow's C stream interface, read by other libraries."""

import datetime
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink import Graph, Ranking
from inlink.base import arrow
from inlink.base.arrow import batches_of
from inlink.base.strings import Strings
from inlink.errors import ParameterError
from inlink.graph import frames
from inlink.graph.names import Names
from strategies import arcs

NAMES = st.lists(st.binary(max_size=20) | st.text(max_size=20).map(str.encode), unique=True, max_size=30)


def table(value: Any) -> Any:
    return pa.table(value)


def arcs_of(graph: Graph) -> set[tuple[Any, ...]]:
    weights = graph.out_rows.weights
    return (
        set(graph.edges)
        if weights is None
        else set(zip(*zip(*graph.edges, strict=True), weights, strict=True))
    )


@given(arcs(weighted=True) | arcs(), st.booleans())
def test_a_graph_streams_its_arcs_and_reads_them_back(given_arcs: Any, named: bool):
    graph = given_arcs.graph()
    if named:
        names = Names.of(f"node {k} é" for k in reversed(range(graph.num_nodes)))
        graph = Graph(graph.out_rows, names=names)
    found = table(graph)
    columns = [column.to_pylist() for column in found.columns]
    assert list(zip(*columns[:2], strict=True)) == list(graph.edges)
    assert found.column_names == ["source", "target", "weight"][: 2 + graph.is_weighted]
    if graph.is_weighted:
        assert columns[2] == graph.out_rows.weights.tolist()
    if graph.num_arcs:
        assert arcs_of(inlink.read(found)) == arcs_of(graph)
    nodes = table(graph.nodes)
    assert nodes["node"].to_pylist() == list(range(graph.num_nodes))
    assert nodes.column_names == (["node", "name"] if named else ["node"])
    if named:
        assert nodes["name"].to_pylist() == list(graph.nodes) == list(graph.names)
    assert list(zip(*table(graph.edges.numbers).select([0, 1]).to_pydict().values(), strict=True)) == list(
        graph.edges.numbers
    )


@given(NAMES)
def test_names_are_strings_if_all_are_utf8_and_else_bytes(names: list[bytes]):
    size = len(names)
    ranking = Ranking(np.linspace(0, 1, size), algorithm="test", names=Names.of(names))
    found = table(ranking)
    try:
        expected: list[Any] = [name.decode() for name in names]
    except UnicodeDecodeError:
        expected = names
    assert found["name"].to_pylist() == expected
    assert found["value"].to_pylist() == ranking.values.tolist()
    assert found.equals(ranking.to_arrow().cast(found.schema))


def test_names_are_bytes_if_a_character_is_cut_between_two():
    ranking = Ranking(np.ones(2), algorithm="test", names=Names.of([b"\xc3", b"\xa9"]))
    assert table(ranking)["name"].to_pylist() == [b"\xc3", b"\xa9"]


@pytest.mark.slow
def test_long_tables_come_in_batches():
    size = 150_000
    ranking = inlink.degree(Graph.from_arcs(np.array([(0, size - 1)]), num_nodes=size), normalized=False)
    reader = pa.RecordBatchReader.from_stream(ranking)
    sizes = [len(batch) for batch in reader]
    assert sizes == [65536, 65536, size - 2 * 65536]
    rows = np.array([(k, k + 1) for k in range(size - 1)])
    graph = Graph.from_arcs(rows)
    assert np.array(list(graph.edges)).tolist() == rows.tolist()
    assert table(graph).num_rows == size - 1
    half = pa.RecordBatchReader.from_stream(graph)
    assert len(half.read_next_batch()) == 65536
    del half, reader


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view()]
)
def test_strings_of_every_layout_are_read(kind: pa.DataType):
    names = ["", "short", "more than twelve bytes long", "ünï", "x" * 5000, "short"]
    column = pa.chunked_array([pa.array(names[:2]).cast(kind), pa.array(names).cast(kind).slice(2)])
    source = pa.table({"source": column, "target": pa.array(["t"] * 6).cast(kind)})
    assert set(inlink.read(source).edges) == {(name, "t") for name in names}
    assert set(inlink.read(source.slice(1, 3)).edges) == {(name, "t") for name in names[1:4]}
    if not pa.types.is_binary_view(kind) and kind != pa.string_view():
        packed = source.set_column(0, "source", source["source"].dictionary_encode())
        assert set(inlink.read(packed).edges) == {(name, "t") for name in names}


@given(st.lists(st.lists(st.text(max_size=20), max_size=8), max_size=4), st.integers(0, 3), st.booleans())
def test_columns_of_strings_are_read_without_an_object_for_each(
    chunks: list[list[str]], start: int, large: bool
):
    kind = pa.large_string() if large else pa.string()
    column = pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind).slice(start)
    _, batches = batches_of(pa.table({"number": np.arange(len(column)), "name": column}))
    names: list[str] = []
    for (found,) in batches([1]):
        assert isinstance(found, Strings)
        names += [row.decode() for row in found.to_pylist()]
    assert names == column.to_pylist()


def test_a_long_batch_is_the_graph_of_its_rows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(frames, "_ROWS", 7)
    rows = [(f"p{k % 11}", f"p{k * k % 13}", k + 1.0) for k in range(40)]
    source = pa.table(dict(zip("stw", map(list, zip(*rows, strict=True)), strict=True)))
    found, expected = (
        inlink.read(source),
        Graph.from_arcs([row[:2] for row in rows], weights=[row[2] for row in rows]),
    )
    assert arcs_of(found) == arcs_of(expected)
    assert list(found.nodes) == list(expected.nodes)
    assert inlink.read(source.slice(0, 0)).num_nodes == 0


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_numbers_of_every_width_are_nodes(kind: str):
    source = pa.table(
        {"s": np.array([0, 5, 7], kind), "t": np.array([1, 2, 3], kind), "w": np.array([1, 2, 3], kind)}
    )
    graph = inlink.read(source.slice(1))
    assert arcs_of(graph) == {(5, 2, 2.0), (7, 3, 3.0)}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1]}, "source, target and, if wanted, weight; got a"),
        ({"a": [1], "b": [2], "c": [1], "d": [1]}, "Select them"),
        ({"a": [1], "b": ["x"]}, "both have integers, or both strings"),
        ({"a": [0.5], "b": [1]}, "whole numbers"),
        ({"a": [-1], "b": [1]}, "must be in"),
        ({"a": [1, None], "b": [1, 2]}, "'a' has no value in row 1"),
        ({"a": ["x", None], "b": ["y", "z"]}, "'a' has no value in row 1"),
        ({"a": [True], "b": [False]}, "must have numbers or strings; its Arrow type is Boolean. Cast it"),
        ({"a": [[1]], "b": [1]}, "its Arrow type is List"),
        ({"a": ["x"], "b": ["y"], "c": ["z"]}, "'c' must have numbers as weights"),
        ({"a": ["x"], "b": ["y"], "c": [0.0]}, "finite and above 0"),
    ],
)
def test_tables_that_are_no_arcs_are_refused_in_one_line(columns: dict[str, Any], message: str):
    with pytest.raises(ParameterError, match=message) as caught:
        inlink.read(pa.table(columns))
    assert "\n" not in str(caught.value)


def test_columns_that_are_not_chosen_may_have_any_type():
    rows = {"a": ["x"], "when": [datetime.date(2020, 1, 1)], "b": ["y"], "none": pa.array([None], pa.int8())}
    source = pa.table(rows)
    for table in (source, source.to_pandas()):
        assert set(inlink.read(table, columns=["a", "b"]).edges) == {("x", "y")}
        with pytest.raises(ParameterError, match="'when'"):
            inlink.read(table, columns=["a", "when"])


def test_frames_of_polars_without_types_are_refused_with_the_remedy():
    polars = pytest.importorskip("polars")
    for values in ([], [None]):
        with pytest.raises(
            ParameterError, match=r"'a' must have numbers or strings; its Arrow type is Null. Cast it"
        ):
            inlink.read(polars.DataFrame({"a": values, "b": values}))
    for wrong in (
        polars.Series([1]),
        polars.DataFrame({"a": [1], "b": [2]}, schema=dict.fromkeys("ab", polars.Int128)),
    ):
        with pytest.raises(
            ParameterError, match=r"cannot be read .*pass a table whose columns have integers or strings"
        ):
            inlink.read(wrong)
    typed = polars.DataFrame({"a": [], "b": []}, schema=dict.fromkeys("ab", polars.String))
    assert inlink.read(typed).num_nodes == 0


def test_columns_are_chosen_by_name_and_rankings_take_tables():
    source = pa.table({"text": ["one", "two"], "to": ["b", "c"], "from": ["a", "b"]})
    graph = inlink.read(source, columns=["from", "to"])
    assert set(graph.edges) == {("a", "b"), ("b", "c")}
    assert inlink.pagerank(source.select(["from", "to"])).names[:] == ["a", "b", "c"]
    twice = pa.concat_tables([source, source])
    assert inlink.read(twice, columns=["from", "to"], count=True).out_rows.weights.tolist() == [2, 2]
    with pytest.raises(ParameterError, match="got no"):
        inlink.read(source, columns=["from", "no"])
    with pytest.raises(ParameterError, match="`format` applies only to files"):
        inlink.read(source, format="edgelist")
    with pytest.raises(ParameterError, match="a data frame of arcs"):
        inlink.pagerank(object())


class Broken:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        def batches() -> Any:
            yield [np.zeros(3, np.uint32), np.ones(3, np.uint32)]
            raise RuntimeError("the disk is gone")

        return arrow.capsule([("a", np.uint32), ("b", np.uint32)], batches())


def test_an_error_in_a_stream_reaches_the_reader():
    with pytest.raises(ParameterError, match="RuntimeError: the disk is gone"):
        inlink.read(Broken())
    with pytest.raises(Exception, match="the disk is gone"):
        table(Broken())


def test_an_exception_survives_that_a_stream_is_let_go():
    with pytest.raises(AttributeError, match="no_such_attribute"):
        _ = table(Graph.from_arcs([(0, 1)])).no_such_attribute


def test_a_capsule_that_nobody_reads_is_let_go():
    Graph.from_arcs([(0, 1)]).__arrow_c_stream__()


def test_polars_and_duckdb_read_and_give_tables():
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    graph = Graph.from_arcs([("a", "b"), ("b", "c é, longer than twelve"), ("a", "")])
    frame = polars.DataFrame(graph)
    assert set(inlink.read(frame).edges) == set(graph.edges) == set(frame.rows())
    assert polars.DataFrame(graph.nodes)["name"].to_list() == list(graph.nodes)
    ranking = inlink.pagerank(graph)
    best = polars.DataFrame(ranking).sort("value", descending=True)["name"].to_list()
    assert best == [name for name, _ in ranking.top(4)]
    frame = frame.with_columns(polars.col("source").cast(polars.Categorical))
    assert set(inlink.read(frame).edges) == set(graph.edges)
    database = duckdb.connect()
    numbers = graph.edges.numbers
    assert database.sql("select count(*) from graph").fetchall() == [(3,)]
    assert set(database.sql("select * from numbers").fetchall()) == set(numbers)
    relation = database.sql(
        "select 'x' || i as s, 'y' || (i % 2) as t, i + 0.5::double as w from range(5) r(i)"
    )
    found = inlink.read(relation)
    assert arcs_of(found) == {(f"x{i}", f"y{i % 2}", i + 0.5) for i in range(5)}


class Partition:
    """A part of a frame, as Dask has it: nothing but compute() gives its rows."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def compute(self) -> Any:
        return self._frame


class Partitioned:
    """What Dask's frames have: columns and iloc as in pandas, and rows in partitions only."""

    iloc: Any = None

    def __init__(self, frames: list[Any]) -> None:
        self.columns = frames[0].columns
        self.partitions = [Partition(frame) for frame in frames]

    def __dask_graph__(self) -> None:
        pass


def test_a_frame_of_dask_is_read_by_partitions():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"s": ["a", "b", "c", "a"], "t": ["b", "c", "a", "c"], "w": [1.0, 2, 3, 4]})
    graph = inlink.read(Partitioned([frame[:3], frame[3:3], frame[3:]]))
    assert arcs_of(graph) == {("a", "b", 1.0), ("b", "c", 2.0), ("c", "a", 3.0), ("a", "c", 4.0)}
    with pytest.raises(ParameterError, match=r"column 's' .* must have strings"):
        inlink.read(Partitioned([frame, pandas.DataFrame({"s": [None], "t": ["b"], "w": [1.0]})]))


@pytest.mark.parametrize(
    "dtype", ["string[pyarrow]", "string[python]", pa.string(), pa.large_string(), object]
)
def test_strings_of_any_dtype_of_pandas_are_names(dtype: Any):
    pandas = pytest.importorskip("pandas")
    if isinstance(dtype, pa.DataType):
        dtype = pandas.ArrowDtype(dtype)
    frame = pandas.DataFrame({"s": ["", "a", "é", "a"], "t": ["x", "b", "c", "a"]}, dtype=dtype)
    # Rows of a slice do not begin at the first byte.
    assert set(inlink.read(frame[1:]).edges) == {("a", "b"), ("a", "a"), ("é", "c")}
    assert inlink.read(frame[:0]).num_nodes == 0
    frame.iloc[2, 1] = None
    with pytest.raises(ParameterError, match=r"column 't' of dtype .* must have strings in each row"):
        inlink.read(frame[1:])


def test_pandas_goes_through_numpy(monkeypatch: pytest.MonkeyPatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr(pandas.DataFrame, "__arrow_c_stream__", None)
    frame = pandas.DataFrame({"s": ["a", "b"], "t": ["b", "c"], "w": [0.5, 2]}, index=[7, 9])
    assert arcs_of(inlink.read(frame)) == {("a", "b", 0.5), ("b", "c", 2.0)}
    graph = Graph.from_arcs([(0, 1), (1, 2)])
    back = pandas.DataFrame(list(graph.edges), columns=["source", "target"])
    assert set(inlink.read(back).edges) == set(graph.edges)
    assert inlink.degree(graph).to_pandas()["value"].tolist() == [0, 0.5, 0.5]
    with pytest.raises(
        ParameterError, match=r"'s' of dtype .* must have strings in each row; got .* Drop rows"
    ):
        inlink.read(pandas.DataFrame({"s": ["a", None], "t": ["b", "c"]}))
    assert inlink.read(pandas.DataFrame({"s": [], "t": []})).num_nodes == 0


def test_nodes_and_edges_are_collections():
    graph = Graph.from_arcs([("a", "b"), ("b", "c")])
    assert (len(graph), len(graph.nodes), len(graph.edges), bool(Graph.from_arcs([]))) == (3, 3, 2, True)
    assert graph.nodes[0] == "a"
    assert graph.nodes[1:] == ["b", "c"]
    assert "a" in graph.nodes
    assert "x" not in graph.nodes
    assert ("a", "b") in graph.edges
    assert all(edge not in graph.edges for edge in [("b", "a"), ("a", "x"), ("x", "a"), "ab", ("a",), (0, 1)])
    assert (0, 1) in graph.edges.numbers
    assert (1, 0) not in graph.edges.numbers
    assert (repr(graph.nodes), repr(graph.edges)) == (
        "<3 nodes of an inlink graph>",
        "<2 edges of an inlink graph>",
    )
    assert list(Graph.from_arcs([(0, 2)]).nodes) == [0, 1, 2]


@given(arcs(weighted=True) | arcs(), st.booleans())
def test_igraph_gets_the_same_graph(given_arcs: Any, named: bool):
    igraph = pytest.importorskip("igraph")
    graph = given_arcs.graph()
    if named:
        graph = Graph(graph.out_rows, names=Names.of(str(k) for k in range(graph.num_nodes)))
    found = graph.to_igraph()
    assert isinstance(found, igraph.Graph)
    assert (found.vcount(), found.is_directed()) == (graph.num_nodes, True)
    assert found.get_edgelist() == list(graph.edges.numbers)
    assert ("name" in found.vs.attributes()) == (named)
    if graph.is_weighted and graph.num_arcs:
        assert found.es["weight"] == graph.out_rows.weights.tolist()


@pytest.mark.slow
def test_streams_may_outlive_what_they_came_from():
    code = """
import datetime
import gc, inlink, pyarrow as pa
table = pa.table(inlink.Graph.from_arcs([("a", "b"), ("b", "c")]))
gc.collect()
assert table.to_pydict() == {"source": ["a", "b"], "target": ["b", "c"]}
kept = pa.RecordBatchReader.from_stream(inlink.Graph.from_arcs([(0, 1)]))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")

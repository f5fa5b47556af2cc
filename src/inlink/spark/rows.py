"""Sources of rows for a ranking on a cluster: a graph's folder, or a table of arcs."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import IntegralType, NumericType

from inlink.base.arrays import AnyArray, UInt32Array
from inlink.base.table import counted
from inlink.errors import FolderError, InputError, ParameterError
from inlink.graph.graph import Graph
from inlink.graph.names import MAX_NODES
from inlink.graph.rows import node_bounds
from inlink.rank.inputs import strengths_by_place, use_weights
from inlink.spark.blocks import SCHEMA, Rest, block_of_arcs, block_of_rows, pack
from inlink.spark.start import collected, failure

# Ranges of nodes whose arcs are counted, to cut blocks of about equal size.
_RANGES = 4096


def read_arcs(session: SparkSession, path: str) -> DataFrame:
    """Return a table of arcs.

    Parameters
    ----------
    session : SparkSession
        Reads it.
    path : str
        Parquet files, if the name ends in ``.parquet``; otherwise text with a tab between the numbers. It may be a
        folder, a pattern, or a URL that Spark reads.

    Raises
    ------
    inlink.errors.InputError
        If there is nothing to read.
    """
    # Spark's own process may have begun in another folder.
    path = str(Path(path).absolute()) if Path(path).exists() else path
    try:
        if path.rstrip("/").endswith(".parquet"):
            return session.read.parquet(path)
        # Lines that are no numbers become nulls, which are refused later.
        return session.read.csv(path, sep="\t", schema="source long, target long")
    except PySparkException as error:
        raise InputError(f"{path}: cannot be read ({failure(error)})") from None


class FolderRows:
    """The rows of a graph's folder, which driver and executors share. Each task reads its block from there.

    Raises
    ------
    inlink.errors.ParameterError
        If the graph is in memory only.
    """

    def __init__(self, spark: SparkSession, graph: Graph, weighted: bool | None) -> None:
        if graph.path is None:
            raise ParameterError(
                "`graph` is in memory only: build it with into= in a folder that executors share"
            )
        self._spark, self.graph = spark, graph
        self.num_arcs, self.weighted = graph.num_arcs, use_weights(graph, weighted)

    def strengths(self) -> tuple[UInt32Array, AnyArray]:
        """The linking nodes, uint32[l], and their strengths, uint32[l] or float64[l]."""
        return np.array(self.graph.split_in_rows.linking), strengths_by_place(self.graph, self.weighted)

    def blocks(self, rest: "Broadcast[Rest]", count: int) -> DataFrame:
        """The packed blocks."""
        rows = self.graph.split_in_rows
        bounds = node_bounds(rows.offsets, rows.linking, count).tolist()
        path = str(self.graph.path.absolute()) if self.graph.path else ""
        work = partial(_cut, path, self.graph.uuid, self.weighted, rest, bounds)
        return self._spark.range(0, count, 1, count).mapInArrow(work, SCHEMA)


def _cut(
    path: str,
    uuid: str | None,
    weighted: bool,
    rest: "Broadcast[Rest]",
    bounds: list[int],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Cut the blocks that the rows name."""
    try:
        # The driver has checked the folder. A block is checked when it is made.
        graph = Graph._built(Path(path))
    except FolderError as error:
        raise FolderError(f"{error}. Driver and executors must share the folder of the graph") from None
    if graph.uuid != uuid:
        raise FolderError(f"{path}: an executor finds another graph there than the driver")
    for batch in batches:
        for k in batch.column(0).to_pylist():
            yield pack(block_of_rows(graph.split_in_rows, weighted, rest.value, bounds[k], bounds[k + 1]))


class TableRows:
    """The rows of a table of arcs: ``source``, ``target``, node numbers, and perhaps ``weight``.

    Raises
    ------
    inlink.errors.ParameterError
        If the table has no such columns, or numbers that are no nodes, or weights that are not above 0.
    """

    def __init__(
        self, spark: SparkSession, frame: DataFrame, num_nodes: int | None, weighted: bool | None
    ) -> None:
        kinds = {field.name: field.dataType for field in frame.schema.fields}
        for name in ("source", "target"):
            if not isinstance(kinds.get(name), IntegralType):
                raise ParameterError(
                    f"the table of arcs must have integers in the columns source and target; it has "
                    f"{', '.join(f'{key}: {kind.simpleString()}' for key, kind in kinds.items())}"
                )
        has_weights = isinstance(kinds.get("weight"), NumericType)
        if weighted and not has_weights:
            raise ParameterError("`weighted` is set, but the table of arcs has no column weight")
        self.weighted = has_weights if weighted is None else weighted
        self._spark = spark
        weight = [sql.col("weight").cast("double")] if self.weighted else []
        self._arcs = frame.select(sql.col("source").cast("long"), sql.col("target").cast("long"), *weight)
        self.num_arcs, nodes = self._check(num_nodes)
        self.graph = Graph.from_arcs(np.empty((0, 2), np.uint32), num_nodes=nodes)

    def _check(self, num_nodes: int | None) -> tuple[int, int]:
        """Return the number of arcs and that of nodes."""
        wrong = sql.col("source").isNull() | sql.col("target").isNull()
        if self.weighted:
            weight = sql.col("weight")
            wrong |= weight.isNull() | sql.isnan(weight) | ~((weight > 0) & (weight < float("inf")))
        least, most = sql.least("source", "target"), sql.greatest("source", "target")
        sums = self._arcs.agg(sql.count("*"), sql.count_if(wrong), sql.min(least), sql.max(most))
        (arcs, bad, low, high) = collected(sums)[0]
        if bad:
            raise ParameterError(
                f"the table of arcs has {counted(bad, 'row')} without a source or target, or with a weight not above 0"
            )
        most_nodes = MAX_NODES if num_nodes is None else num_nodes
        if arcs and (low < 0 or high >= most_nodes):
            raise ParameterError(
                f"node {low if low < 0 else high} of the table is not in [0, {most_nodes:,})"
            )
        return arcs, (high + 1 if arcs else 0) if num_nodes is None else num_nodes

    def strengths(self) -> tuple[UInt32Array, AnyArray]:
        """See :class:`FolderRows`."""
        by_source = self._arcs if self.weighted else self._arcs.select("source", "target").distinct()
        total = sql.sum("weight") if self.weighted else sql.count("*")
        table = by_source.groupBy("source").agg(total.alias("strength")).toArrow()
        sources = table.column("source").to_numpy()
        order = np.argsort(sources)
        kind = np.float64 if self.weighted else np.uint32
        return sources[order].astype(np.uint32), table.column("strength").to_numpy()[order].astype(kind)

    def blocks(self, rest: "Broadcast[Rest]", count: int) -> DataFrame:
        """See :class:`FolderRows`. Each block is alone in its partition."""
        bounds, ranges, width = self._bounds(count)
        count = len(bounds) - 1
        keys = self._keys(count)
        of_range = self._spark.createDataFrame(
            [(k, keys[block]) for k, block in enumerate(ranges)], "range long, block long"
        )
        place = sql.floor(sql.col("target") / width).alias("range")
        arcs = self._arcs.select("*", place).join(sql.broadcast(of_range), "range").drop("range")
        # A block without arcs gets a row, too.
        blank = [sql.lit(-1).cast("long").alias("source"), sql.lit(-1).cast("long").alias("target")]
        blank += [sql.lit(1.0).alias("weight")] if self.weighted else []
        marks = self._spark.createDataFrame([(key,) for key in keys], "block long").select(*blank, "block")
        weighted, numbers = self.weighted, {key: k for k, key in enumerate(keys)}

        # Spark looks at the types of this function, and cannot read those of a partial().
        def gather(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
            k = numbers[key[0].as_py()]
            return _gathered(weighted, rest.value, bounds[k], bounds[k + 1], table)

        spread = arcs.unionByName(marks).repartition(count, "block")
        return spread.groupBy("block").applyInArrow(gather, SCHEMA)

    def _bounds(self, count: int) -> tuple[list[int], list[int], int]:
        """Return the nodes at which blocks begin, the block of each range of nodes, and the width of a range."""
        nodes = self.graph.num_nodes
        width = -(-nodes // _RANGES)
        work = np.full(-(-nodes // width), width, np.int64)
        for place, arcs in collected(
            self._arcs.groupBy(sql.floor(sql.col("target") / width).alias("range")).agg(sql.count("*"))
        ):
            work[place] += arcs
        before = np.cumsum(work) - work
        blocks = np.unique(before * count // work.sum(), return_inverse=True)[1]
        starts = np.flatnonzero(np.diff(blocks, prepend=-1)) * width
        return [*starts.tolist(), nodes], blocks.tolist(), width

    def _keys(self, count: int) -> list[int]:
        """Return a number for each block. No two of these numbers belong to the same partition."""
        place = sql.pmod(sql.hash("id"), sql.lit(count)).alias("place")
        first = self._spark.range(64 * count).select("id", place).groupBy("place").agg(sql.min("id"))
        keys = sorted(key for _, key in collected(first))
        # If a partition has no number, two blocks share another.
        return [*keys, *(64 * count + k for k in range(count - len(keys)))]


def _gathered(weighted: bool, rest: Rest, low: int, high: int, table: pa.Table) -> pa.Table:
    """Make the block of the arcs to the nodes [low, high)."""
    sources = table.column("source").to_numpy()
    kept = sources >= 0
    targets = table.column("target").to_numpy()[kept].astype(np.uint32)
    weights = table.column("weight").to_numpy()[kept] if weighted else np.empty(0)
    block = block_of_arcs(sources[kept].astype(np.uint32), targets, weights, rest, low, high)
    return pa.Table.from_batches([pack(block)])

"""Build a graph's folder from batches of arcs, with memory for the nodes only.

1. A collector (:mod:`inlink.graph.collect`) takes the arcs of one source. Names get provisional numbers from a hash
   table as they come. Then they are put in byte order, and a node's number is its name's place: so the order of the
   batches never shows.
2. Several sources become one part each (:mod:`inlink.graph.part`), and parts are merged by name
   (:mod:`inlink.graph.merging`). No table holds the names of all.
3. Arcs are cut into ranges of sources that fit in memory (:mod:`inlink.graph.ranges`). Each range is sorted, its
   duplicates merged, and written as rows. Their reverse is cut into ranges of targets, which only need counting to
   become the inlinks, which are split, as :mod:`inlink.graph.rows` says.

Memory: of one source, a node takes its name, 8 bytes for where it lies, 12 to 23 in the hash table and 12 while names
are sorted. Of several, it takes these for the nodes of the largest source, and then 13 for each node of all. Arcs take
twice the memory of :data:`inlink.graph.ranges.BUCKET` of them, whatever their number.
"""

import contextlib
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from inlink.base.arrays import UInt32Array
from inlink.base.folder import building
from inlink.base.unfinished import unfinished_folder
from inlink.errors import InputError
from inlink.graph.batches import ArcBatch, Level
from inlink.graph.collect import collect, write_part
from inlink.graph.graph import FORMAT, KIND, Graph
from inlink.graph.merging import merge_parts
from inlink.graph.names import Names
from inlink.graph.part import InputPart
from inlink.graph.rows import COMPRESSED
from inlink.graph.sinks import FolderSink
from inlink.graph.source import Source


class Destination(TypedDict, total=False):
    """Where and how the folder of a graph is written.

    Attributes
    ----------
    into : path-like or None
        The folder to build. None makes a temporary folder, which is removed with the graph.
    compress : bool
        Compress the rows.
    """

    into: str | os.PathLike[str] | None
    compress: bool


class BuildOptions(Destination, total=False):
    """How a graph is built.

    Attributes
    ----------
    level : {"page", "host", "domain"} or None
        The kind of the names; None if it is unknown.
    count : bool
        Keep the number of duplicates of an arc as its weight. Given weights are always kept, and add up.
    meta : dict, function that returns a dict, or None
        Fields of the header that describe the origin: JSON values. A function is called after the last batch.
    from_parent : uint32[number of the parent's nodes] or None
        For a graph derived from another: the new number of each of the parent's nodes, :data:`NO_NODE` if it was left
        out.
    """

    level: Level | None
    count: bool
    meta: dict[str, Any] | Callable[[], dict[str, Any]] | None
    from_parent: UInt32Array | None


def build_graph(
    batches: Iterable[ArcBatch],
    *,
    names: Names | None = None,
    num_nodes: int | None = None,
    **options: Unpack[BuildOptions],
) -> Graph:
    """Build a graph from a stream of arc batches.

    Parameters
    ----------
    batches : iterable of ArcBatch
        All with names, or all with numbers.
    names : Names or None
        The nodes' names, where batches hold numbers.
    num_nodes : int or None
        The number of nodes, if batches hold numbers. None means one more than the largest number.
    **options
        See :class:`BuildOptions`.

    Returns
    -------
    Graph
        The graph. Its weights are uint32 if all are whole and their total is below 2³², otherwise float64.

    Raises
    ------
    InputError
        If a node's number is out of range, or a name occurs twice in ``names``.
    ParameterError
        If a weight is not a finite number above 0.
    inlink.errors.OutputError
        If the folder cannot be written.
    """
    return build_sources([Source(iter(batches), names, num_nodes)], **options)


def build_sources(
    sources: Sequence[Source],
    *,
    failed: Callable[[int, InputError], None] | None = None,
    self_loops: bool = True,
    **options: Unpack[BuildOptions],
) -> Graph:
    """Build one graph from several sources.

    Parameters
    ----------
    sources : sequence of Source
        All with names, or all with numbers. Nodes of a single source keep its numbers. If several sources have names,
        nodes are numbered in byte order of their names.
    failed : function of (int, InputError), or None
        Is called with the place of a source that cannot be read to its end, and with the error. Unless it raises, the
        source is left out, with the arcs that it gave so far. None raises the error.
    self_loops : bool
        Keep the arcs from a node to itself. Their nodes are kept in any case.
    **options
        See :class:`BuildOptions`. :func:`build_graph` says what is returned and raised.
    """

    def write(sink: FolderSink, scratch: Path) -> None:
        parts: list[InputPart] = []
        for place, source in enumerate(sources):
            try:
                if len(sources) == 1:
                    collect(source, sink, scratch, self_loops)
                    return
                if source.part is not None and self_loops:
                    parts.append(source.part)
                    continue
                path = scratch / f"part.{place}"
                # Weights may only come with a later source, and then repeats of these arcs count.
                parts.append(write_part(path, source, scratch, keep=True, self_loops=self_loops, sync=False))
            except InputError as error:
                if failed is not None:
                    failed(place, error)
                if failed is None or len(sources) == 1:
                    raise
        merge_parts(parts, sink, scratch)

    return _built(write, **options)


def build_parts(parts: Sequence[InputPart], **options: Unpack[BuildOptions]) -> Graph:
    """Build one graph from parts, all with names, or all with numbers.

    The option `count` needs parts that keep weights; see :class:`BuildOptions`.

    Raises
    ------
    inlink.errors.InputError
        If a part is damaged.
    inlink.errors.ParameterError
        If some parts have names and others numbers.
    inlink.errors.OutputError
        If the folder cannot be written.
    """
    return _built(lambda sink, scratch: merge_parts(parts, sink, scratch), **options)


def _built(
    write: Callable[[FolderSink, Path], None],
    *,
    level: Level | None = None,
    count: bool = False,
    into: str | os.PathLike[str] | None = None,
    meta: dict[str, Any] | Callable[[], dict[str, Any]] | None = None,
    from_parent: UInt32Array | None = None,
    compress: bool = False,
) -> Graph:
    with contextlib.ExitStack() as stack:
        if into is None:
            folder = stack.enter_context(unfinished_folder(Path(tempfile.gettempdir(), "inlink"))) / "graph"
        else:
            folder = Path(into)
        with building(folder, KIND, COMPRESSED if compress else FORMAT, sync=into is not None) as writer:
            write(FolderSink(writer, count, compress), writer.scratch)
            if from_parent is not None:
                writer.write("from_parent", from_parent)
            writer.header.meta.update((meta() if callable(meta) else meta) or {})
            if level:
                writer.header.meta["level"] = level
        graph = Graph._built(folder)
        # A temporary folder is removed when the graph is no longer used.
        weakref.finalize(graph, stack.pop_all().close)
    return graph

"""`read`: a graph from whatever holds links."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from inlink.errors import ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.build import build_graph
from inlink.graph.graph import Graph, Level
from inlink.graph.interop import GraphLike, as_graph
from inlink.sources.damage import Tally
from inlink.sources.recognise import format_named, read_source, recognise
from inlink.sources.source import Source

__all__ = ["read"]

ARCHIVES = ("warc", "arc", "wat")


def read(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | GraphLike,
    *,
    level: Level | None = None,
    format: str | None = None,
    links: Literal["a", "all"] = "a",
    nofollow: bool = True,
    strict: bool = False,
    count: bool = False,
    crawled_only: bool = False,
    nodes: Literal["ids", "names"] | None = None,
    separator: str | None = None,
    weights: bool | None = None,
    table: str | None = None,
    strip_www: bool = False,
    private_suffixes: bool = False,
    into: str | os.PathLike[str] | None = None,
) -> Graph:
    r"""Read a link graph.

    Parameters
    ----------
    source : path-like, several of them, SciPy sparse matrix, or NetworkX graph
        Archives (WARC, ARC, WAT), graph files of any format in :data:`inlink.sources.recognise.FORMATS`, or a graph's
        folder that inlink built. Several archives, or several edge lists, make one graph.
    level : {"page", "host", "domain"} or None
        What becomes one node. None means pages for archives, and otherwise what the source has. Another level than
        the source's is folded to, with :meth:`Graph.fold`'s defaults.
    format : str or None
        The format's name, instead of recognising it by content.
    links : {"a", "all"}
        Of archives: anchors, or every tag that Common Crawl counts.
    nofollow : bool
        Of archives: keep links that ask not to be followed.
    strict : bool
        Of archives: refuse damage, instead of skipping damaged records and counting them in ``meta["skipped"]``.
    count : bool
        Keep how often an arc stood in the source as its weight.
    crawled_only : bool
        Keep only pages that were crawled, and the links between them.
    nodes : {"ids", "names"} or None
        Of edge lists: what the columns are; None looks.
    separator : str or None
        Of edge lists: what stands between fields; None looks.
    weights : bool or None
        Of edge lists: whether the third column is a weight; None looks.
    table : str or None
        Of SQLite files: the table with a row an arc; None looks.
    strip_www : bool
        Take ``www.`` off hosts, as Common Crawl did before the end of 2025.
    private_suffixes : bool
        Domains by the suffix list's private section too.
    into : path-like or None
        The folder to build; an older graph there is replaced once the new one is whole. None makes a temporary one
        that goes when the graph does.

    Returns
    -------
    Graph
        Nodes that have names are numbered in byte order of their names, unless the source numbers them.

    Raises
    ------
    inlink.errors.InputError
        If a source cannot be read; :class:`~inlink.errors.FormatError` if its format is not known,
        :class:`~inlink.errors.DamageError` if it is damaged and ``strict`` or cannot be skipped over.
    inlink.errors.OutputError
        If the folder cannot be written.
    inlink.errors.ParameterError
        If options do not go together.

    Examples
    --------
    >>> import inlink
    >>> with open("links.tsv", "w") as file:
    ...     _ = file.write("a\tb\nb\tc\n")
    >>> inlink.read("links.tsv")
    <inlink graph: 3 nodes, 2 arcs>
    """
    if not isinstance(source, str | os.PathLike | list | tuple):
        return _adapt(as_graph(source), level, crawled_only, into, strip_www, private_suffixes)
    paths = [Path(path) for path in ([source] if isinstance(source, str | os.PathLike) else source)]
    if not paths:
        raise ParameterError("no source is given")
    if format is not None:
        format_named(format)
    formats = [format or recognise(path) for path in paths]
    tally = Tally(strict)
    fold_to = None if level == "page" else level
    options: dict[str, Any] = {"nodes": nodes, "separator": separator, "weights": weights, "table": table}
    if all(name in ARCHIVES for name in formats):
        fold_to = None
        options |= {
            "level": level or "page",
            "links": links,
            "nofollow": nofollow,
            "strict": strict,
            "strip_www": strip_www,
            "private_suffixes": private_suffixes,
            "tally": tally,
        }
    elif len(set(formats)) > 1:
        raise ParameterError(
            f"sources of different formats ({', '.join(sorted(set(formats)))}) make no one graph"
        )
    elif formats[0] == "graph":
        if len(paths) > 1:
            raise ParameterError("one graph's folder at a time")
        graph = Graph.open(paths[0])
        return _adapt(graph, level, crawled_only, into, strip_www, private_suffixes)
    elif len(paths) > 1 and formats[0] != "edgelist":
        raise ParameterError(
            f"several sources of format {formats[0]} make no one graph: read them one at a time"
        )
    sources = [read_source(path, name, **options) for path, name in zip(paths, formats, strict=True)]
    build: dict[str, Any] = {"count": count, "meta": lambda: _origin(paths, formats, tally)}
    if fold_to is None and not crawled_only:
        return _build(sources, into, **build)
    return _adapt(_build(sources, None, **build), level, crawled_only, into, strip_www, private_suffixes)


def _build(sources: list[Source], into: str | os.PathLike[str] | None, **options: Any) -> Graph:
    def batches() -> Iterator[ArcBatch]:
        for source in sources:
            yield from source.batches

    first = sources[0]
    given = max((source.num_nodes for source in sources if source.num_nodes is not None), default=None)
    return build_graph(batches(), names=first.names, num_nodes=given, level=first.level, into=into, **options)


def _origin(paths: list[Path], formats: list[str], tally: Tally) -> dict[str, Any]:
    """What the header says of where a graph came from."""
    origin: dict[str, Any] = {
        "sources": [f"{path} ({name})" for path, name in zip(paths[:100], formats, strict=False)],
    }
    if tally.records:
        origin |= {"records": tally.records, "pages": tally.pages, "links": tally.links}
    if tally.skipped:
        origin["skipped"] = {
            f"{reason}, first in {found.path} at byte {found.offset:,}": found.count
            for reason, found in tally.skipped.items()
        }
    return origin


def _adapt(
    graph: Graph,
    level: Level | None,
    crawled_only: bool,
    into: str | os.PathLike[str] | None,
    strip_www: bool,
    private_suffixes: bool,
) -> Graph:
    """Cut and fold a graph that was read as its source has it."""
    fold_to = level if level in ("host", "domain") and level != graph.level else None
    if level == "page" and graph.level in ("host", "domain"):
        raise ParameterError(f"this is a graph of {graph.level}s: pages cannot be had from it")
    if crawled_only:
        if graph.crawled is None:
            raise ParameterError("the source does not say which pages were crawled")
        graph = graph.subgraph(graph.crawled, into=None if fold_to else into)
    if fold_to == "host" or fold_to == "domain":
        return graph.fold(fold_to, strip_www=strip_www, private_suffixes=private_suffixes, into=into)
    if into is None or crawled_only:
        return graph
    return graph.subgraph(np.ones(graph.num_nodes, np.bool_), into=into)

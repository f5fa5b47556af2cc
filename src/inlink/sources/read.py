"""`read`: a graph from any source of links."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from inlink.base.damage import Tally
from inlink.errors import FormatError, ParameterError
from inlink.graph.batches import ArcBatch, Level
from inlink.graph.build import build_graph
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.graph.source import Source
from inlink.sources.formats import ARCHIVES, FORMATS, SITES, check_options, format_named, implementation
from inlink.sources.recognise import recognise

__all__ = ["read", "read_source"]


def read_source(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    level: Level | None = None,
    tally: Tally | None = None,
    options: Mapping[str, object] | None = None,
) -> Source:
    """Open any file that holds a graph.

    Parameters
    ----------
    path : path-like
        A file or folder, or whatever else the format takes (the common beginning of several files, a pattern).
    format : str or None
        A name in :data:`inlink.sources.formats.FORMATS`. None: recognised by content.
    level : {"page", "host", "domain"} or None
        What an archive's nodes become. Other formats have the level that they have.
    tally : Tally or None
        Counts what is read from an archive and what is left out.
    options : mapping of str to object, or None
        Options of the format, as its entry in the table declares them. A value of None means not given.

    Raises
    ------
    inlink.errors.FormatError
        If the format is not known, or is that of a graph's folder, which :meth:`Graph.open` reads.
    inlink.errors.ParameterError
        If the format has no such option, or the option no such value.
    inlink.errors.InputError
        If the reader finds an error in the file.
    """
    entry = format_named(format or recognise(path))
    given = check_options(path, entry, options or {})
    if entry.reader is None:
        raise FormatError(f"{path} is {entry.description}: open it with inlink.Graph.open")
    if entry.name in ARCHIVES:
        given |= {"level": level, "tally": tally}
    source: Source = implementation(entry.reader)(path, **given)
    return source


def read(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | GraphLike,
    *,
    level: Level | None = None,
    format: str | None = None,
    links: Literal["a", "all"] | None = None,
    nofollow: bool | None = None,
    strict: bool | None = None,
    count: bool = False,
    crawled_only: bool = False,
    nodes: Literal["ids", "names"] | None = None,
    separator: str | None = None,
    weights: bool | None = None,
    table: str | None = None,
    columns: Sequence[str] | None = None,
    strip_www: bool | None = None,
    private_suffixes: bool | None = None,
    into: str | os.PathLike[str] | None = None,
) -> Graph:
    r"""Read a link graph.

    An option that does not apply to the source's format is refused, so leave it None there.

    Parameters
    ----------
    source : path-like, several of them, SciPy sparse matrix, or NetworkX graph
        Archives (WARC, ARC, WAT), graph files of any format in :data:`inlink.sources.formats.FORMATS`, or a graph's
        folder that inlink built. Several archives, or several edge lists, are read into one graph.
    level : {"page", "host", "domain"} or None
        What becomes one node. None means pages for archives, and otherwise the level of the source. A graph of a finer
        level is folded with the defaults of :meth:`Graph.fold`.
    format : str or None
        The format's name. None: recognised by content.
    links : {"a", "all"} or None
        Archives: anchors, or every tag that Common Crawl counts. None means ``"a"``.
    nofollow : bool or None
        Archives: keep links marked ``nofollow``. None means True.
    strict : bool or None
        Archives: refuse damage. None or False leaves damaged records out and counts them in ``meta["skipped"]``.
    count : bool
        Use the number of times that an arc stands in the source as its weight.
    crawled_only : bool
        Keep only pages that were crawled, and the links between them.
    nodes : {"ids", "names"} or None
        Edge lists: what the columns hold. None: detected.
    separator : str or None
        Edge lists: one character, or ``"tab"``, ``"comma"``, ``"semicolon"``, ``"space"``. None: detected.
    weights : bool or None
        Edge lists: whether the third column holds weights. None: detected.
    table : str or None
        SQLite: the table with an arc in each row. None: detected.
    columns : sequence of str or None
        SQLite and Parquet: the columns of source, target and, if wanted, weight. None: detected.
    strip_www : bool or None
        Level host or domain: drop ``www.`` from hosts, as Common Crawl did before the end of 2025. None means False.
    private_suffixes : bool or None
        Level domain: use the private section of the suffix list too. None means False.
    into : path-like or None
        The folder to build. An older graph there is replaced once the new one is complete. None builds a temporary
        folder that is removed with the graph.

    Returns
    -------
    Graph
        Nodes with names are numbered in byte order of their names, unless the source numbers them.

    Raises
    ------
    inlink.errors.InputError
        If a source cannot be read; :class:`~inlink.errors.FormatError` if its format is not known,
        :class:`~inlink.errors.DamageError` if it is damaged and `strict` is set, or damage cannot be skipped.
    inlink.errors.OutputError
        If the folder cannot be written.
    inlink.errors.ParameterError
        If an option does not apply to the format, has no such value, or does not go with another one.

    Examples
    --------
    >>> import inlink
    >>> with open("links.tsv", "w") as file:
    ...     _ = file.write("a\tb\nb\tc\n")
    >>> inlink.read("links.tsv")
    <inlink graph: 3 nodes, 2 arcs>
    """
    sites = _check_sites(level, strip_www, private_suffixes)
    options: dict[str, object] = {
        "links": links,
        "nofollow": nofollow,
        "strict": strict,
        "nodes": nodes,
        "separator": separator,
        "weights": weights,
        "table": table,
        "columns": columns,
    }
    if not isinstance(source, str | os.PathLike | list | tuple):
        given = options | {"format": format, "count": count or None}
        for name in (name for name, value in given.items() if value is not None):
            raise ParameterError(f"`{name}` applies only to files; got {type(source).__name__}")
        return _adapt(as_graph(cast("GraphLike", source)), level, crawled_only, into, sites)
    paths = [Path(path) for path in ([source] if isinstance(source, str | os.PathLike) else source)]
    if not paths:
        raise ParameterError("no source is given")
    if format is not None:
        format_named(format)
    formats = [format or recognise(path) for path in paths]
    for path, name in zip(paths, formats, strict=True):
        check_options(path, FORMATS[name], options)
    archives = all(name in ARCHIVES for name in formats)
    if len(paths) > 1 and not archives:
        _check_together(formats)
    if formats[0] == "graph":
        if count:
            raise ParameterError(f"{paths[0]}: format graph has no option `count`; build the graph with it")
        return _adapt(Graph.open(paths[0]), level, crawled_only, into, sites)
    tally = Tally(bool(strict))
    fold_to = None if archives or level == "page" else level
    sources = [
        read_source(path, name, level=level, tally=tally, options=options | (sites if archives else {}))
        for path, name in zip(paths, formats, strict=True)
    ]

    def build(folder: str | os.PathLike[str] | None) -> Graph:
        return _build(sources, folder, count, lambda: _origin(paths, formats, tally))

    if fold_to is None and not crawled_only:
        return build(into)
    return _adapt(build(None), level, crawled_only, into, {} if archives else sites)


def _check_sites(
    level: Level | None, strip_www: bool | None, private_suffixes: bool | None
) -> dict[str, object]:
    """Return the options of hosts and domains; refuse those that the level has no use for."""
    if level not in (None, "page", "host", "domain"):
        raise ParameterError(f"`level` must be 'page', 'host' or 'domain'; got {level!r}")
    sites: dict[str, object] = {"strip_www": strip_www, "private_suffixes": private_suffixes}
    for option in SITES:
        if sites[option.name] is None:
            continue
        option.check(sites[option.name])
        levels = ("host", "domain") if option.name == "strip_www" else ("domain",)
        if level not in levels:
            wanted = " or ".join(map(repr, levels))
            raise ParameterError(f"{option.label} applies only if `level` is {wanted}; got {level!r}")
    return sites


def _check_together(formats: list[str]) -> None:
    """Refuse several sources that cannot become one graph."""
    different = sorted(set(formats))
    if len(different) > 1:
        raise ParameterError(f"Cannot combine sources of different formats: {', '.join(different)}")
    if different != ["edgelist"]:
        raise ParameterError(
            f"Cannot combine several sources of format {different[0]}: read them one at a time"
        )


def _build(
    sources: list[Source],
    into: str | os.PathLike[str] | None,
    count: bool,
    meta: Callable[[], dict[str, Any]],
) -> Graph:
    def batches() -> Iterator[ArcBatch]:
        for source in sources:
            yield from source.batches

    first = sources[0]
    given = max((source.num_nodes for source in sources if source.num_nodes is not None), default=None)
    return build_graph(
        batches(),
        names=first.names,
        num_nodes=given,
        level=first.level,
        into=into,
        count=count,
        meta=meta,
    )


def _origin(paths: list[Path], formats: list[str], tally: Tally) -> dict[str, Any]:
    """Return what the header tells of the graph's sources."""
    origin: dict[str, Any] = {
        "sources": [f"{path} ({name})" for path, name in zip(paths[:100], formats, strict=False)],
    }
    if tally.records:
        origin |= {"records": tally.records, "pages": tally.pages, "links": tally.links}
    if tally.skipped:
        origin["skipped"] = {
            f"{reason}, first in {entry.path} at byte {entry.offset:,}": entry.count
            for reason, entry in tally.skipped.items()
        }
    return origin


def _adapt(
    graph: Graph,
    level: Level | None,
    crawled_only: bool,
    into: str | os.PathLike[str] | None,
    sites: Mapping[str, object],
) -> Graph:
    """Cut and fold a graph that was read at the level of its source."""
    fold_to = level if level in ("host", "domain") and level != graph.level else None
    if level == "page" and graph.level in ("host", "domain"):
        raise ParameterError(f"`level` cannot be 'page': the nodes of this graph are {graph.level}s")
    given: dict[str, Any] = {name: value for name, value in sites.items() if value is not None}
    if given and fold_to is None:
        raise ParameterError(
            f"`{next(iter(given))}` does not apply: the nodes of this graph are {level}s already"
        )
    if crawled_only:
        if graph.crawled is None:
            raise ParameterError(
                "`crawled_only` does not apply: the source does not tell which pages were crawled"
            )
        graph = graph.subgraph(graph.crawled, into=None if fold_to else into)
    if fold_to == "host" or fold_to == "domain":
        return graph.fold(fold_to, into=into, **given)
    if into is None or crawled_only:
        return graph
    return graph.subgraph(np.ones(graph.num_nodes, np.bool_), into=into)

"""`read`: a graph from any source of links."""

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from inlink.errors import ParameterError
from inlink.graph.batches import Level
from inlink.graph.build import build_sources
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.sources.files import Files
from inlink.sources.formats import ARCHIVES, FORMATS, SITES, check_options, format_named
from inlink.sources.recognise import recognise

__all__ = ["read"]


def read(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | GraphLike,
    *,
    level: Level | None = None,
    format: str | None = None,
    links: Literal["a", "all"] | None = None,
    nofollow: bool | None = None,
    self_links: bool | None = None,
    strict: bool = False,
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
    self_links : bool or None
        Archives: keep links to a place on the page itself (``#top``), as self-loops. None means False.
    strict : bool
        Refuse damaged archives, and any file that cannot be read. False leaves out damaged records of archives, and,
        if there are several sources, those that cannot be read to their end. ``meta["skipped"]`` has the reasons with
        their places. A warning gives the number of files left out.
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
        If the source, or none of several, can be read; :class:`~inlink.errors.FormatError` if its format is not known,
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
    if not isinstance(strict, bool):
        raise ParameterError(f"`strict` must be True or False; got {strict!r}")
    options: dict[str, object] = {
        "links": links,
        "nofollow": nofollow,
        "self_links": self_links,
        "nodes": nodes,
        "separator": separator,
        "weights": weights,
        "table": table,
        "columns": columns,
    }
    if not isinstance(source, str | os.PathLike | list | tuple):
        given = options | {"format": format, "count": count or None, "strict": strict or None}
        for name in (name for name, value in given.items() if value is not None):
            raise ParameterError(f"`{name}` applies only to files; got {type(source).__name__}")
        return _adapt(as_graph(cast("GraphLike", source)), level, crawled_only, into, sites)
    paths = [Path(path) for path in ([source] if isinstance(source, str | os.PathLike) else source)]
    if not paths:
        raise ParameterError("no source is given")
    if format is not None:
        format_named(format)
    files = Files(len(paths), strict)
    for place, path in enumerate(paths):
        with files.trying(place):
            files.add(place, path, format or recognise(path))
    formats = files.formats
    for path, name in zip(files.paths, formats, strict=True):
        check_options(path, FORMATS[name], options)
    archives = all(name in ARCHIVES for name in formats)
    if len(set(formats)) > 1 and not archives:
        listed = ", ".join(sorted(set(formats)))
        raise ParameterError(f"Cannot combine sources of different formats: {listed}")
    if formats == ["graph"]:
        if count:
            raise ParameterError(
                f"{files.paths[0]}: format graph has no option `count`; build the graph with it"
            )
        graph = _adapt(Graph.open(files.paths[0]), level, crawled_only, into, sites)
    else:
        files.open(level, options | (sites if archives else {}))
        if len(files.sources) > 1 and formats[0] not in (*ARCHIVES, "edgelist"):
            raise ParameterError(
                f"Cannot combine several sources of format {formats[0]}: read them one at a time"
            )
        fold_to = None if archives or level == "page" else level
        direct = fold_to is None and not crawled_only
        graph = build_sources(
            files.sources,
            failed=files.failed,
            level=files.sources[0].level,
            into=into if direct else None,
            count=count,
            meta=files.origin,
        )
        if not direct:
            graph = _adapt(graph, level, crawled_only, into, {} if archives else sites)
    if files.errors:
        warnings.warn(files.told(), stacklevel=2)
    return graph


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

"""`read`: a graph from any source of links."""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Unpack, cast

import numpy as np

from inlink.archives.period import Period
from inlink.base.declare import Parameter, keywords, parameters_of
from inlink.base.opening import STDIN
from inlink.errors import ParameterError
from inlink.graph.batches import Level
from inlink.graph.build import build_sources
from inlink.graph.derive import ORIGIN
from inlink.graph.frames import graph_of_table, is_table
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.sources.files import Files
from inlink.sources.formats import (
    ARCHIVES,
    FOLDERS,
    FORMATS,
    SITES,
    ArchiveOptions,
    EdgeListOptions,
    SiteOptions,
    SqliteOptions,
    check_options,
    format_named,
    label,
)
from inlink.sources.graphs import source_of
from inlink.sources.inputs import Location, expand
from inlink.sources.recognise import recognise

if TYPE_CHECKING:
    from inlink.sources.workers import Runner

_WORKERS = Parameter(name="workers", kind=int, at_least=1, at_most=1024)


class ReadOptions(ArchiveOptions, EdgeListOptions, SqliteOptions, SiteOptions, total=False):
    """The keywords of :func:`read`."""

    level: Level | None
    format: str | None
    strict: Annotated[bool, Parameter(default=False)]
    count: Annotated[bool, Parameter(default=False)]
    crawled_only: Annotated[bool, Parameter(default=False)]
    self_loops: bool | None
    max_node: Annotated[int | None, Parameter(at_least=0, at_most=2**32 - 2)]
    base: str | None
    workers: Annotated[int | Callable[..., Any], Parameter(default=1)]
    into: str | os.PathLike[str] | None
    compress: Annotated[bool, Parameter(default=False)]


@keywords(ReadOptions)
def read(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | GraphLike,
    **options: Unpack[ReadOptions],
) -> Graph:
    r"""Read a link graph.

    An option that does not apply to the source's format is refused, so leave it None there.

    Parameters
    ----------
    source : path-like, several of them, or graph in memory
        Archives (WARC, WACZ, ARC, WAT, CDXJ), graph files of any format in :data:`inlink.sources.formats.FORMATS`, or
        folders of graphs and crawls. ``"-"`` is standard input. Several archives, several edge lists, or several
        folders are read into one graph, and the weights of equal arcs are added up. A path may be a pattern
        (``"*.wat.gz"``), a URL (``https://``, ``http://``, ``s3://``), or a list of paths (``"@wat.paths.gz"``), whose
        lines have a path or URL, or a key, a tab, and a path or URL. A graph in memory is a list or array of pairs, as
        in :meth:`Graph.from_arcs`; a sparse matrix of SciPy; a graph of NetworkX or igraph, which keeps the order of
        its nodes; or a table with an arc in each row, such as a data frame of pandas, Dask or Polars, a relation of
        DuckDB or an Arrow table.
    level : {"page", "host", "domain"} or None
        The kind of the nodes. None means pages for archives, and otherwise the level of the source. A graph of a finer
        level is folded with the defaults of :meth:`Graph.fold`.
    format : str or None
        The format's name. None: recognised by content.
    links : {"a", "all"} or None
        Archives: anchors, or every tag that Common Crawl counts. None means ``"a"``, or ``"all"`` with `like`.
    nofollow : bool or None
        Archives: keep links marked ``nofollow``. None means True.
    self_links : bool or None
        Archives: keep links to a place on the page itself (``#top``), as self-loops. None means False.
    like : {"commoncrawl"} or None
        WAT files: take links by the rules of Common Crawl's own graphs. It sets `links` and the next three parameters,
        unless they are given.
    any_status, location, exact_schemes : bool or None
        WAT files: take links of pages with any HTTP status; take the header ``Location`` as a link; take texts in
        ``<meta>`` and ``<style>`` as URLs only with schemes in lower case. None means False, True and False. With
        `like` it means True, False and True. The last two apply to all links only.
    since, until : str or None
        Archives: take only pages that were archived from `since` on, and before `until`. A date is a year, ``2026-01``,
        ``2026-01-31``, or an ISO time, in UTC if it names no zone.
    strict : bool
        Refuse damaged archives, and any file that cannot be read. False leaves out damaged records of archives, and,
        if there are several sources, those that cannot be read to their end. ``meta["skipped"]`` has the reasons with
        their places. A warning gives the number of files left out.
    count : bool
        Use the number of times that an arc occurs in the source as its weight.
    crawled_only : bool
        Keep only pages that were crawled, and the links between them.
    self_loops : bool or None
        Keep the arcs from a node to itself. None means True, but False if `level` makes hosts or domains of pages.
    nodes : {"ids", "names"} or None
        Edge lists: the contents of the columns, numbers or names. None: detected.
    separator : str or None
        Edge lists: one character, or ``"tab"``, ``"comma"``, ``"semicolon"``, ``"space"``. None: detected.
    weights : bool or None
        Edge lists: whether the third column holds weights. None: detected.
    header : bool or None
        Edge lists: whether the first line names the columns and is no arc. None: it is if it names source and target in
        words such as ``from`` and ``to``. A warning tells of other lines that look like a header.
    max_node : int or None
        The largest number that a node may have, if nodes have numbers and no names. None: the size of the input bounds
        it, so that a wrong number does not take all memory. A list in which each number occurs is always read.
    table : str or None
        SQLite: the table with an arc in each row. None: detected.
    columns : sequence of str or None
        SQLite, Parquet and data frames: the columns of source, target and, if wanted, weight. None: detected, or all
        columns of a data frame.
    hosts : {"reversed", "plain"} or None
        Level host or domain: nodes whose names are no URLs are hosts, written ``com.example.www`` or
        ``www.example.com``. None: detected by a sample of the names, or refused if the sample does not tell.
        ``meta["hosts"]`` has the decision.
    strip_www : bool or None
        Level host or domain: drop ``www.`` from hosts, as Common Crawl did before the end of 2025. None means False.
    private_suffixes : bool or None
        Level domain: use the private section of the suffix list too. None means False.
    base : str or None
        A folder or URL that is put before the relative paths of lists.
    workers : int, or function
        Several archives: the number of processes that read them. A function does the work elsewhere, such as
        :class:`inlink.spark.Tasks`, also for one archive.
    into : path-like or None
        The folder to build. If several archives are read and the build is interrupted, the parts that are complete
        stay in ``NAME.parts`` beside it, and the same call goes on with the other files. An older graph there is
        replaced once the new one is complete. None builds a temporary folder that is removed with the graph.
    compress : bool
        Compress the rows: about half of the disk for hosts, a quarter for pages. PageRank and its variants read them as
        they are. Weights are not compressed. See :class:`inlink.graph.graph.CompressedGraph`.

    Returns
    -------
    Graph
        Nodes with names are numbered in byte order of their names, unless a single source numbers them. Folders of
        graphs without names are merged by node numbers.

    Raises
    ------
    inlink.errors.InputError
        If the source, or each of several sources, cannot be read. It is a :class:`~inlink.errors.FormatError` if the
        format is not known, and a :class:`~inlink.errors.DamageError` if the source is damaged and `strict` is set, or
        the damage cannot be skipped.
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
    level, format, strict, count = options["level"], options["format"], options["strict"], options["count"]
    sites = _check_sites(options)
    _ = Period.of(options["since"], options["until"])
    for name in ("strict", "self_loops", "compress"):
        flag = options[name]
        if not isinstance(flag, bool) and (flag is not None or name != "self_loops"):
            raise ParameterError(f"`{name}` must be True or False; got {flag!r}")
    max_node = options["max_node"]
    if max_node is not None:
        parameters_of(ReadOptions)["max_node"].check(max_node, "`max_node`")
    wanted = _Wanted(
        level,
        count,
        options["crawled_only"],
        options["self_loops"],
        options["into"],
        sites,
        options["compress"],
        max_node,
    )
    own = {name: options[name] for entry in FORMATS.values() for name in entry.options}  # type: ignore[literal-required]
    base, workers = options["base"], options["workers"]
    if isinstance(source, str | os.PathLike):
        source = [source]
    if not isinstance(source, list | tuple) or not all(
        isinstance(each, str | os.PathLike) for each in source
    ):
        of_files = own | {"format": format, "strict": strict or None, "base": base, "max_node": max_node}
        return _adapt(_in_memory(cast("GraphLike", source), of_files, options["columns"], count), wanted)
    elsewhere = callable(workers)
    if not elsewhere:
        _WORKERS.check(workers, "`workers`")
    paths = _paths(source, base)
    files = _recognised(paths, format, strict)
    _check_together(files, own, count)
    if files.formats == ["graph"] and len(paths) == 1:
        return _adapt(Graph.open(paths[0]), wanted)
    archives = all(name in ARCHIVES for name in files.formats)
    if archives and (len(paths) > 1 or elsewhere) and Path(STDIN) not in paths:
        graph = _of_archives(files, wanted, own, strict, workers)
    elif elsewhere:
        raise ParameterError(
            f"{paths[0]}: only WARC, ARC and WAT files can be read on a cluster, and this is of format "
            f"{files.formats[0]}: use inlink build"
        )
    elif workers != 1:
        raise ParameterError("`workers` applies only to several archives: leave it out")
    else:
        graph = _of_files(files, wanted, own)
    if files.errors:
        warnings.warn(files.told(), stacklevel=3)
    return graph


class _Wanted(NamedTuple):
    """The kind of graph that a caller of :func:`read` asks for. The fields are parameters of ``read``."""

    level: Level | None
    counted: bool
    crawled_only: bool
    self_loops: bool | None
    into: str | os.PathLike[str] | None
    sites: Mapping[str, object]
    compress: bool
    max_node: int | None


def _in_memory(
    source: GraphLike, of_files: dict[str, object], columns: Sequence[str] | None, count: bool
) -> Graph:
    """Return the graph of an object in memory. Options that apply only to files are refused."""
    table = is_table(source) and not isinstance(source, Graph)
    given = of_files | ({"columns": None} if table else {"count": count or None})
    for name in (name for name, value in given.items() if value is not None):
        raise ParameterError(f"`{name}` applies only to files; got {type(source).__name__}")
    return graph_of_table(source, columns=columns, count=count) if table else as_graph(source)


def _paths(sources: Iterable[str | os.PathLike[str]], base: str | None) -> list[Location]:
    """Return the files that sources stand for: at least one, and standard input at most once."""
    paths = expand(sources, base)
    if not paths:
        raise ParameterError("no source is given")
    if paths.count(Path(STDIN)) > 1:
        raise ParameterError("standard input (-) can be read once only")
    return paths


def _recognised(paths: list[Location], format: str | None, strict: bool) -> Files:
    """Return the files with their formats, without those that cannot be read."""
    if format is not None:
        format_named(format)
    files = Files(len(paths), strict)
    for place, path in enumerate(paths):
        with files.trying(place):
            files.add(place, path, format or recognise(path))
    return files


def _of_archives(
    files: Files, wanted: _Wanted, options: Mapping[str, object], strict: bool, workers: "int | Runner"
) -> Graph:
    """Build the graph of archives by way of their parts."""
    from inlink.sources.archiveparts import build_archives

    last = not wanted.crawled_only
    graph = build_archives(
        files,
        level=wanted.level,
        count=wanted.counted,
        self_loops=wanted.self_loops,
        strict=strict,
        options={**options, **wanted.sites},
        workers=workers,
        into=wanted.into if last else None,
        compress=wanted.compress and last,
    )
    return graph if last else _adapt(graph, wanted._replace(self_loops=wanted.self_loops or None, sites={}))


def _of_files(files: Files, wanted: _Wanted, options: Mapping[str, object]) -> Graph:
    """Read files one after the other, and build their graph."""
    archives = all(name in ARCHIVES for name in files.formats)
    files.open(
        level=wanted.level,
        self_loops=wanted.self_loops is True,
        repeats=wanted.counted,
        options={**options, **wanted.sites} if archives else options,
        max_node=wanted.max_node,
    )
    _check_alike(files)
    # Archives give hosts and domains at once. Other graphs are folded after they were built.
    direct = not wanted.crawled_only and (archives or wanted.level in (None, "page"))
    levels = {source.level for source in files.sources}
    graph = build_sources(
        files.sources,
        failed=files.failed,
        level=levels.pop() if len(levels) == 1 else None,
        into=wanted.into if direct else None,
        count=wanted.counted,
        self_loops=wanted.self_loops is not False,
        meta=files.origin,
        compress=wanted.compress and direct,
    )
    if direct:
        return graph
    sites = {} if archives else wanted.sites
    return _adapt(graph, wanted._replace(self_loops=wanted.self_loops or None, sites=sites))


def _check_sites(options: ReadOptions) -> dict[str, object]:
    """Return the options of hosts and domains; refuse those that the level has no use for."""
    level = options["level"]
    if level not in (None, "page", "host", "domain"):
        raise ParameterError(f"`level` must be 'page', 'host' or 'domain'; got {level!r}")
    sites: dict[str, object] = {name: options[name] for name in SITES}  # type: ignore[literal-required]
    for name, option in SITES.items():
        if sites[name] is None:
            continue
        option.check(sites[name], label(option))
        levels = ("domain",) if name == "private_suffixes" else ("host", "domain")
        if level not in levels:
            wanted = " or ".join(map(repr, levels))
            raise ParameterError(f"{label(option)} applies only if `level` is {wanted}; got {level!r}")
    return sites


def _check_together(files: Files, options: Mapping[str, object], count: bool) -> None:
    """Refuse options that do not apply to all formats, and formats that cannot become one graph."""
    for path, name in zip(files.paths, files.formats, strict=True):
        check_options(path, FORMATS[name], options)
        if count and name == "graph":
            raise ParameterError(f"{path}: format graph has no option `count`; build the graph with it")
    formats = set(files.formats)
    if len(formats) > 1 and not any(formats <= set(kinds) for kinds in (ARCHIVES, FOLDERS)):
        raise ParameterError(
            f"Cannot combine sources of different formats: {', '.join(sorted(formats))}. Build a graph of each, and "
            "merge the graphs."
        )


def _check_alike(files: Files) -> None:
    """Refuse sources that cannot become one graph."""
    if len(files.sources) < 2:
        return
    if files.formats[0] not in (*ARCHIVES, *FOLDERS, "edgelist"):
        raise ParameterError(
            f"Cannot combine several sources of format {files.formats[0]}: build a graph of each, and merge the graphs"
        )
    if files.formats[0] not in FOLDERS:
        return
    graphs = [pair for pair in zip(files.paths, files.sources, strict=True) if pair[1].num_nodes]
    for path, source in graphs:
        first, other = graphs[0]
        if (source.names is None) != (other.names is None):
            named, numbered = (first, path) if source.names is None else (path, first)
            raise ParameterError(
                f"Cannot combine {named}, whose nodes have names, with {numbered}, whose nodes have numbers only"
            )
    levels = {source.level: path for path, source in graphs if source.level is not None}
    if len(levels) > 1:
        listed = " and ".join(f"{path} ({level}s)" for level, path in levels.items())
        raise ParameterError(
            f"Cannot combine graphs of different levels: {listed}. Fold them to one level first."
        )


def _adapt(graph: Graph, wanted: _Wanted) -> Graph:
    """Cut and fold a graph that was read at the level of its source."""
    level, into, compress = wanted.level, wanted.into, wanted.compress
    fold_to = level if level in ("host", "domain") and level != graph.level else None
    if level == "page" and graph.level in ("host", "domain"):
        raise ParameterError(f"`level` cannot be 'page': the nodes of this graph are {graph.level}s")
    given: dict[str, Any] = {name: value for name, value in wanted.sites.items() if value is not None}
    if given and fold_to is None:
        raise ParameterError(
            f"`{next(iter(given))}` does not apply: the nodes of this graph are {level}s already"
        )
    if wanted.self_loops is False and fold_to is None and graph.num_nodes:
        last = not wanted.crawled_only
        graph = build_sources(
            [source_of(graph)],
            level=graph.level,
            into=into if last else None,
            self_loops=False,
            meta={key: graph.meta[key] for key in ORIGIN if key in graph.meta},
            compress=compress and last,
        )
        if last:
            return graph
    if wanted.crawled_only:
        if graph.crawled is None:
            raise ParameterError(
                "`crawled_only` does not apply: the source does not tell which pages were crawled"
            )
        graph = graph.subgraph(
            graph.crawled, into=None if fold_to else into, compress=compress and fold_to is None
        )
    if fold_to == "host" or fold_to == "domain":
        return graph.fold(
            fold_to, self_loops=wanted.self_loops is True, into=into, compress=compress, **given
        )
    if wanted.crawled_only or (into is None and not compress):
        return graph
    return graph.subgraph(np.ones(graph.num_nodes, np.bool_), into=into, compress=compress)

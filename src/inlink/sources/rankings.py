"""Rankings kept with a graph or with a crawl: load one, import one, align it with the graph, list the best nodes.

The rankings of a crawl are in its folder as ``rankings/NAME``, bound to the crawl's uuid. Page ids never change, so
a ranking stays valid for the pages that it knew, however many were discovered later.
"""

import contextlib
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from inlink.base.arrays import Float64Array, UInt64Array
from inlink.base.folder import Folder
from inlink.base.opening import Stream
from inlink.errors import InputError, ParameterError
from inlink.graph.graph import Graph, Rows
from inlink.graph.names import Names
from inlink.rank.ranking import FORMAT, KIND, Ranking
from inlink.rank.tables import is_table, read_table
from inlink.sources.crawlgraph import CrawlGraph
from inlink.sources.ranks import rank_rows
from inlink.sources.releases import rank_file
from inlink.store.format import NO_PAGE
from inlink.store.pages import Pages
from inlink.store.reader import is_crawl, known_pages, url_rules_of
from inlink.urls.canonical import UrlRules, canonical
from inlink.urls.hosts import registered_domain, reverse_host

_AT_A_TIME = 1 << 14


def load_ranking(graph: Graph, name: str) -> Ranking:
    """Load a ranking kept with a graph. A crawl's ranking is shorter than its graph if pages were discovered since.

    Raises
    ------
    inlink.errors.FolderError
        If there is no ranking of that name, or it belongs to another graph.
    """
    if not isinstance(graph, CrawlGraph):
        return Ranking.load(graph, name)
    ranking = _without_names(graph.path, name)
    if graph.names is not None:
        ranking.names = Names(graph.names.text, graph.names.offsets[: len(ranking) + 1])
    return ranking


def values_of(ranking: Ranking, graph: Graph, fill: float) -> Float64Array:
    """Return a ranking's values for each node of the graph, float64[num_nodes]; `fill` for pages discovered since."""
    more = graph.num_nodes - len(ranking)
    return np.concatenate([ranking.values, np.full(more, fill)]) if more else ranking.values


def ranking_of(path: Path, name: str) -> tuple[Ranking, object]:
    """Load a crawl's ranking of the pages that it knew, and its version, which changes when the ranking is replaced.

    Raises
    ------
    inlink.errors.FolderError
        If there is no ranking of that name, or it belongs to another crawl.
    """
    header = path / "rankings" / name / "header.json"
    version = (header.stat().st_mtime_ns, header.stat().st_ino) if header.is_file() else None
    return _without_names(path, name), version


def _without_names(path: Path, name: str) -> Ranking:
    """Load a crawl's ranking of the pages that it knew, without their names."""
    length = 0
    if (path / "rankings" / name).is_dir():
        header = Folder(path / "rankings" / name, KIND, FORMAT).header
        length = max((file.length for file in header.files.values()), default=0)
    return Ranking.load(_without_arcs(path, length), name)


def _without_arcs(path: Path, pages: int) -> CrawlGraph:
    """Return the first pages of a crawl as a graph that has neither their names nor their links."""
    offsets = cast("UInt64Array", np.broadcast_to(np.uint64(0), pages + 1))
    return CrawlGraph(path, Graph(Rows(offsets, np.empty(0, np.uint32)), checked=True))


def stored_ranking(path: str | os.PathLike[str], name: str) -> Ranking:
    """Load a ranking kept in a graph's or a crawl's folder; that of a crawl has no names.

    Raises
    ------
    inlink.errors.FolderError
        If there is no graph or crawl, or no such ranking.
    """
    return _without_names(Path(path), name) if is_crawl(path) else Ranking.load(path, name)


# -- import --------------------------------------------------------------------------------------------------


class Imported(NamedTuple):
    """Pages that got a value, and lines of the file whose URL or host the crawl does not know."""

    pages: int
    unknown: int


def import_ranking(
    crawl: str | os.PathLike[str],
    file: str | os.PathLike[str],
    name: str,
    *,
    by_host: bool = False,
    by_domain: bool = False,
    column: str = "harmonic",
) -> Imported:
    """Store a file's values as a ranking of a crawl.

    Parameters
    ----------
    crawl : path-like
        A crawl's folder. Another process may be writing it.
    file : path-like
        Lines of a URL, a tab and a value, a ranking that was exported as CSV, TSV or Parquet, or Common
        Crawl's ranks of hosts, which are recognised by their header. Text may be compressed, and may be a URL or a
        release: see :func:`inlink.sources.releases.rank_file`. All lines are read.
    name : str
        The name of the ranking.
    by_host : bool
        Whether lines name hosts instead of URLs. Each page then has the value of its host.
    by_domain : bool
        Whether lines name registered domains, such as Common Crawl's ranks of domains. Each page then has the value of
        its domain.
    column : {"harmonic", "pagerank"}
        The column of Common Crawl's ranks to use.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    inlink.errors.InputError
        If the file cannot be read, a value is negative or not finite, or no line names a page or host of the crawl.
    inlink.errors.ParameterError
        If the name cannot be the name of a folder, or both `by_host` and `by_domain` are set.
    """
    if by_host and by_domain:
        raise ParameterError("`by_host` and `by_domain` cannot both be set: give one of them")
    pages = known_pages(crawl)
    values = np.zeros(pages.num_pages)
    with contextlib.ExitStack() as stack:
        source, common_crawl = rank_file(file), False
        if isinstance(source, Path) and is_table(source):
            rows = _of_table(source)
        else:
            common_crawl, lines = rank_rows(stack.enter_context(Stream(source)), file, column)
            rows = ((_text(row.name, common_crawl), row.value) for row in lines)
        if common_crawl or by_host or by_domain:
            unknown = _by_host(pages, rows, values, by_domain)
        else:
            unknown = _by_url(pages, rows, values, url_rules_of(crawl))
    count = int(np.count_nonzero(values))
    if not count:
        raise InputError(f"{file}: no line gives a value above 0 to a URL or host of {crawl}")
    graph = _without_arcs(Path(crawl), pages.num_pages)
    note = f"exactness unknown: imported from {file}"
    Ranking(values, algorithm="imported", graph_uuid=graph.uuid, note=note).save(graph, name)
    return Imported(count, unknown)


def _of_table(path: Path) -> Iterator[tuple[str, float]]:
    """Yield URLs or hosts, and their values, from an exported ranking. Graphs of hosts have reversed names."""
    table = read_table(path)
    if table.names is None:
        raise InputError(f"{path}: its nodes have no names, so their pages are not known")
    for name, value in zip(table.names, next(iter(table.columns.values())).tolist(), strict=True):
        if value < 0:
            raise InputError(f"{path}: the value of {name[:200]!r} must be at least 0; got {value!r}")
        yield (name if "://" in name else reverse_host(name)), value


def _text(name: bytes, is_reversed: bool) -> str:
    text = name.decode("utf-8", "surrogateescape")
    return reverse_host(text) if is_reversed else text


def _by_host(pages: Pages, rows: Iterator[tuple[str, float]], values: Float64Array, by_domain: bool) -> int:
    """Give each page the value of its host or domain; return the number of lines whose host is not known."""
    hosts: dict[str, list[int]] = {}
    for number in range(pages.tally.hosts):
        host = pages.table.host(number)
        name = registered_domain(host.partition(":")[0]) if by_domain else host
        if name is not None:
            hosts.setdefault(name, []).append(number)
    of_host, unknown = np.zeros(pages.tally.hosts), 0
    for name, value in rows:
        known = hosts.get(name)
        if known is None:
            unknown += 1
        else:
            of_host[known] = value
    values[:] = of_host[pages.hosts[: len(values)]]
    return unknown


def _by_url(
    pages: Pages, rows: Iterator[tuple[str, float]], values: Float64Array, rules: UrlRules | None
) -> int:
    """Give each page its value; return the number of lines whose URL is not known."""
    unknown = 0
    while block := list(islice(rows, _AT_A_TIME)):
        forms = [(canonical(name, None, rules), value) for name, value in block]
        there = [(form, value) for form, value in forms if form is not None]
        numbers = pages.table.find([form for form, _ in there])
        crawled = numbers != NO_PAGE
        values[numbers[crawled]] = np.array([value for _, value in there])[crawled]
        unknown += len(block) - int(crawled.sum())
    return unknown

"""Import of rankings from a file into a crawl: by URL, by host, or Common Crawl's ranks of hosts."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from inlink.base.arrays import Float64Array, UInt64Array
from inlink.base.opening import Stream
from inlink.errors import InputError, ParameterError
from inlink.graph.graph import Graph, Rows
from inlink.rank.ranking import Ranking
from inlink.sources.crawlgraph import CrawlGraph
from inlink.sources.ranks import rank_rows
from inlink.sources.releases import rank_file
from inlink.store.blocks import known_pages
from inlink.store.pages import NO_PAGE, Pages
from inlink.store.reader import url_rules_of
from inlink.urls.canonical import UrlRules, canonical
from inlink.urls.hosts import registered_domain, reverse_host

__all__ = ["Imported", "import_ranking"]

_AT_A_TIME = 1 << 14


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
        Lines of a URL and a value with a tab between them, or Common Crawl's ranks of hosts, which are recognised by
        their header. It may be compressed, and may be a URL or a release: see
        :func:`inlink.sources.releases.rank_file`. All its lines are read.
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
    pages = known_pages(crawl, with_urls=True)
    values = np.zeros(pages.num_pages)
    with Stream(rank_file(file)) as stream:
        common_crawl, lines = rank_rows(stream, file, column)
        rows = ((_text(row.name, common_crawl), row.value) for row in lines)
        if common_crawl or by_host or by_domain:
            unknown = _by_host(pages, rows, values, by_domain)
        else:
            unknown = _by_url(pages, rows, values, url_rules_of(crawl))
    count = int(np.count_nonzero(values))
    if not count:
        raise InputError(f"{file}: no line gives a value above 0 to a URL or host of {crawl}")
    offsets = cast("UInt64Array", np.broadcast_to(np.uint64(0), pages.num_pages + 1))
    graph = CrawlGraph(Path(crawl), Graph(Rows(offsets, np.empty(0, np.uint32)), checked=True))
    Ranking(values, algorithm="imported", graph_uuid=graph.uuid).save(graph, name)
    return Imported(count, unknown)


def _text(name: bytes, is_reversed: bool) -> str:
    text = name.decode("utf-8", "surrogateescape")
    return reverse_host(text) if is_reversed else text


def _by_host(pages: Pages, rows: Iterator[tuple[str, float]], values: Float64Array, by_domain: bool) -> int:
    """Give each page the value of its host or domain; return the number of lines whose host is not known."""
    hosts: dict[str, list[int]] = {}
    for number in range(pages.num_hosts):
        host = pages.host(number)
        name = registered_domain(host.partition(":")[0]) if by_domain else host
        if name is not None:
            hosts.setdefault(name, []).append(number)
    of_host, unknown = np.zeros(pages.num_hosts), 0
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
        numbers = pages.find([form for form, _ in there])
        crawled = numbers != NO_PAGE
        values[numbers[crawled]] = np.array([value for _, value in there])[crawled]
        unknown += len(block) - int(crawled.sum())
    return unknown

"""Recognise template links, such as those of menus and footers. All other links are content links.

A link's *key* is the page that it leads to, its text, and its place in the page. Each fetched page belongs to three
groups: its host, the first folder of its path, and the first two folders. A link is a template link if

1. its place is ``nav``, ``header``, ``footer`` or ``aside`` (a ``rel`` such as ``next`` counts as ``nav``), or
2. more than half of the fetched pages of one of the groups have a link with this key, and the group has at least eight
   fetched pages, or
3. the same is true for its text, and links with this text lead from the group to at least eight pages ("Next", "Up").

References
----------
Bar-Yossef & Rajagopalan, "Template detection via data mining and its applications", WWW 2002: parts that stand on many
pages of a site are its template. Gibson, Punera & Tomkins, "The volume and evolution of web page templates", WWW 2005:
counted by hashes in one pass.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import numpy as np

from inlink.audit.site import CrawledSite
from inlink.base.arrays import AnyArray, BoolArray, Int64Array, UInt32Array, UInt64Array
from inlink.graph.graph import Graph
from inlink.protocol import PLACES
from inlink.sources.crawlgraph import CrawlGraph

__all__ = ["LEAST_PAGES", "TEMPLATE_PLACES", "LinkKinds", "content_graph", "template_links"]

LEAST_PAGES = 8
"""Minimum number of fetched pages of a group, and minimum number of targets of a text."""

TEMPLATE_PLACES = ("nav", "header", "footer", "aside")
"""Places in which all links are template links."""

_PART = 1 << 19
"""Number of links that are sorted at once."""

_MIX = np.uint64(0x9E3779B97F4A7C15)


def template_links(site: CrawledSite) -> BoolArray:
    """Return whether each link of a site is a template link, bool[links].

    The links are sorted a few times, in parts. Keys are compared by hashes of 64 bits.
    """
    links = site.links
    template = np.isin(links.places, [PLACES.index(place) + 1 for place in TEMPLATE_PLACES])
    groups = [(group, np.bincount(group[site.fetched], minlength=1)) for group in _groups(site)]
    for _, sizes in groups:
        # Pages that are in no group of this kind.
        sizes[0] = 0
    for rows in _parts(site.targets):
        sources = links.sources[rows]
        keys = _mixed(site.targets[rows], _mixed(links.texts[rows], links.places[rows]))
        for group, sizes in groups:
            of_link = group[sources]
            number = _numbers(sources, _mixed(of_link, keys))
            template[rows] |= _is_most(number, sizes[of_link])
    for rows in _parts(links.texts):
        rows = rows[links.texts[rows] != 0]
        sources, texts = links.sources[rows], links.texts[rows]
        for group, sizes in groups:
            of_link = group[sources]
            texts_in_group = _mixed(of_link, texts)
            most = _is_most(_numbers(sources, texts_in_group), sizes[of_link])
            steps = rows[most]
            targets = _numbers(site.targets[steps], texts_in_group[most])
            template[steps[targets >= LEAST_PAGES]] = True
    return template


def _parts(values: AnyArray) -> Iterator[Int64Array]:
    """Yield the rows of values in parts, so that equal values are in the same part. A part is sorted in memory."""
    parts = 1 + len(values) // _PART
    part_of = (values % parts).astype(np.uint16)
    for part in range(parts):
        yield np.flatnonzero(part_of == part)


def _is_most(pages: Int64Array, sizes: Int64Array) -> BoolArray:
    """Return where a number of pages is more than half of its group, for groups that are large enough: bool[n]."""
    most: BoolArray = (sizes >= LEAST_PAGES) & (2 * pages > sizes)
    return most


def _numbers(items: AnyArray, keys: UInt64Array) -> Int64Array:
    """Return for each row the number of distinct items in all rows with its key, int64[rows]."""
    order = np.lexsort((items, keys))
    items, keys = items[order], keys[order]
    is_new = np.ones((2, len(order)), np.bool_)
    is_new[0, 1:] = keys[1:] != keys[:-1]
    is_new[1, 1:] = is_new[0, 1:] | (items[1:] != items[:-1])
    key = np.cumsum(is_new[0]) - 1
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.bincount(key[is_new[1]])[key] if len(order) else 0
    return numbers


def _mixed(number: AnyArray, hashes: AnyArray) -> UInt64Array:
    """A hash of pairs of numbers, uint64: one step of SplitMix64 (Steele, Lea & Flood 2014)."""
    value = (number.astype(np.uint64) + _MIX) * np.uint64(0xBF58476D1CE4E5B9) ^ hashes.astype(np.uint64)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _groups(site: CrawledSite) -> list[UInt32Array]:
    """The groups of pages: by host, by first folder, by first two folders. Each is uint32[n], 0 for other pages."""
    numbers: list[dict[tuple[str, ...], int]] = [{}, {}, {}]
    groups = [np.zeros(len(site.own), np.uint32) for _ in numbers]
    for page in np.flatnonzero(site.fetched).tolist():
        parts = urlsplit(site.url(page))
        folders = parts.path.split("/")[1:-1]
        for level, (names, group) in enumerate(zip(numbers, groups, strict=True)):
            if level <= len(folders):
                name = (parts.netloc, *folders[:level])
                group[page] = names.setdefault(name, len(names) + 1)
    return groups


def content_graph(graph: Graph, folder: str | os.PathLike[str]) -> Graph:
    """Return the graph of a crawl without arcs for which there are only template links. It has no names.

    Parameters
    ----------
    graph : Graph
        The crawl's graph, as :func:`inlink.read` gives it.
    folder : path-like
        The crawl's folder.

    Raises
    ------
    inlink.errors.FolderError
        If the folder holds no crawl, or is damaged.
    """
    with CrawledSite(folder) as site:
        template = template_links(site)
        arcs = _pairs(site.links.sources, site.targets)
        dropped = np.setdiff1d(arcs[template], arcs[~template])
    sources = np.repeat(np.arange(graph.num_nodes, dtype=np.uint32), graph.outdegrees.astype(np.int64))
    kept = ~np.isin(_pairs(sources, graph.out_rows.nodes), dropped)
    content = Graph.from_arcs(
        np.column_stack([sources[kept], graph.out_rows.nodes[kept]]), num_nodes=graph.num_nodes
    )
    return CrawlGraph(Path(folder), content)


class LinkKinds:
    """Tells template links of a crawl from content links. It reads all visits.

    Parameters
    ----------
    folder : path-like
        The crawl's folder.

    Raises
    ------
    inlink.errors.FolderError
        If the folder holds no crawl, or is damaged.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        with CrawledSite(folder) as site:
            template = template_links(site)
            judged = np.isin(site.links.sources, np.fromiter(site.facts, np.uint32))
            pairs = _pairs(site.links.sources, site.targets)
        self._template, self._content = (np.unique(pairs[judged & kind]) for kind in (template, ~template))

    def kind(self, source: int, target: int) -> Literal["template", "content", "not judged"]:
        """Return the kind of the link between two pages. If there are several, a content link takes precedence.

        Links of pages without facts, of foreign pages, and of a page to itself are not judged.
        """
        pair = np.uint64(source << 32 | target)
        for kind, pairs in (("content", self._content), ("template", self._template)):
            place = int(np.searchsorted(pairs, pair))
            if place < len(pairs) and pairs[place] == pair:
                return kind  # type: ignore[return-value]
        return "not judged"


def _pairs(sources: UInt32Array, targets: UInt32Array) -> UInt64Array:
    """Pairs of pages as one number each, uint64."""
    return sources.astype(np.uint64) << np.uint64(32) | targets

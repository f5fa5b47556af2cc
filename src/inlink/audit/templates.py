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
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import numpy as np

from inlink.audit.site import CrawledSite
from inlink.base.arrays import AnyArray, BoolArray, UInt32Array, UInt64Array
from inlink.graph.graph import Graph
from inlink.protocol import PLACES
from inlink.sources.crawlgraph import CrawlGraph

__all__ = ["LEAST_PAGES", "TEMPLATE_PLACES", "LinkKinds", "content_graph", "template_links"]

LEAST_PAGES = 8
"""Minimum number of fetched pages of a group, and minimum number of targets of a text."""

TEMPLATE_PLACES = ("nav", "header", "footer", "aside")
"""Places in which all links are template links."""

_MIX = np.uint64(0x9E3779B97F4A7C15)


def template_links(site: CrawledSite) -> BoolArray:
    """Return whether each link of a site is a template link, bool[links].

    The links are sorted a few times. Keys are compared by hashes of 64 bits.
    """
    links = site.links
    template = np.isin(links.places, [PLACES.index(place) + 1 for place in TEMPLATE_PLACES])
    with np.errstate(over="ignore"):
        keys = _mixed(site.targets, _mixed(links.texts, links.places))
    for groups in _groups(site):
        sizes = np.bincount(groups[site.fetched], minlength=int(groups.max(initial=0)) + 1)
        of_link = groups[links.sources]
        template |= _on_most_pages(keys, links.sources, of_link, sizes)
        steps = _on_most_pages(links.texts, links.sources, of_link, sizes) & (links.texts != 0)
        template |= steps & (_number_of_targets(site, of_link) >= LEAST_PAGES)
    return template


def _on_most_pages(keys: AnyArray, sources: UInt32Array, groups: AnyArray, sizes: AnyArray) -> BoolArray:
    """Return for each link whether more than half of the pages of its group have its key, bool[links]."""
    with np.errstate(over="ignore"):
        key_in_group = _mixed(groups, keys)
        on_page = _mixed(sources, key_in_group)
    # A key counts once for each page.
    _, first = np.unique(on_page, return_index=True)
    distinct, counts = np.unique(key_in_group[first], return_counts=True)
    number = counts[np.searchsorted(distinct, key_in_group)]
    enough: BoolArray = (sizes[groups] >= LEAST_PAGES) & (2 * number > sizes[groups])
    return enough


def _number_of_targets(site: CrawledSite, groups: AnyArray) -> AnyArray:
    """Return for each link the number of targets of links with its text in its group, int64[links]."""
    with np.errstate(over="ignore"):
        texts = _mixed(groups, site.links.texts)
        pairs = _mixed(site.targets, texts)
    _, first = np.unique(pairs, return_index=True)
    distinct, counts = np.unique(texts[first], return_counts=True)
    numbers: AnyArray = counts[np.searchsorted(distinct, texts)]
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
    site = CrawledSite(folder)
    try:
        template = template_links(site)
        arcs = _pairs(site.links.sources, site.targets)
        dropped = np.setdiff1d(arcs[template], arcs[~template])
    finally:
        site.pages.close()
    sources = np.repeat(np.arange(graph.num_nodes, dtype=np.uint32), graph.outdegrees.astype(np.int64))
    kept = ~np.isin(_pairs(sources, graph.out_rows.nodes), dropped)
    content = Graph.from_arcs(
        np.column_stack([sources[kept], graph.out_rows.nodes[kept]]), num_nodes=graph.num_nodes
    )
    return CrawlGraph(Path(folder), content)


class LinkKinds:
    """Whether links of a crawl are template links or content links. All visits are read.

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
        site = CrawledSite(folder)
        try:
            template = template_links(site)
            judged = np.isin(site.links.sources, np.fromiter(site.facts, np.uint32))
            pairs = _pairs(site.links.sources, site.targets)
        finally:
            site.pages.close()
        self._template, self._content = (np.unique(pairs[judged & kind]) for kind in (template, ~template))

    def kind(self, source: int, target: int) -> Literal["template", "content", "not judged"]:
        """Return the kind of the links from a page to another. Of several links, a content link takes precedence.

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

"""`webgraph`: Nutch's web graph, made of the newest fetch of each page, without the links that its rules leave out.

The result is a graph's folder like any other. Its subfolder ``fetched`` holds the time of each fetch, including pages
without links, so that a later run can update the graph. LinkRank's scores are its ranking ``linkrank``, its loops are
in ``loops``. docs/nutch.md lists Nutch's bugs and undefined cases, and what is done here instead.

Source: org.apache.nutch.scoring.webgraph.WebGraph, Nutch 1.23.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import Int64Array
from inlink.base.damage import Tally
from inlink.base.folder import building
from inlink.base.strings import Strings
from inlink.base.unfinished import unfinished_folder
from inlink.errors import FolderError, FormatError, ParameterError
from inlink.graph.batches import ArcBatch, Level
from inlink.graph.build import build_graph
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.graph.names import NO_NODE, NameTable
from inlink.nutch.fetches import (
    FETCHED_FORMAT,
    FETCHED_KIND,
    Fetches,
    fetches_of_crawl,
    fetches_of_graph,
    fetches_of_linkdb,
    fetches_of_outlinks,
    fetches_of_segment,
    fetches_of_webgraph,
    is_linkdb,
    is_nutch_webgraph,
    is_segment,
    nothing,
    offsets_of,
    segments_in,
    unparsed_parts,
)
from inlink.nutch.urlrules import NutchUrlRules
from inlink.rank.nutch_sites import numbers, site_names


@dataclass(frozen=True)
class LinkRules:
    """The links that a web graph leaves out. No rule applies to names without a host.

    Attributes
    ----------
    ignore_host : bool
        Leave out links within a host; ``link.ignore.internal.host``.
    ignore_domain : bool
        Leave out links within a registered domain; ``link.ignore.internal.domain``.
    limit_page : bool
        Of a page's links to one page (URL in lower case, without query), keep only the first;
        ``link.ignore.limit.page``.
    limit_domain : bool
        Of a page's links to one domain, keep only the first; ``link.ignore.limit.domain``.
    """

    ignore_host: bool = True
    ignore_domain: bool = True
    limit_page: bool = True
    limit_domain: bool = True


def webgraph(
    sources: str | os.PathLike[str] | GraphLike | Iterable[str | os.PathLike[str] | Graph],
    *,
    rules: LinkRules | None = None,
    delete_gone: bool = False,
    update: bool = False,
    segment_dirs: Iterable[str | os.PathLike[str]] = (),
    urls: NutchUrlRules | None = None,
    strict: bool = False,
    now: float | None = None,
    into: str | os.PathLike[str] | None = None,
) -> Graph:
    """Build Nutch's web graph.

    Parameters
    ----------
    sources : path-like, Graph, SciPy sparse matrix or NetworkX graph, or several
        Nutch's segments, web graphs and LinkDbs, folders of crawls, or graphs in any format that
        :func:`inlink.read` reads. If several contain a page, its newest fetch counts; of equally old fetches, the last.
    rules : LinkRules or None
        The links to leave out. None: all rules, or with `update` the rules that the web graph was built with.
    delete_gone : bool
        Drop the links of pages that crawl_fetch (or a crawl) calls gone or redirected, unless they were fetched later;
        ``link.delete.gone``.
    update : bool
        Begin with the web graph in `into`. False replaces it.
    segment_dirs : several path-likes
        Folders of segments. They come before `sources`.
    urls : NutchUrlRules or None
        Rules that change and drop URLs of pages and links, before anything else. They also apply to the web graph that
        is updated.
    strict : bool
        Refuse damaged segments. False leaves damaged records out and counts them in ``meta["skipped"]``.
    now : float or None
        Time of fetches without a known time, in seconds since 1970. None: the present time.
    into : path-like or None
        The folder to build. None builds a temporary folder that is removed with the graph and cannot be updated.

    Returns
    -------
    Graph
        The nodes are the ends of the links that are kept.

    Raises
    ------
    inlink.errors.InputError
        If a source cannot be read.
    inlink.errors.FolderError
        If `into` holds no web graph that can be updated.
    inlink.errors.ParameterError
        If no source is given, levels differ, nodes have no names, `update` is set without `into`, or the rules differ
        from those of the web graph to update, or `urls` is given for hosts or domains.
    inlink.errors.OutputError
        If the folder cannot be written.

    Examples
    --------
    >>> from inlink import Graph
    >>> from inlink.nutch.webgraph import webgraph
    >>> links = [("http://a.example.com/", "http://b.example.com/"), ("http://a.example.com/", "http://c.example.org/")]
    >>> webgraph(Graph.from_arcs(links))
    <inlink graph: 2 nodes, 1 arc>
    """
    moment = int((time.time() if now is None else now) * 1000)
    tally = Tally(strict)
    places = list(sources) if isinstance(sources, list | tuple) else [sources]
    places = [path for folder in segment_dirs for path in segments_in(Path(folder), tally)] + places
    old: Graph | None = None
    if update:
        if into is None:
            raise ParameterError("`update` needs `into`, the folder of the web graph to update")
        if not (Path(into) / "fetched").is_dir():
            raise FolderError(
                f"{into} is not a web graph that can be updated. Build one first, without --update."
            )
        old = Graph.open(into)
        rules = _same_rules(rules, old)
    elif not places:
        raise ParameterError("no source is given")
    rules = rules or LinkRules()
    opened = [_open(source) for source in places]
    level = _one_level([level for _, level in opened] + ([] if old is None else [old.level]))

    if urls is not None and level in ("host", "domain"):
        raise ParameterError(f"URL rules apply to URLs; the names of this graph are {level}s")

    def all_fetches() -> Iterator[Fetches]:
        if old is not None:
            yield from fetches_of_webgraph(old)
        for read, _ in opened:
            yield from read(moment, delete_gone, tally)

    def fetches() -> Iterator[Fetches]:
        return all_fetches() if urls is None else map(urls.apply, all_fetches())

    with unfinished_folder(Path(tempfile.gettempdir(), "inlink")) as place:
        spill = _Spill(place / "fetches", fetches())
        meta = {
            "nutch": {"rules": asdict(rules), "fetched": spill.known}
            | ({} if urls is None else {"url_rules": urls.files}),
            "sources": [_place(source) for source in places[:100]],
        }
        graph = build_graph(
            chain([nothing()], (_arcs(part, rules, level) for part in spill.newest())),
            level=level,
            into=into,
            meta=lambda: meta | ({"skipped": _skipped(tally)} if tally.skipped else {}),
        )
        if graph.path is not None and into is not None:
            _write_fetched(graph, spill)
    return graph


_Reader = Callable[[int, bool, Tally], Iterator[Fetches]]


def _open(source: Any) -> tuple[_Reader, Level | None]:
    """Return how to read a source, and the level of its names; None if it is unknown."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if is_segment(path):
            return lambda now, gone, tally: fetches_of_segment(path, now, gone, tally), "page"
        from inlink.sources.read import read
        from inlink.store.reader import is_crawl

        if there := unparsed_parts(path):
            raise FormatError(
                f"{path} is a segment that was not parsed: it has {', '.join(there)} but no parse_data. "
                f"Run `nutch parse {path}` first."
            )
        if is_nutch_webgraph(path):
            return lambda now, gone, tally: fetches_of_outlinks(path, tally), "page"
        if is_linkdb(path):
            return lambda now, gone, tally: fetches_of_linkdb(path, now, tally), "page"
        if is_crawl(path):
            return lambda now, gone, tally: fetches_of_crawl(path, gone), "page"
        graph = read(path)
    else:
        graph = as_graph(source)
    return lambda now, gone, tally: fetches_of_graph(graph, _place(source), now), graph.level


def _place(source: Any) -> str:
    return os.fspath(source) if isinstance(source, str | os.PathLike) else repr(source)


def _one_level(levels: list[Level | None]) -> Level | None:
    # Names of an unknown level are taken for URLs.
    kinds = {level or "page" for level in levels}
    if len(kinds) > 1:
        raise ParameterError(
            f"Cannot combine sources of {' and '.join(sorted(kinds))} level: fold them first"
        )
    return next((level for level in levels if level is not None), None)


def _same_rules(rules: LinkRules | None, old: Graph) -> LinkRules:
    try:
        had = LinkRules(**old.meta["nutch"]["rules"])
    except (KeyError, TypeError):
        raise FolderError(
            f"{old.path} does not record the rules that it was built with. Build it again, without --update."
        ) from None
    if rules is not None and rules != had:
        raise ParameterError(
            f"{old.path} was built with {had}. Update it with the same rules, or build it again."
        )
    return had


def _skipped(tally: Tally) -> dict[str, int]:
    return {
        f"{reason}, first in {entry.path} at byte {entry.offset:,}{entry.passed_over}": entry.count
        for reason, entry in tally.skipped.items()
    }


class _Spill:
    """All fetches on disk, and the newest of each page. Memory: 24 bytes per page and its URL."""

    def __init__(self, path: Path, fetches: Iterator[Fetches]) -> None:
        self.path = path
        table = NameTable()
        times, rows = np.empty(0, np.int64), np.empty(0, np.int64)
        count = self.blocks = 0
        with path.open("wb") as file:
            for part in fetches:
                if not len(part.sources):
                    continue
                for column in (part.sources, part.targets):
                    np.save(file, np.frombuffer(column.to_bytes(), np.uint8))
                    np.save(file, column.offsets - column.offsets[0])
                np.save(file, part.times)
                np.save(file, part.offsets)
                self.blocks += 1
                ids = table.number(part.sources)
                if table.known > len(times):
                    room = max(table.known, 3 * len(times) // 2) - len(times)
                    times = np.concatenate([times, np.full(room, np.iinfo(np.int64).min)])
                    rows = np.concatenate([rows, np.full(room, -1)])
                order = np.argsort(part.times, kind="stable")
                order = order[part.times[order] >= times[ids[order]]]
                # The last value of a page is its newest.
                times[ids[order]] = part.times[order]
                rows[ids[order]] = count + order
                count += len(part.sources)
        self.known = table.known
        self._newest = np.zeros(count, np.bool_)
        self._newest[rows[: table.known]] = True

    def newest(self) -> Iterator[Fetches]:
        """Yield the newest fetch of each page, in the order of the sources."""
        at = 0
        with self.path.open("rb") as file:
            for _ in range(self.blocks):
                text, places, link_text, link_places, times, offsets = (np.load(file) for _ in range(6))
                mask = self._newest[at : at + len(times)]
                at += len(times)
                counts = np.diff(offsets)
                yield Fetches(
                    Strings(text, places).filter(mask),
                    times[mask],
                    offsets_of(counts[mask]),
                    Strings(link_text, link_places).filter(np.repeat(mask, counts)),
                )


def _arcs(fetches: Fetches, rules: LinkRules, level: Level | None) -> ArcBatch:
    """Return the links of a block that the rules keep."""
    from inlink.rank.kernels.linkrank import OutlinkRules, Seen, Sites, limit_outlinks

    sources, targets = fetches.sources, fetches.targets
    names = Strings.concat([sources, targets])
    none = np.full(len(names), NO_NODE, np.uint32)
    hosts = numbers(site_names(names, "host", level)) if rules.ignore_host else none
    domains = (
        numbers(site_names(names, "domain", level)) if rules.ignore_domain or rules.limit_domain else none
    )
    pages = numbers(site_names(targets, "page", level)) if rules.limit_page else none[: len(targets)]
    keep = np.zeros(len(targets), np.bool_)
    rows = len(sources)
    limit_outlinks(
        fetches.offsets.astype(np.uint64),
        Sites(hosts[rows:], domains[rows:], pages),
        Sites(hosts[:rows], domains[:rows], none[:0]),
        OutlinkRules(rules.ignore_host, rules.ignore_domain, rules.limit_page, rules.limit_domain),
        Seen(none.copy(), none.copy()),
        keep,
    )
    near = np.repeat(np.arange(rows), np.diff(fetches.offsets))[keep]
    linking, starts = np.unique(near, return_inverse=True)
    ends = np.arange(len(near), dtype=np.uint32) + np.uint32(len(linking))
    kept = Strings.concat([sources.take(linking), targets.filter(keep)])
    return ArcBatch(starts.astype(np.uint32), ends, kept)


def _write_fetched(graph: Graph, spill: _Spill) -> None:
    assert graph.path is not None
    with building(graph.path / "fetched", FETCHED_KIND, FETCHED_FORMAT) as folder:
        text, offsets, times = folder.create("text", np.uint8), folder.create("offsets", np.uint64), []
        end = np.uint64(0)
        offsets.append(np.zeros(1, np.uint64))
        for batch in spill.newest():
            places = batch.sources.offsets
            text.append(np.frombuffer(batch.sources.to_bytes(), np.uint8))
            offsets.append(places[1:] - places[0] + end)
            end += places[-1] - places[0]
            times.append(batch.times)
        moments: Int64Array = np.concatenate(times) if times else np.empty(0, np.int64)
        folder.write("times", moments)
        folder.header.meta = {"graph_uuid": graph.uuid}

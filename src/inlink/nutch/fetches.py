"""Fetched pages with their links: the common form of the sources of a web graph.

Sources are Nutch's segments, web graphs and LinkDbs, folders of inlink crawls, graphs in any format, and an earlier
web graph of inlink. A web graph of Nutch is a folder with ``outlinks/current``, ``inlinks`` and ``nodes``. Only its
outlinks are read, because Nutch makes the others from them. A LinkDb is a folder with ``current``: for each URL the
pages that link to it. It does not have the times at which these pages were fetched.

Source: org.apache.nutch.scoring.webgraph.LinkDatum, org.apache.nutch.crawl.Inlinks and .Inlink, Nutch 1.23.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path

import numpy as np

from inlink.base.arrays import Int64Array, UInt32Array, slices
from inlink.base.checked import is_remembered, remember
from inlink.base.damage import Tally
from inlink.base.folder import Folder
from inlink.base.strings import Strings
from inlink.errors import FolderError, InputError, ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.build import build_graph
from inlink.graph.checks import RULES, check_offsets
from inlink.graph.graph import Graph
from inlink.graph.names import Names, NameTable
from inlink.graph.views import arc_blocks
from inlink.nutch.fields import TEXT, Fields, Writable
from inlink.nutch.sequencefile import records, value_class
from inlink.nutch.writables import CRAWL_DATUM, GONE, PARSE_DATA, read_map

FETCHED_KIND = "fetched"
FETCHED_FORMAT = 1

# The largest numbers of fetches, of bytes of text and of links in a block.
_ROWS = 1 << 14
_BYTES = 1 << 23
_LINKS = 1 << 17


_Page = tuple[bytes, int, list[bytes]]
"""The URL of a page, the time of its fetch, and its links."""


@dataclass
class Fetches:
    """A block of fetched pages with their links.

    Attributes
    ----------
    sources : Strings, k
        The pages.
    times : int64[k]
        Time of the fetch, in milliseconds since 1970, UTC.
    offsets : int64[k + 1]
        Place of each page's first link in `targets`.
    targets : Strings
        The links, in the order of the document.
    """

    sources: Strings
    times: Int64Array
    offsets: Int64Array
    targets: Strings


# -- segments ----------------------------------------------------------------------------------------------------


def is_segment(path: Path) -> bool:
    """Return whether a folder is a parsed segment."""
    return (path / "parse_data").is_dir()


# Folders of a segment that exist before it is parsed.
_UNPARSED = ("content", "crawl_fetch", "crawl_generate")


def unparsed_parts(path: Path) -> list[str]:
    """Return the folders of a segment that was fetched or generated and not parsed; none for any other folder."""
    return [] if is_segment(path) else [name for name in _UNPARSED if (path / name).is_dir()]


def segments_in(folder: Path, tally: Tally) -> list[Path]:
    """Return the parsed segments in a folder, sorted by name. Segments that were not parsed are counted.

    Raises
    ------
    inlink.errors.InputError
        If the folder does not exist or has no segment.
    """
    try:
        inside = sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] not in "._")
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror}). Name a folder of segments.") from None
    parsed = [path for path in inside if is_segment(path)]
    unparsed = [path for path in inside if unparsed_parts(path)]
    if not parsed:
        many = f"{len(unparsed):,} segment{'s that were' if len(unparsed) > 1 else ' that was'} not parsed"
        what = (
            f"only {many}. Run `nutch parse` on each" if unparsed else "no segment. Name a folder of segments"
        )
        raise InputError(f"{folder} holds {what}.")
    for path in inside:
        if path in unparsed:
            tally.skip(path, 0, "segment that was not parsed (no parse_data)")
        elif path not in parsed:
            tally.skip(path, 0, "folder that is not a segment")
    return parsed


def map_files(folder: Path) -> list[Path]:
    """Return the SequenceFiles in the output of a job: its parts, or the ``data`` of parts that are MapFiles.

    Raises
    ------
    inlink.errors.InputError
        If there are none.
    """
    try:
        parts = sorted(path for path in folder.iterdir() if path.name[0] not in "._")
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from None
    files = [path / "data" if path.is_dir() else path for path in parts if not path.name.endswith(".crc")]
    if not files:
        raise InputError(f"{folder} holds no part of a job's output. Let Nutch finish the job first.")
    return files


def fetches_of_segment(path: Path, now: int, delete_gone: bool, tally: Tally) -> Iterator[Fetches]:
    """Yield the pages of a segment's parse_data. The fetch time is in parse_data, else in crawl_fetch, else ``now``.

    Parameters
    ----------
    path : Path
        The folder of the segment.
    now : int
        The time of fetches without a known time, in milliseconds since 1970, UTC.
    delete_gone : bool
        Also yield pages that are gone or redirected according to crawl_fetch, without links.
    tally : Tally
        Counts damage.

    Raises
    ------
    inlink.errors.InputError
        If the segment cannot be read.
    """

    def pages() -> Iterator[_Page]:
        times: _Times | None = None
        if delete_gone and (path / "crawl_fetch").is_dir():
            for url, status, moment in _fetched(path, tally):
                if status in GONE:
                    yield url, moment, []
        for file in map_files(path / "parse_data"):
            for url, (links, fetched) in records(file, TEXT, PARSE_DATA, tally):
                if fetched is None:
                    times = times or _Times(path, tally)
                    fetched = times.of(url, now)
                tally.pages += 1
                tally.links += len(links)
                yield url, fetched, links

    return _in_blocks(pages())


def _fetched(segment: Path, tally: Tally) -> Iterator[tuple[bytes, int, int]]:
    """Yield the URLs of crawl_fetch, with status and time."""
    for file in map_files(segment / "crawl_fetch"):
        for url, datum in records(file, TEXT, CRAWL_DATUM, tally):
            yield url, datum.status, datum.fetch_time


class _Times:
    """Times of fetches from crawl_fetch, for segments whose ParseData have no times."""

    def __init__(self, segment: Path, tally: Tally) -> None:
        self.table = NameTable()
        # The newest time of each URL, by its number in the table.
        self.times: list[int] = []
        if (segment / "crawl_fetch").is_dir():
            for url, _, moment in _fetched(segment, tally):
                number = int(self.table.number([url])[0])
                if number == len(self.times):
                    self.times.append(moment)
                self.times[number] = max(self.times[number], moment)

    def of(self, url: bytes, now: int) -> int:
        """Return the time of the newest fetch of a URL; ``now`` if it has none."""
        number = int(self.table.number([url])[0])
        return self.times[number] if number < len(self.times) else now


def _in_blocks(pages: Iterable[_Page]) -> Iterator[Fetches]:
    block: list[_Page] = []
    size = 0
    for page in pages:
        block.append(page)
        size += len(page[0]) + sum(map(len, page[2]))
        if len(block) >= _ROWS or size >= _BYTES:
            yield _fetches_of(block)
            block, size = [], 0
    yield _fetches_of(block)


def _fetches_of(block: list[_Page]) -> Fetches:
    urls, times, links = zip(*block, strict=True) if block else ((), (), ())
    counts = np.array([len(targets) for targets in links], np.int64)
    return Fetches(
        Strings.of(urls),
        np.array(times, np.int64),
        offsets_of(counts),
        Strings.of(chain.from_iterable(links)),
    )


def offsets_of(counts: Int64Array) -> Int64Array:
    """Return where each of several rows begins, and the end of the last one, from the numbers of their entries."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


# -- Nutch's web graphs and LinkDbs ----------------------------------------------------------------------------


def _link_datum(fields: Fields) -> tuple[bytes, int]:
    """Read the URL and the time of a LinkDatum."""
    url = fields.text()
    # The anchor and the score.
    fields.text()
    fields.float32()
    time = fields.int64()
    # The type of the link.
    fields.byte()
    return url, time


def _inlinks(fields: Fields) -> list[bytes]:
    """Read the URLs of the pages of an Inlinks."""
    sources = []
    for _ in range(fields.int32()):
        sources.append(fields.text())
        # The anchor.
        fields.text()
        if fields.byte():
            read_map(fields)
    return sources


_LINK_DATUM = Writable("org.apache.nutch.scoring.webgraph.LinkDatum", _link_datum)
_INLINKS = Writable("org.apache.nutch.crawl.Inlinks", _inlinks)


def is_nutch_webgraph(path: Path) -> bool:
    """Return whether a folder is a web graph that Nutch made."""
    return (path / "outlinks" / "current").is_dir()


def is_linkdb(path: Path) -> bool:
    """Return whether a folder is Nutch's LinkDb.

    Raises
    ------
    inlink.errors.InputError
        If the folder is a crawl database, which has no links, or cannot be read.
    """
    if not (path / "current").is_dir():
        return False
    name = value_class(map_files(path / "current")[0])
    if name == "org.apache.nutch.crawl.CrawlDatum":
        raise InputError(f"{path} is a crawl database, which has no links. Name segments or a LinkDb.")
    return name == _INLINKS.name


def fetches_of_outlinks(path: Path, tally: Tally) -> Iterator[Fetches]:
    """Yield the pages of a web graph that Nutch made, with the times of their fetches and their links.

    Parameters
    ----------
    path : Path
        The folder.
    tally : Tally
        Counts damage, pages and links.

    Raises
    ------
    inlink.errors.InputError
        If the web graph cannot be read.
    """

    def pages() -> Iterator[_Page]:
        for file in map_files(path / "outlinks" / "current"):
            for url, entries in groupby(records(file, TEXT, _LINK_DATUM, tally), itemgetter(0)):
                links = [link for _, link in entries]
                newest = max(time for _, time in links)
                # Nutch keeps the links of the newest fetch only.
                kept = [target for target, time in links if time == newest]
                tally.pages += 1
                tally.links += len(kept)
                yield url, newest, kept

    return _in_blocks(pages())


def fetches_of_linkdb(path: Path, now: int, tally: Tally) -> Iterator[Fetches]:
    """Yield the pages of a LinkDb with their links, in byte order, as fetched `now`.

    Parameters
    ----------
    path : Path
        The folder.
    now : int
        The time of all fetches, in milliseconds since 1970, UTC.
    tally : Tally
        Counts damage and links.

    Raises
    ------
    inlink.errors.InputError
        If the LinkDb cannot be read.
    """
    yield from fetches_of_graph(build_graph(_arcs(path, tally), level="page"), str(path), now)


def nothing() -> ArcBatch:
    """Return an empty batch with names, so that a graph without links has names too."""
    none = np.empty(0, np.uint32)
    return ArcBatch(none, none, [])


def _arcs(path: Path, tally: Tally) -> Iterator[ArcBatch]:
    yield nothing()
    for file in map_files(path / "current"):
        for url, sources in records(file, TEXT, _INLINKS, tally):
            tally.links += len(sources)
            ends = np.zeros(len(sources), np.uint32)
            starts = np.arange(1, len(sources) + 1, dtype=np.uint32)
            yield ArcBatch(starts, ends, [url, *sources])


# -- crawls and graphs -------------------------------------------------------------------------------------------


def fetches_of_crawl(path: Path, delete_gone: bool) -> Iterator[Fetches]:
    """Yield the crawled pages of a crawl's folder, with links and time of their latest visits.

    With `delete_gone`, pages that are gone have no links. Merged pages are left out.

    Raises
    ------
    inlink.errors.FolderError
        If the folder holds no crawl.
    """
    from inlink.sources.crawlgraph import crawl_source
    from inlink.store.blocks import arcs_of, page_columns
    from inlink.store.format import STATES
    from inlink.store.reader import known_pages

    pages = known_pages(path, with_urls=False)
    # The names are read after the pages, so that all of these pages have one.
    names = crawl_source(path).names
    assert names is not None
    columns, visits = page_columns(pages, 0, pages.num_pages)
    there = visits > 0
    times = np.nan_to_num(columns["last_crawl"] * 1000).astype(np.int64)
    silent = there.copy()
    for sources, targets, _ in arcs_of(pages):
        silent[sources] = False
        if delete_gone:
            left = columns["state"][sources] != STATES.index("gone")
            silent[sources[~left]] = True
            sources, targets = sources[left], targets[left]
        yield from _rows_of(names, sources, targets, times)
    yield from _without_links(names, np.flatnonzero(silent), times)


def fetches_of_graph(graph: Graph, place: str, now: int) -> Iterator[Fetches]:
    """Yield the crawled nodes of a graph as fetched `now`. If crawled nodes are unknown: the nodes with outlinks.

    Raises
    ------
    inlink.errors.ParameterError
        If the nodes have no names.
    """
    if graph.names is None:
        raise ParameterError(
            f"{place}: the nodes have no names, but a web graph needs URLs. Use inlink.linkrank on the graph instead."
        )
    times = np.full(graph.num_nodes, now, np.int64)
    for near, far, _ in arc_blocks(graph):
        yield from _rows_of(graph.names, near, far, times)
    if graph.crawled is not None:
        silent = np.flatnonzero(graph.crawled & (graph.outdegrees == 0))
        yield from _without_links(graph.names, silent, times)


def _without_links(names: Names, nodes: Int64Array, times: Int64Array) -> Iterator[Fetches]:
    for rows in slices(len(nodes), _ROWS):
        part = nodes[rows].astype(np.uint32)
        yield Fetches(names.take(part), times[part], np.zeros(len(part) + 1, np.int64), Strings.of([]))


def _rows_of(
    names: Names, sources: UInt32Array, targets: UInt32Array, times: Int64Array
) -> Iterator[Fetches]:
    """Yield arcs, sorted by runs of equal sources, in blocks of whole runs."""
    changes = np.ones(len(sources), np.bool_)
    changes[1:] = sources[1:] != sources[:-1]
    first = np.concatenate([np.flatnonzero(changes), np.array([len(sources)], np.int64)])
    low, rows = 0, len(first) - 1
    while low < rows:
        high = max(int(np.searchsorted(first, first[low] + _LINKS, "right")) - 1, low + 1)
        begin, end = int(first[low]), int(first[high])
        pages = sources[first[low:high]]
        yield Fetches(
            names.take(pages), times[pages], first[low : high + 1] - begin, names.take(targets[begin:end])
        )
        low = high


# -- earlier web graphs --------------------------------------------------------------------------------------------


def fetches_of_webgraph(graph: Graph) -> Iterator[Fetches]:
    """Yield the fetches that a web graph was made from, without the links that its rules excluded.

    Raises
    ------
    inlink.errors.FolderError
        If its times of fetching are missing or of another version.
    """
    assert graph.path is not None
    folder = Folder(graph.path / "fetched", FETCHED_KIND, FETCHED_FORMAT)
    have = {name: folder.array(name) for name in ("text", "offsets", "times") if name in folder}
    types = [folder.header.files[name].dtype for name in have]
    whole = types == ["|u1", "<u8", "<i8"] and len(have["offsets"]) == len(have["times"]) + 1
    if not whole or graph.names is None or folder.header.meta.get("graph_uuid") != graph.uuid:
        raise FolderError(
            f"{folder.path} does not belong to {graph.path}. Build the web graph again, without --update."
        )
    if not is_remembered(folder, RULES):
        check_offsets(folder, "offsets", len(have["text"]))
        folder.verify(("text", "times"))
        remember(folder, RULES)
    names, rows = Names(have["text"], have["offsets"]), graph.out_rows
    for start, urls in names.columns(_ROWS):
        nodes = graph.names.find_all(urls)
        # A page is not a node if the rules left out all its links.
        there = nodes >= 0
        begins, ends = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
        begins[there] = rows.offsets[nodes[there]]
        ends[there] = rows.offsets[nodes[there] + 1]
        offsets = offsets_of(ends - begins)
        places = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], ends - begins)
        fetched = np.asarray(have["times"][start : start + len(urls)])
        yield Fetches(urls, fetched, offsets, graph.names.take(rows.nodes[places]))

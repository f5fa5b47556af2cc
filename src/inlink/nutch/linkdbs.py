"""Read Nutch's own link databases: the outlinks of a web graph, and the LinkDb.

A web graph of Nutch is a folder with ``outlinks/current``, ``inlinks`` and ``nodes``. Only its outlinks are read,
because Nutch makes the others from them. A LinkDb is a folder with ``current``: for each URL the pages that link to it.
It does not have the times at which these pages were fetched.

Source: org.apache.nutch.scoring.webgraph.LinkDatum, org.apache.nutch.crawl.Inlinks and .Inlink, Nutch 1.23.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np

from inlink.base.damage import Tally
from inlink.errors import InputError
from inlink.graph.batches import ArcBatch
from inlink.graph.build import build_graph
from inlink.nutch.fetches import Fetches, fetches_of_graph, in_blocks, map_files
from inlink.nutch.fields import TEXT, Fields, Writable
from inlink.nutch.sequencefile import records, value_class
from inlink.nutch.writables import skip_map

__all__ = ["fetches_of_linkdb", "fetches_of_outlinks", "is_linkdb", "is_nutch_webgraph"]


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
            skip_map(fields)
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

    def pages() -> Iterator[tuple[bytes, int, list[bytes]]]:
        for file in map_files(path / "outlinks" / "current"):
            for url, entries in groupby(records(file, TEXT, _LINK_DATUM, tally), itemgetter(0)):
                links = [link for _, link in entries]
                newest = max(time for _, time in links)
                # Nutch keeps the links of the newest fetch only.
                kept = [target for target, time in links if time == newest]
                tally.pages += 1
                tally.links += len(kept)
                yield url, newest, kept

    return in_blocks(pages())


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


def _arcs(path: Path, tally: Tally) -> Iterator[ArcBatch]:
    none = np.empty(0, np.uint32)
    # A batch with names, so that a graph without links has names too.
    yield ArcBatch(none, none, [])
    for file in map_files(path / "current"):
        for url, sources in records(file, TEXT, _INLINKS, tally):
            tally.links += len(sources)
            ends = np.zeros(len(sources), np.uint32)
            starts = np.arange(1, len(sources) + 1, dtype=np.uint32)
            yield ArcBatch(starts, ends, [url, *sources])

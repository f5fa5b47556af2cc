"""The pages of a crawl's folder as nodes, and their links as arcs."""

import os
import tempfile
from collections.abc import Iterator

import numpy as np

from inlink.base.progress import track
from inlink.graph.batches import ArcBatch
from inlink.graph.names import Names
from inlink.graph.source import Source
from inlink.store.blocks import arcs_of, crawled_rows, url_blocks
from inlink.store.pages import Pages
from inlink.store.reader import crawl_folder, known_pages


def crawl_source(path: str | os.PathLike[str]) -> Source:
    """Return a crawl's folder as a source of a graph.

    Raises
    ------
    inlink.errors.FolderError
        If the folder holds no crawl.
    """
    pages = known_pages(path, with_urls=False)

    def batches() -> Iterator[ArcBatch]:
        none = np.empty(0, np.uint32)
        yield ArcBatch(none, none, crawled=crawled_rows(pages)[0])
        with track("reading the crawl's links", pages.frames.end, "B") as task:
            for sources, targets, done in arcs_of(pages):
                yield ArcBatch(sources, targets)
                task.advance(done)

    # The header of a copy of a crawl as it was has the origin of the copy.
    origin = {"sources": [was]} if (was := crawl_folder(path).header.meta.get("as_of")) else {}
    return Source(batches(), names_of(pages), pages.num_pages, "page", origin=origin)


def names_of(pages: Pages) -> Names:
    """Return the URLs as the names of a graph.

    Their text is in an unnamed temporary file, which the system may drop from memory.
    """
    from inlink.graph.kernels.names import order_of

    offsets = np.zeros(pages.num_pages + 1, np.uint64)
    with tempfile.TemporaryFile() as file:
        for first, text, ends in url_blocks(pages):
            offsets[first + 1 : first + len(ends)] = ends[1:] + offsets[first]
            file.write(text.data)
        file.flush()
        size = int(offsets[-1])
        text = (
            np.memmap(file, np.uint8, "r", shape=(size,)).view(np.ndarray) if size else np.empty(0, np.uint8)
        )
    return Names(text, offsets, order_of(text, offsets))

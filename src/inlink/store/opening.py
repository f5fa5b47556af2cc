"""Opening a crawl, and its index: the table of URLs on disk.

With an index, a crawl opens without sorting all its URLs again, and a URL can be looked up without opening the crawl.

The index holds, for each of the 256 shards in turn, the slots that are not empty (``tag << 32 | page + 1``, by tag),
with a checksum, and the place of every 32nd URL in urls.txt. It is written while the crawl goes on: a shard at a time
between two calls. Then a thread syncs it and renames it. Shards may hold pages that were discovered in the meantime.
The next opening takes in these pages again, which does no harm.
"""

import logging
import zlib
from contextlib import ExitStack, suppress
from threading import Thread

import numpy as np

from inlink.base.folder import building
from inlink.errors import InlinkError
from inlink.store.blocksums import BlockSums
from inlink.store.log import INDEX, INDEX_VERSION, Log
from inlink.store.pages import Pages
from inlink.store.urls import SHARDS, SLACK

__all__ = ["IndexWriter", "recover"]

_log = logging.getLogger("inlink.crawl")


class IndexWriter:
    """Writes one index, in steps.

    Parameters
    ----------
    pages : Pages
        The pages of the crawl.
    log : Log
        Synced before the index becomes visible.
    """

    def __init__(self, pages: Pages, log: Log) -> None:
        self._pages, self._log = pages, log
        self._stack = ExitStack()
        self._writer = self._stack.enter_context(building(pages.folder / INDEX, INDEX, INDEX_VERSION))
        self._slots = self._writer.create("slots", "<u8")
        self._counts, self._checks = np.zeros(SHARDS, np.uint64), np.zeros(SHARDS, np.uint32)
        self._marks = (pages.num_pages + 31) // 32
        self._shard = 0
        self._thread: Thread | None = None
        self._writer.header.meta = {
            "pages": pages.num_pages,
            "urls_end": pages.urls_end,
            "events_end": pages.events_end,
            "seed": str(pages.hash_seed),
        }

    def step(self) -> bool:
        """Write the next shard; return whether the work is over.

        If an index cannot be written, its files are removed, and the crawl goes on without an index.
        """
        try:
            return self._step()
        except (OSError, InlinkError) as error:
            self._give_up(error)
            return True

    def _step(self) -> bool:
        table, k = self._pages.table, self._shard
        if k < SHARDS:
            begin = k * (len(table.slots) // SHARDS)
            slots = table.slots[begin : begin + int(table.sizes[k]) + SLACK]
            slots = slots[slots > 0]
            self._counts[k], self._checks[k] = len(slots), zlib.crc32(slots.data)
            self._slots.append(slots)
            self._shard += 1
            return False
        if self._thread is None:
            self._thread = Thread(target=self._finish, name="inlink-index", daemon=True)
            self._thread.start()
        return not self._thread.is_alive()

    def _finish(self) -> None:
        try:
            self._log.sync()
            self._writer.write("marks", self._pages.marks[: self._marks])
            self._writer.write("counts", self._counts)
            self._writer.write("checks", self._checks)
            meta = self._writer.header.meta
            meta["urls_check"] = zlib.crc32(self._pages.table.checks[: meta["pages"]].data)
            self._stack.close()
        except (OSError, InlinkError) as error:
            self._give_up(error)
        self._pages.table.indexed = self._writer.header.meta["pages"]

    def _give_up(self, error: OSError | InlinkError) -> None:
        with suppress(OSError, InlinkError):
            self._stack.__exit__(type(error), error, None)
        # The next attempt comes when there are more pages.
        self._pages.table.indexed = self._writer.header.meta["pages"]
        said = error.strerror if isinstance(error, OSError) else error
        _log.warning(
            "%s: cannot write an index (%s); the next opening of this crawl takes longer",
            self._pages.folder,
            said,
        )

    def give_up(self) -> None:
        """Remove all files of the index."""
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join()
        self._stack.__exit__(GeneratorExit, GeneratorExit(), None)

    def finish(self) -> None:
        """Write the rest of the index, and wait until it is in place."""
        while not self.step():
            if self._thread is not None:
                self._thread.join()


def recover(pages: Pages, log: Log) -> str:
    """Take in all complete events of a crawl, move a torn tail to ``torn/``, and return one line about the crawl.

    Raises
    ------
    inlink.errors.FolderError
        If the log is damaged where it was safe on disk. Then the folder is not changed.
    inlink.errors.StoreError
        If a torn tail cannot be moved. Then the folder is not changed.
    """
    urls_end, events_end = pages.recover()
    log.synced = pages.synced
    lost = log.urls_end - urls_end + log.events_end - events_end
    kept = log.cut(urls_end, events_end) if lost else []
    known = (BlockSums(), BlockSums()) if pages.checkpoint is None else pages.checkpoint.block_sums()
    log.sum_up(pages.table.all(), pages.frames.all(), *known)
    told = (
        f"{pages.folder}: {pages.num_pages:,} pages known, {pages.num_crawled:,} crawled, "
        f"{pages.num_events:,} events"
    )
    if lost:
        names = " and ".join(str(path.relative_to(pages.folder)) for path in kept)
        told += f"; {lost:,} bytes of an unfinished event were cut off, and are kept in {names}"
    return told

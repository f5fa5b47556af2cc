"""Opening a crawl, upgrading its folder, and its index: the table of URLs on disk.

With an index, a crawl opens without sorting all its URLs again, and a URL can be looked up without opening the crawl.

The index holds, for each of the 256 shards in turn, the slots that are not empty (``tag << 32 | page + 1``, by tag),
with a checksum, and the place of every 32nd URL in urls.txt. It is written while the crawl goes on: a shard at a time
between two calls. Then a thread syncs it and renames it. Shards may hold pages that were discovered in the meantime.
The next opening takes in these pages again, which does no harm.
"""

import logging
import zlib
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread

import msgspec
import numpy as np

from inlink.base.decoding import converted
from inlink.base.disk import remove_folder, sync_path
from inlink.base.folder import HEADER, Folder, atomic_file, building
from inlink.base.table import counted
from inlink.errors import FolderError, InlinkError, InUseError, OutputError
from inlink.store.blocksums import BlockSums
from inlink.store.checks import last_synced, last_whole, no_end
from inlink.store.format import HEAD, HEAD_SIZE, MOST_UNSYNCED, OLD_SALT, head_check, salt_of
from inlink.store.kernels.checks import head_places
from inlink.store.log import (
    EVENTS,
    INDEX,
    INDEX_VERSION,
    UPGRADED,
    URLS,
    VERSION,
    Log,
    ends_in,
    lock,
    write_end,
)
from inlink.store.mapped import mapped
from inlink.store.pages import Pages
from inlink.store.urls import SHARDS, SLACK, Indexed

_log = logging.getLogger("inlink.crawl")
_HEADS = 4096
"""Number of heads that are upgraded at a time."""


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
            "urls_end": pages.tally.url_bytes,
            "events_end": pages.frames.end,
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
            try:
                self._thread.start()
            except RuntimeError:
                # The system starts no further thread.
                self._finish()
        return not self._thread.is_alive()

    def _finish(self) -> None:
        try:
            self._log.sync()
            self._writer.write("marks", self._pages.table.marks[: self._marks])
            self._writer.write("counts", self._counts)
            self._writer.write("checks", self._checks)
            meta = self._writer.header.meta
            meta["urls_check"] = zlib.crc32(self._pages.table.checks[: meta["pages"]].data)
            self._stack.close()
        except (OSError, InlinkError) as error:
            self._give_up(error)
        self._pages.table.note_indexed(self._writer.header.meta["pages"])

    def _give_up(self, error: OSError | InlinkError) -> None:
        with suppress(OSError, InlinkError):
            self._stack.__exit__(type(error), error, None)
        # The next attempt comes when there are more pages.
        self._pages.table.note_indexed(self._writer.header.meta["pages"])
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


def upgrade(folder: Folder) -> Folder:
    """Upgrade a crawl's folder of format version 2, and return it. Every place in its log stays valid.

    The new log is written beside the old one. Replacing the header is the commit; then the new log gets its name. So
    after a kill, the folder is of the old version, or the next call completes the upgrade.

    Raises
    ------
    inlink.errors.FolderError
        If the folder cannot be written, or another process crawls there.
    """
    path, header = folder.path, folder.header
    try:
        with lock(path):
            # Until now another process may have upgraded the folder.
            header = Folder(path, header.kind, VERSION).header
            if header.version < VERSION:
                _log.info("%s: upgrading from format version %d", path, header.version)
                _write_upgraded(path, salt_of(int(header.meta["hash_seed"])))
                header.version = VERSION
                header.check = header.checksum()
                with atomic_file(path / HEADER) as work:
                    work.write_bytes(msgspec.json.encode(header))
            with suppress(FileNotFoundError):
                (path / UPGRADED).rename(path / EVENTS)
                sync_path(path)
    except InUseError:
        raise
    except (OSError, OutputError, FolderError, KeyError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise FolderError(
            f"{path} holds a crawl of format version {VERSION - 1} and cannot be upgraded ({said}): make the "
            "folder writable, or copy it"
        ) from None
    return Folder(path, header.kind, VERSION)


def _write_upgraded(folder: Path, salt: int) -> None:
    """Write the log of format version 2 with heads of version 3. All bytes but those of sound heads stay."""
    events, urls = mapped(folder / EVENTS), mapped(folder / URLS)
    begin, at, number = np.uint64(0), 0, 0
    # This field had eight bytes, and held the synced byte.
    field = int(np.dtype(HEAD).fields["unsynced"][1])  # type: ignore[index]
    with atomic_file(folder / UPGRADED) as work, work.open("wb") as out:
        found = np.empty(_HEADS, np.uint64)
        while begin < len(events):
            count, begin = head_places(events, begin, np.uint64(OLD_SALT), found)
            rows = found[: int(count), None].astype(np.int64) + np.arange(HEAD_SIZE)
            rows = rows[events[rows].view(HEAD)["place"][:, 0] == rows[:, 0]]
            if not len(rows):
                continue
            heads = events[rows].view(HEAD)[:, 0]
            place, synced = heads["place"], events[rows[:, field : field + 8]].view("<u8")[:, 0]
            heads["marker"] = salt & 0xFFFFFFFF
            heads["unsynced"] = np.minimum(place - np.minimum(synced, place), MOST_UNSYNCED)
            heads["number"] = (number + np.arange(len(rows))) & 0xFFFFFFFF
            raw = heads.view(np.uint8).reshape(rows.shape)
            for row in raw:
                row[-4:] = np.frombuffer(head_check(row[:-4].data, salt), np.uint8)
            block = events[at : rows[-1, -1] + 1].copy()
            block[rows - at] = raw
            out.write(block.data)
            number, at = number + len(rows), int(rows[-1, -1]) + 1
        out.write(events[at:].data)
    sync_path(folder / URLS)
    events = mapped(folder / UPGRADED)
    reached = last_whole(urls, events, salt)
    synced = last_synced(events, reached)
    if reached.place >= synced:
        write_end(folder, reached.text_place, reached.place, reached.frames, reached.pages)
    else:
        write_end(folder, 0, synced, 0, 0)


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
    lost = log.urls_end - urls_end + log.events_end - events_end
    if events_end and not ends_in(pages.folder):
        _log.warning("%s", no_end(pages.folder))
    kept = log.go_on(urls_end, events_end, pages.tally.frames, pages.num_pages, pages.synced)
    _remove_longer_index(pages.folder, urls_end, events_end)
    known = (BlockSums(), BlockSums()) if pages.checkpoint is None else pages.checkpoint.block_sums()
    log.sum_up(pages.table.all(), pages.frames.all(), *known)
    told = (
        f"{pages.folder}: {counted(pages.num_pages, 'page')} known, {pages.tally.crawled:,} crawled, "
        f"{counted(pages.tally.events, 'event')}"
    )
    if lost:
        names = " and ".join(str(path.relative_to(pages.folder)) for path in kept)
        told += f"; {lost:,} bytes of an unfinished event were cut off, and are kept in {names}"
    return told


def _remove_longer_index(folder: Path, urls_end: int, events_end: int) -> None:
    """Remove an index that covers more than the log, which a power cut has shortened.

    When the log has grown again, the index would seem to cover other URLs than its own.
    """
    with suppress(FolderError, msgspec.ValidationError):
        extent = converted(Folder(folder / INDEX, INDEX, INDEX_VERSION).header.meta, Indexed)
        if extent.urls_end > urls_end or extent.events_end > events_end:
            remove_folder(folder / INDEX)

"""The log of a crawl: its events in order, which are appended and never changed.

The log consists of two files. Both are only appended to. ``urls.txt`` holds the canonical URLs, one per line. A page's
id is the number of its line. ``events.log`` holds frames (:mod:`inlink.store.format`). Each frame has checksums of
itself and of the URLs that it made known. The URLs are written before their frame, so a frame with correct checksums
is complete. Bytes after the last such frame belong to an event that was never finished. They are moved to ``torn/``
when the crawl is opened.

When :meth:`Log.append` returns, the operating system has the event, so the event survives a crash of the process. A
power cut loses at most the events that were not synced. With ``sync="second"``, a thread syncs all events once a
second. With ``sync="full"``, events are synced before :meth:`append` returns.
"""

import contextlib
import errno
import fcntl
import os
import threading
import time
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from inlink.base.arrays import UInt8Array
from inlink.base.folder import atomic_file
from inlink.errors import FolderError, InUseError, OutputError, StoreError
from inlink.store.blocksums import BlockSums
from inlink.store.format import CHECKED, HEAD_SIZE, MARKER, NO_PAGE, SYNCED

__all__ = ["EVENTS", "INDEX", "INDEX_VERSION", "RANKS", "TORN", "URLS", "Log", "lock"]

URLS, EVENTS, LOCK = "urls.txt", "events.log", "lock"
TORN, INDEX, RANKS = "torn", "index", "ranks"
"""Folders in a crawl's folder: tails that were cut off, the table of URLs, and the last published ranking."""
INDEX_VERSION = 2
_BLOCK = 1 << 22
SYNC_EVERY = 1.0
"""Seconds between two syncs, with ``sync="second"``."""


class Log:
    """The log, open for appending.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    sync : {"second", "full"}
        When appended events are made safe from a power cut: within a second, or before :meth:`append` returns.

    Attributes
    ----------
    urls_end, events_end : int
        Sizes of the two files in bytes.
    synced : int
        The byte of events.log up to which both files are known to be safe from a power cut.
    urls_sums, events_sums : BlockSums
        Checksums of both files, see :meth:`sum_up`.
    """

    def __init__(self, folder: Path, sync: Literal["second", "full"] = "second") -> None:
        self.folder, self._full = folder, sync == "full"
        self._urls = _open(folder / URLS)
        try:
            self._events = _open(folder / EVENTS)
        except FolderError:
            os.close(self._urls)
            raise
        self.urls_end = os.fstat(self._urls).st_size
        self.events_end = os.fstat(self._events).st_size
        self.synced = 0
        self.urls_sums, self.events_sums = BlockSums(), BlockSums()
        self._last: tuple[float, int] | None = None
        self._broken: str | None = None
        # False while a frame is being written, and after an exception during the write.
        self._whole = True
        self._stop = threading.Event()
        self._dirty = False
        self._syncer: threading.Thread | None = None

    def sum_up(
        self, urls: UInt8Array, events: UInt8Array, urls_sums: BlockSums, events_sums: BlockSums
    ) -> None:
        """Compute the checksums of both files. Those of their first bytes are known, and are not computed again.

        From now on :meth:`append` updates them, so they hold for the bytes that were meant to be written.

        Parameters
        ----------
        urls, events : uint8[…]
            The two files, mapped.
        urls_sums, events_sums : BlockSums
            The known checksums.
        """
        self.urls_sums, self.events_sums = urls_sums, events_sums
        urls_sums.add(urls[urls_sums.end : self.urls_end].data)
        events_sums.add(events[events_sums.end : self.events_end].data)

    @property
    def broken(self) -> bool:
        """True if an event could not be written."""
        return self._broken is not None or not self._whole

    def cut(self, urls_end: int, events_end: int) -> list[Path]:
        """Cut both files to these sizes, and sync the rest.

        Returns
        -------
        list of Path
            The files in ``torn/`` that keep what was cut off. They were synced before anything was cut. Each name is
            the time, the name of the file that was cut, and the byte at which it was cut.

        Raises
        ------
        StoreError
            If the tails cannot be kept, for example because the disk is full. Then nothing is cut.
        """
        kept: list[Path] = []
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        try:
            for file, name, begin, end in (
                (self._events, EVENTS, events_end, self.events_end),
                (self._urls, URLS, urls_end, self.urls_end),
            ):
                if begin < end:
                    kept.append(self.folder / TORN / f"{now}.{name}.{begin}")
                    _copy_tail(file, begin, end, kept[-1])
            os.ftruncate(self._events, events_end)
            os.ftruncate(self._urls, urls_end)
            self.urls_end, self.events_end = urls_end, events_end
            self.sync()
        except (OSError, OutputError) as error:
            said = error.strerror if isinstance(error, OSError) else error
            raise StoreError(
                f"{self.folder}: the unfinished event at the end cannot be moved to {TORN} ({said}): no event is lost; "
                "free some space and open the crawl again"
            ) from None
        return kept

    def append(
        self,
        kind: int,
        when: float,
        page: int = NO_PAGE,
        *,
        flags: int = 0,
        status: int = 0,
        score: float = 0.0,
        listed: int = 0,
        payload: bytes = b"",
        lease: int = 0,
        first: int = 0,
        new: int = 0,
        urls: bytes | memoryview = b"",
    ) -> tuple[int, bytes]:
        """Append one frame and the URLs that it makes known.

        Parameters
        ----------
        kind, when, page, flags, status, score, listed, lease, first, new
            Fields of the :class:`~inlink.store.format.Head`.
        payload : bytes
            The data of the event; the format depends on its kind.
        urls : bytes or memoryview
            The URLs of the ``new`` pages, with a newline after each URL.

        Returns
        -------
        place : int
            The place of the frame in events.log, in bytes.
        frame : bytes
            The frame that was written.

        Raises
        ------
        StoreError
            If the frame cannot be written, for example because the disk is full, or if an earlier frame could not be
            written. The crawl stops; all earlier events are intact.
        """
        self._refuse_if_broken()
        length, place = HEAD_SIZE + len(payload), self.events_end
        checked = CHECKED.pack(
            MARKER,
            length,
            place,
            self.synced,
            self.urls_end,
            when,
            lease,
            first,
            new,
            len(urls),
            page,
            listed,
            score,
            flags,
            status,
            kind,
            zlib.crc32(payload),
            zlib.crc32(urls),
        )
        frame = checked + zlib.crc32(checked).to_bytes(4, "little") + payload
        self._whole = False
        try:
            if new:
                _write(self._urls, urls)
            _write(self._events, frame)
            if self._full:
                self._sync(place + length)
        except OSError as error:
            self._fail(error)
        self.urls_end += len(urls)
        self.events_end += length
        self.urls_sums.add(urls)
        self.events_sums.add(frame)
        self._last = when, first + new
        self._whole = True
        if not self._full:
            self._sync_soon()
        return place, frame

    def _refuse_if_broken(self) -> None:
        if self._broken is not None:
            raise StoreError(self._broken)
        if not self._whole:
            raise StoreError(f"{self.folder}: an event was not written completely: open the crawl again")

    def _sync_soon(self) -> None:
        """Let the thread sync the files within a second. Start the thread if it does not run."""
        self._dirty = True
        if self._syncer is None and not self._stop.is_set():
            self._syncer = threading.Thread(target=self._keep_synced, daemon=True, name="inlink-sync")
            self._syncer.start()

    def _fail(self, error: OSError) -> None:
        remedy = (
            "free some space and open the crawl again"
            if error.errno == errno.ENOSPC
            else "open the crawl again"
        )
        self._broken = (
            f"{self.folder}: cannot be written ({error.strerror}): all earlier events are kept; {remedy}"
        )
        with contextlib.suppress(OSError):
            os.ftruncate(self._events, self.events_end)
            os.ftruncate(self._urls, self.urls_end)
        raise StoreError(self._broken) from None

    def sync(self) -> None:
        """Wait until both files are safe from a power cut."""
        self._sync(self.events_end)

    def _sync(self, end: int) -> None:
        os.fsync(self._urls)
        os.fsync(self._events)
        self.synced = end

    def _keep_synced(self) -> None:
        while not self._stop.wait(SYNC_EVERY):
            if self._dirty:
                self._dirty = False
                try:
                    self.sync()
                except OSError as error:
                    # The kernel may have dropped written data, so no later event could be guaranteed.
                    self._broken = f"{self.folder}: cannot be synced ({error.strerror}): open the crawl again"
                    return

    def close(self) -> None:
        """Sync the files, record this in the log if an event was appended, and close the files."""
        self._stop.set()
        # An interruption may have come before the thread was started.
        if self._syncer is not None and self._syncer.ident is not None:
            self._syncer.join()
        with contextlib.suppress(OSError, StoreError):
            self.sync()
            if self._last is not None:
                self.append(SYNCED, self._last[0], first=self._last[1])
        self.abandon()

    def abandon(self) -> None:
        """Close both files without a sync. The child process of a fork must call this."""
        os.close(self._urls)
        os.close(self._events)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise FolderError(
            f"{path} cannot be opened ({error.strerror}): make it a file that you may write, and open the crawl again"
        ) from None


def _copy_tail(file: int, begin: int, end: int, path: Path) -> None:
    """Copy bytes of an open file to a new file, and sync the new file."""
    with atomic_file(path) as work, work.open("wb") as out:
        while begin < end and (block := os.pread(file, min(_BLOCK, end - begin), begin)):
            out.write(block)
            begin += len(block)


def _write(file: int, data: bytes | memoryview) -> None:
    written = os.write(file, data)
    # When a disk becomes full, the first write may write only a part of the data.
    while written < len(data):
        data = data[written:]
        written = os.write(file, data)


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold the crawl's folder as its only writer.

    Raises
    ------
    InUseError
        If another process, or another Crawl in this process, holds the lock. The message names the process id.
    FolderError
        If the lock cannot be opened.
    """
    file = _open(folder / LOCK)
    try:
        try:
            _hold(file)
        except OSError:
            holder = os.pread(file, 32, 0).decode("ascii", "replace").strip() or "another process"
            raise InUseError(
                f"{folder} is being crawled by process {holder}: stop that process, or wait until it ends"
            ) from None
        # On a full disk the process id cannot be written, but the lock is still held.
        with contextlib.suppress(OSError):
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(file)


def _hold(file: int) -> None:
    """Lock a file. Retry a few times, because a process that only tests the lock holds it for microseconds."""
    for wait in (0.01, 0.05, 0.2):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            time.sleep(wait)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

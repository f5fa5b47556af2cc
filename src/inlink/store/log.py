"""The log of a crawl: what happened, in order, appended and never changed.

Two files, both only ever appended to. ``urls.txt`` holds the canonical URLs, one a line: a page's id is the number of
its line. ``events.log`` holds frames (:mod:`inlink.store.format`), each with checksums of itself and of the URLs that
it made known. The URLs are written before their frame, so a frame whose checksums hold is whole, and what
stands behind the last such frame never happened: opening moves it to ``torn/``.

What has returned from :meth:`Log.append` is with the operating system, and so survives the death of the process. A
power cut takes at most what was not synced: everything is, once a second by a thread (``sync="second"``), or
before :meth:`append` returns (``sync="full"``).
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

from inlink.base.folder import atomic_file
from inlink.errors import FolderError, InUseError, OutputError, StoreError
from inlink.store.format import CHECKED, HEAD_SIZE, MARKER, NO_PAGE, SYNCED

__all__ = ["EVENTS", "INDEX", "INDEX_VERSION", "RANKS", "TORN", "URLS", "Log", "lock"]

URLS, EVENTS, LOCK = "urls.txt", "events.log", "lock"
TORN, INDEX, RANKS = "torn", "index", "ranks"
"""Folders in a crawl's folder: tails that were cut off, the table of URLs, the ranking that was published last."""
INDEX_VERSION = 2
_BLOCK = 1 << 22
SYNC_EVERY = 1.0
"""Seconds between two syncs, with ``sync="second"``."""


class Log:
    """The log, open for appending.

    Parameters
    ----------
    folder : Path
        The crawl's.
    sync : {"second", "full"}
        When appended events are made safe from a power cut: within a second, or before :meth:`append` returns.

    Attributes
    ----------
    urls_end, events_end : int
        Bytes of both files.
    synced : int
        The byte of events.log up to which both files are known to be safe from a power cut.
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
        self._last: tuple[float, int] | None = None
        self._broken: str | None = None
        # False while a frame is being written, and after an exception that came then.
        self._whole = True
        self._stop = threading.Event()
        self._dirty = False
        self._syncer: threading.Thread | None = None

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
            If the tails cannot be kept, such as on a full disk; nothing is cut then.
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
                f"{self.folder}: what was never finished cannot be moved to {TORN} ({said}): nothing is lost; "
                "make room and open the crawl again"
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
            What its kind says.
        urls : bytes or memoryview
            The URLs of the ``new`` pages, a newline behind each.

        Returns
        -------
        place : int
            Where the frame stands in events.log.
        frame : bytes

        Raises
        ------
        StoreError
            If it cannot be written, such as on a full disk, and whenever that has happened before: the crawl stops
            with everything up to then intact.
        """
        if self._broken is not None:
            raise StoreError(self._broken)
        if not self._whole:
            raise StoreError(
                f"{self.folder}: an event was broken off while it was written: open the crawl again"
            )
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
        self._last = when, first + new
        self._whole = True
        if not self._full:
            self._dirty = True
            if self._syncer is None and not self._stop.is_set():
                self._syncer = threading.Thread(target=self._keep_synced, daemon=True, name="inlink-sync")
                self._syncer.start()
        return place, frame

    def _fail(self, error: OSError) -> None:
        remedy = (
            "make room and open the crawl again" if error.errno == errno.ENOSPC else "open the crawl again"
        )
        self._broken = f"{self.folder}: cannot be written ({error.strerror}): all before it is kept; {remedy}"
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
                    # The kernel may have dropped what was written: nothing can be promised after this.
                    self._broken = f"{self.folder}: cannot be synced ({error.strerror}): open the crawl again"
                    return

    def close(self) -> None:
        """Sync, say so in the log if something was written, and close."""
        self._stop.set()
        # An interruption may have come before it was started.
        if self._syncer is not None and self._syncer.ident is not None:
            self._syncer.join()
        with contextlib.suppress(OSError, StoreError):
            self.sync()
            if self._last is not None:
                self.append(SYNCED, self._last[0], first=self._last[1])
        self.abandon()

    def abandon(self) -> None:
        """Close both files and do nothing else, as the child of a fork must."""
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
    """Copy bytes of an open file to a file of their own, and sync that."""
    with atomic_file(path) as work, work.open("wb") as out:
        while begin < end and (block := os.pread(file, min(_BLOCK, end - begin), begin)):
            out.write(block)
            begin += len(block)


def _write(file: int, data: bytes | memoryview) -> None:
    written = os.write(file, data)
    # A disk that fills takes a part first.
    while written < len(data):
        data = data[written:]
        written = os.write(file, data)


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold the crawl's folder as its only writer.

    Raises
    ------
    InUseError
        If another process, or another Crawl of this one, holds it; the message names its pid.
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
                f"{folder} is being crawled by process {holder}: one at a time; stop it, or wait for it"
            ) from None
        # On a full disk the pid cannot be written; the lock holds all the same.
        with contextlib.suppress(OSError):
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(file)


def _hold(file: int) -> None:
    """Lock a file. A process that only looks whether it is locked holds it for microseconds, so try a few times."""
    for wait in (0.01, 0.05, 0.2):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            time.sleep(wait)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

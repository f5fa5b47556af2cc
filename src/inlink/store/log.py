"""The log of a crawl: what happened, in order, appended and never changed.

Two files, both only ever appended to. ``urls.txt`` holds the canonical URLs, one a line: a page's id is the number of
its line. ``events.log`` holds frames (:mod:`inlink.store.kernels.frames`), each with a checksum over itself and over
the URLs that it made known. The URLs are written before their frame, so a frame whose checksum holds is whole, and what
stands behind the last such frame never happened: opening cuts it off.

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
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from inlink.errors import FolderError, InUseError, StoreError
from inlink.store.layout import BODY, CHECK, HEAD, NO_PAGE

__all__ = ["EVENTS", "URLS", "Log", "lock"]

URLS, EVENTS, LOCK = "urls.txt", "events.log", "lock"
SYNC_EVERY = 1.0  # seconds


class Log:
    """The log, open for appending.

    Parameters
    ----------
    folder : Path
        The crawl's.
    sync : {"second", "full"}
        When what was appended is made safe against a power cut.

    Attributes
    ----------
    urls_end, events_end : int
        Bytes of both files.
    """

    def __init__(self, folder: Path, sync: Literal["second", "full"] = "second") -> None:
        self.folder, self._full = folder, sync == "full"
        try:
            self._urls = _open(folder / URLS)
            self._events = _open(folder / EVENTS)
        except OSError as error:
            raise FolderError(f"{folder}: {error.strerror}: {error.filename}") from None
        self.urls_end = os.fstat(self._urls).st_size
        self.events_end = os.fstat(self._events).st_size
        self._broken: str | None = None
        self._stop = threading.Event()
        self._dirty = False
        self._syncer: threading.Thread | None = None

    def cut(self, urls_end: int, events_end: int) -> None:
        """Cut off what never happened, and make safe what did."""
        os.ftruncate(self._events, events_end)
        os.ftruncate(self._urls, urls_end)
        self.urls_end, self.events_end = urls_end, events_end
        self.sync()

    def append(
        self,
        kind: int,
        when: float,
        page: int = NO_PAGE,
        *,
        flags: int = 0,
        status: int = 0,
        score: float = 0.0,
        count: int = 0,
        payload: bytes = b"",
        new: int = 0,
        urls: bytes | memoryview = b"",
    ) -> tuple[int, bytes]:
        """Append one frame and the URLs that it makes known; returns its place and its bytes.

        Raises
        ------
        StoreError
            If it cannot be written, such as on a full disk, and whenever that has happened before: the crawl stops
            with everything up to then intact.
        """
        if self._broken is not None:
            raise StoreError(self._broken)
        length = HEAD.size + len(payload)
        body = BODY.pack(when, page, new, len(urls), kind, flags, status, score, count) + payload
        frame = CHECK.pack(length, zlib.crc32(urls, zlib.crc32(body))) + body
        place = self.events_end
        try:
            if new:
                _write(self._urls, urls)
            _write(self._events, frame)
            if self._full:
                self.sync()
        except OSError as error:
            self._fail(error)
        self.urls_end += len(urls)
        self.events_end += length
        if not self._full:
            self._dirty = True
            if self._syncer is None:
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
        os.fsync(self._urls)
        os.fsync(self._events)

    def _keep_synced(self) -> None:
        while not self._stop.wait(SYNC_EVERY):
            if self._dirty:
                self._dirty = False
                try:
                    self.sync()
                except (
                    OSError
                ) as error:  # the kernel may have dropped pages: nothing after this can be promised
                    self._broken = f"{self.folder}: cannot be synced ({error.strerror}): open the crawl again"
                    return

    def close(self) -> None:
        """Sync and close."""
        self._stop.set()
        if self._syncer is not None:
            self._syncer.join()
        with contextlib.suppress(OSError):
            self.sync()
        os.close(self._urls)
        os.close(self._events)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)


def _write(file: int, data: bytes | memoryview) -> None:
    written = os.write(file, data)
    while written < len(data):  # a disk that fills takes a part first
        data = data[written:]
        written = os.write(file, data)


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold the crawl's folder as its only writer.

    Raises
    ------
    InUseError
        If another process, or another Crawl of this one, holds it; the message names its pid.
    """
    path = folder / LOCK
    file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    try:
        try:
            _hold(file)
        except OSError:
            holder = os.pread(file, 32, 0).decode("ascii", "replace").strip() or "another process"
            raise InUseError(
                f"{folder} is being crawled by process {holder}: one at a time; stop it, or wait for it"
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(file)


def _hold(file: int) -> None:
    """Lock a file; whoever only looks whether it is locked holds it for microseconds, and is waited for."""
    for wait in (0.01, 0.05, 0.2):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            time.sleep(wait)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def last_whole(
    urls: npt.NDArray[np.uint8], events: npt.NDArray[np.uint8], urls_begin: int = 0, events_begin: int = 0
) -> tuple[int, int, int]:
    """Where the last whole frame ends, given places up to which all is known to be whole.

    Parameters
    ----------
    urls, events : uint8[…]
        The two files.
    urls_begin, events_begin : int
        Places to begin at: where a frame begins, and the URLs known before it end.

    Returns
    -------
    urls_end, events_end, frames : int
    """
    at, text, frames = events_begin, urls_begin, 0
    view, urls_view = events.data, urls.data
    while at + HEAD.size <= len(events):
        length, check, _, _, _, new_bytes, *_ = HEAD.unpack_from(view, at)
        if length < HEAD.size or at + length > len(events) or text + new_bytes > len(urls):
            break
        found = zlib.crc32(view[at + 8 : at + length])
        if zlib.crc32(urls_view[text : text + new_bytes], found) != check:
            break
        at, text, frames = at + length, text + new_bytes, frames + 1
    return text, at, frames

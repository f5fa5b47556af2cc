"""The log of a crawl: its events in order, which are appended and never changed.

The log consists of two files. Both are only appended to. ``urls.txt`` holds the canonical URLs, one per line. A page's
id is the number of its line. ``events.log`` holds frames (:mod:`inlink.store.format`). Each frame has checksums of
itself and of the URLs that it made known. The URLs are written before their frame, so a frame with correct checksums
is complete. Bytes after the last such frame belong to an event that was never finished. They are moved to ``torn/``
when the crawl is opened. ``end.bin`` says how far both files were synced (:class:`~inlink.store.format.EndRecord`).

When :meth:`Log.append` returns, the operating system has the event, so the event survives a crash of the process. A
power cut loses at most the events that were not synced. With ``sync="second"``, a thread syncs all events once a
second. With ``sync="full"``, events are synced before :meth:`append` returns.

Only one process may write. It holds locks (``flock``) on the file ``lock`` and on ``events.log``. The locks can be
bypassed: some network file systems grant them on each machine, and a writer may be suspended while another machine goes
on. So :meth:`Log.append` compares the ends of both files before and after it writes, and an event is acknowledged only
if all other bytes are the writer's own. Each sync checks that the files and the lock are still in their places, and
that no other writer has synced. A writer that finds another one stops, and takes nothing away from the files.
"""

import contextlib
import errno
import io
import os
import threading
import time
import weakref
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NoReturn

from inlink.base.arrays import UInt8Array
from inlink.base.folder import atomic_file
from inlink.errors import FolderError, InUseError, OutputError, StoreError
from inlink.store.blocksums import BlockSums
from inlink.store.format import (
    CHECKED,
    HEAD_SIZE,
    MOST_UNSYNCED,
    NO_PAGE,
    SYNCED,
    EndRecord,
    salt_of,
    struct_of,
)

KIND, VERSION = "crawl", 3
"""The kind and the format version of a crawl's folder."""
URLS, EVENTS, END, LOCK = "urls.txt", "events.log", "end.bin", "lock"
UPGRADED = "events.upgraded"
"""The log of a folder that is being upgraded, once its header names the new version."""
TORN, INDEX, RANKS = "torn", "index", "ranks"
"""Folders in a crawl's folder: tails that were cut off, the table of URLs, and the last published ranking."""
INDEX_VERSION = 2
_BLOCK = 1 << 22
SYNC_EVERY = 1.0
"""Seconds between two syncs, with ``sync="second"``."""
_END = struct_of(EndRecord)
_NO_END = EndRecord(0, 0, 0, 0, 0, 0, 0, 0)


class Log:
    """The log, open for appending.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    sync : {"second", "full"}
        When appended events are made safe from a power cut: within a second, or before :meth:`append` returns.

    hash_seed : int
        The crawl's seed of hashes, of which the log's salt is made.

    Attributes
    ----------
    urls_end, events_end : int
        Sizes of the two files in bytes.
    frames : int
        Number of frames in the log.
    synced : int
        The byte of events.log up to which both files are known to be safe from a power cut.
    urls_sums, events_sums : BlockSums
        Checksums of both files, see :meth:`sum_up`.

    Raises
    ------
    inlink.errors.InUseError
        If another process writes events.log.
    inlink.errors.FolderError
        If a file cannot be opened.
    """

    def __init__(self, folder: Path, sync: Literal["second", "full"] = "second", hash_seed: int = 0) -> None:
        self.folder, self._full, self._salt = folder, sync == "full", salt_of(hash_seed)
        # An exception at any moment, such as Ctrl-C, closes the open files. This releases the lock.
        self._files: list[io.FileIO] = []
        self._release = weakref.finalize(self, _close, self._files)
        self._release.atexit = False
        self._files.append(_held_log(folder))
        self._files += (_opened(folder / URLS), _opened(folder / END, "r+"))
        self._events, self._urls, self._end = (file.fileno() for file in self._files)
        self._place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._leave = weakref.finalize(self, os.close, self._place)
        self._leave.atexit = False
        try:
            self._lock: os.stat_result | None = os.stat(LOCK, dir_fd=self._place)
        except OSError:
            self._lock = None
        self._writer = int.from_bytes(os.urandom(8), "little")
        self.urls_end, self.events_end = self._sizes()
        self.frames = self.synced = 0
        # The end of the last event in both files, and the numbers of frames and pages there, for the syncing thread.
        self._ends = self.urls_end, self.events_end, 0, 0
        self.urls_sums, self.events_sums = BlockSums(), BlockSums()
        self._last: tuple[float, int] | None = None
        self._broken: str | None = None
        # Whether the log was checked, so that its end may be written.
        self._begun = False
        # Whether an exception has told the caller that the log is broken.
        self._told = False
        # False while a frame is being written, and after an exception during the write.
        self._whole = True
        self._stop = threading.Event()
        self._dirty = False
        self._syncer: threading.Thread | None = None

    def _sizes(self) -> tuple[int, int]:
        """The present sizes of urls.txt and events.log."""
        return os.lseek(self._urls, 0, os.SEEK_END), os.lseek(self._events, 0, os.SEEK_END)

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
        for sums, data, end in (
            (urls_sums, urls, self.urls_end),
            (events_sums, events, self.events_end),
        ):
            later = data[sums.end : end].data
            sums.add(later, len(later))

    @property
    def broken(self) -> bool:
        """True if an event could not be written."""
        return self._broken is not None or not self._whole

    def go_on(self, urls_end: int, events_end: int, frames: int, pages: int, synced: int) -> list[Path]:
        """Go on after the last complete event: cut what follows it, and enter this process as the writer.

        Parameters
        ----------
        urls_end, events_end, frames, pages : int
            The ends of that event in both files, and the numbers of frames and pages there.
        synced : int
            The byte of events.log up to which all was safe when its heads were written.

        Returns
        -------
        list of Path
            The files in ``torn/`` that keep what was cut off. They were synced before anything was cut. Each name is
            the time, the name of the file that was cut, and the byte at which it was cut.

        Raises
        ------
        InUseError
            If another process writes the files. Then nothing is cut.
        StoreError
            If the tails cannot be kept, for example because the disk is full. Then nothing is cut.
        """
        kept: list[Path] = []
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        ends = ends_in(self.folder)
        self.frames, self._ends = frames, (urls_end, events_end, frames, pages)
        self.synced = max(synced, *(end.events_end for end in ends), 0)
        try:
            self._refuse_if_grown()
            self._begun = True
            for file, name, begin, end in (
                (self._events, EVENTS, events_end, self.events_end),
                (self._urls, URLS, urls_end, self.urls_end),
            ):
                if begin < end:
                    kept.append(self.folder / TORN / f"{now}.{name}.{begin}")
                    _copy(file, begin, end, kept[-1])
            if kept:
                self._refuse_if_grown()
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
        if not kept:
            # Events after the last sync may not be safe yet, so the end stays.
            known = ends[0] if ends else _NO_END
            self._enter(known.urls_end, known.events_end, known.frames, known.pages)
        return kept

    def _refuse_if_grown(self) -> None:
        """Refuse to go on if the files have changed since they were opened."""
        if self._sizes() != (self.urls_end, self.events_end):
            raise InUseError(
                f"{self.folder} is being written by another process, although its lock is free: stop that process"
            )

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
        if self._broken is not None or not self._whole:
            self._refuse_if_broken()
        if self._syncer is None and not (self._full or self._stop.is_set()):
            self._start_syncing()
        length, place, urls_size = HEAD_SIZE + len(payload), self.events_end, len(urls)
        unsynced = place - self.synced
        checked = CHECKED.pack(
            self._salt & 0xFFFFFFFF,
            length,
            place,
            unsynced if unsynced < MOST_UNSYNCED else MOST_UNSYNCED,
            self.frames & 0xFFFFFFFF,
            self.urls_end,
            when,
            lease,
            first,
            new,
            urls_size,
            page,
            listed,
            score,
            flags,
            status,
            kind,
            zlib.crc32(payload),
            zlib.crc32(urls),
        )
        frame = checked + zlib.crc32(checked, self._salt >> 32).to_bytes(4, "little") + payload
        self._whole = False
        try:
            if os.lseek(self._events, 0, os.SEEK_END) != place:
                self._refuse_others(self._events, place)
            if new:
                _write(self._urls, urls, urls_size)
            _write(self._events, frame, length)
            # Another writer's bytes may be before the new ones, or it may have cut these off.
            if os.lseek(self._events, 0, os.SEEK_END) != place + length:
                self._refuse_others(self._events, place + length)
            if new and os.lseek(self._urls, 0, os.SEEK_END) != self.urls_end + urls_size:
                self._refuse_others(self._urls, self.urls_end + urls_size)
            if self._full:
                self._sync(self.urls_end + urls_size, place + length, self.frames + 1, first + new)
        except OSError as error:
            self._fail(error, urls, frame)
        self.urls_end += urls_size
        self.events_end += length
        self.frames += 1
        self._ends = self.urls_end, self.events_end, self.frames, first + new
        if new:
            self.urls_sums.add(urls, urls_size)
        self.events_sums.add(frame, length)
        self._last = when, first + new
        self._whole = self._dirty = True
        return place, frame

    def _refuse_if_broken(self) -> None:
        if self._broken is not None:
            self._told = True
            raise StoreError(self._broken)
        if not self._whole:
            raise StoreError(f"{self.folder}: an event was not written completely: open the crawl again")

    def _refuse_others(self, file: int, end: int) -> NoReturn:
        """Stop because a file of the log does not end at byte ``end``. The last event is not acknowledged."""
        found, name = os.lseek(file, 0, os.SEEK_END), EVENTS if file == self._events else URLS
        self._stop_writing(f"another process writes {name}, which ends at byte {found:,} and not at {end:,}")

    def _stop_writing(self, why: str) -> NoReturn:
        self._broken = (
            f"{self.folder}: {why}: this process stops writing and takes nothing away; let only one process crawl "
            "there, and open the crawl again"
        )
        self._told = True
        raise StoreError(self._broken)

    def _start_syncing(self) -> None:
        """Start the thread that syncs the files within a second; without it, each event is synced at once."""
        self._syncer = threading.Thread(target=self._keep_synced, daemon=True, name="inlink-sync")
        try:
            self._syncer.start()
        except RuntimeError:
            # The system has no memory left for a thread, or no number.
            self._syncer, self._full = None, True

    def _fail(self, error: OSError, urls: bytes | memoryview, frame: bytes) -> NoReturn:
        """Remove the bytes of an incomplete event, and stop."""
        remedy = (
            "free some space and open the crawl again"
            if error.errno == errno.ENOSPC
            else "open the crawl again"
        )
        self._broken = (
            f"{self.folder}: cannot be written ({error.strerror}): all earlier events are kept; {remedy}"
        )
        with contextlib.suppress(OSError):
            for file, end, data in (
                (self._events, self.events_end, frame),
                (self._urls, self.urls_end, urls),
            ):
                size = os.lseek(file, 0, os.SEEK_END) - end
                # Bytes of another writer stay.
                if 0 < size <= len(data) and os.pread(file, size, end) == data[:size]:
                    os.ftruncate(file, end)
        self._told = True
        raise StoreError(self._broken) from None

    def sync(self) -> None:
        """Wait until both files are safe from a power cut.

        Raises
        ------
        OSError
            If they cannot be synced.
        StoreError
            If another process writes the crawl, or a file of it was removed or replaced.
        """
        self._sync(*self._ends)

    def _sync(self, urls_end: int, events_end: int, frames: int, pages: int) -> None:
        os.fsync(self._urls)
        os.fsync(self._events)
        held = [(EVENTS, os.fstat(self._events)), (URLS, os.fstat(self._urls))]
        for name, mine in held if self._lock is None else [*held, (LOCK, self._lock)]:
            try:
                same = os.path.samestat(os.stat(name, dir_fd=self._place), mine)
            except FileNotFoundError:
                same = False
            if not same:
                self._stop_writing(f"{name} was removed or replaced while the crawl was open")
        self._enter(urls_end, events_end, frames, pages)
        # Another thread may have synced more.
        self.synced = max(self.synced, events_end)

    def _enter(self, urls_end: int, events_end: int, frames: int, pages: int) -> None:
        """Write the synced end to end.bin, without a sync: after a power cut, the end before it holds."""
        newest = next(iter(_sound_ends(os.pread(self._end, 2 * _END.size, 0))), _NO_END)
        if newest.writer != self._writer and newest.events_end > self.synced:
            self._stop_writing("another process writes the crawl")
        inode, turn = os.fstat(self._place).st_ino, newest.turn + 1
        end = EndRecord(turn, self._writer, urls_end, events_end, frames, pages, inode, 0)
        # On a full disk the file keeps an earlier end, which is true as well.
        with contextlib.suppress(OSError):
            os.pwrite(self._end, _sealed(end), turn % 2 * _END.size)

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
                except StoreError:
                    self._told = False
                    return

    def close(self) -> None:
        """Sync the files, record this in the log if an event was appended, and close the files.

        A second call completes the first, if that was interrupted.

        Raises
        ------
        StoreError
            If the last events may be lost, and no call has said so.
        """
        try:
            self._end_syncing()
            if self._files and not self.broken and (self._begun or self._last is not None):
                with contextlib.suppress(OSError):
                    self.sync()
                    if self._last is not None:
                        self.append(SYNCED, self._last[0], first=self._last[1])
                        self.sync()
        finally:
            try:
                # After an interruption, the thread may still use the files.
                self._end_syncing()
            finally:
                self.abandon()
        if self._broken is not None and not self._told:
            self._told = True
            raise StoreError(self._broken)

    def _end_syncing(self) -> None:
        self._stop.set()
        # An interruption may have come before the thread was started.
        if self._syncer is not None and self._syncer.ident is not None:
            self._syncer.join()

    def abandon(self) -> None:
        """Close the files without a sync. The child process of a fork must call this."""
        try:
            _close(self._files)
        finally:
            # An interruption may have left a file open, and with it the lock.
            self._release()
            self._leave()


def ends_in(folder: Path) -> list[EndRecord]:
    """Return the sound slots of a crawl's end.bin, the newest first."""
    try:
        return _sound_ends((folder / END).read_bytes())
    except OSError:
        return []


def _sound_ends(raw: bytes) -> list[EndRecord]:
    slots = [raw[at : at + _END.size] for at in (0, _END.size)]
    ends = [EndRecord._make(_END.unpack(slot)) for slot in slots if len(slot) == _END.size]
    return sorted((end for end in ends if end.check == zlib.crc32(_END.pack(*end)[:-4])), reverse=True)


def _sealed(end: EndRecord) -> bytes:
    raw = _END.pack(*end)[:-4]
    return raw + zlib.crc32(raw).to_bytes(4, "little")


def write_end(folder: Path, urls_end: int, events_end: int, frames: int, pages: int) -> None:
    """Write the end.bin of a log that was just made and is synced with it."""
    end = EndRecord(1, 0, urls_end, events_end, frames, pages, folder.stat().st_ino, 0)
    (folder / END).write_bytes(bytes(_END.size) + _sealed(end))


def _opened(path: Path, mode: str = "a+") -> io.FileIO:
    """Open a file, which is made if it does not exist. It is closed when nobody refers to it any more."""
    try:
        if mode != "a+":
            # A file for appending is written at its end, whatever place is given.
            io.FileIO(path, "a").close()
        return io.FileIO(path, mode)
    except OSError as error:
        raise FolderError(
            f"{path} cannot be opened ({error.strerror}): make it a file that you may write, and open the crawl again"
        ) from None


def _close(files: list[io.FileIO]) -> None:
    while files:
        # A file leaves the list once it is closed, so that an interruption leaves none open.
        files[-1].close()
        files.pop()


def _copy(file: int, begin: int, end: int, path: Path) -> None:
    """Copy bytes of an open file to a new file, and sync the new file."""
    with atomic_file(path) as work, work.open("wb") as out:
        while begin < end and (block := os.pread(file, min(_BLOCK, end - begin), begin)):
            out.write(block)
            begin += len(block)


def _held_log(folder: Path) -> io.FileIO:
    """Open events.log and lock it. If files of the log are hard links, the folder gets files of its own first.

    A backup by hard links (``cp -al``, rsnapshot) has the same files as the original, which may be open. The lock is
    then the original's.
    """
    file = _opened(folder / EVENTS)
    free = _hold(file.fileno(), folder / EVENTS)
    linked = [name for name in (END, EVENTS, URLS) if _links(folder / name) > 1]
    if not linked and free:
        return file
    file.close()
    if not linked or not (free or _is_copy(folder)):
        raise InUseError(
            f"{folder} is being crawled by another process, although its lock was removed: stop it"
        )
    # A copy of events.log has no URLs that a later copy of urls.txt lacks, and the end is older than both.
    for name in linked:
        try:
            with (folder / name).open("rb") as shared:
                _copy(shared.fileno(), 0, os.fstat(shared.fileno()).st_size, folder / name)
        except OSError as error:
            raise FolderError(
                f"{folder / name} is a hard link and cannot be replaced by a copy ({error.strerror}): copy the folder"
            ) from None
    return _held_log(folder)


def _links(path: Path) -> int:
    """The number of hard links to a file; 0 if there is no such file."""
    return path.stat().st_nlink if path.is_file() else 0


def _is_copy(folder: Path) -> bool:
    """Return whether the last writer of a folder's end.bin wrote it in another folder."""
    ends = ends_in(folder)
    return bool(ends) and ends[0].folder != folder.stat().st_ino


def _write(file: int, data: bytes | memoryview, size: int) -> None:
    """Write ``size`` bytes, which are all of the data."""
    written = os.write(file, data)
    # When a disk becomes full, the first write may write only a part of the data.
    while written < size:
        written += os.write(file, data[written:])


def lock(folder: Path) -> io.FileIO:
    """Hold the crawl's folder as its only writer, until the returned file is closed.

    Raises
    ------
    InUseError
        If another process, or another Crawl in this process, holds the lock. The message names the process id.
    FolderError
        If the lock cannot be opened.
    """
    if _links(folder / LOCK) > 1 and _is_copy(folder):
        # The lock of the original, of which this folder is a copy by hard links.
        (folder / LOCK).unlink()
    opened = _opened(folder / LOCK)
    file = opened.fileno()
    with contextlib.ExitStack() as refused:
        refused.callback(opened.close)
        if not _hold(file, folder / LOCK):
            holder = os.pread(file, 32, 0).decode("ascii", "replace").strip() or "another process"
            raise InUseError(
                f"{folder} is being crawled by process {holder}: stop that process, or wait until it ends"
            )
        refused.pop_all()
    # On a full disk the process id cannot be written, but the lock is still held.
    with contextlib.suppress(OSError):
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
    return opened


def _hold(file: int, path: Path) -> bool:
    """Lock a file; return False if another process holds it.

    A few attempts are made, because a process that only tests the lock holds it for microseconds.
    """
    # Commands on graphs load this module too, also on Windows.
    import fcntl

    for wait in (0.01, 0.05, 0.2, 0):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(wait)
        except OSError as error:
            raise FolderError(
                f"{path} cannot be locked ({error.strerror}): a second writer could not be kept out; put the crawl on "
                "a file system with locks (flock)"
            ) from None
    return False

"""Find the sound part of a log, and distinguish torn tails from damage.

A process that dies, or a power cut, may leave a *torn tail*: unfinished frames at or after the last byte that is
recorded as synced, in end.bin or in the heads of frames. They do not count as events. A frame before that byte that is
not sound or not there is *damage*, because it was safe on disk once.
"""

from contextlib import suppress
from pathlib import Path

import numpy as np

from inlink.base.arrays import UInt8Array
from inlink.base.folder import Folder
from inlink.errors import FolderError
from inlink.store.format import Head, struct_of, synced_of
from inlink.store.kernels import checks as kernels
from inlink.store.kernels.columns import Reached
from inlink.store.log import END, EVENTS, INDEX, INDEX_VERSION, RANKS, URLS, ends_in

FAULTS = (
    "",
    "the file ends within an event",
    "the checksum of an event's head differs",
    "the checksum of an event's payload differs",
    "the checksum of an event's URLs differs",
    "an event does not follow the one before it",
    "an event has impossible values, although its checksums are right",
)
"""Descriptions of the faults of a frame, by the numbers of :mod:`inlink.store.kernels.checks`."""

_HEAD = struct_of(Head)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_TAIL = 1 << 20
"""The largest number of bytes of a torn tail in a log without any sound event."""


def last_whole(
    urls: UInt8Array,
    events: UInt8Array,
    salt: int,
    urls_begin: int = 0,
    events_begin: int = 0,
    pages: int = 0,
    frames: int = 0,
    text_from: int = 0,
) -> Reached:
    """Find the end of the last sound frame.

    Parameters
    ----------
    urls, events : uint8[…]
        The two files.
    salt : int
        The log's salt.
    urls_begin, events_begin, pages, frames : int
        The place to begin at: bytes of both files, and the numbers of pages known and of frames before it.
    text_from : int
        URLs before this byte of urls.txt are not checked.
    """
    reached = Reached(place=events_begin, text_place=urls_begin, pages=pages, frames=frames, salt=salt)
    kernels.whole_frames(events, urls, np.uint64(text_from), reached.array())
    return reached


def last_synced(events: UInt8Array, reached: Reached) -> int:
    """Return the byte of events.log up to which all was safe on disk, by all sound heads, also those after damage."""
    synced, salt = reached.synced, np.uint64(reached.salt)
    place = int(kernels.next_head(events, np.uint64(reached.place), salt))
    while place < len(events):
        head = Head._make(_HEAD.unpack_from(events.data, place))
        synced = max(synced, synced_of(head))
        step = head.length if place + head.length <= len(events) else 1
        place = int(kernels.next_head(events, np.uint64(place + step), salt))
    return synced


def _end_of(folder: Path, size: int) -> tuple[int, bool]:
    """Return how many bytes of events.log were synced by end.bin, and whether the file is shorter than that.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    size : int
        The number of bytes of events.log that were read. The crawl's writer may have synced more since.
    """
    ends = [end.events_end for end in ends_in(folder)]
    if max(ends, default=0) > size and (folder / EVENTS).stat().st_size < max(ends):
        return max(ends), True
    return max((end for end in ends if end <= size), default=0), False


def no_end(folder: Path) -> str:
    """Return one line about a log whose end is not known."""
    return (
        f"{folder / END} is missing or damaged: events that are missing at the end of {EVENTS} cannot be noticed; the "
        "file is made again when the crawl is opened"
    )


def refuse_damage(folder: Path, events: UInt8Array, reached: Reached, synced: int = 0) -> None:
    """Refuse a log that is damaged before the last byte that is recorded as synced, or that has impossible values.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    events : uint8[…]
        All of events.log.
    reached : Reached
        The end of its last sound frame.
    synced : int
        A byte up to which the log was safe on disk, known from other files than the log.

    Raises
    ------
    inlink.errors.FolderError
        If the log is damaged. The message has the file and the byte. The folder is not changed.
    """
    end, short = _end_of(folder, len(events))
    if short and (reached.place == len(events) or reached.fault == kernels.CUT):
        raise FolderError(
            f"{folder / EVENTS} ends at byte {len(events):,}; it was synced to byte {end:,}, as {END} says; nothing "
            f"was changed. If this is a copy of a running crawl, run `inlink repair {folder}` to keep what it has, and "
            "make the next copy with `inlink backup`. Otherwise take the folder from a backup, or repair it"
        )
    synced = max(synced, end, reached.place == 0 and _was_longer(folder))
    if reached.place == len(events) >= synced:
        return
    # A power cut cannot leave impossible values with correct checksums.
    wild = reached.fault == kernels.WILD
    if not wild and reached.place >= max(synced, last_synced(events, reached)):
        return
    file, byte = "events.log", reached.place
    if reached.fault == kernels.BAD_URLS:
        file, byte = "urls.txt", reached.text_place
    fault, safe = FAULTS[reached.fault or kernels.CUT], "" if wild else ", which was safe on disk"
    kept = len(events) - reached.place
    raise FolderError(
        f"{folder / file} is damaged at byte {byte:,} ({fault}){safe}; nothing was changed: {kept:,} bytes of "
        f"events are kept. Run `inlink repair {folder}`, or take the folder from a backup"
    )


def safe_from_the_start(folder: Path, events: UInt8Array, salt: int) -> int:
    """Return the byte of events.log up to which all was safe on disk, by all files of a crawl's folder.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    events : uint8[…]
        All of events.log.
    salt : int
        The log's salt.
    """
    end, short = _end_of(folder, len(events))
    if short:
        return end
    safe = max(last_synced(events, Reached(salt=salt)), _index_end(folder, len(events)), end)
    if (
        not safe
        and _was_longer(folder)
        and kernels.fault_at(events, events[:0], np.uint64(0), _ALL, np.uint64(salt)) != kernels.SOUND
    ):
        safe = 1
    return safe


def _index_end(folder: Path, size: int) -> int:
    """Return the end of the indexed part of events.log, in bytes; 0 if this log has no index."""
    with suppress(FolderError):
        end = Folder(folder / INDEX, INDEX, INDEX_VERSION).header.meta.get("events_end")
        if isinstance(end, int) and 0 < end <= size:
            return end
    return 0


def _was_longer(folder: Path) -> bool:
    """Return whether a log whose first event is not sound is more than a torn tail.

    If all its heads are damaged, they cannot show this. But the crawl's index and ranking cover a part of the log. And
    a crawl cannot write more than :data:`_TAIL` bytes before its first sync, a second after it began.
    """
    for name, field in ((INDEX, "events_end"), (RANKS, "covers")):
        with suppress(FolderError):
            covered = Folder(folder / name, name, INDEX_VERSION).header.meta.get(field)
            if isinstance(covered, int) and covered > 0:
                return True
    return any((folder / name).stat().st_size > _TAIL for name in (EVENTS, URLS))

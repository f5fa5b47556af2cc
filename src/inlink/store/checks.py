"""Find the sound part of a log, and distinguish torn tails from damage.

A process that dies, or a power cut, may leave a *torn tail*: unfinished frames at or after the last byte that is
recorded as synced. They do not count as events. A frame before that byte that is not sound is *damage*, because it was
safe on disk once.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from inlink.base.arrays import UInt8Array
from inlink.base.folder import Folder
from inlink.errors import FolderError
from inlink.store.format import Head, struct_of
from inlink.store.kernels import checks as kernels
from inlink.store.kernels.columns import Reached
from inlink.store.log import EVENTS, INDEX, INDEX_VERSION, RANKS, URLS

__all__ = ["FAULTS", "Stretch", "frames", "last_synced", "last_whole", "refuse_damage", "safe_from_the_start"]


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


class Stretch(NamedTuple):
    """A part of events.log: a sound frame with its head, or damage, described by ``fault``.

    A damaged frame has its head too if the head itself is sound. Then its page numbers are known.
    """

    begin: int
    end: int
    head: Head | None
    fault: str


def last_whole(
    urls: UInt8Array,
    events: UInt8Array,
    urls_begin: int = 0,
    events_begin: int = 0,
    pages: int = 0,
    text_from: int = 0,
) -> Reached:
    """Find the end of the last sound frame.

    Parameters
    ----------
    urls, events : uint8[…]
        The two files.
    urls_begin, events_begin, pages : int
        The place to begin at: bytes of both files, and the number of pages known there.
    text_from : int
        URLs before this byte of urls.txt are not checked.
    """
    reached = Reached(place=events_begin, text_place=urls_begin, pages=pages)
    kernels.whole_frames(events, urls, np.uint64(text_from), reached.array())
    return reached


def last_synced(events: UInt8Array, reached: Reached) -> int:
    """Return the byte of events.log up to which all was safe on disk, by all sound heads, also those after damage."""
    synced, place = reached.synced, int(kernels.next_head(events, np.uint64(reached.place)))
    while place < len(events):
        head = Head._make(_HEAD.unpack_from(events.data, place))
        synced = max(synced, head.synced)
        step = head.length if place + head.length <= len(events) else 1
        place = int(kernels.next_head(events, np.uint64(place + step)))
    return synced


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
    if reached.place == 0 and _was_longer(folder):
        synced = max(synced, 1)
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
        f"{folder / file} is damaged at byte {byte:,} ({fault}){safe}; nothing was changed: {kept:,} bytes of events "
        f"are kept. Run `inlink repair {folder}`, or take the folder from a backup"
    )


def safe_from_the_start(folder: Path, events: UInt8Array) -> int:
    """Return the byte of events.log up to which all was safe on disk, by all files of a crawl's folder.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    events : uint8[…]
        All of events.log.
    """
    safe = max(last_synced(events, Reached()), _index_end(folder, len(events)))
    if (
        not safe
        and _was_longer(folder)
        and kernels.fault_at(events, events[:0], np.uint64(0), _ALL) != kernels.SOUND
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


def frames(urls: UInt8Array, events: UInt8Array, begin: int = 0) -> Iterator[Stretch]:
    """Yield the parts of a log that may be damaged. After damage, reading goes on at the next sound head.

    Parameters
    ----------
    urls, events : uint8[…]
        The two files.
    begin : int
        The byte of events.log to begin at.

    Yields
    ------
    Stretch
        The parts in order and without gaps: every byte from ``begin`` on belongs to a part.
    """
    place, size = begin, len(events)
    while place < size:
        fault = int(kernels.fault_at(events, urls, np.uint64(place), np.uint64(0)))
        if fault in (kernels.SOUND, kernels.BAD_PAYLOAD, kernels.BAD_URLS):
            head = Head._make(_HEAD.unpack_from(events.data, place))
            end = place + head.length
        elif fault == kernels.WILD:
            head, end = None, place + Head._make(_HEAD.unpack_from(events.data, place)).length
        else:
            head, end = None, int(kernels.next_head(events, np.uint64(place + 1)))
        yield Stretch(place, end, head, FAULTS[fault])
        place = end

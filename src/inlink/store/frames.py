"""Read frames of events.log: a frame at its place, all frames of some kinds, and the lists in them."""

import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import AnyArray, UInt8Array, UInt32Array, UInt64Array
from inlink.errors import FolderError
from inlink.protocol import PageFacts
from inlink.store.anchors import anchors_in
from inlink.store.checkpoint import Checkpoint, StatePart
from inlink.store.facts import StoredFacts, decode_facts
from inlink.store.format import (
    CARRY,
    EXCLUDE,
    FACTS,
    FAILED,
    HAS_ANCHORS,
    HAS_ITEMS,
    HAS_SCORES,
    HEAD_SIZE,
    ITEMS,
    KINDS,
    LEASE,
    NO_PAGE,
    RENEWED,
    REPAIRED,
    REPORTED,
    SYNCED,
    VISIT,
    ExcludedRecord,
    Head,
    VisitRecord,
    dtype_of,
    size_of,
    struct_of,
)
from inlink.store.kernels import checks, fold
from inlink.store.kernels import frames as kernels
from inlink.store.log import EVENTS
from inlink.store.mapped import Mapped
from inlink.store.page import Frame, LatestVisit

_HEAD = struct_of(Head)
_VISIT = struct_of(VisitRecord)
_FREQUENT = (VISIT, FAILED, LEASE, RENEWED, REPORTED, CARRY, SYNCED, FACTS, ITEMS)
_RARE = tuple(kind for kind in range(1, len(KINDS)) if kind not in _FREQUENT)
"""Kinds of events whose places a checkpoint keeps, so that the log is not searched for them."""
_RECENT = 3600.0
"""Age of leases, in seconds. A checkpoint keeps the place of the first lease that is younger."""

_EVERY = np.uint64((1 << 64) - 1)
_PART = 1 << 24
"""Number of bytes of the log that are searched for items at a time."""

_CHANGING = np.uint64((1 << len(KINDS)) - 1 - (1 << SYNCED))


class Frames:
    """The frames of a crawl's log.

    Parameters
    ----------
    folder : Path
        The crawl's folder.

    Attributes
    ----------
    end : int
        The byte of events.log up to which frames are read.
    """

    def __init__(self, folder: Path) -> None:
        self._mapped = Mapped(folder / EVENTS)
        self.end = 0
        # Places of the events by which an operator excluded pages, and the byte up to which they were searched for.
        self._exclusions: list[int] = []
        self._sought = 0
        # A checkpoint has the places and kinds of rare events up to `_known_to`, the place of the oldest open lease,
        # the number of the next lease, and the time of the last event.
        self._rare: tuple[UInt64Array, UInt8Array] = np.empty(0, np.uint64), np.empty(0, np.uint8)
        self._known_to = self._leases_from = 0
        self._leases: tuple[int, float] = 1, 0.0
        # A checkpoint has a time, and the place of the first lease since then.
        self._recent: tuple[float, int] = math.inf, 0

    # -- the checkpoint ---------------------------------------------------------------------------------------------

    def parts(self) -> Iterator[StatePart]:
        """The places and kinds of all events of rare kinds, by name."""
        places = np.array(self.of_kind(*_RARE), np.uint64)
        yield "event_places", [places]
        yield "event_kinds", [fields_at(self.at(places), places, Head, "kind").astype(np.uint8)]

    def small_parts(self) -> dict[str, Any]:
        """The numbers that are kept of leases."""
        found = self.open_leases()
        since = int(found.places.min()) if len(found.places) else self.end
        last_time = float(found.last_time)
        recent = self.leases_since(last_time - _RECENT)
        return {
            "leases": [since, int(found.following), last_time],
            "recent": [last_time - _RECENT, int(recent[0]) if len(recent) else self.end],
        }

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take in a checkpoint's data on events, and let the log before its extent be compared at its first use.

        Raises
        ------
        inlink.errors.FolderError
            If the checkpoint is damaged, or belongs to another log.
        """
        checkpoint.guard(self._mapped)
        self._rare = checkpoint.array("event_places"), checkpoint.array("event_kinds")
        self._leases_from, *leases = checkpoint.meta["leases"]
        self._leases = leases[0], leases[1]
        self._recent = checkpoint.meta["recent"][0], checkpoint.meta["recent"][1]
        self.end = self._known_to = checkpoint.extent.events_end

    # -- reading ----------------------------------------------------------------------------------------------------

    def all(self) -> UInt8Array:
        """Return all of events.log as it is now, mapped: uint8[bytes]."""
        # A writer may have cut the file.
        size = os.fstat(self._mapped.file).st_size
        return self._mapped.map(size)[:size]

    @property
    def log(self) -> UInt8Array:
        """The part of the log that is read, mapped: uint8[end or more]. After a checkpoint, all of it is compared."""
        return self.between(0, self.end)

    def between(self, begin: int, end: int) -> UInt8Array:
        """Return the mapped log as :attr:`log` does, but only bytes ``begin`` … ``end`` - 1 may be read."""
        return self._mapped.between(begin, end)

    def at(self, places: AnyArray) -> UInt8Array:
        """Return the mapped log as :attr:`log` does, but only the events at ``places`` may be read: uint64[n]."""
        if self._mapped.guard is None:
            return self._mapped.map(self.end)
        begins = places.astype(np.int64)
        heads = self._mapped.at(begins, begins + HEAD_SIZE, self.end)
        lengths = fields_at(heads, places.astype(np.uint64), Head, "length").astype(np.int64)
        return self._mapped.at(begins, begins + lengths, self.end)

    def frame(self, place: int) -> Frame:
        """Return the frame at ``place``, with a checked payload.

        Raises
        ------
        inlink.errors.FolderError
            If the frame is damaged.
        """
        head = self._head(place)
        payload = self._mapped.read(place + HEAD_SIZE, head.length - HEAD_SIZE)
        if zlib.crc32(payload) != head.payload_check:
            raise self._damaged(place)
        return Frame(
            head.kind,
            head.time,
            head.page,
            head.flags,
            head.status,
            head.score,
            head.lease,
            head.listed,
            payload,
        )

    def _head(self, place: int) -> Head:
        raw = self._mapped.read(place, HEAD_SIZE)
        if len(raw) < HEAD_SIZE:
            raise self._damaged(place)
        head = Head._make(_HEAD.unpack(raw))
        if head.place != place or head.length < HEAD_SIZE:
            raise self._damaged(place)
        return head

    def _damaged(self, place: int) -> FolderError:
        return FolderError(
            f"{self._mapped.path} is damaged at byte {place:,}: take the crawl's folder from a backup"
        )

    def visit(self, place: int) -> LatestVisit:
        """Return the visit at ``place``."""
        frame = self.frame(place)
        visit = VisitRecord._make(_VISIT.unpack_from(frame.payload))
        begin = size_of(VisitRecord)
        return LatestVisit(
            frame.time,
            frame.status,
            visit.first_crawl,
            visit.crawls,
            visit.changes,
            place,
            frame.payload[begin : begin + visit.hash_size],
            frame.flags,
            visit.fingerprint,
        )

    def anchors(self, place: int) -> dict[int, str]:
        """Return the texts of the links in the visit at ``place`` by linked page. Some may be empty, or be missing.

        Raises
        ------
        inlink.errors.FolderError
            If the frame is damaged.
        """
        frame = self.frame(place)
        if not frame.flags & HAS_ANCHORS:
            return {}
        links = self.list_at(place)
        end = self._list_end(place, frame.flags, len(links))
        return dict(zip(links.tolist(), anchors_in(frame.payload, end, len(links)), strict=True))

    def page_facts(self, visit: LatestVisit | None) -> PageFacts | None:
        """Return the facts of a page, by its latest visit; None if there are none."""
        stored = None if visit is None else self.facts(visit.place)
        return None if stored is None else stored.facts

    def facts(self, place: int) -> StoredFacts | None:
        """Return the facts of the visit at ``place``; None if it has none, or a later version wrote them."""
        payload = self.raw_facts(place)
        return decode_facts(payload) if payload else None

    def raw_facts(self, place: int) -> bytes:
        """Return the encoded facts of the visit at ``place``; empty if it has none."""
        visit = self._head(place)
        following = place + visit.length
        if following >= self.end:
            return b""
        frame = self.frame(following)
        return frame.payload if (frame.kind, frame.page) == (FACTS, visit.page) else b""

    def content(self, visit: LatestVisit) -> tuple[float, UInt32Array, int, bytes]:
        """Return the score of a visit, its links, the size of their texts, and its payload from the list to the texts.

        Raises
        ------
        inlink.errors.FolderError
            If the frame is damaged.
        """
        frame, links = self.frame(visit.place), self.list_at(visit.place)
        record = VisitRecord._make(_VISIT.unpack_from(frame.payload))
        end = self._list_end(visit.place, frame.flags, len(links)) + record.anchor_size
        begin = size_of(VisitRecord) + record.hash_size
        return frame.score, links, record.anchor_size, frame.payload[begin:end]

    def _list_end(self, place: int, flags: int, count: int) -> int:
        """The end of the links and scores in the payload of the visit at ``place``."""
        log = self.at(np.array([place]))
        end = int(kernels.list_end(log, np.uint64(place))) - place - HEAD_SIZE
        return end + (4 * count if flags & HAS_SCORES else 0)

    def items(self) -> Iterator[tuple[UInt64Array, UInt32Array, UInt64Array, int]]:
        """Yield the visits that have items, in parts of the log.

        Yields
        ------
        visits, pages, places : uint64[k], uint32[k], uint64[k]
            The places of visits, their pages, and the places of the events with their items.
        done : int
            Number of bytes of the log that have been searched so far.

        Raises
        ------
        inlink.errors.FolderError
            If the items of a visit are missing. Those that a repair of the log has removed are left out.
        """
        begin, last = 0, np.empty(0, np.uint64)
        while begin < self.end:
            stop = min(begin + _PART, self.end)
            log = self.between(begin, min(stop + HEAD_SIZE, self.end))
            places = np.append(last, kernels.find_kinds(log, np.uint64(begin), np.uint64(stop), _EVERY))
            kinds, flags, pages = (fields_at(log, places, Head, name) for name in ("kind", "flags", "page"))
            visits = np.flatnonzero((kinds == VISIT) & (flags & HAS_ITEMS > 0))
            # The first event of all has none before it, and the last event of a part belongs to the next part too.
            visits = visits[visits >= max(len(last), 1)]
            before = visits - 1
            missing = (kinds[before] != ITEMS) | (pages[before] != pages[visits])
            wrong = visits[missing & (kinds[before] != REPAIRED)]
            if len(wrong):
                raise self._damaged(int(places[wrong[0]]))
            visits = visits[~missing]
            last = places[-1:]
            begin = int(last[0]) + self._head(int(last[0])).length
            yield places[visits], pages[visits], places[visits - 1], begin
            self.unload()

    def of_kind(self, *kinds: int, begin: int = 0, end: int | None = None) -> list[int]:
        """Return the places of all frames of some kinds that begin at bytes ``begin`` to ``end`` − 1 of the log."""
        stop = self.end if end is None else min(end, self.end)
        found: list[int] = []
        if begin < self._known_to and set(kinds).issubset(_RARE):
            places, there = self._rare
            found = places[np.isin(there, kinds) & (places >= begin) & (places < stop)].tolist()
            begin = self._known_to
        if begin >= stop:
            return found
        wanted = np.uint64(sum(1 << kind for kind in kinds))
        log = self.between(begin, min(stop + HEAD_SIZE, self.end))
        found += kernels.find_kinds(log, np.uint64(begin), np.uint64(stop), wanted).tolist()
        return found

    def exclusion_of(self, page: int, after: int) -> str | None:
        """Return an operator's reason for excluding a page, from an event at byte ``after`` or later.

        None if there is no such event.
        """
        for place in self.of_kind(EXCLUDE, begin=self._sought):
            if self.frame(place).page != NO_PAGE:
                self._exclusions.append(place)
        self._sought = self.end
        for place in reversed(self._exclusions):
            if place < after:
                break
            payload = self.frame(place).payload
            begin = size_of(ExcludedRecord)
            end = begin + ExcludedRecord._make(struct_of(ExcludedRecord).unpack_from(payload)).reason_size
            if page in np.frombuffer(payload, np.uint32, offset=end):
                return payload[begin:end].decode("utf-8", "replace")
        return None

    def list_at(self, place: int) -> UInt32Array:
        """Return the links of the frame at ``place``, uint32[k], increasing.

        Raises
        ------
        inlink.errors.FolderError
            If the frame is damaged.
        """
        log = self.at(np.array([place]))
        if not checks.payload_sound(log, np.uint64(place)):
            raise self._damaged(place)
        out = np.empty(int(kernels.link_count(log, np.uint64(place))), np.uint32)
        kernels.links_at(log, np.uint64(place), out)
        return out

    def open_leases(self) -> fold.OpenLeases:
        """Return the leases that no event has ended."""
        begin, (following, last_time) = self._leases_from, self._leases
        log = self.between(begin, self.end)[begin:]
        found: fold.OpenLeases = fold.open_leases(log, np.uint64(self.end - begin))
        return found._replace(
            places=found.places + np.uint64(begin),
            following=np.uint64(max(int(found.following), following)),
            last_time=found.last_time if self.end > begin else np.float64(last_time),
        )

    def leases_since(self, time: float) -> UInt64Array:
        """Return the places of the events of leases that were given at Unix time ``time`` or later."""
        known_since, byte = self._recent
        places = np.array(self.of_kind(LEASE, begin=byte if time >= known_since else 0), np.uint64)
        return places[fields_at(self.at(places), places, Head, "time") >= time]

    def unload(self) -> None:
        """Release the memory of the mapped log after a pass over it."""
        self._mapped.unload()

    def close(self) -> None:
        """Close the file."""
        self._mapped.close()


def changes_in(frames: UInt8Array) -> bool:
    """Return whether a sequence of frames has other events than syncs."""
    end = np.uint64(len(frames))
    return len(kernels.find_kinds(frames, np.uint64(0), end, _CHANGING)) > 0


def fields_at(log: UInt8Array, places: UInt64Array, record: Any, name: str) -> npt.NDArray[Any]:
    """Return a field of the records at ``places``, an array of n numbers.

    Parameters
    ----------
    log : uint8[bytes]
        The bytes of events.log.
    places : uint64[n]
        The places of records, in bytes.
    record : class
        A record of :mod:`inlink.store.format`.
    name : str
        The name of the field.
    """
    fields = dtype_of(record).fields
    assert fields is not None
    dtype, offset = fields[name][:2]
    where = places[:, None] + np.arange(offset, offset + dtype.itemsize, dtype=np.uint64)
    values: npt.NDArray[Any] = log[where].view(dtype).ravel()
    return values

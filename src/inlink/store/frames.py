"""Read frames of events.log: a frame at its place, all frames of some kinds, and the lists in them."""

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import UInt8Array, UInt32Array, UInt64Array
from inlink.errors import FolderError
from inlink.store.anchors import anchor_in
from inlink.store.format import (
    EXCLUDE,
    HAS_ANCHORS,
    HAS_SCORES,
    HEAD_SIZE,
    NO_PAGE,
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
from inlink.store.page import Frame, Visit

__all__ = ["Frames", "fields_at"]


_HEAD = struct_of(Head)
_VISIT = struct_of(VisitRecord)


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

    def all(self) -> UInt8Array:
        """All of events.log as it is now, mapped: uint8[bytes]."""
        # A writer may have cut the file.
        size = os.fstat(self._mapped.file).st_size
        return self._mapped.map(size)[:size]

    @property
    def log(self) -> UInt8Array:
        """The part of the log that is read, mapped: uint8[end or more]."""
        return self._mapped.map(self.end)

    def frame(self, place: int) -> Frame:
        """The frame at ``place``, with a checked payload.

        Raises
        ------
        inlink.errors.FolderError
            If the frame is damaged.
        """
        raw = self._mapped.read(place, HEAD_SIZE)
        if len(raw) < HEAD_SIZE:
            raise self._damaged(place)
        head = Head._make(_HEAD.unpack(raw))
        if head.place != place or head.length < HEAD_SIZE:
            raise self._damaged(place)
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

    def _damaged(self, place: int) -> FolderError:
        return FolderError(
            f"{self._mapped.path} is damaged at byte {place:,}: take the crawl's folder from a backup"
        )

    def visit(self, place: int) -> Visit:
        """The visit at ``place``."""
        frame = self.frame(place)
        visit = VisitRecord._make(_VISIT.unpack_from(frame.payload))
        begin = size_of(VisitRecord)
        return Visit(
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

    def anchor(self, place: int, page: int) -> str:
        """The text of a link to a page in the visit at ``place``; empty if the visit has no text for it.

        Raises
        ------
        inlink.errors.FolderError
            If the frame is damaged.
        """
        frame = self.frame(place)
        if not frame.flags & HAS_ANCHORS:
            return ""
        links = self.list_at(place)
        row = int(np.searchsorted(links, page))
        if row == len(links) or links[row] != page:
            return ""
        end = int(kernels.list_end(self.log, np.uint64(place))) - place - HEAD_SIZE
        end += 4 * len(links) if frame.flags & HAS_SCORES else 0
        return anchor_in(frame.payload, end, row)

    def of_kind(self, *kinds: int, begin: int = 0) -> list[int]:
        """The places of all frames of some kinds, from byte ``begin`` of the log on."""
        wanted = np.uint64(sum(1 << kind for kind in kinds))
        found: list[int] = kernels.find_kinds(
            self.log, np.uint64(begin), np.uint64(self.end), wanted
        ).tolist()
        return found

    def exclusion_of(self, page: int, after: int) -> str | None:
        """The reason for which an operator excluded a page, by an event at byte ``after`` of the log or later.

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
        """The links of the frame at ``place``, uint32[k], increasing.

        Raises
        ------
        inlink.errors.FolderError
            If the frame is damaged.
        """
        if not checks.payload_sound(self.log, np.uint64(place)):
            raise self._damaged(place)
        out = np.empty(int(kernels.link_count(self.log, np.uint64(place))), np.uint32)
        kernels.links_at(self.log, np.uint64(place), out)
        return out

    def open_leases(self) -> fold.OpenLeases:
        """The leases that no event has ended."""
        found: fold.OpenLeases = fold.open_leases(self.log, np.uint64(self.end))
        return found

    def close(self) -> None:
        """Close the file."""
        self._mapped.close()


def fields_at(log: UInt8Array, places: UInt64Array, record: Any, name: str) -> npt.NDArray[Any]:
    """One field of the records at ``places``, an array of n numbers.

    Parameters
    ----------
    log : uint8[bytes]
    places : uint64[n]
    record : class
        A record of :mod:`inlink.store.format`.
    name : str
    """
    fields = dtype_of(record).fields
    assert fields is not None
    dtype, offset = fields[name][:2]
    where = places[:, None] + np.arange(offset, offset + dtype.itemsize, dtype=np.uint64)
    found: npt.NDArray[Any] = log[where].view(dtype).ravel()
    return found

"""The events of a log, in the form that policies read."""

from collections.abc import Iterator

import msgspec
import numpy as np

from inlink.base.arrays import Float32Array, UInt8Array, UInt32Array
from inlink.store.format import (
    EXCLUDE,
    HAS_SCORES,
    KINDS,
    LEASE,
    LOST,
    MERGE,
    NO_PAGE,
    RELEASE,
    RELOAD,
    SEED,
    SYNCED,
    VISIT,
    Head,
    LostRecord,
    ReleasedRecord,
    dtype_of,
    struct_of,
)

_HEAD = struct_of(Head)


class Event(msgspec.Struct, frozen=True):
    """One event.

    Attributes
    ----------
    kind : str
        One of :data:`inlink.store.format.KINDS`; ``"unknown"`` for a kind of a later version.
    time : float
        Unix time in seconds.
    page : int or None
        The page that the event is about.
    score : float
        For a visit, the score of the page's content.
    status : int
        HTTP status, 0 if there is none.
    flags : int
        Bits that :mod:`inlink.store.format` names.
    first, new : int
        The event made the pages ``first``, …, ``first + new - 1`` known.
    pages : uint32[n]
        The links of a visit, the target of a merge, or the pages of a seed, lease, release, loss, reload or exclusion.
    scores : float32[n] or None
        Scores of ``pages``; None if the event has no scores.
    place : int
        Place of the event in events.log, in bytes.
    lease : int
        The lease that the event ends; 0 if there is none.
    """

    kind: str
    time: float
    page: int | None
    score: float
    status: int
    flags: int
    first: int
    new: int
    pages: UInt32Array
    scores: Float32Array | None
    place: int
    lease: int


class Events(msgspec.Struct, frozen=True):
    """A sequence of events, to iterate over or to pass to a kernel.

    Parameters
    ----------
    frames : uint8[…]
        Complete frames, one after the other.
    """

    frames: UInt8Array

    def __iter__(self) -> Iterator[Event]:
        at = 0
        while at < len(self.frames):
            head = Head._make(_HEAD.unpack_from(self.frames.data, at))
            if head.kind == SYNCED:
                at += head.length
                continue
            pages, scores = self._listed(at, head)
            yield Event(
                KINDS[head.kind] if 0 < head.kind < len(KINDS) else "unknown",
                head.time,
                None if head.page == NO_PAGE else head.page,
                head.score,
                head.status,
                head.flags,
                head.first,
                head.new,
                pages,
                scores,
                head.place,
                head.lease,
            )
            at += head.length

    def _listed(self, at: int, head: Head) -> tuple[UInt32Array, Float32Array | None]:
        """Return the pages that the frame at byte ``at`` lists, and their scores."""
        from inlink.store.kernels.frames import link_scores_at, links_at, list_start

        place, scores = np.uint64(at), None
        if head.kind in (SEED, VISIT, MERGE):
            pages = np.empty(head.listed, np.uint32)
            links_at(self.frames, place, pages)
            if head.flags & HAS_SCORES:
                scores = np.empty(head.listed, np.float32)
                link_scores_at(self.frames, place, scores)
            return pages, scores
        records = self.frames[int(list_start(self.frames, place)) : at + head.length]
        if head.kind == RELEASE:
            return records.view(dtype_of(ReleasedRecord))["page"].astype(np.uint32), None
        if head.kind == LOST:
            return records.view(dtype_of(LostRecord))["page"].astype(np.uint32), None
        if head.kind in (LEASE, RELOAD, EXCLUDE):
            return records.view("<u4").astype(np.uint32), None
        return np.empty(0, np.uint32), None

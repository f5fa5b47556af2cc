"""The events of a log, as those who fold them see them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inlink.store.layout import EXCLUDE, HAS_SCORES, HEAD, KINDS, LEASE, MERGE, NO_PAGE, RELEASE, SEED, VISIT

__all__ = ["Event", "Events"]


@dataclass(frozen=True, slots=True)
class Event:
    """One event. ``pages`` are the links of a visit or a merge, or the pages of a seed, lease, release, exclusion.

    ``first`` and ``new`` say which pages it made known: ids first, …, first + new − 1. ``scores`` belong to
    ``pages`` and are None where none were given. ``place`` is its byte in the log.
    """

    kind: str
    time: float
    page: int | None
    score: float
    status: int
    flags: int
    first: int
    new: int
    pages: npt.NDArray[np.uint32]
    scores: npt.NDArray[np.float32] | None
    place: int


@dataclass(frozen=True)
class Events:
    """Some events in a row: to be iterated over, or to be given to a kernel as they stand.

    Parameters
    ----------
    frames : uint8[…]
        Whole frames.
    base : int
        The place of frames[0] in the log.
    first : int
        How many pages were known before.
    """

    frames: npt.NDArray[np.uint8]
    base: int
    first: int

    def __iter__(self) -> Iterator[Event]:
        from inlink.store.kernels.frames import link_scores_at, links_at

        raw, at, first = self.frames.data, 0, self.first
        while at < len(raw):
            length, _, time, page, new, _, kind, flags, status, score, count = HEAD.unpack_from(raw, at)
            pages, scores = np.empty(count, np.uint32), None
            if kind in (SEED, VISIT, MERGE):
                links_at(self.frames, np.uint64(at), pages)
                if flags & HAS_SCORES:
                    scores = np.empty(count, np.float32)
                    link_scores_at(self.frames, np.uint64(at), scores)
            elif kind in (LEASE, RELEASE, EXCLUDE):
                begin = at + HEAD.size + (16 if kind == LEASE else 0)
                pages = np.frombuffer(raw[begin : begin + 4 * count], "<u4").astype(np.uint32)
            yield Event(
                KINDS[kind] if kind < len(KINDS) else "unknown",
                time,
                None if page == NO_PAGE else page,
                score,
                status,
                flags,
                first,
                new,
                pages,
                scores,
                self.base + at,
            )
            first += new
            at += length

"""The pages and ranks that other shards of a crawl sent, as events of the log."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import Float64Array, UInt32Array
from inlink.store.format import BY_SHARD, RECEIVED, SEED, FlowRecord, ReceivedRecord, dtype_of, struct_of
from inlink.store.frames import Frames
from inlink.store.pages import Pages

FLOW = dtype_of(FlowRecord)
_RECEIVED = struct_of(ReceivedRecord)

_SOUGHT = 1 << 26
"""Number of bytes after the seeds of a batch in which its other event is sought."""


class Received(NamedTuple):
    """What an event has of another shard.

    Attributes
    ----------
    shard : int
    end : int
        The crawl has now all pages that the shard numbered below this and that belong to the crawl.
    pages : uint32[n]
        New ones of these pages by their numbers here, in the order of their numbers there.
    flows : record[k]
        :class:`~inlink.store.format.FlowRecord`: changes of the rank that pages get from the shard's links.
    """

    shard: int
    end: int
    pages: UInt32Array
    flows: npt.NDArray[Any]

    def encoded(self) -> bytes:
        """The payload of the event."""
        return (
            _RECEIVED.pack(self.shard, self.end, len(self.flows))
            + self.pages.tobytes()
            + self.flows.tobytes()
        )


def received(frames: Frames, begin: int = 0, end: int | None = None) -> Iterator[Received]:
    """Yield the data that other shards sent, from the events in bytes ``begin`` to ``end`` − 1 of the log.

    Raises
    ------
    inlink.errors.FolderError
        If the log is damaged.
    """
    for place in frames.of_kind(RECEIVED, begin=begin, end=end):
        frame = frames.frame(place)
        shard, of_pages, _ = _RECEIVED.unpack_from(frame.payload)
        begin_of_flows = _RECEIVED.size + 4 * frame.listed
        pages = np.frombuffer(frame.payload[:begin_of_flows], np.uint32, offset=_RECEIVED.size)
        yield Received(shard, of_pages, pages, np.frombuffer(frame.payload, FLOW, offset=begin_of_flows))


class Inflow:
    """What the links of other shards give to each page: b of :mod:`inlink.reranking.live`.

    Parameters
    ----------
    pages : Pages
    """

    def __init__(self, pages: Pages) -> None:
        self._pages, self._end = pages, 0
        self._total: Float64Array = np.zeros(0)

    def values(self) -> Float64Array:
        """Return b for each known page, float64[pages]."""
        total = np.zeros(self._pages.num_pages)
        total[: len(self._total)] = self._total
        for event in received(self._pages.frames, self._end):
            np.add.at(total, event.flows["page"], event.flows["amount"])
        self._total, self._end = total, self._pages.frames.end
        return np.maximum(total, 0.0)


class OtherShard:
    """What a crawl has of another shard.

    Attributes
    ----------
    end : int
        The end of its pages that were looked through.
    pages : uint32[n]
        The pages that it sent, by their numbers here, in the order of their numbers there.
    ranks : float64[n]
        The ranks that they get from its links.
    """

    def __init__(self) -> None:
        self.end = 0
        self.pages: UInt32Array = np.empty(0, np.uint32)
        self.ranks: Float64Array = np.zeros(0)

    def take_in(self, event: Received) -> None:
        """Take in an event. An end of 0 says that the shard begins again: it was restored from an older copy."""
        if event.end == 0:
            self.end, self.pages, self.ranks = 0, np.empty(0, np.uint32), np.zeros(0)
            return
        self.end = event.end
        self.pages = np.concatenate([self.pages, event.pages])
        self.ranks = np.concatenate([self.ranks, np.zeros(len(event.pages))])
        if not len(event.flows):
            return
        order = np.argsort(self.pages, kind="stable")
        places = order[np.searchsorted(self.pages, event.flows["page"], sorter=order)]
        np.add.at(self.ranks, places, event.flows["amount"])


def other_shards(frames: Frames) -> defaultdict[int, OtherShard]:
    """Read from the log what a crawl has of each other shard, by number."""
    events: defaultdict[int, list[Received]] = defaultdict(list)
    for event in received(frames):
        if event.end == 0:
            events[event.shard].clear()
        events[event.shard].append(event)
    others: defaultdict[int, OtherShard] = defaultdict(OtherShard)
    for shard, some in events.items():
        if some[0].end == 0:
            others[shard].take_in(some.pop(0))
        if not some:
            continue
        pages, flows = (
            np.concatenate([getattr(event, name) for event in some]) for name in ("pages", "flows")
        )
        others[shard].take_in(Received(shard, some[-1].end, pages, flows))
    return others


def sender(frames: Frames, page: int, place: int) -> int | None:
    """Return the shard that discovered a page; None if this crawl did, or the log does not say within 64 MiB.

    Parameters
    ----------
    frames : Frames
    page : int
    place : int
        Place of the event that made the page known.
    """
    seeds = frames.frame(place)
    if seeds.kind != SEED or not seeds.flags & BY_SHARD:
        return None
    # The event of the cursor follows the seeds of its batch, unless the process died between them.
    for event in received(frames, place, place + _SOUGHT):
        if page in event.pages:
            return event.shard
    return None

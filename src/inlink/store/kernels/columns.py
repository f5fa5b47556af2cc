"""The data of the store's loops: the columns of :class:`inlink.store.pages.Pages`, as one argument."""

import ctypes
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy import float32, uint8, uint16, uint32, uint64

from inlink.base.arrays import AnyArray, Float32Array, UInt8Array, UInt16Array, UInt32Array, UInt64Array
from inlink.base.jit import array_at, kernel

__all__ = ["TALLY", "Columns", "CrawlCounters", "Reached", "Table", "columns_at", "table_at"]


class Counters(ctypes.Structure):
    """Named numbers that Python and kernels share."""

    _dtype: ClassVar[np.dtype[Any]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # NumPy turns a Ctrl-C while it makes a dtype into a ValueError, so each class makes its own once.
        cls._dtype = np.dtype(cls)

    def array(self) -> AnyArray:
        """Return the numbers in the form for kernels: an array of one record, in the same memory."""
        return np.frombuffer(cast(Any, self), self._dtype)


class Reached(Counters):
    """The part of a log that was checked.

    Attributes
    ----------
    place, text_place : int
        The bytes of events.log and urls.txt up to which all is sound.
    pages, frames : int
        Numbers of pages known there, and of frames before it.
    synced : int
        The last byte up to which the log was safe from a power cut, by their heads.
    fault : int
        The fault of the next frame, a number of :mod:`inlink.store.kernels.checks`; 0 if it has none.
    salt : int
        The log's salt, see :func:`inlink.store.format.salt_of`.
    """

    place: int
    text_place: int
    pages: int
    frames: int
    synced: int
    fault: int
    salt: int
    _fields_: ClassVar = [
        (name, ctypes.c_uint64)
        for name in ("place", "text_place", "pages", "frames", "synced", "fault", "salt")
    ]


class CrawlCounters(Counters):
    """The counts of a crawl.

    Attributes
    ----------
    pages, hosts, url_bytes : int
        Pages and hosts that have a number, and the bytes of the pages' URLs in urls.txt.
    event_pages : int
        Number of pages that the folded events made known.
    events, frames : int
        Number of folded events, without marks of syncs and with them.
    rows : int
        Number of pages with at least one answer: the rows of ``answered``, ``visits`` and ``failures``.
    makers : int
        Number of events that made pages known: the rows of ``makers`` and ``maker_places``.
    crawled : int
        Number of pages that were crawled at least once.
    scored : int
        Number of events with link scores.
    by_host : int
        1 while pages are counted by host too.
    """

    pages: int
    hosts: int
    url_bytes: int
    event_pages: int
    events: int
    frames: int
    rows: int
    makers: int
    crawled: int
    scored: int
    by_host: int
    _fields_: ClassVar = [
        (name, ctypes.c_uint64)
        for name in (
            "pages",
            "hosts",
            "url_bytes",
            "event_pages",
            "events",
            "frames",
            "rows",
            "makers",
            "crawled",
            "scored",
            "by_host",
        )
    ]


TALLY: np.dtype[Any] = np.dtype(CrawlCounters)


class Table(NamedTuple):
    """The table of known URLs, and the table of hosts; see :mod:`inlink.store.kernels.table`."""

    tally: AnyArray
    slots: UInt64Array
    # Of each shard: its slots, and how many of them are taken.
    sizes: UInt64Array
    counts: UInt64Array
    checks: UInt32Array
    hosts: UInt32Array
    # The byte of urls.txt at which every 32nd URL begins.
    marks: UInt64Array
    host_slots: UInt32Array
    host_text: UInt8Array
    host_ends: UInt64Array


class Columns(NamedTuple):
    """The columns folded from events; see :class:`inlink.store.pages.Pages`."""

    tally: AnyArray
    state_counts: UInt64Array
    states: UInt8Array
    depths: UInt16Array
    errors: UInt8Array
    losses: UInt8Array
    answers: UInt32Array
    answered: UInt32Array
    visits: UInt64Array
    failures: UInt64Array
    scores: Float32Array
    makers: UInt32Array
    maker_places: UInt64Array
    carriers: UInt64Array
    hosts: UInt32Array
    # Of each host, counted while the tally says so: its pages, those that wait to be crawled, those crawled.
    host_pages: UInt32Array
    host_waiting: UInt32Array
    host_crawled: UInt32Array


@kernel
def table_at(at: UInt64Array) -> Table:
    """The table, from the addresses of its arrays."""
    return Table(
        array_at(at, 0, TALLY),
        array_at(at, 1, uint64),
        array_at(at, 2, uint64),
        array_at(at, 3, uint64),
        array_at(at, 4, uint32),
        array_at(at, 5, uint32),
        array_at(at, 6, uint64),
        array_at(at, 7, uint32),
        array_at(at, 8, uint8),
        array_at(at, 9, uint64),
    )


@kernel
def columns_at(at: UInt64Array) -> Columns:
    """The columns, from the addresses of their arrays."""
    return Columns(
        array_at(at, 0, TALLY),
        array_at(at, 1, uint64),
        array_at(at, 2, uint8),
        array_at(at, 3, uint16),
        array_at(at, 4, uint8),
        array_at(at, 5, uint8),
        array_at(at, 6, uint32),
        array_at(at, 7, uint32),
        array_at(at, 8, uint64),
        array_at(at, 9, uint64),
        array_at(at, 10, float32),
        array_at(at, 11, uint32),
        array_at(at, 12, uint64),
        array_at(at, 13, uint64),
        array_at(at, 14, uint32),
        array_at(at, 15, uint32),
        array_at(at, 16, uint32),
        array_at(at, 17, uint32),
    )

"""The format of a crawl's log, declared once: every record that a frame consists of.

A frame is a :class:`Head`, then a payload that depends on its kind. Each record is a class whose annotations are
NumPy dtypes. :func:`dtype_of` makes the packed record dtype that kernels read, :func:`struct_of` the
:class:`struct.Struct` that Python packs and unpacks. So each field is declared once, and no code contains an offset.

====================  ==================================================================================
kind                  payload, after the head
====================  ==================================================================================
``SEED``              a list of ``listed`` pages, their scores, carried data; ``status`` is the depth of new pages,
                      which is 0 unless another shard has discovered them
``VISIT``             :class:`VisitRecord`, content hash, a list of ``listed`` links, their scores, their
                      anchor texts, carried data
``FAILED``            :class:`FailedRecord`, then the error as UTF-8; exclusion of one page too
``LEASE``             :class:`LeaseRecord`, then ``listed`` pages as uint32; their leases are numbered from
                      ``first_lease`` on
``RENEWED``           :class:`RenewedRecord`, then ``listed`` lease numbers as uint64
``RELEASE``           ``listed`` times :class:`ReleasedRecord`
``LOST``              ``listed`` times :class:`LostRecord`
``SESSION``           :class:`SessionRecord`, then the owner's name as UTF-8
``REPORTED``          :class:`ReportedRecord`, then ``listed`` times :class:`OutcomeRecord`
``RELOAD``            ``listed`` pages as uint32 that wait again
``MERGE``             a list of one page, the target; carried data. ``status`` is that of the answer that led
                      there, 0 if it is not known
``EXCLUDE``           :class:`ExcludedRecord`, the reason as UTF-8, then ``listed`` pages as uint32
``HOST``              :class:`HostRecord`: the state of the page's host
``HOST_SET``          :class:`HostSetRecord`: an operator's settings for the page's host
``HINT``              :class:`DateRecord`: the time at which the page changed
``DUE``               :class:`DateRecord`: the time at which the page is due; infinity is never
``GIVEN``             the URL as it was given, if it differs from the canonical form, as UTF-8
``CARRY``             the carried data of the page, which replace its earlier data
``PAUSE``, ``RESUME``  nothing
``SETTINGS``          the settings that hold from now on, as JSON; the rules for URLs are among them
``RANKING``           :class:`RankingRecord`, then the algorithm's name and parameters as JSON
``SYNCED``            nothing: the log is synced up to the byte in the head
``REPAIRED``          zeros, in place of damaged events; the head makes the same pages known
``CANONICAL``         a list of one page, which the page names as its canonical page from the next visit on,
                      or of none; carried data
``FACTS``             facts of the page of the visit directly before it: see :mod:`inlink.store.facts`
``ITEMS``             ``listed`` items of the visit directly after it, as JSON lines in UTF-8. They do not count
                      without this visit, which is missing if the process died before it was written
``RECEIVED``          :class:`ReceivedRecord`, then ``listed`` pages as uint32: those that another shard discovered, in
                      the order of its numbers; then :class:`FlowRecord` for pages whose rank from that shard changed
====================  ==================================================================================

Integers and floats are little-endian. Times are Unix times in seconds.
"""

import struct
from functools import cache
from hashlib import blake2b
from typing import Annotated, Any, NamedTuple, get_type_hints
from zlib import crc32

import numpy as np

from inlink.base.settings import NO_LIMIT

__all__ = [
    "CHECKED",
    "HEAD",
    "HEAD_SIZE",
    "KINDS",
    "NO_LIMIT",
    "NO_PAGE",
    "STATES",
    "CarriedRecord",
    "DateRecord",
    "EndRecord",
    "ExcludedRecord",
    "FailedRecord",
    "FlowRecord",
    "Head",
    "HostRecord",
    "HostSetRecord",
    "LeaseRecord",
    "LostRecord",
    "OutcomeRecord",
    "RankingRecord",
    "ReceivedRecord",
    "ReleasedRecord",
    "RenewedRecord",
    "ReportedRecord",
    "SessionRecord",
    "VisitRecord",
    "dtype_of",
    "head_check",
    "salt_of",
    "size_of",
    "struct_of",
    "synced_of",
]

Uint8 = Annotated[int, "<u1"]
Uint16 = Annotated[int, "<u2"]
Uint32 = Annotated[int, "<u4"]
Uint64 = Annotated[int, "<u8"]
Float32 = Annotated[float, "<f4"]
Float64 = Annotated[float, "<f8"]

OLD_SALT = 0x1F4B4E6C
"""The salt of all logs of format version 2."""

NO_PAGE = 0xFFFFFFFF


class Head(NamedTuple):
    """The beginning of each frame.

    ``marker`` and the start of ``head_check`` are the crawl's own (:func:`salt_of`). ``place`` is the frame's own first
    byte in events.log, and ``text_place`` that of its URLs in urls.txt. So a frame can be used without the frames
    before it. ``number`` is the number of frames before it, modulo 2³². ``first`` is the number of pages known before
    it: it makes the pages ``first``, …, ``first + new - 1`` known. ``unsynced`` is the number of bytes directly before
    it that were not known to be safe from a power cut when it was written; 2³² − 1 stands for any larger number.
    ``lease`` is the lease that the event ends, 0 if none. ``listed`` is the length of the payload's list. Each checksum
    is a CRC-32: of the payload, of the URLs in urls.txt, and of the head before ``head_check``.
    """

    marker: Uint32
    length: Uint32
    place: Uint64
    unsynced: Uint32
    number: Uint32
    text_place: Uint64
    time: Float64
    lease: Uint64
    first: Uint32
    new: Uint32
    text_size: Uint32
    page: Uint32
    listed: Uint32
    score: Float32
    flags: Uint32
    status: Uint16
    kind: Uint16
    payload_check: Uint32
    text_check: Uint32
    head_check: Uint32


class EndRecord(NamedTuple):
    """One of the two slots of end.bin: how far both files of the log were synced.

    ``turn`` is 1 for the first slot that is written, and then grows by 1; odd turns are in the second slot. ``writer``
    is a random number of the writer. ``urls_end`` and ``events_end`` are the synced bytes of both files, ``frames`` and
    ``pages`` the numbers of frames and of known pages there. ``folder`` is the inode of the crawl's folder, by which a
    copy is recognised. ``check`` is the CRC-32 of the other fields.
    """

    turn: Uint64
    writer: Uint64
    urls_end: Uint64
    events_end: Uint64
    frames: Uint64
    pages: Uint64
    folder: Uint64
    check: Uint32


class VisitRecord(NamedTuple):
    """The beginning of a visit's payload.

    ``previous`` is the place of the page's visit before this one, plus 1; 0 if there is none. ``fingerprint`` is a
    similarity hash of the page's text, 0 if there is none. The content hash of ``hash_size`` bytes comes next.
    ``anchor_size`` is the number of bytes of anchor texts behind the scores: for each link, in the list's order, one
    byte of length and that many bytes of UTF-8; 0 if the spider gave none.
    """

    first_crawl: Float64
    crawls: Uint32
    changes: Uint32
    previous: Uint64
    fingerprint: Uint64
    anchor_size: Uint32
    hash_size: Uint8


class FailedRecord(NamedTuple):
    """The beginning of a failure's payload: ``due`` is the time of the next try."""

    due: Float64


class LeaseRecord(NamedTuple):
    """The beginning of a lease event's payload. ``session`` and ``request`` are 0 for a caller without a session."""

    first_lease: Uint64
    expires: Float64
    session: Uint32
    request: Uint64


class RenewedRecord(NamedTuple):
    """The beginning of a renewal's payload: the listed leases run until ``expires``.

    With an empty list, ``expires`` is a number of seconds by which all open leases are extended, because the crawl was
    closed for this time.
    """

    expires: Float64
    session: Uint32


class ReleasedRecord(NamedTuple):
    """A lease that was given back, and its page."""

    lease: Uint64
    page: Uint32


class LostRecord(NamedTuple):
    """A lease that ended without an answer. The page waits until ``due``. If ``over`` is 1, it has failed for good."""

    lease: Uint64
    due: Float64
    page: Uint32
    over: Uint8


class SessionRecord(NamedTuple):
    """A session that begins (``ended`` 0) or ends (1: by its spider, 2: by a new session of its owner, 3: silent)."""

    session: Uint32
    silent_after: Float64
    ended: Uint8


class ReportedRecord(NamedTuple):
    """A batch of answers that was taken in completely."""

    session: Uint32
    request: Uint64


class OutcomeRecord(NamedTuple):
    """The outcome of one answer of a batch. ``counted`` is 0 or 1; ``lease`` is that of a redirect's target, or 0."""

    lease: Uint64
    counted: Uint8


class ExcludedRecord(NamedTuple):
    """The beginning of an exclusion's payload: the number of bytes of its reason."""

    reason_size: Uint16


class HostRecord(NamedTuple):
    """The state of a host: time of the next fetch, seconds between fetches, failures in a row."""

    due: Float64
    delay: Float32
    failures: Uint32


class HostSetRecord(NamedTuple):
    """An operator's settings for a host. ``fields`` has a bit for each value that is set: 1 block, 2 delay, 4 budget.

    No page of the host is fetched before ``blocked_until``; infinity is for ever. ``delay`` is in seconds and may be
    shorter than the crawl's own delay. ``budget`` is the total number of pages that may be taken from the host,
    including those taken before this event; ``NO_LIMIT`` is no limit. A value that is not set is 0.
    """

    blocked_until: Float64
    delay: Float32
    budget: Uint32
    fields: Uint8


class DateRecord(NamedTuple):
    """A single time."""

    date: Float64


class CarriedRecord(NamedTuple):
    """A page with carried data. They end at byte ``end`` of all carried bytes of the frame."""

    page: Uint32
    end: Uint32


class RankingRecord(NamedTuple):
    """A ranking that the crawl adopted: the byte of the log that it covers, and the CRC-32 of its values."""

    covers: Uint64
    check: Uint32


class ReceivedRecord(NamedTuple):
    """The beginning of an event of pages and ranks from another shard.

    ``end`` is the end of the shard's pages that were looked through, ``flows`` the number of changes of rank.
    """

    shard: Uint16
    end: Uint32
    flows: Uint32


class FlowRecord(NamedTuple):
    """A change of the rank that a page gets from the links of another shard."""

    page: Uint32
    amount: Float32


@cache
def dtype_of(record: type[Any]) -> np.dtype[Any]:
    """The packed record dtype of a record class."""
    hints = get_type_hints(record, include_extras=True)
    return np.dtype([(name, hint.__metadata__[0]) for name, hint in hints.items()])


@cache
def struct_of(record: type[Any]) -> struct.Struct:
    """The Struct that packs and unpacks a record class, field by field in its order."""
    hints = get_type_hints(record, include_extras=True)
    codes = [np.dtype(hint.__metadata__[0]).char for hint in hints.values()]
    return struct.Struct("<" + "".join("Q" if code == "L" else code for code in codes))


def size_of(record: Any) -> int:
    """The number of bytes of a record."""
    return struct_of(record).size


HEAD = dtype_of(Head)
HEAD_SIZE = size_of(Head)
CHECKED = struct.Struct(struct_of(Head).format[:-1])
"""A head without its own checksum, which is its last field. The checksum covers these bytes."""
MOST_UNSYNCED = 0xFFFFFFFF


def salt_of(hash_seed: int) -> int:
    """The salt of a crawl's log: 64 bits that nobody can know who does not read the crawl's folder.

    The lower 32 bits are the marker at the beginning of each frame, and the upper 32 bits the start of the CRC-32 of
    each head. So no URL, text or carried data can contain a frame of this crawl, and frames of other crawls are not
    taken for its own.
    """
    return int.from_bytes(blake2b(b"%d" % hash_seed, digest_size=8, person=b"inlink log").digest(), "little")


def head_check(checked: bytes | memoryview, salt: int) -> bytes:
    """The checksum of a head, as its last four bytes."""
    return crc32(checked, salt >> 32).to_bytes(4, "little")


def synced_of(head: Head) -> int:
    """The byte of events.log up to which both files were safe when a frame was written; 0 if it is not known."""
    return max(head.place - head.unsynced, 0) if head.unsynced < MOST_UNSYNCED else 0


KINDS = (
    "",
    "seed",
    "visit",
    "failed",
    "lease",
    "renewed",
    "release",
    "lost",
    "session",
    "reported",
    "reload",
    "merge",
    "exclude",
    "host",
    "host_set",
    "hint",
    "due",
    "given",
    "carry",
    "pause",
    "resume",
    "settings",
    "ranking",
    "synced",
    "repaired",
    "canonical",
    "facts",
    "items",
    "received",
)
(
    SEED,
    VISIT,
    FAILED,
    LEASE,
    RENEWED,
    RELEASE,
    LOST,
    SESSION,
    REPORTED,
    RELOAD,
    MERGE,
    EXCLUDE,
    HOST,
    HOST_SET,
    HINT,
    DUE,
    GIVEN,
    CARRY,
    PAUSE,
    RESUME,
    SETTINGS,
    RANKING,
    SYNCED,
    REPAIRED,
    CANONICAL,
    FACTS,
    ITEMS,
    RECEIVED,
) = range(1, len(KINDS))

HAS_SCORES, RETRIED, IS_GONE, EXCLUDED_ONE, HAS_CARRIED, NOINDEX, NOFOLLOW, HAS_ANCHORS, TRUSTED = (
    1 << k for k in range(9)
)
BY_REDIRECT, BY_CANONICAL, BY_SITEMAP, HAS_ITEMS, BY_SHARD = (1 << k for k in range(9, 14))
"""Flags. Scores of the listed pages follow; a failure after which the page is tried again; the page is gone; the page
must not be fetched; some listed pages carry something; what the page asked of robots; anchor texts follow; the scores
of a seed event are weights of trust, and no link scores; why a page was merged: it redirects, or it names the target
as its canonical page. Merges of earlier versions have neither flag. The pages of a seed event came from a sitemap. The
event directly before a visit has its items. Another shard has discovered the pages of a seed event."""

STATES = ("discovered", "leased", "crawled", "failed", "gone", "excluded", "merged")
DISCOVERED, LEASED, CRAWLED, FAILED_PAGE, GONE, EXCLUDED, MERGED = range(len(STATES))

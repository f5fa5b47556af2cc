"""Frames with right checksums and wild numbers: every field of every kind of event, one at a time."""

import zlib
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import numpy as np

from crawlstrategies import opened
from crawlworld import World
from goldencrawl import SALT
from inlink.crawl.crawl import Crawl
from inlink.errors import FolderError
from inlink.store import format as layout
from inlink.store.format import CHECKED, HEAD_SIZE, Head, size_of, struct_of
from inlink.store.log import END, EVENTS, URLS
from inlink.store.reader import hash_seed_of, known_pages

__all__ = ["RECORDS", "refused_when_wild", "resealed", "stretches", "wild_heads", "wild_payloads"]

RECORDS = {
    layout.VISIT: (layout.VisitRecord,),
    layout.FAILED: (layout.FailedRecord,),
    layout.LEASE: (layout.LeaseRecord,),
    layout.RENEWED: (layout.RenewedRecord,),
    layout.RELEASE: (layout.ReleasedRecord,),
    layout.LOST: (layout.LostRecord,),
    layout.SESSION: (layout.SessionRecord,),
    layout.REPORTED: (layout.ReportedRecord, layout.OutcomeRecord),
    layout.EXCLUDE: (layout.ExcludedRecord,),
    layout.HOST: (layout.HostRecord,),
    layout.HOST_SET: (layout.HostSetRecord,),
    layout.HINT: (layout.DateRecord,),
    layout.DUE: (layout.DateRecord,),
    layout.RANKING: (layout.RankingRecord,),
}
"""The records that a kind's payload begins with."""

FLOATS = (float("nan"), float("inf"), -float("inf"), -1.0, 3e38)


def stretches(events: bytes) -> list[tuple[int, int]]:
    """The places where the frames of a log begin and end."""
    found, place = [], 0
    while place < len(events):
        length = int.from_bytes(events[place + 4 : place + 8], "little")
        found.append((place, place + length))
        place += length
    return found


def resealed(frame: bytes, urls: bytes, salt: int = SALT) -> bytes:
    """A frame with the checksums that its bytes, and its URLs in urls.txt, have."""
    head = Head._make(struct_of(Head).unpack_from(frame))
    text = urls[head.text_place : head.text_place + head.text_size]
    head = head._replace(payload_check=zlib.crc32(frame[HEAD_SIZE:]), text_check=zlib.crc32(text))
    checked = CHECKED.pack(*head[:-1])
    return checked + layout.head_check(checked, salt) + frame[HEAD_SIZE:]


def values_of(dtype: str) -> tuple[Any, ...]:
    """Extreme values of a field."""
    if dtype[1] == "f":
        return FLOATS
    top = 2 ** (8 * int(dtype[2]))
    return tuple(sorted({0, 1, 7, 10**9 % top, top // 2, top - 2, top - 1}))


def changed(frame: bytes, record: Any, begin: int) -> Iterator[tuple[str, bytes]]:
    """A frame with each field of the record at byte ``begin`` changed in turn."""
    packed, hints = struct_of(record), get_type_hints(record, include_extras=True)
    told = record._make(packed.unpack_from(frame, begin))
    for name, hint in hints.items():
        for value in values_of(hint.__metadata__[0]):
            new = told._replace(**{name: value})
            if not np.array_equal(np.asarray(new, float), np.asarray(told, float), equal_nan=True):
                yield f"{name} {value}", frame[:begin] + packed.pack(*new) + frame[begin + packed.size :]


def wild_heads(frame: bytes, urls: bytes, salt: int = SALT) -> Iterator[tuple[str, bytes]]:
    """A frame with each field of its head changed in turn, and what was changed."""
    for told, new in changed(frame, Head, 0):
        if not told.startswith(("marker", "place", "length", "head_check", "payload_check", "text_check")):
            yield told, resealed(new, urls, salt)


def wild_payloads(frame: bytes, urls: bytes, salt: int = SALT) -> Iterator[tuple[str, bytes]]:
    """A frame with each field of its records, and then each byte of its payload, changed in turn."""
    begin, kind = HEAD_SIZE, int.from_bytes(frame[78:80], "little")
    for record in RECORDS.get(kind, ()):
        if begin + size_of(record) <= len(frame):
            for told, new in changed(frame, record, begin):
                yield f"{record.__name__}.{told}", resealed(new, urls, salt)
        begin += size_of(record)
    for at in range(HEAD_SIZE, len(frame)):
        for value in (0, 0x80, 0xFF):
            if frame[at] != value:
                yield (
                    f"byte {at} {value}",
                    resealed(frame[:at] + bytes([value]) + frame[at + 1 :], urls, salt),
                )
    for less in (1, 4, HEAD_SIZE):
        if len(frame) - less >= HEAD_SIZE:
            cut = bytearray(frame[: len(frame) - less])
            cut[4:8] = len(cut).to_bytes(4, "little")
            yield f"cut by {less}", resealed(bytes(cut), urls, salt)


def refused_when_wild(world: World, place: int, end: int, use: Callable[[Crawl], None]) -> set[str]:
    """Return the wild forms of the last event of a closed crawl that are refused; use the crawl with all others."""
    events, urls = (world.folder / EVENTS).read_bytes(), (world.folder / URLS).read_bytes()
    frame, refused = events[place:end], set()
    salt = layout.salt_of(hash_seed_of(world.folder))
    for told, wild in (*wild_heads(frame, urls, salt), *wild_payloads(frame, urls, salt)):
        (world.folder / EVENTS).write_bytes(events[:place] + wild)
        # It would tell that the log was longer.
        (world.folder / END).unlink(missing_ok=True)
        try:
            known_pages(world.folder).close()
        except FolderError:
            refused.add(told)
            continue
        with opened(world.folder, world.clock) as crawl:
            use(crawl)
    return refused

"""The golden crawl folder, ``tests/golden/crawl-3``: every kind of event, the same bytes each time it is made.

``python tests/goldencrawl.py`` makes it anew. Do that only when the format's version changes.
"""

import shutil
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.folder import building
from inlink.store import format as layout
from inlink.store.carried import encode_carried
from inlink.store.format import struct_of
from inlink.store.kernels.frames import encode_links
from inlink.store.log import KIND, VERSION, Log

__all__ = ["GOLDEN", "GOLDEN_2", "SALT", "anchor_texts", "make", "packed", "visit"]

GOLDEN, GOLDEN_2 = (Path(__file__).parent / "golden" / f"crawl-{version}" for version in (3, 2))
SALT = layout.salt_of(7)
SETTINGS = b'{"policy":"hits","politeness":{"delay":2.0}}'
ANCHORS = {1: "b", 2: "über c", 3: ""}


def packed(record: Any, *values: Any) -> bytes:
    return struct_of(record).pack(*values)


def listed(pages: Mapping[int, float] | list[int]) -> tuple[int, bytes]:
    """Pages as a list, with their scores if they are a mapping: how many, and the bytes."""
    numbers = np.array(list(pages), np.uint32)
    scores = np.array(list(pages.values()) if isinstance(pages, Mapping) else [], np.float32)
    out = np.empty(5 * len(numbers) + 4 * len(scores), np.uint8)
    count, size = encode_links(numbers, scores, out)
    return int(count), out[: int(size)].tobytes()


def uint32s(*pages: int) -> bytes:
    return np.array(pages, "<u4").tobytes()


def anchor_texts(texts: Mapping[int, str]) -> bytes:
    """Anchor texts as a visit holds them: for each link a byte of length, then UTF-8."""
    coded = [text.encode() for _, text in sorted(texts.items())]
    return b"".join(bytes([len(text)]) + text for text in coded)


def visit(
    links: Mapping[int, float] | list[int],
    *,
    first_crawl: float = 0.0,
    crawls: int = 1,
    changes: int = 0,
    previous: int = 0,
    fingerprint: int = 0,
    content_hash: bytes = b"",
    anchors: Mapping[int, str] | None = None,
    carried: Mapping[int, bytes] | None = None,
) -> dict[str, Any]:
    """Flags, list and payload of a visit, for :meth:`Log.append`."""
    texts = anchor_texts(anchors) if anchors else b""
    head = packed(
        layout.VisitRecord, first_crawl, crawls, changes, previous, fingerprint, len(texts), len(content_hash)
    )
    count, raw = listed(links)
    flags = layout.HAS_SCORES * isinstance(links, Mapping) | layout.HAS_ANCHORS * bool(anchors)
    flags |= layout.HAS_CARRIED * bool(carried)
    payload = head + content_hash + raw + texts + encode_carried(carried or {})
    return {"flags": flags, "listed": count, "payload": payload}


def events() -> Iterator[tuple[int, float, dict[str, Any]]]:
    """Every kind of event but the mark of a sync, in an order that a crawl could have: kind, time, arguments."""
    yield layout.SETTINGS, 0.0, {"payload": SETTINGS}
    count, raw = listed({0: 1.0})
    urls = b"http://a.example/\n"
    yield layout.SEED, 1.0, {
        "flags": layout.HAS_SCORES, "listed": count, "payload": raw, "new": 1, "urls": urls,
    }  # fmt: skip
    yield layout.GIVEN, 1.0, {"page": 0, "payload": b"HTTP://A.example"}
    yield layout.SESSION, 2.0, {"payload": packed(layout.SessionRecord, 1, 60.0, 0) + b"spider-1"}
    yield layout.LEASE, 2.0, {"listed": 1, "payload": packed(layout.LeaseRecord, 1, 602.0, 1, 1) + uint32s(0)}
    yield layout.RENEWED, 3.0, {
        "listed": 1, "payload": packed(layout.RenewedRecord, 603.0, 1) + np.array([1], "<u8").tobytes(),
    }  # fmt: skip
    carried = {2: b"request of c", 3: b"request of d"}
    told = visit(
        {1: 0.25, 2: 0.5, 3: 0.0}, first_crawl=4.0, fingerprint=0x0123456789ABCDEF, content_hash=b"\x07" * 16,
        anchors=ANCHORS, carried=carried,
    )  # fmt: skip
    urls = b"http://a.example/b\nhttp://c.example/\nhttp://d.example/\n"
    yield layout.VISIT, 4.0, {
        "page": 0, "lease": 1, "status": 200, "score": 0.75, "new": 3, "urls": urls, **told,
    }  # fmt: skip
    outcome = packed(layout.OutcomeRecord, 0, 1)
    yield layout.REPORTED, 4.0, {"listed": 1, "payload": packed(layout.ReportedRecord, 1, 2) + outcome}
    yield layout.HOST, 4.0, {"page": 0, "payload": packed(layout.HostRecord, 9.0, 5.0, 0)}
    lease = packed(layout.LeaseRecord, 2, 605.0, 1, 3)
    yield layout.LEASE, 5.0, {"listed": 3, "payload": lease + uint32s(1, 2, 3)}
    failed = packed(layout.FailedRecord, 66.0) + b"connection refused"
    yield layout.FAILED, 6.0, {
        "page": 1, "lease": 2, "status": 0, "flags": layout.RETRIED, "payload": failed,
    }  # fmt: skip
    yield layout.RELEASE, 7.0, {"listed": 1, "payload": packed(layout.ReleasedRecord, 3, 2)}
    yield layout.LOST, 8.0, {"listed": 1, "payload": packed(layout.LostRecord, 4, 68.0, 3, 0)}
    yield layout.SESSION, 8.0, {"payload": packed(layout.SessionRecord, 1, 60.0, 3) + b"spider-1"}
    yield layout.CARRY, 9.0, {"page": 2, "payload": b"another request of c"}
    count, raw = listed([4])
    yield layout.MERGE, 10.0, {
        "page": 2, "listed": count, "payload": raw, "new": 1, "urls": b"http://c.example/home\n",
    }  # fmt: skip
    reason = b"deny:/home"
    yield layout.EXCLUDE, 11.0, {
        "listed": 1, "payload": packed(layout.ExcludedRecord, len(reason)) + reason + uint32s(4),
    }  # fmt: skip
    yield layout.RELOAD, 12.0, {"listed": 1, "payload": uint32s(4)}
    yield layout.HOST_SET, 13.0, {
        "page": 3, "payload": packed(layout.HostSetRecord, 99.0, 0.5, layout.NO_LIMIT, 3),
    }  # fmt: skip
    yield layout.HINT, 14.0, {"page": 0, "payload": packed(layout.DateRecord, 13.5)}
    yield layout.DUE, 15.0, {"page": 0, "payload": packed(layout.DateRecord, 50.0)}
    ranking = packed(layout.RankingRecord, 500, zlib.crc32(b"values"))
    yield layout.RANKING, 16.0, {"payload": ranking + b'["pagerank",{"damping":0.85}]'}
    yield layout.PAUSE, 17.0, {}
    yield layout.RESUME, 18.0, {}
    again = {"first_crawl": 4.0, "crawls": 2, "changes": 1, "content_hash": b"\x08" * 16}
    yield layout.VISIT, 19.0, {"page": 0, "status": 200, "score": 0.5, **visit([0, 1, 3], **again)}


def make(folder: Path) -> None:
    """Make the golden crawl's folder."""
    with building(folder, KIND, VERSION) as writer:
        writer.header.uuid = "00000000-0000-4000-8000-000000000002"
        writer.header.meta = {"hash_seed": "7", "started": 0.0, "url_rules": None}
    log, known = Log(folder, "full", 7), 0
    for kind, time, given in events():
        log.append(kind, time, given.pop("page", layout.NO_PAGE), first=known, **given)
        known += given.get("new", 0)
    log.close()


if __name__ == "__main__":
    shutil.rmtree(GOLDEN, ignore_errors=True)
    make(GOLDEN)
    sys.stdout.write(f"{GOLDEN}\n")

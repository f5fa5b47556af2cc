"""Let pages beside near-duplicates sink in the order: pages of mirrors, and printer versions.

A page is a near-duplicate if its fingerprint at its first visit differs in at most three bits from that of an earlier
visit. A URL belongs to two groups: its host, and the *section* of its host, which is the first folder of its path
together with the names of its query parameters. Of the fetched pages of a host, cₕ of nₕ are near-duplicates, and of a
section cₛ of nₛ. The priorities of waiting pages are multiplied by

    1 − (cₛ + k·pₕ)/(nₛ + k),      pₕ = cₕ/(nₕ + k),      k = 4                                                 (1)

So a section without fetched pages is judged by its host, and a host without near-duplicates has the factor 1. The
numbers are renewed when a tenth more pages, or near-duplicates, were fetched. Then all waiting pages get new
priorities.
"""

from typing import NamedTuple

import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array, UInt64Array
from inlink.base.columns import most_pages, reserve
from inlink.factors.parts import Part
from inlink.store.format import HEAD_SIZE, VISIT, Head, VisitRecord, struct_of
from inlink.store.frames import fields_at
from inlink.store.near import MOST_BITS
from inlink.store.pages import Pages

_HEAD, _VISIT = struct_of(Head), struct_of(VisitRecord)
_BLOCKS = 4
_LEAST = 4.0
"""k of formula (1): a group's own pages count as much as its host's when so many were fetched."""

_TAIL = 8192
"""Number of fingerprints that are compared one by one before they are sorted into the tables."""

_GROWTH = 1.1
"""The counts of groups that priorities use are updated after this growth."""


class NearIndex:
    """An index of fingerprints. It finds a fingerprint that differs in at most three bits.

    As in Manku, Jain & Das Sarma (WWW 2007): if two fingerprints differ in at most three bits, one of their four blocks
    of 16 bits is equal. There is a table for each block. It takes 24 bytes a fingerprint, and a question in an index of
    n fingerprints looks at n/2¹⁴ of them on average, besides the last 8,192.
    """

    def __init__(self) -> None:
        self._marks: UInt64Array = np.empty(_TAIL, np.uint64)
        self._count = self._sorted = 0
        self._tables: list[tuple[UInt32Array, UInt64Array]] = []

    def add(self, fingerprint: int) -> bool:
        """Add a fingerprint that is not 0; return whether one that was added before is near."""
        mark = np.uint64(fingerprint)
        near = np.bitwise_count(self._marks[self._sorted : self._count] ^ mark)
        least = int(near.min(initial=64))
        for block, (rows, starts) in enumerate(self._tables):
            key = fingerprint >> 16 * block & 0xFFFF
            candidates = rows[int(starts[key]) : int(starts[key + 1])]
            if len(candidates):
                least = min(least, int(np.bitwise_count(self._marks[candidates] ^ mark).min()))
        if least:
            self._append(mark)
        return least <= MOST_BITS

    def _append(self, mark: np.uint64) -> None:
        if self._count == len(self._marks):
            self._marks = np.concatenate([self._marks, np.empty_like(self._marks)])
        self._marks[self._count] = mark
        self._count += 1
        if self._count - self._sorted == _TAIL:
            self._sorted = self._count
            self._tables = [self._table(block) for block in range(_BLOCKS)]

    def _table(self, block: int) -> tuple[UInt32Array, UInt64Array]:
        """The rows of all fingerprints by one of their blocks, and where the rows of each value begin."""
        keys = (self._marks[: self._count] >> np.uint64(16 * block)).astype(np.uint16)
        starts = np.zeros((1 << 16) + 1, np.uint64)
        np.cumsum(np.bincount(keys, minlength=1 << 16), out=starts[1:])
        return np.argsort(keys, kind="stable").astype(np.uint32), starts


class _Copies(NamedTuple):
    """Numbers of a group's fetched pages with fingerprints, and of the near-duplicates among them."""

    fetched: int = 0
    copies: int = 0

    def plus(self, copy: bool) -> "_Copies":
        """The numbers with one more page."""
        return _Copies(self.fetched + 1, self.copies + copy)

    def share(self, prior: float) -> float:
        """The share of near-duplicates, which is ``prior`` without fetched pages."""
        return (self.copies + _LEAST * prior) / (self.fetched + _LEAST)


class Copies:
    """The groups of a crawl's fetched pages, and the factors of formula (1)."""

    def __init__(self, pages: Pages) -> None:
        self._pages, self._index = pages, NearIndex()
        # The numbers of all groups now, and those that priorities use.
        self._counted: dict[str, _Copies] = {}
        self._groups: dict[str, _Copies] = {}
        # Whether any page of each host is a near-duplicate.
        self._copying = reserve(np.bool_, most_pages())
        self._total, self._renewed = _Copies(), _Copies()

    def restore(self) -> None:
        """Take in all visits of the log."""
        log, places = self._pages.frames.log, np.array(self._pages.frames.of_kind(VISIT), np.uint64)
        payloads = places + np.uint64(HEAD_SIZE)
        first = fields_at(log, payloads, VisitRecord, "crawls") == 1
        numbers = fields_at(log, places[first], Head, "page").tolist()
        for page, mark in zip(
            numbers, fields_at(log, payloads[first], VisitRecord, "fingerprint").tolist(), strict=True
        ):
            self._take(page, mark)

    def take_in(self, frame: bytes) -> bool:
        """Take in an event; return whether the numbers of groups were renewed, so that all priorities are outdated."""
        head = Head._make(_HEAD.unpack_from(frame))
        if head.kind != VISIT:
            return False
        visit = VisitRecord._make(_VISIT.unpack_from(frame, HEAD_SIZE))
        return visit.crawls == 1 and self._take(head.page, visit.fingerprint)

    def _take(self, page: int, fingerprint: int) -> bool:
        if not fingerprint:
            return False
        copy = self._index.add(fingerprint)
        url = self._pages.url(page)
        for name in (_host(url), section(url)):
            self._counted[name] = self._counted.get(name, _Copies()).plus(copy)
        self._total = self._total.plus(copy)
        if copy:
            self._copying[self._pages.hosts[page]] = True
        before, now = self._renewed, self._total
        if not now.copies or (
            now.fetched <= _GROWTH * before.fetched and now.copies <= _GROWTH * before.copies
        ):
            return False
        self._renewed, self._groups = now, dict(self._counted)
        return True

    def factors(self, pages: UInt32Array) -> Float32Array:
        """The factor of each page, float32[n] in (0, 1]."""
        factors = np.ones(len(pages), np.float32)
        some = np.flatnonzero(self._copying[self._pages.hosts[pages]])
        if len(some):
            factors[some] = [1.0 - self._share(url) for url in self._pages.urls(pages[some])]
        return factors

    def _share(self, url: str) -> float:
        groups, none = self._groups, _Copies()
        prior = groups.get(_host(url), none).share(0.0)
        return groups.get(section(url), none).share(prior)

    def explain(self, page: int) -> list[Part]:
        """The part of a page's priority; empty if the factor is 1."""
        url = self._pages.url(page)
        share = self._share(url)
        if not share:
            return []
        counts = [
            f"{group.copies:,} of {group.fetched:,} in {name}"
            for name in (section(url), _host(url))
            if (group := self._groups.get(name))
        ]
        return [
            Part(f"fetched pages beside it that are near-duplicates: {', '.join(counts)}", "×", 1.0 - share)
        ]


def _host(url: str) -> str:
    return "/".join(url.split("/", 3)[:3]) + "/"


def section(url: str) -> str:
    """The name of a canonical URL's section.

    Examples
    --------
    >>> section("http://a.com/print/story/5.html"), section("http://a.com/5.html?id=5&print=1")
    ('http://a.com/print/…', 'http://a.com/…?id&print')
    """
    path, _, query = url.partition("#")[0].partition("?")
    scheme, empty, host, *folders = path.split("/")
    first = f"{folders[0]}/" if len(folders) > 1 else ""
    names = sorted({part.partition("=")[0] for part in query.split("&")}) if query else []
    return f"{scheme}//{empty}{host}/{first}…" + ("?" + "&".join(names) if names else "")

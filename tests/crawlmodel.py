"""A crawl in the plainest form there is, and its PageRank by a direct solve: oracles for the rankings of a log."""

import zlib
from dataclasses import dataclass, field

import numpy as np

from inlink.store.format import HEAD_SIZE, MERGE, VISIT, Head, VisitRecord, struct_of

__all__ = ["Model", "exact_pagerank"]


def leb128(number: int) -> bytes:
    out = []
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def deltas(links: list[int]) -> bytes:
    return b"".join(leb128(b - a) for a, b in zip([0, *links], links, strict=False))


@dataclass
class Model:
    """A crawl in the plainest form there is, and its log."""

    num_pages: int = 0
    rows: dict[int, list[int]] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    log: bytes = b""
    merged: set[int] = field(default_factory=set)

    def frame(self, kind: int, page: int, payload: bytes, count: int) -> int:
        place = len(self.log)
        empty = Head._make([0] * len(Head._fields))
        head = empty._replace(
            length=HEAD_SIZE + len(payload),
            place=place,
            page=page,
            listed=count,
            score=0.5,
            status=200,
            kind=kind,
            payload_check=zlib.crc32(payload),
        )
        raw = struct_of(Head).pack(*head)
        self.log += raw[:-4] + zlib.crc32(raw[:-4]).to_bytes(4, "little") + payload
        return place

    def crawl(self, page: int, links: list[int], content_hash: bytes = b"") -> None:
        row = sorted(set(links))
        head = struct_of(VisitRecord).pack(0.0, 1, 0, 0, 0, 0, len(content_hash)) + content_hash
        self.places[page] = self.frame(VISIT, page, head + deltas(row), len(row))
        self.rows[page] = row
        self.merged.discard(page)

    def merge(self, page: int, into: int) -> None:
        self.places[page] = self.frame(MERGE, page, deltas([into]), 1)
        self.rows[page] = [into]
        self.merged.add(page)

    def given(self, shuffle: int = 0):
        pages = np.array(list(self.places), np.uint32)
        pages = pages[np.random.default_rng(shuffle).permutation(len(pages))] if shuffle else pages
        places = np.array([self.places[int(page)] for page in pages], np.uint64)
        return self.num_pages, np.frombuffer(self.log, np.uint8), pages, places

    def arcs(self, hosts=None) -> np.ndarray:
        A = np.zeros((self.num_pages, self.num_pages))
        for page, row in self.rows.items():
            for target in row:
                A[page, target] = hosts is None or page in self.merged or hosts[page] != hosts[target]
        return A


def exact_pagerank(A: np.ndarray, v: np.ndarray, d: float) -> np.ndarray:
    """x = (I − d·Pᵀ)⁻¹ (1 − d)·v."""
    degrees = A.sum(1, keepdims=True)
    P = np.divide(A, degrees, out=np.zeros_like(A), where=degrees > 0)
    return np.linalg.solve(np.eye(len(A)) - d * P.T, (1 - d) * v)

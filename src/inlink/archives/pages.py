"""Collect arcs between pages from pages with their links."""

import numpy as np

from inlink.archives.scanner import ScannedPage
from inlink.archives.warc import RawPage
from inlink.base.arrays import UInt8Array
from inlink.base.damage import Tally
from inlink.base.strings import Strings
from inlink.graph.batches import ArcBatch
from inlink.urls import Base, canonical
from inlink.urls.canonical import NOT_HTTP

__all__ = ["PageArcs", "canonical_links"]


def canonical_links(page: RawPage, url: str, self_links: bool, refused: dict[str, int]) -> list[str]:
    """Return the canonical forms of a page's links, and count the refused ones by reason."""
    targets = Base(url, page.base, self_links=self_links).canonical_links(page.links, refused)
    if page.header_links:
        targets += Base(url, self_links=self_links).canonical_links(page.header_links, refused)
    return targets


class PageArcs:
    """Collects the arcs between the pages of a batch.

    Parameters
    ----------
    name : str
        The archive's name, for the tally.
    tally : Tally
        Counts the links, and the links that are left out.
    self_links : bool
        Keep links to a place on the page itself.
    repeats : bool
        Collect an arc as often as the page has it. False collects it once, unless it is written in two ways.
    """

    def __init__(self, name: str, tally: Tally, self_links: bool, repeats: bool) -> None:
        self._name, self._tally = name, tally
        self._self_links, self._repeats = self_links, repeats
        self._classes: UInt8Array | None = None
        self._slots, self._stamp = np.zeros(1 << 10, np.uint64), 0
        self._odd = np.zeros(0, np.uint32)
        self._arena, self._ends = np.zeros(1 << 16, np.uint8), np.zeros(1 << 12, np.int64)
        # The number of forms in the arena; the numbers of links of the last page that are kept, and that are not http.
        self._counts = np.zeros(3, np.int64)
        self._begin()

    def _begin(self) -> None:
        self._urls: list[str] = []
        # The number of targets of each page in the arena, and among the others.
        self._written: list[int] = []
        self._lengths: list[int] = []
        self._others: list[str] = []
        self._counts[0] = 0
        self.size = 0

    def add(self, page: RawPage | ScannedPage, url: str) -> None:
        """Add a page, whose canonical URL is `url`."""
        refused: dict[str, int] = {}
        before = int(self._counts[0])
        if isinstance(page, ScannedPage):
            others = self._scanned(page, url, refused)
        else:
            others = canonical_links(page, url, self._self_links, refused)
        self._tally.links += len(others)
        if not self._repeats:
            others = list(dict.fromkeys(others))
        if refused:
            self._tally.skip_all(self._name, page.offset, refused)
        self._urls.append(url)
        self._written.append(int(self._counts[0]) - before)
        self._lengths.append(len(others))
        self._others += others
        self.size += 1 + self._written[-1] + len(others)

    def _scanned(self, page: ScannedPage, url: str, refused: dict[str, int]) -> list[str]:
        """Write the forms of plain links into the arena, and return the forms of the others, which are parsed."""
        from inlink.archives.kernels import forms as kernels

        if self._classes is None:
            self._classes = _classes()
        base = None if page.base is None else Base(url, page.base, self_links=self._self_links)
        own = np.frombuffer(url.encode(), np.uint8)
        root = own if base is None else np.frombuffer(base.url.encode(), np.uint8)
        if page.number > len(self._odd):
            self._odd = np.zeros(2 * page.number, np.uint32)
        while 2 * page.number >= len(self._slots):
            self._slots, self._stamp = np.zeros(2 * len(self._slots), np.uint64), 0
        self._stamp += 1
        options = self._self_links | self._repeats << 1 | page.entities << 2
        while True:
            odds = kernels.page_forms(
                page.text,
                page.links,
                page.number,
                root,
                own,
                options,
                self._classes,
                self._slots,
                self._stamp,
                self._arena,
                self._ends,
                self._counts,
                self._odd,
            )
            if odds != kernels.FULL:
                break
            self._arena = np.append(self._arena, np.zeros(len(self._arena), np.uint8))
            self._ends = np.append(self._ends, np.zeros(len(self._ends), np.int64))
            self._stamp += 1
        _, kept, foreign = self._counts.tolist()
        self._tally.links += kept
        if foreign:
            refused[NOT_HTTP] = foreign
        if not odds:
            return []
        hrefs: list[str] = []
        from_header: list[str] = []
        for number in self._odd[:odds].tolist():
            href, header = page.href(number)
            (from_header if header else hrefs).append(href)
        base = base or Base(url, self_links=self._self_links)
        others = base.canonical_links(hrefs, refused)
        if from_header:
            others += Base(url, self_links=self._self_links).canonical_links(from_header, refused)
        return others

    def take(self) -> ArcBatch:
        """Return the batch, and begin another one."""
        pages, forms, others = len(self._urls), int(self._counts[0]), len(self._others)
        columns = [Strings.of(self._urls)]
        if forms:
            columns.append(Strings(self._arena, self._ends[: forms + 1].view(np.uint64)))
        if others:
            columns.append(Strings.of(self._others))
        names = Strings.concat(columns)
        places = np.arange(pages, dtype=np.uint32)
        sources = np.concatenate([np.repeat(places, self._written), np.repeat(places, self._lengths)])
        targets = np.arange(pages, pages + forms + others, dtype=np.uint32)
        self._begin()
        return ArcBatch(sources, targets, names, crawled=places)


def _classes() -> UInt8Array:
    """Return the class of each byte, uint8[256]: what the parser does with it in a host, a path and a query."""
    from inlink.archives.kernels.forms import ENCODE, HOST, PATH, QUERY, QUERY_ENCODE
    from inlink.urls.kernels import CLASSES
    from inlink.urls.kernels import HOST as PLAIN

    classes = np.where(CLASSES & PLAIN, HOST, 0).astype(np.uint8)
    # Bytes above 127 are parts of characters, and are always encoded.
    classes[128:] = ENCODE | QUERY_ENCODE
    for start, keep, encode in (("http://a.com/", PATH, ENCODE), ("http://a.com/?", QUERY, QUERY_ENCODE)):
        for byte in range(32, 128):
            form = canonical(f"{start}x{chr(byte)}y")
            if form == f"{start}x{chr(byte)}y" and (byte != 63 or keep == QUERY):
                classes[byte] |= keep
            elif form == f"{start}x%{byte:02X}y":
                classes[byte] |= encode
    return classes

"""A generated crawl that looks like one of the web, for the benchmark of the crawl, as a stream of any length.

URLs have numbers, in the order in which they become known. They are crawled in about that order, but scattered
between two powers of two, so that a host's pages do not follow on one another: politeness has it so. Every page has 20
to 50 links, two fifths of them to URLs that nobody has met before, so that 14 URLs become known a page, and there are
2.5 links a URL. Three quarters of the links stay on the page's host: menus, siblings and children; of the others, half
go to early pages, which gives indegrees a power law, and half anywhere. The r-th host has about 1/r of the URLs
(Zipf's law; the first eight are alike), and hosts become more as the crawl goes on, one to some 50
URLs. A URL reads like

    https://www.beachcorner503.org/quality/camera-garden-tutorial-1234567.html

with 60 to 65 bytes in the mean, and is its own canonical form. Same seed, same crawl, on every machine.
"""

from collections.abc import Iterator

import numpy as np

from bench import crawlkernels
from bench.crawlkernels import BLOCK_NEW, BLOCK_PAGES, MAX_URL, MOST_LINKS, Shape

__all__ = ["Web"]


class Web:
    """A generated crawl.

    Parameters
    ----------
    seeds : int
        The number of seeds, which are the URLs of the first numbers.
    seed : int
        Seed of the random numbers.
    scattered : bool
        Crawl in scattered order. Else breadth-first, siblings in a row, which is kinder to whatever sorts by host.
    """

    def __init__(self, seeds: int = 1024, seed: int = 1, *, scattered: bool = True) -> None:
        self.num_seeds = seeds
        first = 1 << (seeds - 1).bit_length() if scattered else 1 << 62
        self._shape = Shape(np.uint64(seeds), np.uint64(first), np.uint64(seed))
        self._buffer = np.empty(0, np.uint8)

    def url(self, number: int) -> str:
        """The URL of a number."""
        out = np.empty(MAX_URL, np.uint8)
        end = crawlkernels.write_url(np.uint64(number), self._shape, out, np.uint64(0))
        return out[: int(end)].tobytes().decode()

    def seeds(self) -> list[str]:
        """The URLs that the crawl begins with."""
        return [self.url(number) for number in range(self.num_seeds)]

    def host(self, number: int) -> int:
        """The number of a URL's host."""
        return int(crawlkernels.host_of(np.uint64(number), self._shape))

    def crawled(self, turn: int) -> int:
        """The number of the URL that is crawled after ``turn`` others."""
        return int(crawlkernels.turn(np.uint64(turn), self._shape))

    def known(self, pages: int) -> int:
        """The number of known URLs after the first ``pages`` pages are crawled."""
        return int(crawlkernels.first_new(np.uint64(pages), self._shape))

    def pages_for(self, known: int) -> int:
        """The least number of pages after which ``known`` URLs are known."""
        if known <= self.num_seeds:
            return 0
        pages = max((known - self.num_seeds) // BLOCK_NEW - 1, 0) * BLOCK_PAGES
        while self.known(pages) < known:
            pages += 1
        return pages

    def text(self, first: int, count: int) -> bytes:
        """Pages as lines of ASCII: the page's URL, its links, and an empty line."""
        room = count * (MOST_LINKS + 2) * (MAX_URL + 1)
        if len(self._buffer) < room:
            self._buffer = np.empty(room, np.uint8)
        end = crawlkernels.write_pages(np.uint64(first), np.uint64(count), self._shape, self._buffer)
        return self._buffer[: int(end)].tobytes()

    def batches(self, first: int, end: int, size: int = 1000) -> Iterator[bytes]:
        """The text of the pages from ``first`` up to ``end``, some at a time."""
        for start in range(first, end, size):
            yield self.text(start, min(size, end - start))

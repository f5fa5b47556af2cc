"""The client's twin in memory: what a crawl answers, in forty plain lines, for tests of the doors to it.

It hands out pages in the order in which they became known, at once and without politeness, keeps nothing on disk, and
takes URLs as they are. ``tests/client/test_client.py`` holds it to what the other clients answer.
"""

from collections.abc import Iterable, Sequence
from urllib.parse import urljoin

from inlink.protocol import (
    Answer,
    AnyLink,
    Crawled,
    Excluded,
    Failed,
    HostDelay,
    Link,
    Receipt,
    Redirected,
    Released,
    Standing,
    Task,
    Tasks,
)

__all__ = ["MemoryClient"]

STATES = {
    Crawled: "crawled",
    Failed: "failed",
    Excluded: "excluded",
    Redirected: "merged",
    Released: "discovered",
}


class MemoryClient:
    """A crawl in memory; see :class:`inlink.client.spider.Client`. ``calls`` lists what was asked of it, in order."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}
        self.depths: dict[str, int] = {}
        self.merged: dict[str, str] = {}
        self.waiting: list[str] = []
        self.out: dict[int, str] = {}
        self.calls: list[tuple[str, object]] = []
        self._leases = 0

    def _know(self, url: str, depth: int) -> int:
        if url in self.states:
            return 0
        self.states[url], self.depths[url] = "discovered", depth
        self.waiting.append(url)
        return 1

    def _lease(self, url: str) -> Task:
        self._leases += 1
        self.out[self._leases] = url
        return Task(self._leases, url, self.depths[url])

    async def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> int:
        return sum(self._know(url, 0) for url, *_ in entries)

    async def seed(self, urls: Iterable[AnyLink]) -> int:
        """Make URLs known."""
        urls = list(urls)
        self.calls.append(("seed", urls))
        return sum(self._know(_url(link), 0) for link in urls)

    async def next(self, count: int, wait: float = 0.0) -> Tasks:
        """Hand out the pages that have waited longest."""
        self.calls.append(("next", count))
        given, self.waiting = self.waiting[:count], self.waiting[count:]
        return Tasks([self._lease(url) for url in given], 0.0 if self.waiting else None)

    async def report(self, answers: Sequence[Answer]) -> list[Receipt]:
        """Take answers."""
        self.calls.append(("report", list(answers)))
        return [self._take(answer) for answer in answers]

    def split(self, answers: Sequence[Answer]) -> list[list[int]]:
        """All answers go in one report."""
        return [list(range(len(answers)))]

    def _take(self, answer: Answer) -> Receipt:
        if isinstance(answer, HostDelay):
            return Receipt(counted=True)
        url = self.out.pop(answer.lease, None)
        if url is None:
            return Receipt(counted=False)
        self.states[url] = STATES[type(answer)]
        if isinstance(answer, Released):
            self.waiting.append(url)
        elif isinstance(answer, Crawled):
            for link in answer.links:
                self._know(urljoin(url, _url(link)), self.depths[url] + 1)
        elif isinstance(answer, Redirected):
            target = urljoin(url, answer.to)
            self._know(target, self.depths[url])
            while target in self.merged:
                target = self.merged[target]
            if target == url:
                # The page leads back to itself, and is fetched again.
                self.states[url] = "discovered"
                return Receipt(counted=True, task=self._lease(url))
            self.merged[url] = target
            if target in self.waiting:
                self.waiting.remove(target)
                return Receipt(counted=True, task=self._lease(target))
        return Receipt(counted=True)

    async def standing(self, hosts: int = 5) -> Standing:
        """The progress of the crawl, without hosts."""
        states = {state: list(self.states.values()).count(state) for state in sorted({*self.states.values()})}
        return Standing(
            len(self.states), states.get("crawled", 0), len(self.waiting), len(self.out), states, None, []
        )

    async def close(self) -> None:
        """Give back what is out."""
        self.calls.append(("close", None))
        for lease in list(self.out):
            self._take(Released(lease))


def _url(link: AnyLink) -> str:
    return link if isinstance(link, str) else link.url if isinstance(link, Link) else link[0]

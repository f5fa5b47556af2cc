"""A site that one crawl and the shards of a crawl fetch in the same order, for tests that compare them."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from crawlstrategies import Clock, opened
from inlink.crawl.crawl import Crawl
from inlink.crawl.view import QUESTIONS
from inlink.errors import ServerError, UnknownNodeError

SETTINGS: dict[str, Any] = {"policy": "pagerank", "damping": 0.5, "sync": "full"}


class Site:
    """Pages of a few domains, with links within and across them; some fail, some are islands until they are seeds."""

    def __init__(self, seed: int, domains: int = 9, pages: int = 8) -> None:
        dice = random.Random(seed)
        self.urls = [f"http://www.d{k}.example/{page}" for k in range(domains) for page in range(pages)]
        self.links = {url: dice.sample(self.urls, dice.randint(0, 6)) for url in self.urls}
        self.failing = {url for url in self.urls if dice.random() < 0.1}
        self.seeds = self.urls[:2]
        self.failing -= set(self.seeds)

    def answer(self, crawl: Crawl, most: int = 1000, *, backwards: bool = False) -> int:
        """Fetch the pages that wait now; return their number. Pages that become known meanwhile wait."""
        tasks = crawl.next(most)
        for task in tasks[::-1] if backwards else tasks:
            if task.url in self.failing:
                crawl.failed(task.url, "not there", status=404)
            else:
                crawl.crawled(task.url, links=self.links[task.url], content_hash=task.url.encode()[-20:])
        return len(tasks)


def reached(site: Site) -> set[str]:
    """The pages to which links lead from the seeds."""
    found, todo = set(), list(site.seeds)
    while todo:
        if (url := todo.pop()) not in found:
            found.add(url)
            todo += [] if url in site.failing else site.links[url]
    return found


def exchanged(shards: list[Crawl]) -> int:
    """Exchange pages between all shards until no shard gets a new one; return the number of new pages."""
    new, going = 0, True
    while going:
        going = False
        for own in shards:
            for other in shards:
                if own is other:
                    continue
                number, asked = other.exchange.shard.number, own.exchange.shard
                begin = own.exchange.end(number)
                # Without the round of the last reply, all ranks are sent again.
                batch = other.exchange.discovered(asked.number, asked.count, begin)
                new += own.exchange.receive(begin, batch)
                going = going or batch.end != begin
    return new


def shards_at(folder: Path, count: int, **settings: Any) -> list[Crawl]:
    """The shards of a crawl, in folders 1, 2, …"""
    clock = Clock()
    return [
        opened(folder / str(k), clock, **{**SETTINGS, **settings, "rules": {"shard": f"{k}/{count}"}})
        for k in range(1, count + 1)
    ]


def crawl_all(site: Site, crawls: list[Crawl], most: int = 100) -> None:
    """Fetch the site level by level, so that each page has its least depth, whoever fetches it."""
    for _ in range(most):
        if not sum([site.answer(crawl) for crawl in crawls]) + exchanged(crawls):
            return


class Views:
    """Shards in this process, as :class:`inlink.crawl.questions.whole.Shards`; ``away`` ones do not answer."""

    def __init__(self, crawls: list[Crawl]) -> None:
        self._crawls, self.away = crawls, set[int]()
        self.missing = set[int]()

    @property
    def count(self) -> int:
        return len(self._crawls)

    @property
    def is_complete(self) -> bool:
        return not self.missing

    def ask(self, shard: int, question: str, arguments: Mapping[str, Any]) -> Any:
        if shard in self.away:
            raise ServerError(f"shard {shard} is away")
        return QUESTIONS[question].method(self._crawls[shard - 1].view, **arguments)

    def ask_each(
        self, question: str, requests: Mapping[int, Mapping[str, Any]], *, needed: bool = False
    ) -> dict[int, Any]:
        self.missing |= set() if needed else self.away & requests.keys()
        answers: dict[int, Any] = {}
        for shard in requests.keys() - self.missing:
            try:
                answers[shard] = self.ask(shard, question, requests[shard])
            except UnknownNodeError:
                answers[shard] = None
        return answers

    def whole(self, question: str, *values: Any, **named: Any) -> Any:
        """The answer of the whole."""
        self.missing = set()
        asked = QUESTIONS[question]
        return asked.way(self, asked.arguments(*values, **named))


def ranked(shards: list[Crawl], rounds: int = 14) -> None:
    """Rank at all shards, and exchange ranks, again and again. Each round reduces the error by the damping at least."""
    with mock.patch("inlink.crawl.exchange.CHANGE", 1e-9):
        for _ in range(rounds):
            for crawl in shards:
                crawl.rerank(wait=True)
            exchanged(shards)

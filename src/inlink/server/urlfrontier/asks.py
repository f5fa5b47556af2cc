"""Calls that hand out URLs or only read."""

import logging
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

import numpy as np

from inlink.base.arrays import slices
from inlink.base.table import counted
from inlink.crawl.crawl import Crawl
from inlink.crawl.queues import QueuedPage, is_key
from inlink.errors import InlinkError, ParameterError, UnknownNodeError
from inlink.protocol import Released, Task
from inlink.server.keeper import Keeper, Lane
from inlink.server.urlfrontier.taken import NEVER, session_of
from inlink.server.urlfrontier.wire import Peer, message, metadata_of

log = logging.getLogger("inlink.server")

DELAY_REQUESTABLE = 30
"""Seconds for which a URL is not handed out again, if the client gives no time."""

MOST_URLS = 10_000
"""Maximum number of URLs that one call hands out."""

TAKEN, LOOKED_AT, SHOWN = 200, 2000, 200
"""Maximum number of URLs in one step: handed out, searched, and shown."""

USUAL_SIZE = 100
"""Number of rows of a list if the client gives no number."""

_INFO, _ITEM, _STATS = message("URLInfo"), message("URLItem"), message("Stats")
_QUEUES, _STRINGS, _LONG = message("QueueList"), message("StringList"), message("Long")

Spawn = Callable[[Any], object]


async def get_urls(spawn: Spawn, peer: Peer, asked: Any) -> AsyncIterator[Any]:
    """Hand out URLs. URLs that the client no longer reads are given back."""
    if asked.WhichOneof("crawl") == "anyCrawlID":
        if asked.key:
            raise ParameterError("a key needs a crawlID: the same key may be in several crawls")
        keepers = peer.all("spider")
    else:
        keepers = [peer.keeper(asked.crawlID, "spider")]
    left, queues = MOST_URLS, asked.max_queues or None
    for keeper in keepers:
        before: dict[int, int] = {}
        while left and (tasks := await _portion(keeper, asked, min(left, TAKEN), queues, before)):
            left -= len(tasks)
            sent = 0
            try:
                for key, task in tasks:
                    info = metadata_of(task.carried)
                    info.url = task.given or task.url
                    info.key = asked.key or key
                    info.crawlID = keeper.name
                    yield info
                    sent += 1
            finally:
                if sent < len(tasks):
                    spawn(_give_back(keeper, [task for _, task in tasks[sent:]]))
        if queues is not None:
            queues -= len(before)
            if queues <= 0:
                return


async def _portion(
    keeper: Keeper, asked: Any, count: int, queues: int | None, before: dict[int, int]
) -> list[tuple[str, Task]]:
    """Take at most ``count`` tasks; return them with the keys of their queues."""

    def work(opened: Crawl) -> list[tuple[str, Task]]:
        tasks = opened.queues.next_in_queues(
            session_of(opened),
            count,
            per_queue=asked.max_urls_per_queue or None,
            queues=queues,
            key=asked.key or None,
            seconds=min(float(asked.delay_requestable or DELAY_REQUESTABLE), NEVER),
            before=before,
        )
        return [(opened.queues.key_of(task.url), task) for task in tasks]

    return await keeper.run(work, Lane.TASKS)


async def _give_back(keeper: Keeper, tasks: list[Task]) -> None:
    answers = [Released(task.lease) for task in tasks]
    try:
        await keeper.change(lambda opened: opened.desk.report(session_of(opened), answers))
    except InlinkError as error:
        out = counted(len(tasks), "URL stays", "URLs stay")
        log.warning("%s: %s out until the lease expires: %s", keeper.name, out, error)


async def list_crawls(peer: Peer, _: Any) -> Any:
    """Names of all crawls."""
    peer.admit("reader", None)
    return _STRINGS(values=list(peer.site.keepers))


async def get_stats(peer: Peer, asked: Any) -> Any:
    """The progress of a crawl or of one of its queues."""
    keeper = peer.keeper(asked.crawlID, "reader")
    # This takes back the leases that have expired.
    await keeper.run(lambda opened: opened.due_in())
    if asked.key:
        host, later, holds = await keeper.run(lambda opened: opened.queues.queue(asked.key))
        return _STATS(
            size=host.waiting + later,
            inProcess=host.in_flight,
            counts={"taken": host.taken, "active_queues": int(host.waiting > 0)},
            numberOfQueues=int(holds),
            crawlID=keeper.name,
        )
    standing, (_, queues), (_, active) = await keeper.run(
        lambda opened: (
            opened.view.standing(0),
            opened.queues.queue_names(0, 0, empty=True),
            opened.queues.queue_names(0, 0, empty=False),
        )
    )
    counts = dict(standing.states) | {"completed": standing.crawled, "active_queues": active}
    return _STATS(
        size=standing.waiting + standing.planned,
        inProcess=standing.leased,
        counts=counts,
        numberOfQueues=queues,
        crawlID=keeper.name,
    )


async def list_queues(peer: Peer, asked: Any) -> Any:
    """Names of queues, in the order of their discovery."""
    keeper = peer.keeper(asked.crawlID, "reader")
    size = min(asked.size or USUAL_SIZE, MOST_URLS)
    names, total = await keeper.run(
        lambda opened: opened.queues.queue_names(asked.start, size, empty=asked.include_inactive)
    )
    return _QUEUES(values=names, total=total, start=asked.start, size=len(names), crawlID=keeper.name)


async def get_url_status(peer: Peer, asked: Any) -> Any:
    """The stored data of a URL."""
    if not asked.url:
        raise ParameterError("`url` is empty: name a URL")
    keeper = peer.keeper(asked.crawlID, "reader")

    def work(opened: Crawl) -> QueuedPage:
        row: QueuedPage = opened.queues.rows_of([opened.view.number(asked.url)])[0]
        if asked.key and not is_key(asked.key, row.url):
            raise UnknownNodeError(f"{asked.url!r:.200} is not in the queue {asked.key!r:.100}")
        return row

    return _item(await keeper.run(work), keeper.name)


async def list_urls(peer: Peer, asked: Any) -> AsyncIterator[Any]:
    """URLs in the order of discovery."""
    keeper = peer.keeper(asked.crawlID, "reader")
    skip, left = asked.start, asked.size or USUAL_SIZE
    search = _Search(asked)
    while left and not search.over:
        pages = await keeper.run(search.step)
        pages = pages[skip : skip + left]
        skip = max(skip - search.found, 0)
        left -= len(pages)
        for part in slices(len(pages), SHOWN):
            some = pages[part]
            for row in await keeper.run(lambda opened, some=some: opened.queues.rows_of(some)):  # type: ignore[misc]
                yield _item(row, keeper.name)


async def count_urls(peer: Peer, asked: Any) -> Any:
    """The number of URLs."""
    keeper = peer.keeper(asked.crawlID, "reader")

    def work(opened: Crawl) -> Generator[None, None, int]:
        search, count = _Search(asked), 0
        while not search.over:
            count += len(search.step(opened))
            yield
        return count

    if not asked.key and not asked.filter:
        return _LONG(value=await keeper.run(lambda opened: opened.view.info().pages))
    found: Any = await keeper.run(work)
    return _LONG(value=found)


class _Search:
    """Goes through the pages of a crawl or of a queue in steps. ``found`` is the number that the last step found."""

    def __init__(self, asked: Any) -> None:
        self._key, self._lower = asked.key, asked.ignoreCase
        self._text = asked.filter.lower() if asked.ignoreCase else asked.filter
        self._pages: Any = None
        self._at = self.found = 0
        self.over = False

    def step(self, opened: Crawl) -> list[int]:
        """The matching pages among the next two thousand."""
        if self._pages is None:
            self._pages = (
                opened.queues.pages_of_queue(self._key)
                if self._key
                else np.arange(opened.view.info().pages, dtype=np.uint32)
            )
        some = self._pages[self._at : self._at + LOOKED_AT]
        self._at += LOOKED_AT
        self.over = self._at >= len(self._pages)
        found: list[int] = some.tolist()
        if self._text:
            urls = opened.queues.urls_of(some)
            if self._lower:
                urls = [url.lower() for url in urls]
            found = [page for page, url in zip(found, urls, strict=True) if self._text in url]
        self.found = len(found)
        return found


def _item(row: QueuedPage, crawl: str) -> Any:
    info = metadata_of(row.data)
    info.url, info.key, info.crawlID = row.url, row.key, crawl
    item = _ITEM(ID=row.url, creation_date=int(row.discovered))
    item.known.info.CopyFrom(info)
    item.known.refetchable_from_date = 0 if row.due is None else round(max(row.due, 1))
    return item

"""The client of a crawl on a server, or on several. Each call runs in a thread, so that none blocks the event loop."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from inlink.base.table import counted
from inlink.client.remote import RemoteCrawl
from inlink.client.shards import connect, spawn
from inlink.crawl.settings import from_data
from inlink.errors import ParameterError, ServerError
from inlink.frontier.settings import Settings
from inlink.protocol import Answer, AnyLink, Receipt, Standing, Tasks

T = TypeVar("T")

log = logging.getLogger("inlink.client")


class ServerClient:
    """A crawl on a server, for one spider among others.

    While the server is away, calls wait until it is back. No answer is lost.

    The parameters are those of :func:`inlink.client.spider.connect`. There must be no settings.

    Attributes
    ----------
    settings : Settings
        Settings of the crawl, once it is open.

    Raises
    ------
    inlink.errors.ParameterError
        If a setting is given, or the URL is not that of a crawl.
    """

    def __init__(self, url: str, owner: str | None = None, **settings: Any) -> None:
        if settings:
            raise ParameterError(
                f"{url}: the server decides the crawl's settings: remove {', '.join(sorted(settings))} here, or set "
                "it with `inlink serve --set`"
            )
        self.settings = Settings()
        self._crawl = connect(url, owner, None)

    async def open(self) -> str:
        """Begin a session; return one line about the crawl. Raise an error at once if no server can be reached."""
        url, begun = self._crawl.url, await _in_thread(lambda: self._crawl.begin(at_once=True))
        try:
            self.settings = from_data(begun.settings)
        except (TypeError, ValueError) as error:
            raise ServerError(
                f"{url}: the crawl's settings are not known here ({error}): are client and server of the same version?"
            ) from None
        shard = None if self.settings.rules is None else self.settings.rules.part
        if shard is not None and shard.count > 1 and isinstance(self._crawl, RemoteCrawl):
            log.warning(
                "%s is shard %d/%d: this spider gets no pages of the others, and may end before the crawl does. "
                "Give the URLs of all %d shards, separated by commas",
                *(url, shard.number, shard.count, shard.count),
            )
        session, line = begun.session, f"{url}: {begun.told}"
        if session.lost:
            line += f"; the last session of {session.owner!r} left {counted(session.lost, 'task')} for later"
        return line

    async def seed(self, urls: Iterable[AnyLink]) -> int:
        """See :class:`inlink.client.spider.Client`."""
        return (await _in_thread(lambda: self._crawl.seed(urls))).new

    async def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> int:
        """See :class:`inlink.client.spider.Client`."""
        return (await _in_thread(lambda: self._crawl.sitemap(entries))).new

    async def next(self, count: int, wait: float = 0.0) -> Tasks:
        """See :class:`inlink.client.spider.Client`."""
        return await _in_thread(lambda: self._crawl.next(count, wait))

    async def report(self, answers: Sequence[Answer]) -> list[Receipt]:
        """See :class:`inlink.client.spider.Client`."""
        return await _in_thread(lambda: self._crawl.report(answers))

    def split(self, answers: Sequence[Answer]) -> list[list[int]]:
        """See :class:`inlink.client.spider.Client`."""
        return self._crawl.split(answers)

    async def standing(self, hosts: int = 5) -> Standing:
        """See :class:`inlink.client.spider.Client`."""
        return await _in_thread(lambda: self._crawl.standing(hosts))

    async def close(self) -> None:
        """See :class:`inlink.client.spider.Client`."""
        await _in_thread(self._crawl.close)


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.wrap_future(spawn(work))

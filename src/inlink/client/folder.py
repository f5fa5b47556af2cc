"""The client of a crawl in a folder.

It runs the crawl in a separate thread, so that no call blocks the event loop.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from inlink.base.table import counted
from inlink.crawl.crawl import Crawl
from inlink.errors import InlinkError
from inlink.frontier.settings import Settings
from inlink.protocol import OWNER, Answer, AnyLink, Receipt, Standing, Tasks

T = TypeVar("T")


class FolderClient:
    """A crawl in a folder, for the one process that crawls there.

    It begins a session of its owner and renews the tasks of that session while it is open.

    The parameters are those of :func:`inlink.client.spider.connect`.

    Attributes
    ----------
    settings : Settings
        Settings of the crawl, once it is open.
    """

    def __init__(self, folder: str | os.PathLike[str], owner: str = OWNER, **settings: Any) -> None:
        self.folder, self.owner, self._settings = Path(folder), owner, settings
        self.settings = Settings()
        self._thread = ThreadPoolExecutor(1, "inlink-crawl")
        self._crawl: Crawl | None = None
        self._session = 0
        self._renewing: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self) -> str:
        """Open the crawl and begin a session; return one line about the crawl."""
        told, lease_seconds = await self._run(self._open)
        self._renewing = asyncio.ensure_future(self._renew(lease_seconds / 3))
        return told

    async def seed(self, urls: Iterable[AnyLink]) -> int:
        """See :class:`inlink.client.spider.Client`."""
        return await self._run(lambda crawl: crawl.seed(urls))

    async def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> int:
        """See :class:`inlink.client.spider.Client`."""
        return await self._run(lambda crawl: crawl.sitemap(entries))

    async def next(self, count: int, wait: float = 0.0) -> Tasks:
        """See :class:`inlink.client.spider.Client`."""
        return await self._run(lambda crawl: crawl.desk.next(self._session, count))

    async def report(self, answers: Sequence[Answer]) -> list[Receipt]:
        """See :class:`inlink.client.spider.Client`."""
        return await self._run(lambda crawl: crawl.desk.report(self._session, answers))

    def split(self, answers: Sequence[Answer]) -> list[list[int]]:
        """See :class:`inlink.client.spider.Client`."""
        return [list(range(len(answers)))]

    async def standing(self, hosts: int = 5) -> Standing:
        """See :class:`inlink.client.spider.Client`."""
        return await self._run(lambda crawl: crawl.standing(hosts))

    async def close(self) -> None:
        """See :class:`inlink.client.spider.Client`. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        try:
            # In the crawl's thread, after a call that was cancelled but still runs there, such as the opening.
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        finally:
            self._thread.shutdown()

    async def _run(self, work: Callable[[Crawl], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._opened()))

    def _opened(self) -> Crawl:
        if self._crawl is None:
            self._crawl = Crawl(self.folder, **self._settings)
        return self._crawl

    def _open(self, crawl: Crawl) -> tuple[str, float]:
        session = crawl.desk.hello(self.owner)
        self._session, told, self.settings = session.number, crawl.recovered, crawl.settings
        if session.lost:
            told += f"; the last session of {self.owner!r} left {counted(session.lost, 'task')} for later"
        if crawl.paused:
            told += "; the crawl is paused"
        return told, session.lease_seconds

    async def _renew(self, period: float) -> None:
        # The spider gets the same error in its next call.
        with contextlib.suppress(InlinkError):
            while True:
                await asyncio.sleep(period)
                await self._run(lambda crawl: crawl.desk.renew(self._session))

    def _close(self) -> None:
        crawl, self._crawl = self._crawl, None
        if crawl is None:
            return
        try:
            if self._session:
                crawl.desk.bye(self._session)
        finally:
            crawl.close()

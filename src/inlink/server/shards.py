"""The other shards of a crawl: their pages and ranks are taken in while the server runs.

Each other shard has a thread, which asks for the pages that this shard owns, and for ranks. Nothing is sent without
being asked for, so a shard that was away gets all that it missed, from its cursor on.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from inlink.client.channel import Channel
from inlink.crawl.crawl import Crawl
from inlink.errors import InlinkError
from inlink.protocol import Discovered, ShardOf
from inlink.server.keeper import Keeper
from inlink.urls.shards import Shard

T = TypeVar("T")

log = logging.getLogger("inlink.server")

ASK_SECONDS = 1.0
"""Seconds after which a shard without new pages is asked again. Pages are shown once they are synced, each second."""

CALL_SECONDS = 60.0
"""Seconds within which the crawl must take in a batch."""

FAULT_SECONDS = 30.0
"""Seconds after which a shard is asked again that refused, or whose pages were refused."""


class Peers:
    """The other shards of a crawl.

    Parameters
    ----------
    keeper : Keeper
        The crawl.
    urls : sequence of str
        The URLs of the crawls on the other servers. The crawl's own URL may be among them.

    Raises
    ------
    inlink.errors.ParameterError
        If a URL is not that of a crawl.
    """

    def __init__(self, keeper: Keeper, urls: Sequence[str]) -> None:
        self._keeper, self._loop = keeper, asyncio.get_running_loop()
        self._ended = threading.Event()
        self._channels = [Channel(url) for url in urls]
        self._threads = [
            threading.Thread(target=self._follow, args=(channel,), name="inlink-shard", daemon=True)
            for channel in self._channels
        ]

    def start(self) -> None:
        """Begin to ask."""
        for thread in self._threads:
            thread.start()

    async def close(self) -> None:
        """Stop asking, and wait until batches that have arrived are taken in."""
        self._ended.set()
        for channel in self._channels:
            channel.close()
        for thread in self._threads:
            if thread.is_alive():
                await asyncio.to_thread(thread.join)

    def _follow(self, channel: Channel) -> None:
        last, told = 0, ""
        while not self._ended.is_set():
            try:
                there = channel.call("GET", "shard", ShardOf)
                own = self._run(lambda crawl: crawl.exchange.shard)
                if there.number == own.number:
                    return
                last, more = self._take(channel, own, there.number, last)
                pause, told = 0.0 if more else ASK_SECONDS, ""
            except InlinkError as error:
                if self._ended.is_set():
                    return
                # A fault that lasts is told once.
                if str(error) != told:
                    log.warning("shard %s: %s", channel.place.url, error)
                pause, told = FAULT_SECONDS, str(error)
            except TimeoutError:
                pause = ASK_SECONDS
            self._ended.wait(pause)

    def _take(self, channel: Channel, own: Shard, other: int, last: int) -> tuple[int, bool]:
        """Take in pages and ranks; return the round of the reply, and whether there may be more pages."""
        begin = self._run(lambda crawl: crawl.exchange.end(other))
        query = {"of": own.count, "begin": begin, "last": last}
        batch = channel.call("GET", f"shards/{own.number}/pages", Discovered, query=query)
        self._run(lambda crawl: crawl.exchange.receive(begin, batch), changes=True)
        return batch.round, bool(batch.pages)

    def _run(self, work: Callable[[Crawl], T], *, changes: bool = False) -> T:
        """Call ``work`` in the crawl's thread."""
        run = self._keeper.change if changes else self._keeper.run
        return asyncio.run_coroutine_threadsafe(run(work), self._loop).result(CALL_SECONDS)

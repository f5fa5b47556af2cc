"""Calls that steer: each change is an event of the crawl's log, so that it holds after a restart."""

import logging
import math
from typing import Any

import grpc

from inlink.errors import ParameterError
from inlink.server.urlfrontier.messages import message
from inlink.server.urlfrontier.taken import NEVER
from inlink.server.urlfrontier.wire import Peer, RefusedError, now

__all__ = [
    "block_queue_until",
    "delete_crawl",
    "delete_queue",
    "get_active",
    "purge_urls",
    "set_active",
    "set_crawl_limit",
    "set_delay",
    "set_log_level",
]

DAY = 86_400.0

LEVELS = (logging.DEBUG, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)

_EMPTY, _LONG, _BOOLEAN = message("Empty"), message("Long"), message("Boolean")


async def set_delay(peer: Peer, asked: Any) -> Any:
    """Set the seconds between two fetches from a queue, or with an empty key from all others."""
    keeper, seconds = peer.keeper(asked.crawlID, "admin"), float(asked.delay_requestable)
    if seconds > NEVER:
        raise ParameterError(f"`delay_requestable` must be at most {NEVER:,.0f} seconds; got {seconds:,.0f}")
    if asked.key:
        await keeper.change(lambda opened: opened.set_host(asked.key, delay=seconds))
    else:
        await keeper.change(lambda opened: opened.change_settings(politeness={"delay": seconds}))
    return _EMPTY()


async def block_queue_until(peer: Peer, asked: Any) -> Any:
    """Fetch nothing from a queue until a date; a date that is over ends the block."""
    keeper = peer.keeper(asked.crawlID, "admin")
    seconds = max(asked.time - now(), 0.0)
    block = seconds if seconds <= NEVER else math.inf
    await keeper.change(lambda opened: opened.set_host(_named(asked.key), block=block))
    return _EMPTY()


async def set_crawl_limit(peer: Peer, asked: Any) -> Any:
    """Set how many URLs of a queue may be fetched in all; 0 is no limit."""
    keeper = peer.keeper(asked.crawlID, "admin")

    def work(opened: Any) -> None:
        key = _named(asked.key)
        taken = opened.desk.queue(key).taken
        opened.set_host(key, budget=max(asked.limit - taken, 0) if asked.limit else None)

    await keeper.change(work)
    return _EMPTY()


async def set_active(peer: Peer, asked: Any) -> Any:
    """Pause all crawls, or go on with them."""
    for keeper in peer.all("admin"):
        await keeper.change(lambda opened: opened.resume() if asked.state else opened.pause())
    return _EMPTY()


async def get_active(peer: Peer, _: Any) -> Any:
    """Whether any crawl goes on."""
    paused = [await keeper.run(lambda opened: opened.paused) for keeper in peer.all("reader")]
    return _BOOLEAN(state=not all(paused))


async def set_log_level(peer: Peer, asked: Any) -> Any:
    """Set the level of one of inlink's loggers, or of all."""
    peer.admit("admin", None)
    name = asked.package or "inlink"
    if name.partition(".")[0] != "inlink":
        raise ParameterError(
            f"`package` must be empty or a logger of inlink, such as inlink.server; got {name!r:.100}"
        )
    logging.getLogger(name[:100]).setLevel(LEVELS[min(asked.level, len(LEVELS) - 1)])
    return _EMPTY()


async def delete_queue(peer: Peer, asked: Any) -> Any:
    """Exclude all URLs of a queue that wait; say how many."""
    keeper = peer.keeper(asked.crawlID, "admin")
    work = lambda opened: opened.exclude_host(_named(asked.key), "URLFrontier: DeleteQueue")  # noqa: E731
    return _LONG(value=await keeper.change(work))


async def purge_urls(peer: Peer, asked: Any) -> Any:
    """Exclude the URLs of a queue that wait and were last fetched, or discovered, so many days ago; say how many."""
    keeper = peer.keeper(asked.crawlID, "admin")
    seconds = min(asked.days * DAY, NEVER)
    return _LONG(
        value=await keeper.change(
            lambda opened: opened.exclude_host(
                _named(asked.key), "URLFrontier: PurgeURLs", older_than=seconds
            )
        )
    )


async def delete_crawl(peer: Peer, asked: Any) -> Any:
    """Refuse: a crawl is its folder."""
    keeper = peer.keeper(asked.value, "admin")
    raise RefusedError(
        grpc.StatusCode.FAILED_PRECONDITION,
        f"{keeper.name} is not deleted from here: end the server and remove its folder",
    )


def _named(key: str) -> str:
    if not key:
        raise ParameterError(
            "`key` is empty: name a host, or the registered domain if politeness counts domains"
        )
    return key

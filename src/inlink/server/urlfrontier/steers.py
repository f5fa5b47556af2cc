"""Calls that steer a crawl. Each change is an event of the crawl's log, so it also holds after a restart."""

import logging
import math
import time
from typing import Any

import grpc

from inlink.crawl.crawl import Crawl
from inlink.errors import ParameterError
from inlink.protocol import Excluded
from inlink.server.urlfrontier.taken import NEVER, session_of
from inlink.server.urlfrontier.wire import Peer, RefusedError, message

DAY = 86_400.0

LEVELS = (logging.DEBUG, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)

_EMPTY, _LONG, _BOOLEAN = message("Empty"), message("Long"), message("Boolean")


async def set_delay(peer: Peer, asked: Any) -> Any:
    """Set the seconds between two fetches from a queue, or with an empty key from all queues without a delay."""
    keeper, seconds = peer.keeper(asked.crawlID, "admin"), float(asked.delay_requestable)
    if seconds > NEVER:
        raise ParameterError(f"`delay_requestable` must be at most {NEVER:,.0f} seconds; got {seconds:,.0f}")
    if asked.key:
        await keeper.change(lambda opened: opened.set_host(asked.key, delay=seconds))
    else:
        await keeper.change(lambda opened: opened.change_settings(politeness={"delay": seconds}))
    return _EMPTY()


async def block_queue_until(peer: Peer, asked: Any) -> Any:
    """Block a queue until a date. A date in the past ends the block."""
    keeper = peer.keeper(asked.crawlID, "admin")
    seconds = max(asked.time - time.time(), 0.0)
    block = seconds if seconds <= NEVER else math.inf
    await keeper.change(lambda opened: opened.set_host(_named(asked.key), block=block))
    return _EMPTY()


async def set_crawl_limit(peer: Peer, asked: Any) -> Any:
    """Set the total number of URLs of a queue that may be fetched; 0 is no limit."""
    keeper = peer.keeper(asked.crawlID, "admin")

    def work(opened: Crawl) -> None:
        key = _named(asked.key)
        taken = opened.queues.queue(key).host.taken
        opened.set_host(key, budget=max(asked.limit - taken, 0) if asked.limit else None)

    await keeper.change(work)
    return _EMPTY()


async def set_active(peer: Peer, asked: Any) -> Any:
    """Pause or resume all crawls."""
    for keeper in peer.all("admin"):
        await keeper.change(lambda opened: opened.resume() if asked.state else opened.pause())
    return _EMPTY()


async def get_active(peer: Peer, _: Any) -> Any:
    """Return whether any crawl is not paused, or there is no crawl."""
    paused = [await keeper.run(lambda opened: opened.paused) for keeper in peer.all("reader")]
    return _BOOLEAN(state=not (paused and all(paused)))


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
    """Exclude all waiting URLs of a queue, and those that clients hold; return their number."""
    keeper = peer.keeper(asked.crawlID, "admin")

    def work(opened: Crawl) -> int:
        key, session = _named(asked.key), session_of(opened)
        leases = opened.queues.leases_in(session, key)
        opened.desk.report(session, [Excluded(lease, "URLFrontier: DeleteQueue") for lease in leases])
        return len(leases) + opened.exclude_host(key, "URLFrontier: DeleteQueue")

    return _LONG(value=await keeper.change(work))


async def purge_urls(peer: Peer, asked: Any) -> Any:
    """Exclude waiting URLs, of a queue or of all, whose last fetch (or discovery) is ``days`` days old."""
    keeper = peer.keeper(asked.crawlID, "admin")
    reason, seconds = "URLFrontier: PurgeURLs", min(asked.days * DAY, NEVER)

    def work(opened: Crawl) -> int:
        if asked.key:
            return opened.exclude_host(asked.key, reason, older_than=seconds)
        return opened.queues.exclude(reason, seconds)

    return _LONG(value=await keeper.change(work))


async def delete_crawl(peer: Peer, asked: Any) -> Any:
    """Delete a crawl that clients have made; return the number of its URLs."""
    keeper = peer.keeper(asked.value, "admin")
    if peer.site.clients is None or keeper.name not in peer.site.clients.names:
        raise RefusedError(
            grpc.StatusCode.FAILED_PRECONDITION,
            f"{keeper.name} cannot be deleted by a client, because its operator made it: end the server and remove "
            "the crawl's folder",
        )
    return _LONG(value=await peer.site.delete(keeper.name))


def _named(key: str) -> str:
    if not key:
        raise ParameterError(
            "`key` is empty: name a host, or the registered domain if politeness counts domains"
        )
    return key

"""PutURLs and PutDiscovered: streams of items, each with an acknowledgement."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from inlink.crawl.intake import NOT_MODIFIED
from inlink.crawl.queues import DiscoveredUrl
from inlink.errors import InlinkError
from inlink.server.urlfrontier.intake import Intake
from inlink.server.urlfrontier.taken import NEVER, Known, Put
from inlink.server.urlfrontier.wire import FAIL, SKIPPED, Peer, decoded, message, packed

PATH, REDIRECT, STATUS = "url.path", "_redirTo", "fetch.statusCode"
ERROR_COUNT, CAUSE, MESSAGE, EXCEPTION = (
    "fetch.error.count",
    "error.cause",
    "error.message",
    "fetch.exception",
)
"""Names of StormCrawler's metadata."""

SEED_SCORE, LINK_SCORE = 1.0, 0.0
"""Scores of a URL without and with a source page: those of a seed and of a link without a score."""

MOST_UNREAD = 10_000
"""Maximum number of acknowledgements that wait to be sent. Beyond it, no further items of their client are read."""

UNREAD_SECONDS = 0.02
"""Seconds after which a client that did not read its acknowledgements is looked at again."""

_ITEM, _ACK = message("URLItem"), message("AckMessage")
_BATCH, _BATCH_ACK = message("DiscoveredBatch"), message("BatchAck")

Intakes = Callable[[Peer, str], Awaitable[Intake]]


Entry = tuple[Callable[[Any], Any], "asyncio.Future[Any]"]
"""What makes an acknowledgement of statuses, and the statuses."""

Held = dict["asyncio.Future[list[int]]", tuple[Intake, str]]


async def put_urls(
    peer: Peer, intakes: Intakes, requests: AsyncIterator[bytes], send: Callable[[bytes], Any]
) -> None:
    """Take in items. Each is acknowledged under its ID, or its URL if it has no ID.

    Acknowledgements come in the order of the items, except those of answers that wait for links.
    """
    held: Held = {}

    async def take(raw: bytes, acks: "asyncio.Queue[Entry | None]") -> Intake | None:
        item = decoded(_ITEM, raw)
        which = item.WhichOneof("item")
        info = item.known.info if which == "known" else item.discovered.info
        name = item.ID or info.url

        def ack(statuses: list[int]) -> Any:
            return _ACK(ID=name, status=statuses[0])

        if which is None or not info.url:
            acks.put_nowait((ack, _decided([SKIPPED])))
            return None
        try:
            intake = await intakes(peer, info.crawlID)
        except InlinkError:
            acks.put_nowait((ack, _decided([FAIL])))
            return None
        if which == "known":
            known = _known_of(info, item.known.refetchable_from_date)
            put = Put([], known)
            if intake.put(put):

                def ready(statuses: "asyncio.Future[list[int]]") -> None:
                    del held[statuses]
                    acks.put_nowait((ack, statuses))

                held[put.statuses] = intake, known.url
                put.statuses.add_done_callback(ready)
                return intake
        else:
            put = Put([_found(info, intake)], None)
            intake.put(put)
        acks.put_nowait((ack, put.statuses))
        return intake

    await _stream(take, requests, send, held)


async def put_discovered(
    peer: Peer, intakes: Intakes, requests: AsyncIterator[bytes], send: Callable[[bytes], Any]
) -> None:
    """Take in batches of discovered URLs. Each batch is acknowledged with a status for each URL, in their order."""

    async def take(raw: bytes, acks: "asyncio.Queue[Entry | None]") -> Intake | None:
        batch = decoded(_BATCH, raw)
        name, count, intake = batch.ID, len(batch.items), None
        by_crawl: dict[str, list[int]] = {}
        for place, info in enumerate(batch.items):
            by_crawl.setdefault(info.crawlID, []).append(place)
        parts: list[asyncio.Future[list[int]]] = []
        for crawl, places in by_crawl.items():
            try:
                intake = await intakes(peer, crawl)
            except InlinkError:
                parts.append(_decided([FAIL] * len(places)))
                continue
            put = Put([_found(batch.items[place], intake) for place in places], None)
            intake.put(put)
            parts.append(put.statuses)

        def ack(decided: list[list[int]]) -> Any:
            statuses = [SKIPPED] * count
            for places, part in zip(by_crawl.values(), decided, strict=True):
                for place, status in zip(places, part, strict=True):
                    statuses[place] = status
            return _BATCH_ACK(ID=name, statuses=statuses)

        acks.put_nowait((ack, asyncio.gather(*parts)))
        return intake

    await _stream(take, requests, send, {})


def _decided(statuses: list[int]) -> "asyncio.Future[list[int]]":
    future = asyncio.get_running_loop().create_future()
    future.set_result(statuses)
    return future


async def _stream(
    take: Callable[[bytes, "asyncio.Queue[Entry | None]"], Awaitable[Intake | None]],
    requests: AsyncIterator[bytes],
    send: Callable[[bytes], Any],
    held: Held,
) -> None:
    """Read messages while there is room, and send acknowledgements at the same time."""
    acks: asyncio.Queue[Entry | None] = asyncio.Queue()

    async def send_all() -> None:
        while (entry := await acks.get()) is not None:
            ack, statuses = entry
            await send(ack(await statuses).SerializeToString())

    sending = asyncio.create_task(send_all())
    try:
        async for raw in requests:
            intake = await take(raw, acks)
            if intake is not None:
                await intake.room()
            while acks.qsize() > MOST_UNREAD and not sending.done():
                await asyncio.sleep(UNREAD_SECONDS)
            if sending.done():
                break
        _release(held)
        await asyncio.gather(*held)
        acks.put_nowait(None)
        await sending
    finally:
        _release(held)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


def _release(held: Held) -> None:
    """Take in the answers of a stream that ends, without waiting for links."""
    for intake, url in list(held.values()):
        intake.release([url])


def _found(info: Any, intake: Intake) -> DiscoveredUrl:
    """A discovered URL, with its metadata. If it has a source page, the link is added to that page."""
    url, key, score = info.url, info.key, SEED_SCORE
    if not info.metadata:
        return url, key, score, b""
    source = _last(info, PATH)
    if source:
        intake.link(source, url)
        score = LINK_SCORE
    return url, key, score, packed(info)


def _last(info: Any, name: str) -> str:
    """The last value of a name in the metadata; empty if there is none."""
    metadata = info.metadata
    if name not in metadata:
        return ""
    values = metadata[name].values
    return values[-1] if values else ""


def _known_of(info: Any, date: int) -> Known:
    """A known URL. StormCrawler's metadata say whether it was fetched, failed, or redirects."""
    if date - time.time() > NEVER:
        # StormCrawler's date for never is in 2099.
        date = 0
    known = Known(info.url, info.key, date)
    if not info.metadata:
        return known
    status = _last(info, STATUS)
    if status.isascii() and status.isdigit() and 100 <= int(status[:9]) <= 599:
        known.status = int(status[:9])
    failures = _last(info, ERROR_COUNT)
    said = [text for text in (_last(info, CAUSE), _last(info, MESSAGE), _last(info, EXCEPTION)) if text]
    if said or failures.strip("0") or (known.status or 0) >= 400:
        known.error = ": ".join(said) or f"failed {failures or 'once'}"
    elif known.status is None or (300 <= known.status < 400 and known.status != NOT_MODIFIED):
        known.redirects_to = _last(info, REDIRECT) or None
    if date > 0:
        known.data = packed(info)
    return known

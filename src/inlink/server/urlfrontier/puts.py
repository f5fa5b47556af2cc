"""PutURLs and PutDiscovered: streams of items, each with an acknowledgement."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

from inlink.crawl.queues import DiscoveredUrl
from inlink.errors import InlinkError
from inlink.server.urlfrontier.intake import Intake
from inlink.server.urlfrontier.messages import message
from inlink.server.urlfrontier.taken import NEVER, NOT_MODIFIED, Known, Put
from inlink.server.urlfrontier.wire import FAIL, SKIPPED, Peer, decoded, now, packed

__all__ = ["Acks", "known_of", "put_discovered", "put_urls"]

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

_ITEM, _ACK = message("URLItem"), message("AckMessage")
_BATCH, _BATCH_ACK = message("DiscoveredBatch"), message("BatchAck")

Intakes = Callable[[Peer, str], Intake]


class Acks:
    """The acknowledgements of one stream, which are sent in order.

    Parameters
    ----------
    send : coroutine function
        Sends an acknowledgement.
    """

    def __init__(self, send: Callable[[Any], Any]) -> None:
        self._send = send
        self._order: deque[_Slot] = deque()
        self._ready: list[Any] = []
        self._bell, self._room = asyncio.Event(), asyncio.Event()
        self._open = 0
        self._ended = False

    def expect(self) -> "_Slot":
        """Expect a further acknowledgement, after those that are expected already."""
        slot = _Slot()
        self._order.append(slot)
        self._open += 1
        return slot

    def out_of_order(self, slot: "_Slot") -> None:
        """Take the acknowledgement that is expected last out of the order, so that it does not hold up others."""
        if slot.ack is None:
            slot.ordered = False
            self._order.pop()

    def add(self, slot: "_Slot", ack: Any) -> None:
        """Send an expected acknowledgement in its turn."""
        slot.ack = ack
        self._open -= 1
        if not slot.ordered:
            self._ready.append(ack)
        while self._order and self._order[0].ack is not None:
            self._ready.append(self._order.popleft().ack)
        self._bell.set()

    async def room(self) -> None:
        """Wait while the client does not read its acknowledgements."""
        if len(self._ready) > MOST_UNREAD:
            self._room.clear()
            await self._room.wait()

    def end(self) -> None:
        """Note that no further acknowledgements are expected."""
        self._ended = True
        self._bell.set()

    async def run(self) -> None:
        """Send acknowledgements until the last was sent."""
        while self._open or self._ready or not self._ended:
            if not self._ready:
                await self._bell.wait()
            self._bell.clear()
            ready, self._ready = self._ready, []
            self._room.set()
            for ack in ready:
                await self._send(ack.SerializeToString())


class _Slot:
    """The place of an acknowledgement among those of its stream."""

    __slots__ = ("ack", "ordered")

    def __init__(self) -> None:
        self.ack: Any = None
        self.ordered = True


async def put_urls(
    peer: Peer, intakes: Intakes, requests: AsyncIterator[bytes], send: Callable[[bytes], Any]
) -> None:
    """Take in items. Each is acknowledged under its ID, or its URL if it has no ID.

    Acknowledgements come in the order of the items, except those of answers that wait for links.
    """
    held: dict[_Slot, tuple[Intake, str]] = {}

    def take(raw: bytes, acks: Acks) -> Intake | None:
        item = decoded(_ITEM, raw)
        slot = acks.expect()
        which = item.WhichOneof("item")
        info = item.known.info if which == "known" else item.discovered.info
        name = item.ID or info.url
        if which is None or not info.url:
            acks.add(slot, _ACK(ID=name, status=SKIPPED))
            return None
        try:
            intake = intakes(peer, info.crawlID)
        except InlinkError:
            acks.add(slot, _ACK(ID=name, status=FAIL))
            return None

        def done(statuses: Sequence[int]) -> None:
            held.pop(slot, None)
            acks.add(slot, _ACK(ID=name, status=statuses[0]))

        if which == "known":
            known = known_of(info, item.known.refetchable_from_date)
            if intake.put(Put([], known, done)):
                held[slot] = intake, known.url
                acks.out_of_order(slot)
        else:
            intake.put(Put([_found(info, intake)], None, done))
        return intake

    try:
        await _stream(take, requests, send, lambda: _release(held))
    finally:
        _release(held)


async def put_discovered(
    peer: Peer, intakes: Intakes, requests: AsyncIterator[bytes], send: Callable[[bytes], Any]
) -> None:
    """Take in batches of discovered URLs. Each batch is acknowledged with a status for each URL, in their order."""

    def take(raw: bytes, acks: Acks) -> Intake | None:
        batch = decoded(_BATCH, raw)
        slot = acks.expect()
        name, count, last = batch.ID, len(batch.items), None
        by_crawl: dict[str, list[int]] = {}
        for place, info in enumerate(batch.items):
            by_crawl.setdefault(info.crawlID, []).append(place)
        statuses, left = [SKIPPED] * count, len(by_crawl)

        def done(places: list[int], told: Sequence[int]) -> None:
            nonlocal left
            for place, status in zip(places, told, strict=True):
                statuses[place] = status
            left -= 1
            if left == 0:
                acks.add(slot, _BATCH_ACK(ID=name, statuses=statuses))

        if not by_crawl:
            acks.add(slot, _BATCH_ACK(ID=name))
        for crawl, places in by_crawl.items():
            try:
                last = intakes(peer, crawl)
            except InlinkError:
                done(places, [FAIL] * len(places))
                continue
            found = [_found(batch.items[place], last) for place in places]
            last.put(Put(found, None, partial(done, places)))
        return last

    await _stream(take, requests, send, lambda: None)


async def _stream(
    take: Callable[[bytes, Acks], Intake | None],
    requests: AsyncIterator[bytes],
    send: Callable[[bytes], Any],
    ended: Callable[[], None],
) -> None:
    """Read messages while there is room, and send acknowledgements at the same time."""
    acks = Acks(send)
    sending = asyncio.create_task(acks.run())
    try:
        async for raw in requests:
            intake = take(raw, acks)
            if intake is not None:
                await intake.room()
            await acks.room()
            if sending.done():
                break
        ended()
        acks.end()
        await sending
    finally:
        if not sending.done():
            sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


def _release(held: "dict[_Slot, tuple[Intake, str]]") -> None:
    """Take in the answers of a stream that ends, without waiting for links."""
    for intake, url in held.values():
        intake.release([url])
    held.clear()


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


def known_of(info: Any, date: int) -> Known:
    """A known URL. StormCrawler's metadata say whether it was fetched, failed, or redirects."""
    if date - now() > NEVER:
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

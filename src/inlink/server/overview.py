"""The state of all shards of a crawl, for the dashboard of one of them.

The other servers are asked while somebody looks. Each has a thread, so a server that does not answer holds nothing up.
"""

import asyncio
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from inlink.client.channel import Channel
from inlink.crawl.questions.whole import standing_of
from inlink.errors import InlinkError, ParameterError
from inlink.protocol import Standing
from inlink.server.snapshots import SECONDS, Snapshot, Snapshots
from inlink.urls.shards import Shard

WAIT_SECONDS = 1.0
"""Seconds for which a caller waits for the other servers."""

KEPT_SECONDS = 5.0
"""Seconds for which the last answer of a server is shown."""


class ShardState(msgspec.Struct, frozen=True):
    """A shard of a crawl.

    Parameters
    ----------
    number : int or None
        None if the server was never there.
    url : str or None
        URL of the crawl on its server; None for the server that is asked.
    fault : str or None
        The reason why there is no snapshot; None if there is one.
    snapshot : Snapshot or None
    """

    number: int | None
    url: str | None
    fault: str | None
    snapshot: Snapshot | None


class AllShards(msgspec.Struct, frozen=True):
    """The state of a crawl of several shards.

    Parameters
    ----------
    count : int
        Number of shards.
    shards : list of ShardState
        Those that are known, by number.
    standing : Standing
        Sums of the shards that are there. There is no harvest unless all are.
    pages_now, errors_now : float or None
        Pages and errors a second of the shards that are there; None if none has a rate yet.
    """

    count: int
    shards: list[ShardState]
    standing: Standing
    pages_now: float | None
    errors_now: float | None


class Overview:
    """Asks the servers of the other shards for their state.

    Parameters
    ----------
    snapshots : Snapshots
        The snapshots of the crawl on this server.
    urls : sequence of str
        The URLs of the crawls on the other servers. The crawl's own URL may be among them.

    Raises
    ------
    inlink.errors.ParameterError
        If a URL is not that of a crawl.
    """

    def __init__(self, snapshots: Snapshots, urls: Sequence[str]) -> None:
        self._snapshots = snapshots
        self._channels = [Channel(url) for url in urls]
        self._threads = ThreadPoolExecutor(max(len(urls), 1), "inlink-overview")
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._asked: dict[str, float] = {}
        self._snapshot: dict[str, tuple[float, Snapshot]] = {}
        self._fault: dict[str, str] = {}
        self._numbers: dict[str, int] = {}

    async def latest(self) -> AllShards:
        """The state of all shards, as of the last seconds.

        Raises
        ------
        inlink.errors.ParameterError
            If the crawl is no shard.
        """
        for channel in self._channels:
            self._ask(channel)
        own = await self._snapshots.latest()
        if self._asking:
            await asyncio.wait(self._asking.values(), timeout=WAIT_SECONDS)
        if own.shard is None:
            raise ParameterError("this crawl is no shard: serve it with --shard K/N")
        here = Shard.from_text(own.shard)
        shards = [ShardState(here.number, None, own.fault, own if own.fault is None else None)]
        others = [state for state in map(self._state, self._channels) if state.number != here.number]
        missing = {*range(1, here.count + 1)} - {state.number for state in (*shards, *others)}
        unmet = [state for state in others if state.number is None]
        if len(missing) == len(unmet) == 1:
            others.remove(unmet[0])
            others.append(msgspec.structs.replace(unmet[0], number=missing.pop()))
        shards += others
        shards.sort(key=lambda state: math.inf if state.number is None else state.number)
        there = [state.snapshot for state in shards if state.snapshot is not None]
        standings = [shot.standing for shot in there if shot.standing is not None]
        rates = [
            [shot.pages.now for shot in there if shot.pages],
            [shot.errors.now for shot in there if shot.errors],
        ]
        pages, errors = ([rate for rate in some if rate is not None] for some in rates)
        return AllShards(
            here.count,
            shards,
            standing_of(standings, 0, whole=len(standings) == here.count),
            sum(pages) if pages else None,
            sum(errors) if errors else None,
        )

    async def close(self) -> None:
        """Stop asking."""
        for channel in self._channels:
            channel.close()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        self._threads.shutdown()

    def _state(self, channel: Channel) -> ShardState:
        url = channel.place.url
        when, snapshot = self._snapshot.get(url, (-math.inf, Snapshot(0.0)))
        is_new = time.monotonic() - when < KEPT_SECONDS
        fault = snapshot.fault if is_new else self._fault.get(url, "the server does not answer")
        return ShardState(self._numbers.get(url), url, fault, snapshot if fault is None else None)

    def _ask(self, channel: Channel) -> None:
        url = channel.place.url
        if url not in self._asking and time.monotonic() - self._asked.get(url, -math.inf) >= SECONDS:
            self._asked[url] = time.monotonic()
            task = asyncio.ensure_future(self._take(channel))
            self._asking[url] = task
            task.add_done_callback(lambda _: self._asking.pop(url))

    async def _take(self, channel: Channel) -> None:
        url = channel.place.url

        def call() -> Snapshot:
            return channel.call("GET", "events", Snapshot, at_once=True)

        try:
            snapshot = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except InlinkError as error:
            self._snapshot.pop(url, None)
            self._fault[url] = str(error)
            return
        self._fault.pop(url, None)
        self._snapshot[url] = time.monotonic(), snapshot
        if snapshot.shard is not None:
            self._numbers[url] = Shard.from_text(snapshot.shard).number

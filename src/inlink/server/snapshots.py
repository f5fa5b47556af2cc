"""The state of a crawl, once a second. One snapshot is computed and sent to all listeners.

Snapshots are computed only while there are listeners. They are numbered, and the last snapshots are kept. A browser
that was away for a moment sends the number of its last snapshot (``Last-Event-ID``) and gets the snapshots after it.
"""

import asyncio
import contextlib
import math
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable

import msgspec

from inlink.crawl.operator import Activity
from inlink.errors import InlinkError
from inlink.protocol import Standing
from inlink.server.keeper import BusyError, Keeper

SECONDS = 1.0
"""Seconds from one snapshot to the next."""

KEPT = 120
"""Number of snapshots that are kept for listeners that come back."""

MOST_LISTENERS = 64
"""Maximum number of listeners of a crawl."""

RATE_SECONDS = 10.0
"""Seconds over which the present rates are taken."""


class Rate(msgspec.Struct, frozen=True):
    """Pages or errors a second.

    Parameters
    ----------
    total : int
        Number since the server was started.
    now : float or None
        Rate a second, over the last ten seconds or since the first snapshot; None in the first snapshot.
    mean : float
        Rate a second since the server was started.
    """

    total: int
    now: float | None
    mean: float


class Snapshot(msgspec.Struct, frozen=True):
    """The state of a crawl at one moment.

    Parameters
    ----------
    seconds : float
        Seconds since the server was started.
    fault : str or None
        The reason why there are no figures now; None if there are.
    standing : Standing or None
    activity : Activity or None
    pages, errors : Rate or None
    shard : str or None
        Which shard of a crawl this is, such as ``2/4``; None if the crawl has no shards.
    """

    seconds: float
    fault: str | None = None
    standing: Standing | None = None
    activity: Activity | None = None
    pages: Rate | None = None
    errors: Rate | None = None
    shard: str | None = None


class Snapshots:
    """The snapshots of a crawl, and their listeners.

    Attributes
    ----------
    listeners : int
        Number of listeners.
    ticking : Task or None
        Makes snapshots while there are listeners.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper, self._started = keeper, time.monotonic()
        # A listener of an earlier server counted otherwise.
        self._run, self._number = secrets.token_hex(4), 0
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        self.listeners = 0
        self.ticking: asyncio.Task[None] | None = None
        self._bell = asyncio.Event()
        self._past: deque[tuple[float, tuple[int, ...]]] = deque()
        self._latest = -math.inf, Snapshot(0.0)
        # The counts from before the crawl was opened again, and its last counts.
        self._before: tuple[int, ...] = (0, 0)
        self._last: tuple[int, ...] = (0, 0)
        self._shard: str | None = None

    async def latest(self) -> Snapshot:
        """A snapshot of the last second, for a caller that does not listen."""
        when, snapshot = self._latest
        return snapshot if time.monotonic() - when < SECONDS else await self._snapshot()

    async def events(self, last_id: str, check: Callable[[], None]) -> AsyncIterator[bytes]:
        """Snapshots as server-sent events, until the server ends.

        Parameters
        ----------
        last_id : str
            ``Last-Event-ID``; empty for a new listener.
        check : callable
            Raises an error if the listener has lost its access. Then the events end.

        Raises
        ------
        BusyError
            Before the first event, if too many listen.
        """
        if self.listeners >= MOST_LISTENERS:
            raise BusyError(f"{self.listeners} listen to {self._keeper.name}: try again later")
        seen = self._seen(last_id)
        self.listeners += 1
        try:
            if self.ticking is None or self.ticking.done():
                self.ticking = asyncio.create_task(self._tick())
            yield b"retry: 2000\n\n"
            while not self._keeper.ending:
                bell = self._bell
                for number, text in [row for row in self._kept if row[0] > seen]:
                    yield b"id: %s-%d\ndata: %s\n\n" % (self._run.encode(), number, text)
                    seen = number
                await bell.wait()
                with contextlib.suppress(InlinkError):
                    check()
                    continue
                return
        finally:
            self.listeners -= 1

    def _seen(self, last_id: str) -> int:
        """The number of the last snapshot that a listener has. The snapshots after it are sent."""
        run, _, number = last_id.partition("-")
        if run == self._run and number.isascii() and number.isdigit() and len(number) < 16:
            return min(int(number), self._number)
        return self._number

    async def _tick(self) -> None:
        """Make snapshots while there are listeners."""
        while self.listeners and not self._keeper.ending:
            began = time.monotonic()
            snapshot = await self._snapshot()
            self._number += 1
            self._kept.append((self._number, msgspec.json.encode(snapshot)))
            self._ring()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(began + SECONDS - time.monotonic(), 0.05)):
                    await self._keeper.ended.wait()
        self._ring()

    def _ring(self) -> None:
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()

    async def _snapshot(self) -> Snapshot:
        try:
            standing, activity, rules = await self._keeper.run(
                lambda opened: (opened.view.standing(0), opened.activity(), opened.settings.rules)
            )
            self._shard = None if rules is None else rules.shard
        except InlinkError as error:
            fault = self._keeper.without_folder(str(error))
            snapshot = Snapshot(time.monotonic() - self._started, fault, shard=self._shard)
        else:
            pages, errors = self._rates(activity.pages, activity.errors)
            seconds = self._past[-1][0] - self._started
            snapshot = Snapshot(seconds, None, standing, activity, pages, errors, self._shard)
        self._latest = time.monotonic(), snapshot
        return snapshot

    def _rates(self, *counts: int) -> list[Rate]:
        """The rates of pages and errors, whose counts begin at 0 again when the crawl is opened again."""
        now, past = time.monotonic(), self._past
        if any(count < last for count, last in zip(counts, self._last, strict=True)):
            self._before = tuple(map(sum, zip(self._before, self._last, strict=True)))
        self._last = counts
        totals = tuple(map(sum, zip(self._before, counts, strict=True)))
        # After a pause without listeners the rate would be that of the pause.
        while past and now - past[0][0] > RATE_SECONDS + SECONDS / 2:
            past.popleft()
        past.append((now, totals))
        first, before = past[0]
        return [
            Rate(
                total,
                (total - earlier) / (now - first) if now > first else None,
                total / (now - self._started),
            )
            for total, earlier in zip(totals, before, strict=True)
        ]

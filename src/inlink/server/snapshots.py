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

from inlink.crawl.activity import Activity
from inlink.crawl.crawl import Crawl
from inlink.errors import InlinkError
from inlink.protocol import Standing
from inlink.server.keeper import BusyError, Keeper

__all__ = ["Rate", "Snapshot", "Snapshots"]

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
    """

    seconds: float
    fault: str | None = None
    standing: Standing | None = None
    activity: Activity | None = None
    pages: Rate | None = None
    errors: Rate | None = None


class Snapshots:
    """The snapshots of a crawl, and their listeners.

    Parameters
    ----------
    keeper : Keeper
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper, self._started = keeper, time.monotonic()
        # A listener of an earlier server counted otherwise.
        self._run, self._number = secrets.token_hex(4), 0
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        self._listeners = 0
        self._ticking: asyncio.Task[None] | None = None
        self._bell = asyncio.Event()
        self._past: deque[tuple[float, int, int]] = deque()
        self._latest = -math.inf, Snapshot(0.0)
        # The counts from before the crawl was opened again, and its last counts.
        self._before, self._last = (0, 0), (0, 0)

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
        if self._listeners >= MOST_LISTENERS:
            raise BusyError(f"{self._listeners} listen to {self._keeper.name}: try again later")
        seen = self._seen(last_id)
        self._listeners += 1
        try:
            if self._ticking is None or self._ticking.done():
                self._ticking = asyncio.create_task(self._tick())
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
            self._listeners -= 1

    def _seen(self, last_id: str) -> int:
        """The number of the last snapshot that a listener has. The snapshots after it are sent."""
        run, _, number = last_id.partition("-")
        if run == self._run and number.isascii() and number.isdigit() and len(number) < 16:
            return min(int(number), self._number)
        return self._number

    async def _tick(self) -> None:
        """Make snapshots while there are listeners."""
        while self._listeners and not self._keeper.ending:
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
        found = await self._computed()
        self._latest = time.monotonic(), found
        return found

    async def _computed(self) -> Snapshot:
        def look(opened: Crawl) -> tuple[Standing, Activity]:
            return opened.view.standing(0), opened.activity()

        try:
            standing, activity = await self._keeper.run(look)
        except InlinkError as error:
            return Snapshot(time.monotonic() - self._started, self._keeper.without_folder(str(error)))
        return self._told(standing, activity)

    def _told(self, standing: Standing, activity: Activity) -> Snapshot:
        now = time.monotonic()
        counted = activity.pages, activity.errors
        if counted[0] < self._last[0] or counted[1] < self._last[1]:
            self._before = self._before[0] + self._last[0], self._before[1] + self._last[1]
        self._last = counted
        pages, errors = self._before[0] + counted[0], self._before[1] + counted[1]
        past = self._past
        # After a pause without listeners the rate would be that of the pause.
        while past and now - past[0][0] > RATE_SECONDS + SECONDS / 2:
            past.popleft()
        first = past[0] if past else None
        past.append((now, pages, errors))
        seconds = now - self._started

        def rate(total: int, before: int | None) -> Rate:
            span = now - first[0] if first is not None else 0.0
            present = None if before is None or span <= 0 else (total - before) / span
            return Rate(total, present, total / seconds if seconds > 0 else 0.0)

        return Snapshot(
            seconds,
            None,
            standing,
            activity,
            rate(pages, None if first is None else first[1]),
            rate(errors, None if first is None else first[2]),
        )

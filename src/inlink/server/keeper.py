"""A crawl of a server. It is open in a thread of its own, which makes all calls on it.

Calls wait in three lanes. Requests for tasks go first, then changes, then calls that only read. A report is handled in
steps of about two milliseconds, so that a request for tasks does not wait for a long report. All results that are ready
go back to the event loop together.

If there are no other calls, the thread calls the crawl once a second. So sessions end, leases expire and rankings are
adopted while all spiders are silent. If the crawl refuses all calls, for example after a full disk, it is closed and
opened again. The other crawls of the server go on.
"""

import asyncio
import logging
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from enum import IntEnum
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from inlink.base.table import counted
from inlink.client.remote import LONGEST_WAIT
from inlink.crawl.crawl import Crawl
from inlink.errors import InlinkError, StoreError
from inlink.protocol import Answer, Ask, Link, Receipt, Tasks

T = TypeVar("T")

log = logging.getLogger("inlink.server")

MOST_QUEUED = 64
"""Maximum number of calls that may wait for a crawl at a time."""

LOOK_SECONDS = 1.0
"""Seconds after which a waiting request asks the crawl again, and after which an idle crawl is called."""

BELL_SECONDS = 0.02
"""Seconds from a change until requests that wait for tasks are woken, so that many changes wake them once."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a crawl that refuses all calls is opened again; they double each time."""


class Lane(IntEnum):
    """The order of calls."""

    TASKS, CHANGES, LOOKS = range(3)


class BusyError(InlinkError):
    """Too many calls wait for a crawl, or the server is ending: try again later."""


class _Job:
    """A call on the crawl: a function, or a generator that is driven step by step."""

    __slots__ = ("begin", "future", "lane", "steps")

    def __init__(self, begin: Callable[[Crawl], Any], lane: Lane, future: "asyncio.Future[Any]") -> None:
        self.begin, self.lane, self.future = begin, lane, future
        self.steps: Generator[None, None, Any] | None = None

    def step(self, crawl: Crawl) -> tuple[bool, Any]:
        """Go on; return whether the call has ended, and its result."""
        if self.steps is None:
            result = self.begin(crawl)
            if not isinstance(result, Generator):
                return True, result
            self.steps = result
        try:
            next(self.steps)
        except StopIteration as end:
            return True, end.value
        return False, None


class Keeper:
    """A crawl of a server.

    Parameters
    ----------
    name : str
        Name of the crawl in requests.
    folder : Path
        The crawl's folder, made if it does not exist.
    **settings
        Settings of :class:`inlink.Crawl`.

    Attributes
    ----------
    fault : str or None
        The reason why the crawl cannot be used now, without the name of its folder; None if it can.
    ending : bool
        Whether the server is ending: requests that wait for tasks end at once.
    ended : asyncio.Event
        Set when the server begins to end.
    closed : bool
        Whether the crawl is closed, so that it refuses all calls.
    reports : mapping of int to asyncio.Lock
        The locks of the sessions that report now.
    """

    def __init__(self, name: str, folder: Path, **settings: Any) -> None:
        self.name, self.folder, self._settings = name, folder, settings
        self.fault: str | None = None
        self.ending = False
        self.ended = asyncio.Event()
        self._crawl: Crawl | None = None
        self._came: SimpleQueue[_Job | None] = SimpleQueue()
        self._lanes: tuple[deque[_Job], ...] = tuple(deque() for _ in Lane)
        self._done: deque[tuple[asyncio.Future[Any], bool, Any]] = deque()
        self._queued = 0
        self._delivering = self._ringing = False
        # A lock ends when no client reports for its session.
        self.reports: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._loop = asyncio.get_running_loop()
        self._bell = self._loop.create_future()
        self.closed = False
        self._turns = 0
        self._thread = threading.Thread(target=self._work, name=f"inlink-{name}", daemon=True)

    # -- for the event loop -------------------------------------------------------------------------------------------

    async def open(self) -> str:
        """Open the crawl; return one line about it.

        Raises
        ------
        inlink.errors.InlinkError
            If the crawl cannot be opened.
        """
        self._crawl = await asyncio.to_thread(Crawl, self.folder, **self._settings)
        # Others may change while it runs, and the folder keeps them.
        self._settings = {name: value for name, value in self._settings.items() if name == "policy"}
        self._thread.start()
        return self._crawl.recovered

    async def close(self) -> None:
        """Finish the waiting calls, and close the crawl."""
        self.end()
        self.closed = True
        if self._thread.is_alive():
            self._came.put(None)
            await asyncio.to_thread(self._thread.join)

    def end(self) -> None:
        """End the requests that wait for tasks."""
        self.ending = True
        self.ended.set()
        self._rung()

    async def run(self, work: Callable[[Crawl], T], lane: Lane = Lane.LOOKS) -> T:
        """Call ``work`` in the crawl's thread.

        Raises
        ------
        BusyError
            If too many calls wait.
        inlink.errors.StoreError
            If the crawl cannot be used now.
        """
        return cast(T, await self._submit(work, lane))

    async def change(self, work: Callable[[Crawl], T]) -> T:
        """Call ``work``, which changes the crawl and may lead to tasks."""
        result = cast(T, await self._submit(work, Lane.CHANGES))
        self._ring()
        return result

    async def report(self, session: int, answers: list[Answer], request: int) -> list[Receipt]:
        """Take in answers: see :meth:`inlink.crawl.desk.Desk.report`. A session has one report at a time."""
        turn = self.reports.setdefault(session, asyncio.Lock())
        async with turn:
            begun = lambda crawl: crawl.desk.reporting(session, answers, request)  # noqa: E731
            receipts = cast(list[Receipt], await self._submit(begun, Lane.CHANGES))
        self._ring()
        return receipts

    def owner_of(self, session: int) -> str | None:
        """The owner of a session; None if it has ended, or if the crawl cannot be used now."""
        crawl = self._crawl
        return None if crawl is None else crawl.desk.owner_of(session)

    def without_folder(self, text: str) -> str:
        """Replace the crawl's folder, which clients must not see, by the crawl's name in a message."""
        return text.replace(str(self.folder), self.name)

    async def next(self, ask: Ask) -> Tasks:
        """Hand out tasks, and wait for a task if there is none now: see :meth:`inlink.crawl.desk.Desk.next`."""
        until = time.monotonic() + min(ask.wait, LONGEST_WAIT)
        while True:
            bell = self._bell
            tasks, over = cast(
                tuple[Tasks, bool], await self._submit(lambda crawl: _asked(crawl, ask), Lane.TASKS)
            )
            left = until - time.monotonic()
            if tasks.tasks or over or left <= 0 or self.ending:
                return tasks
            pause = LOOK_SECONDS if tasks.due_in is None else max(tasks.due_in, 0.005)
            await asyncio.wait({bell}, timeout=min(pause, left, LOOK_SECONDS))

    def _ring(self) -> None:
        """Wake the requests that wait for tasks, after a short delay."""
        if not self._ringing:
            self._ringing = True
            self._loop.call_later(BELL_SECONDS, self._rung)

    def _rung(self) -> None:
        self._ringing = False
        bell, self._bell = self._bell, self._loop.create_future()
        bell.set_result(None)

    def _submit(self, begin: Callable[[Crawl], Any], lane: Lane) -> "asyncio.Future[Any]":
        if self._queued >= MOST_QUEUED:
            waiting = counted(self._queued, "request waits", "requests wait")
            raise BusyError(f"{waiting} for {self.name}: try again in a second")
        if self.closed:
            raise BusyError(f"{self.name} is closed: try again later")
        if self.fault is not None:
            raise StoreError(self.fault)
        future = self._loop.create_future()
        self._queued += 1
        self._came.put(_Job(begin, lane, future))
        return future

    def _deliver(self) -> None:
        self._delivering = False
        while self._done:
            future, sound, result = self._done.popleft()
            self._queued -= 1
            if future.cancelled():
                continue
            if sound:
                future.set_result(result)
            else:
                future.set_exception(result)

    # -- in the crawl's thread ----------------------------------------------------------------------------------------

    def _work(self) -> None:
        looked = time.monotonic()
        while self._gather(looked + LOOK_SECONDS):
            self._turns += 1
            # Every eighth turn starts with the last lane, so that no lane waits for ever.
            lanes = self._lanes if self._turns % 8 else self._lanes[::-1]
            lane = next((lane for lane in lanes if lane), None)
            if lane is not None:
                self._proceed(lane)
            if time.monotonic() - looked >= LOOK_SECONDS:
                looked = time.monotonic()
                self._look()
        for lane in self._lanes:
            while lane:
                self._proceed(lane)
        self._shut()

    def _gather(self, until: float) -> bool:
        """Sort new calls into the lanes; wait for a call if all are empty. Return False at the end."""
        idle = not any(self._lanes)
        while True:
            try:
                wait = max(until - time.monotonic(), 0.0) if idle else 0.0
                job = self._came.get(idle and wait > 0, wait or None)
            except Empty:
                return True
            if job is None:
                return False
            self._lanes[job.lane].append(job)
            idle = False

    def _proceed(self, lane: "deque[_Job]") -> None:
        job, sound, result = lane[0], True, None
        try:
            if job.steps is not None or not job.future.cancelled():
                if self._crawl is None:
                    raise StoreError(self.fault or f"{self.name} is closed")
                over, result = job.step(self._crawl)
                if not over:
                    return
        except Exception as error:
            sound, result = False, error
            if isinstance(error, InlinkError):
                # The frames of the call would keep the crawl's columns in memory, and nobody needs them.
                error.__traceback__ = error.__context__ = None
        lane.popleft()
        self._done.append((job.future, sound, result))
        if not self._delivering:
            self._delivering = True
            self._loop.call_soon_threadsafe(self._deliver)
        if not sound and (not isinstance(result, InlinkError) or isinstance(result, StoreError)):
            self._look()

    def _look(self) -> None:
        """Let the crawl do its upkeep. If the crawl refuses all calls, open it again."""
        try:
            if self._crawl is not None:
                self._crawl.next(0)
                return
        except Exception as error:
            log.error("%s: %s", self.name, error)
            self._note_fault(error)
            self._shut()
        self._reopen()

    def _shut(self) -> None:
        crawl, self._crawl = self._crawl, None
        if crawl is not None:
            try:
                crawl.close()
            except Exception as error:
                log.error("%s was not closed in order: %s", self.name, error)

    def _note_fault(self, error: Exception) -> None:
        reason = self.without_folder(str(error))
        self.fault = f"{self.name} is closed until it can be opened again: {reason}"

    _pause, _again = FIRST_PAUSE, 0.0

    def _reopen(self) -> None:
        if time.monotonic() < self._again:
            return
        try:
            self._crawl = Crawl(self.folder, **self._settings)
        except Exception as error:
            self._note_fault(error)
            self._again = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        else:
            log.warning("%s is open again: %s", self.name, self._crawl.recovered)
            self.fault, self._pause = None, FIRST_PAUSE


def _asked(crawl: Crawl, ask: Ask) -> tuple[Tasks, bool]:
    """Get tasks for a session; return them, and whether the crawl has ended."""
    tasks = crawl.desk.next(ask.session, ask.n, ask.request, lost=ask.lost)
    return tasks, not (tasks.tasks or tasks.paused) and crawl.due_in() is None


def warm_up() -> None:
    """Run a small crawl, so that all modules are loaded and all kernels compiled before the first request."""
    with tempfile.TemporaryDirectory() as folder, Crawl(Path(folder) / "crawl") as crawl:
        crawl.seed([("http://a.example/", 1.0), Link("http://b.example/", data=b"x")])
        first, second = crawl.next(2)
        crawl.crawled(first, ["/x", ("/y", 0.5)], content_hash=b"x")
        crawl.failed(second, status=503)
        crawl.reload()
        crawl.why("http://a.example/x")
        crawl.view.order(1)
        crawl.view.find("x")
        crawl.view.links("http://a.example/x", "to")
        crawl.standing()

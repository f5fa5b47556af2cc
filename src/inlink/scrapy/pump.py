"""The pump: the only coroutine that calls the crawl while a spider runs.

Each round hands in seeds, then answers, and asks for as many tasks as there is room for. A round begins if there are
seeds or answers to hand in, if there is room for tasks, or if a page has become due. If several servers share the crawl
and one of them is away, the round goes on after a short time: what was to be handed in waits beside it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from scrapy import Request

from inlink.client.spider import Client
from inlink.errors import InlinkError
from inlink.protocol import Answer, AnyLink, HostDelay, Receipt, Task
from inlink.scrapy.visits import Visit

log = logging.getLogger("inlink.scrapy")

LONGEST_LOOK = 1.0
"""Seconds between two requests to a crawl that has no tasks now. Another process may have seeded it.

For a spider that holds no task, a server may delay its reply by this time.
"""


LONGEST_HAND_IN = 0.25
"""Seconds for which a round waits until seeds and answers are taken in. After that they are taken in beside it."""


class Told(NamedTuple):
    """An answer to be handed to the crawl, and its visit. ``follower`` is the request that a redirect leads to."""

    answer: Answer
    visit: Visit | None = None
    follower: Request | None = None


class Pump:
    """Moves seeds and answers to the crawl, and tasks from it.

    Parameters
    ----------
    client : Client
    ahead : int
        Maximum number of tasks that are kept ready.
    ready : callable
        Returns the number of tasks that are ready.
    take : callable
        Called with new tasks; makes them ready.
    taken_in : callable
        Called with each answer that the crawl has taken in, and its receipt.
    failed : callable
        Called if the crawl cannot go on. The reason has been logged.

    Attributes
    ----------
    due_in : float or None
        From the crawl's last reply: seconds until there may be more tasks even without any answer; None if only answers
        lead to more.
    others_busy : bool
        From the crawl's last reply: whether other sessions hold tasks, or the crawl is paused. Then tasks may follow.
    """

    def __init__(
        self,
        client: Client,
        ahead: int,
        ready: Callable[[], int],
        take: Callable[[list[Task]], None],
        taken_in: Callable[[Told, Receipt], None],
        failed: Callable[[], None],
    ) -> None:
        self.client, self._ahead, self._ready = client, ahead, ready
        self._take, self._taken_in, self._failed = take, taken_in, failed
        self.due_in: float | None = 0.0
        self.others_busy = False
        self._seeds: list[AnyLink] = []
        self._entries: list[tuple[str, float | None, float | None]] = []
        self._answers: list[Told] = []
        # Number of tasks without an answer.
        self._held = 0
        # Whether the crawl had fewer tasks than there was room for.
        self._dry = False
        self._closing = self._under_way = False
        # Seeds and answers that are being taken in.
        self._works: set[asyncio.Future[Any]] = set()
        self._work = asyncio.Event()
        self._work.set()
        self._alarm: asyncio.TimerHandle | None = None
        self._running = asyncio.ensure_future(self._run())

    def seed(self, *links: AnyLink) -> None:
        """Hand in seeds with the next round."""
        self._seeds += links
        self._work.set()

    def sitemap(self, entries: list[tuple[str, float | None, float | None]]) -> None:
        """Hand in the entries of a sitemap with the next round."""
        self._entries += entries
        self._work.set()

    def tell(self, told: Told) -> None:
        """Hand in an answer with the next round."""
        self._answers.append(told)
        self._work.set()

    def ask(self) -> None:
        """Ask for tasks, if the crawl may have any."""
        if not self._dry:
            self._work.set()

    @property
    def busy(self) -> bool:
        """True while a round runs or is about to run, and while the crawl takes in seeds or answers."""
        return self._under_way or self._work.is_set() or bool(self._works)

    async def close(self) -> None:
        """Hand in everything that is left, ask for no more tasks, and end."""
        self._closing = True
        self._work.set()
        await self._running
        if self._alarm is not None:
            self._alarm.cancel()

    async def _run(self) -> None:
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                self._under_way = True
                await self._round()
                self._under_way = False
                if self._closing:
                    if not (self._answers or self._seeds or self._entries or self._works):
                        return
                    self._work.set()
        except InlinkError as error:
            log.error("%s", error)
        except Exception:
            log.exception("the crawl cannot go on")
        for work in self._works:
            work.cancel()
        self._entries, self._works = [], set()
        self._answers, self._seeds, self.due_in, self.others_busy = [], [], None, False
        self._work.clear()
        self._under_way = False
        self._failed()

    async def _round(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        seeds, self._seeds = self._seeds, []
        if seeds:
            await self._beside(self.client.seed(seeds))
        entries, self._entries = self._entries, []
        if entries:
            await self._beside(self.client.sitemap(entries))
        answers, self._answers = self._answers, []
        if answers:
            parts = self.client.split([told.answer for told in answers])
            await self._beside(*(self._report([answers[k] for k in places]) for places in parts))
        elif self._works:
            await self._beside()
        room = self._ahead - self._ready()
        if self._closing or room <= 0:
            return
        clock = asyncio.get_running_loop().time
        # The server may delay its reply only if no answer has to wait for it.
        may_wait, began = self.others_busy and self._held <= 0, clock()
        found = await self.client.next(room, LONGEST_LOOK if may_wait else 0.0)
        self._held += len(found.tasks)
        self.due_in, self.others_busy = found.due_in, found.paused or found.out_elsewhere > 0
        self._dry = len(found.tasks) < room
        if self._dry:
            wait = LONGEST_LOOK if self.due_in is None else min(max(self.due_in, 0.01), LONGEST_LOOK)
            wait = max(wait - (clock() - began), 0.01)
            self._alarm = asyncio.get_running_loop().call_later(wait, self._work.set)
        self._take(found.tasks)

    async def _beside(self, *works: Awaitable[Any]) -> None:
        """Do works beside each other, and go on without those that take long; a round follows when they have ended."""
        begun = {asyncio.ensure_future(work) for work in works}
        self._works |= begun
        # A spider that closes has nothing else to do.
        waits = self._works if self._closing else begun
        if waits:
            await asyncio.wait(waits, timeout=LONGEST_HAND_IN)
        for work in [work for work in self._works if work.done()]:
            self._works.remove(work)
            work.result()
        for work in begun & self._works:
            work.add_done_callback(lambda _: self._work.set())

    async def _report(self, answers: list[Told]) -> None:
        receipts = await self.client.report([told.answer for told in answers])
        for told, receipt in zip(answers, receipts, strict=True):
            if not isinstance(told.answer, HostDelay):
                self._held -= receipt.task is None
                self._taken_in(told, receipt)

"""The pump: the one coroutine that speaks with the crawl while a spider runs.

Each round hands in seeds, then answers, and asks for as many tasks as there is room for. A round begins when there is
something to hand in, when room for tasks has come, or when something has become due; never for nothing.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from scrapy import Request

from inlink.client import Client
from inlink.errors import InlinkError
from inlink.protocol import Answer, AnyLink, HostDelay, Receipt, Task
from inlink.scrapy.visits import Visit

__all__ = ["Pump", "Told"]

log = logging.getLogger("inlink.scrapy")

LONGEST_LOOK = 1.0  # seconds between two looks at a crawl that has nothing to give: others may have seeded it


class Told(NamedTuple):
    """An answer on its way to the crawl, of what visit; ``follower`` is the request that a redirect leads to."""

    answer: Answer
    visit: Visit | None = None
    follower: Request | None = None


class Pump:
    """Moves seeds, answers and tasks.

    Parameters
    ----------
    client : Client
    ahead : int
        Tasks that are held ready at most.
    ready : callable
        How many are.
    take : callable
        Gets the tasks that have come, and makes them ready.
    taken_in : callable
        Gets each answer that the crawl has taken in, and what it said to it.
    failed : callable
        Called when the crawl cannot go on; the reason was logged.

    Attributes
    ----------
    due_in : float or None
        Seconds until there may be more tasks even if nobody answers, as the crawl said last; None if only answers can
        lead to more.
    others_busy : bool
        Whether other sessions hold tasks, or the crawl is paused, as the crawl said last: more tasks may come.
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
        self._answers: list[Told] = []
        self._dry = False  # the crawl has nothing more to give before something happens
        self._closing = self._under_way = False
        self._work = asyncio.Event()
        self._work.set()
        self._alarm: asyncio.TimerHandle | None = None
        self._running = asyncio.ensure_future(self._run())

    def seed(self, *links: AnyLink) -> None:
        """Hand in seeds with the next round."""
        self._seeds += links
        self._work.set()

    def tell(self, told: Told) -> None:
        """Hand in an answer with the next round."""
        self._answers.append(told)
        self._work.set()

    def ask(self) -> None:
        """Ask for tasks, if there may be some."""
        if not self._dry:
            self._work.set()

    @property
    def busy(self) -> bool:
        """Whether a round is to come, or under way."""
        return self._under_way or self._work.is_set()

    async def close(self) -> None:
        """Hand in all that is left, and end; no task is asked for any more."""
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
                    if not (self._answers or self._seeds):
                        return
                    self._work.set()
        except InlinkError as error:
            log.error("%s", error)
        except Exception:
            log.exception("the crawl cannot go on")
        self._answers, self._seeds, self.due_in, self.others_busy = [], [], None, False
        self._work.clear()
        self._under_way = False
        self._failed()

    async def _round(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        seeds, self._seeds = self._seeds, []
        if seeds:
            await self.client.seed(seeds)
        answers, self._answers = self._answers, []
        if answers:
            receipts = await self.client.report([told.answer for told in answers])
            for told, receipt in zip(answers, receipts, strict=True):
                if not isinstance(told.answer, HostDelay):
                    self._taken_in(told, receipt)
        room = self._ahead - self._ready()
        if self._closing or room <= 0:
            return
        found = await self.client.next(room)
        self.due_in, self.others_busy = found.due_in, found.paused or found.out_elsewhere > 0
        self._dry = len(found.tasks) < room
        if self._dry:
            wait = LONGEST_LOOK if self.due_in is None else min(max(self.due_in, 0.01), LONGEST_LOOK)
            self._alarm = asyncio.get_running_loop().call_later(wait, self._work.set)
        self._take(found.tasks)

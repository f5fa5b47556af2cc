"""One replay: a crawl of a known web, from one set of seeds, by one policy, in virtual time.

The crawl is :class:`inlink.Crawl` itself, in a temporary folder, with its own queue, leases, politeness, retries and
rankings. Only the fetches are replayed: the web has the answer of each page, and the duration of its fetch. A ranking
is computed when the crawl asks for it, in no virtual time and on one thread. So the same web, seeds and settings give
the same fetches.
"""

import heapq
import os
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inlink.base.arrays import Float64Array, UInt32Array
from inlink.base.clock import VirtualClock
from inlink.base.memory import memory_left
from inlink.base.unfinished import unfinished_folder
from inlink.crawl.crawl import Crawl
from inlink.errors import InlinkError, ParameterError
from inlink.frontier.leases import Lease
from inlink.frontier.policies import policy_found, policy_name
from inlink.replaying.changes import Changes, changes_of
from inlink.replaying.web import EXCLUDED, FAILED, NO_PAGE, PAGE, REDIRECT, UNKNOWN, Web

MEMORY = Path("/dev/shm")
LEASE_SECONDS = 1e9
IDLE_TURNS = 1000
"""Number of turns in a row without a task although a page is due, after which a replay gives up."""


class ReplayTask(msgspec.Struct, frozen=True):
    """One replay to make. Attributes that are not listed are the parameters of :func:`inlink.replay`.

    Attributes
    ----------
    seeds : list of int
        Pages.
    budget : int
        Fetches to stop after. The crawl may end before.
    changes, change_seed : float or None, int
        Arguments of :func:`.changes.changes_of`.
    set : int
        The number of the seed set.
    counts : list of int
        The numbers of fetches after which the ranks of the crawled part are compared with those of the whole. They are
        empty if that is not wanted.
    damping : float
        Damping of these ranks.
    """

    policy: Any
    seeds: list[int]
    budget: int
    settings: dict[str, Any]
    parallel: int = 1
    fetch_seconds: float = 0.0
    changes: float | None = None
    change_seed: int = 1
    set: int = 0
    counts: list[int] = []
    damping: float = 0.85


@dataclass(frozen=True)
class Played:
    """The fetches of one replay.

    Attributes
    ----------
    home : uint32[k]
        The page that each fetch collected for the first time; :data:`.web.NO_PAGE` if none.
    fetched : uint32[k]
        The page that was asked for.
    times : float64[k]
        Seconds from the beginning to the end of each fetch.
    counts : dict
        Fetches that failed or were redirected, URLs that were handed out but are not recorded, or were excluded.
    copies : uint32[k]
        The page whose content each fetch returned, for the first time or again; :data:`.web.NO_PAGE` if none.
    stale : float64[k]
        The time of that page's next change, in seconds from the beginning; infinity for never, or if no changes are
        known.
    cpu : float
        CPU seconds of this process.
    """

    home: UInt32Array
    fetched: UInt32Array
    times: Float64Array
    copies: UInt32Array
    stale: Float64Array
    counts: dict[str, int]
    cpu: float


def memory_folder(size: int = 0) -> Path:
    """Return the folder for temporary crawls of ``size`` bytes: in memory if there is room, else the usual one."""
    left = memory_left()
    is_there = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and (left is None or 2 * size <= left)
    return MEMORY if is_there else Path(tempfile.gettempdir())


def crawl_settings(policy: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a replayed crawl: the given settings, and by default no delay and no lost leases."""
    politeness = settings.get("politeness", {})
    if isinstance(politeness, Mapping):
        politeness = {"delay": 0.0} | dict(politeness)
    return {"lease_seconds": LEASE_SECONDS} | dict(settings) | {"policy": policy, "politeness": politeness}


def play(
    web: Web,
    task: ReplayTask,
    between: Callable[[int], None] = lambda count: None,
    changes: Changes | None = None,
) -> Played:
    """Replay a crawl.

    Parameters
    ----------
    web : Web
        The web to crawl.
    task : ReplayTask
        The replay to make.
    between : callable
        Called with a number of fetches, now and then.
    changes : Changes or None
        The changes of pages. A fetch returns a hash of the content that the page has then. None: those of the task. If
        it has none, there are no hashes.

    Raises
    ------
    RuntimeError
        If a page that was fetched is handed out once more without a schedule of revisits, or the crawl hands out
        nothing for ever.
    inlink.errors.ParameterError
        If the policy is not one of inlink's own, and its code raises an exception.
    """
    with _blamed(task.policy), unfinished_folder(memory_folder() / "inlink-replay") as folder:
        clock = VirtualClock()
        with Crawl(folder / "crawl", clock=clock, **crawl_settings(task.policy, task.settings)) as crawl:
            crawl.seed([web.urls[page] for page in task.seeds])
            changes = changes or changes_of(web, task.changes, task.change_seed)
            return _Player(web, crawl, clock, task, changes).run(between)


@contextmanager
def _blamed(policy: Any) -> Iterator[None]:
    """Turn an exception that the code of a user's policy raises into a ParameterError of one line.

    An exception counts as the policy's if a module that defines the policy's class, or a base class outside inlink, is
    in its traceback. All other exceptions are raised unchanged.
    """
    try:
        yield
    except InlinkError:
        raise
    except Exception as error:
        used = policy_found(policy)
        owners = (used if isinstance(used, type) else type(used)).__mro__[:-1]
        modules = {owner.__module__ for owner in owners if not owner.__module__.startswith("inlink.")}
        frames = [
            (frame.f_code, line)
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_globals.get("__name__") in modules
        ]
        if not frames:
            raise
        code, line = frames[-1]
        raise ParameterError(
            f"policy {policy_name(policy)} failed at {code.co_filename}, line {line}, in {code.co_name}: "
            f"{type(error).__name__}: {error}"
        ) from error


class _Player:
    """Fetches from a web what a crawl hands out."""

    def __init__(
        self, web: Web, crawl: Crawl, clock: VirtualClock, task: ReplayTask, changes: Changes | None
    ) -> None:
        self._web, self._crawl, self._clock, self._task, self._changes = web, crawl, clock, task, changes
        self._start, self._revisits = clock.now, crawl.settings.revisits
        self._copy: tuple[int, float] = NO_PAGE, np.inf
        self._copies: list[tuple[int, float]] = []
        self._urls, self._number = web.urls, {url: page for page, url in enumerate(web.urls)}
        self._offsets, self._links = web.offsets.tolist(), np.asarray(web.links)
        self._scores = np.asarray(web.link_scores) if len(web.link_scores) else None
        self._outcomes, self._content = bytes(web.outcomes), web.scores
        self._fingerprints = web.fingerprints.tolist()
        self._plain = not (web.scores.any() or self._scores is not None)
        self._seconds = np.where(np.isnan(web.seconds), np.float32(task.fetch_seconds), web.seconds).tolist()
        self._tries, self._asked_delay = bytearray(web.tries), np.asarray(web.delays) > 0
        self._home = bytearray(web.num_pages)
        self._brought: list[int] = []
        self._fetched: list[int] = []
        self._times: list[float] = []
        self._counts: Counter[str] = Counter()

    def run(self, between: Callable[[int], None]) -> Played:
        """Fetch until the budget is spent or the crawl ends."""
        began, start = time.process_time(), self._start
        flying: list[tuple[float, int, Lease, int]] = []
        crawl, clock, reported, idle = self._crawl, self._clock, 0, 0
        budget, parallel = self._task.budget, self._task.parallel
        while len(self._fetched) < budget:
            room = min(parallel, budget - len(self._fetched)) - len(flying)
            leases = crawl.next(room) if room > 0 else []
            for lease in leases:
                self._depart(lease, flying)
            idle = 0 if leases or flying else idle + 1
            if idle > IDLE_TURNS:
                raise RuntimeError(
                    f"policy {crawl.settings.policy} hands out nothing after {clock.now - start:g} s, but pages are due"
                )
            if leases and len(flying) < parallel:
                # Those that are excluded make room for others.
                continue
            if not flying:
                if crawl.wait() is None:
                    break
                continue
            if len(flying) < parallel and (due := crawl.due_in()) and clock.now + due < flying[0][0]:
                clock.advance(due)
                continue
            finish, _, lease, page = heapq.heappop(flying)
            clock.now = max(clock.now, finish)
            self._times.append(clock.now - start)
            self._fetched.append(page)
            self._copy = NO_PAGE, np.inf
            self._brought.append(self._answer(lease, page))
            self._copies.append(self._copy)
            if len(self._fetched) - reported >= 500:
                between(len(self._fetched) - reported)
                reported = len(self._fetched)
        between(len(self._fetched) - reported)
        return Played(
            np.array(self._brought, np.uint32),
            np.array(self._fetched, np.uint32),
            np.array(self._times, np.float64),
            np.array([page for page, _ in self._copies], np.uint32),
            np.array([stale for _, stale in self._copies], np.float64),
            dict(sorted(self._counts.items())),
            time.process_time() - began,
        )

    def _depart(self, lease: Lease, flying: list[tuple[float, int, Lease, int]]) -> None:
        """Begin a fetch. A page that is not recorded, or that a rule refused, is excluded without a fetch."""
        page = self._number[lease.url]
        outcome = self._outcomes[page]
        if outcome in (UNKNOWN, EXCLUDED):
            self._counts["not recorded" if outcome == UNKNOWN else "excluded"] += 1
            self._crawl.exclude(lease, "replay: not recorded" if outcome == UNKNOWN else "replay: excluded")
            return
        if outcome == PAGE and self._home[page] and not self._revisits:
            raise RuntimeError(f"{lease.url} was fetched and was handed out once more")
        heapq.heappush(flying, (self._clock.now + self._seconds[page], lease.number, lease, page))

    def _answer(self, lease: Lease, page: int) -> int:
        """Answer a lease as the web does; return the page that was fetched, or NO_PAGE."""
        web, outcome, target = self._web, self._outcomes[page], page
        more: dict[str, Any] = {}
        if self._asked_delay[page]:
            self._crawl.host_delay(lease, float(web.delays[page]))
        if self._tries[page]:
            self._tries[page] -= 1
            return self._fail(lease, 0, None)
        if outcome == FAILED:
            return self._fail(lease, int(web.statuses[page]), None)
        if outcome == REDIRECT:
            self._counts["redirected"] += 1
            target = int(web.targets[page])
            more = {"redirected_to": self._urls[target]}
            if self._outcomes[target] != PAGE:
                return self._fail(lease, 0, False)
        begin, end = self._offsets[target], self._offsets[target + 1]
        names = [self._urls[link] for link in self._links[begin:end].tolist()]
        links: list[Any] = names
        if self._scores is not None:
            links = list(zip(names, self._scores[begin:end].tolist(), strict=True))
        if not self._plain:
            more["score"] = float(self._content[target])
        if mark := self._fingerprints[target]:
            more["fingerprint"] = mark
        stale = np.inf
        if self._changes is not None:
            version, stale = self._changes.at(target, self._clock.now - self._start)
            more["content_hash"] = version.to_bytes(8, "little")
        counted = self._crawl.crawled(
            lease, links, status=int(web.statuses[target]), links_are_canonical=True, **more
        )
        if not counted:
            return NO_PAGE
        self._copy = target, stale
        if self._home[target]:
            return NO_PAGE
        self._home[target] = 1
        return target

    def _fail(self, lease: Lease, status: int, retry: bool | None) -> int:
        self._counts["failed"] += 1
        self._crawl.failed(lease, "as recorded", status=status or None, retry=retry)
        return NO_PAGE

"""Policies: the order in which waiting pages are fetched.

A policy is a fold over the crawl's events. It has three methods:

- ``fold(events)`` takes events into the policy's own columns. It is used live, after a crash and in a replay.
- ``priority(pages)`` gives each page a number of at least 0. Pages with larger numbers are fetched sooner.
- ``explain(page)`` returns the parts of that number.

To use a policy of your own, subclass :class:`Policy` and pass the class or an instance to ``Crawl(policy=…)``::

    class ShortUrlsFirst(Policy):
        name = "short-urls-first"

        def priority(self, pages):
            return np.array([1 / len(url) for url in self.pages.urls(pages)], np.float32)
"""

from typing import Any

import numpy as np

from inlink.base.arrays import Float32Array, Float64Array, UInt32Array, UInt64Array
from inlink.base.columns import reserve
from inlink.base.declare import imported, present_name
from inlink.errors import ParameterError
from inlink.factors.parts import Part
from inlink.frontier.kernels.shares import hand_over_cash, scores_given
from inlink.frontier.policy import MOST_PAGES, Policy, worth
from inlink.frontier.ranked import RANKED, STORED, by_stored_ranking
from inlink.frontier.settings import OLD_POLICIES
from inlink.reranking.kernels.push import LEAST_SCORE
from inlink.store.events import Events
from inlink.store.format import DUE, HEAD, HEAD_SIZE, VISIT, DateRecord, dtype_of
from inlink.store.kernels.frames import find_kinds
from inlink.store.pages import Pages

__all__ = ["POLICIES", "Policy", "policy_found", "policy_name", "policy_of"]


class BestFirst(Policy):
    """By the worth of the best score of a link to the page, see :func:`.policy.worth`."""

    name = "best-first"

    def priority(self, pages: UInt32Array) -> Float32Array:
        return worth(self.pages.scores[pages])

    def explain(self, page: int) -> list[Part]:
        score, least = float(self.pages.scores[page]), Part("least worth", "+", LEAST_SCORE)
        if score < 0:
            return [least, Part("1 − best link score, which is below 0", "÷", 1.0 - score)]
        return [Part("best link score", "+", score), least]

    def gives(self, page: int, places: UInt64Array) -> Float32Array | None:
        return scores_given(self.pages.frames.at(places), places, np.uint64(page))


class BreadthFirst(Policy):
    """By depth, then in the order of discovery."""

    name = "breadth-first"

    def priority(self, pages: UInt32Array) -> Float32Array:
        return np.float32(1) / (np.float32(1) + self.pages.depths[pages].astype(np.float32))

    def explain(self, page: int) -> list[Part]:
        return [Part("constant", "+", 1.0), Part("1 + depth", "÷", 1.0 + float(self.pages.depths[page]))]


class DepthFirst(Policy):
    """The page that was discovered last comes first."""

    name = "depth-first"
    newest = True

    def priority(self, pages: UInt32Array) -> Float32Array:
        # float32 rounds large numbers to equal values. Pages with equal values are ordered by `newest`.
        return pages.astype(np.float32)

    def explain(self, page: int) -> list[Part]:
        return [Part("number in the order of discovery", "+", float(page))]


class HostsInTurns(Policy):
    """Hosts take turns; within a host, pages come in the order of discovery."""

    name = "hosts-in-turns"
    sharing = "turns"


class Random(Policy):
    """In a pseudo-random order that depends on the page's number only: a baseline for comparisons."""

    name = "random"

    def priority(self, pages: UInt32Array) -> Float32Array:
        mixed = pages.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xD6E8FEB86659FD93)
        return ((mixed >> np.uint64(40)).astype(np.float32)) / np.float32(1 << 24)

    def explain(self, page: int) -> list[Part]:
        return [Part("random number of the page", "+", float(self.priority(np.array([page], np.uint32))[0]))]


class Opic(Policy):
    """On-line page importance: a visited page divides its cash among its links. The page with most cash is next.

    Abiteboul, Preda & Cobena, "Adaptive on-line page importance computation", WWW 2003. Each seed brings
    cash 1, and a page without links keeps its cash. So only seeding changes the sum of all cash.
    """

    name = "opic"
    columns = ("cash",)

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        super().__init__(pages, settings)
        self.cash: Float32Array = reserve(np.float32, MOST_PAGES)

    def fold(self, events: Events) -> None:
        hand_over_cash(events.frames, self.cash)

    def priority(self, pages: UInt32Array) -> Float32Array:
        return self.cash[pages]

    def explain(self, page: int) -> list[Part]:
        return [Part("cash from links and seeding", "+", float(self.cash[page]))]


NEVER_CRAWLED = 2.0
"""Priority of a page that was never crawled, under ``revisit``. The priority of other pages is at most ½."""


class Revisit(Policy):
    """New pages first, then the pages whose last crawl is the longest ago."""

    name = "revisit"

    def priority(self, pages: UInt32Array) -> Float32Array:
        priorities = np.full(len(pages), np.float32(NEVER_CRAWLED))
        for row, page in enumerate(pages.tolist()):
            age = self._last_crawl(page)
            if age is not None:
                priorities[row] = 1 / (2 + age)
        return priorities

    def explain(self, page: int) -> list[Part]:
        age = self._last_crawl(page)
        if age is None:
            return [Part("never crawled", "+", NEVER_CRAWLED)]
        return [
            Part("constant", "+", 1.0),
            Part("2 + seconds from the start of the crawl to the page's last visit", "÷", 2 + age),
        ]

    def _last_crawl(self, page: int) -> float | None:
        """Seconds from the start of the crawl to a page's last visit; None if it was never crawled."""
        visit = self.pages.visit(page) if self.pages.answers[page] else None
        return None if visit is None else max(visit.time - self.pages.started, 0.0)


DATE_SCALE = float(1 << 22)
"""A date that is this number of seconds later halves the priority. float32 then distinguishes dates a second apart."""

_DATED = np.dtype([("head", HEAD), ("record", dtype_of(DateRecord))])


class ByDate(Policy):
    """The earliest date first, then in the order of discovery.

    The date of a page is the last one that :meth:`inlink.Crawl.set_due` gave it, or its last crawl if that came later.
    A page without either has the date of its discovery. URLFrontier's own server has this order.
    """

    name = "date"
    columns = ("dates",)

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        super().__init__(pages, settings)
        # Unix times; 0 for a page that was neither crawled nor given a date.
        self.dates: Float64Array = reserve(np.float64, MOST_PAGES)

    def fold(self, events: Events) -> None:
        log = events.frames
        places = find_kinds(log, np.uint64(0), np.uint64(len(log)), np.uint64(1 << DUE | 1 << VISIT))
        starts = places.astype(np.int64)[:, None]
        heads = log[starts + np.arange(HEAD_SIZE)].view(HEAD)[:, 0]
        dates, due = heads["time"].copy(), heads["kind"] == DUE
        dates[due] = log[starts[due] + np.arange(_DATED.itemsize)].view(_DATED)[:, 0]["record"]["date"]
        # Of several events about a page, the last one holds.
        self.dates[heads["page"]] = dates

    def priority(self, pages: UInt32Array) -> Float32Array:
        dates = self._dates(pages)
        return np.exp2(np.clip((self.pages.started - dates) / DATE_SCALE, -126, 126)).astype(np.float32)

    def explain(self, page: int) -> list[Part]:
        pages = np.array([page], np.uint32)
        days = (float(self._dates(pages)[0]) - self.pages.started) / 86_400
        meaning = (
            f"2^(-days / {DATE_SCALE / 86_400:.1f}), days from the start of the crawl to the date: {days:.4g}"
        )
        return [Part(meaning, "+", float(self.priority(pages)[0]))]

    def _dates(self, pages: UInt32Array) -> Float64Array:
        """The dates of pages as Unix times, float64[n]."""
        dates = self.dates[pages]
        undated = dates == 0
        dates[undated] = self.pages.discovered(pages[undated])
        return dates


_ALL: tuple[type[Policy], ...] = (
    *RANKED,
    BestFirst,
    Opic,
    BreadthFirst,
    DepthFirst,
    HostsInTurns,
    Random,
    Revisit,
    ByDate,
    Policy,
)
POLICIES: dict[str, type[Policy]] = {policy.name: policy for policy in _ALL}


def policy_name(policy: "str | type[Policy] | Policy") -> str:
    """The name of a policy in a crawl's folder: its own name if it is inlink's, else the import path of its class.

    Raises
    ------
    inlink.errors.ParameterError
        If ``policy`` is not a policy.
    """
    if isinstance(policy, str):
        return present_name(policy, OLD_POLICIES)
    kind = policy if isinstance(policy, type) else type(policy)
    if not issubclass(kind, Policy):
        raise ParameterError(
            f"policy must be a name, a subclass of Policy or an instance of one; got {policy!r}"
        )
    if POLICIES.get(kind.name) is kind or kind.name.startswith(STORED):
        return kind.name
    return f"{kind.__module__}:{kind.__qualname__}"


def policy_of(
    folder: object, stored: str, policy: "str | type[Policy] | Policy | None"
) -> "type[Policy] | Policy":
    """The policy of a crawl's folder. A user's own policy is imported only if the caller names it too.

    Raises
    ------
    inlink.errors.ParameterError
        If the caller must name the policy, names another policy, or names a policy that cannot be imported here.
    """
    if policy is not None and policy_name(policy) != stored:
        raise ParameterError(
            f"{folder}: this crawl's policy is {stored!r}; got {policy_name(policy)!r}: leave it out, or change the "
            "policy by opening the crawl with inlink.Crawl"
        )
    if policy is None and stored not in POLICIES and not stored.startswith(STORED):
        raise ParameterError(
            f"{folder}: this crawl's policy {stored!r} is code from outside inlink: if you trust it, allow its import "
            f"with policy={stored!r}, or with --set policy={stored} on a command line"
        )
    return policy_found(stored if policy is None else policy)


def policy_found(policy: "str | type[Policy] | Policy") -> "type[Policy] | Policy":
    """The class that a name stands for, or the class or instance itself.

    Raises
    ------
    inlink.errors.ParameterError
        If no policy has that name, or ``module:Class`` cannot be imported here.
    """
    if not isinstance(policy, str):
        return policy
    policy = present_name(policy, OLD_POLICIES)
    if policy in POLICIES:
        return POLICIES[policy]
    if policy.startswith(STORED):
        return by_stored_ranking(policy)
    kind = imported(policy, "policy")
    if not (isinstance(kind, type) and issubclass(kind, Policy)):
        raise ParameterError(f"policy must be a subclass of Policy; {policy} is {kind!r}")
    return kind

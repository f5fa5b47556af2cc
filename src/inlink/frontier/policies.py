"""Policies: in which order waiting pages are fetched.

A policy is a fold over the crawl's events with one question to it: what is the priority of these pages? Three
methods are all:

- ``fold(events)`` takes what happened into the policy's own columns; live, after a crash and in a replay alike;
- ``priority(pages)`` gives each page a number ≥ 0, larger is sooner;
- ``explain(page)`` says what that number is made of.

A policy of your own subclasses :class:`Policy` and is given to ``Crawl(policy=…)`` itself, class or instance::

    class ShortUrlsFirst(Policy):
        name = "short-urls-first"

        def priority(self, pages):
            return np.array([1 / len(url) for url in self.pages.urls(pages)], np.float32)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.columns import most_pages, reserve
from inlink.errors import ParameterError
from inlink.frontier.kernels.shares import give_hub_weight, give_shares, hand_over_cash
from inlink.store.events import Events
from inlink.store.pages import Pages

__all__ = ["POLICIES", "Policy", "policy_named"]

U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]
_PAGES = most_pages()
_BLOCK = 1 << 16  # pages
SMALL = 1e-6  # the teleport of a page without score: where all have none, links alone decide


class Policy:
    """What all policies have. The default is first come, first served.

    Parameters
    ----------
    pages : Pages
        The crawl's columns.
    settings : mapping
        ``use_scores``, ``cross_domain_only``, ``damping``; a policy takes what it understands.

    Attributes
    ----------
    name : str
    sharing : {"none", "shared", "turns"}
        How hosts compete, see :class:`inlink.frontier.queue.Queue`.
    newest : bool
        Among equals the page discovered last comes first.
    algorithm : {"pagerank", "hits"} or None
        The ranking that the ranking process is to keep, if any; :meth:`adopt` gets it.
    """

    name = "first-come"
    sharing = "none"
    newest = False
    algorithm: str | None = None

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        self.pages, self.settings = pages, settings

    def fold(self, events: Events) -> None:
        """Take events into this policy's columns."""

    def priority(self, pages: U32) -> F32:
        """The priority of pages, float32[n], at least 0; larger is sooner."""
        return np.zeros(len(pages), np.float32)

    def explain(self, page: int) -> list[tuple[str, float | str]]:
        """What a page's priority is made of: pairs of a phrase and a value."""
        return []

    def adopt(self, ranks: F32, meta: dict[str, Any], since: Events) -> None:
        """Take over a ranking of the first len(ranks) pages, and fold what happened since."""


class BestFirst(Policy):
    """By the best score that a link to the page was given."""

    name = "best-first"

    def priority(self, pages: U32) -> F32:
        found: F32 = np.maximum(self.pages.scores[pages], np.float32(0))
        return found

    def explain(self, page: int) -> list[tuple[str, float | str]]:
        return [("best link score", float(self.pages.scores[page]))]


class BreadthFirst(Policy):
    """By depth, then in the order of discovery."""

    name = "breadth-first"

    def priority(self, pages: U32) -> F32:
        return np.float32(1) / (np.float32(1) + self.pages.depths[pages].astype(np.float32))

    def explain(self, page: int) -> list[tuple[str, float | str]]:
        return [("depth", float(self.pages.depths[page]))]


class DepthFirst(Policy):
    """What was discovered last comes first."""

    name = "depth-first"
    newest = True

    def priority(self, pages: U32) -> F32:
        return pages.astype(
            np.float32
        )  # float32 rounds large numbers to equal ones: the newest of them comes first

    def explain(self, page: int) -> list[tuple[str, float | str]]:
        return [("discovered as number", float(page))]


class Fifo(Policy):
    """Hosts in turns, each in the order of discovery."""

    name = "fifo"
    sharing = "turns"


class Random(Policy):
    """In an order that only the page's number decides: the baseline of baselines."""

    name = "random"

    def priority(self, pages: U32) -> F32:
        mixed = pages.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xD6E8FEB86659FD93)
        return ((mixed >> np.uint64(40)).astype(np.float32)) / np.float32(1 << 24)


class PageRank(Policy):
    """By PageRank, un-normalised: x = c·Pᵀx + (1 − c)·v with v = 1, or with ``use_scores`` the pages' scores.

    Between two rankings each visit gives its links their shares of its rank at once.
    """

    name = "pagerank"
    algorithm = "pagerank"

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        super().__init__(pages, settings)
        self.damping = float(settings.get("damping", 0.85))
        self.rest = np.float32(1 - self.damping)
        self.by_score = bool(settings.get("use_scores", False))
        self.cross_only = bool(settings.get("cross_domain_only", False))
        self.shares: F32 = reserve(np.float32, _PAGES)

    def teleport(self, pages: U32 | slice) -> F32 | np.float32:
        """(1 − c)·v of pages."""
        if not self.by_score:
            return self.rest
        found: F32 = self.rest * (np.maximum(self.pages.scores[pages], np.float32(0)) + np.float32(SMALL))
        return found

    def fold(self, events: Events) -> None:
        give_shares(
            events.frames,
            self.pages.hosts,
            self.pages.scores,
            self.shares,
            self.damping,
            self.by_score,
            self.cross_only,
        )

    def priority(self, pages: U32) -> F32:
        return self.shares.take(pages) + self.teleport(pages)

    def explain(self, page: int) -> list[tuple[str, float | str]]:
        one = np.array([page], np.uint32)
        return [
            ("rank, un-normalised", float(self.priority(one)[0])),
            ("of which from inlinks", float(self.shares[page])),
            (
                "of which from its score" if self.by_score else "of which by teleport",
                float(np.ravel(self.teleport(one))[0]),
            ),
        ]

    def adopt(self, ranks: F32, meta: dict[str, Any], since: Events) -> None:
        known = len(ranks)
        for start in range(0, known, _BLOCK):  # no copy as long as the crawl
            some = slice(start, min(start + _BLOCK, known))
            shares = self.shares[some]
            np.subtract(ranks[some], self.teleport(some), out=shares)
            np.maximum(shares, np.float32(0), out=shares)
        self.shares[known : self.pages.num_pages] = 0
        self.fold(since)


class HostDiverse(PageRank):
    """By PageRank ÷ (1 + pages already taken from the host): the default.

    On cnr-2000 it brought home a third of all PageRank within the first tenth of a crawl, breadth-first 0.18.
    """

    name = "host-diverse"
    sharing = "shared"


class Hits(PageRank):
    """By HITS authority, topical with ``use_scores``: a_j = (1/λ) Σ_{i→j} h_i, h_i = Σ_{i→j} r_j·a_j.

    Until the first ranking it is the number of inlinks; after it, each visit adds h/λ to its links.
    """

    name = "hits"
    algorithm = "hits"

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        super().__init__(pages, settings)
        self.factor = 0.0  # 1/λ, 0 before the first ranking

    def fold(self, events: Events) -> None:
        give_hub_weight(
            events.frames,
            self.pages.hosts,
            self.pages.scores,
            self.shares,
            self.factor,
            self.by_score,
            self.cross_only,
        )

    def priority(self, pages: U32) -> F32:
        authority = self.shares[pages]
        if self.by_score:
            authority = authority * (np.maximum(self.pages.scores[pages], np.float32(0)) + np.float32(SMALL))
        return np.maximum(authority, np.float32(0))

    def explain(self, page: int) -> list[tuple[str, float | str]]:
        return [("authority (the mean page has 1)", float(self.shares[page]))]

    def adopt(self, ranks: F32, meta: dict[str, Any], since: Events) -> None:
        self.factor = 1 / float(meta["lambda"]) if meta.get("lambda", 0) > 0 else 0.0
        self.shares[: len(ranks)] = ranks
        self.shares[len(ranks) : self.pages.num_pages] = 0
        self.fold(since)


class Opic(Policy):
    """On-line page importance: a visited page hands its cash to its links in equal parts; the richest comes next.

    Abiteboul, Preda & Cobena, "Adaptive on-line page importance computation", WWW 2003. The cash of a page without
    links, and of one fetched again, stays in the game: what was spent is counted, the sum never changes.
    """

    name = "opic"

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        super().__init__(pages, settings)
        self.cash: F32 = reserve(np.float32, _PAGES)

    def fold(self, events: Events) -> None:
        hand_over_cash(events.frames, self.cash)

    def priority(self, pages: U32) -> F32:
        return self.cash[pages]

    def explain(self, page: int) -> list[tuple[str, float | str]]:
        return [("cash", float(self.cash[page]))]


class Revisit(Policy):
    """By when a page is due: new pages first, then those whose next crawl is overdue the longest."""

    name = "revisit"

    def priority(self, pages: U32) -> F32:
        out = np.full(len(pages), np.float32(2))
        started = self.pages.started
        for place, page in enumerate(pages.tolist()):
            visit = self.pages.visit(page) if self.pages.answers[page] else None
            if visit is not None:
                out[place] = 1 / (2 + max(visit.time - started, 0.0))
        return out

    def explain(self, page: int) -> list[tuple[str, float | str]]:
        visit = self.pages.visit(page)
        return [("never crawled", "first") if visit is None else ("crawled last at", visit.time)]


POLICIES: dict[str, type[Policy]] = {
    one.name: one
    for one in (
        HostDiverse,
        BestFirst,
        PageRank,
        Hits,
        Opic,
        BreadthFirst,
        DepthFirst,
        Fifo,
        Random,
        Revisit,
        Policy,
    )
}


def policy_named(policy: "str | type[Policy] | Policy", pages: Pages, settings: dict[str, Any]) -> Policy:
    """The policy that a user asked for, by name, class or instance.

    Raises
    ------
    ParameterError
        If no policy has that name.
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise ParameterError(f"no policy is called {policy!r}: take one of {_listed(list(POLICIES))}")
        policy = POLICIES[policy]
    return policy(pages, settings)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " or " + names[-1]

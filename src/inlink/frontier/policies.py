"""Policies: the order in which waiting pages are fetched.

A policy is a fold over the crawl's events. It has three methods:

- ``fold(events)`` takes events into the policy's own columns. It is used live, after a crash and in a replay.
- ``priority(pages)`` gives each page a number of at least 0. Pages with larger numbers are fetched sooner.
- ``explain(page)`` says what that number is made of.

To use a policy of your own, subclass :class:`Policy` and pass the class or an instance to ``Crawl(policy=…)``::

    class ShortUrlsFirst(Policy):
        name = "short-urls-first"

        def priority(self, pages):
            return np.array([1 / len(url) for url in self.pages.urls(pages)], np.float32)
"""

from typing import Any

import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array, UInt64Array
from inlink.base.columns import most_pages, reserve
from inlink.base.settings import imported
from inlink.errors import ParameterError
from inlink.frontier.kernels.shares import (
    give_hub_weight,
    give_shares,
    hand_over_cash,
    hub_weights_given,
    scores_given,
    shares_given,
)
from inlink.frontier.parts import Part
from inlink.reranking.kernels.push import LEAST_SCORE
from inlink.store.events import Events
from inlink.store.pages import Pages

__all__ = ["POLICIES", "Policy", "policy_found", "policy_name", "policy_of"]

_PAGES = most_pages()
_BLOCK = 1 << 16
"""Pages that a ranking is adopted for at a time, so that no copy is as long as the crawl."""


class Policy:
    """Base class of all policies. By itself it fetches pages in the order of their discovery.

    Parameters
    ----------
    pages : Pages
        The crawl's columns.
    settings : mapping
        ``use_scores``, ``cross_domain_only``, ``damping``. Each policy reads those that apply to it.

    Attributes
    ----------
    name : str
    sharing : {"none", "shared", "turns"}
        How hosts compete: see :class:`inlink.frontier.queue.Queue`.
    newest : bool
        Among pages with equal priorities, the page discovered last comes first.
    algorithm : {"pagerank", "hits"} or None
        The ranking that the ranking process keeps for this policy. :meth:`adopt` receives it.
    """

    name = "first-come"
    sharing = "none"
    newest = False
    algorithm: str | None = None

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        self.pages, self.settings = pages, settings

    def fold(self, events: Events) -> None:
        """Take events into this policy's columns."""

    def priority(self, pages: UInt32Array) -> Float32Array:
        """The priority of each page, float32[n], at least 0; pages with larger numbers are fetched sooner."""
        return np.zeros(len(pages), np.float32)

    def explain(self, page: int) -> list[Part]:
        """The parts of a page's priority: :func:`inlink.frontier.parts.combined` of them is the priority."""
        return []

    def gives(self, page: int, places: UInt64Array) -> Float32Array | None:
        """The shares of visits that link to a page in its priority before penalties.

        Returns
        -------
        float32[n] or None
            0 for a link that does not count. None if links do not count under this policy.
        """
        return None

    def adopt(self, ranks: Float32Array, meta: dict[str, Any], since: Events) -> None:
        """Replace the policy's state by a ranking of the first len(ranks) pages, then fold the events after it."""


def _positive(scores: Float32Array) -> Float32Array:
    """Scores, with negative ones set to 0."""
    positive: Float32Array = np.maximum(scores, np.float32(0))
    return positive


class BestFirst(Policy):
    """By the best score that a link gave to the page."""

    name = "best-first"

    def priority(self, pages: UInt32Array) -> Float32Array:
        return _positive(self.pages.scores[pages])

    def explain(self, page: int) -> list[Part]:
        return [Part("best link score, at least 0", "+", max(float(self.pages.scores[page]), 0.0))]

    def gives(self, page: int, places: UInt64Array) -> Float32Array | None:
        return scores_given(self.pages.log, places, np.uint64(page))


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
        # float32 rounds large numbers to equal ones; `newest` orders those
        return pages.astype(np.float32)

    def explain(self, page: int) -> list[Part]:
        return [Part("number in the order of discovery", "+", float(page))]


class Fifo(Policy):
    """Hosts take turns; within a host, pages come in the order of discovery."""

    name = "fifo"
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


class PageRank(Policy):
    """By un-normalised PageRank: x = c·Pᵀx + (1 − c)·v, where v is 1 or, with ``use_scores``, the pages' scores.

    Between two rankings, each visit adds its shares to the ranks of the pages that it links to.
    """

    name = "pagerank"
    algorithm = "pagerank"

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        super().__init__(pages, settings)
        self.damping = float(settings.get("damping", 0.85))
        self.rest = np.float32(1 - self.damping)
        self.by_score = bool(settings.get("use_scores", False))
        self.cross_only = bool(settings.get("cross_domain_only", False))
        self.shares: Float32Array = reserve(np.float32, _PAGES)

    def teleport(self, pages: UInt32Array | slice) -> Float32Array | np.float32:
        """(1 − c)·v of pages."""
        if not self.by_score:
            return self.rest
        teleport: Float32Array = self.rest * (_positive(self.pages.scores[pages]) + np.float32(LEAST_SCORE))
        return teleport

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

    def priority(self, pages: UInt32Array) -> Float32Array:
        return self.shares.take(pages) + self.teleport(pages)

    def explain(self, page: int) -> list[Part]:
        teleport = float(np.ravel(self.teleport(np.array([page], np.uint32)))[0])
        name = "(1 − damping) × content score" if self.by_score else "(1 − damping), from teleport"
        return [Part("rank from links", "+", float(self.shares[page])), Part(name, "+", teleport)]

    def gives(self, page: int, places: UInt64Array) -> Float32Array | None:
        return shares_given(
            self.pages.log,
            places,
            np.uint64(page),
            self.pages.hosts,
            self.pages.scores,
            self.shares,
            self.damping,
            self.by_score,
            self.cross_only,
        )

    def adopt(self, ranks: Float32Array, meta: dict[str, Any], since: Events) -> None:
        known = len(ranks)
        for start in range(0, known, _BLOCK):
            block = slice(start, min(start + _BLOCK, known))
            shares = self.shares[block]
            np.subtract(ranks[block], self.teleport(block), out=shares)
            np.maximum(shares, np.float32(0), out=shares)
        self.shares[known : self.pages.num_pages] = 0
        self.fold(since)


class HostDiverse(PageRank):
    """By PageRank ÷ (1 + pages already taken from the host): the default.

    On cnr-2000, the first tenth of a crawl collected a third of all PageRank; breadth-first collected 0.18.
    """

    name = "host-diverse"
    sharing = "shared"


class Hits(PageRank):
    """By HITS authority, with ``use_scores`` for a topic: a_j = (1/λ) Σ_{i→j} h_i, h_i = Σ_{i→j} r_j·a_j.

    Before the first ranking, the authority is the number of inlinks. After it, each visit adds h/λ to the authority of
    the pages that it links to. With ``use_scores`` the priority is authority × score.
    """

    name = "hits"
    algorithm = "hits"

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        super().__init__(pages, settings)
        # 1/λ; 0 before the first ranking
        self.factor = 0.0

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

    def priority(self, pages: UInt32Array) -> Float32Array:
        authority = self.shares[pages]
        if self.by_score:
            authority *= _positive(self.pages.scores[pages]) + np.float32(LEAST_SCORE)
        return _positive(authority)

    def explain(self, page: int) -> list[Part]:
        name = "authority (mean 1)" if self.factor else "inlinks, until the first ranking"
        parts = [Part(name, "+", max(float(self.shares[page]), 0.0))]
        if self.by_score:
            score = max(float(self.pages.scores[page]), 0.0) + LEAST_SCORE
            parts.append(Part(f"score + {LEAST_SCORE:g}", "×", score))
        return parts

    def gives(self, page: int, places: UInt64Array) -> Float32Array | None:
        weights = hub_weights_given(
            self.pages.log,
            places,
            np.uint64(page),
            self.pages.hosts,
            self.pages.scores,
            self.shares,
            self.factor,
            self.by_score,
            self.cross_only,
        )
        if self.by_score:
            weights *= np.float32(max(float(self.pages.scores[page]), 0.0) + LEAST_SCORE)
        return weights

    def adopt(self, ranks: Float32Array, meta: dict[str, Any], since: Events) -> None:
        self.factor = 1 / float(meta["lambda"]) if meta.get("lambda", 0) > 0 else 0.0
        self.shares[: len(ranks)] = ranks
        self.shares[len(ranks) : self.pages.num_pages] = 0
        self.fold(since)


class Opic(Policy):
    """On-line page importance: a visited page divides its cash among its links. The page with most cash is next.

    Abiteboul, Preda & Cobena, "Adaptive on-line page importance computation", WWW 2003. Each seed brings
    cash 1, and a page without links keeps its cash, so that only seeding changes the sum of all cash.
    """

    name = "opic"

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        super().__init__(pages, settings)
        self.cash: Float32Array = reserve(np.float32, _PAGES)

    def fold(self, events: Events) -> None:
        hand_over_cash(events.frames, self.cash)

    def priority(self, pages: UInt32Array) -> Float32Array:
        return self.cash[pages]

    def explain(self, page: int) -> list[Part]:
        return [Part("cash from links and seeding", "+", float(self.cash[page]))]


NEVER_CRAWLED = 2.0
"""Priority of a page that was never crawled, under ``revisit``; that of other pages is at most ½."""


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


POLICIES: dict[str, type[Policy]] = {
    policy.name: policy
    for policy in (
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


def policy_name(policy: "str | type[Policy] | Policy") -> str:
    """The name under which a policy is kept: its own if it is one of ours, else the place of its class.

    Raises
    ------
    inlink.errors.ParameterError
        If it is no policy.
    """
    if isinstance(policy, str):
        return policy
    kind = policy if isinstance(policy, type) else type(policy)
    if not issubclass(kind, Policy):
        raise ParameterError(
            f"policy must be a name, a subclass of Policy or an instance of one; got {policy!r}"
        )
    if POLICIES.get(kind.name) is kind:
        return kind.name
    return f"{kind.__module__}:{kind.__qualname__}"


def policy_of(
    folder: object, stored: str, given: "str | type[Policy] | Policy | None"
) -> "type[Policy] | Policy":
    """The policy of a crawl's folder. One of the user's own is imported only if the caller names it as well.

    Raises
    ------
    inlink.errors.ParameterError
        If the caller must name it, names another one, or names one that cannot be imported here.
    """
    if given is not None and policy_name(given) != stored:
        raise ParameterError(
            f"{folder}: this crawl's policy is {stored!r}; got {policy_name(given)!r}: leave it out, or change the "
            "policy by opening the crawl with inlink.Crawl"
        )
    if given is None and stored not in POLICIES:
        raise ParameterError(
            f"{folder}: this crawl's policy {stored!r} is code that is not inlink's: if you trust it, allow its import "
            f"by policy={stored!r}, or --set policy={stored} on a command line"
        )
    return policy_found(stored if given is None else given)


def policy_found(policy: "str | type[Policy] | Policy") -> "type[Policy] | Policy":
    """The class that a name stands for, or the class or instance itself.

    Raises
    ------
    inlink.errors.ParameterError
        If no policy has that name, or ``module:Class`` cannot be imported here.
    """
    if not isinstance(policy, str):
        return policy
    if policy in POLICIES:
        return POLICIES[policy]
    found = imported(policy, "policy")
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise ParameterError(f"policy must be a subclass of Policy; {policy} is {found!r}")
    return found

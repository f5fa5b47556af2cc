"""Policies that order pages by a ranking: PageRank, HITS, and any ranking that is stored with the crawl."""

import logging
import re
from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any, Self

import numpy as np

from inlink.base.arrays import Float32Array, UInt8Array, UInt32Array, UInt64Array, slices
from inlink.base.columns import reserve
from inlink.errors import FolderError, ParameterError
from inlink.factors.host import HostFactor
from inlink.factors.parts import NOT_REACHED, Part
from inlink.factors.prior import HostPrior
from inlink.frontier.kernels.shares import (
    diverse_priorities,
    estimates_given,
    give_estimates,
    give_hub_weight,
    give_shares,
    hub_weights_given,
    pass_on,
    shares_given,
)
from inlink.frontier.policy import MOST_PAGES, Policy, worth
from inlink.reranking.kernels.push import LEAST_SCORE
from inlink.reranking.sections import TURN
from inlink.store.events import Events
from inlink.store.pages import Pages
from inlink.store.prior import HostPlaces

__all__ = ["RANKED", "STORED", "by_stored_ranking"]

_log = logging.getLogger("inlink.crawl")

STORED = "ranking:"
"""Prefix of the names of policies that order pages by a stored ranking."""

RANKINGS = "rankings"

_BLOCK = 1 << 16
"""Number of pages for which a ranking is adopted at a time, so that no copy is as long as the crawl."""

_TURN_FACTOR = np.float32(1e6)
"""The factor of a seed whose turn it is: it comes before all pages of its host."""

_NO_SCORES = np.empty(0, np.float32)

_FILLING = (
    "adopt",
    "fold",
    "take_ranks",
    "take_scores",
    "take_expected",
    "take_sections",
    "take_over",
    "_begin",
)
"""The methods that fill the columns of a policy by ranking."""


class PageRank(Policy):
    """By un-normalised PageRank: x = c·Pᵀx + (1 − c)·v.

    v is 1 for each page; with ``use_scores`` the worth of the page's score (:func:`.policy.worth`); with ``trust`` the
    page's weight of trust, which is 0 for most pages. Between two rankings, the first visit of a page adds its shares
    to the ranks of the pages that it links to. With ``prior``, the priority is the rank and what
    :mod:`inlink.factors.prior` adds to it. The priority is multiplied by the factors of
    :mod:`inlink.factors.table`.
    """

    name = "pagerank"
    algorithm = "pagerank"
    takes_trust = True
    takes_distrust = True
    takes_prior = True
    has_divisors = False
    # As of the last ranking.
    has_sections = False
    columns: tuple[str, ...] | None = ("shares",)
    # The divisor of each page's section minus 1, or TURN.
    sections: Float32Array = np.empty(0, np.float32)
    expected: Float32Array = np.empty(0, np.float32)
    # The page scores that the last ranking was computed with. `take_ranks` reads them.
    ranked_scores: Float32Array = _NO_SCORES
    # The arrays that a ranking fills.
    ranked: tuple[str, ...] = ("shares",)

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        super().__init__(pages, settings)
        self.damping = float(settings.get("damping", 0.85))
        self.rest = np.float32(1 - self.damping)
        self.cross_only = bool(settings.get("cross_domain_only", False))
        self.shares: Float32Array = reserve(np.float32, MOST_PAGES)
        # The kernel reads both columns. In a subclass that does not take them from rankings, they stay 0.
        if self.takes_expected or "expected" in self.ranked:
            self.expected = reserve(np.float32, MOST_PAGES)
        if self.takes_sections or "sections" in self.ranked:
            self.sections = reserve(np.float32, MOST_PAGES)
        self.scores, self.least, self.trusts = _NO_SCORES, 0.0, False
        self.prior: HostPrior | None = None
        self.host_factors: tuple[HostFactor, ...] = ()
        if settings.get("use_scores", False):
            self.scores, self.least = pages.scores, LEAST_SCORE
            # The rank that a page passes on depends on its present score, and scores change.
            self.columns = None
            if self.algorithm == "pagerank":
                self.takes_scores, self.ranked_scores = True, reserve(np.float32, MOST_PAGES)

    def trust_in(self, pages: UInt32Array, weights: Float32Array) -> None:
        self.scores, self.least = reserve(np.float32, MOST_PAGES), 0.0
        self.scores[pages] = weights
        self.trusts = True

    def prior_in(self, places: HostPlaces) -> None:
        self.prior = HostPrior(self.pages, places)

    def factor_in(self, factor: HostFactor) -> None:
        self.host_factors += (factor,)

    def teleport(self, pages: UInt32Array | slice) -> Float32Array | np.float32:
        """(1 − c)·v of pages."""
        return self._teleport_by(self.scores[pages]) if len(self.scores) else self.rest

    def _teleport_by(self, scores: Float32Array) -> Float32Array:
        teleport: Float32Array = self.rest * (worth(scores) if self.least else scores)
        return teleport

    def _state(self) -> tuple[Any, ...]:
        """What the kernels read and write, besides events."""
        return (
            self.pages.hosts,
            self.scores,
            self.shares,
            self.damping,
            self.least,
            self.cross_only,
        )

    def fold(self, events: Events) -> None:
        # As in `_state`. A call takes longer, and each visit passes here.
        give_shares(
            events.frames,
            self.pages.hosts,
            self.scores,
            self.shares,
            self.damping,
            self.least,
            self.cross_only,
        )
        if self.has_sections:
            pass_on(events.frames, self.sections)

    def priority(self, pages: UInt32Array) -> Float32Array:
        ranks = priorities = PageRank.ranks(self, pages)
        if self.prior is not None:
            priorities = priorities + self.prior.added(pages, ranks, self.teleport(pages))
        if self.takes_expected:
            priorities = priorities + self.expected.take(pages)
        for factor in self.host_factors:
            priorities = priorities * factor.factor(pages)
        return priorities / self._divisors(pages) if self.has_divisors else priorities

    def ranks(self, pages: UInt32Array) -> Float32Array:
        return self.shares.take(pages) + (self.teleport(pages) if len(self.scores) else self.rest)

    def explain(self, page: int) -> list[Part]:
        alone = np.array([page], np.uint32)
        shares, teleport = float(self.shares[page]), float(np.ravel(self.teleport(alone))[0])
        if not len(self.scores):
            name = "1 − damping, from teleport"
        elif not self.trusts:
            name = f"(1 − damping) × worth of the score {self.scores[page]:g}"
        else:
            name = "(1 − damping) × weight of trust"
        parts = [
            Part("rank ÷ links, summed over the linkers", "+", shares / self.damping),
            Part("damping", "×", self.damping),
            Part(name, "+", teleport),
        ]
        if self.trusts and shares == teleport == 0:
            parts = [Part(NOT_REACHED, "+", 0.0)]
        if self.prior is not None:
            parts += self.prior.parts(page, shares + teleport, teleport)
        if self.takes_expected and self.expected[page] > 0:
            name = "rank expected of links that are not known yet"
            parts.append(Part(name, "+", float(self.expected[page])))
        for factor in self.host_factors:
            parts += factor.parts(page)
        return parts

    def gives(self, page: int, places: UInt64Array) -> Float32Array | None:
        log = self.pages.frames.at(places)
        amounts: Float32Array = shares_given(log, places, np.uint64(page), *self._state())
        return amounts / self._divisors(np.array([page], np.uint32)) if self.has_divisors else amounts

    def _divisors(self, pages: UInt32Array) -> Float32Array:
        """The divisors of priorities, float32[n], for subclasses with ``has_divisors``."""
        return np.ones(len(pages), np.float32)

    def adopt(self, ranks: Float32Array, meta: dict[str, Any], since: Events) -> None:
        self._begin(meta)
        for part in slices(len(ranks), _BLOCK):
            self.take_ranks(ranks, part)
        for name in self.ranked:
            getattr(self, name)[len(ranks) : self.pages.num_pages] = 0
        self.fold(since)

    def successor(self, meta: dict[str, Any]) -> Self | None:
        # These methods of a user's own may fill other columns.
        if not all(_is_ours(self, name) for name in _FILLING):
            return None
        other = copy(self)
        for name in self.ranked:
            setattr(other, name, reserve(np.float32, MOST_PAGES))
        other._begin(meta)
        return other

    def take_over(self, successor: Self) -> None:
        for name in (*self.ranked, *self.numbers):
            setattr(self, name, getattr(successor, name))

    def _begin(self, meta: dict[str, Any]) -> None:
        """Note what the header of a ranking says."""

    def take_ranks(self, ranks: Float32Array, block: slice) -> None:
        shares = self.shares[block]
        teleport = self._teleport_by(self.ranked_scores[block]) if self.takes_scores else self.teleport(block)
        np.subtract(ranks[block], teleport, out=shares)
        np.maximum(shares, np.float32(0), out=shares)

    def take_scores(self, scores: Float32Array, block: slice) -> None:
        self.ranked_scores[block] = scores[block]

    def take_expected(self, expected: Float32Array, block: slice) -> None:
        self.expected[block] = expected[block]


class HostDiverse(PageRank):
    """By (PageRank + expected rank) ÷ (1 + depth)^⅛ ÷ (1 + pages already taken from the host): the default.

    Each ranking brings the rank that a page can expect of links which the crawl does not know yet:
    see :mod:`inlink.reranking.expected`. It also brings divisors for the sections of seeds, and the seeds whose turn it
    is: see :mod:`inlink.reranking.sections`. A newer page has the divisor of the page that made it known.

    The present rank of a page far from the seeds comes from few links, which were found late, so it is overestimated: a
    page that is the only link of its linker gets nearly all of its rank. Among the pages of one host, PageRank alone
    collected less rank than breadth-first; docs/decisions/default-order.md has the figures.
    """

    name = "host-diverse"
    sharing = "shared"
    first_leases = 8
    takes_expected = takes_sections = has_divisors = True
    columns = ranked = ("shares", "expected", "sections")
    numbers = ("has_sections",)

    def priority(self, pages: UInt32Array) -> Float32Array:
        if self.prior is not None or self.host_factors or self.scores is not _NO_SCORES:
            return super().priority(pages)
        # The same numbers in one call.
        priorities: Float32Array = diverse_priorities(
            pages,
            self.shares,
            self.expected,
            self.rest,
            self.pages.depths,
            self.sections,
            1 / _TURN_FACTOR,
        )
        return priorities

    def explain(self, page: int) -> list[Part]:
        alone, section = np.array([page], np.uint32), self.sections[page]
        parts = [*super().explain(page), Part("(1 + depth)^⅛", "÷", float(self._distance(alone)[0]))]
        if section == TURN:
            parts.append(Part("turn of a seed that waits", "×", float(_TURN_FACTOR)))
        elif section > 0:
            parts.append(Part("(1 + pages crawled of its seed's section)^(Q⁴/4)", "÷", float(1 + section)))
        return parts

    def _divisors(self, pages: UInt32Array) -> Float32Array:
        divisors = self._distance(pages)
        if self.has_sections:
            sections = self.sections.take(pages)
            divisors *= np.where(sections == TURN, 1 / _TURN_FACTOR, 1 + sections)
        return divisors

    def _distance(self, pages: UInt32Array) -> Float32Array:
        """(1 + depth)^⅛ of pages, float32[n]."""
        # Roots, unlike powers, are rounded in the same way on all machines.
        root: Float32Array = np.float32(1) + self.pages.depths[pages].astype(np.float32)
        for _ in range(3):
            root = np.sqrt(root)
        return root

    def _begin(self, meta: dict[str, Any]) -> None:
        self.has_sections = meta.get("sections", 0) == 1

    def take_sections(self, sections: Float32Array, block: slice) -> None:
        self.sections[block] = sections[block]


class Hits(PageRank):
    """By HITS authority, with ``use_scores`` for a topic: a_j = (1/λ) Σ_{i→j} h_i, h_i = Σ_{i→j} r_j·a_j.

    Before the first ranking, the authority is the number of inlinks. After it, the first visit of a page adds h/λ to
    the authority of the pages that it links to.
    """

    name = "hits"
    algorithm = "hits"
    takes_trust = False
    takes_distrust = False
    takes_prior = False
    numbers = ("factor", "by_score", "ranked_up_to")

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        super().__init__(pages, settings)
        self.by_score = bool(settings.get("use_scores", False))
        # 1/λ, or 0 before the first ranking.
        self.factor = 0.0
        self.ranked_up_to = 0

    def _state(self) -> tuple[Any, ...]:
        return (
            self.pages.hosts,
            self.pages.scores,
            self.shares,
            self.factor,
            self.by_score,
            self.cross_only,
        )

    def fold(self, events: Events) -> None:
        give_hub_weight(events.frames, *self._state())

    def priority(self, pages: UInt32Array) -> Float32Array:
        authority: Float32Array = np.maximum(self.shares[pages], np.float32(0))
        return authority

    def ranks(self, pages: UInt32Array) -> Float32Array:
        return self.priority(pages)

    def explain(self, page: int) -> list[Part]:
        name = "inlinks, until the first ranking"
        if self.factor:
            topic = ", with the hub's links weighted by score" if self.by_score else ""
            name = f"authority: sum of the linkers' hub scores ÷ λ{topic} (mean 1)"
        return [Part(name, "+", max(float(self.shares[page]), 0.0))]

    def gives(self, page: int, places: UInt64Array) -> Float32Array | None:
        state = (*self._state(), np.uint64(self.ranked_up_to))
        amounts: Float32Array = hub_weights_given(
            self.pages.frames.at(places), places, np.uint64(page), *state
        )
        return amounts

    def _begin(self, meta: dict[str, Any]) -> None:
        self.factor = 1 / float(meta["lambda"]) if meta.get("lambda", 0) > 0 else 0.0
        # Scores are not used if they would make all authorities 0.
        self.by_score = bool(meta.get("use_scores")) and bool(meta.get("scored", True))
        self.ranked_up_to = int(meta["covers"])

    def take_ranks(self, ranks: Float32Array, block: slice) -> None:
        self.shares[block] = ranks[block]


class HitsByScore(Hits):
    """By HITS authority × the worth of the page's score (:func:`.policy.worth`)."""

    name = "hits-by-score"

    def priority(self, pages: UInt32Array) -> Float32Array:
        return super().priority(pages) * worth(self.pages.scores[pages])

    def explain(self, page: int) -> list[Part]:
        score = float(self.pages.scores[page])
        if score < 0:
            factors = [
                Part(f"{LEAST_SCORE:g}, the worth of a score of 0", "×", LEAST_SCORE),
                Part("1 − score, which is below 0", "÷", 1 - score),
            ]
        else:
            factors = [Part(f"score + {LEAST_SCORE:g}", "×", score + LEAST_SCORE)]
        return [*super().explain(page), *factors]

    def gives(self, page: int, places: UInt64Array) -> Float32Array | None:
        amounts = super().gives(page, places)
        return None if amounts is None else amounts * worth(self.pages.scores[page : page + 1])


class StoredRanking(Policy):
    """By a ranking that is stored with the crawl. Values of pages that it lacks are estimated from their links.

    A page that is newer than the ranking, or has no value above 0 in it, gets c · value ÷ links from each visit that
    links to it. If the ranking is stored again, the new values are used within seconds. ``ranking:NAME`` names a
    subclass of this class.
    """

    stored = ""
    # They are read from the stored ranking at each opening.
    columns = None
    fault: str | None = None

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        super().__init__(pages, settings)
        self.damping = float(settings.get("damping", 0.85))
        self.cross_only = bool(settings.get("cross_domain_only", False))
        self.values: Float32Array = reserve(np.float32, MOST_PAGES)
        self.ranked: UInt8Array = reserve(np.uint8, MOST_PAGES)
        self.version: object = None
        self.num_ranked = 0
        self._load()

    def _load(self) -> None:
        """Read the ranking, whose values must be finite and at least 0."""
        from inlink.sources.rankings import ranking_of

        ranking, version = ranking_of(self.pages.folder, self.stored)
        covered = min(len(ranking), self.pages.num_pages)
        for part in slices(covered, _BLOCK):
            block = ranking.values[part]
            if not np.all((block >= 0) & (block < 1e38)):
                place = f"{self.pages.folder}: ranking {self.stored}"
                raise FolderError(
                    f"{place} cannot order a crawl: it has values that are negative or not finite"
                )
        self.values[: self.pages.num_pages] = 0
        self.ranked[: self.pages.num_pages] = 0
        self.values[:covered] = ranking.values[:covered]
        self.ranked[:covered] = self.values[:covered] > 0
        self.version, self.num_ranked = version, covered

    def renew(self, events: Callable[[int], Events]) -> bool:
        header = self.pages.folder / RANKINGS / self.stored / "header.json"
        try:
            status = header.stat()
            if self.version == (status.st_mtime_ns, status.st_ino):
                return False
            self._load()
        except (OSError, FolderError) as error:
            if self.fault != str(error):
                _log.warning("%s; pages keep their priorities", error)
            self.fault = str(error)
            return False
        self.fault = None
        missing = np.flatnonzero(self.ranked[: self.pages.num_pages] == 0)
        if len(missing):
            # Earlier events link only to pages that the ranking covers.
            self.fold(events(self.pages.maker_place(int(missing[0]))))
        return True

    def fold(self, events: Events) -> None:
        give_estimates(
            events.frames, self.pages.hosts, self.ranked, self.values, self.damping, self.cross_only
        )

    def priority(self, pages: UInt32Array) -> Float32Array:
        return self.values[pages]

    def explain(self, page: int) -> list[Part]:
        value = float(self.values[page])
        if self.ranked[page]:
            return [Part(f"value in ranking {self.stored}", "+", value)]
        why = "newer than" if page >= self.num_ranked else "without a value in"
        return [
            Part(
                f"{why} ranking {self.stored}: value ÷ links, summed over the linkers",
                "+",
                value / self.damping,
            ),
            Part("damping", "×", self.damping),
        ]

    def gives(self, page: int, places: UInt64Array) -> Float32Array | None:
        if self.ranked[page]:
            return None
        return estimates_given(
            self.pages.frames.at(places),
            places,
            np.uint64(page),
            self.pages.hosts,
            self.values,
            self.damping,
            self.cross_only,
        )


def _is_ours(policy: Policy, name: str) -> bool:
    """Return whether a method of a policy is inlink's, not one of a user's class or of this object alone."""
    owner = next(owner for owner in type(policy).__mro__ if name in vars(owner))
    return name not in vars(policy) and owner.__module__.startswith("inlink.")


@cache
def by_stored_ranking(policy: str) -> type[Policy]:
    """The policy that ``ranking:NAME`` names.

    Raises
    ------
    inlink.errors.ParameterError
        If NAME cannot be the name of a ranking.
    """
    name = policy.removeprefix(STORED)
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", name):
        raise ParameterError(
            f"policy must be ranking:NAME with the name of a stored ranking; got {policy!r:.120}"
        )
    return type("StoredRanking", (StoredRanking,), {"name": policy, "stored": name})


RANKED: tuple[type[Policy], ...] = (HostDiverse, PageRank, Hits, HitsByScore)
"""The policies that a ranking process keeps up to date."""

"""The base class of all policies, and the conversion of link scores to priorities."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array, UInt64Array
from inlink.base.columns import most_pages
from inlink.base.settings import NO_LIMIT
from inlink.errors import ParameterError
from inlink.factors.host import HostFactor
from inlink.factors.parts import Part
from inlink.reranking.kernels.push import LEAST_SCORE
from inlink.store.events import Events
from inlink.store.pages import Pages
from inlink.store.prior import HostPlaces

__all__ = ["MOST_PAGES", "Policy", "checked_priorities", "worth"]

MOST_PAGES = most_pages()


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
    first_leases : int
        A host may have more open leases than this only up to the number of its pages that were answered and do not
        wait again. Pages that are leased before the first answers are chosen almost at random.
    algorithm : {"pagerank", "hits"} or None
        The ranking that the ranking process keeps for this policy. :meth:`adopt` receives it.
    takes_trust : bool
        Whether the setting ``trust`` applies. :meth:`trust_in` receives the trusted pages, and :meth:`factor_in` the
        factor by spam mass.
    takes_distrust : bool
        Whether the setting ``distrust`` applies. Its factor comes to :meth:`factor_in`.
    takes_prior : bool
        Whether the setting ``prior`` applies. :meth:`prior_in` receives the places of hosts.
    takes_scores : bool
        Whether a ranking contains the page scores that it was computed with. :meth:`take_scores` receives them.
    takes_expected : bool
        Whether rankings bring the ranks that pages can expect: see :mod:`inlink.reranking.expected`.
        :meth:`take_expected` receives them.
    takes_sections : bool
        Whether rankings bring divisors for the sections of seeds: see :mod:`inlink.reranking.sections`.
        :meth:`take_sections` receives them.
    columns : tuple of str or None
        The names of its arrays with one number for each page. A checkpoint keeps them. None if it must not, because
        the same events may give other numbers when the crawl is opened. Only policies of inlink are asked.
    numbers : tuple of str
        The names of the other values that belong to its columns.
    """

    name = "first-come"
    sharing = "none"
    newest = False
    first_leases = NO_LIMIT
    algorithm: str | None = None
    takes_trust = False
    takes_distrust = False
    takes_prior = False
    takes_scores = False
    takes_expected = False
    takes_sections = False
    columns: tuple[str, ...] | None = ()
    numbers: tuple[str, ...] = ()

    def __init__(self, pages: Pages, settings: dict[str, Any]) -> None:
        self.pages, self.settings = pages, settings

    def fold(self, events: Events) -> None:
        """Take events into this policy's columns."""

    def priority(self, pages: UInt32Array) -> Float32Array:
        """The priority of each page, float32[n], at least 0; pages with larger numbers are fetched sooner."""
        return np.zeros(len(pages), np.float32)

    def ranks(self, pages: UInt32Array) -> Float32Array:
        """The rank of each page, float32[n], by which the harvest is measured: the priority unless overridden."""
        return self.priority(pages)

    def explain(self, page: int) -> list[Part]:
        """The parts of a page's priority: :func:`inlink.factors.parts.combined` of them is the priority."""
        return []

    def gives(self, page: int, places: UInt64Array) -> Float32Array | None:
        """The amounts that the links of visits add to a page's priority before penalties.

        Returns
        -------
        float32[n] or None
            0 for a link that does not count. None if links do not count under this policy.
        """
        return None

    def renew(self, events: Callable[[int], Events]) -> bool:
        """Load a newer state from outside the log, if there is one; return whether priorities have changed.

        It is called about once a second. ``events(begin)`` returns the events from a byte of the log on.
        """
        return False

    def trust_in(self, pages: UInt32Array, weights: Float32Array) -> None:
        """Let the teleport go to trusted pages only, in proportion to their weights."""

    def prior_in(self, places: HostPlaces) -> None:
        """Raise the priorities of pages by the places of their hosts in an earlier ranking."""

    def factor_in(self, factor: HostFactor) -> None:
        """Multiply the priorities of pages by a factor of their hosts."""

    def adopt(self, ranks: Float32Array, meta: dict[str, Any], since: Events) -> None:
        """Replace the policy's state by a ranking of the first len(ranks) pages, then fold the events after it."""

    def successor(self, meta: dict[str, Any]) -> Self | None:
        """A policy like this one that holds no ranking yet, for :class:`.adoption.Adoption`.

        None if a ranking can only be adopted at once, by :meth:`adopt`.
        """
        return None

    def take_ranks(self, ranks: Float32Array, block: slice) -> None:
        """Take in the ranks of a block of pages. Only policies that have a :meth:`successor` are asked."""

    def take_scores(self, scores: Float32Array, block: slice) -> None:
        """Store the scores of a block of pages that the ranking used. ``scores`` is float32[n] for all ranked pages.

        It is called before :meth:`take_ranks` for the same block.
        """

    def take_expected(self, expected: Float32Array, block: slice) -> None:
        """Take in the ranks that a block of pages can expect, float32[n] of all ranked pages."""

    def take_sections(self, sections: Float32Array, block: slice) -> None:
        """Take in the values of :class:`.sections.SeedSections` for a block of pages, float32[n] of all pages."""

    def take_over(self, successor: Self) -> None:
        """Take over the columns of a :meth:`successor` that has the ranking and all later events."""


def checked_priorities(policy: Policy, pages: UInt32Array) -> Float32Array:
    """The priority of each page by a user's own policy, float32[n].

    Raises
    ------
    inlink.errors.ParameterError
        If the policy returns anything but a finite number of at least 0 for each page, as float32.
    """
    kind = type(policy)
    priorities: Any = policy.priority(pages)
    # The loops of the queue check no bounds.
    fault = ""
    if not isinstance(priorities, np.ndarray):
        fault = f"a {type(priorities).__name__}"
    elif priorities.dtype != np.float32 or priorities.shape != pages.shape:
        fault = f"{priorities.dtype}{list(priorities.shape)}"
    elif not (sound := (priorities >= 0) & np.isfinite(priorities)).all():
        place = int(np.argmin(sound))
        fault = f"{priorities[place]:g} for page {pages[place]}"
    if fault:
        raise ParameterError(
            f"policy {kind.__module__}:{kind.__qualname__} must return finite priorities of at least 0 as "
            f"float32[{len(pages)}]; got {fault}"
        )
    checked: Float32Array = priorities
    return checked


def worth(scores: Float32Array) -> Float32Array:
    """The worth of scores as priorities, float32[n], above 0: see :func:`inlink.reranking.kernels.push.worth`.

    The worth is the score + 1e-6, or 1e-6 ÷ (1 − score) for a score below 0. So it grows with the score.
    """
    least = np.float32(LEAST_SCORE)
    return np.where(scores >= 0, scores + least, least / (np.float32(1) - np.minimum(scores, 0))).astype(
        np.float32
    )

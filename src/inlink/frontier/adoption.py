"""Take over the ranking that the ranking process has published.

A running crawl must not wait until ten million values are read, checked and copied. So the work is done in steps of a
few milliseconds, one for each call. The steps fill a *successor* of the policy, which takes in the ranking and then
folds the events after it. Meanwhile the policy in use stays as it is. In the last step it takes over the columns of the
successor. The result is the same as if all had been done at this moment, bit by bit. A user's subclass of a policy by
ranking is treated in the same way, unless its class or the object itself has methods of its own to fill columns, such
as ``adopt`` or ``fold``.
"""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from inlink.base.arrays import Float32Array, slices
from inlink.base.folder import Folder
from inlink.errors import FolderError
from inlink.factors.trust import trusted_pages
from inlink.frontier.policies import Policy
from inlink.reranking.kernels.push import LEAST_SCORE
from inlink.reranking.soundness import RankingCheck, is_foreign
from inlink.store.format import VISIT
from inlink.store.kernels.checks import next_head
from inlink.store.log import RANKS

if TYPE_CHECKING:
    from inlink.frontier.frontier import Frontier


_log = logging.getLogger("inlink.crawl")

_BLOCK = 1 << 16
"""Number of pages whose values are taken in at a time."""

_VISITS = 64
"""Number of visits that are folded at a time."""

_A_STEP = 1 << 19
"""Cost of a step: a page costs 1."""

_A_VISIT = 256
"""Cost of a visit."""


class Adoption:
    """Adopts the published ranking if it is newer than the one in use and sound.

    Parameters
    ----------
    frontier : Frontier
    at_once : bool
        Whether the caller makes all steps at once. Then the policy needs no successor, and its memory is not doubled.
    verify : bool
        Whether to compare the checksum of the values too.

    Attributes
    ----------
    adopted : bool
        Whether the ranking was adopted. If it is not sound, ``ranking_fault`` of the frontier names its fault, and
        priorities do not change.
    """

    def __init__(self, frontier: "Frontier", *, at_once: bool = False, verify: bool = False) -> None:
        self._frontier, self._at_once, self._verify = frontier, at_once, verify
        self.adopted = False
        self._costs = self._work()

    def step(self) -> bool:
        """Work for a few milliseconds; return whether the work is over."""
        left = _A_STEP
        for cost in self._costs:
            left -= cost
            if left <= 0 and not self._at_once:
                return False
        return True

    def _work(self) -> Iterator[int]:
        """Do all the work; yield the cost of each part of it."""
        frontier = self._frontier
        frontier.ranking_fault = None
        ranks = self._published()
        if ranks is None:
            return
        meta, successor, fault, worths = ranks.header.meta, None, None, 0.0
        try:
            self._refuse_foreign(meta)
            values = ranks.array("rank")
            if self._verify:
                ranks.verify()
            shares = [factor.read(ranks) for factor in frontier.host_factors]
            brought = self._brought(ranks)
            check = RankingCheck(values, meta, frontier.pages.num_pages)
            if not self._at_once:
                successor = frontier.policy.successor(meta)
            by_score = frontier.settings.use_scores and not frontier.trusted_at
            for block in slices(check.length, _BLOCK):
                check.take_in(block)
                if by_score:
                    scores = brought.get("scores", frontier.pages.scores)[block]
                    worths += float(scores[scores > 0].sum(dtype=np.float64)) + LEAST_SCORE * len(scores)
                for name, beside in brought.items():
                    check.take_in_beside(name, beside, block)
                    if successor is not None:
                        getattr(successor, f"take_{name}")(beside, block)
                if successor is not None:
                    successor.take_ranks(values, block)
                yield _BLOCK
            fault = check.fault(worths if by_score else self._trust_of(check.length))
        except KeyError as error:
            fault = f"its header lacks {error}"
        except (FolderError, TypeError, ValueError, OverflowError) as error:
            # The header may hold anything.
            fault = str(error)
        if fault is not None:
            frontier.ranking_fault = fault
            _log.warning(
                "%s: the ranking in %s/ is not used (%s); pages keep their priorities until the next ranking",
                frontier.pages.folder,
                RANKS,
                fault,
            )
            return
        covers = int(meta["covers"])
        if successor is None:
            # `adopt` gives newer pages the divisors of the pages that made them known.
            for name, beside in brought.items():
                getattr(frontier.policy, f"take_{name}")(beside, slice(0, len(values)))
            frontier.policy.adopt(values, meta, frontier.events(covers))
        else:
            yield from self._catch_up(successor, covers)
            frontier.policy.take_over(successor)
        for factor, share in zip(frontier.host_factors, shares, strict=True):
            factor.adopt(share)
        frontier.ranked_up_to, frontier.adopted = covers, ranks.header
        if frontier.values is not None:
            frontier.values.ranks = values
        frontier.queue.begin_rekeying()
        self.adopted = True

    def _published(self) -> Folder | None:
        """The published ranking; None if it does not belong to this policy, or is not newer than the one in use."""
        frontier = self._frontier
        if frontier.policy.algorithm is None:
            return None
        try:
            ranks = Folder(frontier.pages.folder / RANKS, RANKS, 1)
        except FolderError:
            return None
        meta = ranks.header.meta
        covers = meta.get("covers")
        fits = (
            meta.get("algorithm") == frontier.policy.algorithm
            and bool(meta.get("use_scores", False)) == frontier.settings.use_scores
            and meta.get("trust", 0) == frontier.trusted_at
            and isinstance(covers, int)
            and frontier.ranked_up_to < covers <= frontier.pages.frames.end
        )
        return ranks if fits else None

    def _refuse_foreign(self, meta: dict[str, Any]) -> None:
        """Refuse a ranking of another crawl, or whose last byte of the log is not the end of a frame.

        The events after it would be read from within a frame. Rankings of earlier versions do not name their crawl.
        """
        pages, covers = self._frontier.pages, meta["covers"]
        remedy = f"it belongs to another crawl. Remove the folder {RANKS}; it is then made again"
        if is_foreign(meta, pages.folder):
            raise FolderError(f"it names crawl {meta['crawl']!s:.40}: {remedy}")
        if (
            next_head(pages.frames.log[: pages.frames.end], np.uint64(covers), np.uint64(pages.salt))
            != covers
        ):
            raise FolderError(f"it covers {covers:,} bytes of the log, which end within an event: {remedy}")

    def _brought(self, ranks: Folder) -> dict[str, Float32Array]:
        """Return the arrays beside the published ranking that the policy uses, by name, float32[n] each.

        A ranking of an earlier version may lack an array. Then the result has zeros, or the present scores.
        """
        policy, length, brought = self._frontier.policy, len(ranks.array("rank")), dict[str, Float32Array]()
        for name, takes in (
            ("scores", policy.takes_scores),
            ("expected", policy.takes_expected),
            ("sections", policy.takes_sections),
        ):
            if takes and ranks.header.meta.get(name, 0) == 1:
                brought[name] = ranks.array(name)
            elif takes:
                usual = self._frontier.pages.scores if name == "scores" else np.zeros(length, np.float32)
                brought[name] = usual[:length]
        return brought

    def _catch_up(self, successor: Policy, place: int) -> Iterator[int]:
        """Fold the events from a byte of the log on into the successor."""
        frontier, pages = self._frontier, self._frontier.pages
        # The crawl goes on between two steps. After two passes few events are left.
        for _ in range(2):
            end = pages.frames.end
            for stop in [*pages.frames.of_kind(VISIT, begin=place)[_VISITS::_VISITS], end]:
                successor.fold(frontier.events(place, stop))
                place = stop
                yield _VISITS * _A_VISIT
        successor.fold(frontier.events(place))

    def _trust_of(self, count: int) -> float | None:
        """The sum of the weights of trust of the first ``count`` pages; None if no pages are trusted."""
        if not self._frontier.trusted_at:
            return None
        found = trusted_pages(self._frontier.pages)
        return 0.0 if found is None else float(found.weights[found.pages < count].sum(dtype=np.float64))


def adopt(frontier: "Frontier", *, verify: bool = False) -> bool:
    """Adopt the published ranking at once; return whether it was adopted: see :class:`Adoption`."""
    adoption = Adoption(frontier, at_once=True, verify=verify)
    adoption.step()
    return adoption.adopted

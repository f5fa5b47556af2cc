"""The exchange of pages and ranks between the shards of a crawl.

A shard discovers pages of all hosts, and fetches those of its own. The rule ``shard`` excludes the others: they are
known and ranked, but never leased. Their owner asks for them, by the numbers that they have here, and takes them in.

**Each page once.** The owner's cursor is the end of the numbers that it has looked through. It is written after the
pages. After a kill between them, the same pages come again, and are known. A shard shows only pages that are safe from
a power cut, so a number that was shown can never stand for another page. A shard that was restored from a backup may
have lost numbers that it has shown. It knows this by the first cursor that it is sent, and the owner begins again at 0.

**Ranks.** Ranks are not normalised: x = d·Pᵀx + (1 − d)·v, so the links of a shard add their part to a page, whoever
owns the page. The owner takes this part as b (:mod:`inlink.reranking.live`) and adds it to the page's priority at once.
A part is sent again when it has changed by a tenth, and at rest when it has changed by 10⁻⁴. The sender remembers which
parts it has sent. If a reply was lost, it sends all of them again.

**The error of the ranks.** Let x be the ranks of all pages at their owners. Each ranking knows the residual of its own
equation. A change that has not reached the owner, or came after its ranking, is missing in b. It raises the residual of
x by at most its amount. All residuals and missing changes together, divided by 1 − d, bound ‖x* − x‖₁.
"""

import math
from collections import defaultdict
from functools import cached_property

import numpy as np

from inlink.base.arrays import BoolArray, Float32Array, Int64Array, UInt32Array, distinct
from inlink.crawl.intake import PageIntake
from inlink.crawl.journal import Journal
from inlink.crawl.links import are_canonical, split_links
from inlink.errors import ParameterError
from inlink.frontier.owners import go_on
from inlink.frontier.ranked import PageRank
from inlink.frontier.rules import host_of
from inlink.protocol import Discovered, DiscoveredPage, Link, ShardOf
from inlink.store import format as kinds
from inlink.store.received import FLOW, OtherShard, Received, other_shards
from inlink.urls.canonical import canonical
from inlink.urls.shards import Shard

MOST_PAGES, MOST_BYTES = 5000, 4 << 20
"""Maximum number of pages in a reply, and of bytes of their data."""

CHANGE, CHANGE_AT_REST = 0.1, 1e-4
"""Minimum relative change of a rank that is sent again: during the crawl, and at rest."""

REST_SECONDS = 30.0
"""A shard is at rest if it has crawled no new page for this number of seconds."""

_LOOKED_THROUGH = 1 << 18
"""Maximum number of pages that a call looks through: for new pages, and for ranks."""

_LOOK_UP_SECONDS = 0.1
"""Seconds of CPU time for which a call looks up the owners of hosts."""


class _Asker:
    """Another shard that asks for pages and ranks.

    Attributes
    ----------
    round : int
        The number of the last reply; 0 if there is none.
    end : int
        The end of the numbers of pages that were looked through for it.
    owned : uint32[n]
        The pages that it owns and that were sent, in the order of their numbers.
    sent : float32[n]
        Their ranks that were sent.
    place : int
        Where the next search for changed ranks begins.
    under_way : float
        Sum of the changes of ranks in the last reply, until the next request confirms it. Infinite if the reply had
        new pages, or if it is not known which ranks had arrived before.
    search, searched : tuple of int and float
        The running search for changed ranks and the last complete one: the ranking that was searched, by the byte of
        the log that it covers, and the sum of the changes that were too small to send.
    """

    def __init__(self) -> None:
        self.round = self.end = self.place = 0
        self.under_way = 0.0
        self.search = self.searched = 0, math.inf
        self.owned: UInt32Array = np.empty(0, np.uint32)
        self.sent: Float32Array = np.empty(0, np.float32)


class Exchange:
    """Gives pages and ranks to other shards, and takes theirs in.

    Parameters
    ----------
    journal : Journal
    intake : PageIntake
    """

    def __init__(self, journal: Journal, intake: PageIntake) -> None:
        self._journal, self._intake, self._pages = journal, intake, journal.pages
        self._askers: defaultdict[int, _Asker] = defaultdict(_Asker)
        # The shards whose cursors fit this log, and the number of pages in it when it was opened.
        self._fitting, self._opened = set[int](), journal.pages.num_pages
        # The number of pages with answers, and the time of its last change.
        self._answered, self._since = -1, 0.0

    @cached_property
    def _others(self) -> defaultdict[int, OtherShard]:
        return other_shards(self._pages.frames)

    @property
    def shard(self) -> Shard:
        """The shard that this crawl is.

        Raises
        ------
        inlink.errors.ParameterError
            If the crawl is no shard.
        """
        rules = self._journal.rules
        if rules is None or rules.part is None:
            raise ParameterError(f"{self._pages.folder} is not a shard: serve it with --shard K/N")
        return rules.part

    def end(self, shard: int) -> int:
        """The end of the numbers of another shard's pages that were looked through."""
        with self._journal.gate:
            return self._others[shard].end

    def progress(self) -> ShardOf:
        """Which shard this is, the number of its pages, and the ends of the numbers that it has looked through."""
        with self._journal.gate:
            own = self.shard
            ends = [self._others[shard].end for shard in range(1, own.count + 1)]
            return ShardOf(own.number, own.count, self._pages.num_pages, ends)

    # -- for other shards ---------------------------------------------------------------------------------------------

    def discovered(self, shard: int, count: int, begin: int, last: int = 0) -> Discovered:
        """Pages that were discovered here and that another shard owns, from a number on, and changed ranks of others.

        Parameters
        ----------
        shard, count : int
            The other shard, and the number of shards.
        begin : int
            The first number to look at.
        last : int
            The round of the last reply that the other shard has taken in; 0 if there is none.

        Raises
        ------
        inlink.errors.ParameterError
            If the other shard is not one of this crawl's.
        """
        with self._journal.gate:
            own = self.shard
            if count != own.count or not 1 <= shard <= count or shard == own.number:
                raise ParameterError(
                    f"this is shard {own.number} of {own.count}: shard {shard} of {count} cannot ask it for pages"
                )
            if shard not in self._fitting and begin > self._opened:
                # This folder is an older copy than the one that gave these numbers out.
                return Discovered(own.number, last, 0, [])
            self._fitting.add(shard)
            if not go_on(self._journal.owners.hosts.learn(), _LOOK_UP_SECONDS):
                # The owners of all hosts are looked up after a start. Spiders are served between the calls.
                return Discovered(own.number, last, begin, [])
            asker = self._askers[shard]
            is_anew = (asker.round, asker.end) != (last, begin)
            if is_anew:
                # A reply was lost, or one of the two shards has just begun.
                asker.owned = self._owned_by(shard, 0, begin)
                asker.sent = np.zeros(len(asker.owned), np.float32)
                asker.round, asker.place, asker.searched = last, 0, (0, math.inf)
            changed, ranks = self._changed(asker)
            asker.end, pages = self._discovered(shard, begin)
            given = self._given(pages)
            if is_anew or len(pages):
                asker.under_way = math.inf
            asker.owned = np.concatenate([asker.owned, pages])
            asker.sent = np.concatenate([asker.sent, given])
            asker.round += 1
            of = self._pages
            rows = [
                DiscoveredPage(url, score, depth, rank, (of.carried(page) or b"") if carrier else b"")
                for page, url, score, depth, rank, carrier in zip(
                    pages.tolist(),
                    of.urls(pages),
                    of.scores[pages].tolist(),
                    of.depths[pages].tolist(),
                    given.tolist(),
                    of.carriers[pages].tolist(),
                    strict=True,
                )
            ]
            return Discovered(own.number, asker.round, asker.end, rows, changed.tobytes(), ranks.tobytes())

    def _discovered(self, shard: int, begin: int) -> tuple[int, UInt32Array]:
        """The end of the numbers to send now, and the pages among them that a shard owns."""
        of = self._pages
        stop = max(min(self._safe(), begin + _LOOKED_THROUGH), begin)
        pages = self._owned_by(shard, begin, stop)
        if len(pages) > MOST_PAGES:
            stop, pages = int(pages[MOST_PAGES]), pages[:MOST_PAGES]
        size = 0
        for k in np.flatnonzero(of.carriers[pages]).tolist():
            size += len(of.carried(pages[k]) or b"")
            if size > MOST_BYTES and k:
                return int(pages[k]), pages[:k]
        return stop, pages

    def _changed(self, asker: _Asker) -> tuple[UInt32Array, Float32Array]:
        """The places of sent pages whose ranks have changed, and these ranks."""
        begin = asker.place if asker.place < len(asker.owned) else 0
        asker.place = begin + _LOOKED_THROUGH
        ranking, left = asker.search
        if begin == 0:
            ranking, left = self._journal.frontier.ranked_up_to, 0.0
        elif ranking != self._journal.frontier.ranked_up_to:
            left = math.inf
        ranks, sent = self._given(asker.owned[begin : asker.place]), asker.sent[begin : asker.place]
        changed = np.flatnonzero(_differ(ranks, sent, self._change()))
        asker.under_way = _distance(ranks[changed], sent[changed])
        sent[changed] = ranks[changed]
        asker.search = ranking, left + _distance(ranks, sent)
        if asker.place >= len(asker.owned):
            asker.searched = asker.search
        return (changed + begin).astype(np.uint32), ranks[changed]

    def _change(self) -> float:
        """The minimum relative change of a rank that is sent again."""
        answered, now = self._pages.tally.rows, self._journal.tick()
        if answered != self._answered:
            self._answered, self._since = answered, now
        return CHANGE_AT_REST if now - self._since >= REST_SECONDS else CHANGE

    def _given(self, pages: UInt32Array) -> Float32Array:
        """What the links of this shard give to pages, float32[n]; 0 if the policy is not by PageRank."""
        policy = self._journal.frontier.policy
        if isinstance(policy, PageRank) and policy.algorithm == "pagerank":
            return policy.shares[pages]
        return np.zeros(len(pages), np.float32)

    def _safe(self) -> int:
        """The number of pages that are safe from a power cut."""
        of, log = self._pages, self._journal.log
        row = int(np.searchsorted(of.maker_places[: of.tally.makers], np.uint64(log.synced)))
        return int(of.makers[row]) if row < of.tally.makers else of.num_pages

    def _owned_by(self, shard: int, begin: int, end: int) -> UInt32Array:
        """The pages with numbers from ``begin`` to ``end`` - 1 that a shard owns, uint32[k]."""
        owners = self._journal.owners.of(slice(begin, end))
        return (np.flatnonzero(owners == shard) + begin).astype(np.uint32)

    def stale(self) -> float | None:
        """Return a bound on the sum of the changes of ranks that are missing at this shard and the others.

        These are changes of ranks here that the other shards have not received, and changes that came here and were
        too small to take in. The bound holds until the next link or ranking. It is None if another shard has not asked
        for all pages and ranks since the last ranking, and 0 if the crawl is no shard.
        """
        rules = self._journal.rules
        if rules is None or rules.part is None:
            return 0.0
        own, total = rules.part, 0.0
        for shard in {*range(1, own.count + 1)} - {own.number}:
            asker = self._askers[shard]
            ranking, left = asker.searched
            if asker.end < self._pages.num_pages or ranking != self._journal.frontier.ranked_up_to:
                return None
            total += left + asker.under_way + CHANGE_AT_REST * float(self._others[shard].ranks.sum())
        return total if total < math.inf else None

    # -- from other shards --------------------------------------------------------------------------------------------

    def receive(self, begin: int, batch: Discovered) -> int:
        """Take in pages and ranks of another shard; return the number of new pages.

        Parameters
        ----------
        begin : int
            The number from which the other shard was asked for pages.
        batch : Discovered

        Raises
        ------
        inlink.errors.ParameterError
            If a page is not this shard's, or has another form here, or a rank is not sound. Then nothing is taken in.
        inlink.errors.StoreError
            If the log cannot be written.
        """
        journal = self._journal
        with journal.gate:
            other = self._others[batch.shard]
            if begin != other.end:
                return 0
            if batch.end < begin:
                self._begin_again(batch.shard, other)
                return 0
            self._check_pages(batch)
            places, ranks = _checked_ranks(batch, len(other.pages))
            journal.tick()
            new, pages = 0, np.empty(len(batch.pages), np.uint32)
            depths = np.array([page.depth for page in batch.pages], np.int64)
            scores = np.array([page.score for page in batch.pages], np.float32)
            for depth in np.unique(depths).tolist():
                rows = np.flatnonzero(depths == depth)
                some = [batch.pages[row] for row in rows.tolist()]
                carried = {k: page.data for k, page in enumerate(some) if page.data}
                forms = [page.url for page in some]
                pages[rows], added = self._intake.seed_forms(
                    forms, scores[rows], carried, kinds.BY_SHARD, depth=depth
                )
                new += added
            before = np.concatenate([other.ranks[places], np.zeros(len(pages))])
            after = np.concatenate([ranks, np.array([page.rank for page in batch.pages], np.float32)])
            # After a lost reply, the other shard sends all ranks again. Most of them have not changed.
            differ = _differ(after, before, CHANGE_AT_REST / 2)
            flows = np.empty(int(differ.sum()), FLOW)
            flows["page"] = np.concatenate([other.pages[places], pages])[differ]
            flows["amount"] = (after - before)[differ]
            if batch.end == begin and not len(flows):
                return 0
            event = Received(batch.shard, batch.end, pages, flows)
            journal.append(kinds.RECEIVED, listed=len(pages), payload=event.encoded())
            other.take_in(event)
            journal.frontier.prioritise(distinct(flows["page"]), journal.now)
            return new

    def _begin_again(self, shard: int, other: OtherShard) -> None:
        """Forget the ranks of a shard that was restored from an older copy. The shard sends all its pages again."""
        flows = np.empty(len(other.pages), FLOW)
        flows["page"], flows["amount"] = other.pages, -other.ranks
        event = Received(shard, 0, np.empty(0, np.uint32), flows)
        self._journal.tick()
        self._journal.append(kinds.RECEIVED, payload=event.encoded())
        other.take_in(event)
        self._journal.frontier.prioritise(distinct(flows["page"]), self._journal.now)

    def _check_pages(self, batch: Discovered) -> None:
        own, rules = self.shard, self._journal.url_rules
        if not 1 <= batch.shard <= own.count or batch.shard == own.number:
            raise ParameterError(f"shard {own.number} of {own.count} takes no pages of shard {batch.shard}")
        parts = [page.url.partition("#") for page in batch.pages]
        # Scores, data and variants.
        split_links(
            [
                Link(form, page.score, data=page.data, variant=variant)
                for page, (form, _, variant) in zip(batch.pages, parts, strict=True)
            ]
        )
        forms = [form for form, _, _ in parts]
        is_ours = are_canonical(forms, rules) and all(map(own.owns, set(map(host_of, forms))))
        if is_ours and all(bool(mark) == bool(variant) for _, mark, variant in parts):
            return
        url = next(
            f"{form}{mark}{variant}"
            for form, mark, variant in parts
            if canonical(form, None, rules) != form or not own.owns(host_of(form)) or (mark and not variant)
        )
        raise ParameterError(
            f"shard {batch.shard} sent {url[:200]}, which is no page of shard {own.number}/{own.count}: all shards "
            "need the same N in --shard K/N, and the same `url_rules`"
        )


def _checked_ranks(batch: Discovered, count: int) -> tuple[Int64Array, Float32Array]:
    """The places of pages whose ranks changed, and the ranks."""
    if len(batch.changed) % 4 == 0 and len(batch.changed) == len(batch.ranks):
        places, ranks = np.frombuffer(batch.changed, "<u4"), np.frombuffer(batch.ranks, "<f4")
        every = np.append(ranks, np.array([page.rank for page in batch.pages], np.float32))
        known = not len(places) or places.max() < count
        if known and np.isfinite(every).all() and every.min(initial=0) >= 0:
            return places.astype(np.int64), ranks
    raise ParameterError(f"shard {batch.shard} sent ranks of unknown pages, or ranks that are not finite")


def _distance(after: Float32Array, before: Float32Array) -> float:
    """The sum of the differences."""
    return float(np.abs(after.astype(np.float64) - before).sum())


def _differ(after: Float32Array, before: Float32Array, change: float) -> BoolArray:
    differ: BoolArray = np.abs(after - before) > change * np.maximum(after, before)
    return differ

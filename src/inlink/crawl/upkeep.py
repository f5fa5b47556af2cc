"""Work that a crawl does in small steps between two calls: rankings and the index."""

import logging
import threading
import time
from collections.abc import Iterator
from itertools import chain

from msgspec.structs import replace

from inlink.base.clock import VirtualClock
from inlink.crawl import checkpointing
from inlink.crawl.adopted import adopted_rankings, payload_of, ranking_options
from inlink.crawl.arguments import checked_states
from inlink.crawl.journal import Journal
from inlink.errors import InlinkError, InputError, ParameterError
from inlink.frontier.adoption import Adoption, adopt
from inlink.reranking.handle import Reranker
from inlink.reranking.process import Ranker
from inlink.store import inbox
from inlink.store.format import RANKING
from inlink.store.opening import IndexWriter
from inlink.store.spill import Finished, Spill

_log = logging.getLogger("inlink.crawl")

# Share of one processor that HITS may use: each of its rounds goes over all links.
HITS_SHARE = 0.5
FIRST_PAGES = 100
FIRST_SECONDS = 10.0
"""The first ranking starts after FIRST_PAGES crawled pages or after FIRST_SECONDS, whichever is first."""

LEAST_GROWTH = 10
"""Minimum number of pages crawled between two rankings, because a share of few pages is less than one page."""

EARLY_PAGES = 10
"""Replaces FIRST_PAGES and LEAST_GROWTH if rankings bring expected ranks: see docs/decisions/default-order.md."""


class Upkeep:
    """Keeps a crawl ranked and indexed.

    Parameters
    ----------
    journal : Journal
        Its gate shows at the end whether memory still agrees with the log. With a
        :class:`~inlink.base.clock.VirtualClock`, in which a ranking process would take no time, the call that asks for
        a ranking makes it.

    Attributes
    ----------
    at_once : bool
        Whether the clock is virtual. Then no work is cut into steps.
    inbox_at : float
        The monotonic time at which :meth:`requests` looks for requests again.
    """

    def __init__(self, journal: Journal) -> None:
        frontier = journal.frontier
        self._journal = journal
        self.at_once = isinstance(journal.clock, VirtualClock)
        self.frontier, self.pages, self._log = frontier, frontier.pages, journal.log
        self._options = ranking_options(frontier.settings, frontier.policy)
        share = HITS_SHARE if frontier.policy.algorithm == "hits" else 1.0
        self.reranker = Reranker(self.pages.folder, replace(self._options, share=share))
        self._ranker: Ranker | None = None
        # The ranking that is being taken over.
        self._adoption: Adoption | None = None
        self._rank_at_opening = False
        self._index: IndexWriter | None = None
        self._checkpoints = checkpointing.Checkpointer(self.pages, journal.log)
        checkpoint = self.pages.checkpoint
        self._spill = Spill(self.pages.folder, None if checkpoint is None else checkpoint.mapped)
        self.inbox_at = 0.0
        # Whether the crawl has no ranking yet, and no ranking was started.
        self._first = True
        self._ranked_pages, self._ranked_time = self.pages.tally.crawled, journal.now

    def opened(self, now: float) -> None:
        """Note the crawl's ranking at opening.

        A ranking that cannot be used, or that lacks a factor of hosts, is replaced, unless new rankings never start.
        """
        # The seconds between rankings count from the opening, because the last event may be days old.
        self._ranked_time = now
        settings = self.frontier.settings
        automatic = settings.rerank_share is not None or settings.rerank_seconds is not None
        self._first = self.frontier.ranked_up_to == 0
        outdated = not self._first and not all(factor.published for factor in self.frontier.host_factors)
        self._rank_at_opening = automatic and (self.frontier.ranking_fault is not None or outdated)
        # A crash may have prevented the event of the ranking that is adopted now.
        covers, adopted = self.frontier.ranked_up_to, self.frontier.adopted
        if adopted is not None:
            check = adopted.files["rank"].crc32
            known = adopted_rankings(self.pages, covers)
            if not known or known[-1].identity != (covers, check):
                self._journal.append(RANKING, payload=payload_of(adopted))

    def _finished(self) -> Iterator[Finished]:
        """The columns that leave memory once they are written."""
        traps = (self.frontier.traps, self.pages.num_pages)
        return chain(self.pages.finished(), self.frontier.queue.finished(), [traps])

    def requests(self) -> Iterator[tuple[str, list[tuple[str, float]]]]:
        """The requests in the inbox: kind, and URLs with scores or states of pages. Finished requests are removed.

        The caller looks once a second.
        """
        self.inbox_at = time.monotonic() + 1.0
        self.frontier.renew()
        for path, kind, text in inbox.pending(self.pages.folder):
            try:
                lines = inbox.seeds_in(text, str(path))
                if kind == inbox.RELOAD:
                    checked_states([state for state, _ in lines])
            except (InputError, ParameterError) as error:
                _log.warning("ignored a request from the inbox: %s", error)
            else:
                yield kind, lines
            path.unlink(missing_ok=True)

    def after_visit(self, now: float) -> None:
        """Ask for a new ranking if enough pages were crawled, continue or begin an index, and move columns to files."""
        known = self.pages.tally.pages
        if known >= self._spill.look_at:
            self._spill.step(known, self._finished)
        if self.frontier.policy.algorithm is not None and not self.reranker.busy and self._ranking_due(now):
            self.rerank(now)
        if self._index is not None:
            if self._index.step():
                self._index = None
        elif known >= self.pages.table.index_at:
            self._index = self._new_index()
        if self._log.urls_end + self._log.events_end >= self._checkpoints.look_at and not self.at_once:
            self._checkpoints.step()

    def _ranking_due(self, now: float) -> bool:
        crawled, last, settings = self.pages.tally.crawled, self._ranked_pages, self.frontier.settings
        share, seconds = settings.rerank_share, settings.rerank_seconds
        if share is None and seconds is None:
            return False
        first_pages, least_growth = FIRST_PAGES, LEAST_GROWTH
        if self.frontier.policy.takes_expected:
            first_pages = least_growth = EARLY_PAGES
        if self._first:
            return crawled >= first_pages or now - self._ranked_time >= FIRST_SECONDS
        grown = share is not None and crawled >= last + max(last * share, least_growth)
        waited = seconds is not None and now - self._ranked_time >= seconds
        return grown or (waited and crawled > last)

    def _new_index(self) -> IndexWriter | None:
        try:
            return IndexWriter(self.pages, self._log)
        except (OSError, InlinkError) as error:
            _log.warning("cannot write an index (%s); the next opening of this crawl takes longer", error)
            self.pages.table.note_indexed(self.pages.num_pages)
            return None

    def rerank(self, now: float) -> None:
        """Start a new ranking in the ranking process; in virtual time, rank at once."""
        if self.at_once:
            self.rerank_at_once(now)
            return
        self._ranked_pages, self._ranked_time, self._first = self.pages.tally.crawled, now, False
        if self.frontier.policy.algorithm is not None:
            self.reranker.ask(self.pages.num_pages)

    def rerank_at_once(self, now: float) -> None:
        """Rank in this process and thread, and give all waiting pages their new priorities."""
        self._ranked_pages, self._ranked_time, self._first = self.pages.tally.crawled, now, False
        if self.frontier.policy.algorithm is None:
            return
        if self.reranker.busy or self._adoption is not None:
            # The ranking process must not publish an older ranking later. It may be stopped, so it is not waited for.
            self.reranker.close()
            self._adoption = None
            # The new ranking starts from what it published, so the log must name that.
            self._adopt()
        if self._ranker is None:
            self._ranker = Ranker(self.pages.folder, self._options, threading.Event())
        self._ranker.rank()
        self._adopt()
        while self.frontier.queue.rekeying:
            self.frontier.rekey_some(now)

    def _adopt(self) -> None:
        """Adopt the published ranking at once, and log it."""
        if adopt(self.frontier):
            self._log_ranking()

    def _log_ranking(self) -> None:
        assert self.frontier.adopted is not None
        self._journal.append(RANKING, payload=payload_of(self.frontier.adopted))

    def _take_over(self, adoption: Adoption) -> None:
        """Continue to adopt the published ranking. If it is not sound, another process tries later."""
        self._adoption = adoption
        if not adoption.step():
            return
        self._adoption = None
        if adoption.adopted:
            self._log_ranking()
        if self.frontier.ranking_fault is None:
            self.reranker.succeeded()
        else:
            self.reranker.give_up("made a ranking that cannot be used")

    @property
    def ranking(self) -> bool:
        """True while a ranking is being computed, taken over, or applied to the waiting pages."""
        return self.reranker.busy or self._adoption is not None or self.frontier.queue.rekeying

    def before_next(self, now: float) -> None:
        """Adopt a ranking that is ready, and continue to update priorities."""
        if self._adoption is not None:
            self._take_over(self._adoption)
        elif self.reranker.busy:
            if self.reranker.answer() is not None:
                self._take_over(Adoption(self.frontier))
        elif self._rank_at_opening or (self.reranker.failed is not None and self.reranker.again_due):
            self._rank_at_opening = False
            self.rerank(now)
        if self.frontier.queue.rekeying:
            self.frontier.rekey_some(now)

    def finish(self) -> None:
        """End the ranking process, finish the index, and write a checkpoint, unless memory may differ from the log."""
        self._spill.close()
        self.reranker.close()
        self._checkpoints.close()
        if self._ranker is not None:
            self._ranker.pages.close()
        if self._journal.gate.broken_off:
            if self._index is not None:
                self._index.give_up()
            return
        # An index must not hold URLs that were not written.
        written = self.pages.tally.url_bytes == self._log.urls_end
        if self._index is None and written and self.pages.num_pages >= self.pages.table.index_at:
            self._index = self._new_index()
        if self._index is not None:
            self._index.finish()
            self._index = None
        if written and not self._log.broken and self._checkpoints.is_due():
            checkpointing.save(self.frontier, self._log)

    def abandon(self) -> None:
        """In the child of a fork, close the parent's temporary files and its pipes to other processes."""
        self._spill.close()
        self.reranker.abandon()
        self._checkpoints.abandon()

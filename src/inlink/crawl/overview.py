"""The methods of a view that describe a crawl as a whole: its standing, its harvest and its figures."""

from functools import cached_property

import msgspec

from inlink.crawl import shown
from inlink.crawl.arguments import argument
from inlink.crawl.certifying import CertificateWatch
from inlink.crawl.gate import Gate, inside
from inlink.crawl.snapshot import ViewedCrawl
from inlink.frontier.standing import Harvest, Progress, state_counts
from inlink.frontier.survey import LinkCount
from inlink.protocol import Standing

__all__ = ["Overview"]

_SECONDS = 0.005
"""CPU time after which a search pauses."""


class Overview:
    """The methods of :class:`inlink.CrawlView` that describe a crawl as a whole."""

    _crawl: ViewedCrawl
    _gate: Gate

    @inside
    def standing(self, hosts: int = 5, top: int | None = None, within: float = 0.0) -> Standing:
        """The crawl's progress: pages by state, the ``hosts`` hosts with the most waiting pages, and the harvest.

        In a crawl of more than a few million pages, the harvest may be a few calls old. It is None until the first
        calls have computed it.

        Parameters
        ----------
        hosts : int
            Number of hosts, 0 … 1,000.
        top : int or None
            Add a certificate of this number of places, 1 … 1,000. A thread computes it, with a tenth of one processor
            at most, as long as calls ask for it. It is None until the first is ready. Without ``top`` it costs nothing.
        within : float
            ε of the certificate, a share of all rank, 0 … 1.

        Raises
        ------
        inlink.errors.ParameterError
            If an argument is out of its range.
        """
        hosts, within = argument("hosts", hosts), argument("within", within)
        standing = self._progress.standing(self._crawl.now(), hosts, _SECONDS)
        if top is None:
            return standing
        return msgspec.structs.replace(standing, certificate=self._certificates.latest(top, within))

    @inside
    def harvest(self) -> Harvest:
        """A curve: the share of all rank that the fetched pages hold, against the number of fetched pages.

        While the ``cursor`` of the result is not None, the curve is old or empty: call again.
        """
        return self._progress.harvest(_SECONDS)

    @inside
    def info(self) -> shown.Info:
        """Figures of the crawl: numbers of pages by state, hosts, links and events, and the time of its beginning."""
        pages = self._crawl.pages
        return shown.Info(
            pages.num_pages,
            state_counts(pages),
            pages.num_crawled,
            pages.num_hosts,
            self._link_count.proceed(_SECONDS),
            pages.num_events,
            pages.events_end,
            pages.started,
        )

    def stop(self) -> None:
        """End the thread that computes certificates, if there is one."""
        if "_certificates" in self.__dict__:
            self._certificates.stop()

    @cached_property
    def _progress(self) -> Progress:
        return Progress(self._crawl.frontier)

    @cached_property
    def _link_count(self) -> LinkCount:
        return LinkCount(self._crawl.pages)

    @cached_property
    def _certificates(self) -> CertificateWatch:
        return CertificateWatch(self._crawl.pages.folder)

"""Report the results of fetches to a crawl."""

from collections import Counter
from collections.abc import Iterable

from inlink.crawl.core import Core
from inlink.crawl.gate import Gate
from inlink.crawl.intake import listed
from inlink.crawl.journal import Answered
from inlink.crawl.visiting import take_visit
from inlink.frontier.leases import Lease
from inlink.protocol import AnyLink, Link

__all__ = ["Reporting"]


class Reporting:
    """Methods of :class:`inlink.Crawl`: they report the results of fetches, which ends leases.

    All of them raise :class:`~inlink.errors.UnknownNodeError` if a page is named by a URL that the crawl does not know,
    :class:`~inlink.errors.ParameterError` if an argument has another type or is out of its range, and
    :class:`~inlink.errors.StoreError` if the log cannot be written.
    """

    refused: Counter[str]
    _gate: Gate
    _core: Core

    def crawled(
        self,
        page: Answered,
        links: Iterable[AnyLink] = (),
        *,
        score: float = 0.0,
        content_hash: bytes = b"",
        fingerprint: int = 0,
        status: int = 200,
        redirected_to: str | None = None,
        canonical_link: str | Link | None = None,
        noindex: bool = False,
        nofollow: bool = False,
        links_are_canonical: bool = False,
    ) -> bool:
        """Report a fetched page: take in its links, and end its lease.

        Parameters
        ----------
        page : Lease, int or str
            The lease, its number, or the URL that the answer is for. Only the number of a lease is used.
        links : iterable of str, (str, float) or Link
            The page's links, relative or absolute, with scores or without. They replace those of an earlier visit.
        score : float
            How good the page's content is.
        content_hash : bytes
            A hash of at most 255 bytes. A hash that differs from the last visit's counts as a change.
        fingerprint : int
            The fingerprint of the page's text: see :mod:`inlink.scoring.fingerprint`. 0 is none.
        status : int
            HTTP status.
        redirected_to : str or None
            The last URL of a chain of redirects. The page is merged into it, and the visit belongs to that page.
        canonical_link : str, Link or None
            The canonical URL that the page names. It becomes known like a link, and is fetched. Then the page may be
            merged into it: see :doc:`/crawling`. The data of a Link are for its task.
        noindex, nofollow : bool
            The page's robots directives. They are only stored.
        links_are_canonical : bool
            Whether the links are strings in canonical form already.

        Returns
        -------
        bool
            Whether the answer counted. It does not if the lease was answered before, or if the page was crawled since
            the lease was given.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If this crawl does not know the URL.
        inlink.errors.ParameterError
            If an argument has another type or is out of its range. Then nothing changes.
        inlink.errors.StoreError
            If the log cannot be written.
        """
        if type(links) is not list:
            links = listed(links)
        core = self._core
        with self._gate:
            core.tick()
            counted = take_visit(
                core.journal,
                self.refused,
                page,
                links,
                score=score,
                content_hash=content_hash,
                fingerprint=fingerprint,
                status=status,
                redirected_to=redirected_to,
                canonical_link=canonical_link,
                noindex=noindex,
                nofollow=nofollow,
                links_are_canonical=links_are_canonical,
            )
            if counted:
                core.upkeep.after_visit(core.journal.now)
            return counted

    def failed(
        self,
        page: Answered,
        error: str = "",
        *,
        status: int | None = None,
        retry: bool | None = None,
        retry_after: str | float | None = None,
    ) -> bool:
        """Report that a page could not be fetched; return whether the answer counted.

        Parameters
        ----------
        page : Lease, int or str
        error : str
            What happened; ``crawl.page(url).error`` shows it.
        status : int or None
            HTTP status, if there was an answer. 404 and 410 make a page ``gone``; 429 and 503 make its host wait.
        retry : bool or None
            Whether to retry, up to ``max_retries`` times; then the page is ``failed``. None: as the status says.
        retry_after : str, float or None
            The header ``Retry-After``, or seconds.
        """
        with self._gate:
            self._core.tick()
            return self._core.answers.failed(page, error, status, retry, retry_after)

    def exclude(self, page: Answered, reason: str = "") -> bool:
        """Report that a page must not be fetched, as by robots.txt; return whether the answer counted."""
        with self._gate:
            self._core.tick()
            return self._core.answers.excluded(page, reason)

    def redirected(
        self, lease: Answered, to: str, *, carried: bytes | None = None, again: bool = False, status: int = 0
    ) -> Lease | None:
        """Report a redirect that the spider wants to follow at once.

        Parameters
        ----------
        lease : Lease, int or str
            The lease of the page that redirects, its number, or the page's URL. The lease ends.
        to : str
            The target. The page is merged into it.
        carried : bytes or None
            Data for the target's task, see :class:`inlink.protocol.Link`.
        again : bool
            Whether to follow even if the target was fetched, or is being fetched.
        status : int
            HTTP status of the answer that redirects: 301, 302, 307, 308, …, or 200 for a page that sends browsers on,
            as by ``<meta http-equiv=refresh>``. 0 if it is not known.

        Returns
        -------
        Lease or None
            The target's lease, given regardless of politeness; None if the target need not or must not be fetched.
        """
        with self._gate:
            self._core.tick()
            return self._core.answers.redirected(lease, to, carried, again, status)[1]

    def release(self, page: Answered) -> bool:
        """Give a lease back unused, so that the page waits again; return whether the page had a lease."""
        with self._gate:
            self._core.tick()
            return self._core.answers.release(page)

    def host_delay(self, page: Answered, seconds: float) -> bool:
        """Set the delay between two fetches from a page's host, as Crawl-delay asks; return whether it changed."""
        with self._gate:
            self._core.tick()
            return self._core.answers.host_delay(page, seconds)

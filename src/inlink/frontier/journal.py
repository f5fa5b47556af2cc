"""The journal of a crawl: each change is an event, appended to the log, then folded into pages, policy and queue."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.errors import UnknownNodeError
from inlink.frontier.backoff import Outcome
from inlink.frontier.frontier import Frontier
from inlink.frontier.intake import coded, same_domain
from inlink.frontier.leases import Lease, Out
from inlink.frontier.rules import Rules
from inlink.store import layout as kinds
from inlink.store.carried import encode_carried
from inlink.store.layout import DISCOVERED, EVENT_PAGES, MAKERS
from inlink.store.log import Log
from inlink.store.pages import NO_PAGE
from inlink.urls.canonical import UrlRules, canonical

__all__ = ["Journal"]


class Journal:
    """Writes a crawl's events.

    Parameters
    ----------
    log : Log
    frontier : Frontier
    url_rules : UrlRules or None
    rules : Rules or None

    Attributes
    ----------
    now : float
        The time of the next event.
    """

    def __init__(self, log: Log, frontier: Frontier, url_rules: UrlRules | None, rules: Rules | None) -> None:
        self.log, self.frontier, self.pages = log, frontier, frontier.pages
        self.url_rules, self.rules = url_rules, rules
        self.now = self.pages.last_time()

    def append(self, kind: int, page: int = NO_PAGE, *, new: int = 0, urls: bytes = b"", **given: Any) -> int:
        """Append one event and fold it; ``new`` pages, whose lines are ``urls``, have their numbers already.

        Returns its place in the log.

        Raises
        ------
        inlink.errors.StoreError
            If it cannot be written.
        """
        first = self.pages.num_pages - new
        place, frame = self.log.append(kind, self.now, page, new=new, urls=urls, **given)
        self.frontier.fold(place, frame, first)
        if new:
            self.frontier.discovered(first, new, urls)
        return place

    def known(self, url: str) -> int:
        """The page of a URL.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If this crawl does not know it.
        """
        page = self.pages.page_of(url)  # as spiders give it back: it need not be parsed
        if page == NO_PAGE and (form := canonical(url, None, self.url_rules)) is not None:
            variant = url.partition("#")[2]
            if variant:  # of a request that has this URL and more, perhaps
                page = self.pages.page_of(f"{form}#{variant}")
            if page == NO_PAGE:
                page = self.pages.page_of(form)
        if page == NO_PAGE or page >= self.pages.tally[EVENT_PAGES]:  # numbered, but not written
            raise UnknownNodeError(
                f"{url!r} is not known in {self.pages.folder}: seed it, or link to it, first"
            )
        return page

    def answered(self, page: Lease | str) -> tuple[int, Out | None]:
        """The page that an answer is for, and the lease that it ends; NO_PAGE if it does not count.

        A URL stands for its oldest lease that is not answered for. An answer does not count if its lease was
        answered for, or if the page was crawled after the lease was given.
        """
        leases = self.frontier.leases
        if isinstance(page, str):
            number = self.known(page)
            lease = leases.oldest(number)
            if lease is None:
                return self.pages.survivor(number), None
        else:
            number, lease = page.page, page.number
        out = leases.close(lease)
        if out is None:
            return NO_PAGE, None
        last = self.pages.visit_place(self.pages.survivor(number))
        if last is not None and last > out.place:
            self.landed(out, None)
            return NO_PAGE, None
        return self.pages.survivor(number), out

    def landed(self, out: Out | None, outcome: Outcome | None, wait: float | None = None) -> None:
        """A lease has ended; what that tells of its host is an event."""
        if out is not None and self.frontier.landed(out, outcome, wait, self.now):
            self.append(kinds.HOST, out.page, payload=self.frontier.hosts.frame(out.slot))

    def base(self, page: int, redirected_to: str | None) -> str:
        """What a page's relative links are resolved against: the URL that answered."""
        url = self.pages.url(page)
        return (canonical(redirected_to, url) or url) if redirected_to else url

    def merge(
        self, page: int, redirected_to: str | None, canonical_link: str | None, data: bytes | None = None
    ) -> int:
        """Follow a redirect and a canonical link; returns the page that the visit belongs to.

        A canonical link is the page's own word: it is believed within its registered domain only. ``data`` is what
        the page that it is merged into is to carry, unless that carries something already.
        """
        for url, trusted in ((redirected_to, True), (canonical_link, False)):
            if url is None:
                continue
            here = self.pages.url(page)
            form = canonical(url, here, self.url_rules)
            if form is None or form == here or not (trusted or same_domain(here, form)):
                continue
            pages, new, text = self.pages.number([form])
            target = self.pages.survivor(int(pages[0]))
            if target == page:
                continue
            _, payload = coded(np.array([target], np.uint32), np.empty(0, np.float32))
            self.pages.merged[page] = target
            flags = 0
            if data is not None and not self.pages.carriers[target]:
                payload, flags = payload + encode_carried({target: data}), kinds.HAS_CARRIED
            first = self.pages.num_pages - new
            self.append(kinds.MERGE, page, flags=flags, count=1, payload=payload, new=new, urls=text)
            self.admit(first, new, text)
            self.frontier.queue.remove(page, self.now)
            page = target
        return page

    def carrying(
        self, pages: npt.NDArray[np.uint32], more: dict[str, tuple[float, bytes]]
    ) -> tuple[int, bytes]:
        """A frame's flag and end for what its last pages carry, those left out that carry something already."""
        data = {
            page: given
            for page, (_, given) in zip(pages[len(pages) - len(more) :].tolist(), more.values(), strict=True)
            if not self.pages.carriers[page]
        }
        return (kinds.HAS_CARRIED, encode_carried(data)) if data else (0, b"")

    def admit(self, first: int, new: int, text: bytes) -> None:
        """Exclude those new pages that the rules forbid."""
        if not new or not self.rules:
            return
        depths = self.pages.depths[first : first + new].tolist()
        urls = text.decode("ascii").splitlines()
        bad = [first + k for k, url in enumerate(urls) if self.rules.verdict(url, depths[k]) is not None]
        if bad:
            self.append(kinds.EXCLUDE, count=len(bad), payload=np.array(bad, np.uint32).tobytes())

    def admit_last(self) -> None:
        """:meth:`admit` the pages that the last event of the log made known, should a crash have come between."""
        rows = int(self.pages.tally[MAKERS])
        if rows and self.rules:
            first = int(self.pages.makers[rows - 1])
            waiting = [page for page in range(first, self.pages.num_pages) if page in self.frontier.queue]
            if len(waiting) == self.pages.num_pages - first:
                urls = "".join(url + "\n" for url in self.pages.urls(waiting))
                self.admit(first, len(waiting), urls.encode("ascii"))
                for page in waiting:
                    if self.pages.states[page] != DISCOVERED:
                        self.frontier.queue.remove(page, self.now)

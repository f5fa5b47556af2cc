"""The crawls that a view can show: a crawl of this process, or a folder, which is read only as far as needed."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Protocol

from inlink.crawl.folder import frontier_of
from inlink.crawl.gate import Gate
from inlink.crawl.known import forms_of, numbered, unknown
from inlink.crawl.settings import stored
from inlink.frontier.frontier import Frontier
from inlink.frontier.policies import Policy
from inlink.frontier.rules import Rules
from inlink.store.lookup import Lookup
from inlink.store.page import Page
from inlink.store.pages import Pages
from inlink.store.reader import open_pages, pages_at_checkpoint, url_rules_of
from inlink.urls.canonical import UrlRules

__all__ = ["FolderCrawl", "LiveCrawl", "ViewedCrawl"]


class Single(Protocol):
    """Pages that can be described one by one, with the pages that led to them."""

    @property
    def num_pages(self) -> int:
        """Number of known pages."""

    def page(self, page: int) -> Page | None:
        """All that is known of a page; None if it is not known."""

    def maker(self, page: int) -> int:
        """The page whose links made a page known; NO_PAGE for a seed."""

    def url(self, page: int) -> str:
        """The URL of a page."""


class ViewedCrawl(Protocol):
    """A crawl that a view can show."""

    @property
    def gate(self) -> Gate:
        """Lets one call in at a time."""

    @property
    def pages(self) -> Pages:
        """All its pages."""

    @property
    def frontier(self) -> Frontier:
        """Its order."""

    @property
    def rules(self) -> Rules | None:
        """The rules for URLs that may be fetched."""

    def now(self) -> float:
        """Unix time."""

    def number(self, page: str | int) -> int:
        """The number of a page among all pages."""

    def single(self, page: str | int) -> tuple[Single, int]:
        """A page's number, behind an object that can describe at least this page and the pages that led to it."""

    def close(self) -> bool:
        """Close the files that are open for the view only; return whether there may have been such files."""


class LiveCrawl:
    """A crawl of this process, for :class:`CrawlView`."""

    def __init__(
        self, frontier: Frontier, now: Callable[[], float], url_rules: UrlRules | None, gate: Gate
    ) -> None:
        self.frontier, self.pages, self.gate = frontier, frontier.pages, gate
        self.now, self._url_rules = now, url_rules

    @property
    def rules(self) -> Rules | None:
        """The rules for URLs that may be fetched."""
        return self.frontier.settings.rules

    def number(self, page: str | int) -> int:
        """See :class:`ViewedCrawl`."""
        return numbered(self.pages, page, self._url_rules)

    def single(self, page: str | int) -> tuple[Single, int]:
        """See :class:`ViewedCrawl`."""
        return self.pages, self.number(page)

    def close(self) -> bool:
        """See :class:`ViewedCrawl`. The files are the crawl's own, which calls this when it is closed."""
        gate = self.gate
        if gate.closed:
            vars(self).clear()
            self.gate = gate
        return gate.closed


class FolderCrawl:
    """A folder that another process may be writing, for :class:`inlink.crawl.view.CrawlView`.

    Parameters
    ----------
    folder : Path
    clock : callable
        Unix time.
    policy : str, Policy class or instance, or None
        The crawl's policy, if it is not one of inlink's.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    """

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float],
        policy: "str | type[Policy] | Policy | None" = None,
    ) -> None:
        self.folder, self._clock, self._policy = folder, clock, policy
        self.gate = Gate(str(folder))
        self._url_rules = url_rules_of(folder)

    @cached_property
    def pages(self) -> Pages:
        """All pages, as of the first access."""
        pages = open_pages(self.folder, lazily=True)
        pages.recover()
        return pages

    @cached_property
    def _has_pages(self) -> bool:
        """True if the pages are loaded, or a checkpoint has them."""
        if "pages" not in vars(self):
            pages = pages_at_checkpoint(self.folder, lazily=True)
            if pages is None:
                return False
            pages.recover()
            vars(self)["pages"] = pages
        return True

    @cached_property
    def frontier(self) -> Frontier:
        """The order of the pages, with the settings in the folder."""
        return frontier_of(self.pages, self._clock(), self._policy)

    @cached_property
    def rules(self) -> Rules | None:
        """The rules for URLs in the folder's settings."""
        return stored(self.folder).rules

    @cached_property
    def _lookup(self) -> Lookup:
        """Looks up single pages, as of the first access."""
        return Lookup(self.folder)

    def now(self) -> float:
        """Unix time. The frontier is first advanced to it, so that pages that are due by now wait in the queue."""
        now = self._clock()
        while self.frontier.advance(now):
            pass
        return now

    def number(self, page: str | int) -> int:
        """The number of a page, found among all pages."""
        return numbered(self.pages, page, self._url_rules)

    def single(self, page: str | int) -> tuple[Single, int]:
        """See :class:`ViewedCrawl`."""
        if "pages" in vars(self) or self._has_pages:
            return self.pages, self.number(page)
        for form in forms_of(page, self._url_rules):
            number = self._lookup.number(form)
            if number is not None and self._lookup.knows(number):
                return self._lookup, number
        raise unknown(self.folder, page)

    def close(self) -> bool:
        """See :class:`ViewedCrawl`. Later calls are refused. A second call does nothing."""
        if not self.gate.close():
            return False
        opened = vars(self)
        for name in ("pages", "_lookup"):
            if name in opened:
                opened.pop(name).close()
        opened.pop("frontier", None)
        return True

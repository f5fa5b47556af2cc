"""The crawls that a view can show: one of this process, and a folder, read no further than is asked for."""

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
from inlink.store.reader import open_pages, url_rules_of
from inlink.urls.canonical import UrlRules

__all__ = ["FolderCrawl", "LiveCrawl", "Shown"]


class Single(Protocol):
    """Pages of which single ones can be described, and those that led to them."""

    @property
    def num_pages(self) -> int:
        """Pages that are known."""

    def page(self, page: int) -> Page | None:
        """All that is known of a page; None if it is not known."""

    def maker(self, page: int) -> int:
        """The page whose links made a page known; NO_PAGE for a seed."""

    def url(self, page: int) -> str:
        """The URL of a page."""


class Shown(Protocol):
    """A crawl that can be looked at."""

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
        """Which URLs may be fetched."""

    def now(self) -> float:
        """Unix time."""

    def number(self, page: str | int) -> int:
        """The number of a page among all pages."""

    def single(self, page: str | int) -> tuple[Single, int]:
        """Pages of which at least this one and those that led to it can be described, and its number."""


class LiveCrawl:
    """A crawl of this process, for :class:`CrawlView`."""

    def __init__(
        self, frontier: Frontier, now: Callable[[], float], url_rules: UrlRules | None, gate: Gate
    ) -> None:
        self.frontier, self.pages, self.gate = frontier, frontier.pages, gate
        self.now, self._url_rules = now, url_rules

    @property
    def rules(self) -> Rules | None:
        """Which URLs may be fetched."""
        return self.frontier.settings.rules

    def number(self, page: str | int) -> int:
        """See :class:`Shown`."""
        return numbered(self.pages, page, self._url_rules)

    def single(self, page: str | int) -> tuple[Single, int]:
        """See :class:`Shown`."""
        return self.pages, self.number(page)


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
        """All pages, as of the first time that they are asked for."""
        pages = open_pages(self.folder)
        pages.recover()
        return pages

    @cached_property
    def frontier(self) -> Frontier:
        """The order of the pages, by the settings that the folder holds."""
        return frontier_of(self.pages, self._clock(), self._policy)

    @cached_property
    def rules(self) -> Rules | None:
        """Which URLs may be fetched, by the settings that the folder holds."""
        return stored(self.folder).rules

    def now(self) -> float:
        """Unix time; what has become due by now has happened."""
        now = self._clock()
        self.frontier.advance(now)
        return now

    def number(self, page: str | int) -> int:
        """The number of a page, found among all pages."""
        return numbered(self.pages, page, self._url_rules)

    def single(self, page: str | int) -> tuple[Single, int]:
        """Pages of which this one and those that led to it can be described, and its number."""
        if "pages" in self.__dict__:
            return self.pages, self.number(page)
        wanted = forms_of(page, self._url_rules)
        lookup = Lookup(self.folder)
        for form in wanted:
            number = lookup.number(form)
            if number is not None and lookup.knows(number):
                return lookup, number
        lookup.close()
        raise unknown(self.folder, page)

"""The crawls that a view can show, and the page that a user names by a URL in any form, by its number, or by its hash.

A view shows a crawl of this process, or a folder, which is read only as far as needed.
"""

import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from inlink.crawl.folder import frontier_of
from inlink.crawl.gate import Gate
from inlink.crawl.settings import stored
from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier.frontier import Frontier
from inlink.frontier.policies import Policy
from inlink.frontier.rules import Rules
from inlink.protocol import VARIANT
from inlink.store.format import NO_PAGE
from inlink.store.pages import Pages
from inlink.store.reader import open_pages, url_rules_of
from inlink.urls.canonical import UrlRules, canonical

_HASH = re.compile(r"[0-9a-fA-F]{16}")


def known_page(pages: Pages, url: str, url_rules: UrlRules | None) -> int:
    """The page of a URL, in any form that means the same page.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If the crawl does not know it.
    """
    # Spiders return URLs in canonical form, which need not be parsed.
    page = pages.table.page_of(url)
    if page == NO_PAGE:
        numbers = map(pages.table.page_of, _forms_of_url(url, url_rules))
        page = next((number for number in numbers if number != NO_PAGE), NO_PAGE)
    if page >= pages.tally.event_pages:
        raise UnknownNodeError(f"{url!r} is not known in {pages.folder}: seed it, or link to it, first")
    return page


def unknown(folder: object, page: object) -> UnknownNodeError:
    """The error for a page that a crawl does not know."""
    return UnknownNodeError(f"{page!r} is not known in {folder}: search with `inlink find`")


def _number(pages: Pages, page: str | int, url_rules: UrlRules | None) -> int:
    """The number of a page that is given by its URL, its number, or its number as 16 hexadecimal digits."""
    for form in (page, *_forms_of(page, url_rules)):
        number = form if isinstance(form, int) else pages.table.page_of(form)
        if 0 <= number < pages.tally.event_pages:
            return number
    raise unknown(pages.folder, page)


def _forms_of(page: str | int, url_rules: UrlRules | None) -> list[int] | list[str]:
    """The numbers or canonical URLs that a page's name may stand for."""
    if isinstance(page, bool) or not isinstance(page, str | int):
        raise ParameterError(f"a page is named by its URL or its number; got {page!r:.200}")
    if isinstance(page, int):
        return [page]
    return [int(page, 16)] if _HASH.fullmatch(page) else _forms_of_url(page, url_rules)


def _forms_of_url(url: str, url_rules: UrlRules | None) -> list[str]:
    """The canonical URL with its variant, if it has one, and without."""
    form, variant = canonical(url, None, url_rules), url.partition("#")[2]
    if form is None:
        return []
    return [f"{form}#{variant}", form] if variant and VARIANT.fullmatch(variant) else [form]


class LiveCrawl:
    """A crawl of this process, for :class:`inlink.crawl.view.CrawlView`."""

    def __init__(
        self,
        frontier: Frontier,
        now: Callable[[], float],
        url_rules: UrlRules | None,
        gate: Gate,
        stale: Callable[[], float | None],
    ) -> None:
        self.frontier, self.pages, self.gate = frontier, frontier.pages, gate
        self.now, self._url_rules, self.stale = now, url_rules, stale

    @property
    def rules(self) -> Rules | None:
        """The rules for URLs that may be fetched."""
        return self.frontier.settings.rules

    def number(self, page: str | int) -> int:
        """The number of a page among all pages."""
        return _number(self.pages, page, self._url_rules)

    def close(self) -> bool:
        """Let a closed crawl's memory go; return whether the crawl is closed."""
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
    def frontier(self) -> Frontier:
        """The order of the pages, with the settings in the folder."""
        return frontier_of(self.pages, self._clock(), self._policy)

    @cached_property
    def rules(self) -> Rules | None:
        """The rules for URLs in the folder's settings."""
        return stored(self.folder).rules

    def now(self) -> float:
        """Unix time. The frontier is first advanced to it, so that pages that are due by now wait in the queue."""
        now = self._clock()
        while self.frontier.advance(now):
            pass
        return now

    def stale(self) -> float | None:
        """See :meth:`inlink.crawl.exchange.Exchange.stale`. Only a running shard knows it."""
        return 0.0 if self.rules is None or self.rules.part is None else None

    def number(self, page: str | int) -> int:
        """The number of a page among all pages."""
        return _number(self.pages, page, self._url_rules)

    def close(self) -> bool:
        """Close the files; return whether they may have been open. Later calls are refused."""
        if not self.gate.close():
            return False
        opened = vars(self)
        if "pages" in opened:
            opened.pop("pages").close()
        opened.pop("frontier", None)
        return True

"""Find the page that a user names by a URL in any form, by its number, or by its hash."""

import re

from inlink.errors import ParameterError, UnknownNodeError
from inlink.protocol import VARIANT
from inlink.store.pages import NO_PAGE, Pages
from inlink.urls.canonical import UrlRules, canonical

__all__ = ["forms_of", "known_page", "numbered", "unknown"]

_HASH = re.compile(r"[0-9a-fA-F]{16}")


def known_page(pages: Pages, url: str, url_rules: UrlRules | None) -> int:
    """The page of a URL, in any form that means the same page.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If the crawl does not know it.
    """
    # Spiders return URLs in canonical form, which need not be parsed.
    page = pages.page_of(url)
    if page == NO_PAGE and (form := canonical(url, None, url_rules)) is not None:
        variant = url.partition("#")[2]
        if variant:
            page = pages.page_of(f"{form}#{variant}")
        if page == NO_PAGE:
            page = pages.page_of(form)
    if page == NO_PAGE or page >= pages.tally.event_pages:
        raise UnknownNodeError(f"{url!r} is not known in {pages.folder}: seed it, or link to it, first")
    return page


def numbered(pages: Pages, page: str | int, url_rules: UrlRules | None) -> int:
    """The number of a page that is given by its URL, its number, or its number as 16 hexadecimal digits.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If the crawl does not know it.
    """
    if isinstance(page, bool) or not isinstance(page, str | int):
        raise ParameterError(f"a page is named by its URL or its number; got {page!r:.200}")
    number = int(page, 16) if isinstance(page, str) and _HASH.fullmatch(page) else page
    if isinstance(number, str):
        try:
            return known_page(pages, number, url_rules)
        except UnknownNodeError:
            raise unknown(pages.folder, page) from None
    if not 0 <= number < pages.tally.event_pages:
        raise unknown(pages.folder, page)
    return number


def forms_of(page: str | int, url_rules: UrlRules | None) -> list[str | int]:
    """The numbers or canonical URLs that a page's name may stand for: a URL with its variant, and without."""
    if isinstance(page, bool) or not isinstance(page, str | int):
        raise ParameterError(f"a page is named by its URL or its number; got {page!r:.200}")
    if isinstance(page, int):
        return [page]
    if _HASH.fullmatch(page):
        return [int(page, 16)]
    form, variant = canonical(page, None, url_rules), page.partition("#")[2]
    if form is None:
        return []
    return [f"{form}#{variant}", form] if variant and VARIANT.fullmatch(variant) else [form]


def unknown(folder: object, page: object) -> UnknownNodeError:
    """The error for a page that a crawl does not know."""
    return UnknownNodeError(f"{page!r} is not known in {folder}: search with `inlink find`")

"""Read HTTP headers about a page: directives for robots, and the canonical URL."""

import re
from collections.abc import Iterable

from inlink.urls.canonical import canonical

__all__ = ["OUR_NAMES", "asks", "canonicals_in_header", "only", "robots_words"]

OUR_NAMES = frozenset(("robots", "inlink"))
"""Names of robots that mean inlink."""

_MAX_HEADER = 8192
_WITH_VALUES = frozenset(("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"))
_LINK = re.compile(r"""<([^<>]*)>\s*((?:;[^;,"<>]*(?:"[^"]*")?)*)""")
_REL = re.compile(r""";\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]*))""", re.I)


def robots_words(header: str | Iterable[str]) -> set[str]:
    """Return the directives of ``X-Robots-Tag`` for all robots and for inlink, in lower case.

    A value may begin with the name of a robot. It then applies only to that robot:
    https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag

    Examples
    --------
    >>> sorted(robots_words(["noarchive, NOFOLLOW", "otherbot: noindex, nosnippet"]))
    ['noarchive', 'nofollow']
    """
    directives: set[str] = set()
    for line in [header] if isinstance(header, str) else header:
        for_us = True
        for part in line[:_MAX_HEADER].lower().split(","):
            name, colon, rest = part.partition(":")
            named = bool(colon) and name.strip() not in _WITH_VALUES
            if named:
                for_us = name.strip() in OUR_NAMES
            if for_us:
                directives.update((rest if named else part).split())
    return directives


def asks(words: set[str]) -> tuple[bool, bool]:
    """Return whether robots are asked not to index, and whether not to follow.

    Examples
    --------
    >>> asks({"none"}), asks({"nofollow", "noarchive"})
    ((True, True), (False, True))
    """
    return not words.isdisjoint(("noindex", "none")), not words.isdisjoint(("nofollow", "none"))


def canonicals_in_header(header: str | Iterable[str], base: str | None) -> set[str | None]:
    """Return the canonical forms of the URLs in ``Link: <…>; rel="canonical"`` (RFC 6596, RFC 8288).

    Parameters
    ----------
    header : str or iterable of str
        The values of the header.
    base : str or None
        The page's URL in canonical form. None: the result is empty.
    """
    canonicals: set[str | None] = set()
    for line in [header] if isinstance(header, str) else header:
        for target, parameters in _LINK.findall(line[:_MAX_HEADER]):
            rel = _REL.search(parameters)
            if rel and "canonical" in (rel[1] or rel[2] or "").lower().split() and base is not None:
                canonicals.add(canonical(target, base))
    return canonicals


def only(named: set[str | None]) -> str | None:
    """Return the URL if exactly one is named, else None. A None in the input stands for a name that is not a URL."""
    urls = [url for url in named if url is not None]
    return urls[0] if len(urls) == 1 else None

"""Causes of failures: groups of similar errors."""

import re
from http import HTTPStatus

LONGEST = 60
"""Maximum length of an unknown error text."""

LOST = re.compile(r"lost [\d,]+ times?: ")

CAUSES = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("robots.txt cannot be read", r"^robots\.txt: "),
        ("forbidden by robots.txt", r"robots\.txt"),
        ("address not allowed", r"^address not allowed: "),
        ("refused by the rules of this crawl", r"^(?:denied by|allowed by no rule|deeper than|longer than)"),
        ("redirect to what must not be fetched", r"^redirects to "),
        ("host name not found", r"dns|resolve|getaddrinfo|name or service|nodename"),
        ("no answer in time", r"time[d]?[ -]?out"),
        ("connection refused", r"refused"),
        ("no secure connection", r"\b(?:ssl|tls)|certificate|SSLError"),
        ("network unreachable", r"no route|unreachable"),
        (
            "connection broken",
            r"reset|NeverReceived|DataLoss|DownloadFailed|Connection *(?:was )?(?:closed|lost|done)"
            r"|broken pipe|hung up",
        ),
    )
)
"""Names and patterns; the first that is found in the error's text counts."""

_CLASS = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Z]\w*)(?:: |$)")
_CHANGING = re.compile(r"https?://\S+|'[^']*'|\"[^\"]*\"|\d+")


def cause_of(status: int, error: str, excluded: bool = False) -> str:
    """The cause of a failure, in a few words.

    Parameters
    ----------
    status : int
        HTTP status; 0 if there was no answer.
    error : str
        The spider's error text.
    excluded : bool
        Whether the page was excluded. Then ``error`` is the reason.

    Examples
    --------
    >>> cause_of(404, ""), cause_of(0, "DNSLookupError: no results for hostname lookup: a.example")
    ('HTTP 404 Not Found', 'host name not found')
    >>> cause_of(200, "ValueError: invalid literal"), cause_of(0, "disk 7 of 'x' is full")
    ('not processed: ValueError', 'disk … of … is full')
    """
    if excluded:
        return f"excluded: {_by_text(error)}"
    if status >= 400:
        try:
            return f"HTTP {status} {HTTPStatus(status).phrase}"
        except ValueError:
            return f"HTTP {status}"
    if LOST.match(error):
        return "lost: the spider ended or did not answer"
    named = _CLASS.match(error)
    if 100 <= status < 300 and named is not None:
        return f"not processed: {named[1][:LONGEST]}"
    return _by_text(error)


def known_cause(error: str) -> str | None:
    """Return the name in ``CAUSES`` of the cause that an error text tells; None for an unknown text."""
    return next((name for name, pattern in CAUSES if pattern.search(error)), None)


def _by_text(error: str) -> str:
    name = known_cause(error)
    if name is not None:
        return name
    named = _CLASS.match(error)
    if named is not None:
        return named[1][:LONGEST]
    text = " ".join(_CHANGING.sub("…", error).split())
    if not text:
        return "no reason given"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

"""The causes for which pages were not fetched or not read, each with its number and an example.

Causes are phrases from a fixed set, so a hostile site cannot increase their number.
"""

import re
from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import urlsplit

from inlink.base.table import counted
from inlink.frontier.causes import known_cause
from inlink.protocol import Answer, Crawled, Excluded, Failed
from inlink.scrapy.robots import FORBIDDEN
from inlink.store.page import Page
from inlink.urls.addresses import NOT_ALLOWED

_ROBOTS_STATUS = re.compile(r"robots\.txt: (\d{3})$")
_OTHER = "other errors"


class Causes:
    """The causes of a run, in the order in which they first occurred."""

    def __init__(self) -> None:
        # The hashes of the URLs with each cause, because a page may be tried several times.
        self._urls: dict[str, set[int]] = {}
        self._examples: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._urls)

    def add(self, cause: str, example: str, url: str) -> None:
        """Count a URL with a cause once; keep the example if it is the first."""
        self._urls.setdefault(cause, set()).add(hash(url))
        self._examples.setdefault(cause, example)

    def lines(self) -> Iterator[str]:
        """One line for each cause, the most frequent first: ``connection refused (4 URLs), such as 127.0.0.1:8123``."""
        for cause, urls in sorted(self._urls.items(), key=lambda item: -len(item[1])):
            several = f" ({counted(len(urls), 'URL')}), such as" if len(urls) > 1 else ":"
            yield f"{cause}{several} {self._examples[cause]}"


def cause_of(answer: Answer, url: str) -> tuple[str, str] | None:
    """Return the cause and an example for an answer without a page; None for other answers.

    Parameters
    ----------
    answer : Answer
    url : str
        The URL of its page.
    """
    if isinstance(answer, Failed):
        return _failure(answer.error, answer.status, url)
    if isinstance(answer, Excluded):
        return _exclusion(answer.reason, url)
    if isinstance(answer, Crawled) and answer.error is not None:
        return "error while the page was processed", url
    return None


def cause_of_page(page: Page) -> tuple[str, str]:
    """Return the cause and an example for a page that a crawl knows and has not fetched."""
    if page.error is None:
        return f"{page.state}, not fetched in this run", page.url
    if page.state == "excluded":
        return _exclusion(page.error, page.url)
    return _failure(page.error, page.status or None, page.url)


def _failure(error: str, status: int | None, url: str) -> tuple[str, str]:
    place = urlsplit(url).netloc or url
    robots = _ROBOTS_STATUS.match(error)
    if robots is not None:
        return f"robots.txt answered {robots[1]}", place
    if error.startswith("redirects to"):
        return known_cause(error) or _OTHER, url
    if status:
        phrase = next((known.phrase for known in HTTPStatus if known == status), "")
        return f"HTTP {status} {phrase}".rstrip(), url
    return known_cause(error.removeprefix("robots.txt: ")) or _OTHER, place


def _exclusion(reason: str, url: str) -> tuple[str, str]:
    if reason.startswith(NOT_ALLOWED):
        return "address not allowed, see --allow-address", reason.removeprefix(NOT_ALLOWED)
    if reason.startswith(FORBIDDEN):
        return "forbidden by robots.txt", url
    if "DownloadCancelledError" in reason:
        return "response too large", url
    if reason.startswith("outside the hosts and domains"):
        return "outside the sites of this crawl, see --everywhere", url
    if reason.startswith(("denied by", "allowed by no rule", "deeper than", "longer than")):
        return known_cause(reason) or _OTHER, url
    return "dropped by a middleware or refused", url

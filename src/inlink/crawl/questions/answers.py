"""Results of :class:`inlink.crawl.view.CrawlView`: small frozen structs that can be encoded as JSON.

Pass a result's ``cursor`` to the next call, which goes on where this call stopped. None: the result is complete.
"""

import msgspec

from inlink.factors.parts import Part
from inlink.frontier.hosts import HostState


class PageRow(msgspec.Struct, frozen=True):
    """A page: its number in the order of discovery, and its URL."""

    page: int
    url: str


class PageList(msgspec.Struct, frozen=True):
    """Pages in a row."""

    rows: list[PageRow]
    cursor: str | None = None


class Path(msgspec.Struct, frozen=True):
    """The path to a page's discovery. ``shard`` is the other shard that discovered the last row; None if none did."""

    rows: list[PageRow]
    cursor: str | None = None
    shard: int | None = None


class MatchedPages(msgspec.Struct, frozen=True):
    """Pages whose URLs match: ``searched`` of ``known`` URLs were looked at."""

    rows: list[PageRow]
    searched: int
    known: int
    cursor: str | None = None


TEXTS = 100
"""Number of best pages that have a ``text``."""


class RankedPage(msgspec.Struct, frozen=True):
    """A page in a ranking.

    Parameters
    ----------
    place : int
        Its place among the pages that take part, from 1.
    page : int
    url : str
    value : float
    crawled : bool
        Whether it was ever crawled.
    text : str
        For the first hundred pages: its title, or the text of the link that made it known; empty if neither is known.
    """

    place: int
    page: int
    url: str
    value: float
    crawled: bool = False
    text: str = ""


class Top(msgspec.Struct, frozen=True):
    """The best pages of a ranking: ``searched`` of ``known`` pages were looked at.

    For a ranking that is stored with the crawl, ``algorithm`` is the algorithm that made it, and ``hubs`` holds the hub
    scores of the rows if the ranking has hub scores. ``certain`` holds for each row whether the error bound proves its
    place; it is None without a bound.
    """

    rows: list[RankedPage]
    searched: int
    known: int
    cursor: str | None = None
    certain: list[bool] | None = None
    hubs: list[float] | None = None
    algorithm: str | None = None


class Dump(msgspec.Struct, frozen=True):
    """Lines of text. ``done`` of ``total`` pages (or, for links, of crawled pages) are written so far."""

    text: str
    done: int
    total: int
    cursor: str | None = None


class ErrorExample(msgspec.Struct, frozen=True):
    """A failure: the page, the spider's error text, the HTTP status or 0, and the seconds that have passed since."""

    page: int
    url: str
    error: str
    status: int
    seconds_ago: float


class ErrorCause(msgspec.Struct, frozen=True):
    """A cause of failures, their number, and at most three of the last failures, each of another page."""

    cause: str
    count: int
    examples: list[ErrorExample]


class Errors(msgspec.Struct, frozen=True):
    """Failures by cause, the most frequent cause first.

    A page that is tried again and fails again counts again. Until the cursor is None, the counts are of the first
    ``searched`` of ``known`` bytes of the log.
    """

    causes: list[ErrorCause]
    total: int
    searched: int
    known: int
    cursor: str | None = None


class OrderRow(msgspec.Struct, frozen=True):
    """A waiting page.

    Parameters
    ----------
    place : int
        1 for the next page.
    page : int
    url : str
    priority : float
        Priority by which the page's host competes with other hosts.
    due_in : float
        Seconds until it may be fetched.
    parts, host_parts : list of Part
        Combined from left to right, ``parts`` give the page's own priority, and ``parts`` followed by ``host_parts``
        give ``priority``; see :class:`inlink.frontier.explain.Why`.
    """

    place: int
    page: int
    url: str
    priority: float
    due_in: float
    parts: list[Part]
    host_parts: list[Part]


class Order(msgspec.Struct, frozen=True):
    """The next pages."""

    rows: list[OrderRow]


class Hosts(msgspec.Struct, frozen=True):
    """Hosts in the order of discovery. ``known`` is the number of all hosts."""

    rows: list[HostState]
    known: int
    cursor: str | None = None


class Info(msgspec.Struct, frozen=True):
    """The figures of a crawl.

    Parameters
    ----------
    pages, crawled, hosts, events : int
        Numbers of known pages, of pages crawled at least once, of hosts and of events.
    states : dict of str to int
        Number of pages in each state that occurs.
    links : int or None
        Number of links of all latest visits, from the last complete count; None until a count is complete: ask again.
    event_bytes : int
        Bytes of the log that were read.
    began : float
        Unix time of the crawl's beginning.
    """

    pages: int
    states: dict[str, int]
    crawled: int
    hosts: int
    links: int | None
    events: int
    event_bytes: int
    began: float

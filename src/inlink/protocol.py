"""Messages between a spider and a crawl: tasks, answers, links, and the crawl's progress.

Each type can be encoded as JSON and decoded again by :mod:`msgspec` as it stands; bytes become base64. Answers carry
their type's name in ``type``, so that a list of them can be decoded as ``list[Answer]``. Unknown fields are refused.
The protocol sends seconds and never times, so clocks need not agree.
"""

import re
from typing import Annotated, Any

import msgspec

__all__ = [
    "LARGEST_SCORE",
    "OWNER",
    "PLACES",
    "VARIANT",
    "Answer",
    "AnyLink",
    "Ask",
    "Begun",
    "BoundedPage",
    "Certificate",
    "Changed",
    "Crawled",
    "Discovered",
    "DiscoveredPage",
    "Excluded",
    "Failed",
    "Hello",
    "HostDelay",
    "HostStanding",
    "Link",
    "PageFacts",
    "Receipt",
    "Receipts",
    "Redirected",
    "Refusal",
    "Released",
    "Report",
    "Seeded",
    "Seeds",
    "Session",
    "ShardOf",
    "Sitemap",
    "Standing",
    "Task",
    "Tasks",
]

LARGEST_SCORE = 3e38
"""Scores are below this in size, so that they fit into a float32."""

VARIANT = re.compile(r"[A-Za-z0-9.:=_-]{0,80}")
"""The allowed form of a link's variant."""

PLACES = ("nav", "header", "footer", "aside", "body", "main")
"""Places of a link in a page: the parts that HTML or ARIA mark, and ``body`` for the rest of the page."""

OWNER = "spider"
"""The owner of a spider's sessions if it gives no other name."""


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A link, with data that the task of its page gives back.

    Parameters
    ----------
    url : str
        Absolute, or relative to the page that contains the link.
    score : float or None
        How promising the link is. None counts as 0, and as 1 for a seed.
    data : bytes
        At most 65,536 bytes. A page keeps the data of the first link that has any.
    variant : str
        Distinguishes requests to the same URL, such as those that submit a form. Each variant is a page of its own;
        its URL ends with ``#`` and the variant. At most 80 characters of ``[A-Za-z0-9.:=_-]``.
    text : str
        The visible text of the link. The first 80 characters are kept and shown; they do not change the order.
    place : str
        One of :data:`PLACES`, or empty if it is not known. It is kept if the page's answer has facts, and does not
        change the order.
    """

    url: str
    score: float | None = None
    data: bytes = b""
    variant: str = ""
    text: str = ""
    place: str = ""


AnyLink = Link | tuple[str, float] | str
"""A link as spiders may give it: a plain URL and a URL with a score are links without data."""


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page to fetch, under a lease.

    Parameters
    ----------
    lease : int
        Number of the lease; an answer names it.
    url : str
        Canonical URL.
    given : str or None
        The URL as it was first given, if it differs from the canonical URL.
    depth : int
        Number of clicks between a seed and the page.
    crawls, failures : int
        Number of earlier fetches, and of failures since the last of them.
    linked_from : str or None
        URL of the page whose link made this page known; None for a seed.
    carried : bytes or None
        Data of the first link to the page that had any.
    """

    lease: int
    url: str
    depth: int = 0
    crawls: int = 0
    failures: int = 0
    linked_from: str | None = None
    carried: bytes | None = None
    given: str | None = None


class Tasks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reply to a session that asks for tasks.

    A session has reached the end of the crawl if it holds no task, ``due_in`` is None, ``out_elsewhere`` is 0 and the
    crawl is not paused.

    Parameters
    ----------
    tasks : list of Task
        Empty if politeness allows none now.
    due_in : float or None
        Seconds until there may be more tasks even if nobody answers; None if only answers can lead to more.
    out_elsewhere : int
        Number of tasks that other sessions hold. Their answers may lead to more tasks, and a lost task comes back.
    paused : bool
        Whether an operator has paused the crawl.
    """

    tasks: list[Task]
    due_in: float | None = None
    out_elsewhere: int = 0
    paused: bool = False


class PageFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Data of a page for audits. All fields are optional. They do not change the order of fetching.

    Texts are cut after 200 characters, and each list after 8,192 bytes.

    Parameters
    ----------
    title, heading : str
        The title, and the text of the first ``h1``.
    headings : int
        Number of ``h1``.
    robots : str
        Directives for robots, in meta elements and the header: lower case, separated by ``", "``.
    language : str
        The ``lang`` of the document.
    alternates : list of (str, str)
        Language and absolute URL of each ``link rel=alternate hreflang``.
    canonicals : list of str
        All URLs that the page names as canonical, absolute.
    insecure : list of str
        URLs of images, scripts, styles and frames that a page under https loads by http.
    nofollow_links : list of (str, str, str)
        Links that are not followed because of ``rel=nofollow`` or a directive of the page: absolute URL, text, and one
        of :data:`PLACES` or an empty text.
    content_type : str
        The ``Content-Type`` without its parameters.
    size : int
        Bytes of the document, unpacked.
    seconds : float
        Seconds between the request and the headers of the answer.
    cut : bool
        Whether a list was longer than is kept.
    """

    title: str = ""
    heading: str = ""
    headings: int = 0
    robots: str = ""
    language: str = ""
    alternates: list[tuple[str, str]] = []
    canonicals: list[str] = []
    insecure: list[str] = []
    nofollow_links: list[tuple[str, str, str]] = []
    content_type: str = ""
    size: int = 0
    seconds: float = 0.0
    cut: bool = False


class Crawled(msgspec.Struct, tag="crawled", forbid_unknown_fields=True, omit_defaults=True):
    """The page was fetched: see :meth:`inlink.Crawl.crawled`.

    If ``error`` is set, the page was fetched but could not be processed. ``items`` are JSON lines in UTF-8, see
    :func:`inlink.crawl.intake.check_items`.
    """

    lease: int
    links: list[AnyLink] = []
    score: float = 0.0
    content_hash: bytes = b""
    status: int = 200
    redirected_to: str | None = None
    canonical_link: str | Link | None = None
    noindex: bool = False
    nofollow: bool = False
    error: str | None = None
    fingerprint: int = 0
    facts: PageFacts | None = None
    items: bytes = b""


class Failed(msgspec.Struct, tag="failed", forbid_unknown_fields=True, omit_defaults=True):
    """The page could not be fetched: see :meth:`inlink.Crawl.failed`."""

    lease: int
    error: str = ""
    status: int | None = None
    retry: bool | None = None
    retry_after: str | float | None = None


class Excluded(msgspec.Struct, tag="excluded", forbid_unknown_fields=True, omit_defaults=True):
    """The page must not be fetched: see :meth:`inlink.Crawl.exclude`."""

    lease: int
    reason: str = ""


class Redirected(msgspec.Struct, tag="redirected", forbid_unknown_fields=True, omit_defaults=True):
    """The page redirects, and the spider follows at once: see :meth:`inlink.Crawl.redirected`. Status 0 is unknown."""

    lease: int
    to: str
    carried: bytes | None = None
    again: bool = False
    status: int = 0


class Released(msgspec.Struct, tag="released", forbid_unknown_fields=True):
    """The page was not fetched and waits again."""

    lease: int


class HostDelay(msgspec.Struct, tag="host_delay", forbid_unknown_fields=True):
    """The host of a URL asks for a delay between fetches: see :meth:`inlink.Crawl.host_delay`. It ends no lease."""

    url: str
    seconds: float


Answer = Crawled | Failed | Excluded | Redirected | Released | HostDelay


class DiscoveredPage(msgspec.Struct, frozen=True, array_like=True):
    """A page that another shard of the crawl owns.

    Parameters
    ----------
    url : str
        The canonical URL, with ``#`` and the variant if it has one.
    score : float
        The best score of a link to it.
    depth : int
        Clicks from a seed, 0 … 65,535.
    rank : float
        What the links of the sender give to its rank, not normalised.
    data : bytes
        Carried data.
    """

    url: str
    score: float
    depth: Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
    rank: float
    data: bytes = b""


class Discovered(msgspec.Struct, frozen=True):
    """Pages that a shard has discovered and that another shard owns, and their ranks.

    Parameters
    ----------
    shard : int
        The shard that has discovered them.
    round : int
        The number of this reply.
    end : int
        The next number to ask from.
    pages : list of DiscoveredPage
        The pages below this number, in the order of their numbers.
    changed, ranks : bytes
        Places of earlier pages, in the order in which they were sent, whose ranks have changed, as uint32; and their
        ranks, as float32. Both are little-endian.
    """

    shard: Annotated[int, msgspec.Meta(ge=1, le=4096)]
    round: int
    end: Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)]
    pages: list[DiscoveredPage]
    changed: bytes = b""
    ranks: bytes = b""


class ShardOf(msgspec.Struct, frozen=True):
    """Which shard a crawl is, and how far its exchange with the other shards is.

    Parameters
    ----------
    number, count : int
        The crawl is shard ``number`` of ``count``.
    pages : int
        Number of pages that the shard knows, which are numbered from 0.
    ends : list of int
        For each shard, the end of its numbers that this shard has looked through; 0 for itself.
    """

    number: int
    count: int
    pages: int = 0
    ends: list[int] = []


class Receipt(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The result of an answer.

    Parameters
    ----------
    counted : bool
        False if the lease is unknown, was answered for, or belongs to another session, or if the page was crawled
        after the lease was given; for a :class:`HostDelay`, if the host has that delay or a longer one.
    task : Task or None
        For a redirect, the task of its target, if the session must fetch the target now.
    host_wait : float
        Seconds for which the host gets no request because of this answer; 0 if the answer holds nothing back.
    """

    counted: bool
    task: Task | None = None
    host_wait: float = 0.0


class Session(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session that has begun.

    Parameters
    ----------
    number : int
        Names the session in every later call.
    owner : str
        Name of the session's owner. An owner has one session at a time.
    lease_seconds : float
        Seconds after which a task is lost if it was neither answered for nor renewed.
    silent_after : float or None
        Seconds without any call after which the session ends; None is never.
    lost : int
        Number of tasks that the owner's previous session held and that are lost now.
    """

    number: int
    owner: str
    lease_seconds: float
    silent_after: float | None = None
    lost: int = 0


class HostStanding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A host or registered domain: waiting pages, fetched pages, and seconds until the next fetch is allowed.

    ``due_in`` is None if an operator blocked it for ever.
    """

    name: str
    waiting: int
    taken: int
    due_in: float | None


class BoundedPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page at one of the best places.

    Parameters
    ----------
    place : int
        Place by the lower bound; the first place is 1.
    page : int
    url : str
    lower, upper : float
        Bounds on its rank in the finished crawl, as shares of all rank.
    certain : bool
        Whether its place is certain within :attr:`Certificate.within`.
    """

    place: int
    page: int
    url: str
    lower: float
    upper: float
    certain: bool


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The places that cannot change much, however the crawl goes on: see :mod:`inlink.reranking.bounds`.

    A place is certain if, in the finished crawl, no page after it has more than ``within`` above the rank of its page,
    and no page before it has more than ``within`` below that rank.

    Parameters
    ----------
    within : float
        A share of all rank.
    outside : float
        Upper bound on the rank of all pages that are not fetched, known or not.
    unseen : float
        Upper bound on the rank of any page that is not known.
    beyond : float
        Upper bound on the rank of any page that is not in ``places``, known or not.
    fetched : int
        Number of pages whose links are known.
    waiting : int
        Number of pages that wait for their first fetch.
    targets : int
        Number of teleport targets.
    trusted : bool
        Whether the targets are the trusted pages, not the seeds.
    damping : float
    places : list of BoundedPage
        The best pages.
    """

    within: float
    outside: float
    unseen: float
    beyond: float
    fetched: int
    waiting: int
    targets: int
    trusted: bool
    damping: float
    places: list[BoundedPage]

    @property
    def holds(self) -> bool:
        """True if all places are certain."""
        return bool(self.places) and all(row.certain for row in self.places)


class Standing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The progress of a crawl.

    Parameters
    ----------
    known, crawled, waiting, leased : int
        Numbers of pages. Waiting pages may be handed out; leased pages are being fetched.
    states : dict of str to int
        Number of pages in each state.
    harvest : float or None
        Share of the rank of all known pages that the crawled pages hold, without pages that are excluded or gone: 1
        once all pages are crawled that may be. None if the policy ranks nothing or no page is crawled.
    hosts : list of HostStanding
        The hosts with the most waiting pages.
    planned : int
        Number of pages that have a date: for a retry, a revisit, or because they were lost. Until then they do not
        count as waiting.
    later : list of HostStanding
        Hosts of the planned pages that are due next. ``waiting`` counts those among the next 256 pages, and ``due_in``
        is that of the first.
    certificate : Certificate or None
        Omitted if it was not requested. None if it is not computed yet.
    rank : float or None
        Sum of the ranks of the pages that may be fetched, and ``harvest`` is the fetched part of it. None if it is not
        computed yet, or the policy ranks nothing. Sums of PageRank can be added over the shards of a crawl.
    rank_error : float or None
        A bound on the sum of the differences between the ranks of all known pages and exact PageRank. Divide it by
        ``rank`` for the relative error. None if a page or a link came after the last ranking, pages or ranks are under
        way between shards, or the policy does not rank by PageRank. A shard gives its part of the sum over all shards.
    """

    known: int
    crawled: int
    waiting: int
    leased: int
    states: dict[str, int]
    harvest: float | None
    hosts: list[HostStanding]
    planned: int = 0
    later: list[HostStanding] = []
    certificate: Certificate | msgspec.UnsetType | None = msgspec.UNSET
    rank: float | None = None
    rank_error: float | None = None


# -- between a client and a server: the bodies of requests and replies ------------------------------------------------


class Hello(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A spider asks a server for a session.

    Parameters
    ----------
    owner : str
        Name of the session's owner: one line of at most 200 bytes, including the name of the token and a slash.
    silent_after : float
        Seconds without a call after which the session ends.
    rejoin : bool
        Go on with the owner's session, if there is one.
    """

    owner: str = OWNER
    silent_after: float = 120.0
    rejoin: bool = False


class Begun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session that a server has begun.

    Parameters
    ----------
    session : Session
    told : str
        One line on the crawl and its settings.
    settings : dict of str to object
        The crawl's settings, as its folder keeps them. The server decides them.
    """

    session: Session
    told: str
    settings: dict[str, Any]


class Ask(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A session asks for tasks.

    Parameters
    ----------
    session : int
    n : int
        Tasks at most, 1 … 1,000.
    wait : float
        Seconds for which the reply may wait until there is a task, at most 20.
    request : int
        Id of the request: see :meth:`inlink.crawl.desk.Desk.next`.
    lost : bool
        Whether the session may get lost pages. False is for a caller that does not answer.
    """

    session: int
    n: int = 1
    wait: float = 0.0
    request: int = 0
    lost: bool = True


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A session answers for its tasks: see :meth:`inlink.crawl.desk.Desk.report`."""

    session: int
    answers: list[Answer]
    request: int = 0


class Receipts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reply to a report: the result of each answer, in their order."""

    receipts: list[Receipt]


class Seeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """URLs to make known: see :meth:`inlink.Crawl.seed`."""

    urls: list[AnyLink]


class Sitemap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sitemap's entries: URL, lastmod as Unix time, priority. See :meth:`inlink.Crawl.sitemap`."""

    entries: list[tuple[str, float | None, float | None]]


class Seeded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of URLs that are new, and of those that were refused, by reason."""

    new: int
    refused: dict[str, int] = {}


class Changed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of tasks or pages that a request changed."""

    count: int


class Refusal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request that a server does not carry out.

    Parameters
    ----------
    error : str
        One line: what is wrong, and what to do.
    kind : str
        Name of the exception of :mod:`inlink.errors` that the crawl raised; empty if the server itself refuses.
    """

    error: str
    kind: str = ""

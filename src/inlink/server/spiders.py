"""Endpoints for spiders: sessions, tasks, answers, seeds."""

from typing import Annotated

import msgspec

from inlink.client.batches import MOST_LINKS
from inlink.client.remote import LONGEST_WAIT
from inlink.crawl.crawl import Crawl
from inlink.crawl.settings import as_data
from inlink.errors import FolderError, ParameterError, SessionError
from inlink.protocol import (
    AnyLink,
    Ask,
    Begun,
    Changed,
    Crawled,
    Discovered,
    Hello,
    Receipts,
    Report,
    Seeded,
    Seeds,
    ShardOf,
    Sitemap,
    Tasks,
)
from inlink.server.endpoints import Endpoints
from inlink.server.keeper import Keeper
from inlink.server.site import Caller

ENDPOINTS = Endpoints()

MOST_TASKS = 1000
"""Maximum number of tasks that a request may ask for."""


@ENDPOINTS.add("POST", "sessions", "spider", 201)
def begin(opened: Crawl, crawl: Keeper, caller: Caller, body: Hello) -> Begun:
    """Begin a session; the owner's previous session ends, and its tasks are lost."""
    owner = _prefix(caller) + body.owner if body.owner.strip() else ""
    session = opened.desk.hello(owner, silent_after=body.silent_after, rejoin=body.rejoin)
    return Begun(
        msgspec.structs.replace(session, owner=body.owner),
        crawl.without_folder(opened.recovered),
        msgspec.to_builtins(as_data(opened.settings)),
    )


@ENDPOINTS.add("POST", "sessions/{session}", "spider")
def renew(opened: Crawl, crawl: Keeper, caller: Caller, session: int) -> Changed:
    """Extend a session's tasks; return the number of tasks that were extended."""
    _check_session(crawl, caller, session)
    return Changed(opened.desk.renew(session))


@ENDPOINTS.add("DELETE", "sessions/{session}", "spider")
def end(opened: Crawl, crawl: Keeper, caller: Caller, session: int) -> Changed:
    """End a session and give its tasks back; return their number."""
    _check_session(crawl, caller, session)
    return Changed(opened.desk.bye(session))


@ENDPOINTS.add("POST", "next", "spider")
async def next_tasks(crawl: Keeper, caller: Caller, body: Ask) -> Tasks:
    """Hand out tasks, and wait for a task if there is none now."""
    if not 1 <= body.n <= MOST_TASKS:
        raise ParameterError(f"`n` must be from 1 to {MOST_TASKS:,}; got {body.n}")
    if not 0 <= body.wait <= LONGEST_WAIT:
        raise ParameterError(f"`wait` must be from 0 to {LONGEST_WAIT:.0f} seconds; got {body.wait}")
    _check_session(crawl, caller, body.session)
    return await crawl.next(body)


@ENDPOINTS.add("POST", "answers", "spider")
async def answers(crawl: Keeper, caller: Caller, body: Report) -> Receipts:
    """Take in answers. The reply is sent after the events of all answers are written."""
    if len(body.answers) > MOST_TASKS:
        raise ParameterError(f"a report has at most {MOST_TASKS:,} answers; got {len(body.answers):,}")
    for answer in body.answers:
        if isinstance(answer, Crawled):
            check_links(answer.links, "links", f"lease {answer.lease}: a page has")
    _check_session(crawl, caller, body.session)
    return Receipts(await crawl.report(body.session, body.answers, body.request))


@ENDPOINTS.add("POST", "seeds", "spider")
def seed(opened: Crawl, body: Seeds) -> Seeded:
    """Add URLs at which the crawl begins."""
    check_links(body.urls, "URLs", "a request for seeds has")
    before = opened.refused.copy()
    return Seeded(opened.seed(body.urls), dict(opened.refused - before))


@ENDPOINTS.add("POST", "sitemap", "spider")
def sitemap(opened: Crawl, body: Sitemap) -> Seeded:
    """Take in a sitemap: add its URLs, and let pages that changed since their visit wait again."""
    check_links(body.entries, "entries", "a request with a sitemap has")
    before = opened.refused.copy()
    return Seeded(opened.sitemap(body.entries), dict(opened.refused - before))


def _check_session(crawl: Keeper, caller: Caller, session: int) -> None:
    """Refuse a session that another token has begun. A session that has ended is refused by the crawl."""
    owner = crawl.owner_of(session)
    if owner is not None and not owner.startswith(_prefix(caller)):
        raise SessionError(f"session {session} belongs to another token: begin a new session")


def _prefix(caller: Caller) -> str:
    """The beginning of the owners of a caller's sessions. It is in the log, so that it holds after a restart."""
    return "" if caller.token is None else f"{caller.token.name}/"


def check_links(
    links: "list[AnyLink] | list[tuple[str, float | None, float | None]]", what: str, who: str
) -> None:
    """Refuse more links than one event may have."""
    if len(links) > MOST_LINKS:
        raise ParameterError(f"{who} at most {MOST_LINKS:,} {what}; got {len(links):,}")


class PagesAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A shard's request for pages: the number of shards, the first number, and the round of the last reply."""

    of: int
    begin: Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)]
    last: int = 0


@ENDPOINTS.add("GET", "shard", "reader")
def shard(opened: Crawl) -> ShardOf:
    """Return which shard of a crawl this is, and how far its exchange with the others is."""
    try:
        return opened.exchange.progress()
    except ParameterError as error:
        raise FolderError(str(error)) from None


@ENDPOINTS.add("GET", "shards/{number}/pages", "spider")
def pages_of_shard(opened: Crawl, number: int, query: PagesAsked) -> Discovered:
    """Return pages that this shard has discovered and that another shard owns, and changed ranks."""
    return opened.exchange.discovered(number, query.of, query.begin, query.last)

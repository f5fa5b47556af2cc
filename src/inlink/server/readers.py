"""Endpoints that only read: the methods of :class:`inlink.CrawlView`, a part at a time."""

from typing import Literal

import msgspec

from inlink.crawl import shown
from inlink.crawl.about import About
from inlink.crawl.about import about as look
from inlink.crawl.crawl import Crawl
from inlink.errors import UnknownNodeError
from inlink.frontier.explain import Why
from inlink.frontier.standing import Harvest
from inlink.protocol import Standing
from inlink.server.endpoints import Endpoints, EventStream
from inlink.server.keeper import Keeper
from inlink.server.site import Caller, Site
from inlink.server.snapshots import Snapshot
from inlink.store.page import Page

__all__ = ["ENDPOINTS"]

ENDPOINTS = Endpoints()
HERE = "/v1/crawls/{name}"


class ListPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a list: at most ``count`` rows, after the part that returned this ``cursor``."""

    count: int = 100
    cursor: str | None = None


class HostRows(ListPart, frozen=True, forbid_unknown_fields=True):
    """A part of the hosts, or only those with the most waiting pages."""

    fullest: bool = False


class Onward(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cursor of the part before."""

    cursor: str | None = None


class Places(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first places of the order."""

    count: int = 50


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of hosts, those with the most waiting pages; the places of a certificate and its ε."""

    hosts: int = 5
    top: int | None = None
    within: float = 0.0


class OnePage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page, by its URL in any form."""

    url: str


class Chain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page, and a part of a list."""

    url: str
    count: int = 100
    cursor: str | None = None


class Linked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page, and the direction of its links: from it or to it."""

    url: str
    direction: Literal["from", "to"] = "from"
    count: int = 100
    cursor: str | None = None


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An expression that URLs match; RE2's syntax for ``regex``."""

    expression: str
    kind: Literal["regex", "glob", "text"] = "regex"
    count: int = 100
    cursor: str | None = None


class Ranked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ranking that is stored with the crawl; None is the ranking that orders the crawl now."""

    ranking: str | None = None
    count: int = 10
    cursor: str | None = None


class Dumped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pages or links, and the position to continue from."""

    what: Literal["pages", "links"] = "pages"
    cursor: str | None = None
    aduana: bool = False
    depth: bool = False


class CrawlList(msgspec.Struct, frozen=True):
    """The crawls of a server. ``faults`` has the faults of the crawls that cannot be used now."""

    crawls: list[str]
    faults: dict[str, str]


@ENDPOINTS.add("GET", "/v1/crawls", "reader")
async def crawls(site: Site) -> CrawlList:
    """The crawls of this server."""
    faults = {name: one.fault for name, one in site.keepers.items() if one.fault is not None}
    return CrawlList(list(site.keepers), faults)


@ENDPOINTS.add("GET", HERE + "/standing", "reader")
async def standing(crawl: Keeper, query: Wanted) -> Standing:
    """The crawl's progress, and with ``top`` the certainty of its best places."""
    return await crawl.run(lambda opened: opened.view.standing(query.hosts, query.top, query.within))


@ENDPOINTS.add("GET", HERE + "/info", "reader")
async def info(crawl: Keeper) -> shown.Info:
    """Numbers of pages, hosts, links and events."""
    return await crawl.run(lambda opened: opened.view.info())


@ENDPOINTS.add("GET", HERE + "/about", "reader")
async def about(crawl: Keeper) -> About:
    """The state of the crawl's folder: sizes, policy, writer, inbox, ranking."""
    return await crawl.run(lambda opened: look(opened.folder, opened.view.info().event_bytes))


@ENDPOINTS.add("GET", HERE + "/hosts", "reader")
async def hosts(crawl: Keeper, query: HostRows) -> shown.Hosts:
    """The hosts, in the order of discovery, or those with the most waiting pages."""
    return await crawl.run(lambda opened: opened.view.hosts(query.count, query.cursor, fullest=query.fullest))


@ENDPOINTS.add("GET", HERE + "/errors", "reader")
async def errors(crawl: Keeper, query: Onward) -> shown.Errors:
    """Failures and exclusions by cause, with examples."""
    return await crawl.run(lambda opened: opened.view.errors(query.cursor))


@ENDPOINTS.add("GET", HERE + "/next", "reader")
async def order(crawl: Keeper, query: Places) -> shown.Order:
    """The next pages, with reasons. No task is handed out."""
    return await crawl.run(lambda opened: opened.view.order(query.count))


@ENDPOINTS.add("GET", HERE + "/page", "reader")
async def page(crawl: Keeper, query: OnePage) -> Page:
    """All that is known of a page."""

    def work(opened: Crawl) -> Page:
        found = opened.view.page(query.url)
        if found is None:
            raise UnknownNodeError(f"{crawl.name} does not know {query.url[:300]!r}")
        return found

    return await crawl.run(work)


@ENDPOINTS.add("GET", HERE + "/why", "reader")
async def why(crawl: Keeper, query: OnePage) -> Why:
    """The place of a page in the order, and all reasons for it."""
    return await crawl.run(lambda opened: opened.view.why(query.url))


@ENDPOINTS.add("GET", HERE + "/find", "reader")
async def find(crawl: Keeper, query: Search) -> shown.MatchedPages:
    """The pages whose URLs match an expression."""
    return await crawl.run(
        lambda opened: opened.view.find(query.expression, query.kind, query.count, query.cursor)
    )


@ENDPOINTS.add("GET", HERE + "/links", "reader")
async def links(crawl: Keeper, query: Linked) -> shown.PageList:
    """The pages that a page links to, or that link to it."""
    return await crawl.run(
        lambda opened: opened.view.links(query.url, query.direction, query.count, query.cursor)
    )


@ENDPOINTS.add("GET", HERE + "/path", "reader")
async def path(crawl: Keeper, query: Chain) -> shown.PageList:
    """The links through which the crawl discovered a page, back to a seed."""
    return await crawl.run(lambda opened: opened.view.path(query.url, query.count, query.cursor))


@ENDPOINTS.add("GET", HERE + "/top", "reader")
async def top(crawl: Keeper, query: Ranked) -> shown.Top:
    """The best pages of a ranking."""
    return await crawl.run(lambda opened: opened.view.top(query.ranking, query.count, query.cursor))


@ENDPOINTS.add("GET", HERE + "/harvest", "reader")
async def harvest(crawl: Keeper) -> Harvest:
    """The share of all rank that the fetched pages hold, against pages fetched."""
    return await crawl.run(lambda opened: opened.view.harvest())


@ENDPOINTS.add("GET", HERE + "/dump", "reader")
async def dump(crawl: Keeper, query: Dumped) -> shown.Dump:
    """All pages, or the links between them, as tab-separated lines."""
    return await crawl.run(
        lambda opened: opened.view.dump(query.what, query.cursor, aduana=query.aduana, depth=query.depth)
    )


@ENDPOINTS.add("GET", HERE + "/events", "reader")
async def events(site: Site, crawl: Keeper, caller: Caller) -> Snapshot | EventStream:
    """The state of the crawl: once a second if the client accepts text/event-stream, else once."""
    snapshots = site.snapshots[crawl.name]
    if not caller.accepts(b"text/event-stream"):
        return await snapshots.latest()
    return EventStream(snapshots.events)

"""Endpoints that only read: the questions to a crawl (:mod:`inlink.crawl.questions.table`), and lists of the server."""

import msgspec

from inlink.crawl.crawl import Crawl
from inlink.crawl.questions.table import Question
from inlink.crawl.view import QUESTIONS
from inlink.errors import FolderError, UnknownNodeError
from inlink.server.endpoints import HERE, Endpoint, Endpoints, EventStream
from inlink.server.keeper import Keeper
from inlink.server.overview import AllShards
from inlink.server.site import Caller, Site
from inlink.server.snapshots import Snapshot

ENDPOINTS = Endpoints()


class CrawlList(msgspec.Struct, frozen=True):
    """The crawls of a server. ``faults`` has the faults of the crawls that cannot be used now."""

    crawls: list[str]
    faults: dict[str, str]


@ENDPOINTS.add("GET", "/v1/crawls", "reader")
async def crawls(site: Site) -> CrawlList:
    """The crawls of this server."""
    return CrawlList(list(site.keepers), site.faults)


def _endpoint(question: Question) -> Endpoint:
    def reply(opened: Crawl, crawl: Keeper, query: msgspec.Struct | None = None) -> object:
        answer = question.ask(opened.view, query)
        if answer is None:
            raise UnknownNodeError(f"{crawl.name} does not know {getattr(query, 'url', '')[:300]!r}")
        return answer

    reply.__name__, reply.__doc__ = question.method.__name__, question.method.__doc__
    reply.__annotations__ = {"return": question.answer}
    types = {"opened": Crawl, "crawl": Keeper} | ({} if question.query is None else {"query": question.query})
    return Endpoint("GET", f"{HERE}/{question.path}", "reader", reply, 200, types)


ENDPOINTS.all.extend(map(_endpoint, QUESTIONS.values()))


@ENDPOINTS.add("GET", "shards", "reader")
async def shards(site: Site, crawl: Keeper) -> AllShards:
    """The state of the shards of the crawl whose servers answer within a second."""
    if crawl.name not in site.overviews:
        raise FolderError(
            f"{crawl.name} has no shards on other servers: serve it with --shard and --shard-url"
        )
    return await site.overviews[crawl.name].latest()


@ENDPOINTS.add("GET", "events", "reader")
async def events(site: Site, crawl: Keeper, caller: Caller) -> Snapshot | EventStream:
    """The state of the crawl: once a second if the client accepts text/event-stream, else once."""
    snapshots = site.snapshots[crawl.name]
    if not caller.accepts(b"text/event-stream"):
        return await snapshots.latest()
    return EventStream(snapshots.events)

"""Endpoints for those who steer a crawl. Each change is an event of its log, so that it holds after a restart."""

import msgspec

from inlink.crawl.crawl import Crawl
from inlink.server.endpoints import Endpoints
from inlink.server.keeper import Keeper
from inlink.server.spiders import Count

__all__ = ["ENDPOINTS"]

ENDPOINTS = Endpoints()
HERE = "/v1/crawls/{name}"


class Paused(msgspec.Struct, frozen=True):
    """Whether the crawl is paused."""

    paused: bool


class Asked(msgspec.Struct, frozen=True):
    """Whether a ranking is being computed."""

    ranking: bool


@ENDPOINTS.add("POST", HERE + "/pause", "admin")
async def pause(crawl: Keeper) -> Paused:
    """Hand nothing out until the crawl is resumed. Answers are taken in."""

    def work(opened: Crawl) -> Paused:
        opened.pause()
        return Paused(opened.paused)

    return await crawl.change(work)


@ENDPOINTS.add("POST", HERE + "/resume", "admin")
async def resume(crawl: Keeper) -> Paused:
    """End a pause."""

    def work(opened: Crawl) -> Paused:
        opened.resume()
        return Paused(opened.paused)

    return await crawl.change(work)


@ENDPOINTS.add("POST", HERE + "/reload", "admin")
async def reload(crawl: Keeper) -> Count:
    """Let pages that failed, are gone or were excluded wait again; says how many."""
    return Count(await crawl.change(lambda opened: opened.reload()))


@ENDPOINTS.add("POST", HERE + "/rerank", "admin")
async def rerank(crawl: Keeper) -> Asked:
    """Ask for a new ranking, which is adopted when it is there."""

    def work(opened: Crawl) -> Asked:
        opened.rerank()
        return Asked(opened.ranking)

    return await crawl.change(work)

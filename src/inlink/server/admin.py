"""Endpoints for operators of a crawl. Each change is an event of the crawl's log, so it also holds after a restart."""

import math
from typing import Any, Literal

import msgspec

from inlink.crawl.crawl import Crawl
from inlink.crawl.settings import as_data
from inlink.frontier.hosts import HostState
from inlink.frontier.rules import Rules
from inlink.frontier.settings import Settings
from inlink.protocol import Changed
from inlink.server.endpoints import Endpoints
from inlink.server.keeper import Keeper

__all__ = ["ENDPOINTS"]

ENDPOINTS = Endpoints()
HERE = "/v1/crawls/{name}"


class Paused(msgspec.Struct, frozen=True):
    """The answer to a pause: true while the crawl is paused."""

    paused: bool


class Seconds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds of a block, where null is for ever; or of a delay, where null is the delay of the settings."""

    seconds: float | None


class PageLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of pages that may still be fetched; null is no limit."""

    pages: int | None


class NewRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules for URLs: see :class:`inlink.Rules`. A field that is left out sets no limit."""

    allow: list[str] = []
    deny: list[str] = []
    max_depth: int | None = None
    hosts: list[str] | None = None
    domains: list[str] | None = None


class States(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The states of the pages that shall wait again."""

    states: tuple[Literal["failed", "gone", "excluded"], ...] = ("failed",)


class Asked(msgspec.Struct, frozen=True):
    """The answer to a request for a ranking: true while a ranking is being computed."""

    ranking: bool


@ENDPOINTS.add("POST", HERE + "/pause", "admin")
async def pause(crawl: Keeper) -> Paused:
    """Stop handing out tasks until the crawl is resumed. Answers are still taken in."""
    await crawl.change(lambda opened: opened.pause())
    return Paused(True)


@ENDPOINTS.add("POST", HERE + "/resume", "admin")
async def resume(crawl: Keeper) -> Paused:
    """End a pause."""
    await crawl.change(lambda opened: opened.resume())
    return Paused(False)


@ENDPOINTS.add("POST", HERE + "/reload", "admin")
async def reload(crawl: Keeper, body: States) -> Changed:
    """Let all pages of some states wait again; return their number."""
    return Changed(await crawl.change(lambda opened: opened.reload(*body.states)))


@ENDPOINTS.add("POST", HERE + "/rerank", "admin")
async def rerank(crawl: Keeper) -> Asked:
    """Start a new ranking, which is adopted when it is finished."""

    def work(opened: Crawl) -> Asked:
        opened.rerank()
        return Asked(opened.ranking)

    return await crawl.change(work)


@ENDPOINTS.add("PUT", HERE + "/hosts/{host}/block", "admin")
async def block(crawl: Keeper, host: str, body: Seconds) -> HostState:
    """Block a host for a number of seconds; 0 ends a block. Tasks that are out are not called back."""
    seconds = math.inf if body.seconds is None else body.seconds
    return await crawl.change(lambda opened: opened.set_host(host, block=seconds))


@ENDPOINTS.add("PUT", HERE + "/hosts/{host}/delay", "admin")
async def delay(crawl: Keeper, host: str, body: Seconds) -> HostState:
    """Set the seconds between two fetches from a host, regardless of the settings and robots.txt."""
    return await crawl.change(lambda opened: opened.set_host(host, delay=body.seconds))


@ENDPOINTS.add("PUT", HERE + "/hosts/{host}/budget", "admin")
async def budget(crawl: Keeper, host: str, body: PageLimit) -> HostState:
    """Set the number of pages that may still be fetched from a host."""
    return await crawl.change(lambda opened: opened.set_host(host, budget=body.pages))


@ENDPOINTS.add("GET", HERE + "/settings", "reader")
async def settings(crawl: Keeper) -> dict[str, Any]:
    """The settings in force."""
    return await crawl.run(lambda opened: _data(opened.settings))


@ENDPOINTS.add("PATCH", HERE + "/settings", "admin")
async def change(crawl: Keeper, body: dict[str, Any]) -> dict[str, Any]:
    """Change settings. If one value is refused, no setting changes. In a group, only the given fields change."""
    return await crawl.change(lambda opened: _data(opened.change_settings(**body)))


@ENDPOINTS.add("PUT", HERE + "/rules", "admin")
async def rules(crawl: Keeper, body: NewRules) -> dict[str, Any]:
    """Replace the rules for URLs. A refused URL is excluded at its turn, and waits again once rules allow it."""
    found = Rules(**msgspec.structs.asdict(body))
    return await crawl.change(lambda opened: _data(opened.change_settings(rules=found)))


def _data(found: Settings) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(as_data(found))
    return data

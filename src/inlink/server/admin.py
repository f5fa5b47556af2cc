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

ENDPOINTS = Endpoints()


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


@ENDPOINTS.add("POST", "pause", "admin")
def pause(opened: Crawl) -> Paused:
    """Stop handing out tasks until the crawl is resumed. Answers are still taken in."""
    opened.pause()
    return Paused(True)


@ENDPOINTS.add("POST", "resume", "admin")
def resume(opened: Crawl) -> Paused:
    """End a pause."""
    opened.resume()
    return Paused(False)


@ENDPOINTS.add("POST", "reload", "admin")
def reload(opened: Crawl, body: States) -> Changed:
    """Let all pages of some states wait again; return their number."""
    return Changed(opened.reload(*body.states))


@ENDPOINTS.add("POST", "rerank", "admin")
def rerank(opened: Crawl) -> Asked:
    """Start a new ranking, which is adopted when it is finished."""
    opened.rerank()
    return Asked(opened.ranking)


@ENDPOINTS.add("PUT", "hosts/{host}/block", "admin")
def block(opened: Crawl, host: str, body: Seconds) -> HostState:
    """Block a host for a number of seconds; 0 ends a block. Tasks that are out are not called back."""
    return opened.set_host(host, block=math.inf if body.seconds is None else body.seconds)


@ENDPOINTS.add("PUT", "hosts/{host}/delay", "admin")
def delay(opened: Crawl, host: str, body: Seconds) -> HostState:
    """Set the seconds between two fetches from a host, regardless of the settings and robots.txt."""
    return opened.set_host(host, delay=body.seconds)


@ENDPOINTS.add("PUT", "hosts/{host}/budget", "admin")
def budget(opened: Crawl, host: str, body: PageLimit) -> HostState:
    """Set the number of pages that may still be fetched from a host."""
    return opened.set_host(host, budget=body.pages)


@ENDPOINTS.add("GET", "settings", "reader")
def settings(opened: Crawl) -> dict[str, Any]:
    """The settings in force."""
    return _data(opened.settings)


@ENDPOINTS.add("PATCH", "settings", "admin")
def change(opened: Crawl, body: dict[str, Any]) -> dict[str, Any]:
    """Change settings. If one value is refused, no setting changes. In a group, only the given fields change."""
    return _data(opened.change_settings(**body))


@ENDPOINTS.add("PUT", "rules", "admin")
def rules(opened: Crawl, body: NewRules) -> dict[str, Any]:
    """Replace the rules for URLs. A refused URL is excluded at its turn, and waits again once rules allow it."""
    # A crawl stays the shard that it is.
    before = opened.settings.rules
    shard = None if before is None else before.shard
    return _data(opened.change_settings(rules=Rules(**msgspec.structs.asdict(body), shard=shard)))


def _data(settings: Settings) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(as_data(settings))
    return data

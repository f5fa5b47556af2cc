"""What a Scrapy project's settings ask of a crawl.

Each ``INLINK_…`` setting is an argument of :class:`inlink.Crawl` in capitals; Aduana's names are understood too. Where
nothing is said, politeness follows Scrapy's own settings.
"""

import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
from scrapy.settings import BaseSettings

from inlink.errors import InputError, ParameterError
from inlink.frontier.aduana import crawl_arguments
from inlink.frontier.intake import Link
from inlink.frontier.queue import Politeness
from inlink.frontier.revisit import revisit_of
from inlink.frontier.rules import Rules
from inlink.store.inbox import seeds_in
from inlink.urls.canonical import UrlRules

__all__ = ["OWN", "crawl_settings", "max_wait", "seeds_of", "structured"]

OWN = ("CRAWL", "SEEDS", "CONTENT_SCORER", "LINK_SCORER", "MAX_WAIT")
"""Settings that are the scheduler's, and no arguments of a crawl."""

RETRY_SECONDS = 2.0  # doubled with every failure; a host that fails waits as long
MAX_WAIT = 300.0  # seconds: a crawl in which nothing is due before that ends, and can be gone on with later

_PLAIN = {
    "POLICY": str,
    "USE_SCORES": bool,
    "CROSS_DOMAIN_ONLY": bool,
    "DAMPING": float,
    "LEASE_SECONDS": float,
    "MAX_RETRIES": int,
    "RETRY_SECONDS": float,
    "RERANK_SHARE": float,
    "RERANK_SECONDS": float,
    "SYNC": str,
}
_NONE_MEANS = ("RERANK_SHARE", "RERANK_SECONDS")  # never; None is elsewhere as if nothing were set
_MADE = {"POLITENESS": Politeness, "RULES": Rules, "URL_RULES": UrlRules}


def crawl_settings(settings: BaseSettings) -> tuple[str, dict[str, Any]]:
    """Where the crawl is, and the arguments to open it with.

    Raises
    ------
    inlink.errors.ParameterError
        If no crawl is named, or a setting is none that is known, or outside its meaning.
    """
    given = {name.removeprefix("INLINK_"): settings[name] for name in settings if name.startswith("INLINK_")}
    for name in given:
        if name not in (*OWN, *_PLAIN, *_MADE, "REVISIT"):
            raise ParameterError(f"INLINK_{name} is no setting of inlink's: see docs/scrapy.md")
    found = crawl_arguments({name: settings[name] for name in settings})
    folder = found.pop("folder", None)
    where = given.get("CRAWL") or folder
    if not where:
        raise ParameterError(
            'INLINK_CRAWL is not set: name a folder for the crawl, as INLINK_CRAWL = "mycrawl"'
        )
    found.setdefault("max_retries", settings.getint("RETRY_TIMES"))
    found.setdefault("retry_seconds", RETRY_SECONDS)
    found.setdefault("politeness", _politeness(settings))
    for name, kind in _PLAIN.items():
        if name in given:
            value = _plain(f"INLINK_{name}", given[name], kind)
            if value is not None or name in _NONE_MEANS:
                found[name.lower()] = value
    for name, made in _MADE.items():
        if given.get(name) is not None:
            found[name.lower()] = _made(f"INLINK_{name}", made, settings)
    if given.get("REVISIT") is not None:
        found["revisit"] = _revisit(structured(settings, "INLINK_REVISIT"))
    return str(where), found


def max_wait(settings: BaseSettings, arguments: Mapping[str, Any]) -> float | None:
    """Seconds that a crawl waits for something to become due; None is for ever, as where pages are revisited.

    Raises
    ------
    inlink.errors.ParameterError
        If it is set to something else.
    """
    if "INLINK_MAX_WAIT" not in settings:
        return None if arguments.get("revisit") else MAX_WAIT
    value = settings["INLINK_MAX_WAIT"]
    seconds = _plain("INLINK_MAX_WAIT", value, float)
    if seconds is not None and not seconds >= 0:
        raise ParameterError(f"INLINK_MAX_WAIT must be seconds, or None, not {value!r}")
    return seconds  # type: ignore[no-any-return]


def seeds_of(settings: BaseSettings) -> list[Link]:
    """The URLs in the file that ``INLINK_SEEDS`` names: one a line, a tab and a score behind where one is given.

    Raises
    ------
    inlink.errors.InputError
        If it cannot be read, or a score is none.
    """
    path = settings["INLINK_SEEDS"]
    if path is None:
        return []
    try:
        text = Path(path).read_text("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise InputError(f"INLINK_SEEDS: {path}: {error.strerror}") from None
    return list(seeds_in(text, path))


def structured(settings: BaseSettings, name: str) -> Any:
    """A setting that may be a dict, also where it comes from a command line as JSON.

    Raises
    ------
    inlink.errors.ParameterError
        If it begins as JSON does, and is none.
    """
    value = settings[name]
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError as error:
        raise ParameterError(f"{name} = {value!r} is no JSON: {error}") from None


def _politeness(settings: BaseSettings) -> Politeness:
    """Politeness as Scrapy's settings have it.

    Its downloader keeps to them itself; twice as many leases keep it busy while answers are taken in.
    """
    return Politeness(
        delay=settings.getfloat("DOWNLOAD_DELAY"),
        in_flight=2 * max(settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"), 1),
    )


def _plain(name: str, value: Any, kind: type) -> Any:
    """A setting as its type, also where it comes from a command line as text."""
    if value is None or str(value).lower() == "none":
        return None
    try:
        if kind is bool:
            return {"true": True, "1": True, "false": False, "0": False}[str(value).lower()]
        found = kind(value)
        if kind is float and math.isnan(found):
            raise ValueError("not a number")
    except (TypeError, ValueError, KeyError, OverflowError):
        raise ParameterError(f"{name} = {value!r} is no {kind.__name__}") from None
    return found


def _revisit(given: Any) -> Any:
    if hasattr(given, "next"):  # an object that is a schedule
        return given
    try:
        return revisit_of(dict(given))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(
            'INLINK_REVISIT: give a schedule of inlink.frontier.revisit, or a dict as {"schedule": "Adaptive", …}'
            f" ({error})"
        ) from None


def _made(name: str, made: type, settings: BaseSettings) -> Any:
    given = structured(settings, name)
    if isinstance(given, made):
        return given
    if not isinstance(given, Mapping):
        raise ParameterError(f"{name} = {given!r}: give a dict of what {made.__name__} takes")
    known = [field.name for field in fields(made)]
    for key in given:
        if key not in known:
            raise ParameterError(f"{name}: {key!r} is none of {', '.join(known)}")
    if made is Rules:
        return Rules(**given)  # it looks at what it is given itself
    usual = _politeness(settings) if made is Politeness else made()
    try:
        found: object = msgspec.convert({**msgspec.to_builtins(usual), **given}, made, strict=False)
    except msgspec.ValidationError as error:
        raise ParameterError(f"{name}: {error}") from None
    return found

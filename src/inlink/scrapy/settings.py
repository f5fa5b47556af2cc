"""What a Scrapy project's settings ask of a crawl.

Each ``INLINK_…`` setting is an argument of :class:`inlink.Crawl` in capitals; Aduana's names are understood too. Where
nothing is said, politeness follows Scrapy's own settings.
"""

from collections.abc import Mapping
from typing import Any

from scrapy.settings import BaseSettings

from inlink.errors import ParameterError
from inlink.frontier.aduana import crawl_arguments
from inlink.frontier.queue import Politeness
from inlink.frontier.revisit import revisit_of
from inlink.frontier.rules import Rules
from inlink.urls.canonical import UrlRules

__all__ = ["OWN", "crawl_settings", "max_wait"]

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
    found.setdefault("politeness", _politeness(settings, {}))
    for name, kind in _PLAIN.items():
        if given.get(name) is not None:
            found[name.lower()] = _plain(f"INLINK_{name}", given[name], kind)
        elif name in given:
            found[name.lower()] = None
    for name, made in _MADE.items():
        if given.get(name) is not None:
            found[name.lower()] = _made(f"INLINK_{name}", given[name], made, settings)
    if given.get("REVISIT") is not None:
        found["revisit"] = _revisit(given["REVISIT"])
    return str(where), found


def max_wait(settings: BaseSettings, arguments: Mapping[str, Any]) -> float | None:
    """Seconds that a crawl waits for something to become due; None is for ever, as where pages are revisited."""
    value = settings.get("INLINK_MAX_WAIT", None if arguments.get("revisit") else MAX_WAIT)
    return None if value is None else float(_plain("INLINK_MAX_WAIT", value, float))


def _politeness(settings: BaseSettings, given: Mapping[str, Any]) -> Politeness:
    """Politeness as Scrapy's settings have it, but for what is given.

    Scrapy's downloader keeps to its own limits; twice as many leases keep it busy while answers are taken in.
    """
    usual = {
        "delay": settings.getfloat("DOWNLOAD_DELAY"),
        "in_flight": 2 * max(settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"), 1),
    }
    return Politeness(**{**usual, **given})


def _plain(name: str, value: Any, kind: type) -> Any:
    """A setting as its type, also where it comes from a command line as text."""
    try:
        if kind is bool:
            return (
                value
                if isinstance(value, bool)
                else {"true": True, "1": True, "false": False, "0": False}[str(value).lower()]
            )
        return kind(value)
    except (TypeError, ValueError, KeyError):
        raise ParameterError(f"{name} = {value!r} is no {kind.__name__}") from None


def _revisit(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    try:
        return revisit_of(dict(value))
    except (KeyError, TypeError) as error:
        raise ParameterError(
            'INLINK_REVISIT: give a schedule of inlink.frontier.revisit, or a dict as {"schedule": "Adaptive", …}'
            f" ({error})"
        ) from None


def _made(name: str, value: Any, made: type, settings: BaseSettings) -> Any:
    if isinstance(value, made):
        return value
    if not isinstance(value, Mapping):
        raise ParameterError(f"{name} = {value!r}: give a dict of what {made.__name__} takes")
    try:
        return _politeness(settings, value) if made is Politeness else made(**value)
    except TypeError as error:
        raise ParameterError(f"{name}: {str(error).removeprefix(made.__name__ + '.__init__() ')}") from None

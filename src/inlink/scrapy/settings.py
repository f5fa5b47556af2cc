"""Read a crawl's settings from a Scrapy project's settings.

The name of each setting is ``INLINK_`` and the name of the crawl's setting in capitals. Aduana's names work too. All of
them may also stand in the module that ``FRONTERA_SETTINGS`` names, which comes first, as with Frontera. Scrapy's own
settings for politeness and retries apply to a new crawl. To an existing crawl they apply only if the project sets them.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from inlink.base.declare import parameters_of
from inlink.base.settings import NO_LIMIT
from inlink.client.channel import is_url
from inlink.crawl.aduana import NAMES, crawl_arguments
from inlink.crawl.settings import SpiderSettings, checked, is_there, lay_over
from inlink.crawl.unread import unread
from inlink.errors import ParameterError
from inlink.frontier.settings import Politeness, Settings

PREFIX = "INLINK_"

SEEDS = "SEEDS_SOURCE"
"""The setting of Frontera's seed loaders. Scrapy no longer calls them, so their file is read here."""

MIDDLEWARES = (".SchedulerSpiderMiddleware", ".SchedulerDownloaderMiddleware")
"""Middlewares of Frontera's scheduler, in Frontera and in :mod:`inlink.frontera`."""

RETRY_SECONDS = 2.0
"""Seconds before the first retry in a new crawl. Scrapy's own retries do not wait at all."""


def spider_settings(settings: BaseSettings, crawl: Settings) -> SpiderSettings:
    """Return the settings of the spider, which are not part of the settings of its crawl.

    Parameters
    ----------
    settings : BaseSettings
        Scrapy's settings.
    crawl : Settings
        The settings of the crawl. They determine the default of ``max_wait``. If pages are revisited, the spider waits
        for ever. Otherwise it waits for a minute or twice the crawl's own delay, whichever is more.

    Raises
    ------
    inlink.errors.ParameterError
        If a setting is outside its range.
    """
    rows, given = parameters_of(SpiderSettings), _given(settings)[0]
    # A delay that the user has set must not end the crawl after one page.
    wait = max(rows["max_wait"].default, 2 * crawl.politeness.delay)
    found: dict[str, Any] = {"max_wait": None if crawl.revisits else wait}
    for name, row in rows.items():
        place = PREFIX + name.upper()
        if place in given:
            value = given[place]
            found[name] = row.parse(value, place) if isinstance(value, str) else row.check(value, place)
    if found.get("seeds") is None and given.get(SEEDS) is not None:
        found["seeds"] = str(given[SEEDS])
    return SpiderSettings(**found)


def crawl_settings(settings: BaseSettings) -> tuple[str, dict[str, Any]]:
    """Return the crawl's folder or URL, and those of its settings that the project sets.

    Raises
    ------
    inlink.errors.ParameterError
        If no crawl is named, a setting is unknown or outside its range, or a middleware of Frontera's scheduler is set.
    """
    _refuse_middlewares(settings)
    rows, told = parameters_of(Settings), _given(settings)[0]
    given = {name.removeprefix(PREFIX): value for name, value in told.items() if name.startswith(PREFIX)}
    for name in given:
        if name.lower() not in rows and name.lower() not in parameters_of(SpiderSettings):
            raise ParameterError(
                f"{PREFIX}{name} is not a setting of inlink: docs/scrapy.md lists the settings"
            )
    found = crawl_arguments(told)
    folder = found.pop("folder", None)
    where = str(given.get("CRAWL") or folder or "")
    if not where:
        raise ParameterError(
            'INLINK_CRAWL is not set: name a folder for the crawl, as INLINK_CRAWL = "mycrawl"'
        )
    # Scrapy applies its own settings to each spider. They do not change a crawl that a server has.
    found = ({} if is_url(where) else _of_scrapy(settings, not is_there(Path(where)))) | found
    if is_url(where):
        _refuse_settings_of_the_server(
            where, [name for name in given if name.lower() in rows and given[name] is not None]
        )
    for name, value in given.items():
        row = rows.get(name.lower())
        if row is None or (value is None and row.none is None):
            # None counts as not set, unless the setting gives None a meaning.
            continue
        lay_over(found, row.name, checked(row.name, value, PREFIX + name, texts=True))
    return where, found


def _refuse_settings_of_the_server(where: str, names: list[str]) -> None:
    if names:
        given = ", ".join(f"{PREFIX}{name}" for name in sorted(names))
        raise ParameterError(
            f"{where}: the server decides {given}: remove it here, or set it with `inlink serve --set`"
        )


def unread_settings(settings: BaseSettings) -> list[str]:
    """Return the names of those settings of Aduana and Frontera that the project sets and that have no effect."""
    given, module = _given(settings)
    ours = {name for name in given if name.startswith(PREFIX)}
    return unread(given, module, {*NAMES, *ours, "FRONTERA_SETTINGS", SEEDS})


def _given(settings: BaseSettings) -> tuple[dict[str, Any], frozenset[str]]:
    """Return all settings, and the names of those that stand in the module that ``FRONTERA_SETTINGS`` names."""
    given = {str(name): settings[name] for name in settings}
    where = given.get("FRONTERA_SETTINGS")
    if not where:
        return given, frozenset()
    try:
        module = import_module(where) if isinstance(where, str) else where
    except Exception as error:
        raise ParameterError(
            f"FRONTERA_SETTINGS: {where!r} cannot be imported: {type(error).__name__}: {error}"
        ) from None
    own = {name: getattr(module, name) for name in dir(module) if name.isupper()}
    return given | own, frozenset(own)


def _refuse_middlewares(settings: BaseSettings) -> None:
    """Refuse the middlewares of Frontera's scheduler. They call methods that only that scheduler has."""
    for group in ("SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES"):
        for key, order in settings.getdict(group).items():
            path = key if isinstance(key, str) else f"{key.__module__}.{key.__qualname__}"
            if order is not None and "frontera" in path and path.endswith(MIDDLEWARES):
                raise ParameterError(
                    f"{group}: {path} works only with Frontera's scheduler: remove it, or set SCHEDULER to Frontera's"
                )


def _of_scrapy(settings: BaseSettings, new: bool) -> dict[str, Any]:
    """Translate Scrapy's own settings: all of them in a new crawl, else those that the project sets.

    Scrapy's downloader applies them itself. Twice as many leases as requests keep it busy while answers are recorded.
    """
    polite, rows = {}, parameters_of(Politeness)
    found: dict[str, Any] = {"retry_seconds": RETRY_SECONDS} if new else {}
    if _is_set(settings, "DOWNLOAD_DELAY", new):
        polite["delay"] = rows["delay"].check(settings.getfloat("DOWNLOAD_DELAY"), "DOWNLOAD_DELAY")
    if _is_set(settings, "CONCURRENT_REQUESTS_PER_DOMAIN", new):
        polite["in_flight"] = min(2 * max(settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"), 1), NO_LIMIT)
    if _is_set(settings, "RETRY_TIMES", new):
        found["max_retries"] = checked("max_retries", settings.getint("RETRY_TIMES"), "RETRY_TIMES")
    return found | ({"politeness": polite} if polite else {})


def _is_set(settings: BaseSettings, name: str, new: bool) -> bool:
    priority = settings.getpriority(name)
    return new or (priority is not None and priority > SETTINGS_PRIORITIES["default"])

"""Read a crawl's settings from a Scrapy project's settings.

The name of each setting is ``INLINK_`` and the crawl's name for it in capitals. Aduana's names work too. Scrapy's own
settings for politeness and retries apply to a new crawl. To an existing crawl they apply only if the project sets them.
"""

from pathlib import Path
from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from inlink.base.settings import check, from_text, rows_of
from inlink.crawl.aduana import crawl_arguments
from inlink.crawl.settings import SpiderSettings, checked, is_there, lay_over
from inlink.errors import InputError, ParameterError
from inlink.frontier.settings import NO_LIMIT, Politeness, Settings
from inlink.protocol import AnyLink
from inlink.store.inbox import seeds_in

__all__ = ["crawl_settings", "seeds_of", "spider_settings"]

PREFIX = "INLINK_"

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
    rows = rows_of(SpiderSettings)
    # A delay that the user has set must not end the crawl after one page.
    wait = max(rows["max_wait"].default, 2 * crawl.politeness.delay)
    found: dict[str, Any] = {"max_wait": wait if crawl.revisit is None else None}
    for name, row in rows.items():
        place = PREFIX + name.upper()
        if place in settings:
            value = settings[place]
            found[name] = from_text(row, value, place) if isinstance(value, str) else check(row, value, place)
    return SpiderSettings(**found)


def crawl_settings(settings: BaseSettings) -> tuple[str, dict[str, Any]]:
    """Return the crawl's folder, and those of its settings that the project sets.

    Raises
    ------
    inlink.errors.ParameterError
        If no crawl is named, or a setting is unknown or outside its range.
    """
    rows = rows_of(Settings)
    given = {name.removeprefix(PREFIX): settings[name] for name in settings if name.startswith(PREFIX)}
    for name in given:
        if name.lower() not in rows and name.lower() not in rows_of(SpiderSettings):
            raise ParameterError(f"{PREFIX}{name} is no setting of inlink's: docs/scrapy.md lists them")
    found = crawl_arguments({name: settings[name] for name in settings})
    folder = found.pop("folder", None)
    where = str(given.get("CRAWL") or folder or "")
    if not where:
        raise ParameterError(
            'INLINK_CRAWL is not set: name a folder for the crawl, as INLINK_CRAWL = "mycrawl"'
        )
    found = _of_scrapy(settings, not is_there(Path(where))) | found
    for name, value in given.items():
        row = rows.get(name.lower())
        if row is None or (value is None and row.none is None):
            # None counts as not set, unless the setting gives None a meaning.
            continue
        lay_over(found, row.name, checked(row.name, value, PREFIX + name, texts=True))
    return where, found


def _of_scrapy(settings: BaseSettings, new: bool) -> dict[str, Any]:
    """Translate Scrapy's own settings: all of them in a new crawl, else those that the project sets.

    Scrapy's downloader applies them itself. Twice as many leases as requests keep it busy while answers are recorded.
    """
    polite, rows = {}, rows_of(Politeness)
    found: dict[str, Any] = {"retry_seconds": RETRY_SECONDS} if new else {}
    if _is_set(settings, "DOWNLOAD_DELAY", new):
        polite["delay"] = check(rows["delay"], settings.getfloat("DOWNLOAD_DELAY"), "DOWNLOAD_DELAY")
    if _is_set(settings, "CONCURRENT_REQUESTS_PER_DOMAIN", new):
        polite["in_flight"] = min(2 * max(settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"), 1), NO_LIMIT)
    if _is_set(settings, "RETRY_TIMES", new):
        found["max_retries"] = checked("max_retries", settings.getint("RETRY_TIMES"), "RETRY_TIMES")
    return found | ({"politeness": polite} if polite else {})


def _is_set(settings: BaseSettings, name: str, new: bool) -> bool:
    priority = settings.getpriority(name)
    return new or (priority is not None and priority > SETTINGS_PRIORITIES["default"])


def seeds_of(path: str | None) -> list[AnyLink]:
    """Return the URLs in the file that ``INLINK_SEEDS`` names: one a line, optionally followed by a tab and a score.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read, or a score is not a number.
    """
    if path is None:
        return []
    try:
        text = Path(path).read_text("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise InputError(f"INLINK_SEEDS: {path}: {error.strerror}") from None
    return list(seeds_in(text, path))

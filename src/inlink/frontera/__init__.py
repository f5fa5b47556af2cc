"""inlink as a backend of Frontera 0.7.2, for projects that used Aduana, and two middlewares for current Scrapy.

In Scrapy's settings::

    SCHEDULER = "frontera.contrib.scrapy.schedulers.frontier.FronteraScheduler"
    SPIDER_MIDDLEWARES = {"inlink.frontera.SchedulerSpiderMiddleware": 999}
    DOWNLOADER_MIDDLEWARES = {"inlink.frontera.SchedulerDownloaderMiddleware": 999}
    BACKEND = "inlink.frontera.Backend"

Aduana's own settings need no change. ``docs/migration.md`` lists them all.
"""

from inlink.errors import MissingExtraError

try:
    from inlink.frontera.backend import Backend
    from inlink.frontera.middlewares import SchedulerDownloaderMiddleware, SchedulerSpiderMiddleware
except ModuleNotFoundError as _error:
    if _error.name not in ("frontera", "scrapy"):
        raise
    raise MissingExtraError(f"{_error.name} is not installed: pip install 'inlink[frontera]'") from None

__all__ = ["Backend", "SchedulerDownloaderMiddleware", "SchedulerSpiderMiddleware"]

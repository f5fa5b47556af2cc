"""Scrapy's door: two settings make a Scrapy project fetch the most important pages first.

SCHEDULER = "inlink.scrapy.Scheduler"
INLINK_CRAWL = "mycrawl"

"""

from inlink.base.importing import quick_imports
from inlink.errors import MissingExtraError

try:
    import scrapy as _scrapy
except ImportError:
    raise MissingExtraError("Scrapy is not installed: pip install 'inlink[scrapy]'") from None

with quick_imports():
    from inlink.scrapy.scheduler import Links, Scheduler
    from inlink.scrapy.visits import reading

__all__ = ["Links", "Scheduler", "reading"]
del _scrapy

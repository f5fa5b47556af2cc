"""One spider of the benchmark of several spiders, in a separate process."""

from scrapy.crawler import AsyncCrawlerProcess

from bench.fleets import base
from bench.spiders.run import SETTINGS

__all__ = ["work"]


def work(name: str, number: int, port: int) -> None:
    """Crawl until the crawl ends, or for ever."""
    peer = base.peer(name)
    process = AsyncCrawlerProcess(SETTINGS | {"ROBOTSTXT_OBEY": False} | peer.settings(port, number))
    process.crawl(peer.spider())
    process.start()

"""One run of the benchmark of Scrapy's door, in a separate process, and the spiders.

All spiders find links with the same ``LinkExtractor``. Only ``manual`` does anything else with a page:

    plain      yields a Request for each link, as most spiders do
    carried    the same, with a callback and meta
    rules      a CrawlSpider with one rule
    links      yields one inlink.scrapy.Links
    manual     a CrawlSpider with one rule, whose callback yields an item for a pipeline
"""

import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.exceptions import DropItem
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from bench import results
from bench.spiders import base

__all__ = ["SETTINGS", "SPIDERS", "work"]

SETTINGS = {
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "DOWNLOAD_DELAY": 0,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "WARNING",
}

# Scrapy's counts of requests that stay in memory, and are lost with it.
NOT_KEPT = (
    "inlink/not_kept",
    "scheduler/unserializable",
)


class Plain(Spider):
    """Yields a request for each link."""

    name = "plain"
    extractor = LinkExtractor()

    def parse(self, response: Any, **_: Any) -> Iterator[Any]:
        for link in self.extractor.extract_links(response):
            yield Request(link.url)


class Carried(Plain):
    """Yields requests that carry a callback and what is known of the page that they were found on."""

    name = "carried"

    def parse(self, response: Any, **_: Any) -> Iterator[Any]:
        for link in self.extractor.extract_links(response):
            yield Request(link.url, self.parse_page, meta={"anchor": link.text, "section": "start"})

    def parse_page(self, response: Any) -> Iterator[Any]:
        section = response.url.split("/", 4)[3]
        for link in self.extractor.extract_links(response):
            yield Request(link.url, self.parse_page, meta={"anchor": link.text, "section": section})


class Rules(CrawlSpider):
    """Follows all links by a rule."""

    name = "rules"
    rules = (Rule(LinkExtractor(), callback="parse_page", follow=True),)

    def parse_page(self, response: Any) -> Iterator[Any]:
        yield from ()


class Batched(Plain):
    """Yields links without requests."""

    name = "links"

    def parse(self, response: Any, **_: Any) -> Iterator[Any]:
        from inlink.scrapy import Links

        yield Links(link.url for link in self.extractor.extract_links(response))


class Clean:
    """A pipeline that collapses white space, and drops pages without a title."""

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        if not item["title"]:
            raise DropItem("no title")
        return item | {
            name: [" ".join(text.split()) for text in item[name]] for name in ("headings", "samples")
        }


class ManualSpider(Rules):
    """Follows all links by a rule, and takes title, headings and code samples of each page."""

    name = "manual"
    allowed_domains: ClassVar[list[str]] = ["127.0.0.1"]
    custom_settings: ClassVar[dict[str, Any]] = {"ITEM_PIPELINES": {Clean: 300}}  # type: ignore[misc]

    def parse_page(self, response: Any) -> Iterator[Any]:
        yield {
            "url": response.url,
            "title": response.css("title::text").get(),
            "headings": response.css("h1, h2, h3").xpath("normalize-space()").getall(),
            "samples": response.css("pre::text").getall(),
        }


SPIDERS: dict[str, type[Spider]] = {one.name: one for one in (Plain, Carried, Rules, Batched, ManualSpider)}


class _Clock:
    """Notes when a spider begins and ends, and what the process has used until then."""

    def __init__(self, crawler: Any) -> None:
        crawler.signals.connect(self.begin, signals.spider_opened)
        crawler.signals.connect(self.end, signals.spider_closed)
        self.figures: dict[str, Any] = {}

    def begin(self) -> None:
        self._cpu = time.process_time()
        self.figures["memory at the start"] = results.memory("VmRSS")

    def end(self, reason: str) -> None:
        self.figures |= {
            "closed": time.monotonic(),
            "cpu": time.process_time() - self._cpu,
            "reason": reason,
            "memory": results.memory("VmRSS"),
            "peak": results.memory("VmHWM"),
        }


def work(name: str, spider: str, robots: str, url: str, pages: int, folder: Path) -> None:
    """Crawl so many pages, and write the figures as a line of JSON."""
    settings = SETTINGS | {"ROBOTSTXT_OBEY": robots == "robots", "CLOSESPIDER_PAGECOUNT": pages}
    process = AsyncCrawlerProcess(settings | base.peer(name).settings(folder))
    crawler = process.create_crawler(SPIDERS[spider])
    clock = _Clock(crawler)
    process.crawl(crawler, start_urls=[url])
    process.start()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    lost = sum(crawler.stats.get_value(name, 0) for name in NOT_KEPT) if crawler.stats else 0
    figures = clock.figures | {"ranking": children.ru_utime + children.ru_stime, "not kept": lost}
    figures |= {
        "whole cpu": time.process_time(),
        "items": crawler.stats.get_value("item_scraped_count", 0) if crawler.stats else 0,
    }
    sys.stdout.write(json.dumps(figures) + "\n")

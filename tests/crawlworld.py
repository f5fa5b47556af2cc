"""One crawl at a time, for tests that meet it as its users do."""

from crawlstrategies import Clock, opened
from inlink.crawl.crawl import Crawl
from inlink.protocol import Tasks

__all__ = ["A", "B", "C", "World", "hello", "urls"]

A, B, C = "http://a.com/", "http://b.com/", "http://c.org/"


def hello(crawl, owner="spider", **more):
    """Begin a session, and return its number."""
    return crawl.desk.hello(owner, silent_after=60.0, **more).number


def urls(tasks: Tasks) -> list[str]:
    """Return the URLs of tasks."""
    return [task.url for task in tasks.tasks]


class World:
    """One crawl at a time, reopened at will."""

    def __init__(self, folder):
        self.folder, self.clock = folder, Clock()
        self.crawl: Crawl | None = None

    def open(self, **settings):
        self.close()
        self.settings = settings
        self.crawl = opened(self.folder, self.clock, **{"policy": "first-come", **settings})
        return self.crawl

    def again(self):
        return self.open(**self.settings)

    def close(self):
        if self.crawl is not None:
            self.crawl.close()
            self.crawl = None

    def urls(self, count=100):
        return [lease.url for lease in self.crawl.next(count)]

    def lose(self, seconds):
        """Let leases of so many seconds be lost, and the lost pages become due."""
        self.clock.now += seconds
        self.crawl.next(0)
        self.clock.now += 60

    def state(self, url):
        return self.crawl.page(url).state

"""Every public call of a crawl, its desk and its view, and what each says when it is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import inlink
from crawlstrategies import EAGER
from inlink.crawl.crawl import Crawl
from inlink.errors import InlinkError
from inlink.protocol import Crawled

A, B = "http://a.com/", "http://b.com/"

CALLS: dict[str, Callable[[Crawl], Any]] = {
    "seed": lambda crawl: crawl.seed([A]),
    "sitemap": lambda crawl: crawl.sitemap([(A, None, None)]),
    "crawled": lambda crawl: crawl.crawled(A),
    "failed": lambda crawl: crawl.failed(A),
    "exclude": lambda crawl: crawl.exclude(A),
    "redirected": lambda crawl: crawl.redirected(1, B),
    "release": lambda crawl: crawl.release(A),
    "release_all": lambda crawl: crawl.release_all(),
    "reload": lambda crawl: crawl.reload(),
    "host_delay": lambda crawl: crawl.host_delay(A, 1.0),
    "set_host": lambda crawl: crawl.set_host("a.com", delay=1.0),
    "change_settings": lambda crawl: crawl.change_settings(max_retries=9),
    "exclude_host": lambda crawl: crawl.exclude_host("a.com"),
    "set_due": lambda crawl: crawl.set_due(A, 5.0),
    "activity": lambda crawl: crawl.activity(),
    "pause": lambda crawl: crawl.pause(),
    "resume": lambda crawl: crawl.resume(),
    "next": lambda crawl: crawl.next(),
    "due_in": lambda crawl: crawl.due_in(),
    "page": lambda crawl: crawl.page(A),
    "why": lambda crawl: crawl.why(A),
    "standing": lambda crawl: crawl.standing(),
    "rerank": lambda crawl: crawl.rerank(),
    "wait": lambda crawl: crawl.wait(),
    "desk.hello": lambda crawl: crawl.desk.hello("one"),
    "desk.renew": lambda crawl: crawl.desk.renew(1),
    "desk.bye": lambda crawl: crawl.desk.bye(1),
    "desk.next": lambda crawl: crawl.desk.next(1, 1),
    "desk.report": lambda crawl: crawl.desk.report(1, [Crawled(1)]),
    "desk.lease_on": lambda crawl: crawl.desk.lease_on(1, A),
    "desk.reporting": lambda crawl: list(crawl.desk.reporting(1, [Crawled(1)])),
    "view.number": lambda crawl: crawl.view.number(A),
    "view.page": lambda crawl: crawl.view.page(A),
    "view.why": lambda crawl: crawl.view.why(A),
    "view.path": lambda crawl: crawl.view.path(A),
    "view.links": lambda crawl: crawl.view.links(A),
    "view.find": lambda crawl: crawl.view.find("a"),
    "view.top": lambda crawl: crawl.view.top(),
    "view.dump": lambda crawl: crawl.view.dump(),
    "view.errors": lambda crawl: crawl.view.errors(),
    "view.order": lambda crawl: crawl.view.order(),
    "view.hosts": lambda crawl: crawl.view.hosts(),
    "view.standing": lambda crawl: crawl.view.standing(),
    "view.harvest": lambda crawl: crawl.view.harvest(),
    "view.info": lambda crawl: crawl.view.info(),
    "view.about": lambda crawl: crawl.view.about(),
}
"""Every public method of a crawl, its desk and its view that looks at it or changes it."""


def refusals(crawl: Crawl) -> set[tuple[str, str]]:
    """The type and message of each method's error; fails if a method works."""
    said = set()
    for name, call in CALLS.items():
        try:
            call(crawl)
        except InlinkError as error:
            said.add((type(error).__name__, str(error)))
        else:
            raise AssertionError(f"{name} was not refused")
    assert not any("\n" in message for _, message in said)
    return said


def clocked(folder: Path, **settings: Any) -> Crawl:
    return Crawl(folder, clock=inlink.VirtualClock(), politeness=EAGER, **settings)

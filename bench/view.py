"""``python -m bench view``: CPU time of each `CrawlView` call on a large crawl.

A generated crawl (:mod:`bench.crawlweb`) is taken in and ranked. Then each call of :class:`inlink.CrawlView` is
made many times, mostly for another page each time, and its CPU time is measured. If a whole result comes in parts,
their number is counted.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench import cli, results
from bench.crawlweb import Web

__all__ = ["main", "measure", "take", "view_table"]

KNOWN = 10_000_000
CALLS = 100
PIECE = 300
WARM_UP = 3


def take(crawl: Any, web: Web, known: int) -> None:
    """Take pages in until so many URLs are known, and rank them."""
    crawl.seed(web.seeds())
    pages = web.pages_for(known)
    for first in range(0, pages, PIECE):
        text = web.text(first, min(PIECE, pages - first)).decode()
        for block in text.split("\n\n"):
            if block:
                page, *links = block.split()
                crawl.crawled(page, links, links_are_canonical=True)
    crawl.rerank(wait=True)


def calls(view: Any, web: Web, known: int) -> Iterator[tuple[str, Callable[[int], Any]]]:
    """Calls to measure, by name; each takes the number of its repetition."""
    hosts, crawled = view.hosts(1).known, view.info().crawled
    random = np.random.default_rng(1).integers(0, known, 10_000).tolist()
    waiting = [row.page for row in view.order(100).rows]
    best = [row.page for row in parts(lambda cursor: view.top(None, 1000, cursor))[-1].rows]
    yield "page", lambda k: view.page(web.url(random[k]))
    yield "why, any page", lambda k: view.why(random[k])
    yield "why, one of the next 100", lambda k: view.why(waiting[k % len(waiting)])
    yield "why, one of the best 1,000", lambda k: view.why(best[k])
    yield "order of 50", lambda k: view.order(50)
    yield "order of 100", lambda k: view.order(100)
    yield "standing", lambda k: view.standing()
    yield "harvest", lambda k: view.harvest()
    yield "info", lambda k: view.info()
    yield "hosts, 100", lambda k: view.hosts(100, str(k * 100 % hosts))
    yield "path", lambda k: view.path(random[k])
    yield "links from a page", lambda k: view.links(random[k], "from")
    yield "links to any page", lambda k: view.links(random[k], "to")
    yield "links to one of the best 1,000", lambda k: view.links(best[k], "to")
    yield "find a regular expression", lambda k: view.find(f"camera.*{k}[.]html$")
    yield "find a text", lambda k: view.find(f"garden-{k}", "text")
    yield "top 100", lambda k: view.top(None, 100)
    yield "dump pages", lambda k: view.dump("pages", str(random[k]))
    yield "dump links", lambda k: view.dump("links", str(random[k] * (crawled - 1) // known))


def whole(view: Any, web: Web, known: int) -> Iterator[tuple[str, Callable[[str | None], Any]]]:
    """Calls whose results come in parts, by the same names."""
    page = np.random.default_rng(2).integers(0, known // 20, 1).tolist()[0]
    yield "links to any page", lambda cursor: view.links(page, "to", 1000, cursor)
    yield "find a regular expression", lambda cursor: view.find("camera.*123456[.]html$", cursor=cursor)
    yield "find a text", lambda cursor: view.find("garden-123456", "text", cursor=cursor)


def parts(call: Callable[[str | None], Any]) -> list[Any]:
    """All parts of a result."""
    found = [call(None)]
    while found[-1].cursor is not None:
        found.append(call(found[-1].cursor))
    return found


def measure(view: Any, web: Web, known: int, count: int) -> dict[str, Any]:
    """CPU milliseconds of each call, and the number of parts of a whole result."""
    rows: dict[str, Any] = {}
    for name, call in calls(view, web, known):
        for k in range(count, count + WARM_UP):
            call(k)
        times = []
        for k in range(count):
            began = time.thread_time()
            call(k)
            times.append((time.thread_time() - began) * 1e3)
        rows[name] = {"p50": statistics.median(times), "max": max(times)}
        cli.note(f"{name}: {rows[name]['p50']:.2f} ms, at most {rows[name]['max']:.2f}")
    for name, call_on in whole(view, web, known):
        rows[name]["parts"] = len(parts(call_on))
    return rows


def view_table(figures: dict[str, Any]) -> str:
    """The figures as a Markdown table."""
    on, load = figures["machine"], figures["load"]
    lines = [
        f"{on['processor']}, Python {on['python']}; load average {min(load):.1f}-{max(load):.1f}. "
        f"{figures['known']:,} URLs known, {figures['crawled']:,} pages crawled, {figures['calls']} calls each; "
        "CPU milliseconds.",
        "",
        "| call | median, CPU ms | longest, CPU ms | parts of a whole result |",
        "|---|---:|---:|---:|",
    ]
    for name, row in figures["rows"].items():
        lines.append(f"| {name} | {row['p50']:.2f} | {row['max']:.2f} | {row.get('parts', '')} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench view``."""
    import inlink

    parser = cli.parser("view", __doc__)
    parser.add_argument("--known", type=int, default=KNOWN, help="how many URLs are known")
    parser.add_argument("--calls", type=int, default=CALLS, help="how often each call is made")
    options = parser.parse_args(arguments)
    web, load = Web(), [os.getloadavg()[0]]
    with (
        tempfile.TemporaryDirectory(dir=options.data) as folder,
        inlink.Crawl(Path(folder) / "crawl", rerank_share=None) as crawl,
    ):
        take(crawl, web, options.known)
        load.append(os.getloadavg()[0])
        standing = crawl.standing()
        rows = measure(crawl.view, web, standing.known, options.calls)
        load.append(os.getloadavg()[0])
    figures = {
        "known": standing.known,
        "crawled": standing.crawled,
        "calls": options.calls,
        "load": load,
        "machine": results.machine(),
        "rows": rows,
    }
    results.keep(options.results, f"view-{options.known}", figures)
    print(view_table(figures))

"""``python -m bench shards``: a crawl in several shards beside the same crawl in one, on a generated web.

All shards run in one process, in virtual time, and exchange pages and ranks after each second. In each second all of
them together fetch as many pages as the single crawl does, and one report to each has the answers. CPU times are those
of crawls without rankings, whose shards exchange pages after 25 seconds, which are 2,000 pages by default.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bench import markdown
from inlink.base.arrays import Float64Array, UInt32Array
from inlink.base.clock import VirtualClock
from inlink.crawl.crawl import Crawl
from inlink.graph.graph import Graph
from inlink.protocol import Crawled, Discovered
from inlink.rank.pagerank import pagerank
from inlink.urls.shards import owner_of

__all__ = ["main"]

MARKS = (0.05, 0.1, 0.2, 0.3)


class Web(NamedTuple):
    """Pages 0 … n − 1 in hosts of equal size, with twelve links each, and their PageRank."""

    urls: list[str]
    links: UInt32Array
    ranks: Float64Array


class Run(NamedTuple):
    """Fetched pages, CPU seconds of the crawl's calls and of the exchange, and bytes of the logs."""

    fetched: list[int]
    crawling: float
    exchanging: float
    size: int


def generated(pages: int, of_host: int, crossing: float, seed: int) -> Web:
    """Make a web in which a share of the links leads to other hosts. Pages with small numbers are popular."""
    random = np.random.default_rng(seed)
    number = np.arange(pages)[:, None]
    own = number // of_host * of_host + random.zipf(1.3, (pages, 12)) % of_host
    other = (random.zipf(1.3, (pages, 12)) * of_host * 7 + random.zipf(1.5, (pages, 12))) % pages
    uniform = random.integers(pages, size=(pages, 12))
    away = np.where(random.random((pages, 12)) < 0.5, other, uniform)
    links = np.where(random.random((pages, 12)) < crossing, away, own).astype(np.uint32)
    arcs = np.stack([np.repeat(number.ravel(), 12), links.ravel()], axis=1)
    graph = Graph.from_arcs(arcs, num_nodes=pages)
    urls = [f"http://h{page // of_host}.example/some/path/{page}.html" for page in range(pages)]
    return Web(urls, links, pagerank(graph).values)


def crawl(
    web: Web, seeds: list[int], count: int, at_once: int, budget: int, *, share: float | None, every: int
) -> Run:
    """Crawl a web in ``count`` shards, each with its part of the pages in flight; exchange pages ``every`` seconds."""
    folder, clock = Path(tempfile.mkdtemp(prefix="inlink-bench-")), VirtualClock()
    settings: dict[str, Any] = {"politeness": {"delay": 0, "in_flight": 1 << 20}, "rerank_share": share}
    crawls = {
        number: Crawl(
            folder / str(number),
            clock=clock,
            rules={"shard": f"{number}/{count}"} if count > 1 else None,
            **settings,
        )
        for number in range(1, count + 1)
    }
    sessions = {number: each.desk.hello("spider").number for number, each in crawls.items()}
    page_of = {url: page for page, url in enumerate(web.urls)}
    fetched, crawling, exchanging, last = list[int](), 0.0, 0.0, dict[tuple[int, int], int]()
    second = 0
    try:
        for number, each in crawls.items():
            each.seed([web.urls[page] for page in seeds if count == 1 or _owner(web, page, count) == number])
        while len(fetched) < budget:
            begun = len(fetched)
            for number, each in crawls.items():
                tasks, seconds = _timed(each.desk.next, sessions[number], at_once // count, second + 1)
                crawling += seconds
                pages = [page_of[task.url] for task in tasks.tasks]
                answers = [
                    Crawled(task.lease, [web.urls[link] for link in web.links[page].tolist()])
                    for task, page in zip(tasks.tasks, pages, strict=True)
                ]
                if answers:
                    crawling += _timed(each.desk.report, sessions[number], answers, second + 1)[1]
                fetched += pages
            clock.advance(1)
            second += 1
            if second % every and len(fetched) > begun:
                continue
            # Only synced pages are shown.
            for each in crawls.values() if count > 1 else ():
                each._journal.log.sync()
            came, seconds = _timed(_exchange, crawls, last)
            exchanging += seconds
            if len(fetched) == begun and not came:
                break
        size = sum(path.stat().st_size for path in folder.glob("*/events.log"))
    finally:
        for each in crawls.values():
            each.close()
        shutil.rmtree(folder)
    return Run(fetched[:budget], crawling, exchanging, size)


def _owner(web: Web, page: int, count: int) -> int:
    return owner_of(web.urls[page].split("/")[2], count)


def _timed(call: Any, *arguments: Any) -> tuple[Any, float]:
    begun = time.process_time()
    return call(*arguments), time.process_time() - begun


def _exchange(crawls: dict[int, Crawl], last: dict[tuple[int, int], int]) -> int:
    """Let each shard take in all pages of each other one, through JSON; return the number of new pages."""
    new, count = 0, len(crawls)
    for by, asking in crawls.items():
        for to, asked in crawls.items():
            more = by != to
            while more:
                begin = asking.exchange.end(to)
                shown = asked.exchange.discovered(by, count, begin, last.get((by, to), 0))
                batch = msgspec.json.decode(msgspec.json.encode(shown), type=Discovered)
                new += asking.exchange.receive(begin, batch)
                last[by, to], more = batch.round, bool(batch.pages)
    return new


def _harvest(web: Web, run: Run) -> list[float]:
    total = np.cumsum(web.ranks[run.fetched])
    return [float(total[min(int(mark * len(web.urls)), len(total)) - 1]) for mark in MARKS]


def main(arguments: list[str]) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench shards", description=__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--of-host", type=int, default=100, help="pages of a host")
    parser.add_argument("--crossing", type=float, default=0.3, help="share of links to other hosts")
    parser.add_argument("--shards", type=int, nargs="+", default=[4, 10])
    parser.add_argument("--at-once", type=int, default=80, help="pages in flight, in all shards together")
    parser.add_argument("--sets", type=int, default=3, help="webs, each with ten seeds of its own")
    options = parser.parse_args(arguments)
    budget = int(MARKS[-1] * options.pages)
    print(markdown.line("shards", *(f"harvest at {mark:.0%}" for mark in MARKS), "CPU of a page", "log"))
    print(markdown.line("---", *["---:"] * (len(MARKS) + 2)))
    rows: dict[int, list[list[float]]] = {count: [] for count in (1, *options.shards)}
    for number in range(options.sets):
        web = generated(options.pages, options.of_host, options.crossing, number)
        seeds = np.random.default_rng(number).choice(options.pages, 10, replace=False).tolist()
        for count, found in rows.items():
            ranked = crawl(web, seeds, count, options.at_once, budget, share=0.1, every=1)
            plain = crawl(web, seeds, count, options.at_once, budget, share=None, every=25)
            cost = (plain.crawling + plain.exchanging) / len(plain.fetched) * 1e6
            found.append([*_harvest(web, ranked), cost, ranked.size / len(ranked.fetched)])
    for count, found in rows.items():
        *harvest, cost, size = (statistics.fmean(column) for column in zip(*found, strict=True))
        ratio = statistics.median(mine[-2] / theirs[-2] for mine, theirs in zip(found, rows[1], strict=True))
        cells = [f"{value:.3f}" for value in harvest]
        print(markdown.line(str(count), *cells, f"{cost:.0f} µs ({ratio:.2f})", f"{size:,.0f} B"), flush=True)

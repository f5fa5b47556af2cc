"""``python -m bench pauses``: the longest calls of `next` and `crawled` in a large crawl that is ranked all the time.

A generated crawl (:mod:`bench.crawlweb`) is taken in. Then a hundred URLs at a time are asked for and answered, while
the ranking process makes one ranking after the other. It does the same in a crawl that has most of its waiting pages
on one host. The CPU time of each call is measured, because the machine may be busy. Collections of Python's garbage
are a part of it, without the objects of the benchmark.
"""

import gc
import heapq
import os
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import cli, results
from bench.crawlweb import Web
from bench.view import take
from inlink import Crawl, Politeness

__all__ = ["Calls", "main", "pauses_table"]

KNOWN = 10_000_000
ON_ONE_HOST = 2_000_000
ROUNDS, AT_A_TIME = 1000, 100
LONGEST = 10
STEP = 0.5
"""Seconds of the crawl's clock between two rounds."""


class Calls:
    """CPU and wall milliseconds of each call by name, and what else happened during the longest."""

    def __init__(self) -> None:
        # Arrays and not lists of tuples: Python's garbage collector would go through these.
        self.cpu: dict[str, array[float]] = {}
        self.wall_max: dict[str, float] = {}
        self.longest: dict[str, list[tuple[float, float, str]]] = {}
        self._collected, self._began = "", 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, said: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
        elif said["generation"] == 2:
            took = time.thread_time() - self._began
            self._collected = f"a garbage collection of {took * 1e3:.2f} ms"

    def close(self) -> None:
        """Stop counting collections."""
        gc.callbacks.remove(self._note)

    def time(self, name: str, crawl: Crawl, call: Callable[[], Any]) -> Any:
        """Make one call and measure it."""
        self._collected, adopted = "", crawl._frontier.adopted
        began, cpu = time.perf_counter(), time.thread_time()
        found = call()
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - began
        said = [self._collected] if self._collected else []
        said += ["a ranking taken over"] * (crawl._frontier.adopted is not adopted)
        self.cpu.setdefault(name, array("d")).append(cpu * 1e3)
        self.wall_max[name] = max(self.wall_max.get(name, 0.0), wall * 1e3)
        longest = self.longest.setdefault(name, [])
        heapq.heappush(longest, (cpu * 1e3, wall * 1e3, ", ".join(said)))
        if len(longest) > LONGEST:
            heapq.heappop(longest)
        return found

    def summary(self) -> dict[str, Any]:
        """Percentiles of CPU milliseconds, and the ten longest calls."""
        found = {}
        for name, cpu in self.cpu.items():
            found[name] = {
                "calls": len(cpu),
                **{f"p{point:g}": float(np.percentile(cpu, point)) for point in (50, 99, 99.9)},
                "max": max(cpu),
                "wall max": self.wall_max[name],
                "longest": sorted(self.longest[name], reverse=True),
            }
        return found


def answered(crawl: Crawl, calls: Calls, links: Iterator[list[str]], rounds: int, ahead: list[float]) -> int:
    """Ask for pages and answer them, and ask for a ranking as soon as the last is in use; return the rankings."""
    rankings = 0
    for _ in range(rounds):
        ahead[0] += STEP
        if not crawl.ranking:
            crawl.rerank()
            rankings += 1
        for lease in calls.time("next", crawl, lambda: crawl.next(AT_A_TIME)):
            calls.time("crawled", crawl, partial(crawl.crawled, lease, next(links), links_are_canonical=True))
    return rankings


def pages_of(web: Web, first: int) -> Iterator[list[str]]:
    """The links of the generated pages from ``first`` on."""
    while True:
        for block in web.text(first, AT_A_TIME).decode().split("\n\n"):
            if block:
                yield block.split()[1:]
        first += AT_A_TIME


def one_host(crawl: Crawl, count: int) -> None:
    """Make ``count`` pages of one host known, by pages that link to a hundred of them each."""
    crawl.seed(["https://large.example/"])
    for first in range(0, count, AT_A_TIME):
        links = [f"https://large.example/pages/{number}" for number in range(first, first + AT_A_TIME)]
        maker = f"https://large.example/pages/{first // AT_A_TIME}" if first else "https://large.example/"
        crawl.crawled(maker, links, links_are_canonical=True)


def links_within(count: int) -> Iterator[list[str]]:
    """Lists of twenty links to pages of the large host, some more often than others."""
    random = np.random.default_rng(1)
    while True:
        numbers = (count * random.random((1000, 20)) ** 3).astype(int).tolist()
        yield from ([f"https://large.example/pages/{number}" for number in row] for row in numbers)


@contextmanager
def opened(folder: Path, politeness: Politeness) -> Iterator[tuple[Crawl, list[float]]]:
    """Open a new crawl. Yields it and a list of one number: the lead of its clock in seconds."""
    ahead = [0.0]
    with Crawl(
        folder, politeness=politeness, rerank_share=None, clock=lambda: time.time() + ahead[0]
    ) as crawl:
        yield crawl, ahead


def measured(
    crawl: Crawl, links: Iterator[list[str]], rounds: int, ahead: list[float], freeze: bool
) -> dict[str, Any]:
    """Measure a crawl's calls."""
    if freeze:
        gc.freeze()
    calls = Calls()
    rankings = answered(crawl, calls, links, rounds, ahead)
    calls.close()
    return {"rankings": rankings, "calls": calls.summary()}


def pauses_table(crawls: dict[str, Any]) -> str:
    """The figures as a Markdown table."""
    on, load = crawls["machine"], crawls["load"]
    lines = [
        f"{on['processor']}, Python {on['python']}; load average {min(load):.1f}-{max(load):.1f}. CPU milliseconds of "
        f"`next({AT_A_TIME})` and of `crawled`.",
        "",
        "| crawl | call | calls | p50 | p99 | p99.9 | longest |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for crawl, rows in crawls["crawls"].items():
        for name, row in rows["calls"].items():
            lines.append(
                f"| {crawl}, {rows['rankings']} rankings | `{name}` | {row['calls']:,} | {row['p50']:.2f} | "
                f"{row['p99']:.2f} | {row['p99.9']:.2f} | {row['max']:.2f} |"
            )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench pauses``."""
    parser = cli.parser("pauses", __doc__)
    parser.add_argument("--known", type=int, default=KNOWN, help="how many URLs are known")
    parser.add_argument(
        "--on-one-host", type=int, default=ON_ONE_HOST, help="how many pages the large host has"
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="how often 100 URLs are asked for and answered"
    )
    parser.add_argument("--freeze", action="store_true", help="call gc.freeze() when the crawl is open")
    options = parser.parse_args(arguments)
    data, web, load = options.data, Web(), [os.getloadavg()[0]]
    data.mkdir(parents=True, exist_ok=True)
    crawls: dict[str, Any] = {}
    # The generator's objects, most of them Numba's, do not belong to a crawl. Garbage collections leave them out.
    web.text(0, 1)
    gc.freeze()
    known, large = f"{options.known:,} URLs", f"{options.on_one_host:,} pages of one host"
    with tempfile.TemporaryDirectory(dir=data) as folder:
        if options.known:
            with opened(Path(folder) / "web", Politeness()) as (crawl, ahead):
                take(crawl, web, options.known)
                links = pages_of(web, web.pages_for(options.known))
                crawls[known] = measured(crawl, links, options.rounds, ahead, options.freeze)
        if options.on_one_host:
            with opened(Path(folder) / "host", Politeness(delay=0.0, in_flight=1 << 20)) as (crawl, ahead):
                one_host(crawl, options.on_one_host)
                links = links_within(options.on_one_host)
                crawls[large] = measured(crawl, links, options.rounds, ahead, options.freeze)
    load.append(os.getloadavg()[0])
    for name, found in crawls.items():
        for call, row in found["calls"].items():
            for cpu, wall, said in row["longest"]:
                print(f"{name}: {call} {cpu:.2f} ms, {wall:.2f} by the clock; {said}", file=sys.stderr)
    figures = {"load": load, "machine": results.machine(), "crawls": crawls}
    results.keep(options.results, f"pauses-{options.known}", figures)
    print(pauses_table(figures))

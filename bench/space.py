"""``python -m bench space``: the memory that a crawl keeps for each known URL, by column.

A generated crawl (:mod:`bench.crawlweb`) is taken in until so many URLs are known. Then it is closed, and opened from
its checkpoint. The system tells for each page of memory whether it is the process's own (anonymous) or a page of a
mapped file, which can be dropped (``/proc/self/pagemap`` of Linux).
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import inlink
from bench import cli, markdown, results
from bench.crawlweb import Web
from inlink.base.arrays import AnyArray
from inlink.base.columns import PAGE_SIZE

__all__ = ["main", "resident", "space_table"]

SEEDS, PIECE = 1024, 300
PAGEMAP = Path("/proc/self/pagemap")
PRESENT, FILE, EXCLUSIVE = (np.uint64(1 << bit) for bit in (63, 61, 56))
"""Bits of an entry of pagemap: see Documentation/admin-guide/mm/pagemap.rst of Linux.

The page of zeros, which stands for all memory that was only read, is not mapped exclusively.
"""
GROUPS = {
    "slots of the table": ["slots", "sizes", "counts"],
    "checks of the table": ["checks"],
    "places of URLs": ["marks"],
    "hosts of pages": ["hosts"],
    "names of hosts, and their table": ["host_text", "host_ends", "host_slots"],
    "states, failures, losses": ["states", "errors", "losses"],
    "depths": ["depths"],
    "scores, carried data": ["scores", "carriers"],
    "rows of answered pages": ["answers"],
    "rows: page, visit, failure": ["answered", "visits", "failures"],
    "events that made pages known": ["makers", "maker_places"],
    "trap codes": ["traps"],
    "keys of waiting pages": ["keys"],
    "lists of hosts' pages": ["previous"],
    "trees of the best pages": ["firsts", "nodes"],
    "states of hosts, and their heaps": ["rows", "ready", "later", "warm", "domain_budgets", "slot_of"],
    "the policy's shares": ["shares"],
}


def resident(array: AnyArray) -> tuple[int, int]:
    """Bytes of an array that are in memory: anonymous, and of mapped files."""
    own = mapped = 0
    at, end = array.ctypes.data // PAGE_SIZE, -(-(array.ctypes.data + array.nbytes) // PAGE_SIZE)
    with PAGEMAP.open("rb", 0) as pagemap:
        while at < end:
            entries = np.frombuffer(os.pread(pagemap.fileno(), 8 * min(end - at, 1 << 17), 8 * at), np.uint64)
            in_file = (entries & FILE) > 0
            own += int(np.count_nonzero((entries & PRESENT > 0) & ~in_file & (entries & EXCLUSIVE > 0)))
            mapped += int(np.count_nonzero((entries & PRESENT > 0) & in_file))
            at += len(entries)
    return own * PAGE_SIZE, mapped * PAGE_SIZE


def _arrays(crawl: inlink.Crawl) -> dict[str, AnyArray]:
    """All columns of a crawl, by name."""
    front, pages = crawl._frontier, crawl._pages
    queue = front.queue
    owners: list[dict[str, Any]] = [vars(pages), vars(pages.table), vars(front.policy)]
    owners += [
        queue.waiting._asdict() | {"hosts": pages.hosts},
        queue.slots._asdict(),
        {"traps": front.traps},
    ]
    return {name: one for owner in owners for name, one in owner.items() if isinstance(one, np.ndarray)}


def _measured(crawl: inlink.Crawl) -> dict[str, Any]:
    """Bytes a known URL, by group of columns: anonymous, and of mapped files."""
    arrays, known = _arrays(crawl), crawl._pages.num_pages
    found = {}
    for group, names in GROUPS.items():
        sizes = [resident(arrays[name]) for name in names if name in arrays and len(arrays[name])]
        found[group] = [sum(one[kind] for one in sizes) / known for kind in (0, 1)]
    return {
        "known": known,
        "hosts": crawl._pages.tally.hosts,
        "crawled": crawl._pages.tally.crawled,
        "bytes": found,
    }


def _pieces(web: Web, end: int) -> Iterator[tuple[str, list[str]]]:
    for first in range(0, end, PIECE):
        for page in web.text(first, min(PIECE, end - first)).decode().split("\n\n")[:-1]:
            url, *links = page.strip().split("\n")
            yield url, links


def measure(known: int, folder: Path) -> dict[str, Any]:
    """Take in a crawl of so many URLs; return the measurements of it as it runs, and after it was opened again."""
    web = Web(SEEDS)
    with inlink.Crawl(folder, rerank_share=None) as crawl:
        crawl.seed(web.seeds())
        for url, links in _pieces(web, web.pages_for(known)):
            crawl.crawled(url, links)
        figures = {"running": _measured(crawl)}
    with inlink.Crawl(folder, rerank_share=None) as crawl:
        figures["opened"] = _measured(crawl)
    return figures


def space_table(figures: dict[str, Any]) -> str:
    """The table of ``bench space``."""
    running, opened = figures["running"], figures["opened"]
    lines = [
        f"{running['known']:,} known URLs, {running['crawled']:,} crawled pages, {running['hosts']:,} hosts. "
        f"{markdown.machine(figures)}.",
        "",
        markdown.line("bytes a URL", "running: own", "running: of files", "opened: own", "opened: of files"),
        markdown.line("---", *["---:"] * 4),
    ]
    rows = {group: [*running["bytes"][group], *opened["bytes"][group]] for group in GROUPS}
    rows["sum"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines += [markdown.line(group, *(f"{value:.2f}" for value in row)) for group, row in rows.items()]
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench space``."""
    parser = cli.parser("space", __doc__)
    parser.add_argument("--known", type=int, default=10_000_000, help="number of known URLs")
    options = parser.parse_args(arguments)
    work = Path(tempfile.mkdtemp(prefix="space-", dir=options.data))
    load = [os.getloadavg()[0]]
    try:
        figures = measure(options.known, work / "crawl")
    finally:
        shutil.rmtree(work)
    figures |= {"load": [*load, os.getloadavg()[0]], "machine": results.machine()}
    results.keep(options.results, f"space-{options.known}", figures)
    print(space_table(figures))

"""inlink's crawl, through the interface that a spider uses: strings in, strings out.

``crawled`` makes links canonical, finds or makes their pages, writes everything to the log and gives each new link its
priority; ``next`` writes its leases before it answers, and keeps the hosts' delays. Between two batches the crawl's
clock goes on by half a second, or politeness would soon end the benchmark: a crawl of 200 pages a second.
Rankings are made only when asked for, so that they are measured apart. A mode of syncing is changed by closing and
opening again, which is not timed.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

NAME = "inlink"
COMPUTES = (
    "`crawled` and `next` with default settings: canonical URLs, host-diverse order, politeness, leases, "
    "synced every second"
)
LARGEST = 1 << 62
MODES = {
    "plain": ("", 1.0),
    "full": ('`sync="full"`', 0.05),
    "canonical": ("`links_are_canonical=True`", 1.0),
}
NEXT = {"plain": 1.0, "full": 0.05}
# Seconds of the crawl's clock between two batches.
STEP = 0.5


def available() -> str | None:
    return None


def command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "bench", "crawler", "inlink", str(folder)]


def warm_up() -> None:
    """Compile, or load what was compiled, on a small crawl, large enough for tables to grow."""
    with tempfile.TemporaryDirectory() as folder:
        crawl = Crawl(Path(folder))
        crawl.seed([f"https://host{i}.example/" for i in range(200)])
        for mode in MODES:
            crawl.mode(mode)
            for one in crawl.next(10):
                crawl.answer(one)
            for page in range(200):
                links = [f"https://host{i}.example/{mode}/{page}" for i in range(100)]
                crawl.take(f"https://host{page}.example/", links)
        crawl.close()


def lookup(folder: Path, url: str) -> float:
    """Wall seconds of a command that looks up one URL, the start of Python included, in a process of its own."""
    began = time.perf_counter()
    line = [sys.executable, "-m", "inlink", "page", str(folder / "crawl"), url]
    found = subprocess.run(line, capture_output=True, text=True)
    took = time.perf_counter() - began
    if found.returncode or url not in found.stdout:
        raise RuntimeError(f"`inlink page` failed: {(found.stderr or found.stdout)[-200:]}")
    return took


class Crawl:
    """See :class:`bench.crawlers.base.Crawl`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "crawl"
        self._ahead = 0.0
        self._open("plain")

    def _open(self, mode: str) -> None:
        import inlink

        self._mode = mode
        sync: Literal["second", "full"] = "full" if mode == "full" else "second"
        self._crawl = inlink.Crawl(
            self._folder, sync=sync, rerank_share=None, clock=lambda: time.time() + self._ahead
        )
        self._options: dict[str, Any] = {"links_are_canonical": True} if mode == "canonical" else {}

    def seed(self, urls: list[str]) -> None:
        self._crawl.seed(urls)

    def mode(self, name: str) -> None:
        if name != self._mode:
            self.close()
            self._open(name)

    def take(self, url: str, links: list[str]) -> None:
        self._crawl.crawled(url, links=links, **self._options)

    def tick(self) -> None:
        self._ahead += STEP

    def next(self, size: int) -> list[Any]:
        leases: list[Any] = self._crawl.next(size)
        return leases

    def answer(self, one: Any) -> None:
        self._crawl.crawled(one)

    def rerank(self) -> Callable[[], bool]:
        self._crawl.rerank()
        return lambda: self._crawl.ranking

    def close(self) -> None:
        self._crawl.close()
        # Release its memory before another crawl is opened.
        del self._crawl

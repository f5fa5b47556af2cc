"""Shards at scale, in processes: kills, a full disk and a partition of two minutes, checked against the generated web.

Spiders fetch nothing: they know the links of all pages, so the crawl is as fast as its servers.
"""

import multiprocessing
import random
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest

import inlink
from inlink.base.arrays import UInt32Array
from inlink.client.shards import RemoteShards
from inlink.protocol import Crawled
from patience import wait_until
from shards import Proxy, Shards

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform != "linux", reason="limits a running process, and reads /proc"),
]

OF_HOST = 100
"""Pages of a host."""
HELD = 1000
"""Maximum number of tasks that a spider holds."""
AT_ONCE = 200
"""Number of tasks that a spider asks for."""


def generated(pages: int, seed: int) -> UInt32Array:
    """Make 12 links for each page. A third of them lead to other hosts. Page 0 leads to all pages."""
    dice = np.random.default_rng(seed)
    page = np.arange(pages)[:, None]
    own = page // OF_HOST * OF_HOST + dice.zipf(1.3, (pages, 12)) % OF_HOST
    popular = (dice.zipf(1.3, (pages, 12)) * OF_HOST * 7 + dice.zipf(1.5, (pages, 12))) % pages
    away = np.where(dice.random((pages, 12)) < 0.5, popular, dice.integers(pages, size=(pages, 12)))
    links = np.where(dice.random((pages, 12)) < 0.2, away, own) % pages
    links[:, 0], links[:, 1] = page[:, 0] * 2 % pages, (page[:, 0] * 2 + 1) % pages
    return links.astype(np.uint32)


def url_of(page: int) -> str:
    return f"http://h{page // OF_HOST}.example/some/path/{page}.html"


def page_of(url: str) -> int:
    return int(url.rpartition("/")[2].removesuffix(".html"))


def spider(url: str, name: str, folder: Path) -> None:
    """Fetch pages until the crawl has ended, and write their numbers to a file before they are reported."""
    links = np.load(folder / "links.npy", mmap_mode="r")
    with (
        RemoteShards(url.split(","), name, None) as crawl,
        (folder / name).open("ab", buffering=0) as fetched,
    ):
        while True:
            batch = crawl.next(AT_ONCE, 5)
            if not batch.tasks:
                if batch.due_in is None and not batch.out_elsewhere and not batch.paused:
                    return
                time.sleep(min(batch.due_in or 0.5, 0.5))
                continue
            pages = [page_of(task.url) for task in batch.tasks]
            fetched.write(np.array(pages, np.uint32).tobytes())
            crawl.report(
                [
                    Crawled(task.lease, [url_of(link) for link in links[page].tolist()])
                    for task, page in zip(batch.tasks, pages, strict=True)
                ]
            )


class Trial:
    """The spiders of a trial and the pages that they fetched."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._url = folder, url
        self.spiders: dict[str, BaseProcess] = {}

    def start(self, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.spiders[name] = context.Process(target=spider, args=(self._url, name, self._folder))
        self.spiders[name].start()

    def kill(self, name: str) -> None:
        self.spiders[name].kill()
        self.spiders[name].join()

    def fetched(self) -> int:
        """Number of fetches so far."""
        return sum(
            (self._folder / name).stat().st_size // 4
            for name in self.spiders
            if (self._folder / name).exists()
        )

    def pages(self) -> UInt32Array:
        """All fetched pages, each as often as it was fetched."""
        return np.concatenate([np.fromfile(self._folder / name, np.uint32) for name in self.spiders])


@contextmanager
def full_disk(pid: int, folder: Path) -> Iterator[None]:
    """Let no file of a process grow beyond its largest file, as if the disk were full."""
    largest = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def resident(pid: int) -> int:
    """Resident memory of a process in bytes, without mapped files."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("RssAnon")))


@pytest.mark.parametrize(("count", "size"), [(4, 100_000), (10, 40_000)])
def test_a_whole_crawl_loses_no_page_and_no_link(tmp_path, count, size):
    """More than 50 kills, a full disk at one shard, and a partition of two minutes at another."""
    dice, links = random.Random(count), generated(size, count)
    np.save(tmp_path / "links.npy", links)
    kills, turns, begun = 0, 54, time.monotonic()
    with (
        Shards(tmp_path, count, "max_losses=100", "politeness.in_flight=1000") as shards,
        Proxy(shards.ports[1]) as proxy,
    ):
        shards.urls[1] = f"http://127.0.0.1:{proxy.port}/v1/crawls/2"
        trial = Trial(tmp_path, shards.url)
        with RemoteShards(shards.urls) as client:
            client.seed([url_of(0)])
        names = ["one", "two"]
        for name in names:
            trial.start(name)
        for turn in range(turns):
            goal = (turn + 1) * size // (turns + 2)
            wait_until(lambda goal=goal: trial.fetched() >= goal, f"{goal} pages", 0.1)  # type: ignore[misc]
            if turn == 10:
                with full_disk(shards.pid(3), tmp_path / "3"):
                    time.sleep(30)
            if turn == 20:
                proxy.stop()
                time.sleep(120)
                proxy.go_on()
            if turn % 3 == 2:
                name = dice.choice(names)
                trial.kill(name)
                kills += 1
                trial.start(name)
            else:
                k = dice.randint(1, count)
                shards.kill(k)
                time.sleep(dice.choice([0.0, 0.5, 3.0]))
                shards.start(k)
                shards.wait_for(k)
            sizes = [resident(shards.pid(k)) >> 20 for k in range(1, count + 1)]
            print(
                f"{time.monotonic() - begun:.0f} s: {trial.fetched()} fetched, MiB of servers: {sizes}",
                flush=True,
            )
        for each in trial.spiders.values():
            each.join()
        assert [each.exitcode for each in trial.spiders.values()] == [0, 0]
        with RemoteShards(shards.urls) as client:
            wait_until(lambda: client.standing().states == {"crawled": size}, "all pages to be counted", 1)
        sizes = [resident(shards.pid(k)) >> 20 for k in range(1, count + 1)]
        print(f"{time.monotonic() - begun:.0f} s: ended, MiB of servers: {sizes}", flush=True)
    pages = trial.pages()
    times = np.bincount(pages, minlength=size)
    print(f"{len(pages) - size} fetched again, {kills} spiders killed")
    assert times.min() == 1
    assert len(pages) - size <= kills * HELD
    arcs = set()
    for k in range(1, count + 1):
        graph = inlink.read(tmp_path / str(k))
        numbers = np.array([page_of(name) for name in graph.names])
        print(f"shard {k}: {graph}")
        rows = graph.to_scipy().tocoo()
        arcs.update((numbers[rows.row] * size + numbers[rows.col]).tolist())
    expected = np.unique(np.arange(size)[:, None] * size + links.astype(np.int64))
    assert np.array_equal(np.sort(np.fromiter(arcs, np.int64)), expected)

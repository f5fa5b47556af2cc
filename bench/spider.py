"""``python -m bench spider``: Scrapy on inlink's scheduler, and on its own, crawling one site.

The site (:mod:`bench.spidersite`) is a process, each crawl another one (:mod:`bench.spiders.run`), so that neither's
time or memory is the other's. Rounds are interleaved, so that noise meets everybody.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from bench import cli, results
from bench.crawl import files
from bench.spiders import base
from bench.spidersite import CHILDREN, HOSTS, Site, speed
from bench.spidertable import spider_table

__all__ = ["Spider", "cold", "compare", "crawl", "main", "restart", "rows"]

PAGES = 7000
# Number of pages of a crawl that is resumed.
AGAIN = 500
# Number of pages of the warm-up crawls, in which the ranking process compiles its kernels too.
WARM = 1500
# The spiders that are also run with robots.txt.
WITH_ROBOTS = ("plain",)


class Spider:
    """One crawl's process, told how many pages to fetch.

    Parameters
    ----------
    name, spider : str
        The scheduler's and the spider's.
    robots : bool
        Whether robots.txt is obeyed.
    site : Site
    pages : int
    folder : Path
        Where the crawl is kept.
    limit : float
        Seconds after which it is killed.
    environment : dict
        Variables besides those that are set.
    """

    def __init__(
        self,
        name: str,
        spider: str,
        robots: bool,
        site: Site,
        pages: int,
        folder: Path,
        limit: float,
        environment: dict[str, str] | None = None,
    ) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        responses = pages + (HOSTS if robots else 0)
        arguments = [name, spider, "robots" if robots else "free", site.url, str(responses), str(folder)]
        self.began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench", "spiderrun", *arguments],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=Path(__file__).parents[1],
            env=os.environ | (environment or {}),
        )
        self._stop = threading.Timer(limit, self._process.kill)
        self._stop.daemon = True
        self._stop.start()
        self._ended = threading.Event()
        self._largest_child = 0
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    def _look(self) -> None:
        """Note how large the ranking process gets."""
        threads = Path(f"/proc/{self._process.pid}/task")
        while not self._ended.wait(0.1):
            # Any thread may have started it.
            try:
                children = [
                    child for one in threads.iterdir() for child in (one / "children").read_text().split()
                ]
            # A thread, or all, ended meanwhile.
            except OSError:
                continue
            for child in children:
                self._largest_child = max(self._largest_child, results.memory("VmHWM", child))

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._process.kill()
        self._over()
        self._errors.close()

    def _over(self) -> str:
        text, _ = self._process.communicate()
        self._stop.cancel()
        self._ended.set()
        self._watch.join()
        return text

    def figures(self) -> dict[str, Any]:
        """Wait for its end; what it told.

        Raises
        ------
        RuntimeError
            If it told nothing, with the last line of its error output.
        """
        text = self._over()
        with self._errors:
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines()
        if self._process.returncode or not text:
            last = said[-1] if said else f"ended with exit code {self._process.returncode}"
            raise RuntimeError(f"failed: {last[:200]}")
        answer = cast(dict[str, Any], json.loads(text))
        return answer | {
            "peak of children": self._largest_child,
            "ended": time.monotonic(),
            "said": said[-3:],
        }


def _figures(spider: Spider, site: Site) -> dict[str, Any]:
    """The figures of a crawl when it is over, both sides' put together; times from the process's start."""
    answer, seen = spider.figures(), site.tell("told")
    return answer | {
        "pages": seen["pages"],
        "different": seen["different"],
        "twice": seen["twice"],
        "missing": seen["missing"],
        "site cpu": seen["cpu"],
        "first": None if seen["first"] is None else seen["first"] - spider.began,
        "wall": None if seen["first"] is None else answer["closed"] - seen["first"],
        "whole": answer["ended"] - spider.began,
    }


@contextmanager
def _folder(data: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="spider-", dir=data))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def crawl(
    name: str, spider: str, robots: bool, site: Site, pages: int, data: Path, limit: float
) -> dict[str, Any]:
    """A crawl that begins with nothing, and its figures.

    Raises
    ------
    RuntimeError
        If it ends too early, or does not keep what it is there to keep.
    """
    site.tell("forget")
    with _folder(data) as folder:
        answer = _figures(Spider(name, spider, robots, site, pages, folder, limit), site)
        if answer["pages"] < pages:
            raise RuntimeError(
                f"failed: {answer['pages']:,} pages, then {answer['reason']}: {answer['said']}"
            )
        if answer["not kept"]:
            raise RuntimeError(f"failed: {answer['not kept']:,} requests were not kept")
        return answer | {"disk": sum(files(folder).values())}


def restart(name: str, site: Site, pages: int, data: Path, limit: float) -> dict[str, Any]:
    """Resume a crawl after a clean stop, and after ``kill -9``; return the figures of the resumed processes."""
    restarts: dict[str, Any] = {}
    with _folder(data) as folder:
        site.tell("forget")
        Spider(name, "plain", False, site, pages, folder, limit).figures()
        site.tell("mark")
        restarts["stopped"] = _figures(Spider(name, "plain", False, site, AGAIN, folder, limit), site)
    with _folder(data) as folder:
        site.tell("forget")
        spider = Spider(name, "plain", False, site, 100 * pages, folder, limit)
        reached = site.tell(f"wait {pages} {limit}")["pages"] >= pages
        spider.kill()
        if not reached:
            raise RuntimeError(f"failed: fewer than {pages:,} pages in {limit:,.0f} s")
        site.tell("mark")
        restarts["killed"] = _figures(Spider(name, "plain", False, site, AGAIN, folder, limit), site)
    return restarts


def cold(site: Site, data: Path, limit: float) -> dict[str, Any]:
    """A first crawl with inlink ever, and the same with all machine code in Numba's cache."""
    starts: dict[str, Any] = {}
    with _folder(data) as cache:
        for which in ("cold", "warm"):
            site.tell("forget")
            with _folder(data) as folder:
                environment = {"NUMBA_CACHE_DIR": str(cache)}
                spider = Spider("inlink", "plain", False, site, AGAIN, folder, limit, environment)
                starts[which] = _figures(spider, site)
    return starts


def rows(names: list[str]) -> dict[str, dict[str, Any]]:
    """Return the rows of the benchmark: each scheduler with each spider that it can be run with."""
    table: dict[str, dict[str, Any]] = {}
    for robots in (False, True):
        for spider in ("plain", "carried", "rules", "links"):
            for name in names:
                peer = base.peer(name)
                if spider in peer.SPIDERS and (not robots or spider in WITH_ROBOTS):
                    key = f"{name} {spider}{' robots' if robots else ''}"
                    table[key] = {"peer": name, "spider": spider, "robots": robots, "runs": []}
    return table


def compare(
    names: list[str], pages: int, data: Path, rounds: int, restarts: int, limit: float
) -> dict[str, Any]:
    """Crawl in interleaved rounds; what the table is made of."""
    todo = rows(names)
    going_on: dict[str, list[dict[str, Any]]] = {name: [] for name in names if base.peer(name).LASTS}
    load = [os.getloadavg()[0]]
    with Site() as site:
        alone = speed(site)
        started = cold(site, data, limit) if "inlink" in names else None
        _round(todo, site, WARM, data, limit)
        for row in todo.values():
            row["runs"].clear()
        for number in range(max(rounds, restarts)):
            if number < rounds:
                _round(todo, site, pages, data, limit)
                load.append(os.getloadavg()[0])
            for name, runs in going_on.items() if number < restarts else ():
                runs.append(restart(name, site, pages, data, limit))
                _say(f"{name}: goes on after {runs[-1]['stopped']['first']:.2f} s")
            load.append(os.getloadavg()[0])
    return {
        "pages": pages,
        "known": CHILDREN * pages + 1,
        "again": AGAIN,
        "alone": alone,
        "load": load,
        "machine": results.machine(),
        "peers": {
            name: {"name": base.peer(name).NAME, "computes": base.peer(name).COMPUTES} for name in names
        },
        "rows": todo,
        "restarts": going_on,
        "cold": started,
    }


def _round(todo: dict[str, dict[str, Any]], site: Site, pages: int, data: Path, limit: float) -> None:
    """One crawl of each row; rows that cannot be run are skipped from then on."""
    for key, row in todo.items():
        if "skipped" in row:
            continue
        try:
            run = crawl(row["peer"], row["spider"], row["robots"], site, pages, data, limit)
        except RuntimeError as error:
            row["skipped"], row["runs"] = str(error), []
            _say(f"{key}: {error}")
        else:
            row["runs"].append(run)
            _say(f"{key}: {run['pages'] / run['wall']:.0f} pages/s")


def _say(line: str) -> None:
    cli.note(line)


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench spider``."""
    parser = cli.parser("spider", __doc__, rounds=5, peers=base.ALL, limit=900)
    parser.add_argument("--pages", type=int, default=PAGES, help="of each crawl; 16 times as many are known")
    parser.add_argument("--restarts", type=int, default=3, help="rounds of stopping and going on")
    options = parser.parse_args(arguments)
    if reason := base.available():
        sys.exit(reason)
    figures = compare(
        options.peers, options.pages, options.data, options.rounds, options.restarts, options.limit
    )
    results.keep(options.results, "spider", figures)
    print(spider_table(figures))

"""Spiders that die, are refused, are stopped, or run out of room: in processes, started as ``scrapy`` does."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from crawlcommand import Forked, inlink
from inlink.cli import commands
from inlink.crawl.crawl import Crawl
from sites import Answer, Asked, Site, html, web
from spiderruns import pages_of

pytestmark = pytest.mark.slow

ROUNDS = 5
SIZE = 300

SPIDER = """
    import json, os
    from scrapy import Spider
    from inlink.scrapy.signals import page_reported
    from spiderruns import hrefs

    class Marked(Spider):
        '''Every third page comes to a callback of its own, with its number; all that is acknowledged goes to a file.

        A page has as many items as its number modulo 3 says, and one that is the same on all pages.
        '''
        name = "marked"

        @classmethod
        def from_crawler(cls, crawler, *args, **kwargs):
            spider = super().from_crawler(crawler, *args, **kwargs)
            crawler.signals.connect(spider.reported, page_reported)
            return spider

        def __init__(self, start="", told="", **kwargs):
            super().__init__(**kwargs)
            self.start_urls = start.split(",") if start else []
            self.told = open(told, "a", buffering=1)

        def parse(self, response):
            self.say("seen", response.url, None)
            return self.links(response)

        def third(self, response, mark):
            self.say("seen", response.url, [mark[0], list(mark[1])])
            return self.links(response)

        def links(self, response):
            path = response.url.partition("//")[2].partition("/")[2]
            yield {"same": True}
            yield from ({"path": path, "number": k} for k in range(int(path or 0) % 3))
            for href in hrefs(response):
                number = int(href.strip("/") or 0)
                if number % 3 == 0 and number:
                    yield response.follow(href, self.third, cb_kwargs={"mark": (number, bytes([number % 256, 255]))})
                else:
                    yield response.follow(href)

        def reported(self, url, outcome, counted, **_):
            if counted:
                self.say(outcome, url, None)

        def say(self, *what):
            self.told.write(json.dumps(what) + chr(10))
"""


class Spiders:
    """Starts spiders in processes of their own.

    Parameters
    ----------
    folder : Path
        The spider's module and the logs are written there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        (folder / "marked_spider.py").write_text(textwrap.dedent(SPIDER))

    def start(self, crawl: Path, start: str = "", limit: int = 0, **settings: Any) -> Forked:
        """Start a spider on a crawl; its log is its stderr."""
        self.number += 1
        log = self.folder / f"{self.number}.log"
        values = {
            "SCHEDULER": "inlink.scrapy.Scheduler",
            "INLINK_CRAWL": crawl,
            "INLINK_POLICY": "first-come",
            "LOG_LEVEL": "INFO",
            "TELNETCONSOLE_ENABLED": 0,
            **settings,
        }
        argv = ["scrapy", "runspider", "marked_spider.py", "-a", f"start={start}", "-a", f"told={crawl}.told"]
        for name, value in values.items():
            argv += ["-s", f"{name}={value}"]
        return Forked(*argv, cwd=self.folder, out=log, err=log, limit=limit)


@pytest.fixture
def spiders(tmp_path: Path) -> Spiders:
    (tmp_path / "spiders").mkdir()
    return Spiders(tmp_path / "spiders")


def errors_of(run: Forked) -> list[str]:
    """The errors in a spider's log."""
    return [line.split(": ", 1)[1] for line in run.err.splitlines() if "] ERROR: " in line]


def told(crawl: Path) -> list[list[Any]]:
    """All whole lines that spiders on a crawl have written."""
    path = Path(f"{crawl}.told")
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1] if line]


class Deadly:
    """Pages that kill whoever asks for the so-and-so-manieth of them."""

    def __init__(self, pages: dict[str, Any], rng: random.Random) -> None:
        self.rng, self.lock, self.left, self.running = rng, threading.Lock(), -1, None
        self.pages = {path: (lambda asked, one=one: self.says(one)) for path, one in pages.items()}

    def says(self, answer: Answer) -> Answer:
        time.sleep(self.rng.uniform(0.001, 0.005))
        with self.lock:
            self.left -= 1
            if self.left == 0 and self.running is not None:
                self.running.kill()
        return answer


def test_killed_many_times_nothing_is_lost(tmp_path, spiders):
    rng, folder = random.Random(5), tmp_path / "c"
    # The pages draw from a generator of their own, because the number of their draws differs between runs.
    deadly = Deadly(web(SIZE), random.Random(6))
    rounds: list[tuple[set[str], set[str]]] = []  # what was fetched, what was acknowledged
    with Site(deadly.pages) as site:
        for number in range(ROUNDS + 1):
            asked, before = len(site.asked), len(told(folder))
            with deadly.lock:
                # A page may be lost in each round by chance, and must not fail for it.
                deadly.running = running = spiders.start(folder, site.url("/0"), INLINK_MAX_LOSSES=ROUNDS + 1)
                # All rounds together stop before the last page, or a round could end without a kill.
                deadly.left = rng.randrange(1, SIZE // ROUNDS) if number < ROUNDS else -1
            if number < ROUNDS and number % 5 == 3:  # while it starts, perhaps
                time.sleep(rng.random() * 0.3)
                running.kill()
            code = running.wait()
            assert code == (-signal.SIGKILL if number < ROUNDS else 0), running.err
            fetched = {one.path for one in site.asked[asked:]}
            lines = told(folder)[before:]
            rounds.append(
                (fetched, {url.removeprefix(site.url("")) for what, url, _ in lines if what == "crawled"})
            )
        pages = {url.removeprefix(site.url("")): page for url, page in pages_of(folder).items()}
        every = {f"/{k}" for k in range(SIZE)}
        assert set(pages) == every
        # So no lease is left either.
        assert {page.error for page in pages.values() if page.state != "crawled"} == set()
        done: set[str] = set()
        for fetched, acknowledged in rounds:
            assert not done & fetched
            done |= acknowledged
        killed = [fetched - acknowledged for fetched, acknowledged in rounds[:-1]]
        counts = site.counts()
        for path in every:
            assert counts[path] <= 1 + sum(path in one for one in killed)
        assert sum(bool(one) for one in killed) > ROUNDS // 2  # or nothing was tried
        assert len(done) > SIZE // 2
        for what, url, mark in told(folder):
            number = int(url.rpartition("/")[2])
            if what == "seen":
                assert mark == ([number, [number % 256, 255]] if number % 3 == 0 and number else None)
        site.asked.clear()
        assert spiders.start(folder, site.url("/0")).wait() == 0  # there is nothing left to do
        assert not site.asked
    with Crawl(folder) as crawl:
        assert crawl.standing().leased == 0
        assert "were given back" not in crawl.recovered


def items_of(crawl: Path) -> bytes:
    run = CliRunner().invoke(commands, ["-q", "dump", "items", str(crawl)])
    assert run.exit_code == 0, run.output
    return run.stdout_bytes


@pytest.mark.parametrize(
    ("rounds", "seed"),
    # `make soak` kills a thousand times.
    [(ROUNDS, 9), *(pytest.param(100, seed, marks=pytest.mark.soak) for seed in range(10))],
)
def test_items_are_kept_exactly_once(tmp_path, spiders, rounds, seed):
    """Killed again and again, a crawl has the items of one that was not, and an export has the same bytes each time."""
    rng, folder, size, killed = random.Random(seed), tmp_path / "c", 4 * rounds + 80, 0
    settings = {
        "INLINK_ITEMS": 1,
        "INLINK_MAX_LOSSES": 254,
        "INLINK_RETRY_SECONDS": 0.01,
        "CONCURRENT_REQUESTS": 4,
    }
    deadly, exports = Deadly(web(size), rng), []
    with Site(deadly.pages) as site:
        for number in range(rounds):
            with deadly.lock:
                deadly.running = running = spiders.start(folder, site.url("/0"), **settings)
                deadly.left = rng.randrange(1, 9) if number % 5 < 4 else -1
            if number % 5 == 4:
                # Perhaps while it starts or opens the crawl.
                time.sleep(rng.random() * 0.3)
                running.kill()
            code = running.wait()
            assert code in (0, -signal.SIGKILL), running.err
            killed += code != 0
            if number % (rounds // 5) == 0:
                exports.append(items_of(folder))
        with deadly.lock:
            deadly.running = None
        for crawl in (folder, tmp_path / "whole"):
            last = spiders.start(crawl, site.url("/0"), **settings)
            assert last.wait() == 0, last.err
    whole, found = items_of(tmp_path / "whole"), items_of(folder)
    assert killed > 0.9 * rounds
    assert len(whole.splitlines()) == sum(1 + k % 3 for k in range(size))
    assert sorted(found.splitlines()) == sorted(whole.splitlines())
    assert items_of(folder) == found
    # Each export of the unfinished crawl is the beginning of the last.
    assert all(found.startswith(before) for before in exports)
    assert 0 < len(exports[-1]) < len(found)


def as_users_do(spiders: Spiders, crawl: Path, start: str) -> subprocess.CompletedProcess[str]:
    """Run ``scrapy`` in a new process, as users do. It is no fork."""
    return subprocess.run(
        [sys.executable, "-m", "scrapy", "runspider", str(spiders.folder / "marked_spider.py")]
        + ["-a", f"start={start}", "-a", f"told={crawl}.told"]
        + ["-s", "SCHEDULER=inlink.scrapy.Scheduler", "-s", f"INLINK_CRAWL={crawl}"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_a_second_process_is_refused(tmp_path, spiders):
    """In one line that names the first; it ends in good order, and the first goes on."""
    second: list[subprocess.CompletedProcess[str]] = []

    def says(_: Asked) -> Answer:
        second.append(as_users_do(spiders, tmp_path / "c", site.url("/0")))
        return html("/1")

    with Site({"/0": says, "/1": html()}) as site:
        first = spiders.start(tmp_path / "c", site.url("/0"))
        assert first.wait() == 0
        assert errors_of(first) == []
        assert site.counts() == {"/0": 1, "/1": 1}
        log = second[0].stderr
        assert second[0].returncode == 1
        errors = [line for line in log.splitlines() if "] ERROR: " in line]
        assert len(errors) == 1
        assert f"by process {first.pid}:" in errors[0]
        assert "Traceback" not in log
        assert "'finish_reason': 'inlink_refused'" in log
        third = spiders.start(tmp_path / "c", site.url("/2"))  # and now it may
        assert third.wait() == 0
        assert "'inlink/failed': 1" in third.err
        assert site.counts() == {"/0": 1, "/1": 1, "/2": 1}


def test_ctrl_c(tmp_path, spiders):
    """Requests under way are finished, and the next run goes on with the rest."""
    with Site(web(120)) as site:
        for number in range(3):
            asked = len(site.asked)
            running = spiders.start(tmp_path / "c", site.url("/0"))
            if number < 2:
                site.wait_for(asked + 15)
                running.send_signal(signal.SIGINT)
            assert running.wait() == 0
            assert "Traceback" not in running.err
            assert errors_of(running) == []
            assert f"'finish_reason': '{'finished' if number == 2 else 'shutdown'}'" in running.err
            states = [page.state for page in pages_of(tmp_path / "c").values()]
            assert set(states) == ({"crawled"} if number == 2 else {"crawled", "discovered"})
        assert site.counts() == {f"/{k}": 1 for k in range(120)}


def test_a_full_disk(tmp_path, spiders):
    """One line says so, the spider ends, nothing is lost, and with room again it goes on."""
    with Site(web(SIZE)) as site:
        full = spiders.start(tmp_path / "c", site.url("/0"), limit=40_000)
        assert full.wait() == 1
        assert len(errors_of(full)) == 1, full.err
        assert "cannot be written" in errors_of(full)[0]
        assert "Traceback" not in full.err
        assert "'finish_reason': 'inlink_failed'" in full.err
        done = {url.removeprefix(site.url("")) for what, url, _ in told(tmp_path / "c") if what == "crawled"}
        assert 0 < len(done) < SIZE
        site.asked.clear()
        more = spiders.start(tmp_path / "c", site.url("/0"))
        assert more.wait() == 0
        assert not done & set(site.counts())
        assert {page.state for page in pages_of(tmp_path / "c").values()} == {"crawled"}
        assert len(pages_of(tmp_path / "c")) == SIZE


def test_seeds_from_a_file_and_while_it_runs(tmp_path, spiders):
    seeds = tmp_path / "seeds.txt"
    with Site({f"/{k}": html() for k in range(6)}) as site:

        def seeded(_: Asked) -> Answer:
            inlink("-q", "seed", tmp_path / "c", "-", cwd=tmp_path, stdin=site.url("/5"))
            site.wait_for_path("/5")  # the crawl looks once a second
            return html()

        site.pages["/2"] = seeded
        seeds.write_text(
            f"{site.url('/1')}\n\n{site.url('/2')}\t0.5\n", "utf-8-sig"
        )  # as Windows' editors do
        assert spiders.start(tmp_path / "c", INLINK_SEEDS=seeds).wait() == 0
        assert site.counts() == {"/1": 1, "/2": 1, "/5": 1}
        seeds.write_text(f"{site.url('/1')}\n{site.url('/3')}\n")
        assert spiders.start(tmp_path / "c", site.url("/4"), INLINK_SEEDS=seeds).wait() == 0
        assert site.counts() == {f"/{k}": 1 for k in range(1, 6)}
        seeds.write_text(f"{site.url('/1')}\tgood\n")
        bad = spiders.start(tmp_path / "c", INLINK_SEEDS=seeds)
        assert bad.wait() == 1
        assert "Traceback" not in bad.err
        assert len(errors_of(bad)) == 1
        assert "line 1: 'good' is not a score" in errors_of(bad)[0]

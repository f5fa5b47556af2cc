"""The benchmark of the crawl: the generated crawl and its twin, the figures, and the harness from end to end."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import crawl, crawlkernels, crawltable, results, tables, truth
from bench.crawlers import aduana, base, scrapy_scheduler
from bench.crawlers.base import Page, parse
from bench.crawlweb import Web

from inlink.store.format import HEAD_SIZE
from inlink.urls.canonical import canonical

ROOT = Path(__file__).parents[1]
MASK = 2**64 - 1
GOLDEN, MIX1, MIX2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


# -- the twin of the kernels, in Python's whole numbers, with tables instead of arithmetic ---------------------------


def last_steps(z: int) -> int:
    z = (z ^ (z >> 30)) * MIX1 & MASK
    z = (z ^ (z >> 27)) * MIX2 & MASK
    return z ^ (z >> 31)


class Dice:
    def __init__(self, state: int) -> None:
        self.state = state

    def draw(self, below: int) -> int:
        self.state = (self.state + GOLDEN) & MASK
        return ((last_steps(self.state) >> 32) * below) >> 32


class SlowWeb:
    """The crawl of a :class:`Web`, by remembering all that it has made."""

    def __init__(self, seeds: int, seed: int, pages: int, scattered: bool = True) -> None:
        self.seed = seed
        self.hosts: list[int] = []
        self.local: list[bool] = []
        self.parents: list[int] = []
        self.children: list[range] = []
        for _ in range(seeds):
            self.know(-1)
        self.numbers = [self.turn(page, seeds) if scattered else page for page in range(8 * pages)]
        self.turns = {number: turn for turn, number in enumerate(self.numbers)}
        self.degrees = [self.degree(page) for page in range(pages)]
        self.pages = [self.page(page) for page in range(pages)]

    def hashed(self, number: int, purpose: int) -> int:
        return last_steps(((self.seed + (purpose << 56)) * MIX2 + (number + 1) * GOLDEN) & MASK)

    def degree(self, page: int) -> int:
        order = self.hashed(page // 31, 1) % 64
        return 20 + (page % 31 * (1 + order % 30) + 7 * order) % 31

    @staticmethod
    def turn(number: int, seeds: int) -> int:
        bits = number.bit_length() - 1
        if number < seeds or not number:
            return number
        return 2**bits + (int(f"{number - 2**bits:0{bits}b}"[::-1], 2) if bits else 0)

    def know(self, parent: int) -> None:
        number = len(self.hosts)
        local = parent >= 0 and self.hashed(number, 3) >> 32 < int(0.86 * 2**32)
        if local:
            host = self.hosts[parent]
        else:
            hosts = 512 + number // 20
            dice = Dice(self.hashed(number, 4))
            classes = next(c for c in itertools.count(1) if 2**c - 1 >= hosts // 8)
            size = 8 * 2 ** dice.draw(classes)
            host = (size - 8 + dice.draw(size)) % hosts
        self.hosts.append(host)
        self.local.append(local)
        self.parents.append(parent)

    def old(self, page: int, end: int, dice: Dice) -> int:
        if dice.draw(2**32) < int(0.89 * 2**32):
            here = page
            for _ in range(1 + dice.draw(3)):
                here = self.parents[here] if self.local[here] else here
            for _ in range(dice.draw(3)):
                low, high = self.children_of(self.turns[here])
                child = low + dice.draw(high - low)
                if child >= end or not self.local[child]:
                    break
                here = child
            if here != page:
                return here
        if dice.draw(2**32) < 2**31:
            return dice.draw(2 ** dice.draw(end.bit_length()))
        return dice.draw(end)

    def children_of(self, page: int) -> tuple[int, int]:
        """Those of the page of a turn; if it is not crawled yet, the ones it will have."""
        if page < len(self.children):
            return self.children[page].start, self.children[page].stop
        start = self.children[-1].stop if self.children else len(self.hosts)
        for later in range(len(self.children), page):
            start += (2 * self.degree(later) + 2) // 5
        return start, start + (2 * self.degree(page) + 2) // 5

    def page(self, page: int) -> list[int]:
        here = self.numbers[page]
        assert here < len(self.hosts)
        dice = Dice(self.hashed(page, 2))
        links = self.degrees[page]
        new = (2 * links + 2) // 5
        end = len(self.hosts)
        row: list[int] = []
        for i in range(links):
            if dice.draw(links - i) < new:
                self.know(here)
                row.append(len(self.hosts) - 1)
                new -= 1
            else:
                for _ in range(8):
                    target = self.old(here, end, dice)
                    if target not in row:
                        break
                row.append(target)
        self.children.append(range(end, len(self.hosts)))
        return row


@pytest.mark.parametrize(("seeds", "seed", "scattered"), [(1, 1, True), (8, 2, False), (256, 3, True)])
def test_pages_are_those_of_the_twin(seeds: int, seed: int, scattered: bool) -> None:
    web, slow = Web(seeds, seed, scattered=scattered), SlowWeb(seeds, seed, 150, scattered)
    pages = parse(web.text(0, 150))
    urls = [web.url(number) for number in range(len(slow.hosts))]
    assert [url for url, _ in pages] == [urls[number] for number in slow.numbers[:150]]
    assert [links for _, links in pages] == [[urls[number] for number in row] for row in slow.pages]
    assert [web.host(number) for number in range(len(urls))] == slow.hosts
    assert web.known(150) == len(urls)


def test_a_number_leads_to_the_page_that_made_it_known() -> None:
    shape = crawlkernels.Shape(np.uint64(64), np.uint64(64), np.uint64(9))
    for page in range(200):
        low, high = (int(crawlkernels.first_new(np.uint64(p), shape)) for p in (page, page + 1))
        for number in range(low, high):
            assert crawlkernels.known_page(np.uint64(number), shape) == page
    assert low == 64 + 199 // 31 * crawlkernels.BLOCK_NEW + sum(
        (2 * int(crawlkernels.page_links(np.uint64(p), shape)) + 2) // 5 for p in range(186, 199)
    )


# -- the generated crawl -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages() -> list[Page]:
    web = Web(64)
    return parse(b"".join(web.batches(0, web.pages_for(150_000))))


def test_pages_crawled_are_known_ones_and_new_urls_come_in_order(pages: list[Page]) -> None:
    web = Web(64)
    known = {url: number for number, url in enumerate(web.seeds())}
    for number, (url, links) in enumerate(pages):
        assert known[url] == web.crawled(number)
        assert 20 <= len(links) <= 50
        for link in links:
            known.setdefault(link, len(known))
    assert len(known) == web.known(len(pages))
    assert all(web.url(number) == url for url, number in itertools.islice(known.items(), 0, None, 997))


def test_it_looks_like_the_web(pages: list[Page]) -> None:
    links = [(url.split("/", 3)[2], link) for url, found in pages for link in found]
    assert len(links) / len(pages) == pytest.approx(35, rel=0.01)
    urls = {link for _, link in links}
    assert len(urls) / len(links) == pytest.approx(0.4, abs=0.01)
    assert sum(host == link.split("/", 3)[2] for host, link in links) / len(links) == pytest.approx(
        0.75, abs=0.02
    )
    assert sum(len(found) - len(set(found)) for _, found in pages) / len(links) < 0.02
    hosts = sorted(Counter(url.split("/", 3)[2] for url in urls).values(), reverse=True)
    assert 20 < len(urls) / len(hosts) < 80
    assert hosts[0] < 0.05 * len(urls)  # by Zipf's law, but no host is a twentieth of all
    assert hosts[len(hosts) // 100] > 10 * hosts[len(hosts) // 4] > 0
    indegrees = sorted(Counter(link for _, link in links).values(), reverse=True)
    assert indegrees[0] > 100 * sum(indegrees) / len(indegrees)


def test_urls_are_canonical_and_of_the_usual_length() -> None:
    web = Web()
    for known in (1_000_000, 100_000_000):
        urls = [web.url(number) for number in range(0, known, known // 3000)]
        assert all(canonical(url) == url for url in urls)
        assert 60 <= sum(map(len, urls)) / len(urls) <= 65
        assert max(map(len, urls)) <= crawlkernels.MAX_URL


def test_batches_join_to_one_text_and_seeds_differ() -> None:
    web = Web(32, 3)
    assert b"".join(web.batches(0, 40, 7)) == web.text(0, 40) == Web(32, 3).text(0, 40)
    assert web.text(0, 40) != Web(32, 4).text(0, 40)
    assert parse(web.text(38, 2)) == parse(web.text(0, 40))[38:]
    assert parse(b"") == []


@pytest.mark.parametrize("known", [1, 32, 33, 466, 467, 100_000])
def test_pages_for_is_the_least_number(known: int) -> None:
    web = Web(32, 3)
    pages = web.pages_for(known)
    assert web.known(pages) >= known
    assert pages == 0 or web.known(pages - 1) < known


# -- the figures --------------------------------------------------------------------------------------------


class Recorder:
    """A crawl that keeps what it is told, and hands out its URLs in order."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, list[str]]] = []
        self.handed: list[int] = []
        self.answered: list[int] = []
        self.ticks = 0

    def take(self, url: str, links: list[str]) -> None:
        self.taken.append((url, links))

    def tick(self) -> None:
        self.ticks += 1

    def next(self, size: int) -> list[int]:
        found = list(range(len(self.handed), min(len(self.handed) + size, 130)))
        self.handed += found
        return found

    def answer(self, one: int) -> None:
        assert self.handed[one] == one
        self.answered.append(one)


def test_taking_tells_what_was_taken() -> None:
    web, recorder = Web(32, 3), Recorder()
    pages = parse(web.text(0, 40))
    told = base.take(recorder, pages)  # type: ignore[arg-type]
    assert recorder.taken == pages
    assert (told["pages"], told["links"]) == (40, sum(len(links) for _, links in pages))
    assert 0 < told["median"] <= told["p99"] <= told["slowest"] <= told["wall"]
    assert base.take(recorder, [])["slowest"] == 0  # type: ignore[arg-type]


def test_asking_answers_for_everything_and_counts_short_batches() -> None:
    recorder = Recorder()
    told = base.ask(recorder, 14, 10, [])  # type: ignore[arg-type]
    assert (told["urls"], told["short"], told["batches"], recorder.ticks) == (130, 1, 14, 14)
    assert recorder.answered == recorder.handed == list(range(130))
    assert 0 < told["median"] <= told["p99"] <= told["slowest"] <= told["wall"]


def test_asking_goes_on_for_as_long_as_a_ranking_runs() -> None:
    recorder, left = Recorder(), iter([True] * 4)
    pages = [(f"page {i}", [""]) for i in range(3)]
    told = base.ask(recorder, 1000, 5, pages, lambda: next(left, False))  # type: ignore[arg-type]
    assert (told["urls"], told["batches"]) == (20, 4)
    assert recorder.taken == pages


def test_calls_are_summed_up_by_rank() -> None:
    assert base._calls([3.0, 1.0, 2.0]) == {"median": 2.0, "p99": 3.0, "slowest": 3.0}
    assert base._calls([float(i) for i in range(1, 201)])["p99"] == 199.0


# -- the harness --------------------------------------------------------------------------------------------

TOY = """
import sys, time
sys.path.insert(0, {root!r})
import types
from pathlib import Path
from bench.crawlers import base

class Crawl:
    def __init__(self, folder):
        self.path = Path(folder) / "urls"
        self.known = dict.fromkeys(self.path.read_text().split()) if self.path.exists() else dict()
        self.waiting = list(self.known)
    def seed(self, urls): self.take("", urls)
    def mode(self, name): assert name in ("plain", "other")
    def take(self, url, links):
        if {broken!r} and len(self.known) > 2000:
            raise OSError("the disk is full")
        new = [link for link in dict.fromkeys(links) if link not in self.known]
        self.known.update(dict.fromkeys(new))
        self.waiting += new
        with self.path.open("a") as file:
            file.writelines(link + "\\n" for link in new)
    def tick(self): pass
    def next(self, size):
        found, self.waiting = self.waiting[:size], self.waiting[size:]
        return found
    def answer(self, one): assert one in self.known
    def rerank(self):
        end = time.monotonic() + 0.1
        return lambda: time.monotonic() < end
    def close(self): pass

module = types.ModuleType("bench.crawlers.toy")
module.Crawl, module.warm_up = Crawl, lambda: None
sys.modules["bench.crawlers.toy"] = module
base.serve("toy", Path(sys.argv[1]))
"""


def toy(broken: bool = False, **more: Any) -> SimpleNamespace:
    script = TOY.format(root=str(ROOT), broken=broken)
    return SimpleNamespace(
        NAME="Toy",
        COMPUTES="a dict",
        LARGEST=5000,
        MODES={"plain": ("", 1.0), "other": ("otherwise", 0.5)},
        NEXT={"plain": 1.0},
        available=lambda: None,
        command=lambda folder: [sys.executable, "-c", script, str(folder)],
        **more,
    )


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}
    monkeypatch.setattr(base, "peer", found.__getitem__)
    return found


def test_a_run_measures_every_size_up_to_the_largest(tmp_path: Path, peers: dict[str, Any]) -> None:
    asked = []
    peers["toy"] = toy(lookup=lambda folder, url: asked.append(url) or 0.5)
    web = Web(16, 5)
    told = crawl.run("toy", [1000, 4000, 6000], tmp_path, 3500, 5, 60, web)
    assert list(told["sizes"]) == ["1000", "4000"]
    at = told["sizes"]["4000"]
    assert web.known(web.pages_for(4000)) == at["known"]
    assert at["take"]["plain"]["pages"] == 100
    assert at["take"]["other"]["pages"] == 50
    assert at["take"]["other"]["links"] == pytest.approx(50 * 35, rel=0.1)
    assert at["next"]["plain"]["urls"] == 200  # of 500 asked for, as a twentieth of all
    assert told["sizes"]["1000"]["next"]["plain"]["batches"] == 1
    assert "other" not in at["next"]
    assert at["ranking"]["batches"] >= 3
    assert asked == [web.url(500), web.url(2000)]
    # the crawler's process met the stream without a gap: as many lines as URLs are known
    assert len((tmp_path / "urls").read_text().split()) == at["disk known"]
    assert at["disk"]["urls"] >= (tmp_path / "urls").stat().st_size
    assert told["opened after kill"] > 0


def test_a_crawler_that_fails_is_told_with_its_reason(tmp_path: Path, peers: dict[str, Any]) -> None:
    peers |= {"toy": toy(), "broken": toy(broken=True), "small": toy(), "missing": toy()}
    peers["small"].LARGEST = 10
    peers["missing"].available = lambda: "nobody has built it"
    told = crawl.compare(["toy", "broken", "small", "missing"], [1500, 3000], tmp_path, 2, 700, 2, 60)
    assert len(told["rows"]["toy"]["runs"]) == 2
    assert told["rows"]["broken"]["runs"] == []
    assert told["rows"]["broken"]["skipped"] == "failed: OSError: the disk is full"
    assert told["rows"]["small"]["skipped"] == "not tried above 10 known URLs"
    assert told["rows"]["missing"]["skipped"] == "nobody has built it"
    assert list(tmp_path.iterdir()) == []
    told = json.loads(json.dumps(told))
    table = crawltable.crawl_table(told)
    results.keep(tmp_path, "crawl-3000", told)
    assert tables.tables(tmp_path) == {"crawl-3000": table}
    first = told["rows"]["toy"]["runs"][0]["sizes"]["3000"]["take"]["plain"]
    assert first["links"] == pytest.approx(700, rel=0.1)
    assert "| 3,000 | Toy | " in table
    assert "| 3,000 | Toy, otherwise | " in table
    assert "| 1.00 (1.00–1.00) |" in table
    assert "nobody has built it." in table


def test_a_run_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(RuntimeError, match="exit code -9"):
        crawl.Program(sleeper, 0.2)


# -- the peers, where they are ------------------------------------------------------------------------------


def at_tiny_size(name: str, folder: Path) -> dict[str, Any]:
    web = Web(128, 6)
    told = crawl.run(name, [2000], folder, 7000, 3, 100, web)
    at: dict[str, Any] = told["sizes"]["2000"]
    for mode in base.peer(name).MODES:
        assert at["take"][mode]["cpu"] > 0
    assert at["next"]["plain"]["urls"] == 100 * at["next"]["plain"]["batches"]
    return at


@pytest.mark.skipif(scrapy_scheduler.available() is not None, reason="Scrapy is not installed")
def test_scrapy_keeps_each_url_once(tmp_path: Path) -> None:
    at = at_tiny_size("scrapy_scheduler", tmp_path)
    # 22 bytes a fingerprint, in a file that is buffered
    assert (tmp_path / "requests.seen").stat().st_size // 22 == pytest.approx(at["disk known"], rel=0.2)


def test_the_driver_of_aduana_compiles() -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    source = Path(aduana.__file__).with_suffix(".c")
    flags = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run(["cc", *flags, str(source)], check=True)


@pytest.mark.skipif("ADUANA_LIBRARY" not in os.environ, reason="Aduana is not built")
@pytest.mark.parametrize("name", ["aduana", "aduana_limits"])
def test_aduana_knows_each_url_once(name: str, tmp_path: Path) -> None:
    at = at_tiny_size(name, tmp_path)
    dump = Path(os.environ["ADUANA_LIBRARY"]).parent / "page_db_dump"
    if dump.exists():
        subprocess.run([dump, "info", tmp_path / "pages", tmp_path / "dump"], check=True)
        # one more is the page that the seeds come from
        assert len((tmp_path / "dump").read_text().splitlines()) == at["disk known"] + 1


def test_a_peer_that_is_not_there_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADUANA_LIBRARY", "/nowhere/libaduana.so")
    monkeypatch.setenv("SCRAPY_PYTHON", "/nowhere/python")
    assert aduana.available() == "ADUANA_LIBRARY names no libaduana.so"
    assert scrapy_scheduler.available() == "SCRAPY_PYTHON names no Python"
    with pytest.raises(SystemExit, match="no crawler 'frontera'"):
        base.peer("frontera")


# -- the log beside LMDB ----------------------------------------------------------------------------------------------


def test_the_log_keeps_what_it_is_timed_with(tmp_path):
    assert truth.with_log(tmp_path, 7) >= 0
    assert (tmp_path / "urls.txt").read_bytes() == truth.URLS * 7
    # Beside the events there may be marks of how far the log is synced, one a second.
    marks = (tmp_path / "events.log").stat().st_size - 7 * (HEAD_SIZE + len(truth.EVENT))
    assert marks >= 0
    assert marks % HEAD_SIZE == 0

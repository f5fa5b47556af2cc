"""The parts of ``inlink crawl`` alone: what stands between scheduler and crawl, progress, options."""

import asyncio
import errno
import logging
import os
import pty
import re
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scrapy")

from crawlcommand import INLINK
from inlink.errors import OutputError, ParameterError, StoreError
from inlink.protocol import (
    Answer,
    Crawled,
    Excluded,
    Failed,
    HostDelay,
    HostStanding,
    Receipt,
    Redirected,
    Released,
    Standing,
    Task,
    Tasks,
)
from inlink.scrapy.job import Job, Note, RunCounts, Watched
from inlink.scrapy.options import CrawlOptions, beginnings, folder_for, settings_of
from inlink.scrapy.outputs import Appended, WikiTables, whole_lines
from inlink.scrapy.preset import Article, load
from inlink.scrapy.progress import Lines, told
from inlink.scrapy.run import logging_to
from sites import Site, html


def standing(crawled: int = 0, **more: object) -> Standing:
    given: dict[str, object] = {
        **{
            "known": 10,
            "crawled": crawled,
            "waiting": 5,
            "leased": 0,
            "states": {},
            "harvest": None,
            "hosts": [],
        },
        **more,
    }
    return Standing(**given)  # type: ignore[arg-type]


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


class Frontier:
    """A client with as many tasks as are asked for."""

    def __init__(self, crawled: int = 0) -> None:
        self.crawled, self.handed_out, self.taken, self.closed = crawled, 0, [], False
        self.error: Exception | None = None

    async def seed(self, urls: object) -> int:
        return 0

    async def next(self, count: int, wait: float = 0.0) -> Tasks:
        assert count > 0
        first, self.handed_out = self.handed_out, self.handed_out + count
        return Tasks([self.task(number) for number in range(first, first + count)], 0.0)

    def task(self, number: int) -> Task:
        return Task(number, f"http://a.example/{number}", 1, 0, 0, None, None)

    async def report(self, answers: Sequence[Answer]) -> list[Receipt]:
        if self.error is not None:
            raise self.error
        self.taken += answers
        receipts = []
        for answer in answers:
            if isinstance(answer, Redirected):
                self.handed_out += 1
                receipts.append(Receipt(True, self.task(self.handed_out - 1)))
            else:
                self.crawled += isinstance(answer, Crawled)
                receipts.append(Receipt(True))
        return receipts

    async def standing(self, hosts: int = 5) -> Standing:
        return standing(self.crawled)

    async def close(self) -> None:
        self.closed = True


KINDS = {
    "crawled": Crawled,
    "failed": lambda lease: Failed(lease, "no answer"),
    "excluded": lambda lease: Excluded(lease, "robots"),
    "redirected": lambda lease: Redirected(lease, "http://a.example/x"),
    "released": Released,
}


@given(
    st.integers(0, 30),
    st.none() | st.integers(1, 40),
    st.lists(st.tuples(st.integers(1, 20), st.sampled_from(sorted(KINDS)), st.integers(0, 9)), max_size=60),
)
def test_never_more_pages_than_asked_for_and_never_more_out_than_allowed(before, pages, steps):
    async def go() -> None:
        frontier, job = Frontier(before), Job(pages=pages)
        client = Watched(frontier, job)
        out: list[int] = []
        allowed = 2
        for count, kind, which in steps:
            found = await client.next(count)
            assert len(found.tasks) <= count
            assert found.tasks or found.due_in is None
            out += [task.lease for task in found.tasks]
            assert len(out) <= allowed
            if pages is not None:
                assert frontier.crawled + len(out) <= max(pages, before)
            if not out:
                assert pages is not None
                assert frontier.crawled >= pages
                assert job.ending == "pages"
                return
            answer = KINDS[kind](out.pop(which % len(out)))
            receipts = await client.report([HostDelay("http://a.example/", 1.0), answer])
            out += [receipt.task.lease for receipt in receipts if receipt.task is not None]
            allowed += kind in ("crawled", "redirected")
        assert job.ending == "finished"

    asyncio.run(go())


def test_a_run_that_is_ended_hands_nothing_out():
    async def go() -> None:
        job = Job(ending="interrupted")
        assert await Watched(Frontier(), job).next(5) == Tasks([])

    asyncio.run(go())


def test_files_are_written_before_the_crawl_knows(tmp_path):
    async def go() -> None:
        preset = load("wikipedia")
        base = preset.base
        frontier = Frontier()
        frontier.task = lambda number: Task(number, f"{base}{number}", 2, 0, 0, None, None)  # type: ignore[method-assign]
        with Appended(tmp_path / "i", whole_lines) as items, WikiTables(tmp_path / "w") as tables:
            job = Job(preset=preset, items=items, tables=tables)
            client = Watched(frontier, job)
            await client.next(2)
            job.notes[1] = Note("One", f"{base}Canonical", articles=[Article(f"{base}Two", "Two")])
            frontier.error = StoreError("full")
            with pytest.raises(StoreError):
                await client.report([Crawled(1, ["http://x.example/"], score=0.5)])
            assert job.error is frontier.error
            frontier.error = None
            with pytest.raises(StoreError, match="full"):  # nothing more is taken in
                await client.report([Failed(0, "x")])
            assert frontier.taken == []
            found = rows(tmp_path / "w", "SELECT * FROM WikiLinks ORDER BY link")
        assert found == [(f"{base}1", "1", 1), (f"{base}Canonical", "Canonical", 1), (f"{base}Two", "Two", 0)]
        line = (tmp_path / "i").read_text()
        assert re.fullmatch(
            r'{"url":"https://en\.wikipedia\.org/wiki/1","title":"One","score":0\.5,"status":200,"depth":2,"links":1,'
            r'"fetched":"[^"]+"}\n',
            line,
        )

    asyncio.run(go())


def test_an_answer_whose_page_cannot_be_written_is_not_taken_in():
    class Full:
        def append(self, record: bytes) -> None:
            raise OutputError(os.strerror(errno.ENOSPC))

    async def go() -> None:
        frontier = Frontier()
        job = Job(items=Full())  # type: ignore[arg-type]
        client = Watched(frontier, job)
        await client.next(1)
        with pytest.raises(OutputError):
            await client.report([Crawled(0)])
        assert frontier.taken == []
        assert isinstance(job.error, OutputError)

    asyncio.run(go())


def test_a_redirects_first_address_goes_along(tmp_path):
    async def go() -> None:
        preset = load("wikipedia")
        frontier = Frontier()
        frontier.task = lambda number: Task(number, f"{preset.base}{number}", 2, 0, 0, None, None)  # type: ignore[method-assign]
        with WikiTables(tmp_path / "w") as tables:
            client = Watched(frontier, Job(preset=preset, tables=tables))
            await client.next(1)
            (receipt,) = await client.report([Redirected(0, "x")])
            assert receipt.task is not None
            (receipt,) = await client.report([Redirected(receipt.task.lease, "y")])
            assert receipt.task is not None
            await client.report([Crawled(receipt.task.lease)])
            found = rows(tmp_path / "w", "SELECT title FROM WikiLinks WHERE crawled ORDER BY link")
        assert found == [("0",), ("1",), ("2",)]

    asyncio.run(go())


def test_the_last_look_is_before_the_crawl_is_let_go():
    async def go() -> None:
        frontier, job = Frontier(7), Job()
        seen: list[Standing] = []
        client = Watched(frontier, job, seen.append, 0.0)
        while len(seen) < 3:
            await asyncio.sleep(0)
        await client.close()
        assert frontier.closed
        assert job.last is not None
        assert job.last.crawled == 7
        count = len(seen)
        await asyncio.sleep(0)
        assert len(seen) == count

    asyncio.run(go())


# -- progress ----------------------------------------------------------------------------------------------------------


def test_a_line_tells_how_far():
    tally = RunCounts(crawled=5, failed=1200, excluded=3)
    tally.scores += [0.5, 0.25, 0.0, 0.25]
    hosts = [HostStanding("a.example", 12_000, 3, 0.0), HostStanding("b.example", 1, 0, 2.5)]
    at = standing(1234, known=45_678, waiting=9876, harvest=0.3141, hosts=hosts)
    assert told(at, tally, 12.34) == (
        "1,234 pages, 12.3/s, 45,678 known, 9,876 waiting, 1,200 errors, 3 excluded, score 0.250, harvest 31.4%"
    )
    assert told(standing(), RunCounts(), 0.0) == "0 pages, 0.0/s, 10 known, 5 waiting, 0 errors"


def test_the_score_is_of_the_last_hundred():
    tally = RunCounts()
    for k in range(1000):
        tally.scores.append(1.0 if k >= 950 else 0.0)
    assert "score 0.500" in told(standing(), tally, 0.0)


def test_lines_come_from_the_second_look_on(capsys, monkeypatch):
    now = 100.0
    monkeypatch.setattr("inlink.scrapy.progress.time.monotonic", lambda: now)
    tally = RunCounts()
    lines = Lines(tally)
    lines.show(standing())
    now, tally.crawled = 110.0, 25
    lines.show(standing(25, hosts=[HostStanding("a.example", 5, 25, 0.0)]))
    now, tally.crawled = 120.0, 30
    lines.show(standing(30))
    assert capsys.readouterr().err == (
        "crawl: 25 pages, 2.5/s, 10 known, 5 waiting, 0 errors; waiting: a.example 5\n"
        "crawl: 30 pages, 0.5/s, 10 known, 5 waiting, 0 errors; waiting: none\n"
    )


@pytest.mark.parametrize(("quiet", "said"), [(False, "crawl: info: compiling\n"), (True, "")])
def test_a_first_start_says_what_it_waits_for_unless_asked_to_be_quiet(capsys, quiet, said):
    with logging_to(Job(None, None, None), verbose=False, quiet=quiet):
        logging.getLogger("inlink.compiling").info("compiling")
        logging.getLogger("inlink.crawl").info("what nobody asked for")
    assert capsys.readouterr().err == said


@pytest.mark.slow
def test_a_terminal_shows_a_display_and_is_left_clean(tmp_path):
    """In a terminal of the test's own: hosts and numbers are shown, and the cursor is there again afterwards."""
    with Site({f"/{n}": html(*(f"/{m}" for m in range(30))) for n in range(30)}) as site:
        ours, theirs = pty.openpty()
        command = [*INLINK, "crawl", f"{site.root}/0", "-o", str(tmp_path / "c"), "--delay", "0.1"]
        with subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}
        ) as run:
            os.close(theirs)
            shown = b""
            try:
                while part := os.read(ours, 65_536):
                    shown += part
            except OSError:  # Linux says so that nobody has the other end any more
                pass
            finally:
                os.close(ours)
                run.kill()  # does nothing where it has ended
    assert run.returncode == 0
    text = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", shown).decode()
    assert re.search(r"\d+ pages, \d+\.\d/s, \d+ known, \d+ waiting, 0 errors", text)
    assert "127.0.0.1" in text
    assert shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l") >= 0
    assert "30 pages" in text.splitlines()[-1]


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "policy", "content", "links"),
    [
        ({}, "host-diverse", None, None),
        ({"topic": "a b"}, "best-first", {"topic": "a b"}, {"topic": "a b"}),
        ({"keywords": ("x", "y z")}, "best-first", {"keywords": ["x", "y z"]}, {"topic": "x y z"}),
        ({"keywords": ("x",), "topic": "a"}, "best-first", {"keywords": ["x"]}, {"topic": "a"}),
        ({"classifier": Path("m.skops")}, "host-diverse", {"classifier": "m.skops"}, None),
        (
            {"classifier": Path("m.skops"), "topic": "a"},
            "best-first",
            {"classifier": "m.skops"},
            {"topic": "a"},
        ),
        ({"topic": "a", "settings": {"policy": "opic"}}, "opic", {"topic": "a"}, {"topic": "a"}),
    ],
)
def test_topic_keywords_and_classifier_choose_the_scorers(given, policy, content, links):
    settings = settings_of(Path("c"), CrawlOptions(**given), None, ())
    assert (settings["INLINK_POLICY"], settings["INLINK_CONTENT_SCORER"], settings["INLINK_LINK_SCORER"]) == (
        policy,
        content,
        links,
    )


def test_a_preset_bounds_the_crawl_and_says_the_delay():
    preset = load("wikipedia")
    settings = settings_of(Path("c"), CrawlOptions(), preset, ())
    assert settings["INLINK_RULES"]["allow"] == (r"^https://en\.wikipedia\.org/wiki/",)
    assert settings["INLINK_POLITENESS"]["delay"] == settings["DOWNLOAD_DELAY"] == 1.0
    settings = settings_of(
        Path("c"),
        CrawlOptions(settings={"politeness": {"delay": 5}, "rules": {"allow": ["/wiki/A"]}}),
        preset,
        (),
    )
    assert settings["INLINK_RULES"]["allow"] == ("/wiki/A",)
    assert settings["INLINK_POLITENESS"]["delay"] == 5


def test_nothing_listens_and_robots_are_obeyed():
    settings = settings_of(Path("c"), CrawlOptions(), None, ())
    assert settings["EXTENSIONS_BASE"] == {}
    assert settings["COOKIES_ENABLED"] is settings["HTTPCACHE_ENABLED"] is False
    assert settings["ROBOTSTXT_OBEY"] is True


def test_urls_files_and_titles_give_the_beginnings():
    given = ("example.org", "HTTPS://Example.com/a#b", "example.net:8080/x?y")
    assert beginnings(given, CrawlOptions(), None) == [
        "http://example.org/",
        "https://example.com/a",
        "http://example.net:8080/x?y",
    ]
    assert folder_for(["http://www.Example.org:8080/x"]) == Path("www.example.org.crawl")
    with pytest.raises(ParameterError, match="no URL to begin at"):
        folder_for([])


@pytest.mark.parametrize("delay", [-1.0, float("nan"), float("inf")])
def test_a_delay_that_is_none(delay):
    with pytest.raises(ParameterError, match=r"politeness\.delay must be a number of seconds"):
        settings_of(Path("c"), CrawlOptions(settings={"politeness": {"delay": delay}}), None, ())

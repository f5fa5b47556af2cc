"""``inlink crawl`` that is interrupted, killed, or runs out of disk: nothing is lost, and the same command goes on."""

import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("scrapy")

from warcio.archiveiterator import ArchiveIterator

import inlink
from crawlcommand import begin, crawl, lines_of
from inlink.crawl.folder import look
from sites import Answer, Says, Site, html

pytestmark = pytest.mark.slow

COUNT = 60
OPTIONS = ("-o", "c", "--items", "i.jsonl", "--warc", "w.warc.gz")


def tree(delay: float = 0.0, noise: int = 0) -> dict[str, Says]:
    return {
        f"/{n}": html(
            *(f"/{m}" for m in (2 * n, 2 * n + 1) if m <= COUNT),
            title=str(n),
            text=random.Random(n).randbytes(noise).hex(),
            delay=delay,
        )
        for n in range(1, COUNT + 1)
    } | {"/robots.txt": Answer("", 404)}


def answered(path: Path) -> set[str]:
    with path.open("rb") as file:
        return {
            record.rec_headers.get_header("WARC-Target-URI")
            for record in ArchiveIterator(file)
            if record.rec_type == "response"
        }


def crawled(folder: Path) -> set[str]:
    pages = look(folder).pages
    return {pages.url(int(page)) for page in pages.crawled()[0]}


def check_whole(folder: Path, site: Site) -> None:
    """All pages are everywhere."""
    everything = {f"{site.root}/{n}" for n in range(1, COUNT + 1)}
    assert crawled(folder / "c") == everything
    assert {one["url"] for one in lines_of(folder / "i.jsonl")} == everything
    assert answered(folder / "w.warc.gz") == everything | {f"{site.root}/robots.txt"}
    graph = inlink.read(folder / "w.warc.gz")
    assert (graph.num_arcs, graph.meta.get("skipped", {})) == (COUNT - 1, {})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_it_cleanly_and_the_same_command_goes_on(tmp_path, number):
    gate = threading.Event()
    pages = tree()
    pages["/5"] = html("/10", "/11", title="5", gate=gate)
    with Site(pages) as site:
        with begin(f"{site.root}/1", *OPTIONS, "--delay", 0, cwd=tmp_path, quiet=False) as run:
            site.wait_for_path("/5")
            run.send_signal(number)
            run.wait_for_error("stopping after")
            gate.set()  # what was being fetched may come to its end
            assert run.wait() == 130
            assert run.out.endswith("; interrupted; the same command continues\n")
        before = site.paths()
        assert f"{site.root}/5" in crawled(tmp_path / "c")
        assert len(before) < COUNT
        assert {one["url"] for one in lines_of(tmp_path / "i.jsonl")} == crawled(tmp_path / "c")
        pages = look(tmp_path / "c").pages
        assert {pages.page(page).state for page in range(pages.num_pages)} == {"crawled", "discovered"}
        crawl(f"{site.root}/1", *OPTIONS, "--delay", 0, cwd=tmp_path)
        assert sorted(site.paths()) == sorted(f"/{n}" for n in range(1, COUNT + 1))  # none twice
        check_whole(tmp_path, site)


@pytest.mark.parametrize("held", ["/5", "/robots.txt"])
def test_the_second_signal_ends_it_at_once(tmp_path, held):
    """Also before any page was fetched."""
    with Site(tree()) as site:
        site.pages[held] = Answer("", gate=threading.Event())  # never answered
        with begin(f"{site.root}/1", *OPTIONS, "--delay", 0, cwd=tmp_path, quiet=False) as run:
            site.wait_for_path(held)
            run.send_signal(signal.SIGINT)
            run.wait_for_error("stopping after")
            run.send_signal(signal.SIGINT)
            assert run.wait() == 130
            assert (
                run.err.splitlines()[-1] == "inlink: interrupted twice; the same command continues the crawl"
            )
            assert run.err.partition("stopping after")[2].count("\n") == 2
        site.pages = tree()
        crawl(f"{site.root}/1", *OPTIONS, "--delay", 0, cwd=tmp_path)
        assert [one.path for one in site.asked].count(held) == 2
        check_whole(tmp_path, site)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_kill_9_at_any_moment(tmp_path, seed):
    """Killed again and again: what the crawl knows as crawled is in each file, and in the end all is everywhere."""
    moments = random.Random(seed)
    with Site(tree(delay=0.005)) as site:
        for _ in range(2):
            before = len(site.paths())
            with begin(f"{site.root}/1", *OPTIONS, "--delay", 0, cwd=tmp_path) as run:
                site.wait_for(before + moments.randrange(1, 14))
                run.kill()
                assert run.wait() == -9
            if (tmp_path / "c" / "header.json").exists():
                known = crawled(tmp_path / "c")
                whole = (tmp_path / "i.jsonl").read_text().rpartition("\n")[0].splitlines()
                assert all(any(f'"{url}"' in line for line in whole) for url in known)
        crawl(f"{site.root}/1", *OPTIONS, "--delay", 0, cwd=tmp_path)
        check_whole(tmp_path, site)


def test_a_full_disk_ends_it_with_one_line(tmp_path):
    """The WARC grows fastest, so it is what is cut short; none of its pages counts as crawled."""
    with Site(tree(noise=3000)) as site:
        crawl(f"{site.root}/1", *OPTIONS, "--delay", 0, "--pages", 1, cwd=tmp_path)  # kernels are compiled
        done = crawl(f"{site.root}/1", *OPTIONS, "--delay", 0, cwd=tmp_path, code=2, limit=60_000)
        assert (
            done.stderr
            == "inlink: w.warc.gz: cannot be written (File too large): free some space, and run the command again\n"
        )
        known = crawled(tmp_path / "c")
        assert 1 < len(known) < COUNT
        assert known <= answered(tmp_path / "w.warc.gz")
        assert known == {one["url"] for one in lines_of(tmp_path / "i.jsonl")}
        crawl(f"{site.root}/1", *OPTIONS, "--delay", 0, cwd=tmp_path)
        check_whole(tmp_path, site)


def test_a_full_disk_under_the_items(tmp_path):
    with Site(tree()) as site:
        crawl(f"{site.root}/1", "-o", "c", "--items", "i.jsonl", "--delay", 0, "--pages", 1, cwd=tmp_path)
        (tmp_path / "i.jsonl").write_text((tmp_path / "i.jsonl").read_text() + " " * 100_000 + "\n")
        options = ("-o", "c", "--items", "i.jsonl", "--delay", 0)
        done = crawl(f"{site.root}/1", *options, cwd=tmp_path, code=2, limit=101_000)
        assert (
            done.stderr
            == "inlink: i.jsonl: cannot be written (File too large): free some space, and run the command again\n"
        )
        lines = [line for line in (tmp_path / "i.jsonl").read_text().splitlines() if line.strip()]
        assert len(lines) == len(crawled(tmp_path / "c"))


def test_as_a_library_it_returns_a_summary(tmp_path):
    """Nothing is printed, and no warning given."""
    script = """
import sys, threading
from pathlib import Path
from inlink.scrapy.options import CrawlOptions
from inlink.scrapy.run import crawl
done = crawl((sys.argv[1],), Path("c"), CrawlOptions(pages=4, settings={"politeness": {"delay": 0}}), quiet=True)
print(done.crawled, done.failed, done.ending, done.standing.crawled, done.folder)
"""
    with Site(tree()) as site:
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", script, f"{site.root}/1"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
    assert (run.returncode, run.stdout, run.stderr) == (0, "4 0 pages 4 c\n", "")

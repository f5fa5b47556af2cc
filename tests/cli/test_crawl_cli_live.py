"""Commands that look into a crawl while another process writes it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import inlink
from foldercommands import COMMANDS, arguments, look_at, run, shell
from inlink.crawl.questions.about import writer_of
from inlink.store.format import RELOAD
from inlink.store.inbox import pending
from patience import wait_until

CRAWLER = """
import os, sys, time
from inlink import Crawl
from inlink.frontier.settings import Politeness
with Crawl(sys.argv[1], policy="breadth-first", politeness=Politeness(delay=0, in_flight=1000)) as crawl:
    crawl.seed(["http://a.example.com/"])
    number = 0
    while os.getppid() == int(sys.argv[2]):  # not longer than the test
        for lease in crawl.next(5):
            number += 1
            if "fail" in lease.url:
                crawl.failed(lease, "asked to", status=410)
                continue
            crawl.crawled(lease, [f"http://h{number % 50}.example.com/{number}/{k}" for k in range(10)], score=1.0)
        if number > 100:
            print(number, flush=True)
            time.sleep(0.03)
"""


@contextmanager
def crawling(folder: Path) -> Iterator[int]:
    """Another process that crawls and does not stop; its pid."""
    child = subprocess.Popen(
        [sys.executable, "-c", CRAWLER, folder, str(os.getpid())], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline(), "the crawler died"
        os.set_blocking(child.stdout.fileno(), False)
        yield child.pid
        assert child.poll() is None, "the crawler died"
    finally:
        child.kill()
        child.wait()
        child.stdout.close()  # type: ignore[union-attr]


def soon(what) -> None:
    wait_until(what, "what the crawl does between two calls", every=0.2)


@pytest.mark.slow
def test_all_commands_work_while_another_process_crawls(tmp_path: Path):
    folder = tmp_path / "c"
    with crawling(folder) as pid:
        assert writer_of(folder) == str(pid)
        first = json.loads(shell("crawl-info", folder, "--json", cwd=tmp_path))
        assert first["writer"] == str(pid)
        for command in COMMANDS:
            out = shell(*arguments(command, folder), cwd=tmp_path)
            assert out
        assert f"being crawled by process {pid}" in shell("next", folder, cwd=tmp_path, code=2)
        assert shell("rank", folder, cwd=tmp_path)
        assert len(shell("top", folder, "--foreign", "--uncrawled", cwd=tmp_path).splitlines()) == 10
        shell("build", folder, "-o", "g", cwd=tmp_path)
        assert inlink.Graph.open(tmp_path / "g").num_nodes > first["pages"]
        shell("export", folder, "-o", "x.parquet", cwd=tmp_path)
        for _ in range(5):  # whatever moment it is, what is told fits together
            lines = run("dump", "pages", folder).splitlines()[1:]
            assert [line.split("\t")[0] for line in lines] == [str(k) for k in range(len(lines))]
            pairs = [line.split("\t") for line in run("dump", "links", folder).splitlines()[1:]]
            assert {int(end) for pair in pairs for end in pair} <= set(
                range(len(run("find", folder, ".", "--seconds", 600).splitlines()))
            )
    assert writer_of(folder) is None  # it was killed
    assert json.loads(run("crawl-info", folder, "--json"))["writer"] is None


@pytest.mark.slow
def test_seeds_and_reloads_reach_a_running_crawl(tmp_path: Path):
    folder, url = tmp_path / "c", "http://new.example.org/fail"

    def state() -> str:
        told = run("find", folder, "new.example.org/fail$", "--seconds", 600)
        return run("why", folder, url).split("\n")[0].partition(": ")[2] if told else "unknown"

    with crawling(folder):
        assert "inbox" in shell("seed", folder, "-", cwd=tmp_path, stdin=f"{url}\t0.5\n")
        soon(lambda: state() == "gone, not waiting")
        with look_at(folder) as frontier:
            events = len(frontier.pages.frames.of_kind(RELOAD))
        assert "inbox" in shell("reload", folder, "--gone", cwd=tmp_path)
        soon(lambda: pending(folder) == [])

        def reloaded() -> bool:
            with look_at(folder) as frontier:
                return len(frontier.pages.frames.of_kind(RELOAD)) > events

        soon(reloaded)

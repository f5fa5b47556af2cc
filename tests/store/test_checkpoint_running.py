"""A running crawl has its checkpoints written by another process, whatever ends first."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from checkpoints import crawl_some, crawl_with_checkpoint, everything, from_checkpoint, keep, shown, without
from crawlstrategies import Clock, differences, opened
from inlink.base.clock import VirtualClock
from inlink.base.folder import Folder
from inlink.crawl import checkpointing
from inlink.crawl.crawl import Crawl
from inlink.errors import FolderError
from inlink.store.checkpoint import CHECKPOINT, VERSION
from inlink.store.log import EVENTS
from patience import wait_until


def crawl_until(crawl: Crawl, done: Callable[[], bool]) -> None:
    """Crawl pages, which begins and notes checkpoints, until something has happened."""
    pages = itertools.count(100)
    wait_until(lambda: crawl_some(crawl, next(pages), 1) or done(), "a checkpoint")


def covered(folder: Path) -> int:
    """The byte of the log up to which a folder's checkpoint holds; 0 if there is none."""
    try:
        return Folder(folder / CHECKPOINT, CHECKPOINT, VERSION).header.meta["extent"]["events_end"]
    except FolderError:
        # It is replaced now and then.
        return 0


@pytest.fixture
def processes(monkeypatch):
    """The processes that are started from now on."""
    started, popen = [], subprocess.Popen

    def start(*arguments, **options):
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    return started


@pytest.mark.slow
def test_a_running_crawl_writes_checkpoints_and_the_next_opening_uses_the_last(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointing, "LEAST_BYTES", 4096)
    folder, clock = tmp_path / "crawl", Clock()
    with opened(folder, clock, policy="opic") as crawl:
        crawl_until(crawl, lambda: covered(folder) > 0)
        first = covered(folder)
        # The process notes the checkpoint as its own after it has put it in place.
        crawl_until(crawl, lambda: covered(folder) > first and shown(folder)[0])
        crawl_some(crawl, 50_000, 5)
        # No checkpoint is written at the end, as after kill -9.
        monkeypatch.setattr(checkpointing, "LEAST_BYTES", 1 << 30)
    assert first < covered(folder) < (folder / EVENTS).stat().st_size
    copy = without(folder, tmp_path / "folded")
    with Crawl(folder, clock=clock) as one, Crawl(copy, clock=clock) as other:
        assert from_checkpoint(one)
        assert not differences(everything(one), everything(other))


@pytest.mark.slow
def test_closing_ends_the_process_and_leaves_no_unfinished_checkpoint(tmp_path, monkeypatch, processes):
    monkeypatch.setattr(checkpointing, "LEAST_BYTES", 4096)
    with opened(tmp_path / "crawl", Clock(), policy="opic") as crawl:
        crawl_some(crawl)
        (process,) = processes
        # A checkpoint is begun as soon as the process has read the log.
        wait_until(
            lambda: list((tmp_path / "crawl").glob(".checkpoint.*")) or process.poll() is not None, "it"
        )
    assert process.poll() is not None
    assert not list((tmp_path / "crawl").glob(".*"))
    assert shown(tmp_path / "crawl")[0]


def test_virtual_time_has_no_processes(tmp_path, monkeypatch, processes):
    monkeypatch.setattr(checkpointing, "LEAST_BYTES", 512)
    with Crawl(tmp_path / "crawl", clock=VirtualClock()) as crawl:
        crawl_some(crawl)
    assert not processes


@pytest.mark.parametrize("why", ["no program", "an error", "nonsense", "no memory"])
def test_a_checkpoint_that_fails_is_told_and_the_crawl_goes_on(tmp_path, monkeypatch, caplog, processes, why):
    monkeypatch.setattr(checkpointing, "LEAST_BYTES", 4096)
    program = tmp_path / "program"
    if why == "no memory":
        monkeypatch.setattr(checkpointing, "_BYTES_A_PAGE", 1 << 60)
    else:
        monkeypatch.setattr(sys, "executable", str(program))
    if why in ("an error", "nonsense"):
        said = '{"error": "it is full"}' if why == "an error" else "nonsense"
        program.write_text(f"#!/bin/sh\necho '{said}'\nexit 2\n")
        program.chmod(0o755)
    with opened(tmp_path / "crawl", Clock(), policy="opic") as crawl:
        if why == "no memory":
            crawl_some(crawl)
            assert not processes
            assert not caplog.messages
        else:
            crawl_until(crawl, lambda: bool(caplog.messages))
            said = {"no program": "No such file", "an error": "it is full", "nonsense": "ended with code 2"}[
                why
            ]
            assert "cannot write a checkpoint while the crawl runs" in caplog.messages[0]
            assert said in caplog.messages[0]
        assert not covered(tmp_path / "crawl")
    assert shown(tmp_path / "crawl")[0]


DIES = """
import os, signal, sys
from inlink.crawl import checkpointing
from inlink.crawl.crawl import Crawl
checkpointing.LEAST_BYTES = 512
crawl = Crawl(sys.argv[1], clock=lambda: 1_000_000.0)
checkpoints = crawl._upkeep._checkpoints
checkpoints.look_at = 0
crawl.crawled("http://h0.com/0", ["http://later.com/"])
process = checkpoints._process
if sys.argv[2] == "later":
    process.stdout.read()
print(process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["at once", "later"])
def test_a_kill_of_the_crawl_ends_the_process_and_loses_nothing(tmp_path, moment):
    kept = crawl_with_checkpoint(tmp_path / "crawl")
    ended = subprocess.run(
        [sys.executable, "-c", DIES, str(kept), moment],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    wait_until(lambda: not is_running(int(ended.stdout)), "the process of the checkpoint")
    copy = without(kept, tmp_path / "folded")
    assert covered(kept) == (kept / EVENTS).stat().st_size or moment == "at once"
    with Crawl(kept, clock=Clock()) as one, Crawl(copy, clock=Clock()) as other:
        assert from_checkpoint(one)
        assert not differences(everything(one), everything(other))
        assert one.page("http://later.com/").state == "discovered"
        keep(one)
    assert not list(kept.glob(".*"))


def is_running(process: int) -> bool:
    """Return True if a process of this user exists and has not ended."""
    try:
        os.kill(process, 0)
        status = Path(f"/proc/{process}/stat")
        return not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False

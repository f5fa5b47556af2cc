"""System calls that fail, and Ctrl-C, at random moments of calls on a crawl; every acknowledged event must be kept.

``python -m torture.faults FOLDER --seed 1 --trials 100`` makes trials and prints the outcome of each. It runs in a
process into which ``faults.c`` is preloaded: :func:`failed_calls` and :func:`interrupted_calls` start it.
"""

import argparse
import ctypes
import errno
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import inlink
from inlink.base.clock import VirtualClock
from inlink.crawl import checkpointing
from inlink.errors import InlinkError
from inlink.store import spill, urls
from inlink.store.backup import backup
from patience import PATIENCE
from storefolders import look_up
from torture.folders import EASY

__all__ = ["failed_calls", "interrupted_calls", "preloaded"]

CALLS = {"write": 8.0, "fsync": 2.0, "rename": 1.0, "ftruncate": 0.3, "mmap": 4.0, "read": 6.0, "open": 8.0}
"""The kinds of system calls, in the order of ``faults.c``, and how many of them usually come before the first fault."""

ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EROFS", "ENOMEM", "EMFILE", "EACCES", "EINTR")
AT_ONCE, ROUNDS = 5, 8
"""Number of trials of one process, and of rounds of a trial, each with one fault."""

FINE = ("right", "refused", "not fired")

POLICIES = ("host-diverse", "pagerank", "hits", "opic", "breadth-first", "best-first")


@cache
def preloaded() -> str | None:
    """The library to preload, built by the C compiler of ``ziglang`` or by gcc; None if there is neither."""
    if not sys.platform.startswith("linux"):
        return None
    source, target = (
        Path(__file__).with_name("faults.c"),
        Path(mkdtemp(prefix="inlink-faults-")) / "faults.so",
    )
    for compiler in ([sys.executable, "-m", "ziglang", "cc"], ["gcc"], ["cc"]):
        with suppress(OSError, subprocess.CalledProcessError):
            command = [*compiler, "-shared", "-fPIC", "-O1", "-o", target, source, "-ldl"]
            subprocess.run(command, check=True, capture_output=True)
            return str(target)
    return None


def failed_calls(random: Random, place: Path) -> list[str]:
    """Some trials in which system calls fail."""
    library = preloaded()
    if library is None:
        sys.stderr.write("failed calls: skipped, because there is neither ziglang nor gcc\n")
        time.sleep(1)
        return []
    return _trials(random, place, "faults", library)


def interrupted_calls(random: Random, place: Path) -> list[str]:
    """Some trials in which Ctrl-C comes at a random moment of a call."""
    return _trials(random, place, "interrupts", "")


def _trials(random: Random, place: Path, kind: str, library: str) -> list[str]:
    command = [sys.executable, "-m", "torture.faults", place, "--seed", str(random.random()), "--kind", kind]
    run = subprocess.run(
        [*command, "--trials", str(AT_ONCE)], env=os.environ | {"LD_PRELOAD": library}, capture_output=True,
        text=True, check=False, timeout=PATIENCE, cwd=Path(__file__).parents[1],
    )  # fmt: skip
    if run.returncode:
        return [f"the process ended with {run.returncode}: {(run.stdout + run.stderr)[-600:]}"]
    return run.stdout.splitlines()


# -- in the process of the trials -------------------------------------------------------------------------------------


class Trial:
    """One trial: a crawl, calls on it, and what it acknowledged.

    Parameters
    ----------
    random : Random
    place : Path
        An empty folder.
    kind : {"faults", "interrupts"}
    """

    def __init__(self, random: Random, place: Path, kind: str) -> None:
        self.random, self.place, self.kind = random, place, kind
        self.folder = place / "crawl"
        self.crawl: inlink.Crawl | None = None
        self.settings: dict[str, Any] = {
            "policy": random.choice(POLICIES),
            "sync": random.choice(["second", "full"]),
            "sink_duplicates": random.random() < 0.2,
            "politeness": EASY,
        }
        self.clock = VirtualClock()
        self.seeded: set[str] = set()
        self.crawled: dict[str, list[str]] = {}
        self.failed: set[str] = set()
        self.refused = self.interrupted = self.backups = 0
        self.done: list[str] = []

    def run(self) -> list[str]:
        """Run the trial; return the outcome of each of its rounds in which a fault or an interruption came."""
        outcomes = []
        for _ in range(ROUNDS):
            self.refused = self.interrupted = 0
            self.done = []
            outcomes.append(self._round())
            if outcomes[-1] not in FINE:
                break
        return [outcome for outcome in outcomes if outcome != "not fired"]

    def _round(self) -> str:
        """Make some calls with one fault or interruption, then look for all that was acknowledged until now."""
        random, fired = self.random, 0
        steps = ["open", *random.choices(list(STEPS), k=random.randrange(1, 7))]
        steps += ["close"] * (random.random() < 0.5)
        begin = random.randrange(len(steps) * 2 // 3 + 1)
        self.fault = self._drawn() if self.kind == "faults" else ""
        try:
            for number, name in enumerate(steps):
                if number == begin and self.kind == "faults":
                    self._arm()
                self._call(name, number == begin)
            fired = self._disarm()
            self._call("close", False)
            self._compare()
        except Exception as error:
            where = "".join(traceback.format_tb(error.__traceback__)[-3:])
            return f"{self.fault}{self.done}: {type(error).__name__}: {error}; {' | '.join(where.split())}"
        finally:
            self._disarm()
        if not (fired or self.interrupted):
            return "not fired"
        return "refused" if self.refused or self.interrupted else "right"

    def _drawn(self) -> str:
        random = self.random
        self.call, self.error = random.choice([*CALLS]), random.choice(ERRORS)
        self.nth = int(random.expovariate(1 / CALLS[self.call]))
        self.times = random.choice([1, 1, 3, 1 << 30])
        if self.error == "EINTR":
            # It never comes for ever.
            self.times = min(self.times, 3)
        self.half = self.call in ("write", "read") and random.random() < 0.2
        return f"{self.call} {self.nth} {'short' if self.half else self.error} x {self.times}: "

    def _arm(self) -> None:
        shim().fault_arm(
            os.fsencode(self.place), [*CALLS].index(self.call), self.nth, getattr(errno, self.error), self.times,
            int(self.half),
        )  # fmt: skip

    def _disarm(self) -> int:
        return int(shim().fault_disarm()) if self.kind == "faults" else 0

    def _call(self, name: str, interrupt: bool) -> None:
        """Make a call; it may end by an error of inlink, and by nothing else."""
        self.done.append(name)
        try:
            try:
                if interrupt and self.kind == "interrupts":
                    longest = self.random.choice([0.0003, 0.001, 0.006])
                    signal.setitimer(signal.ITIMER_REAL, longest * self.random.random())
                (STEPS | ENDS)[name](self)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except InlinkError as error:
            self.refused += 1
            if str(self.place) not in str(error):
                raise AssertionError(f"no file in {error}") from error
        except KeyboardInterrupt as error:
            self.interrupted += 1
            self.done[-1] += f" (interrupted in {traceback.extract_tb(error.__traceback__)[-1].name})"

    def _compare(self) -> None:
        """Open the crawl again; all that was acknowledged is there."""
        if not (self.folder / "header.json").exists():
            assert not self.seeded
            return
        with inlink.Crawl(self.folder, clock=self.clock, rerank_share=None) as crawl:
            for url in self.seeded:
                assert crawl.page(url) is not None, f"{url} was seeded, and is not known"
            for url, links in self.crawled.items():
                page = crawl.page(url)
                assert getattr(page, "state", None) == "crawled", f"{url} was crawled, and is {page}"
                known = [row.url for row in crawl.view.links(url).rows]
                assert set(known) == set(links), f"{url} has the links {known}, not {links}"
            for url in self.failed - self.crawled.keys():
                page = crawl.page(url)
                assert getattr(page, "errors", 0), f"{url} failed, and is {page}"
        # What a call without any files could not remove, the next call that writes there removes.
        _back_up(self)
        left = [path.name for path in self.place.iterdir() if path.name.startswith(".")]
        assert not left, f"{left} are left behind"


def _open(trial: Trial) -> None:
    trial.crawl = inlink.Crawl(trial.folder, clock=trial.clock, **trial.settings)


def _close(trial: Trial) -> None:
    crawl, trial.crawl = trial.crawl, None
    if crawl is not None:
        crawl.close()


def _seed(trial: Trial) -> None:
    some = [f"http://s{trial.random.randrange(6)}.example/{trial.random.randrange(40)}" for _ in range(3)]
    if trial.crawl is not None:
        trial.crawl.seed(some)
        trial.seeded.update(some)


def _visit(trial: Trial) -> None:
    if trial.crawl is None:
        return
    for lease in trial.crawl.next(2):
        links = sorted(
            {f"http://h{trial.random.randrange(5)}.example/{trial.random.randrange(60)}" for _ in range(4)}
        )
        if trial.crawl.crawled(lease, links, fingerprint=trial.random.getrandbits(64)):
            trial.crawled[lease.url] = links


def _fail(trial: Trial) -> None:
    if trial.crawl is not None:
        for lease in trial.crawl.next(1):
            if trial.crawl.failed(lease, "broken", retry=False):
                trial.failed.add(lease.url)


def _look(trial: Trial) -> None:
    if trial.crawl is not None:
        for url in [*trial.crawled][:2]:
            trial.crawl.page(url)
            trial.crawl.why(url)
            trial.crawl.view.links(url, "to")
        trial.crawl.view.order(5)
        trial.crawl.view.find("h1")
        trial.crawl.view.dump("links")
        trial.crawl.standing()


def _view(trial: Trial) -> None:
    with inlink.CrawlView.open(trial.folder) as view:
        for url in [*trial.seeded][:1]:
            view.page(url)
            view.path(url)
        if trial.random.random() < 0.5:
            view.order(5)
            view.errors()
            view.dump()


def _look_up(trial: Trial) -> None:
    for url in [*trial.seeded][:2]:
        look_up(trial.folder, url)


def _back_up(trial: Trial) -> None:
    trial.backups += 1
    backup(trial.folder, trial.place / f"backup{trial.backups}")


STEPS: dict[str, Callable[[Trial], None]] = {
    "seed": _seed,
    "visit": _visit,
    "visit again": _visit,
    "fail": _fail,
    "look": _look,
    "view": _view,
    "look up": _look_up,
    "back up": _back_up,
    "rank": lambda trial: trial.crawl and trial.crawl.rerank(wait=True),
    "set": lambda trial: trial.crawl and trial.crawl.change_settings(max_retries=trial.random.randrange(5)),
    "hello": lambda trial: trial.crawl and trial.crawl.desk.hello("one"),
    "pause": lambda trial: trial.crawl and (trial.crawl.pause(), trial.crawl.resume()),
}
ENDS: dict[str, Callable[[Trial], None]] = {"open": _open, "close": _close}


@cache
def shim() -> Any:
    """The preloaded library."""
    return ctypes.CDLL(None)


def main() -> int:
    """Make trials, and print the outcome of each."""
    parser = argparse.ArgumentParser(prog="torture.faults", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--kind", choices=["faults", "interrupts"], default="faults")
    parser.add_argument("--trials", type=int, default=AT_ONCE)
    options = parser.parse_args()
    os.environ.pop("LD_PRELOAD", None)
    logging.disable()
    # Every crawl writes an index, a checkpoint and finished columns.
    urls._FEW, checkpointing.LEAST_BYTES, spill.LOOK, spill.STRETCH = 8, 512, 4, 4096
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    # An exception that nobody gets is a violation too.
    unseen = list[str]()
    threading.excepthook = lambda given: unseen.append(f"in {given.thread}: {given.exc_value!r}")
    sys.unraisablehook = lambda given: unseen.append(f"in {given.object!r}: {given.exc_value!r}")
    with suppress(FileNotFoundError):
        shutil.rmtree(options.folder / "trial")
    files = 0
    for number in range(options.trials + 1):
        place = options.folder / "trial"
        place.mkdir(parents=True)
        outcomes = Trial(Random(f"{options.seed} {number}"), place, options.kind).run()
        shutil.rmtree(place)
        if unseen:
            outcomes.append(f"trial {number}: nobody got the error {unseen.pop()}")
        opened = len([*Path("/proc/self/fd").iterdir()])
        if options.kind == "faults" and number > 1 and opened > files and {*outcomes} <= {*FINE}:
            outcomes.append(f"trial {number}: {opened - files} files are left open")
        files = opened
        # The first trial loads modules, which are no files of the crawl.
        if number:
            sys.stdout.writelines(" ".join(outcome.split()) + "\n" for outcome in outcomes)
    return 0


if __name__ == "__main__":
    sys.exit(main())

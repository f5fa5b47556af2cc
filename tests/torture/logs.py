"""Logs whose bytes were moved, and second writers that bypass the lock."""

import contextlib
import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from inlink import Crawl
from inlink.errors import InlinkError
from inlink.store.log import EVENTS, URLS
from inlink.store.reader import known_pages
from inlink.store.repair import examine, repair
from inlink.store.verify import verify
from patience import PATIENCE
from torture.folders import EASY, make_crawl
from torture.kills import links_of
from torture.trial import command, until, verdict

__all__ = ["moved", "moved_log", "second_writer"]

_sound: dict[Path, tuple[dict[str, bytes], Any]] = {}


def moved(raw: bytes, random: Random) -> tuple[bytes, str]:
    """Insert, remove, cut off or swap bytes; say what was done."""
    at, size = random.randrange(len(raw)), random.choice([1, 2, 3, 7, 8, 64, 92, 500, 4096])
    what = random.choice(["inserted", "removed", "cut", "swapped", "repeated"])
    if what == "inserted":
        new = random.choice([bytes(size), random.randbytes(size), raw[at : at + size]])
        return raw[:at] + new + raw[at:], f"{len(new)} bytes inserted at byte {at}"
    if what == "removed":
        return raw[:at] + raw[at + size :], f"{size} bytes removed at byte {at}"
    if what == "cut":
        return raw[:at], f"cut at byte {at}"
    if what == "repeated":
        return raw[: at + size] + raw[at:], f"{size} bytes repeated at byte {at}"
    begin, middle, other, end = sorted(random.randrange(len(raw) + 1) for _ in range(4))
    blocks = raw[:begin], raw[other:end], raw[middle:other], raw[begin:middle], raw[end:]
    return b"".join(blocks), f"bytes {begin} to {middle} and {other} to {end} swapped"


def _state(folder: Path) -> Any:
    """What a reader sees of a crawl."""
    with contextlib.closing(known_pages(folder)) as pages:
        return (
            pages.num_pages,
            pages.tally.events,
            pages.states[: pages.num_pages].tobytes(),
            [pages.url(page) for page in range(pages.num_pages)],
            np.asarray(pages.crawled()[1]).tobytes(),
        )


def moved_log(random: Random, place: Path) -> list[str]:
    """One change that moves bytes of a closed crawl's log, then a reader, `verify` and `repair`."""
    folder = place / "moved"
    if folder not in _sound:
        make_crawl(folder, Random(8))
        raws = {name: (folder / name).read_bytes() for name in (EVENTS, URLS)}
        _sound[folder] = raws, _state(folder)
    raws, state = _sound[folder]
    name = random.choice([EVENTS, EVENTS, URLS])
    raw, did = moved(raws[name], random)
    if raw == raws[name]:
        return ["right"]
    (folder / name).write_bytes(raw)
    outcomes = []
    # Bytes after the last event are a torn tail.
    alike = raw.startswith(raws[name])
    try:
        for way in (_state, verify):
            try:
                found = way(folder)
            except InlinkError as error:
                outcomes.append("refused" if not alike and "\n" not in str(error) else f"{did}: {error}")
            else:
                right = alike and found in (state, None)
                outcomes.append("right" if right else f"{name}, {did}: {way.__name__} saw no damage")
        if random.random() < 0.01:
            seen = [
                verdict(command(*given), None)
                for given in (("dump", "pages", folder), ("info", folder, "--verify"))
            ]
            outcomes += [one if one == ("right" if alike else "refused") else f"{did}: {one}" for one in seen]
        if bool(examine(folder).damages) == alike:
            outcomes.append(f"{name}, {did}: repair saw {'damage' if alike else 'no damage'}")
        if random.random() < 0.1:
            shutil.rmtree(place / "repaired", ignore_errors=True)
            repair(folder, place / "repaired")
            verify(place / "repaired")
            number = _state(place / "repaired")[0]
            outcomes.append("right" if number == state[0] else f"{name}, {did}: repair left {number} pages")
    finally:
        (folder / name).write_bytes(raws[name])
    return outcomes


def second_writer(random: Random, place: Path) -> list[str]:
    """Two processes that crawl in one folder, or in a copy of it by hard links: nothing acknowledged is lost."""
    way = random.choice(["lock removed", "hard links", "no locks"])
    folders = [place / "first", place / ("copy" if way == "hard links" else "first")]
    for folder in (place / "first", place / "copy"):
        shutil.rmtree(folder, ignore_errors=True)
    over, told = place / "over", [place / "told-0", place / "told-1"]
    for path in (over, *told):
        path.unlink(missing_ok=True)
    first = _child(lambda: _crawl(folders[0], told[0], over, locks=way != "no locks"), place / "error-0")
    enough = until(PATIENCE)
    wanted = random.randrange(1, 40)
    while _lines(told[0]) < wanted and not enough():
        time.sleep(0.002)
    if way == "hard links":
        shutil.copytree(folders[0], folders[1], copy_function=os.link)
    if way != "no locks":
        (folders[1] / "lock").unlink()
    second = _child(lambda: _crawl(folders[1], told[1], over, locks=way != "no locks"), place / "error-1")
    # Both crawl until one of them is stopped, or for a while.
    brief = until(random.uniform(0.2, 1.5))
    while not brief() and not any((place / f"error-{k}").stat().st_size for k in (0, 1)):
        time.sleep(0.01)
    over.touch()
    codes = [_ended(first), _ended(second)]
    errors = [(place / f"error-{k}").read_text() for k in (0, 1)]
    for code, error in zip(codes, errors, strict=True):
        if code not in (0, 2) or (code == 2 and error.count("\n") != 1):
            return [f"{way}: ended with {code}: {error[-500:]}"]
    if way != "hard links" and 2 not in codes:
        return [f"{way}: two writers, and neither was told"]
    if way == "hard links" and codes != [0, 0]:
        return [f"{way}: {' '.join(errors)}"]
    for folder, path in zip(folders, told, strict=True):
        urls = path.read_text().split() if path.exists() else []
        try:
            with Crawl(folder, policy="breadth-first", politeness=EASY, rerank_share=None) as again:
                lost = [url for url in urls if (page := again.page(url)) is None or page.state != "crawled"]
        except InlinkError as error:
            return [f"{way}: {folder.name} does not open: {error}"]
        if lost:
            return [f"{way}: {len(lost)} of {len(urls)} acknowledged answers are lost: {' '.join(errors)}"]
    return ["refused" if 2 in codes else "right"]


def _crawl(folder: Path, told: Path, over: Path, *, locks: bool) -> None:
    """Crawl until a file appears, and write down each answer that was acknowledged."""
    if not locks:
        import fcntl

        fcntl.flock = lambda *_: None
    with Crawl(folder, policy="breadth-first", politeness=EASY, rerank_share=None) as crawl:
        file = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        crawl.seed([f"http://{told.name}.example/0"])
        while not over.exists():
            for lease in crawl.next(3):
                crawl.crawled(lease, links_of(lease.url))
                os.write(file, f"{lease.url}\n".encode())


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _child(work: Callable[[], None], error: Path) -> int:
    """Start a process that exits with 0, or with 2 after an error of inlink's, which it writes to a file."""
    error.write_bytes(b"")
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        work()
        code = 0
    except InlinkError as refused:
        error.write_text(f"{refused}\n")
        code = 2
    except BaseException:
        error.write_text(traceback.format_exc())
    finally:
        os._exit(code)


def _ended(pid: int) -> int:
    """The exit code of a child; a child that hangs is killed."""
    late = until(PATIENCE)
    while not (done := os.waitpid(pid, os.WNOHANG))[0]:
        if late():
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
    return os.waitstatus_to_exitcode(done[1])

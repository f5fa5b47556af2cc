"""Storage of figures, with a description of the machine."""

import hashlib
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "TIMED", "keep", "machine", "memory", "sources", "stamp"]

FOLDER = Path(__file__).parent / "results"
SOURCE = Path(__file__).parents[1] / "src" / "inlink"

_CRAWL = ("urls", "store", "frontier", "crawl")
TIMED = {
    "rank": ("graph", "rank"),
    "measures": ("graph", "rank"),
    "build": ("graph", "sources"),
    "extract": ("urls", "archives"),
    "crawl": _CRAWL,
    "space": _CRAWL,
    "view": _CRAWL,
    "pauses": (*_CRAWL, "reranking"),
    "rerank": ("store", "reranking"),
    "spider": (*_CRAWL, "client", "scrapy"),
    "manual": (*_CRAWL, "client", "scrapy"),
    "fleet": (*_CRAWL, "client", "scrapy", "server"),
    "server": (*_CRAWL, "client", "server"),
    "edge": ("client", "server"),
    "start": ("base", "cli"),
    "release": ("urls", "archives", "graph", "rank", "sources"),
}
"""The rooms of inlink that a benchmark times most."""


def machine() -> dict[str, Any]:
    """A description of the machine for readers."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    return {"processor": model, "cores": len(os.sched_getaffinity(0)), "python": platform.python_version()}


def memory(field: str, process: int | str = "self") -> int:
    """VmRSS or VmHWM (the highest VmRSS so far) of a process, in bytes; 0 for one that has ended.

    Not ``ru_maxrss``: Linux carries that over from the process that forked, through exec, so that a small program
    started by a large one seems as large.
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(field)), 0)


def sources(name: str) -> dict[str, Any]:
    """Return the commit that is checked out, and a digest of the source files of each room that a benchmark times.

    The commit is "unknown" without git, and if files of inlink were changed but not committed.
    """
    return {
        "commit": _commit(),
        "sources": {room: _digest(room) for room in TIMED.get(name.split("-")[0], ())},
    }


def _digest(room: str) -> str:
    digest = hashlib.sha256()
    for path in sorted((SOURCE / room).rglob("*.py")):
        digest.update(f"{path.relative_to(SOURCE)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=SOURCE, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return "unknown" if git("status", "--porcelain", ".") else git("rev-parse", "--short=7", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def stamp(figures: dict[str, Any]) -> str:
    """Say at which commit figures were measured, and whether the files that they time have changed since."""
    commit, timed = figures.get("commit", "unknown"), figures.get("sources", {})
    where = "measured at an unknown commit" if commit == "unknown" else f"measured at {commit}"
    same = timed and all(_digest(room) == digest for room, digest in timed.items())
    return where if same else f"{where}, before a change"


def keep(folder: Path, name: str, figures: dict[str, Any]) -> None:
    """Store figures as JSON, and add their commit and digests of the source files that they time."""
    figures |= sources(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")

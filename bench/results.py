"""Storage of figures, with a description of the machine."""

import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "age", "digests", "keep", "machine", "memory"]

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


def digests(name: str, source: Path = SOURCE) -> dict[str, str]:
    """Return a digest of the source files of each room that a benchmark times, by room."""
    found = {}
    for room in TIMED.get(name.split("-")[0], ()):
        digest = hashlib.sha256()
        for path in sorted((source / room).rglob("*.py")):
            digest.update(f"{path.relative_to(source)}\0".encode() + path.read_bytes())
        found[room] = digest.hexdigest()[:16]
    return found


def age(name: str, figures: dict[str, Any], source: Path = SOURCE) -> str:
    """Say which rooms have changed since figures were measured; empty if none has."""
    before, now = figures.get("sources"), digests(name, source)
    if before is None:
        return "Measured before a change of the source files, or without a record of them."
    changed = [room for room in now if before.get(room) != now[room]]
    return f"Measured before a change of the files in {', '.join(changed)}." if changed else ""


def keep(folder: Path, name: str, figures: dict[str, Any]) -> None:
    """Store figures as JSON, with digests of the source files that they time."""
    figures = {**figures, "sources": digests(name)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")

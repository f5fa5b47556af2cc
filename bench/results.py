"""Storage of figures, with a description of the machine."""

import json
import os
import platform
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "keep", "machine", "memory"]

FOLDER = Path(__file__).parent / "results"


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


def keep(folder: Path, name: str, figures: dict[str, Any]) -> None:
    """Store figures as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")

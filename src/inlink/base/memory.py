"""The machine's memory, and processes that work for another one and give way to it."""

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["give_way", "memory_left"]

NICENESS = 10


def memory_left() -> int | None:
    """The bytes of memory that processes can still get on this machine; None if the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    left = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    return left[0] if left else None


def give_way() -> None:
    """Let other processes go first: on the processors, and when memory becomes short."""
    os.nice(NICENESS)
    # If memory becomes short, Linux ends this process before the one that it works for.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")

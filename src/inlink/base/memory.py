"""The memory of the machine and of the process's cgroups, what graphs may take of it, and processes that give way."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from inlink.errors import ParameterError

NICENESS = 10
ROOT = Path("/")
"""The folder that holds ``proc`` and ``sys``."""

FREE_NODES = 8_000_000
"""The number of numbered nodes that an input of any size may have, within 300 MB."""

BYTES_A_NODE = 24
"""The memory that building takes for a node besides its name: about 20 bytes."""
# Bytes of input for each further node. A line "12345678 23456789" allows two nodes, so that a list passes in which each
# number occurs. With the arcs, the memory stays below 8 bytes for each byte of input.
_BYTES_FOR_NODE = 8
# Less memory is not asked for. Reading the limits takes a tenth of a millisecond.
_LITTLE = 1 << 26
_bounding = Lock()


def memory_left() -> int | None:
    """The bytes of memory that this process can still get; None if the system does not tell.

    They are the least of what the machine has left, and of what each cgroup on the way to the process's own has left
    (version 1 and 2). Pages of files in memory count as left, because the system can drop them.
    """
    left = []
    with suppress(OSError):
        lines = (ROOT / "proc/meminfo").read_text().splitlines()
        left += [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    return min([*left, *_left_in_cgroups()], default=None)


def _left_in_cgroups() -> Iterator[int]:
    try:
        lines = (ROOT / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if not controllers:
            top, limits, used = ROOT / "sys/fs/cgroup", ["memory.max", "memory.high"], "memory.current"
        elif "memory" in controllers.split(","):
            top, limits = ROOT / "sys/fs/cgroup/memory", ["memory.limit_in_bytes"]
            used = "memory.usage_in_bytes"
        else:
            continue
        folder = top / place.lstrip("/")
        for group in [folder, *folder.parents]:
            for name in limits:
                # A group outside the container, or without a limit ("max").
                with suppress(OSError, ValueError):
                    limit = int((group / name).read_text())
                    yield max(limit - int((group / used).read_text()) + _droppable(group), 0)
            if group == top:
                break


def _droppable(group: Path) -> int:
    """Bytes of files that a cgroup holds in memory."""
    with suppress(OSError, ValueError):
        pairs = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        for prefix in ("total_", ""):
            if f"{prefix}inactive_file" in pairs:
                return int(pairs[f"{prefix}inactive_file"]) + int(pairs.get(f"{prefix}active_file", 0))
    return 0


def require_memory(needed: int, what: str) -> None:
    """Refuse work that needs more bytes of memory than are left, before it allocates them.

    Raises
    ------
    inlink.errors.ParameterError
        Begins with `what`.
    """
    left = memory_left() if needed > _LITTLE else None
    if left is not None and needed > left:
        raise ParameterError(
            f"{what} need {needed / 1e6:,.0f} MB of memory, and {left / 1e6:,.0f} MB are left (the limits of cgroups "
            "count). Use a machine with more memory, or raise the limit."
        )


@contextmanager
def memory_bounded(more: int) -> Iterator[None]:
    """Let allocations in the block fail if they need more than ``more`` bytes beyond what the process has reserved.

    It is for libraries that unpack foreign data without a bound of their own. The bound is on address space and needs
    Linux; other systems have none. It holds for all threads of the process for this time, and one block runs at a time.

    Raises
    ------
    MemoryError
        Libraries raise it, or their own error, for an allocation that fails.
    """
    with _bounding:
        try:
            pages = int((ROOT / "proc/self/statm").read_text().split()[0])
        except OSError:
            yield
            return
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        bound = pages * resource.getpagesize() + more
        lowest = min([bound, *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY)])
        resource.setrlimit(resource.RLIMIT_AS, (lowest, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def check_nodes(nodes: int, size: int | None, place: str, max_node: int | None) -> None:
    """Refuse a number of numbered nodes that the input does not justify, or for which memory does not suffice.

    Parameters
    ----------
    nodes : int
        The number of nodes: one more than the largest number.
    size : int or None
        The bytes of the unpacked input. None: the numbers are the caller's own, or the input has data on each node.
    place : str
        Where the input has the largest number.
    max_node : int or None
        The largest number that the user allows, whatever the size of the input.

    Raises
    ------
    inlink.errors.ParameterError
        Names the place, the number and the remedy.
    """
    if max_node is not None and nodes > max_node + 1:
        raise ParameterError(
            f"{place}: node {nodes - 1:,} is above `max_node` (--max-node {max_node}). Raise it, or correct the number."
        )
    if max_node is None and size is not None and nodes > FREE_NODES + size // _BYTES_FOR_NODE:
        raise ParameterError(
            f"{place}: node {nodes - 1:,} means {nodes:,} nodes and {nodes * BYTES_A_NODE / 1e6:,.0f} MB of memory, "
            f"too much for an input of {size:,} bytes. If the number is right, use `max_node` (--max-node {nodes - 1})."
            " If numbers are names, use --nodes names."
        )
    require_memory(nodes * BYTES_A_NODE, f"{place}: the {nodes:,} nodes")


def give_way() -> None:
    """Let other processes go first: on the processors, and when memory becomes short."""
    os.nice(NICENESS)
    # If memory becomes short, Linux ends this process before the one that it works for.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")

"""inlink: out of core, both directions, names, all on disk at the end."""

from pathlib import Path

NAME = "inlink"
COMPUTES = "a graph's folder: out-rows, in-rows, names; out of core"
LARGEST = 1 << 62


def available() -> str | None:
    return None


def run(path: Path, folder: Path) -> int:
    import inlink

    return inlink.read(path, nodes="names", into=folder / "graph").num_arcs

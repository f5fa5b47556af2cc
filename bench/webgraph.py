"""A generated graph that looks like the web, for the benchmarks.

``python -m bench.webgraph`` writes 4.85 M nodes and 70 M arcs (LiveJournal's size) as NumPy files into the
benchmarks' data folder, once: pages stand in the order of their hosts, as sorted URLs give it; host sizes follow
Zipf's law; a quarter of the pages has no outlinks; most links stay near or within the host; lists of links are
copied from a page before; the links out are copied from links drawn so far, which gives indegrees a power law
(Kleinberg, Kumar, Raghavan, Rajagopalan & Tomkins, "The Web as a Graph", COCOON 1999). ``--lines`` writes the arcs
between made-up host names instead, one line each, in the shuffled order in which a crawl would meet the sources.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bench import kernels

__all__ = [
    "Arrays",
    "data_folder",
    "generate",
    "host_names",
    "load",
    "transposed",
    "write_lines",
    "write_npy",
]

DEFAULT_NODES, DEFAULT_ARCS = 4_850_000, 70_000_000
DANGLING = 0.25
PARTS = ("offsets", "targets", "in_offsets", "in_sources")

# Chosen by six bits, so 64 of each: half of them .com, half without www
_HEADS = (
    ["com."] * 32 + ["org."] * 8 + ["net."] * 5 + ["de.", "uk.co.", "ru.", "fr.", "jp.co.", "it.", "br.com."]
)
_HEADS += ["edu.", "nl.", "pl.", "info.", "eu.", "ca.", "au.com.", "es.", "io.", "ch.", "se.", "cz."]
_TAILS = [""] * 28 + [".www"] * 28 + [".blog", ".m", ".shop", ".news", ".forum", ".en", ".docs", ".static"]


class Arrays(NamedTuple):
    """A graph in both directions: offsets uint64[n + 1], nodes uint32[m], rows increasing."""

    offsets: npt.NDArray[np.uint64]
    targets: npt.NDArray[np.uint32]
    in_offsets: npt.NDArray[np.uint64]
    in_sources: npt.NDArray[np.uint32]

    @property
    def num_nodes(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_arcs(self) -> int:
        return len(self.targets)


def data_folder(options: str | None = None) -> Path:
    """Make the folder of large files: the argument, else INLINK_BENCH_DATA, else one in the temporary folder."""
    folder = Path(
        options or os.environ.get("INLINK_BENCH_DATA") or Path(tempfile.gettempdir()) / "inlink-bench"
    )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _uniform(count: int, seed: int) -> npt.NDArray[np.float64]:
    """Numbers in (0, 1), float64[count]: splitmix64 at ``count`` places at once."""
    with np.errstate(over="ignore"):
        z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed) * np.uint64(1 << 40)) * kernels.GOLDEN
        z = (z ^ (z >> kernels.SHIFT1)) * kernels.MIX1
        z = (z ^ (z >> kernels.SHIFT2)) * kernels.MIX2
        z ^= z >> kernels.SHIFT3
    return (((z >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52).astype(np.float64)


def _host_starts(num_nodes: int, seed: int) -> npt.NDArray[np.uint64]:
    """The first node of each host, uint64[h + 1]: sizes by Zipf's law, none above a fiftieth of all nodes."""
    largest = max(num_nodes // 50, 1)
    ends = np.zeros(0, np.uint64)
    count = max(num_nodes // 8, 16)
    while len(ends) == 0 or ends[-1] < num_nodes:
        sizes = np.minimum(_uniform(count, seed) ** (-1 / 0.95), largest)
        ends = np.cumsum(sizes.astype(np.uint64), dtype=np.uint64)
        count *= 2
    hosts = int(np.searchsorted(ends, num_nodes)) + 1
    ends[hosts - 1] = num_nodes
    return np.concatenate([np.zeros(1, np.uint64), ends[:hosts]])


def _degrees(num_nodes: int, num_arcs: int, seed: int) -> npt.NDArray[np.uint32]:
    """The number of outlinks of each node, uint32[n]: 0 for a quarter of them, ``num_arcs`` in total."""
    x = _uniform(num_nodes, seed + 1)
    linking = x > DANGLING
    x = (x - DANGLING) / (1 - DANGLING)
    x[~linking] = 1.0
    # A Pareto distribution with the usual exponent of outdegrees, about 2.6.
    heavy = np.minimum(x ** (-1 / 1.6), 3000.0)
    heavy[~linking] = 0.0
    low, high = 0.0, float(num_arcs)
    # The scale at which whole degrees of at least 1 have the wanted sum.
    for _ in range(100):
        middle = (low + high) / 2
        if int(np.ceil(heavy * middle).sum()) > num_arcs:
            high = middle
        else:
            low = middle
    return np.ceil(heavy * low).astype(np.uint32)


def generate(num_nodes: int = DEFAULT_NODES, num_arcs: int = DEFAULT_ARCS, seed: int = 1) -> Arrays:
    """Draw the graph; the same for the same three numbers.

    The number of arcs comes out at most ``num_arcs``, and less by a hair (by more where so many do not fit).
    """
    hosts = _host_starts(num_nodes, seed)
    degrees = _degrees(num_nodes, num_arcs, seed)
    offsets = np.zeros(num_nodes + 1, np.uint64)
    targets = np.empty(num_arcs, np.uint32)
    row = np.empty(min(num_nodes, 1 << 20), np.uint32)
    written = kernels.fill_rows(hosts, degrees, offsets, targets, row, np.uint64(seed))
    return transposed(offsets, targets[: int(written)])


def transposed(offsets: npt.NDArray[np.uint64], targets: npt.NDArray[np.uint32]) -> Arrays:
    """Both directions of a graph that has one."""
    in_offsets = np.zeros(len(offsets) + 1, np.uint64)
    in_sources = np.empty(len(targets), np.uint32)
    kernels.transpose(offsets, targets, in_offsets, in_sources)
    return Arrays(offsets, targets, in_offsets[:-1], in_sources)


def write_npy(arrays: Arrays, folder: Path) -> None:
    """Keep a graph as four NumPy files in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PARTS:
        values: npt.NDArray[Any] = getattr(arrays, name)
        work = folder / f".{name}.npy"
        with work.open("wb") as file:
            np.save(file, values)
        work.rename(folder / f"{name}.npy")


def load(folder: Path, *, mapped: bool = False) -> Arrays:
    """A graph that :func:`write_npy` wrote."""
    return Arrays(*(np.load(folder / f"{name}.npy", mmap_mode="r" if mapped else None) for name in PARTS))


def host_names(
    num_nodes: int, scramble: int = 0x9E3779B1
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
    """A made-up reversed host name for each node: all names as one text, and where each one ends (uint64[n + 1])."""
    syllables = "".join(c + v for c in "bcdfghklmnprstvz" for v in "aeio").encode()
    heads, head_ends = _joined(_HEADS)
    tails, tail_ends = _joined(_TAILS)
    text = np.empty(num_nodes * (12 + max(map(len, _HEADS)) + max(map(len, _TAILS))), np.uint8)
    ends = np.zeros(num_nodes + 1, np.uint64)
    letters = np.frombuffer(syllables, np.uint8)
    bounds = np.uint64(0), np.uint64(num_nodes)
    kernels.name_hosts(*bounds, np.uint64(scramble), letters, heads, head_ends, tails, tail_ends, text, ends)
    return text[: int(ends[-1])].copy(), ends


def _joined(words: list[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
    ends = np.cumsum([0] + [len(word) for word in words], dtype=np.uint64)
    return np.frombuffer("".join(words).encode(), np.uint8), ends


def write_lines(arrays: Arrays, path: Path, *, seed: int = 1, repeated: float = 0.1) -> int:
    """Write the arcs between made-up host names as tab-separated lines; returns their number.

    Sources come in shuffled order, a source's links together, as an archive gives them; a share of the lines
    stands there twice. Memory: the graph, its names and 64 MB.
    """
    text, ends = host_names(arrays.num_nodes)
    order = np.argsort(_uniform(arrays.num_nodes, seed + 2), kind="stable").astype(np.uint32)
    lines = np.empty(64 << 20, np.uint8)
    state = np.array([seed], np.uint64)
    total = done = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    work = path.with_name(f".{path.name}.writing")
    with work.open("wb") as file:
        while done < arrays.num_nodes:
            nodes, size, count = kernels.write_lines(
                order[done:],
                arrays.offsets,
                arrays.targets,
                text,
                ends,
                np.uint64(repeated * 2**32),
                state,
                lines,
            )
            if nodes == 0:
                raise ValueError(f"node {order[done]} has more links than one block of lines holds")
            file.write(lines[: int(size)].tobytes())
            done += int(nodes)
            total += int(count)
    work.rename(path)
    return total


def main(arguments: list[str] | None = None) -> None:
    """The command line: make the files, once, and say where they are."""
    parser = argparse.ArgumentParser(prog="python -m bench.webgraph", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", help="folder for the files (default: $INLINK_BENCH_DATA, else in the temporary folder)"
    )
    parser.add_argument("--nodes", type=int, default=DEFAULT_NODES)
    parser.add_argument("--arcs", type=int, default=DEFAULT_ARCS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", metavar="FILE", help="write host names, one arc a line, instead of arrays")
    options = parser.parse_args(arguments)
    arrays = generate(options.nodes, options.arcs, options.seed)
    loops = int(
        (
            arrays.targets == np.repeat(np.arange(arrays.num_nodes), np.diff(arrays.offsets).astype(np.int64))
        ).sum()
    )
    dangling = int((np.diff(arrays.offsets) == 0).sum())
    if options.lines:
        path = Path(options.lines)
        count = write_lines(arrays, path, seed=options.seed)
        print(f"{path}: {count:,} lines, {path.stat().st_size:,} bytes")
    else:
        path = data_folder(options.data)
        write_npy(arrays, path)
    largest_in = int(np.diff(arrays.in_offsets).max(initial=0))
    print(
        f"{path}: {arrays.num_nodes:,} nodes, {arrays.num_arcs:,} arcs, {dangling:,} dangling, {loops:,} self-loops, "
        f"largest indegree {largest_in:,}, outdegree {int(np.diff(arrays.offsets).max(initial=0)):,}"
    )


if __name__ == "__main__":
    main()

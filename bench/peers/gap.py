"""The GAP Benchmark Suite's C++ PageRank (github.com/sbeamer/gapbs), built by whoever runs this.

``GAPBS_PR`` names the unmodified ``pr``. It prints only its five best nodes, so its true error needs a second
binary, ``GAPBS_PR_SCORES``: the same source whose ``PrintTopScores`` writes all scores, as raw float32 (or
float64), to the file that the variable ``GAP_SCORES`` names. The times are those of the unmodified one
("Average Time", which leaves the loading out). Its vector is scaled to sum 1, since it drops dangling mass.
"""

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.peers.base import ROUNDS
from bench.results import memory
from bench.webgraph import Arrays

NAME = "GAP `pr` (C++)"
COMPUTES = "Gauss–Seidel, float32, all processors (OpenMP); drops dangling mass, so scaled to sum 1"
SETTINGS = ROUNDS
# Asynchronous threads: the worst of three counts.
VARIES = 3
LARGEST = 2**31 - 1


def available(binary: str = "GAPBS_PR") -> str | None:
    if not Path(os.environ.get(binary, "")).is_file():
        return f"{binary} names no binary"
    if not Path(os.environ.get(f"{binary}_SCORES", "")).is_file():
        return f"{binary}_SCORES names no binary, so its error cannot be measured"
    return None


def load(arrays: Arrays) -> Any:
    """Write its serialised form, .sg: a flag, two int64, and both directions (int64 offsets, int32 nodes)."""
    folder = tempfile.TemporaryDirectory(prefix="inlink-gap-")
    with (Path(folder.name) / "graph.sg").open("wb") as file:
        file.write(b"\x01" + np.array([arrays.num_arcs, arrays.num_nodes], np.int64).tobytes())
        for offsets, nodes in ((arrays.offsets, arrays.targets), (arrays.in_offsets, arrays.in_sources)):
            offsets.view(np.int64).tofile(file)
            nodes.view(np.int32).tofile(file)
    return folder


def _call(binary: str, folder: Any, setting: float, trials: int, scores: str = os.devnull) -> tuple[str, int]:
    command = [
        binary,
        "-f",
        f"{folder.name}/graph.sg",
        "-i",
        str(int(setting)),
        "-t",
        "0",
        "-n",
        str(trials),
        "-a",
    ]
    environment = os.environ | {"GAP_SCORES": scores}
    if threads := os.environ.get("INLINK_BENCH_THREADS"):
        environment["OMP_NUM_THREADS"] = threads
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT, env=environment)
        peak = 0
        while process.poll() is None:
            peak = max(peak, memory("VmHWM", process.pid))
            time.sleep(0.01)
        printed.seek(0)
        output = printed.read()
    if process.returncode:
        raise RuntimeError(f"pr ended with exit code {process.returncode}: {output[-200:]}")
    return output, peak


def run(graph: Any, setting: float, binary: str = "GAPBS_PR") -> npt.NDArray[np.float64]:
    scores = Path(graph.name) / "scores"
    printed, _ = _call(os.environ[f"{binary}_SCORES"], graph, setting, 1, str(scores))
    nodes = int(re.findall(r"has (\d+) nodes", printed)[0])
    values = np.fromfile(scores, np.float32 if scores.stat().st_size == 4 * nodes else np.float64).astype(
        np.float64
    )
    return np.asarray(values / values.sum())


def seconds(graph: Any, setting: float, trials: int, binary: str = "GAPBS_PR") -> tuple[float, int]:
    """Mean wall seconds of some trials, as the unmodified binary itself reports them; peak memory in bytes."""
    output, peak = _call(os.environ[binary], graph, setting, trials)
    found = re.search(r"Average Time:\s+([\d.]+)", output)
    if not found:
        raise RuntimeError(f"pr said nothing of its time: {output[-200:]}")
    return float(found[1]), peak

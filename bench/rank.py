"""``python -m bench rank``: the time to the same true error, inlink beside its peers.

Each run is a process of its own: it loads the graph, warms up on a tiny one, ranks, and tells its wall and CPU
seconds and its peak memory. Rounds are interleaved, so that noise meets everybody. Before them a search, not timed,
finds each peer's loosest setting whose true error, the L1 distance to a reference vector, is at most the target.
The reference is a plain power method run until it moves by less than 1e-13, none of inlink's code in it.
"""

import gc
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import cli, kernels, results, tables, webgraph
from bench.peers import base
from bench.webgraph import Arrays

__all__ = ["graph_arrays", "main", "reference", "work"]

TARGET = 1e-6
REFERENCE_CHANGE = 1e-13


def reference(arrays: Arrays) -> npt.NDArray[np.float64]:
    """PageRank by the plain power method, float64[n], to an L1 error of 1e-12 or better."""
    n = arrays.num_nodes
    degrees = np.diff(arrays.offsets).astype(np.float64)
    inverse = np.divide(1.0, degrees, out=np.zeros(n), where=degrees > 0)
    dangling = degrees == 0
    x = np.full(n, 1 / n)
    for _ in range(2000):
        rest = (1 - base.DAMPING + base.DAMPING * x[dangling].sum()) / n
        if (
            kernels.power_sweep(arrays.in_offsets, arrays.in_sources, x * inverse, rest, base.DAMPING, x)
            < REFERENCE_CHANGE
        ):
            return np.asarray(x / x.sum())
    raise RuntimeError("the reference does not settle")


def graph_arrays(name: str, data: Path) -> Path:
    """The folder with a graph's arrays and its reference vector, made if it is not there.

    ``web`` is generated; anything else is the path of what inlink reads.
    """
    folder = data / Path(name).name
    if not (folder / "offsets.npy").exists():
        if name == "web":
            arrays = webgraph.generate()
        else:
            import inlink

            graph = inlink.read(name)
            arrays = webgraph.transposed(np.array(graph.out_rows.offsets), np.array(graph.out_rows.nodes))
        webgraph.write_npy(arrays, folder)
    if not (folder / "reference.npy").exists():
        np.save(folder / "reference.npy", reference(webgraph.load(folder)))
    return folder


# -- one run, in its own process --------------------------------------------------------------------------


def _children() -> float:
    """CPU seconds of all finished children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def work(name: str, folder: Path, setting: float, what: str) -> dict[str, Any]:
    """Load, warm up and rank. ``what`` is ``"error"`` for the true error, ``"time"`` for times and memory."""
    peer = base.peer(name)
    peer.run(peer.load(webgraph.generate(50, 200)), peer.SETTINGS[0])
    gc.collect()
    idle = results.memory("VmRSS")
    began = time.perf_counter()
    arrays = webgraph.load(folder, mapped=True)
    arcs = arrays.num_arcs
    graph = peer.load(arrays)
    del arrays
    gc.collect()
    figures: dict[str, Any] = {"load": time.perf_counter() - began}
    if what == "error":
        exact = np.load(folder / "reference.npy")
        worst = max(
            float(np.abs(peer.run(graph, setting) - exact).sum()) for _ in range(getattr(peer, "VARIES", 1))
        )
        return figures | {"error": worst}
    # The first trial pays for pages of memory that were not touched before, as in GAP.
    trials = max(3, min(20, 20_000_000 // max(arcs, 1)))
    # A separate program, which measures its own times.
    if hasattr(peer, "seconds"):
        before = _children()
        peer.seconds(graph, setting, 1)
        # Loading and one trial. The difference to more trials is that of the trials alone.
        once = _children() - before
        wall, peak = peer.seconds(graph, setting, 1 + trials)
        cpu = max(_children() - before - 2 * once, 0.0) / trials
        return figures | {"wall": wall, "cpu": cpu, "peak": peak, "peak_loading": peak}
    peak_loading = results.memory("VmHWM") - idle
    # From here on VmHWM is the peak of the ranking alone.
    Path("/proc/self/clear_refs").write_text("5")
    walls, cpus = [], []
    for _ in range(trials):
        cpu, wall = time.process_time(), time.perf_counter()
        peer.run(graph, setting)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return figures | {
        "wall": float(np.median(walls)),
        "cpu": float(np.median(cpus)),
        "peak": results.memory("VmHWM") - idle,
        "peak_loading": peak_loading,
    }


def _apart(name: str, folder: Path, setting: float, what: str, limit: float) -> dict[str, Any] | str:
    command = [sys.executable, "-m", "bench", "work", name, str(folder), repr(setting), what]
    try:
        environment = os.environ | base.PASSIVE
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=environment)
    except subprocess.TimeoutExpired:
        return f"more than {limit:.0f} s"
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return f"failed: {last[:200]}"
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


# -- the comparison ---------------------------------------------------------------------------------------


def search(name: str, folder: Path, target: float, limit: float) -> tuple[float, float] | str:
    """The loosest setting that reaches the target and the true error there, or why there is none."""
    settings = base.peer(name).SETTINGS
    low, high, probe = 0, len(settings), 8
    found: float | None = None
    why = "never accurate enough"
    while low < high:
        # Gallop until a setting reaches the target, then bisect, because the tightest settings take the longest.
        middle = (low + high) // 2 if found is not None else min(probe, high - 1)
        probe *= 2
        answer = _apart(name, folder, settings[middle], "error", limit)
        if not isinstance(answer, str) and answer["error"] <= target:
            high, found = middle, float(answer["error"])
        else:
            never = f"never reaches {target:.0e}; error "
            why = (
                answer
                if isinstance(answer, str)
                else f"{never}{answer['error']:.1e} at its tightest tolerance"
            )
            low = middle + 1
    return why if found is None else (settings[high], found)


def remembered_search(name: str, folder: Path, target: float, limit: float) -> tuple[float, float] | str:
    """Run a peer with the setting of an earlier :func:`search`. Search again if there is no setting or it fails."""
    notes = folder / "settings.json"
    known: dict[str, float] = json.loads(notes.read_text()) if notes.exists() else {}
    key = f"{name} {target:g}"
    if key in known:
        answer = _apart(name, folder, known[key], "error", limit)
        if not isinstance(answer, str) and answer["error"] <= target:
            return known[key], float(answer["error"])
    found = search(name, folder, target, limit)
    if not isinstance(found, str):
        known = json.loads(notes.read_text()) if notes.exists() else {}
        notes.write_text(json.dumps(known | {key: found[0]}, indent=1))
    return found


def compare(
    folder: Path, names: list[str], rounds: int, target: float, limit: float, anew: bool = True
) -> dict[str, Any]:
    """Search, then time in interleaved rounds; what the tables are made of."""
    arrays = webgraph.load(folder, mapped=True)
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        peer = base.peer(name)
        row: dict[str, Any] = {"name": peer.NAME, "computes": peer.COMPUTES}
        rows[name] = row
        if (reason := peer.available()) is not None:
            row["skipped"] = reason
        elif arrays.num_arcs > peer.LARGEST:
            row["skipped"] = f"not tried above {peer.LARGEST:,} arcs"
        else:
            found = (search if anew else remembered_search)(name, folder, target, limit)
            if isinstance(found, str):
                row["skipped"] = found
            else:
                row["setting"], row["error"] = found
                row["runs"] = []
        cli.note(f"{peer.NAME}: {row.get('skipped') or (row['setting'], row['error'])}")
    load = [os.getloadavg()[0]]
    for turn in range(rounds):
        for name, row in rows.items():
            if "runs" in row:
                answer = _apart(name, folder, row["setting"], "time", limit)
                if isinstance(answer, str):
                    row["skipped"] = answer
                    del row["runs"]
                else:
                    row["runs"].append(answer)
                    cli.note(f"round {turn + 1}, {row['name']}: {answer['wall']:.3f} s")
        load.append(os.getloadavg()[0])
    size = {"nodes": arrays.num_nodes, "arcs": arrays.num_arcs}
    return {
        "graph": folder.name,
        **size,
        "target": target,
        "load": load,
        "machine": results.machine(),
        "rows": rows,
    }


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench rank``."""
    parser = cli.parser("rank", __doc__, rounds=3, peers=base.ALL, limit=600)
    parser.add_argument(
        "--graph", default="web", help="web, or the path of a graph that inlink reads (cnr-2000)"
    )
    parser.add_argument("--error", type=float, default=TARGET, help="the true L1 error that all must reach")
    parser.add_argument(
        "--known", action="store_true", help="take settings that an earlier search found, if they still do"
    )
    options = parser.parse_args(arguments)
    folder = graph_arrays(options.graph, options.data)
    figures = compare(folder, options.peers, options.rounds, options.error, options.limit, not options.known)
    results.keep(options.results, f"rank-{folder.name}", figures)
    print(tables.rank_table(figures))

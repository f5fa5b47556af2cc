"""``python -m bench measures``: each measure of inlink's beside the peers that have it, on one graph after the other.

Answers come first: a peer whose answer is further from inlink's than a measure allows is named below the table, with
how far it is off, and is not timed. What has a tolerance is run with the loosest that is near enough. Then each run is
a process of its own, and rounds are interleaved.
"""

import contextlib
import gc
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench import cli, rank, results, webgraph
from bench.measurers import base, inlink
from bench.measuretable import measures_table
from bench.peers.base import PASSIVE

__all__ = ["compare", "main", "prepare", "work"]

GRAPHS = [f"../shared/data/graphs/{name}" for name in ("polblogs.gml", "wikispeedia/links.tsv", "cnr-2000")]
# The tolerance of a reference.
TIGHT = 1e-13
# Sources of the reference of sampled betweenness, other ones than are compared.
MANY = 8192
# The factor on inlink's own error, if all answers are estimates.
WORSE = 1.25
# Seconds of a run that is not repeated.
SLOW = 20.0
ONE_THREAD = dict.fromkeys(
    ("INLINK_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)


def prepare(name: str, data: Path) -> Path:
    """The folder with a graph's arrays and with Katz's α, 0.85 of what is possible; made if it is not there."""
    folder = rank.graph_arrays(name, data)
    if not (folder / "alpha.json").exists():
        from inlink.graph.graph import Graph, Rows
        from inlink.rank.eigenvector import eigenvector

        arrays = webgraph.load(folder)
        graph = Graph(Rows(arrays.offsets, arrays.targets), Rows(arrays.in_offsets, arrays.in_sources))
        eigenvalue = eigenvector(graph, tol=1e-9).parameters["eigenvalue"]
        (folder / "alpha.json").write_text(f"{0.85 / eigenvalue if eigenvalue else 0.5:.3g}\n")
    return folder


def _alpha(folder: Path) -> float:
    return float(json.loads((folder / "alpha.json").read_text()))


def reference(measure: str, folder: Path) -> None:
    """Make ``answers/MEASURE.npy``, which all are held against, but for exact ones: there it is inlink's answer."""
    path = folder / "answers" / f"{measure}.npy"
    path.parent.mkdir(exist_ok=True)
    if inlink.MEASURES[measure].settings is base.EXACT:
        path.unlink(missing_ok=True)
    elif not path.exists():
        arrays = webgraph.load(folder)
        if measure in ("pagerank", "mcmc"):
            # The error of a plain power method.
            shutil.copy(folder / "reference.npy", path)
        elif measure == "betweenness_sample":
            from inlink.rank.betweenness import betweenness

            k = min(MANY, arrays.num_nodes)
            np.save(path, betweenness(inlink.graph(arrays), k=k, seed=1).values)
        else:
            inputs = base.inputs_of(arrays, _alpha(folder))
            np.save(path, inlink.MEASURES[measure].run(arrays, inputs, TIGHT))


# -- one run, in its own process --------------------------------------------------------------------------


def _say(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)


def _warm_up(peer: base.Peer, measure: str) -> None:
    """Import and compile, on a small graph; what fails there may still succeed on the large one."""
    own = peer.MEASURES[measure]
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Exception):
        webgraph.write_npy(webgraph.generate(50, 200), Path(folder))
        arrays = webgraph.load(Path(folder), mapped=True)
        own.run(peer.load(arrays, measure), base.inputs_of(arrays, 0.01), own.settings[0])


def work(name: str, measure: str, folder: Path, target: float, settings: list[float]) -> None:
    """Load, then go from loose to tight until an answer is near enough, and time that; a line of JSON each time."""
    peer, asked = base.peer(name), base.MEASURES[measure]
    run = peer.MEASURES[measure].run
    _warm_up(peer, measure)
    gc.collect()
    idle = results.memory("VmRSS")
    began = time.perf_counter()
    arrays = webgraph.load(folder, mapped=True)
    inputs = base.inputs_of(arrays, _alpha(folder))
    graph = peer.load(arrays, measure)
    del arrays
    gc.collect()
    _say(load=time.perf_counter() - began)
    # From here on VmHWM is the peak of the timed work.
    Path("/proc/self/clear_refs").write_text("5")
    answers = folder / "answers" / f"{measure}.npy"
    for setting in settings:
        walls: list[float] = []
        cpus: list[float] = []
        near = True
        while not walls or (near and len(walls) < 5 and sum(walls) < 1):
            cpu, wall = time.process_time(), time.perf_counter()
            answer = run(graph, inputs, setting)
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
            peak = results.memory("VmHWM") - idle
            if not answers.exists():
                np.save(answers, answer)
            error = asked.error(answer, np.load(answers))
            near = error <= target
        _say(
            setting=setting, error=error, wall=float(np.median(walls)), cpu=float(np.median(cpus)), peak=peak
        )
        if near:
            break


def _apart(
    name: str, measure: str, folder: Path, target: float, settings: list[float], limit: float
) -> dict[str, Any] | str:
    """The last line of such a process if it got there, else why not: each line has its own time limit."""
    command = [sys.executable, "-m", "bench", "measure", name, measure, str(folder), repr(target)]
    command += [repr(float(setting)) for setting in settings]
    environment = os.environ | PASSIVE | (ONE_THREAD if base.peer(name).THREADS == 1 else {})
    figures: dict[str, Any] = {}
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, env=environment, bufsize=0) as process,
    ):
        assert process.stdout is not None
        while True:
            if not select.select([process.stdout], [], [], limit)[0]:
                process.kill()
                return f"more than {limit:.0f} s"
            line = process.stdout.readline()
            if not line:
                break
            if line.startswith(b"{"):
                figures = json.loads(line)
        code = process.wait()
        said.seek(0)
        last = (said.read().strip().splitlines() or [f"exit code {code}"])[-1]
    if code:
        return f"failed: {last[:200]}"
    if not figures["error"] <= target:
        return f"{figures['error']:.1e} off" + (" at its tightest" if len(settings) > 1 else "")
    return figures


# -- the comparison ---------------------------------------------------------------------------------------


def _note(*what: object) -> None:
    cli.note(*what)


def compare(folder: Path, measure: str, names: list[str], rounds: int, limit: float) -> dict[str, Any]:
    """Answers, then times in interleaved rounds; ``names`` begins with inlink."""
    asked = base.MEASURES[measure]
    reference(measure, folder)
    rows: dict[str, dict[str, Any]] = {}
    load = [os.getloadavg()[0]]
    target, patience = asked.target, 3600.0
    for name in names:
        peer = base.peer(name)
        if peer.available() is not None or measure not in peer.MEASURES:
            continue
        own = peer.MEASURES[measure]
        first = np.inf if name == "inlink" and np.isnan(target) else target
        found = _apart(name, measure, folder, first, list(own.settings), patience)
        row: dict[str, Any] = {"how": own.how}
        rows[name] = row
        if isinstance(found, str):
            row["skipped"] = found
        else:
            row |= {"setting": found["setting"], "error": found["error"], "runs": [found]}
        _note(f"{asked.title}, {peer.NAME}: {found}")
        if name == "inlink":
            if isinstance(found, str):
                raise RuntimeError(f"inlink has no answer to hold the others against: {found}")
            target = WORSE * found["error"] if np.isnan(target) else target
            patience = max(limit, 1.5 * found["wall"])
    again = {name: row for name, row in rows.items() if "runs" in row and row["runs"][0]["wall"] < SLOW}
    for row in again.values():
        row["runs"] = []
    for _ in range(max(rounds, 1)):
        for name, row in again.items():
            if "runs" in row:
                run = _apart(name, measure, folder, np.inf, [row["setting"]], patience)
                if isinstance(run, str):
                    row["skipped"] = run
                    del row["runs"]
                else:
                    row["runs"].append(run)
        load.append(os.getloadavg()[0])
    return {"load": load, "rows": rows}


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench measures``."""
    parser = cli.parser("measures", __doc__, rounds=5, peers=base.ALL)
    parser.add_argument("--graph", nargs="+", default=GRAPHS, help="paths of graphs that inlink reads")
    parser.add_argument(
        "--measures",
        nargs="+",
        choices=base.MEASURES,
        help="default: those that the graph is not too large for",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=60,
        help="seconds after which a run is given up, unless inlink takes as long",
    )
    asked = parser.parse_args(arguments)
    names = ["inlink"] + [name for name in asked.peers if name != "inlink"]
    known = asked.results / "measures.json"
    figures: dict[str, Any] = json.loads(known.read_text()) if known.exists() else {"graphs": {}, "peers": {}}
    figures["machine"] = results.machine()
    for name in names:
        peer = base.peer(name)
        about: dict[str, Any] = {"name": peer.NAME, "about": peer.ABOUT, "threads": peer.THREADS}
        about["missing"] = peer.available()
        about["measures"] = list(peer.MEASURES)
        figures["peers"][name] = about
    for graph in asked.graph:
        folder = prepare(graph, asked.data)
        arrays = webgraph.load(folder, mapped=True)
        size = arrays.num_nodes, arrays.num_arcs
        row = figures["graphs"].setdefault("/".join(Path(graph).parts[-2:]), {"measures": {}})
        row |= {"nodes": size[0], "arcs": size[1], "alpha": _alpha(folder)}
        for measure in asked.measures or [name for name, one in base.MEASURES.items() if one.fits(*size)]:
            row["measures"][measure] = results.sources("measures") | compare(
                folder, measure, names, asked.rounds, asked.limit
            )
            # A long run may be cut short.
            results.keep(known.parent, known.stem, figures)
    print(measures_table(figures))

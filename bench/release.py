"""``python -m bench release``: a large generated graph of hosts, built and ranked in little memory.

Each step is a process of its own. It tells the CPU seconds and the most anonymous memory, which mapped files do not
count to. The CPU time of drawing the arcs is measured and left out. With ``--group`` the steps run in a memory group of
Linux that you made, so that a step that needs more memory than the group's limit is killed.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import cli, hostgraph, markdown, results

__all__ = ["main", "release_table", "work"]

NODES, ARCS = 40_000_000, 1_100_000_000
_TOLERANCE = 1e-6


class _Watch:
    """Samples, five times a second, the anonymous memory of this process and the bytes of a folder."""

    def __init__(self, folder: Path) -> None:
        self.memory = self.disk = 0
        self._folder, self._end = folder, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "_Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(0.2):
            self.memory = max(self.memory, results.memory("RssAnon"))
            self.disk = max(self.disk, _bytes(self._folder))


def _bytes(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.stat(os.path.join(place, name)).st_blocks * 512  # noqa: PTH116, PTH118
            except FileNotFoundError:
                continue
    return total


def _read() -> int:
    """Return the bytes that this process has read from disk, mapped files included."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def _build(folder: Path, nodes: int, arcs: int) -> dict[str, Any]:
    from inlink.graph.batches import ArcBatch
    from inlink.graph.build import build_graph

    drawn, drawing = 0, 0.0

    def batches(nodes: int, arcs: int) -> Iterator[ArcBatch]:
        nonlocal drawn, drawing
        pieces = hostgraph.host_arcs(nodes, arcs)
        while True:
            began = time.thread_time()
            piece = next(pieces, None)
            drawing += time.thread_time() - began
            if piece is None:
                return
            drawn += len(piece[0])
            yield ArcBatch(*piece)

    # The loop that draws is compiled before anything is measured.
    build_graph(batches(1 << 12, 1 << 14), num_nodes=1 << 12)
    drawn, drawing = 0, 0.0
    compress = folder.name.endswith("-compressed")
    began = time.process_time()
    with _Watch(folder.parent) as watch:
        count = nodes // hostgraph.COUNTRIES * hostgraph.COUNTRIES
        graph = build_graph(batches(nodes, arcs), num_nodes=count, into=folder, compress=compress)
    cpu = time.process_time() - began - drawing
    figures = {
        "drawn": drawn,
        "drawing": drawing,
        "nodes": graph.num_nodes,
        "arcs": graph.num_arcs,
        "cpu": cpu,
    }
    return figures | {"memory": watch.memory, "disk_peak": watch.disk, "disk": _bytes(folder)}


def _rank(folder: Path, nodes: int, arcs: int) -> dict[str, Any]:
    import inlink

    inlink.pagerank(inlink.Graph.from_arcs([(0, 1), (1, 0)]))
    _forget(folder)
    began = time.process_time()
    graph = inlink.Graph.open(folder)
    opening = time.process_time() - began
    began, wall, read = time.process_time(), time.perf_counter(), _read()
    with _Watch(folder) as watch:
        ranking = inlink.pagerank(graph, tol=_TOLERANCE)
    figures = {"opening": opening, "cpu": time.process_time() - began, "wall": time.perf_counter() - wall}
    figures |= {"memory": watch.memory, "read": _read() - read, "sweeps": ranking.iterations}
    return figures | {"bound": ranking.error_bound, "converged": ranking.converged}


def _forget(folder: Path) -> None:
    """Drop a folder's files from the page cache, where another memory group may pay for them."""
    os.sync()
    for path in folder.rglob("*.bin"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


_STEPS: dict[str, Callable[[Path, int, int], dict[str, Any]]] = {"build": _build, "rank": _rank}


def work(step: str, folder: Path, nodes: int, arcs: int, group: str) -> dict[str, Any]:
    """Run one step in this process.

    Parameters
    ----------
    step : {"build", "rank"}
        The step.
    folder : Path
        The graph. If its name ends in ``-compressed``, its rows are.
    nodes, arcs : int
        The numbers of hosts, and of links to draw.
    group : str
        The folder of the memory group that this process enters; empty for none.
    """
    limit = 0
    if group:
        (Path(group) / "cgroup.procs").write_text(str(os.getpid()))
        files = (Path(group) / name for name in ("memory.max", "memory.limit_in_bytes"))
        limit = next(int(file.read_text()) for file in files if file.exists())
    return _STEPS[step](folder, nodes, arcs) | {"limit": limit}


def release_table(figures: dict[str, Any]) -> str:
    """The benchmark as a Markdown table."""
    build, ranked = figures["steps"]["build"], figures["steps"].get("rank")
    nodes, arcs = build["nodes"], build["arcs"]
    lines = [
        f"{nodes:,} hosts, {arcs:,} arcs ({build['drawn']:,} were drawn). {markdown.machine(figures)}.",
        "",
        markdown.line("step", "CPU s", "ns an arc", "memory, MB", "bytes a node", "limit, MB", "disk"),
        markdown.line("---", *["---:"] * 5, "---"),
    ]

    def row(name: str, step: dict[str, Any], disk: str) -> str:
        limit = f"{step['limit'] / 1e6:,.0f}" if step["limit"] else "none"
        memory = f"{step['memory'] / 1e6:,.0f}", f"{step['memory'] / nodes:.0f}"
        return markdown.line(
            name, f"{step['cpu']:.0f}", f"{step['cpu'] / arcs * 1e9:.0f}", *memory, limit, disk
        )

    peak, end = build["disk_peak"] / arcs, build["disk"] / arcs
    lines.append(row("build", build, f"{peak:.1f} bytes an arc at the peak, {end:.1f} at the end"))
    if ranked:
        name = f"rank, {ranked['sweeps']} sweeps, error at most {ranked['bound']:.1e}"
        lines.append(row(name, ranked, f"{ranked['read'] / 1e9:.1f} GB read"))
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """The command line."""
    parser = cli.parser("release", __doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--arcs", type=int, default=ARCS, help="links to draw; some are drawn twice")
    parser.add_argument("--steps", nargs="+", choices=list(_STEPS), default=list(_STEPS))
    parser.add_argument("--compress", action="store_true", help="build compressed rows")
    parser.add_argument("--group", default="", help="folder of a memory group that the steps enter")
    parser.add_argument("--keep", action="store_true", help="keep the graph's folder")
    args = parser.parse_args(arguments)
    name = f"release-{args.nodes}-{args.arcs}{'-compressed' if args.compress else ''}"
    folder = args.data / "release" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    told_at = args.results / f"{name}.json"
    figures = json.loads(told_at.read_text()) if told_at.exists() else {"steps": {}}
    figures |= {"machine": results.machine(), "load": [os.getloadavg()[0]]}
    for step in args.steps:
        command = [
            sys.executable,
            "-m",
            "bench",
            "releasestep",
            step,
            folder,
            args.nodes,
            args.arcs,
            args.group,
        ]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{step} failed ({done.returncode}): {done.stderr[-2000:]}")
        figures["steps"][step] = json.loads(done.stdout.splitlines()[-1])
        figures["load"].append(os.getloadavg()[0])
        results.keep(args.results, name, figures)
        print(step, figures["steps"][step], file=sys.stderr)
    if not args.keep:
        shutil.rmtree(folder.parent)

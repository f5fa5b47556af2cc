"""``python -m bench build`` and ``python -m bench extract``: names to a graph, a WAT file to arcs.

Each run is a process of its own that reads the input from disk (the page cache being warm), and tells its CPU
and wall seconds and its peak memory. Rounds are interleaved.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import builders, cli, extractors, results, tables, wat, webgraph

__all__ = ["compare", "main", "work"]

# A tenth of the arcs are repeated: 50 M lines.
NODES, ARCS = 4_800_000, 45_500_000


def work(module: str, path: Path, tiny: Path) -> dict[str, Any]:
    """Run one peer (``builders.inlink``, …) once in this process, after a warm-up on a tiny input of the kind."""
    peer = importlib.import_module(f"bench.{module}")
    with tempfile.TemporaryDirectory(prefix="bench-", dir=path.parent) as folder:
        (Path(folder) / "warm").mkdir()
        peer.run(tiny, Path(folder) / "warm")
        cpu, wall = time.process_time(), time.perf_counter()
        count = peer.run(path, Path(folder))
        return {
            "wall": time.perf_counter() - wall,
            "cpu": time.process_time() - cpu,
            "peak": results.memory("VmHWM"),
            "count": count,
        }


def compare(
    package: str, names: list[str], path: Path, tiny: Path, rounds: int, limit: float
) -> dict[str, Any]:
    """Time the peers of a package on a file, in interleaved rounds."""
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        peer = importlib.import_module(f"bench.{package}.{name}")
        rows[name] = {"name": peer.NAME, "computes": peer.COMPUTES, "runs": []}
        reason = peer.available()
        if reason is None and path.stat().st_size > peer.LARGEST:
            reason = f"not tried above {peer.LARGEST:,} bytes of input"
        if reason is not None:
            rows[name]["skipped"] = reason
    load = [os.getloadavg()[0]]
    for turn in range(rounds):
        for name, row in rows.items():
            if "skipped" in row:
                continue
            command = [sys.executable, "-m", "bench", "run", f"{package}.{name}", str(path), str(tiny)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
            except subprocess.TimeoutExpired:
                row["skipped"], row["runs"] = f"more than {limit:.0f} s", []
                continue
            if done.returncode:
                row["skipped"] = (
                    f"failed: {(done.stderr.strip().splitlines() or [f'exit code {done.returncode}'])[-1][:200]}"
                )
                row["runs"] = []
                continue
            answer = json.loads(done.stdout.splitlines()[-1])
            row["runs"].append(answer)
            cli.note(f"round {turn + 1}, {row['name']}: {answer['cpu']:.2f} s CPU")
        load.append(os.getloadavg()[0])
    return {"bytes": path.stat().st_size, "load": load, "machine": results.machine(), "rows": rows}


def main(command: str, arguments: list[str]) -> None:
    """The command line of both."""
    package, every = ("builders", builders.ALL) if command == "build" else ("extractors", extractors.ALL)
    parser = cli.parser(command, __doc__, rounds=3, peers=every, limit=900)
    size = "arcs, with about a tenth as many nodes" if command == "build" else "pages"
    parser.add_argument("--size", type=int, default=ARCS if command == "build" else 9000, help=size)
    options = parser.parse_args(arguments)
    path, figures = _input(command, options.data, options.size)
    tiny, _ = _input(command, options.data, 50)
    figures |= compare(package, options.peers, path, tiny, options.rounds, options.limit)
    results.keep(options.results, f"{command}-{options.size}", figures)
    print((tables.build_table if command == "build" else tables.extract_table)(figures))


def _input(command: str, data: Path, size: int) -> tuple[Path, dict[str, Any]]:
    """The input of a size, made if it is not there, and what is in it."""
    about = data / f"{command}-{size}.json"
    path = data / (f"hosts-{size}.tsv" if command == "build" else f"pages-{size}.warc.wat.gz")
    if not (path.exists() and about.exists()):
        if command == "build":
            arrays = webgraph.generate(max(size * NODES // ARCS, 1), size)
            figures = {"lines": webgraph.write_lines(arrays, path)}
        else:
            figures = {"pages": size, "links": wat.write_wat(path, size)}
        about.write_text(json.dumps(figures))
    figures = json.loads(about.read_text())
    return path, figures

"""``python -m bench harvest``: how much of all PageRank each policy brings home, and when, by ``inlink.replay``.

The table in the docs is that of one seed set, as it always was. ``inlink replay`` shows more: many seed sets, errors,
and the lines to compare with.
"""

import argparse
from pathlib import Path
from typing import Any

from bench import results

POLICIES = ("host-diverse", "pagerank", "hits", "opic", "breadth-first", "fifo", "random", "depth-first")
MARKS = (0.05, 0.1, 0.2, 0.3)
RUN = 400  # nodes to a host


def shares(
    graph: Any, policies: list[str], seeds: str | list[list[int]], jobs: int = 1
) -> tuple[int, dict[str, Any]]:
    """The pages that the seeds reach, and the mean harvest of each order at each of :data:`MARKS`."""
    import inlink

    found = inlink.replay(
        graph,
        policies=policies,
        seeds=seeds,
        budget=max(MARKS),
        marks=MARKS,
        host_pages=[RUN],
        tau=False,
        jobs=jobs,
    )
    rows = {name: [found.mean(name, at=mark).mean for mark in MARKS] for name in found.orders}
    return min(run.reached for run in found.runs), rows


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench harvest``."""
    import inlink

    parser = argparse.ArgumentParser(prog="python -m bench harvest", description=__doc__.splitlines()[0])
    parser.add_argument("graph", help="what inlink reads, such as cnr-2000")
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--seeds", default="1x10", help="seed sets, as inlink replay takes them")
    parser.add_argument("--jobs", type=int, default=1, help="processes that replay at the same time")
    parser.add_argument("--results", default=str(results.FOLDER), help="folder for the figures")
    given = parser.parse_args(arguments)
    with inlink.progress():
        graph = inlink.read(given.graph)
        reached, rows = shares(graph, list(given.policies), given.seeds, given.jobs)
    told = {"graph": Path(given.graph).name, "nodes": graph.num_nodes, "reached": reached, "rows": rows}
    results.keep(
        Path(given.results), f"harvest-{told['graph']}", told | {"marks": MARKS, "machine": results.machine()}
    )

"""``python -m bench harvest``: how much of all PageRank each policy brings home, and when.

A crawl over a known graph: each page's links are what the graph has, nothing fails and nobody waits. The harvest is the
share of the whole graph's PageRank that the pages fetched so far have. A graph without names gets hosts of runs of
node numbers, which in a graph ordered by URL are near to it.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench import results

POLICIES = ("host-diverse", "pagerank", "hits", "opic", "breadth-first", "fifo", "random", "depth-first")
MARKS = (0.05, 0.1, 0.2, 0.3)
RUN = 400  # nodes to a host


def replay(
    graph: Any, values: Any, policy: str, seeds: list[int], rerank: float, reachable: int
) -> list[float]:
    """The harvest at each of :data:`MARKS`, as shares of the nodes that can be reached."""
    import inlink

    names = [f"http://h{node // RUN}.example.com/{node}" for node in range(graph.num_nodes)]
    number = {name: node for node, name in enumerate(names)}
    polite = inlink.Politeness(delay=0.0, in_flight=1 << 30)
    goals = [int(mark * reachable) for mark in MARKS]
    found: list[float] = []
    harvest, done, ranked = 0.0, 0, 0
    with (
        tempfile.TemporaryDirectory() as folder,
        inlink.Crawl(Path(folder) / "c", policy=policy, politeness=polite, rerank_share=None) as crawl,
    ):
        crawl.seed([names[node] for node in seeds])
        while done < goals[-1] and (leases := crawl.next(20)):
            for lease in leases:
                node = number[lease.url]
                crawl.crawled(lease, [names[k] for k in graph.outlinks(node)], links_are_canonical=True)
                harvest += float(values[node])
                done += 1
                if len(found) < len(goals) and done >= goals[len(found)]:
                    found.append(harvest)
            if done >= max(200, ranked * (1 + rerank)):
                ranked = done
                crawl.rerank(wait=True)
    return found


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench harvest``."""
    import inlink

    parser = argparse.ArgumentParser(prog="python -m bench harvest", description=__doc__.splitlines()[0])
    parser.add_argument("graph", help="what inlink reads, such as cnr-2000")
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--seeds", type=int, default=10, help="nodes to begin at, the same for all")
    parser.add_argument("--rerank", type=float, default=0.1, help="growth after which ranks are made anew")
    parser.add_argument("--results", default=str(results.FOLDER), help="folder for the figures")
    given = parser.parse_args(arguments)
    graph = inlink.read(given.graph)
    values = inlink.pagerank(graph, tol=1e-6).values
    seeds = np.random.default_rng(1).choice(graph.num_nodes, given.seeds, replace=False).tolist()
    reached = np.asarray(graph.reachable(np.array(seeds)).from_parent) != 0xFFFFFFFF
    count = int(reached.sum())
    rows = {}
    for policy in given.policies:
        began = time.perf_counter()
        rows[policy] = replay(graph, values, policy, seeds, given.rerank, count)
        print(
            policy,
            [round(one, 3) for one in rows[policy]],
            f"{time.perf_counter() - began:.0f} s",
            flush=True,
        )
    order = np.sort(values[reached])[::-1]
    rows["oracle: the best pages first"] = [float(order[: int(mark * len(order))].sum()) for mark in MARKS]
    told = {"graph": Path(given.graph).name, "nodes": graph.num_nodes, "reached": count, "rows": rows}
    results.keep(
        Path(given.results), f"harvest-{told['graph']}", told | {"marks": MARKS, "machine": results.machine()}
    )

"""``python -m bench rerank``: what it costs to rank a crawl again after it grew, beside ranking it from nothing.

A graph is crawled on paper, breadth-first or in random order, and its log written with the frames of a real one.
When half of it is crawled it is ranked; then 0.1%, 1% or 10% more pages are crawled, and it is ranked again: once
from the last ranking, once from nothing, both to the same certified error. Beside them ``inlink.pagerank`` on one
thread, which ranks a graph that is ready in memory, both directions; building it is not counted.
"""

import os
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bench import cli, results, webgraph
from inlink.base.jit import U0, U1, kernel
from inlink.reranking.live import GrowingHits, GrowingPageRank, Update
from inlink.store.format import HEAD, HEAD_SIZE, VISIT, VisitRecord, dtype_of, size_of

__all__ = ["Crawled", "crawled", "main", "measure", "simulate", "table", "write_log"]

NODES, ARCS = 500_000, 7_000_000
GROWTH = (0.001, 0.01, 0.1)
U7 = np.uint64(7)
REST, MORE = np.uint64(0x7F), np.uint64(0x80)
NONE = np.uint32(0xFFFFFFFF)
HASH_BYTES = 8
RECORD, RECORD_SIZE = dtype_of(VisitRecord), np.uint64(size_of(VisitRecord))
FRAME = HEAD_SIZE + size_of(VisitRecord) + HASH_BYTES
"""Bytes of a visit's frame without its links."""

HEAD_BYTES, FRAME_BYTES = np.uint64(HEAD_SIZE), np.uint64(FRAME)

U4A = npt.NDArray[np.uint32]
U8A = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


@kernel
def simulate(offsets: U8A, targets: U4A, lots: U8A, ids: U4A, visits: U4A, seen: U4A) -> None:
    """Crawl a graph: node i is page ids[i], node visits[k] is crawled as the k-th, seen[k] pages are known then.

    With ``lots`` (random numbers, uint64[n]) the next page is drawn among all that wait, without them it is the first.
    If no page waits, the first unknown node becomes a seed.
    """
    n = np.uint64(len(offsets) - 1)
    waiting = np.empty(n, np.uint32)
    ids[:] = NONE
    # A page is known as it begins to wait: its id is its place in the queue.
    first, last, seed = U0, U0, U0
    for k in range(U0, n):
        if first == last:
            while ids[seed] != NONE:
                seed += U1
            ids[seed] = np.uint32(last)
            waiting[last] = np.uint32(seed)
            last += U1
        if len(lots) != 0:
            other = first + lots[k] % (last - first)
            waiting[first], waiting[other] = waiting[other], waiting[first]
        node = np.uint64(waiting[first])
        first += U1
        visits[k] = np.uint32(node)
        for j in range(offsets[node], offsets[node + U1]):
            target = np.uint64(targets[j])
            if ids[target] == NONE:
                ids[target] = np.uint32(last)
                waiting[last] = np.uint32(target)
                last += U1
        seen[k] = np.uint32(last)


@kernel
def write_log(offsets: U8A, targets: U4A, ids: U4A, visits: U4A, log: Bytes, places: U8A) -> np.uint64:
    """Write a visit frame (:mod:`inlink.store.format`, without checksums) for each node; returns their bytes."""
    at = U0
    for k in range(U0, np.uint64(len(visits))):
        node = np.uint64(visits[k])
        row = np.sort(ids[targets[offsets[node] : offsets[node + U1]]])
        start = at
        places[k] = start
        log[start : start + FRAME_BYTES] = 0
        head = log[start : start + HEAD_BYTES].view(HEAD)[0]
        head.kind, head.page, head.listed = VISIT, ids[node], len(row)
        begin = start + HEAD_BYTES
        log[begin : begin + RECORD_SIZE].view(RECORD)[0].hash_size = HASH_BYTES
        at += FRAME_BYTES
        before = U0
        for j in range(U0, np.uint64(len(row))):
            delta = np.uint64(row[j]) - before
            before = np.uint64(row[j])
            while delta >= MORE:
                log[at] = np.uint8((delta & REST) | MORE)
                at += U1
                delta >>= U7
            log[at] = np.uint8(delta)
            at += U1
        head.length = at - start
    return at


class Crawled(NamedTuple):
    """A whole crawl; its first k pages are its state after k."""

    log: Bytes
    pages: U4A
    places: U8A
    seen: U4A
    # The number of links of the first k pages, uint64[n + 1].
    links: U8A
    # The targets of the links, in the order of the crawl.
    targets: U4A

    def state(self, count: int) -> tuple[int, Bytes, U4A, U8A]:
        """The input of a ranking after ``count`` pages."""
        return int(self.seen[count - 1]), self.log, self.pages[:count], self.places[:count]

    def arcs(self, count: int) -> U4A:
        """The links that are known then, as pairs of pages."""
        sources = np.repeat(self.pages[:count], np.diff(self.links[: count + 1]).astype(np.int64))
        return np.column_stack([sources, self.targets[: int(self.links[count])]])


def crawled(offsets: U8A, targets: U4A, order: str) -> Crawled:
    """Crawl a graph in the order ``"breadth-first"`` or ``"random"``."""
    n = len(offsets) - 1
    ids, visits, seen = np.empty(n, np.uint32), np.empty(n, np.uint32), np.empty(n, np.uint32)
    lots = np.random.default_rng(1).integers(0, 1 << 62, n if order == "random" else 0).astype(np.uint64)
    simulate(offsets, targets, lots, ids, visits, seen)
    log, places = np.empty(n * FRAME + len(targets) * 5, np.uint8), np.empty(n, np.uint64)
    end = write_log(offsets, targets, ids, visits, log, places)
    degrees = np.diff(offsets)[visits]
    links = np.concatenate([np.zeros(1, np.uint64), np.cumsum(degrees, dtype=np.uint64)])
    begins = np.repeat(offsets[:-1][visits] - links[:-1], degrees.astype(np.int64))
    in_order = ids[targets[begins + np.arange(len(targets), dtype=np.uint64)]]
    return Crawled(log[: int(end)].copy(), ids[visits], places, seen, links, in_order)


def _timed(work: Any) -> tuple[Any, float]:
    began = time.process_time()
    done = work()
    return done, time.process_time() - began


def _start(algorithm: str, tol: float) -> GrowingPageRank | GrowingHits:
    return GrowingPageRank(tol=tol) if algorithm == "pagerank" else GrowingHits(tol=tol)


def measure(crawl: Crawled, algorithm: str, tol: float, rounds: int) -> dict[str, Any]:
    """Sweeps and CPU seconds, medians of rounds, for each growth: from the last ranking, and from nothing."""
    import inlink

    half = len(crawl.pages) // 2
    figures: dict[str, Any] = {"pages": half, "links": int(crawl.links[half])}
    # The first call compiles.
    _start(algorithm, tol).update(*crawl.state(10))
    runs: dict[str, list[tuple[Update, float]]] = {}
    for _ in range(rounds):
        for growth in GROWTH:
            count = half + max(int(half * growth), 1)
            kept = _start(algorithm, tol)
            kept.update(*crawl.state(half))
            again = _timed(lambda kept=kept, count=count: kept.update(*crawl.state(count)))
            anew = _timed(lambda count=count: _start(algorithm, tol).update(*crawl.state(count)))
            runs.setdefault(f"{growth:g} again", []).append(again)
            runs.setdefault(f"{growth:g} anew", []).append(anew)
    for name, each in runs.items():
        figures[name] = {"sweeps": each[0][0].sweeps, "cpu": statistics.median(cpu for _, cpu in each)}
    if algorithm == "pagerank":
        count = half + int(half * GROWTH[-1])
        graph = inlink.Graph.from_arcs(crawl.arcs(count), num_nodes=crawl.state(count)[0])
        # The first call compiles, and transposes the graph.
        inlink.pagerank(graph, tol=tol, threads=1)
        ready = [_timed(lambda: inlink.pagerank(graph, tol=tol, threads=1)) for _ in range(rounds)]
        figures["static"] = {
            "sweeps": ready[0][0].iterations,
            "cpu": statistics.median(cpu for _, cpu in ready),
        }
    return figures


def table(figures: dict[str, Any]) -> str:
    """The figures as a Markdown table."""
    on, load = figures["machine"], figures["load"]
    lines = [
        f"{on['processor']}, Python {on['python']}; load average {min(load):.1f}–{max(load):.1f}. "
        f"Relative L1 error at most {figures['tol']:g}, certified (HITS: a round moves that much). "
        f"CPU seconds are medians of {figures['rounds']} rounds.",
        "",
        "| crawl | links | growth | sweeps, again | sweeps, anew | again ÷ anew "
        "| CPU s, again | CPU s, anew | again ÷ anew |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    statics = []
    for name, row in figures["rows"].items():
        for growth in GROWTH:
            again, anew = row[f"{growth:g} again"], row[f"{growth:g} anew"]
            lines.append(
                f"| {name} | {row['links']:,} | {growth:.1%} | {again['sweeps']:.2f} | {anew['sweeps']:.2f} "
                f"| {again['sweeps'] / anew['sweeps']:.2f} | {again['cpu']:.3f} | {anew['cpu']:.3f} "
                f"| {again['cpu'] / anew['cpu']:.2f} |"
            )
        if "static" in row:
            statics.append(
                f"- `inlink.pagerank` of {name}, grown by {GROWTH[-1]:.0%}, from nothing on a graph in memory: "
                f"{row['static']['sweeps']} sweeps, {row['static']['cpu']:.3f} CPU s."
            )
    return "\n".join([*lines, "", *statics])


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench rerank``."""
    parser = cli.parser("rerank", __doc__, rounds=3)
    parser.add_argument(
        "--graph", nargs="+", default=["web"], help="web, or paths of graphs that inlink reads (cnr-2000)"
    )
    parser.add_argument("--nodes", type=int, default=NODES, help="of web")
    parser.add_argument("--arcs", type=int, default=ARCS, help="of web")
    parser.add_argument("--tol", type=float, default=1e-4)
    options = parser.parse_args(arguments)
    rows, load = {}, [os.getloadavg()[0]]
    for name in options.graph:
        if name == "web":
            arrays = webgraph.generate(options.nodes, options.arcs)
            offsets, targets = arrays.offsets, arrays.targets
        else:
            import inlink

            graph = inlink.read(name)
            offsets, targets = np.array(graph.out_rows.offsets), np.array(graph.out_rows.nodes)
        for order in ("breadth-first", "random"):
            crawl = crawled(offsets, targets, order)
            for algorithm in ("pagerank", "hits"):
                label = f"{Path(name).name}, {order}, {algorithm}"
                rows[label] = measure(crawl, algorithm, options.tol, options.rounds)
                cli.note(label)
                load.append(os.getloadavg()[0])
    figures = {
        "tol": options.tol,
        "rounds": options.rounds,
        "load": load,
        "machine": results.machine(),
        "rows": rows,
    }
    results.keep(options.results, "rerank", figures)
    print(table(figures))

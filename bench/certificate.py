"""``python -m bench certificate``: how much of a crawl is fetched when its best places are certain.

Crawls of graphs, by the default policy, from random sets of ten pages. The bounds are computed each time that another
2% of the pages that the seeds reach were fetched. Each crawl is finished. Then all certificates on the way are compared
with the ranks of the whole: PageRank with teleports to the seeds, by :func:`inlink.trustrank`.
"""

import argparse
import random
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import inlink
from bench import markdown
from inlink.crawl.certificate import Certifier, shortened
from inlink.graph.components import reachable
from inlink.protocol import Certificate

__all__ = ["Closing", "closings", "generated", "main"]

STEP = 0.02
COUNTS, WITHINS = (10, 100), (0.01, 0.001)
SLACK = 1e-8
"""Rounding of the ranks that certificates are compared with."""


class Closing(NamedTuple):
    """Shares of the pages after which all places were certain, by number and ε; the number of wrong certificates."""

    shares: dict[tuple[int, float], float]
    wrong: int


def generated(pages: int, seed: int) -> inlink.Graph:
    """Return a graph of hosts of 100 pages. Most links lead to first pages of the host, or to popular pages."""
    dice = random.Random(seed)
    arcs = []
    for page in range(pages):
        home = page // 100 * 100
        for _ in range(dice.randrange(1, 9)):
            kind = dice.random()
            if kind < 0.6:
                arcs.append((page, min(home + int(100 * dice.random() ** 3), pages - 1)))
            else:
                arcs.append((page, int(pages * dice.random() ** (4 if kind < 0.9 else 1))))
    return inlink.Graph.from_arcs(arcs)


def closings(graph: inlink.Graph, seeds: Sequence[int]) -> Closing:
    """Crawl a graph from its seeds to the end; return when its places became certain."""
    names = [f"http://h{page // 256}.example/{page}" for page in range(graph.num_nodes)]
    reached = int(reachable(graph.out_rows, list(seeds)).sum())
    # A count of places that is larger than the crawl would never be reached.
    wanted = [(count, within) for count in COUNTS if count <= reached for within in WITHINS]
    ranks = inlink.trustrank(graph, list(seeds), tol=1e-12).values
    shares: dict[tuple[int, float], float] = {}
    wrong, looked, fetched = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "crawl"
        polite = {"delay": 0.0}
        with inlink.Crawl(place, clock=inlink.VirtualClock(), politeness=polite) as crawl:
            crawl.seed([names[page] for page in seeds])
            certifier = Certifier(place, max(COUNTS), 0.0)
            while crawl.wait() is not None:
                for lease in crawl.next(1):
                    page = int(lease.url.rpartition("/")[2])
                    crawl.crawled(lease, [names[link] for link in graph.outlinks(page).tolist()])
                    fetched += 1
                if fetched - looked >= max(STEP * reached, 1) or fetched == reached:
                    looked, found = fetched, certifier.look()
                    for count, within in wanted:
                        one = shortened(found, count, within)
                        wrong += not agrees(one, ranks)
                        if one.holds:
                            shares.setdefault((count, within), fetched / reached)
            certifier.close()
    return Closing(shares, wrong)


def agrees(found: Certificate, ranks: np.ndarray) -> bool:
    """Return whether the ranks of the finished crawl are within all bounds, and certain places are as told."""
    pages = [int(row.url.rpartition("/")[2]) for row in found.places]
    after = np.array(ranks)
    least = np.inf
    for page, row in zip(pages, found.places, strict=True):
        mine = float(ranks[page])
        after[page] = 0.0
        if not row.lower - SLACK <= mine <= row.upper + SLACK:
            return False
        worst = max(float(after.max()) - mine, mine - least)
        if row.certain and worst > found.within + SLACK:
            return False
        least = min(least, mine)
    return float(after.max()) <= found.beyond + SLACK


def _cell(shares: Sequence[float], sets: int) -> str:
    if len(shares) < sets:
        return f"{len(shares)} of {sets} sets"
    return f"{statistics.median(shares):.0%} ({min(shares):.0%} to {max(shares):.0%})"


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench certificate", description=__doc__)
    parser.add_argument(
        "graphs", nargs="*", type=Path, help="graphs in any format; a generated graph comes first"
    )
    parser.add_argument("--sets", type=int, default=20, help="sets of ten random pages with links (20)")
    parser.add_argument("--pages", type=int, default=3000, help="pages of the generated graph (3,000)")
    options = parser.parse_args(arguments)
    cases = [(count, within) for count in COUNTS for within in WITHINS]
    print(markdown.line("graph", "pages", *(f"first {k} within {e:g}" for k, e in cases), "wrong"))
    print(markdown.line("---", *["---:"] * (len(cases) + 2)))
    sources = {"generated": generated(options.pages, 1)} | {
        path.stem: inlink.read(path) for path in options.graphs
    }
    for name, graph in sources.items():
        linking = np.flatnonzero(np.diff(graph.out_rows.offsets)).tolist()
        dice = random.Random(1)
        runs = [closings(graph, sorted(dice.sample(linking, 10))) for _ in range(options.sets)]
        cells = [
            _cell([run.shares[case] for run in runs if case in run.shares], options.sets) for case in cases
        ]
        print(
            markdown.line(name, f"{graph.num_nodes:,}", *cells, str(sum(run.wrong for run in runs))),
            flush=True,
        )

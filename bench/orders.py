"""Compare the default order with breadth-first, OPIC and itself without sections, on sites and on generated sections.

A cell is the share of all PageRank that was collected, as a mean over sets of random seeds, or from the front page of
each site. Rows of other orders have the differences to the default on the same sets, with standard errors.
"""

import argparse
import gzip
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

import numpy as np
from selectolax.lexbor import LexborHTMLParser

import inlink
from bench import markdown
from bench.cli import note
from inlink.crawl import upkeep
from inlink.frontier.ranked import HostDiverse
from inlink.replaying.result import Replay

__all__ = ["main", "sectioned", "site"]

MARKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
SITE = "http://site.example"

SHAPES: dict[str, tuple[list[int], int, float, int]] = {
    "8 sections of 400 pages": ([400] * 8, 5, 0.002, 20),
    "40 sections of 100 pages": ([100] * 40, 6, 0.002, 10),
    "10 sections of 50 to 1,600 pages, no links between them": (
        [1600, 800, 400, 200, 100, 100, 50, 50, 400, 300],
        7,
        0.0,
        15,
    ),
}
"""For each generated site: pages of its sections, random seed, share of pages with a link to the next section, hubs."""


class WithoutSections(HostDiverse):
    """The default without the sections of seeds."""

    name = "without-sections"
    takes_sections = False


def sectioned(sizes: Sequence[int], seed: int, cross: float, hubs: int) -> inlink.Graph:
    """Make a site of sections: each page links to its section's front page, its neighbours, a hub and a random page."""
    dice, pairs = random.Random(seed), []
    urls = [
        [f"https://a.example/{number}/{page}" for page in range(size)] for number, size in enumerate(sizes)
    ]
    for number, pages in enumerate(urls):
        size = len(pages)
        for page, url in enumerate(pages):
            targets = {pages[0], pages[max(page - 1, 0)], pages[min(page + 1, size - 1)]}
            targets |= {pages[dice.randrange(min(hubs, size))], pages[dice.randrange(size)]}
            if page == 0:
                targets |= set(pages[:hubs])
            if dice.random() < cross:
                targets.add(urls[(number + 1) % len(urls)][0])
            pairs += [(url, target) for target in sorted(targets - {url})]
    return inlink.Graph.from_arcs(pairs)


def site(folder: Path) -> inlink.Graph:
    """Read the links between the HTML files of a folder, without fragments and queries. Linked folders are read too."""
    files = {f"/{path.relative_to(folder)}": path for path in sorted(_html(folder))}
    pairs = []
    for name, path in files.items():
        text = path.read_bytes()
        text = gzip.decompress(text) if path.suffix == ".gz" else text
        for link in LexborHTMLParser(text).css("a[href]"):
            try:
                url = urldefrag(urljoin(SITE + name, link.attributes.get("href") or ""))[0].partition("?")[0]
            except ValueError:
                continue
            target = unquote(url.removeprefix(SITE))
            target += "index.html" * target.endswith("/")
            target = next(
                (known for known in (target, f"{target}.en", f"{target}.gz") if known in files), name
            )
            if url.startswith(f"{SITE}/") and target != name and not {"\t", "\n"} & {*target, *name}:
                pairs.append((SITE + name.replace(" ", "%20"), SITE + target.replace(" ", "%20")))
    return inlink.Graph.from_arcs(sorted(set(pairs)))


def _html(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from _html(path)
        elif re.search(r"\.html?(\.[A-Za-z_-]+(\.[A-Za-z0-9_-]+)?)?(\.gz)?$", path.name):
            yield path


def front_page(graph: Any) -> str:
    """The front page of a site: the index with the shortest URL, else the page with the most outlinks."""
    names: list[str] = list(graph.names)
    fronts = [name for name in names if re.search(r"/(index[^/]*)?$|/0$", name)]
    if fronts:
        return min(fronts, key=lambda name: (len(name), name))
    return names[int(np.argmax(np.diff(np.asarray(graph.out_rows.offsets))))]


def _cells(result: Replay, order: str, base: str) -> list[str]:
    cells = []
    for mark in result.marks:
        values, bases = np.array(result.values(order, at=mark)), np.array(result.values(base, at=mark))
        if order == base:
            cells.append(f"{values.mean():.3f}")
            continue
        gains, error = values - bases, 0.0
        if len(gains) > 1:
            error = float(gains.std(ddof=1)) / len(gains) ** 0.5
        cells.append(f"{gains.mean():+.3f}" + f" ± {error:.3f}" * (len(gains) > 1))
    return cells


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench orders", description=__doc__)
    parser.add_argument(
        "sources", nargs="*", type=Path, help="folders of HTML files, and graphs that inlink reads"
    )
    parser.add_argument("--generated", action="store_true", help="replay the generated sites too")
    parser.add_argument(
        "--seeds", default="20x10", help="SETSxPAGES of random seeds, or front for the front page"
    )
    parser.add_argument("--random-seed", type=int, default=21)
    parser.add_argument("--budget", type=float, default=0.5)
    parser.add_argument("--parallel", type=int, default=1, help="fetches in flight, which take a second each")
    parser.add_argument(
        "--early", type=int, default=upkeep.EARLY_PAGES, help="pages before the first ranking"
    )
    parser.add_argument("--policies", default="breadth-first,opic,bench.orders:WithoutSections")
    options = parser.parse_args(arguments)
    upkeep.EARLY_PAGES = options.early
    shapes = [(name, lambda shape=shape: sectioned(*shape)) for name, shape in SHAPES.items()]
    sources: list[tuple[str, Any]] = shapes if options.generated else []
    sources += [(path.name, lambda path=path: _read(path)) for path in options.sources]
    orders = ["host-diverse", *options.policies.split(",")]
    print(markdown.line("graph", "order", *[f"{mark:.0%}" for mark in MARKS]))
    print(markdown.line("---", "---", *["---:"] * len(MARKS)))
    for name, make in sources:
        graph = make()
        result = inlink.replay(
            graph,
            policies=orders,
            seeds=[[front_page(graph)]] if options.seeds == "front" else options.seeds,
            budget=options.budget,
            marks=MARKS,
            lines=False,
            tau=False,
            random_seed=options.random_seed,
            parallel=options.parallel,
            fetch_seconds=float(options.parallel > 1),
            settings={"politeness": {"in_flight": options.parallel}},
        )
        for order in result.orders:
            row = _cells(result, order, "host-diverse")
            missing = [""] * (len(MARKS) - len(row))
            print(markdown.line(name, order.rpartition(":")[2], *row, *missing), flush=True)
        note(f"{name}: {graph.num_nodes:,} pages")


def _read(path: Path) -> Any:
    from inlink.graph.graph import is_graph

    return site(path) if path.is_dir() and not is_graph(path) else inlink.read(path)

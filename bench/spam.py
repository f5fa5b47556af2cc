"""``python -m bench spam``: fetches wasted on spam, by order, with and without `distrust`, `trust` and `spam_mass`.

The web is generated: sixty good hosts, twenty link farms of 300 pages, four calendars of 800 pages, and a mirror of
3,000 good pages. Farms link to the front pages of other farms. Calendars and the mirror look like pages with content,
and link to a farm from each page. Two good pages in a hundred have a link to a farm, as comments have. The list of
bad hosts names two farms. The trusted pages are the seeds.
"""

import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

import inlink
from bench import markdown
from inlink.replaying.result import Run

__all__ = ["main", "web"]

FARMS = [f"farm{k}.example" for k in range(20)]
CALENDARS = [f"events{k}.example" for k in range(4)]
MIRROR = "http://mirror.example/copy/"
SPAM = "//(farm|events|mirror)"
MARKS = (0.02, 0.05, 0.1, 0.2)
ROWS = (
    ((), ("host-diverse", "pagerank", "breadth-first")),
    (("distrust",), ("host-diverse", "pagerank")),
    (("trust",), ("host-diverse",)),
    (("trust", "distrust"), ("host-diverse",)),
    (("trust", "spam_mass"), ("host-diverse",)),
    (("trust", "distrust", "spam_mass"), ("host-diverse",)),
)
"""Settings that are given, and the policies that have them."""


def web(seed: int) -> dict[str, set[str]]:
    """Return the links of each page of the generated web."""
    draw = random.Random(seed)
    sites = [
        [f"http://good{k}.example/{n}" for n in range(draw.choice([20, 60, 120, 250]))] for k in range(60)
    ]
    farms = [[f"http://{host}/{n}" for n in range(300)] for host in FARMS]
    calendars = [[f"http://{host}/{n}" for n in range(800)] for host in CALENDARS]
    fronts = [farm[0] for farm in farms]

    def some(pages: list[str]) -> str:
        return pages[int(len(pages) * draw.random() ** 3)]

    links: dict[str, set[str]] = {}
    good = [page for site in sites for page in site]
    copied = good[:3000]
    for site in sites:
        for page in site:
            links[page] = {site[0], *(some(site) for _ in range(8))}
            links[page] |= {some(draw.choice(sites)) for _ in range(2)}
            for share, target in ((0.02, farms), (0.003, calendars), (0.003, [copied])):
                if draw.random() < share:
                    one = draw.choice(draw.choice(target))
                    links[page].add(_copy(one) if target == [copied] else one)
    for farm in farms:
        for page in farm:
            links[page] = {farm[0], *draw.sample(fronts, 4), *(draw.choice(farm) for _ in range(10))}
            if draw.random() < 0.1:
                links[page].add(draw.choice(draw.choice(calendars)))
            if draw.random() < 0.05:
                links[page].add(some(good))
    for days in calendars:
        for n, page in enumerate(days):
            links[page] = {days[(n + step) % len(days)] for step in (1, 2, 30)} | {draw.choice(fronts)}
    known = set(copied)
    for page in copied:
        links[_copy(page)] = {_copy(target) for target in links[page] & known} | {draw.choice(fronts)}
    return links


def _copy(page: str) -> str:
    return page.replace("http://", MIRROR)


def main(arguments: list[str]) -> None:
    """Replay crawls of the web from random good pages, and print the share of fetches that were wasted."""
    parser = argparse.ArgumentParser(prog="python -m bench spam")
    parser.add_argument("--sets", type=int, default=20, help="seed sets of ten good pages (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the generated web (1)")
    options = parser.parse_args(arguments)
    links = web(options.seed)
    good = sorted(page for page in links if page.startswith("http://good"))
    draw = random.Random(options.seed)
    seeds = [draw.sample(good, 10) for _ in range(options.sets)]
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "bad.txt"
        listed.write_text("".join(f"{host}\n" for host in FARMS[:2]))
        arcs = [(page, target) for page in links for target in sorted(links[page])]
        graph = inlink.Graph.from_arcs(arcs)
        print(markdown.line("order", *(f"{share:.0%}" for share in MARKS)))
        print(markdown.line("---", *["---:"] * len(MARKS)))
        trusted = Path(folder) / "trust.txt"
        values = {"trust": str(trusted), "distrust": str(listed), "spam_mass": True}
        for names, policies in ROWS:
            runs: list[Run] = []
            # Each set of seeds is its own list of trusted pages.
            for sets in [[one] for one in seeds] if "trust" in names else [seeds]:
                trusted.write_text("".join(f"{page}\n" for page in sets[0]))
                runs += inlink.replay(
                    graph, policies=policies, seeds=sets, budget=MARKS[-1], marks=MARKS, wasted=SPAM,
                    lines=False, tau=False, settings={name: values[name] for name in names},
                ).runs  # fmt: skip
            figures = f" with {', '.join(f'`{name}`' for name in names)}" if names else ""
            for policy in policies:
                rows = [run.wasted for run in runs if run.order == policy]
                cells = [_with_error(column) for column in zip(*rows, strict=True)]
                print(markdown.line(f"{policy}{figures}", *cells), flush=True)


def _with_error(shares: Sequence[float]) -> str:
    """Return the mean of shares and its standard error; "nan" is the error of a single share."""
    error = stdev(shares) / len(shares) ** 0.5 if len(shares) > 1 else float("nan")
    return f"{mean(shares):.3f} ± {error:.3f}"

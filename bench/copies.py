"""``python -m bench copies``: fetches that ``sink_duplicates`` saves on webs with mirrors and printer versions.

A web has six hosts of 300 pages in four sections. Hosts may have a printer version of each page, and there may be
mirrors of whole hosts. The text of a copy is that of its page, or differs in one bit of its fingerprint. A crawl begins
at ten random pages that are no copies. Each web is replayed without and with the setting.
"""

import argparse
import random
import statistics
from typing import Any

import numpy as np

from bench import markdown
from inlink.base.arrays import BoolArray
from inlink.graph.graph import Graph
from inlink.rank.pagerank import pagerank
from inlink.replaying.play import ReplayTask, play
from inlink.replaying.web import Web, plain_columns

__all__ = ["copied_web", "main"]

HOSTS, PAGES = 6, 300
SECTIONS = ("docs", "blog", "news", "shop")
WEBS = {
    "no copies": (0, 0),
    "printer versions on four of six hosts": (4, 0),
    "two mirrors": (0, 2),
    "printer versions on two hosts, and a mirror": (2, 1),
}
"""Numbers of hosts with printer versions, and of mirrors."""


def _url(host: int, page: int) -> str:
    return f"http://h{host}.com/{SECTIONS[page % len(SECTIONS)]}/{page}.html"


def copied_web(printers: int, mirrors: int, seed: int) -> tuple[Web, BoolArray]:
    """Make a web; return it, and whether each page is a copy.

    Parameters
    ----------
    printers : int
        Number of hosts with a printer version of each page. A page and its printer version link to each other.
    mirrors : int
        Number of hosts that have a mirror. Thirty pages of other hosts link to each mirror.
    seed : int
        Seed of the random numbers.
    """
    dice = random.Random(seed)
    marks = {_url(host, page): dice.getrandbits(64) | 1 for host in range(HOSTS) for page in range(PAGES)}
    originals = list(marks)
    links: dict[str, set[str]] = {}
    for number, url in enumerate(originals):
        near = [_url(number // PAGES, int(dice.paretovariate(0.6)) % PAGES) for _ in range(8)]
        far = [_url(dice.randrange(HOSTS), int(dice.paretovariate(0.6)) % PAGES) for _ in range(2)]
        links[url] = {*near, *far}
    plain = {url: sorted(targets) for url, targets in links.items()}
    for url in originals[: printers * PAGES]:
        printed = url.replace(".com/", ".com/print/")
        marks[printed] = marks[url] ^ 1 << dice.randrange(64)
        links[printed] = {url, *plain[url][:3]}
        links[url].add(printed)
    for mirror in range(mirrors):
        here, there = f"http://h{HOSTS - 1 - mirror}.com/", f"http://mirror{mirror}.org/"
        for url in originals:
            if url.startswith(here):
                marks[url.replace(here, there)] = marks[url] ^ (dice.random() < 0.5) << dice.randrange(64)
                links[url.replace(here, there)] = {target.replace(here, there) for target in plain[url]}
        for url in dice.sample(originals, 30):
            links[url].add(_url(HOSTS - 1 - mirror, dice.choice((0, 1, 4))).replace(here, there))
    urls = sorted(marks)
    number_of = {url: number for number, url in enumerate(urls)}
    arcs = [(number_of[url], number_of[target]) for url in urls for target in sorted(links[url])]
    graph = Graph.from_arcs(arcs)
    columns: dict[str, Any] = plain_columns(len(urls))
    columns["fingerprints"] = np.array([marks[url] for url in urls], np.uint64)
    web = Web(
        name="copies",
        hosts="real",
        urls=urls,
        graph=graph,
        offsets=np.asarray(graph.out_rows.offsets),
        links=np.asarray(graph.out_rows.nodes),
        outcomes=np.zeros(len(urls), np.uint8),
        **columns,
    )
    return web, np.array([url not in plain for url in urls])


def _shares(kind: tuple[int, int], policy: str, seed: int, share: float) -> list[float]:
    """Return the share of fetches that are copies, and the share of the other pages' PageRank.

    The first two numbers are without the setting, the others with it.
    """
    web, copies = copied_web(*kind, seed)
    seeds = np.random.default_rng(seed).choice(np.flatnonzero(~copies), 10, replace=False).astype(np.uint32)
    ranks = np.where(copies, 0.0, pagerank(web.graph, threads=1).values)
    found: list[float] = []
    for sink in (False, True):
        task = ReplayTask(policy, seeds.tolist(), int(share * web.num_pages), {"sink_duplicates": sink})
        fetched = play(web, task).fetched
        found += [float(copies[fetched].mean()), float(ranks[fetched].sum() / ranks.sum())]
    return found


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench copies", description=__doc__)
    parser.add_argument("--webs", type=int, default=20, help="generated webs of each kind")
    parser.add_argument("--share", type=float, default=0.25, help="share of the pages that are fetched")
    options = parser.parse_args(arguments)
    head = ["web", "order", "copies", "with the setting", "PageRank", "with the setting", "gain"]
    print(markdown.line(*head))
    print(markdown.line("---", "---", *["---:"] * 5))
    for name, kind in WEBS.items():
        for policy in ("host-diverse", "breadth-first"):
            runs = [_shares(kind, policy, seed, options.share) for seed in range(options.webs)]
            copies, rank, sunk, kept = (statistics.fmean(column) for column in zip(*runs, strict=True))
            gains = [run[3] - run[1] for run in runs]
            error = statistics.stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else float("nan")
            gain = f"{kept - rank:+.4f} ± {error:.4f}"
            shares = [f"{one:.3f}" for one in (copies, sunk, rank, kept)]
            print(markdown.line(name, policy, *shares, gain), flush=True)

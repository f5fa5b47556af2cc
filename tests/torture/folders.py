"""The attacked folders: a small crawl and a small graph, with every kind of file."""

import shutil
from pathlib import Path
from random import Random

import inlink
from inlink import Crawl
from inlink.frontier.settings import Politeness

__all__ = ["attacked", "files", "make_crawl", "make_graph"]

EASY = Politeness(delay=0.0, in_flight=1000)


def make_crawl(folder: Path, random: Random, *, visits: int = 40) -> Path:
    """A crawl of some pages on a few hosts: seeds, visits, failures, redirects, exclusions, leases that are out."""
    now = 1_000_000.0
    with Crawl(folder, policy="hits", politeness=EASY, clock=lambda: now, rerank_share=None) as crawl:
        crawl.seed([f"http://seed{k}.example/" for k in range(4)])
        for number in range(visits):
            now += 1
            leases = crawl.next(2)
            if not leases:
                break
            for lease in leases:
                what = random.random()
                if what < 0.1:
                    crawl.failed(lease, "connection refused")
                elif what < 0.15:
                    crawl.exclude(lease, "robots.txt")
                elif what < 0.2:
                    crawl.redirected(lease, f"{lease.url}moved")
                else:
                    links = [
                        (f"http://h{random.randrange(9)}.example/{random.randrange(60)}", random.random())
                        for _ in range(random.randrange(8))
                    ]
                    crawl.crawled(lease, links, score=random.random(), content_hash=bytes([number]))
        crawl.next(3)
    return folder


def make_graph(folder: Path, random: Random, *, nodes: int = 60, arcs: int = 400) -> Path:
    """A weighted graph with names, dangling nodes and self-loops, and two rankings."""
    names = [f"http://h{k % 7}.example.org/{k}" for k in range(nodes)]
    pairs = [(random.choice(names), random.choice(names[: nodes * 2 // 3])) for _ in range(arcs)]
    weights = [random.randrange(1, 9) / 2 for _ in pairs]
    graph = inlink.Graph.from_arcs(pairs, weights=weights, into=folder)
    inlink.pagerank(graph, threads=1).save(folder, "pagerank")
    inlink.hits(graph, threads=1).save(folder, "hits")
    return folder


def files(folder: Path) -> list[Path]:
    """All files of a folder that hold something, as paths within it; locks hold nothing that is read."""
    return sorted(
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock" and path.stat().st_size
    )


def attacked(sound: Path, copy: Path, random: Random) -> str:
    """Make a damaged copy of a folder: a bit flipped, a byte set, a stretch zeroed or cut off; say what was done."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sound, copy)
    path = random.choice(files(sound))
    raw = bytearray((copy / path).read_bytes())
    at = random.randrange(len(raw))
    what = random.random()
    if what < 0.75:
        bit = random.randrange(8)
        raw[at] ^= 1 << bit
        did = f"bit {bit} of byte {at} of {path} flipped"
    elif what < 0.85:
        raw[at] = random.choice([0, 0x0A, 0x7F, 0xFF])
        did = f"byte {at} of {path} set to {raw[at]}"
    elif what < 0.93:
        end = min(at + random.choice([4, 64, 512]), len(raw))
        raw[at:end] = bytes(end - at)
        did = f"bytes {at} to {end} of {path} zeroed"
    else:
        del raw[at:]
        did = f"{path} cut to {at} bytes"
    (copy / path).write_bytes(raw)
    return did

"""Processes killed with SIGKILL at a random moment: the library, a Scrapy spider, and commands."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from archives import response, write
from inlink import Crawl
from inlink.errors import InlinkError
from inlink.store.reader import known_pages
from sites import Site, web
from torture.folders import EASY, make_crawl, make_graph
from torture.trial import command, forked, verdict

__all__ = ["killed_build", "killed_command", "killed_library", "killed_spider"]


def links_of(url: str) -> list[str]:
    """The links of a page of an endless web: a function of its URL alone."""
    random = Random(url)
    return [f"http://h{random.randrange(20)}.example/{random.randrange(2000)}" for _ in range(6)]


def killed_library(random: Random, place: Path) -> list[str]:
    """A crawl that goes on from kill to kill: what was acknowledged before one is there after it."""
    folder, told = place / "library", place / "told"
    if random.random() < 0.05:
        shutil.rmtree(folder, ignore_errors=True)
    told.unlink(missing_ok=True)

    def crawl() -> None:
        with Crawl(folder, policy="breadth-first", politeness=EASY, rerank_share=None) as open_crawl:
            # What the system has of a file outlives its writer, so that this file is what was acknowledged.
            file = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            open_crawl.seed(["http://h0.example/0"])
            while True:
                for lease in open_crawl.next(3):
                    open_crawl.crawled(lease, links_of(lease.url))
                    os.write(file, f"{lease.url}\n".encode())

    ended = forked(crawl, kill_after=random.uniform(0.02, 0.4))
    if ended.code != -signal.SIGKILL:
        return [f"ended by itself, with {ended.code}: {ended.error[-300:]}"]
    acknowledged = told.read_text().split() if told.exists() else []
    try:
        with Crawl(folder, policy="breadth-first", politeness=EASY, rerank_share=None) as again:
            for url in acknowledged:
                page = again.page(url)
                if page is None or page.state != "crawled":
                    return [f"{url} was acknowledged, and is {page and page.state}"]
    except InlinkError as error:
        return [
            "right"
            if not acknowledged and not (folder / "header.json").exists()
            else f"does not open: {error}"
        ]
    if acknowledged:
        url = random.choice(acknowledged)
        reader = known_pages(folder)
        number = int(reader.table.find([url])[0])
        found = {reader.url(int(page)) for page in reader.links(number)}
        reader.close()
        if found != set(links_of(url)):
            return [f"{url} has other links than were reported"]
    return ["right"]


def killed_command(random: Random, place: Path) -> list[str]:
    """A command that writes, killed: its output is whole or absent, and its input what it was."""
    crawl, graph, out = place / "command-crawl", place / "command-graph", place / "command-out"
    if not crawl.exists():
        make_crawl(crawl, Random(6))
        make_graph(graph, Random(6), nodes=2000, arcs=20_000)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    listing = out / "arcs.tsv"
    listing.write_text(
        "".join(f"http://a.example/{k % 977}\thttp://b.example/{k % 811}\n" for k in range(20_000))
    )
    name, arguments, result = random.choice([
        ("build", ["build", listing, "-o", out / "built"], ["info", out / "built", "--verify", "--json"]),
        ("build CRAWL", ["build", crawl, "-o", out / "built"], ["info", out / "built", "--verify", "--json"]),
        ("rank", ["rank", graph, "--name", "killed", "--threads", "1"], ["top", graph, "--by", "killed", "--json"]),
        ("export", ["export", graph, "-o", out / "graph.csv"], None),
        (
            "fold",
            ["fold", graph, "--level", "host", "-o", out / "folded"],
            ["info", out / "folded", "--verify", "--json"],
        ),
        ("dump", ["dump", "links", crawl, "-o", out / "links.txt"], None),
    ])  # fmt: skip
    began = time.monotonic()
    sound = command(*arguments)
    took = time.monotonic() - began
    if sound.code:
        return [f"{name} failed by itself: {sound.error[-300:]}"]
    target = next(
        (
            Path(str(argument))
            for argument in arguments
            if str(argument).startswith(str(out)) and argument != listing
        ),
        None,
    )
    whole = target.read_bytes() if target is not None and target.is_file() else b""
    if target is not None and target.is_dir():
        shutil.rmtree(target)
    elif target is not None:
        target.unlink()
    command(*arguments, kill_after=random.uniform(0, 1.2) * took)
    outcomes = []
    if target is not None and target.is_file() and target.read_bytes() != whole:
        outcomes.append(f"{name}: killed, and its output is not whole")
    if result is not None and (target is None or target.exists()):
        seen = verdict(command(*result), None)
        outcomes.append(seen if seen in ("right", "refused") else f"{name}, killed: {seen}")
    # The next run says nothing of the last one, and leaves nothing of it behind.
    if target is not None and target.is_dir():
        shutil.rmtree(target)
    again = verdict(command(*arguments), None)
    outcomes.append("right" if again == "right" else f"{name} after it was killed: {again}")
    left = [path.name for path in out.iterdir() if path not in (listing, target)]
    if left:
        outcomes.append(f"{name}: {', '.join(left)} left behind by a process that is dead")
    return outcomes


def killed_build(random: Random, place: Path) -> list[str]:
    """A build of many archives, killed again and again: in the end the same bytes as of a build that was not."""
    folder, out = place / "archives", place / "release"
    command_ = ["build", f"{folder}/*.warc.gz", "-o", out, "--level", "host", "--count"]
    if not folder.exists():
        folder.mkdir()
        for k in range(30):
            pages = [
                response(
                    f"http://h{random.randrange(40)}.example.org/{j}",
                    "".join(
                        f'<a href="http://h{random.randrange(99)}.example.com/">x</a>' for _ in range(30)
                    ),
                )
                for j in range(20)
            ]
            write(folder / f"{k:02}.warc.gz", pages)
    began = time.monotonic()
    sound = command(*command_)
    took = time.monotonic() - began
    if sound.code:
        return [f"the build failed by itself: {sound.error[-300:]}"]
    whole = _graph_bytes(out)
    shutil.rmtree(out)
    for _ in range(random.randrange(1, 5)):
        command(*command_, "--workers", random.choice("12"), kill_after=random.uniform(0, 1.1) * took)
        if out.exists():
            break
    if not out.exists():
        again = command(*command_)
        if again.code:
            return [f"after kills the build failed: {again.error[-300:]}"]
    outcomes = ["right" if _graph_bytes(out) == whole else "after kills the graph has other bytes"]
    shutil.rmtree(out)
    left = [path.name for path in place.iterdir() if path.name.startswith("release")]
    if left and left != ["release.parts"]:
        outcomes.append(f"{', '.join(left)} left behind")
    shutil.rmtree(place / "release.parts", ignore_errors=True)
    return outcomes


def _graph_bytes(folder: Path) -> dict[str, object]:
    """All of a graph's folder, but for its uuid."""
    header = json.loads((folder / "header.json").read_bytes())
    for name in ("uuid", "generation", "check"):
        header.pop(name)
    return {"header": header} | {path.name: path.read_bytes() for path in folder.rglob("*.bin")}


SPIDER = """
import sys
from scrapy.crawler import CrawlerProcess
from spiderruns import Walker
process = CrawlerProcess({
    "SCHEDULER": "inlink.scrapy.Scheduler", "INLINK_CRAWL": sys.argv[1], "INLINK_POLICY": "breadth-first",
    "DOWNLOAD_DELAY": 0, "LOG_ENABLED": False, "ROBOTSTXT_OBEY": False, "INLINK_MAX_LOSSES": 50,
})
process.crawl(Walker, start=[sys.argv[2]])
process.start()
"""


def killed_spider(random: Random, place: Path) -> list[str]:
    """A Scrapy spider that is killed and started again until it ends: every page of the site is crawled."""
    folder = place / "spider"
    shutil.rmtree(folder, ignore_errors=True)
    pages = random.randrange(20, 120)
    with Site(web(pages)) as site:
        for _ in range(6):
            child = subprocess.Popen(
                [sys.executable, "-c", SPIDER, folder, site.url("/0")],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            _kill_later(child, random.uniform(0.5, 6.0))
            _, error = child.communicate()
            if child.returncode not in (0, -signal.SIGKILL):
                return [f"ended with {child.returncode}: {error.decode()[-300:]}"]
        last = subprocess.run(
            [sys.executable, "-c", SPIDER, folder, site.url("/0")], capture_output=True, check=False
        )
        if last.returncode:
            return [f"ended with {last.returncode}: {last.stderr.decode()[-300:]}"]
        reader = known_pages(folder)
        states = [reader.page(number).state for number in range(reader.num_pages)]
        reader.close()
    missing = [state for state in states if state != "crawled"]
    return ["right"] if not missing else [f"{len(missing)} of {len(states)} pages are {sorted(set(missing))}"]


def _kill_later(child: "subprocess.Popen[bytes]", seconds: float) -> None:
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()

"""Crawls for the tests of factors that the ranking process publishes for hosts: distrust and spam mass."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import inlink
from crawlstrategies import EAGER, frontier_in
from inlink.base.folder import Folder, building
from inlink.crawl.checkpointing import save, save_from_log
from inlink.crawl.crawl import Crawl
from inlink.crawl.view import CrawlView

DAMPING = 0.85

UNSOUND = {
    "nan": np.array([np.nan], np.float32),
    "above": np.array([1.5], np.float32),
    "below": np.array([-0.5], np.float32),
    "long": np.zeros(99, np.float32),
    "type": np.zeros(2),
}
"""Published shares that must be refused."""


def crawl_of(folder: Path, **given: Any) -> Crawl:
    """A crawl in ``folder / "c"`` that ranks only when it is asked to."""
    polite = {
        "policy": "pagerank",
        "politeness": EAGER,
        "rerank_share": None,
        "clock": inlink.VirtualClock(),
        **given,
    }
    return Crawl(folder / "c", **polite)


def rows(view: CrawlView) -> list[tuple[str, float]]:
    """The URLs that wait and their priorities, best first."""
    return [(row.url, row.priority) for row in view.order(99).rows]


def published(folder: Path) -> Folder:
    """The ranking that a crawl uses."""
    return Folder(folder / "c" / "ranks", "ranks", 1)


def damage(folder: Path, name: str, how: str) -> None:
    """Publish the ranking of a crawl again, with unsound shares, or without any if ``how`` is "missing"."""
    ranks = published(folder)
    rank = np.array(ranks.array("rank"))
    with building(folder / "c" / "ranks", "ranks", 1) as writer:
        writer.write("rank", rank)
        if how in UNSOUND:
            writer.write(name, UNSOUND[how])
        writer.header.meta = ranks.header.meta


def shares_of_process(folder: Path, name: str, **options: object) -> list[float]:
    """The shares that the ranking process publishes when it ranks a crawl anew."""
    uuid = published(folder).header.uuid
    command = [sys.executable, "-m", "inlink.reranking.process", str(folder / "c"), json.dumps(options)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"rank\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["ready"] == 1
        process.stdin.close()
    ranks = published(folder)
    assert ranks.header.uuid != uuid
    found: list[float] = np.array(ranks.array(name)).tolist()
    return found


def keep_checkpoint(crawl: Crawl, how: str) -> None:
    """Write a checkpoint of a crawl from its memory ("live") or its log ("log"), or not at all ("none")."""
    if how == "live":
        save(frontier_in(crawl), crawl._journal.log)
    elif how == "log":
        save_from_log(crawl.folder)


def die(crawl: Crawl) -> None:
    """Print the order of waiting pages, and kill this process."""
    print(json.dumps(rows(crawl.view)), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def order_at_death(module: str, *arguments: str) -> list[tuple[str, float]]:
    """Call ``crawl_until_killed`` of a test module in another process; return the order that it prints."""
    code = f"import {module} as t; t.crawl_until_killed(*{arguments!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)
    assert done.returncode == -signal.SIGKILL
    return [(url, priority) for url, priority in json.loads(done.stdout)]

"""``inlink serve`` with Scrapy's usual limits: no delay, as many requests to a host as all spiders may send.

Each spider has a name of its own, so that one that is started again tells the server that its last run is over.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.spiders.run import Plain

NAME = "inlink serve"
COMPUTES = (
    "links, leases, answers and PageRank on the server; an answer is acknowledged after it is written; synced every "
    "second"
)


def missing() -> str | None:
    return None


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1/crawls/crawl"


def server(folder: Path, port: int) -> Sequence[str]:
    settings = ["politeness.delay=0", "politeness.in_flight=32", "retry_seconds=2"]
    command = [sys.executable, "-m", "inlink", "-q", "serve", str(folder / "crawl"), "--port", str(port)]
    return [*command, *(part for one in settings for part in ("--set", one))]


def begin(port: int, url: str) -> None:
    import inlink

    with inlink.connect(_url(port)) as crawl:
        crawl.seed([url])


def spider() -> type[Any]:
    return Plain


def settings(port: int, number: int) -> dict[str, Any]:
    return {
        "SCHEDULER": "inlink.scrapy.Scheduler",
        "INLINK_CRAWL": _url(port),
        "INLINK_OWNER": f"spider-{number}",
    }

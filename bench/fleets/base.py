"""The interface of servers in the benchmark of several spiders on one crawl, and a function that loads one by name."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

__all__ = ["ALL", "Peer", "peer"]

# The order in which they run and stand in the tables
ALL = ["scrapy_redis", "scrapy_redis_aof", "inlink"]


class Peer(Protocol):
    """A module of this package."""

    # The name in the table.
    NAME: str
    # One line for the table: the data that the server stores, and when it writes them to disk.
    COMPUTES: str

    def missing(self) -> str | None:
        """None, or the reason why it cannot run here."""
        ...

    def server(self, folder: Path, port: int) -> Sequence[str]:
        """The command of the server; all files go below the folder, which is there."""
        ...

    def begin(self, port: int, url: str) -> None:
        """Give the crawl its first URL, once the server listens."""
        ...

    def spider(self) -> type[Any]:
        """The spider's class: it yields a request for each link."""
        ...

    def settings(self, port: int, number: int) -> dict[str, Any]:
        """Scrapy's settings of the spider with this number that make the difference."""
        ...


def peer(name: str) -> Peer:
    """A peer by the name of its file."""
    if name not in ALL:
        raise SystemExit(f"no server {name!r}: there are {', '.join(ALL)}")
    return cast(Peer, importlib.import_module(f"bench.fleets.{name}"))

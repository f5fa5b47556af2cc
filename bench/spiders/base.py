"""The interface of schedulers in the benchmark of Scrapy's door, and a function that loads one by name."""

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

__all__ = ["ALL", "Peer", "available", "peer"]

# The order in which they run and stand in the tables
ALL = ["scrapy_memory", "scrapy_jobdir", "inlink"]


class Peer(Protocol):
    """A module of this package."""

    # The name in the tables.
    NAME: str
    # One line for the table: the data that survive the end of the process.
    COMPUTES: str
    # The spiders that it can be run with.
    SPIDERS: Sequence[str]
    # Whether a crawl can be resumed.
    LASTS: bool

    def settings(self, folder: Path) -> dict[str, Any]:
        """Scrapy's settings that make the difference; all files go below the folder, which is there."""
        ...


def peer(name: str) -> Peer:
    """A peer by the name of its file."""
    if name not in ALL:
        raise SystemExit(f"no scheduler {name!r}: there are {', '.join(ALL)}")
    return cast(Peer, importlib.import_module(f"bench.spiders.{name}"))


def available() -> str | None:
    """None, or the reason why nothing can run here."""
    return None if importlib.util.find_spec("scrapy") else "scrapy is not installed"

"""scrapy-redis on Redis with ``appendonly yes``: a log that is synced every second, as inlink's."""

from collections.abc import Sequence
from pathlib import Path

from bench.fleets.scrapy_redis import begin, missing, settings, spider
from bench.fleets.scrapy_redis import server as with_snapshots

__all__ = ["COMPUTES", "NAME", "begin", "missing", "server", "settings", "spider"]

NAME = "scrapy-redis, `appendonly yes`"
COMPUTES = "the same, with a log of Redis' changes, synced every second"


def server(folder: Path, port: int) -> Sequence[str]:
    return [*with_snapshots(folder, port), "--appendonly", "yes"]

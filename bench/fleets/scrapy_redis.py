"""scrapy-redis with its default queue and filter, on Redis as it comes: snapshots.

By default Redis writes a snapshot 60 s after the last one if 10,000 keys changed, after 300 s if 100 did, and after an
hour if one did. Unfair to it: the crawls of this benchmark are shorter than that, so a killed Redis has nothing.
"""

import importlib.util
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.spiders.run import Plain

NAME = "scrapy-redis"
COMPUTES = (
    "pickled requests and the filter in Redis' memory; no links, no order but priority; snapshots by Redis' default, "
    "the first one after a minute"
)


def missing() -> str | None:
    if importlib.util.find_spec("scrapy_redis") is None:
        return "scrapy-redis is not installed (bench/requirements.txt)"
    return None if shutil.which("redis-server") else "redis-server is not installed"


def server(folder: Path, port: int) -> Sequence[str]:
    return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]


def begin(port: int, url: str) -> None:
    import redis

    with redis.Redis(port=port) as connection:
        connection.lpush("plain:start_urls", json.dumps({"url": url}))


def spider() -> type[Any]:
    from scrapy_redis.spiders import RedisSpider

    class Shared(RedisSpider, Plain):  # type: ignore[misc]
        """Takes its start URLs from Redis, and waits there when it has nothing to do."""

    return Shared


def settings(port: int, number: int) -> dict[str, Any]:
    return {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_PERSIST": True,
        "REDIS_URL": f"redis://127.0.0.1:{port}",
    }

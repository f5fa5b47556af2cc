"""Scrapy with ``JOBDIR``: requests pickled in files, one for each host and priority, the duplicate filter in another.

Unfair to the others: nothing is synced, and the crawl can be resumed only after a clean stop; the order is
last come, first served, and no links are kept.
"""

from pathlib import Path
from typing import Any

NAME = "Scrapy, `JOBDIR`"
COMPUTES = "pickled requests on disk, duplicate filter in memory and in a file; resumes after a clean stop"
SPIDERS = ("plain", "carried", "rules")
LASTS = True


def settings(folder: Path) -> dict[str, Any]:
    return {"JOBDIR": str(folder)}

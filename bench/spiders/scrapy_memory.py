"""Scrapy as it comes: requests and the duplicate filter in memory.

Unfair to the others: whatever ends the process, the crawl begins again; there is no order but last come, first served,
and no links are kept.
"""

from pathlib import Path
from typing import Any

NAME = "Scrapy"
COMPUTES = "duplicate filter and queue in memory; the crawl cannot be resumed"
SPIDERS = ("plain", "carried", "rules")
LASTS = False


def settings(folder: Path) -> dict[str, Any]:
    return {}

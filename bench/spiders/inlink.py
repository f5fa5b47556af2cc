"""inlink's scheduler with its default settings: host-diverse order, a ranking process, a log synced every second.

Unfair to the others: the ranking process has the machine's other processor, which is idle but for the site.
"""

from pathlib import Path
from typing import Any

NAME = "inlink"
COMPUTES = (
    "links, scores, leases, answers and content hashes in a log, synced every second; order by PageRank, ranked anew "
    "by a process of its own; resumes after any stop"
)
SPIDERS = ("plain", "carried", "rules", "links")
LASTS = True


def settings(folder: Path) -> dict[str, Any]:
    return {"SCHEDULER": "inlink.scrapy.Scheduler", "INLINK_CRAWL": str(folder / "crawl")}

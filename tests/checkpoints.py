"""Crawls with checkpoints, and everything that a crawl is, for comparing a checkpoint with the log."""

import shutil
from pathlib import Path

from crawlstrategies import Clock, opened, whole
from inlink.crawl.checkpointing import save
from inlink.crawl.crawl import Crawl
from inlink.crawl.folder import look
from inlink.frontier.frontier import Frontier
from inlink.store.checkpoint import CHECKPOINT


def keep(crawl: Crawl) -> None:
    save(inside(crawl), crawl._journal.log)


def inside(crawl: Crawl) -> Frontier:
    """The frontier of an open crawl. Its ``pages`` are in memory, and not read from the log."""
    return crawl._frontier


def from_checkpoint(crawl: Crawl) -> bool:
    """True if a crawl was opened from a checkpoint."""
    return inside(crawl).pages.checkpoint is not None


def without(folder: Path, copy: Path) -> Path:
    """A copy of a crawl's folder whose events must all be folded."""
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(CHECKPOINT, "lock"))
    return copy


def columns(frontier: Frontier) -> dict[str, list[float]]:
    """The policy's columns."""
    policy, known = frontier.policy, frontier.pages.num_pages
    return {name: getattr(policy, name)[:known].tolist() for name in policy.columns or ()} | {
        name: getattr(policy, name) for name in policy.numbers
    }


def everything(crawl: Crawl) -> dict[str, object]:
    """All that a crawl is, with its order, which is read from the heaps, its policy, and its plans."""
    now, front = crawl._journal.tick(), inside(crawl)
    return whole(crawl) | {
        "order": front.queue.order(1000, now),
        "columns": columns(front),
        "traps": front.traps[: front.pages.num_pages].tolist(),
        "plans": front.plans,
        "never": front.never,
        "lost": {page: front.lost.dates.get(page) for page in range(front.pages.num_pages)},
        "taken": front.queue.rows["taken"][: front.queue.num_slots].tolist(),
        "budgets": front.queue.rows["budget"][: front.queue.num_slots].tolist(),
        "sessions": [(one.owner, one.number, one.asked, one.reported) for one in front.sessions],
    }


def crawl_some(crawl: Crawl, first: int = 0, count: int = 30) -> None:
    for number in range(first, first + count):
        page = f"http://h{number % 7}.com/{number}"
        crawl.seed([page])
        crawl.crawled(page, [f"http://h{(number + k) % 9}.com/{3 * number + k}" for k in range(5)])


def crawl_with_checkpoint(folder: Path) -> Path:
    """Make a crawl's folder with a checkpoint, and events behind it."""
    with opened(folder, Clock(), policy="opic") as crawl:
        crawl_some(crawl)
        keep(crawl)
        crawl_some(crawl, 30, 10)
    return folder


def shown(folder: Path) -> tuple[bool, object]:
    """Open a crawl read-only; return True if it used its checkpoint, and the order of its pages."""
    front = look(folder, Clock())
    used = front.pages.checkpoint is not None
    found = front.queue.order(1000, Clock()()), columns(front), front.pages.states[:50].tolist()
    front.pages.close()
    return used, found

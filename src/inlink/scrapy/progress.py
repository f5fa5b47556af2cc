"""The progress of a crawl: a display on a terminal, or a line every ten seconds in a log."""

import math
import sys
import time
from collections import deque
from typing import TYPE_CHECKING

from inlink.base.table import counted
from inlink.protocol import Standing

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inlink.scrapy.job import RunCounts

# Seconds over which the pages a second are counted.
_WINDOW = 15.0


class Lines:
    """Writes a line to standard error every ``period`` seconds, as suits a log file.

    Parameters
    ----------
    tally : RunCounts
        Counts of the run so far.
    """

    period = 10.0

    def __init__(self, tally: "RunCounts") -> None:
        self.tally = tally
        self._past: deque[tuple[float, int]] = deque()

    def show(self, standing: Standing) -> None:
        """Write the progress."""
        rate = self._rate()
        if rate is not None:
            hosts = ", ".join(f"{host.name} {host.waiting:,}" for host in standing.hosts)
            self.say(f"{told(standing, self.tally, rate)}; waiting: {hosts or 'none'}")

    def say(self, line: str) -> None:
        """Write a line."""
        sys.stderr.write(f"crawl: {line}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Do nothing, because lines need no cleaning up."""

    def _rate(self) -> float | None:
        """Pages a second in the last fifteen seconds; None at the beginning."""
        now, past = time.monotonic(), self._past
        past.append((now, self.tally.crawled))
        while len(past) > 2 and now - past[0][0] > max(_WINDOW, self.period):
            past.popleft()
        before, pages = past[0]
        return (self.tally.crawled - pages) / (now - before) if now > before else None


class Display(Lines):
    """Shows the progress on a terminal, and below it the hosts with the most waiting pages."""

    period = 1.0

    def __init__(self, tally: "RunCounts") -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__(tally)
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
        self._live.start()

    def show(self, standing: Standing) -> None:
        """Update the display."""
        self._live.update(self._drawn(standing, self._rate() or 0.0), refresh=True)

    def say(self, line: str) -> None:
        """Write a line above the display."""
        from rich.text import Text

        self._live.console.print(Text(line))

    def close(self) -> None:
        """Remove the display."""
        self._live.stop()

    def _drawn(self, standing: Standing, rate: float) -> "RenderableType":
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("host")
        for name in ("waiting", "taken", "due in"):
            table.add_column(name, justify="right")
        for host in standing.hosts:
            table.add_row(Text(host.name), f"{host.waiting:,}", f"{host.taken:,}", _when(host.due_in))
        return Group(Text(told(standing, self.tally, rate)), table)


def told(standing: Standing, tally: "RunCounts", rate: float) -> str:
    """The progress of a crawl in one line."""
    parts = [
        counted(standing.crawled, "page"),
        f"{rate:.1f}/s",
        f"{standing.known:,} known",
        f"{standing.waiting:,} waiting",
        counted(tally.failed, "error"),
    ]
    if tally.excluded:
        parts.append(f"{tally.excluded:,} excluded")
    if any(tally.scores):
        parts.append(f"score {sum(tally.scores) / len(tally.scores):.3f}")
    if standing.harvest is not None:
        parts.append(f"harvest {standing.harvest:.1%}")
    return ", ".join(parts)


def _when(due_in: float | None) -> str:
    return "blocked" if due_in is None else f"{due_in:.1f} s" if due_in else "now"


def _later(due_in: float | None) -> str:
    return "blocked" if due_in is None else f"in {due_in:,.0f} s"


def left(standing: Standing) -> str:
    """The pages that a crawl leaves for a later run, and when they are due, in words."""
    pages = standing.waiting + standing.planned
    both = sorted(
        [*standing.hosts, *standing.later], key=lambda host: math.inf if host.due_in is None else host.due_in
    )
    named = ", ".join(f"{host.name} {host.waiting:,} ({_later(host.due_in)})" for host in both[:3])
    return f"{counted(pages, 'page is', 'pages are')} left for later: {named}" + (
        f" and {counted(len(both) - 3, 'more host')}" if len(both) > 3 else ""
    )

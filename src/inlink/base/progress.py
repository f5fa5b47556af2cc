"""Progress of long work: silent in a library, a bar on a terminal, lines in a log.

Long work calls :func:`track`. A caller that wants to show the progress installs a reporter with :func:`reporting`. The
functions in between need no parameter for it.
"""

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, Protocol, Self


class Work:
    """A piece of work in progress; a context manager.

    Parameters
    ----------
    label : str
        Label of the work for the user.
    total : float or None
        The amount of work, in ``unit``; None if it is not known.
    unit : str
        Unit of the amount: ``"B"`` (bytes), ``"arcs"``, ``"sweeps"``, …
    """

    def __init__(self, label: str, total: float | None = None, unit: str = "") -> None:
        self.label, self.total, self.unit = label, total, unit
        self.done = 0.0
        self.note = ""

    def advance(self, amount: float, note: str = "") -> None:
        """Add ``amount`` to the work that is done. ``note`` is shown beside the bar (a residual, a count)."""
        self.done += amount
        self.note = note or self.note

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the work."""


class Reporter(Protocol):
    """Makes the tasks that :func:`track` returns."""

    def task(self, label: str, total: float | None, unit: str) -> Work:
        """Begin a piece of work."""
        ...


_reporter: ContextVar[Reporter | None] = ContextVar("inlink_reporter", default=None)


def track(label: str, total: float | None = None, unit: str = "") -> Work:
    """Begin a piece of work, with the installed reporter if there is one."""
    reporter = _reporter.get()
    return Work(label, total, unit) if reporter is None else reporter.task(label, total, unit)


@contextlib.contextmanager
def reporting(reporter: Reporter) -> Iterator[None]:
    """Install a reporter for the work inside the block."""
    token = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(token)


class LineReporter:
    """Writes a line to standard error every ``every`` seconds, as is best in a log file."""

    def __init__(self, every: float = 10.0) -> None:
        self.every = every

    def task(self, label: str, total: float | None, unit: str) -> Work:
        """Begin a piece of work."""
        return _LineTask(label, total, unit, self.every)


class _LineTask(Work):
    def __init__(self, label: str, total: float | None, unit: str, every: float) -> None:
        super().__init__(label, total, unit)
        self._every = every
        self._began = self._said = time.monotonic()

    def advance(self, amount: float, note: str = "") -> None:
        super().advance(amount, note)
        now = time.monotonic()
        if now - self._said >= self._every:
            self._said = now
            share = f" ({self.done / self.total:.0%})" if self.total else ""
            extra = f", {self.note}" if self.note else ""
            sys.stderr.write(
                f"{self.label}: {self.done:,.0f} {self.unit}{share} after {now - self._began:.0f} s{extra}\n"
            )


class _BarReporter:
    """One display for all tasks, because rich allows only one display."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )

    def task(self, label: str, total: float | None, unit: str) -> Work:
        return _BarTask(self.bar, label, total, unit)


class _BarTask(Work):
    def __init__(self, bar: Any, label: str, total: float | None, unit: str) -> None:
        super().__init__(label, total, unit)
        self._bar = bar

    def advance(self, amount: float, note: str = "") -> None:
        super().advance(amount, note)
        self._bar.update(self._id, completed=self.done, note=self.note)

    def __enter__(self) -> Self:
        if not self._bar.tasks:
            self._bar.start()
        self._id = self._bar.add_task(self.label, total=self.total, note="")
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.remove_task(self._id)
        if not self._bar.tasks:
            self._bar.stop()


class _Compiling(logging.Handler):
    """Writes to standard error that loops are being compiled. The log reports this once in a process."""

    def emit(self, record: logging.LogRecord) -> None:
        if not getattr(record, "shown", False):
            sys.stderr.write(f"inlink: {record.getMessage()}\n")
        # Other handlers must not show this message again.
        record.shown = True


def show_compiling() -> _Compiling:
    """From now on, write a line to standard error if loops must be compiled; for notebooks."""
    log, handler = logging.getLogger("inlink.compiling"), _Compiling()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    return handler


@contextlib.contextmanager
def progress() -> Iterator[None]:
    """Show the progress of the work inside the block: a bar on a terminal, a line every ten seconds in a log.

    If loops have to be compiled first, a line says so.

    Examples
    --------
    >>> import inlink
    >>> with inlink.progress():
    ...     graph = inlink.read("links.tsv")  # doctest: +SKIP
    """
    log = logging.getLogger("inlink.compiling")
    level, handler = log.level, show_compiling()
    try:
        with reporting(_BarReporter() if sys.stderr.isatty() else LineReporter()):
            yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)

"""The log of ``inlink crawl``: Scrapy's, made calm enough for somebody who looks on."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scrapy.logformatter import LogFormatter, LogFormatterResult

from inlink.errors import InlinkError
from inlink.scrapy.job import Job

__all__ = ["CalmLog", "logging_to"]

_TOLD = ("inlink.compiling", "inlink.addresses")  # loggers whose INFO is shown too, unless the run is quiet


class CalmLog(LogFormatter):
    """Errors of the network are the crawl's daily bread: it counts and keeps them, so the log need not cry."""

    def download_error(self, *args: Any, **kwargs: Any) -> LogFormatterResult:
        """What could not be downloaded."""
        return {**super().download_error(*args, **kwargs), "level": logging.DEBUG}


class _Log(logging.Handler):
    """Writes a line to whatever standard error is at the time: a display keeps it above itself."""

    def __init__(self, job: Job, verbose: bool) -> None:
        super().__init__(logging.INFO)
        self._job, self._verbose = job, verbose

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; tracebacks only where all is asked for. Why a crawl cannot go on is not said twice."""
        quiet = record.levelno < logging.WARNING and record.name not in _TOLD
        if quiet and not self._verbose:
            return
        if record.name == "inlink.scrapy" and isinstance(record.args, tuple):
            told = next((one for one in record.args if isinstance(one, InlinkError)), None)
            if told is not None:  # the scheduler cannot go on for that
                self._job.error = self._job.error or told
                return
        if record.name == "py.warnings" and not self._verbose:
            return
        line = record.getMessage() if not self._verbose else self.format(record)
        if not self._verbose:
            line = "".join(c if c.isprintable() else " " for c in line[:1000])
        sys.stderr.write(f"crawl: {record.levelname.lower()}: {line}\n")


@contextmanager
def logging_to(job: Job, verbose: bool, quiet: bool) -> Iterator[None]:
    """Show the log of what is done inside the block, and note in the job what it could not go on for."""
    root, told = logging.getLogger(), [logging.getLogger(name) for name in _TOLD]
    handler = _Log(job, verbose)
    level = root.level
    root.addHandler(handler)
    if verbose:
        root.setLevel(logging.INFO)
    if not quiet:
        for one in told:
            one.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        for one in told:
            one.setLevel(logging.NOTSET)

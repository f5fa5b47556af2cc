"""The log of ``inlink crawl``: the messages of Scrapy's log that concern the user."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scrapy.logformatter import LogFormatter, LogFormatterResult

from inlink.errors import InlinkError
from inlink.scrapy.job import Job

__all__ = ["CalmLog", "logging_to"]

_TOLD = ("inlink.compiling", "inlink.addresses", "inlink.sitemaps")
"""Loggers whose messages of level INFO are shown too, unless the run is quiet."""


class CalmLog(LogFormatter):
    """Logs download errors at level DEBUG: they are normal, and the crawl counts and keeps them."""

    def download_error(self, *args: Any, **kwargs: Any) -> LogFormatterResult:
        """The record of a download that failed."""
        return {**super().download_error(*args, **kwargs), "level": logging.DEBUG}


class _StderrHandler(logging.Handler):
    """Writes lines to the present standard error, so that a progress display can print them above itself."""

    def __init__(self, job: Job, verbose: bool) -> None:
        super().__init__(logging.INFO)
        self._job, self._verbose = job, verbose

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, with its traceback if verbose. The reason why a crawl cannot go on is written only once."""
        quiet = record.levelno < logging.WARNING and record.name not in _TOLD
        if (quiet and not self._verbose) or getattr(record, "shown", False):
            return
        if record.name == "inlink.scrapy" and isinstance(record.args, tuple):
            told = next((argument for argument in record.args if isinstance(argument, InlinkError)), None)
            if told is not None:
                # This is the reason why the scheduler cannot go on.
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
    """Show the log while the block runs. If the crawl cannot go on, store the reason in the job."""
    root, told = logging.getLogger(), [logging.getLogger(name) for name in _TOLD]
    handler = _StderrHandler(job, verbose)
    level = root.level
    root.addHandler(handler)
    if verbose:
        root.setLevel(logging.INFO)
    if not quiet:
        for logger in told:
            logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        for logger in told:
            logger.setLevel(logging.NOTSET)

"""The failures of a crawl by their causes, counted from the log a few milliseconds at a time."""

import time
from collections import deque

import msgspec
import numpy as np

from inlink.base.arrays import AnyArray
from inlink.crawl import shown
from inlink.frontier.causes import cause_of
from inlink.store.format import EXCLUDED_ONE, FAILED, HEAD, KINDS
from inlink.store.kernels.frames import find_kinds
from inlink.store.page import error_of
from inlink.store.pages import Pages

__all__ = ["ErrorSurvey"]

MOST_CAUSES = 100
"""Maximum number of causes that are counted separately. Further causes are counted together."""

EXAMPLES = 3

OTHERS = "others"

_BYTES = 1 << 20
"""Number of bytes of the log that are read between two looks at the clock. Each failure in them adds a look."""

_ALL = np.uint64((1 << len(KINDS)) - 1)


class _Cause(msgspec.Struct):
    """The number of failures with a cause, and the last of them: page, error, status and time of each."""

    count: int = 0
    last: "deque[tuple[int, str, int, float]]" = msgspec.field(default_factory=lambda: deque(maxlen=EXAMPLES))


class ErrorSurvey:
    """Counts the failures of a crawl by cause.

    Parameters
    ----------
    pages : Pages
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._causes: dict[str, _Cause] = {}
        self._place = 0
        self._left: list[int] = []

    def proceed(self, now: float, seconds: float) -> shown.Errors:
        """Read on in the log for some CPU time; return the counts so far.

        Parameters
        ----------
        now : float
            Unix time.
        seconds : float
        """
        end, stop = self._pages.events_end, time.thread_time() + seconds
        while self._left or self._place < end:
            if not self._left:
                self._left = self._failures(end)
            while self._left:
                self._take(self._left.pop())
                if time.thread_time() > stop:
                    break
            if time.thread_time() > stop:
                break
        whole = not self._left and self._place >= end
        return self._told(now, end, whole)

    def _failures(self, end: int) -> list[int]:
        """Places of the failures in the next part of the log, in reverse order."""
        until = self._pages.frame_end(min(self._place + _BYTES, end))
        log = self._pages.log_between(self._place, until)
        places = find_kinds(log, np.uint64(self._place), np.uint64(until), _ALL).astype(np.int64)
        self._place = int(places[-1]) + int(_field(log, places[-1:], "length")[0])
        failed: list[int] = places[_field(log, places, "kind") == FAILED].tolist()
        return failed[::-1]

    def _take(self, place: int) -> None:
        frame = self._pages.frame(place)
        error = error_of(frame)
        name = cause_of(frame.status, error, bool(frame.flags & EXCLUDED_ONE))
        if name not in self._causes and len(self._causes) >= MOST_CAUSES:
            name = OTHERS
        cause = self._causes.setdefault(name, _Cause())
        cause.count += 1
        for example in cause.last:
            if example[0] == frame.page:
                cause.last.remove(example)
                break
        cause.last.append((frame.page, error, frame.status, frame.time))

    def _told(self, now: float, end: int, whole: bool) -> shown.Errors:
        rows = sorted(self._causes.items(), key=lambda row: (-row[1].count, row[0]))
        causes = [
            shown.ErrorCause(
                name,
                cause.count,
                [
                    shown.ErrorExample(page, self._pages.url(page), error, status, max(now - then, 0.0))
                    for page, error, status, then in reversed(cause.last)
                ],
            )
            for name, cause in rows
        ]
        total = sum(cause.count for _, cause in rows)
        return shown.Errors(causes, total, min(self._place, end), end, None if whole else str(self._place))


def _field(log: AnyArray, places: AnyArray, name: str) -> AnyArray:
    """A field of the heads of the frames at these places."""
    kind, offset = HEAD.fields[name][:2]  # type: ignore[index]
    at = places[:, None] + np.arange(offset, offset + kind.itemsize)
    return np.ascontiguousarray(log[at]).view(kind)[:, 0]

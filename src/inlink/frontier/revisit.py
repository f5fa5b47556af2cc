"""When a crawled page is fetched again: schedules. Each is a pure function of the page's history, without a clock.

- :class:`FixedInterval`: every so many seconds.
- :class:`ChangeRate`: Aduana's frequency scheduler. A page is fetched at a frequency in proportion to the rate of its
  changes, f = scale·(changes + 1)/(last crawl − first crawl).
- :class:`Adaptive`: Nutch's adaptive fetch schedule (``AdaptiveFetchSchedule.java``). The interval shrinks with each
  crawl that finds a change and grows with each that does not, so that it settles where the page changes.

A schedule answers once for each crawl. What it needs to remember is one number, the interval in force, which the
caller keeps and gives back with the next history.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import isfinite
from typing import Any, Protocol

from inlink.errors import ParameterError
from inlink.frontier.backoff import classify

__all__ = [
    "Adaptive",
    "ChangeRate",
    "FixedInterval",
    "History",
    "Next",
    "Schedule",
    "revisit_as_data",
    "revisit_of",
]

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class History:
    """What is known of a page right after a crawl.

    Parameters
    ----------
    first_crawl, last_crawl : float
        Times in seconds.
    crawls : int
        How often it was crawled, at least once.
    changes : int
        How often its content differed from the time before.
    modified : bool or None
        Whether the last crawl found a change; None where that is not known. After the first crawl it is not.
    interval : float
        The interval in force until now, as the schedule gave it; 0 where there was none.
    status : int or None
        HTTP status of the last crawl.
    changed_at : float or None
        When the page changed last, by its own word or by the crawl that found it; None where that is not known.
    url : str
        The page's canonical URL.
    """

    first_crawl: float
    last_crawl: float
    crawls: int
    changes: int = 0
    modified: bool | None = None
    interval: float = 0.0
    status: int | None = 200
    changed_at: float | None = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class Next:
    """What a schedule answers.

    Parameters
    ----------
    due_in : float or None
        Seconds from the last crawl; None is never.
    interval : float
        The interval that is now in force, in seconds, for the next history.
    """

    due_in: float | None
    interval: float


class Schedule(Protocol):
    """What decides when a page is fetched again; any object with this method is one."""

    def next(self, history: History) -> Next:
        """When the page is due, and the interval in force."""
        ...


@dataclass(frozen=True)
class FixedInterval:
    """Every page again after so many seconds.

    Parameters
    ----------
    seconds : float
        The interval, above 0.

    Raises
    ------
    inlink.errors.ParameterError
        If it is not.
    """

    seconds: float = 30 * DAY

    def __post_init__(self) -> None:
        _above_zero(self, "seconds")

    def next(self, history: History) -> Next:
        """When the page is due, and the interval in force."""
        return Next(self.seconds, self.seconds)


@dataclass(frozen=True)
class ChangeRate:
    """Aduana's frequency scheduler: pages that change often are fetched often.

    Parameters
    ----------
    scale : float or None
        The frequency is so many times the rate of changes; None gives every page the default frequency (Aduana's
        ``FREQ_SCALE=-1``, its default).
    default : float
        Crawls a second of pages of which no rate is known, since they were crawled once or at one moment. Aduana's
        0.1 is every ten seconds.
    spec : sequence of (str, str or float)
        Rules by URL instead of ``scale``: a regular expression that the URL begins with, and ``"x2.5"``, times the
        rate of changes (the default frequency where none is known), or seconds between crawls. The first that fits
        counts; a page that none fits is never fetched again, as with Aduana's ``FREQ_SPEC`` (end with
        ``(".*", "x1")`` to fetch it).
    margin : float
        A page is due after 1/(f·(1 + margin)) seconds: 0.1 lets it be up to a tenth too early. Aduana's −1, which
        never waits, is not offered: it is the order of a queue and not a time.
    max_crawls : int or None
        A page that was crawled so often is not fetched again.
    shortest : float
        Seconds between two crawls at the least, whatever the rate: two changes within a moment make a rate without
        bound.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter lies outside its meaning; a bad regular expression is named.

    Examples
    --------
    >>> daily = History(first_crawl=0, last_crawl=10 * 86_400, crawls=11, changes=9)
    >>> ChangeRate().next(daily).due_in / 86_400
    1.0
    >>> ChangeRate(spec=[("https?://news[.]", "x24"), (".*", 3600)]).next(daily)
    Next(due_in=3600.0, interval=3600.0)
    """

    scale: float | None = 1.0
    default: float = 0.1
    spec: Sequence[tuple[str, str | float]] = ()
    margin: float = 0.0
    max_crawls: int | None = None
    shortest: float = 1.0

    def __post_init__(self) -> None:
        if self.scale is not None:
            _above_zero(self, "scale")
        _above_zero(self, "default")
        _above_zero(self, "shortest")
        if not (_is_number(self.margin) and self.margin >= 0):
            raise ParameterError(f"ChangeRate: margin must be a number of at least 0, not {self.margin!r}")
        if self.max_crawls is not None:
            _above_zero(self, "max_crawls")
        spec = tuple(tuple(rule) for rule in self.spec)
        for rule in spec:
            if len(rule) != 2 or not isinstance(rule[0], str) or not isinstance(rule[1], str | int | float):
                raise ParameterError(
                    f"ChangeRate: a rule is a pair (regular expression, 'x2' or seconds), not {rule!r}"
                )
            _compiled(rule[0])
            _action(rule[1])
        object.__setattr__(self, "spec", spec)

    def next(self, history: History) -> Next:
        """When the page is due, and the interval in force."""
        frequency = self._frequency(history)
        if frequency is None:
            return Next(None, history.interval)
        interval = max(1.0 / frequency, self.shortest)
        if self.max_crawls is not None and history.crawls >= self.max_crawls:
            return Next(None, interval)
        return Next(max(interval / (1.0 + self.margin), self.shortest), interval)

    def _frequency(self, history: History) -> float | None:
        span = history.last_crawl - history.first_crawl
        known = history.crawls > 1 and span > 0
        rate = (history.changes + 1) / max(span, 1e-9) if known else self.default
        for pattern, action in self.spec:
            if _compiled(pattern).match(history.url):
                factor, seconds = _action(action)
                return rate * factor if seconds is None else 1.0 / seconds
        if self.spec:
            return None
        if self.scale is None or not known:
            return self.default
        return rate * self.scale


@dataclass(frozen=True)
class Adaptive:
    """Nutch's adaptive fetch schedule, with its defaults.

    Parameters
    ----------
    initial : float
        The interval in seconds until the second crawl (``db.fetch.interval.default``).
    inc, dec : float
        The interval becomes (1 + inc) times itself after a crawl that found no change, (1 − dec) times after one that
        did; it stays where that is not known.
    shortest, longest : float
        Bounds of the interval in seconds.
    sync_delta : bool
        Draw the crawls towards the changes: where the last change is longer ago than the interval, the interval
        becomes that long; and the next crawl comes earlier by ``sync_delta_rate`` of the time since the change.
    sync_delta_rate : float
        From 0 to 1.
    gone : float
        The interval becomes so many times itself where the page is gone (404, 410): none is gone for ever.

    Notes
    -----
    One thing differs from Nutch. It takes the shift from the whole time since the change, however long: a page
    that says it is ten years old, with an interval of at most one year, would be due two years before its last crawl,
    and so always. Here the shift is taken from that time or the interval, whichever is less.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter lies outside its meaning.

    Examples
    --------
    >>> history = dict(first_crawl=0, last_crawl=100, crawls=2, interval=100)
    >>> [round(Adaptive().next(History(modified=m, **history)).interval) for m in (None, True, False)]
    [100, 80, 140]
    """

    initial: float = 30 * DAY
    inc: float = 0.4
    dec: float = 0.2
    shortest: float = 60.0
    longest: float = 365 * DAY
    sync_delta: bool = True
    sync_delta_rate: float = 0.3
    gone: float = 1.5

    def __post_init__(self) -> None:
        for name in ("initial", "shortest", "longest", "gone"):
            _above_zero(self, name)
        if self.shortest > self.longest:
            raise ParameterError(
                f"Adaptive: shortest ({self.shortest:g} s) lies above longest ({self.longest:g} s)"
            )
        if not (_is_number(self.inc) and self.inc >= 0):
            raise ParameterError(f"Adaptive: inc must be a number of at least 0, not {self.inc!r}")
        for name in ("dec", "sync_delta_rate"):
            value = getattr(self, name)
            if not (_is_number(value) and 0 <= value <= 1):
                raise ParameterError(f"Adaptive: {name} must be a number from 0 to 1, not {value!r}")

    def next(self, history: History) -> Next:
        """When the page is due, and the interval in force."""
        interval = history.interval if history.interval > 0 else self.initial
        if classify(history.status) == "gone":
            interval = self._bounded(interval * self.gone)
            return Next(interval, interval)
        since = 0.0
        if history.crawls > 1 and history.modified is not None:
            interval *= 1.0 - self.dec if history.modified else 1.0 + self.inc
        if self.sync_delta and not history.modified and history.changed_at is not None:
            since = max(history.last_crawl - history.changed_at, 0.0)
            interval = max(interval, since)
        interval = self._bounded(interval)
        return Next(interval - self.sync_delta_rate * min(since, interval), interval)

    def _bounded(self, interval: float) -> float:
        return min(max(interval, self.shortest), self.longest)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> "re.Pattern[str]":
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ParameterError(f"ChangeRate: {pattern!r} is no regular expression: {error}") from None


@lru_cache(maxsize=256)
def _action(action: str | float) -> tuple[float, float | None]:
    """What a rule says: a multiplier, or seconds."""
    try:
        if isinstance(action, str) and action.startswith("x"):
            number, seconds = float(action[1:]), None
        else:
            number = seconds = float(action)
    except ValueError:
        number, seconds = 0.0, None
    if not (isfinite(number) and number > 0):
        raise ParameterError(
            f"ChangeRate: a rule gives 'x' and a multiplier, or seconds, above 0, not {action!r}"
        )
    return number, seconds


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _above_zero(schedule: object, name: str) -> None:
    value = getattr(schedule, name)
    if not (_is_number(value) and value > 0):
        raise ParameterError(f"{type(schedule).__name__}: {name} must be a number above 0, not {value!r}")


def revisit_as_data(schedule: Schedule | None) -> dict[str, Any] | None:
    """A schedule of this module as what JSON can hold, for :func:`revisit_of`; None for one of the user's own."""
    if isinstance(schedule, FixedInterval | ChangeRate | Adaptive):
        return {"schedule": type(schedule).__name__, **asdict(schedule)}
    return None


def revisit_of(data: dict[str, Any] | None) -> Schedule | None:
    """The schedule that :func:`revisit_as_data` was given."""
    if data is None:
        return None
    kinds = {one.__name__: one for one in (FixedInterval, ChangeRate, Adaptive)}
    rest = dict(data)
    made: Schedule = kinds[rest.pop("schedule")](**rest)
    return made

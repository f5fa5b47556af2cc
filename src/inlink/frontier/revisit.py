"""Schedules decide when a crawled page is fetched again. Each is a pure function of the page's history.

- :class:`FixedInterval`: at a fixed interval in seconds.
- :class:`ChangeRate`: Aduana's frequency scheduler. The frequency of fetches is proportional to the rate of
  changes, f = scale·(changes + 1)/(last crawl − first crawl).
- :class:`Adaptive`: Nutch's adaptive fetch schedule (``AdaptiveFetchSchedule.java``). The interval shrinks after each
  crawl that finds a change and grows after each crawl that finds none. It thus approaches the time between changes.
- :class:`ByValue`: a budget of fetches is spent where it keeps most rank current: by rank × learned rate of changes.

A schedule is called once for each crawl. It has no clock and no state. The caller keeps the current interval
and passes it with the next history. :class:`ByValue` is the exception, because a budget is shared by all pages: its
times come from :class:`inlink.frontier.byvalue.PageValues`.

:class:`RevisitRules` fix or bound the intervals of any schedule by host or URL.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import lru_cache
from math import inf, isfinite
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable

from inlink.base.declare import Parameter, PositiveSeconds, check_fields, imported
from inlink.base.settings import LONGEST
from inlink.errors import ParameterError
from inlink.frontier.backoff import classify
from inlink.frontier.rules import RuleGroup, host_named, host_of
from inlink.urls.patterns import compiled

__all__ = [
    "Adaptive",
    "ByValue",
    "ChangeRate",
    "FixedInterval",
    "History",
    "Next",
    "RevisitRule",
    "RevisitRules",
    "Schedule",
    "StoredSchedule",
    "revisit_as_data",
    "revisit_of",
]

DAY = 86_400.0

Share = Annotated[float, Parameter(at_least=0, at_most=1)]


@dataclass(frozen=True, slots=True)
class History:
    """The history of a page right after a crawl.

    Parameters
    ----------
    first_crawl, last_crawl : float
        Unix times.
    crawls : int
        Number of crawls, at least 1.
    changes : int
        Number of crawls that found different content from the crawl before.
    modified : bool or None
        Whether the last crawl found a change; None if unknown, as after the first crawl.
    interval : float
        The interval until now, in seconds, as the schedule returned it; 0 if there was no interval.
    status : int or None
        HTTP status of the last crawl.
    changed_at : float or None
        Unix time of the last change, from the page itself or from a crawl that found it; None if unknown.
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
    """The answer of a schedule.

    Parameters
    ----------
    due_in : float or None
        Seconds from the last crawl until the page is due; None means never.
    interval : float
        The new interval in seconds, to be passed in the next history.
    """

    due_in: float | None
    interval: float


@runtime_checkable
class Schedule(Protocol):
    """Decides when a page is fetched again. Any object with this method is a schedule."""

    def next(self, history: History) -> Next:
        """Return when the page is due, and the new interval."""
        ...


@dataclass(frozen=True)
class FixedInterval:
    """Fetch every page again after a fixed interval.

    Parameters
    ----------
    seconds : float
        The interval, above 0.

    Raises
    ------
    inlink.errors.ParameterError
        If ``seconds`` is not above 0.
    """

    seconds: Annotated[PositiveSeconds, Parameter("Seconds between two crawls.")] = 30 * DAY

    def __post_init__(self) -> None:
        check_fields(self, "FixedInterval.")

    def next(self, history: History) -> Next:
        """Return when the page is due, and the new interval."""
        return Next(self.seconds, self.seconds)


@dataclass(frozen=True)
class ChangeRate:
    """Aduana's frequency scheduler: pages that change often are fetched often.

    Parameters
    ----------
    scale : float or None
        The frequency of fetches is the rate of changes times this factor. None gives every page the default frequency
        (Aduana's ``FREQ_SCALE=-1``, its default).
    default : float
        Crawls a second of pages whose rate of changes is unknown, because they were crawled only once or at one
        moment. Aduana's default of 0.1 is a crawl every ten seconds.
    spec : sequence of (str, str or float)
        Rules by URL instead of ``scale``. Each rule has a regular expression that matches at the beginning of the URL,
        and a frequency. ``"x2.5"`` is a factor of the rate of changes, or of the default frequency if the rate is
        unknown. A number is the seconds between crawls. The first matching rule applies. A page that no rule matches
        is never fetched again, as with Aduana's ``FREQ_SPEC``. End with ``(".*", "x1")`` to fetch such pages too.
    margin : float
        A page is due after 1/(f·(1 + margin)) seconds, so with 0.1 it may be up to a tenth too early. Aduana's −1, with
        which a page never waits, is not allowed. It defines the order of a queue, not a time.
    max_crawls : int or None
        A page with this many crawls is not fetched again.
    shortest : float
        Minimum number of seconds between two crawls, for any rate. Without it, two changes within a moment would give
        an unbounded rate.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is outside its range, or a regular expression is invalid; the message names it.

    Examples
    --------
    >>> daily = History(first_crawl=0, last_crawl=10 * 86_400, crawls=11, changes=9)
    >>> ChangeRate().next(daily).due_in / 86_400
    1.0
    >>> ChangeRate(spec=[("https?://news[.]", "x24"), (".*", 3600)]).next(daily)
    Next(due_in=3600.0, interval=3600.0)
    """

    scale: Annotated[
        float | None,
        Parameter(
            "Frequency of crawls divided by the rate of changes.",
            above=0,
            at_most=1e9,
            none="the default frequency for every page",
        ),
    ] = 1.0
    default: Annotated[
        float,
        Parameter("Crawls a second of pages whose rate of changes is unknown.", above=0, at_most=1e6),
    ] = 0.1
    spec: Sequence[tuple[str, str | float]] = ()
    margin: Annotated[
        float, Parameter("Share of the interval by which a page is due earlier.", at_least=0, at_most=1e6)
    ] = 0.0
    max_crawls: Annotated[
        int | None,
        Parameter(
            "Number of crawls after which a page is not fetched again.",
            at_least=1,
            at_most=0xFFFFFFFF,
            none="no limit",
        ),
    ] = None
    shortest: Annotated[PositiveSeconds, Parameter("Minimum number of seconds between two crawls.")] = 1.0

    def __post_init__(self) -> None:
        check_fields(self, "ChangeRate.")
        rules: Any = self.spec
        if isinstance(rules, str | bytes) or not isinstance(rules, Iterable):
            raise ParameterError(f"ChangeRate.spec must be a list of rules; got {rules!r}")
        spec = []
        for rule in rules:
            pair = tuple(rule) if isinstance(rule, list | tuple) else ()
            sound = len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], str | int | float)
            if not sound or isinstance(pair[1], bool):
                raise ParameterError(
                    "ChangeRate: a rule must be a pair (regular expression, 'x2' or seconds); got "
                    + repr(rule)
                )
            compiled(pair[0], "ChangeRate")
            _action(pair[1])
            spec.append(pair)
        object.__setattr__(self, "spec", tuple(spec))

    def next(self, history: History) -> Next:
        """Return when the page is due, and the new interval."""
        frequency = self._frequency(history)
        if frequency is None:
            return Next(None, history.interval)
        interval = max(1.0 / frequency, self.shortest)
        if self.max_crawls is not None and history.crawls >= self.max_crawls:
            return Next(None, interval)
        return Next(max(interval / (1.0 + self.margin), self.shortest), interval)

    def _frequency(self, history: History) -> float | None:
        span = history.last_crawl - history.first_crawl
        has_rate = history.crawls > 1 and span > 0
        rate = (history.changes + 1) / max(span, 1e-9) if has_rate else self.default
        for pattern, action in self.spec:
            if compiled(pattern, "ChangeRate").begins(history.url):
                factor, seconds = _action(action)
                return rate * factor if seconds is None else 1.0 / seconds
        if self.spec:
            return None
        if self.scale is None or not has_rate:
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
        The interval is multiplied by (1 + inc) after a crawl that found no change, and by (1 − dec) after a crawl that
        found a change. If that is unknown, the interval stays the same.
    shortest, longest : float
        Bounds of the interval in seconds.
    sync_delta : bool
        Move the crawls towards the times of changes. If the last change is longer ago than the interval, the interval
        becomes that time. The next crawl comes earlier by ``sync_delta_rate`` of the time since the change.
    sync_delta_rate : float
        Share of the time since the change, from 0 to 1.
    gone : float
        Factor of the interval if the page is gone (404, 410). Such a page is still crawled again.
    at_latest : float
        Seconds after which every page is crawled again (``db.fetch.interval.max``). If the interval of a page that is
        gone would reach this value, the interval becomes 0.9 of this value.

    Notes
    -----
    Differences from Nutch 1.23:

    - Nutch computes the shift from the whole time since the change. A page with an interval of one year that changed
      two years ago is due after 0.4 years. If the shift exceeds `longest`, Nutch drops it. Here the shift is computed
      from that time or the interval, whichever is less.
    - Nutch crawls a page at once if it is due later than `at_latest`. Here the page is crawled after `at_latest`.
    - Nutch rounds intervals to seconds. It also supports a fixed interval for a URL and bounds for a host.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is outside its range.

    Examples
    --------
    >>> history = dict(first_crawl=0, last_crawl=100, crawls=2, interval=100)
    >>> [round(Adaptive().next(History(modified=m, **history)).interval) for m in (None, True, False)]
    [100, 80, 140]
    """

    initial: Annotated[PositiveSeconds, Parameter("Seconds until the second crawl.")] = 30 * DAY
    inc: Annotated[
        float,
        Parameter(
            "Share by which the interval grows after a crawl without a change.", at_least=0, at_most=1e6
        ),
    ] = 0.4
    dec: Annotated[Share, Parameter("Share by which the interval shrinks after a change.")] = 0.2
    shortest: Annotated[PositiveSeconds, Parameter("The shortest interval.")] = 60.0
    longest: Annotated[PositiveSeconds, Parameter("The longest interval.")] = 365 * DAY
    sync_delta: Annotated[bool, Parameter("Move the crawls towards the times of changes.")] = True
    sync_delta_rate: Annotated[
        Share, Parameter("Share of the time since the change by which crawls move.")
    ] = 0.3
    gone: Annotated[float, Parameter("Factor of the interval if the page is gone.", above=0, at_most=1e6)] = (
        1.5
    )
    at_latest: Annotated[PositiveSeconds, Parameter("Every page is crawled again after this time.")] = (
        90 * DAY
    )

    def __post_init__(self) -> None:
        check_fields(self, "Adaptive.")
        if self.shortest > self.longest:
            raise ParameterError(
                f"Adaptive: shortest ({self.shortest:g} s) is above longest ({self.longest:g} s)"
            )

    def next(self, history: History) -> Next:
        """Return when the page is due, and the new interval."""
        interval = history.interval if history.interval > 0 else self.initial
        if classify(history.status) == "gone":
            interval *= self.gone
            if interval >= self.at_latest:
                interval = 0.9 * self.at_latest
            return Next(interval, interval)
        since = 0.0
        if history.crawls > 1 and history.modified is not None:
            interval *= 1.0 - self.dec if history.modified else 1.0 + self.inc
        if self.sync_delta and not history.modified and history.changed_at is not None:
            since = max(history.last_crawl - history.changed_at, 0.0)
            interval = max(interval, since)
        interval = min(max(interval, self.shortest), self.longest)
        due_in = interval - self.sync_delta_rate * min(since, interval)
        return Next(min(due_in, self.at_latest), interval)


@dataclass(frozen=True)
class ByValue:
    """Spend a budget of revisits where it keeps most rank current.

    A page is due when the value of its fetch reaches a threshold: see :mod:`inlink.frontier.byvalue`. The threshold is
    set so that the revisits of all pages use the budget. Rates of changes are learned from content hashes.

    Parameters
    ----------
    budget : float
        Revisits a day, of all pages together. First fetches do not count.
    initial : float
        Seconds between two changes of a page as long as no page was fetched twice.
    shortest, longest : float
        Bounds of the interval in seconds. Each page is fetched again after `longest`, even beyond the budget.

    Raises
    ------
    inlink.errors.ParameterError
        If a parameter is outside its range.
    """

    budget: Annotated[float, Parameter("Revisits a day.", above=0, at_most=1e12)]
    initial: Annotated[PositiveSeconds, Parameter("Assumed seconds between two changes of a page.")] = (
        30 * DAY
    )
    shortest: Annotated[PositiveSeconds, Parameter("The shortest interval.")] = 60.0
    longest: Annotated[PositiveSeconds, Parameter("The longest interval.")] = 365 * DAY

    def __post_init__(self) -> None:
        check_fields(self, "ByValue.")
        if self.shortest > self.longest:
            raise ParameterError(
                f"ByValue: shortest ({self.shortest:g} s) is above longest ({self.longest:g} s)"
            )

    def next(self, history: History) -> Next:
        """Return no time, because it depends on the other pages too."""
        return Next(None, history.interval)


@lru_cache(maxsize=256)
def _action(action: str | float) -> tuple[float, float | None]:
    """Parse the action of a rule: return its number, and that number again if it is in seconds, else None."""
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


class RevisitRule(NamedTuple):
    """Bounds of the intervals of some pages.

    Attributes
    ----------
    pages : str
        The pages: a regular expression that matches anywhere in the URL, ``host:NAME`` or ``domain:NAME``.
    least, most : float
        The shortest and the longest interval in seconds. They are equal for a fixed interval. ``least`` is 0 and
        ``most`` is infinite if there is no such bound.
    """

    pages: str
    least: float
    most: float

    @classmethod
    def from_text(cls, text: str, place: str = "revisit_rules") -> "RevisitRule":
        """Read a rule from a text: the pages, a blank, and ``SECONDS`` or ``LEAST..MOST``.

        Raises
        ------
        inlink.errors.ParameterError
            If it is not a rule. The message begins with ``place``.
        """
        pages, interval = ["", *text.rsplit(None, 1)][-2:]
        low, dots, high = interval.partition("..")
        try:
            least = float(low) if low or not dots else 0.0
            most = least if not dots else float(high) if high else inf
        except ValueError:
            least = most = -1.0
        # A rule of two dots alone has no bounds.
        in_range = all(0 < bound <= LONGEST for bound, side in ((least, low), (most, high)) if side)
        if not (pages and (low or high) and in_range):
            raise ParameterError(
                f"{place}: a rule is a pattern, a blank and SECONDS, LEAST..MOST, LEAST.. or ..MOST, each above 0 and "
                f"at most {LONGEST:.0e}, such as 'host:example.org 3600'; got {text!r:.200}"
            )
        if least > most:
            raise ParameterError(
                f"{place}: the shortest interval is above the longest; give the shorter first; got {text!r:.200}"
            )
        kind, _, name = pages.partition(":")
        if kind in ("host", "domain"):
            pages = f"{kind}:{host_named(place, name)}"
        else:
            compiled(pages, place)
        return cls(pages, least, most)

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.pages}: every {self.least:g} s"
        bounds = [
            f"{word} {bound:g} s"
            for word, bound in (("at least", self.least), ("at most", self.most))
            if 0 < bound < inf
        ]
        return f"{self.pages}: after {' and '.join(bounds)}"


class RevisitRules:
    """Rules that fix or bound the intervals between the crawls of pages. They apply to any schedule.

    The rule of a page's host applies to it, else that of the closest domain, else the first expression that matches.

    Parameters
    ----------
    texts : sequence of str
        The rules, as :meth:`RevisitRule.from_text` reads them.

    Attributes
    ----------
    rules : tuple of RevisitRule
        The first has no bounds. It applies to pages to which no other rule applies.

    Raises
    ------
    inlink.errors.ParameterError
        If a text is not a rule, or two rules have the same pages.

    Examples
    --------
    >>> rules = RevisitRules(["host:news.example.org 600", "/archive/ 86400.."])
    >>> print(rules.of("http://news.example.org/archive/"))
    host:news.example.org: every 600 s
    >>> print(rules.of("http://example.org/archive/"))
    /archive/: after at least 86400 s
    >>> rules.of("http://example.org/").most
    inf
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.rules = (RevisitRule("", 0.0, inf), *map(RevisitRule.from_text, texts))
        self._places = {rule.pages: place for place, rule in enumerate(self.rules) if place}
        if len(self._places) < len(texts):
            twice = next(
                rule.pages
                for place, rule in enumerate(self.rules[1:], 1)
                if self._places[rule.pages] != place
            )
            raise ParameterError(f"revisit_rules has two rules for {twice!r:.200}: remove one of them")
        self._group = RuleGroup.from_rules("revisit_rules", self._places)

    def __bool__(self) -> bool:
        """Return whether there are rules."""
        return bool(self._places)

    def place(self, url: str) -> int:
        """Return the place in :attr:`rules` of the rule that applies to a canonical URL."""
        rule = self._group.fitting(url, host_of(url)) if self._places else None
        return 0 if rule is None else self._places[rule]

    def of(self, url: str) -> RevisitRule:
        """Return the rule that applies to a canonical URL."""
        return self.rules[self.place(url)]


@lru_cache(maxsize=8)
def revisit_rules(texts: tuple[str, ...]) -> RevisitRules:
    """Return the rules of these texts: see :class:`RevisitRules`. There may be thousands."""
    return RevisitRules(texts)


def rules_in_file(path: str, place: str) -> tuple[str, ...]:
    """Read rules from a file: one rule a line. Empty lines, and lines that begin with ``#``, are skipped.

    Raises
    ------
    inlink.errors.ParameterError
        If the file cannot be read, or a line is not a rule. Messages call the setting ``place``.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ParameterError(f"{place}: {path!r} cannot be read: {reason}; name a file of rules") from None
    rules = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    rules = [(number, line) for number, line in rules if line and not line.startswith("#")]
    for number, line in rules:
        RevisitRule.from_text(line, f"{path}, line {number}")
    return tuple(line for _, line in rules)


def revisit_as_data(schedule: Schedule | None) -> dict[str, Any] | None:
    """Return a schedule as data for JSON, from which :func:`revisit_of` makes it again.

    A user-defined schedule is stored as the import path of its class, ``module:Class``, with its fields if it is a
    dataclass.
    """
    if schedule is None:
        return None
    if isinstance(schedule, StoredSchedule):
        return {"schedule": schedule.place, **schedule.fields}
    kind = type(schedule)
    name = kind.__name__ if KINDS.get(kind.__name__) is kind else f"{kind.__module__}:{kind.__qualname__}"
    return {"schedule": name, **(asdict(schedule) if is_dataclass(schedule) else {})}


@dataclass(frozen=True)
class StoredSchedule:
    """A user-defined schedule that is named in a crawl's folder. Its code was not imported, so it plans nothing.

    Parameters
    ----------
    place : str
        Import path of its class, ``module:Class``.
    fields : dict
        Keyword arguments of the class.
    """

    place: str
    fields: dict[str, Any]

    def next(self, history: History) -> Next:
        """Return no time, because only the class itself can compute it."""
        return Next(None, history.interval)


def revisit_of(
    data: Mapping[str, Any] | None, place: str = "revisit", *, from_folder: bool = False
) -> Schedule | None:
    """Make the schedule from the data that :func:`revisit_as_data` returned.

    A folder may come from an untrusted person. With ``from_folder``, a user-defined schedule therefore becomes a
    :class:`StoredSchedule`, and nothing is imported.

    Raises
    ------
    inlink.errors.ParameterError
        If ``data`` is not a schedule, or its class cannot be imported here. The message calls the setting ``place``.
    """
    if data is None:
        return None
    fields = dict(data)
    name = fields.pop("schedule", None)
    if not isinstance(name, str) or (name not in KINDS and ":" not in name):
        raise ParameterError(
            f"{place}: give a schedule, or a dict as {{'schedule': 'Adaptive'}}; the schedules are "
            f"{', '.join(KINDS)}, or module:Class of your own; got {name!r}"
        )
    if from_folder and name not in KINDS:
        return StoredSchedule(name, fields)
    kind = KINDS[name] if name in KINDS else imported(name, place)
    try:
        schedule = kind(**fields)
    except TypeError as error:
        raise ParameterError(f"{place}: {name} cannot be made of {fields!r}: {error}") from None
    if not isinstance(schedule, Schedule):
        raise ParameterError(f"{place} must be a schedule; {name} has no method next")
    return schedule


KINDS: dict[str, Any] = {kind.__name__: kind for kind in (FixedInterval, ChangeRate, Adaptive, ByValue)}

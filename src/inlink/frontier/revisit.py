"""Schedules decide when a crawled page is fetched again. Each is a pure function of the page's history.

- :class:`FixedInterval`: at a fixed interval in seconds.
- :class:`ByValue`: a budget of fetches is spent where it keeps most rank current: by rank × learned rate of changes.

A schedule is called once for each crawl. It has no clock and no state. The caller keeps the current interval
and passes it with the next history. :class:`ByValue` is the exception, because a budget is shared by all pages: its
times come from :class:`inlink.frontier.byvalue.PageValues`.

:class:`RevisitRules` fix or bound the intervals of any schedule by host or URL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable

from inlink.base.declare import Parameter, PositiveSeconds, check_fields, imported
from inlink.base.settings import LONGEST
from inlink.errors import ParameterError
from inlink.frontier.rules import RuleGroup, host_named, host_of
from inlink.urls.patterns import compiled

__all__ = [
    "ByValue",
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


class RevisitRule(NamedTuple):
    """Bounds of the revisit intervals of the pages that a pattern matches.

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
        pages, interval = ["", "", *text.rsplit(None, 1)][-2:]
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
    """A schedule that is named in a crawl's folder and is not inlink's. Its code was not imported, so it plans nothing.

    Parameters
    ----------
    place : str
        Import path of its class, ``module:Class``, or a name of :data:`REMOVED`.
    fields : dict
        Keyword arguments of the class.
    """

    place: str
    fields: dict[str, Any]

    def next(self, history: History) -> Next:
        """Return no time, because only the class itself can compute it."""
        return Next(None, history.interval)


def removed(name: str, place: str) -> ParameterError:
    """Return the error for a schedule of :data:`REMOVED`. The message begins with ``place``."""
    return ParameterError(
        f"{place}: inlink has no schedule {name} any more; give another, such as "
        "revisit={'schedule': 'ByValue', 'budget': 9000}, which learns how often pages change and makes so many "
        "revisits a day; `revisit_rules` bound the intervals of hosts and URLs"
    )


def revisit_of(
    data: Mapping[str, Any] | None, place: str = "revisit", *, from_folder: bool = False
) -> Schedule | None:
    """Make the schedule from the data that :func:`revisit_as_data` returned.

    A folder may come from an untrusted person. With ``from_folder``, a user-defined schedule therefore becomes a
    :class:`StoredSchedule`, and nothing is imported. A former schedule of inlink becomes one too.

    Raises
    ------
    inlink.errors.ParameterError
        If ``data`` is not a schedule, or its class cannot be imported here. The message calls the setting ``place``.
    """
    if data is None:
        return None
    fields = dict(data)
    name = fields.pop("schedule", None)
    is_name = isinstance(name, str) and (name in KINDS or ":" in name)
    if name in REMOVED and not from_folder:
        raise removed(name, place)
    if not is_name and name not in REMOVED:
        raise ParameterError(
            f"{place}: give a schedule, or a dict as {{'schedule': 'FixedInterval', 'seconds': 86400}}; the schedules "
            f"are {', '.join(KINDS)}, or module:Class of your own; got {name!r}"
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


KINDS: dict[str, Any] = {kind.__name__: kind for kind in (FixedInterval, ByValue)}

REMOVED = ("Adaptive", "ChangeRate")
"""Names of former schedules, which old folders and settings may have."""

"""What the answers of a host mean for the next request to it: outcomes, waiting times, crawl rates. No clock here.

**Outcomes.** Each visit ends as one of :data:`OUTCOMES`, by its status as :data:`STATUSES` says. The table says which
are tried again and which count against the host.

**Waiting.** ``Retry-After`` where the host says it (RFC 9110, section 10.2.3), else the base doubled with every
failure in a row, up to a cap. There is no jitter: one frontier speaks to a host, so that nobody else could wake at the
same moment, and a replay waits as the crawl did.

**Crawl rates.** A host's temperature T counts its crawls and cools by itself, with the window w as its time constant:

    T(t) = T(t₀)·exp(−(t − t₀)/w),      T ← T + 1 at each crawl                                             (1)

A host that is crawled at the steady rate ρ for long has, just before each crawl, T = 1/(exp(1/(ρw)) − 1). The rate of
a temperature is therefore

    ρ(T) = 1/(w·ln(1 + 1/T)),                                                                               (2)

T/w where T is large; and T/w alone would let a host of limit r be crawled 10 times as often where r·w is 0.025, as it
is with Aduana's defaults. Waiting until ρ(T) ≤ r before each crawl keeps the rate at r in the long run, exactly,
and lets through a burst of about r·w crawls at the start.

Aduana, whose soft and hard rates these are, fell silent after some hundred pages of one host (``domain_temp.c``): it
compared the temperature, a count, with the limit, a rate; kept time as float32 seconds since 1970, which move in steps
of 128 s; and cooled only when some page was crawled, so that once every host was too hot nothing was crawled and
nothing cooled. Here both sides are rates, time is float64, temperature is computed from the time that has passed at
each look, and :func:`due_under` says when the host may be crawled again, which is always soon: it is finite for every
limit above 0.
"""

import calendar
import math
import re
from dataclasses import dataclass
from email.utils import parsedate_tz

__all__ = [
    "AGAINST_HOST",
    "HOST_WAITS",
    "LONGEST_WAIT",
    "OUTCOMES",
    "RETRIED",
    "STATUSES",
    "Outcome",
    "classify",
    "cooled",
    "delay",
    "due_under",
    "rate",
    "rate_limits",
    "retry_after",
    "warmed",
]

LONGEST_WAIT = 86_400.0
"""Seconds: a host that asks for more than a day, or fails for long, is asked again after a day."""


@dataclass(frozen=True)
class Outcome:
    """What an outcome entails.

    Parameters
    ----------
    name : str
        Its name.
    retried : bool
        Whether the page is tried again.
    against_host : bool
        Whether it counts towards taking the host for dead. Any other outcome shows that the host answers.
    host_waits : bool
        Whether the host is left alone for a while: by :func:`retry_after` or :func:`delay`.
    """

    name: str
    retried: bool
    against_host: bool
    host_waits: bool


OUTCOMES = {
    outcome.name: outcome
    for outcome in (
        Outcome("ok", retried=False, against_host=False, host_waits=False),
        Outcome("gone", retried=False, against_host=False, host_waits=False),
        Outcome("throttled", retried=True, against_host=False, host_waits=True),
        Outcome("server", retried=True, against_host=True, host_waits=True),
        Outcome("client", retried=False, against_host=False, host_waits=False),
        Outcome("network", retried=True, against_host=True, host_waits=True),
    )
}
"""The outcomes of a visit by name."""

RETRIED = frozenset(outcome.name for outcome in OUTCOMES.values() if outcome.retried)
AGAINST_HOST = frozenset(outcome.name for outcome in OUTCOMES.values() if outcome.against_host)
HOST_WAITS = frozenset(outcome.name for outcome in OUTCOMES.values() if outcome.host_waits)

STATUSES = (
    (408, 408, "network"),  # the host's own word for a time-out
    (404, 404, "gone"),
    (410, 410, "gone"),
    (429, 429, "throttled"),
    (503, 503, "throttled"),
    (100, 399, "ok"),
    (500, 599, "server"),
)
"""First and last status, and outcome; the first line that fits counts. What fits none (other 4xx, 999) is "client"."""

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?")


def classify(status: int | None, error: str | None = None) -> str:
    """The name of a visit's outcome.

    Parameters
    ----------
    status : int or None
        The HTTP status; None or 0 where the host gave none.
    error : str or None
        What went wrong beside the status. With a status that is ok it means that the answer broke off.

    Examples
    --------
    >>> classify(200), classify(410), classify(503), classify(403), classify(None, "no route to host")
    ('ok', 'gone', 'throttled', 'client', 'network')
    """
    if not status:
        return "network"
    for first, last, name in STATUSES:
        if first <= status <= last:
            return "network" if error and name == "ok" else name
    return "client"


def retry_after(value: str | bytes | float | None, now: float) -> float | None:
    """The seconds to wait that a ``Retry-After`` asks for.

    Parameters
    ----------
    value : str, bytes, float or None
        The header's value, a number of seconds or an HTTP date in any of its three forms.
    now : float
        Seconds since 1970, what a date is compared with.

    Returns
    -------
    float or None
        From 0 to :data:`LONGEST_WAIT`; None where the value is neither.

    Examples
    --------
    >>> retry_after("120", now=0.0), retry_after("Thu, 01 Jan 1970 00:01:00 GMT", now=15.0), retry_after("soon", 0.0)
    (120.0, 45.0, None)
    """
    if value is None:
        return None
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    text = text.strip(" \t")
    seconds: float | None
    if _SECONDS.fullmatch(text):
        seconds = float(text)
    else:
        seconds = _http_date(text)
        if seconds is not None:
            seconds -= now
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_WAIT)


def _http_date(text: str) -> float | None:
    """Seconds since 1970 of an HTTP date, None if it is none; without a zone it is GMT (RFC 9110, 5.6.7)."""
    try:
        fields = parsedate_tz(text)
        if fields is None:
            return None
        year, month, day, hour, minute, second = fields[:6]
        if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60):
            return None
        return float(calendar.timegm((year, month, day, hour, minute, second)) - (fields[9] or 0))
    except (ValueError, TypeError, IndexError, OverflowError):  # junk, on which the parser itself may stumble
        return None


def delay(failures: int, base: float, cap: float = LONGEST_WAIT) -> float:
    """The seconds to wait after so many failures in a row: ``min(cap, base · 2^(failures − 1))``, 0 after none.

    Examples
    --------
    >>> [delay(failures, base=30, cap=3600) for failures in (0, 1, 2, 5, 10_000)]
    [0.0, 30.0, 60.0, 480.0, 3600.0]
    """
    if failures <= 0:
        return 0.0
    return min(float(cap), math.ldexp(base, min(failures - 1, 64)))  # 2⁶⁴ s is beyond any cap


def cooled(temperature: float, elapsed: float, window: float) -> float:
    """A temperature after ``elapsed`` seconds, formula (1); time that seems to run back does not heat.

    Parameters
    ----------
    temperature : float
        As it was, in crawls.
    elapsed : float
        Seconds since then.
    window : float
        The time constant in seconds, above 0. Between 1/500 of the seconds between two crawls at the lowest limit (a
        colder host cannot be told from one that was never crawled) and as long as a burst may last.
    """
    return temperature * math.exp(-max(elapsed, 0.0) / window)


def warmed(temperature: float, elapsed: float, window: float) -> float:
    """A temperature after ``elapsed`` seconds and a crawl at their end; see :func:`cooled`."""
    return cooled(temperature, elapsed, window) + 1.0


def rate(temperature: float, window: float) -> float:
    """The crawls a second of a temperature, formula (2); 0 for 0.

    Examples
    --------
    >>> round(rate(99.5, window=10), 3), rate(0.0, window=10)
    (10.0, 0.0)
    """
    if temperature <= 0:
        return 0.0
    return 1.0 / (window * math.log1p(1.0 / temperature))


def due_under(temperature: float, limit: float, window: float) -> float:
    """The seconds until the rate of a temperature has fallen to a limit.

    Parameters
    ----------
    temperature : float
        As it is now, in crawls.
    limit : float
        Crawls a second.
    window : float
        The time constant in seconds, above 0.

    Returns
    -------
    float
        0 where the host may be crawled now; infinite for a limit of 0, once it was crawled.

    Examples
    --------
    >>> due_under(warmed(0.0, 0.0, 10.0), limit=1.0, window=10.0)  # the second of a burst of ten
    0.0
    >>> round(due_under(1 / math.expm1(0.1) + 1, limit=1.0, window=10.0), 6)  # crawled at the limit for long
    1.0
    """
    if temperature <= 0:
        return 0.0
    if limit <= 0:
        return math.inf
    gap = 1.0 / (limit * window)
    # w·ln(T·(exp(gap) − 1)), written so that a gap of thousands does not overflow
    wait = window * (math.log(temperature) + gap + math.log(-math.expm1(-gap)))
    return wait if wait > 1e-6 else 0.0  # rounding must not make a host wait again for what it has waited


def rate_limits(soft: float, hard: float) -> tuple[float, ...]:
    """Aduana's ladder from the soft to the hard crawl rate: the soft one and four steps, each larger by one factor.

    The frontier takes what fits under the first; only where that does not fill a request, under the next.

    Examples
    --------
    >>> [round(limit, 2) for limit in rate_limits(0.25, 64.0)]
    [0.25, 1.0, 4.0, 16.0, 64.0]
    >>> rate_limits(2.0, 1.0)
    (1.0,)
    """
    if soft >= hard or soft <= 0:
        return (hard,)
    return tuple(soft * (hard / soft) ** (step / 4) for step in range(4)) + (hard,)

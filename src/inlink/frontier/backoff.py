"""Outcomes of visits, waiting times and crawl rates of hosts. No function here reads a clock.

**Outcomes.** Each visit has one of :data:`OUTCOMES`, by its status and the table :data:`STATUSES`. The outcome says
whether the visit is retried and whether it counts against the host.

**Waiting.** A host waits for its ``Retry-After`` if it sends one (RFC 9110, section 10.2.3). Otherwise it waits for the
base, doubled with every failure in a row, up to a cap. A single 503 without ``Retry-After`` may concern only its page,
so the host waits only if the next page that is handed out has the same answer. There is no jitter, for two reasons.
Only one frontier sends requests to a host, so no other client retries at the same moment. And a replay must wait as the
crawl did.

**Crawl rates.** A host's temperature T counts its crawls. It cools with the window w as its time constant:

    T(t) = T(t₀)·exp(−(t − t₀)/w),      T ← T + 1 at each crawl                                             (1)

A host that was crawled at the steady rate ρ for a long time has T = 1/(exp(1/(ρw)) − 1) just before each crawl. The
rate of a temperature is therefore

    ρ(T) = 1/(w·ln(1 + 1/T)),                                                                               (2)

which is T/w if T is large. T/w alone would let a host of limit r be crawled 10 times as often where r·w is 0.025,
as with Aduana's defaults. Waiting until ρ(T) ≤ r before each crawl keeps the long-run rate at r exactly. It allows
a burst of about r·w crawls at the start. :mod:`inlink.frontier.kernels.slots` has the loops.

Aduana has soft and hard rates too. It stopped after some hundred pages of one host (``domain_temp.c``) for three
reasons. It compared the temperature, a count, with the limit, a rate. It kept time as float32 Unix time, in steps of
128 s. And hosts cooled only when a page was crawled, so crawling stopped once every host was too hot. Here both sides
are rates, time is float64, and each use of the temperature computes it from the elapsed time. The wait for any limit
above 0 is finite.
"""

import math
import re

import msgspec

LONGEST_WAIT = 86_400.0
"""Longest wait in seconds: one day. It also limits a host's Retry-After and the wait after many failures."""


class Outcome(msgspec.Struct, frozen=True):
    """The consequences of an outcome.

    Parameters
    ----------
    name : str
    retried : bool
        Whether the page is tried again.
    against_host : bool
        Whether the outcome suggests that the host is dead. Any other outcome shows that the host answers.
    host_waits : bool
        Whether the host must wait although it sent no ``Retry-After``.
    throttles : bool
        Whether the host asks for fewer requests. After such an answer, ``host_waits`` does not matter for the next one.
    """

    name: str
    retried: bool
    against_host: bool
    host_waits: bool
    throttles: bool = False


OUTCOMES = {
    outcome.name: outcome
    for outcome in (
        Outcome("ok", retried=False, against_host=False, host_waits=False),
        Outcome("gone", retried=False, against_host=False, host_waits=False),
        Outcome("throttled", retried=True, against_host=False, host_waits=True, throttles=True),
        Outcome("busy", retried=True, against_host=False, host_waits=False, throttles=True),
        Outcome("server", retried=True, against_host=True, host_waits=True),
        Outcome("client", retried=False, against_host=False, host_waits=False),
        Outcome("network", retried=True, against_host=True, host_waits=True),
    )
}
"""The outcomes of a visit by name."""

STATUSES = (
    # With 408 (Request Timeout) the host itself reports a time-out.
    (408, 408, "network"),
    (404, 404, "gone"),
    (410, 410, "gone"),
    (429, 429, "throttled"),
    (503, 503, "busy"),
    (100, 399, "ok"),
    (500, 599, "server"),
)
"""First status, last status, outcome. The first matching line counts; other statuses (other 4xx, 999) are "client"."""

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?")


def classify(status: int | None, error: str | None = None) -> str:
    """The name of a visit's outcome.

    Parameters
    ----------
    status : int or None
        The HTTP status; None or 0 if the host sent none.
    error : str or None
        Any other error. With a status below 300 it means that the answer was cut off. With a redirect's status it means
        that the client does not follow the redirect; the host has answered.

    Examples
    --------
    >>> classify(200), classify(410), classify(503), classify(403), classify(None, "no route to host")
    ('ok', 'gone', 'busy', 'client', 'network')
    >>> classify(200, "connection lost"), classify(302, "redirects to mailto:me@example.org")
    ('network', 'ok')
    """
    if not status:
        return "network"
    for first, last, name in STATUSES:
        if first <= status <= last:
            return "network" if error and status < 300 else name
    return "client"


def retry_after(value: str | bytes | float | None, now: float) -> float | None:
    """The seconds to wait that a ``Retry-After`` header asks for.

    Parameters
    ----------
    value : str, bytes, float or None
        The header's value, a number of seconds or an HTTP date in any of its three forms.
    now : float
        Unix time, with which a date is compared.

    Returns
    -------
    float or None
        From 0 to :data:`LONGEST_WAIT`; None if the value is neither a number nor a date.

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
    """Unix time of an HTTP date; None if the text is not a date. A date without a zone is GMT (RFC 9110, 5.6.7)."""
    # Few hosts send one, and these imports take 5 ms.
    import calendar
    from email.utils import parsedate_tz

    try:
        fields = parsedate_tz(text)
        if fields is None:
            return None
        year, month, day, hour, minute, second = fields[:6]
        if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60):
            return None
        return float(calendar.timegm((year, month, day, hour, minute, second)) - (fields[9] or 0))
    except (ValueError, TypeError, IndexError, OverflowError):
        # The parser itself raises on some bad input.
        return None


def delay(failures: int, base: float, cap: float = LONGEST_WAIT) -> float:
    """The seconds to wait after failures in a row: ``min(cap, base · 2^(failures − 1))``; 0 for 0 failures.

    Examples
    --------
    >>> [delay(failures, base=30, cap=3600) for failures in (0, 1, 2, 5, 10_000)]
    [0.0, 30.0, 60.0, 480.0, 3600.0]
    """
    if failures <= 0:
        return 0.0
    # 2⁶⁴ s is longer than any cap.
    return min(float(cap), math.ldexp(base, min(failures - 1, 64)))


def wait_under(heat: float, limit: float, window: float) -> float:
    """The seconds until the rate of a temperature falls to a limit, by (2). A limit of 0 is no limit: the wait is 0.

    Parameters
    ----------
    heat : float
        The temperature T now.
    limit : float
        Crawls a second.
    window : float
        Seconds in which the temperature falls to 1/e.
    """
    if limit <= 0 or heat <= 0:
        return 0.0
    gap = 1.0 / (limit * window)
    return max(window * (math.log(heat) + gap + math.log(-math.expm1(-gap))), 0.0)

"""Spider traps: URLs that a site can generate without end get a growing penalty instead of a hard limit.

    factor = 0.8^c,      c = min(31, Σ points of the rules)                                                  (1)

A page's priority is multiplied by the factor of its URL. The factor is never 0: a deep page with a high rank is
still fetched, later. :data:`RULES` is the table of rules. Each rule measures one number of the URL, such as the
number of path segments. A certain amount is without penalty; every step above it adds points, up to a maximum. URLs
of real sites (``/2024/05/12/slug``, an encoded Japanese title, a file eleven folders deep on GitHub) get no points,
or one or two.

Calendars are the traps that look most like real pages, because every day has a link to the next day. A date in the path
has no penalty. It gets points if it is in the query or at the end of the path. Points grow fast with each year after
the present year, and slowly with past years, because archives are real. The present year is an argument, so the same
URLs get the same penalties in a replay.

The penalty is a pure function of the URL's bytes, and its code is a single byte a page.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from inlink.base.arrays import Float32Array, UInt8Array, UInt64Array
from inlink.frontier.kernels import traps as kernels
from inlink.urls.canonical import SESSION_PARAMETERS

FACTORS: Float32Array = (0.8 ** np.arange(32)).astype(np.float32)
"""float32[32]: the factor of each code; 1 for code 0, 0.00099 for code 31."""


@dataclass(frozen=True)
class TrapRule:
    """A rule of the table.

    Parameters
    ----------
    name : str
    finding : str
        The finding in words; ``{}`` stands for the amount.
    free : int
        Amount without penalty.
    step : int
        Each further ``step``, or part of one, adds ``points``.
    points : int
        Penalty points; each multiplies the factor by 0.8.
    most : int
        Maximum number of points that the rule gives, at most 31.
    """

    name: str
    finding: str
    free: int
    step: int
    points: int
    most: int

    def points_for(self, amount: int) -> int:
        """Penalty points for ``amount``."""
        return min(self.most, max(0, -((self.free - amount) // self.step)) * self.points)


# The order is that of the measures in kernels/traps.py.
RULES = (
    TrapRule("deep path", "{} path segments", free=8, step=2, points=1, most=31),
    TrapRule("repeated segment", "a path segment that occurs {} times", free=2, step=1, points=1, most=31),
    TrapRule(
        "path in a loop", "{} path segments repeat those before them", free=1, step=1, points=2, most=31
    ),
    TrapRule("calendar", "{} date(s) or parts of dates, as in a calendar", free=0, step=1, points=1, most=4),
    TrapRule("far future", "a date {} years ahead", free=1, step=1, points=3, most=24),
    TrapRule("far past", "a date {} years ago", free=40, step=30, points=1, most=10),
    TrapRule("long URL", "{} characters", free=255, step=64, points=1, most=31),
    TrapRule("many parameters", "{} query parameters", free=8, step=1, points=1, most=31),
    TrapRule(
        "repeated parameter",
        "{} query parameters with the name of an earlier one",
        free=1,
        step=1,
        points=2,
        most=31,
    ),
    TrapRule("session id", "{} session id(s)", free=0, step=1, points=4, most=12),
)

DATE_PARAMETERS = {"year": "year", "yr": "year"} | dict.fromkeys(
    ("month", "mon", "mo", "day", "week"), "part"
)
"""Lower-case names of query parameters that hold a year or a part of a date. A whole date is found under any name."""


def _hash(name: str) -> int:
    """The 64-bit FNV-1a hash of a name."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


@cache
def _names() -> UInt64Array:
    """Parameter names with a meaning, for the kernels: hash and meaning in turn, uint64[2·n]."""
    meanings = {
        name: kernels.YEAR if kind == "year" else kernels.PART for name, kind in DATE_PARAMETERS.items()
    }
    for name in SESSION_PARAMETERS:
        meanings[name] = kernels.SESSION_START if name.endswith("*") else kernels.SESSION_ID
    pairs = [(_hash(name.removesuffix("*")), meaning) for name, meaning in meanings.items()]
    return np.array(pairs, np.uint64).ravel()


@cache
def _table() -> UInt64Array:
    """The table's numbers, uint64[rules, 4]: free, step, points, most."""
    return np.array([(rule.free, rule.step, rule.points, rule.most) for rule in RULES], np.uint64)


def line_codes(text: UInt8Array, year: int, out: UInt8Array) -> None:
    r"""Write the penalty codes of URLs. Priorities are multiplied by ``FACTORS[out]``.

    Parameters
    ----------
    text : uint8[bytes]
        Canonical URLs, one a line, each with a newline.
    year : int
        The present year.
    out : uint8[n]
        Gets the code of each URL, from 0 (no penalty) to 31.

    Examples
    --------
    >>> codes = np.zeros(2, np.uint8)
    >>> text = "http://a.com/2024/05/12/slug\nhttp://a.com" + 9 * "/x" + "\n"
    >>> line_codes(np.frombuffer(text.encode(), np.uint8), 2026, codes)
    >>> codes.tolist()
    [0, 22]
    """
    kernels.line_codes(text, out, year, _names(), _table())


def explain(url: str, year: int) -> list[tuple[str, str, float]]:
    """The rules that give a URL points.

    Parameters
    ----------
    url : str
        A canonical URL.
    year : int
        The present year.

    Returns
    -------
    list of (str, str, float)
        The rule's name, its finding and its factor. The URL's factor is the product, but at least 0.8³¹.

    Examples
    --------
    >>> explain("http://a.com/x?sid=81&sid=82", 2026)
    [('session id', '2 session id(s)', 0.16777...)]
    """
    raw = url.encode("utf-8", "surrogatepass")
    offsets = np.array([0, len(raw)], np.uint64)
    amounts = kernels.measures(np.frombuffer(raw, np.uint8), offsets, year, _names())[0].tolist()
    return [
        (rule.name, rule.finding.format(amount), 0.8**points)
        for rule, amount in zip(RULES, amounts, strict=True)
        if (points := rule.points_for(amount))
    ]

"""Spider traps: URLs that a site can make without end get a penalty that grows, instead of a blunt cap.

    factor = 0.8^c,      c = min(31, Σ points of the rules)                                                  (1)

A page's priority is multiplied by the factor of its URL. It is never 0: a deep page that the ranking values highly
is still fetched, later. The rules are one table, :data:`RULES`: each takes a number from the URL (how many segments
its path has, how often one of them occurs), lets some of it go free, and gives points for every step above that, up
to a most. What real sites have (``/2024/05/12/slug``, an encoded Japanese title, a file eleven folders deep on
GitHub) goes free or costs a point or two.

Calendars are the traps that look most like real pages: every day has a link to the next one. So a date by itself
is free; it costs points where it is in the query, where nothing stands behind it, and, growing fast, with every
year that it lies ahead of now; past years grow slowly, since archives are real. What year is now is an argument,
so that the same URLs get the same penalties in a replay.

The penalty of a URL is a pure function of its bytes, and the code a single byte to keep with the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from inlink.frontier.kernels import traps as kernels
from inlink.urls.canonical import SESSION_PARAMETERS

__all__ = ["FACTORS", "RULES", "TrapRule", "codes", "explain", "line_codes", "penalties", "penalty"]

FACTORS: npt.NDArray[np.float32] = (0.8 ** np.arange(32)).astype(np.float32)
"""float32[32]: what a page's priority is multiplied by, by code; 1 for code 0, 0.00099 for code 31."""


@dataclass(frozen=True)
class TrapRule:
    """One line of the table.

    Parameters
    ----------
    name : str
        The rule's name.
    found : str
        What was found, ``{}`` being how much.
    free : int
        So much costs nothing.
    step : int
        Every further ``step``, begun or whole, costs ``points``.
    points : int
        Each point multiplies the factor by 0.8.
    most : int
        The most points that the rule gives; 31 is all there are.
    """

    name: str
    found: str
    free: int
    step: int
    points: int
    most: int

    def points_for(self, amount: int) -> int:
        """The points for so much."""
        return min(self.most, max(0, -((self.free - amount) // self.step)) * self.points)


RULES = (  # in the order of the measures in kernels/traps.py
    TrapRule("deep path", "{} path segments", free=8, step=2, points=1, most=31),
    TrapRule("repeated segment", "a path segment that occurs {} times", free=2, step=1, points=1, most=31),
    TrapRule(
        "path in a loop", "{} path segments repeat those before them", free=1, step=1, points=2, most=31
    ),
    TrapRule("calendar", "a calendar's page: {} date(s) or parts of one", free=0, step=1, points=1, most=4),
    TrapRule("far future", "a date {} years ahead", free=1, step=1, points=3, most=24),
    TrapRule("far past", "a date {} years ago", free=40, step=30, points=1, most=10),
    TrapRule("long URL", "{} characters", free=255, step=64, points=1, most=31),
    TrapRule("many parameters", "{} query parameters", free=8, step=1, points=1, most=31),
    TrapRule(
        "repeated parameter",
        "{} query parameters of a name that was there before",
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
"""Names, in lower case, of query parameters that hold a year or a part of a date; a whole date is seen under any."""


def _hash(name: str) -> int:
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


@cache
def _names() -> npt.NDArray[np.uint64]:
    """What the kernels know of parameters' names: hash and meaning in turn."""
    known = {name: kernels.YEAR if kind == "year" else kernels.PART for name, kind in DATE_PARAMETERS.items()}
    for name in SESSION_PARAMETERS:
        known[name] = kernels.SESSION_START if name.endswith("*") else kernels.SESSION_ID
    pairs = [(_hash(name.removesuffix("*")), meaning) for name, meaning in known.items()]
    return np.array(pairs, np.uint64).ravel()


@cache
def _table() -> npt.NDArray[np.uint64]:
    """The table's numbers, uint64[rules, 4]: free, step, points, most."""
    return np.array([(rule.free, rule.step, rule.points, rule.most) for rule in RULES], np.uint64)


def codes(text: npt.NDArray[np.uint8], offsets: npt.NDArray[np.uint64], year: int) -> npt.NDArray[np.uint8]:
    """The penalty code of each of many URLs that lie in one text.

    Parameters
    ----------
    text : uint8[bytes]
        Canonical URLs, one after the other.
    offsets : uint64[n + 1]
        Where each begins and the last ends.
    year : int
        The year that is now.

    Returns
    -------
    uint8[n]
        From 0, no penalty, to 31; ``FACTORS[codes]`` is what the priorities are multiplied by.
    """
    return kernels.codes(text, offsets, year, _names(), _table())


def line_codes(text: npt.NDArray[np.uint8], year: int, out: npt.NDArray[np.uint8]) -> None:
    """:func:`codes` of ``len(out)`` URLs that stand one a line, a newline behind each, into ``out``."""
    kernels.line_codes(text, out, year, _names(), _table())


def penalties(urls: Sequence[str], year: int) -> npt.NDArray[np.uint8]:
    """The penalty code uint8[n] of each of n canonical URLs: see :func:`codes`.

    Examples
    --------
    >>> penalties(["http://a.com/2024/05/12/slug", "http://a.com" + 9 * "/x"], 2026).tolist()
    [0, 22]
    """
    return codes(*_joined(urls), year)


def penalty(url: str, year: int) -> tuple[float, str | None]:
    """The factor of one URL and the rule that costs it most, in words; (1.0, None) if there is none.

    Examples
    --------
    >>> penalty("http://a.com/about", 2026)
    (1.0, None)
    """
    rules = explain(url, year)
    if not rules:
        return 1.0, None
    return float(FACTORS[penalties([url], year)[0]]), min(rules, key=lambda rule: rule[2])[1]


def explain(url: str, year: int) -> list[tuple[str, str, float]]:
    """Each rule that a URL falls under.

    Parameters
    ----------
    url : str
        A canonical URL.
    year : int
        The year that is now.

    Returns
    -------
    list of (str, str, float)
        The rule's name, what was found, and its factor; the URL's own is their product, or the least that there is.

    Examples
    --------
    >>> explain("http://a.com/x?sid=81&sid=82", 2026)
    [('session id', '2 session id(s)', 0.16777...)]
    """
    amounts = kernels.measures(*_joined([url]), year, _names())[0].tolist()
    return [
        (rule.name, rule.found.format(amount), 0.8**points)
        for rule, amount in zip(RULES, amounts, strict=True)
        if (points := rule.points_for(amount))
    ]


def _joined(urls: Sequence[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
    raw = [url.encode("utf-8", "surrogatepass") for url in urls]
    offsets = np.zeros(len(raw) + 1, np.uint64)
    np.cumsum([len(one) for one in raw], out=offsets[1:], dtype=np.uint64)
    return np.frombuffer(b"".join(raw), np.uint8), offsets

r"""Regular expressions of users, matched against URLs in linear time.

The engine is RE2 (https://github.com/google/re2/wiki/Syntax), which never backtracks: the time is proportional to the
length of the URL times the size of the expression, and both are bounded. So no expression can hold up a crawl, as
``(a+)+$`` can with Python's engine.

RE2 does not know backreferences, lookahead and lookbehind, atomic groups, possessive repetition, conditions, and
repetitions of more than 1,000 times. Such expressions are refused, and the message names an alternative.

A canonical URL is one line of ASCII. In such a line Python's engine and RE2 agree on what both know: ``\w``, ``\d``,
``\s`` and ``\b`` are those of ASCII, and ``$`` is the end. Python's ``\Z`` is refused (RE2 writes ``\z``), and so is
``{,n}``, which RE2 would read literally. Only RE2 knows ``[[:alpha:]]``, ``\pL`` and ``\Q…\E``.

One expression with backreferences is accepted: the rule against loops in Nutch's ``regex-urlfilter.txt``,
:data:`NUTCH_LOOPS`. A function of this module does the same.

An expression may use 8 MiB for the states that it caches.

Without RE2 (``inlink[re2]``), Python's engine matches ASCII expressions with at most one group and no repetition.
Their time does not depend on what strangers put into URLs. Others are refused.
"""

import re
from functools import lru_cache
from typing import Any

from inlink.base.extras import load
from inlink.errors import MissingExtraError, ParameterError

LONGEST = 10_000
"""Maximum number of bytes of an expression."""

MOST_INSTRUCTIONS = 5_000
"""Maximum size of a compiled expression. At this size the slowest known expression takes 0.1 s for a long URL."""

NUTCH_LOOPS = r".*(/[^/]+)/[^/]+\1/[^/]+\1/"
"""Nutch's rule against loops: a segment of the path occurs three times, each time two segments after the last."""

_LOOPS = re.compile(r"(\.\*)?" + re.escape(NUTCH_LOOPS.removeprefix(".*")) + r"(?:\.\*)?")

_ATOM = r"(?:[^\\\[\](){}|*+?]|\\[dDsSwWbB\W]|\[\^?(?:[^\\\[\]]|\\[dDsSwW\W])+\])*"
_SIMPLE = re.compile(rf"{_ATOM}(?:\((?:\?:)?{_ATOM}(?:\|{_ATOM})*\){_ATOM}|(?:\|{_ATOM})*)", re.ASCII)

_ALTERNATIVES = (
    (r"perl operator: \(\?<?[=!]", "lookaround", "give two rules instead, one in `allow` and one in `deny`"),
    (
        r"escape sequence: \\[1-9]|perl operator: \(\?P",
        "a backreference",
        f"of these only Nutch's rule against loops is known, {NUTCH_LOOPS}",
    ),
    (r"perl operator: \(\?>", "an atomic group", "write (?:…), for RE2 never backtracks"),
    (r"repetition operator: [*+?}]\+", "a possessive repetition", "drop its +, for RE2 never backtracks"),
    (r"perl operator: \(\?\(", "a condition", "give a rule for each of its branches"),
    (r"perl operator: \(\?#", "a comment", "leave it out"),
    (r"perl operator: \(\?", "a group or flag that RE2 does not know", "RE2 knows the flags i, m, s and U"),
    (r"escape sequence: \\Z", r"\Z", r"write $ or \z"),
    (r"escape sequence: \\u", r"an escape \u", r"write \x{…}"),
    (r"invalid repetition size", "a repetition of more than 1,000 times", "repeat less often"),
)


class Pattern:
    """A compiled expression; :func:`compiled` makes it.

    Attributes
    ----------
    text : str
        The expression.
    by_hand : bool
        Whether it is :data:`NUTCH_LOOPS`, which RE2 cannot match.
    program : object
        The compiled expression of the module ``re2`` (or ``re``); None if `by_hand` is set.
    """

    __slots__ = ("_match", "_search", "by_hand", "program", "text")

    def __init__(self, text: str, program: Any) -> None:
        self.text, self.by_hand, self.program = text, program is None, program
        self._search = None if program is None else program.search
        self._match = None if program is None else program.match

    def found_in(self, url: str) -> bool:
        """Return whether the expression matches anywhere in a URL."""
        if self._search is None:
            return repeats_segments(url)
        return self._search(url.encode("utf-8", "replace")) is not None

    def begins(self, url: str) -> bool:
        """Return whether the expression matches a beginning of a URL."""
        if self._match is None:
            return self.text.startswith(".*") and repeats_segments(url)
        return self._match(url.encode("utf-8", "replace")) is not None


@lru_cache(maxsize=1024)
def compiled(text: str, place: str = "") -> Pattern:
    r"""Compile an expression.

    Parameters
    ----------
    text : str
        The expression, in RE2's syntax.
    place : str
        The place of the expression, such as a file and a line, for messages.

    Raises
    ------
    inlink.errors.ParameterError
        If RE2 does not know the expression, or it is too long or too large.
    inlink.errors.MissingExtraError
        If RE2 is not installed, and the expression is not simple enough for Python's engine.

    Examples
    --------
    >>> compiled(r"[.](jpg|png)$").found_in("http://example.org/a.png")
    True
    """
    where = f"{place}: " if place else ""
    if _LOOPS.fullmatch(text):
        return Pattern(text, None)
    shown = repr(text if len(text) <= 200 else text[:200] + "…")
    if len(text.encode("utf-8", "replace")) > LONGEST:
        raise ParameterError(
            f"{where}the regular expression {shown} is longer than {LONGEST:,} bytes: split it into several"
        )
    if _has_open_repetition(text):
        raise ParameterError(
            f"{where}{shown} is not a valid regular expression: RE2 does not know {{,n}}; write {{0,n}}"
        )
    try:
        # Most crawls have no expressions.
        re2 = load("re2", "re2", f"{where}the regular expression {shown}")
    except MissingExtraError:
        if not (text.isascii() and _SIMPLE.fullmatch(text)):
            raise
        try:
            return Pattern(text, re.compile(text.encode()))
        except re.error as error:
            raise ParameterError(f"{where}{shown} is not a valid regular expression: {error}") from None
    options = re2.Options()
    options.log_errors = False
    try:
        program = re2.compile(text, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise ParameterError(f"{where}{shown} is not a valid regular expression: {_reason(error)}") from None
    if program.programsize > MOST_INSTRUCTIONS:
        raise ParameterError(
            f"{where}the regular expression {shown} is too large ({program.programsize:,} instructions, at most "
            f"{MOST_INSTRUCTIONS:,}): repeat less often, or split it into several"
        )
    return Pattern(text, program)


def repeats_segments(url: str) -> bool:
    """Return whether :data:`NUTCH_LOOPS` matches a URL, in linear time.

    Examples
    --------
    >>> repeats_segments("http://example.org/a/b/a/c/a/"), repeats_segments("http://example.org/a/b/a/c/")
    (True, False)
    """
    parts = url.split("/")
    return any(
        parts[i] and parts[i] == parts[i + 2] == parts[i + 4] and parts[i + 1] and parts[i + 3]
        for i in range(1, len(parts) - 5)
    )


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "it is not valid Unicode"
    reason = error.args[0] if error.args else ""
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    for sign, what, instead in _ALTERNATIVES:
        if re.search(sign, text):
            return f"RE2 does not know {what}; {instead}"
    return text


def _has_open_repetition(text: str) -> bool:
    """Return whether an expression has ``{,n}`` outside classes and escapes."""
    plain = re.sub(r"\\Q.*?(?:\\E|$)|\\.", "", text, flags=re.S)
    return re.search(r"\{,\d+\}", re.sub(r"\[\^?\]?[^\]]*\]", "", plain)) is not None

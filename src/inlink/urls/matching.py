"""Search URLs or other names for an expression, all names of a column at once and in linear time.

Without RE2 each name is searched alone, by Python's engine, which takes bytes for characters. This is safe for patterns
too: :mod:`fnmatch` never goes back behind the text between two stars.
"""

import fnmatch
import re
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from inlink.base.arrays import Int64Array
from inlink.base.strings import Strings
from inlink.errors import ParameterError
from inlink.urls.patterns import Pattern, compiled, repeats_segments

try:
    import re2
except ModuleNotFoundError:
    re2 = None

Kind = Literal["regex", "glob", "text"]

# Rows whose text stays in the processor's cache while it is searched.
_ROWS = 1 << 12
# An expression with ends of the whole text, quoted text or flags is searched for in each name alone.
_BY_TEXT = re.compile(r"\\[AzQC]|\(\?(?!:|P?<|i\))")
if re2:
    # With these options no match goes beyond a line.
    _LINES = re2.Options()
    _LINES.never_nl = _LINES.never_capture = True
    _LINES.log_errors = False
    _BYTES = re2.Options()
    _BYTES.encoding = re2.Options.Encoding.LATIN1
    _BYTES.log_errors = False


def matcher(expression: str, kind: Kind = "regex") -> Callable[[Strings], Int64Array]:
    """Return a function that finds the rows of a column of URLs that an expression matches, int64[k], increasing.

    Parameters
    ----------
    expression : str
        The expression to search for.
    kind : {"regex", "glob", "text"}
        A regular expression in RE2's syntax that matches anywhere in the URL; a pattern with ``*`` and ``?`` for the
        whole URL; or text that occurs in the URL, in upper or lower case.

    Raises
    ------
    inlink.errors.ParameterError
        If ``kind`` is unknown, or ``expression`` is not a valid regular expression.
    inlink.errors.MissingExtraError
        If RE2 is not installed, for a regular expression that is not simple (:mod:`inlink.urls.patterns`).
    """
    if kind not in ("regex", "glob", "text"):
        raise ParameterError(f"`kind` must be 'regex', 'glob' or 'text'; got {kind!r}")
    if kind == "regex":
        pattern = compiled(expression)
        if pattern.by_hand:
            return lambda urls: _rows(lambda url: repeats_segments(url.decode("utf-8", "replace")), urls)
    elif re2 is None:
        glob = r"\A" + fnmatch.translate(expression.replace("[", "[[]"))
        text = glob if kind == "glob" else "(?i)" + re.escape(expression)
        pattern = Pattern(text, re.compile(text.encode("utf-8", "replace")))
    elif kind == "glob":
        wild = {"*": ".*", "?": "."}
        pattern = compiled("^" + "".join(wild.get(char) or re.escape(char) for char in expression) + "$")
    else:
        pattern = compiled("(?i)" + re.escape(expression))
    lines = (
        None if re2 is None or _BY_TEXT.search(pattern.text) else re2.compile(f"(?m){pattern.text}", _LINES)
    )
    return lambda urls: np.concatenate(
        [
            np.empty(0, np.int64),
            *(
                first + _matching(pattern, lines, urls[first : first + _ROWS])
                for first in range(0, len(urls), _ROWS)
            ),
        ]
    )


def _matching(pattern: Pattern, lines: Any, urls: Strings) -> Int64Array:
    """Return the rows that a pattern matches. ``lines`` is the same pattern, compiled for a text of many lines."""
    if lines is not None and urls.is_utf8():
        text = urls.lines()
        if text is not None:
            return _lines_with(lines, text, urls)
    return _rows(_search_of(pattern, urls), urls)


def _lines_with(lines: Any, text: bytes, urls: Strings) -> Int64Array:
    """Return the rows that match, where each row is a line of a text. After a match the next line is searched."""
    search, newline = lines.search, text.find
    places: list[int] = []
    at, end = 0, len(text)
    while at < end:
        match = search(text, at)
        # Behind the last newline an empty line begins, which is no row.
        if match is None or (place := match.start()) == end:
            break
        places.append(place)
        at = newline(b"\n", match.end()) + 1
    begins = (urls.offsets[:-1] - urls.offsets[0]).astype(np.int64) + np.arange(len(urls))
    rows: Int64Array = np.searchsorted(begins, np.array(places, np.int64), "right") - 1
    return rows


def _rows(matches: Callable[[bytes], object], urls: Strings) -> Int64Array:
    """Return the rows that match, each searched alone."""
    return np.array([row for row, name in enumerate(urls.to_pylist()) if matches(name)], np.int64)


def _search_of(pattern: Pattern, urls: Strings) -> Callable[[bytes], object]:
    """Return the function that searches a name. A dot matches a character, and a byte in names that are not UTF-8."""
    in_text: Callable[[bytes], object] = pattern.program.search
    if re2 is None or urls.is_utf8():
        return in_text
    in_bytes = re2.compile(pattern.text.encode("utf-8", "replace"), _BYTES).search

    def search(name: bytes) -> object:
        try:
            name.decode()
        except UnicodeDecodeError:
            return in_bytes(name)
        return in_text(name)

    return search

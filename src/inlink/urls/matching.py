"""Search URLs or other names for an expression, a block of names at a time and in linear time."""

import re
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import re2

from inlink.base.arrays import Int64Array
from inlink.base.strings import Strings
from inlink.errors import ParameterError
from inlink.urls.patterns import Pattern, compiled, repeats_segments

__all__ = ["Kind", "matcher"]

Kind = Literal["regex", "glob", "text"]

# Names that are searched by one call.
_LINES = 64
# An expression with ends of the whole text, quoted text or flags is not searched for in many names at once.
_BY_TEXT = re.compile(r"\\[AzQC]|\(\?(?!:|P?<|i\))")
_QUIET = re2.Options()
_QUIET.log_errors = False
_BYTES = re2.Options()
_BYTES.encoding = re2.Options.Encoding.LATIN1
_BYTES.log_errors = False


def matcher(expression: str, kind: Kind = "regex") -> Callable[[Strings], Int64Array]:
    """Return a function that finds the rows of a column of URLs that an expression matches, int64[k], increasing.

    Parameters
    ----------
    expression : str
    kind : {"regex", "glob", "text"}
        A regular expression in RE2's syntax that matches anywhere in the URL; a pattern with ``*`` and ``?`` for the
        whole URL; or text that occurs in the URL, in upper or lower case.

    Raises
    ------
    inlink.errors.ParameterError
        If ``kind`` is unknown, or ``expression`` is not a valid regular expression.
    """
    if kind not in ("regex", "glob", "text"):
        raise ParameterError(f"`kind` must be 'regex', 'glob' or 'text'; got {kind!r}")
    if kind == "regex":
        pattern = compiled(expression)
        if pattern.by_hand:
            return lambda urls: _rows(lambda url: repeats_segments(url.decode("utf-8", "replace")), urls)
    elif kind == "glob":
        wild = {"*": ".*", "?": "."}
        pattern = compiled("^" + "".join(wild.get(char) or re.escape(char) for char in expression) + "$")
    else:
        pattern = compiled("(?i)" + re.escape(expression))
    lines = None if _BY_TEXT.search(pattern.text) else re2.compile(f"(?m){pattern.text}", _QUIET)
    return lambda urls: _rows(_search_of(pattern, urls), urls, lines)


def _rows(matches: Callable[[bytes], object], urls: Strings, lines: Any = None) -> Int64Array:
    """Return the rows that match. ``lines`` matches a block of lines if it matches one of them, and perhaps others.

    Most blocks have no match, and one call for a block is much cheaper than one for each name.
    """
    names = urls.to_pylist()
    if lines is not None and not urls.is_utf8():
        lines = None
    found: list[int] = []
    for first in range(0, len(names), _LINES):
        block = names[first : first + _LINES]
        if lines is None or lines.search(b"\n".join(block)):
            found += [first + row for row, name in enumerate(block) if matches(name)]
    return np.array(found, np.int64)


def _search_of(pattern: Pattern, urls: Strings) -> Callable[[bytes], object]:
    """Return the function that searches a name. A dot matches a character, and a byte in names that are not UTF-8."""
    in_text: Callable[[bytes], object] = pattern.program.search
    if urls.is_utf8():
        return in_text
    in_bytes = re2.compile(pattern.text.encode("utf-8", "replace"), _BYTES).search

    def search(name: bytes) -> object:
        try:
            name.decode()
        except UnicodeDecodeError:
            return in_bytes(name)
        return in_text(name)

    return search

"""Search URLs or other names for an expression, a block of names at a time and in linear time."""

import re
from collections.abc import Callable
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlink.base.arrays import Int64Array
from inlink.errors import ParameterError
from inlink.urls.patterns import compiled, repeats_segments

__all__ = ["Kind", "matcher"]

Kind = Literal["regex", "glob", "text"]


def matcher(expression: str, kind: Kind = "regex") -> Callable[[pa.Array], Int64Array]:
    """Return a function that finds the rows of an array of URLs that an expression matches, int64[k], increasing.

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
    if kind == "text":
        return lambda urls: _rows(pc.match_substring(urls, expression, ignore_case=True))
    if kind not in ("regex", "glob"):
        raise ParameterError(f"`kind` must be 'regex', 'glob' or 'text'; got {kind!r}")
    pattern = expression
    if kind == "regex" and compiled(expression).by_hand:
        return lambda urls: np.flatnonzero([repeats_segments(_text(url.as_py())) for url in urls])
    if kind == "glob":
        wild = {"*": ".*", "?": "."}
        pattern = "^" + "".join(wild.get(char) or re.escape(char) for char in expression) + "$"
    try:
        pc.match_substring_regex(pa.array([b""], pa.large_binary()), pattern)
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        raise ParameterError(f"{expression!r} is not a valid regular expression (RE2): {reason}") from None
    return lambda urls: _rows(pc.match_substring_regex(urls, pattern))


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode("utf-8", "replace")


def _rows(matches: pa.Array) -> Int64Array:
    rows: Int64Array = np.flatnonzero(matches.to_numpy(zero_copy_only=False))
    return rows

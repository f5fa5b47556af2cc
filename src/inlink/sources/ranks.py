"""Lists of ranks in text files: Common Crawl's ranks of hosts and domains, or lines of a name and a value."""

import math
import os
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from inlink.base.opening import Stream, lines
from inlink.errors import InputError

COLUMNS = {"harmonic": (b"#harmonicc_val", b"#harmonicc_pos"), "pagerank": (b"#pr_val", b"#pr_pos")}
"""The columns of Common Crawl's ranks: values and places."""

_NAME = b"#host_rev"
_LARGEST = 1e30


class Row(NamedTuple):
    """A line of a list of ranks.

    Attributes
    ----------
    line : int
        The number of the line, from 1.
    name : bytes
        A URL or a host; in Common Crawl's ranks a reversed host or domain.
    value : float
        From 0 to 1e30.
    place : int or None
        From 1; None if the file has no places.
    """

    line: int
    name: bytes
    value: float
    place: int | None


def rank_rows(
    stream: Stream, file: str | os.PathLike[str], column: str = "harmonic"
) -> tuple[bool, Iterator[Row]]:
    """Read a list of ranks.

    Parameters
    ----------
    stream : Stream
        The open file.
    file : path-like
        The name of the file in messages.
    column : {"harmonic", "pagerank"}
        The column of Common Crawl's ranks to use.

    Returns
    -------
    bool, iterator of Row
        Whether the file has the header of Common Crawl's ranks, and its rows. Without this header, a row is a name, a
        tab and a value.

    Raises
    ------
    inlink.errors.InputError
        If Common Crawl's header lacks the column. While rows are read: if the file cannot be read, a line has too few
        fields, or a value or place is out of its range.
    """
    numbered = lines(stream)
    number, first = next(numbered, (1, b""))
    header = first.split(b"\t")
    if _NAME not in header:
        return False, _rows(chain([(number, first)], numbered), file, 0, 1, None)
    value, place = COLUMNS[column]
    if value not in header:
        raise InputError(
            f"{file}: its header has no column {value.decode()}; it has {first[:200].decode('ascii', 'replace')}"
        )
    at = header.index(place) if place in header else None
    return True, _rows(numbered, file, header.index(_NAME), header.index(value), at)


def _rows(
    numbered: Iterator[tuple[int, bytes]],
    file: str | os.PathLike[str],
    name: int,
    value: int,
    place: int | None,
) -> Iterator[Row]:
    """Yield the rows of numbered lines. ``name``, ``value`` and ``place`` are the places of columns."""
    for number, line in numbered:
        if not line:
            continue
        fields, at = line.split(b"\t"), None
        try:
            wrong = value
            score = float(fields[value])
            if place is not None:
                wrong = place
                at = int(fields[place])
            named = fields[name].strip()
        except IndexError:
            shown = line[:200].decode("utf-8", "replace")
            raise InputError(
                f"{file}, line {number}: expected a name, a tab and a value; got {shown!r}"
            ) from None
        except ValueError:
            if number == 1:
                # The line is a header of another program.
                continue
            shown, kind = (
                fields[wrong][:80].decode("utf-8", "replace"),
                "value" if wrong == value else "place",
            )
            raise InputError(f"{file}, line {number}: the {kind} must be a number; got {shown!r}") from None
        if not (math.isfinite(score) and 0 <= score <= _LARGEST):
            raise InputError(f"{file}, line {number}: the value must be in [0, 1e30]; got {score!r}")
        if at is not None and not 1 <= at < 2**63:
            raise InputError(f"{file}, line {number}: the place must be at least 1; got {at}")
        yield Row(number, named, score, at)

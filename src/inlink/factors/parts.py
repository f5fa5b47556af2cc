"""The named parts of a priority. They are combined in order."""

from collections.abc import Iterable
from typing import Literal

import msgspec

NOT_REACHED = "not reached from a trusted page"
"""Name of the only part of a priority if no trust reaches the page."""


class Part(msgspec.Struct, frozen=True):
    """One step of the computation of a priority.

    Parameters
    ----------
    name : str
        Meaning of the value, in words.
    operation : {"+", "×", "÷"}
        How the value is combined with the result of the parts before it. The result starts at 0.
    value : float
    """

    name: str
    operation: Literal["+", "×", "÷"]
    value: float


def combined(parts: Iterable[Part], start: float = 0.0) -> float:
    """Combine parts from left to right, and return the result.

    Parameters
    ----------
    parts : iterable of Part
    start : float
        The result before the first part.

    Examples
    --------
    >>> parts = [Part("from links", "+", 0.25), Part("teleport", "+", 0.15), Part("trap penalty", "×", 0.8)]
    >>> round(combined(parts), 6)
    0.32
    """
    result = start
    for part in parts:
        if part.operation == "+":
            result += part.value
        elif part.operation == "×":
            result *= part.value
        else:
            result /= part.value
    return result

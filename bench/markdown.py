"""Cells and lines of the Markdown tables."""

import statistics
from typing import Any

from bench.results import stamp

__all__ = ["ROUNDS", "line", "load", "machine", "ratio", "spread", "where"]

ROUNDS = "Medians (smallest–largest) of interleaved rounds; ratios are medians of the rounds' own ratios."


def spread(values: list[float], digits: str = ".2f") -> str:
    """Format the median with the smallest and the largest value."""
    middle = statistics.median(values)
    return f"{middle:{digits}} ({min(values):{digits}}–{max(values):{digits}})"


def line(*cells: str) -> str:
    """Format a row of a table."""
    return "| " + " | ".join(cells) + " |"


def where(figures: dict[str, Any]) -> str:
    """Return sentences about the machine, its load, the commit, and the rounds of a benchmark."""
    return f"{machine(figures)}. {ROUNDS}"


def machine(figures: dict[str, Any]) -> str:
    """Return a sentence about the machine, its load during a benchmark, and the commit that was measured."""
    return f"{load(figures)}; {stamp(figures)}"


def load(figures: dict[str, Any]) -> str:
    """Return a sentence about the machine and its load during a benchmark."""
    on, load = figures["machine"], figures["load"]
    return (
        f"{on['processor']}, {on['cores']} processors, Python {on['python']}; "
        f"load average {min(load):.1f}–{max(load):.1f}"
    )


def ratio(row: dict[str, Any], first: dict[str, Any], field: str) -> str:
    """Format the ratio of a field, round by round, to that of the first row."""
    pairs = list(zip(row["runs"], first["runs"], strict=False))
    if any(a[field] is None or b[field] is None for a, b in pairs):
        return "–"
    return spread([a[field] / b[field] for a, b in pairs])

"""Harvest curves: how soon crawls find the relevant pages, as a table and as a picture.

    h(k) = |relevant pages among the first k visits| / |relevant pages|                                            (1)

A crawl that fetches only relevant pages has h(k) = k / |relevant pages|, up to 1. This ideal cannot be reached if the
seeds are not relevant. A second visit of a page finds nothing new but counts as a visit.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from inlink.store.format import VISIT
from inlink.store.reader import known_pages

__all__ = ["MARKS", "after", "draw", "harvest", "ideal", "table", "visited"]

MARKS = (0.05, 0.1, 0.2, 0.5, 1.0)
COLOURS = ("#0b5fa5", "#d95f02", "#5a8f29", "#8e44ad")


def visited(folder: Path) -> list[str]:
    """The URLs of all visits in a crawl's folder, in order; a redirect counts as a visit of its target.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    """
    with closing(known_pages(folder)) as pages:
        return [pages.url(pages.frames.frame(place).page) for place in pages.frames.of_kind(VISIT)]


def harvest(order: Iterable[str], relevant: Collection[str]) -> list[float]:
    """(1) for k = 1, 2, …: shares from 0 to 1.

    Raises
    ------
    ValueError
        If no page is relevant.
    """
    if not relevant:
        raise ValueError("no page is relevant: there is nothing to find")
    left, curve = set(relevant), []
    for url in order:
        left.discard(url)
        curve.append(1 - len(left) / len(relevant))
    return curve


def ideal(relevant: int, budget: int) -> list[float]:
    """The curve of a crawl that fetches relevant pages only."""
    return [min(1.0, k / relevant) for k in range(1, budget + 1)]


def after(curve: Sequence[float], visits: int) -> float:
    """The share found after a number of visits; for a crawl that ended earlier, the share at its end."""
    visits = min(visits, len(curve))
    return curve[visits - 1] if visits else 0.0


def table(curves: Mapping[str, Sequence[float]], relevant: int, budget: int) -> str:
    """A table of the shares that each crawl found at :data:`MARKS` of the budget, with the ideal."""
    rows = [("pages fetched", *curves, "ideal")]
    columns = [*curves.values(), ideal(relevant, budget)]
    for mark in MARKS:
        visits = round(mark * budget)
        shares = [f"{after(curve, visits):.0%}" for curve in columns]
        rows.append((f"{visits:,} ({mark:.0%})", *shares))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def draw(
    path: Path, curves: Mapping[str, Sequence[float]], relevant: int, budget: int, title: str = "Harvest"
) -> None:
    """Draw the curves as a PNG, with the ideal as a dashed line; needs matplotlib."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter, StrMethodFormatter

    figure = Figure(figsize=(8, 5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    best = ideal(relevant, budget)
    axes.plot(
        [0, *range(1, budget + 1)],
        [0.0, *best],
        color="#888888",
        linestyle="--",
        linewidth=1.2,
        label="ideal",
    )
    for (name, curve), colour in zip(curves.items(), COLOURS, strict=False):
        shown = [0.0, *curve[:budget]]
        axes.plot(
            range(len(shown)), shown, color=colour, linewidth=2.2, label=f"{name}: {shown[-1]:.0%} in the end"
        )
        half = next((k for k, share in enumerate(shown) if share >= 0.5), None)
        if half is not None:
            axes.plot([half], [0.5], "o", color=colour, markersize=5)
            axes.annotate(
                f"half after {half:,}", (half, 0.5), (7, -12), textcoords="offset points", color=colour
            )
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel("Pages fetched")
    axes.set_ylabel(f"Share of the {relevant:,} relevant pages found")
    axes.set_xlim(0, budget)
    axes.set_ylim(0, 1.03)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="best", frameon=False)
    figure.savefig(path)

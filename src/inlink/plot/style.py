"""Common parts of all pictures: colours, sizes, axes, and text that Matplotlib does not parse."""

import io
import textwrap
from functools import cache
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font

# Width and height in inches.
SIZE = (8.0, 5.0)
DPI = 120
# Sizes of texts in points.
TITLE, FACTS = 12, 9
# Matplotlib contains this font, so texts look the same everywhere.
FONT = "DejaVu Sans"
INK, FAINT, GRID = "#222222", "#666666", "#dddddd"
# People with any colour vision can distinguish blue and orange.
FIRST, SECOND = "#0b5fa5", "#d95f02"
DENSITY = "viridis"
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False, "fontfamily": FONT}
"""Options of every text: a ``$`` in a URL is a dollar, not mathematics."""


class Picture(Figure):
    """A figure that notebooks show as it is, without pyplot and its backends."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", metadata={"Software": None})
        return file.getvalue()


def axes_for(ax: Axes | None) -> Axes:
    """The axes to draw on: the given axes, or those of a new figure that is not registered with pyplot."""
    if ax is not None:
        return ax
    return Picture(figsize=SIZE, dpi=DPI, layout="constrained").add_subplot()


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(get_font(findfont(FONT)).get_charmap())


def drawable(text: str) -> str:
    """A text that the font can draw: � replaces missing characters, control characters and undecodable bytes."""
    return "".join(c if c.isprintable() and ord(c) in _glyphs() else "\ufffd" for c in text)


def cut(text: str, limit: int) -> str:
    """A text of at most ``limit`` characters. The middle of a longer text is left out."""
    end = (limit - 1) // 2
    return text if len(text) <= limit else f"{text[: limit - 1 - end]}…{text[len(text) - end :]}"


def dress(ax: Axes, title: str, facts: str, x: str = "", y: str = "") -> None:
    """Describe the picture: add a title, a few lines of facts below it, and the axes' labels."""
    width = ax.get_window_extent().width * 72 / ax.figure.dpi
    lines = _wrapped(facts, width / (0.52 * FACTS), 4)
    heading = _wrapped(title, width / (0.67 * TITLE), 2)
    pad = 10 + 1.3 * FACTS * len(lines)
    ax.set_title(
        "\n".join(heading), loc="left", fontweight="bold", fontsize=TITLE, color=INK, pad=pad, **PLAIN
    )
    below = ax.annotate(
        "\n".join(lines), (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points", va="bottom",
        fontsize=FACTS, color=FAINT, annotation_clip=False, **PLAIN,
    )  # fmt: skip
    # The title makes room for this text.
    below.set_in_layout(False)
    ax.set_xlabel(drawable(x), color=INK, **PLAIN)
    ax.set_ylabel(drawable(y), color=INK, **PLAIN)
    ax.grid(color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _wrapped(text: str, width: float, most: int) -> list[str]:
    return textwrap.wrap(drawable(text), max(20, int(width)), max_lines=most, placeholder=" …")

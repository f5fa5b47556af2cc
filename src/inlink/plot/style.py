"""Common parts of all pictures: checked values, axes, text that Matplotlib does not parse, and files."""

import io
import os
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font

from inlink.base.arrays import Float64Array, Int64Array
from inlink.base.disk import unwritable
from inlink.base.folder import atomic_file
from inlink.base.memory import require_memory
from inlink.base.table import counted
from inlink.errors import OutputError, ParameterError
from inlink.graph.graph import Graph
from inlink.rank.ranking import Ranking, title_of

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

# Larger values are refused, so that no limit of an axis overflows.
LARGEST = 1e300
# Without dates and versions, equal pictures are equal files.
METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


class Picture(Figure):
    """A figure that notebooks show as it is, without pyplot and its backends."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", metadata=METADATA["png"])
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


def label_of(algorithm: str) -> str:
    """The title of an algorithm, or a name that stands for it, as a label of an axis."""
    return cut(title_of(algorithm), 40)


def called(graph: Graph) -> str:
    """Describe a graph in a few words: its folder, nodes and arcs."""
    name = "" if graph.path is None else f"{cut(graph.path.name, 40)}: "
    return f"{name}{counted(graph.num_nodes, 'node')}, {counted(graph.num_arcs, 'arc')}"


def values_of(ranking: Ranking) -> Float64Array:
    """A ranking's values, float64[n], n > 0, all from 0 to 1e300.

    Raises
    ------
    inlink.errors.ParameterError
        If there are no values, or a value is negative, infinite or not a number.
    """
    require_memory(100 * len(ranking.values), f"a picture of {len(ranking.values):,} nodes")
    values = np.asarray(ranking.values, np.float64)
    if not len(values):
        raise ParameterError("the ranking has no nodes, so there is nothing to draw")
    wrong = ~((values >= 0) & (values <= LARGEST))
    if wrong.any():
        node = int(wrong.argmax())
        raise ParameterError(
            f"node {node} has the rank {values[node]}: only values from 0 to 1e300 can be drawn"
        )
    return values


def values_on(graph: Graph, ranking: Ranking) -> Float64Array:
    """The values of a graph's nodes, float64[k]; k < n if a crawl has found n − k pages since it was ranked.

    Raises
    ------
    inlink.errors.ParameterError
        As :func:`values_of`, and if the ranking is not of this graph.
    """
    values = values_of(ranking)
    apart = None not in (ranking.graph_uuid, graph.uuid) and ranking.graph_uuid != graph.uuid
    grown = len(values) < graph.num_nodes and ranking.graph_uuid is not None
    if apart or (len(values) != graph.num_nodes and not grown):
        raise ParameterError(
            f"this ranking of {len(values):,} nodes belongs to another graph, or to an earlier version of it: "
            "rank the graph again"
        )
    return values


def best(values: Float64Array, count: int) -> list[int]:
    """The nodes with the largest values, ties in the order of numbers."""
    return [int(node) for node, _ in Ranking(values, algorithm="").top(count)]


def thinned(count: int, most: int = 1000) -> Int64Array:
    """At most ``most`` of the places 0 … count − 1, even on a logarithmic axis, with both ends: int64[≤ most]."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.geomspace(1, count, most).round().astype(np.int64)) - 1


def check(path: str | os.PathLike[str]) -> str:
    """Return the format of a file by its extension: ``"png"``, ``"svg"`` or ``"pdf"``.

    Raises
    ------
    inlink.errors.OutputError
        If the file has another extension.
    """
    format = Path(path).suffix.lower().removeprefix(".")
    if format not in METADATA:
        raise OutputError(f"{path}: unknown extension: name a .png, .svg or .pdf file")
    return format


def save(picture: Axes | Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture as PNG, SVG or PDF, by the extension. An existing file is replaced when the new one is complete.

    Parameters
    ----------
    picture : matplotlib.axes.Axes or matplotlib.figure.Figure
        The result of a function of :mod:`inlink.plot`, or the whole figure.
    path : path-like
        The file, with the extension .png, .svg or .pdf.

    Raises
    ------
    inlink.errors.OutputError
        If the file has another extension, or cannot be written.
    """
    wanted = check(path)
    part = picture.figure if isinstance(picture, Axes) else picture
    # A subfigure belongs to a whole figure.
    figure = None if part is None else part.figure
    if not isinstance(figure, Figure):
        raise OutputError(f"{path}: these axes are in no figure any more")
    with atomic_file(path) as work:
        try:
            with matplotlib.rc_context(
                {"svg.hashsalt": "inlink", "svg.fonttype": "path", "pdf.fonttype": 42}
            ):
                figure.savefig(work, format=wanted, metadata=METADATA[wanted])
        except OSError as error:
            raise unwritable(Path(path), error) from None

"""The neighbourhood of a page, or of the best pages, as a drawing of links between a few dozen nodes.

Places are found by NetworkX's spring layout (Fruchterman & Reingold, "Graph drawing by force-directed placement",
Software: Practice and Experience 1991) from a fixed seed, and discs that overlap are pushed apart. A label goes where
it covers no disc and no other label, the best nodes first. A label without room beside its disc goes to the nearest
place with room, with a line to its disc. If there are many of them, all labels are smaller.

Pages of one site often all link to one another by their menus. If there are many links, only the most specific links of
each node are drawn and used for the layout; see :func:`inlink.graph.neighbours.specific_arcs`.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyArrowPatch
from matplotlib.textpath import TextToPath

from inlink.base.arrays import Float64Array
from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.graph.graph import Graph
from inlink.graph.interop import GraphLike, as_graph
from inlink.graph.neighbours import specific_arcs
from inlink.plot.style import (
    DPI,
    FAINT,
    FIRST,
    FONT,
    INK,
    PLAIN,
    SECOND,
    Picture,
    best,
    cut,
    drawable,
    dress,
    label_of,
    values_on,
)  # fmt: skip
from inlink.rank.ranking import Ranking
from inlink.urls.labels import sections, short_labels

# Width and height in inches.
SIZE = (9.0, 7.0)
# Maximum number of nodes. More of them cannot be told apart.
MOST = 200
TOP = 10
# The largest and the smallest radius in points.
LARGE, SMALL = 13.0, 3.0
# Points between two discs.
APART = 14.0
# Points that stay free at each side, and above and below.
MARGIN = (70.0, 24.0)
# Sizes of labels in points: the first with which no more than this share of the labels is away from its disc.
TEXTS, FAR = (7.5, 6.5, 5.5, 4.5), 0.1
# Characters of a label.
LABEL = 34


def neighbourhood(
    graph: GraphLike,
    ranking: Ranking,
    node: int | str | bytes | None = None,
    *,
    top: int | None = None,
    nodes: int = 50,
    name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a node, or the best nodes, with the best of their neighbours.

    Loops of a node to itself are not drawn.

    Parameters
    ----------
    graph : Graph, pairs, SciPy matrix, data frame, or graph of NetworkX or igraph
        The graph to draw.
    ranking : Ranking
        A ranking of this graph. It selects the best nodes. The areas of discs are in proportion to its values, with a
        minimum size.
    node : int, str, bytes or None
        The central node, by number or by name.
    top : int or None
        Instead of ``node``, the number of best nodes at the centre; None is 10.
    nodes : int
        Maximum number of nodes to draw, from 1 to 200.
    name : str or None
        Label of the ranking; None is the algorithm.
    ax : matplotlib.axes.Axes or None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    inlink.errors.UnknownNodeError
        If there is no such node.
    inlink.errors.ParameterError
        If both node and top are given, or a number is out of range. If the ranking is of another graph, has no nodes,
        or has a value that is negative, infinite or not a number.
    """
    graph = as_graph(graph)
    ranked = values_on(graph, ranking)
    if node is not None and top is not None:
        raise ParameterError("`node` and `top` cannot be combined: give one of them")
    if not 1 <= nodes <= MOST:
        raise ParameterError(
            f"nodes must be from 1 to {MOST}, not {nodes}: more of them cannot be told apart"
        )
    if top is not None and not 1 <= top <= nodes:
        raise ParameterError(f"top must be from 1 to the number of nodes to draw ({nodes}), not {top}")
    values = np.zeros(graph.num_nodes)
    values[: len(ranked)] = ranked
    centres = best(values, min(top or TOP, nodes)) if node is None else [graph.node(node)]
    chosen, around = _chosen(graph, values, centres, nodes)
    names = [str(k) if graph.names is None else graph.names[k] for k in chosen]
    drawn, left = specific_arcs(graph, chosen, sections(names))
    labels, left_out = short_labels(names, LABEL)
    texts = [drawable(label) for label in labels]
    name = label_of(name or ranking.algorithm)
    if node is None:
        title, whom = (
            f"The {len(centres)} best by {name} and what is around them",
            f"In orange the {len(centres)} best",
        )
    else:
        full = str(chosen[0]) if graph.names is None else graph.names[chosen[0]]
        title, whom = f"Around {drawable(cut(full, 2 * LABEL))}", "In orange the node"
    others = len(chosen) - len(centres)
    if around:
        whom += f", in blue {'all' if others == around else f'the {others:,} best of'} {around:,} nodes"
        whom += " that link there or are linked from there"
    links = counted(len(drawn), "link")
    if left:
        links = f"the {len(drawn):,} most specific of {len(drawn) + len(left):,} links"
    facts = f"{whom}; {links}; areas by {name}"
    if left_out:
        facts += f"; labels without {drawable(cut(left_out, LABEL))}"
    if ax is None:
        # The layout of labels needs a position that does not depend on the content.
        ax = Picture(figsize=SIZE, dpi=DPI).add_axes((0.015, 0.015, 0.97, 0.88))
    _draw(ax, texts, values[chosen], len(centres), drawn)
    dress(ax, title, facts)
    ax.grid(visible=False)
    return ax


# -- what to draw -----------------------------------------------------------------------------------------------


def _chosen(graph: Graph, values: Float64Array, centres: list[int], nodes: int) -> tuple[list[int], int]:
    """The centres and the best of their neighbours, best first; and the number of all neighbours."""
    rows = [row for node in centres for row in (graph.outlinks(node), graph.inlinks(node))]
    near = np.setdiff1d(np.concatenate(rows), np.array(centres, np.uint32))
    order = np.lexsort((near, -values[near]))[: nodes - len(centres)]
    return centres + near[order].tolist(), len(near)


# -- layout --------------------------------------------------------------------------------------------------------


def _layout(
    count: int, arcs: Sequence[tuple[int, int]], radii: Float64Array, size: Float64Array
) -> Float64Array:
    """A place for each node inside the size, in points: float64[count, 2]."""
    import networkx

    web = networkx.Graph()
    web.add_nodes_from(range(count))
    web.add_edges_from(arcs)
    first, *others = sorted(networkx.connected_components(web), key=lambda part: (-len(part), min(part)))
    # Without these edges the parts would drift far apart.
    web.add_edges_from(((min(first), min(part)) for part in others), weight=0.2)
    spots = networkx.spring_layout(web, k=1.5 / np.sqrt(count), seed=1, iterations=150)
    at: Float64Array = np.array([spots[k] for k in range(count)], np.float64)
    at -= at.min(axis=0)
    wide = at.max(axis=0)
    # A few nodes far outside would push all others together, so places are drawn halfway to even ones.
    even = np.argsort(np.argsort(at, axis=0, kind="stable"), axis=0, kind="stable") / max(count - 1, 1)
    at = np.where(wide > 1e-9, (at / np.maximum(wide, 1e-9) + even) / 2, 0.5)
    margin = np.minimum(MARGIN, size / 4)
    at = margin + at * (size - 2 * margin)
    wanted = radii[:, None] + radii[None, :] + APART
    for _ in range(100):
        away = at[:, None, :] - at[None, :, :]
        distance = np.hypot(away[..., 0], away[..., 1])
        np.fill_diagonal(distance, np.inf)
        lacking = np.clip(wanted - distance, 0, None)
        if not lacking.any():
            break
        push = away / np.maximum(distance, 1e-9)[..., None] * (lacking / 2)[..., None]
        at = np.clip(at + push.sum(axis=1), margin / 2, size - margin / 2)
    return at


def _placed(
    at: Float64Array, radii: Float64Array, texts: Sequence[str], size: Float64Array, points: float
) -> list[tuple[float, float, bool] | None]:
    """The middle of each label in points, and whether it needs a line to its disc; None if there is no room."""
    height = 1.25 * points
    measure, font = TextToPath(), FontProperties(family=FONT, size=points)
    anywhere = np.mgrid[0 : size[0] : 12, 0 : size[1] : 4].reshape(2, -1).T
    # The lower left and the upper right corners of the labels that have a place.
    boxes = np.empty((0, 2, 2))
    middles: list[tuple[float, float, bool] | None] = []
    for middle, radius, text in zip(at, radii, texts, strict=True):
        half = np.array([measure.get_text_width_height_descent(text, font, False)[0] + 2, height]) / 2
        x, y = half + radius + [2, 1]
        beside = np.array([(x, 0), (-x, 0), (0, y), (0, -y), (x, y), (x, -y), (-x, y), (-x, -y)])
        beside[4:] *= 0.9
        nearest = anywhere[np.argsort(np.hypot(*(anywhere - middle).T))]
        for part, spots in enumerate([middle + beside, *np.array_split(nearest, len(nearest) // 100 + 1)]):
            low, high = (spots - half)[:, None], (spots + half)[:, None]
            free = ((low >= 0) & (high <= size)).all(axis=(1, 2))
            free &= ~((boxes[:, 0] < high) & (boxes[:, 1] > low)).all(axis=2).any(axis=1)
            free &= (np.linalg.norm(np.clip(at, low, high) - at, axis=2) >= radii).all(axis=1)
            if free.any():
                spot = spots[free.argmax()]
                boxes = np.concatenate([boxes, [[spot - half, spot + half]]])
                middles.append((float(spot[0]), float(spot[1]), part > 0))
                break
        else:
            middles.append(None)
    return middles


def _draw(
    ax: Axes, texts: Sequence[str], values: Float64Array, centres: int, arcs: Sequence[tuple[int, int]]
) -> None:
    figure = ax.figure
    extent = ax.get_window_extent()
    # The unit of the data is a point.
    size = np.array([extent.width, extent.height]) * 72 / figure.dpi
    radii = np.clip(LARGE * np.sqrt(values / (values.max() or 1.0)), SMALL, None)
    at = _layout(len(texts), arcs, radii, size)
    ax.set_xlim(0, float(size[0]))
    ax.set_ylim(0, float(size[1]))
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    for k, end in arcs:
        ax.add_patch(
            FancyArrowPatch(
                at[k], at[end], arrowstyle="-|>", connectionstyle="arc3,rad=0.1", mutation_scale=6,
                shrinkA=radii[k] + 0.5, shrinkB=radii[end] + 1, linewidth=0.6, color=FAINT, alpha=0.5, zorder=1,
            )
        )  # fmt: skip
    colours = [SECOND if k < centres else FIRST for k in range(len(texts))]
    ax.scatter(
        at[:, 0],
        at[:, 1],
        s=(2 * radii) ** 2,
        c=colours,
        edgecolors="white",
        linewidths=0.8,
        zorder=2,
        clip_on=False,
    )
    back = {"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
    for points in TEXTS:
        placed = _placed(at, radii, texts, size, points)
        if sum(spot is None or spot[2] for spot in placed) <= FAR * len(texts):
            break
    for text, spot, (x, y) in zip(texts, placed, at, strict=True):
        if spot is None:
            continue
        a, b, line = spot
        if line:
            ax.plot([x, a], [y, b], color=FAINT, linewidth=0.5, zorder=1.5)
        ax.text(a, b, text, ha="center", va="center", fontsize=points, color=INK, bbox=back, zorder=3,
                **PLAIN)  # fmt: skip

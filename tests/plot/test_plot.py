"""The pictures show what is so, whatever the graph, its names and its ranks are."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.stats import spearmanr

import inlink
from inlink import Graph, Ranking, plot
from inlink.base.progress import Work, reporting
from inlink.base.table import counted
from inlink.errors import OutputError, ParameterError, UnknownNodeError
from inlink.graph.names import encode
from inlink.graph.neighbours import arcs_between, specific_arcs
from inlink.plot import near, scale, style
from inlink.urls.labels import sections
from strategies import Arcs, arcs

# A picture takes a tenth of a second.
few = settings(max_examples=12)
ranks = st.lists(
    st.sampled_from([0.0, 1e-300, 5e-324, 1e-17, 0.1, 0.3, 1.0, 1e5, 1e300]) | st.floats(0, 1e300),
    max_size=12,
)


def ranking(numbers: list[float] | np.ndarray) -> Ranking:
    return Ranking(np.array(numbers, np.float64), algorithm="made up")


def rendered(ax: Axes) -> Axes:
    """Draws it, so that whatever Matplotlib puts off until then has to work."""
    ax.figure.figure.draw_without_rendering()
    return ax


def texts(ax: Axes) -> str:
    return " ".join(" ".join([ax.get_title(loc="left"), *(text.get_text() for text in ax.texts)]).split())


def random_graph(nodes: int = 3000, arcs: int = 9000) -> Graph:
    rng = np.random.default_rng(7)
    ends = (nodes * rng.random((arcs, 2)) ** 3).astype(np.uint32)
    return Graph.from_arcs(ends, num_nodes=nodes)


# -- distributions ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@few
@given(arcs())
def test_degrees_are_the_share_of_nodes_with_at_least_so_many(made: Arcs):
    graph = made.graph()
    if not graph.num_arcs:
        with pytest.raises(ParameterError, match="no arcs"):
            plot.degrees(graph)
        return
    ax = rendered(plot.degrees(graph))
    for line, found in zip(ax.lines, (graph.indegrees, graph.outdegrees), strict=False):
        x, share = line.get_xydata().T
        assert x.tolist() == sorted(set(found[found > 0].tolist()))
        assert share == pytest.approx([np.mean(found >= d) for d in x])
        assert f"; {counted(int(np.sum(found == 0)), 'node')} (" in line.get_label()


@few
@given(ranks)
def test_ranks_stand_at_their_places(numbers: list[float]):
    if not numbers or max(numbers) < scale.TINY:
        with pytest.raises(ParameterError, match="nothing to draw"):
            plot.ranks(ranking(numbers))
        return
    ax = rendered(plot.ranks(ranking(numbers)))
    x, y = ax.lines[0].get_xydata().T
    shown = sorted((v for v in numbers if v >= max(scale.TINY, scale.FLOOR * max(numbers))), reverse=True)
    assert x.tolist() == list(range(1, len(shown) + 1))
    assert y.tolist() == shown
    if len(shown) < len(numbers):
        assert f"{len(numbers) - len(shown)} have 0" in texts(ax)


@pytest.mark.parametrize(("degrees", "marker"), [(50, "o"), (51, "")])
def test_up_to_50_points_of_a_line_are_marked(degrees: int, marker: str):
    # Node k has k inlinks, so each number of inlinks is a point.
    graph = Graph.from_arcs([(source, node) for node in range(degrees + 1) for source in range(node)])
    for ax in (plot.degrees(graph), plot.ranks(ranking(range(1, degrees + 1)))):
        assert {line.get_marker() for line in ax.lines} == {marker}


@given(st.integers(1, 10**7), st.integers(1, 500))
def test_thinned_places_keep_both_ends(count: int, most: int):
    places = style.thinned(count, most)
    assert len(places) <= most
    assert (np.diff(places) > 0).all()
    assert places[0] == 0
    assert places[-1] == count - 1 or most == 1


def test_pictures_that_cannot_be_drawn_are_refused():
    for numbers, says in (
        ([0.5, -1.0], "node 1 has the rank -1.0"),
        ([np.nan], "node 0 has the rank nan"),
        ([0.0, np.inf], "node 1 has the rank inf"),
        ([], "no nodes"),
        ([0.0, 0.0], "all ranks are 0"),
    ):
        with pytest.raises(ParameterError, match=says):
            plot.ranks(ranking(numbers))
    empty = Graph.from_arcs([], num_nodes=0)
    for draw in (plot.degrees, plot.convergence, lambda g: plot.rank_against_degree(g, inlink.pagerank(g))):
        with pytest.raises(ParameterError, match="nothing to draw"):
            draw(empty)
    graph = Graph.from_arcs([(0, 1), (1, 2)])
    with pytest.raises(ParameterError, match="another graph"):
        plot.rank_against_degree(graph, ranking([1.0, 2.0]))
    with pytest.raises(ParameterError, match="another graph"):
        plot.neighbourhood(graph, inlink.pagerank(Graph.from_arcs([(1, 0), (1, 2)])))
    with pytest.raises(ParameterError, match="of 2 and of 3 nodes"):
        plot.compare(ranking([1.0, 2.0]), ranking([1.0, 2.0, 3.0]))


# -- axes ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 10**6), min_size=1), st.integers(1, 90))
def test_each_whole_number_has_its_cell(numbers: list[int], count: int):
    found = np.array(numbers)
    axis = scale.Scale.of(found)
    check_cells(found, axis, axis.edges(count, whole=True))


@given(ranks.filter(bool), st.integers(1, 90))
def test_each_value_has_its_cell(numbers: list[float], count: int):
    found = np.array(numbers)
    axis = scale.Scale.of(found)
    check_cells(found, axis, axis.edges(count))


def check_cells(found: np.ndarray, axis: scale.Scale, edges: np.ndarray) -> None:
    assert (np.diff(edges) > 0).all()
    counts, _ = np.histogram(axis.place(found), edges)
    assert counts.sum() == len(found)
    zeros = int((found < axis.low).sum())
    if axis.zero is None:
        assert zeros == 0
    else:
        assert counts[:2].tolist() == [zeros, 0]
        assert edges[2] > axis.zero


@given(st.floats(1e-280, 1e300), st.floats(1, 1e20))
def test_ticks_are_few_and_different(low: float, ratio: float):
    high = min(low * ratio, 1e300)
    ticks = scale.steps(low, high)
    assert 1 <= len(ticks) <= 10
    labels = [scale.tick_label(tick) for tick in ticks]
    assert len(set(labels)) == len(labels)
    assert all(low * 0.999 <= tick <= high * 1.001 for tick in ticks)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (1, "1"),
        (20, "20"),
        (1000, "1,000"),
        (1e5, "10⁵"),
        (0.1, "10⁻¹"),
        (2e-7, "2·10⁻⁷"),
        (0.0314, "3.14·10⁻²"),
    ],
)
def test_ticks_say(value: float, label: str):
    assert scale.tick_label(value) == label


# -- one against the other ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_node_of_a_large_graph_is_in_a_cell():
    graph = random_graph()
    assert (graph.indegrees == 0).any()
    for rank in (inlink.pagerank(graph), inlink.hits(graph)):
        ax = rendered(plot.rank_against_degree(graph, rank))
        (mesh,) = ax.collections
        assert mesh.get_array().sum() == graph.num_nodes
    zero_degree, zero_rank = graph.indegrees == 0, rank.values == 0
    cells = mesh.get_array().filled(0).reshape(mesh.get_array().shape)
    assert cells[:, 0].sum() == zero_degree.sum()
    assert cells[0].sum() >= zero_rank.sum() > 0
    assert {label.get_text() for label in ax.get_xticklabels()} >= {"0", "1"}


@pytest.mark.slow
@few
@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(*[st.lists(st.sampled_from([0, 1, 2, 7.5]), min_size=n, max_size=n)] * 2)
    )
)
def test_two_rankings_are_told_to_agree_as_far_as_they_do(made: tuple[list[float], list[float]]):
    one, other = made
    ax = rendered(plot.compare(ranking(one), ranking(other), names=("a$b$", "c_{d")))
    assert len(ax.collections[0].get_offsets()) == len(one)
    if min(len(set(one)), len(set(other))) > 1:
        expected = f"ρ {spearmanr(one, other).statistic:.2f}".replace("-", "−")
        assert expected.replace("−0.00", "0.00") in texts(ax).replace("−0.00", "0.00")
    else:
        assert "ρ undefined" in texts(ax)
        assert "τ undefined" in texts(ax)


def test_the_top_in_common():
    places = np.arange(300.0)
    swapped = places.copy()
    swapped[[299, 0]] = swapped[[0, 299]]
    said = texts(plot.compare(ranking(places), ranking(swapped)))
    assert "in common 9 of the top 10, 99 of the top 100" in said
    said = texts(plot.compare(ranking(places), ranking(-places + 299)))
    assert "ρ −1.00; Kendall's τ −1.00; in common 0 of the top 10, 0 of the top 100" in said
    assert "top" not in texts(plot.compare(ranking(places[:10]), ranking(places[:10])))


# -- convergence --------------------------------------------------------------------------------------------------


def test_the_errors_of_the_power_method_are_its_bounds():
    graph = random_graph(200, 600)
    ax = rendered(plot.convergence(graph, tol=1e-8))
    # of each method the line, the dot at its end, and the legend's
    gauss, gauss_end, _, power, power_end, _ = (line.get_xydata() for line in ax.lines[:6])
    for sweeps, error in power:
        exact = inlink.pagerank(graph, method="power", tol=None, max_iter=int(sweeps)).error_bound
        assert error == pytest.approx(exact, rel=0.06), sweeps
    assert power[:, 0].tolist() == list(range(len(power)))
    assert power[-1].tolist() == power_end[0].tolist()
    ranked = inlink.pagerank(graph, tol=1e-8, threads=1)
    assert gauss_end[0].tolist() == [ranked.iterations, ranked.error_bound]
    assert gauss[:, 0].tolist() == list(range(1, ranked.iterations + 1))
    assert gauss[0, 1] > 1000 * gauss[-1, 1]
    assert gauss[-1, 1] <= 1e-8


@pytest.mark.slow
@few
@given(arcs(min_nodes=1), st.sampled_from([0.0, 0.5, 0.99]), st.sampled_from([0, 1, 50]))
def test_convergence_of_any_graph(made: Arcs, damping: float, limit: int):
    ax = rendered(plot.convergence(made.graph(), damping=damping, max_iter=limit))
    low, high = ax.get_ylim()
    for line in ax.lines:
        assert all(low <= y <= high for y in line.get_ydata())


def test_convergence_refuses_what_pagerank_refuses_and_shows_progress():
    graph = Graph.from_arcs([(0, 1), (1, 0)])
    for wrong in ({"damping": 1.0}, {"damping": -1}, {"tol": -1}):
        with pytest.raises(ParameterError):
            plot.convergence(graph, **wrong)

    class Seen:
        labels: list[str] = []  # noqa: RUF012

        def task(self, label: str, total: float | None, unit: str) -> Work:
            self.labels.append(label)
            return Work(label, total, unit)

    with reporting(Seen()):
        plot.convergence(graph)
    assert Seen.labels == ["PageRank by Gauss–Seidel", "PageRank by Power method"]


# -- neighbourhoods -----------------------------------------------------------------------------------------------

NAMES = [
    "https://example.org/a$b$c?x={y}_^\\frac{",
    "https://example.org/" + "deep/" * 40 + "page.html",
    b"\xff\xfe\x00\x1b[31m",
    "http://[::1/--><script>alert(1)</script>]]>",
    "日本語 עברית \u202e reversed",
    "",
    "_hidden",
    "://",
    "https://" + "h" * 300 + ".example/" + "p" * 300,
    "a\nb\tc",
]


def test_the_best_neighbours_are_chosen():
    graph = random_graph(500, 3000)
    rank = inlink.pagerank(graph)
    node = int(rank.top(40)[-1][0])
    around = set(graph.inlinks(node).tolist()) | set(graph.outlinks(node).tolist()) - {node}
    around.discard(node)
    assert len(around) > 10
    chosen, count = near._chosen(graph, rank.values, [node], 11)
    assert count == len(around)
    assert chosen == [node, *sorted(around, key=lambda k: (-rank.values[k], k))[:10]]
    arcs = arcs_between(graph, chosen)
    assert sorted(arcs) == sorted(
        (i, j)
        for i, a in enumerate(chosen)
        for j, b in enumerate(chosen)
        if a != b and b in graph.outlinks(a).tolist()
    )
    ax = rendered(plot.neighbourhood(graph, rank, node, nodes=11))
    assert len(ax.collections[0].get_offsets()) == 11
    assert len(ax.patches) == len(arcs)
    assert f"in blue {'all' if len(around) == 10 else 'the 10 best of'} {len(around):,} nodes" in texts(ax)
    sizes = ax.collections[0].get_sizes()
    biggest = int(rank.values[chosen].argmax())
    assert sizes.argmax() == biggest


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [60, pytest.param(200, marks=pytest.mark.soak)])
def test_each_node_has_a_label_that_covers_neither_labels_nor_discs(nodes: int):
    pairs = random_graph(500, 3000).edges.numbers
    graph = Graph.from_arcs([[f"https://a.example/f{k % 7}/page-{k}.html" for k in arc] for arc in pairs])
    ax = plot.neighbourhood(graph, inlink.pagerank(graph), nodes=nodes)
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    ax.figure.draw(renderer)
    labels = [text for text in ax.texts if text.get_ha() == "center"]
    assert len(labels) == nodes
    for text in labels:  # what stands around the letters of a line is not ink
        text.set_path_effects([])
    boxes = [text.get_window_extent(renderer) for text in labels]
    for k, box in enumerate(boxes):
        for other in boxes[:k]:
            assert not (
                min(box.x1, other.x1) - max(box.x0, other.x0) > 1
                and min(box.y1, other.y1) - max(box.y0, other.y0) > 3
            )
    at = ax.transData.transform(ax.collections[0].get_offsets())
    for x, y in at:
        assert not any(box.x0 < x < box.x1 and box.y0 < y < box.y1 for box in boxes)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_names_are_never_parsed(tmp_path: Path, suffix: str):
    graph = Graph.from_arcs([(NAMES[k], NAMES[(3 * k + 1) % len(NAMES)]) for k in range(len(NAMES))])
    rank = inlink.pagerank(graph)
    for node in NAMES:
        plot.save(plot.neighbourhood(graph, rank, node, name="a$\\frac{b$"), tmp_path / f"p{suffix}")
        if suffix == ".svg":
            ET.parse(tmp_path / "p.svg")
    assert "a$b$c" in texts(plot.neighbourhood(graph, rank, NAMES[0]))


@few
@given(st.lists(st.binary(max_size=60) | st.text(max_size=60), min_size=1, max_size=6, unique_by=encode))
def test_any_names(names: list[str | bytes]):
    graph = Graph.from_arcs([(names[0], name) for name in names])
    rendered(plot.neighbourhood(graph, inlink.pagerank(graph)))


@pytest.mark.slow
@few
@given(arcs(min_nodes=1), st.integers(1, 12), ranks)
def test_neighbourhoods_of_any_graph(made: Arcs, nodes: int, numbers: list[float]):
    graph = made.graph()
    rank = ranking([*numbers, *[0.0] * graph.num_nodes][: graph.num_nodes])
    rendered(plot.neighbourhood(graph, rank, graph.num_nodes - 1, nodes=nodes))
    ax = rendered(plot.neighbourhood(graph, rank, nodes=nodes))
    assert len(ax.collections[0].get_offsets()) <= nodes
    rendered(plot.rank_against_degree(graph, rank))


def test_neighbourhoods_refuse():
    graph = Graph.from_arcs([("a", "b"), ("b", "c")])
    rank = inlink.pagerank(graph)
    with pytest.raises(UnknownNodeError, match="'d'"):
        plot.neighbourhood(graph, rank, "d")
    with pytest.raises(ParameterError, match="cannot be combined"):
        plot.neighbourhood(graph, rank, "a", top=2)
    for wrong in ({"nodes": 0}, {"nodes": 201}, {"top": 0}, {"top": 6, "nodes": 5}):
        with pytest.raises(ParameterError, match="must be from 1"):
            plot.neighbourhood(graph, rank, **wrong)


@pytest.mark.slow
def test_the_most_specific_of_many_links_are_drawn():
    # Each page links to all others of its menu, and page k also to the page beside it, which no menu has.
    menu = [
        (f"https://a.example/docs/{i}", f"https://a.example/docs/{j}") for i in range(30) for j in range(10)
    ]
    beside = [(f"https://a.example/docs/{i}", f"https://a.example/docs/caf%C3%A9{i}") for i in range(30)]
    graph = Graph.from_arcs(menu + beside + [(end, "https://a.example/docs/0") for _, end in beside])
    ax = plot.neighbourhood(graph, inlink.pagerank(graph), "https://a.example/docs/0", nodes=60)
    counted = re.search(r"the (\d+) most specific of (\d+) links", texts(ax))
    assert counted
    assert len(ax.patches) == int(counted[1]) < 120 < int(counted[2])
    assert "labels without a.example/docs/" in texts(ax)
    chosen, _ = near._chosen(
        graph, inlink.pagerank(graph).values, [graph.node("https://a.example/docs/0")], 60
    )
    found, others = specific_arcs(graph, chosen, sections([graph.names[k] for k in chosen]))
    assert sorted(found + others) == sorted(arcs_between(graph, chosen))
    drawn = {(graph.names[chosen[i]], graph.names[chosen[j]]) for i, j in found}
    assert {
        pair for pair in beside if graph.node(pair[0]) in chosen and graph.node(pair[1]) in chosen
    } <= drawn
    assert any("café" in text.get_text() for text in ax.texts)


# -- figures and files --------------------------------------------------------------------------------------------


def pictures(graph: Graph) -> list[Axes]:
    rank, hits = inlink.pagerank(graph, threads=1), inlink.hits(graph, threads=1)
    return [
        plot.degrees(graph),
        plot.ranks(rank),
        plot.rank_against_degree(graph, rank),
        plot.compare(rank, hits),
        plot.convergence(graph, tol=1e-6),
        plot.neighbourhood(graph, rank, nodes=20),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "suffix", [".svg", *(pytest.param(suffix, marks=pytest.mark.soak) for suffix in (".PNG", ".pdf"))]
)
def test_the_same_picture_is_the_same_file(tmp_path: Path, suffix: str):
    found = []
    for run in ("one", "two"):
        for k, ax in enumerate(pictures(random_graph(300, 900))):
            plot.save(ax, tmp_path / f"{run}{k}{suffix}")
            found.append((tmp_path / f"{run}{k}{suffix}").read_bytes())
    assert found[:6] == found[6:]
    assert len(set(found[:6])) == 6
    for raw in found:
        begin = {".svg": b"<?xml", ".pdf": b"%PDF"}.get(suffix, b"\x89PNG")
        assert raw.startswith(begin)
        assert b"dc:date" not in raw
        assert b"matplotlib.org" not in raw
        assert len(raw) < 400_000
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{run}{k}{suffix}" for run in ("one", "two") for k in range(6)
    )


@pytest.mark.slow
def test_they_draw_on_axes_that_are_given():
    graph = random_graph(300, 900)
    rank = inlink.pagerank(graph)
    for draw in (
        lambda ax: plot.degrees(graph, ax=ax),
        lambda ax: plot.ranks(rank, ax=ax),
        lambda ax: plot.rank_against_degree(graph, rank, ax=ax),
        lambda ax: plot.compare(rank, rank, ax=ax),
        lambda ax: plot.convergence(graph, ax=ax),
        lambda ax: plot.neighbourhood(graph, rank, ax=ax),
    ):
        whole = Figure(figsize=(10, 7), layout="constrained")
        for figure in (Figure(), whole.subfigures(1, 2)[0]):
            ax = figure.add_subplot(2, 1, 2)
            assert draw(ax) is ax
            rendered(ax)


@pytest.mark.slow
def test_a_subfigure_is_saved_as_the_whole_figure(tmp_path: Path):
    whole = Figure()
    ax = whole.subfigures(1, 2)[0].add_subplot()
    plot.save(plot.ranks(ranking([1, 2]), ax=ax), tmp_path / "a.png")
    plot.save(whole, tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_other_extensions_are_refused_and_nothing_half_made_is_left(tmp_path: Path, monkeypatch):
    ax = plot.ranks(ranking([3, 2, 1]))
    for name in ("p.eps", "p", "p.png.gz"):
        with pytest.raises(OutputError, match=r"\.png, \.svg or \.pdf"):
            plot.save(ax, tmp_path / name)
    (tmp_path / "p.png").write_text("old")

    def full(self: Figure, path: Path, **_: object) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    with pytest.raises(OutputError, match=r"p\.png: cannot be written \(No space.*free some space"):
        plot.save(ax, tmp_path / "p.png")
    assert [path.name for path in tmp_path.iterdir()] == ["p.png"]
    assert (tmp_path / "p.png").read_text() == "old"


@pytest.mark.slow
def test_pyplot_and_its_settings_are_left_alone(tmp_path: Path):
    script = f"""
import sys, inlink, matplotlib
from inlink import Graph, plot
before = list(matplotlib.rcParams.copy().items())  # looking up the backend would load pyplot
graph = Graph.from_arcs([(0, 1), (1, 2), (0, 2)])
plot.save(plot.neighbourhood(graph, inlink.pagerank(graph)), {str(tmp_path / "p.svg")!r})
plot.save(plot.degrees(graph), {str(tmp_path / "p.png")!r})
assert list(matplotlib.rcParams.copy().items()) == before
assert "matplotlib.pyplot" not in sys.modules
"""
    environment = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr


def test_notebooks_show_a_figure_without_pyplot():
    graph = Graph.from_arcs([("a", "b"), ("b", "c"), ("c", "a")])
    for ax in (plot.degrees(graph), plot.neighbourhood(graph, inlink.pagerank(graph), "a")):
        assert ax.figure._repr_png_().startswith(b"\x89PNG\r\n\x1a\n")

"""The picture of a replay: a line an order, with its spread over seed sets."""

import numpy as np
import pytest

import inlink
from inlink import Graph
from inlink.errors import ParameterError

pytest.importorskip("matplotlib")

from inlink import plot
from inlink.replaying.result import BOUND, GREEDY, LOOK_AHEAD


@pytest.fixture(scope="module")
def replay():
    graph = Graph.from_arcs([(k, (7 * k + step) % 40) for k in range(40) for step in (1, 5)])
    return inlink.replay(
        graph,
        policies=["breadth-first", "random"],
        seeds="3x1",
        budget=0.5,
        host_pages=[0],
        tau=False,
        changes=10.0,
    )


def test_a_line_is_the_mean_and_its_band_one_standard_deviation(replay):
    axes = plot.orders(replay, measure="indegree")
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines) == ["breadth-first", "random", GREEDY, LOOK_AHEAD, BOUND]
    # The lines that know the whole graph have no band.
    assert len(axes.collections) == 2
    for place, order in enumerate(("breadth-first", "random")):
        points = np.array([run.measures["indegree"].points for run in replay.runs if run.order == order])
        mean, spread = points.mean(axis=0), points.std(axis=0, ddof=1)
        at, drawn = lines[order].get_data()
        assert drawn == pytest.approx(mean)
        assert at[-1] == pytest.approx(50.0)
        band = axes.collections[place].get_paths()[0].get_extents()
        assert band.ymax == pytest.approx((mean + spread).max())
        assert band.ymin == pytest.approx((mean - spread).min())


def test_a_picture_of_freshness_has_no_line_of_the_whole_graph(replay):
    axes = plot.orders(replay, measure="freshness")
    assert [line.get_label() for line in axes.lines] == ["breadth-first", "random"]
    assert axes.get_ylabel() == "Share of the copies that are current"


@pytest.mark.parametrize("wrong", [{"measure": "score"}, {"hosts": "7"}])
def test_a_measure_that_was_not_taken_cannot_be_drawn(replay, wrong):
    with pytest.raises(ParameterError, match="must be one of"):
        plot.orders(replay, **wrong)

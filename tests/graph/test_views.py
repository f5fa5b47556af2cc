"""Graphs and rankings as tables: batches of columns."""

import re

import numpy as np
import pytest

from inlink import Graph
from inlink.graph import views


@pytest.mark.parametrize("size", [0, 1, 3, 8])
def test_batches_have_each_node_once(monkeypatch, size):
    monkeypatch.setattr(views, "_BATCH", 3)
    fields, batches = views.name_batches(None, size)
    assert fields == [("node", np.uint32)]
    assert [node for (nodes,) in batches for node in nodes.tolist()] == list(range(size))


def test_a_notebook_shows_the_ends_of_the_degrees():
    shown = Graph.from_arcs([("a", "b"), ("a", "c"), ("b", "c")])._repr_html_()
    rows = re.findall(r"<tr><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td></tr>", shown)
    expected = [("nodes", "3"), ("arcs", "3"), ("dangling", "1"), ("largest outdegree", "2: a")]
    assert rows[:-1] == [*expected, ("largest indegree", "2: c")]
    assert rows[-1][0] == "folder"

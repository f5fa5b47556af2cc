"""Graphs and rankings as tables: batches of columns."""

import numpy as np
import pytest

from inlink.graph import views


@pytest.mark.parametrize("size", [0, 1, 3, 8])
def test_batches_have_each_node_once(monkeypatch, size):
    monkeypatch.setattr(views, "_BATCH", 3)
    fields, batches = views.name_batches(None, size)
    assert fields == [("node", np.uint32)]
    assert [node for (nodes,) in batches for node in nodes.tolist()] == list(range(size))

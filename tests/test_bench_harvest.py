"""The replay of policies over a known graph, and the two ways to keep an event."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import harvest, tables, truth

import inlink
from inlink import Graph
from inlink.store.format import HEAD_SIZE


@pytest.fixture
def ring() -> Graph:
    """A ring of 60 pages, each of which also links to page 0."""
    return Graph.from_arcs([(k, (k + 1) % 60) for k in range(60)] + [(k, 0) for k in range(60)])


@pytest.mark.parametrize("policy", ["breadth-first", "host-diverse"])
def test_all_is_home_in_the_end(ring, policy, monkeypatch):
    monkeypatch.setattr(harvest, "MARKS", (0.5, 1.0))
    values = inlink.pagerank(ring, tol=1e-9).values
    reached, rows = harvest.shares(ring, [policy], [[0]])
    half, whole = rows[policy]
    assert reached == 60
    assert whole == pytest.approx(1.0)
    # The ring leaves no choice.
    assert half == pytest.approx(float(values[:30].sum()))


def test_the_lines_are_rows_too(ring):
    _, rows = harvest.shares(ring, ["random"], "2x3")
    assert list(rows) == ["random", "clairvoyant greedy (no bound)", "look-ahead", "sort bound"]
    for name, row in rows.items():
        assert row == sorted(row), name
        assert row <= rows["sort bound"]


def test_the_table_names_each_policy():
    rows = {"pagerank": [0.25, 0.5], "oracle": [0.5, 1.0]}
    table = tables.harvest_table({"graph": "g", "nodes": 9, "reached": 8, "marks": (0.1, 0.2), "rows": rows})
    assert "| pagerank | 0.250 | 0.500 |" in table
    assert "| policy | 10% | 20% |" in table


def test_the_log_keeps_what_it_is_timed_with(tmp_path):
    assert truth.with_log(tmp_path, 7) >= 0
    assert (tmp_path / "urls.txt").read_bytes() == truth.URLS * 7
    # beside the events there may be marks of how far the log is synced, one a second
    marks = (tmp_path / "events.log").stat().st_size - 7 * (HEAD_SIZE + len(truth.EVENT))
    assert marks >= 0
    assert marks % HEAD_SIZE == 0

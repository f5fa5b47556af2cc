"""The benchmark of the measures: its gate, its peers' answers, and the table."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import measures, measuretable, rank, results, tables, webgraph
from bench.measurers import base

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small graph, as the harness wants it; processes started from here find the project."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'src'}")
    arrays = webgraph.generate(120, 900, 3)
    webgraph.write_npy(arrays, tmp_path / "small")
    np.save(tmp_path / "small" / "reference.npy", rank.reference(arrays))
    return measures.prepare("small", tmp_path)


def test_errors_are_those_of_their_kind() -> None:
    exact = np.array([4.0, 0.0, 1.0, 2.0])
    assert base.each(np.array([4.0, 1e-24, 1.01, 2.0]), exact) == pytest.approx(0.01)
    assert base.each(np.array([4.0, 0.1, 1.0, 2.0]), exact) > 1e9
    assert base.each(np.array([2.0, 4.0]), exact) == 0  # the best two only
    assert base.each(np.array([1.0, 4.0]), exact) == 0.5
    assert base.each(np.array([4.0, 0.0, np.nan, 2.0]), exact) == np.inf
    assert base.in_sum(10 * exact, exact) == pytest.approx(0)
    assert base.in_sum(np.array([0.0, 1.0, 0.0, 0.0]), exact) == pytest.approx(2)
    assert base.in_sum(np.zeros(4), exact) == np.inf
    assert base.at_most(np.array([4.0, 1.0, 1.0, 2.0]), exact) == 0.25


def test_every_file_is_a_peer_and_answers_what_is_asked() -> None:
    files = {path.stem for path in Path(base.__file__).parent.glob("*.py")} - {"__init__", "base"}
    assert set(base.ALL) == files
    assert set(base.peer("inlink").MEASURES) == set(base.MEASURES)
    for name in base.ALL:
        assert set(base.peer(name).MEASURES) <= set(base.MEASURES)
    with pytest.raises(SystemExit, match="no peer 'neo4j'"):
        base.peer("neo4j")


@pytest.mark.filterwarnings("ignore")  # igraph's, that an eigenvector may not be unique
@pytest.mark.parametrize("name", ["networkx", "igraph", "networkit"])
def test_peers_answer_the_same_question(name: str, folder: Path) -> None:
    peer, inlink = base.peer(name), base.peer("inlink")
    if (reason := peer.available()) is not None:
        pytest.skip(reason)
    arrays = webgraph.load(folder)
    given = base.inputs_of(arrays, measures._alpha(folder))
    for measure, own in peer.MEASURES.items():
        if name == "networkit" and measure == "betweenness_sample":
            continue  # another question
        asked, ours = base.MEASURES[measure], inlink.MEASURES[measure]
        exact = ours.run(arrays, given, 1e-13 if ours.settings is base.TOLERANCES else ours.settings[-1])
        answer = own.run(peer.load(arrays, measure), given, 1e-11)
        assert asked.error(answer, exact) < 1e-8, measure


def test_states_and_sources_are_what_inlink_takes(folder: Path) -> None:
    given = base.inputs_of(webgraph.load(folder), 0.1)
    assert set(given.states * 6) == set(range(7))
    many = given._replace(linking=np.arange(1000, dtype=np.uint32))
    assert len(set(many.sources.tolist())) == base.SOURCES


def fake(answers: dict[float, Any]) -> SimpleNamespace:
    own = base.Measurement(lambda graph, given, setting: answers[setting], list(answers))
    return SimpleNamespace(
        NAME="fake", THREADS=1, load=lambda arrays, measure: None, MEASURES={"harmonic": own, "katz": own}
    )


def test_settings_are_tried_from_loose_to_tight(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measures.reference("katz", folder)
    exact = np.load(folder / "answers" / "katz.npy")
    wrong, near = exact.copy(), 3 * exact  # as far as a factor nobody has asked for
    wrong[0] += exact.sum() / 100
    monkeypatch.setattr(base, "peer", lambda name: fake({0.1: wrong, 0.01: near, 0.001: exact}))
    measures.work("fake", "katz", folder, 1e-6, [0.1, 0.01, 0.001])
    loaded, *tries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert set(loaded) == {"load"}
    assert [one["setting"] for one in tries] == [0.1, 0.01]
    assert tries[0]["error"] == pytest.approx(0.02 / 1.01 * (1 - exact[0] / exact.sum()))
    assert tries[1]["error"] < 1e-12


def test_another_answer_is_refused_and_so_is_a_slow_one(folder: Path) -> None:
    measures.reference("harmonic", folder)
    assert not (folder / "answers" / "harmonic.npy").exists()  # inlink's own answer, which comes first
    first = measures._apart("inlink", "harmonic", folder, 1e-9, base.EXACT, 60)
    assert isinstance(first, dict)
    assert first["error"] == 0
    path = folder / "answers" / "harmonic.npy"
    np.save(path, np.load(path) * 1.5)
    told = measures._apart("networkx", "harmonic", folder, 1e-9, base.EXACT, 60)
    assert told == "3.3e-01 off"
    assert measures._apart("networkx", "harmonic", folder, 1e-9, base.EXACT, 0) == "more than 0 s"


def test_measures_are_compared_from_end_to_end(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measures.main(
        ["--graph", "small", "--rounds", "2", "--measures", "closeness", "mcmc"]
        + ["--peers", "inlink_one_thread", "networkx", "graph_tool"]
        + ["--data", str(tmp_path), "--results", str(tmp_path / "results")]
    )
    told = json.loads((tmp_path / "results" / "measures.json").read_text())
    rows = told["graphs"]["small"]["measures"]["closeness"]["rows"]
    assert list(rows) == ["inlink", "inlink_one_thread", "networkx"]
    for row in rows.values():
        assert row["error"] < 1e-9
        assert len(row["runs"]) == 2
    assert list(told["graphs"]["small"]["measures"]["mcmc"]["rows"]) == ["inlink", "inlink_one_thread"]
    table = tables.tables(tmp_path / "results")["measures"]
    assert table in capsys.readouterr().out
    assert "| closeness | NetworkX | 1 |" in table
    assert "- Not in the tables, graph-tool: graph_tool is not installed." in table
    assert "- No peer has: PageRank by walks." in table


def test_the_table_says_who_is_not_in_it() -> None:
    def runs(*walls: float) -> list[dict[str, float]]:
        return [{"wall": wall, "cpu": wall, "peak": 3e6} for wall in walls]

    def peer(name: str, threads: int) -> dict[str, Any]:
        return {"name": name, "about": "so", "threads": threads, "missing": None, "measures": ["hits"]}

    rows = {
        "inlink": {"how": "", "error": 0.0, "runs": runs(0.5, 0.25, 1)},
        "networkit": {"how": "", "error": 2e-7, "runs": runs(1, 1, 1)},
        "inlink_one_thread": {"how": "", "error": 0.0, "runs": runs(1, 1, 1)},
        "igraph": {"how": "", "error": 1e-7, "runs": runs(30)},
        "sknetwork": {"how": "something else", "skipped": "2.0e+00 off"},
        "networkx": {"how": "slowly", "skipped": "more than 60 s"},
    }
    peers = {"inlink": peer("inlink", 0), "networkit": peer("NetworKit", 0), "networkx": peer("NetworkX", 1)}
    peers |= {"inlink_one_thread": peer("inlink, one thread", 1), "igraph": peer("igraph", 1)}
    peers |= {"sknetwork": peer("scikit-network", 1)}
    graph = {"nodes": 10, "arcs": 20, "alpha": 0.1, "measures": {"hits": {"load": [0.5], "rows": rows}}}
    table = measuretable.measures_table(
        {"machine": results.machine(), "peers": peers, "graphs": {"small": graph}}
    )
    wanted = "| HITS | NetworKit | all | 1.00 (1.00–1.00) | 2.00 (1.00–4.00) | 1.00 | 3 | 2.0e-07 |"
    assert wanted in table.splitlines()
    assert "| HITS | igraph | 1 | 30.0 | 30.0 | 30.0 | 3 | 1.0e-07 |" in table.splitlines()
    assert "- Not in the table, HITS, scikit-network: 2.0e+00 off (something else)." in table.splitlines()
    assert "- Not in the table, HITS, NetworkX: more than 60 s." in table.splitlines()

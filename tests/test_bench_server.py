"""The benchmark of the server, from end to end, on a few pages."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import edge, server

pytestmark = pytest.mark.slow


def test_the_server_and_the_embedded_crawl_do_the_same_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    rows = ["embedded10", "server10", "four"]
    server.main(
        [
            "--pages",
            "40",
            "--rounds",
            "1",
            "--rows",
            *rows,
            "--data",
            str(tmp_path),
            "--results",
            str(tmp_path),
        ]
    )
    told = json.loads((tmp_path / "server.json").read_text())["rows"]
    assert [told[name]["runs"][0]["pages"] for name in rows] == [40, 40, 160]
    assert told["embedded10"]["runs"][0]["links"] > 40 * 20
    table = capsys.readouterr().out
    assert all(server.ROWS[name][0] in table for name in rows)


def test_probes_are_answered_beside_hostile_connections(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{root}:{root / 'src'}")
    rows = ["none", "value", "handshake"]
    edge.main(["--probes", "3", "--rounds", "1", "--rows", *rows, "--results", str(tmp_path)])
    told = json.loads((tmp_path / "edge.json").read_text())["rows"]
    table = capsys.readouterr().out
    for name in rows:
        assert all(run["probes"] == 3 for run in told[name]["runs"][0].values())
        assert edge.KINDS[name].name in table

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import view


def test_the_benchmark_runs(tmp_path, capsys):
    view.main(
        ["--known", "2000", "--calls", "2", "--data", str(tmp_path / "d"), "--results", str(tmp_path / "r")]
    )
    told = json.loads((tmp_path / "r" / "view-2000.json").read_text())
    assert told["known"] >= 2000
    assert told["rows"]["find a text"]["parts"] >= 1
    assert all(0 <= row["p50"] <= row["max"] for row in told["rows"].values())
    table = capsys.readouterr().out
    assert all(f"| {name} |" in table for name in told["rows"])

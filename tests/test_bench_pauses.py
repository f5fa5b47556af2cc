import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import pauses


def test_the_benchmark_runs(tmp_path, capsys):
    sizes = ["--known", "2000", "--on-one-host", "3000", "--rounds", "3"]
    pauses.main([*sizes, "--data", str(tmp_path / "d"), "--results", str(tmp_path / "r")])
    told = json.loads((tmp_path / "r" / "pauses-2000.json").read_text())
    assert set(told["crawls"]) == {"2,000 URLs", "3,000 pages of one host"}
    for rows in told["crawls"].values():
        assert rows["rankings"] >= 1
        assert rows["calls"]["next"]["calls"] == 3
        for row in rows["calls"].values():
            assert 0 <= row["p50"] <= row["p99"] <= row["max"] == row["longest"][0][0]
    assert capsys.readouterr().out.count("| `next` | 3 |") == 2

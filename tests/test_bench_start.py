import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import start


@pytest.fixture
def without_pip(monkeypatch):
    """Products run in this environment, so that nothing is installed."""
    monkeypatch.setattr(start, "install", lambda product, folder, wheel: None)
    monkeypatch.setattr(start, "size", lambda folder: 8_000_000)
    run = start.run
    here = Path(sys.executable).parents[1]
    monkeypatch.setattr(start, "run", lambda task, _, folder, cache: run(task, here, folder, cache))


@pytest.mark.parametrize("product", ["igraph", "scrapy"])
def test_the_benchmark_runs(tmp_path, capsys, without_pip, product):
    start.main(
        ["--rounds", "1", "--products", product, "--data", f"{tmp_path}/d", "--results", f"{tmp_path}/r"]
    )
    told = json.loads((tmp_path / "r" / "start.json").read_text())
    (row,) = told["rows"].values()
    assert all(len(row[temper]) == 1 for temper in ("cold", "warm"))
    assert all(0 < one["cpu"] < 600 for temper in ("cold", "warm") for one in row[temper])
    (name,) = told["rows"]
    assert f"| {name} |" in capsys.readouterr().out


def test_a_wheel_is_needed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="run `make wheel`"):
        start.main([])


def test_commands_of_products_that_are_installed():
    assert {task.product for task in start.tasks("http://localhost/")} == set(start.REQUIREMENTS)

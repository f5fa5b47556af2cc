"""The demo of ``make demo``, on a smaller web."""

import subprocess
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crawlcommand import inlink

DEMO = Path(__file__).parents[2] / "demo"


def forked(command: list[str], cwd: Path, **_: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command of the demo as a fork."""
    assert command[1:3] == ["-m", "inlink"]
    return inlink(*command[3:], cwd=cwd, code=None)


@pytest.mark.slow
def test_the_demo_ends_and_leaves_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.syspath_prepend(DEMO)
    spec = spec_from_file_location("demo_program", DEMO / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    demo = module_from_spec(spec)
    spec.loader.exec_module(demo)
    # Replace the demo's own calls only. matplotlib also runs a program if it has no list of fonts yet.
    monkeypatch.setattr(demo, "subprocess", SimpleNamespace(run=forked, PIPE=subprocess.PIPE))
    for name, value in {"PAGES": 500, "BUDGET": 120, "OUT": tmp_path / "out"}.items():
        monkeypatch.setattr(demo, name, value)
    demo.main()
    out = capsys.readouterr().out
    assert "All results are in" in out
    assert "priority" in out.partition("inlink why topic")[2]
    assert (tmp_path / "out" / "harvest.png").stat().st_size > 1000

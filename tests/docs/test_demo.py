"""The demo of ``make demo``, as a user runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "demo"


@pytest.mark.slow
def test_the_demo_ends_and_leaves_its_results():
    run = subprocess.run([sys.executable, DEMO / "demo.py"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    assert "All results are in" in run.stdout
    assert "priority" in run.stdout.partition("inlink why topic")[2]
    assert (DEMO / "out" / "harvest.png").stat().st_size > 1000

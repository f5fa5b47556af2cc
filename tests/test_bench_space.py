import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import space

from inlink.base.columns import PAGE_SIZE, map_file, reserve


def is_told() -> bool:
    """Return whether the system tells which pages are in memory."""
    if not space.PAGEMAP.exists():
        return False
    page = reserve(np.uint8, PAGE_SIZE)
    page[:] = 1
    return space.resident(page) == (PAGE_SIZE, 0)


pytestmark = pytest.mark.skipif(not is_told(), reason="the system does not tell which pages are in memory")


def test_memory_is_told_apart_from_pages_of_files(tmp_path):
    array = reserve(np.uint8, 100 * PAGE_SIZE)
    assert space.resident(array) == (0, 0)
    # Pages that were only read take no memory.
    assert not array[: 8 * PAGE_SIZE].any()
    assert space.resident(array) == (0, 0)
    array[: 5 * PAGE_SIZE] = 1
    assert space.resident(array) == (5 * PAGE_SIZE, 0)
    (tmp_path / "file").write_bytes(array[: 3 * PAGE_SIZE].tobytes())
    with (tmp_path / "file").open("rb") as file:
        map_file(array, 0, 3 * PAGE_SIZE, file.fileno(), 0)
    assert array[: 3 * PAGE_SIZE].all()
    assert space.resident(array) == (2 * PAGE_SIZE, 3 * PAGE_SIZE)
    array[0] = 2
    assert space.resident(array) == (3 * PAGE_SIZE, 2 * PAGE_SIZE)


def test_the_benchmark_runs(tmp_path, capsys):
    space.main(["--known", "30000", "--data", str(tmp_path / "d"), "--results", str(tmp_path / "r")])
    told = json.loads((tmp_path / "r" / "space-30000.json").read_text())
    for moment in ("running", "opened"):
        own, mapped = np.sum(list(told[moment]["bytes"].values()), axis=0)
        assert told[moment]["known"] >= 30000
        assert 20 < own < 200
        assert 0 <= mapped < 50
    assert "| sum |" in capsys.readouterr().out

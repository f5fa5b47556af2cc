"""``inlink crawl`` for tests, in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

INLINK = [sys.executable, "-m", "inlink"]

LOOPBACK = ["--allow-address", "127.0.0.0/8"]
"""The sites of the tests are on loopback, which ``inlink crawl`` does not fetch unless it is allowed."""


def crawl(*given: object, cwd: Path, code: int = 0, quiet: bool = True) -> subprocess.CompletedProcess[str]:
    """``inlink crawl``, to its end."""
    done = subprocess.run(
        [*INLINK, *(["-q"] if quiet else []), "crawl", *map(str, given), *LOOPBACK],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error::ResourceWarning"},
    )
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


@contextmanager
def begin(*given: object, cwd: Path, quiet: bool = True) -> "Iterator[subprocess.Popen[str]]":
    """``inlink crawl``, under way; it does not outlive the block."""
    with subprocess.Popen(
        [*INLINK, *(["-q"] if quiet else []), "crawl", *map(str, given), *LOOPBACK],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            yield run
        finally:
            run.kill()  # does nothing where it has ended


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]

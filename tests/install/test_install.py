"""Each way to install inlink in an empty environment gives an inlink with machine code: ``make wheel-test``.

``INLINK_MACHINE_CODE`` names a folder with machine code, so nothing is compiled. pip needs its package index.
"""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = os.environ.get("INLINK_MACHINE_CODE", "off")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path(CODE).is_dir(), reason="needs machine code: run make wheel-test"),
]


def run(*command: object, folder: Path, **environment: str) -> None:
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "INLINK_MACHINE_CODE")
    }
    subprocess.run([*map(str, command)], cwd=folder, env=inherited | environment, check=True)


def source(way: str, folder: Path) -> str:
    """Return what pip gets to install."""
    if way == "wheel":
        wheels = sorted(map(str, ROOT.glob("dist/inlink-*.whl")))
        return wheels[-1] if wheels else pytest.skip("there is no wheel: run make wheel")
    if way == "clone":
        return str(ROOT)
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, folder=ROOT)
    (sdist,) = folder.glob("inlink-*.tar.gz")
    if way == "sdist":
        return str(sdist)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    repository = folder / sdist.name.removesuffix(".tar.gz")
    git = ["git", "-c", "user.name=inlink", "-c", "user.email=inlink@example.org"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "inlink"]):
        run(*git, *command, folder=repository)
    return f"git+file://{repository}"


# `make soak` tries the ways that build a wheel. The source from git is an unpacked sdist.
@pytest.mark.parametrize(
    "way", ["wheel", *(pytest.param(way, marks=pytest.mark.soak) for way in ("git", "clone", "sdist"))]
)
def test_an_empty_environment_gets_machine_code_and_no_extras(way: str, tmp_path: Path):
    wanted = source(way, tmp_path)
    # The pip of this environment installs into the empty one, and compiles no modules.
    run(sys.executable, "-m", "venv", "--without-pip", "environment", folder=tmp_path)
    python = tmp_path / "environment/bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    run(*pip, wanted, folder=tmp_path, INLINK_MACHINE_CODE=CODE, PIP_COMPILE="no")
    run(python, ROOT / "demo/check.py", "--base", folder=tmp_path)
    (folder,) = tmp_path.glob("environment/lib/python*/site-packages/inlink/base/machinecode")
    libraries = [file.read_bytes() for file in folder.iterdir()]
    assert libraries
    for place in (str(ROOT), "site-packages"):
        assert not any(place.encode() in library for library in libraries), place

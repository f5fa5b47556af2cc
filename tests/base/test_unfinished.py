"""The next program removes the files of a killed program, and not those of a living one."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import inlink
from inlink.base import unfinished
from inlink.base.folder import atomic_file
from patience import wait_until

EXPORT = "inlink.write(graph, place / 'out.tsv')"
BUILD = "inlink.Graph.from_arcs(graph_arcs, into=place / 'g')"
RANK = "ranking.save(kept)"
TEMPORARY = "inlink.Graph.from_arcs(graph_arcs)"
SCRIPT = """
import sys, tempfile, numpy as np, inlink
from pathlib import Path
place = Path(sys.argv[1])
graph_arcs = np.random.default_rng(1).integers(0, 1000, (20_000, 2))
tempfile.tempdir = sys.argv[2]
graph = inlink.Graph.from_arcs(graph_arcs)
kept = inlink.Graph.from_arcs(graph_arcs, into=place / "kept")
ranking = inlink.degree(kept)
print("ready", flush=True)
tempfile.tempdir = str(place)
while True:
    {step}
"""


def unfinished_in(place: Path) -> list[Path]:
    # Unlike `rglob`, `os.walk` passes over folders that another process removes meanwhile.
    return [
        Path(folder, name)
        for folder, folders, files in os.walk(place)
        for name in (*folders, *files)
        if name.startswith(".") and name.endswith(unfinished.SUFFIX)
    ]


def killed(step: str, place: Path, other: Path) -> None:
    """Kill a process that repeats a step, in the middle of it."""
    script = [sys.executable, "-c", SCRIPT.format(step=step), str(place), str(other)]
    for _ in range(100):
        child = subprocess.Popen(script, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        try:
            wait_until(lambda: unfinished_in(place), "something unfinished", every=0.0)
        finally:
            child.kill()
            child.communicate()
        # It may have been finished just before.
        if unfinished_in(place):
            return
    raise AssertionError("nothing was ever left")


@pytest.mark.slow
@pytest.mark.parametrize("step", [EXPORT, BUILD, RANK, TEMPORARY])
def test_the_next_run_removes_the_files_of_a_killed_run(tmp_path: Path, monkeypatch, step: str):
    place, other = tmp_path / "place", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    killed(step, place, other)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    kept = inlink.Graph.open(place / "kept", verify=True)
    if step == EXPORT:
        # Another output in the same folder is enough.
        inlink.write(kept, place / "another.tsv")
    elif step == BUILD:
        inlink.Graph.from_arcs([(0, 1)], into=place / "another")
    elif step == RANK:
        inlink.degree(kept).save(kept, "another")
    else:
        inlink.Graph.from_arcs([(0, 1)])
    assert unfinished_in(place) == []
    assert (place / "kept").is_dir()


def test_the_files_of_a_living_process_stay(tmp_path: Path):
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom inlink.base.folder import atomic_file\n"
        "with atomic_file(Path(sys.argv[1])) as work:\n"
        "    work.write_text('theirs')\n    print('ready', flush=True)\n    sys.stdin.readline()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "out")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    (left,) = unfinished_in(tmp_path)
    with atomic_file(tmp_path / "mine") as work, atomic_file(tmp_path / "also mine") as other:
        work.write_text("mine")
        other.write_text("mine too")
        assert len(unfinished_in(tmp_path)) == 3
    assert unfinished_in(tmp_path) == [left]
    child.communicate("go on\n")
    assert child.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["also mine", "mine", "out"]
    assert (tmp_path / "out").read_text() == "theirs"


def test_only_what_inlink_left_is_removed(tmp_path: Path):
    suffix = unfinished.SUFFIX
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "thesis").write_text("x")
    for name in (f"visible{suffix}", ".other.writing", ".other.building", f".{suffix}.more", ".thesis"):
        (tmp_path / name).write_text("x")
    (tmp_path / f".link.{suffix}").symlink_to(tmp_path / "outside")
    (tmp_path / f".broken{suffix}").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / f".pipe{suffix}")
    (tmp_path / f".folder{suffix}").mkdir()
    (tmp_path / f".folder{suffix}" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / f".file{suffix}").write_text("x")
    before = {path.name for path in tmp_path.iterdir()}
    unfinished.remove_abandoned(tmp_path)
    gone = before - {path.name for path in tmp_path.iterdir()}
    assert gone - {f".pipe{suffix}"} == {f".folder{suffix}", f".file{suffix}"}
    assert (tmp_path / "outside" / "thesis").read_text() == "x"
    unfinished.remove_abandoned(tmp_path / "nowhere")


def test_a_file_system_without_locks_keeps_what_is_left(tmp_path: Path, monkeypatch):
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(unfinished.fcntl, "flock", refused)
    left = tmp_path / f".out.x{unfinished.SUFFIX}"
    left.write_text("x")
    with atomic_file(tmp_path / "out") as work:
        work.write_text("whole")
    assert (tmp_path / "out").read_text() == "whole"
    assert left.exists()


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path: Path, monkeypatch):
    make, made = tempfile.mkstemp, []

    def removed(*arguments: str) -> tuple[int, str]:
        descriptor, name = make(*arguments)
        made.append(name)
        if len(made) == 1:
            Path(name).unlink()
        return descriptor, name

    monkeypatch.setattr(tempfile, "mkstemp", removed)
    with atomic_file(tmp_path / "out") as work:
        work.write_text("whole")
    assert (tmp_path / "out").read_text() == "whole"
    assert len(made) == 2


def test_long_names_have_room(tmp_path: Path):
    name = "n" * 250
    with atomic_file(tmp_path / name) as work:
        work.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == [name]

"""Graphs and ranks need nothing that only POSIX has. Windows is simulated: what it lacks is taken away."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_POSIX = """
import errno, fcntl, json, os, shutil, sys

access = fcntl.fcntl, fcntl.F_GETFL, os.O_ACCMODE
for module in ("fcntl", "resource"):
    sys.modules[module] = None
for name in ("O_DIRECTORY", "O_NOFOLLOW", "geteuid", "pread", "preadv", "pwrite", "sched_getaffinity", "sysconf"):
    delattr(os, name)
shutil._use_fd_functions = False
open_on_posix, sync_on_posix = os.open, os.fsync

def open_file(path, *more, **options):
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return open_on_posix(path, *more, **options)

def sync_writable(descriptor):
    if access[0](descriptor, access[1]) & access[2] == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    sync_on_posix(descriptor)

os.open, os.fsync = open_file, sync_writable
from inlink.cli import main
for command in json.loads(sys.argv[1]):
    sys.argv = ["inlink", *command]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def inlink(folder: Path, *commands: list[str]) -> "subprocess.CompletedProcess[str]":
    """Run commands in one process, until one fails."""
    script = [sys.executable, "-c", WITHOUT_POSIX, json.dumps(commands)]
    return subprocess.run(script, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_graphs_are_built_ranked_and_exported(tmp_path: Path, data):
    done = inlink(
        tmp_path,
        ["build", str(data("web.warc.gz")), "-o", "pages", "--level", "page"],
        ["fold", "pages", "-o", "hosts", "--level", "host"],
        ["rank", "pages"],
        ["rank", "hosts", "--algorithm", "hits"],
        ["top", "pages", "-n", "3"],
        ["diff", "pages", "pages"],
        ["find", "hosts", "io"],
        ["export", "pages", "-o", "pages.tsv"],
        ["build", "pages.tsv", "-o", "pages"],
        ["info", "pages"],
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_crawls_are_refused_in_one_line(tmp_path: Path):
    (tmp_path / "seeds.txt").write_text("https://example.org/\n")
    done = inlink(tmp_path, ["seed", "crawl", "seeds.txt"])
    assert done.returncode == 2
    assert done.stderr.startswith("inlink: crawls need Linux or macOS")
    assert done.stderr.count("\n") == 1

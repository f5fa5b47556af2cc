"""Graphs and ranks need nothing that only POSIX has. Windows is simulated: what it lacks is taken away."""

import subprocess
import sys
from pathlib import Path

WITHOUT_POSIX = """
import errno, fcntl, os, shutil, sys

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
sys.argv = ["inlink", *sys.argv[1:]]
from inlink.cli import main
main()
"""


def inlink(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    script = [sys.executable, "-c", WITHOUT_POSIX, *command]
    return subprocess.run(script, cwd=folder, capture_output=True, text=True)


def test_graphs_are_built_ranked_and_exported(tmp_path: Path, data):
    for command in (
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
    ):
        done = inlink(tmp_path, *command)
        assert done.returncode == 0, (command, done.stderr)
    assert not list(tmp_path.glob(".*"))


def test_crawls_are_refused_in_one_line(tmp_path: Path):
    (tmp_path / "seeds.txt").write_text("https://example.org/\n")
    done = inlink(tmp_path, "seed", "crawl", "seeds.txt")
    assert done.returncode == 2
    assert done.stderr.startswith("inlink: crawls need Linux or macOS")
    assert done.stderr.count("\n") == 1

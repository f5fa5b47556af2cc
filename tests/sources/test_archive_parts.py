"""A graph of many archives: built by one process or several, interrupted anywhere, and the same to the byte."""

import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import inlink
import inlink.sources.archiveparts as archiveparts
import inlink.sources.workers as workers
from archivecrawl import bytes_of, write_crawl
from archives import response, write
from inlink.errors import InputError, InUseError, OutputError, ParameterError
from inlink.graph.part import PartFile
from inlink.sources.workers import DeadWorkerError, make_part
from patience import PATIENCE, wait_until


@pytest.fixture
def crawl(tmp_path: Path, monkeypatch) -> list[Path]:
    """Eight archives that link to each other."""
    monkeypatch.chdir(tmp_path)
    return write_crawl()


def in_one(paths: list[Path], **options: object) -> dict[str, object]:
    return bytes_of(inlink.read(paths, into="whole", **options).path)


@pytest.mark.parametrize(
    "options", [{}, {"level": "host"}, {"level": "host", "count": True}, {"self_loops": False}]
)
def test_archives_are_the_graph_of_one_archive_with_all_records(crawl, options):
    Path("all.warc.gz").write_bytes(b"".join(path.read_bytes() for path in crawl))
    one = inlink.read("all.warc.gz", **options)
    many = inlink.read(crawl, **options, into="many")
    assert many.names[:] == one.names[:]
    for ours, theirs in ((many.out_rows, one.out_rows), (many.in_rows, one.in_rows)):
        assert ours.offsets.tolist() == theirs.offsets.tolist()
        assert ours.nodes.tolist() == theirs.nodes.tolist()
        assert (ours.weights is None) == (theirs.weights is None)
        assert ours.weights is None or ours.weights.tolist() == theirs.weights.tolist()
    assert many.crawled.tolist() == one.crawled.tolist()
    assert (many.meta["records"], many.meta["links"]) == (one.meta["records"], one.meta["links"])
    assert not Path("many.parts").exists()


def test_an_interrupted_build_goes_on_with_the_missing_files(crawl, monkeypatch):
    whole = in_one(crawl)
    read: list[str] = []

    def stopped(job):
        if len(read) == 3:
            raise KeyboardInterrupt
        read.append(job.name)
        return make_part(job)

    monkeypatch.setattr(workers, "make_part", stopped)
    with pytest.raises(KeyboardInterrupt, match="3 of 8 files are done; the same command goes on"):
        inlink.read(crawl, into="g")
    assert not Path("g").exists()
    read.clear()
    monkeypatch.setattr(workers, "make_part", lambda job: (read.append(job.name), make_part(job)))
    with pytest.warns(UserWarning, match="going on: 3 of 8 files are done"):
        inlink.read(crawl, into="g")
    assert read == [str(path) for path in crawl[3:]]
    assert bytes_of(Path("g")) == whole
    assert not Path("g.parts").exists()


def interrupted(paths, monkeypatch, after: int, **options) -> None:
    """Build until so many files are done."""
    left = after

    def stopped(job):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return make_part(job)

    with monkeypatch.context() as patch:
        patch.setattr(workers, "make_part", stopped)
        with pytest.raises(KeyboardInterrupt):
            inlink.read(paths, into="g", **options)


def test_parts_belong_to_options_and_versions_of_files(crawl, monkeypatch):
    interrupted(crawl, monkeypatch, 4)
    with pytest.raises(
        OutputError, match=r"g.parts holds parts that were made with other options \(level None, now 'host'"
    ):
        inlink.read(crawl, into="g", level="host")
    with pytest.raises(OutputError, match=r"a part of 0.warc.gz, which is not among the files"):
        inlink.read(crawl[1:], into="g")
    # A file that has changed is read again, and so is a part that is damaged.
    write(crawl[1], [response("http://new.example.org/", "<a href=/x>x</a>")])
    parts = {PartFile(path).header.meta["inputs"][0]["name"]: path for path in Path("g.parts").glob("*.part")}
    damaged = parts["2.warc.gz"]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    whole = in_one(crawl)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        inlink.read(crawl, into="g")
    lines = [str(line.message) for line in told]
    assert any("1.warc.gz has changed since its part was made" in line for line in lines)
    assert any(f"{damaged} is damaged: its files are read again" in line for line in lines)
    assert bytes_of(Path("g")) == whole


def test_merged_parts_are_resumed_too(crawl, monkeypatch):
    whole = in_one(crawl)
    monkeypatch.setattr(archiveparts, "FILES", 3)
    interrupted(crawl, monkeypatch, 7)
    names = sorted(path.name for path in Path("g.parts").glob("*.part"))
    assert sum(name.startswith("merged-") for name in names) == 2
    assert len(names) == 3
    # As if the process died before the members of a merged part were removed.
    with pytest.warns(UserWarning, match="7 of 8 files are done"):
        inlink.read(crawl, into="g")
    assert bytes_of(Path("g")) == whole
    interrupted(crawl, monkeypatch, 7)
    write(crawl[0], [response("http://new.example.org/", "")])
    with pytest.raises(
        OutputError, match=r"0.warc.gz has changed since it was merged: remove g.parts to begin again"
    ):
        inlink.read(crawl, into="g")


def test_a_part_beside_the_merged_part_that_has_it_never_counts_twice(crawl, monkeypatch, tmp_path):
    whole = in_one(crawl, count=True)
    monkeypatch.setattr(archiveparts, "FILES", 3)
    interrupted(crawl, monkeypatch, 2, count=True)
    kept = {path.name: path.read_bytes() for path in Path("g.parts").glob("*.part")}
    with pytest.warns(UserWarning, match="2 of 8"):
        interrupted(crawl, monkeypatch, 3, count=True)
    for name, data in kept.items():
        (Path("g.parts") / name).write_bytes(data)
    with pytest.warns(UserWarning, match="5 of 8"):
        inlink.read(crawl, into="g", count=True)
    assert bytes_of(Path("g")) == whole


def test_a_file_that_is_named_twice_counts_twice(crawl):
    graph = inlink.read([crawl[0], crawl[0]], count=True)
    one = inlink.read(crawl[0], count=True)
    assert graph.out_rows.weights.tolist() == (2 * one.out_rows.weights).tolist()


def test_a_file_in_the_way_of_parts_stays(crawl):
    Path("g.parts").mkdir()
    Path("g.parts/thesis").write_text("x")
    with pytest.raises(OutputError, match=r"g.parts exists and holds something else"):
        inlink.read(crawl, into="g")
    assert Path("g.parts/thesis").read_text() == "x"
    Path("h.parts").write_text("x")
    with pytest.raises(OutputError, match=r"h.parts: cannot be written"):
        inlink.read(crawl, into="h")


def test_two_builds_at_once_are_refused(crawl):
    with (
        archiveparts.PartFolder(Path("g.parts"), {}, []),
        pytest.raises(InUseError, match="another process"),
    ):
        inlink.read(crawl, into="g")


@pytest.mark.parametrize(
    ("most", "number"), [(2, 1), (3, 1), (5, 1), (8, 1), pytest.param(3, 2, marks=pytest.mark.slow)]
)
def test_groups_of_any_size_are_merged_to_the_same(crawl, monkeypatch, most: int, number: int):
    # A file without links, a file with names of its own only, and one that is named twice.
    write(crawl[0], [response("http://empty.example.org/", "")])
    write(crawl[1], [response("http://z.example.net/", "<a href=http://y.example.net/>x</a>")])
    paths = [*crawl, crawl[2]]
    whole = in_one(paths, count=True)
    monkeypatch.setattr(archiveparts, "FILES", most)
    assert bytes_of(inlink.read(paths, count=True, workers=number, into="g").path) == whole
    assert not Path("g.parts").exists()


@pytest.mark.slow
def test_a_worker_that_dies_in_a_merge_is_told_and_the_same_command_goes_on(crawl, monkeypatch):
    whole = in_one(crawl)
    monkeypatch.setattr(archiveparts, "FILES", 3)
    asked = workers.ask

    def dying(process, job):
        if isinstance(job, workers.MergeJob):
            process.kill()
            process.wait()
        return asked(process, job)

    with monkeypatch.context() as patch:
        patch.setattr(workers, "ask", dying)
        with pytest.raises(
            workers.DeadWorkerError, match=r"merged-\w+.part, merged from 3 parts: its process died twice"
        ):
            inlink.read(crawl, workers=2, into="g")
    assert not list(Path("g.parts").glob("merged-*"))
    with pytest.warns(UserWarning, match=r"going on: \d of 8"):
        assert bytes_of(inlink.read(crawl, workers=2, into="g").path) == whole


@pytest.mark.slow
def test_parts_that_no_job_has_reported_stay(crawl):
    """A cluster reports its tasks together. If a task fails, the parts of the other tasks are not reported."""
    whole = in_one(crawl)

    def fails(jobs):
        for job in list(jobs)[:3]:
            workers.do(job)
        yield from ()
        raise DeadWorkerError("a task failed")

    with pytest.raises(
        DeadWorkerError, match=r"a task failed\. 3 of 8 files are done; the same command goes on"
    ):
        inlink.read(crawl, into="g", workers=fails)
    with pytest.warns(UserWarning, match="3 of 8 files are done"):
        inlink.read(crawl, into="g")
    assert bytes_of(Path("g")) == whole
    assert not Path("g.parts").exists()


@pytest.mark.slow
def test_two_workers_build_the_same(crawl):
    Path("9.warc.gz").write_bytes(b"")
    whole = in_one(crawl)
    assert bytes_of(inlink.read(crawl, workers=2, into="g").path) == whole
    with pytest.warns(UserWarning, match=r"left out 1 of 9 files. The first: 9.warc.gz"):
        graph = inlink.read([*crawl, Path("9.warc.gz")], format="warc", workers=2)
    assert graph.meta["files_left_out"] == 1
    with pytest.raises(InputError, match=r"9.warc.gz"):
        inlink.read([*crawl, Path("9.warc.gz")], format="warc", workers=2, strict=True, into="h")
    with pytest.raises(ParameterError, match="`workers` applies only to several archives"):
        inlink.read(crawl[0], workers=2)
    with pytest.raises(ParameterError, match="`workers` must be"):
        inlink.read(crawl, workers=0)


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_once_and_then_told(crawl, monkeypatch):
    whole = in_one(crawl)
    asked = workers.ask
    killed: list[str] = []

    def dying(process, job):
        if job.name == "5.warc.gz" and len(killed) < most:
            killed.append(job.name)
            process.kill()
            process.wait()
        return asked(process, job)

    monkeypatch.setattr(workers, "ask", dying)
    most = 1
    assert bytes_of(inlink.read(crawl, workers=2, into="g").path) == whole
    assert killed == ["5.warc.gz"]
    killed.clear()
    most = 2
    with pytest.raises(
        workers.DeadWorkerError, match=r"^5.warc.gz: .* died twice \(signal SIGKILL, out of memory\?\)"
    ):
        inlink.read(crawl, workers=2, into="h")


@pytest.mark.parametrize(("code", "why"), [(-9, "signal SIGKILL.*"), (-35, "signal 35"), (3, "exit code 3")])
def test_each_end_of_a_worker_is_reported(crawl, monkeypatch, code: int, why: str):
    def ending(process, job):
        process.kill()
        process.wait()
        process.returncode = code
        return b""

    monkeypatch.setattr(workers, "ask", ending)
    with pytest.raises(workers.DeadWorkerError, match=rf"died twice \({why}\)"):
        inlink.read(crawl, workers=2, into="g")


def test_an_error_in_a_thread_of_the_pool_ends_the_build(crawl, monkeypatch):
    def failing(process, job):
        raise RuntimeError("lost")

    monkeypatch.setattr(workers, "ask", failing)
    with pytest.raises(RuntimeError, match="lost"):
        inlink.read(crawl, workers=2, into="g")
    assert not Path("g").exists()


def kill_after_parts(command: list[str], wanted: int) -> None:
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_until(
        lambda: len(list(Path("g.parts").glob("*.part"))) >= wanted or child.poll() is not None, "parts"
    )
    child.send_signal(signal.SIGKILL)
    child.wait()


@pytest.mark.slow
def test_kill_9_then_the_same_command(crawl):
    whole = in_one(crawl)
    command = [sys.executable, "-m", "inlink", "-q", "build", "*.warc.gz", "-o", "g"]
    for wanted in (1, 4):
        kill_after_parts(command, wanted)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert bytes_of(Path("g")) == whole
    assert not [path for path in Path().iterdir() if path.suffix == ".parts" or path.name[0] == "."]


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(crawl):
    """A limit on the size of files stands for the full disk: a part fails, or the merge does."""
    for k, path in enumerate(crawl):
        links = "".join(f'<a href="http://h{k}-{i}.example.com/">x</a>' for i in range(200))
        write(path, [response(f"http://h{k}.example.org/", links)])
    whole = in_one(crawl, level="host")
    command = [sys.executable, "-m", "inlink", "-q", "build", "*.warc.gz", "-o", "g", "--level", "host"]

    def build(most: int) -> "subprocess.CompletedProcess[str]":
        # `preexec_fn` would fork this process, and gRPC prints lines to stderr after a fork.
        limited = (
            "import os, resource, sys; "
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most})); os.execv(sys.argv[1], sys.argv[1:])"
        )
        return subprocess.run(
            [sys.executable, "-c", limited, *command],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    largest = max(len(value) for value in whole.values() if isinstance(value, bytes))
    for most in (1000, largest - 1):
        done = build(most)
        assert done.returncode == 2, done.stderr
        line, *others = done.stderr.splitlines()
        assert not others, done.stderr
        assert line.startswith("inlink: ")
        assert "File too large" in line
        assert "free some space, or name an output on another disk" in line
        assert not Path("g").exists()
        assert not [path for path in Path().iterdir() if path.name[0] == "."]
    assert "8 of 8 files are done; the same command goes on with the others" in line
    assert build(1 << 30).returncode == 0
    assert bytes_of(Path("g")) == whole
    assert not Path("g.parts").exists()

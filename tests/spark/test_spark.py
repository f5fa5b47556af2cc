"""Graphs that are built by tasks of Spark are those of `inlink build`, also if tasks and executors die."""

import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

import inlink
import inlink.sources.archiveparts as archiveparts
from archivecrawl import bytes_of, write_crawl
from inlink.cli import commands
from inlink.errors import InlinkError, InputError, OutputError, ParameterError
from inlink.sources.workers import DeadWorkerError
from patience import PATIENCE, finish
from sparkworld import EXECUTOR, WORKER, Killer, serving

pytest.importorskip("pyspark", reason="pyspark is not installed")
if not shutil.which("java"):
    pytest.skip("java is not installed", allow_module_level=True)

from py4j.protocol import Py4JError

import inlink.spark

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    session = inlink.spark.session("local[2]", {"spark.sql.shuffle.partitions": "4"})
    yield session
    session.stop()


@pytest.fixture
def crawl(tmp_path: Path, monkeypatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    return write_crawl()


def build(sources: list[Any], output: str, spark: Any, **options: Any) -> dict[str, object]:
    return bytes_of(inlink.spark.build(sources, output, session=spark, **options).path)


@pytest.mark.parametrize(
    "options",
    [
        {"level": "host", "count": True},
        *(pytest.param(options, marks=pytest.mark.soak) for options in ({}, {"self_loops": False})),
    ],
)
def test_the_folder_is_that_of_a_build_on_one_machine(crawl, spark, options):
    assert build(crawl, "g", spark, **options) == bytes_of(inlink.read(crawl, into="h", **options).path)
    assert build(crawl[:1], "g", spark, **options) == bytes_of(
        inlink.read(crawl[:1], into="h", **options).path
    )
    assert sorted(path.name for path in Path().iterdir()) == [*map(str, crawl), "g", "h"]


def test_damaged_files_are_left_out_and_told_as_on_one_machine(crawl, spark):
    crawl[3].write_bytes(crawl[3].read_bytes()[:-40])
    Path("9.warc.gz").write_bytes(b"")
    paths = [*crawl, Path("9.warc.gz")]
    with pytest.warns(UserWarning, match=r"left out 1 of 9 files. The first: 9.warc.gz"):
        whole = bytes_of(inlink.read(paths, into="h", format="warc").path)
    with pytest.warns(UserWarning, match=r"left out 1 of 9 files. The first: 9.warc.gz"):
        assert build(paths, "g", spark, format="warc") == whole
    with pytest.raises(InputError, match=r"^3.warc.gz"):
        build(crawl, "i", spark, strict=True)
    assert not Path("i").exists()


@needs_proc
def test_a_task_that_is_killed_is_repeated(crawl, spark, tmp_path):
    kill = Killer(WORKER)
    with serving(tmp_path, kill) as address:
        paths = [*crawl[:5], *(f"{address}/{path}" for path in crawl[5:])]
        whole = bytes_of(inlink.read(paths, into="h", format="warc", count=True).path)
        kill.left = 2
        assert build(paths, "g", spark, format="warc", count=True) == whole
    assert kill.left == 0
    assert kill.killed >= 2


@pytest.mark.soak
@needs_proc
def test_a_file_that_kills_every_task_is_named_and_the_build_goes_on_later(crawl, spark, tmp_path):
    tracker = spark.sparkContext.statusTracker()

    def is_the_last() -> bool:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(stage and stage.numCompletedTasks == stage.numTasks - 1 for stage in stages)

    # Killer kills all running tasks. If another file were still being read, the error could name that file.
    kill = Killer(WORKER, is_the_last)
    with serving(tmp_path, kill) as address:
        paths = [*crawl[:7], f"{address}/7.warc.gz"]
        whole = bytes_of(inlink.read(paths, into="h", format="warc").path)
        kill.left = 100
        with pytest.raises(DeadWorkerError, match=r"^http://127.0.0.1:\d+/7.warc.gz: its task failed as"):
            build(paths, "g", spark, format="warc")
        assert not Path("g").exists()
        kill.left = 0
        with pytest.warns(UserWarning, match="going on: 7 of 8 files are done"):
            assert build(paths, "g", spark, format="warc") == whole


def test_parts_pass_through_s3(s3, crawl, spark, monkeypatch):
    import boto3

    whole = bytes_of(inlink.read(crawl, into="h").path)
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="bucket")
        assert build(crawl, "g", spark, parts="s3://bucket/some/where/") == whole
        assert "Contents" not in client.list_objects_v2(Bucket="bucket")
        with pytest.raises(OutputError, match=r"^s3://none/g2.parts-\w+/.*: cannot be written"):
            build(crawl, "g2", spark, parts="s3://none")
    with pytest.raises(ParameterError, match="`parts` must begin with s3://"):
        build(crawl, "g", spark, parts="/shared")


@pytest.mark.parametrize("most", [3, *(pytest.param(most, marks=pytest.mark.soak) for most in (2, 8))])
def test_tasks_merge_parts_too(crawl, spark, monkeypatch, most):
    whole = bytes_of(inlink.read(crawl, into="h", count=True).path)
    monkeypatch.setattr(archiveparts, "FILES", most)
    # The driver must not merge groups itself.
    monkeypatch.setattr("inlink.sources.workers.merged_file", None)
    assert build(crawl, "g", spark, count=True) == whole
    assert not Path("g.parts").exists()


DIES_ONCE = """
import os, signal
from pathlib import Path
from inlink.spark import parts

do = parts.do

def done(job):
    do(job)
    if isinstance(job, parts.MergeJob) and not (mark := Path(__file__).with_name("mark")).exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)

parts.do = done
"""


def test_a_task_that_is_killed_while_it_merges_is_repeated(crawl, spark, monkeypatch, tmp_path):
    whole = bytes_of(inlink.read(crawl, into="h", count=True).path)
    monkeypatch.setattr(archiveparts, "FILES", 3)
    folder = tmp_path / "start"
    folder.mkdir()
    # Python imports this module at its start in each process of a task.
    (folder / "sitecustomize.py").write_text(DIES_ONCE)
    monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", str(folder))
    assert build(crawl, "g", spark, count=True) == whole
    assert (folder / "mark").exists()
    assert not Path("g.parts").exists()


@pytest.mark.soak
@needs_proc
def test_ctrl_c_while_tasks_run_keeps_the_parts_and_the_command_goes_on(crawl, tmp_path):
    children = list[subprocess.Popen[str]]()
    interrupt = Mock(
        side_effect=lambda: children[0].send_signal(signal.SIGINT) if len(children) == 1 else None
    )
    with serving(tmp_path, interrupt) as address:
        paths = [*map(str, crawl[:7]), f"{address}/{crawl[7]}"]
        whole = bytes_of(inlink.read(paths, into="h", format="warc").path)
        command = [
            sys.executable,
            "-m",
            "inlink",
            "-q",
            "spark",
            "build",
            *paths,
            "--format",
            "warc",
            "-o",
            "g",
        ]
        for code in (130, 0):
            children.append(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            )
            _, said = finish(children[-1])
            assert children[-1].returncode == code, said
            assert "Traceback" not in said
            assert Path("g").exists() == (code == 0)
            assert Path("g.parts").exists() == (code != 0)
    assert bytes_of(Path("g")) == whole


def test_nothing_stays_on_s3_after_merges_and_interruptions(s3, crawl, spark, monkeypatch):
    import boto3

    whole = bytes_of(inlink.read(crawl, into="h").path)
    monkeypatch.setattr(archiveparts, "FILES", 3)
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    fetch, fetched = inlink.spark.SparkTasks._fetch, []

    def interrupting(tasks: Any, job: Any, task: Any) -> None:
        if len(fetched) == 4:
            raise KeyboardInterrupt
        fetched.append(job.part)
        fetch(tasks, job, task)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="bucket")
        with monkeypatch.context() as patch:
            patch.setattr(inlink.spark.SparkTasks, "_fetch", interrupting)
            with pytest.raises(KeyboardInterrupt):
                build(crawl, "g", spark, parts="s3://bucket/p")
        assert len(fetched) == 4
        assert "Contents" not in client.list_objects_v2(Bucket="bucket")
        assert build(crawl, "g", spark, parts="s3://bucket/p") == whole
        assert "Contents" not in client.list_objects_v2(Bucket="bucket")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(commands, ["-q", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(("to", "output"), [("parquet", "g.parquet"), ("commoncrawl", "out")])
def test_the_command_writes_other_formats(crawl, spark, to, output):
    said = run("spark", "build", "*.warc.gz", "-o", output, "--level", "host", "--to", to)
    graph = inlink.read(crawl, level="host")
    assert f"{output}: host graph, {graph.num_nodes:,} nodes, {graph.num_arcs:,} arcs" in said
    again = inlink.read(output)
    assert again.names[:] == graph.names[:]
    assert again.out_rows.nodes.tolist() == graph.out_rows.nodes.tolist()
    assert not Path(f"{output}.graph").exists()


def test_the_command_refuses_options_that_it_cannot_serve(crawl, spark):
    Path("links.tsv").write_text("a\tb\n")
    with pytest.raises(
        ParameterError,
        match=r"links.tsv: only WARC, ARC and WAT files .* of format edgelist: use inlink build",
    ):
        run("spark", "build", "links.tsv", "-o", "g")
    with pytest.raises(ParameterError, match="--conf takes KEY=VALUE"):
        run("spark", "build", "0.warc.gz", "-o", "g", "--conf", "x")
    with pytest.raises(ParameterError, match="`into` does not apply"):
        inlink.spark.build(crawl, "g", session=spark, into="h")
    assert not Path("g").exists()


@pytest.mark.soak
@needs_proc
def test_spark_submit_runs_the_script_and_a_lost_executor_is_replaced(crawl, tmp_path):
    import pyspark

    kill = Killer(EXECUTOR)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    with serving(tmp_path, kill) as address:
        paths = [*map(str, crawl[:6]), *(f"{address}/{path}" for path in crawl[6:])]
        whole = bytes_of(inlink.read(paths, into="h", format="warc").path)
        kill.left = 1
        settings = ["--master", "local-cluster[2,1,1024]", "--conf", "spark.ui.enabled=false"]
        command = [inlink.spark.SCRIPT, "-q", "spark", "build", *paths, "--format", "warc", "-o", "g"]
        done = subprocess.run(
            [str(word) for word in (submit, *settings, *command)],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert kill.killed
    assert bytes_of(Path("g")) == whole


class Stopped:
    """A session after the cluster has ended its application: each call raises Java's error."""

    @property
    def sparkContext(self) -> "Stopped":  # noqa: N802
        return self

    @property
    def defaultParallelism(self) -> int:  # noqa: N802
        raise Py4JError(
            "An error occurred while calling o35.defaultParallelism.\n"
            ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"
            "This stopped SparkContext was created at:"
        )

    def range(self, *_: int) -> Any:
        return self.defaultParallelism

    createDataFrame = cancelJobGroup = range  # noqa: N815


def test_a_cluster_that_ended_the_application_is_told_in_one_line(crawl, tmp_path):
    remedy = r"^Spark: the cluster ended the application.*spark\.executor\.memory"
    with pytest.raises(InlinkError, match=remedy) as caught:
        build(crawl, "g", Stopped())
    assert "\n" not in str(caught.value)
    assert not Path("g").exists()
    graph = inlink.read([("a", "b")], into=tmp_path / "h")
    with pytest.raises(InlinkError, match=remedy):
        inlink.spark.rank(graph, session=Stopped())

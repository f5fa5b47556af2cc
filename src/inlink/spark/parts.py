"""Graphs of archives whose parts are made and merged by Spark's tasks.

A task reads one archive and writes its part, or merges many parts to one, as a worker of ``inlink build`` does. The
driver merges the last parts. Parts lie in a folder that the driver and the executors share, or they pass through S3. A
part appears there when it is complete, so a task that is killed or runs twice leaves either the whole part or nothing.
"""

import contextlib
import hashlib
import os
import platform
import re
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import inlink
from inlink.base.decoding import decoded
from inlink.base.disk import unwritable
from inlink.base.remote import is_remote
from inlink.base.table import counted
from inlink.base.urlfiles import download, remove_remote, upload
from inlink.errors import InputError, OutputError, ParameterError
from inlink.graph.graph import Graph
from inlink.sources.read import read
from inlink.sources.workers import DeadWorkerError, Done, Job, MergeJob, answer, do, error_in, results_of
from inlink.spark.start import failure, is_stopped, spark_errors
from inlink.spark.start import session as started

# The least number of files of one job of Spark, and the number of jobs at a time. The next job begins before the
# slowest task of the job before has ended.
_WAVE = 64
_WAVES = 4
_TASK = re.compile(r"Task (\d+) in stage")
# Seconds in which tasks that were cancelled end. Spark kills their processes after two.
_PATIENCE = 30.0


def build(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    session: SparkSession | None = None,
    parts: str | None = None,
    **options: Any,
) -> Graph:
    """Build the graph of archives: the folder that ``inlink build`` makes, file by file the same but for its uuid.

    Parameters
    ----------
    sources : path-like, or several of them
        WARC, ARC and WAT files: paths, patterns, URLs, or lists of paths, as :func:`inlink.read` takes them. Executors
        must see the paths as the driver does.
    output : path-like
        The folder to build, on the driver. If the build is interrupted, the complete parts stay in ``NAME.parts``
        beside it, and the same call goes on with the other files.
    session : SparkSession or None
        None takes the active session, or starts one: see :func:`inlink.spark.session`.
    parts : str or None
        ``"s3://BUCKET/PREFIX"``: the place where tasks leave their parts for the driver, which fetches and removes
        them, also if the build ends with an error. None is ``NAME.parts``, which driver and executors must then share.
    **options
        As in :func:`inlink.read`: `level`, `format`, `links`, `like`, `strict`, `count`, …

    Returns
    -------
    Graph
        The graph in the folder ``output``.

    Raises
    ------
    inlink.errors.InlinkError
        As :func:`inlink.read`. If a task failed as often as Spark tries it, the message names its file.

    Examples
    --------
    >>> import inlink.spark
    >>> inlink.spark.build("@wat.paths.gz", "release", level="host", like="commoncrawl")  # doctest: +SKIP
    """
    for name in ("into", "workers"):
        if name in options:
            raise ParameterError(
                f"`{name}` does not apply: the tasks of Spark do the work, and `output` is the folder"
            )
    return read(_listed(sources), workers=SparkTasks(session or started(), parts), into=output, **options)


def _listed(sources: Any) -> list[str | os.PathLike[str]]:
    return [sources] if isinstance(sources, str | os.PathLike) else list(sources)


class SparkTasks:
    """Makes parts in tasks of Spark: ``workers`` of :func:`inlink.read`.

    Parameters
    ----------
    session : SparkSession
        The session that runs the tasks.
    parts : str or None
        As in :func:`build`.

    Raises
    ------
    inlink.errors.ParameterError
        If `parts` does not begin with ``s3://``.
    """

    def __init__(self, session: SparkSession, parts: str | None = None) -> None:
        if parts is not None and not parts.lower().startswith("s3://"):
            raise ParameterError(
                f"`parts` must begin with s3://; got {parts!r}. A shared folder needs no `parts`"
            )
        self._session, self._parts = session, parts
        self._context = session.sparkContext
        # Parts on S3: those that may be there, and those that are complete.
        self._places: set[str] = set()
        self._complete: set[str] = set()

    def __call__(self, jobs: Iterator[Job]) -> Generator[Done]:
        """Do jobs, and yield each with the error if its files cannot be read.

        Raises
        ------
        inlink.errors.InlinkError
            If the work cannot go on: a task failed as often as Spark tries it, or parts cannot be written.
        """
        group = f"inlink {uuid.uuid4()}"
        with spark_errors():
            size = max(_WAVE, 2 * self._context.defaultParallelism)
        waves = iter(lambda: list(islice(jobs, size)), [])
        ended = threading.Event()
        calls = (partial(self._run, wave, group, ended) for wave in waves)

        def cancel() -> None:
            ended.set()
            # If the cluster has stopped the context, there are no jobs to cancel.
            with contextlib.suppress(Py4JError):
                self._context.cancelJobGroup(group)

        try:
            with contextlib.closing(results_of(calls, _WAVES, cancel)) as results:
                for done in results:
                    yield from done
        finally:
            if self._places:
                # A task that still runs could leave its part after the removal.
                self._await(group)
                remove_remote(sorted(self._places))
                self._places.clear()
                self._complete.clear()

    def _run(self, wave: list[Job], group: str, ended: threading.Event) -> list[Done]:
        """Do some jobs as one job of Spark, a task each."""
        tasks = [self._task(job) for job in wave]
        work = partial(
            _in_task,
            [msgspec.json.encode(task) for task in tasks],
            str(Path.cwd()),
            inlink.__version__,
        )
        try:
            # One row in each partition: spark.range() cuts evenly.
            rows = self._session.range(0, len(wave), 1, len(wave))
            self._context.setJobGroup(group, f"inlink: {counted(len(wave), 'part')}, from {wave[0].name}")
            if ended.is_set():
                raise DeadWorkerError("the build has ended")
            answers = rows.mapInArrow(work, "place long, answer binary").collect()
        except (PySparkException, Py4JError) as wrong:
            raise failure(wrong) if is_stopped(wrong) else _dead_worker(wrong, wave) from None
        results: list[Done] = []
        for row in answers:
            job, error = wave[row.place], error_in(bytes(row.answer))
            if error is None:
                self._fetch(job, tasks[row.place])
            elif not isinstance(error, InputError):
                raise error
            results.append((job, error))
        return results

    def _task(self, job: Job) -> Job:
        """Return a job with the places of its parts that a task reads and writes."""
        task = msgspec.structs.replace(job, part=self._place(job.part))
        if isinstance(task, MergeJob):
            task.parts = [self._place(part) for part in task.parts]
        if self._parts is not None:
            self._places.add(task.part)
            if isinstance(job, MergeJob) and isinstance(task, MergeJob):
                for part, place in zip(job.parts, task.parts, strict=True):
                    # Parts of an earlier run are on the driver only.
                    if place not in self._complete:
                        self._places.add(place)
                        upload(Path(part), place)
        return task

    def _place(self, part: str) -> str:
        """Return the path or URL of a part for tasks."""
        path = Path(part).absolute()
        if self._parts is None:
            return str(path)
        # Two builds with the same name must not share a folder.
        mark = hashlib.sha256(
            f"{platform.node()} {path.parent}".encode("utf-8", "surrogateescape")
        ).hexdigest()
        return f"{self._parts.rstrip('/')}/{path.parent.name}-{mark[:12]}/{path.name}"

    def _await(self, group: str) -> None:
        """Wait for the end of the tasks of a group of jobs."""
        tracker = self._context.statusTracker()
        end = time.monotonic() + _PATIENCE
        # If the cluster has stopped the context, there are no tasks.
        with contextlib.suppress(Py4JError):
            while time.monotonic() < end:
                jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
                stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
                if not any(stage and stage.numActiveTasks for stage in stages):
                    return
                time.sleep(0.1)

    def _fetch(self, job: Job, task: Job) -> None:
        """Bring a part to the driver, if it is not there."""
        if self._parts is None:
            if not Path(job.part).exists():
                raise OutputError(
                    f"{job.part}: a task has written it, and it is not here. The driver and the executors must share "
                    f"the folder {Path(job.part).parent}; otherwise let parts pass through S3 (--parts)"
                )
            return
        with _publishing(Path(job.part)) as work:
            download(task.part, work)
        if isinstance(task, MergeJob):
            remove_remote([task.part, *task.parts])
        else:
            # It stays for the task that merges it.
            self._complete.add(task.part)


def _dead_worker(error: Exception, wave: list[Job]) -> DeadWorkerError:
    """The error that names the file, or the merge, at whose task a job of Spark failed."""
    match = _TASK.search(str(error))
    name = wave[int(match[1])].name if match else f"one of {len(wave):,} parts from {wave[0].name}"
    remedy = "" if match and isinstance(wave[int(match[1])], MergeJob) else ", or leave the file out"
    return DeadWorkerError(
        f"{name}: its task failed as often as Spark tries it ({failure(error)}). Give tasks more memory{remedy}"
    )


# -- in a task ------------------------------------------------------------------------------------------------


def _in_task(
    jobs: list[bytes], folder: str, version: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Do the jobs that the rows name, and yield the answers."""
    if version != inlink.__version__:
        raise RuntimeError(
            f"the driver has inlink {version}, an executor {inlink.__version__}: install the same"
        )
    for batch in batches:
        rows = batch.column(0).to_pylist()
        answers = [answer(partial(_make, decoded(jobs[row], Job), folder)) for row in rows]
        yield pa.RecordBatch.from_arrays(
            [pa.array(rows, pa.int64()), pa.array(answers, pa.binary())], ["place", "answer"]
        )


def _make(job: Job, folder: str) -> None:
    """Make a part on the disk of this machine, and move it to its place."""
    with contextlib.ExitStack() as stack:
        if not is_remote(job.name) and not Path(job.name).is_absolute() and Path(folder).is_dir():
            stack.enter_context(contextlib.chdir(folder))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inlink-")))
        own = msgspec.structs.replace(job, part=str(scratch / "part"))
        if isinstance(own, MergeJob):
            own.parts = [_local(part, scratch / str(k)) for k, part in enumerate(own.parts)]
        do(own)
        _publish(Path(own.part), job.part)


def _local(part: str, path: Path) -> str:
    """Return the path of a part, which is fetched if it is on S3."""
    if not is_remote(part):
        return part
    download(part, path)
    return str(path)


def _publish(own: Path, place: str) -> None:
    if is_remote(place):
        upload(own, place)
        return
    with _publishing(Path(place)) as work:
        shutil.copyfile(own, work)


@contextlib.contextmanager
def _publishing(place: Path) -> Iterator[Path]:
    """A file beside a place, which is moved there at the end. It has no lock: other machines may not see locks."""
    work = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
    try:
        try:
            yield work
            with work.open("rb") as file:
                os.fsync(file.fileno())
            work.replace(place)
        finally:
            work.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(place, error) from None

"""Graphs of archives whose parts are made by Spark's tasks.

A task reads one archive and writes its part, as a worker of ``inlink build`` does. The driver merges the parts. Parts
lie in a folder that the driver and the executors share, or they pass through S3. A part appears there when it is
complete, so a task that is killed or runs twice leaves either the whole part or nothing.
"""

import contextlib
import os
import re
import shutil
import tempfile
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
from inlink.base.disk import unwritable
from inlink.base.remote import is_remote
from inlink.base.table import counted
from inlink.base.urlfiles import download, remove_remote, upload
from inlink.errors import InputError, OutputError, ParameterError
from inlink.graph.graph import Graph
from inlink.sources.read import read
from inlink.sources.workers import DeadWorkerError, Done, PartJob, answer, error_in, results_of
from inlink.spark.start import failure, is_stopped, spark_errors
from inlink.spark.start import session as started

# The least number of files of one job of Spark, and the number of jobs at a time. The next job begins before the
# slowest task of the job before has ended.
_WAVE = 64
_WAVES = 4
_TASK = re.compile(r"Task (\d+) in stage")


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
        them. None is ``NAME.parts``, which driver and executors must then share.
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

    def __call__(self, jobs: Iterator[PartJob]) -> Generator[Done]:
        """Do jobs, and yield each with the error if its file cannot be read.

        Raises
        ------
        inlink.errors.InlinkError
            If the work cannot go on: a task failed as often as Spark tries it, or parts cannot be written.
        """
        group = f"inlink {uuid.uuid4()}"
        with spark_errors():
            size = max(_WAVE, 2 * self._context.defaultParallelism)
        waves = iter(lambda: list(islice(jobs, size)), [])
        calls = (partial(self._run, wave, group) for wave in waves)

        def cancel() -> None:
            # If the cluster has stopped the context, there are no jobs to cancel.
            with contextlib.suppress(Py4JError):
                self._context.cancelJobGroup(group)

        for done in results_of(calls, _WAVES, cancel):
            yield from done

    def _run(self, wave: list[PartJob], group: str) -> list[Done]:
        """Do some jobs as one job of Spark, a task each."""
        places = [self._place(job) for job in wave]
        work = partial(
            _in_task,
            [msgspec.json.encode(job) for job in wave],
            places,
            str(Path.cwd()),
            inlink.__version__,
        )
        try:
            # One row in each partition: spark.range() cuts evenly.
            rows = self._session.range(0, len(wave), 1, len(wave))
            self._context.setJobGroup(group, f"inlink: {counted(len(wave), 'file')}, from {wave[0].name}")
            answers = rows.mapInArrow(work, "place long, answer binary").collect()
        except (PySparkException, Py4JError) as wrong:
            raise failure(wrong) if is_stopped(wrong) else _dead_worker(wrong, wave) from None
        results: list[Done] = []
        for row in answers:
            job, error = wave[row.place], error_in(bytes(row.answer))
            if error is None:
                self._fetch(job, places[row.place])
            elif not isinstance(error, InputError):
                raise error
            results.append((job, error))
        return results

    def _place(self, job: PartJob) -> str:
        """Return the path or URL of the part that a task writes."""
        if self._parts is None:
            return str(Path(job.part).absolute())
        folder = Path(job.part).parent.name
        return f"{self._parts.rstrip('/')}/{folder}/{Path(job.part).name}"

    def _fetch(self, job: PartJob, place: str) -> None:
        """Bring a part to the driver, if it is not there."""
        if self._parts is None:
            if not Path(job.part).exists():
                raise OutputError(
                    f"{job.part}: a task has written it, and it is not here. The driver and the executors must share "
                    f"the folder {Path(job.part).parent}; otherwise let parts pass through S3 (--parts)"
                )
            return
        with _publishing(Path(job.part)) as work:
            download(place, work)
        remove_remote(place)


def _dead_worker(error: Exception, wave: list[PartJob]) -> DeadWorkerError:
    """The error that names the file at whose task a job of Spark failed."""
    match = _TASK.search(str(error))
    name = wave[int(match[1])].name if match else f"one of {len(wave):,} files from {wave[0].name}"
    return DeadWorkerError(
        f"{name}: the task that read it failed as often as Spark tries it ({failure(error)}). Give tasks more "
        "memory, or leave the file out"
    )


# -- in a task ------------------------------------------------------------------------------------------------


def _in_task(
    jobs: list[bytes], places: list[str], folder: str, version: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Make the parts of the jobs that the rows name, and yield the answers."""
    if version != inlink.__version__:
        raise RuntimeError(
            f"the driver has inlink {version}, an executor {inlink.__version__}: install the same"
        )
    for batch in batches:
        rows = batch.column(0).to_pylist()
        answers = [_make(msgspec.json.decode(jobs[row], type=PartJob), places[row], folder) for row in rows]
        yield pa.RecordBatch.from_arrays(
            [pa.array(rows, pa.int64()), pa.array(answers, pa.binary())], ["place", "answer"]
        )


def _make(job: PartJob, place: str, folder: str) -> bytes:
    """Make a part on the disk of this machine, and move it to its place."""
    with contextlib.ExitStack() as stack:
        if not is_remote(job.name) and not Path(job.name).is_absolute() and Path(folder).is_dir():
            stack.enter_context(contextlib.chdir(folder))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inlink-")))
        own = scratch / "part"
        return answer(msgspec.structs.replace(job, part=str(own)), lambda: _publish(own, place))


def _publish(own: Path, place: str) -> None:
    if is_remote(place):
        upload(own, place)
        return
    with _publishing(Path(place)) as work:
        shutil.copyfile(own, work)


@contextlib.contextmanager
def _publishing(place: Path) -> Iterator[Path]:
    """A file beside a place, which is moved there at the end. It has no lock: other machines may not see locks.

    Raises
    ------
    inlink.errors.OutputError
        If it cannot be written.
    """
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

"""Build the graph of many archives from parts, which are kept if the build is interrupted.

One or more processes make the parts, one of each archive. The parts lie beside the graph's folder, in ``NAME.parts``,
until the graph is complete. The header of a part has the name and the version of its file.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

import inlink
from inlink.base.damage import Tally
from inlink.base.decoding import converted
from inlink.base.disk import fcntl
from inlink.base.folder import atomic_file, check_target
from inlink.base.progress import track
from inlink.base.remote import UnreachableError
from inlink.base.table import counted
from inlink.errors import InlinkError, InputError, InUseError, OutputError
from inlink.graph.batches import Level
from inlink.graph.build import build_parts
from inlink.graph.graph import KIND, Graph
from inlink.graph.merging import FILES
from inlink.graph.part import VERSION, PartFile
from inlink.sources.files import Files
from inlink.sources.inputs import Location
from inlink.sources.workers import Job, MergeJob, PartJob, Runner, SourceEntry, finished_jobs, stamp

_SETTINGS = "settings.json"


def build_archives(
    files: Files,
    *,
    level: Level | None,
    count: bool,
    self_loops: bool | None,
    strict: bool,
    options: Mapping[str, object],
    workers: int | Runner,
    into: str | os.PathLike[str] | None,
    compress: bool,
) -> Graph:
    """Build one graph of several archives.

    Parameters
    ----------
    files : Files
        The archives, recognised and not opened.
    level, count, self_loops, strict, workers, compress
        See :func:`inlink.read`.
    options : mapping of str to object
        Its parameters for archives, hosts and domains.
    into : path-like or None
        The folder to build; None is a temporary one, and then nothing is kept if the build is interrupted.

    Raises
    ------
    inlink.errors.InputError
        If no archive can be read, or one cannot be read and `strict` is set, or a server does not answer.
    inlink.errors.OutputError
        If the folder cannot be written, or the parts beside it do not belong to this build.
    """
    options = {name: value for name, value in options.items() if value is not None}
    job = PartJob(level, options, strict, self_loops is True, self_loops is not False, count)
    settings = {
        "level": level,
        "counted": count,
        "self_loops": self_loops,
        "strict": strict,
        "options": options,
    }
    away: list[InputError] = []

    def failed(number: int, error: InputError) -> None:
        if isinstance(error, UnreachableError):
            away.append(error)
        else:
            files.failed(number, error)

    with contextlib.ExitStack() as stack:
        if into is None:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inlink-")), "parts")
        else:
            target = Path(into)
            check_target(target, KIND)
            place = target.with_name(f"{target.name}.parts")
        folder = stack.enter_context(PartFolder(place, settings, files.paths))
        folder.keep()
        with folder.telling():
            folder.make(job, files.formats, workers, failed)
            if away:
                raise UnreachableError(
                    f"{counted(len(away), 'file')} could not be fetched; the first: {away[0]}"
                )
            files.read(folder.tallies())
            graph = build_parts(
                folder.parts(),
                level=level or "page",
                count=count,
                into=into,
                meta=files.origin,
                compress=compress,
            )
        folder.remove()
    return graph


def _tell(text: str) -> None:
    warnings.warn(text, stacklevel=2)


class PartFolder:
    """The parts of a build, in a folder that belongs to one process at a time; a context manager.

    Parameters
    ----------
    path : Path
        The folder. It is made if it does not exist.
    settings : dict
        The options of the build, JSON values. Parts of other options are refused.
    wanted : sequence of Location
        The files.

    Raises
    ------
    inlink.errors.OutputError
        If the folder holds something else, or parts that were made with other options.
    inlink.errors.InUseError
        If another process builds there.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], wanted: Sequence[Location]) -> None:
        self.path = path
        self._settings = {**settings, "inlink": inlink.__version__, "version": VERSION}
        self._wanted = dict(zip(_keys(wanted), wanted, strict=True))
        # The part of each input, and its entry there. A key is a name, and the number of times that it was named.
        self._parts: dict[tuple[str, int], Path] = {}
        self._entries: dict[tuple[str, int], SourceEntry] = {}
        # The parts of single inputs, which wait to be merged.
        self._alone: set[Path] = set()

    def __enter__(self) -> "PartFolder":
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path if fcntl else os.devnull, os.O_RDONLY)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written ({error.strerror})") from None
        try:
            with contextlib.suppress(OSError):
                try:
                    if fcntl:
                        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise InUseError(f"{self.path}: another process builds there now") from None
            self._check_settings()
            self._find()
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # Without parts there is nothing to go on with.
        if not self._parts and self.path.is_dir():
            self.remove()
        os.close(self._lock)

    def remove(self) -> None:
        """Remove the folder: the graph is complete."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._parts.clear()

    def _check_settings(self) -> None:
        file = self.path / _SETTINGS
        if not file.exists():
            # Before there are settings, there are no parts.
            if any(name.suffix != ".part" and not name.name.startswith(".") for name in self.path.iterdir()):
                raise OutputError(
                    f"{self.path} exists and holds something else: rename it, or name another output"
                )
            for part in self.path.glob("*.part"):
                part.unlink()
            with atomic_file(file) as work:
                work.write_bytes(msgspec.json.encode(self._settings))
            return
        try:
            earlier = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError):
            raise OutputError(f"{file} is damaged: remove {self.path} to begin again") from None
        # Lists and tuples are the same in JSON.
        wanted = msgspec.json.decode(msgspec.json.encode(self._settings))
        other = [name for name in sorted({*earlier, *wanted}) if earlier.get(name) != wanted.get(name)]
        if other:
            listed = ", ".join(f"{name} {earlier.get(name)!r}, now {wanted.get(name)!r}" for name in other)
            raise OutputError(
                f"{self.path} holds parts that were made with other options ({listed}): give the same command as "
                f"before, or remove {self.path} to begin again"
            )

    def _find(self) -> None:
        """Find the parts in the folder. A merged part replaces the parts that were merged into it."""
        complete: list[tuple[Path, list[SourceEntry]]] = []
        for path in sorted(self.path.glob("*.part")):
            try:
                entries = converted(PartFile(path).header.meta.get("inputs"), list[SourceEntry])
            except (InputError, msgspec.ValidationError):
                _tell(f"{path} is damaged: its files are read again")
                path.unlink()
                continue
            complete.append((path, entries))
        for path, entries in sorted(complete, key=lambda pair: -len(pair[1])):
            keys = [(entry.name, entry.time) for entry in entries]
            if all(key in self._parts for key in keys):
                path.unlink()
                continue
            for key, entry in zip(keys, entries, strict=True):
                self._parts[key], self._entries[key] = path, entry
        self._alone = {path for path in self._parts.values() if not path.name.startswith("merged-")}

    def keep(self) -> None:
        """Drop the parts of files that have changed since the parts were made.

        Raises
        ------
        inlink.errors.OutputError
            If a part is of a file that is not wanted, or one that changed cannot be taken out of a merged part.
        inlink.errors.InputError
            If a server does not answer.
        """
        if not self._parts:
            return
        inputs = Counter(self._parts.values())
        for key in sorted(self._parts):
            name, path = key[0], self._parts[key]
            if key not in self._wanted:
                raise OutputError(
                    f"{self.path} holds a part of {name}, which is not among the files: give the same command as "
                    f"before, or remove {self.path} to begin again"
                )
            with contextlib.suppress(InputError):
                if stamp(self._wanted[key]) == self._entries[key].stamp:
                    continue
            if inputs[path] > 1:
                raise OutputError(
                    f"{name} has changed since it was merged: remove {self.path} to begin again"
                )
            _tell(f"{name} has changed since its part was made: it is read again")
            path.unlink()
            self._alone.discard(path)
            del self._parts[key], self._entries[key]
        if self._parts:
            _tell(f"going on: {len(self._parts):,} of {len(self._wanted):,} files are done ({self.path})")

    def make(
        self,
        job: PartJob,
        formats: Sequence[str],
        workers: int | Runner,
        failed: Callable[[int, InputError], None],
    ) -> None:
        """Make the parts that are missing, and merge many parts to few.

        Parameters
        ----------
        job : PartJob
            The job for each file, without the file and its part.
        formats : sequence of str
            The formats of the files.
        workers : int, or function of an iterator of Job
            The number of processes, 1 for this one; or something that does the jobs elsewhere.
        failed : function of (int, InputError)
            Is called with the place of a file that cannot be read.

        Raises
        ------
        inlink.errors.InlinkError
            If the work cannot go on. All parts that are complete stay.
        """
        keys = list(self._wanted)
        missing = [place for place, key in enumerate(keys) if key not in self._parts]

        def jobs() -> Iterator[Job]:
            for place in missing:
                yield from self._merges()
                name, time = keys[place]
                part = hashlib.sha256(f"{time} {name}".encode("utf-8", "surrogateescape")).hexdigest()[:24]
                yield msgspec.structs.replace(
                    job,
                    place=place,
                    name=name,
                    format=formats[place],
                    time=time,
                    part=str(self.path / f"{part}.part"),
                )

        with track("reading archives", len(self._wanted), "files") as task:
            task.advance(len(self._wanted) - len(missing))
            # The last files may leave parts that are enough for another merge.
            for pending in (jobs(), self._merges()):
                if isinstance(workers, int):
                    results = finished_jobs(pending, min(workers, len(missing) or 1))
                else:
                    results = workers(pending)
                with contextlib.closing(results):
                    for done, error in results:
                        if isinstance(done, PartJob):
                            task.advance(1)
                        if error is None:
                            self._add(done)
                        elif isinstance(done, PartJob):
                            failed(done.place, error)
                        else:
                            raise error

    def _merges(self) -> Iterator[MergeJob]:
        """Yield jobs that merge the parts of single files, so that few files are open when the graph is built."""
        while len(self._alone) >= FILES:
            files = sorted(self._alone)[:FILES]
            self._alone.difference_update(files)
            name = hashlib.sha256(" ".join(path.name for path in files).encode()).hexdigest()[:24]
            yield MergeJob([str(path) for path in files], str(self.path / f"merged-{name}.part"))

    def _add(self, job: Job) -> None:
        """Add the part of a job. A merged part replaces its members."""
        path = Path(job.part)
        for entry in converted(PartFile(path).header.meta["inputs"], list[SourceEntry]):
            self._parts[entry.name, entry.time], self._entries[entry.name, entry.time] = path, entry
        if isinstance(job, PartJob):
            self._alone.add(path)
            return
        for part in job.parts:
            Path(part).unlink()

    def tallies(self) -> dict[int, Tally]:
        """Return the counts of the files that have parts, by place."""
        entries = [self._entries.get(key) for key in self._wanted]
        return {place: entry.tally for place, entry in enumerate(entries) if entry is not None}

    def parts(self) -> list[PartFile]:
        """Return all parts."""
        return [PartFile(path) for path in sorted(set(self._parts.values()))]

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """Add a hint on how to go on to an error, or to an interruption, that the block raises."""

        def hint() -> str:
            if not self._parts:
                # The first jobs may have left parts before they reported any.
                self._find()
            if not self._parts:
                return ""
            return (
                f"{len(self._parts):,} of {len(self._wanted):,} files are done; the same command goes on with the "
                f"others (or remove {self.path} to begin again)"
            )

        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(hint()) from None
        except InlinkError as error:
            text = hint()
            if not text:
                raise
            raise type(error)(f"{error}. {text}") from None


def _keys(wanted: Sequence[Location]) -> list[tuple[str, int]]:
    """Return for each file its name, and the number of times that it was named so far."""
    times: dict[str, int] = {}
    keys = []
    for path in wanted:
        name = os.fspath(path)
        times[name] = times.get(name, 0) + 1
        keys.append((name, times[name]))
    return keys

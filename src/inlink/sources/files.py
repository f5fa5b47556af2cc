"""Open the files that a graph is made of, and leave out those that cannot be read."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from inlink.base.damage import Tally
from inlink.base.opening import STDIN
from inlink.base.remote import is_remote
from inlink.errors import FolderError, FormatError, InputError
from inlink.graph.batches import Level
from inlink.graph.source import Source
from inlink.sources.formats import ARCHIVES, check_options, format_named, implementation
from inlink.sources.inputs import Location
from inlink.sources.recognise import recognise

# Names of sources, and errors, that a graph's header has at most.
_MOST_NAMED = 100
# Stands between a reason and its first place, in a graph's header.
_FIRST = ", first in "
# Formats that need not be read twice, nor from their end, nor from several files.
_STREAMED = ("warc", "arc", "wat", "edgelist", "kleinberg", "matrixmarket", "graphml", "gexf", "gml")


def read_source(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    level: Level | None = None,
    tally: Tally | None = None,
    self_loops: bool = False,
    repeats: bool = True,
    options: Mapping[str, object] | None = None,
    max_node: int | None = None,
) -> Source:
    """Open any file that holds a graph.

    Parameters
    ----------
    path : path-like
        A file or folder; for some formats the common beginning of several files, or a pattern.
    format : str or None
        A name in :data:`inlink.sources.formats.FORMATS`. None: recognised by content.
    level : {"page", "host", "domain"} or None
        The kind of an archive's nodes. Files of other formats keep their own level.
    tally : Tally or None
        Counts the records that are read from an archive, and those that are left out.
    self_loops : bool
        Archives, level host or domain: keep the links within a host or domain.
    repeats : bool
        Archives: give repeated links too, so that they can be counted.
    options : mapping of str to object, or None
        Options of the format, as its entry in the table declares them. A value of None means not given.
    max_node : int or None
        The largest number of a node. None: the size of the input bounds it.

    Raises
    ------
    inlink.errors.FormatError
        If the format is not known, or cannot be read from standard input.
    inlink.errors.ParameterError
        If the format has no such option, or the option no such value.
    inlink.errors.InputError
        If the reader finds an error in the file.
    """
    entry = format_named(format or recognise(path))
    arguments = check_options(path, entry, options or {})
    if entry.reader is None:
        raise FormatError(
            f"{path}: format {entry.name} can only be written: convert the file to an edge list or to GraphML"
        )
    if os.fspath(path) == STDIN and entry.name not in _STREAMED:
        raise FormatError(f"{path}: format {entry.name} cannot be read from standard input: name a file")
    if is_remote(path) and entry.name not in _STREAMED:
        raise FormatError(f"{path}: format {entry.name} cannot be read from a URL: download the file")
    if entry.name in ARCHIVES:
        arguments |= {"level": level, "tally": tally, "self_loops": self_loops, "repeats": repeats}
    source: Source = implementation(entry.reader)(path, **arguments)
    source.bounded, source.max_node = True, max_node
    return source


class Files:
    """The files that a graph is made of.

    If there are several, those that cannot be read are left out. Each of them has an error.

    Parameters
    ----------
    named : int
        The number of files that were named.
    strict : bool
        Whether a file that cannot be read, or is damaged, is an error.

    Attributes
    ----------
    paths : list of Path or str
        The files whose format is known.
    formats : list of str
        Their formats.
    sources : list of Source
        Their arcs, after :meth:`open`.
    errors : dict of int to InputError
        Why the other files were left out, by their place among the files that were named.
    """

    def __init__(self, named: int, strict: bool) -> None:
        self._named, self._strict = named, strict
        self.paths: list[Location] = []
        self.formats: list[str] = []
        self.sources: list[Source] = []
        self.errors: dict[int, InputError] = {}
        self._places: list[int] = []
        self._tallies: list[Tally] = []

    def add(self, place: int, path: Location, format: str) -> None:
        """Add a file whose format is known."""
        self._places.append(place)
        self.paths.append(path)
        self.formats.append(format)

    def open(self, **reading: Any) -> None:
        """Open the files. See :func:`read_source` for the parameters.

        Raises
        ------
        inlink.errors.InputError
            As :meth:`trying`.
        """
        files = list(zip(self._places, self.paths, self.formats, strict=True))
        self._places, self.paths, self.formats = [], [], []
        for place, path, format in files:
            tally = Tally(self._strict)
            with self.trying(place):
                source = read_source(path, format, tally=tally, **reading)
                self.sources.append(source)
                self.add(place, path, format)
                self._tallies.append(tally)

    @contextmanager
    def trying(self, place: int) -> Iterator[None]:
        """Leave out the file at a place if the block raises an error that the file cannot be read.

        Raises
        ------
        inlink.errors.InputError
            If `strict` is set, or if no file is left.
        """
        try:
            yield
        except InputError as error:
            self._leave_out(place, error)
        except FolderError as error:
            self._leave_out(place, InputError(str(error)))
        except OSError as error:
            self._leave_out(place, InputError(f"{error.filename}: cannot be read ({error.strerror})"))

    def failed(self, source: int, error: InputError) -> None:
        """Leave out one of the sources, which cannot be read to its end.

        Raises
        ------
        inlink.errors.InputError
            As :meth:`trying`.
        """
        self._leave_out(self._places[source], error)

    def read(self, tallies: Mapping[int, Tally]) -> None:
        """Record the counts of files that were read elsewhere, by their place among :attr:`paths`."""
        self.sources = [Source(iter(())) for _ in self.paths]
        self._tallies = [tallies.get(place, Tally(self._strict)) for place in range(len(self.paths))]

    def _leave_out(self, place: int, error: InputError) -> None:
        if self._strict or self._named == 1:
            raise error
        self.errors[place] = error
        if len(self.errors) == self._named:
            raise InputError(f"None of the {self._named:,} files can be read. The first: {self.errors[0]}")

    def told(self) -> str:
        """Return in one line the number of files that were left out, and the reason for the first."""
        first = self.errors[min(self.errors)]
        return f"left out {len(self.errors):,} of {self._named:,} files. The first: {first}"

    def origin(self) -> dict[str, Any]:
        """Return the part of a graph's header about the files that were read, and the files that were left out."""
        kept = [k for k, place in enumerate(self._places) if place not in self.errors]
        sources: list[str] = []
        counts = dict.fromkeys(("records", "pages", "links"), 0)
        # By reason, its first text, which has a place, and the number of records.
        texts: dict[str, str] = {}
        numbers: Counter[str] = Counter()

        def skip(text: str, number: int) -> None:
            reason = text.partition(_FIRST)[0]
            texts.setdefault(reason, text)
            numbers[reason] += number

        for place in sorted(self.errors)[:_MOST_NAMED]:
            skip(f"file: {self.errors[place]}", 1)
        if len(self.errors) > _MOST_NAMED:
            skip("further files", len(self.errors) - _MOST_NAMED)
        left_out = len(self.errors)
        for k in kept:
            tally, origin = self._tallies[k], self.sources[k].origin
            sources += origin.get("sources") or [f"{self.paths[k]} ({self.formats[k]})"]
            for name in counts:
                counts[name] += origin.get(name, 0) + getattr(tally, name)
            left_out += origin.get("files_left_out", 0)
            for reason, number in origin.get("skipped", {}).items():
                skip(reason, number)
            for reason, entry in tally.skipped.items():
                skip(f"{reason}{_FIRST}{entry.path} at byte {entry.offset:,}", entry.count)
        fields: dict[str, Any] = {"sources": sources[:_MOST_NAMED]}
        if counts["records"]:
            fields |= counts
        if left_out:
            fields["files_left_out"] = left_out
        if numbers:
            fields["skipped"] = {text: numbers[reason] for reason, text in texts.items()}
        return fields

"""Copy LinkRank's scores into a crawl, as its ranking ``linkrank``, or into a copy of Nutch's crawl database.

Nutch's crawl database is read from its SequenceFiles, or from a dump by ``readdb -dump`` as text or CSV. The copy of a
database is a database again, and differs only in the scores; or text, CSV, or a list of seeds with ``nutch.score``. The
copy of a dump differs from it only in the scores. Dates are in UTC.

Source: org.apache.nutch.scoring.webgraph.ScoreUpdater and org.apache.nutch.crawl.CrawlDbReader, Nutch 1.23.
"""

import csv
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from inlink.base.arrays import Int64Array
from inlink.base.damage import Tally
from inlink.base.folder import atomic_file, new_folder
from inlink.base.opening import Stream, head, lines
from inlink.base.strings import Strings
from inlink.errors import InputError, OutputError, ParameterError
from inlink.graph.graph import Graph
from inlink.graph.names import Names
from inlink.nutch.checksums import check_file
from inlink.nutch.dumps import SCORES
from inlink.nutch.fetches import map_files
from inlink.nutch.fields import TEXT
from inlink.nutch.java import java_date, java_float
from inlink.nutch.mapfile import write_mapfile
from inlink.nutch.sequencefile import records
from inlink.nutch.writables import CRAWL_DATUM, STATUS, CrawlDatum, with_score
from inlink.rank.ranking import Ranking

Format = Literal["crawldb", "csv", "text", "seeds"]
_BY_SUFFIX: dict[str, Format] = {".csv": "csv", ".txt": "text"}

HEADER = (
    "Url,Status code,Status name,Fetch Time,Modified Time,Retries since fetch,Retry interval seconds,"
    "Retry interval days,Score,Signature,Metadata"
)
# Fields of the CSV that Nutch writes in quotes.
_QUOTED = (0, 2, 9, 10)
_SCORE = 8
_ENTRY = re.compile(rb"(.*?)\tVersion: \d+")


def _check(clear: float) -> None:
    if not math.isfinite(clear):
        raise ParameterError(f"`clear` must be a finite number; got {clear}")


class Updated(NamedTuple):
    """Number of URLs that got the score of their node, and number of URLs without a node."""

    scored: int
    cleared: int


def update_crawl(graph: Graph, path: str | os.PathLike[str], *, clear: float = 0.0) -> Updated:
    """Save LinkRank's scores in an inlink crawl as its ranking ``linkrank``. Content scores are not changed.

    Parameters
    ----------
    graph : Graph
        A web graph that LinkRank was run on.
    path : path-like
        The crawl's folder.
    clear : float
        Score of pages that are not in the graph; ``link.score.updater.clear.score``.

    Raises
    ------
    inlink.errors.FolderError
        If the folder holds no crawl, or LinkRank has not been run.
    inlink.errors.ParameterError
        If `clear` is not finite, or the nodes have no names.
    """
    from inlink.sources.crawlgraph import graph_in

    _check(clear)
    ranking = Ranking.load(graph, SCORES)
    crawl = graph_in(path)
    if crawl.names is None or graph.names is None:
        raise ParameterError(
            "the nodes of this graph have no names, so their scores cannot be assigned to URLs"
        )
    values = np.full(crawl.num_nodes, clear, np.float64)
    scored = 0
    for start in range(0, crawl.num_nodes, 1 << 18):
        stop = min(start + (1 << 18), crawl.num_nodes)
        nodes = _nodes_of(graph.names, crawl.names.column(start, stop))
        there = np.flatnonzero(nodes >= 0)
        values[start + there] = ranking.values[nodes[there]]
        scored += len(there)
    ranking.values, ranking.columns, ranking.graph_uuid = values, {"value": values}, crawl.uuid
    ranking.parameters["clear"] = float(clear)
    ranking.save(crawl, SCORES)
    return Updated(scored, crawl.num_nodes - scored)


def update_crawldb(
    graph: Graph,
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    clear: float = 0.0,
    format: Format | None = None,
    allow_unmatched: bool = False,
    tally: Tally | None = None,
) -> Updated:
    """Write a copy of Nutch's crawl database with LinkRank's scores.

    Parameters
    ----------
    graph : Graph
        A web graph that LinkRank was run on.
    path : path-like
        The crawl database, or a dump of it as text or CSV, plain, gzip or Zstandard; or the folder of a dump.
    output : path-like
        The file to write, or the folder of the new crawl database.
    clear : float
        Score of URLs that are not in the graph; ``link.score.updater.clear.score``.
    format : {"crawldb", "csv", "text", "seeds"} or None
        Format of the copy of a database. None: CSV or text if `output` ends with ``.csv`` or ``.txt``, else a crawl
        database. ``seeds`` are lines ``URL<TAB>nutch.score=SCORE`` for Nutch's Injector. A dump keeps its format.
    allow_unmatched : bool
        Accept a dump even if the graph lacks more than half of its URLs.
    tally : Tally or None
        Counts damage in the database. None: any damage is an error.

    Raises
    ------
    inlink.errors.InputError
        If the path is neither, or is damaged, or most URLs of a dump are not in the graph.
        A damaged record is an error only with a strict tally.
    inlink.errors.FolderError
        If LinkRank has not been run.
    inlink.errors.ParameterError
        If `format` differs from the format of a dump, or `clear` is not finite.
    inlink.errors.OutputError
        If the output cannot be written, or the folder of the new crawl database exists.
    """
    _check(clear)
    path, output = Path(path), Path(output)
    tally = tally or Tally(strict=True)
    scores = _Scores(graph, Ranking.load(graph, SCORES), clear)
    parts = _dump_parts(path)
    if parts is None:
        chosen = format or _BY_SUFFIX.get(output.suffix.lower(), "crawldb")
        if chosen == "crawldb":
            _write_database(path, output, scores, tally)
        else:
            entries = (entry for file in _files(path) for entry in records(file, TEXT, CRAWL_DATUM, tally))
            with atomic_file(output) as work, work.open("wb") as copy:
                copy.writelines(_database(entries, scores, chosen, tally))
        return Updated(scores.scored, scores.cleared)
    kind = _kind_of_dump(parts[0])
    if format not in (None, kind):
        raise ParameterError(
            f"{path}: the format of a dump cannot be changed from {kind} to {format}. Leave --format out."
        )
    for part in parts:
        check_file(part, tally)
    read = _csv_dump if kind == "csv" else _text_dump
    with atomic_file(output) as work:
        with work.open("wb") as copy:
            copy.writelines(read(parts, scores))
        if scores.cleared > scores.scored and not allow_unmatched:
            raise InputError(
                f"{path}: only {scores.scored:,} of {scores.scored + scores.cleared:,} URLs are in the web graph. "
                f"{_HINTS[kind]} If this is right, allow it with --allow-unmatched."
            )
    return Updated(scores.scored, scores.cleared)


# Nutch writes the unused rest of its buffer behind URLs in CSV (Text.getBytes), until at least 1.23.
_HINTS = {
    "csv": "Nutch's CSV has leftovers of other URLs behind URLs: dump as text, or name the crawl database itself.",
    "text": "Perhaps it is the dump of another crawl.",
}


def _dump_parts(path: Path) -> list[Path] | None:
    """Return the files of a dump, or None if the path is a crawl database."""
    if not path.is_dir():
        return [path]
    if (path / "current").is_dir():
        return None
    parts = sorted(part for part in path.iterdir() if part.name[0] not in "._" and part.is_file())
    return parts if parts and head(parts[0], 3) != b"SEQ" else None


def _kind_of_dump(path: Path) -> Literal["csv", "text"]:
    start = head(path, 1 << 12)
    if start.startswith(HEADER[:15].encode()):
        return "csv"
    if _ENTRY.match(start):
        return "text"
    raise InputError(
        f"{path} is neither a crawl database nor a dump of it as text or CSV (nutch readdb DB -dump OUT)"
    )


def _nodes_of(names: Names, urls: Strings | list[bytes]) -> Int64Array:
    """Return the nodes of URLs, int64[n]; -1 for a URL without a node."""
    return names.find_all(urls) if len(names) else np.full(len(urls), -1)


T = TypeVar("T")


def _blocks(values: Iterable[T]) -> Iterator[list[T]]:
    """Yield the values in lists of a few thousand."""
    iterator = iter(values)
    while block := list(islice(iterator, 1 << 12)):
        yield block


class _Scores:
    """Looks up the scores of URLs."""

    def __init__(self, graph: Graph, ranking: Ranking, clear: float) -> None:
        if graph.names is None:
            raise ParameterError("the nodes of this graph have no names, so it is not a web graph")
        self.names, self.ranking, self.clear = graph.names, ranking, clear
        self.scored = self.cleared = 0

    def values(self, urls: list[bytes]) -> list[float]:
        """Return the scores of URLs, and count them."""
        nodes = _nodes_of(self.names, urls)
        there = nodes >= 0
        self.scored += int(there.sum())
        self.cleared += int((~there).sum())
        ranks = self.ranking.values[np.maximum(nodes, 0)] if len(self.names) else 0.0
        scores: list[float] = np.where(there, ranks, self.clear).tolist()
        return scores


# -- the database ------------------------------------------------------------------------------------------------


def _files(path: Path) -> list[Path]:
    current = path / "current"
    return map_files(current if current.is_dir() else path)


def _write_database(path: Path, output: Path, scores: _Scores, tally: Tally) -> None:
    """Write a crawl database with the same parts, so that Nutch finds a URL in the part of its hash."""
    files = _files(path)
    if not output.parent.is_dir():
        raise OutputError(
            f"{output}: the folder {output.parent} does not exist. Make it first, or correct the name."
        )
    with new_folder(output) as work:
        for file in files:
            name = file.parent.name if file.name == "data" else file.name
            entries = records(file, TEXT, CRAWL_DATUM, tally)
            write_mapfile(work / "current" / name, CRAWL_DATUM.name, _scored(entries, scores))


def _scored(entries: Iterator[tuple[bytes, CrawlDatum]], scores: _Scores) -> Iterator[tuple[bytes, bytes]]:
    for block in _blocks(entries):
        values = scores.values([url for url, _ in block])
        for (url, datum), value in zip(block, values, strict=True):
            yield url, with_score(datum, value)


def _database(
    entries: Iterator[tuple[bytes, CrawlDatum]], scores: _Scores, format: Format, tally: Tally
) -> Iterator[bytes]:
    """Yield the lines of a database as text, as CSV, or as a list of seeds."""
    line: Callable[[bytes, CrawlDatum, str], bytes] = _csv_entry if format == "csv" else _text_entry
    if format == "csv":
        yield HEADER.encode() + b"\n"
    for block in _blocks(entries):
        for (url, datum), value in zip(block, scores.values([url for url, _ in block]), strict=True):
            score = java_float(value)
            if format != "seeds":
                yield line(url, datum, score)
            elif re.search(rb"[\t\r\n]|^#|^\s|\s$", url):
                tally.skip("seeds", 0, "URL that a list of seeds cannot hold")
            else:
                yield url + b"\tnutch.score=" + score.encode() + b"\n"


def _csv_entry(url: bytes, datum: CrawlDatum, score: str) -> bytes:
    return _csv_line(
        [
            url.decode("utf-8", "surrogateescape"),
            str(datum.status),
            STATUS.get(datum.status, "unknown"),
            java_date(datum.fetch_time),
            java_date(datum.modified_time),
            str(datum.retries),
            java_float(datum.interval),
            java_float(int(datum.interval / 86400)),
            score,
            "null" if datum.signature is None else datum.signature.hex(),
            "".join(f"{key}:{value}|||" for key, value in datum.metadata),
        ]
    )


def _csv_line(fields: list[str]) -> bytes:
    quoted = [
        '"' + field.replace('"', '""') + '"' if place in _QUOTED else field
        for place, field in enumerate(fields)
    ]
    return (",".join(quoted) + "\n").encode("utf-8", "surrogateescape")


def _text_entry(url: bytes, datum: CrawlDatum, score: str) -> bytes:
    lines_ = [
        "Version: 7",
        f"Status: {datum.status} ({STATUS.get(datum.status, 'unknown')})",
        f"Fetch time: {java_date(datum.fetch_time)}",
        f"Modified time: {java_date(datum.modified_time)}",
        f"Retries since fetch: {datum.retries}",
        f"Retry interval: {datum.interval} seconds ({int(datum.interval / 86400)} days)",
        f"Score: {score}",
        f"Signature: {'null' if datum.signature is None else datum.signature.hex()}",
        "Metadata: ",
        " " + "".join(f"\t{key}={value}\n" for key, value in datum.metadata),
    ]
    return url + b"\t" + "\n".join(lines_).encode("utf-8", "surrogateescape") + b"\n"


# -- dumps of it ---------------------------------------------------------------------------------------------------


def _csv_dump(paths: list[Path], scores: _Scores) -> Iterator[bytes]:
    yield HEADER.encode() + b"\n"
    for path in paths:
        yield from _csv_part(path, scores)


def _csv_part(path: Path, scores: _Scores) -> Iterator[bytes]:
    with Stream(path, f"reading {path}") as stream:
        text = (line.decode("utf-8", "surrogateescape") + "\n" for _, line in lines(stream))
        reader = csv.reader(text)
        try:
            # The header. A part may be empty.
            next(reader, None)
            for rows in _blocks(row for row in reader if row):
                for row in rows:
                    if len(row) != len(HEADER.split(",")):
                        raise InputError(
                            f"{path}, before line {reader.line_num + 1:,}: expected 11 fields; got {len(row)} "
                            "(perhaps a quote within a URL). Dump the database as text instead."
                        )
                values = scores.values([row[0].encode("utf-8", "surrogateescape") for row in rows])
                for row, value in zip(rows, values, strict=True):
                    row[_SCORE] = java_float(value)
                    yield _csv_line(row)
        except csv.Error as error:
            raise InputError(
                f"{path}, line {reader.line_num}: {error}. Dump the database as text instead."
            ) from None


def _text_dump(paths: list[Path], scores: _Scores) -> Iterator[bytes]:
    for path in paths:
        url: bytes | None = None
        with Stream(path, f"reading {path}") as stream:
            for _, line in lines(stream):
                if (entry := _ENTRY.fullmatch(line)) is not None:
                    url = entry[1]
                elif line.startswith(b"Score: ") and url is not None:
                    line = b"Score: " + java_float(scores.values([url])[0]).encode()
                    url = None
                yield line + b"\n"

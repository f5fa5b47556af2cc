"""Merge parts by name, many at a time, without a table of all names.

Each part has its names in byte order. A tournament takes them from all parts in turn, gives equal names one number, and
writes for each part which number each of its names got. These numbers increase with the part's own, so the part's arcs
stay sorted when they get their new numbers.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from inlink.base.arrays import UInt8Array, UInt32Array
from inlink.base.memory import BYTES_A_NODE, require_memory
from inlink.base.progress import Work, track
from inlink.errors import InputError, ParameterError
from inlink.graph.collect import MIXED, relabelled
from inlink.graph.kernels.arcs import relabel
from inlink.graph.kernels.parts import first_round, load_names, merge_names
from inlink.graph.names import MAX_NODES
from inlink.graph.part import NAMES, TEXT, InputPart, NameBlock, PartFile, PartHeader, PartWriter
from inlink.graph.ranges import Bins, Ranges
from inlink.graph.rows import row_places
from inlink.graph.sinks import Sink, write_rows

FILES = 480
"""The largest number of parts that are merged at a time, and of files that are open."""

_NONE: UInt32Array = np.empty(0, np.uint32)
# Number of names of the result that are written at a time.
_OUT = 1 << 15


def merge_parts(parts: Sequence[InputPart], sink: Sink, scratch: Path) -> None:
    """Merge parts, and give the result to a sink.

    Memory: 4 bytes for each node of the largest part, for any number of parts, and the memory of the sink.

    Parameters
    ----------
    parts : sequence of InputPart
        All with names, or all with numbers; then node 7 of one is node 7 of the others.
    sink : Sink
        Takes the result.
    scratch : Path
        A folder for temporary files.

    Raises
    ------
    inlink.errors.InputError
        If a part is damaged, or there are too many different names.
    inlink.errors.ParameterError
        If some parts have names and others numbers.
    """
    parts = list(parts)
    for level in range(len(parts)):
        if len(parts) <= FILES:
            break
        parts = [*parts[FILES:], merged_file(parts[:FILES], scratch / f"merged.{level}", scratch)]
    headers = [part.header for part in parts]
    if len({header.named for header in headers} - {None}) > 1:
        raise ParameterError(MIXED)
    merged = PartHeader(
        named=next((header.named for header in headers if header.named is not None), None),
        num_nodes=max((header.num_nodes for header in headers), default=0),
        weighted=any(header.weighted for header in headers),
        whole=all(header.whole for header in headers),
        total=sum(header.total for header in headers),
    )
    with tempfile.TemporaryFile(dir=scratch) as file:
        maps = _Maps(file, len(parts))
        if merged.named:
            with track("merging names", sum(header.num_nodes for header in headers), "names") as task:
                merged.num_nodes = _merge_names(parts, sink, maps, task)
        require_memory(merged.num_nodes * BYTES_A_NODE, f"{merged.num_nodes:,} nodes")
        if any(header.marked for header in headers):
            marked = (
                relabelled(part.crawled(), maps.load(k)) for k, part in enumerate(parts) if part.header.marked
            )
            sink.crawled(marked, merged.num_nodes)
        with track("merging arcs", 2 * sum(header.num_arcs for header in headers), "arcs") as task:
            _merge_arcs(parts, merged, maps, sink, scratch, task)


def merged_file(
    parts: Sequence[InputPart], path: Path, scratch: Path, meta: dict[str, object] | None = None
) -> PartFile:
    """Merge parts to one part in a file. It keeps weights if all parts do.

    Raises
    ------
    inlink.errors.InputError, inlink.errors.ParameterError
        As :func:`merge_parts`.
    """
    keep = all(part.header.keeps for part in parts)
    with path.open("wb") as file:
        merge_parts(parts, PartWriter(file, keep, meta), scratch)
    return PartFile(path)


def _merge_arcs(
    parts: Sequence[InputPart],
    merged: PartHeader,
    maps: "_Maps",
    sink: Sink,
    scratch: Path,
    task: Work,
) -> None:
    nodes = merged.num_nodes
    sources, targets = Bins(nodes), Bins(nodes)
    linking = np.zeros(nodes, np.bool_)
    for k, part in enumerate(parts):
        label = maps.load(k)
        for ends, degrees in part.degrees():
            numbers = relabelled(ends, label)
            sources.add(numbers, degrees)
            linking[numbers[degrees > 0]] = True
    places = row_places(np.flatnonzero(linking).astype(np.uint32), nodes) if sink.turns else _NONE
    ranges = Ranges(scratch / "merged", sources)
    keeps = merged.weighted or sink.keeps
    for k, part in enumerate(parts):
        label = maps.load(k)
        for arcs, weights in part.arcs():
            relabel(arcs, label)
            if sink.turns:
                targets.add_targets(arcs, places)
            if not keeps:
                weights = np.empty(0)
            elif weights is None:
                weights = np.ones(len(arcs))
            ranges.add(arcs, weights)
            task.advance(len(arcs))
    label = _NONE
    maps.file.close()
    sink.begin(merged, linking, places, targets)
    del linking, places
    write_rows(ranges.each(), sink, task)
    sink.close(task)


class _Maps:
    """The numbers that the nodes of each part get, in a temporary file."""

    def __init__(self, file: IO[bytes], parts: int) -> None:
        self._blocks: list[list[tuple[int, int]]] = [[] for _ in range(parts)]
        self.file = file

    def add(self, part: int, numbers: UInt32Array) -> None:
        """Add the numbers of the next nodes of a part."""
        self._blocks[part].append((self.file.tell(), len(numbers)))
        self.file.write(numbers.data)

    def load(self, part: int) -> UInt32Array:
        """The numbers of the nodes of a part; an empty array if they keep their numbers."""
        numbers = np.empty(sum(count for _, count in self._blocks[part]), np.uint32)
        at = 0
        for place, count in self._blocks[part]:
            self.file.seek(place)
            numbers[at : at + count] = np.frombuffer(self.file.read(4 * count), np.uint32)
            at += count
        return numbers


class _Lanes:
    """The blocks of names that take part in the tournament: one lane for each part."""

    def __init__(self, parts: Sequence[InputPart], maps: _Maps) -> None:
        lanes = 1 << max(len(parts) - 1, 0).bit_length()
        self._blocks: list[Iterator[NameBlock]] = [part.names() for part in parts]
        self._parts, self._maps = parts, maps
        self.width = TEXT
        self.texts: UInt8Array = np.empty((lanes, self.width), np.uint8)
        self.ends = np.zeros((lanes, NAMES + 1), np.uint32)
        self.shared = np.zeros((lanes, NAMES), np.uint32)
        self.counts, self.place, self.same = np.zeros((3, lanes), np.uint64)
        self.over = np.ones(lanes, np.bool_)
        self.maps = np.empty((lanes, NAMES), np.uint32)
        for lane in range(len(parts)):
            self.fill(lane)

    def fill(self, lane: int) -> None:
        """Keep the numbers of the names of a lane, and give it the next block of its part."""
        count = int(self.counts[lane])
        last: UInt8Array = np.empty(0, np.uint8)
        if count:
            self._maps.add(lane, self.maps[lane, :count])
            last = self.texts[lane, int(self.ends[lane, count - 1]) : int(self.ends[lane, count])].copy()
        block = next(self._blocks[lane], None)
        self.over[lane] = block is None
        if block is None:
            return
        size = int(block.offsets[-1] - block.offsets[0])
        if size > self.width:
            texts = np.empty((len(self.texts), size), np.uint8)
            texts[:, : self.width] = self.texts
            self.texts, self.width = texts, size
        self.counts[lane], self.place[lane] = len(block.offsets) - 1, 0
        lane_ = np.uint64(lane)
        if not load_names(*block, last, count == 0, lane_, self.texts, self.ends, self.shared):
            name = getattr(self._parts[lane], "path", "a part")
            raise InputError(f"{name}: names are not in order: remove it, and build again")
        self.same[lane] = self.shared[lane, 0]


def _merge_names(parts: Sequence[InputPart], sink: Sink, maps: _Maps, task: Work) -> int:
    """Give the names of all parts to a sink, in byte order and each once. Return their number."""
    lanes = _Lanes(parts, maps)
    losers = np.zeros(len(lanes.over), np.uint64)
    winner = int(first_round(losers, lanes.texts, lanes.ends, lanes.place, lanes.same, lanes.over))
    moved = False
    state = np.zeros(4, np.uint64)
    text, offsets = np.empty(1 << 20, np.uint8), np.zeros(_OUT + 1, np.uint64)
    done = False
    while not done:
        winner = int(merge_names(
            np.uint64(winner), moved, losers, lanes.texts, lanes.ends, lanes.shared, lanes.counts, lanes.place,
            lanes.same, lanes.over, lanes.maps, state, text, offsets,
        ))  # fmt: skip
        if int(state[0]) > MAX_NODES - 1:
            raise InputError(f"more than {MAX_NODES - 1:,} different names: node numbers have 32 bits")
        done = bool(lanes.over[winner])
        moved = not done and bool(lanes.place[winner] == lanes.counts[winner])
        if moved:
            task.advance(int(lanes.counts[winner]))
            lanes.fill(winner)
            continue
        if int(state[2]):
            sink.names(text[: int(state[3])], offsets[: int(state[2]) + 1])
            state[2:] = 0
        if lanes.width > len(text):
            text = np.empty(lanes.width, np.uint8)
    return int(state[0])

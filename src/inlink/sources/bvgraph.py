"""BVGraph: WebGraph's compressed graphs, ``.graph`` with ``.properties`` beside it.

The record of a node holds its outdegree, the distance to the node whose list it copies from (0: none), the blocks of
that list that it copies, runs of consecutive successors, and the remaining successors as gaps. The properties name the
code of each kind of number. Lists are decoded from front to back, so the ``.offsets`` file is not needed. Names
are not part of the format: LAW publishes them as ``.urls.gz``, a name per line in the order of the nodes.

Source: Boldi & Vigna, "The WebGraph framework I: compression techniques", WWW 2004, and the documentation of
WebGraph's class BVGraph.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from inlink.base.opening import Stream
from inlink.base.progress import track
from inlink.base.table import counted
from inlink.errors import DamageError, FormatError, InputError
from inlink.graph import encoder
from inlink.graph.batches import ArcBatch
from inlink.graph.names import Names
from inlink.graph.source import Source, level_of

# Number of arcs that are decoded, and of bytes that are read, at a time.
_ROOM = 1 << 20
_BYTES = 1 << 22
_PAD = 40
_MAX_PROPERTIES = 1 << 20
# Number of names that are checked to distinguish pages from other nodes.
_SAMPLE = 100

_CODES = encoder.CODES | {"GOLOMB": 5}
# In the order of kernels.bits.decode: prefix of the flag, code without a flag, codes allowed. Other encoders than
# WebGraph's may choose from more codes.
_MORE = {"BLOCKS": ("UNARY",), "RESIDUALS": ("GOLOMB",)}
KINDS = {kind: (code, (*codes, *_MORE.get(kind, ()))) for kind, (code, codes) in encoder.FIELDS.items()}


class _Properties(NamedTuple):
    num_nodes: int
    num_arcs: int
    window: int
    min_interval: int
    k: int
    codes: list[int]


def bvgraph(path: str | os.PathLike[str]) -> Source:
    """Read a BVGraph. Its nodes have names if there is a file ``.urls.gz`` or ``.urls`` beside it.

    Parameters
    ----------
    path : path-like
        The ``.graph`` file, the ``.properties`` file, or their common name without the extension.

    Raises
    ------
    inlink.errors.InputError
        If one of the files is missing, or there is not one name for each node, or a name is repeated.
    inlink.errors.FormatError
        If the properties do not describe a BVGraph that can be read here.
    inlink.errors.DamageError
        If the file is too short for its nodes. While batches are read: if the file ends or cannot be decoded, naming
        node and bit, or if the number of arcs differs from the properties.
    """
    stem = stem_of(Path(path))
    graph, text = stem.with_name(f"{stem.name}.graph"), stem.with_name(f"{stem.name}.properties")
    for file in (graph, text):
        if not file.is_file():
            raise InputError(f"{file} does not exist: a BVGraph is a .graph and a .properties file")
    properties = _read_properties(text)
    # A node takes at least one bit. The check bounds the memory by the size of the file.
    if properties.num_nodes > 8 * graph.stat().st_size:
        raise DamageError(
            f"{graph} is truncated: {graph.stat().st_size:,} bytes for {properties.num_nodes:,} nodes ({text})"
        )
    beside = next((file for file in urls_of(stem) if file.is_file()), None)
    names = None if beside is None else read_names(beside, properties.num_nodes)
    sample = [] if names is None else [names.raw(node) for node in range(min(len(names), _SAMPLE))]
    return Source(_batches(graph, properties), names, properties.num_nodes, level_of(sample))


def is_bvgraph(path: Path) -> bool:
    """Return whether a path names a BVGraph: by its stem, its ``.graph`` or its ``.properties`` file."""
    stem = stem_of(path)
    return all(stem.with_name(stem.name + ending).is_file() for ending in (".graph", ".properties"))


def refuse_half(path: Path) -> None:
    """Refuse the name of a BVGraph if just one of its ``.graph`` and ``.properties`` files exists.

    Raises
    ------
    inlink.errors.InputError
        Names the missing file.
    """
    stem = stem_of(path)
    files = [stem.with_name(stem.name + ending) for ending in (".graph", ".properties")]
    missing = [file for file in files if not file.is_file()]
    if len(missing) == 1:
        raise InputError(
            f"{missing[0]} is missing: a BVGraph needs its .graph and its .properties file. Copy the missing file "
            "here, or export the graph again if the export was interrupted."
        )


def stem_of(path: Path) -> Path:
    """Return the common name of a BVGraph's files, without the extension."""
    return path.with_suffix("") if path.suffix in (".graph", ".properties", ".offsets") else path


def urls_of(stem: Path) -> tuple[Path, Path]:
    """Return the files that may hold the names of a BVGraph's nodes, the compressed one first."""
    return stem.with_name(f"{stem.name}.urls.gz"), stem.with_name(f"{stem.name}.urls")


def read_names(path: Path, num_nodes: int) -> Names:
    """Read a name per line. Only newline ends a line, so that names may contain any other byte."""
    from inlink.graph.kernels.names import order_of

    texts, ends, length, count, last = [], [], 0, 0, 10
    with Stream(path, f"reading {path.name}") as stream:
        while count <= num_nodes and (raw := stream.read(_BYTES)):
            block = np.frombuffer(raw, np.uint8)
            is_end = block == 10
            line_ends = np.flatnonzero(is_end)
            texts.append(block[~is_end])
            # Before the k-th line end there are k line ends that are not part of the text.
            ends.append((line_ends - np.arange(len(line_ends)) + length).astype(np.uint64))
            length, count = length + len(block) - len(line_ends), count + len(line_ends)
            last = int(block[-1])
    if last != 10:
        ends.append(np.array([length], np.uint64))
        count += 1
    if count != num_nodes:
        more = "more than " if count > num_nodes else ""
        raise InputError(
            f"{path}: {more}{counted(min(count, num_nodes), 'name')} for {num_nodes:,} nodes. Write one name per line, "
            "or remove the file."
        )
    text = np.concatenate([np.empty(0, np.uint8), *texts])
    offsets = np.concatenate([np.zeros(1, np.uint64), *ends])
    try:
        return Names(text, offsets, order_of(text, offsets))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _read_properties(path: Path) -> _Properties:
    with path.open("rb") as file:
        raw = file.read(_MAX_PROPERTIES)
    values = {}
    for line in raw.decode("latin-1").splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith(("#", "!")):
            values[key.strip().lower()] = value.strip()

    def number(key: str, default: int | None = None, largest: int = 2**63 - 1) -> int:
        text = values.get(key, "" if default is None else str(default))
        if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= largest):
            raise FormatError(f"{path}: {key} must be an integer from 0 to {largest:,}; got {text!r}")
        return int(text)

    kind = values.get("graphclass", "").removeprefix("class ").strip()
    if kind and kind.rpartition(".")[2] != "BVGraph":
        raise FormatError(f"{path} describes a {kind}. Convert the graph to BVGraph with WebGraph first.")
    if number("version", 0) != 0:
        raise FormatError(f"{path}: BVGraph version must be 0; got {values['version']}")
    if values.get("endianness", "big").lower() not in ("big", "be"):
        raise FormatError(
            f"{path}: endianness must be big; got {values['endianness']}. Convert the graph with webgraph-rs first."
        )
    chosen = {kind: default for kind, (default, _) in KINDS.items()}
    for flag in filter(
        None, (flag.strip().upper() for flag in values.get("compressionflags", "").split("|"))
    ):
        kind, _, code = flag.rpartition("_")
        if kind == "OFFSETS":
            continue
        if kind not in KINDS or code not in KINDS[kind][1]:
            raise FormatError(f"{path}: unknown compression flag {flag}")
        chosen[kind] = code
    return _Properties(
        number("nodes", largest=2**32 - 1),
        number("arcs"),
        number("windowsize", 7, 1 << 20),
        number("minintervallength", 4, 2**32 - 1),
        number("zetak", 3, 2**32 - 1 if chosen["RESIDUALS"] == "GOLOMB" else 60),
        [_CODES[chosen[kind]] for kind in KINDS],
    )


def _batches(path: Path, properties: _Properties) -> Iterator[ArcBatch]:
    from inlink.graph.kernels import bits as kernels

    if properties.k == 0 and properties.codes[4] == kernels.ZETA:
        raise FormatError(f"{path}: zetak must be at least 1; got 0")
    k, window = np.uint64(properties.k), properties.window
    codes = np.array([*properties.codes, kernels.GAMMA], np.int64)
    tables = np.empty((len(codes), 1 << 16), np.uint32)
    for code, table in zip(codes.tolist(), tables, strict=True):
        kernels.code_table(code, k, table)
    nodes = properties.num_nodes
    shape = kernels.Shape(*map(np.uint64, (nodes, window, properties.min_interval, 0, nodes)))
    lists = np.zeros((window + 1, 2), np.uint64)
    successors, sources = np.empty(_ROOM, np.uint32), np.empty(_ROOM, np.uint32)
    scratch = np.empty(_ROOM, np.uint64)
    data = np.zeros(_PAD, np.uint8)
    # Place of the first bit of `data` in the file.
    first_bit = 0
    at = node = filled = arcs = 0
    step = _BYTES
    with path.open("rb") as file, track(f"reading {path.name}", path.stat().st_size, "B") as task:
        ended = False
        while True:
            # Lists before `kept` were given out already. References may still reach them.
            kept = filled
            stream = kernels.BitStream(data, np.uint64(8 * (len(data) - _PAD)), codes, k, tables)
            room = kernels.ListArrays(lists, successors, sources, scratch)
            status, next_node, next_at, next_filled, degree = kernels.decode(
                stream, shape, room, np.uint64(at), np.uint64(node), np.uint64(filled)
            )
            node, at, filled = int(next_node), int(next_at), int(next_filled)
            if filled > kept:
                arcs += filled - kept
                yield ArcBatch(sources[kept:filled].copy(), successors[kept:filled].copy())
            if status == kernels.DONE:
                break
            if status == kernels.NO_BITS and not ended:
                done = at // 8
                fresh = file.read(step)
                task.advance(len(fresh))
                ended = len(fresh) < step
                # If nothing was decoded, the list is longer than all bytes read so far.
                step = _BYTES if done else 2 * step
                data = np.concatenate(
                    [data[done : len(data) - _PAD], np.frombuffer(fresh, np.uint8), np.zeros(_PAD, np.uint8)]
                )
                first_bit += 8 * done
                at -= 8 * done
            elif status == kernels.FULL:
                start = min(
                    (int(lists[x % len(lists), 0]) for x in range(max(node - window, 0), node)),
                    default=filled,
                )
                old, filled = successors[start:filled], filled - start
                # Places of lists out of reach wrap around. They are not read again.
                lists[:, 0] -= np.uint64(start)
                size = filled + max(int(degree), _ROOM)
                successors, sources = np.empty(size, np.uint32), np.empty(size, np.uint32)
                successors[:filled] = old
                if properties.min_interval:
                    scratch = np.empty(2 * (int(degree) // properties.min_interval + _ROOM), np.uint64)
            else:
                raise DamageError(
                    f"{path}, bit {first_bit + at:,}: {_COMPLAINTS[int(status)]} at node {node:,} of "
                    f"{properties.num_nodes:,}. The file is truncated or damaged, or belongs to other properties."
                )
    if arcs != properties.num_arcs:
        raise DamageError(
            f"{path} is damaged: it has {counted(arcs, 'arc')}, but its properties say {properties.num_arcs:,}"
        )


_COMPLAINTS = {
    2: "the file ends",
    3: "outdegree larger than the number of nodes",
    4: "reference beyond the window",
    5: "copy blocks do not fit the referenced list",
    6: "interval does not fit",
    7: "successor out of range or repeated",
}

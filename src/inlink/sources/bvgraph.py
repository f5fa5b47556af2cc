"""BVGraph: WebGraph's compressed graphs, ``.graph`` with ``.properties`` beside it.

A node's record: its outdegree; how many nodes back the list lies that it copies from (0: none) and which blocks of
that list; runs of consecutive numbers; what remains, as gaps. Each kind of number has its own code, named in the
properties. Boldi & Vigna, "The WebGraph framework I: compression techniques", WWW 2004, and the documentation of
WebGraph's class BVGraph. Lists are decoded from front to back, so the ``.offsets`` are not needed.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from inlink.base.progress import track
from inlink.errors import DamageError, FormatError, InputError
from inlink.graph.batches import ArcBatch
from inlink.graph.graph import Level
from inlink.sources.source import Source

__all__ = ["bvgraph", "is_bvgraph"]

_ROOM = 1 << 20  # arcs decoded at a time
_BYTES = 1 << 22  # bytes read at a time
_PAD = 40
_MAX_PROPERTIES = 1 << 20

_CODES = {"UNARY": 0, "GAMMA": 1, "DELTA": 2, "ZETA": 3, "NIBBLE": 4, "GOLOMB": 5}
# in the order of kernels.bits.decode: the flag's beginning, the code when no flag is given, the codes allowed
_KINDS = {
    "OUTDEGREES": ("GAMMA", ("GAMMA", "DELTA")),
    "REFERENCES": ("UNARY", ("UNARY", "GAMMA", "DELTA")),
    "BLOCK_COUNT": ("GAMMA", ("UNARY", "GAMMA", "DELTA")),
    "BLOCKS": ("GAMMA", ("UNARY", "GAMMA", "DELTA")),
    "RESIDUALS": ("ZETA", ("GAMMA", "DELTA", "ZETA", "NIBBLE", "GOLOMB")),
}


class _Properties(NamedTuple):
    num_nodes: int
    num_arcs: int
    window: int
    min_interval: int
    k: int
    codes: list[int]


def bvgraph(path: str | os.PathLike[str], *, level: Level | None = None) -> Source:
    """Read a BVGraph; its nodes have numbers and no names.

    Parameters
    ----------
    path : path-like
        The ``.graph`` file, the ``.properties`` file, or their common name without the ending.
    level : {"page", "host", "domain"} or None
        What the nodes are.

    Raises
    ------
    inlink.errors.InputError
        If one of the files is missing.
    inlink.errors.FormatError
        If the properties describe no BVGraph, or one of a kind that is not known.
    inlink.errors.DamageError
        From the batches: if the bits run out or make no sense, naming node and bit, or if there are not as many
        arcs as the properties say.
    """
    stem = _stem(Path(path))
    graph, text = stem.with_name(f"{stem.name}.graph"), stem.with_name(f"{stem.name}.properties")
    for file in (graph, text):
        if not file.is_file():
            raise InputError(f"{file} is missing: a BVGraph is a .graph and a .properties file")
    properties = _read_properties(text)
    if (
        properties.num_nodes > 8 * graph.stat().st_size
    ):  # each takes a bit at least; so memory is bounded by the file
        raise DamageError(
            f"{graph} is cut: {graph.stat().st_size:,} bytes are too few for {properties.num_nodes:,} nodes ({text})"
        )
    return Source(_batches(graph, properties), None, properties.num_nodes, level)


def is_bvgraph(path: Path) -> bool:
    """Whether a path names a BVGraph in one of the three ways."""
    stem = _stem(path)
    return all(stem.with_name(stem.name + ending).is_file() for ending in (".graph", ".properties"))


def _stem(path: Path) -> Path:
    return path.with_suffix("") if path.suffix in (".graph", ".properties", ".offsets") else path


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
            raise FormatError(f"{path}: {key}={text} is not a number from 0 to {largest:,}")
        return int(text)

    kind = values.get("graphclass", "").removeprefix("class ").strip()
    if kind and kind.rpartition(".")[2] != "BVGraph":
        raise FormatError(f"{path} describes a {kind}: store it as BVGraph first, with WebGraph")
    if number("version", 0) != 0:
        raise FormatError(f"{path}: BVGraph version {values['version']}; only version 0 is known")
    if values.get("endianness", "big").lower() not in ("big", "be"):
        raise FormatError(
            f"{path}: endianness={values['endianness']}: convert it to big-endian first, with webgraph-rs"
        )
    chosen = {kind: default for kind, (default, _) in _KINDS.items()}
    for flag in filter(
        None, (flag.strip().upper() for flag in values.get("compressionflags", "").split("|"))
    ):
        kind, _, code = flag.rpartition("_")
        if kind == "OFFSETS":
            continue
        if kind not in _KINDS or code not in _KINDS[kind][1]:
            raise FormatError(f"{path}: compression flag {flag} is not known")
        chosen[kind] = code
    return _Properties(
        number("nodes", largest=2**32 - 1),
        number("arcs"),
        number("windowsize", 7, 1 << 20),
        number("minintervallength", 4, 2**32 - 1),
        number("zetak", 3, 2**32 - 1 if chosen["RESIDUALS"] == "GOLOMB" else 60),
        [_CODES[chosen[kind]] for kind in _KINDS],
    )


def _batches(path: Path, properties: _Properties) -> Iterator[ArcBatch]:
    from inlink.sources.kernels import bits as kernels

    if properties.k == 0 and properties.codes[4] == kernels.ZETA:
        raise FormatError(f"{path}: zetak=0 is no code")
    k, window = np.uint64(properties.k), properties.window
    codes = np.array(properties.codes, np.int64)
    tables = np.empty((6, 1 << 16), np.uint32)
    for place, code in enumerate([*properties.codes, kernels.GAMMA]):
        kernels.code_table(code, k, tables[place])
    lists = np.zeros((window + 1, 2), np.uint64)
    successors, sources = np.empty(_ROOM, np.uint32), np.empty(_ROOM, np.uint32)
    scratch = np.empty(_ROOM, np.uint64)
    data = np.zeros(_PAD, np.uint8)
    first_bit = 0  # of the data, in the file
    at = node = filled = arcs = 0
    step = _BYTES
    with path.open("rb") as file, track(f"reading {path.name}", path.stat().st_size, "B") as task:
        ended = False
        while True:
            kept = filled  # before it: lists that references may reach, given out already
            status, next_node, next_at, next_filled, degree = kernels.decode(
                data, np.uint64(at), np.uint64(8 * (len(data) - _PAD)), np.uint64(node),
                np.uint64(properties.num_nodes), np.uint64(window),
                np.uint64(properties.min_interval), codes, k, tables, lists, successors,
                np.uint64(filled), sources, scratch,
            )  # fmt: skip
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
                step = _BYTES if done else 2 * step  # a list that is longer than all that was read
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
                lists[:, 0] -= np.uint64(start)  # those out of reach wrap around, and are not read again
                room = filled + max(int(degree), _ROOM)
                successors, sources = np.empty(room, np.uint32), np.empty(room, np.uint32)
                successors[:filled] = old
                if properties.min_interval:
                    scratch = np.empty(2 * (int(degree) // properties.min_interval + _ROOM), np.uint64)
            else:
                raise DamageError(
                    f"{path}, bit {first_bit + at:,}: {_COMPLAINTS[int(status)]} at node {node:,} of "
                    f"{properties.num_nodes:,}: cut or damaged, or not of these properties"
                )
    if arcs != properties.num_arcs:
        raise DamageError(f"{path} has {arcs:,} arcs and its properties say {properties.num_arcs:,}: damaged")


_COMPLAINTS = {
    2: "the bits run out",
    3: "an outdegree larger than the number of nodes",
    4: "a reference to a list out of reach",
    5: "blocks that do not fit the list they copy from",
    6: "an interval that does not fit",
    7: "a successor out of range, or twice",
}

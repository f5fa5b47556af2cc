"""The bytes of compressed rows against a coder written from the table in `graph/kernels/streamvbyte.py`."""

from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from inlink import Graph
from inlink.base.folder import building
from inlink.graph.coded import (
    CodedOffsets,
    CodedOutlinks,
    InlinkWriter,
    OutlinkWriter,
    decoded,
)
from inlink.graph.graph import KIND
from inlink.graph.rows import BLOCK, COMPRESSED, PAD, CodedRows
from strategies import Arcs, arcs


def row_bytes(sources: list[int], pivot: int) -> bytes:
    """A row by the table in the kernels' module."""
    if not sources:
        return b"\0"

    def number(value: int) -> bytes:
        return value.to_bytes(max((value.bit_length() + 7) // 8, 1), "little")

    away = (sources[0] - pivot) % 2**32
    away = away - 2**32 if away >= 2**31 else away
    first = number(2 * away if away >= 0 else -2 * away - 1)
    gaps = [number(b - a - 1) for a, b in pairwise(sources)]
    sizes = bytearray((len(gaps) + 3) // 4)
    for k, gap in enumerate(gaps):
        sizes[k // 4] |= len(gap) - 1 << k % 4 * 2
    head = bytes([4 * min(len(sources), 63) + len(first) - 1])
    long = len(sources).to_bytes(4, "little") if len(sources) >= 63 else b""
    return head + long + first + bytes(sizes) + b"".join(gaps)


def written(path: Path, linking: list[int], lists: list[list[int]], step: int) -> CodedRows:
    """Coded rows, written in parts of ``step`` rows."""
    with building(path, KIND, COMPRESSED, sync=False) as writer:
        rows = InlinkWriter(writer, np.array(linking, np.uint32))
        for low in range(0, len(lists), step):
            part = lists[low : low + step]
            offsets = np.cumsum([0, *map(len, part)]).astype(np.uint64)
            rows.append(offsets, np.array(list(chain.from_iterable(part)), np.uint32))
        rows.close()
    file = {
        name: np.fromfile(path / "1" / f"in.{name}.bin", np.uint8) for name in ("starts", "rows", "blocks")
    }
    return CodedRows(
        file["starts"], file["rows"], file["blocks"].view(np.uint64), np.array(linking, np.uint32)
    )


@st.composite
def split_lists(draw: st.DrawFn) -> tuple[int, list[int], list[list[int]]]:
    """A number of nodes, the linking nodes, and rows of places of linking nodes."""
    nodes = draw(st.integers(1, 150))
    linking = sorted(draw(st.sets(st.integers(0, nodes - 1), min_size=1)))
    source = st.sets(st.integers(0, len(linking) - 1), max_size=80)
    lists = [sorted(draw(source)) if draw(st.booleans()) else [] for _ in range(nodes)]
    return nodes, linking, lists


@given(split_lists(), st.sampled_from([1, 7, 64, 1000]))
@example((100, list(range(100)), [list(range(100))] * 100), 64)
def test_bytes_are_those_of_the_table(
    tmp_path_factory, made: tuple[int, list[int], list[list[int]]], step: int
):
    nodes, linking, lists = made
    coded = written(tmp_path_factory.mktemp("rows") / "g", linking, lists, step)
    dangling = [node for node in range(nodes) if node not in set(linking)]
    pivots = [*range(len(linking)), *(sum(one < node for one in linking) for node in dangling)]
    rows = [row_bytes(row, pivot) for row, pivot in zip(lists, pivots, strict=True)]
    assert coded.rows.tobytes() == b"".join(rows) + bytes(PAD)
    begins = np.cumsum([0, *map(len, rows)])
    starts = b"".join(int(begin).to_bytes(5, "little") for begin in begins[: len(linking)])
    assert coded.starts.tobytes() == starts + bytes(3)
    before = np.cumsum([0, *map(len, lists)])
    at = [*range(0, nodes, BLOCK), nodes]
    assert coded.blocks.tolist() == [int(value) for place in at for value in (begins[place], before[place])]
    wrong, offsets, found = decoded(coded, nodes, 0, len(at) - 1)
    assert wrong == -1
    assert offsets.tolist() == before.tolist()
    assert found.tolist() == list(chain.from_iterable(lists))
    counted = CodedOffsets(coded, nodes + 1)
    assert [counted[place] for place in range(nodes)] == before[:-1].tolist()
    assert counted[-1] == before[-1]


def test_numbers_of_each_size_and_the_furthest_sources(tmp_path: Path):
    # Sources up to 2³² − 2 are coded by place, without a graph of that size.
    from inlink.graph.kernels.streamvbyte import encode_rows

    rows = [[0, 256, 65793, 2**24 + 65794, 2**32 - 2], [2**32 - 2], [0, 2**32 - 2], [255, 256, 512, 66048]]
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    out, ends = np.zeros(200, np.uint8), np.zeros(len(rows), np.uint64)
    linking = np.arange(10, dtype=np.uint32)
    encode_rows(
        offsets, np.array(list(chain.from_iterable(rows)), np.uint32), linking, np.uint64(0), out, ends
    )
    wanted = [row_bytes(row, place) for place, row in enumerate(rows)]
    assert out[: int(ends[-1])].tobytes() == b"".join(wanted)
    assert {size for raw in wanted for size in (raw[0] & 3,)} >= {0, 1}


@given(arcs(max_nodes=150), st.sampled_from([1, 50, 64, 1000]))
def test_blocks_of_outlinks_are_decoded_alone(tmp_path_factory, a: Arcs, step: int):
    graph = a.graph()
    path = tmp_path_factory.mktemp("records") / "g"
    with building(path, KIND, COMPRESSED, sync=False) as writer:
        records = OutlinkWriter(writer)
        rows = graph.out_rows
        for low in range(0, graph.num_nodes, step):
            part = rows.offsets[low : low + step + 1]
            records.append(part - part[0], rows.nodes[int(part[0]) : int(part[-1])])
        records.close()
    raw, blocks = (np.fromfile(path / "1" / f"out.{name}.bin", np.uint8) for name in ("records", "blocks"))
    coded = CodedOutlinks(raw, blocks.view(np.uint64))
    for block in reversed(range(-(-graph.num_nodes // BLOCK))):
        wrong, offsets, nodes = decoded(coded, graph.num_nodes, block, block + 1)
        assert wrong == -1
        for row, node in enumerate(range(block * BLOCK, min((block + 1) * BLOCK, graph.num_nodes))):
            assert nodes[int(offsets[row]) : int(offsets[row + 1])].tolist() == graph.outlinks(node).tolist()


def test_a_reference_out_of_its_block_is_damage(tmp_path: Path):
    # All lists are alike, so each record but the first of a block copies the one before.
    graph = Graph.from_arcs([(u, v) for u in range(2 * BLOCK) for v in (3, 50, 90)])
    with building(tmp_path / "g", KIND, COMPRESSED, sync=False) as writer:
        records = OutlinkWriter(writer)
        records.append(*graph.out_rows[:2])
        records.close()
    raw, blocks = (
        np.fromfile(tmp_path / "g" / "1" / f"out.{name}.bin", np.uint8) for name in ("records", "blocks")
    )
    at = blocks.view(np.uint64)
    sound = CodedOutlinks(raw, at)
    assert decoded(sound, graph.num_nodes, 0, 2)[0] == -1
    # The second block begins one record early in the file: its first record is a copy.
    moved = at.copy()
    moved[2] = at[2] - (at[2] - at[0]) // np.uint64(2 * BLOCK)
    assert decoded(CodedOutlinks(raw, moved), graph.num_nodes, 1, 2)[0] >= BLOCK

"""Parts: what is written comes back, damage is found, and merged parts are one build of all their arcs."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink.graph.merging as merging
import inlink.graph.part as part
import inlink.graph.ranges as ranges
from inlink import Graph
from inlink.base.progress import Work
from inlink.errors import InputError, ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.build import build_graph, build_parts, build_sources
from inlink.graph.collect import write_part
from inlink.graph.merging import merged_file
from inlink.graph.part import PartFile, PartHeader, PartWriter, pack_weights, unpack_weights
from inlink.graph.ranges import Bins, Ranges
from inlink.graph.source import Source

NAME = st.binary(max_size=12) | st.sampled_from(
    [b"", b"\0", b"a", b"a\0", b"aaaaaaaa", b"aaaaaaaaab", b"\xff"]
)
ARC = st.tuples(NAME, NAME)


def source(
    arcs: list[tuple[bytes, bytes]], alone: Sequence[bytes] = (), crawled: set[bytes] | None = None
) -> Source:
    names = [end for arc in arcs for end in arc] + list(alone)
    ends = np.arange(2 * len(arcs), dtype=np.uint32).reshape(-1, 2)
    marks = None if crawled is None else np.array([k for k, n in enumerate(names) if n in crawled], np.uint32)
    return Source(iter([ArcBatch(ends[:, 0], ends[:, 1], pa.array(names, pa.large_binary()), None, marks)]))


def rows_of(graph: Graph) -> Counter[tuple[bytes, bytes]]:
    rows, names = graph.out_rows, graph.names
    found: Counter[tuple[bytes, bytes]] = Counter()
    for i in range(graph.num_nodes):
        for k in range(int(rows.offsets[i]), int(rows.offsets[i + 1])):
            arc = names.raw(i), names.raw(int(rows.nodes[k]))
            found[arc] = 1 if rows.weights is None else int(rows.weights[k])
    return found


@given(st.lists(st.lists(ARC, max_size=12), min_size=1, max_size=9), st.booleans(), st.integers(2, 5))
def test_merged_parts_are_all_arcs(tmp_path_factory, lists, count, most):
    folder = tmp_path_factory.mktemp("parts")
    parts = [
        write_part(folder / f"{k}", source(arcs), folder, keep=count, sync=False)
        for k, arcs in enumerate(lists)
    ]
    # In levels, as if only so many files could be open.
    while len(parts) > most:
        path = folder / f"merged-{len(parts)}"
        parts = [*parts[most:], merged_file(parts[:most], path, folder)]
    graph = build_parts(parts, count=count)
    arcs = Counter(arc for arcs in lists for arc in arcs)
    assert graph.num_nodes == len({end for arc in arcs for end in arc})
    if graph.num_nodes:
        names = [graph.names.raw(node) for node in range(graph.num_nodes)]
        assert names == sorted({end for arc in arcs for end in arc})
        assert rows_of(graph) == (arcs if count else dict.fromkeys(arcs, 1))


def test_more_parts_than_files_that_may_be_open(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(merging, "FILES", 3)
    arcs = [[(b"%d" % (k % 7), b"%d" % j) for j in range(k)] for k in range(12)]
    graph = build_sources([source(one) for one in arcs], count=True)
    assert rows_of(graph) == Counter(arc for one in arcs for arc in one)


def test_names_of_many_blocks_and_lengths(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(part, "NAMES", 5)
    monkeypatch.setattr(part, "TEXT", 40)
    monkeypatch.setattr(merging, "_OUT", 4)
    random = Random(5)
    names = sorted({b"ab" * random.randrange(9) + random.randbytes(random.randrange(30)) for _ in range(300)})
    names += [names[-1] + b"x" * 3_000_000]
    chosen = [sorted(random.sample(names, 150)) for _ in range(6)]
    parts = [
        write_part(tmp_path / str(k), source([], one), tmp_path, keep=False) for k, one in enumerate(chosen)
    ]
    for one, found in zip(chosen, parts, strict=True):
        stored = [
            bytes(b.text[int(i) : int(j)])
            for b in found.names()
            for i, j in zip(b.offsets[:-1], b.offsets[1:], strict=True)
        ]
        assert stored == one
    graph = build_parts(parts)
    expected = sorted(set().union(*chosen))
    assert [graph.names.raw(node) for node in range(graph.num_nodes)] == expected


def test_marks_and_numbers(tmp_path: Path):
    one = write_part(tmp_path / "1", source([(b"c", b"a")], crawled={b"c"}), tmp_path, keep=False)
    two = write_part(tmp_path / "2", source([(b"b", b"c")], crawled={b"b"}), tmp_path, keep=False)
    graph = build_parts([one, two], level="host")
    assert graph.names[:] == ["a", "b", "c"]
    assert graph.crawled.tolist() == [False, True, True]
    numbers = Source(iter([ArcBatch(np.array([3], np.uint32), np.array([1], np.uint32))]))
    three = write_part(tmp_path / "3", numbers, tmp_path, keep=False)
    assert build_parts([three, three]).num_nodes == 4
    with pytest.raises(ParameterError, match="cannot be mixed"):
        build_parts([one, three])
    empty = write_part(tmp_path / "4", Source(iter([])), tmp_path, keep=False)
    assert build_parts([one, empty]).num_nodes == 2
    assert build_parts([empty]).num_nodes == 0


def test_fractions_are_added_up_once_whatever_the_parts(tmp_path: Path):
    random = Random(3)
    weights = [random.random() for _ in range(60)]
    ends = np.zeros(60, np.uint32)

    def batch(low: int, high: int) -> ArcBatch:
        return ArcBatch(ends[low:high], ends[low:high] + 1, pa.array(["a", "b"]), np.array(weights[low:high]))

    whole = build_graph([batch(0, 60)])
    for cuts in ([0, 10, 60], [0, 1, 2, 59, 60], [0, 30, 31, 60]):
        sources = [Source(iter([batch(low, high)])) for low, high in pairwise(cuts)]
        assert build_sources(sources).out_rows.weights.tolist() == whole.out_rows.weights.tolist()


@given(st.lists(st.integers(1, 2**53 - 1).map(float) | st.sampled_from([1.0, 0.5, 1e300]), max_size=30))
def test_weights_come_back(values):
    coding, data = pack_weights(np.array(values))
    back = unpack_weights(coding, data, len(values))
    assert values == [] if back is None else back.tolist() == values


@given(st.integers(1, 400), st.booleans(), st.booleans(), st.integers(0, 99))
def test_ranges_give_back_what_they_got(tmp_path_factory, nodes, by_target, weighted, seed):
    dice = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "BUCKET", 50)
        patch.setattr(ranges, "_KEPT", 300)
        patch.setattr(ranges, "_BINS", 64)
        ends = dice.integers(0, nodes, (2, 300), np.uint64)
        arcs = ends[0] << np.uint64(32) | ends[1]
        bins = Bins(nodes)
        bins.add(ends[int(by_target)], np.ones(300, np.uint64))
        found = Ranges(tmp_path_factory.mktemp("ranges") / "x", bins, by_target=by_target)
        weights = dice.integers(1, 9, 300).astype(np.float64) if weighted else np.empty(0)
        for low in range(0, 300, 75):
            order = np.argsort(arcs[low : low + 75], kind="stable") + low
            found.add(arcs[order], weights[order] if weighted else weights)
        seen: list[tuple[int, float]] = []
        for low, high, part_arcs, values in found.each():
            side = part_arcs & np.uint64(2**32 - 1) if by_target else part_arcs >> np.uint64(32)
            assert ((side >= low) & (side < high)).all()
            seen += zip(
                part_arcs.tolist(), values.tolist() if weighted else [1.0] * len(part_arcs), strict=True
            )
        assert sorted(seen) == sorted(
            zip(arcs.tolist(), weights.tolist() if weighted else [1.0] * 300, strict=True)
        )


@pytest.mark.slow
def test_a_damaged_part_is_told_and_never_crashes(tmp_path: Path):
    arcs = [(b"name%d" % (k % 50), b"name%d" % (k * 7 % 60)) for k in range(400)]
    sound = write_part(tmp_path / "sound", source(arcs, crawled={b"name1"}), tmp_path, keep=True)
    raw = sound.path.read_bytes()
    random = Random(8)
    bad = tmp_path / "bad"
    wrong = 0
    for _ in range(300):
        data = bytearray(raw)
        at = random.randrange(len(data))
        if random.random() < 0.8:
            data[at] ^= 1 << random.randrange(8)
        else:
            del data[at:]
        bad.write_bytes(data)
        with pytest.raises(InputError, match=r"bad (is damaged|was made by)"):
            build_parts([PartFile(bad), sound], count=True)
        wrong += 1
    assert wrong == 300
    bad.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        PartFile(bad)


def crafted(path: Path, names: list[bytes], arcs: Sequence[int], crawled: Sequence[int] = ()) -> PartFile:
    """A part whose checksums hold."""
    with path.open("wb") as file:
        writer = PartWriter(file, False)
        offsets = np.cumsum([0, *map(len, names)]).astype(np.uint64)
        writer.names(np.frombuffer(b"".join(names), np.uint8), offsets)
        writer.crawled([np.array(crawled, np.uint32)], len(names))
        writer.begin(PartHeader(named=True, num_nodes=len(names)))
        writer.rows(0, len(names), np.array(arcs, np.uint64), np.empty(0))
        writer.close(Work("crafting"))
    return PartFile(path)


def test_a_crafted_part_is_refused(tmp_path: Path):
    """Names that are not in order, arcs that end outside the nodes, and a mark outside the nodes."""
    assert build_parts([crafted(tmp_path / "right", [b"a", b"b"], [1, 1 << 32])]).num_arcs == 2
    for names, arcs in (
        ([b"b", b"a"], [1]),
        ([b"a", b"a"], [1]),
        ([b"ab", b"a"], [1]),
        ([b"a", b"b"], [2]),
        ([b"a", b"b"], [5 << 32]),
        ([b"a", b"b"], [1, 0]),
        ([b"a", b"b"], [1 << 32, 1]),
    ):
        with pytest.raises(InputError, match="remove"):
            build_parts([crafted(tmp_path / "wrong", names, arcs)])
    with pytest.raises(InputError, match=r"wrong is damaged \(wrong marks\)"):
        crafted(tmp_path / "wrong", [b"a", b"b"], [], crawled=[2]).crawled()


def test_no_parts_are_a_graph_without_nodes():
    assert repr(build_parts([])) == "<inlink graph: 0 nodes, 0 arcs>"
    assert repr(build_sources([])) == "<inlink graph: 0 nodes, 0 arcs>"

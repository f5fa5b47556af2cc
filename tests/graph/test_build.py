import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink.graph.collect as collect
import inlink.graph.ranges as ranges
import inlink.graph.sinks as sinks
from inlink import Graph
from inlink.base.jit import late_of
from inlink.errors import FolderError, InputError, OutputError, ParameterError, UnknownNodeError
from inlink.graph.batches import ArcBatch
from inlink.graph.build import build_graph
from inlink.graph.names import Names
from interrupts import interrupted
from patience import wait_until
from strategies import Arcs, arcs

name = st.binary(max_size=20) | st.sampled_from(
    [b"", b"\0", b"a", b"a\0", b"aaaaaaaa", b"aaaaaaaa\0\0", b"aaaaaaaab"]
)


def out_arcs(graph: Graph) -> dict[tuple[int, int], float]:
    return dict(_pairs(graph.out_rows))


def in_arcs(graph: Graph) -> dict[tuple[int, int], float]:
    return {(j, i): w for (i, j), w in _pairs(graph.in_rows)}


def _pairs(rows):
    for i in range(len(rows.offsets) - 1):
        low, high = int(rows.offsets[i]), int(rows.offsets[i + 1])
        assert (np.diff(rows.nodes[low:high].astype(np.int64)) > 0).all()  # increasing, each once
        for k in range(low, high):
            yield (i, int(rows.nodes[k])), 1 if rows.weights is None else rows.weights[k]


@given(arcs())
def test_rows_are_the_arcs_in_both_directions(a: Arcs):
    graph = a.graph(count=True)
    assert graph.num_nodes == a.num_nodes
    assert out_arcs(graph) == in_arcs(graph) == dict(Counter(a.pairs))
    assert graph.outdegrees.tolist() == (a.dense() > 0).sum(1).tolist()
    assert graph.indegrees.tolist() == (a.dense() > 0).sum(0).tolist()


@given(arcs(weighted=True))
def test_given_weights_add_up_whatever_their_order(a: Arcs):
    graph = a.graph()
    A = a.dense()
    assert out_arcs(graph) == pytest.approx({(i, j): A[i, j] for i, j in a.pairs})
    order = np.random.default_rng(len(a.pairs)).permutation(len(a.pairs))
    shuffled = Arcs(a.num_nodes, [a.pairs[k] for k in order], [a.weights[k] for k in order]).graph()
    assert out_arcs(shuffled) == out_arcs(graph)  # to the last bit


@given(st.lists(st.tuples(name, name), max_size=60), st.randoms(use_true_random=False), st.integers(1, 9))
def test_named_graphs_do_not_depend_on_batches(
    pairs: list[tuple[bytes, bytes]], rng: random.Random, size: int
):
    names = sorted({end for pair in pairs for end in pair})
    expected = dict(Counter((names.index(a), names.index(b)) for a, b in pairs))
    shuffled = pairs[:]
    rng.shuffle(shuffled)

    def batches():
        for start in range(0, len(shuffled), size):
            part = shuffled[start : start + size]
            ends = pa.array([a for a, _ in part] + [b for _, b in part], pa.binary())
            k = np.arange(len(part), dtype=np.uint64)
            yield ArcBatch(k, k + np.uint64(len(part)), ends)

    graph = build_graph(batches(), count=True)
    assert graph.num_nodes == len(names)
    if not pairs:
        return
    assert [graph.names.raw(i) for i in range(len(names))] == names
    assert out_arcs(graph) == in_arcs(graph) == expected
    assert [graph.node(n) for n in names] == list(range(len(names)))
    assert graph.names.find_all(pa.array([*names, b"not there"])).tolist() == [*range(len(names)), -1]
    assert b"not there" not in graph.names


@given(st.lists(name, unique=True, max_size=40))
def test_names_in_any_order_are_found(given_names: list[bytes]):
    names = Names.of(given_names)
    assert [names.find(n) for n in given_names] == list(range(len(given_names)))
    assert (names.order is None) == (given_names == sorted(given_names))
    assert [n.encode("utf-8", "surrogateescape") for n in names] == given_names
    assert names.take(np.arange(len(given_names))[::-1]).to_pylist() == given_names[::-1]


def test_long_common_prefixes_sort_as_bytes():
    rng = random.Random(5)
    names = [
        b"http://example.org/" + b"x" * rng.randrange(60) + bytes([rng.randrange(256)]) for _ in range(5000)
    ]
    names = list(dict.fromkeys(names))
    ordered = Names.of(names)
    assert [names[i] for i in ordered.order] == sorted(names)


def test_equal_hashes_never_merge_names(monkeypatch):
    from inlink.graph.kernels import names as kernels

    # all 32 bits beside the slot agree for every name: only the comparison of bytes can tell them apart
    slots, prints = np.full(1 << 12, kernels.EMPTY, np.uint32), np.empty(1 << 12, np.uint32)
    room = np.empty(1 << 16, np.uint8), np.zeros(1 << 12, np.uint64)
    text, offsets = np.frombuffer(b"aabcab", np.uint8), np.array([0, 1, 3, 4, 6], np.uint64)  # a, ab, c, ab
    ids = np.empty(4, np.uint32)

    def same_hash(text, start, stop, seed):
        return np.uint64(7)

    monkeypatch.setattr(kernels, "_hash", same_hash)
    late = late_of(kernels.number)
    number = late.python if late else kernels.number.py_func  # type: ignore[attr-defined]
    zero = np.uint64(0)
    number(text, offsets, zero, slots, prints, *room, zero, zero, ids)
    assert ids.tolist() == [0, 1, 2, 1]


@pytest.mark.slow
def test_many_ranges_give_the_same_graph(monkeypatch):
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, 300, (5000, 2)).astype(np.uint32)
    weights = rng.random(5000) + 0.1
    whole = Graph.from_arcs(pairs, weights=weights, num_nodes=320)
    monkeypatch.setattr(ranges, "BUCKET", 170)
    monkeypatch.setattr(collect, "BUCKET", 170)
    monkeypatch.setattr(ranges, "_KEPT", 700)
    for module in (sinks, collect):
        monkeypatch.setattr(module, "_BLOCK", 64)
    monkeypatch.setattr(collect, "_KEPT", 150)
    parts = Graph.from_arcs(pairs, weights=weights, num_nodes=320)
    assert out_arcs(parts) == out_arcs(whole)
    assert in_arcs(parts) == in_arcs(whole)
    hub = np.array([[0, 1]] * 400 + [[i % 50, 7] for i in range(1000)], np.uint32)
    assert out_arcs(Graph.from_arcs(hub, count=True)) == dict(Counter(map(tuple, hub.tolist())))


def test_weights_are_counts_where_they_are_whole():
    assert Graph.from_arcs([(0, 1), (0, 1)], count=True).out_rows.weights.dtype == np.uint32
    assert Graph.from_arcs([(0, 1)], weights=[2.0]).out_rows.weights.dtype == np.uint32
    assert Graph.from_arcs([(0, 1)], weights=[2.5]).out_rows.weights.dtype == np.float64
    assert Graph.from_arcs([(0, 1)], weights=[2.0**33]).out_rows.weights.dtype == np.float64
    assert Graph.from_arcs([(0, 1)]).out_rows.weights is None


def test_arcs_that_came_before_the_first_weight_count_once():
    ends = [np.array(side, np.uint32) for side in ([0, 1], [1, 2], [2, 0], [0, 2])]
    graph = build_graph([ArcBatch(*ends[:2]), ArcBatch(*ends[2:], weights=np.array([5.0, 7.0]))])
    assert out_arcs(graph) == {(0, 1): 1, (1, 2): 1, (2, 0): 5, (0, 2): 7}


def test_crawled_nodes_are_remembered():
    names = pa.array(["b", "a", "c"])
    zero, rest = np.zeros(2, np.uint32), np.array([1, 2], np.uint32)
    graph = build_graph([ArcBatch(zero, rest, names, crawled=np.array([0], np.uint32))])
    assert graph.crawled.tolist() == [False, True, False]
    assert graph.subgraph(graph.crawled).names[:] == ["b"]
    assert Graph.from_arcs([(0, 1)]).crawled is None


def test_crawled_nodes_that_are_out_of_range_are_refused():
    none = np.empty(0, np.uint32)
    for crawled in (np.array([2], np.uint32), np.array([2**32], np.uint64)):
        with pytest.raises(InputError, match=rf"node {crawled[0]:,}\b"):
            build_graph([ArcBatch(none, none, crawled=crawled)], num_nodes=2)
        with pytest.raises(ParameterError, match="is outside its names"):
            build_graph([ArcBatch(none, none, ["a", "b"], crawled=crawled)])
    graph = build_graph([ArcBatch(none, none, crawled=np.array([2], np.uint32))])
    assert graph.crawled.tolist() == [False, False, True]


def test_more_nodes_than_numbers_are_refused():
    none = np.empty(0, np.uint32)
    with pytest.raises(InputError, match=r"at most 4,294,967,295 nodes; got 4,294,967,296"):
        build_graph([ArcBatch(none, none)], num_nodes=2**32)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: Graph.from_arcs([(0, 1), ("a", 1)]), ParameterError, "all numbers or all names"),
        *(
            (
                lambda end=end: Graph.from_arcs(np.array([[0, end]])),
                ParameterError,
                "a node must be in [0, 4,294,967,295)",
            )
            for end in (-1, 2**32 - 1)
        ),
        (
            lambda: Graph.from_arcs([(0, 5)], num_nodes=3),
            InputError,
            "no node 5: the 3 nodes are numbered from 0",
        ),
        *(
            (lambda w=w: Graph.from_arcs([(0, 1)], weights=[w]), ParameterError, f"above 0; got {w} at arc 0")
            for w in (-1.0, float("nan"))
        ),
        (lambda: Names.of(["x", "y", "x"]), InputError, "nodes 0 and 2 have the same name 'x'"),
        (lambda: Graph.from_arcs([("a", "b")]).outlinks("c"), UnknownNodeError, "no node is named 'c'"),
        (lambda: Graph.from_arcs([(0, 1)]).outlinks(2), UnknownNodeError, "no node 2: there are 2"),
        (
            lambda: build_graph([ArcBatch(np.array([2**33], np.uint64), np.array([0], np.uint64))]),
            InputError,
            "8,589,934,592 is out of range",
        ),
    ],
)
def test_bad_input_is_told_in_one_line(call, error, says):
    with pytest.raises(error) as caught:
        call()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_survives_a_round_trip(tmp_path: Path):
    with pytest.raises(ParameterError):
        Graph.from_arcs([(0, 1)], weights=[0.0], into=tmp_path / "g")
    # Nothing half made remains.
    assert list(tmp_path.iterdir()) == []
    built = Graph.from_arcs([("a", "b"), ("b", "b")], into=tmp_path / "g", count=True)
    opened = Graph.open(tmp_path / "g", verify=True)
    assert out_arcs(opened) == out_arcs(built)
    assert opened.names[:] == ["a", "b"]
    assert opened.uuid == built.uuid
    assert [p.name for p in tmp_path.iterdir()] == ["g"]


def test_an_existing_folder_is_kept_until_the_new_one_is_whole(tmp_path: Path):
    first = Graph.from_arcs([(0, 1)], into=tmp_path / "g")

    def broken():
        yield ArcBatch(np.array([0], np.uint32), np.array([1], np.uint32))
        raise InputError("cut")

    with pytest.raises(InputError):
        build_graph(broken(), into=tmp_path / "g")
    assert Graph.open(tmp_path / "g", verify=True).uuid == first.uuid
    second = Graph.from_arcs([(0, 2)], into=tmp_path / "g")
    assert Graph.open(tmp_path / "g").uuid == second.uuid != first.uuid
    assert first.outlinks(0).tolist() == [1]  # whoever has the old one mapped keeps it
    assert sorted(p.name for p in (tmp_path / "g").iterdir()) == ["2", "header.json"]


# If the interrupt comes just after a file was opened, the garbage collector closes the file.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_ctrl_c_at_any_line_of_the_commit_leaves_a_whole_graph(tmp_path: Path):
    def rebuild() -> None:
        Graph.from_arcs([(0, 2)], into=tmp_path / "g")

    uuids, line = [Graph.from_arcs([(0, 1)], into=tmp_path / "g").uuid], 1
    while interrupted(rebuild, line, lambda code: code.co_name in ("_commit", "atomic_file")):
        uuids.append(Graph.open(tmp_path / "g", verify=True).uuid)
        assert [path.name for path in tmp_path.iterdir()] == ["g"]
        line += 1
    # Some builds were interrupted before the commit, and some after it.
    assert len(uuids) > len(set(uuids)) > 2


def test_strangers_are_not_overwritten(tmp_path: Path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    for name in ("thesis", "file"):
        with pytest.raises(OutputError, match="remove it"):
            Graph.from_arcs([(0, 1)], into=tmp_path / name)
    assert (tmp_path / "thesis" / "chapter1.tex").read_text() == "x"
    (tmp_path / "thesis" / "a").mkdir()
    os.mkfifo(tmp_path / "thesis" / "a" / "header.json")
    Graph.from_arcs([(0, 1)], into=tmp_path / "thesis" / "g")
    with pytest.raises(
        OutputError, match=r"is not a graph but contains graphs: name a graph, such as .*/thesis/g"
    ):
        Graph.from_arcs([(0, 1)], into=tmp_path / "thesis")


def test_damaged_and_newer_folders_are_refused(tmp_path: Path):
    Graph.from_arcs([("a", "b")], into=tmp_path / "g")
    header = tmp_path / "g" / "header.json"
    good = header.read_text()

    def says(text: str) -> None:
        with pytest.raises(FolderError, match=text) as caught:
            Graph.open(tmp_path / "g")
        assert "\n" not in str(caught.value)

    header.write_text(good.replace('"version": 2', '"version": 99'))
    says("format version 99 .* upgrade inlink")
    older = re.sub(r',\s*"check": \d+', "", good).replace('"version": 2', '"version": 1')
    header.write_text(older)
    says("a graph of format version 1, and this inlink reads only versions 2 and 3: build .* again")
    header.write_text(good.replace('"kind": "graph"', '"kind": "ranking"'))
    says("holds a ranking, not a graph")
    unchecked = re.sub(r',\s*"check": \d+', "", good)
    header.write_text(unchecked.replace("out.nodes", "../../../etc/passwd"))
    says("no data file is named")
    header.write_text(good.replace("out.nodes", "../../../etc/passwd"))
    says("wrong checksum")
    header.write_text(good[:40])
    says("build .* again")
    header.unlink()
    says("no header.json")
    header.write_text(good)
    file = tmp_path / "g" / "1" / "names.text.bin"
    text = file.read_bytes()
    file.write_bytes(b"A" + text[1:])
    says("wrong checksum")
    file.write_bytes(text[:-1])
    says("1 bytes and the header says 2")
    file.unlink()
    says("is missing")
    with pytest.raises(FolderError, match="does not exist"):
        Graph.open(tmp_path / "none")


def test_the_golden_folder_still_opens():
    graph = Graph.open(Path(__file__).parents[1] / "golden" / "graph-2", verify=True)
    assert graph.names[:] == ["http://a.example/", "http://a.example/x", "http://b.example/"]
    assert out_arcs(graph) == {(0, 1): 2, (0, 2): 1, (1, 0): 1}
    assert in_arcs(graph) == out_arcs(graph)
    assert graph.level == "page"
    assert graph.crawled.tolist() == [True, True, False]


def test_a_killed_build_leaves_the_old_graph_and_the_next_one_cleans_up(tmp_path: Path):
    old = Graph.from_arcs([(0, 1)], into=tmp_path / "g")
    script = (
        "import sys, time, numpy as np\n"
        "from inlink.graph.batches import ArcBatch\n"
        "from inlink.graph.build import build_graph\n"
        "def batches():\n"
        "    while True:\n"
        "        yield ArcBatch(np.zeros(1000, np.uint32), np.zeros(1000, np.uint32))\n"
        "        print('.', flush=True)\n"
        "build_graph(batches(), into=sys.argv[1])\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "g")], stdout=subprocess.PIPE)
    child.stdout.readline()
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    assert Graph.open(tmp_path / "g", verify=True).uuid == old.uuid
    assert len(list(tmp_path.iterdir())) == 2  # the folder and what the killed build left
    Graph.from_arcs([(0, 1)], into=tmp_path / "g")
    assert [p.name for p in tmp_path.iterdir()] == ["g"]


def test_a_temporary_graph_goes_with_its_last_user():
    graph = Graph.from_arcs([(0, 1)])
    path = graph.path
    turned = graph.transpose()
    del graph
    assert path.exists()
    assert turned.outlinks(1).tolist() == [0]
    del turned
    wait_until(lambda: not path.parent.exists(), f"{path.parent} to be removed")


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("unshare") or os.geteuid() != 0, reason="needs root and unshare for a small disk"
)
def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path):
    script = (
        f"mount -t tmpfs -o size=2m none {tmp_path} && "
        f'{sys.executable} -c "\nimport numpy as np, os\nfrom inlink import Graph\n'
        "from inlink.errors import OutputError\n"
        "try:\n    Graph.from_arcs(np.random.default_rng(1).integers(0, 9**6, (10**6, 2)), "
        f"into='{tmp_path}/g')\nexcept OutputError as e:\n    print(e, os.listdir('{tmp_path}'))\n\""
    )
    run = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True)
    if "mount" in run.stderr:
        pytest.skip(f"no mounts here: {run.stderr.strip()}")
    assert "No space left on device" in run.stdout, run.stderr
    assert run.stdout.strip().endswith("[]")

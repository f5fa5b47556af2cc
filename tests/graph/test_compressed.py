"""Compressed graphs: the same arcs, answers and bits as plain rows; damage and wild bytes are refused."""

import contextlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink import Graph
from inlink.base.folder import Folder, building
from inlink.cli import commands
from inlink.errors import FolderError
from inlink.graph.batches import ArcBatch
from inlink.graph.build import build_graph
from inlink.graph.graph import KIND, CompressedGraph
from inlink.graph.neighbours import near, sharing
from inlink.graph.rows import BLOCK, COMPRESSED
from strategies import Arcs, arcs

ROOT = Path(__file__).parents[2]
CNR = ROOT.parent / "shared" / "data" / "graphs" / "cnr-2000.graph"

both = st.one_of(arcs(max_nodes=30), arcs(max_nodes=30, weighted=True))


def built(a: Arcs, into: Path | None = None) -> Graph:
    sources, targets = np.array(a.pairs, np.uint32).reshape(-1, 2).T
    weights = None if a.weights is None else np.array(a.weights)
    batch = ArcBatch(sources.copy(), targets.copy(), None, weights)
    return build_graph([batch], num_nodes=a.num_nodes, into=into, compress=True)


def a_web(n: int, links: int, seed: int) -> Arcs:
    """Most nodes are dangling; near and far links, hubs, and runs of consecutive nodes."""
    rng = np.random.default_rng(seed)
    linking = rng.permutation(n)[: n // 4]
    sources = rng.choice(linking, links)
    targets = np.where(
        rng.random(links) < 0.5, sources + rng.integers(-9, 10, links), n * rng.random(links) ** 4
    )
    pairs = np.stack([sources, np.clip(targets, 0, n - 1).astype(np.int64)], 1).tolist()
    pairs += [[int(linking[0]), k] for k in range(n // 2)] + [[int(k), int(linking[1])] for k in linking]
    return Arcs(n, [(u, v) for u, v in pairs])


def assert_same(one: Graph, other: Graph) -> None:
    assert (one.num_nodes, one.num_arcs, one.is_weighted) == (
        other.num_nodes,
        other.num_arcs,
        other.is_weighted,
    )
    np.testing.assert_array_equal(one.outdegrees, other.outdegrees)
    np.testing.assert_array_equal(one.indegrees, other.indegrees)
    for node in range(one.num_nodes):
        np.testing.assert_array_equal(one.outlinks(node), other.outlinks(node))
        np.testing.assert_array_equal(one.inlinks(node), other.inlinks(node))
    for name in ("out_rows", "in_rows", "split_in_rows"):
        for left, right in zip(getattr(one, name), getattr(other, name), strict=True):
            assert (left is None) == (right is None)
            np.testing.assert_array_equal(left, right)


@given(both)
def test_rows_survive_the_coding_and_a_built_folder_passes_the_checks(tmp_path_factory, a: Arcs):
    folder = tmp_path_factory.mktemp("compressed") / "g"
    graph, plain = built(a, folder), a.graph()
    assert isinstance(graph, CompressedGraph)
    assert_same(graph, plain)
    assert_same(Graph.open(folder, verify=True), plain)


@pytest.mark.slow
def test_many_blocks_long_rows_and_far_sources(tmp_path: Path):
    a = a_web(5000, 20_000, 1)
    built(a, tmp_path / "g")
    graph = Graph.open(tmp_path / "g", verify=True)
    assert graph.num_nodes > 50 * BLOCK
    # Degrees from 63 on are stored in four bytes.
    assert graph.indegrees.max() > 63
    assert_same(graph, a.graph())


@pytest.mark.parametrize("nodes", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1])
def test_graphs_without_arcs(tmp_path: Path, nodes: int):
    built(Arcs(nodes, []), tmp_path / "g")
    assert_same(Graph.open(tmp_path / "g", verify=True), Arcs(nodes, []).graph())
    values = inlink.pagerank(Graph.open(tmp_path / "g")).values
    np.testing.assert_allclose(values, np.full(nodes, 1 / max(nodes, 1)), rtol=1e-12)


ALGORITHMS = {
    "pagerank": lambda g: inlink.pagerank(g, threads=1),
    "power": lambda g: inlink.pagerank(g, threads=1, method="power"),
    "personalized": lambda g: inlink.pagerank(g, personalization={0: 1.0, g.num_nodes - 1: 2.0}, threads=1),
    "fixed": lambda g: inlink.pagerank(g, threads=1, tol=None, max_iter=3),
    "trustrank": lambda g: inlink.trustrank(g, [0], threads=1),
    "cheirank": lambda g: inlink.cheirank(g, threads=1),
    "spam mass": lambda g: inlink.spam_mass(g, [0], threads=1),
    "hits": lambda g: inlink.hits(g, threads=1),
    "katz": lambda g: inlink.katz(g, alpha=0.001, threads=1),
    "harmonic": lambda g: inlink.harmonic(g, log2m=4, threads=1),
    "degree": lambda g: inlink.degree(g),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_rankings_have_the_same_bits(name: str):
    for a in (a_web(700, 3000, 2), Arcs(4, [(0, 1), (1, 2), (2, 0), (0, 3), (1, 1)])):
        plain, coded = ALGORITHMS[name](a.graph()), ALGORITHMS[name](built(a))
        assert coded.values.tobytes() == plain.values.tobytes()
        assert (coded.iterations, coded.error_bound) == (plain.iterations, plain.error_bound)


@given(arcs(max_nodes=30, min_nodes=1))
def test_pagerank_of_any_graph_has_the_same_bits(a: Arcs):
    plain, coded = (inlink.pagerank(graph, threads=1, tol=1e-9) for graph in (a.graph(), built(a)))
    assert coded.values.tobytes() == plain.values.tobytes()
    assert coded.error_bound == plain.error_bound


def test_pagerank_decodes_no_rows_into_memory(monkeypatch):
    graph = built(a_web(700, 3000, 3))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("all rows are decoded")

    monkeypatch.setattr(CompressedGraph, "_decoded", refuse)
    assert inlink.pagerank(graph, threads=2, tol=1e-6).converged
    assert inlink.trustrank(graph, [0]).converged
    assert len(near(graph, 0, hops=2)[0])
    assert sharing(graph, int(graph.outlinks(int(graph.outdegrees.argmax()))[0]))[1][0] > 0


@pytest.mark.slow
def test_graphs_are_derived_from_compressed_graphs(tmp_path: Path):
    names = [f"http://h{k % 7}.d{k % 3}.com/{k}" for k in range(60)]
    rng = np.random.default_rng(5)
    pairs = [(names[u], names[v]) for u, v in rng.integers(0, 60, (200, 2))]
    plain = Graph.from_arcs(pairs, into=tmp_path / "plain")
    coded = inlink.read(tmp_path / "plain", into=tmp_path / "coded", compress=True)
    assert isinstance(coded, CompressedGraph)
    assert list(coded.names) == list(plain.names)
    assert_same(coded.fold("host"), plain.fold("host"))
    assert_same(coded.fold("host", into=tmp_path / "hosts", compress=True), plain.fold("host"))
    assert_same(Graph.open(tmp_path / "hosts", verify=True), plain.fold("host"))
    assert_same(coded.subgraph(range(30), compress=True), plain.subgraph(range(30)))
    assert_same(coded.without_internal("domain", compress=True), plain.without_internal("domain"))
    assert_same(coded.largest_component(compress=True), plain.largest_component())
    assert_same(coded.reachable([0], compress=True), plain.reachable([0]))
    assert_same(coded.transpose(), plain.transpose())
    assert (coded.to_scipy() != plain.to_scipy()).nnz == 0
    assert coded.info().components == plain.info().components
    # Several folders are merged, and a copy without `compress` is plain again.
    again = inlink.read([tmp_path / "coded", tmp_path / "plain"], into=tmp_path / "both", compress=True)
    assert again.num_arcs == plain.num_arcs
    assert_same(inlink.read(tmp_path / "coded", into=tmp_path / "copy"), plain)
    assert not isinstance(Graph.open(tmp_path / "copy"), CompressedGraph)


def test_commands_make_and_read_compressed_folders(tmp_path: Path):
    (tmp_path / "links.tsv").write_text("http://a.com/1\thttp://b.com/\nhttp://b.com/\thttp://a.com/2\n")

    def run(*words: object) -> str:
        done = CliRunner().invoke(commands, [str(word) for word in words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    run("build", tmp_path / "links.tsv", "-o", tmp_path / "g", "--compress")
    assert "compressed" in run("info", tmp_path / "g", "--verify")
    run("rank", tmp_path / "g")
    assert "http://b.com/" in run("top", tmp_path / "g")
    run("fold", tmp_path / "g", "-o", tmp_path / "hosts", "--level", "host", "--compress")
    run("subgraph", tmp_path / "g", "-o", tmp_path / "part", "--largest-component", "weak", "--compress")
    run("export", tmp_path / "g", "-o", tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text().count("\n") >= 2
    for name in ("hosts", "part"):
        assert Folder(tmp_path / name, KIND, COMPRESSED).header.version == COMPRESSED


def test_a_folder_of_the_first_format_is_read():
    graph = Graph.open(Path(__file__).parents[1] / "golden" / "graph-3", verify=True)
    assert [(u, int(v)) for u in range(graph.num_nodes) for v in graph.outlinks(u)] == [
        (0, 1), (0, 2), (0, 70), (1, 0), (2, 2), (69, 0), (69, 1), (69, 2), (69, 3), (69, 4), (69, 68),
    ]  # fmt: skip
    assert graph.inlinks(2).tolist() == [0, 2, 69]


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "g"
    built(a_web(300, 900, 4), path)
    return path


FILES = ("shape", "linking", "in.starts", "in.rows", "in.blocks", "out.records", "out.blocks")


def rewritten(sound: Path, target: Path, name: str, values: np.ndarray) -> Path:
    """A copy of a folder in which a file has other values, and all checksums are right."""
    folder = Folder(sound, KIND, COMPRESSED)
    shutil.rmtree(target, ignore_errors=True)
    with building(target, KIND, COMPRESSED) as writer:
        for one in FILES:
            writer.write(one, values if one == name else folder.array(one))
    return target


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_wild_bytes_are_refused_or_hold_a_sound_graph(sound: Path, tmp_path: Path, name: str):
    rng = np.random.default_rng(6)
    values = Folder(sound, KIND, COMPRESSED).array(name)
    raw = values.view(np.uint8)
    wanted = Graph.open(sound)
    for _ in range(60):
        wild = raw.copy()
        at = rng.integers(0, len(wild), rng.integers(1, 4))
        wild[at] = (
            rng.integers(0, 256, len(at)) if rng.random() < 0.5 else wild[at] ^ (1 << rng.integers(0, 8))
        )
        path = rewritten(sound, tmp_path / "bad", name, wild.view(values.dtype))
        with contextlib.suppress(FolderError):
            # Several codes can mean the same rows; nothing else passes.
            assert_same(Graph.open(path, verify=True), wanted)


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_lengths_are_refused(sound: Path, tmp_path: Path, name: str):
    values = Folder(sound, KIND, COMPRESSED).array(name)
    for wrong in (values[:-1], values[:0], np.concatenate([values, values[-1:]])):
        path = rewritten(sound, tmp_path / "bad", name, wrong)
        with pytest.raises(FolderError):
            Graph.open(path, verify=True)


def test_a_changed_byte_is_found(sound: Path, tmp_path: Path):
    for name in FILES:
        shutil.rmtree(tmp_path / "g", ignore_errors=True)
        shutil.copytree(sound, tmp_path / "g")
        file = tmp_path / "g" / "1" / f"{name}.bin"
        raw = bytearray(file.read_bytes())
        raw[len(raw) // 2] ^= 4
        file.write_bytes(raw)
        with pytest.raises(FolderError):
            Graph.open(tmp_path / "g", verify=True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("in.rows", "the row at place 0 cannot be decoded"),
        ("out.records", "the record of node 0 cannot be decoded"),
    ],
)
def test_the_row_that_cannot_be_decoded_is_named(sound: Path, tmp_path: Path, name: str, said: str):
    values = Folder(sound, KIND, COMPRESSED).array(name).copy()
    values[:12] = 255 if name == "in.rows" else 0
    path = rewritten(sound, tmp_path / "bad", name, values)
    with pytest.raises(FolderError, match=said):
        Graph.open(path, verify=True)


def test_the_nodes_with_outlinks_are_those_of_the_bits(sound: Path, tmp_path: Path):
    # Another node's bit: as many linking nodes, and each source one place further.
    bits = np.unpackbits(Folder(sound, KIND, COMPRESSED).array("linking"), bitorder="little")
    first = int(np.flatnonzero(bits[:300])[0])
    free = int(np.flatnonzero(bits[:300] == 0)[0])
    bits[first], bits[free] = 0, 1
    path = rewritten(sound, tmp_path / "bad", "linking", np.packbits(bits, bitorder="little"))
    with pytest.raises(FolderError):
        Graph.open(path, verify=True)


@pytest.mark.slow
def test_the_size_of_a_page_graph(tmp_path: Path):
    if not CNR.exists():
        pytest.skip("cnr-2000 is not here")
    graph = inlink.read(CNR, into=tmp_path / "g", compress=True)
    assert graph.num_bytes / graph.num_arcs < 2.8
    plain = inlink.read(CNR)
    np.testing.assert_array_equal(graph.out_rows.nodes, plain.out_rows.nodes)
    one, other = (inlink.pagerank(g, threads=1, tol=1e-6) for g in (graph, plain))
    assert one.values.tobytes() == other.values.tobytes()

"""Graphs and crawls that were built apart become one graph: that of one build of all their sources."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import inlink
from archives import sample, write
from inlink import Graph
from inlink.errors import DamageError, FormatError, ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.build import build_graph, build_sources
from inlink.graph.source import Source

NAMES = [b"", b"a", b"aa", b"b", b"\xff", b"http://a.org/", b"http://b.org/x", b"z\0"]


def bytes_of(graph: Graph) -> dict[str, object]:
    """All of a graph's folder, but for the uuid."""
    header = json.loads((graph.path / "header.json").read_bytes())
    for name in ("uuid", "generation", "check"):
        header.pop(name, None)
    found: dict[str, object] = {"header": header}
    for path in sorted(graph.path.rglob("*.bin")):
        found[path.name] = path.read_bytes()
    return found


ARC = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES))
NUMBERED = st.tuples(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))), st.integers(10, 14))
WEIGHT = st.integers(1, 9).map(float) | st.sampled_from([0.5, 1.5, 2.0**32])


@st.composite
def parts(draw):
    """Sources with names: arcs, nodes without arcs, weights in all or none, crawled marks in some."""
    weighted = draw(st.booleans())
    found = []
    for _ in range(draw(st.integers(2, 4))):
        arcs = draw(st.lists(ARC, max_size=8))
        alone = draw(st.lists(st.sampled_from(NAMES), max_size=3))
        weights = draw(st.lists(WEIGHT, min_size=len(arcs), max_size=len(arcs))) if weighted else None
        crawled = (
            draw(st.none() | st.sets(st.integers(0, 2 * len(arcs) + len(alone) - 1)))
            if arcs or alone
            else None
        )
        found.append((arcs, alone, weights, crawled))
    return found


def batch(arcs, alone, weights, crawled) -> ArcBatch:
    names = [end for arc in arcs for end in arc] + alone
    ends = np.arange(2 * len(arcs), dtype=np.uint32).reshape(-1, 2)
    marks = None if crawled is None else np.array(sorted(crawled), np.uint32)
    values = None if weights is None else np.array(weights, np.float64)
    return ArcBatch(ends[:, 0], ends[:, 1], pa.array(names, pa.large_binary()), values, marks)


@pytest.mark.slow
@settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
@given(parts(), st.booleans(), st.sampled_from([None, "page"]))
def test_merged_graphs_are_one_build_of_all(tmp_path_factory, found, count, level):
    folder = tmp_path_factory.mktemp("merge")
    meta = {"sources": ["x (edgelist)", "y (edgelist)"], "skipped": {"cut, first in x at byte 3": 2}}
    whole = {
        "sources": meta["sources"] * len(found),
        "skipped": {"cut, first in x at byte 3": 2 * len(found)},
    }
    one = build_sources(
        [Source(iter([batch(*part)])) for part in found],
        count=count,
        level=level,
        meta=whole,
        into=folder / "one",
    )
    paths = [folder / str(k) for k in range(len(found))]
    for part, path in zip(found, paths, strict=True):
        build_graph([batch(*part)], count=count, level=level, meta=meta, into=path)
    merged = inlink.read(paths, into=folder / "merged")
    assert bytes_of(merged) == bytes_of(one)
    into_itself = inlink.read(paths, into=paths[0])
    assert bytes_of(into_itself) == bytes_of(one)
    shutil.rmtree(folder)


@settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
@given(st.lists(NUMBERED, min_size=2, max_size=3))
def test_graphs_without_names_are_merged_by_number(tmp_path_factory, found):
    folder = tmp_path_factory.mktemp("numbers")
    paths = [folder / str(k) for k in range(len(found))]
    for (arcs, nodes), path in zip(found, paths, strict=True):
        Graph.from_arcs(arcs, num_nodes=nodes, into=path)
    merged = inlink.read(paths)
    assert merged.num_nodes == max(nodes for _, nodes in found)
    expected = Graph.from_arcs([arc for arcs, _ in found for arc in arcs], num_nodes=merged.num_nodes)
    assert merged.out_rows.nodes.tolist() == expected.out_rows.nodes.tolist()
    assert merged.out_rows.offsets.tolist() == expected.out_rows.offsets.tolist()
    shutil.rmtree(folder)


def test_archives_and_edge_lists_built_apart_or_together_are_the_same(tmp_path: Path):
    raw = write(tmp_path / "a.warc.gz", sample()).read_bytes()
    (tmp_path / "b.warc.gz").write_bytes(raw[: len(raw) * 2 // 3])
    (tmp_path / "c.tsv").write_text("x\ty\ny\tz\t\n")
    (tmp_path / "d.tsv").write_text("w\tx\nx\ty\n")
    for names in (["a.warc.gz", "b.warc.gz", "a.warc.gz"], ["c.tsv", "d.tsv"]):
        for count in (False, True):
            files = [tmp_path / name for name in names]
            one = inlink.read(files, count=count, into=tmp_path / "one")
            apart = [tmp_path / f"g{k}" for k in range(len(files))]
            for file, path in zip(files, apart, strict=True):
                inlink.read(file, count=count, into=path)
            assert bytes_of(inlink.read(apart, into=tmp_path / "merged")) == bytes_of(one)


def test_crawls_and_graphs_are_merged(tmp_path: Path):
    with inlink.Crawl(tmp_path / "crawl", clock=inlink.VirtualClock(0)) as crawl:
        crawl.seed(["http://a.org/"])
        [lease] = crawl.next(1)
        crawl.crawled(lease.url, links=["http://b.org/", "http://c.org/"])
    with_crawl = build_graph(
        [batch([(b"http://b.org/", b"http://c.org/")], [b"http://0.org/"], None, {0})],
        level="page",
        into=tmp_path / "g",
    )
    merged = inlink.read([tmp_path / "crawl", tmp_path / "g"])
    assert merged.names[:] == ["http://0.org/", "http://a.org/", "http://b.org/", "http://c.org/"]
    assert merged.crawled.tolist() == [False, True, True, False]
    assert (merged.num_arcs, merged.level) == (3, "page")
    hosts = inlink.read([tmp_path / "crawl", with_crawl.path], level="host")
    assert (hosts.names[:], hosts.level) == (["org.0", "org.a", "org.b", "org.c"], "host")


def test_graphs_that_do_not_go_together(tmp_path: Path):
    named = Graph.from_arcs([("http://a.org/", "http://b.org/")], into=tmp_path / "named")
    Graph.from_arcs([(0, 1)], into=tmp_path / "numbered")
    named.fold("host", into=tmp_path / "hosts")
    inlink.read(named.path, level="domain", into=tmp_path / "domains")
    (tmp_path / "links.tsv").write_text("a\tb\n")
    paths = {path.name: path for path in tmp_path.iterdir()}
    for pair, options, message in (
        (
            ["named", "numbered"],
            {},
            "named, whose nodes have names, with .*numbered, whose nodes have numbers only",
        ),
        (["hosts", "domains"], {}, r"different levels: .*hosts \(hosts\) and .*domains \(domains\)"),
        (["named", "links.tsv"], {}, "different formats: edgelist, graph. Build a graph of each, and merge"),
        (["named", "named"], {"count": True}, "format graph has no option `count`"),
    ):
        with pytest.raises(ParameterError, match=message):
            inlink.read([paths[name] for name in pair], into=tmp_path / "no", **options)
    assert not (tmp_path / "no").exists()
    [damaged] = (tmp_path / "hosts").glob("*/out.nodes.bin")
    damaged.write_bytes(b"")
    with pytest.warns(UserWarning, match="left out 1 of 2 files. The first: .*hosts"):
        alone = inlink.read([paths["hosts"], paths["named"]], into=tmp_path / "alone")
    assert alone.names[:] == named.names[:]
    assert any(reason.startswith("file: ") for reason in alone.meta["skipped"])
    with pytest.raises((DamageError, FormatError, inlink.errors.InputError)):
        inlink.read([paths["hosts"], paths["named"]], strict=True)

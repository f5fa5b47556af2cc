"""LinkRank's scores as Nutch's own node database."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from inlink import Graph
from inlink.base.damage import Tally
from inlink.cli import commands
from inlink.errors import FolderError, OutputError, ParameterError
from inlink.graph.batches import ArcBatch
from inlink.graph.build import build_graph
from inlink.graph.names import Names
from inlink.nutch.dumps import write_nodes
from inlink.nutch.fields import TEXT, Writable
from inlink.nutch.sequencefile import records, value_class
from inlink.rank.linkrank import linkrank

NODE = Writable(
    "org.apache.nutch.scoring.webgraph.Node",
    lambda fields: (fields.int32(), fields.int32(), fields.float32(), fields.int32()),
)


def nodes_in(folder: Path) -> dict[bytes, tuple[int, int, float, int]]:
    assert [path.name for path in folder.iterdir()] == ["part-r-00000"]
    part = folder / "part-r-00000"
    assert {path.name for path in part.iterdir()} == {"data", "index", ".data.crc", ".index.crc"}
    assert value_class(part / "data") == NODE.name
    found = list(records(part / "data", TEXT, NODE, Tally(strict=True)))
    assert [name for name, _ in found] == sorted(name for name, _ in found)
    return dict(found)


def test_nodes_have_their_degrees_and_scores(tmp_path: Path):
    rng = np.random.default_rng(5)
    arcs = np.unique(rng.integers(0, 400, (2_000, 2)).astype(np.uint32), axis=0)
    ends = rng.permutation(400)
    names = Names.of([f"http://h{k}.org/ö" for k in ends])
    batch = ArcBatch(arcs[:, 0].copy(), arcs[:, 1].copy())
    graph = build_graph([batch], names=names, level="page", into=tmp_path / "web")
    with pytest.raises(FolderError, match="linkrank"):
        write_nodes(graph, tmp_path / "nodes")
    ranking = linkrank(graph)
    ranking.save(graph, "linkrank")
    assert write_nodes(graph, tmp_path / "nodes") == 400
    found = nodes_in(tmp_path / "nodes")
    for node in range(400):
        inlinks, outlinks, score, metadata = found[graph.names.raw(node)]
        assert (inlinks, outlinks, metadata) == (graph.indegrees[node], graph.outdegrees[node], 0)
        assert np.float32(score) == np.float32(ranking.values[node])


def test_the_command_and_what_it_refuses(tmp_path: Path):
    graph = Graph.from_arcs([("http://a.org/", "http://b.org/")], into=tmp_path / "web")
    linkrank(graph).save(graph, "linkrank")
    base = ["-q", "nutch", "scoreupdate", "--db", str(tmp_path / "web"), "--nodes", str(tmp_path / "nodes")]
    done = CliRunner().invoke(commands, base)
    assert done.exit_code == 0, done.output
    assert done.output == f"{tmp_path / 'nodes'}: 2 nodes with their scores\n"
    assert set(nodes_in(tmp_path / "nodes")) == {b"http://a.org/", b"http://b.org/"}
    assert isinstance(CliRunner().invoke(commands, base).exception, OutputError)
    for other in (["--crawl", "x"], ["--output", "x"], ["--format", "csv"]):
        assert CliRunner().invoke(commands, [*base, *other]).exit_code == 2
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        write_nodes(graph, tmp_path / "file" / "nodes")
    numbers = Graph.from_arcs([(0, 1)])
    with pytest.raises(ParameterError, match="no names"):
        write_nodes(numbers, tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "nodes", "web"]

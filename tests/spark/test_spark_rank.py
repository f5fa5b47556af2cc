"""PageRank of blocks of rows is that of the whole graph: in one process, and in tasks of Spark."""

import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import inlink
from archives import anchors, wat_json, wat_record, write
from inlink.cli import commands
from inlink.errors import FolderError, InputError, ParameterError
from inlink.graph.rows import node_bounds
from inlink.rank.inputs import distribution, strengths_by_place
from sparkworld import WORKER, Killer
from strategies import Arcs, arcs

pytest.importorskip("pyspark", reason="pyspark is not installed")

from inlink.spark import blocks
from inlink.spark import pagerank as rounds

sys.path.insert(0, str(Path(__file__).parents[2] / "demo"))
from fifteen_rounds import local_job, spark_job

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


# -- in one process ------------------------------------------------------------------------------------------


class InProcess(rounds.Rounds):
    """The rounds of a cluster, done here."""

    def __init__(self, graph: inlink.Graph, rest: blocks.Rest, made: list[blocks.Block]) -> None:
        self.num_nodes, self.size = graph.num_nodes, len(rest.linking)
        offsets = np.empty(self.num_nodes + 1, np.uint64)
        self.equation = rounds.Equation(offsets, np.empty(0, np.uint32), np.empty(0), *rest)
        self._made = made

    def _round(self, step: Callable[..., Any], length: int, *vectors: Any) -> Any:
        found, sums = np.full(length, np.nan), []
        for block in self._made:
            low, part, *sums_of_block = step(block, *vectors)
            found[low : low + len(part)] = part
            sums.append(tuple(sums_of_block))
        assert not np.isnan(found).any()
        return found, sums


def cut(graph: inlink.Graph, weighted: bool, teleport: Any, count: int) -> tuple[Any, list[blocks.Block]]:
    rows = graph.split_in_rows
    rest = blocks.Rest(rows.linking, strengths_by_place(graph, weighted), teleport, 0.85)
    bounds = node_bounds(rows.offsets, rows.linking, count).tolist()
    return rest, [blocks.block_of_rows(rows, weighted, rest, low, high) for low, high in pairwise(bounds)]


def same(one: blocks.Block, other: blocks.Block) -> None:
    assert (one.low, one.first) == (other.low, other.first)
    assert one.outside.tolist() == other.outside.tolist()
    for ours, theirs in zip(one.equation, other.equation, strict=True):
        assert np.asarray(ours).tolist() == pytest.approx(np.asarray(theirs).tolist(), rel=1e-15)


@settings(max_examples=40)
@given(st.one_of(arcs(min_nodes=1), arcs(min_nodes=1, weighted=True)), st.integers(1, 5), st.data())
def test_blocks_of_rows_and_of_arcs_are_equal_and_solve_the_equation(
    made: Arcs, count: int, data: st.DataObject
):
    graph = made.graph()
    if not graph.num_arcs:
        return
    n, weighted = made.num_nodes, made.weights is not None
    teleport, personal = np.full(1, 1 / n), None
    if data.draw(st.booleans()):
        personal = np.array(data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))) + 1e-3
        teleport = distribution(graph, personal, "personalization")
    rest, cuts = cut(graph, weighted, teleport, count)
    pairs, weights = np.array(made.pairs, np.uint32), np.array(made.weights or [])
    for block in cuts:
        same(blocks.unpack(blocks.pack(block), 0), block)
        low, high = block.low, block.low + block.size
        here = (pairs[:, 1] >= low) & (pairs[:, 1] < high)
        mine = weights[here] if weighted else weights
        same(blocks.block_of_arcs(pairs[here, 0], pairs[here, 1], mine, rest, low, high), block)
    cluster = InProcess(graph, rest, cuts)
    start = np.full(1, 1 / n)
    power = inlink.pagerank(graph, method="power", tol=None, max_iter=3, personalization=personal)
    assert rounds.power(cluster, start, None, 3)[0].tolist() == power.values.tolist()
    exact = inlink.pagerank(graph, tol=1e-13, personalization=personal).values
    x, _, bound = rounds.gauss_seidel(cluster, start, 1e-10, 1000)
    assert abs(x - exact).sum() <= min(bound, 1e-10) + 1e-13
    x, done, _ = rounds.gauss_seidel(cluster, start, None, 0)
    assert (x.tolist(), done) == ([1 / n] * n, 0)


def test_a_block_with_a_source_that_does_not_link_is_refused():
    graph = inlink.Graph.from_arcs([(0, 1), (1, 2)])
    rest, _ = cut(graph, False, np.full(1, 1 / 3), 1)
    with pytest.raises(ParameterError, match="from a node that does not link"):
        blocks.block_of_arcs(np.array([2], np.uint32), np.array([0], np.uint32), np.empty(0), rest, 0, 3)


# -- in tasks of Spark ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    if not shutil.which("java"):
        pytest.skip("java is not installed")
    session = inlink.spark.session("local[2]", {"spark.sql.shuffle.partitions": "4"})
    yield session
    session.stop()


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> inlink.Graph:
    """900 nodes, most of them dangling, named, with repeats and self-loops."""
    dice = np.random.default_rng(1)
    folder = tmp_path_factory.mktemp("graph")
    sources, targets = dice.integers(0, 300, 3000) ** 2 // 300, dice.integers(0, 900, 3000) ** 2 // 900
    lines = [f"n{s:03}\tn{t:03}\n" for s, t in zip([*sources, 1], [*targets, 899], strict=True)]
    (folder / "links.tsv").write_text("".join(lines))
    return inlink.read(folder / "links.tsv", count=True, into=folder / "g")


def table(spark: Any, graph: inlink.Graph, *, weighted: bool) -> Any:
    rows = graph.out_rows
    sources = np.repeat(np.arange(graph.num_nodes), np.diff(rows.offsets).astype(int))
    lines = [(int(s), int(t), float(w)) for s, t, w in zip(sources, rows.nodes, rows.weights, strict=True)]
    frame = spark.createDataFrame(lines, "source long, target int, weight double")
    return frame if weighted else frame.drop("weight").unionByName(frame.drop("weight").limit(100))


@pytest.mark.slow
def test_a_folder_is_ranked_as_on_one_machine(spark, graph):
    exact = inlink.pagerank(graph, tol=1e-13, personalization={"n007": 2, "n899": 1})
    ranking = inlink.spark.rank(
        graph, session=spark, tol=1e-10, personalization={"n007": 2, "n899": 1}, blocks=5
    )
    assert ranking.converged
    assert ranking.error_bound <= 1e-10
    assert abs(ranking.values - exact.values).sum() <= 1e-9
    assert ranking.graph_uuid == graph.uuid
    assert ranking.names[:] == graph.names[:]
    assert ranking.parameters["weighted"]


@pytest.mark.soak
@needs_proc
def test_killed_tasks_do_not_change_a_bit(spark, graph):
    options: dict[str, Any] = {"method": "power", "tol": None, "max_iter": 6, "weighted": False}
    whole = inlink.pagerank(graph, **options).values.tolist()
    kill, over = Killer(WORKER), threading.Event()
    kill.left = 2

    def attack() -> None:
        while kill.left and not over.wait(0.5):
            kill()

    thread = threading.Thread(target=attack)
    thread.start()
    try:
        assert inlink.spark.rank(graph, session=spark, blocks=4, **options).values.tolist() == whole
    finally:
        over.set()
        thread.join()
    assert kill.killed


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_a_table_of_arcs_is_ranked_as_a_graph(spark, graph, weighted):
    n = graph.num_nodes
    exact = inlink.pagerank(graph, tol=1e-13, weighted=weighted).values
    ranking = inlink.spark.rank(table(spark, graph, weighted=weighted), session=spark, tol=1e-5, blocks=3)
    assert abs(ranking.values - exact).sum() <= ranking.error_bound <= 1e-5
    assert len(ranking) == n


@pytest.mark.slow
def test_tables_that_are_no_arcs_are_refused(spark):
    def ranked(rows: list[Any], columns: str, **options: Any) -> inlink.Ranking:
        return inlink.spark.rank(spark.createDataFrame(rows, columns), session=spark, **options)

    with pytest.raises(
        ParameterError, match="must have integers in the columns source and target; it has a: string"
    ):
        ranked([("x", 1)], "a string, target long")
    with pytest.raises(ParameterError, match="the table of arcs has 1 row without a source"):
        ranked([(None, 1), (1, 2)], "source long, target long")
    with pytest.raises(ParameterError, match="a weight not above 0"):
        ranked([(1, 2, -1.0)], "source long, target long, weight double")
    with pytest.raises(ParameterError, match=r"node -1 of the table is not in \[0, "):
        ranked([(-1, 2)], "source long, target long")
    with pytest.raises(ParameterError, match=r"node 5 of the table is not in \[0, 5\)"):
        ranked([(5, 2)], "source long, target long", num_nodes=5)
    with pytest.raises(ParameterError, match="has no column weight"):
        ranked([(5, 2)], "source long, target long", weighted=True)
    assert ranked([], "source long, target long", num_nodes=4).values.tolist() == [0.25] * 4


@pytest.mark.slow
def test_graphs_that_cannot_be_ranked_are_refused(spark, graph, tmp_path):
    with pytest.raises(ParameterError, match="in memory only"):
        inlink.spark.rank(inlink.Graph(graph.out_rows), session=spark)
    with pytest.raises(ParameterError, match="`num_nodes` applies only to a table"):
        inlink.spark.rank(graph, session=spark, num_nodes=4)
    with pytest.raises(ParameterError, match="`damping`"):
        inlink.spark.rank(graph, session=spark, damping=2)
    shutil.copytree(graph.path, tmp_path / "g")
    opened = inlink.Graph.open(tmp_path / "g")
    (tmp_path / "g").rename(tmp_path / "h")
    with pytest.raises(FolderError, match="Driver and executors must share the folder"):
        inlink.spark.rank(opened, session=spark)


def run(*arguments: Any) -> str:
    result = CliRunner().invoke(commands, ["-q", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
def test_the_command_ranks_folders_and_tables(spark, graph, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = run("spark", "rank", graph.path, "--name", "far", "--unweighted", "--tol", "1e-5")
    assert said.startswith("far: converged after")
    exact = inlink.pagerank(graph, weighted=False, tol=1e-13).values
    assert abs(inlink.Ranking.load(graph, "far").values - exact).sum() <= 1e-5
    rows = graph.out_rows
    sources = np.repeat(np.arange(graph.num_nodes), np.diff(rows.offsets).astype(int))
    Path("edges.txt").write_text("".join(f"{s}\t{t}\n" for s, t in zip(sources, rows.nodes, strict=True)))
    run("spark", "rank", "edges.txt", "-o", "ranks.parquet", "--tol", "1e-5")
    assert abs(inlink.Ranking.read("ranks.parquet").values - exact).sum() <= 1e-5
    Path("edges.txt").write_text("a\tb\n")
    with pytest.raises(ParameterError, match="the table of arcs has 1 row without a source"):
        run("spark", "rank", "edges.txt", "-o", "ranks.csv")
    with pytest.raises(InputError, match=r"none.parquet: cannot be read"):
        run("spark", "rank", "none.parquet", "-o", "ranks.csv")


def job_by_hand(pages: dict[str, set[str]]) -> dict[str, float]:
    """The job, as its six programs do it."""
    outgoing: dict[str, set[str]] = {name: set() for links in pages.values() for name in links}
    outgoing |= pages
    size = len(outgoing)
    state = dict.fromkeys(outgoing, 1.0 / size)
    for _ in range(15):
        dangling = sum(state[name] for name in sorted(outgoing) if not outgoing[name])
        messages: dict[str, list[float]] = {name: [] for name in outgoing}
        for name in sorted(outgoing):
            for target in outgoing[name]:
                messages[target].append(state[name] / len(outgoing[name]))
        state = {
            name: 0.85 * sum(messages[name]) + 0.85 * dangling / size + (1 - 0.85) / size for name in outgoing
        }
    return state


@pytest.mark.slow
def test_the_tutorial_job_has_equal_digits_both_ways(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dice = np.random.default_rng(3)
    hosts = [f"www.h{k}.example.com" for k in range(40)]
    files, pages = [], {}
    for part in range(3):
        records = []
        for _ in range(20):
            page, *links = (hosts[int(k)] for k in dice.integers(0, 40, 5) ** 2 // 40)
            records.append(
                wat_record(wat_json(f"http://{page}/", anchors(*(f"http://{link}/x" for link in links))))
            )
            pages.setdefault(page, set()).update(links)
        files.append(write(Path(f"{part}.wat.gz"), records))
    local, far = local_job(files, "local"), spark_job(files, "far", spark)
    assert far.values.tolist() == local.values.tolist()
    assert far.names[:] == local.names[:]
    expected = job_by_hand(pages)
    named = {".".join(reversed(name.split("."))): value for name, value in local.items()}
    assert json.dumps(sorted(named)) == json.dumps(sorted(expected))
    for name, value in expected.items():
        assert named[name] == pytest.approx(value, rel=1e-13)

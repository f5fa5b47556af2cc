"""The benchmarks: the generated graph and its twin, the reference, and both harnesses from end to end."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import urljoin

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import itertools

from bench import extractors, kernels, pipelines, rank, results, tables, wat, webgraph
from bench.extractors import cc_pyspark_hosts
from bench.peers import base

from archives import batches_of

pytestmark = pytest.mark.slow

MASK = 2**64 - 1


# -- twins ------------------------------------------------------------------------------------------------


class Dice:
    """splitmix64 in Python's whole numbers."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def draw(self, below: int) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        return ((z >> 32) * below) >> 32

    def chance(self, share: float) -> bool:
        return self.draw(2**32) < int(share * 2**32)


def slow_rows(hosts: list[int], degrees: list[int], most: int, seed: int) -> list[list[int]]:
    dice, rows, all_arcs, missing = Dice(seed), [], [], 0

    def target(node: int, start: int, end: int) -> int:
        if end - start > 1 and dice.chance(0.80):
            if dice.chance(0.60):
                distance = 1 + dice.draw(2 ** dice.draw(8))
                return min(node + distance, end - 1) if dice.chance(0.5) else max(node - distance, start)
            return start + min(dice.draw(end - start) for _ in range(3))
        if all_arcs and dice.chance(0.75):
            return all_arcs[dice.draw(len(all_arcs))]
        count, popularity = len(hosts) - 1, 1
        while 2 * popularity <= count and dice.chance(0.94):
            popularity *= 2
        return hosts[(dice.draw(popularity) * 0x9E3779B97F4A7C15 & MASK) % count]

    for start, end in itertools.pairwise(hosts):
        for node in range(start, end):
            row: list[int] = []
            if degrees[node]:
                asked = degrees[node] + missing
                wanted = min(asked, most)
                if dice.chance(0.15):
                    row.append(node)
                if node > start and dice.chance(0.60):
                    model = rows[node - 1 - dice.draw(min(7, node - start))]
                    for one in model:
                        if len(row) < wanted and dice.chance(0.75):
                            row.append(one)
                for _ in range(4):
                    while len(row) < wanted:
                        row.append(target(node, start, end))
                    row = sorted(set(row))
                    if len(row) == wanted:
                        break
                missing = asked - len(row)
            rows.append(row)
            all_arcs += row
    return rows


def rows_of(offsets: np.ndarray, nodes: np.ndarray) -> list[list[int]]:
    return [nodes[int(a) : int(b)].tolist() for a, b in itertools.pairwise(offsets)]


@pytest.mark.parametrize(("nodes", "arcs", "seed"), [(1, 3, 1), (40, 300, 2), (700, 5000, 3)])
def test_rows_are_those_of_the_twin(nodes: int, arcs: int, seed: int) -> None:
    hosts, degrees = webgraph._host_starts(nodes, seed), webgraph._degrees(nodes, arcs, seed)
    arrays = webgraph.generate(nodes, arcs, seed)
    assert rows_of(arrays.offsets, arrays.targets) == slow_rows(hosts.tolist(), degrees.tolist(), nodes, seed)


def test_the_twin_of_power_sweep_is_a_matrix() -> None:
    arrays = webgraph.generate(60, 400, 5)
    A = np.zeros((60, 60))
    for node, row in enumerate(rows_of(arrays.offsets, arrays.targets)):
        A[node, row] = 1
    x, share = np.random.default_rng(1).random(60), np.random.default_rng(2).random(60)
    wanted = 0.3 + 0.85 * A.T @ share
    change = np.abs(wanted - x).sum()
    assert kernels.power_sweep(arrays.in_offsets, arrays.in_sources, share, 0.3, 0.85, x) == pytest.approx(
        change
    )
    np.testing.assert_allclose(x, wanted, rtol=1e-14)


# -- the generated graph ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def web() -> webgraph.Arrays:
    return webgraph.generate(20_000, 300_000, 7)


def test_rows_increase_and_hold_nothing_twice(web: webgraph.Arrays) -> None:
    for row in rows_of(web.offsets, web.targets):
        assert all(a < b for a, b in itertools.pairwise(row))
    assert web.offsets[-1] == len(web.targets) == len(web.in_sources)
    assert 0.999 * 300_000 < web.num_arcs <= 300_000
    assert int(web.targets.max()) < web.num_nodes


def test_both_directions_hold_the_same_arcs(web: webgraph.Arrays) -> None:
    back: list[list[int]] = [[] for _ in range(web.num_nodes)]
    for node, row in enumerate(rows_of(web.offsets, web.targets)):
        for target in row:
            back[target].append(node)
    assert rows_of(web.in_offsets, web.in_sources) == back


def test_it_looks_like_the_web(web: webgraph.Arrays) -> None:
    hosts = webgraph._host_starts(20_000, 7)
    host_of = np.repeat(np.arange(len(hosts) - 1), np.diff(hosts).astype(np.int64))
    sources = np.repeat(np.arange(20_000), np.diff(web.offsets).astype(np.int64))
    within = (host_of[sources] == host_of[web.targets]).mean()
    assert 0.4 < within < 0.9  # locality: by chance it would be under 0.02
    assert 0.2 < (np.diff(web.offsets) == 0).mean() < 0.3  # dangling
    assert 0.1 < (sources == web.targets).sum() / 20_000 < 0.4  # self-loops
    indegrees = np.sort(np.diff(web.in_offsets).astype(int))[::-1]
    assert indegrees[0] > 100 * indegrees.mean()  # hubs
    assert np.diff(web.offsets).max() > 50 * 15


def test_a_seed_gives_one_graph_and_another_seed_another(web: webgraph.Arrays) -> None:
    again, other = webgraph.generate(20_000, 300_000, 7), webgraph.generate(20_000, 300_000, 8)
    assert all(np.array_equal(a, b) for a, b in zip(web, again, strict=True))
    assert not np.array_equal(web.targets[:1000], other.targets[:1000])


def test_files_give_the_graph_back(web: webgraph.Arrays, tmp_path: Path) -> None:
    webgraph.write_npy(web, tmp_path / "web")
    for mapped in (True, False):
        assert all(
            np.array_equal(a, b)
            for a, b in zip(web, webgraph.load(tmp_path / "web", mapped=mapped), strict=True)
        )


def test_lines_hold_every_arc_between_names_that_differ(tmp_path: Path) -> None:
    arrays = webgraph.generate(3000, 20_000, 4)
    text, ends = webgraph.host_names(3000)
    names = [bytes(text[int(a) : int(b)]).decode() for a, b in itertools.pairwise(ends)]
    assert len(set(names)) == 3000
    assert all("." in name for name in names)
    count = webgraph.write_lines(arrays, tmp_path / "arcs.tsv", repeated=0.1)
    lines = Counter((tmp_path / "arcs.tsv").read_text().splitlines())
    wanted = {
        f"{names[i]}\t{names[j]}"
        for i, row in enumerate(rows_of(arrays.offsets, arrays.targets))
        for j in row
    }
    assert set(lines) == wanted
    assert sum(lines.values()) == count
    assert 0.08 < count / len(wanted) - 1 < 0.12
    assert max(lines.values()) == 2


def test_memory_is_that_of_the_process_itself() -> None:
    held = np.ones(30_000_000)  # 240 MB here must not be counted there
    code = "from bench.results import memory; print(memory('VmHWM'))"
    root = str(Path(__file__).parents[1])
    told = int(subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True).stdout)
    assert 1e6 < told < held.nbytes
    assert results.memory("VmHWM") > held.nbytes


# -- the harnesses ----------------------------------------------------------------------------------------


def test_the_reference_solves_the_equation() -> None:
    arrays = webgraph.generate(80, 400, 6)
    A = np.zeros((80, 80))
    for node, row in enumerate(rows_of(arrays.offsets, arrays.targets)):
        A[node] = 1 / 80 if not row else 0
        A[node, row] = 1 / len(row) if row else 0
    exact = np.linalg.solve(np.eye(80) - base.DAMPING * A.T, np.full(80, (1 - base.DAMPING) / 80))
    assert np.abs(rank.reference(arrays) - exact).sum() < 1e-12


def test_peers_answer_for_themselves() -> None:
    arrays = webgraph.generate(300, 2000, 9)
    exact = rank.reference(arrays)
    for name in base.ALL:
        peer = base.peer(name)
        assert peer.NAME
        assert peer.COMPUTES
        if (
            name in ("inlink", "inlink_one_thread", "scipy_power", "networkx", "igraph")
            and peer.available() is None
        ):
            setting = 200 if peer.SETTINGS is base.ROUNDS else 1e-9
            assert np.abs(peer.run(peer.load(arrays), setting) - exact).sum() < 1e-8, name


def test_ranking_is_compared_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "PYTHONPATH", str(Path(__file__).parents[1]) + ":" + str(Path(__file__).parents[1] / "src")
    )
    webgraph.write_npy(webgraph.generate(500, 5000, 3), tmp_path / "small")
    rank.main(
        ["--graph", "small", "--rounds", "2", "--peers", "inlink_one_thread", "scipy_power"]
        + ["--data", str(tmp_path), "--results", str(tmp_path / "results"), "--error", "1e-3"]
    )
    told = json.loads((tmp_path / "results" / "rank-small.json").read_text())
    for row in told["rows"].values():
        assert "skipped" not in row, row
        assert row["error"] <= 1e-3
        assert len(row["runs"]) == 2
        assert all(run["wall"] > 0 and run["peak"] >= 0 for run in row["runs"])
    rounds = told["rows"]["scipy_power"]["setting"]
    arrays = webgraph.load(tmp_path / "small")
    scipy_power = base.peer("scipy_power")
    before = scipy_power.run(scipy_power.load(arrays), rounds - 1)
    assert np.abs(before - rank.reference(arrays)).sum() > 1e-3  # the loosest setting that does
    table = tables.tables(tmp_path / "results")["rank-small"]
    assert "| inlink, one thread |" in table
    assert "| SciPy power iteration |" in table


def test_a_peer_that_never_gets_there_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank, "_apart", lambda name, folder, setting, what, limit: {"error": 0.25})
    told = rank.search("scipy_power", tmp_path, 1e-6, 10)
    assert told == "never reaches 1e-06; error 2.5e-01 at its tightest tolerance"


@pytest.mark.parametrize("command", ["build", "extract"])
def test_pipelines_are_compared_from_end_to_end(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(
        "PYTHONPATH", str(Path(__file__).parents[1]) + ":" + str(Path(__file__).parents[1] / "src")
    )
    peers = ["inlink", "pyarrow_scipy"] if command == "build" else ["inlink_pages", "cc_pyspark_pages"]
    pipelines.main(
        command,
        [
            "--size",
            "60",
            "--rounds",
            "1",
            "--data",
            str(tmp_path),
            "--results",
            str(tmp_path),
            "--peers",
            *peers,
        ],
    )
    table = capsys.readouterr().out
    told = json.loads((tmp_path / f"{command}-60.json").read_text())
    counts = [row["runs"][0]["count"] for row in told["rows"].values()]
    assert len(counts) == 2
    # The other extractor looks at no header and no <meta>, and refuses no link.
    assert counts[1] > 0
    assert abs(counts[0] - counts[1]) <= (0.1 * counts[1] if command == "extract" else 0)
    assert table.count("| ") > 10


def test_both_ways_of_extraction_find_nearly_the_same_pairs(tmp_path: Path) -> None:
    path = tmp_path / "made.warc.wat.gz"
    assert (
        wat.write_wat(path, pages=40, links=30)
        == wat.write_wat(tmp_path / "again.gz", pages=40, links=30)
        > 600
    )
    assert path.read_bytes() == (tmp_path / "again.gz").read_bytes()
    ours: set[tuple[str, str]] = set()
    for batch in batches_of(path, level="host", links="all"):
        names = [name.decode() if isinstance(name, bytes) else name for name in batch.names.to_pylist()]
        ours |= {(names[i], names[j]) for i, j in zip(batch.sources, batch.targets, strict=True)}
    theirs = set()
    for page, links, _ in cc_pyspark_hosts.pages(path):
        source = cc_pyspark_hosts.reversed_host(page)
        for link in links:
            target = cc_pyspark_hosts.reversed_host(urljoin(page, link))
            if target and target != source:
                theirs.add((source, target))
    # The other extractor looks at no header, <meta> or <base>, and reads odd URLs as urllib does.
    assert len(ours & theirs) > 0.8 * len(ours | theirs)
    assert len(ours) > 50
    assert set(extractors.ALL) == {p.stem for p in Path(extractors.__file__).parent.glob("*.py")} - {
        "__init__"
    }

"""The memory that is left, by the system and by cgroups, and what graphs of numbers may take of it."""

import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import inlink
from inlink import plot
from inlink.base import memory
from inlink.base.memory import memory_bounded
from inlink.errors import ParameterError
from inlink.graph.components import components
from inlink.graph.cores import core_numbers
from inlink.graph.names import NameTable
from inlink.graph.neighbours import chain, near
from inlink.rank.linkrank import linkrank
from inlink.rank.loops import loops

GB = 1 << 30


def machine(root: Path, files: dict[str, object]) -> None:
    """Write the files of ``proc`` and ``sys`` below a folder."""
    for name, content in {"proc/meminfo": f"MemAvailable: {8 * GB >> 10} kB\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")


V2 = "sys/fs/cgroup"
V1 = "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({}, 8 * GB),
        ({"proc/self/cgroup": "0::/a/b", f"{V2}/a/b/memory.max": "max"}, 8 * GB),
        # The least along the path counts, and what is used is taken off.
        (
            {
                "proc/self/cgroup": "0::/a/b",
                f"{V2}/a/b/memory.max": 4 * GB,
                f"{V2}/a/b/memory.current": GB,
                f"{V2}/a/memory.max": 2 * GB,
                f"{V2}/a/memory.current": GB,
            },
            GB,
        ),
        ({"proc/self/cgroup": "0::/a", f"{V2}/a/memory.high": 3 * GB, f"{V2}/a/memory.current": GB}, 2 * GB),
        # Pages of files can be dropped.
        (
            {
                "proc/self/cgroup": "0::/",
                f"{V2}/memory.max": 2 * GB,
                f"{V2}/memory.current": 2 * GB,
                f"{V2}/memory.stat": f"anon 1\ninactive_file {GB}\nactive_file 7",
            },
            GB + 7,
        ),
        ({"proc/self/cgroup": "0::/a", f"{V2}/a/memory.max": 1, f"{V2}/a/memory.current": 2}, 0),
        # Version 1; the path of the group is that outside the container.
        (
            {
                "proc/self/cgroup": "5:cpu:/x\n4:memory:/docker/f00\n0::/docker/f00",
                f"{V1}/memory.limit_in_bytes": 3 * GB,
                f"{V1}/memory.usage_in_bytes": GB,
                f"{V1}/memory.stat": "total_inactive_file 5",
            },
            2 * GB + 5,
        ),
        (
            {
                "proc/self/cgroup": "4:memory:/a",
                f"{V1}/a/memory.limit_in_bytes": 2**63,
                f"{V1}/a/memory.usage_in_bytes": 1,
            },
            8 * GB,
        ),
        ({"proc/self/cgroup": "0::/a", f"{V2}/a/memory.max": "rubbish"}, 8 * GB),
    ],
)
def test_the_memory_that_is_left(tmp_path, monkeypatch, files, left):
    monkeypatch.setattr(memory, "ROOT", tmp_path)
    machine(tmp_path, files)
    assert memory.memory_left() == left


def test_nothing_is_known_without_the_files(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "ROOT", tmp_path)
    assert memory.memory_left() is None
    memory.require_memory(1 << 60, "all")


BIG = 100_000_000
INPUTS = {
    "l.tsv": (f"# x\n0\t1\n\n0\t{BIG}\n1\t2\n", r"l\.tsv, line 4: node 100,000,000 means 100,000,001 nodes"),
    "l.csv": (f"source,target\n0,1\n{BIG},1\n", r"l\.csv, line 3: node 100,000,000 means"),
    "n.tsv": (f"# inlink: nodes={BIG}\n0\t1\n", r"n\.tsv: its comment # inlink: nodes=100000000: node 99,999,999"),
    "m.mtx": (
        f"%%MatrixMarket matrix coordinate pattern general\n% x\n{BIG} {BIG} 1\n1 2\n",
        r"m\.mtx, line 3: node 99,999,999 means",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INPUTS)
def test_numbers_that_the_input_does_not_justify_are_refused(tmp_path, name):
    text, said = INPUTS[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(ParameterError, match=rf"{said}.*--max-node \d+.*--nodes names") as told:
        inlink.read(tmp_path / name, into=tmp_path / "g")
    assert "\n" not in str(told.value)
    with pytest.raises(ParameterError, match=r"is above `max_node` \(--max-node 7\)"):
        inlink.read(tmp_path / name, into=tmp_path / "g", max_node=7)
    assert not (tmp_path / "g").exists()
    # Several files: the wrong number is not taken for a file that cannot be read.
    if name == "l.tsv":
        with pytest.raises(ParameterError, match=said):
            inlink.read([tmp_path / name, tmp_path / name])


def test_formats_of_arrays_are_bounded_alike(tmp_path):
    graph = inlink.Graph.from_arcs([(0, 1)])
    for name in ("g.parquet", "g.sqlite"):
        inlink.write(graph, tmp_path / name)
        assert inlink.read(tmp_path / name, max_node=1).num_nodes == 2
        with pytest.raises(ParameterError, match="max_node"):
            inlink.read(tmp_path / name, max_node=0)
    scipy.sparse.save_npz(tmp_path / "m.npz", scipy.sparse.coo_array(([1], ([0], [1])), shape=(BIG, BIG)))
    with pytest.raises(ParameterError, match=r"m\.npz: its shape: node 99,999,999"):
        inlink.read(tmp_path / "m.npz")


def test_a_list_in_which_each_number_occurs_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "FREE_NODES", 0)
    monkeypatch.setattr("inlink.graph.collect.FREE_NODES", 0)
    numbers = np.random.default_rng(1).permutation(20_000) + 80_000
    (tmp_path / "l.tsv").write_text(
        "".join(f"{a:08}\t{b:08}\n" for a, b in (numbers % 20_000).reshape(-1, 2))
    )
    assert inlink.read(tmp_path / "l.tsv").num_nodes == 20_000
    with pytest.raises(ParameterError, match=r"`max_node` applies only to files|max_node"):
        inlink.read(scipy.sparse.eye_array(3), max_node=2)


def test_graphs_larger_than_a_cgroup_are_refused_before_they_are_built(tmp_path, monkeypatch):
    (tmp_path / "l.tsv").write_text(f"0\t{BIG}\n")
    monkeypatch.setattr(memory, "ROOT", tmp_path)
    machine(
        tmp_path, {"proc/self/cgroup": "0::/a", f"{V2}/a/memory.max": GB, f"{V2}/a/memory.current": GB // 2}
    )
    with pytest.raises(
        ParameterError,
        match=r"l\.tsv, line 1: the 100,000,001 nodes need 2,400 MB of memory, and 537 MB are left",
    ):
        inlink.read(tmp_path / "l.tsv", max_node=BIG)
    machine(tmp_path, {f"{V2}/a/memory.current": GB - 1})
    monkeypatch.setattr(memory, "_LITTLE", 1 << 10)
    with pytest.raises(ParameterError, match="more than 2,867 different names need"):
        NameTable().number([f"{k}" for k in range(5000)])


@pytest.fixture
def no_memory(tmp_path, monkeypatch):
    """A function after which no memory is left in the process's cgroup, however little is asked for."""

    def take():
        machine(tmp_path, {"proc/self/cgroup": "0::/a", f"{V2}/a/memory.max": 0, f"{V2}/a/memory.current": 0})
        monkeypatch.setattr(memory, "ROOT", tmp_path)
        monkeypatch.setattr(memory, "_LITTLE", 0)

    return take


def ranking(graph):
    return inlink.Ranking(np.ones(graph.num_nodes), algorithm="one", names=graph.names)


WORK = {
    **{
        name: getattr(inlink, name)
        for name in (
            "pagerank", "mcmc", "cheirank", "hits", "salsa", "opic", "degree", "closeness", "harmonic", "betweenness",
            "percolation", "eigenvector", "katz",
        )
    },
    "power": lambda graph: inlink.pagerank(graph, method="power"),
    "trustrank": lambda graph: inlink.trustrank(graph, ["http://a.example/0"]),
    "anti_trustrank": lambda graph: inlink.anti_trustrank(graph, ["http://a.example/0"]),
    "spam_mass": lambda graph: inlink.spam_mass(graph, ["http://a.example/0"]),
    "sampled paths": lambda graph: inlink.betweenness(graph, epsilon=0.1),
    "HyperBall": lambda graph: inlink.harmonic(graph, exact=False),
    "loops": loops,
    "linkrank": linkrank,
    "info": inlink.Graph.info,
    "components": lambda graph: components(graph.out_rows),
    "structure": inlink.structure,
    "cores": lambda graph: core_numbers(graph.out_rows, graph.split_in_rows),
    "reachable": lambda graph: graph.reachable([0]),
    "transpose": lambda graph: inlink.Graph(graph.out_rows).in_rows,
    "inlinks": lambda graph: graph.in_rows,
    "split inlinks": lambda graph: inlink.Graph(graph.out_rows).split_in_rows,
    "subgraph": lambda graph: graph.subgraph([0, 1]),
    "fold": lambda graph: graph.fold("host"),
    "without_internal": lambda graph: graph.without_internal("host"),
    "near": lambda graph: near(graph, 0),
    "path": lambda graph: chain(graph, 0, 2),
    "diff": lambda graph: inlink.diff(ranking(graph), ranking(graph)),
    "export": lambda graph: inlink.write(graph, "unwritten.tsv"),
    "replay": lambda graph: inlink.replay(graph),
    "picture of links": plot.degrees,
    "picture of ranks": lambda graph: plot.ranks(ranking(graph)),
}  # fmt: skip


@pytest.mark.parametrize("name", WORK)
def test_work_on_a_graph_is_refused_before_it_begins(tmp_path, monkeypatch, no_memory, name):
    monkeypatch.chdir(tmp_path)
    arcs = [(f"http://a.example/{k}", f"http://b.example/{k % 3}") for k in range(9)]
    graph = inlink.Graph.from_arcs(arcs)
    no_memory()
    with pytest.raises(
        ParameterError, match=r"need \d+ MB of memory, and 0 MB are left .*more memory"
    ) as refusal:
        WORK[name](graph)
    assert "\n" not in str(refusal.value)


def test_compressed_rows_are_not_decoded_into_too_little_memory(tmp_path, no_memory):
    arcs = inlink.Graph.from_arcs([(0, 1), (1, 2)]).out_rows
    graph = inlink.read(inlink.Graph(arcs).to_scipy(), into=tmp_path / "g", compress=True)
    no_memory()
    for side in ("out_rows", "split_in_rows"):
        with pytest.raises(ParameterError, match="rows of 3 nodes need"):
            getattr(graph, side)


def test_a_graph_is_checked_only_if_there_is_memory(tmp_path, no_memory):
    for compress in (False, True):
        graph = inlink.Graph.from_arcs([(0, 1)])
        inlink.write(graph, tmp_path / "l.tsv")
        inlink.read(tmp_path / "l.tsv", into=tmp_path / f"g{compress}", compress=compress)
    no_memory()
    for compress in (False, True):
        with pytest.raises(ParameterError, match=rf"g{compress}: checks of 2 nodes need"):
            inlink.Graph.open(tmp_path / f"g{compress}", verify=True)


def test_names_are_counted_as_they_come(no_memory):
    table = NameTable()
    table.number(["a"])
    no_memory()
    with pytest.raises(ParameterError, match="more than 1 different names need"):
        table.number(["b" * 100_000])
    with pytest.raises(ParameterError, match="need"):
        inlink.Graph.from_arcs([("a", "b")])


def test_a_crawl_without_a_checkpoint_is_refused_before_it_is_folded(tmp_path, no_memory):
    with inlink.Crawl(tmp_path / "c") as crawl:
        crawl.seed(["http://a.example/"])
    no_memory()
    with pytest.raises(ParameterError, match="c: 1 page behind the checkpoint need"):
        inlink.Crawl(tmp_path / "c")


@pytest.mark.slow
def test_the_estimates_of_rankings_hold():
    """Each ranking has the memory that it asks for, and 32 MB of address space for all else."""
    program = """
import re, resource
from pathlib import Path
import numpy as np
import inlink
from inlink.graph.batches import ArcBatch
from inlink.graph.build import build_graph
from inlink.rank import inputs

def ring(nodes):
    numbers = np.arange(nodes, dtype=np.uint32)
    return build_graph([ArcBatch(numbers, np.roll(numbers, 1))])

def limit(needed, what):
    size = int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
    resource.setrlimit(resource.RLIMIT_AS, (size + needed + (32 << 20), -1))

small, large = ring(1000), ring(1_000_000)
given = {"personalization": np.ones, "start": np.ones}
for name, options in (
    ("pagerank", {}),
    ("pagerank", given),
    ("pagerank", {"method": "power", "max_iter": 3}),
    ("pagerank", {"method": "power", "max_iter": 3, **given}),
    ("hits", {"max_iter": 3}),
    ("mcmc", {"walks": 2}),
    ("salsa", {}),
    ("degree", {}),
    ("betweenness", {"epsilon": 0.4}),
):
    rank = getattr(inlink, name)
    threads = {} if name in ("salsa", "degree") else {"threads": 1}

    def values(graph):
        return {key: value(len(graph)) if callable(value) else value for key, value in options.items()} | threads

    # All code is compiled before the limit is set.
    rank(small, **values(small))
    last = values(large)
    inputs.require_memory = limit
    rank(large, **last)
    inputs.require_memory = lambda needed, what: None
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    print(name)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 9


@pytest.mark.slow
def test_a_build_stays_within_its_bound_of_address_space(tmp_path):
    """The most nodes that a small list may have, in 300 MB more than the process has at its start."""
    (tmp_path / "l.tsv").write_text(f"0\t{memory.FREE_NODES - 1}\n")
    program = """
import re, resource, sys
from pathlib import Path
import inlink
inlink.read(sys.argv[2])
size = int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (size + 300_000_000,) * 2)
print(inlink.read(sys.argv[1]).num_nodes)
"""
    (tmp_path / "small.tsv").write_text("0\t1\n1\t0\n")
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "l.tsv", tmp_path / "small.tsv"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{memory.FREE_NODES}\n"


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="the system does not tell the size of a process"
)
def test_allocations_are_bounded_in_the_block_only():
    def work():
        with pytest.raises(MemoryError), memory_bounded(1 << 28):
            bytearray(1 << 30)
        with memory_bounded(1 << 28):
            assert len(bytearray(1 << 20)) == 1 << 20

    before = resource.getrlimit(resource.RLIMIT_AS)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: work(), range(8)))
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert len(bytearray(1 << 30)) == 1 << 30

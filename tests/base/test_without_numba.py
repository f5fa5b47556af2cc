"""All ranks of all kinds of graphs work in a base install, which has machine code and no Numba."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys

sys.modules["numba"] = None
import numpy as np

import inlink
from inlink import Graph

dice = np.random.default_rng(1)
pairs = [(f"http://h{a % 7}.example/{a}", f"http://h{b % 7}.example/{b}") for a, b in dice.integers(0, 60, (400, 2))]
graphs = [Graph.from_arcs(pairs, count=count, into=folder) for count in (False, True) for folder in (None, f"{count}")]
for count in (False, True):
    inlink.read(str(count), into=f"compressed{count}", compress=True)
    graphs += [Graph.open(str(count)), Graph.open(f"compressed{count}")]
chosen = [graphs[0].names[0]]
walks = {"walks": 2, "seed": 1}
calls = [
    ("pagerank", {}), ("pagerank", {"threads": 1}), ("pagerank", {"threads": 3}), ("pagerank", {"weighted": False}),
    ("pagerank", {"method": "power"}), ("pagerank", {"personalization": dict.fromkeys(chosen, 1)}),
    ("hits", {}), ("salsa", {}), ("cheirank", {}), ("linkrank", {}), ("eigenvector", {}), ("katz", {}),
    ("opic", {}), ("opic", {"order": "cyclic"}), ("opic", {"order": "random", "seed": 1}), ("mcmc", walks),
    ("mcmc", {**walks, "method": "end-point"}), ("mcmc", {**walks, "order": "random"}),
    ("trustrank", {"trusted": chosen}), ("anti_trustrank", {"spam": chosen}), ("spam_mass", {"trusted": chosen}),
    ("percolation", {"states": dict.fromkeys(chosen, 1.0)}), ("betweenness", {}), ("betweenness", {"k": 5, "seed": 1}),
    *((name, {"direction": way}) for name in ("degree", "closeness", "harmonic") for way in ("in", "out")),
    *((name, {"log2m": 5, "runs": 2, "seed": 1}) for name in ("closeness", "harmonic")),
]
for graph in graphs:
    for name, options in calls:
        assert len(getattr(inlink, name)(graph, **options)) == graph.num_nodes
"""


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("INLINK_MACHINE_CODE", "off") == "off", reason="needs machine code: run make test"
)
def test_every_rank_of_every_graph(tmp_path: Path):
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

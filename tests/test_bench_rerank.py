import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import rerank, webgraph

from inlink.reranking.kernels import push as kernels

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("order", ["breadth-first", "random"])
def test_the_benchmark_crawls_the_whole_graph_in_a_possible_order(order):
    arrays = webgraph.generate(300, 2000)
    crawl = rerank.crawled(arrays.offsets, arrays.targets, order)
    n, _, pages, places = crawl.state(300)
    assert n == 300
    assert sorted(pages) == list(range(300))
    assert (order == "breadth-first") == (pages.tolist() == list(range(300)))
    known, rows = 0, {}
    for k in range(300):
        row = np.empty(300, np.uint32)
        count = kernels.links(crawl.log, places[k], np.uint64(pages[k]), np.empty(0, np.uint32), row)
        rows[int(pages[k])] = row[: int(count)].tolist()
        if pages[k] >= known:  # a seed: it becomes known as it is crawled
            known += 1
        assert pages[k] < known
        known = max([known - 1, *rows[int(pages[k])]]) + 1
        assert crawl.seen[k] == known
    arcs = sorted((page, target) for page, row in rows.items() for target in row)
    assert sorted(map(tuple, crawl.arcs(300).tolist())) == arcs
    assert len(arcs) == arrays.num_arcs
    outdegrees = sorted(len(row) for row in rows.values())
    assert outdegrees == sorted(np.diff(arrays.offsets).tolist())


def test_the_benchmark_runs(tmp_path, capsys):
    rerank.main(["--nodes", "3000", "--arcs", "20000", "--rounds", "1", "--results", str(tmp_path)])
    told = json.loads((tmp_path / "rerank.json").read_text())
    assert list(told["rows"]) == [
        f"web, {order}, {algorithm}"
        for order in ("breadth-first", "random")
        for algorithm in ("pagerank", "hits")
    ]
    row = told["rows"]["web, random, pagerank"]
    assert row["0.01 again"]["sweeps"] < row["0.01 anew"]["sweeps"]
    assert capsys.readouterr().out.count("| web, random, hits |") == len(rerank.GROWTH)

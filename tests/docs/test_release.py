"""From WAT files to Common Crawl's rank files, by the commands of docs/scale.md."""

import gzip
import random

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner

from archives import anchors, synthetic_wat, wat_json, wat_record, write
from graphfiles import content
from inlink import Graph
from inlink.cli import commands


def some_wat(path, seed):
    """A WAT file of pages on several hosts of each domain, gzip member by member."""
    dice = random.Random(seed)
    hosts = [
        f"{sub}.site{k}.{tld}" for k in range(9) for sub in ("www", "a", "b") for tld in ("com", "co.uk")
    ]
    records = []
    for page in range(30):
        links = [f"https://{dice.choice(hosts[: 8 + page])}/{k}" for k in range(8)]
        url = f"https://{dice.choice(hosts)}/{page}"
        records.append(wat_record(wat_json(url, anchors("/own", *links)), url=url))
    return write(path, records, packed="records")


def run(*arguments: object) -> str:
    found = CliRunner().invoke(commands, ["-q", *map(str, arguments)], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


def domain(host: str) -> str:
    """The registered domain of a reversed host, which is SUB.NAME.SUFFIX in these files."""
    labels = host.split(".")
    return ".".join(labels[:3] if labels[:2] == ["uk", "co"] else labels[:2])


def test_from_wat_files_to_ranks(tmp_path):
    files = [tmp_path / f"part-{part}.warc.wat.gz" for part in range(3)]
    for part, file in enumerate(files):
        # The same seed in the first two, so that hosts and arcs are met again.
        some_wat(file, part // 2)
    hosts, domains, out = (tmp_path / name for name in ("hosts", "domains", "out"))
    run("build", *files, "-o", hosts, "--level", "host", "--links", "all")
    run("fold", hosts, "-o", domains, "--level", "domain")
    run("rank", domains, "--algorithm", "harmonic,pagerank", "--tol", "1e-10", "--unweighted")
    run("export", domains, "--format", "commoncrawl", "-o", out)
    run("build", out, "-o", tmp_path / "again")
    again = Graph.open(tmp_path / "again")
    graph = Graph.open(domains)
    assert content(again) == (content(graph)[0], dict.fromkeys(content(graph)[1], 1))

    # The arcs between domains are those between the hosts' domains, without self-loops.
    above = Graph.open(hosts)
    G = nx.DiGraph()
    G.add_nodes_from({domain(host) for host in above.names})
    arcs = above.to_networkx().edges
    G.add_edges_from((domain(a), domain(b)) for a, b in arcs if domain(a) != domain(b))
    count = dict.fromkeys(G, 0)
    for host in above.names:
        count[domain(host)] += 1
    vertices = gzip.decompress((out / "vertices.txt.gz").read_bytes()).decode().splitlines()
    names = sorted(G)
    assert max(count.values()) > 1
    assert vertices == [f"{k}\t{name}\t{count[name]}" for k, name in enumerate(names)]
    edges = gzip.decompress((out / "edges.txt.gz").read_bytes()).decode().splitlines()
    number = {name: k for k, name in enumerate(names)}
    assert edges == [f"{a}\t{b}" for a, b in sorted((number[a], number[b]) for a, b in G.edges)]

    ranks = gzip.decompress((out / "ranks.txt.gz").read_bytes()).decode().splitlines()
    rows = [line.split("\t") for line in ranks[1:]]
    harmonic, pagerank = nx.harmonic_centrality(G), nx.pagerank(G, tol=1e-12)
    assert [row[0] for row in rows] == [str(place) for place in range(1, len(G) + 1)]
    for row in rows:
        assert float(row[1]) == pytest.approx(harmonic[row[4]], rel=1e-6)
        assert float(row[3]) == pytest.approx(pagerank[row[4]], rel=1e-4)
        assert row[5] == str(count[row[4]])
    assert (np.diff([float(row[1]) for row in rows]) <= 0).all()
    by_pagerank = sorted(rows, key=lambda row: int(row[2]))
    assert [row[2] for row in by_pagerank] == [str(place) for place in range(1, len(G) + 1)]
    assert (np.diff([float(row[3]) for row in by_pagerank]) <= 0).all()
    said = run("diff", domains, out / "ranks.txt.gz", "--by", "pagerank")
    assert f"in common: {len(G)}; only in A: 0; only in B: 0" in said
    assert "Kendall's τ 1.000" in said


def test_ranks_by_hyperball_keep_the_order_of_the_best(tmp_path):
    file = tmp_path / "a.warc.wat.gz"
    synthetic_wat(file, pages=60, links=60, seed=4)
    hosts = tmp_path / "hosts"
    run("build", file, "-o", hosts, "--level", "host", "--links", "all")
    run("rank", hosts, "--algorithm", "harmonic", "--exact")
    said = run("rank", hosts, "--algorithm", "harmonic", "--log2m", 10, "--runs", 3, "--name", "estimate")
    assert "estimate: estimated: HyperBall with 1,024 registers, mean of 3 runs" in said
    exact, near = (
        [line.split("\t")[2] for line in run("top", hosts, "--by", name, "-n", 20).splitlines()]
        for name in ("harmonic", "estimate")
    )
    assert len(set(exact) & set(near)) >= 12

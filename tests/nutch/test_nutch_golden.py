"""Files that Nutch's own classes wrote and read (Hadoop 3.3.4): segments, a crawl database, LinkRank's scores.

``tests/golden/nutch`` holds 90 pages in segments with no, record and block compression; ``links.txt``, a page a line
and its links after tabs; ``dump.txt``, each CrawlDatum as Java prints it, in UTC; and what NodeDumper printed after
WebGraph and LinkRank with ``link.ignore.limit.page`` and ``.domain`` false.
"""

from pathlib import Path

import pytest

import inlink
from inlink.base.damage import Tally
from inlink.nutch.crawldb import update_crawldb
from inlink.nutch.dumps import dump_nodes
from inlink.nutch.fetches import fetches_of_segment
from inlink.nutch.webgraph import LinkRules, webgraph
from inlink.rank.linkrank import linkrank

GOLDEN = Path(__file__).parents[1] / "golden" / "nutch"
SEGMENTS = [GOLDEN / "segments" / mode for mode in ("none", "record", "block")]


def dumped(name: str) -> dict[str, float]:
    lines = (GOLDEN / name).read_text(encoding="utf-8").splitlines()
    return {url: float(value) for url, value in (line.split("\t") for line in lines)}


def test_all_links_and_times_of_its_segments_are_read():
    lines = (GOLDEN / "links.txt").read_text(encoding="utf-8").replace("\n\t", "\t").splitlines()
    links = {line.split("\t")[0]: line.split("\t")[1:] for line in lines}
    assert len(links) == 90
    found, times = {}, {}
    for segment in SEGMENTS:
        for part in fetches_of_segment(segment, 0, True, Tally(strict=True)):
            targets = [raw.decode() for raw in part.targets.to_pylist()]
            for k, raw in enumerate(part.sources.to_pylist()):
                found[raw.decode()] = targets[part.offsets[k] : part.offsets[k + 1]]
                times[raw.decode()] = int(part.times[k])
    assert found == links
    assert times == {url: 1_000_000 + int(url.split("/p/")[1].split("?")[0]) for url in links}


def test_its_scores_are_ours(tmp_path):
    graph = webgraph(
        SEGMENTS, rules=LinkRules(limit_page=False, limit_domain=False), strict=True, into=tmp_path / "w"
    )
    ranking = linkrank(graph, limit_page=False, limit_domain=False)
    assert graph.names is not None
    assert dict(ranking) == pytest.approx(dumped("scores.txt"), rel=1e-6)
    lines = [line.decode().split("\t") for line in dump_nodes(graph, "inlinks")]
    assert {url: float(value) for url, value in lines} == dumped("inlinks.txt")


def test_its_crawl_database_is_printed_as_it_prints_it(tmp_path):
    graph = inlink.Graph.from_arcs([("x", "y")], into=tmp_path / "w")
    linkrank(graph).save(graph, "linkrank")
    update_crawldb(
        graph, GOLDEN / "crawldb", tmp_path / "out", format="text", clear=0.5, tally=Tally(strict=True)
    )
    expected = [
        "Score: 0.5" if line.startswith("Score: ") else line
        for line in (GOLDEN / "dump.txt").read_text(encoding="utf-8").split("\n")
    ]
    assert (tmp_path / "out").read_text(encoding="utf-8").split("\n") == expected
    update_crawldb(graph, GOLDEN / "dump.txt", tmp_path / "again", clear=0.5, allow_unmatched=True)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "out").read_bytes()

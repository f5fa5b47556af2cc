"""A crawl's folder as a graph source, against a model of plain dictionaries."""

import csv
import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inlink
from foldercommands import run
from inlink.crawl.crawl import Crawl
from inlink.crawl.view import CrawlView
from inlink.errors import FolderError, FormatError, OutputError
from inlink.protocol import Link
from inlink.rank.ranking import Ranking
from inlink.sources.crawlgraph import columns_for, graph_in
from inlink.sources.rankings import load_ranking, values_of
from inlink.sources.recognise import recognise
from inlink.store.blocks import arcs_of, num_links, url_blocks
from inlink.store.reader import known_pages
from storefolders import links_from, links_to

HOSTS = ["http://a.example.com", "https://www.b.example.org", "http://c.example.net"]
URLS = [f"{HOSTS[k % 3]}/{k}" for k in range(12)]


def crawl_at(folder: Path, now: float = 5000.0, **settings) -> Crawl:
    return Crawl(folder, policy="breadth-first", rerank_share=None, clock=lambda: now, **settings)


def arcs_in(graph: inlink.Graph) -> set[tuple[str, str]]:
    assert graph.names is not None
    return {
        (graph.names[a], graph.names[b]) for a in range(graph.num_nodes) for b in graph.outlinks(a).tolist()
    }


class Model:
    """The expected crawl: links by page, and the target of each merged page."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.links: dict[str, list[str]] = {}
        self.into: dict[str, str] = {}

    def know(self, *urls: str) -> None:
        self.order += [url for url in dict.fromkeys(urls) if url not in self.order]

    def end(self, url: str) -> str:
        while url in self.into:
            url = self.into[url]
        return url

    def arcs(self) -> set[tuple[str, str]]:
        return {(a, self.end(b)) for a, links in self.links.items() if a not in self.into for b in links}


def one_step(crawl: Crawl, model: Model, page: int, links: list[int], to: int | None) -> None:
    url = URLS[page]
    if url not in model.order or url in model.into:
        return
    target = None if to is None or to == page else URLS[to]
    here = url
    if target is not None and model.end(target) != url:
        model.know(target)
        model.into[url] = here = model.end(target)
    crawl.crawled(url, [URLS[k] for k in links], redirected_to=target)
    model.know(*(URLS[k] for k in links))
    model.links[here] = [URLS[k] for k in links]


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 11),
            st.lists(st.integers(0, 11), max_size=6),
            st.none() | st.none() | st.integers(0, 11),
        ),
        max_size=15,
    )
)
def test_any_crawl_becomes_the_graph_of_its_latest_visits(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("crawls") / "c"
    model = Model()
    with crawl_at(folder) as crawl:
        crawl.seed(URLS[:2])
        model.know(*URLS[:2])
        for step in steps:
            one_step(crawl, model, *step)
    graph = inlink.read(folder)
    assert graph.names is not None
    assert list(graph.names) == model.order
    assert arcs_in(graph) == model.arcs()
    assert graph.crawled is not None
    assert [model.order[k] for k in np.flatnonzero(graph.crawled)] == [
        url for url in model.order if url in model.links and url not in model.into
    ]
    pages = known_pages(folder, with_urls=False)
    pairs = {(int(a), int(b)) for from_, to, _ in arcs_of(pages) for a, b in zip(from_, to, strict=True)}
    assert {(model.order[a], model.order[b]) for a, b in pairs} == model.arcs()
    assert num_links(pages) == sum(len(set(row)) for url, row in model.links.items() if url not in model.into)
    for number, url in enumerate(model.order):
        assert graph.node(url) == number  # ids stay
        if url in model.into:
            assert [model.order[k] for k in links_from(pages, number)] == [model.end(url)]
        else:
            assert {model.order[k] for k in links_to(pages, number)} == {
                a for a, b in model.arcs() if b == url
            }
            assert {model.order[k] for k in links_from(pages, number)} == set(model.links.get(url, ()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with crawl_at(tmp_path / "c") as crawl:
        crawl.seed(URLS[:1])
        crawl.crawled(URLS[0], [(URLS[1], 0.25), URLS[2]], score=0.75, content_hash=b"\1\2")
        crawl.crawled(URLS[1], [URLS[0]])
        crawl.failed(URLS[2], "gone\tfor\ngood", status=410)
    return tmp_path / "c"


def test_a_crawl_is_recognised_as_a_source(folder: Path, tmp_path: Path):
    assert recognise(folder) == "crawl"
    graph = inlink.read(folder, into=tmp_path / "g")
    assert (graph.level, graph.num_nodes, graph.num_arcs) == ("page", 3, 3)
    assert "seed" not in str(graph.meta)  # the hash's secret stays in the crawl
    assert inlink.read(folder, crawled_only=True).num_nodes == 2
    hosts = inlink.read(folder, level="host")
    assert hosts.names is not None
    assert list(hosts.names) == ["com.example.a", "net.example.c", "org.example.b.www"]
    assert inlink.read([folder]).num_nodes == 3


def top_of(folder: Path, name: str, count: int) -> list[tuple[int, str, float]]:
    with inlink.CrawlView.open(folder) as view:
        return [(row.page, row.url, row.value) for row in view.top(name, count).rows]


def test_an_empty_crawl(tmp_path: Path):
    crawl_at(tmp_path / "c").close()
    graph = graph_in(tmp_path / "c")
    assert (graph.num_nodes, graph.num_arcs) == (0, 0)
    assert graph.crawled is not None
    inlink.pagerank(graph).save(graph, "pagerank")
    assert top_of(tmp_path / "c", "pagerank", 5) == []


def test_a_newer_crawl_is_refused(folder: Path):
    header = folder / "header.json"
    header.write_text(header.read_text().replace('"version": 3', '"version": 9'))
    with pytest.raises(FormatError, match="upgrade inlink"):
        recognise(folder)
    with pytest.raises(FolderError, match="upgrade inlink"):
        known_pages(folder, with_urls=False)


@pytest.mark.parametrize("size", [1, 7, 30, 64, 1 << 20])
def test_blocks_of_urls(folder: Path, size: int):
    found = []
    for first, text, offsets in url_blocks(known_pages(folder, with_urls=False), size):
        assert first == len(found)
        raw = text.tobytes()
        assert int(offsets[-1]) == len(raw)
        found += [raw[int(a) : int(b)].decode() for a, b in pairwise(offsets)]
    assert found == URLS[:3]


def test_rows_longer_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("inlink.store.blocks.ARCS", 16)
    links = [f"http://a.example.com/{k}" for k in range(50)]
    with crawl_at(tmp_path / "c") as crawl:
        crawl.seed(links[:3])
        crawl.crawled(links[0], links[:7])
        crawl.crawled(links[1], links)
        crawl.crawled(links[2], links[5:9])
    rows: dict[int, list[int]] = {}
    for sources, targets, done in arcs_of(known_pages(tmp_path / "c", with_urls=False)):
        assert done > 0
        for a, b in zip(sources.tolist(), targets.tolist(), strict=True):
            rows.setdefault(a, []).append(b)
    assert rows == {0: list(range(7)), 1: list(range(50)), 2: list(range(5, 9))}


def test_rankings_lie_in_the_crawls_folder_and_stay_when_it_grows(folder: Path):
    graph = graph_in(folder)
    ranking = inlink.pagerank(graph)
    assert ranking.save(graph, "mine") == folder / "rankings" / "mine"
    best = top_of(folder, "mine", 3)
    assert [(url, value) for _, url, value in best] == ranking.top(3)
    assert [graph.node(url) for _, url, _ in best] == [page for page, _, _ in best]
    with crawl_at(folder) as crawl:
        crawl.seed(URLS[6:9])
    assert top_of(folder, "mine", 3) == best
    grown = graph_in(folder)
    loaded = load_ranking(grown, "mine")
    assert (len(loaded), grown.num_nodes) == (3, 6)
    assert loaded.top(3) == [(url, value) for _, url, value in best]
    assert np.array_equal(values_of(loaded, grown, -1), [*ranking.values, -1, -1, -1])
    with pytest.raises(FolderError, match="no ranking 'other'"):
        top_of(folder, "other", 3)
    with crawl_at(folder.with_name("d")) as crawl:
        crawl.seed(URLS[:3])
    (folder / "rankings").rename(folder.with_name("d") / "rankings")
    with pytest.raises(FolderError, match="earlier version"):  # of another crawl
        top_of(folder.with_name("d"), "mine", 3)


def test_a_ranking_of_hits_has_both_columns(folder: Path):
    graph = graph_in(folder)
    inlink.hits(graph).save(graph)
    assert load_ranking(graph, "hits").hubs.shape == (3,)
    assert isinstance(load_ranking(graph, "hits"), Ranking)


def test_a_graphs_own_folder_is_opened_as_ever(folder: Path, tmp_path: Path):
    graph = inlink.read(folder, into=tmp_path / "g")
    assert graph_in(tmp_path / "g").uuid == graph.uuid
    inlink.degree(graph).save(graph)
    assert load_ranking(graph, "degree").values.tolist() == inlink.degree(graph).values.tolist()
    assert columns_for(graph, Path("x.parquet"), None) == {}


def test_tables_have_what_is_known_of_the_pages(folder: Path, tmp_path: Path):
    graph = graph_in(folder)
    assert columns_for(graph, Path("x.tsv"), None) == {}
    columns = columns_for(graph, Path("x.sqlite"), None)
    inlink.write(graph, tmp_path / "x.sqlite", columns=columns)
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as base:
        rows = base.execute("SELECT * FROM nodes ORDER BY id").fetchall()
    assert rows == [
        (0, URLS[0], 2, 0.75, 0, -1, 5000.0, 5000.0, 1, 0, 200, 0),
        (1, URLS[1], 2, 0.0, 1, 0, 5000.0, 5000.0, 1, 0, 200, 0),
        (2, URLS[2], 4, 0.0, 1, 0, None, None, 0, 0, 410, 1),
    ]
    inlink.write(graph, tmp_path / "x.parquet", columns=columns_for(graph, tmp_path / "x.parquet", "parquet"))
    table = pq.read_table(tmp_path / "x.nodes.parquet")
    assert table["name"].to_pylist() == URLS[:3]
    assert table["linked_from"].to_pylist() == [-1, 0, 0]


def test_texts_of_links_are_exported(tmp_path: Path):
    site, folder = "https://a.example/", tmp_path / "c"
    texts = {
        "x": '"Best" =1+1',
        "y": "=cmd|' /C calc'!A0",
        "z": "a\x1b[31m\tb",
        "late": "lost",
        "plain": None,
    }
    with crawl_at(folder) as crawl:
        crawl.seed([site])
        links = [Link(site + path, text=text or "") for path, text in texts.items()]
        crawl.crawled(crawl.next(1)[0], links=links)
        crawl.crawled(site + "late", links=[Link(site + "x", text="back")], redirected_to=site + "plain")
    wanted = {
        (site, f"{site}x"): texts["x"],
        (site, f"{site}y"): texts["y"],
        (site, f"{site}z"): "a [31m b",
        (site, f"{site}plain"): "lost",
        (f"{site}plain", f"{site}x"): "back",
    }
    graph = graph_in(folder)
    for name in ("x.csv", "x.sqlite", "x.parquet"):
        inlink.write(graph, tmp_path / name, anchors=True)
        assert arcs_in(inlink.read(tmp_path / name)) == set(wanted)
    with (tmp_path / "x.csv").open(newline="") as file:
        assert {tuple(row[:2]): row[2] for row in list(csv.reader(file))[1:]} == wanted
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as base:
        query = "SELECT a.name, b.name, anchor FROM arcs JOIN nodes a ON a.id = source JOIN nodes b ON b.id = target"
        assert {(a, b): text for a, b, text in base.execute(query)} == wanted
    rows = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert {(row["source"], row["target"]): row["anchor"] for row in rows} == wanted
    lines = list(csv.reader(run("dump", "links", folder, "--anchors").splitlines(), delimiter="\t"))
    names = [page.url for page in (CrawlView.open(folder).page(k) for k in range(6)) if page]
    assert lines[0] == ["from", "to", "anchor"]
    assert {(names[int(a)], names[int(b)]): text for a, b, text in lines[1:]} == wanted
    answers = json.loads(run("dump", "links", folder, "--anchors", "--json"))
    assert {(names[row["from"]], names[row["to"]]): row["anchor"] for row in answers} == wanted
    assert "\t'=cmd|" in run("dump", "links", folder, "--anchors", "--safe-cells")
    assert ",'=cmd|" in run("export", folder, "-o", "-", "--anchors", "--safe-cells")
    with pytest.raises(OutputError, match="texts of links need a header"):
        inlink.write(graph, tmp_path / "x.tsv", anchors=True)

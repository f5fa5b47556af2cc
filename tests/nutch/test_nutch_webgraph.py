"""Nutch's web graph: segments, crawls and graphs, against a twin of Nutch's OutlinkDb."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink.base.folder import Folder
from inlink.crawl.crawl import Crawl
from inlink.errors import DamageError, FolderError, InputError, ParameterError
from inlink.frontier.revisit import FixedInterval
from inlink.nutch.webgraph import LinkRules, webgraph
from inlink.nutch.writables import CRAWL_DATUM as CRAWL_DATUM_CLASS
from inlink.nutch.writables import PARSE_DATA as PARSE_DATA_CLASS
from nutchfiles import (
    DEFAULT,
    GZIP,
    PAGES,
    PARSE_DATA,
    crawl_datum,
    domain,
    map_writable,
    page,
    parse_data,
    protocol_status,
    segment,
    sequence_file,
    text,
)

OFF = LinkRules(ignore_host=False, ignore_domain=False, limit_page=False, limit_domain=False)
A, B, C, D = (f"http://{name}.com/" for name in "abcd")


def host(url: str) -> str | None:
    from urllib.parse import urlsplit

    return urlsplit(url).hostname


def arcs_in(graph: inlink.Graph) -> set[tuple[str, str]]:
    names = list(graph.names) if graph.names is not None else []
    return {(names[u], names[int(o)]) for u in range(graph.num_nodes) for o in graph.outlinks(u)}


def twin(fetches, rules: LinkRules) -> set[tuple[str, str]]:
    """OutlinkDbReducer over (page, time, links or None for gone) in the order given; the newest, of equals the last."""
    newest = {}
    for url, time, links in fetches:
        if url not in newest or time >= newest[url][0]:
            newest[url] = time, links
    kept = set()
    for url, (_, links) in newest.items():
        domains, pages = set(), set()
        for to in links or ():
            if rules.limit_page and page(to) in pages - {None}:
                continue
            if rules.limit_domain and domain(to) in domains - {None}:
                continue
            if rules.ignore_host and host(to) is not None and host(to) == host(url):
                continue
            if rules.ignore_domain and domain(to) is not None and domain(to) == domain(url):
                continue
            kept.add((url, to))
            pages.add(page(to))
            domains.add(domain(to))
    return kept


@st.composite
def runs(draw: st.DrawFn):
    """Segments: each a time and links for some pages, and which pages are gone at which time."""
    url = st.sampled_from(PAGES)
    links = st.lists(url, max_size=8)
    one = st.tuples(
        st.dictionaries(url, st.tuples(st.integers(1, 5), links), max_size=5),
        st.dictionaries(url, st.integers(1, 5), max_size=2),
    )
    return draw(st.lists(one, min_size=1, max_size=4))


def written(folder, given) -> list:
    paths = []
    for k, (pages, gone) in enumerate(given):
        fetched = {url: (0x21, time) for url, (time, _) in pages.items()} | {
            url: (0x25, t) for url, t in gone.items()
        }
        mode, codec = [("none", DEFAULT), ("record", DEFAULT), ("block", GZIP)][k % 3]
        paths.append(segment(folder / f"segment-{k}", pages, fetched, mode=mode, codec=codec))
    return paths


@given(
    runs(),
    st.builds(LinkRules, st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    st.booleans(),
    st.data(),
)
def test_it_is_what_nutchs_reducer_keeps(tmp_path_factory, given_, rules, delete_gone, data):
    folder = tmp_path_factory.mktemp("w")
    paths = written(folder, given_)
    fetches = []
    for pages, gone in given_:
        fetches += [(url, time, None) for url, time in sorted(gone.items()) if delete_gone]
        fetches += [(url, time, links) for url, (time, links) in sorted(pages.items())]
    graph = webgraph(paths, rules=rules, delete_gone=delete_gone, strict=True)
    assert arcs_in(graph) == twin(fetches, rules)
    assert set(graph.names or ()) == {end for arc in twin(fetches, rules) for end in arc}
    # the same in two runs
    cut = data.draw(st.integers(0, len(paths)))
    if cut:
        webgraph(paths[:cut], rules=rules, delete_gone=delete_gone, into=folder / "db")
        updated = webgraph(paths[cut:], update=True, delete_gone=delete_gone, into=folder / "db")
        assert arcs_in(updated) == twin(fetches, rules)


def test_times_come_from_crawl_fetch_where_the_page_does_not_say_it(tmp_path):
    old = segment(tmp_path / "old", {A: (None, [B])}, {A: (0x21, 100)})
    new = segment(tmp_path / "new", {A: (200, [C])})
    assert arcs_in(webgraph([new, old])) == {(A, C)}
    nobody_says = segment(tmp_path / "none", {A: (None, [D])})
    assert arcs_in(webgraph([nobody_says, new, old], now=0.15)) == {(A, C)}
    assert arcs_in(webgraph([nobody_says, new, old], now=0.25)) == {(A, D)}


def test_a_crawl_of_ours_with_times_and_document_order(tmp_path):
    now = 1000.0
    with Crawl(tmp_path / "c", policy="breadth-first", rerank_share=None, clock=lambda: now) as crawl:
        crawl.seed([A, B, C])
        for lease in crawl.next(10):
            crawl.crawled(lease, links={A: [D + "9", D + "1", B], B: [], C: [A]}[lease.url])
    assert arcs_in(webgraph(tmp_path / "c")) == {(A, D + "9"), (A, B), (C, A)}
    older = segment(tmp_path / "old", {B: (999_000, [A])})
    newer = segment(tmp_path / "new", {B: (1_001_000, [A])})
    assert (B, A) not in arcs_in(webgraph([older, tmp_path / "c"]))
    assert (B, A) in arcs_in(webgraph([newer, tmp_path / "c"]))


def test_pages_of_a_crawl_that_are_gone(tmp_path):
    now = [1000.0]
    settings = {"policy": "revisit", "rerank_share": None, "revisit": FixedInterval(500)}
    with Crawl(tmp_path / "c", clock=lambda: now[0], **settings) as crawl:
        crawl.seed([A, B])
        for lease in crawl.next(2):
            crawl.crawled(lease, links=[C])
        now[0] += 1000
        for _ in range(3):
            for lease in crawl.next(5):
                if lease.url == A:
                    crawl.failed(lease, "not found", status=404)
            now[0] += 10
        assert crawl.page(A).state == "gone"
    assert arcs_in(webgraph(tmp_path / "c")) == {(A, C), (B, C)}
    assert arcs_in(webgraph(tmp_path / "c", delete_gone=True)) == {(B, C)}


def test_graphs_of_any_kind(tmp_path):
    (tmp_path / "links.tsv").write_text(f"{A}\t{B}\n{A}\t{A}x\n{B}\t{C}\n")
    assert arcs_in(webgraph(tmp_path / "links.tsv")) == {(A, B), (B, C)}
    assert arcs_in(webgraph(inlink.read(tmp_path / "links.tsv"), rules=OFF)) == {(A, B), (A, A + "x"), (B, C)}
    with pytest.raises(ParameterError, match="no names"):
        webgraph(inlink.Graph.from_arcs([(0, 1)]))
    hosts = inlink.read(tmp_path / "links.tsv", level="host")
    assert arcs_in(webgraph(hosts)) == {("com.a", "com.b"), ("com.b", "com.c")}
    assert webgraph(hosts).level == "host"
    with pytest.raises(ParameterError, match="fold them first"):
        webgraph([hosts, inlink.read(tmp_path / "links.tsv")])
    with pytest.raises(ParameterError, match="host and page level"):
        webgraph([hosts, segment(tmp_path / "s", {A: (1, [B])})])


def test_large_graphs_come_in_parts(monkeypatch):
    import inlink.nutch.fetches as module

    rng = np.random.default_rng(1)
    urls = [f"http://h{k}.com/" for k in range(50)]
    pairs = [(urls[u], urls[o]) for u, o in rng.integers(0, 50, (400, 2)) if u != o]
    graph = inlink.Graph.from_arcs(pairs)
    whole = arcs_in(webgraph(graph))
    assert whole == set(pairs)
    monkeypatch.setattr(module, "_LINKS", 7)
    monkeypatch.setattr(module, "_ROWS", 3)
    assert arcs_in(webgraph(graph)) == whole


def test_an_update_keeps_to_the_rules_and_to_its_own_folder(tmp_path):
    path, db = segment(tmp_path / "1", {A: (100, [A + "x", B])}), tmp_path / "db"
    with pytest.raises(FolderError, match="not a web graph that can be updated"):
        webgraph([path], update=True, into=db)
    with pytest.raises(ParameterError, match="needs `into`"):
        webgraph([path], update=True)
    webgraph([path], rules=OFF, into=db)
    assert arcs_in(webgraph([path], update=True, into=db)) == {(A, A + "x"), (A, B)}
    with pytest.raises(ParameterError, match="with the same rules"):
        webgraph([path], update=True, rules=LinkRules(), into=db)
    other = webgraph([path], rules=OFF, into=tmp_path / "other")
    (db / "fetched").rename(tmp_path / "away")
    (other.path / "fetched").rename(db / "fetched")
    with pytest.raises(FolderError, match="Build the web graph again"):
        webgraph([path], update=True, into=db)
    inlink.Graph.from_arcs([("a", "b")], into=tmp_path / "plain")
    with pytest.raises(FolderError, match="not a web graph that can be updated"):
        webgraph([path], update=True, into=tmp_path / "plain")


def test_it_says_what_it_is_made_of(tmp_path):
    segments = tmp_path / "segments"
    segment(segments / "20260101000000", {A: (1, [B]), B: (1, [])})
    (segments / "20260102000000" / "content").mkdir(parents=True)
    graph = webgraph([], segment_dirs=[segments], into=tmp_path / "db")
    assert graph.meta["nutch"]["fetched"] == 2
    assert list(graph.meta["skipped"].values()) == [1]
    assert "not parsed" in next(iter(graph.meta["skipped"]))
    fetched = Folder(tmp_path / "db" / "fetched", "fetched", 1)
    assert fetched.array("times").tolist() == [1, 1]


def test_damage_in_a_segment_is_counted(tmp_path):
    good = (text(A), parse_data([B], 1))
    path = tmp_path / "s"
    junk = [(text(B), b"\x05\x02junk"), (text(C), b""), (text(D), b"\x04" + parse_data([A], 1)[1:])]
    sequence_file(path / "parse_data" / "part-00000" / "data", [good, *junk], PARSE_DATA)
    graph = webgraph(path)
    assert arcs_in(graph) == {(A, B)}
    assert sum(graph.meta["skipped"].values()) == 3
    with pytest.raises(DamageError, match="ParseData"):
        webgraph(path, strict=True)


@given(st.binary(max_size=200), st.integers(0, 200))
def test_any_bytes_are_a_parse_data_and_a_crawl_datum_or_are_refused(junk, cut):
    notes = {"_pst_": protocol_status(1, "x"), "n": 1}
    for writable, whole in (
        (PARSE_DATA_CLASS, parse_data([A, B], 5, noted=True)),
        (CRAWL_DATUM_CLASS, crawl_datum(2, 5, signature=b"12", notes=notes)),
    ):
        for raw in (junk, whole[:cut], whole[:cut] + junk, whole[:1] + junk):
            try:
                writable.read(raw)
            except ValueError:
                continue


def test_sources_that_are_none_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="no source"):
        webgraph([])
    with pytest.raises(InputError, match="does not exist"):
        webgraph(tmp_path / "absent")
    with pytest.raises(InputError, match="cannot be read"):
        webgraph([], segment_dirs=[tmp_path / "absent"])
    (tmp_path / "empty" / "parse_data").mkdir(parents=True)
    with pytest.raises(InputError, match="no part of a job"):
        webgraph(tmp_path / "empty")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="holds no segment"):
        webgraph([], segment_dirs=[tmp_path / "none"])


def test_nutchs_own_web_graph_and_linkdb_are_read(tmp_path):
    a, b, c = (f"http://{name}.com/" for name in "abc")

    def datum(url, time):
        return text(url) + text("anchor") + struct.pack(">fqb", 0.0, time, 2)

    outlinks = [(text(a), datum(b, 2000)), (text(a), datum(c, 2000)), (text(b), datum(c, 1000))]
    kind = "org.apache.nutch.scoring.webgraph.LinkDatum"
    sequence_file(tmp_path / "nutch" / "outlinks" / "current" / "part-r-00000" / "data", outlinks, kind)
    graph = webgraph(tmp_path / "nutch", strict=True, into=tmp_path / "w")
    assert arcs_in(graph) == {(a, b), (a, c), (b, c)}
    # The times of the fetches come with them: an older fetch of a changes nothing, a newer one of b does.
    newer = segment(tmp_path / "s", {a: (1999, [b]), b: (1001, [a])})
    assert arcs_in(webgraph(newer, update=True, into=tmp_path / "w")) == {(a, b), (a, c), (b, a)}

    def inlink(url, notes=b"\0"):
        return text(url) + text("anchor") + notes

    linkdb = [
        (text(b), struct.pack(">i", 1) + inlink(a, b"\1" + map_writable({"k": "v"}))),
        (text(c), struct.pack(">i", 2) + inlink(a) + inlink(b)),
    ]
    place = tmp_path / "linkdb" / "current" / "part-r-00000" / "data"
    sequence_file(place, linkdb, "org.apache.nutch.crawl.Inlinks")
    assert arcs_in(webgraph(tmp_path / "linkdb", strict=True)) == {(a, b), (a, c), (b, c)}
    place = tmp_path / "crawldb" / "current" / "part-r-00000" / "data"
    sequence_file(place, [(text(a), crawl_datum(2, 0))], "org.apache.nutch.crawl.CrawlDatum")
    with pytest.raises(InputError, match="crawl database, which has no links"):
        webgraph(tmp_path / "crawldb")

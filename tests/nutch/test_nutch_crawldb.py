"""LinkRank's scores into crawls and crawl databases."""

import csv
import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from inlink import CrawlView, Graph
from inlink.base.damage import Tally
from inlink.crawl.crawl import Crawl
from inlink.errors import DamageError, FolderError, InputError, OutputError, ParameterError
from inlink.nutch.crawldb import update_crawl, update_crawldb
from inlink.nutch.fields import TEXT
from inlink.nutch.sequencefile import records
from inlink.nutch.writables import CRAWL_DATUM as CRAWL_DATUM_CLASS
from inlink.rank.linkrank import linkrank
from inlink.sources.crawlgraph import graph_in
from inlink.sources.rankings import load_ranking
from nutchfiles import CRAWL_DATUM, GZIP, checksums, crawl_datum, protocol_status, sequence_file, text

A, B, C, Q = "http://a.com/", "http://b.com/", "http://c.com/", 'http://q.com/?a="b",c'


@pytest.fixture
def web(tmp_path):
    graph = Graph.from_arcs([(A, B), (B, A), (B, Q)], into=tmp_path / "w")
    linkrank(graph).save(graph, "linkrank")
    return graph


@pytest.fixture
def crawldb(tmp_path):
    notes = {"_pst_": protocol_status(16, "no answer"), "depth": 3, "share": 0.5, "Content-Type": "text/html"}
    entries = [
        (
            text(A),
            crawl_datum(
                2, 1_795_259_777_000, score=9, signature=bytes(range(16)), modified=1000, notes=notes
            ),
        ),
        (text(C), crawl_datum(1, 0, retries=2, interval=3600, score=9)),
        (text(Q), crawl_datum(3, 0)),
    ]
    sequence_file(tmp_path / "db" / "current" / "part-r-00000" / "data", entries[:2], CRAWL_DATUM)
    sequence_file(
        tmp_path / "db" / "current" / "part-r-00001" / "data",
        entries[2:],
        CRAWL_DATUM,
        mode="block",
        codec=GZIP,
    )
    return tmp_path / "db"


def score(graph, url):
    return str(np.float32(linkrank(graph)[url]))


def test_a_crawl_gets_a_ranking_and_keeps_its_content_scores(tmp_path, web):
    with Crawl(tmp_path / "c", policy="breadth-first", rerank_share=None, clock=lambda: 0.0) as crawl:
        crawl.seed([(A, 0.25)])
        for lease in crawl.next(1):
            crawl.crawled(lease, links=[B, C], score=0.75)
    assert update_crawl(web, tmp_path / "c", clear=0.5) == (2, 1)
    ranking = load_ranking(graph_in(tmp_path / "c"), "linkrank")
    exact = linkrank(web)
    assert {url: ranking[url] for url in (A, B, C)} == {A: exact[A], B: exact[B], C: 0.5}
    with CrawlView.open(tmp_path / "c") as view:
        assert view.top("linkrank", 1).rows[0].value == max(exact[A], exact[B])
    with Crawl(tmp_path / "c", policy="breadth-first", rerank_share=None, clock=lambda: 0.0) as crawl:
        assert crawl.page(A).score == 0.75


@pytest.mark.parametrize("clear", [float("nan"), float("inf")])
def test_scores_that_are_no_numbers_are_refused(tmp_path, web, crawldb, clear):
    with pytest.raises(ParameterError, match="finite"):
        update_crawldb(web, crawldb, tmp_path / "out", clear=clear)
    with pytest.raises(ParameterError, match="finite"):
        update_crawl(web, crawldb, clear=clear)


def test_a_database_as_csv(tmp_path, web, crawldb):
    assert update_crawldb(web, crawldb, tmp_path / "out.csv", clear=0.5) == (2, 1)
    rows = list(csv.reader((tmp_path / "out.csv").read_text().splitlines()))
    assert rows[0][0] == "Url"
    assert rows[0][8] == "Score"
    assert rows[1] == [
        A, "2", "db_fetched", "Sat Nov 21 11:16:17 UTC 2026", "Thu Jan 01 00:00:01 UTC 1970", "0", "2592000.0", "30.0",
        score(web, A), "000102030405060708090a0b0c0d0e0f",
        "_pst_:exception(16), lastModified=0: no answer|||depth:3|||share:0.5|||Content-Type:text/html|||",
    ]  # fmt: skip
    assert rows[2][:3] + rows[2][5:] == [C, "1", "db_unfetched", "2", "3600.0", "0.0", "0.5", "null", ""]
    assert (rows[3][0], rows[3][8]) == (Q, score(web, Q))


def entries(path: Path) -> list[tuple[bytes, bytes]]:
    """Keys and values of an uncompressed SequenceFile, by Hadoop's layout and not by inlink's reader."""
    raw = path.read_bytes()
    assert raw[:4] == b"SEQ\x06"
    at = 4
    for _ in range(2):
        at += 1 + raw[at]
    assert raw[at : at + 6] == bytes(6)
    mark, at = raw[at + 6 : at + 22], at + 22
    found = []
    while at < len(raw):
        if raw[at : at + 4] == b"\xff" * 4:
            assert raw[at + 4 : at + 20] == mark
            at += 20
            continue
        length, key_length = struct.unpack_from(">ii", raw, at)
        found.append((raw[at + 8 : at + 8 + key_length], raw[at + 8 + key_length : at + 8 + length]))
        at += 8 + length
    return found


def test_a_database_as_a_database(tmp_path, web, crawldb):
    out = tmp_path / "new"
    assert update_crawldb(web, crawldb, out, clear=0.5) == (2, 1)
    for part in ("part-r-00000", "part-r-00001"):
        old = list(records(crawldb / "current" / part / "data", TEXT, CRAWL_DATUM_CLASS, Tally(strict=True)))
        new = entries(out / "current" / part / "data")
        assert [key for key, _ in new] == [text(url) for url, _ in old]
        for (_, value), (url, datum) in zip(new, old, strict=True):
            expected = 0.5 if url == C.encode() else linkrank(web)[url.decode()]
            assert struct.unpack(">f", value[15:19])[0] == pytest.approx(expected, rel=1e-7)
            assert value[:15] + value[19:] == datum.raw[:15] + datum.raw[19:]
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert names == {
        f"current/part-r-0000{k}/{name}"
        for k in (0, 1)
        for name in ("data", "index", ".data.crc", ".index.crc")
    }
    # The copy is read as a database, and its checksums with it.
    assert update_crawldb(web, out, tmp_path / "out.txt") == (2, 1)
    with pytest.raises(OutputError, match="exists"):
        update_crawldb(web, crawldb, out)
    with pytest.raises(OutputError, match="exists"):
        update_crawldb(web, crawldb, crawldb)


def test_a_database_makes_no_folders_above_itself(tmp_path, web, crawldb):
    with pytest.raises(OutputError, match="does not exist"):
        update_crawldb(web, crawldb, tmp_path / "none" / "out", clear=0.5)
    assert not (tmp_path / "none").exists()


def test_a_mapfile_of_many_records_has_an_index_and_sync_marks(tmp_path, web):
    pages = [(text(f"http://{'h' * (k % 200)}{k:05}.org/"), crawl_datum(1, k)) for k in range(1000)]
    pages.sort(key=lambda page: page[0][page[0].index(b"http") :])
    sequence_file(tmp_path / "db" / "current" / "part-r-00000" / "data", pages, CRAWL_DATUM)
    update_crawldb(web, tmp_path / "db", tmp_path / "new")
    part = tmp_path / "new" / "current" / "part-r-00000"
    assert [key for key, _ in entries(part / "data")] == [key for key, _ in pages]
    raw = (part / "data").read_bytes()
    mark = raw[raw.index(b"CrawlDatum") + 16 :][:16]
    assert raw.count(b"\xff\xff\xff\xff" + mark) > 20
    index = entries(part / "index")
    assert [key for key, _ in index] == [key for key, _ in pages[::128]]
    for key, value in index:
        (at,) = struct.unpack(">q", value)
        at += 20 if raw[at : at + 4] == b"\xff" * 4 else 0
        assert raw[at + 8 :].startswith(key)
    for name in ("data", "index"):
        whole = (part / name).read_bytes()
        sums = (part / f".{name}.crc").read_bytes()
        checksums(part / name)
        assert (part / f".{name}.crc").read_bytes() == sums
        assert len(sums) == 8 + 4 * -(-len(whole) // 512)
    pages.reverse()
    sequence_file(tmp_path / "db" / "current" / "part-r-00000" / "data", pages, CRAWL_DATUM)
    with pytest.raises(InputError, match="not in byte order"):
        update_crawldb(web, tmp_path / "db", tmp_path / "unsorted")
    assert not (tmp_path / "unsorted").exists()
    assert not list(tmp_path.glob(".unsorted*"))


def test_a_database_as_seeds(tmp_path, web, crawldb):
    odd = [(text("http://x.org/a\tb"), crawl_datum(1, 0))]
    sequence_file(crawldb / "current" / "part-r-00002" / "data", odd, CRAWL_DATUM)
    tally = Tally(strict=True)
    assert update_crawldb(web, crawldb, tmp_path / "seeds", format="seeds", clear=0.5, tally=tally) == (2, 2)
    assert (tmp_path / "seeds").read_text().splitlines() == [
        f"{A}\tnutch.score={score(web, A)}", f"{C}\tnutch.score=0.5", f"{Q}\tnutch.score={score(web, Q)}",
    ]  # fmt: skip
    assert list(tally.skipped) == ["URL that a list of seeds cannot hold"]


@pytest.mark.parametrize("format_", ["csv", "text"])
def test_the_folder_of_a_dump_is_read_as_it_is(tmp_path, web, crawldb, format_):
    update_crawldb(web, crawldb, tmp_path / "whole", format=format_, clear=0.25)
    if format_ == "csv":
        head, *rows = (tmp_path / "whole").read_text().splitlines(keepends=True)
        one, two = head + "".join(rows[:2]), head + "".join(rows[2:])
    else:
        whole = (tmp_path / "whole").read_text()
        one, two = whole[: whole.index(Q)], whole[whole.index(Q) :]
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "part-r-00000").write_text(one)
    (folder / "part-r-00001.gz").write_bytes(gzip.compress(two.encode()))
    (folder / "_SUCCESS").touch()
    checksums(folder / "part-r-00000")
    checksums(folder / "part-r-00001.gz")
    assert update_crawldb(web, folder, tmp_path / "out", clear=0.25) == (2, 1)
    assert (tmp_path / "out").read_text() == (tmp_path / "whole").read_text()
    (folder / "part-r-00000").write_text(one.replace("db_", "dx_"))
    with pytest.raises(DamageError, match="differs from its checksum"):
        update_crawldb(web, folder, tmp_path / "out2")
    assert not (tmp_path / "out2").exists()


@pytest.mark.parametrize(("format_", "hint"), [("csv", "dump as text"), ("text", "another crawl")])
def test_a_dump_that_hardly_meets_the_graph_is_refused(tmp_path, crawldb, web, format_, hint):
    update_crawldb(web, crawldb, tmp_path / "dump", format=format_)
    other = Graph.from_arcs([(B, A)], into=tmp_path / "other")
    linkrank(other).save(other, "linkrank")
    with pytest.raises(InputError, match=rf"only 1 of 3 URLs are in the web graph\. .*{hint}"):
        update_crawldb(other, tmp_path / "dump", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert update_crawldb(other, tmp_path / "dump", tmp_path / "out", allow_unmatched=True) == (1, 2)


@pytest.mark.parametrize("format_", ["csv", "text"])
def test_dumps_differ_in_nothing_but_the_scores(tmp_path, web, crawldb, format_):
    other = Graph.from_arcs([(C, A), (B, A), (B, Q)], into=tmp_path / "other")
    linkrank(other).save(other, "linkrank")
    update_crawldb(other, crawldb, tmp_path / "dump", format=format_)
    update_crawldb(web, crawldb, tmp_path / "direct", format=format_, clear=0.25)
    before = (tmp_path / "dump").read_text()
    assert update_crawldb(web, tmp_path / "dump", tmp_path / "dump", clear=0.25) == (2, 1)
    assert (tmp_path / "dump").read_text() == (tmp_path / "direct").read_text() != before
    with pytest.raises(ParameterError, match="cannot be changed"):
        update_crawldb(web, tmp_path / "dump", tmp_path / "x", format="text" if format_ == "csv" else "csv")


def test_damaged_records_are_counted_and_other_files_refused(tmp_path, web, crawldb):
    part = crawldb / "current" / "part-r-00002"
    sequence_file(part / "data", [(text(B), b"\x09junk"), (text(B), crawl_datum(2, 0)[:-4])], CRAWL_DATUM)
    tally = Tally()
    assert update_crawldb(web, crawldb, tmp_path / "out.csv", tally=tally) == (2, 1)
    assert tally.damaged == 2
    with pytest.raises(DamageError, match="CrawlDatum"):
        update_crawldb(web, crawldb, tmp_path / "out", tally=Tally(strict=True))
    (tmp_path / "note").write_text("hello\n")
    with pytest.raises(InputError, match="neither a crawl database nor"):
        update_crawldb(web, tmp_path / "note", tmp_path / "out")
    (tmp_path / "broken.csv").write_text("Url,Status code\nhttp://a.com/,2\n")
    with pytest.raises(InputError, match="expected 11 fields; got 2"):
        update_crawldb(web, tmp_path / "broken.csv", tmp_path / "out2")
    assert not (tmp_path / "out2").exists()
    (tmp_path / "void").mkdir()
    with pytest.raises(InputError, match="no part of a job"):
        update_crawldb(web, tmp_path / "void", tmp_path / "out")
    with pytest.raises(FolderError, match="linkrank"):
        update_crawldb(Graph.from_arcs([(A, B)], into=tmp_path / "new"), crawldb, tmp_path / "out")

"""LinkRank's scores into crawls and crawl databases."""

import csv

import numpy as np
import pytest

from inlink import Graph
from inlink.base.damage import Tally
from inlink.crawl.crawl import Crawl
from inlink.errors import DamageError, FolderError, InputError, ParameterError
from inlink.nutch.crawldb import update_crawl, update_crawldb
from inlink.rank.linkrank import linkrank
from inlink.sources.crawlgraph import graph_in
from inlink.sources.rankings import load_ranking, top_of
from nutchfiles import CRAWL_DATUM, GZIP, crawl_datum, protocol_status, sequence_file, text

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
    assert top_of(tmp_path / "c", "linkrank", 1)[0][1] == max(exact[A], exact[B])
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


def test_a_database_as_text(tmp_path, web, crawldb):
    update_crawldb(web, crawldb, tmp_path / "out.txt", format="text")
    entries = (tmp_path / "out.txt").read_text().split("\n\n")
    assert entries[0] == (
        f"{A}\tVersion: 7\nStatus: 2 (db_fetched)\nFetch time: Sat Nov 21 11:16:17 UTC 2026\n"
        "Modified time: Thu Jan 01 00:00:01 UTC 1970\nRetries since fetch: 0\n"
        f"Retry interval: 2592000 seconds (30 days)\nScore: {score(web, A)}\n"
        "Signature: 000102030405060708090a0b0c0d0e0f\nMetadata: \n \t_pst_=exception(16), lastModified=0: no answer\n"
        "\tdepth=3\n\tshare=0.5\n\tContent-Type=text/html"
    )


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


def test_what_is_damaged_is_counted_and_what_is_no_database_refused(tmp_path, web, crawldb):
    part = crawldb / "current" / "part-r-00002"
    sequence_file(part / "data", [(text(B), b"\x09junk"), (text(B), crawl_datum(2, 0)[:-4])], CRAWL_DATUM)
    tally = Tally()
    assert update_crawldb(web, crawldb, tmp_path / "out", tally=tally) == (2, 1)
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

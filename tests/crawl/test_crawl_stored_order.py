"""A ranking that is stored with the crawl is its order: LinkRank by scoreupdate, and imports from files."""

import gzip
import logging

import numpy as np
import pytest
from click.testing import CliRunner

import inlink
from crawlstrategies import opened
from inlink import Ranking
from inlink.base.clock import VirtualClock
from inlink.cli import commands
from inlink.crawl.view import CrawlView
from inlink.errors import FolderError, InlinkError, InputError, ParameterError
from inlink.factors.parts import combined
from inlink.sources.crawlgraph import graph_in
from inlink.sources.rankings import import_ranking, stored_ranking

A, B, C = "http://a.com/", "http://b.com/", "http://c.org/"


def run(*args):
    result = CliRunner().invoke(commands, [str(arg) for arg in ("-q", *args)])
    if isinstance(result.exception, InlinkError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "c"
    with opened(folder, VirtualClock(), policy="first-come") as crawl:
        crawl.seed([A, B, C])
        crawl.crawled(crawl.next(1)[0], [f"{A}{k}" for k in range(3)])
    return folder


def store(folder, values, name="mine"):
    """Store values by URL; a page that is not named has 0."""
    graph = graph_in(folder)
    ranks = np.zeros(graph.num_nodes)
    for url, value in values.items():
        ranks[graph.names.index(url)] = value
    Ranking(ranks, algorithm="mine", graph_uuid=graph.uuid).save(graph, name)


def order(crawl):
    return [row.url for row in crawl.view.order(20).rows]


def test_a_stored_ranking_is_the_order(folder):
    store(folder, {A: 8.0, f"{A}1": 5.0, C: 4.0, f"{A}0": 3.0, B: 1.0})
    for _ in range(2):
        with opened(folder, VirtualClock(), policy="ranking:mine") as crawl:
            # Page 2 has no value: 0.85 · 8 ÷ 3 by the link from A.
            assert order(crawl) == [f"{A}1", C, f"{A}0", f"{A}2", B]
            why = crawl.why(f"{A}2")
            assert why.priority == pytest.approx(0.85 * 8 / 3)
            assert combined(why.parts) == pytest.approx(why.priority)
            assert [(link.url, link.gives) for link in why.inlinks] == [(A, pytest.approx(0.85 * 8 / 3))]
            assert "without a value in ranking mine" in str(why)
            assert crawl.why(C).parts[0].name == "value in ranking mine"
    assert [row.url for row in CrawlView.open(folder).order(2).rows] == [f"{A}1", C]


def test_pages_newer_than_the_ranking_are_estimated_from_their_links(folder):
    store(folder, {A: 8.0, f"{A}1": 6.0, C: 4.0, B: 1.0})
    with opened(folder, VirtualClock(), policy="ranking:mine", damping=0.5) as crawl:
        crawl.crawled(f"{A}1", [f"{B}new", f"{C}new", B])
        crawl.crawled(f"{B}new", [f"{C}newer"])
        assert crawl.why(f"{C}new").priority == pytest.approx(0.5 * 6 / 3)
        assert "newer than ranking mine" in str(crawl.why(f"{C}new"))
        assert crawl.why(f"{C}newer").priority == pytest.approx(0.5 * 0.5 * 6 / 3)
        assert crawl.why(B).priority == 1.0
        live = {url: crawl.why(url).priority for url in order(crawl)}
    with opened(folder, VirtualClock()) as crawl:
        assert {url: crawl.why(url).priority for url in order(crawl)} == pytest.approx(live)


def test_scoreupdate_changes_what_comes_next(tmp_path, folder, monkeypatch):
    store(folder, {f"{A}0": 2.0, B: 1.0}, "linkrank")
    db = tmp_path / "db"
    links = tmp_path / "links.tsv"
    links.write_text(
        "".join(f"{source}\t{target}\n" for source, target in [(A, C), (B, C), (f"{A}0", C), (C, B)])
    )
    run("nutch", "webgraph", links, "--db", db, "-D", "link.ignore.internal.host=false")
    run("nutch", "linkrank", "--db", db)
    with opened(folder, VirtualClock(), policy="ranking:linkrank") as crawl:
        assert order(crawl)[:2] == [f"{A}0", B]
        run("nutch", "scoreupdate", "--db", db, "--crawl", folder)
        monkeypatch.setattr(crawl._upkeep, "inbox_at", 0.0)
        assert crawl.next(0) == []
        while crawl.ranking:
            crawl.next(0)
        assert order(crawl)[:2] == [C, B]
        assert [lease.url for lease in crawl.next(1)] == [C]


def test_a_ranking_that_was_spoilt_leaves_the_order(folder, monkeypatch, caplog):
    store(folder, {C: 2.0, B: 1.0})
    with opened(folder, VirtualClock(), policy="ranking:mine") as crawl:
        store(folder, {C: -2.0, B: 1.0})
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                monkeypatch.setattr(crawl._upkeep, "inbox_at", 0.0)
                crawl.next(0)
        assert order(crawl)[:2] == [C, B]
        told = [one.getMessage() for one in caplog.records]
        assert len(told) == 1
        assert "ranking mine cannot order a crawl: it has values that are negative" in told[0]
    with pytest.raises(FolderError, match="cannot order a crawl"):
        opened(folder, VirtualClock())


@pytest.mark.parametrize("policy", ["ranking:", "ranking:../x", "ranking:.hidden", "ranking:a/b"])
def test_a_name_that_is_none_is_refused(tmp_path, policy):
    with pytest.raises(ParameterError, match="policy must be"):
        opened(tmp_path / "new", VirtualClock(), policy=policy)
    assert not (tmp_path / "new").exists()


def test_a_ranking_that_is_not_there_is_refused(tmp_path, folder):
    for place in (folder, tmp_path / "new"):
        with pytest.raises(FolderError, match="mine"):
            opened(place, VirtualClock(), policy="ranking:mine")
    assert not (tmp_path / "new").exists()
    with opened(folder, VirtualClock()) as crawl:
        assert crawl.settings.policy == "first-come"


def test_values_by_url_and_by_host_come_from_files(tmp_path, folder):
    ranks = tmp_path / "ranks.tsv"
    ranks.write_text(f"url\tvalue\n{A}2\t7\nHTTP://C.org\t5.5\nhttp://unknown.example/\t1\n\n")
    said = run("import-ranking", folder, ranks, "--name", "given")
    unknown = "1 line names pages or hosts that the crawl does not know"
    assert said == f"given: 2 pages of {folder} have a value; {unknown}\n"
    with opened(folder, VirtualClock(), policy="ranking:given") as crawl:
        assert order(crawl)[:2] == [f"{A}2", C]
    ranks.write_text("b.com\t2\nc.org\t1\n")
    assert import_ranking(folder, ranks, "hosts", by_host=True) == (2, 0)
    with opened(folder, VirtualClock(), policy="ranking:hosts") as crawl:
        assert order(crawl)[:2] == [B, C]
        crawl.crawled(B, [f"{B}new"])
        assert order(crawl)[0] == f"{B}new"


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_exported_rankings_are_imported(tmp_path, folder, kind):
    names = {"pages": [C, f"{A}2", "http://unknown.example/"], "hosts": ["com.b", "org.c"]}
    for name, nodes in names.items():
        graph = inlink.Graph.from_arcs([(node, nodes[0]) for node in nodes])
        ranks = inlink.pagerank(graph)
        file = tmp_path / f"{name}.{kind}"
        (ranks.to_parquet if kind == "parquet" else ranks.to_csv)(file)
        unknown = int(name == "pages")
        assert import_ranking(folder, file, name, by_host=name == "hosts") == (2, unknown)
        with opened(folder, VirtualClock(), policy=f"ranking:{name}") as crawl:
            assert order(crawl)[:2] == ([C, f"{A}2"] if name == "pages" else [B, C])
        stored = stored_ranking(folder, name)
        assert (stored.places(2), stored.verdict()) == (None, f"exactness unknown: imported from {file}")
    inlink.pagerank(inlink.Graph.from_arcs([(0, 1)])).to_csv(tmp_path / "numbers.csv")
    with pytest.raises(InputError, match=r"numbers\.csv: its nodes have no names"):
        import_ranking(folder, tmp_path / "numbers.csv", "numbers")


def test_common_crawls_ranks_are_recognised(tmp_path, folder):
    ranks = tmp_path / "ranks.txt.gz"
    ranks.write_bytes(
        gzip.compress(
            b"#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\n"
            b"1\t3.5E7\t3\t0.001\tcom.b\n2\t3.4E7\t1\t0.005\torg.c\n3\t3.0E7\t2\t0.002\tcom.unknown.www\n"
        )
    )
    assert import_ranking(folder, ranks, "cc") == (2, 1)
    assert import_ranking(folder, ranks, "cc-pagerank", column="pagerank") == (2, 1)
    with opened(folder, VirtualClock(), policy="ranking:cc") as crawl:
        assert order(crawl)[:2] == [B, C]
    with opened(folder, VirtualClock(), policy="ranking:cc-pagerank") as crawl:
        assert order(crawl)[:2] == [C, B]


def test_ranks_of_domains(tmp_path, folder):
    ranks = tmp_path / "ranks.txt"
    ranks.write_text("#harmonicc_val\t#host_rev\t#n_hosts\n2\tcom.b\t1\n1\torg.c\t3\n3\tcom.unknown\t1\n")
    assert import_ranking(folder, ranks, "domains", by_domain=True) == (2, 1)
    with opened(folder, VirtualClock(), policy="ranking:domains") as crawl:
        assert order(crawl)[:2] == [B, C]
    with pytest.raises(ParameterError, match="`by_host` and `by_domain` cannot both be set"):
        import_ranking(folder, ranks, "domains", by_domain=True, by_host=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line gives a value above 0"),
        (f"{A}\t0\n", "no line gives a value above 0"),
        (f"{A}\t1\n{B}\n", "line 2: expected a name, a tab and a value"),
        (f"{A}\t1\n{B}\tx\n", "line 2: the value must be a number; got 'x'"),
        (f"{A}\t-1\n", r"line 1: the value must be in \[0, 1e30\]; got -1.0"),
        (f"{A}\tnan\n", "line 1: the value must be in"),
        ("#pr_val\t#host_rev\n1\tcom.a\n", "has no column #harmonicc_val"),
    ],
)
def test_files_that_are_no_ranks_are_refused(tmp_path, folder, text, message):
    ranks = tmp_path / "ranks.tsv"
    ranks.write_text(text)
    with pytest.raises(InputError, match=message):
        import_ranking(folder, ranks, "bad")
    assert not (folder / "rankings" / "bad").exists()

"""``inlink nutch`` from segments to dumps, with Nutch's flags and properties and with ours."""

import pytest
from click.testing import CliRunner

import inlink
from inlink.cli.nutch import nutch
from inlink.crawl.crawl import Crawl
from inlink.errors import (
    DamageError,
    FolderError,
    FormatError,
    InlinkError,
    InputError,
    OutputError,
    ParameterError,
)
from inlink.nutch.properties import read_properties
from nutchfiles import CRAWL_DATUM, crawl_datum, segment, sequence_file, text

A, B, C, D = (f"http://{name}.com/" for name in "abcd")
OFF = [
    part for rule in ("internal.host", "internal.domain", "limit.page", "limit.domain")
    for part in ("-D", f"link.ignore.{rule}=false")
]  # fmt: skip


def run(*args: object, code: int = 0) -> str:
    result = CliRunner().invoke(nutch, [str(arg) for arg in args], catch_exceptions=True)
    if isinstance(result.exception, InlinkError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def segments(tmp_path):
    folder = tmp_path / "segments"
    segment(folder / "1", {A: (1, [B, C]), B: (1, [C])})
    segment(folder / "2", {C: (2, [A]), D: (2, [C])}, {A: (0x25, 5)})
    return folder


def test_the_figures_of_the_reference_by_nutchs_own_flags(tmp_path, segments):
    db = tmp_path / "db"
    said = run("webgraph", "-webgraphdb", db, "-segment", segments / "1", segments / "2", *OFF)
    assert said == f"{db}: page graph, 4 nodes, 5 arcs, of 4 fetched pages\n"
    said = run("linkrank", "-webgraphdb", db, *OFF)
    assert said.startswith("linkrank: 10 rounds; mean error of a score at most ")
    assert run("nodedumper", "-webgraphdb", db, "-scores", "-topn", 2) == f"{C}\t3.3584597\n{A}\t3.1635885\n"
    assert run("nodereader", "-webgraphdb", db, "-url", D) == (
        f"{D}:\n  inlink score: 0.3625\n  outlink score: 0.3625\n  num inlinks: 0\n  num outlinks: 1\n"
    )
    assert run("linkdump", "--db", db, "--url", B).startswith(
        f"{B}:\n  {A} - num inlinks: 1, num outlinks: 2, inlink"
    )
    assert (
        run("nodedump", "--db", db, "--inlinks", "--group", "domain", "sum", "-n", 1, "--eff")
        == "c.com=3.0\n"
    )
    run("nodedump", "--db", db, "--outlinks", "-o", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == f"{A}\t2.0\n{B}\t1.0\n{C}\t1.0\n{D}\t1.0\n"


def test_loops_are_found_and_left_out(tmp_path, segments):
    db = tmp_path / "db"
    run("webgraph", "--segment-dir", segments, "--db", db)
    assert run("loops", "--db", db) == f"{db}: 4 of 5 links are loops of depth 2\n"
    assert "without 4 loops" in run("linkrank", "--db", db)
    assert run("nodedump", "--db", db, "-n", 1) == f"{C}\t0.670625\n"
    assert "loops" not in run("linkrank", "--db", db, "--no-loops", "--tol", "1e-9")
    assert (
        run("loops", "--db", db, "-D", "link.loops.depth=1") == f"{db}: 2 of 5 links are loops of depth 1\n"
    )
    run("webgraph", "--update", "--segment-dir", segments, "--db", db)
    with pytest.raises(FolderError, match="rank with --no-loops"):
        run("linkrank", "--db", db)


def test_updates_gone_pages_and_rules(tmp_path, segments):
    db = tmp_path / "db"
    run("webgraph", "--segment", segments / "1", "--db", db, "--keep-host", "--no-domain-limit")
    assert "5 arcs" in run("webgraph", "--update", "--db", db, segments / "2")
    assert "3 arcs" in run("webgraph", "--update", "--db", db, "--delete-gone", segments / "2")
    with pytest.raises(ParameterError, match="same rules"):
        run("webgraph", "--update", "--db", db, "-D", "link.ignore.internal.host=true", segments / "2")
    assert "4 nodes" in run("webgraph", "--db", db, "--replace", segments / "1", segments / "2")
    assert "name a segment" in run("webgraph", "--db", db, code=2)


def test_scores_go_to_crawls_and_databases(tmp_path, segments):
    db = tmp_path / "db"
    run("webgraph", "--segment-dir", segments, "--db", db)
    run("linkrank", "--db", db)
    with Crawl(tmp_path / "c", rerank_share=None) as crawl:
        crawl.seed([A, "http://x.org/"])
    said = run(
        "scoreupdate", "--db", db, "--crawl", tmp_path / "c", "-D", "link.score.updater.clear.score=0.5f"
    )
    assert said == f"{tmp_path / 'c'}: 1 URL got a score, 1 are not in the web graph and got 0.5\n"
    assert run("scoreupdater", "-webgraphdb", db, "-crawldb", tmp_path / "c", "--clear", 0).endswith(
        "got 0\n"
    )
    sequence_file(
        tmp_path / "cdb" / "current" / "part-00000" / "data", [(text(A), crawl_datum(2, 0))], CRAWL_DATUM
    )
    said = run("scoreupdate", "--db", db, "--crawldb", tmp_path / "cdb", "-o", tmp_path / "out.csv")
    assert said == f"{tmp_path / 'out.csv'}: 1 URL got a score, 0 are not in the web graph and got 0\n"
    assert (tmp_path / "out.csv").read_text().count(A) == 1
    assert "--output is missing" in run("scoreupdate", "--db", db, "--crawldb", tmp_path / "cdb", code=2)
    assert "one of --crawl, --crawldb and --nodes" in run("scoreupdate", "--db", db, code=2)


def test_a_damaged_database_is_refused_unless_its_damage_is_to_be_skipped(tmp_path, segments):
    db, cdb, out = tmp_path / "db", tmp_path / "cdb", tmp_path / "out.csv"
    run("webgraph", "--segment-dir", segments, "--db", db)
    run("linkrank", "--db", db)
    pages = [(text(url), crawl_datum(2, 0)) for url in (A, B, C)]
    data = sequence_file(cdb / "current" / "part-00000" / "data", pages, CRAWL_DATUM, mode="none")
    raw = data.read_bytes()
    # The version of B's CrawlDatum.
    data.write_bytes(raw.replace(text(B) + b"\7", text(B) + b"\x63"))
    with pytest.raises(DamageError, match="CrawlDatum"):
        run("scoreupdate", "--db", db, "--crawldb", cdb, "-o", out)
    assert not out.exists()
    said = run("scoreupdate", "--db", db, "--crawldb", cdb, "-o", out, "--skip-damaged")
    assert "left out: 1 ×" in said
    # Two lengths, the key and the CrawlDatum.
    assert f"{8 + len(text(B)) + len(crawl_datum(2, 0))} bytes passed over" in said
    assert "2 URLs got a score" in said


def test_a_site_file_and_what_wins(tmp_path, segments):
    site = tmp_path / "nutch-site.xml"
    site.write_text(
        '<?xml version="1.0"?>\n<configuration>\n<property><name>http.agent.name</name><value>x</value></property>\n'
        "<property><name> link.analyze.num.iterations </name><value> 3 </value><final>true</final></property>\n"
        "<property><name>link.analyze.damping.factor</name><value>0.5f</value></property>\n</configuration>\n"
    )
    db = tmp_path / "db"
    run("webgraph", "--segment-dir", segments, "--db", db)
    run("linkrank", "--db", db, "-conf", site, "-Dlink.analyze.num.iterations=4")
    ranking = inlink.Ranking.load(db, "linkrank")
    assert (ranking.iterations, ranking.parameters["damping"]) == (4, 0.5)
    run("linkrank", "--db", db, "-conf", site, "--max-iter", 2, "--damping", 0.25, "--start", 3)
    ranking = inlink.Ranking.load(db, "linkrank")
    assert (ranking.iterations, ranking.parameters["damping"], ranking.parameters["start"]) == (2, 0.25, 3)


def test_properties_that_mean_nothing_are_refused(tmp_path):
    assert read_properties(
        [], ["mapreduce.job.reduces=2", "link.analyze.rank.one=3", "link.delete.gone= TRUE "]
    ) == {"link.delete.gone": True}
    for wrong, match in (
        ("link.ignore.host=true", "unknown property"), ("link.delete.gone=yes", "must be true or false; got 'yes'"),
        ("link.loops.depth=2.5", "whole number"), ("link.analyze.initial.score=", "a number"), ("x", "name=value"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=match):
            read_properties([], [wrong])
    site = tmp_path / "site.xml"
    for raw, match in (
        ("<html></html>", "begins with <html>"), ("<configuration>", "not well-formed XML"), ("", "not well-formed"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><configuration>&a;</configuration>', "an entity"),
        ('<?xml version="1.0" encoding="nonsense"?><configuration/>', "nonsense|not well-formed|cannot be read"),
    ):  # fmt: skip
        site.write_text(raw)
        with pytest.raises(InputError, match=match):
            read_properties([site], [])
    with pytest.raises(InputError, match="cannot be read"):
        read_properties([tmp_path / "absent.xml"], [])


COMMANDS = ("webgraph", "loops", "linkrank", "scoreupdate", "nodedump", "nodereader", "linkdump")


def test_help_names_nutchs_flags():
    said = run("webgraph", "--help")
    assert "-webgraphdb" in said
    assert "-segmentDir" in said
    assert "linkrank" in run("-help") == run("--help")
    for command in COMMANDS:
        assert run(command, "-help") == run(command, "--help")
        assert run(command, code=2) == run(command, "--help")


def test_a_misspelt_flag_is_refused_as_a_whole(tmp_path, segments, monkeypatch):
    db = tmp_path / "db"
    run("webgraph", "--segment-dir", segments, "--db", db)
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    said = run("nodedump", "-webgraphdb", db, "-outlink", code=2)
    assert "No such option '-outlink'" in said.replace(": -outlink", " '-outlink'")
    assert "-outlinks" in said.split("-outlink", 1)[1]
    assert "-segmentdir" in run("webgraph", "-segmentdir", segments, "-webgraphdb", db, code=2)
    assert "-topnn" in run("nodedump", "--db", db, "-topnn", "3", code=2)
    assert "-n5" in run("nodedump", "--db", db, "-n5", code=2)
    # The value of an option may begin with a dash.
    assert run("linkrank", "--db", db, "--start", "-1", "-Dlink.loops.depth=3", "-D", "link.loops.depth=3")
    assert not list(empty.iterdir())


def test_a_web_graph_is_not_replaced_unasked(tmp_path, segments):
    db = tmp_path / "db"
    assert "3 arcs" in run("webgraph", "-webgraphdb", db, "-segment", segments / "1")
    # Nutch adds to a web graph that exists.
    assert "5 arcs" in run("webgraph", "-webgraphdb", db, "-segment", segments / "2")
    with pytest.raises(OutputError, match=r"--update.*--replace") as caught:
        run("webgraph", "--db", db, "--segment", segments / "2")
    assert "\n" not in str(caught.value)
    assert inlink.Graph.open(db).num_arcs == 5
    assert "2 arcs" in run("webgraph", "-webgraphdb", db, "--replace", "-segment", segments / "2")
    assert "5 arcs" in run("webgraph", "--db", db, "--update", "-segment", segments / "1")
    assert "cannot be combined" in run(
        "webgraph", "--db", db, "--update", "--replace", segments / "1", code=2
    )
    # A newer fetch replaces a page's links, an older one does not; other pages stay.
    segment(segments / "3", {A: (9, [D]), B: (0, [D])})
    assert "4 arcs" in run("webgraph", "-webgraphdb", db, "-segment", segments / "3")
    graph = inlink.Graph.open(db)
    assert [graph.names[n] for n in graph.outlinks(graph.node(A))] == [D]
    assert [graph.names[n] for n in graph.outlinks(graph.node(B))] == [C]


def test_a_segment_that_was_not_parsed_says_so(tmp_path):
    raw = tmp_path / "segments" / "20261122"
    for name in ("crawl_generate", "crawl_fetch", "content"):
        (raw / name).mkdir(parents=True)
    with pytest.raises(FormatError, match=r"not parsed: it has content, .* but no parse_data"):
        run("webgraph", "--db", tmp_path / "db", "-segment", raw)
    with pytest.raises(InputError, match="1 segment that was not parsed"):
        run("webgraph", "--db", tmp_path / "db", "-segmentDir", raw.parent)
    assert not (tmp_path / "db").exists()

"""A crawl as it was: each earlier event, compared with a crawl that ended there."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import inlink
from crawlcommand import inlink as command
from crawlstrategies import Clock, columns, histories, opened, perform
from foldercommands import shell
from inlink.crawl.asof import as_of, moment_of
from inlink.errors import ParameterError
from inlink.sources.crawlgraph import graph_in
from inlink.sources.rankings import stored_ranking
from inlink.store.reader import known_pages


def state(folder):
    pages = known_pages(folder)
    try:
        return columns(pages)
    finally:
        pages.close()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories(12), st.data())
def test_a_crawl_as_it_was_is_the_crawl_that_ended_there(tmp_path_factory, steps, data):
    folder, clock = tmp_path_factory.mktemp("c") / "c", Clock()
    leases, ends = [], []
    with opened(folder, clock, policy="first-come") as crawl:
        for step in steps:
            perform(crawl, clock, leases, step)
            ends.append((crawl.view.info().events, folder.parent / f"c{len(ends)}"))
            shutil.copytree(folder, ends[-1][1], ignore=shutil.ignore_patterns("lock", "inbox"))
    event, ended = data.draw(st.sampled_from(ends))
    with as_of(folder, event, folder.parent) as was:
        assert (was.event, was.approximate) == (event, "")
        assert state(was.folder) == state(ended)
    assert not [path for path in folder.parent.iterdir() if path.name.startswith(".")]


@pytest.fixture
def crawl(tmp_path):
    """Five visits, one a second from 1,000 on; the policy changes before the last."""
    clock, folder = inlink.VirtualClock(1_000.0), tmp_path / "mine"
    polite = inlink.Politeness(delay=0)
    with inlink.Crawl(folder, policy="first-come", politeness=polite, clock=clock) as crawl:
        crawl.seed(["http://a.example/"])
        for k in range(4):
            for lease in crawl.next(1):
                crawl.crawled(lease, [f"/{k}", f"/{k}x"])
            clock.advance(1.0)
    with inlink.Crawl(folder, policy="depth-first", clock=clock) as crawl:
        for lease in crawl.next(1):
            crawl.crawled(lease, ["/last"])
    return folder


def test_settings_were_those_of_the_time(crawl, tmp_path):
    view = inlink.CrawlView.open(crawl)
    assert [row.url for row in view.order(1).rows] == ["http://a.example/last"]
    with as_of(crawl, 1_001.5, tmp_path) as was:
        then = inlink.CrawlView.open(was.folder, lambda: was.time)
        # Two pages had been crawled: the first page, and /0.
        assert then.info().crawled == 2
        assert [row.url for row in then.order(2).rows] == ["http://a.example/0x", "http://a.example/1"]
        assert (was.time, was.approximate) == (1_001.0, "")
        assert graph_in(was.folder).num_arcs == 4


def test_a_crawl_that_was_not_ranked_yet_is_exact(tmp_path):
    with inlink.Crawl(tmp_path / "c", clock=inlink.VirtualClock()) as crawl:
        crawl.seed(["http://a.example/"])
        crawl.crawled(crawl.next(1)[0], ["/b", "http://b.example/"])
        events = crawl.view.info().events
        crawl.rerank(wait=True)
    with as_of(tmp_path / "c", events, tmp_path) as was:
        assert was.approximate == ""
        assert not (was.folder / "ranks").exists()
        assert inlink.CrawlView.open(was.folder).why("http://b.example/").priority > 0


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("#12", 12),
        ("12", 12.0),
        ("1e9", 1e9),
        ("1970-01-02", 86400.0),
        ("1970-01-01T01:00:00", 3600.0),
        ("1970-01-01T01:00:00+01:00", 0.0),
    ],
)
def test_a_moment_is_an_event_or_a_time(text, moment):
    found = moment_of(text)
    assert (found, type(found)) == (moment, type(moment))


@pytest.mark.parametrize("text", ["", "#0", "#", "yesterday", "nan", "inf", "-inf", "2026-13-01", "#1.5"])
def test_texts_that_are_no_moments_are_refused(text):
    with pytest.raises(ParameterError, match="--as-of takes"):
        moment_of(text)


@pytest.mark.parametrize("moment", [10**6, 0, -1, 999.0])
def test_a_moment_that_the_log_lacks_is_refused(crawl, tmp_path, moment):
    with (
        pytest.raises(ParameterError, match=r"no event|nothing had happened"),
        as_of(crawl, moment, tmp_path),
    ):
        pass


def test_the_commands_show_what_was(crawl):
    def said(*given: str) -> str:
        return shell(*given, cwd=crawl.parent)

    before = {path: path.stat().st_mtime_ns for path in crawl.rglob("*")}
    assert said("next", "mine", "--peek", "-n", "1").split("\t")[3] == "http://a.example/last"
    assert (
        said("next", "mine", "--peek", "-n", "1", "--as-of", "1001.5").split("\t")[3] == "http://a.example/0x"
    )
    assert "waiting at place 2" in said("why", "mine", "http://a.example/1", "--as-of", "1001.5")
    assert said("top", "mine", "--by", "degree", "--as-of", "1001.5").count("\n") == 2
    assert said("build", "mine", "-o", "graph", "--as-of", "1001.5") == "graph: page graph, 5 nodes, 4 arcs\n"
    sources = inlink.Graph.open(crawl.parent / "graph").meta["sources"]
    assert [source.partition("#")[0] for source in sources] == ["mine (crawl, as of event "]
    risen = said("diff", "mine", "--as-of", "1001.5", "--by", "degree", "--risen", "-n", "3")
    assert "A: mine (crawl, as of event #6), degree, all 5 nodes" in risen
    assert "only in A: 0; only in B: 5" in risen
    assert "only in B\tnew\t" in risen
    same = said("diff", "mine", "--as-of", "#6", "--as-of", "1001.5", "--by", "degree", "--json")
    assert json.loads(same)["moved_by_place"] == json.loads(same)["only_in_b"] == []
    assert {path: path.stat().st_mtime_ns for path in crawl.rglob("*")} == before


def test_a_ranking_of_then_is_kept_beside_the_present_ones(crawl):
    ranked = shell("rank", "mine", "--as-of", "1001.5", "--name", "then", cwd=crawl.parent)
    assert ranked.startswith("then:")
    with as_of(crawl, 1_001.5, crawl.parent) as was:
        wanted = inlink.pagerank(graph_in(was.folder)).values
    assert stored_ranking(crawl, "then").values == pytest.approx(wanted, abs=1e-6)
    best = shell("top", "mine", "--by", "then", "-n", "1", cwd=crawl.parent)
    # The page had one link from a page with two links, and so had /1x, which became known after it.
    assert best.split("\t")[2] == "http://a.example/1"


@pytest.mark.parametrize(
    "given",
    [
        ["next", "mine", "--as-of", "#1"],
        ["next", "mine", "--peek", "--as-of", "#999"],
        ["why", "mine", "http://a.example/0", "--as-of", "#1"],
        ["top", "mine", "--by", "trustrank", "--as-of", "#2"],
        ["build", "nosuch", "-o", "g", "--as-of", "#2"],
        ["rank", "mine", "--as-of", "#2"],
        ["rank", "mine", "--as-of", "#999", "--name", "then"],
        ["diff", "mine"],
        ["diff", "mine", "mine", "--as-of", "#2"],
        ["diff", "mine", "--as-of", "#2", "--as-of", "#3", "--as-of", "#4"],
        ["diff", "nosuch", "--as-of", "#2"],
        ["diff", "mine", "--as-of", "#2", "--by", "trustrank"],
        ["dump", "rankings", "mine", "--aduana"],
        ["dump", "rankings", "http://a.example/v1/crawls/c"],
        ["why", "http://a.example/v1/crawls/c", "http://a.example/", "--as-of", "#2"],
    ],
)
def test_moments_that_cannot_be_shown_are_one_line(crawl, given):
    done = command("-q", *given, cwd=crawl.parent, code=2)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""

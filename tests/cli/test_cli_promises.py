"""Commands do what they are told: outputs, crawls where graphs are expected, empty options."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import inlink
from inlink.cli import commands
from inlink.errors import InlinkError, OutputError
from inlink.graph.graph import Graph
from inlink.protocol import Link
from inlink.rank.ranking import Ranking
from inlink.sources.crawlgraph import graph_in

URL = "http://a.example/"


def run(*given: object) -> str:
    result = CliRunner().invoke(commands, ["-q", *map(str, given)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A crawl of three pages, of which the best is not crawled."""
    with inlink.Crawl(tmp_path / "c") as crawl:
        crawl.seed([URL])
        crawl.crawled(URL, [f"{URL}b", f"{URL}c"])
        crawl.crawled(f"{URL}b", [f"{URL}c"])
    run("rank", tmp_path / "c")
    return tmp_path / "c"


OTHER = "http://b.example/"


@pytest.mark.parametrize(
    ("options", "line", "urls"),
    [
        (
            [],
            "c: crawled pages, best first; --uncrawled adds other pages of their hosts; --foreign adds pages of other "
            "hosts",
            [f"{URL}b", URL],
        ),
        (
            ["--uncrawled"],
            "c: crawled pages and other pages of their hosts, best first; --foreign adds pages of other hosts",
            [f"{URL}c", f"{URL}b", URL],
        ),
        (
            ["--foreign"],
            "c: crawled pages and pages of other hosts, best first; --uncrawled adds other pages of their hosts",
            [OTHER, f"{URL}b", URL],
        ),
        (
            ["--foreign", "--uncrawled"],
            "c: crawled pages and other pages of their hosts and pages of other hosts, best first",
            [OTHER, f"{URL}c", f"{URL}b", URL],
        ),
    ],
)
def test_top_says_which_pages_it_shows(tmp_path: Path, options: list[str], line: str, urls: list[str]):
    """The best page is of another host, the second was not crawled."""
    folder = tmp_path / "c"
    with inlink.Crawl(folder) as crawl:
        crawl.seed([URL])
        crawl.crawled(URL, [Link("b", text="B\tb"), f"{URL}c", OTHER])
        crawl.crawled(f"{URL}b", [f"{URL}c", OTHER, f"{URL}old"])
        crawl.crawled(f"{URL}old", redirected_to=URL)
        graph = graph_in(folder)
        values = [
            {URL: 1.0, f"{URL}b": 2.0, f"{URL}c": 3.0, OTHER: 4.0}.get(name, 0.0)
            for name in graph.names or ()
        ]
        Ranking(np.array(values), algorithm="mine", graph_uuid=graph.uuid).save(graph, "mine")
        views = [crawl.view, inlink.CrawlView.open(folder)]
        for view in views:
            flags = {name: f"--{name}" in options for name in ("foreign", "uncrawled")}
            assert [row.url for row in view.top("mine", len(urls), **flags).rows] == urls
            crawled = [row.url for row in view.top(None, 100, **flags).rows if row.crawled]
            assert sorted(crawled) == [URL, f"{URL}b"]
    result = CliRunner().invoke(
        commands, ["top", str(folder), "--by", "mine", "-n", str(len(urls)), *options]
    )
    hint = "--content leaves out links of menus and footers"
    assert result.stderr.splitlines() == [f"{line.replace('c:', f'inlink: {folder}:', 1)}; {hint}"]
    rows = [row.split("\t") for row in result.stdout.splitlines()]
    assert [(row[0], row[2]) for row in rows] == [(str(place), url) for place, url in enumerate(urls, 1)]
    assert [row[-1] for row in rows if row[2] == f"{URL}b"] == ["B b"]
    shown = json.loads(run("top", folder, "--by", "mine", "--json", *options))
    assert [row["node"] for row in shown][: len(urls)] == urls
    assert run("top", folder, "--by", "mine", "-n", 0) == ""


def test_top_refuses_what_it_cannot_show(folder: Path, tmp_path: Path):
    Graph.from_arcs([("a", "b")], into=tmp_path / "g")
    for given in (
        ["top", tmp_path / "g", "--foreign"],
        ["top", folder, "-n", "1001"],
        ["top", folder, "--hubs"],
    ):
        with pytest.raises(InlinkError):
            run(*given)


def test_info_of_a_crawl_is_that_of_crawl_info(folder: Path):
    assert json.loads(run("info", folder, "--json")) == json.loads(run("crawl-info", folder, "--json"))
    assert run("info", folder) == run("crawl-info", folder)
    assert run("info", folder, "--verify") == run("crawl-info", folder)


def test_info_shows_the_structure_of_a_crawl(folder: Path):
    figures = json.loads(run("info", folder, "--structure", "--json"))
    plain = json.loads(run("info", folder, "--json"))
    assert sum(figures["structure"]["bow_tie"].values()) == plain["pages"]
    shown, before = run("info", folder, "--structure"), run("info", folder)
    assert shown.startswith(before)
    assert "strong components" in shown.removeprefix(before)


def test_info_shows_the_structure_of_a_graph(tmp_path: Path):
    # a ring of three, which a node reaches and which reaches a chain of thirty nodes; a self-loop apart
    arcs = [(0, 1), (1, 2), (2, 0), (3, 0), (2, 4), *((k, k + 1) for k in range(4, 33)), (34, 34)]
    inlink.read(Graph.from_arcs(arcs).to_scipy(), into=tmp_path / "g", compress=True)
    assert "structure" not in json.loads(run("info", tmp_path / "g", "--json"))
    figures = json.loads(run("info", tmp_path / "g", "--structure", "--json"))["structure"]
    assert figures["bow_tie"] == {
        "core": 3, "in": 1, "out": 30, "tubes": 0, "tendrils": 0, "disconnected": 1
    }  # fmt: skip
    assert (figures["strong_components"], figures["weak_components"]) == (33, 2)
    assert figures["pairs"][:2] == [35, 35 + len(arcs) - 1]
    assert (figures["largest_core_number"], figures["largest_core_size"]) == (2, 3)
    lines = [line.split(maxsplit=2) for line in run("info", tmp_path / "g", "--structure").splitlines()]
    assert ["core", "3", "(8.6%)"] in lines
    assert ["strong", "components", "33, the largest of 3 (8.6%) nodes"] in lines
    assert ["innermost", "k-core", "3 (8.6%), k = 2"] in lines
    within = [line for line in lines if line[1] in ("arc", "arcs")]
    assert [int(line[0]) for line in within] == [*range(1, 21), len(figures["pairs"]) - 1]
    assert within[0][2] == f"{len(arcs) - 1:,} (6.0%)"
    assert within[-1][2].endswith("(100.0%)")


def test_info_shows_the_structure_of_a_graph_without_arcs(tmp_path: Path):
    Graph.from_arcs(np.empty((0, 2), np.uint32), into=tmp_path / "g")
    shown = run("info", tmp_path / "g", "--structure")
    assert "strong components  0, the largest of 0 nodes\n" in shown
    assert shown.endswith("reachable pairs    0\n")
    figures = json.loads(run("info", tmp_path / "g", "--structure", "--json"))["structure"]
    assert figures["average_distance"] is None


@pytest.mark.parametrize(
    "given",
    [
        ["build", "links.tsv", "-o"],
        ["fold", "g", "-o"],
        ["subgraph", "g", "--nodes", "n", "-o"],
        ["export", "g", "-o"],
        ["plot", "degrees", "g", "-o"],
        ["dump", "pages", "c", "-o"],
        ["backup", "c", "-o"],
        ["repair", "c", "-o"],
        ["crawl", URL, "-o"],
        ["crawl", URL, "-o", "x", "--items"],
        ["nutch", "webgraph", "s", "--db"],
        ["nutch", "nodedump", "g", "-o"],
    ],
)
def test_no_folder_is_made_above_an_output(tmp_path: Path, monkeypatch, given: list[str]):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match=re.escape("the folder no/where does not exist")):
        run(*given, "no/where/x.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--topic", ""], "has no words"),
        (["--topic", " - "], "has no words"),
        (["--keywords", " , "], "has no words"),
    ],
)
def test_an_empty_topic_is_refused(tmp_path: Path, monkeypatch, given: list[str], said: str):
    pytest.importorskip("scrapy")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InlinkError, match=said):
        run("crawl", URL, *given)
    assert list(tmp_path.iterdir()) == []


def test_integers_are_numbers_of_nodes():
    graph = Graph.from_arcs([(1, 2), (2, 3)])
    assert (graph.num_nodes, repr(graph)) == (4, "<inlink graph: 4 nodes, 2 arcs; nodes 0 to 3>")
    assert repr(Graph.from_arcs([("1", "2"), ("2", "3")])) == "<inlink graph: 3 nodes, 2 arcs>"


def test_the_help_lists_every_command_with_its_whole_first_sentence():
    shown = " ".join(run("--help").split())
    for name, command in commands.every().items():
        sentence = " ".join((command.help or "").split("\n\n")[0].split()).partition(". ")[0].rstrip(".")
        assert f" {name} {sentence}" in shown


def test_the_shell_completes_commands_and_options():
    completed = ShellComplete(commands, {}, "inlink", "_INLINK_COMPLETE").get_completions
    assert [item.value for item in completed([], "back")] == ["backup"]
    assert "--peek" in [item.value for item in completed(["next"], "--p")]


@pytest.mark.slow
@pytest.mark.parametrize("command", [["why", "nothing", "x"], ["crawl", "http://127.0.0.1:9/", "-o", "c"]])
def test_without_machine_code_and_numba_one_line_says_what_to_install(command: list[str], tmp_path: Path):
    (tmp_path / "numba.py").write_text("raise ModuleNotFoundError('No module named numba', name='numba')\n")
    places = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    run = subprocess.run(
        [sys.executable, "-m", "inlink", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places), "INLINK_MACHINE_CODE": "off"},
    )
    assert run.returncode == 2, run.stderr
    assert run.stderr.count("\n") == 1
    assert "pip install 'inlink[jit]'" in run.stderr

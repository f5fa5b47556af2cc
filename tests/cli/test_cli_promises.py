"""Commands do what they are told: outputs, crawls where graphs are expected, empty options."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import inlink
from inlink.cli import commands
from inlink.errors import InlinkError, OutputError
from inlink.graph.graph import Graph

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


def test_top_shows_what_was_crawled_and_all_the_rest(folder: Path):
    every = json.loads(run("top", folder, "--json", "--all"))
    assert [(row["place"], row["node"]) for row in every] == [(1, f"{URL}c"), (2, f"{URL}b"), (3, URL)]
    assert json.loads(run("top", folder, "--json")) == every[1:]
    assert json.loads(run("top", folder, "--json", "-n", 1)) == every[1:2]
    assert [line.split("\t")[0] for line in run("top", folder).splitlines()] == ["2", "3"]
    assert run("top", folder, "-n", 0) == ""


def test_info_of_a_crawl_is_that_of_crawl_info(folder: Path):
    assert json.loads(run("info", folder, "--json")) == json.loads(run("crawl-info", folder, "--json"))
    assert run("info", folder) == run("crawl-info", folder)
    assert run("info", folder, "--verify") == run("crawl-info", folder)


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

"""``inlink replay`` as a command."""

import json

import pytest
from click.testing import CliRunner
from selectolax.lexbor import LexborHTMLParser

from crawlcommand import inlink
from inlink import Graph
from inlink.cli import commands
from inlink.errors import InlinkError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replay")
    arcs = [(k, (7 * k + step) % 60) for k in range(60) for step in (1, 5)]
    Graph.from_arcs(arcs, into=folder / "web")
    return folder


def run(folder, *given, code=0):
    return inlink("-q", "replay", *given, cwd=folder, code=code)


@pytest.mark.slow
def test_the_table_the_files_and_the_pictures(folder):
    pytest.importorskip("matplotlib")
    done = run(
        folder, "web", "--policy", "random,hosts-in-turns", "--policy", "opic", "--seeds", "2x2", "--budget", "50%",
        "--host-pages", "8,0", "--measure", "indegree", "--at", "10%,50%", "--set", "damping=0.7", "-o", "out",
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0] == "hosts of 8 pages"
    assert lines[1].split("\t")[:4] == ["order", "10%", "50%", "area"]
    assert [line.split("\t")[0] for line in lines[2:5]] == ["random", "hosts-in-turns", "opic"]
    assert "one host" in lines
    assert {path.name for path in (folder / "out").iterdir()} == {
        "replay.json", "replay.csv", "replay.png", "replay-hosts-all.png",
    }  # fmt: skip
    told = json.loads((folder / "out" / "replay.json").read_text())
    assert told["settings"]["crawl"] == {"damping": 0.7}
    assert "a CPU second" in done.stderr


@pytest.mark.slow
def test_the_report_is_one_page_that_loads_nothing(folder):
    pytest.importorskip("matplotlib")
    done = run(
        folder, "web", "--policy", "random,hosts-in-turns", "--seeds", "12x2", "--budget", "50%", "--host-pages", "8,0",
        "--at", "10%,50%", "--no-tau", "--top", "5", "--html", "report.html",
    )  # fmt: skip
    assert "report.html: " in done.stdout
    page = LexborHTMLParser((folder / "report.html").read_text())
    assert [node.text() for node in page.css("h2")] == [
        f"{measure}{hosts}"
        for hosts in (", hosts of 8 pages", ", one host")
        for measure in ("pagerank", "top", "authority", "indegree")
    ]
    assert all(node.attributes["src"].startswith("data:image/svg+xml;base64,") for node in page.css("img"))
    assert len(page.css("img")) == 8
    assert not page.css("script, link, iframe")
    # All pages of this web have the same rank, so only the first of equals are at the top.
    table = page.css("table")[1]
    assert [node.text() for node in table.css("th")] == ["order", "10%", "50%", "area", "won, lost, level"]
    rows = {row.css_first("td").text(): row for row in table.css("tbody tr")}
    assert list(rows) == [
        "random", "hosts-in-turns", "clairvoyant greedy (no bound)", "look-ahead", "sort bound",
    ]  # fmt: skip
    assert "baseline" in rows["random"].text()
    assert not rows["random"].css("small")
    marks = [node.text()[0] for node in rows["sort bound"].css("small.better")]
    assert marks == ["▲"] * 3


@pytest.mark.slow
def test_a_report_without_enough_seed_sets_says_so(folder):
    few = ("--seeds", "2x2", "--budget", "50%", "--no-tau", "--html", "few.html")
    run(folder, "web", "--policy", "random", *few)
    text = (folder / "few.html").read_text()
    assert "No difference is certain with fewer than 10 seed sets" in text
    assert 'class="better"' not in text
    assert 'class="worse"' not in text


def test_a_report_cannot_be_a_folder(folder):
    done = run(folder, "web", "--html", ".", code=2)
    assert done.stderr == "inlink: . is a folder: name a file\n"


def test_freshness_is_shown(folder):
    done = run(
        folder, "web", "--policy", "breadth-first", "--seeds", "2x2", "--budget", "300", "--changes", "9",
        "--revisit", '{"schedule": "FixedInterval", "seconds": 9}', "--measure", "freshness", "--at", "50%", "--no-tau",
    )  # fmt: skip
    (row,) = (line.split("\t") for line in done.stdout.splitlines()[1:])
    assert (row[0], row[1]) == ("breadth-first", "1.000 ± 0.000")
    assert 0 < float(row[2].split()[0]) < 1


def test_an_exception_of_a_policy_is_one_line(folder):
    (folder / "mine.py").write_text(
        "from inlink.frontier.policies import Policy\n"
        "class Mine(Policy):\n    def priority(self, pages):\n        return pages.nosuch\n"
    )
    done = run(folder, "web", "--policy", "random,mine:Mine", "--seeds", "1x1", "--budget", "5", code=2)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("inlink: policy mine:Mine failed at ")
    assert "mine.py, line 4, in priority: AttributeError: " in line


def test_the_old_name_of_a_policy_still_holds_for_one_version(folder):
    done = run(folder, "web", "--policy", "fifo", "--seeds", "1x1", "--budget", "5", "--no-tau")
    assert done.stdout.splitlines()[1].startswith("hosts-in-turns\t")
    assert done.stderr.count("fifo is now called hosts-in-turns") == 1


@pytest.mark.parametrize(
    "given",
    [
        ["web", "--policy", "nosuch"],
        ["web", "--seeds", "many"],
        ["web", "--budget", "half"],
        ["web", "--budget", "-5%"],
        ["web", "--at", "50%,10%"],
        ["web", "--host-pages", "a"],
        ["web", "--measure", "score"],
        ["web", "--set", "damping=3"],
        ["web", "--set", "rules=none"],
        ["web", "--revisit", "9"],
        ["web", "--revisit", "often", "--changes", "9"],
        ["web", "--revisit", "{}", "--changes", "9"],
        ["web", "--revisit", "-1", "--changes", "9"],
        ["web", "--changes", "0"],
        ["web", "--measure", "freshness"],
        ["web", "--jobs", "0"],
        ["nosuch"],
        ["http://a.example/v1/crawls/c"],
        ["web", "-o", "nosuch/out"],
        ["web", "-o", "file"],
    ],
)
def test_wrong_arguments_are_one_line_and_leave_nothing(folder, given, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "file").touch()
    before = sorted(path.name for path in folder.iterdir())
    result = CliRunner().invoke(commands, ["-q", "replay", *given])
    assert isinstance(result.exception, InlinkError | SystemExit)
    assert result.exit_code == (2 if isinstance(result.exception, SystemExit) else 1)
    assert "\n" not in str(result.exception)
    assert ("needs `changes`" in str(result.exception)) == ("freshness" in given)
    assert result.stdout == ""
    assert sorted(path.name for path in folder.iterdir()) == before

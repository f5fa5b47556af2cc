"""``inlink rank --all``: estimates, refusals before anything is computed, and going on after a kill."""

import functools
import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import inlink
from crawlcommand import INLINK
from inlink import Crawl, Graph, Ranking
from inlink.cli import commands
from inlink.errors import ParameterError
from inlink.rank import plan
from inlink.rank.ranking import list_rankings

NAMES = ["degree", "harmonic", "pagerank", "eigenvector", "katz", "betweenness"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A graph whose largest eigenvalue is below ten."""
    dice = random.Random(1)
    pairs = sorted({(f"n{dice.randrange(40)}", f"n{dice.randrange(60)}") for _ in range(120)})
    (tmp_path / "links.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    inlink.read(tmp_path / "links.tsv", into=tmp_path / "g")
    return tmp_path / "g"


def run(*given: object, code: int = 0) -> Result:
    result = CliRunner().invoke(commands, ["-q", "rank", *map(str, given)])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (folder / "rankings").iterdir()}


def test_all_measures_are_estimated_computed_and_kept(folder: Path):
    result = run(folder, "--all")
    assert result.stderr.splitlines() == [f"inlink: {name}: less than 1 s, 1 MB of memory" for name in NAMES]
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == NAMES
    graph = Graph.open(folder)
    assert list_rankings(graph) == sorted(NAMES)
    for name in NAMES:
        wanted = getattr(inlink, name)(graph).values
        assert Ranking.load(graph, name).values == pytest.approx(wanted, abs=1e-5)


def test_a_second_run_computes_nothing(folder: Path, monkeypatch):
    first = json.loads(run(folder, "--all", "--json").stdout)
    before = times(folder)
    for name in NAMES:
        monkeypatch.setattr(inlink, name, getattr(inlink, name).__wrapped__)
        monkeypatch.setitem(plan.MEASURES, name, getattr(inlink, name))
    lines = [f"{name}: stored with the same parameters, not computed again" for name in NAMES]
    again = run(folder, "--all")
    assert (again.stdout.splitlines(), again.stderr) == (lines, "")
    again = run(folder, "--all", "--json", "--threads", 1)
    assert (json.loads(again.stdout), again.stderr.splitlines()) == (first, lines)
    assert [row["name"] for row in first] == NAMES
    assert times(folder) == before


def test_other_parameters_and_a_rebuilt_graph_are_computed_again(folder: Path):
    run(folder, "--all")
    run(folder, "--algorithm", "pagerank", "--damping", "0.5")
    (line,) = (line for line in run(folder, "--all").stdout.splitlines() if "not computed" not in line)
    assert line.startswith("pagerank: converged")
    assert Ranking.load(folder, "pagerank").parameters["damping"] == 0.85
    inlink.read(folder.parent / "links.tsv", into=folder)
    result = run(folder, "--all")
    assert "not computed" not in result.stdout
    assert len(result.stdout.splitlines()) == len(NAMES)


KILLED = """
import functools, os, signal, sys
import inlink

katz = inlink.katz

@functools.wraps(katz)
def killed(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

inlink.katz = killed
from inlink.cli import main
sys.argv = ["inlink", "rank", sys.argv[1], "--all"]
main()
"""


@pytest.mark.slow
def test_goes_on_after_kill_9(folder: Path):
    done = subprocess.run([sys.executable, "-c", KILLED, folder], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert list_rankings(folder) == sorted(NAMES[:4])
    before = times(folder)
    done = subprocess.run([*INLINK, "rank", folder, "--all"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert ["not computed again" in line for line in lines] == [True] * 4 + [False] * 2
    assert [line.split(":")[0] for line in done.stderr.splitlines() if "of memory" in line] == ["inlink"] * 2
    after = times(folder)
    assert sorted(after) == sorted(NAMES)
    assert {name: after[name] for name in before} == before


def test_refused_before_anything_is_computed(folder: Path, monkeypatch):
    needed = {step.algorithm: step.memory for step in plan.plan(Graph.open(folder))}
    monkeypatch.setattr("inlink.base.memory._LITTLE", 0)
    monkeypatch.setattr("inlink.base.memory.memory_left", lambda: max(needed.values()) - 1)
    (largest,) = [name for name in NAMES if needed[name] == max(needed.values())]
    monkeypatch.setattr(inlink, "degree", inlink.degree.__wrapped__)
    result = CliRunner().invoke(commands, ["-q", "rank", str(folder), "--all"])
    message = str(result.exception)
    assert message.startswith(f"nothing was computed: {largest}: vectors and rows need")
    others = ",".join(name for name in NAMES if name != largest)
    assert message.endswith(f"--algorithm {others} computes the others.")
    assert (result.stdout, result.stderr, list_rankings(folder)) == ("", "", [])
    # The remedy of the message
    monkeypatch.setattr("inlink.base.memory.memory_left", lambda: 1 << 40)
    run(folder, "--algorithm", others)
    # A ranking that is stored needs no memory.
    run(folder, "--algorithm", largest)
    monkeypatch.setattr("inlink.base.memory.memory_left", lambda: min(needed.values()) - 1)
    assert "not computed again" in run(folder, "--all").stdout


@pytest.mark.slow
def test_refused_in_one_line_of_a_process_with_exit_code_2(folder: Path):
    program = (
        "import sys; from inlink.base import memory; memory._LITTLE = 0; memory.memory_left = lambda: 5; "
        "from inlink.cli import main; sys.argv = ['inlink', *sys.argv[1:]]; main()"
    )
    done = subprocess.run([sys.executable, "-c", program, "rank", folder, "--all"], capture_output=True)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, b"", 1), done.stderr


def test_a_refused_measure_does_not_stop_the_others(folder: Path, monkeypatch):
    @functools.wraps(inlink.katz)
    def refusing(*arguments: object, **options: object) -> None:
        raise ParameterError("alpha is too large")

    monkeypatch.setattr(inlink, "katz", refusing)
    for given, stored in (((), False), (("--json",), True)):
        result = run(folder, "--all", *given, code=2)
        (line,) = (
            line for line in result.stderr.splitlines() if "of memory" not in line and "stored" not in line
        )
        assert line == "inlink: katz: alpha is too large"
        assert ("not computed again" in result.output) == stored
    assert [row["name"] for row in json.loads(result.stdout)] == [name for name in NAMES if name != "katz"]
    assert list_rankings(folder) == sorted(name for name in NAMES if name != "katz")


def test_katz_is_finite_whatever_the_eigenvalue(folder: Path):
    dense = folder.parent / "dense"
    Graph.from_arcs([(a, b) for a in range(13) for b in range(13)], into=dense)
    run(dense, "--all")
    assert Ranking.load(dense, "katz").parameters["alpha"] == pytest.approx(0.5 / 13, rel=0.01)
    assert run(dense, "--all").stdout.count("not computed again") == len(NAMES)
    run(folder, "--all")
    assert Ranking.load(folder, "katz").parameters["alpha"] == 0.1


def test_no_arcs(tmp_path: Path):
    Graph.from_arcs([], num_nodes=4, into=tmp_path / "none")
    run(tmp_path / "none", "--all")
    assert list_rankings(tmp_path / "none") == sorted(NAMES)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--algorithm", "katz"), "leave out --algorithm"),
        (("--algorithm=pagerank",), "leave out --algorithm"),
        (("--damping", "0.5"), "leave out --damping"),
        (("--epsilon", "0.5", "-k", "3"), "leave out -k, --epsilon"),
        (("--unweighted",), "leave out --unweighted"),
        (("--name", "x"), "--name names one ranking"),
        (("--as-of", "1"), "--as-of needs --name"),
        (("-o", "x.csv"), "keeps the ranking"),
        (("--content",), "--content needs the folder of a crawl"),
    ],
)
def test_options_of_single_measures_are_refused(folder: Path, given, message):
    result = run(folder, "--all", *given, code=2)
    assert message in " ".join(result.output.split())
    assert list_rankings(folder) == []


def test_a_file_keeps_nothing(folder: Path):
    result = run(folder.parent / "links.tsv", "--all", "--json")
    answers = json.loads(result.stdout)
    assert [row["name"] for row in answers] == NAMES
    assert all(len(row["top"]) == 10 for row in answers)


def test_a_crawl_is_ranked_anew_each_time(tmp_path: Path):
    with Crawl(tmp_path / "crawl") as crawl:
        crawl.seed(["https://example.org/"])
        crawl.crawled("https://example.org/", ["https://example.org/a"])
    for _ in range(2):
        result = run(tmp_path / "crawl", "--all")
        assert [line.split(":")[0] for line in result.stdout.splitlines()] == NAMES
        assert "not computed" not in result.stdout
    assert sorted(path.name for path in (tmp_path / "crawl/rankings").iterdir()) == sorted(NAMES)

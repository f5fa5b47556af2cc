"""``inlink drift``."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import inlink
from inlink.cli import commands
from inlink.errors import FolderError, ParameterError, UnknownNodeError

OLD = "org.blog\tcom.shop\norg.blog\torg.wiki\norg.wiki\tcom.shop\ncom.shop\torg.wiki\nedu.lab\torg.wiki\n"
NEW = "org.blog\torg.wiki\norg.wiki\tcom.shop\ncom.shop\torg.wiki\ncom.spam\torg.blog\n"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(commands, [str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture
def releases(tmp_path: Path) -> list[Path]:
    for name, text in (("old", OLD), ("new", NEW)):
        (tmp_path / f"{name}.tsv").write_text(text)
        inlink.read(tmp_path / f"{name}.tsv", into=tmp_path / name)
    return [tmp_path / "old", tmp_path / "new"]


def test_the_tables_have_the_steps_and_the_moved_nodes(releases: list[Path]):
    done = run("drift", *releases, "-n", 2)
    expected = inlink.drift(*map(inlink.Graph.open, releases), top=2)
    steps, nodes = (part.splitlines() for part in done.stdout.split("\n\n"))
    cells = [line.split("\t") for line in steps]
    assert [row[6] for row in cells] == [step.name for step in expected.steps]
    assert [step.share is None for step in expected.steps] == [True, False, False, True, False]
    assert [row[2] for row in cells] == [step.percent for step in expected.steps]
    loose = run("drift", *releases, "--tol", "0.05").stdout.split("\n\n")[0].splitlines()
    assert any(" to " in line.split("\t")[2] for line in loose)
    assert [row[3:6] for row in cells[1:3]] == [["1", "+0", "-1"], ["1", "+1", "-0"]]
    texts = [text for row in expected for text in (row.node, *(f"  {reason.text}" for reason in row.reasons))]
    assert [line.split("\t")[5] for line in nodes] == texts
    assert "inlink: 3 nodes in both; moved for sure: 3" in done.stderr


def test_json_has_the_same_numbers(releases: list[Path], tmp_path: Path):
    answer = json.loads(run("drift", *releases, "--node", "blog", "--node", "edu.lab", "--json").stdout)
    expected = inlink.drift(*map(inlink.Graph.open, releases), nodes=["org.blog", "edu.lab"])
    assert (answer["common"], answer["moved"]) == (expected.common, expected.moved) == (3, 3)
    assert [step["name"] for step in answer["steps"]] == [step.name for step in expected.steps]
    for row, other in zip(answer["nodes"], expected, strict=True):
        assert row["node"] == other.node
        assert row["move"] == pytest.approx(list(other.move))
        assert [reason["text"] for reason in row["reasons"]] == [reason.text for reason in other.reasons]
    assert (answer["nodes"][1]["after"], answer["nodes"][1]["reasons"][0]["text"]) == (None, "it is gone")
    # A file can be named too.
    (tmp_path / "new.tsv").write_text(NEW)
    again = json.loads(run("drift", releases[0], tmp_path / "new.tsv", "--damping", "0.5", "--json").stdout)
    assert again["moved"] == 3


def test_releases_without_moves_or_common_names_are_explained(releases: list[Path], tmp_path: Path):
    same = run("drift", releases[0], releases[0])
    assert [line.split("\t")[2] for line in same.stdout.splitlines()] == ["-"] * 5
    assert "moved for sure: 0" in same.stderr
    (tmp_path / "other.tsv").write_text("blog.org\tshop.com\t2\n")
    inlink.read(tmp_path / "other.tsv", into=tmp_path / "other")
    other = run("drift", releases[0], tmp_path / "other")
    assert "0 nodes in both: are both of the same level, and are names written alike?" in other.stderr
    assert f"only {tmp_path / 'other'} has weights, so each link counts 1" in other.stderr


def test_bad_input_is_one_line(releases: list[Path], tmp_path: Path):
    for arguments, kind in (
        (["--node", "nobody"], UnknownNodeError),
        (["--tol", "0"], ParameterError),
        (["--linkers", "-1"], ParameterError),
    ):
        error = run("drift", *releases, *arguments).exception
        assert isinstance(error, kind)
        assert "\n" not in str(error)
    assert isinstance(run("drift", releases[0], tmp_path / "none").exception, FolderError)
    (tmp_path / "numbers.tsv").write_text("0\t1\n")
    assert "have no names" in str(run("drift", releases[0], tmp_path / "numbers.tsv").exception)

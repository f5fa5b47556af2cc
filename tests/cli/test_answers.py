"""What all commands share: answers as JSON, graphs in files, names of pages, -q and -v, examples, manual pages."""

import json
import math
import os
import re
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from website.man import main as write_pages

import inlink
from crawlcommand import INLINK
from inlink.cli import commands
from inlink.cli.examples import EXAMPLES
from inlink.cli.show import show_json
from inlink.errors import ParameterError, UnknownNodeError

SITE = "https://a.example.org/"
ARCS = "a.example\tb.example\nb.example\tc.test\nc.test\tb.example\n"


def run(*given: object, code: int = 0, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(commands, list(map(str, given)), input=stdin, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def parsed(text: str) -> object:
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A crawl, a graph with a ranking, and the file that the graph was built from."""
    monkeypatch.chdir(tmp_path)
    with inlink.Crawl("site", politeness={"delay": 0.0}) as crawl:
        crawl.seed([SITE])
        crawl.crawled(SITE, ["docs/about.html", "other.html", "news/about.html"], content_hash=b"\xff")
    Path("links.tsv").write_text(ARCS)
    run("build", "links.tsv", "-o", "web")
    run("rank", "web")
    run("rank", "site")
    return tmp_path


# -- JSON -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "find site html",
        "find web b",
        "find links.tsv b",
        "links site other.html",
        "links web b.example",
        "path site other.html",
        "path web c.test --from a.example",
        "page site other.html",
        "page web b.example",
        "near site other.html",
        "why site other.html",
        "next site --peek",
        "next site",
        "top site",
        "top web",
        "info site",
        "info web",
        "info links.tsv",
        "crawl-info site --top 2",
        "diff web web",
        "rank web",
        "rank links.tsv",
        "rank web --algorithm harmonic,pagerank --damping 1 --method power --max-iter 3",
        "dump pages site",
        "dump links site",
        "dump rankings site",
        "repair site",
        "replay web --seeds 1x1 --budget 2 --policy hosts-in-turns",
        "token list --tokens tokens.json",
    ],
)
def test_answers_are_json_without_nan_and_all_else_goes_to_standard_error(world: Path, command: str):
    answer = parsed(run(*shlex.split(command), "--json").stdout)
    rows = command.split()[0] in ("find", "path", "next", "top", "rank", "dump", "token")
    assert isinstance(answer, list if rows else dict)


def test_rows_of_pages_and_nodes_have_numbers_and_names(world: Path):
    node = {"node": 1, "name": "b.example"}
    assert parsed(run("find", "web", "^b", "--json").stdout) == [node]
    assert parsed(run("links", "web", "b.example", "--json").stdout)["outlinks"] == [
        {"node": 2, "name": "c.test"}
    ]
    page = {"page": 2, "url": f"{SITE}other.html"}
    assert parsed(run("find", "site", "other", "--json").stdout) == [page]
    assert parsed(run("path", "site", page["url"], "--json").stdout) == [page, {"page": 0, "url": SITE}]
    [_, _, dumped, _] = parsed(run("dump", "pages", "site", "--json").stdout)
    assert (
        dumped | page | {"depth": 1, "linked_from": 0, "first_crawl": None, "state": "discovered"} == dumped
    )
    [first, *_] = parsed(run("dump", "pages", "site", "--json").stdout)
    assert (first["content_hash"], first["crawls"]) == ("ff", 1)
    run("dump", "pages", "site", "--json", "-o", "pages.json")
    assert parsed(Path("pages.json").read_text()) == parsed(run("dump", "pages", "site", "--json").stdout)


def test_rows_before_an_error_are_valid_json(capsys):
    def rows(count):
        yield from ({"value": float(k) / k if k else math.inf} for k in range(count))
        raise ParameterError("too long")

    for count, printed in ((0, ""), (2, [{"value": None}, {"value": 1.0}])):
        with pytest.raises(ParameterError):
            show_json(rows(count))
        out = capsys.readouterr().out
        assert (parsed(out) if out else out) == printed
    show_json(iter(()))
    assert parsed(capsys.readouterr().out) == []


def test_names_that_are_not_utf8_are_lone_surrogates(tmp_path: Path):
    inlink.Graph.from_arcs([(b"a\t\"'\xff", "b\x1b[2J\u2028é")], into=tmp_path / "g")
    shown = run("find", tmp_path / "g", "", "--json").stdout
    assert shown.isascii()
    assert [row["name"] for row in parsed(shown)] == ["a\t\"'\udcff", "b\x1b[2J\u2028é"]


# -- a file as a graph ----------------------------------------------------------------------------------------------


def test_a_file_is_ranked_and_nothing_is_kept(world: Path):
    before = sorted(world.rglob("*"))
    shown = run("rank", "links.tsv")
    assert shown.stdout == run("top", "web").stdout.replace("\tcertain", "").replace("\topen", "")
    assert "links.tsv, read for this command only: 3 nodes, 3 arcs" in shown.stderr
    assert run("rank", "-", stdin=ARCS).stdout == shown.stdout
    assert sorted(world.rglob("*")) == before
    run("export", "web", "-o", "exported.csv", "--by", "pagerank")
    values = Path("exported.csv").read_text().splitlines()[1:]
    assert run("rank", "links.tsv", "-o", "-").stdout.splitlines()[1:] == values
    run("rank", "links.tsv", "-o", "ranks.csv")
    assert Path("ranks.csv").read_text().splitlines()[1:] == values
    run("rank", "links.tsv", "-o", "ranks.parquet")
    assert inlink.Ranking.read("ranks.parquet").top(1)[0][0] == "b.example"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("rank web -o x.csv", "inlink export --by"),
        ("rank links.tsv -o x.txt", ".csv or .parquet"),
        ("rank links.tsv -o x.csv --algorithm pagerank,degree", "-o takes one ranking"),
        ("rank links.tsv -o - --json", "both write to standard output"),
        ("dump pages site --aduana --json", "leave out --aduana"),
        ("build links.tsv -o -", "cannot go to standard output"),
        ("fnd", "did you mean find?"),
        ("nutch linkdmp", "did you mean linkdump?"),
        ("xyz", "inlink --help lists them"),
        ("rank web --dampin 1", "--damping"),
    ],
)
def test_a_wrong_line_says_what_is_right(world: Path, command: str, says: str):
    before = sorted(world.rglob("*"))
    shown = CliRunner().invoke(commands, shlex.split(command), prog_name="inlink")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert says in shown.stderr
    assert sorted(world.rglob("*")) == before


def test_a_crawl_and_a_file_are_folded(world: Path):
    assert "1 node," in run("fold", "site", "-o", "hosts", "--level", "host").stdout
    assert inlink.Graph.open("hosts").names[0] == "org.example.a"
    Path("pages.tsv").write_text(f"{SITE}\thttps://b.example.org/\n")
    run("fold", "pages.tsv", "-o", "domains", "--level", "domain")
    assert list(inlink.Graph.open("domains").names) == ["org.example"]
    assert "1 node," in run("subgraph", "site", "-o", "fetched", "--crawled").stdout


# -- pages by the ends of their URLs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "place", "end", "whole"),
    [
        *(
            (command, "site", "other.html", f"{SITE}other.html")
            for command in ("page", "why", "links", "path")
        ),
        *(
            (command, place, end, whole)
            for command in ("links", "near", "page")
            for place, end, whole in (("web", "test", "c.test"), ("links.tsv", "test", "c.test"))
        ),
    ],
)
def test_a_page_is_named_by_the_end_of_its_url(world: Path, command: str, place: str, end: str, whole: str):
    shown, plain = run(command, place, end), run(command, place, whole)
    assert shown.stdout == plain.stdout
    assert shown.stderr == f"{plain.stderr}inlink: {end} is {whole}\n"


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("about.html", ["docs/about.html", "news/about.html"]),
        ("OTHER", ["other.html"]),
        ("[", []),
        ("?bout.html", []),
        ("*", []),
        ("", []),
        ("x" * 100_000, []),
    ],
)
def test_several_candidates_are_named(world: Path, name: str, candidates: list[str]):
    with pytest.raises(UnknownNodeError) as error:
        run("page", "site", name)
    told = str(error.value)
    assert ("did you mean" in told) == bool(candidates)
    assert all(f"{SITE}{candidate}" in told for candidate in candidates)


def test_a_page_whose_name_ends_with_the_text_hides_no_page_of_that_name(tmp_path: Path):
    with inlink.Crawl(tmp_path / "c") as crawl:
        crawl.seed([f"{SITE}docs/select.html", f"{SITE}sql-select.html"])
    assert (
        run("page", tmp_path / "c", "select.html").stdout.splitlines()[0].endswith(f" {SITE}docs/select.html")
    )
    with pytest.raises(UnknownNodeError, match=r"did you mean .*docs/select\.html, .*sql-select\.html"):
        run("page", tmp_path / "c", "elect.html")


# -- why nothing is printed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("find site nothing", "none of the 4 URLs matches 'nothing'"),
        ("find web nothing", "none of the 3 names matches 'nothing'"),
        ("near web a.example --direction in", "a.example has no such neighbours"),
        ("near web c.test --sharing", "c.test shares no inlinks"),
        ("token list --tokens tokens.json", "there are no tokens"),
    ],
)
def test_one_line_says_why_nothing_is_printed(world: Path, command: str, says: str):
    for given in ([], ["--json"]):
        shown = run(*shlex.split(command), *given)
        assert says in shown.stderr
        assert shown.stderr.count("\n") == 1
        assert given or not shown.stdout


def test_next_says_why_there_is_no_page(tmp_path: Path):
    with inlink.Crawl(tmp_path / "c", politeness={"delay": 1e6}) as crawl:
        crawl.seed([SITE, f"{SITE}b"])
    assert run("next", tmp_path / "c").stdout == f"{SITE}\n"
    assert "1 page must wait for answers about 1 leased page" in run("next", tmp_path / "c").stderr
    with inlink.Crawl(tmp_path / "c") as crawl:
        crawl.crawled(SITE)
    assert "no page is due now; the next is due in" in run("next", tmp_path / "c").stderr
    with inlink.Crawl(tmp_path / "c") as crawl:
        crawl.pause()
    assert "the crawl is paused" in run("next", tmp_path / "c").stderr
    with inlink.Crawl(tmp_path / "d") as crawl:
        crawl.seed([])
    assert "inlink seed" in run("next", tmp_path / "d").stderr
    assert "pages of this crawl: none" in run("next", tmp_path / "d", "--peek").stderr


# -- -q, -v, help ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [0, 1, 2, 3])
@pytest.mark.parametrize("command", [["info", "web", "--json"], ["nutch", "loops", "--db=web"]])
def test_quiet_and_verbose_stand_anywhere(world: Path, monkeypatch, caplog, command: list[str], where: int):
    shown = []

    @contextmanager
    def progress():
        shown.append(command)
        yield

    monkeypatch.setattr("inlink.base.progress.progress", progress)
    levels = []
    monkeypatch.setattr("logging.basicConfig", lambda **given: levels.append(given["level"]))
    run(*command[:where], "-q", *command[where:])
    assert not shown
    assert not levels
    run(*command[:where], "-v", *command[where:])
    assert len(shown) == len(levels) == 1


def leaves(group: click.Group, context: click.Context) -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found |= {f"{name} {part}": one for part, one in leaves(command, context).items()}
        else:
            found[name] = command
    return found


def test_every_command_has_examples_that_can_be_parsed(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = click.Context(commands, info_name="inlink", **commands.context_settings)
    found = leaves(commands, root)
    lines = EXAMPLES.strip().splitlines()
    for name, command in found.items():
        own = [line for line in lines if f"{line} ".startswith(f"inlink {name} ")]
        assert own, name
        for line in own:
            context = click.Context(command, root, name, **command.context_settings)
            assert f"\n    {line}" in command.get_help(context)
            given = shlex.split(line)[1 + len(name.split()) :]
            command.make_context(name, given, parent=root)
        lines = [line for line in lines if line not in own]
    assert not lines


def test_manual_pages_show_the_help_and_no_roff_of_their_own(tmp_path: Path):
    write_pages(tmp_path / "man")
    files = {path.name for path in (tmp_path / "man").iterdir()}
    root = click.Context(commands, info_name="inlink", **commands.context_settings)
    assert {f"inlink-{name.replace(' ', '-')}.1" for name in leaves(commands, root)} < files
    assert {"inlink.1", "inlink-nutch.1"} < files
    requests = {".TH", ".SH", ".PP", ".TP", ".B", ".nf", ".fi"}
    for path in (tmp_path / "man").iterdir():
        text = path.read_text()
        assert {line.split()[0] for line in text.splitlines() if re.match("[.']", line)} <= requests
        assert "\\-\\-help" in text
        assert ".SH EXAMPLES" in text or path.name == "inlink.1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "reader"),
    [
        ("--help", "true"),
        ("rank --help", "head -1"),
        ("links web n0", "head -1"),
        ("near web n0 -n 9999", "true"),
        ("find web n", "head -1"),
    ],
)
def test_a_reader_that_stops_is_no_error(tmp_path: Path, command: str, reader: str):
    inlink.Graph.from_arcs([("n0", f"n{k}") for k in range(1, 9999)], into=tmp_path / "web")
    line = f"{shlex.join(INLINK)} {command} | {reader}; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "0" or "--help" in command


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["find web ^b >&-", "find web ^b --json >&-", "find web zzz 2>&-", "find web zzz >&- 2>&-"]
)
def test_a_closed_stream_is_no_error(world: Path, command: str):
    done = subprocess.run(["bash", "-c", f"{shlex.join(INLINK)} {command}"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_exit_codes_of_commands_are_those_of_the_process(world: Path):
    for given, code in ((["path", "web", "a.example", "--from", "b.example"], 1), (["info", "web"], 0)):
        done = subprocess.run([*INLINK, *given], capture_output=True, text=True, env=os.environ)
        assert done.returncode == code, done.stderr
    assert sys.executable in INLINK


# -- in Python ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["host-diverse", "hosts-in-turns"])
def test_crawls_and_views_have_a_length_and_show_themselves_in_notebooks(tmp_path: Path, policy: str):
    folder = tmp_path / "<b>&"
    with inlink.Crawl(folder, policy=policy) as crawl:
        assert (len(crawl), bool(crawl), bool(crawl.view)) == (0, True, True)
        assert crawl._repr_html_().count("<table>") == 2
        crawl.seed([SITE])
        crawl.crawled(SITE, ["<script>alert(1)</script>", "b"])
        assert len(crawl) == len(crawl.view) == 3
        assert repr(crawl) == f"<inlink crawl {folder}: 3 known pages>"
        assert repr(crawl.view) == f"<inlink view of {folder}>"
        shown = crawl._repr_html_()
        assert "crawled" in shown
        assert ("best pages" if policy == "host-diverse" else "next pages") in shown
        assert f"{SITE}b" in shown
        assert not re.search("<(b|script)>", shown)
    assert repr(crawl) == f"<inlink crawl {folder}: closed>"
    assert "closed" in crawl._repr_html_()
    with inlink.CrawlView.open(folder) as view:
        assert len(view) == 3
        assert view._repr_html_() == shown

"""The commands as a user runs them: output, exit codes, and what is left when something goes wrong."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from inspect import signature
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import inlink as library
from foldercommands import shell as inlink
from inlink import Graph, Ranking
from inlink.cli import commands
from inlink.cli.rank import ALGORITHMS, options_of, rank
from patience import finish


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    (folder / "links.tsv").write_text(
        "http://a.example.com/\thttp://b.example.org/\nhttp://b.example.org/\thttp://a.example.com/x\n"
        "http://a.example.com/x\thttp://b.example.org/\n"
    )
    inlink("build", "links.tsv", "-o", "g", cwd=folder)
    return folder


@pytest.fixture
def links(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path, dirs_exist_ok=True))


SAMPLES = [("web.warc.gz", (967, 1_395)), ("gr0.Harbour", (600, 3_255)), ("web", (3_000, 22_884))]
REAL = [
    ("crawls/aut-example.warc.gz", (18_207, 20_067)),
    ("graphs/gr0.California", (9_664, 16_150)),
    ("graphs/cnr-2000", (325_557, 3_216_152)),
]


@pytest.mark.slow
@pytest.mark.parametrize("files", [SAMPLES, REAL], ids=["samples", "real"])
def test_the_main_job(data, tmp_path: Path, files):
    for folder, (name, (nodes, arcs)) in zip(["archive", "california", "bvgraph"], files, strict=True):
        told = inlink("build", data(name), "-o", folder, cwd=tmp_path)
        assert f"{nodes:,} nodes, {arcs:,} arcs" in told
    assert "host graph" in inlink(
        "fold", "california", "-o", "california-hosts", "--level", "host", cwd=tmp_path
    )
    assert "converged" in inlink("rank", "california", "--algorithm", "pagerank", cwd=tmp_path)
    nodes, arcs = files[1][1]
    one, other = Graph.open(tmp_path / "california").names[:2]
    (tmp_path / "scores.csv").write_text(f"{one},1\n{other},0.5\nhttp://no.where/,1\n")
    said = inlink("rank", "california", "--algorithm", "hits", "--scores", "scores.csv", cwd=tmp_path)
    assert "not in california: 1" in said
    top = inlink("top", "california", "--by", "pagerank", "-n", 20, cwd=tmp_path).splitlines()
    assert len(top) == 20
    assert top[0].startswith("1\t")
    info = json.loads(inlink("info", "california", "--json", "--verify", cwd=tmp_path))
    assert (info["nodes"], info["arcs"], info["rankings"]) == (nodes, arcs, ["hits", "pagerank"])
    inlink("export", "california", "-o", "california.parquet", "--ranking", "pagerank", cwd=tmp_path)
    back = inlink("build", "california.parquet", "-o", "back", cwd=tmp_path)
    assert f"{arcs:,} arcs" in back
    inlink("export", "california", "-o", "ranks.csv", "--by", "pagerank", cwd=tmp_path)
    assert len((tmp_path / "ranks.csv").read_text().splitlines()) == nodes + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("pagerank", {"max_iter": 3, "tol": 1e-3, "method": "power", "threads": 1}),
        ("mcmc", {"walks": 20, "method": "end-point", "order": "random", "seed": 7, "confidence": 0.9}),
        ("anti-trustrank", {"spam": ["http://a.example.com/"], "damping": 0.5}),
        ("spam-mass", {"trusted": ["http://a.example.com/"], "gamma": 0.5, "rho": 0.1}),
        ("cheirank", {"scores": {"http://a.example.com/": 1.0}, "damping": 0.5}),
        ("salsa", {"unweighted": True}),
        ("opic", {"order": "cyclic", "seed": 3}),
        ("degree", {"direction": "both", "unnormalized": True}),
        ("closeness", {"direction": "out"}),
        ("harmonic", {"direction": "out"}),
        ("harmonic", {"log2m": 6, "runs": 3, "seed": 1}),
        ("closeness", {"log2m": 5}),
        ("betweenness", {"k": 2, "endpoints": True, "unnormalized": True, "seed": 1}),
        ("percolation", {"scores": {"http://a.example.com/": 1.0}, "k": 1}),
        ("eigenvector", {"tol": 1e-9}),
        ("katz", {"alpha": 0.5, "unnormalized": True}),
    ],
)
def test_algorithms_are_the_librarys(links: Path, algorithm, options):
    """The command says nothing else than the function of that name."""
    arguments, keywords = [], {}
    for key, value in options.items():
        flag = "-k" if key == "k" else f"--{key.replace('_', '-')}"
        if key in ("trusted", "spam", "scores"):
            file = links / f"{key}.txt"
            lines = [f"{node},{value[node]}" for node in value] if key == "scores" else value
            file.write_text("\n".join(lines) + "\n")
            arguments += [flag, str(file)]
            [parameter] = [option.name for option in options_of(algorithm) if option.opts[0] == flag]
            keywords[parameter] = value
        elif value is True:
            arguments.append(flag)
            keywords |= {"weighted": False} if key == "unweighted" else {}
            keywords |= {"normalized": False} if key == "unnormalized" else {}
            keywords |= {"endpoints": True} if key == "endpoints" else {}
        else:
            arguments += [flag, value]
            keywords[key] = value
    inlink("rank", "g", "--algorithm", algorithm, *arguments, cwd=links)
    graph = Graph.open(links / "g")
    found = Ranking.load(graph, algorithm)
    expected = getattr(library, algorithm.replace("-", "_"))(graph, **keywords)
    assert found.values.tolist() == pytest.approx(expected.values.tolist(), abs=1e-6)
    assert found.algorithm == algorithm.replace("-", "_")


@pytest.mark.slow
def test_several_algorithms_in_one_command(links: Path):
    (links / "scores.txt").write_text("http://a.example.com/,1\n")
    said = inlink(
        "rank", "g", "--log2m", 6, "--algorithm", "harmonic,pagerank,percolation,betweenness", "--runs=2",
        "--scores", "scores.txt", "--damping", "0.5", "-k2", "--seed", 1, cwd=links,
    )  # fmt: skip
    assert [line.partition(":")[0] for line in said.splitlines()] == [
        "harmonic", "pagerank", "percolation", "betweenness",
    ]  # fmt: skip
    graph = Graph.open(links / "g")
    only = {"http://a.example.com/": 1.0}
    for expected in (
        library.harmonic(graph, log2m=6, runs=2, seed=1),
        library.pagerank(graph, damping=0.5, personalization=only),
        library.percolation(graph, only, k=2, seed=1),
        library.betweenness(graph, k=2, seed=1),
    ):
        found = Ranking.load(graph, expected.algorithm)
        assert found.values.tolist() == pytest.approx(expected.values.tolist(), abs=1e-6)
        assert found.parameters == expected.parameters


@pytest.mark.slow
def test_every_algorithm_and_its_options(links: Path):
    (links / "trusted.txt").write_text("http://a.example.com/x\n\nhttp://nobody.example.com/\n")
    said = inlink(
        "rank", "g", "--algorithm", "trustrank", "--trusted", "trusted.txt", "--damping", "0.5", cwd=links
    )
    assert "trusted.txt: names that are not in g: 1" in said
    assert "not reached" in inlink("top", "g", "--by", "trustrank", cwd=links)
    inlink("rank", "g", "--algorithm", "degree", "--direction", "both", "--name", "both", cwd=links)
    inlink("rank", "g", "--method", "power", "--max-iter", 500, "--tol", "1e-9", "--threads", 1, cwd=links)
    inlink("rank", "g", "--start", "pagerank", "--name", "again", cwd=links)
    assert "rankings" in inlink("info", "g", cwd=links)
    assert "again, both, pagerank, trustrank" in inlink("info", "g", cwd=links)
    assert len(json.loads(inlink("top", "g", "--by", "both", "--json", cwd=links))) == 3


def test_help_shows_whole_summaries_of_commands():
    groups = [one for one in commands.every().values() if isinstance(one, click.Group)]
    assert {group.name for group in groups} == {"plot", "token", "nutch", "spark"}
    for group in [commands, *groups]:
        shown = CliRunner().invoke(group, ["--help"]).output
        assert "..." not in shown.split("\nOptions:")[1], shown


def test_help_shows_the_options_of_one_algorithm():
    every = CliRunner().invoke(rank, ["--help"]).output
    for name in ALGORITHMS:
        assert f"\n  {name} " in every
        for arguments in (("--algorithm", name, "--help"), ("--help", f"--algorithm={name}")):
            shown = CliRunner().invoke(rank, arguments).output
            assert f"Options of {name}:" in shown
            own = {option.opts[0] for option in options_of(name)}
            found = set(re.findall(r"^  (--?[a-z0-9-]+)", shown, re.M))
            general = {
                "--algorithm",
                "--all",
                "--name",
                "--content",
                "--as-of",
                "--json",
                "-o",
                "-q",
                "-v",
                "--help",
                "-h",
            }
            assert found - general == own
    both = CliRunner().invoke(rank, ["--algorithm", "salsa,degree", "--help"]).output
    assert "Options of salsa:" in both
    assert "Options of degree:" in both
    for name in ALGORITHMS:
        parameters = signature(getattr(library, name.replace("-", "_"))).parameters
        assert {option.name for option in options_of(name)} <= set(parameters), name


@pytest.mark.slow
def test_subgraphs(links: Path):
    (links / "some.txt").write_bytes(b"http://a.example.com/\r\nhttp://b.example.org/\n")
    assert "2 nodes, 1 arc" in inlink("subgraph", "g", "-o", "s", "--nodes", "some.txt", cwd=links)
    assert "2 nodes, 2 arcs" in inlink("subgraph", "g", "-o", "s", "--largest-component", "strong", cwd=links)
    assert "3 nodes" in inlink(
        "subgraph", "g", "-o", "s", "--reachable-from", "http://a.example.com/", cwd=links
    )
    assert "3 nodes, 3 arcs" in inlink("subgraph", "g", "-o", "s", "--without-internal", "domain", cwd=links)
    assert "does not record which pages" in inlink("subgraph", "g", "-o", "t", "--crawled", cwd=links, code=2)
    assert "give one of" in inlink("subgraph", "g", "-o", "t", cwd=links, code=2)
    assert not (links / "t").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("build", "none.tsv", "-o", "x"), "none.tsv does not exist"),
        (("build", "links.tsv", "-o", "links.tsv"), "links.tsv is a file"),
        (("build", "short.tsv", "-o", "x"), "short.tsv"),
        (("build", "cut.warc.gz", "-o", "x", "--strict"), "cut.warc.gz"),
        (("build", "links.tsv", "-o", "x", "--format", "xml"), "no format is called 'xml'"),
        (("build", "links.tsv", "-o", "x", "--format", "pajek"), "format pajek can only be written"),
        (("rank", "none"), "none does not exist"),
        (("rank", "cut.warc.gz"), "cut.warc.gz"),
        (("rank", "g", "--damping", "1.5"), "damping"),
        (
            ("rank", "g", "--scores", "negative.csv"),
            "negative.csv, line 2: score must be finite and not negative; got -1",
        ),
        (
            ("rank", "g", "--scores", "nan.csv"),
            "nan.csv, line 1: score must be finite and not negative; got nan",
        ),
        (("rank", "g", "--scores", "none.csv"), "none.csv: cannot be read (No such file"),
        (
            ("rank", "g", "--algorithm", "trustrank", "--trusted", "nobody.txt"),
            "nobody.txt: this graph has none of the nodes that the file names, such as 'http://nobody.example/'",
        ),
        (
            ("rank", "g", "--algorithm", "closeness", "--damping", "0.5"),
            "--damping does not apply to --algorithm closeness; closeness takes --direction, --exact, --estimate,",
        ),
        (
            ("rank", "g", "--unnormalized", "--algorithm=salsa"),
            "--unnormalized does not apply to --algorithm salsa",
        ),
        (
            ("rank", "g", "-k", "3"),
            "-k does not apply to --algorithm pagerank; pagerank takes --damping, --scores",
        ),
        (("rank", "g", "--algorithm", "betweenness", "-k3x"), "'3x' is not a valid integer"),
        (("rank", "g", "--algorithm", "betweenness", "-k"), "requires an argument"),
        (
            ("rank", "g", "--algorithm", "harmonic,salsa", "--tol", "1"),
            "--tol does not apply to --algorithm harmonic,salsa; harmonic takes --direction",
        ),
        (("rank", "g", "--algorithm", "harmonic,magic"), "'magic' is not one of pagerank, mcmc"),
        (("rank", "g", "--algorithm", "harmonic,"), "'' is not one of pagerank"),
        (("rank", "g", "--algorithm", "salsa,salsa"), "'salsa,salsa' names an algorithm twice"),
        (
            ("rank", "g", "--algorithm", "salsa,degree", "--name", "x"),
            "--name names one ranking, and salsa,degree are 2",
        ),
        (("rank", "g", "--algorithm", "degree,harmonic", "--direction", "both"), "'both' is not one of"),
        (("rank", "g", "--algorithm", "harmonic", "--exact", "--log2m", "8"), "not both"),
        (("rank", "g", "--algorithm", "salsa", "--scores", "x"), "--scores does not apply to"),
        (("rank", "g", "--algorithm", "magic", "-k", "3"), "'magic'"),
        (("rank", "g", "--bogus"), "No such option"),
        (("rank", "g", "--algorithm", "spam-mass"), "--trusted"),
        (("rank", "g", "--method", "magic"), "'magic'"),
        (("rank", "g", "--algorithm", "katz", "--alpha", "9"), "1/"),
        (("rank", "g", "--algorithm", "closeness", "--direction", "both"), "'both' is not one of"),
        (("rank", "g", "--name", "../evil"), "the name of a ranking"),
        (("top", "g", "--by", "pagerank"), "inlink rank"),
        (("export", "g", "-o", "g.xyz"), "g.xyz"),
        (("export", "g", "-o", "new.tsv", "--ranking", "x"), "no ranking 'x'"),
        (("export", "g", "-o", "-", "--format", "parquet"), ".parquet would be more than one file"),
        (("export", "g", "-o", "-", "--format", "commoncrawl"), "commoncrawl has several files"),
        (("export", "g", "-o", "-", "--format", "xyz"), "inlink: standard output: unknown extension"),
        (("export", "g", "-o", "-", "--by", "x"), "no ranking 'x'"),
        (("export", "g", "-o", "x.csv", "--anchors"), "`anchors` applies only to a crawl"),
        (("export", "g", "-o", "x.gml", "--safe-cells"), "has no option"),
        (("fold", "g", "-o", "x", "--level", "page"), "'page' is not one of"),
        (("info", "newer"), "upgrade inlink"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(links: Path, arguments, says):
    (links / "short.tsv").write_text("a\tb\nc\n")
    (links / "negative.csv").write_text("node,score\nhttp://a.example.com/,-1\n")
    (links / "nan.csv").write_text("http://a.example.com/,nan\n")
    (links / "nobody.txt").write_text("http://nobody.example/\n")
    (links / "cut.warc.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03WARC")
    shutil.copytree(links / "g", links / "newer")
    header = links / "newer" / "header.json"
    header.write_text(header.read_text().replace('"version": 2', '"version": 4'))
    before = sorted(p.name for p in links.iterdir())
    error = inlink(*arguments, cwd=links, code=2)
    assert says in error
    if not error.startswith("Usage"):
        assert error.count("\n") == 1, error
    assert sorted(p.name for p in links.iterdir()) == before


@pytest.mark.slow
def test_an_interrupt_leaves_nothing_and_keeps_what_was_there(links: Path):
    old = Graph.open(links / "g").uuid
    with (links / "long.tsv").open("w") as file:
        file.writelines(f"n{k}\tn{k * 7919 % 800_000}\n" for k in range(800_000))
    before = sorted(p.name for p in links.iterdir())
    for number in (signal.SIGINT, signal.SIGTERM):
        command = [sys.executable, "-m", "inlink", "-q", "build", "long.tsv", "-o", "g", "--nodes", "names"]
        child = subprocess.Popen(command, cwd=links, stderr=subprocess.PIPE, text=True)
        while child.poll() is None and not list(links.glob(".g.*.inlink-unfinished/scratch")):
            time.sleep(0.005)  # until it has begun
        child.send_signal(number)
        _, error = finish(child)
        assert child.returncode == 130, error
        assert error.endswith("interrupted; unfinished output was removed\n")
        assert sorted(p.name for p in links.iterdir()) == before
        assert Graph.open(links / "g").uuid == old


@pytest.mark.slow
def test_names_cannot_steer_the_terminal(tmp_path: Path):
    Graph.from_arcs([(b"a\x1b[2J", b"b\xff\n")], into=tmp_path / "g")
    inlink("rank", "g", cwd=tmp_path)
    out = inlink("top", "g", cwd=tmp_path)
    assert "\x1b" not in out
    assert len(out.splitlines()) == 2
    assert "\x1b" not in inlink("info", "g", cwd=tmp_path)


def test_page_names_a_damaged_ranking(links: Path):
    inlink("rank", "g", cwd=links)
    inlink("rank", "g", "--name", "broken", cwd=links)
    name = Graph.open(links / "g").names[0]
    assert "damaged" not in inlink("page", "g", name, cwd=links)
    header = links / "g" / "rankings" / "broken" / "header.json"
    header.write_bytes(header.read_bytes().replace(b"pagerank", b"pagerunk"))
    for more in ((), ("--json",)):
        shown = CliRunner().invoke(commands, ["page", str(links / "g"), name, *more])
        assert "broken/header.json is damaged" in str(shown.exception)
        assert "pagerank" in shown.output


def test_info_names_a_damaged_ranking(links: Path):
    inlink("rank", "g", "--name", "broken", cwd=links)
    header = links / "g" / "rankings" / "broken" / "header.json"
    header.write_bytes(header.read_bytes().replace(b"pagerank", b"pagerunk"))
    shown = inlink("info", "g", cwd=links, code=2)
    assert "broken/header.json is damaged" in shown


@pytest.mark.parametrize("ending", ["csv", "tsv", "gml", "graphml", "json", "net", "dot", "csv.gz", "sqlite"])
def test_a_graph_goes_to_standard_output_as_to_a_file(links: Path, ending: str, monkeypatch):
    monkeypatch.chdir(links)
    inlink("export", "g", "-o", f"file.{ending}", cwd=links)
    command = ["export", "g", "-o", "-", "--format", ending]
    piped = CliRunner().invoke(commands, command, catch_exceptions=False)
    assert piped.stdout_bytes == (links / f"file.{ending}").read_bytes()


@pytest.mark.slow
def test_a_ranking_goes_to_standard_output(links: Path):
    inlink("rank", "g", cwd=links)
    for ending, heads in (("csv", "node,name,value"), ("tsv", "node\tname\tvalue")):
        piped = inlink("export", "g", "--by", "pagerank", "-o", "-", "--format", ending, cwd=links)
        inlink("export", "g", "--by", "pagerank", "-o", f"r.{ending}", cwd=links)
        assert piped == (links / f"r.{ending}").read_text()
        assert piped.splitlines()[0] == heads
    assert inlink("export", "g", "--by", "pagerank", "-o", "-", cwd=links).startswith("node,name,value\n")
    command = f"{sys.executable} -m inlink export g --by pagerank -o - | true"
    done = subprocess.run(command, shell=True, cwd=links, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_no_error_steers_the_terminal(tmp_path: Path):
    error = inlink("info", "\x1b[31mred\x07", cwd=tmp_path, code=2)
    assert "\\x1b[31mred\\x07" in error
    assert "\x1b" not in error

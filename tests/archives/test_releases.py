"""Common Crawl's releases by name: their files come from a server, here one on this machine that fails."""

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner

import inlink
from crawlstrategies import opened
from flaky import flaky_server  # noqa: F401
from inlink.base.clock import VirtualClock
from inlink.cli import commands
from inlink.errors import DamageError, InputError, ParameterError
from inlink.sources.ranklists import host_places
from inlink.sources.releases import rank_file

RELEASE = "cc-main-2026-apr-may-jun"
HOSTS = ["com.example.www", "org.example", "net.example"]
HEADER = "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\n"


def ranks(hosts) -> bytes:
    rows = [f"{k}\t{1000 - k}\t{k}\t{0.5 / k}\t{host}\n" for k, host in enumerate(hosts, 1)]
    return gzip.compress((HEADER + "".join(rows)).encode())


@pytest.fixture
def release(server, monkeypatch):
    """The server in the place of Common Crawl's, with the ranks of a release."""
    monkeypatch.setattr("inlink.sources.releases.DATA", f"{server.url}/")
    for level in ("host", "domain"):
        folder = Path("projects/hyperlinkgraph") / RELEASE / level
        folder.mkdir(parents=True)
        names = HOSTS if level == "host" else ["com.example", *HOSTS[1:]]
        start = folder / f"{RELEASE}-{level}"
        Path(f"{start}-ranks.txt.gz").write_bytes(ranks(names))
        names, half = sorted(names), 2
        parts = [
            ("vertices", [f"{k}\t{name}\n" for k, name in enumerate(names)]),
            ("edges", ["0\t1\n", "0\t2\n", "2\t0\n"]),
        ]
        for side, lines in parts:
            if level == "domain":
                Path(f"{start}-{side}.txt.gz").write_bytes(gzip.compress("".join(lines).encode()))
                continue
            (folder / side).mkdir()
            listed = []
            for number, some in enumerate((lines[:half], lines[half:])):
                part = folder / side / f"part-{number:05}-ab.txt.gz"
                part.write_bytes(gzip.compress("".join(some).encode()))
                listed.append(f"{part}\n")
            Path(f"{start}-{side}.paths.gz").write_bytes(gzip.compress("".join(listed).encode()))
    return server


def run(*arguments: str) -> str:
    done = CliRunner().invoke(commands, ["-q", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("source", "file"),
    [
        (RELEASE, f"{RELEASE}/host/{RELEASE}-host-ranks.txt.gz"),
        (f"{RELEASE}/domain", f"{RELEASE}/domain/{RELEASE}-domain-ranks.txt.gz"),
        (f"{RELEASE}-host/", f"{RELEASE}/host/{RELEASE}-host-ranks.txt.gz"),
        (
            "cc-main-2025-26-nov-dec-jan/host",
            "cc-main-2025-26-nov-dec-jan/host/cc-main-2025-26-nov-dec-jan-host-ranks.txt.gz",
        ),
    ],
)
def test_the_name_of_a_release_stands_for_its_ranks(source, file):
    wanted = f"https://data.commoncrawl.org/projects/hyperlinkgraph/{file}"
    assert rank_file(source) == rank_file(Path(source)) == wanted


def test_files_and_urls_stay_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ranks.txt.gz", "cc-main-2026", "x/cc-main-2026-apr-may-jun/host", f"{RELEASE}/page"):
        assert rank_file(name) == Path(name)
    assert rank_file("s3://bucket/key") == rank_file(Path("s3://bucket/key")) == "s3://bucket/key"
    assert rank_file(Path("https://example.org/x")) == "https://example.org/x"
    Path(RELEASE).mkdir()
    assert rank_file(RELEASE) == Path(RELEASE)


def test_a_release_is_a_prior_and_is_read_through_failures(release, tmp_path):
    release.answers, release.cuts = [503, None, 403], [40, 30]
    with opened(tmp_path / "c", VirtualClock(), policy="pagerank", prior=RELEASE) as crawl:
        crawl.seed(["https://www.example.com/", "https://other.example/"])
        assert crawl.why("https://www.example.com/").priority == pytest.approx(0.15 + 0.15 / 2)
        assert crawl.settings.prior == RELEASE
    assert release.waits
    asked = len(release.asked)
    with opened(tmp_path / "c", VirtualClock()) as crawl:
        assert crawl.why("https://www.example.com/").priority > 0.15
    assert len(release.asked) == asked
    assert host_places(f"{RELEASE}/domain").names[:] == ["example.com", "example.net", "example.org"]


def test_a_release_is_trusted(release, tmp_path):
    with opened(tmp_path / "c", VirtualClock(), policy="pagerank", trust=RELEASE) as crawl:
        assert [row.url for row in crawl.view.order(9).rows] == [
            "https://www.example.com/", "https://example.org/", "https://example.net/",
        ]  # fmt: skip


def test_the_first_ranks_of_a_release_are_read(release, tmp_path, monkeypatch):
    for module in ("factors.trust", "sources.ranklists"):
        monkeypatch.setattr(f"inlink.{module}.MOST_RANKS", 2)
    with opened(tmp_path / "c", VirtualClock(), policy="pagerank", trust=RELEASE) as crawl:
        assert crawl.view.info().pages == 2
    assert host_places(RELEASE).names[:] == ["example.org", "www.example.com"]
    found = inlink.diff(RELEASE, f"{RELEASE}/domain", by="harmonic")
    assert (len(found.a), len(found.b), found.common) == (2, 2, 1)
    assert found.gone(1)[0].told == "below place 2"


def test_commands_take_releases_and_urls(release, tmp_path):
    with opened(tmp_path / "c", VirtualClock(), policy="pagerank") as crawl:
        crawl.seed(["https://www.example.com/", "https://other.example/"])
    url = rank_file(RELEASE)
    for k, source in enumerate((RELEASE, url)):
        said = run("import-ranking", str(tmp_path / "c"), str(source), "--name", f"r{k}")
        unknown = "2 lines name pages or hosts that the crawl does not know"
        assert said == f"r{k}: 1 page of {tmp_path / 'c'} has a value; {unknown}\n"
    assert "in common: 2; only in A: 1; only in B: 1" in run("diff", str(url), f"{RELEASE}/domain")
    with pytest.raises(ParameterError, match="name a file or folder on this machine, or the https://"):
        run("diff", f"{release.url}/v1/crawls/c", RELEASE)


@pytest.mark.parametrize(("level", "suffix"), [("host", ""), ("host", "/host"), ("domain", "/domain")])
def test_the_graph_of_a_release_is_built_through_failures(release, tmp_path, level, suffix):
    release.answers, release.cuts = [503, None], [30, 20, 10]
    run("build", f"{RELEASE}{suffix}", "-o", str(tmp_path / "g"))
    graph = inlink.Graph.open(tmp_path / "g")
    names = sorted(HOSTS if level == "host" else ["com.example", *HOSTS[1:]])
    assert (graph.level, graph.names[:]) == (level, names)
    assert [graph.outlinks(node).tolist() for node in range(3)] == [[1, 2], [], [0]]
    assert release.waits


@pytest.mark.parametrize("answers", [[404], [503] * 8])
def test_a_graph_that_a_server_does_not_give_leaves_nothing(release, tmp_path, answers):
    release.answers = answers
    with pytest.raises(InputError, match="the server answers"):
        run("build", RELEASE, "-o", str(tmp_path / "g"))
    assert not (tmp_path / "g").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_release_that_is_not_there_is_one_line_and_leaves_nothing(release, tmp_path):
    missing = "cc-main-2020-feb-mar-may"
    for setting in ("trust", "prior"):
        with pytest.raises(InputError, match=r"-host-ranks\.txt\.gz: the server answers 404") as told:
            opened(tmp_path / "c", VirtualClock(), policy="pagerank", **{setting: missing})
        assert "\n" not in str(told.value)
        assert not (tmp_path / "c").exists()
    with pytest.raises(InputError, match="the server answers 404"):
        inlink.diff(missing, RELEASE)


def test_a_damaged_file_of_a_server_leaves_nothing(release, tmp_path):
    file = Path("projects/hyperlinkgraph") / RELEASE / "host" / f"{RELEASE}-host-ranks.txt.gz"
    file.write_bytes(file.read_bytes()[:-12])
    with pytest.raises(DamageError, match="compressed data cut or damaged"):
        opened(tmp_path / "c", VirtualClock(), policy="pagerank", prior=RELEASE)
    assert not (tmp_path / "c").exists()

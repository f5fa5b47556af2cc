"""``inlink whatif`` and ``inlink why --without``."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import inlink
from inlink.cli import commands
from inlink.errors import InlinkError
from inlink.protocol import Link, PageFacts

LINKS = "home\tguide\nhome\tnews\nguide\thome\nnews\thome\nnews\tstory\nstory\thome\nguide\tinstall\n"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(commands, [str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "links.tsv").write_text(LINKS)
    graph = inlink.read(tmp_path / "links.tsv", into=tmp_path / "site")
    inlink.pagerank(graph, damping=0.8).save(graph)
    return tmp_path / "site"


def test_changes_are_answered_with_the_damping_of_the_stored_ranking(site: Path, tmp_path: Path):
    (tmp_path / "changes.tsv").write_text("home\tstory\t+\n\ninstall\tfaq\t+\tmore\nnews\tstory\t-\n")
    done = run("whatif", site, tmp_path / "changes.tsv", "--page", "story", "--page", "faq", "--json")
    answer = json.loads(done.stdout)
    expected = inlink.whatif(
        inlink.Graph.open(site),
        [("home", "story"), ("install", "faq")],
        [("news", "story")],
        nodes=["story", "faq"],
        damping=0.8,
    )
    assert (answer["added"], answer["removed"], answer["new"]) == (2, 1, ["faq"])
    for row, other in zip(answer["nodes"], expected, strict=True):
        assert row["node"] == other.node
        assert row["change"] == pytest.approx(list(other.change), rel=0.02)
        assert row["decided"]
    text = run("whatif", site, tmp_path / "changes.tsv", "-n", 3).stdout.splitlines()
    assert len(text) == 3
    assert text[0].split("\t")[6] == "home"


def test_suggestions_can_be_read_as_changes(site: Path, tmp_path: Path):
    (tmp_path / "pages.txt").write_text("install\n")
    done = run("whatif", site, "--suggest", 2, "--raise", tmp_path / "pages.txt")
    assert [line.split("\t")[:3] for line in done.stdout.splitlines()] == [
        ["home", "install", "+"],
        ["story", "install", "+"],
    ]
    (tmp_path / "more.tsv").write_text(done.stdout)
    answer = json.loads(run("whatif", site, tmp_path / "more.tsv", "--page", "install", "--json").stdout)
    rows = json.loads(run("whatif", site, "--suggest", 2, "--raise", tmp_path / "pages.txt", "--json").stdout)
    low, high = answer["nodes"][0]["change"]
    assert low <= sum(row["gain"][1] for row in rows)
    assert high >= sum(row["gain"][0] for row in rows)
    (tmp_path / "from.txt").write_text("news\n")
    options = "--suggest", 2, "--raise", tmp_path / "pages.txt", "--from", tmp_path / "from.txt"
    assert [line.split("\t")[0] for line in run("whatif", site, *options).stdout.splitlines()] == ["news"]


@pytest.mark.slow
def test_links_are_suggested_from_plausible_pages_only(tmp_path: Path):
    root = "https://example.org/"
    menu = [Link(root, place="nav"), Link(f"{root}en/legal", place="nav")]
    target = f"{root}en/target"

    def facts(title: str, language: str = "en-GB") -> PageFacts:
        return PageFacts(title=title, language=language)

    plain = {f"{root}other/{k}": ([], facts(f"Filler {k}")) for k in range(80)}
    pages = {
        root: ([*map(Link, plain), Link(f"{root}blog/b"), Link(f"{root}en/a")], facts("Home")),
        **plain,
        # Near in folder; near in the title; of unknown language; of another language; in a menu only; with many links.
        f"{root}en/a": ([Link(f"{root}{path}") for path in ("en/b", "en/x", "de/a", "en/full")], facts("A")),
        f"{root}en/b": ([Link(f"{root}en/a")], facts("B")),
        f"{root}blog/b": ([Link(f"{root}en/b")], facts("On zebras")),
        f"{root}en/x": ([Link(f"{root}en/a")], facts("X", "")),
        f"{root}de/a": ([Link(f"{root}en/a")], facts("Zebras", "de")),
        f"{root}en/legal": ([], facts("Legal notice")),
        f"{root}en/full": ([Link(f"{root}f{k}") for k in range(100)], facts("Full")),
        # It has no inlinks, so it does not count as linked by menus only.
        f"{root}en/orphan": ([Link(root)], facts("Orphan")),
        target: ([], facts("All zebras", "en")),
    }
    with inlink.Crawl(tmp_path / "crawl", politeness=inlink.Politeness(delay=0)) as crawl:
        crawl.seed([root])
        crawl.sitemap([(target, None, None), (f"{root}en/orphan", None, None)])
        for url, (links, read) in pages.items():
            crawl.crawled(url, [*menu, *links], facts=read)
    (tmp_path / "pages.txt").write_text(f"{target}\n")
    done = run("whatif", tmp_path / "crawl", "--suggest", 20, "--raise", tmp_path / "pages.txt")
    assert {line.split("\t")[0] for line in done.stdout.splitlines()} == {
        f"{root}{path}" for path in ("en/a", "en/b", "en/x", "en/orphan", "blog/b")
    }
    assert (
        "may link; left out: 100 without links, or not crawled; 1 in another language; 1 linked by menus and footers "
        "only; 81 near neither in folder nor in title; 1 with 100 links or more\n"
    ) in done.stderr


def test_pages_of_changes_are_named_as_elsewhere(tmp_path: Path):
    root = "https://example.org/"
    names = ("", "docs/install.html", "docs/a/index.html", "docs/b/index.html", "docs/reinstall.html")
    with inlink.Crawl(tmp_path / "crawl", politeness=inlink.Politeness(delay=0)) as crawl:
        crawl.seed([root])
        [lease] = crawl.next(1)
        crawl.crawled(lease, links=[f"{root}{name}" for name in names[1:]])
    file = tmp_path / "changes.tsv"

    def answer(text: str) -> tuple[dict, str]:
        file.write_text(text)
        done = run("whatif", tmp_path / "crawl", file, "--json")
        return json.loads(done.stdout or "{}"), f"{done.stderr}{done.exception or ''}"

    # The end of a URL, another form of it, and the hash of a page.
    changes, said = answer(f"install.html\ta/index.html\t+\nHTTPS://EXAMPLE.org\t{1:016x}\t-\n")
    assert (changes["added"], changes["removed"], changes["new"]) == (1, 1, [])
    assert said.count("inlink: install.html is https://example.org/docs/install.html\n") == 1
    # A part of a path may be a new page; a removed link is between known pages.
    changes, _ = answer(f"{root}\tstall.html\t+\n{root}\t{root}index.html\t+\n")
    assert changes["new"] == ["stall.html", f"{root}index.html"]
    _, said = answer(f"{root}\tinstall.html\t-\n{root}\tindex.html\t-\n")
    ends = ", ".join(f"{root}{name}" for name in names[2:4])
    assert said.endswith(
        f"line 2: 'index.html' is not known in {tmp_path / 'crawl'}, and is the end of several names: "
        f"did you mean {ends}?"
    )
    _, said = answer(f"index.html\t{root}\t+\n")
    assert f"line 1: 'index.html' is not known in {tmp_path / 'crawl'}, and is the end of several" in said
    _, said = answer(f"{root}\tnowhere.html\t-\n")
    assert "line 1: 'nowhere.html' is not known" in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("home\tnews\t-\nhome\tstory\n", "line 2: expected a source, a target"),
        ("home\tstory\t*\n", "line 1: the third field must be"),
        ("home\tstory\t-\n", "line 1: the graph has no link from 'home' to 'story'"),
        ("home\tx\t-\n", "line 1: .*x"),
        ("home\tnews\t-\nhome\tnews\t+\n", "line 2: line 1 has the same link"),
        ("\tnews\t+\n", "line 1: a name is empty"),
    ],
)
def test_a_wrong_line_is_named(site: Path, tmp_path: Path, text: str, says: str):
    (tmp_path / "bad.tsv").write_text(text)
    done = run("whatif", site, tmp_path / "bad.tsv")
    assert isinstance(done.exception, InlinkError)
    with pytest.raises(InlinkError, match=f"bad.tsv, {says}"):
        raise done.exception


def test_numbers_of_nodes(tmp_path: Path):
    inlink.Graph.from_arcs([(0, 1), (1, 0), (1, 2)], into=tmp_path / "graph")
    (tmp_path / "changes.tsv").write_text("0\t3\t+\n")
    answer = json.loads(
        run("whatif", tmp_path / "graph", tmp_path / "changes.tsv", "--page", "3", "--json").stdout
    )
    assert (answer["new"], answer["nodes"][0]["node"]) == ([3], 3)
    (tmp_path / "changes.tsv").write_text("0\tx\t+\n")
    assert "are numbers" in str(run("whatif", tmp_path / "graph", tmp_path / "changes.tsv").exception)


def test_why_without_a_link(tmp_path: Path):
    home, page = "https://example.org/", "https://example.org/a"
    with inlink.Crawl(tmp_path / "crawl", politeness=inlink.Politeness(delay=0)) as crawl:
        crawl.seed([home])
        for links in (["/a", "/b"], ["/"], ["/a"]):
            [lease] = crawl.next(1)
            crawl.crawled(lease, links=links)
    reasons = json.loads(run("why", tmp_path / "crawl", page, "--without", home, "--json").stdout)
    assert reasons["without"]["change"][1] < 0
    line = run("why", tmp_path / "crawl", page, "--without", home).stdout.splitlines()[-1]
    assert line.strip().startswith(f"without the link from {home}: PageRank")
    refused = run("why", tmp_path / "crawl", page, "--without", page).exception
    assert isinstance(refused, InlinkError)
    assert "no link from" in str(refused)

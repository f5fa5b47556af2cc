"""``inlink crawl`` and then ``inlink audit``, on a site that is served on loopback."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from crawlcommand import crawl, inlink
from inlink.cli import commands
from sites import Answer, Asked, Says, Site, moved

pytestmark = pytest.mark.slow

MENU = "<nav><a href=/>Home</a></nav>"


def page(title: str, *links: str, head: str = "", menu: str = MENU) -> str:
    return f"<html lang=en><title>{title}</title>{head}<h1>{title}</h1>{menu}<main>{' '.join(links)}</main>"


def test_a_site_is_crawled_and_audited(tmp_path: Path) -> None:
    def robots(asked: Asked) -> Answer:
        sitemap = f"Sitemap: http://{asked.headers['Host']}/sitemap.xml"
        return Answer(
            f"User-agent: *\nDisallow: /secret\n{sitemap}\n", headers={"Content-Type": "text/plain"}
        )

    def sitemap(asked: Asked) -> Answer:
        root = f"http://{asked.headers['Host']}"
        lines = "".join(f"<url><loc>{root}{path}</loc></url>" for path in ("/", "/orphan", "/shy"))
        return Answer(f"<urlset>{lines}</urlset>", headers={"Content-Type": "application/xml"})

    pages: dict[str, Says] = {
        "/robots.txt": robots,
        "/sitemap.xml": sitemap,
        "/": page(
            "Home",
            "<a href=/a>a</a> <a href=/lost>the lost page</a> <a href=/r1>old</a> <a href=/loop1>round</a>",
            "<a href=/hidden>hidden</a> <a href=/secret>secret</a> <a href=/shy rel=nofollow>shy</a>",
        ),
        "/a": page("Same", "<a href=/b>b</a> <a href=/lost>again</a>"),
        "/b": page("Same", "<a href=/c>c</a>"),
        "/c": page("C", "<a href=/d>d</a>"),
        "/d": page("D", menu=""),
        "/r1": moved("/r2", 301),
        "/r2": moved("/a", 302),
        "/loop1": moved("/loop2"),
        "/loop2": moved("/loop1"),
        "/hidden": page("Hidden", head='<meta name=robots content="noindex">'),
        "/shy": page("Shy"),
        "/orphan": page("Orphan"),
    }
    with Site(pages) as site:
        crawl(site.root, "-o", "c", "--delay", 0, "--sitemaps", cwd=tmp_path)
        root = site.root
    answer = json.loads(CliRunner().invoke(commands, ["-q", "audit", str(tmp_path / "c"), "--json"]).stdout)
    rows = {
        check["name"]: [[str(value).removeprefix(root) for value in row] for row in check["rows"]]
        for check in answer["checks"]
    }
    assert rows["broken"] == [
        ["/lost", "/", "404", "the lost page", "main"],
        ["/lost", "/a", "404", "again", "main"],
    ]
    assert rows["redirects"][0] == ["/r1", "/", "chain of 2: 301, 302", "/a", "old", "main"]
    assert [row[:2] for row in rows["redirects"]] == [["/r1", "/"], ["/loop1", "/"]]
    assert rows["redirects"][1][2].startswith("no end: ")
    assert sorted(row[0] for row in rows["orphans"]) == ["/orphan", "/shy"]
    assert rows["indirect"] == [["/shy", "only by nofollow links", "1"]]
    assert [row[:2] for row in rows["depth"]] == [["/d", "4"]]
    assert sorted(row[0] for row in rows["hidden"]) == ["/hidden", "/secret"]
    assert sorted(row[0] for row in rows["titles"]) == ["/a", "/b"]
    assert rows["dead-ends"] == [["/d"]]
    assert answer["gaps"] == ["1 page excluded: Forbidden by robots.txt"]


def code_of(command: str, folder: Path) -> int:
    """Return the exit code of a command, which a shell runs unless it is one of inlink."""
    program, *words = shlex.split(command)
    if program != "inlink":
        return subprocess.run(["bash", "-e", "-c", command], cwd=folder, capture_output=True).returncode
    kept = folder / words.pop() if words[-2] == ">" else None
    done = inlink(*words[: -1 if kept else None], cwd=folder, code=None)
    if kept:
        kept.write_text(done.stdout)
    return done.returncode


def test_the_workflow_of_the_docs_runs(tmp_path: Path) -> None:
    """Run the workflow on two nights. The first has no earlier audit. A link breaks before the second."""
    text = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    steps = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    commands_of_steps = [step["run"] for step in steps if "run" in step]
    install, *following = commands_of_steps
    assert install == "pip install 'inlink[scrapy]'"
    # The files that the workflow caches and uploads. The commands below must make them.
    kept = [step["with"]["path"] for step in steps if "uses" in step]
    assert kept == ["last-audit.json", "report.html"]
    pages: dict[str, Says] = {"/": page("Home", "<a href=/a>a</a>"), "/a": page("A")}
    codes: list[list[int]] = []
    for night in range(2):
        folder = tmp_path / str(night)
        folder.mkdir()
        if night:
            shutil.copy(tmp_path / "0" / "last-audit.json", folder)
            pages["/a"] = page("A", "<a href=/lost>lost</a>")
        with Site(pages) as site:
            codes.append(
                [
                    code_of(command.replace("https://docs.example/", f"{site.root}/"), folder)
                    for command in following
                ]
            )
        assert [(folder / name).stat().st_size > 0 for name in kept] == [True, True]
    assert codes == [[0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]

"""``inlink audit``: its output, its exit codes, comparisons, and what a hostile site can put into a report."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.audit.plantedsite import HOME, Answer, SitePlan, crawl, plan

import inlink
from inlink.audit.audit import Audit, audit, load_audit
from inlink.audit.report import MOST_ROWS, write_html
from inlink.cli import commands
from inlink.errors import InputError, ParameterError
from inlink.protocol import Link, PageFacts

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def run(*arguments: object) -> Result:
    return CliRunner().invoke(commands, ["-q", "audit", *map(str, arguments)])


def small(*broken: str, more: str = "") -> SitePlan:
    """A site of two pages, whose home has links to pages that are gone."""
    links = "".join(f'<a href="/{path}">{path}</a>' for path in broken)
    home = f"<title>Home</title><h1>Home</h1><a href=/two>two</a>{links}{more}"
    return SitePlan(
        {HOME: Answer(home), f"{HOME}two": Answer("<title>Two</title><h1>Two</h1><a href=/>home</a>")}
    )


def test_the_summary_counts_and_the_rows_name_the_pages_to_mend(tmp_path: Path) -> None:
    crawl(small("lost", "gone"), tmp_path / "c")
    summary = run(tmp_path / "c")
    assert summary.exit_code == 0
    assert "broken\terror\t2\tcomplete\n" in summary.stdout
    assert "orphans\twarning\t–\tnot judged\n" in summary.stdout
    assert "inlink: not judged: no sitemap was read" in summary.stderr
    rows = run(tmp_path / "c", "--only", "broken").stdout.splitlines()
    assert rows == [f"{HOME}{path}\t{HOME}\t404\t{path}\tbody" for path in ("lost", "gone")]


def test_the_structure_of_a_site(tmp_path: Path) -> None:
    site = small(more="<a href=/end>end</a><a href=/lost>lost</a>")
    site.answers[f"{HOME}end"] = Answer("<title>End</title><h1>End</h1>")
    site.answers[f"{HOME}before"] = Answer(
        "<title>Before</title><h1>Before</h1><a href=/>home</a><a href=/x>x</a>"
    )
    site.answers[f"{HOME}x"] = Answer("<title>X</title><h1>X</h1>")
    site.answers[f"{HOME}alone"] = Answer("<title>Alone</title><h1>Alone</h1>")
    site.sitemap += [f"{HOME}before", f"{HOME}alone"]
    crawl(site, tmp_path / "c")
    (found,) = audit(tmp_path / "c", only=["structure"]).checks
    # The page that is gone was not fetched, so it does not count.
    assert [tuple(row) for row in found.rows] == [("core", 2), ("IN", 1), ("OUT", 1), ("others", 2)]


def test_fail_on_is_for_continuous_integration(tmp_path: Path) -> None:
    crawl(small("lost"), tmp_path / "c")
    assert run(tmp_path / "c", "--fail-on", "redirects").exit_code == 0
    failed = run(tmp_path / "c", "--fail-on", "redirects,broken")
    assert failed.exit_code == 1
    assert failed.stderr.endswith("inlink: checks with findings: broken\n")
    for arguments in (["--fail-on", "brocken"], ["--only", "x"], ["--safe-cells"]):
        assert run(tmp_path / "c", *arguments).exit_code == 2
    for arguments, message in (
        (["--since", "tomorrow"], "--since takes a crawl's folder"),
        (["--csv", "/proc/none"], "/proc/none: cannot be written"),
    ):
        assert message in str(run(tmp_path / "c", *arguments).exception)
    assert run(tmp_path / "nothing").exit_code in (1, 2)


def test_since_an_earlier_crawl_a_saved_audit_and_a_moment(tmp_path: Path) -> None:
    crawl(small("lost", "gone"), tmp_path / "old")
    crawl(small("gone", "new"), tmp_path / "c")
    saved = run(tmp_path / "old", "--json")
    (tmp_path / "old.json").write_text(saved.stdout)
    for since in (tmp_path / "old", tmp_path / "old.json"):
        compared = run(tmp_path / "c", "--since", since)
        assert "broken\terror\t2\t1\t1\tcomplete\n" in compared.stdout
    answer = json.loads(run(tmp_path / "c", "--since", tmp_path / "old.json", "--json").stdout)
    broken = next(check for check in answer["checks"] if check["name"] == "broken")
    assert broken["mended"] == [[f"{HOME}lost", HOME]]
    # Nothing is new since a moment after the crawl.
    assert run(tmp_path / "c", "--since", "2100-01-01", "--fail-on", "broken").exit_code == 0
    assert run(tmp_path / "c", "--since", tmp_path / "old", "--fail-on", "broken").exit_code == 1


def test_pages_that_an_earlier_crawl_had_are_orphans(tmp_path: Path) -> None:
    crawl(small(more="<a href=/three>3</a>"), tmp_path / "old")
    plan_of_old = small(more="<a href=/three>3</a>")
    plan_of_old.answers[f"{HOME}three"] = Answer("<title>Three</title><h1>3</h1><a href=/>home</a>")
    crawl(plan_of_old, tmp_path / "older")
    crawl(small(), tmp_path / "c")
    rows = run(tmp_path / "c", "--since", tmp_path / "older", "--only", "orphans").stdout
    assert rows == f"{HOME}three\tearlier crawl\tno longer known\n"


def test_a_partial_crawl_is_inconclusive(tmp_path: Path) -> None:
    crawl(plan(20), tmp_path / "c", budget=10)
    result = audit(tmp_path / "c")
    assert re.fullmatch(r"[\d,]+ pages not fetched yet", result.gaps[0])
    assert {check.verdict for check in result.checks} == {"inconclusive"}
    assert "not all pages were fetched" in run(tmp_path / "c").stderr


def test_a_crawl_without_facts_says_what_cannot_be_judged(tmp_path: Path) -> None:
    with inlink.Crawl(tmp_path / "c", politeness={"delay": 0}) as frontier:
        frontier.seed([HOME])
        frontier.crawled(frontier.next(1)[0], ["/gone"])
        frontier.failed(frontier.next(1)[0], status=404)
    verdicts = {check.name: check.verdict for check in audit(tmp_path / "c").checks}
    assert verdicts["titles"] == verdicts["hreflang"] == "not judged"
    assert verdicts["broken"] == "complete"


def test_csv_has_all_rows(tmp_path: Path) -> None:
    crawl(small("lost"), tmp_path / "c")
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "redirects.csv").write_text("of an earlier audit")
    assert run(tmp_path / "c", "--csv", tmp_path / "csv").exit_code == 0
    assert (tmp_path / "csv" / "redirects.csv").read_text() == "target,page,problem,end,text,place\n"
    with (tmp_path / "csv" / "broken.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows == [
        {"target": f"{HOME}lost", "page": HOME, "problem": "404", "text": "lost", "place": "body"}
    ]


class _Report(HTMLParser):
    """The text of a report, its scripts, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name == "src" or name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_hostile_site_is_escaped_everywhere(tmp_path: Path) -> None:
    with inlink.Crawl(tmp_path / "c", politeness={"delay": 0}) as frontier:
        frontier.seed([HOME])
        facts = PageFacts(
            title=HOSTILE, heading=HOSTILE, headings=2, canonicals=["javascript:alert(1)", HOSTILE]
        )
        links = [Link("/a", text=HOSTILE), Link("/b", text="=cmd|' /C calc'!A0")]
        frontier.crawled(frontier.next(1)[0], links, facts=facts)
        for path in "ab":
            frontier.failed(f"{HOME}{path}", HOSTILE, retry=False)
    assert (
        run(tmp_path / "c", "-o", tmp_path / "r.html", "--csv", tmp_path / "csv", "--safe-cells").exit_code
        == 0
    )
    report = _Report()
    report.feed((tmp_path / "r.html").read_text())
    assert report.tags.count("script") == 1
    assert "img" not in report.tags
    assert report.loads == []
    assert HOSTILE in report.text
    assert "javascript:" not in "".join(re.findall(r'href="([^"]*)"', (tmp_path / "r.html").read_text()))
    assert ",'=cmd|" in (tmp_path / "csv" / "broken.csv").read_text()


def test_tables_of_the_page_are_cut_with_their_count(tmp_path: Path) -> None:
    crawl(small(*(f"lost{k}" for k in range(MOST_ROWS + 5))), tmp_path / "c")
    result = audit(tmp_path / "c", only=["broken"])
    write_html(result, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert text.count("<td>404") == MOST_ROWS
    assert f"{MOST_ROWS} of {MOST_ROWS + 5} rows. All: <code>inlink audit " in text


def test_a_saved_audit_can_be_read_again_and_damage_is_one_line(tmp_path: Path) -> None:
    crawl(small("lost"), tmp_path / "c")
    (tmp_path / "a.json").write_text(run(tmp_path / "c", "--json").stdout)
    loaded = load_audit(tmp_path / "a.json")
    assert isinstance(loaded, Audit)
    assert loaded.checks[0].rows == audit(tmp_path / "c").checks[0].rows
    (tmp_path / "bad.json").write_text('{"crawl": 3}')
    with pytest.raises(InputError, match=r"bad\.json is no audit"):
        load_audit(tmp_path / "bad.json")
    hostile = json.loads((tmp_path / "a.json").read_text())
    hostile["checks"][0]["rows"] = [[["a list"], {}, 3]]
    (tmp_path / "bad.json").write_text(json.dumps(hostile))
    with pytest.raises(InputError, match=r"bad\.json is no audit"):
        load_audit(tmp_path / "bad.json")
    with pytest.raises(ParameterError, match="no check 'x'"):
        audit(tmp_path / "c", only=["x"])
    for wrong in ({"only": "broken"}, {"earlier": HOME}, {"foreign": "yes"}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            audit(tmp_path / "c", **wrong)


def test_an_empty_crawl(tmp_path: Path) -> None:
    inlink.Crawl(tmp_path / "c").close()
    assert run(tmp_path / "c", "-o", tmp_path / "r.html").exit_code == 0

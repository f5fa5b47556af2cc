"""``inlink crawl`` from end to end, on a site of the test's own."""

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("scrapy")

from click.testing import CliRunner

import inlink
from crawlcommand import begin, crawl, lines_of
from inlink.cli import commands
from inlink.crawl.folder import look
from inlink.errors import InlinkError
from patience import wait_until
from sites import Answer, Says, Site, html, moved

pytestmark = pytest.mark.slow

HTML = {"Content-Type": "text/html"}


def states(folder: Path) -> dict[str, str]:
    pages = look(folder).pages
    return {pages.url(page): pages.page(page).state for page in range(pages.num_pages)}


def tree(count: int) -> dict[str, Says]:
    """Page n links to 2n and 2n + 1."""
    return {
        f"/{n}": html(*(f"/{m}" for m in (2 * n, 2 * n + 1) if m <= count), title=f"page {n}", text="words")
        for n in range(1, count + 1)
    }


def test_a_site_is_crawled_politely_and_only_where_it_may_be(tmp_path):
    pages: dict[str, Says] = {
        "/": html("/a", "/b#top", "/secret", "/gone", "/moved", "mailto:x@example.org", title=" The\n home "),
        "/a": '<a href="/no" rel="nofollow">no</a><a href="/c">c</a>',
        "/b": Answer('<meta name="robots" content="nofollow"><a href="/no">no</a>'),
        "/c": Answer("see http://127.0.0.1/no", headers={"Content-Type": "text/plain"}),
        "/moved": Answer("", 301, {"Location": "/c"}),
        "/secret": "never",
        "/no": "never",
        "/robots.txt": Answer(
            "User-agent: inlink\nDisallow: /secret\n", headers={"Content-Type": "text/plain"}
        ),
    }
    with Site(pages) as site:
        done = crawl(f"{site.root[7:]}/", "-o", "c", "--delay", 0.4, "--items", "i.jsonl", cwd=tmp_path)
        assert sorted(site.paths()) == ["/", "/a", "/b", "/c", "/gone", "/moved"]
        assert [one.path for one in site.asked].count("/robots.txt") == 1
        assert {one.headers["User-Agent"] for one in site.asked} == {
            f"inlink/{inlink.__version__} (+https://pypi.org/project/inlink/)"
        }
        # Robots.txt and redirects are no exceptions. A busy machine may hold up a request on its way, so two
        # requests may come together, but three do not.
        times = [one.at for one in site.asked]
        assert all(third - first >= 0.4 for first, third in zip(times, times[2:], strict=False))
        at = {
            path: states(tmp_path / "c")[site.root + path]
            for path in pages
            if path != "/robots.txt" and path != "/no"
        }
        assert at == {
            **dict.fromkeys(("/", "/a", "/b", "/c"), "crawled"),
            "/moved": "merged",
            "/secret": "excluded",
        }
        why, last = done.stdout.splitlines(keepends=True)[:-1], done.stdout.splitlines(keepends=True)[-1]
        assert sorted(why) == [
            f"HTTP 404 Not Found: {site.root}/gone\n",
            f"forbidden by robots.txt: {site.root}/secret\n",
        ]
        assert re.fullmatch(
            r"c: 4 pages in \d+ s, 1 error; 4 pages of 7 known, 0 waiting, 1 excluded"
            r"(; harvest \S+% of the rank that it may fetch)?; nothing more to fetch now\n",
            last,
        )
        assert done.stderr == ""
        items = {one["url"].removeprefix(site.root): one for one in lines_of(tmp_path / "i.jsonl")}
    assert set(items) == {"/", "/a", "/b", "/c"}
    home = items["/"]
    assert (home["title"], home["status"], home["depth"], home["links"]) == ("The home", 200, 0, 5)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", home["fetched"])
    assert (items["/a"]["links"], items["/b"]["links"], items["/c"]["links"]) == (1, 0, 0)
    assert items["/a"]["depth"] == 1


def test_pages_is_a_number_of_pages_of_the_whole_crawl(tmp_path):
    with Site(tree(63)) as site:
        options = ("-o", "c", "--delay", 0, "--items", "i.jsonl", "--pages")
        first = crawl(f"{site.root}/1", *options, 10, cwd=tmp_path)
        assert "10 pages of" in first.stdout
        assert first.stdout.endswith("; --pages is reached\n")
        assert len(site.paths()) == 10
        again = crawl(f"{site.root}/1", *options, 10, cwd=tmp_path)
        assert again.stdout.startswith("c: 0 pages in")
        assert len(site.paths()) == 10
        crawl(f"{site.root}/1", *options, 25, cwd=tmp_path)
        assert len(site.paths()) == len(set(site.paths())) == 25
        crawl("-o", "c", "--delay", 0, "--items", "i.jsonl", cwd=tmp_path)  # no URL: it goes on
        assert sorted(site.paths()) == sorted(f"/{n}" for n in range(1, 64))
    assert len(lines_of(tmp_path / "i.jsonl")) == 63


def test_pages_that_merge_count_once(tmp_path):
    """Each even page says that the next is its canonical one: whichever is fetched first, two make one."""
    pages: dict[str, Says] = {"/1": html(*(f"/{n}" for n in range(2, 42)))}
    pages |= {f"/{n}": f'<link rel=canonical href="/{n | 1}">' for n in range(2, 42)}
    with Site(pages) as site:
        done = crawl(f"{site.root}/1", "-o", "c", "--delay", 0, "--pages", 15, cwd=tmp_path)
    assert "; 15 pages of" in done.stdout
    assert list(states(tmp_path / "c").values()).count("crawled") == 15


def test_redirects_and_canonical_pages_of_a_site(tmp_path):
    pages: dict[str, Says] = {
        "/": html("/r1", "/b", "/copy"),
        "/r1": moved("/r2", 301),
        "/r2": moved("/refresh", 308),
        "/refresh": '<meta http-equiv="refresh" content="0; url=/end">',
        "/end": html("/behind"),
        "/behind": html(),
        "/b": '<link rel=canonical href="/missing">',
        "/copy": '<link rel=canonical href="/original">',
        "/original": '<link rel=canonical href="/original"><a href="/two-clicks">two</a>',
        "/two-clicks": html(),
    }
    with Site(pages) as site:
        crawl(site.root, "-o", "c", "--delay", 0, "--depth", 2, cwd=tmp_path)
        asked = Counter(site.paths())
        root = site.root
    assert asked == dict.fromkeys([*pages, "/missing"], 1)
    with inlink.Crawl(tmp_path / "c") as found:
        known = {path: found.page(root + path) for path in [*pages, "/missing"]}
    told = {
        path: (page.state, page.status, page.depth, page.merge_reason)
        for path, page in known.items()
        if path != "/"
    }
    assert told == {
        "/r1": ("merged", 301, 1, "redirect"),
        "/r2": ("merged", 308, 1, "redirect"),
        "/refresh": ("merged", 200, 1, "refresh"),
        "/end": ("crawled", 200, 1, None),
        "/behind": ("crawled", 200, 2, None),
        "/b": ("crawled", 200, 1, None),
        "/missing": ("gone", 404, 1, None),
        "/copy": ("merged", 200, 1, "canonical"),
        "/original": ("crawled", 200, 1, None),
        "/two-clicks": ("crawled", 200, 2, None),
    }
    assert known["/b"].canonical == root + "/missing"
    run = CliRunner().invoke
    assert run(commands, ["dump", "pages", str(tmp_path / "c")]).output.count("\tredirect\t") == 2
    shown = json.loads(run(commands, ["page", str(tmp_path / "c"), root + "/r2", "--json"]).output)
    assert (shown["merge_reason"], shown["status"]) == ("redirect", 308)
    assert "(redirect 301)" in run(commands, ["why", str(tmp_path / "c"), root + "/r1"]).output


def test_a_topic_leads(tmp_path):
    pages: dict[str, Says] = {"/": html(*(f"/{k}" for k in range(40)))}
    good = "Streaming replication of Postgres servers: a replica follows the primary. "
    for k in range(40):
        about = good * 3 if k % 10 == 0 else "Gardens, roses, hedges, weather and so on. "
        anchors = [
            f'<a href="/{k}/{j}">{"postgres replication" if k % 10 == 0 else "roses"}</a>' for j in range(3)
        ]
        pages[f"/{k}"] = f"<p>{about}</p>{' '.join(anchors)}"
        pages |= {f"/{k}/{j}": f"<p>{about}</p>" for j in range(3)}
    with Site(pages) as site:
        crawl(
            *(site.root, "-o", "c", "--delay", 0, "--topic", "postgres replication", "--items", "i.jsonl"),
            cwd=tmp_path,
        )
        order = site.paths()
        assert len(order) == 161
        first = [order.index(f"/{k}/{j}") for k in range(0, 40, 10) for j in range(3)]
        rest = [order.index(f"/{k}/{j}") for k in range(40) for j in range(3) if k % 10]
        assert sum(first) / len(first) < sum(rest) / len(rest) / 2
        scores = {one["url"].removeprefix(site.root): one["score"] for one in lines_of(tmp_path / "i.jsonl")}
    assert min(scores["/0"], scores["/10/1"]) > 0.3 > max(scores["/1"], scores["/11/2"])
    settings = json.loads((tmp_path / "c" / "settings.json").read_text())
    assert settings["policy"] == "best-first"


def test_bounds(tmp_path):
    with Site({**tree(63), "/": html("/x"), "/x": ""}, hosts=2) as site:
        other = site.url("/", host=2)
        site.pages["/2"] = html(other, "/4", "/5")
        (tmp_path / "seeds.txt").write_text(f"{site.root}/1\n")
        crawl(
            *("--seeds", "seeds.txt", "--delay", 0, "--depth", 3, "--deny", "/9$", "--deny", "/11$"),
            cwd=tmp_path,
        )
        assert sorted(site.paths()) == sorted(f"/{n}" for n in range(1, 16) if n not in (9, 11))
        assert site.times(host=2) == []
        assert (tmp_path / "127.0.0.1.crawl").is_dir()
        crawl(
            *(
                f"{site.root}/1",
                "-o",
                "b",
                "--delay",
                0,
                "--allow",
                r"127\.0\.0\.1:\d+/[1-5]$",
                "--allow",
                "/x$",
            ),
            *("--domains", "127.0.0.1, 127.0.0.2"),
            cwd=tmp_path,
        )
        assert set(states(tmp_path / "b")) >= {f"{site.root}/4", other}
        assert [url for url, state in states(tmp_path / "b").items() if state == "crawled"] == [
            f"{site.root}/{n}" for n in range(1, 6)
        ]


def test_a_warc_of_what_was_fetched(tmp_path):
    pages = tree(20) | {"/robots.txt": Answer("", 404)}
    with Site(pages) as site:
        crawl(f"{site.root}/1", "-o", "c", "--delay", 0, "--warc", "w.warc.gz", "--pages", 7, cwd=tmp_path)
        crawl(f"{site.root}/1", "-o", "c", "--delay", 0, "--warc", "w.warc.gz", cwd=tmp_path)
        archived = inlink.read(tmp_path / "w.warc.gz")
        crawled = inlink.read(tmp_path / "c")
        robots = f"{site.root}/robots.txt"
    assert {*archived.names[:]} - {robots} == {*crawled.names[:]}
    assert archived.num_arcs == crawled.num_arcs == 19
    assert archived.meta.get("skipped", {}) == {}


def test_it_starts_gently(tmp_path):
    """Pages are answered only once nothing more is asked for: so many are asked for at a time."""
    with Site({"/": Answer(delay=0.3)}, hosts=20) as site:
        seeds = [site.url("/", host) for host in range(1, 21)]
        crawl(*seeds, "-o", "c", "--concurrency", 16, cwd=tmp_path)
        times = [one.at for one in site.asked if one.path == "/"]
    assert len(times) == 20
    # two first, then one more at a time for each that was answered: never more than that
    assert times[2] - times[0] > 0.25
    assert times[6] - times[2] > 0.25


def test_seconds_end_a_run(tmp_path):
    with Site(tree(1000)) as site:
        done = crawl(f"{site.root}/1", "-o", "c", "--seconds", 3, cwd=tmp_path)
        assert done.stdout.endswith("; --seconds are over\n")
        assert 1 <= len(site.paths()) <= 8  # a second between two
        assert list(states(tmp_path / "c").values()).count("leased") == 0


def test_errors_are_counted_and_calm(tmp_path):
    pages: dict[str, Says] = {
        "/": html("/404", "/big", "/a", "http://127.0.0.3:1/", "/bin", "/odd"),
        "/big": Answer(b"x" * (11 << 20)),
        "/a": Answer(b"\xff\xfe\0broken", headers={"Content-Type": "text/html; charset=\x01\xfe"}),
        "/bin": Answer(b"%PDF-1.4 <a href=/no>", headers={"Content-Type": "application/pdf"}),
        "/odd": Answer(
            "<a href=/b>b</a>", headers={"Content-Type": "application/xhtml+xml", "Content-Encoding": "gzip"}
        ),
    }
    with Site(pages) as site:
        ends = {"/404": "gone", "/big": "excluded", **dict.fromkeys(("/", "/a", "/bin"), "crawled")}
        wanted = {site.root + path: state for path, state in ends.items()}.items()
        # The dead host is tried again for hours, so the crawl is interrupted once all others are dealt with.
        with begin(f"{site.root}/", "-o", "c", "--delay", 0, "--everywhere", cwd=tmp_path) as run:
            files = [tmp_path / "c" / name for name in ("urls.txt", "events.log")]
            wait_until(lambda: all(file.exists() for file in files), "the crawl to begin")
            wait_until(lambda: wanted <= states(tmp_path / "c").items(), "pages to be crawled", every=0.1)
            run.send_signal(signal.SIGINT)
            assert run.wait() == 130, run.err
            error = run.err
    assert site.paths().count("/big") == 1
    assert states(tmp_path / "c")["http://127.0.0.3:1/"] in ("discovered", "failed")
    assert "Traceback" not in error
    assert all(line.startswith("crawl: warning: ") for line in error.splitlines())


def test_progress_in_a_log(tmp_path):
    with (
        Site(tree(2000)) as site,
        begin(
            f"{site.root}/1", "-o", "c", "--delay", 0.1, "--topic", "words", cwd=tmp_path, quiet=False
        ) as run,
    ):
        run.wait_for_error("crawl: ")
        run.kill()
        line = next(line for line in run.err.splitlines() if "compiling loops" not in line)
    assert re.fullmatch(
        r"crawl: \d+ pages, \d+\.\d/s, \d+ known, \d+ waiting, 0 errors, score 0\.\d{3}(, harvest \d+\.\d%)?"
        r"; waiting: 127\.0\.0\.1 \d+",
        line,
    )


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "bad.toml").write_text("x")
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "file").write_text("something of mine, longer than a header of a database would be " * 40)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert (tmp_path / "file").read_text().startswith("something of mine")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "no URL to begin at"),
        (["-o", "c"], "no URL to begin at, and no crawl in c"),
        (["ftp://example.org/"], "'ftp://example.org/' is not an http URL"),
        (["http://"], "'http://' is not an http URL"),
        (["a.example", "--preset", "none"], "no preset has the name 'none': choose wikipedia"),
        (["a.example", "--preset", "none.toml"], "none.toml: cannot be read"),
        (["a.example", "--preset", "bad.toml"], "bad.toml is not a preset"),
        (["a.example", "--start", "X"], "--start names an article: give --preset too"),
        (["a.example", "--sqlite", "x.sqlite"], "--sqlite keeps the tables of a wiki: give --preset too"),
        (["--preset", "wikipedia", "--start", "Help:X"], "is not an article below"),
        (["a.example", "--preset", "wikipedia"], "is not an article below"),
        (["a.example", "--seeds", "none.txt"], "none.txt: cannot be read"),
        (["a.example", "--seeds", "empty.txt"], "empty.txt: no line begins with an http URL"),
        (["a.example", "--agent", "a\nb"], "--agent 'a\\nb': the User-Agent must be a single line"),
        (["a.example", "--agent", " "], "--agent ' ': the User-Agent must be a single line"),
        (["a.example", "--warc", "w.gz"], "w.gz: name a file that ends with .warc.gz"),
        (["a.example", "--items", "none/i.jsonl"], "none/i.jsonl: the folder none does not exist"),
        (["--preset", "wikipedia", "--start", "X", "--sqlite", "file"], "file: cannot be written"),
    ],
)
def test_bad_input_is_an_error_of_ours(folder, given, said):
    result = CliRunner().invoke(commands, ["-q", "crawl", *given])
    assert isinstance(result.exception, InlinkError), result.exception
    assert said in str(result.exception)
    assert not [path for path in folder.iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["a.example", "--policy", "luck"], "luck"),
        (["a.example", "--allow", "("], "'(' is not a valid regular expression"),
        (["a.example", "--classifier", "none.skops"], "none.skops"),
        (["a.example", "--topic", "!"], "topic"),
        (["a.example", "-o", "file"], "file"),
    ],
)
def test_a_refusal_of_the_crawl_is_one_line_and_exit_code_2(folder, given, said):
    done = crawl(*given, cwd=folder, code=2)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("inlink: ")
    assert said in done.stderr


def test_a_crawl_that_somebody_else_has_is_refused(tmp_path):
    with Site(tree(3)) as site, inlink.Crawl(tmp_path / "c"):
        done = crawl(f"{site.root}/1", "-o", "c", cwd=tmp_path, code=2)
        assert re.match(r"inlink: .*c\b.*pid|inlink: .*process", done.stderr), done.stderr
        assert done.stderr.count("\n") == 1
        assert site.asked == []


@pytest.mark.parametrize("missing", ["scrapy", "warcio"])
def test_without_the_extra_one_line_says_so(missing):
    script = (
        f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['inlink', 'crawl', 'a.example']\n"
        "from inlink.cli import main; main()"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1), run.stderr
    assert run.stderr.startswith("inlink: ")
    assert "is not installed: pip install 'inlink[scrapy]'" in run.stderr

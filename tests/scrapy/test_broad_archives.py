"""``inlink crawl --warc``: copies and unchanged pages, a WACZ, and the crawl that is read back from them."""

import json
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("scrapy")
pytest.importorskip("wacz")

from warcio.archiveiterator import ArchiveIterator

import inlink
from crawlcommand import INLINK, begin, crawl
from patience import PATIENCE
from sites import Answer, Says, Site, html

pytestmark = pytest.mark.slow

TEXT = "the same words " * 30


def site() -> dict[str, Says]:
    """A page, three copies of another whose links are relative, a redirect and an error."""
    copy = html("next", title="copy", text=TEXT)
    return {
        "/": html("/a/x", "/b/x", "/c/x", "/away", "/lost", title="home", text=TEXT),
        **{f"/{folder}/x": copy for folder in "abc"},
        **{f"/{folder}/next": html("/", title=folder, text=TEXT) for folder in "abc"},
        "/away": Answer("", 301, headers={"Location": "/a/x"}),
        "/lost": Answer("gone", 404),
        "/robots.txt": Answer("", 404),
    }


def kinds(path: Path) -> dict[str, list[str]]:
    """The kinds of the records of answers, by path."""
    found: dict[str, list[str]] = {}
    with path.open("rb") as file:
        for one in ArchiveIterator(file):
            if one.rec_type in ("response", "revisit"):
                url = one.rec_headers.get_header("WARC-Target-URI")
                found.setdefault("/" + url.split("/", 3)[3], []).append(one.rec_type)
    return found


def same(one: inlink.Graph, other: inlink.Graph, root: str) -> None:
    """Two graphs have the pages and links of a site; only an archive has robots.txt, redirects and errors."""
    extra = {f"{root}/{name}" for name in ("robots.txt", "away", "lost")}
    edges = [{edge for edge in graph.edges if edge[1] not in extra} for graph in (one, other)]
    assert edges[0] == edges[1]
    assert {*one.names[:]} - extra == {*other.names[:]} - extra
    pages = [{*graph.subgraph(graph.crawled).names[:]} - extra for graph in (one, other)]
    assert pages[0] == pages[1]
    assert len(pages[0]) == 7


def test_a_second_crawl_refers_to_the_first_and_both_are_read_back(tmp_path):
    with Site(site()) as served:
        crawl(f"{served.root}/", "-o", "one", "--delay", 0, "--warc", "one.warc.gz", cwd=tmp_path)
        served.pages["/b/next"] = html("/", "/new", title="b", text=TEXT + "changed")
        served.pages["/new"] = html("/", title="new", text=TEXT)
        options = ("--warc", "two.warc.gz", "--warc-seen", "one.cdxj", "--wacz", "two.wacz")
        crawl(f"{served.root}/", "-o", "two", "--delay", 0, "--pages", 3, *options, cwd=tmp_path)
        crawl(f"{served.root}/", "-o", "two", "--delay", 0, *options, cwd=tmp_path)
        root = served.root
    first, second = kinds(tmp_path / "one.warc.gz"), kinds(tmp_path / "two.warc.gz")
    assert sorted(kind for place in "abc" for kind in first[f"/{place}/x"]) == [
        "response",
        "revisit",
        "revisit",
    ]
    new = {place for place, records in second.items() if "response" in records}
    assert new == {"/b/next", "/new", "/away", "/lost", "/robots.txt"}
    same(inlink.read(tmp_path / "one.warc.gz"), inlink.read(tmp_path / "one"), root)
    same(inlink.read(tmp_path / "one.cdxj"), inlink.read(tmp_path / "one"), root)
    # Together the two archives have all that the second crawl fetched.
    both = tmp_path / "both.cdxj"
    both.write_bytes(b"".join((tmp_path / f"{name}.cdxj").read_bytes() for name in ("one", "two")))
    crawled = inlink.read(tmp_path / "two")
    assert {*inlink.read(both).edges} == {*crawled.edges, (f"{root}/", f"{root}/away")}
    with zipfile.ZipFile(tmp_path / "two.wacz") as archive:
        pages = [json.loads(line) for line in archive.read("pages/pages.jsonl").splitlines()][1:]
    titles = {page["url"].removeprefix(root): page.get("title") for page in pages}
    assert titles["/new"] == "new"
    assert titles["/"] is None
    assert set(titles) == {"/", "/new", *(f"/{a}/{b}" for a in "abc" for b in ("x", "next"))}


def test_a_wacz_is_valid_and_has_the_crawl(tmp_path):
    with Site(site()) as served:
        options = ("--delay", 0, "--warc", "w.warc.gz", "--wacz", "w.wacz")
        crawl(f"{served.root}/", "-o", "c", *options, cwd=tmp_path)
        root = served.root
    done = subprocess.run(
        [sys.executable, "-P", "-m", "wacz", "validate", "-f", "w.wacz"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "the passed WACZ is valid" in done.stdout, done
    crawled = inlink.read(tmp_path / "c")
    for name in ("w.wacz", "w.warc.gz", "w.cdxj"):
        same(inlink.read(tmp_path / name), crawled, root)
    for name in ("w.wacz", "w.warc.gz"):
        again = inlink.replay(
            tmp_path / name, policies=["breadth-first"], seeds=[[f"{root}/"]], budget=99, marks=[1.0]
        )
        assert again.runs[0].reached == 7
        assert again.runs[0].counts == {"failed": 1, "redirected": 1}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "w.cdxj", "w.wacz", "w.warc.gz"]


def test_an_interrupted_or_killed_crawl_leaves_the_wacz_as_it_was(tmp_path):
    with Site(site()) as served:
        given = (f"{served.root}/", "-o", "c", "--warc", "w.warc.gz", "--wacz", "w.wacz", "--delay", 0)
        crawl(*given, "--pages", 1, cwd=tmp_path)
        before = (tmp_path / "w.wacz").read_bytes()
        for number in (signal.SIGINT, signal.SIGKILL):
            gate, asked = threading.Event(), len(served.paths())
            served.pages = {
                path: answer if path == "/robots.txt" else answer._replace(gate=gate)
                for path, answer in site().items()
                if isinstance(answer, Answer)
            }
            with begin(*given, cwd=tmp_path, quiet=False) as run:
                served.wait_for(asked + 1)
                run.send_signal(number)
                if number == signal.SIGINT:
                    run.wait_for_error("stopping after")
                gate.set()
                assert run.wait() == (130 if number == signal.SIGINT else -number)
            assert (tmp_path / "w.wacz").read_bytes() == before
        served.pages = site()
        crawl(*given, cwd=tmp_path)
        crawled = inlink.read(tmp_path / "c")
        for name in ("w.wacz", "w.warc.gz", "w.cdxj"):
            same(inlink.read(tmp_path / name), crawled, served.root)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "w.cdxj", "w.wacz", "w.warc.gz"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--wacz", "w.wacz"], "--wacz applies to the archive of --warc: give --warc too"),
        (["--warc-seen", "a.cdxj"], "--warc-seen applies to the archive of --warc: give --warc too"),
        (["--warc", "w.warc.gz", "--wacz", "w.zip"], "w.zip: name a file that ends with .wacz"),
        (["--warc", "w.warc.gz", "--warc-seen", "a.cdxj"], "a.cdxj does not exist"),
    ],
)
def test_options_that_do_not_fit_are_one_line(tmp_path, given, said):
    done = crawl("a.example", "-o", "c", *given, cwd=tmp_path, code=2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_one_line_says_so(tmp_path):
    script = "import sys; sys.modules['wacz'] = None; from inlink.cli import main; main()"
    given = ["crawl", "a.example", "--warc", "w.warc.gz", "--wacz", "w.wacz"]
    run = subprocess.run(
        [INLINK[0], "-c", script, *given], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1), run.stderr
    assert run.stderr == "inlink: --wacz needs wacz: pip install 'inlink[wacz]'\n"
    assert list(tmp_path.iterdir()) == []

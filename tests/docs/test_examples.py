"""The programs in ``examples`` run, and print what they promise."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

import inlink
from crawlcommand import inlink as run_program
from loopback import loopback

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, *arguments: object, folder: Path) -> list[str]:
    return run_program(*arguments, cwd=folder, program=str(EXAMPLES / f"{name}.py")).stdout.splitlines()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback; give the address."""
    with loopback(partial(SimpleHTTPRequestHandler, directory=folder)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def test_the_page_names_every_program():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        line.split("`")[1]
        for line in (EXAMPLES / "README.md").read_text().splitlines()
        if line.startswith("| [")
    }


def test_rank_links(tmp_path):
    (tmp_path / "links.csv").write_text("a,b\nb,c\nc,b\nd,b\n")
    printed = run("rank_links", "links.csv", folder=tmp_path)
    assert printed[0].startswith("4 nodes, 4 links, error at most ")
    best = inlink.pagerank(inlink.Graph.from_arcs([("a", "b"), ("b", "c"), ("c", "b"), ("d", "b")]), tol=1e-9)
    assert printed[1] == f"{best.top(1)[0][1]:.6f}  b +"
    # a and d have the same value, so no computation puts one before the other.
    assert [line.split(maxsplit=1)[1] for line in printed[1:]] == ["b +", "c +", "a", "d"]


@pytest.mark.slow
def test_fetch_best_first_stops_and_goes_on(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    for k in range(4):
        (site / f"{k}.html").write_text(f'<a href="{k + 1}.html">next</a>')
    with served(site) as address:
        first = run("fetch_best_first", "crawl", f"{address}/0.html", 2, folder=tmp_path)
        rest = run("fetch_best_first", "crawl", f"{address}/0.html", 9, folder=tmp_path)
    assert [url.rpartition("/")[2] for url in first + rest] == ["0.html", "1.html", "2.html", "3.html"]
    with inlink.CrawlView.open(tmp_path / "crawl") as view:
        assert view.page(f"{address}/4.html").state != "crawled"


@pytest.mark.slow
def test_own_order(tmp_path):
    arcs = [
        (f"https://site{k % 7}.example/{k}", f"https://site{j % 7}.example/{j}")
        for k in range(90)
        for j in (k + 1, 2 * k, 3 * k)
    ]
    inlink.Graph.from_arcs(arcs, into=tmp_path / "graph")
    printed = run("own_order", "graph", folder=tmp_path)
    assert [line.split(": ")[0] for line in printed] == ["host-diverse", "own_order:ShortUrlsFirst"]


def test_hosts_of_an_archive(tmp_path, data):
    assert run("hosts_of_an_archive", data("web.warc.gz"), "hosts.csv", folder=tmp_path) == []
    with (tmp_path / "hosts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    graph = inlink.read(data("web.warc.gz"), level="host")
    assert sorted(row["host"] for row in rows) == sorted(graph.names)
    assert sum(float(row["pagerank"]) for row in rows) == pytest.approx(1)


def test_what_links_here(tmp_path):
    arcs = [("a", "b"), ("b", "c"), ("a", "c"), ("d", "a")]
    inlink.Graph.from_arcs(arcs, into=tmp_path / "graph")
    *linking, path = run("what_links_here", "graph", "c", "d", folder=tmp_path)
    assert [line.split()[1] for line in linking] == ["b", "a"]
    assert path == "d -> a -> c"
    assert run("what_links_here", "graph", "d", "c", folder=tmp_path) == ["no chain of links leads there"]

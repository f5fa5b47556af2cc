"""A smoke run of each benchmark; its inputs are hard, and its peers answer the same question."""

import importlib.util
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import numpy as np
import pytest
from bench.__main__ import BENCHMARKS, main
from bench.crawlers import aduana
from bench.crawlweb import Web
from bench.extractors import cc_pyspark_hosts
from bench.fleets import base as fleets
from bench.measurers import base as measurers
from bench.peers import base as peers
from bench.spiders import base as spiders
from bench.spidersite import CHILDREN, Site

import inlink
from archives import batches_of
from bench import (
    builders,
    certificate,
    crawl,
    fleet,
    hostgraph,
    measures,
    rank,
    results,
    spam,
    spider,
    start,
    tables,
    wat,
    webgraph,
)
from inlink.protocol import BoundedPage, Certificate
from inlink.urls.canonical import canonical

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def processes_find_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "src")]))


# -- each benchmark, from its command to its table ----------------------------------------------------------------

HAS_RUSTWORKX = importlib.util.find_spec("rustworkx") is not None
# Options of a small run, and a text that its table contains. The names of peers keep it to what every machine has.
SMALL = {
    "rank": (
        "--graph small --rounds 2 --error 1e-3 --peers inlink_one_thread scipy_power",
        "| SciPy power iteration |",
    ),
    "measures": (
        "--graph small --rounds 2 --measures closeness mcmc --peers inlink_one_thread networkx",
        "| closeness | NetworkX | 1 |",
    ),
    "build": ("--size 60 --rounds 1 --peers inlink pyarrow_scipy polars", "| Polars |"),
    "extract": ("--size 60 --rounds 1", "| cc-pyspark's way, pages |"),
    "crawl": ("--known 3000 --rounds 1 --window 300 --batches 2 --peers scrapy_scheduler", "| 3,000 | Scrapy"),
    "spider": ("--pages 30 --rounds 1 --restarts 0 --peers scrapy_memory", "| plain | no | Scrapy"),
    "manual": ("--pages DATA/pages --busy 0 0.5 --rounds 1", "| 50% | inlink |"),
    "fleet": ("--deepest 1 --rounds 1 --peers inlink --delay 0.01", "| inlink serve |"),
    "view": ("--known 2000 --calls 2", "| find a text |"),
    "pauses": ("--known 2000 --on-one-host 3000 --rounds 3", "| `next` | 3 |"),
    "server": ("--pages 40 --rounds 1 --rows embedded10 server10", "|"),
    "edge": ("--probes 3 --rounds 1 --rows none value handshake", "|"),
    "rerank": ("--nodes 3000 --arcs 20000 --rounds 1", "| web, random, hits |"),
    "start": (f"--rounds 1 --products igraph{',rustworkx' * HAS_RUSTWORKX}", "| igraph"),
    "space": ("--known 30000", "| sum |"),
    "release": ("--nodes 5000 --arcs 40000", ""),
}  # fmt: skip
# These store no figures: they print their table.
PRINTED = {
    "orders": ("--generated --seeds 1x2 --budget 0.01", "WithoutSections"),
    "spam": ("--sets 1", "| order | 2% | 5% | 10% | 20% |"),
    "truth": ("--events 50 --rounds 1", "LMDB, a transaction each"),
    "certificate": ("--sets 1 --pages 60", "generated"),
    "copies": ("--webs 1 --share 0.05", "breadth-first"),
    "shards": ("--pages 2000 --shards 3 --sets 1 --at-once 30", "| 3 |"),
}


def test_each_benchmark_has_a_smoke_run() -> None:
    # `house` runs at the end of `make test`.
    assert {*SMALL, *PRINTED, "house", "tables"} == set(BENCHMARKS)
    done = subprocess.run([sys.executable, "-m", "bench"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert all(name in done.stderr for name in BENCHMARKS)


@pytest.mark.parametrize("name", SMALL)
def test_a_small_run_stores_its_figures_and_prints_its_table(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options, text = SMALL[name]
    webgraph.write_npy(webgraph.generate(120, 900, 3), tmp_path / "small")
    monkeypatch.setattr(spider, "WARM", 20)
    monkeypatch.setattr(fleet, "SPIDERS", 2)
    # Products run in this environment: nothing is installed.
    monkeypatch.setattr(start, "install", lambda product, folder, wheel: None)
    monkeypatch.setattr(start, "size", lambda folder: 8_000_000)
    run, here = start.run, Path(sys.executable).parents[1]
    monkeypatch.setattr(start, "run", lambda task, _, folder, cache: run(task, here, folder, cache))
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.html").write_text('<title>A</title><a href="b.html">B</a>')
    (tmp_path / "pages" / "b.html").write_text("<title>B</title>")
    options = options.replace("DATA", str(tmp_path))
    main([name, *options.split(), "--data", str(tmp_path), "--results", str(tmp_path / "results")])
    shown = capsys.readouterr().out
    (stored,) = (tmp_path / "results").glob("*.json")
    figures = json.loads(stored.read_text())
    assert figures["machine"]["cores"] >= 1
    assert text in shown
    # The docs print the same tables from the stored figures.
    made = tables.tables(tmp_path / "results")
    assert all(table.strip() in shown for table in made.values() if name != "release")
    assert "skipped" not in json.dumps(figures)


def test_a_table_says_at_which_commit_it_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "SOURCE", tmp_path)
    for room in ("urls", "archives"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "some.py").write_text("1")
    figures: dict[str, Any] = {}
    results.keep(tmp_path, "extract-9", figures)
    assert set(figures["sources"]) == {"urls", "archives"}
    # The folder is in no repository.
    assert results.stamp(figures) == "measured at an unknown commit"

    def git(*words: str) -> str:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        done = subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init")
    results.keep(tmp_path, "extract-9", figures)
    assert figures["commit"] == "unknown"
    git("add", ".")
    git("commit", "-m", "a")
    results.keep(tmp_path.parent, "extract-9", figures)
    commit = git("rev-parse", "--short=7", "HEAD")
    assert results.stamp(figures) == f"measured at {commit}"
    (tmp_path / "urls" / "some.py").rename(tmp_path / "urls" / "other.py")
    assert results.stamp(figures) == f"measured at {commit}, before a change"
    assert results.stamp({}) == "measured at an unknown commit, before a change"


def test_each_timed_room_is_a_folder() -> None:
    assert set(results.TIMED) <= set(BENCHMARKS)
    assert all((results.SOURCE / room).is_dir() for rooms in results.TIMED.values() for room in rooms)


def test_a_page_gets_new_tables_and_new_commits_of_partial_ones() -> None:
    made = {"a": "A, measured at 1234567, before a change.", "b": "B, measured at 89abcde."}
    page = "<!-- bench:a -->\nold\n<!-- /bench:a -->\n"
    page += "<!-- bench:b, in part -->\nC, measured at 89abcde.\n<!-- /bench:b -->"
    assert tables.in_page(page, made) == page.replace("old", made["a"])
    made["b"] += " D, measured at 1111111."
    assert tables.in_page(page, made) == page.replace("old", made["a"])
    for wrong in ("C", "C, measured at 2222222."):
        with pytest.raises(ValueError, match="bench:b, in part: measured at 89abcde, 1111111"):
            tables.in_page(page.replace("C, measured at 89abcde.", wrong), made)


@pytest.mark.parametrize("name", PRINTED)
def test_a_small_run_prints_its_table(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options, text = PRINTED[name]
    if name == "truth":
        pytest.importorskip("lmdb")
    whole = spam.web(1)
    part = {url for url in whole if url[-2:] in ("/0", "/1", "/2")}
    monkeypatch.setattr(spam, "web", lambda seed: {url: whole[url] & part for url in part})
    main([name, *options.split()])
    assert text in capsys.readouterr().out


# -- generated inputs are as hard as real ones --------------------------------------------------------------------


def rows_of(offsets: np.ndarray, nodes: np.ndarray) -> list[list[int]]:
    return [nodes[int(a) : int(b)].tolist() for a, b in itertools.pairwise(offsets)]


def test_the_graph_of_pages_looks_like_the_web(tmp_path: Path) -> None:
    web = webgraph.generate(20_000, 300_000, 7)
    sources = np.repeat(np.arange(20_000), np.diff(web.offsets).astype(np.int64))
    back = np.repeat(np.arange(20_000), np.diff(web.in_offsets).astype(np.int64))
    arcs = sorted(zip(sources.tolist(), web.targets.tolist(), strict=True))
    assert arcs == sorted(zip(web.in_sources.tolist(), back.tolist(), strict=True))
    assert 0.999 * 300_000 < len(set(arcs)) == web.num_arcs <= 300_000
    hosts = webgraph._host_starts(20_000, 7)
    host_of = np.repeat(np.arange(len(hosts) - 1), np.diff(hosts).astype(np.int64))
    assert 0.4 < (host_of[sources] == host_of[web.targets]).mean() < 0.9  # by chance less than .02
    assert 0.2 < (np.diff(web.offsets) == 0).mean() < 0.3  # dangling nodes
    assert 0.1 < (sources == web.targets).sum() / 20_000 < 0.4  # self-loops
    assert np.diff(web.in_offsets).max() > 100 * 15  # hubs
    other = webgraph.generate(20_000, 300_000, 8)
    assert not np.array_equal(web.targets[:1000], other.targets[:1000])
    webgraph.write_npy(web, tmp_path / "web")
    for mapped in (True, False):
        again = webgraph.load(tmp_path / "web", mapped=mapped)
        assert all(np.array_equal(a, b) for a, b in zip(web, again, strict=True))


def test_lines_hold_every_arc_and_some_twice(tmp_path: Path) -> None:
    arrays = webgraph.generate(3000, 20_000, 4)
    text, ends = webgraph.host_names(3000)
    names = [bytes(text[int(a) : int(b)]).decode() for a, b in itertools.pairwise(ends)]
    assert len(set(names)) == 3000
    count = webgraph.write_lines(arrays, tmp_path / "arcs.tsv", repeated=0.1)
    lines = Counter((tmp_path / "arcs.tsv").read_text().splitlines())
    rows = rows_of(arrays.offsets, arrays.targets)
    assert set(lines) == {f"{names[i]}\t{names[j]}" for i, row in enumerate(rows) for j in row}
    assert sum(lines.values()) == count
    assert 0.08 < count / len(lines) - 1 < 0.12


def test_the_graph_of_hosts_has_hubs_and_scattered_rows() -> None:
    pieces = list(hostgraph.host_arcs(200_000, 5_000_000))
    sources, targets = (np.concatenate(side) for side in zip(*pieces, strict=True))
    indegrees = np.sort(np.bincount(targets, minlength=200_000))
    assert indegrees[-2000:].sum() > 0.25 * len(targets)
    # Hosts link in scattered order.
    firsts = sources[np.flatnonzero(np.diff(sources.astype(np.int64))) + 1]
    assert 0.3 < (np.diff(firsts.astype(np.int64)) > 0).mean() < 0.7


def test_the_generated_crawl_links_to_known_pages_as_the_web_does() -> None:
    web = Web(64)
    pages = crawl.base.parse(b"".join(web.batches(0, web.pages_for(60_000))))
    known = {url: number for number, url in enumerate(web.seeds())}
    links = 0
    for number, (url, targets) in enumerate(pages):
        assert known[url] == web.crawled(number)
        assert 20 <= len(targets) <= 50
        links += len(targets)
        for target in targets:
            known.setdefault(target, len(known))
    assert len(known) == web.known(len(pages))
    assert all(canonical(url) == url for url in itertools.islice(known, 0, None, 97))
    assert links / len(pages) == pytest.approx(35, rel=0.02)
    within = [url.split("/")[2] == target.split("/")[2] for url, targets in pages for target in targets]
    assert sum(within) / links == pytest.approx(0.75, abs=0.03)
    assert web.text(0, 40) != Web(64, 4).text(0, 40)


def test_a_wat_file_holds_what_both_ways_of_extraction_see(tmp_path: Path) -> None:
    path = tmp_path / "made.warc.wat.gz"
    assert wat.write_wat(path, pages=40, links=30) > 600
    ours = {
        (names[i], names[j])
        for batch in batches_of(path, level="host", links="all")
        for names in [
            [name.decode() if isinstance(name, bytes) else name for name in batch.names.to_pylist()]
        ]
        for i, j in zip(batch.sources, batch.targets, strict=True)
    }
    hosts = cc_pyspark_hosts.reversed_host
    theirs = {
        (hosts(page), hosts(urljoin(urljoin(page, base or ""), link)))
        for page, links, base in cc_pyspark_hosts.pages(path)
        for link in links
    }
    ours = {(source.removesuffix(".www"), target.removesuffix(".www")) for source, target in ours}
    ours, theirs = (
        {pair for pair in pairs if None not in pair and len({*pair}) == 2} for pairs in (ours, theirs)
    )
    # The other extractor reads odd URLs as urllib does.
    assert len(ours & theirs) > 0.95 * len(ours | theirs)
    assert len(ours) > 50


def test_hosts_in_the_way_of_cc_pyspark() -> None:
    hosts = cc_pyspark_hosts.reversed_host
    same = [
        "http://www.Example.com",
        "//example.com/a",
        "https://u:p@example.com.:80?q",
        "http://example.com#f",
    ]
    assert [hosts(url) for url in same] == ["com.example"] * 4
    assert hosts("http://www.com/") == "com.www"
    assert hosts("http://bücher.example/") == "example.xn--bcher-kva"
    for url in (
        "http://192.0.2.1/",
        "http://localhost/",
        "mailto:a@example.com",
        "http://a..b/",
        "http://[::1",
        "/a",
    ):
        assert hosts(url) is None, url


# -- peers answer the same question ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", builders.ALL)
def test_builders_find_the_same_arcs(name: str, tmp_path: Path) -> None:
    peer = importlib.import_module(f"bench.builders.{name}")
    if (reason := peer.available()) is not None:
        pytest.skip(reason)
    (tmp_path / "arcs.tsv").write_text('a\tb\nb\ta\na\tb\nc\tc\n"d\ta\n')
    assert peer.run(tmp_path / "arcs.tsv", tmp_path) == 4


def test_commands_that_start_are_of_known_products_and_python() -> None:
    products, names = zip(
        *((task.product, task.name) for task in start.tasks("http://127.0.0.1/")), strict=True
    )
    assert set(products) == set(start.REQUIREMENTS)
    assert len(set(zip(products, names, strict=True))) == len(names)
    for task in start.tasks("http://127.0.0.1/"):
        if task.command[0] == "python":
            compile(task.command[2], task.name, "exec")


def test_the_reference_and_the_peers_of_pagerank_solve_the_equation() -> None:
    arrays = webgraph.generate(80, 400, 6)
    A = np.zeros((80, 80))
    for node, row in enumerate(rows_of(arrays.offsets, arrays.targets)):
        A[node] = 1 / 80 if not row else 0
        A[node, row] = 1 / len(row) if row else 0
    exact = np.linalg.solve(np.eye(80) - peers.DAMPING * A.T, np.full(80, (1 - peers.DAMPING) / 80))
    assert np.abs(rank.reference(arrays) - exact).sum() < 1e-12
    for name in ("inlink", "inlink_one_thread", "scipy_power", "networkx", "igraph"):
        peer = peers.peer(name)
        if peer.available() is None:
            setting = 200 if peer.SETTINGS is peers.ROUNDS else 1e-9
            assert np.abs(peer.run(peer.load(arrays), setting) - exact).sum() < 1e-8, name


@pytest.mark.filterwarnings("ignore")  # igraph warns that an eigenvector may not be unique
@pytest.mark.parametrize("name", ["networkx", "igraph", "networkit"])
def test_peers_of_other_measures_answer_the_same_question(name: str, tmp_path: Path) -> None:
    peer, own = measurers.peer(name), measurers.peer("inlink")
    if (reason := peer.available()) is not None:
        pytest.skip(reason)
    arrays = webgraph.generate(120, 900, 3)
    webgraph.write_npy(arrays, tmp_path / "small")
    np.save(tmp_path / "small" / "reference.npy", rank.reference(arrays))
    folder = measures.prepare("small", tmp_path)
    inputs = measurers.inputs_of(arrays, measures._alpha(folder))
    for measure, theirs in peer.MEASURES.items():
        if name == "networkit" and measure == "betweenness_sample":
            continue  # another question
        ours = own.MEASURES[measure]
        setting = 1e-13 if ours.settings is measurers.TOLERANCES else ours.settings[-1]
        exact = ours.run(arrays, inputs, setting)
        answer = theirs.run(peer.load(arrays, measure), inputs, 1e-11)
        assert measurers.MEASURES[measure].error(answer, exact) < 1e-8, measure


def test_a_peer_that_fails_stands_in_the_table_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank, "_apart", lambda name, folder, setting, what, limit: {"error": 0.25})
    reason = rank.search("scipy_power", tmp_path, 1e-6, 10)
    assert reason == "never reaches 1e-06; error 2.5e-01 at its tightest tolerance"
    monkeypatch.setenv("ADUANA_LIBRARY", "/nowhere/libaduana.so")
    assert aduana.available() == "ADUANA_LIBRARY names no libaduana.so"
    with pytest.raises(RuntimeError, match="exit code -9"):
        crawl.Program([sys.executable, "-c", "import time; time.sleep(60)"], 0.2)
    for base in (peers, measurers, crawl.base):
        with pytest.raises(SystemExit, match=r"no .* 'neo4j'"):
            base.peer("neo4j")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="run `make wheel`"):
        start.main([])


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_driver_of_aduana_compiles() -> None:
    source = Path(aduana.__file__).with_suffix(".c")
    flags = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run(["cc", *flags, str(source)], check=True)


# -- crawls that are timed fetch each page once -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site(1) as small:
        yield small


@pytest.mark.parametrize("key", spider.rows(spiders.ALL))
def test_each_scheduler_fetches_each_page_once(key: str, site: Site, tmp_path: Path) -> None:
    name, kind, *robots = key.split()
    site.tell("forget")
    figures = spider._figures(spider.Spider(name, kind, bool(robots), site, 10**6, tmp_path, 120), site)
    assert (figures["reason"], figures["different"], figures["missing"]) == ("finished", 1 + CHILDREN, 0)
    # Scrapy's filter does not know where it began.
    assert figures["twice"] == (name != "inlink")
    assert figures["not kept"] == 0
    with pytest.raises(RuntimeError, match="pages, then finished"):
        spider.crawl(name, kind, bool(robots), site, 19, tmp_path, 120)


@pytest.mark.parametrize("name", spiders.ALL)
def test_a_killed_crawl_goes_on(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name not in ("scrapy_jobdir", "inlink"):
        pytest.skip("keeps nothing on disk")
    monkeypatch.setattr(spider, "AGAIN", 30)
    with Site() as endless:
        figures = spider.restart(name, endless, 60, tmp_path, 120)
    assert figures["stopped"]["pages"] >= 30
    # Scrapy's filter was on disk, its queue was not.
    assert (figures["killed"]["pages"] >= 30) == (name == "inlink")


@pytest.mark.parametrize("name", fleets.ALL)
@pytest.mark.parametrize("how", ["undisturbed", "spider", "server"])
def test_a_fleet_fetches_each_page(
    name: str, how: str, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason := fleets.peer(name).missing():
        pytest.skip(reason)
    if how != "undisturbed" and name != "inlink":
        pytest.skip("what a kill costs others is measured, not promised")
    monkeypatch.setattr(fleet, "SPIDERS", 2)
    # A spider that another one's kill delays ends by itself, however slow the machine is.
    monkeypatch.setattr(fleet, "QUIET_SECONDS", 5.0 if how == "undisturbed" else 240.0)
    figures = fleet.crawl(name, how, site, 1 + CHILDREN, tmp_path, 480)
    assert (figures["different"], figures["left"], figures["missing"]) == (1 + CHILDREN, 0, 0)
    if how == "undisturbed":
        # scrapy-redis does not put a start URL into its filter, so that a link to it is followed.
        assert figures["twice"] == (name != "inlink")


# -- certificates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["hosts", "dense", "islands"])
def test_no_certificate_is_wrong_from_twenty_seed_sets(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "STEP", 0.3)
    dice = random.Random(7)
    if kind == "hosts":
        graph = certificate.generated(50, 3)
    elif kind == "dense":
        graph = inlink.Graph.from_arcs([(a, b) for a in range(25) for b in range(25) if dice.random() < 0.3])
    else:
        graph = inlink.Graph.from_arcs(
            [(k, k // 20 * 20 + dice.randrange(20)) for k in range(60) for _ in "ab"]
        )
    linking = np.flatnonzero(np.diff(graph.out_rows.offsets)).tolist()
    runs = [certificate.closings(graph, sorted(dice.sample(linking, 3))) for _ in range(20)]
    assert [run.wrong for run in runs] == [0] * 20
    assert all(0 < share <= 1 for run in runs for share in run.shares.values())


def test_a_wrong_certificate_is_noticed() -> None:
    """The real ranks are .5, .3 and .2."""

    def made(rows: list[Any], beyond: float = 0.25) -> Certificate:
        places = [
            BoundedPage(k, page, f"http://h.example/{page}", *rest) for k, (page, *rest) in enumerate(rows, 1)
        ]
        return Certificate(0.01, 0.5, 0.1, beyond, 2, 1, 1, False, 0.85, places)

    ranks = np.array([0.5, 0.3, 0.2])
    assert certificate.agrees(made([(0, 0.4, 0.6, True), (1, 0.3, 0.35, True)]), ranks)
    for rows, beyond in (
        ([(0, 0.51, 0.6, False)], 0.4),
        ([(0, 0.4, 0.45, False)], 0.4),
        ([(1, 0.3, 0.35, True)], 0.6),
        ([(2, 0.1, 0.3, False), (1, 0.3, 0.3, True)], 0.6),
        ([(0, 0.4, 0.6, True)], 0.25),
    ):
        assert not certificate.agrees(made(rows, beyond), ranks), rows

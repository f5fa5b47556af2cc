import json
import subprocess
import sys
from contextlib import contextmanager
from threading import Event

import numpy as np
import pytest

from crawlmodel import exact_pagerank
from inlink.base.folder import Folder
from inlink.crawl.crawl import Crawl
from inlink.errors import InlinkError
from inlink.reranking.process import Ranker, RankingOptions

pytestmark = pytest.mark.slow


class Process:
    """The ranking process, asked and answering."""

    def __init__(self, folder: object, **options: object) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "inlink.reranking.process", str(folder), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, line: str = "rank") -> None:
        self.popen.stdin.write(line + "\n")
        self.popen.stdin.flush()

    def rank(self) -> dict:
        self.ask()
        return json.loads(self.popen.stdout.readline())

    def end(self) -> tuple[int, str]:
        """Close its input; its exit code, and what it still said."""
        out, err = self.popen.communicate()
        assert err == ""
        return self.popen.returncode, out


@contextmanager
def process(folder: object, **options: object):
    running = Process(folder, **options)
    try:
        yield running
    finally:
        running.popen.kill()
        running.popen.wait()
        for pipe in (running.popen.stdin, running.popen.stdout, running.popen.stderr):
            pipe.close()


class Site:
    """A crawl of pages on few hosts, and beside it what it knows, kept by URL."""

    def __init__(self, folder) -> None:
        self.crawl = Crawl(folder, policy="breadth-first")
        self.order: list[str] = []
        self.links: dict[str, list[str]] = {}
        self.scores: dict[str, float] = {}

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_: object) -> None:
        self.crawl.close()

    def know(self, url: str, score: float) -> None:
        if url not in self.scores:
            self.order.append(url)
        if url not in self.links:
            self.scores[url] = max(self.scores.get(url, 0.0), score)

    def visit(self, url: str, links: list[tuple[str, float]], score: float) -> None:
        if url not in self.scores:
            self.crawl.seed([(url, 0.0)])
            self.know(url, 0.0)
        self.crawl.crawled(url, links=links, score=score)
        self.links[url] = sorted({link for link, _ in links})
        self.scores[url] = score
        for link, value in links:
            self.know(link, value)

    def visit_some(self, count: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        urls = [f"https://host{k % 3}.example/{k}" for k in range(40)]
        for _ in range(count):
            picked = random.choice(40, random.integers(0, 7), replace=False)
            links = [(urls[k], float(random.integers(0, 5)) / 4) for k in picked]
            self.visit(urls[int(random.integers(0, 40))], links, float(random.integers(1, 5)) / 4)

    def arcs(self, across: bool = False) -> np.ndarray:
        number = {url: k for k, url in enumerate(self.order)}
        A = np.zeros((len(number), len(number)))
        for url, row in self.links.items():
            for link in row:
                A[number[url], number[link]] = not across or url.split("/")[2] != link.split("/")[2]
        return A

    def pages(self) -> list[int]:
        """The pages' ids in the order of :attr:`order`."""
        return [self.crawl.page(url).id for url in self.order]


def rank_of(folder, site: Site) -> tuple[np.ndarray, dict]:
    found = Folder(folder / "ranks", "ranks", 1)
    found.verify()
    rank = found.array("rank")
    assert rank.dtype == np.float32
    assert len(rank) == len(site.order)
    return rank[site.pages()], found.header.meta


def others(folder) -> dict[str, bytes]:
    """All files of a crawl but the rankings."""
    # The crawl itself writes end.bin once a second.
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "end.bin"]
    return {str(path): path.read_bytes() for path in files if "ranks" not in path.relative_to(folder).parts}


def test_the_process_ranks_a_crawl_that_goes_on(tmp_path):
    folder = tmp_path / "crawl"
    with Site(folder) as site, process(folder, tol=1e-6) as ranker:
        for turn in range(1, 4):
            site.visit_some(20, seed=turn)
            before = others(folder)
            answer = ranker.rank()
            assert others(folder) == before, "it writes nothing but the rankings"
            rank, meta = rank_of(folder, site)
            exact = exact_pagerank(site.arcs(), np.ones(len(site.order)), 0.85)
            assert np.abs(rank - exact).sum() <= (meta["error"] + 1e-7) * exact.sum()
            assert meta["error"] <= 1e-6
            assert meta["covers"] == answer["covers"] == (folder / "events.log").stat().st_size
            assert meta["algorithm"] == "pagerank"
            assert (answer["ready"], answer["pages"]) == (turn, len(site.order))
        assert ranker.end() == (0, "")
    with process(folder, tol=1e-6) as again:
        assert again.rank()["sweeps"] < 1, "it starts from what was published"
    file = next((folder / "ranks").glob("*/rank.bin"))
    file.write_bytes(bytes(file.stat().st_size))
    with process(folder, tol=1e-6) as anew:
        assert anew.rank()["sweeps"] > 1, "what is damaged is no start"


def test_the_process_ranks_with_scores_across_hosts(tmp_path):
    folder = tmp_path / "crawl"
    with Site(folder) as site:
        site.visit_some(30, seed=8)
        r = np.array([site.scores[url] for url in site.order])
        A = site.arcs(across=True)
        switches = {"use_scores": True, "cross_domain_only": True}
        with process(folder, tol=1e-6, **switches) as ranker:
            ranker.rank()
            rank, meta = rank_of(folder, site)
            exact = exact_pagerank(A, r + 1e-6, 0.85)
            assert np.abs(rank - exact).sum() <= (meta["error"] + 1e-7) * exact.sum()
            assert meta["use_scores"]
            assert meta["cross_domain_only"]
        hits = switches | {"algorithm": "hits", "max_iter": 3000, "share": 0.9}
        with process(folder, tol=1e-8, **hits) as ranker:
            ranker.rank()
            rank, meta = rank_of(folder, site)
    assert meta["algorithm"] == "hits"
    assert rank.mean() == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(A.T @ (A @ (r * rank)) / meta["lambda"], rank, atol=1e-4)


def test_the_process_ends_with_its_input_whatever_it_does(tmp_path):
    folder = tmp_path / "crawl"
    with Site(folder) as site:
        site.visit_some(30, seed=1)
        with process(folder, share=1e-9) as ranker:  # would rest for days
            ranker.ask()
            assert ranker.end() == (0, "")
    assert not (folder / "ranks").exists()
    assert not list(folder.glob(".ranks*"))


def test_the_process_says_what_is_wrong(tmp_path):
    crawl = tmp_path / "crawl"
    Site(crawl).crawl.close()
    for folder, options, said in [
        (tmp_path / "none", {}, "none does not exist"),
        (crawl, {"speed": 1}, "cannot be used: Object contains unknown field `speed`"),
        (crawl, {}, "has only the command rank; got 'sort'"),
    ]:
        with process(folder, **options) as ranker:
            if "sort" in said:
                ranker.ask("sort")
            told = json.loads(ranker.popen.stdout.readline())
            assert list(told) == ["error"]
            assert said in told["error"]
            assert ranker.popen.wait(30) == 2
    for folder, options, said in [
        (tmp_path, {}, "is not an inlink folder"),
        (crawl, {"share": 0.0}, r"share must be in \(0, 1\]; got 0.0"),
        (crawl, {"algorithm": "opic"}, "algorithm must be one of pagerank, hits; got 'opic'"),
        (crawl, {"tol": 0.0}, "tol must be in"),
    ]:
        with pytest.raises(InlinkError, match=said):
            Ranker(folder, RankingOptions(**options), Event())


def test_the_process_ranks_a_crawl_of_nothing(tmp_path):
    folder = tmp_path / "crawl"
    with Site(folder) as site:
        for algorithm in ("pagerank", "hits"):
            with process(folder, algorithm=algorithm) as ranker:
                assert ranker.rank()["pages"] == 0
                assert len(rank_of(folder, site)[0]) == 0

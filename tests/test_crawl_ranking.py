import json
import struct
import subprocess
import sys
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import rerank, webgraph

from inlink.base.folder import Folder
from inlink.crawl import Crawl
from inlink.errors import DamageError, ParameterError
from inlink.frontier import ranking as module
from inlink.frontier.kernels import push as kernels
from inlink.frontier.ranking import GrowingHits, GrowingPageRank

VISIT, MERGE = 2, 6
HEAD = struct.Struct("<IIdIIIBBHfI")


def leb128(number: int) -> bytes:
    out = []
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def deltas(links: list[int]) -> bytes:
    return b"".join(leb128(b - a) for a, b in zip([0, *links], links, strict=False))


@dataclass
class Model:
    """A crawl in the plainest form there is, and its log."""

    num_pages: int = 0
    rows: dict[int, list[int]] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    log: bytes = b""

    def frame(self, kind: int, page: int, payload: bytes, count: int) -> int:
        place = len(self.log)
        size = HEAD.size + len(payload)
        body = HEAD.pack(size, 0, 0.0, page, 0, 0, kind, 0, 200, 0.5, count)[8:] + payload
        self.log += struct.pack("<II", size, zlib.crc32(body)) + body
        return place

    def crawl(self, page: int, links: list[int], content_hash: bytes = b"") -> None:
        row = sorted(set(links))
        head = struct.pack("<dIIQB", 0.0, 1, 0, 0, len(content_hash)) + content_hash
        self.places[page] = self.frame(VISIT, page, head + deltas(row), len(row))
        self.rows[page] = row

    def merge(self, page: int, into: int) -> None:
        self.places[page] = self.frame(MERGE, page, deltas([into]), 1)
        self.rows[page] = [into]

    def given(self, shuffle: int = 0):
        pages = np.array(list(self.places), np.uint32)
        pages = pages[np.random.default_rng(shuffle).permutation(len(pages))] if shuffle else pages
        places = np.array([self.places[int(page)] for page in pages], np.uint64)
        return self.num_pages, np.frombuffer(self.log, np.uint8), pages, places

    def arcs(self, hosts=None) -> np.ndarray:
        A = np.zeros((self.num_pages, self.num_pages))
        for page, row in self.rows.items():
            for target in row:
                A[page, target] = hosts is None or hosts[page] != hosts[target]
        return A


def exact_pagerank(A: np.ndarray, v: np.ndarray, d: float) -> np.ndarray:
    """x = (I − d·Pᵀ)⁻¹ (1 − d)·v."""
    degrees = A.sum(1, keepdims=True)
    P = np.divide(A, degrees, out=np.zeros_like(A), where=degrees > 0)
    return np.linalg.solve(np.eye(len(A)) - d * P.T, (1 - d) * v)


def teleport(model: Model, scores) -> np.ndarray:
    if scores is None:
        return np.ones(model.num_pages)
    return np.array([(float(r) if np.isfinite(r) and r > 0 else 0.0) + 1e-6 for r in scores])


def check_pagerank(kept: GrowingPageRank, update, model: Model, scores=None, hosts=None) -> None:
    exact = exact_pagerank(model.arcs(hosts), teleport(model, scores), kept.damping)
    assert update.converged
    assert update.error <= kept.tol
    assert np.abs(kept.values - exact).sum() <= (update.error + 1e-13) * np.abs(exact).sum()
    assert kept.num_links == model.arcs(hosts).sum()


@st.composite
def growing(draw: st.DrawFn, most: int = 12):
    """The models after each step of a growing crawl, re-crawls, merges and pages that lose their visit among them."""
    model, models = Model(), []
    for _ in range(draw(st.integers(1, 4))):
        model.num_pages = draw(st.integers(model.num_pages, most))
        if model.num_pages:
            page = st.integers(0, model.num_pages - 1)
            for _ in range(draw(st.integers(0, 6))):
                what = draw(st.sampled_from(["crawl"] * 8 + ["merge", "lose"]))
                one = draw(page)
                if what == "crawl":
                    model.crawl(one, draw(st.lists(page, max_size=6)), draw(st.binary(max_size=3)))
                elif what == "merge":
                    model.merge(one, draw(page))
                elif one in model.rows:
                    del model.rows[one], model.places[one]
        models.append(Model(model.num_pages, dict(model.rows), dict(model.places), model.log))
    return models


score = st.one_of(st.floats(0, 10, width=32), st.sampled_from([0.0, -1.0, np.nan, np.inf, 1e30]))


def scores_of(data, model: Model, values=score):
    if data.draw(st.booleans()):
        return None
    listed = st.lists(values, min_size=model.num_pages, max_size=model.num_pages)
    return np.array(data.draw(listed), np.float32)


@given(growing(), st.data(), st.sampled_from([1e-2, 1e-4, 1e-9]), st.sampled_from([0.3, 0.85, 0.99]))
def test_pagerank_is_within_its_bound_after_every_update(models, data, tol, damping):
    across = data.draw(st.booleans())
    all_hosts = np.array(data.draw(st.lists(st.integers(0, 2), min_size=12, max_size=12)), np.uint32)
    kept = GrowingPageRank(damping, tol)
    for model in models:
        scores = scores_of(data, model)
        hosts = all_hosts[: model.num_pages] if across else None
        update = kept.update(*model.given(data.draw(st.integers(0, 3))), scores, hosts)
        check_pagerank(kept, update, model, scores, hosts)
        again = kept.update(*model.given(data.draw(st.integers(0, 3))), scores, hosts)
        assert again.sweeps == 0, "nothing is new, so nothing is to be pushed"


@given(growing(), st.lists(st.one_of(st.floats(-10, 10), st.just(np.nan)), max_size=16))
def test_pagerank_may_start_from_anything(models, start):
    kept = GrowingPageRank(tol=1e-9, start=start)
    for model in models:
        check_pagerank(kept, kept.update(*model.given()), model)


def test_a_good_start_saves_the_work():
    model = random_crawl(400, 6)
    first = GrowingPageRank(tol=1e-6, start=[1e300, -np.inf])  # beyond all measure: as if it were not there
    cold = first.update(*model.given())
    warm = GrowingPageRank(tol=1e-6, start=first.values.astype(np.float32)).update(*model.given())
    assert warm.sweeps < 0.2 * cold.sweeps


def random_crawl(pages: int, links: int, seed: int = 0) -> Model:
    random = np.random.default_rng(seed)
    model = Model(pages)
    for page in random.permutation(pages)[: pages * 3 // 4]:
        model.crawl(
            int(page), (random.integers(0, pages, random.integers(0, 2 * links + 1))).tolist(), b"12345678"
        )
    return model


def test_many_updates_do_not_wear_the_bound_out(monkeypatch):
    monkeypatch.setattr(
        module, "SLICE", 7
    )  # rows in many slices: each is pushed once a sweep, none is left out
    random = np.random.default_rng(5)
    model = random_crawl(60, 4)
    kept = GrowingPageRank(tol=1e-9)
    for _ in range(300):
        page = int(random.integers(0, model.num_pages))
        model.num_pages += int(random.integers(0, 2))
        model.crawl(page, random.integers(0, model.num_pages, random.integers(0, 9)).tolist())
        update = kept.update(*model.given())
    exact = exact_pagerank(model.arcs(), np.ones(model.num_pages), 0.85)
    assert update.converged
    assert np.abs(kept.values - exact).sum() <= update.error * exact.sum()


def test_a_small_change_costs_little():
    model = random_crawl(3000, 8)
    kept = GrowingPageRank()
    cold = kept.update(*model.given())
    model.num_pages += 1
    model.crawl(model.num_pages - 1, [5, 6, 7])
    small = kept.update(*model.given())
    assert cold.sweeps > 3
    assert 0 < small.sweeps < 0.1 * cold.sweeps


def test_scores_beyond_all_measure_leave_no_trace():
    model = random_crawl(50, 3)
    kept = GrowingPageRank(tol=1e-8)
    scores = np.ones(50, np.float32)
    scores[7] = 1e35
    check_pagerank(kept, kept.update(*model.given(), scores), model, scores)
    update = kept.update(*model.given())
    check_pagerank(kept, update, model)
    assert update.sweeps > 1, "what is left of them is rounding, which no residual tells of"


def test_scores_may_change_where_they_stand():
    model = random_crawl(50, 3)
    kept = GrowingPageRank(tol=1e-8)
    scores = np.ones(50, np.float32)
    kept.update(*model.given(), scores)
    scores[7] = 9
    check_pagerank(kept, kept.update(*model.given(), scores), model, scores)


def test_a_page_that_links_to_itself_alone_is_solved_at_once():
    model = Model(1)
    model.crawl(0, [0])
    kept = GrowingPageRank(tol=1e-9)
    update = kept.update(*model.given())
    np.testing.assert_allclose(kept.values, [1.0], rtol=1e-9)
    assert update.sweeps == 1


def test_pagerank_of_no_pages_and_of_pages_without_links():
    kept = GrowingPageRank()
    assert kept.update(0, np.empty(0, np.uint8), np.empty(0, np.uint32), np.empty(0, np.uint64)).error == 0
    assert kept.values.shape == (0,)
    kept.update(3, np.empty(0, np.uint8), np.empty(0, np.uint32), np.empty(0, np.uint64))
    np.testing.assert_allclose(kept.values, 0.15)


# -- HITS -------------------------------------------------------------------------------------------------


def check_hits(kept: GrowingHits, update, model: Model, scores=None, hosts=None) -> None:
    n = model.num_pages
    a, A = kept.values, model.arcs(hosts)
    assert a.shape == (n,)
    assert np.isfinite(a).all()
    assert (a >= 0).all()
    assert np.isfinite(update.eigenvalue)
    assert update.eigenvalue > 0
    if n == 0:
        return
    assert a.mean() == pytest.approx(1)
    r = (
        np.ones(n)
        if scores is None
        else np.where(np.isfinite(scores) & (scores > 0), scores, 0).astype(float)
    )
    if not (A @ r).any():
        r = np.ones(n)
    if not A.any():
        np.testing.assert_array_equal(a, 1)
        assert update.eigenvalue == 1
        return
    root = np.sqrt(r)
    values, vectors = np.linalg.eigh(root[:, None] * (A.T @ A) * root[None, :])
    if n > 1 and values[-2] > 0.98 * values[-1]:
        return  # not unique, or too slow to tell anything
    assert update.converged
    h = A @ (root * np.abs(vectors[:, -1]))
    exact = A.T @ h
    np.testing.assert_allclose(a, exact / exact.mean(), atol=1e-6 * n)
    assert update.eigenvalue == pytest.approx(values[-1], rel=1e-6)
    np.testing.assert_allclose(a, A.T @ (A @ (r * a)) / update.eigenvalue, atol=1e-6 * n)


@given(growing(), st.data())
def test_hits_is_the_first_eigenvector_after_every_update(models, data):
    across = data.draw(st.booleans())
    all_hosts = np.array(data.draw(st.lists(st.integers(0, 2), min_size=12, max_size=12)), np.uint32)
    kept = GrowingHits(tol=1e-9, max_iter=5000)
    for model in models:
        scores = scores_of(data, model, st.sampled_from([0.0, 0.5, 1.0, -1.0, np.nan, 3.0]))
        hosts = all_hosts[: model.num_pages] if across else None
        update = kept.update(*model.given(data.draw(st.integers(0, 3))), scores, hosts)
        check_hits(kept, update, model, scores, hosts)


@given(growing(), st.data())
def test_hits_never_gives_a_nan(models, data):
    start = data.draw(st.lists(st.sampled_from([0.0, -1.0, np.nan, np.inf, 1e-300, 1e308, 1.0]), max_size=14))
    kept = GrowingHits(max_iter=3, start=start)
    for model in models:
        scores = scores_of(data, model, st.sampled_from([0.0, 1e-45, 3e38, np.nan, np.inf]))
        update = kept.update(*model.given(), scores)
        assert np.isfinite(kept.values).all()
        assert np.isfinite([update.error, update.eigenvalue]).all()
        assert not model.num_pages or kept.values.mean() == pytest.approx(1)


def test_hits_lets_a_new_community_overtake():
    model = Model(10)
    model.crawl(0, [1, 2])
    kept = GrowingHits(tol=1e-9)
    kept.update(*model.given())
    assert kept.values[[1, 2]].min() > 4.9
    for page in range(3, 7):
        model.crawl(page, [7, 8, 9])
    update = kept.update(*model.given())
    assert update.converged
    np.testing.assert_allclose(kept.values[[7, 8, 9]], 10 / 3, rtol=1e-6)


def test_hits_starts_from_its_last_answer(monkeypatch):
    monkeypatch.setattr(module, "SLICE", 50)
    model = random_crawl(500, 6)
    kept = GrowingHits(tol=1e-8, max_iter=1000)
    cold = kept.update(*model.given())
    again = kept.update(*model.given())
    assert again.sweeps < 0.8 * cold.sweeps
    check_hits(kept, again, model)


# -- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [GrowingPageRank, GrowingHits])
def test_bad_parameters_are_refused(kind):
    for tol in (0, -1, 1, float("nan"), 1e-10):
        with pytest.raises(ParameterError, match="tol"):
            kind(tol=tol)
    model = random_crawl(20, 2)
    kept = kind()
    kept.update(*model.given())
    pages, log, *visits = model.given()
    with pytest.raises(ParameterError, match="shrink"):
        kept.update(pages - 1, log, *visits)
    with pytest.raises(ParameterError, match="scores"):
        kept.update(pages, log, *visits, scores=np.ones(pages - 1, np.float32))
    with pytest.raises(ParameterError, match="places"):
        kept.update(pages, log, visits[0], visits[1][1:])


def test_more_bad_parameters_are_refused():
    for damping in (0, 1, float("nan")):
        with pytest.raises(ParameterError, match="damping"):
            GrowingPageRank(damping)
    with pytest.raises(ParameterError, match="max_iter"):
        GrowingHits(max_iter=0)
    kept = GrowingPageRank()
    model = random_crawl(20, 2)
    kept.update(*model.given())
    with pytest.raises(ParameterError, match="hosts"):
        kept.update(*model.given(), hosts=np.zeros(20, np.uint32))


@pytest.mark.parametrize("kind", [GrowingPageRank, GrowingHits])
@pytest.mark.parametrize("harm", ["kind", "length", "target", "short", "count", "one more", "page", "place"])
def test_a_damaged_log_is_refused_before_it_is_followed(kind, harm):
    model = Model(300)
    model.crawl(4, [1, 2, 3])
    model.crawl(5, [1, 200, 299])
    pages, log, ids, places = model.given()
    log = log.copy()
    place = int(places[1])
    if harm == "kind":
        log[place + 28] = 4
    elif harm == "length":
        log[place : place + 4] = 255
    elif harm == "target":
        pages = 299
    elif harm == "short":
        log = log[:-1]
    elif harm == "count":
        log[place + 36] = 100
    elif harm == "one more":
        log[int(places[0]) + 36] += 1  # the next frame's first byte would pass for a link
    elif harm == "page":
        ids = np.array([4, 300], np.uint32)
    else:
        places = np.array([places[0], len(log) - 3], np.uint64)
    with pytest.raises(DamageError, match="no sound visit of page"):
        kind().update(pages, log, ids, places)


@given(st.lists(st.integers(0, 2**32 - 2), unique=True, max_size=30), st.binary(max_size=255))
def test_links_are_decoded_as_they_were_written(numbers, content_hash):
    model = Model(2**32 - 1)
    model.crawl(9, [3])
    page = 5
    model.crawl(page, numbers, content_hash)
    row = np.empty(len(numbers), np.uint32)
    log, place = np.frombuffer(model.log, np.uint8), np.uint64(model.places[page])
    count = kernels.links(log, place, np.uint64(page), np.empty(0, np.uint32), row)
    assert row[: int(count)].tolist() == sorted(numbers)
    assert kernels.sound(log, place, np.uint64(max(numbers, default=0) + 1))
    assert not numbers or not kernels.sound(log, place, np.uint64(max(numbers)))


# -- the process ------------------------------------------------------------------------------------------


class Process:
    """The ranking process, asked and answering."""

    def __init__(self, *arguments: object) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "inlink.frontier.ranker", *map(str, arguments)],
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
        out, err = self.popen.communicate(timeout=30)
        assert err == ""
        return self.popen.returncode, out


@contextmanager
def process(*arguments: object):
    running = Process(*arguments)
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
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in files if "ranks" not in path.relative_to(folder).parts}


def test_the_process_ranks_a_crawl_that_goes_on(tmp_path):
    folder = tmp_path / "crawl"
    with Site(folder) as site, process(folder, "--tol", "1e-6") as ranker:
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
    with process(folder, "--tol", "1e-6") as again:
        assert again.rank()["sweeps"] < 1, "it starts from what was published"
    file = next((folder / "ranks").glob("*/rank.bin"))
    file.write_bytes(bytes(file.stat().st_size))
    with process(folder, "--tol", "1e-6") as anew:
        assert anew.rank()["sweeps"] > 1, "what is damaged is no start"


def test_the_process_ranks_with_scores_across_hosts(tmp_path):
    folder = tmp_path / "crawl"
    with Site(folder) as site:
        site.visit_some(30, seed=8)
        r = np.array([site.scores[url] for url in site.order])
        A = site.arcs(across=True)
        switches = ["--use-scores", "--cross-domain-only"]
        with process(folder, "--tol", "1e-6", *switches) as ranker:
            ranker.rank()
            rank, meta = rank_of(folder, site)
            exact = exact_pagerank(A, r + 1e-6, 0.85)
            assert np.abs(rank - exact).sum() <= (meta["error"] + 1e-7) * exact.sum()
            assert meta["use_scores"]
            assert meta["cross_domain_only"]
        hits = [*switches, "--algorithm", "hits", "--max-iter", "3000", "--share", "0.9"]
        with process(folder, "--tol", "1e-8", *hits) as ranker:
            ranker.rank()
            rank, meta = rank_of(folder, site)
    assert meta["algorithm"] == "hits"
    assert rank.mean() == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(A.T @ (A @ (r * rank)) / meta["lambda"], rank, atol=1e-4)


def test_the_process_ends_with_its_input_whatever_it_does(tmp_path):
    folder = tmp_path / "crawl"
    with Site(folder) as site:
        site.visit_some(30, seed=1)
        with process(folder, "--share", "1e-9") as ranker:  # would rest for days
            ranker.ask()
            assert ranker.end() == (0, "")
    assert not (folder / "ranks").exists()
    assert not list(folder.glob(".ranks*"))


def test_the_process_says_what_is_wrong(tmp_path):
    crawl = tmp_path / "crawl"
    Site(crawl).crawl.close()
    for arguments, asked, said in [
        ([tmp_path / "none"], "rank", "none does not exist"),
        ([tmp_path], "rank", "is not an inlink folder"),
        ([crawl, "--share", "0"], "rank", "--share must lie above 0"),
        ([crawl, "--algorithm", "opic"], "rank", "invalid choice"),
        ([crawl, "--tol", "0"], "rank", "tol must lie"),
        ([crawl], "sort", "knows one command, rank, and was given 'sort'"),
    ]:
        with process(*arguments) as ranker:
            if asked == "sort":
                ranker.ask(asked)
            told = json.loads(ranker.popen.stdout.readline())
            assert list(told) == ["error"]
            assert said in told["error"]
            assert ranker.popen.wait(30) == 2


def test_the_process_ranks_a_crawl_of_nothing(tmp_path):
    folder = tmp_path / "crawl"
    with Site(folder) as site:
        for algorithm in ("pagerank", "hits"):
            with process(folder, "--algorithm", algorithm) as ranker:
                assert ranker.rank()["pages"] == 0
                assert len(rank_of(folder, site)[0]) == 0


# -- the benchmark ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["breadth-first", "random"])
def test_the_benchmark_crawls_the_whole_graph_in_a_possible_order(order):
    arrays = webgraph.generate(300, 2000)
    crawl = rerank.crawled(arrays.offsets, arrays.targets, order)
    n, _, pages, places = crawl.state(300)
    assert n == 300
    assert sorted(pages) == list(range(300))
    assert (order == "breadth-first") == (pages.tolist() == list(range(300)))
    known, rows = 0, {}
    for k in range(300):
        row = np.empty(300, np.uint32)
        count = kernels.links(crawl.log, places[k], np.uint64(pages[k]), np.empty(0, np.uint32), row)
        rows[int(pages[k])] = row[: int(count)].tolist()
        if pages[k] >= known:  # a seed: it becomes known as it is crawled
            known += 1
        assert pages[k] < known
        known = max([known - 1, *rows[int(pages[k])]]) + 1
        assert crawl.seen[k] == known
    arcs = sorted((page, target) for page, row in rows.items() for target in row)
    assert sorted(map(tuple, crawl.arcs(300).tolist())) == arcs
    assert len(arcs) == arrays.num_arcs
    outdegrees = sorted(len(row) for row in rows.values())
    assert outdegrees == sorted(np.diff(arrays.offsets).tolist())


def test_the_benchmark_runs(tmp_path, capsys):
    rerank.main(["--nodes", "3000", "--arcs", "20000", "--rounds", "1", "--results", str(tmp_path)])
    told = json.loads((tmp_path / "rerank.json").read_text())
    assert list(told["rows"]) == [
        f"web, {order}, {algorithm}"
        for order in ("breadth-first", "random")
        for algorithm in ("pagerank", "hits")
    ]
    row = told["rows"]["web, random, pagerank"]
    assert row["0.01 again"]["sweeps"] < row["0.01 anew"]["sweeps"]
    assert capsys.readouterr().out.count("| web, random, hits |") == len(rerank.GROWTH)

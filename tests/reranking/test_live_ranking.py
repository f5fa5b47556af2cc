"""A crawl that is ranked while it runs: its own process, taken over between two calls."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import inlink
from crawlstrategies import frontier_in
from inlink import Crawl, Politeness
from inlink.base.folder import Folder, building
from inlink.crawl import upkeep
from inlink.crawl.folder import look
from inlink.frontier import ranked
from inlink.frontier.adoption import adopt
from inlink.reranking import handle
from inlink.reranking.process import RankingOptions
from patience import wait_until

pytestmark = pytest.mark.slow

EASY = Politeness(delay=0.0, in_flight=1 << 20)
NAMES = [f"http://h{k % 7}.example/{k}" for k in range(120)]


def links_of(k: int) -> list[str]:
    """A small web with hubs: page k links to k + 1, 2k, 3k and to one of five."""
    return [NAMES[j % len(NAMES)] for j in (k + 1, 2 * k, 3 * k, k % 5)]


def crawl_some(crawl: Crawl, count: int) -> None:
    done = 0
    while done < count and (leases := crawl.next(min(5, count - done))):
        for lease in leases:
            crawl.crawled(lease, links_of(NAMES.index(lease.url)), score=(lease.page % 4) / 4)
            done += 1
    assert done == count


def wait_for(crawl: Crawl) -> None:
    def ended() -> bool:
        crawl.next(0)
        return not crawl.ranking

    wait_until(ended, "the ranking process")


def exact(crawl: Crawl, damping: float = 0.85) -> np.ndarray:
    """Un-normalised PageRank by a direct solve of (I − c·Pᵀ)·x = (1 − c)·1."""
    n = frontier_in(crawl).pages.num_pages
    matrix = np.eye(n)
    for page in frontier_in(crawl).pages.crawled()[0].tolist():
        links = frontier_in(crawl).pages.links(page)
        for link in links.tolist():
            matrix[link, page] -= damping / len(links)
    return np.linalg.solve(matrix, np.full(n, 1 - damping))


def ranks(crawl: Crawl) -> np.ndarray:
    return frontier_in(crawl).policy.ranks(np.arange(frontier_in(crawl).pages.num_pages, dtype=np.uint32))


def keys_are_in_force(crawl: Crawl) -> None:
    queue = frontier_in(crawl).queue
    waiting = [page for page in range(frontier_in(crawl).pages.num_pages) if page in queue]
    assert waiting
    wanted = frontier_in(crawl).keys(np.array(waiting, np.uint32))
    assert [queue.key(page) for page in waiting] == pytest.approx(wanted.tolist())


@pytest.mark.parametrize("block", [1 << 16, 7])
def test_the_ranking_is_the_exact_one_and_is_in_force(tmp_path, monkeypatch, block):
    monkeypatch.setattr(ranked, "_BLOCK", block)
    with Crawl(tmp_path / "c", policy="pagerank", politeness=EASY, rerank_share=None) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 30)
        assert not np.allclose(ranks(crawl), exact(crawl), rtol=1e-3)  # until then it is an estimate
        crawl.rerank()
        wait_for(crawl)
        assert np.abs(ranks(crawl) - exact(crawl)).sum() <= 2e-4 * exact(crawl).sum()
        keys_are_in_force(crawl)
        crawl_some(crawl, 20)  # what came since is in the order at once, and in the next ranking
        keys_are_in_force(crawl)
        crawl.rerank()
        wait_for(crawl)
        assert np.abs(ranks(crawl) - exact(crawl)).sum() <= 2e-4 * exact(crawl).sum()


@pytest.mark.parametrize("use_scores", [False, True])
def test_priorities_are_what_was_published(tmp_path, monkeypatch, use_scores):
    monkeypatch.setattr(ranked, "_BLOCK", 7)
    with Crawl(tmp_path / "c", politeness=EASY, rerank_share=None, use_scores=use_scores) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 30)
        crawl.rerank()
        wait_for(crawl)
        published = Folder(tmp_path / "c" / "ranks", "ranks", 1).array("rank")
        assert len(published) == frontier_in(crawl).pages.num_pages > 30
        assert ranks(crawl) == pytest.approx(published, rel=1e-5)


def test_visits_between_a_request_and_its_adoption_are_not_lost(tmp_path):
    with Crawl(tmp_path / "c", policy="pagerank", politeness=EASY, rerank_share=None) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 20)
        crawl.rerank()
        while (told := crawl._upkeep.reranker.answer()) is None:
            time.sleep(0.005)
        lease = frontier_in(crawl).queue.take(1, 0.0)[0][0]  # a page that the ranking knows as waiting
        before = frontier_in(crawl).pages.num_pages
        crawl.crawled(frontier_in(crawl).pages.url(int(lease)), ["http://new.example/"])
        assert told["covers"] < frontier_in(crawl).pages.frames.end
        assert adopt(frontier_in(crawl))
        mine = float(ranks(crawl)[lease])
        assert ranks(crawl)[before] == pytest.approx(0.15 + 0.85 * mine, rel=1e-4)


def test_opening_takes_over_what_was_published(tmp_path):
    with Crawl(tmp_path / "c", policy="host-diverse", politeness=EASY, rerank_share=None) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 30)
        crawl.rerank()
        wait_for(crawl)
        crawl_some(crawl, 10)
        live = ranks(crawl)
        assert np.allclose(look(tmp_path / "c").policy.shares[: len(live)] + 0.15, live, rtol=1e-4)
    with Crawl(tmp_path / "c", policy="host-diverse", politeness=EASY) as crawl:
        assert np.allclose(ranks(crawl), live, rtol=1e-4)
    with Crawl(tmp_path / "c", policy="hits", politeness=EASY) as crawl:  # that was another algorithm's
        assert frontier_in(crawl).ranked_up_to == 0


@pytest.mark.parametrize("use_scores", [False, True])
def test_hits_ranks_as_the_library_does(tmp_path, use_scores):
    with Crawl(
        tmp_path / "c", policy="hits", use_scores=use_scores, politeness=EASY, rerank_share=None
    ) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 60)
        crawl.rerank()
        wait_for(crawl)
        found = np.array(frontier_in(crawl).policy.shares[: frontier_in(crawl).pages.num_pages], np.float64)
        scores = frontier_in(crawl).pages.scores[: frontier_in(crawl).pages.num_pages].astype(np.float64)
    graph = inlink.read(str(tmp_path / "c"))
    wanted = inlink.hits(graph, scores=scores if use_scores else None, tol=1e-9).authorities
    assert np.abs(found / found.sum() - wanted).sum() < 5e-3


def test_it_starts_by_itself_when_the_crawl_has_grown(tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep, "FIRST_PAGES", 10)
    monkeypatch.setattr(upkeep, "LEAST_GROWTH", 5)
    now = [0.0]
    given = {"policy": "pagerank", "politeness": EASY, "clock": lambda: now[0]}
    with Crawl(tmp_path / "c", rerank_share=0.5, **given) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 9)
        assert not crawl.ranking
        crawl_some(crawl, 1)
        assert crawl.ranking
        wait_for(crawl)
        assert frontier_in(crawl).ranked_up_to > 0
        crawl_some(crawl, 4)
        assert not crawl.ranking
        crawl_some(crawl, 1)
        assert crawl.ranking
        wait_for(crawl)
    with Crawl(tmp_path / "c", rerank_share=None, rerank_seconds=50.0, **given) as crawl:
        crawl_some(crawl, 5)
        assert not crawl.ranking
        now[0] += 50
        crawl_some(crawl, 1)
        assert crawl.ranking
        wait_for(crawl)


@pytest.mark.parametrize(
    ("policy", "first", "growth"),
    [("host-diverse", 10, 10), ("pagerank", 100, 10), ("hits", 100, 10), ("hits-by-score", 100, 10)],
)
def test_the_first_ranking_comes_after_a_number_of_pages_or_ten_seconds(
    tmp_path, monkeypatch, policy, first, growth
):
    asked, now = [], [0.0]
    monkeypatch.setattr(handle.Reranker, "ask", lambda self, _: asked.append(self.folder.name))
    given = {"policy": policy, "politeness": EASY, "clock": lambda: now[0]}
    with Crawl(tmp_path / "pages", **given) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, first - 1)
        assert not asked
        crawl_some(crawl, 1)
        assert asked == ["pages"]
        crawl_some(crawl, growth - 1)
        assert asked == ["pages"]
        crawl_some(crawl, 1)
        assert asked == ["pages"] * 2
    with Crawl(tmp_path / "seconds", **given) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 3)
        now[0] += 9.9
        crawl_some(crawl, 1)
        assert "seconds" not in asked
        now[0] += 0.1
        crawl_some(crawl, 1)
        assert asked.count("seconds") == 1
        now[0] += 100
        crawl_some(crawl, growth - 1)
        assert asked.count("seconds") == 1
    with Crawl(tmp_path / "never", rerank_share=None, **given) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 60)
        now[0] += 100
        crawl_some(crawl, 59)
        assert "never" not in asked


def test_a_ranking_process_that_dies_is_started_again(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(handle, "FIRST_WAIT", 0.05)
    with Crawl(tmp_path / "c", policy="pagerank", politeness=EASY, rerank_share=None) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 20)
        reranker = crawl._upkeep.reranker
        crawl.rerank()
        for _ in range(3):
            # It dies each time that it is started, before it answers.
            wait_until(lambda: reranker.busy or crawl.next(0), "a start")
            reranker._process.kill()
            reranker._process.wait()
            reranker._heard = b""
            wait_until(lambda: not reranker.busy or crawl.next(0), "a failure")
        crawl_some(crawl, 20)
        wait_until(lambda: crawl.next(0) == [] and reranker.failed is None, "a ranking")
        wait_for(crawl)
        assert np.abs(ranks(crawl) - exact(crawl)).sum() <= 2e-4 * exact(crawl).sum()
        keys_are_in_force(crawl)
    told = [one.message for one in caplog.records if one.levelname == "WARNING"]
    assert len(told) == 1
    assert "it is started again later, and pages keep their present priorities" in told[0]


def test_no_ranking_process_is_started_without_memory_for_it(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(handle, "FIRST_WAIT", 0.0)
    with Crawl(tmp_path / "c", policy="pagerank", politeness=EASY, rerank_share=None) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 20)
        with monkeypatch.context() as little:
            little.setattr(handle, "memory_left", lambda: 1000)
            crawl.rerank()
            assert not crawl.ranking
        (told,) = [one.message for one in caplog.records if one.levelname == "WARNING"]
        assert (
            "the ranking process needs 0.0 GB of memory, and 0.0 GB are left; it is started again later"
            in told
        )
        wait_until(lambda: crawl.next(0) == [] and crawl._upkeep.reranker.failed is None, "a ranking")


def test_a_ranking_process_that_is_stopped_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(handle, "GRACE", 0.05)
    with Crawl(tmp_path / "c", policy="pagerank", politeness=EASY, rerank_share=None) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 20)
        crawl.rerank()
        stopped = crawl._upkeep.reranker._process
        stopped.send_signal(signal.SIGSTOP)
        crawl.rerank(wait=True)
        assert stopped.poll() is not None
        assert not crawl.ranking
        assert np.abs(ranks(crawl) - exact(crawl)).sum() <= 2e-4 * exact(crawl).sum()


def test_waits_between_starts_grow():
    reranker = handle.Reranker(Path("nowhere"), RankingOptions())
    waits = []
    for _ in range(12):
        reranker.give_up("died")
        waits.append(reranker._wait)
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == handle.LONGEST_WAIT
    reranker.succeeded()
    assert (reranker.failed, reranker._wait) == (None, 0.0)


def test_an_answer_that_is_none_ends_the_process(tmp_path, caplog):
    program = "import sys; sys.stdin.readline(); print('{', flush=True); sys.stdin.read()"
    reranker = handle.Reranker(tmp_path, RankingOptions())
    reranker._process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    os.set_blocking(reranker._process.stdout.fileno(), False)
    reranker.ask(1)
    wait_until(lambda: reranker.answer() is None and not reranker.busy, "the answer")
    assert reranker.failed == "answered nonsense"
    assert not reranker.again_due


@pytest.mark.parametrize(("policy", "use_scores"), [("pagerank", True), ("hits", False)])
def test_a_garbled_ranking_is_not_used(tmp_path, caplog, policy, use_scores):
    """Each wrong ranking leaves the priorities as they are, whether the crawl is open or is opened."""
    folder = tmp_path / "c"
    chosen = {"policy": policy, "politeness": EASY, "use_scores": use_scores, "rerank_share": None}
    with Crawl(folder, **chosen) as crawl:
        crawl.seed(NAMES[:1])
        crawl_some(crawl, 30)
        crawl.rerank()
        wait_for(crawl)
        good, before = ranks(crawl), frontier_in(crawl).ranked_up_to
        stored = Folder(folder / "ranks", "ranks", 1)
        sound, meta = np.array(stored.array("rank")), dict(stored.header.meta) | {"scores": 0}
        crawl_some(crawl, 5)
        good = ranks(crawl)
        garbled = {
            "huge": np.where(np.arange(len(sound)) == 3, np.float32(2.6e37), sound),
            "nan": np.where(np.arange(len(sound)) == 3, np.float32(np.nan), sound),
            "negative": sound - np.float32(1),
            "long": np.concatenate([sound, sound]),
            "none": sound[:0],
            "double": sound.astype(np.float64),
            "square": np.stack([sound, sound]).reshape(-1)[: 2 * len(sound)],
            "ten times": sound * np.float32(10),
        }
        for name, values in garbled.items():
            publish(folder, values, meta | {"covers": frontier_in(crawl).pages.frames.end})
            assert not adopt(frontier_in(crawl)), name
            assert frontier_in(crawl).ranking_fault is not None
            assert ranks(crawl) == pytest.approx(good)
        if use_scores:
            publish(folder, sound, meta | {"covers": frontier_in(crawl).pages.frames.end, "scores": 1})
            assert not adopt(frontier_in(crawl))
            assert frontier_in(crawl).ranking_fault == "its header lacks 'scores'"
        for wrong in ({"covers": "x"}, {"covers": 1 << 60}, {"algorithm": 7}):
            publish(folder, sound, meta | {"covers": frontier_in(crawl).pages.frames.end} | wrong)
            assert not adopt(frontier_in(crawl)), wrong
        for key in ("damping",) if policy == "pagerank" else ("lambda",):
            for value in (0, -1, None, "x", float("nan")):
                publish(folder, sound, meta | {"covers": frontier_in(crawl).pages.frames.end, key: value})
                assert not adopt(frontier_in(crawl)), (key, value)
        assert frontier_in(crawl).ranked_up_to == before
        publish(folder, garbled["huge"], meta)
    assert len({one.message for one in caplog.records if "is not used" in one.message}) >= 3
    caplog.clear()
    with Crawl(folder, **chosen | {"rerank_share": 0.5}) as crawl:
        assert frontier_in(crawl).ranked_up_to == 0
        assert ranks(crawl).max() < 100
        crawl.next(0)
        assert crawl.ranking  # a new one is made at once
        wait_for(crawl)
        assert frontier_in(crawl).ranked_up_to > 0
        assert ranks(crawl).max() < 100
    path = folder / "ranks" / "1" / "rank.bin"
    path = next(iter((folder / "ranks").rglob("rank.bin"))) if not path.exists() else path
    raw = bytearray(path.read_bytes())
    raw[5] ^= 1  # its checksum alone tells
    path.write_bytes(bytes(raw))
    with Crawl(folder, **chosen) as crawl:
        assert frontier_in(crawl).ranked_up_to == 0


def publish(folder: Path, values: np.ndarray, meta: dict) -> None:
    with building(folder / "ranks", "ranks", 1) as writer:
        writer.write("rank", values)
        writer.header.meta = meta


def test_policies_without_links_start_no_process(tmp_path):
    with Crawl(tmp_path / "c", policy="breadth-first", politeness=EASY) as crawl:
        crawl.seed(NAMES[:1])
        crawl.rerank()
        assert not crawl.ranking

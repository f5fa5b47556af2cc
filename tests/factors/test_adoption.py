"""A ranking that is taken over in steps, while the crawl goes on, is the ranking taken over at once."""

import contextlib
import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import Clock, frontier_in, histories, opened, perform, publish_ranking, waiting
from inlink.base.folder import Folder, building
from inlink.crawl.crawl import Crawl
from inlink.crawl.folder import look
from inlink.crawl.questions.about import about
from inlink.errors import InlinkError
from inlink.frontier import adoption
from inlink.frontier.adoption import Adoption
from inlink.frontier.frontier import Frontier
from inlink.frontier.policies import Policy
from inlink.frontier.ranked import HostDiverse, PageRank
from inlink.reranking import process
from inlink.store.reader import crawl_folder

RANKED = ("pagerank", "host-diverse", "hits", "hits-by-score")


def published_by(crawl: Crawl) -> tuple[np.ndarray, dict[str, Any]]:
    """Rank all events so far; return the ranks that were published, and what their header says."""
    publish_ranking(crawl)
    ranks = Folder(crawl.folder / "ranks", "ranks", 1)
    return np.array(ranks.array("rank")), dict(ranks.header.meta)


def publish_again(folder: Path, ranks: np.ndarray, meta: dict[str, Any]) -> None:
    with building(folder / "ranks", "ranks", 1) as writer:
        writer.write("rank", ranks)
        writer.header.meta = meta


def state(frontier: Frontier) -> tuple[object, ...]:
    """Everything that a ranking changes."""
    policy, known = frontier.policy, frontier.pages.num_pages
    columns = {name: getattr(policy, name)[:known].tobytes() for name in policy.columns or ()}
    numbers = {name: getattr(policy, name) for name in policy.numbers}
    return columns, numbers, waiting(frontier), frontier.ranked_up_to


@pytest.fixture(scope="module", autouse=True)
def _small_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adoption, "_BLOCK", 3)
        patch.setattr(adoption, "_VISITS", 2)
        patch.setattr(adoption, "_A_STEP", 3)
        yield


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(RANKED),
    st.booleans(),
    histories(12),
    histories(6),
    st.lists(histories(3), min_size=1, max_size=8),
)
def test_steps_while_the_crawl_goes_on_end_where_one_step_does(policy, across, before, since, during):
    with tempfile.TemporaryDirectory() as room:
        clock, leases = Clock(), []
        # No ranking process starts, which might publish a newer ranking.
        more = {"cross_domain_only": across, "rerank_share": None, "rerank_seconds": None}
        with opened(Path(room) / "crawl", clock, policy=policy, **more) as crawl:
            for done in before:
                perform(crawl, clock, leases, done)
            publish_ranking(crawl)
            for done in since:
                perform(crawl, clock, leases, done)
            front, steps = frontier_in(crawl), 0
            old, taking_over = front.policy.shares, Adoption(front)
            while not taking_over.step():
                assert front.policy.shares is old
                for done in during[steps % len(during)]:
                    perform(crawl, clock, leases, done)
                steps += 1
            assert taking_over.adopted
            assert steps > 0
            assert front.policy.shares is not old
            while front.queue.rekeying:
                front.rekey_some(clock())
            found = look(crawl.folder, clock)
            assert state(front) == state(found)
            assert front.queue.order(1000, clock()) == found.queue.order(1000, clock())
            found.pages.close()
            assert Adoption(front).step()


def crawl_some(crawl: Crawl, first: int = 0) -> None:
    for number in range(first, first + 20):
        page = f"http://h{number % 5}.com/{number}"
        crawl.seed([page])
        crawl.crawled(page, [f"http://h{k}.com/{(number * 7 + k) % 25}" for k in range(5)])


def test_an_unsound_ranking_changes_nothing_in_whatever_block_its_fault_is(tmp_path, caplog):
    with opened(tmp_path / "crawl", Clock(), policy="pagerank") as crawl:
        crawl_some(crawl)
        ranks, meta = published_by(crawl)
        front = frontier_in(crawl)
        before, policy = state(front), front.policy
        for place in (0, len(ranks) // 2, len(ranks) - 1):
            wrong = ranks.copy()
            wrong[place] = -1
            publish_again(crawl.folder, wrong, meta)
            caplog.clear()
            taking_over = Adoption(front)
            while not taking_over.step():
                crawl.seed([f"http://later.com/{place}"])
            assert not taking_over.adopted
            assert f"pages {place // 3 * 3:,} to" in str(front.ranking_fault)
            assert "is not used" in caplog.text
        assert front.policy is policy
        assert state(front)[0]["shares"][: len(before[0]["shares"])] == before[0]["shares"]


@pytest.mark.parametrize("less", [1, 40])
def test_a_ranking_of_another_crawl_is_refused_at_opening(tmp_path, caplog, less):
    with opened(tmp_path / "crawl", Clock(), policy="pagerank") as crawl:
        crawl_some(crawl)
        ranks, meta = published_by(crawl)
        publish_again(crawl.folder, ranks, meta | {"covers": meta["covers"] - less})
    front = look(tmp_path / "crawl", Clock())
    assert "which end within an event: it belongs to another crawl" in str(front.ranking_fault)
    assert [record.getMessage().count("is not used") for record in caplog.records] == [1]
    assert (front.ranked_up_to, front.adopted) == (0, None)
    front.pages.close()
    (tmp_path / "crawl" / "ranks" / "header.json").unlink()
    expected = look(tmp_path / "crawl", Clock())
    assert state(front) == state(expected)
    expected.pages.close()


def test_a_ranking_that_names_another_crawl_is_refused_and_not_continued(tmp_path):
    with opened(tmp_path / "crawl", Clock(), policy="pagerank") as crawl:
        crawl_some(crawl)
        ranks, meta = published_by(crawl)
        assert meta["crawl"] == crawl_folder(crawl.folder).header.uuid
    for named, refused in (({"crawl": "7"}, True), ({}, False)):
        # A ranking of an earlier version does not name its crawl.
        del meta["crawl"]
        meta |= named
        publish_again(tmp_path / "crawl", ranks, dict(meta))
        front = look(tmp_path / "crawl", Clock())
        assert (front.ranking_fault is not None) == refused
        assert (front.ranked_up_to == 0) == refused
        assert (process.published(tmp_path / "crawl")[1] is None) == refused
        front.pages.close()


class Own(Policy):
    """A policy of a user's own that adopts rankings."""

    name, algorithm = "own", "pagerank"

    def adopt(self, ranks, meta, since):
        self.taken = len(ranks), len(list(since))


def test_a_policy_of_ones_own_gets_the_whole_ranking_at_once(tmp_path):
    with opened(tmp_path / "crawl", Clock(), policy=Own) as crawl:
        crawl_some(crawl)
        publish_ranking(crawl)
        known = frontier_in(crawl).pages.num_pages
        crawl.seed(["http://later.com/"])
        taking_over = Adoption(frontier_in(crawl))
        while not taking_over.step():
            pass
        assert taking_over.adopted
        assert frontier_in(crawl).policy.taken == (known, 1)


class Halved(PageRank):
    """A user's subclass that has its own priorities only."""

    def priority(self, pages):
        return super().priority(pages) / np.float32(2)


class HalvedDiverse(HostDiverse):
    """The same of the default order."""

    def priority(self, pages):
        return super().priority(pages) / np.float32(2)


class Counting(PageRank):
    """A user's subclass that keeps a column of its own."""

    def __init__(self, pages, settings):
        super().__init__(pages, settings)
        self.seen = 0

    def fold(self, events):
        super().fold(events)
        self.seen += len(list(events))


class Listening(PageRank):
    """A user's subclass whose objects have a method of their own."""

    def __init__(self, pages, settings):
        super().__init__(pages, settings)
        self.fold = self._heard

    def _heard(self, events):
        super().fold(events)


class Wrapped(PageRank):
    """A user's subclass whose method has the name and module of inlink's."""

    @functools.wraps(PageRank.fold)
    def fold(self, events):
        super().fold(events)


class Doubting(HostDiverse):
    """A user's subclass that changes the expected ranks."""

    def take_expected(self, expected, block):
        super().take_expected(expected / np.float32(2), block)


@pytest.mark.parametrize("use_scores", [False, True])
@pytest.mark.parametrize(
    ("own", "has_successor"),
    [
        (HostDiverse, True),
        (Halved, True),
        (HalvedDiverse, True),
        (Counting, False),
        (Listening, False),
        (Wrapped, False),
        (Doubting, False),
    ],
)
def test_an_order_adopted_in_steps_is_the_one_adopted_at_once(tmp_path, own, has_successor, use_scores):
    more = {"use_scores": use_scores, "rerank_share": None, "rerank_seconds": None}
    with opened(tmp_path / "crawl", Clock(), policy=own, **more) as crawl:
        crawl_some(crawl)
        publish_ranking(crawl)
        crawl_some(crawl, 20)
        front, steps = frontier_in(crawl), 0
        policy, taking_over = front.policy, Adoption(front)
        while not taking_over.step():
            if steps % 16 == 0:  # a step takes in one visit
                crawl_some(crawl, 40 + steps)
            steps += 1
        assert taking_over.adopted
        assert steps > 0
        assert (policy.successor({}) is not None) == has_successor
        assert front.policy is policy
        while front.queue.rekeying:
            front.rekey_some(Clock()())
        found, known = look(crawl.folder, Clock(), own), front.pages.num_pages
        assert found.ranked_up_to == front.ranked_up_to > 0
        assert policy.shares[:known].tobytes() == found.policy.shares[:known].tobytes()
        if isinstance(policy, HostDiverse):
            assert policy.expected[:known].any()
            assert policy.expected[:known].tobytes() == found.policy.expected[:known].tobytes()
        assert waiting(front) == waiting(found)
        assert front.queue.order(known, Clock()()) == found.queue.order(known, Clock()())
        found.pages.close()


META = (
    "algorithm",
    "covers",
    "error",
    "converged",
    "damping",
    "lambda",
    "crawl",
    "use_scores",
    "trust",
    "expected",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", META)
def test_a_crafted_header_of_a_ranking_is_ignored_with_a_reason(tmp_path, name, caplog):
    folder = tmp_path / "crawl"
    with opened(folder, Clock(), policy="pagerank") as crawl:
        crawl_some(crawl)
        ranks, meta = published_by(crawl)
    for value in ([], {}, "x", None, -1, 2**70, True, 1.5, [[1]]):
        publish_again(folder, ranks, meta | {name: value})
        said = about(folder, 10**6)
        assert (said.ranking is None) == (said.ranking_fault is not None)
        with (
            contextlib.suppress(InlinkError),
            opened(folder, Clock(), policy="pagerank", rerank_share=None) as crawl,
        ):
            crawl.why("http://h0.com/0")
            crawl.next(1)
            crawl.view.standing()
    if name == "covers":
        publish_again(folder, ranks, meta | {"covers": [1]})
        assert "header.json is damaged" in str(about(folder, 10**6).ranking_fault)

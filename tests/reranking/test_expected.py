"""The rank that pages can expect of links that are not known yet: against plain loops, in closed form, in a crawl."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlmodel import Model
from crawlstrategies import EAGER, frontier_in, opened, publish_ranking
from inlink.base.clock import VirtualClock
from inlink.base.folder import Folder, building
from inlink.factors.parts import combined
from inlink.frontier.adoption import adopt
from inlink.reranking.expected import TRUE_SHARE, expected_ranks

DAMPING = 0.85
SECTION = [f"http://a.com/{k}" for k in range(6)]


def twin(model: Model, ranks: np.ndarray, hosts: np.ndarray | None) -> np.ndarray:
    """The definition, link by link."""
    expected = np.zeros(model.num_pages)
    arcs = model.arcs(hosts)
    for page in model.rows:
        links = np.flatnonzero(arcs[page]).tolist()
        crawled = sum(link in model.rows for link in links)
        for link in links:
            if link not in model.rows:
                ahead = (len(links) - crawled - 1) / (1 + crawled)
                expected[link] += TRUE_SHARE * DAMPING * ranks[page] / len(links) * ahead
    return expected


def computed(model: Model, order: int, ranks: np.ndarray, hosts: np.ndarray | None = None) -> np.ndarray:
    """The expected ranks, from visits that are given in one of several orders."""
    num_pages, log, pages, places = model.given(order)
    return expected_ranks(num_pages, log, pages, places, ranks[pages], hosts, damping=DAMPING)


@st.composite
def crawls(draw: st.DrawFn) -> Model:
    model = Model(draw(st.integers(1, 12)))
    page = st.integers(0, model.num_pages - 1)
    for _ in range(draw(st.integers(0, 10))):
        if draw(st.integers(0, 7)):
            model.crawl(draw(page), draw(st.lists(page, max_size=8)))
        else:
            model.merge(draw(page), draw(page))
    return model


@given(crawls(), st.data())
def test_the_expected_ranks_are_those_of_the_definition(model, data):
    def column(values):
        return data.draw(st.lists(values, min_size=model.num_pages, max_size=model.num_pages))

    ranks = np.array(column(st.floats(0, 10)))
    hosts = np.array(column(st.integers(0, 2)), np.uint32) if data.draw(st.booleans()) else None
    found = computed(model, 0, ranks, hosts)
    assert found == pytest.approx(twin(model, ranks, hosts), rel=1e-6, abs=1e-30)
    again = computed(model, data.draw(st.integers(1, 3)), ranks, hosts)
    assert again.tobytes() == found.tobytes(), "the order in which visits are given changes no bit"


@pytest.mark.parametrize("crawled", range(1, 6))
def test_within_a_section_the_expectation_falls_as_its_pages_are_crawled(crawled):
    # Six pages that all link to each other. The crawled ones have rank 1.
    model = Model(6)
    for page in range(crawled):
        model.crawl(page, [other for other in range(6) if other != page])
    found = computed(model, 0, np.ones(6))
    # Each of them stands for (5 − (crawled − 1) − 1) ÷ crawled others.
    assert found[5] == pytest.approx(TRUE_SHARE * DAMPING / 5 * (5 - crawled))
    assert not found[:crawled].any()


def section(crawl) -> None:
    """Crawl a page of a section whose pages all link to each other."""
    crawl.seed(SECTION[:1])
    (lease,) = crawl.next(1)
    crawl.crawled(lease, SECTION[1:])


def test_why_tells_the_expected_rank_and_a_reopened_crawl_has_the_same(tmp_path):
    with opened(tmp_path / "c", VirtualClock(), politeness=EAGER, rerank_share=None) as crawl:
        section(crawl)
        before = crawl.why(SECTION[3])
        assert not any("expected" in part.name for part in before.parts)
        crawl.rerank(wait=True)
        why = crawl.why(SECTION[3])
        (part,) = (part for part in why.parts if "expected" in part.name)
        assert (part.operation, part.value) == ("+", pytest.approx(2 / 3 * 0.85 * 0.15 / 5 * 4, rel=1e-3))
        assert why.priority == pytest.approx(combined(why.parts), rel=1e-6)
        assert why.priority > before.priority
        assert crawl.standing().harvest == pytest.approx(0.15 / (6 * 0.15 + 0.85 * 0.15), rel=1e-3), (
            "ranks only"
        )
    with opened(tmp_path / "c", VirtualClock(), politeness=EAGER, rerank_share=None) as crawl:
        again = crawl.why(SECTION[3])
        assert (again.parts, again.priority) == (why.parts, why.priority)


@pytest.mark.parametrize(
    ("name", "wrong", "fault"),
    [
        ("expected", np.full(6, -1, np.float32), "negative or not finite"),
        ("expected", np.full(6, np.nan, np.float32), "negative or not finite"),
        ("expected", np.zeros(5, np.float32), r"shape \(5,\)"),
        ("expected", np.zeros(6, np.float64), "float64"),
        ("scores", np.full(6, np.nan, np.float32), "negative or not finite"),
        ("scores", np.full(6, -np.inf, np.float32), "negative or not finite"),
        ("scores", np.zeros(5, np.float32), r"shape \(5,\)"),
    ],
    ids=["negative", "nan", "short", "wide", "scores of nan", "infinite scores", "few scores"],
)
def test_unsound_values_beside_the_ranks_are_not_used(tmp_path, name, wrong, fault):
    options = {"politeness": EAGER, "rerank_share": None, "use_scores": name == "scores"}
    with opened(tmp_path / "c", VirtualClock(), **options) as crawl:
        section(crawl)
        before = crawl.why(SECTION[3])
        publish_ranking(crawl)
        replace_beside(crawl.folder, name, wrong)
        assert not adopt(frontier_in(crawl))
        assert re.search(fault, frontier_in(crawl).ranking_fault)
        assert crawl.why(SECTION[3]).priority == before.priority


def test_a_ranking_without_expected_ranks_is_used_as_it_is(tmp_path):
    with opened(tmp_path / "c", VirtualClock(), politeness=EAGER, rerank_share=None) as crawl:
        section(crawl)
        publish_ranking(crawl)
        replace_beside(crawl.folder, "expected", None)
        assert adopt(frontier_in(crawl))
        assert not any("expected" in part.name for part in crawl.why(SECTION[3]).parts)


def test_a_ranking_without_scores_is_taken_in_with_those_of_the_pages(tmp_path):
    options = {"politeness": EAGER, "rerank_share": None, "use_scores": True}
    with opened(tmp_path / "c", VirtualClock(), **options) as crawl:
        section(crawl)
        publish_ranking(crawl)
        assert Folder(crawl.folder / "ranks", "ranks", 1).header.meta["scores"] == 1
        replace_beside(crawl.folder, "scores", None)
        assert adopt(frontier_in(crawl))
        without = frontier_in(crawl).policy.shares[:6].tolist()
        crawl.rerank(wait=True)
        assert frontier_in(crawl).policy.shares[:6].tolist() == pytest.approx(without)
        assert any(without)


def replace_beside(folder, name: str, values: np.ndarray | None) -> None:
    """Write the published ranking again, with other values of a name beside its ranks, or without them."""
    old = Folder(folder / "ranks", "ranks", 1)
    arrays, meta = {key: np.array(old.array(key)) for key in old.header.files}, dict(old.header.meta)
    with building(folder / "ranks", "ranks", 1) as writer:
        for key, array in (arrays | {name: values}).items():
            if array is not None:
                writer.write(key, array)
        writer.header.meta = meta | {name: int(values is not None)}

"""A view answers the same, no matter what it was asked before: the live one, one of the folder, one after a restart."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import LINKS, SEEDED, URLS, Clock, differences, opened
from histories import BY_VALUE, MORE, PAGES, POLITE, do
from inlink.crawl.crawl import Crawl
from inlink.crawl.view import CrawlView
from inlink.errors import InlinkError
from inlink.frontier.revisit import FixedInterval
from inlink.protocol import PLACES, Link
from patience import wait_until

RICH = st.builds(
    Link,
    URLS,
    st.sampled_from([None, 0.5]),
    text=st.sampled_from(["", "text"]),
    place=st.sampled_from(PLACES),
)
CHANGES = st.one_of(
    MORE,
    st.tuples(st.just("crawled with"), PAGES, st.lists(RICH, max_size=5), st.just({})),
    # Some of these fingerprints are of near-duplicates.
    st.tuples(
        st.just("crawled with"),
        PAGES,
        LINKS,
        st.fixed_dictionaries({"fingerprint": st.sampled_from([1, 3, 0xFFFF, 2**60, 2**60 + 1])}),
    ),
    st.tuples(st.just("ask"), st.integers(0, 99)),
)
OPTIONS = st.fixed_dictionaries(
    {"revisit": st.sampled_from([None, FixedInterval(50.0), BY_VALUE]), "max_losses": st.integers(1, 3)},
    optional={
        name: st.just(True) for name in ("use_scores", "cross_domain_only", "self_links", "sink_duplicates")
    },
)


def rows(ask: Callable[[str | None], Any]) -> list[Any]:
    """The rows of all parts of an answer."""
    part = ask(None)
    listed = list(part.rows)
    while part.cursor is not None:
        part = ask(part.cursor)
        listed += part.rows
    return listed


def text(ask: Callable[[str | None], Any]) -> str:
    part = ask(None)
    whole: str = part.text
    while part.cursor is not None:
        part = ask(part.cursor)
        whole += part.text
    return whole


def last(ask: Callable[[], Any]) -> Any:
    """The answer after the searches that earlier calls began."""
    for _ in range(5):
        ask()
    return ask()


def questions(view: CrawlView) -> Iterator[tuple[str, Callable[[], Any]]]:
    for page in range(view.info().pages):
        yield f"page {page}", lambda page=page: view.page(page)
        yield f"why {page}", lambda page=page: last(lambda: view.why(page))
        yield f"path {page}", lambda page=page: rows(lambda cursor: view.path(page, 3, cursor))
        yield f"links from {page}", lambda page=page: rows(lambda at: view.links(page, "from", 2, at))
        yield f"links to {page}", lambda page=page: rows(lambda at: view.links(page, "to", 2, at))
    for shown in ({}, {"foreign": False}, {"uncrawled": False}):
        yield f"top {shown}", lambda shown=shown: last(lambda: view.top(count=20, **shown))
    for what, named in (("pages", {"facts": True}), ("links", {"raw": True}), ("links", {"urls": True})):
        yield f"dump {what}", lambda what=what, named=named: text(lambda at: view.dump(what, at, **named))
    yield "find", lambda: rows(lambda cursor: view.find("a", count=3, cursor=cursor))
    yield "order", lambda: view.order(50)
    yield "standing", lambda: last(view.standing)
    yield "harvest", lambda: last(view.harvest)
    # A restart adds events.
    yield "errors", lambda: msgspec.structs.replace(last(view.errors), searched=0, known=0)
    yield "info", lambda: msgspec.structs.replace(last(view.info), events=0, event_bytes=0)


def answer(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except InlinkError as error:
        return type(error), str(error)


def answers(view: CrawlView) -> dict[str, Any]:
    return {name: answer(ask) for name, ask in questions(view)}


def changed_by_asking(folder: Path, history: list[tuple[Any, ...]], **options: Any) -> dict[str, Any]:
    """Ask a crawl questions during a history; return the answers that a view of the folder or a restart changes."""
    clock, leases = Clock(), []
    with opened(folder, clock, rerank_share=None, **options) as crawl:
        for what, *values in SEEDED + history:
            if what == "ask":
                dice = random.Random(values[0])
                for _, ask in questions(crawl.view):
                    if dice.random() < 0.7:
                        answer(ask)
            elif what == "crawled with":
                url = crawl.view.path(values[0] % crawl.view.info().pages, 1).rows[0].url
                crawl.crawled(url, values[1], **values[2])
            else:
                do(crawl, clock, leases, (what, *values))
        wait_until(lambda: not (crawl.next(0) or crawl.ranking), "the end of a ranking")
        crawl.pause()  # No time passes while it is closed.
        crawl.resume()
        live = answers(crawl.view)
        with CrawlView.open(folder, clock) as view:
            changed = differences(live, answers(view))
    with Crawl(folder, clock=clock) as crawl:
        crawl.next(0)
        return changed or differences(live, answers(crawl.view))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["breadth-first", "hits", "host-diverse", "opic", "pagerank"])
@settings(max_examples=10)
@given(st.lists(CHANGES, max_size=30), POLITE, OPTIONS)
def test_asking_changes_nothing(tmp_path_factory, policy, history, polite, options):
    folder = tmp_path_factory.mktemp("c") / "c"
    politeness = {"delay": 0.0, "in_flight": 1000} | polite
    changed = changed_by_asking(folder, history, policy=policy, politeness=politeness, **options)
    assert not changed, changed


VISITED = ("crawled by URL", 0, [("http://b.com/", 0.75), ("http://d.com/", 0.25)])


@pytest.mark.parametrize("policy", ["hits", "host-diverse", "pagerank"])
@pytest.mark.parametrize(
    "history",
    [
        pytest.param([("crawled by URL", 0, [])], id="no links"),
        pytest.param([("rerank",)], id="a ranking before the first visit"),
        pytest.param([VISITED, VISITED], id="two visits with the same date of the next"),
        pytest.param(
            [("ask", 1), ("rerank",), ("ask", 2), VISITED, ("ask", 3)], id="a visit after a ranking"
        ),
        pytest.param(
            [VISITED, ("rerank",), *(("crawled by URL", k, []) for k in range(4))], id="worse scores"
        ),
    ],
)
def test_asking_after_a_few_events_changes_nothing(tmp_path, policy, history):
    changed = changed_by_asking(
        tmp_path / "c", history, policy=policy, use_scores=True, revisit=FixedInterval(50.0)
    )
    assert not changed, changed

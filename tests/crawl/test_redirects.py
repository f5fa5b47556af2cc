"""Redirects and canonical pages: depth in clicks, the reason of each merge, and when pages are merged."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import Clock, opened, stored_pages
from crawlworld import A, B, hello
from inlink.errors import ParameterError
from inlink.frontier.rules import Rules
from inlink.frontier.settings import Politeness
from inlink.protocol import Crawled, Link, Redirected
from inlink.sources.dumping import page_lines
from inlink.store.format import CANONICAL, VISIT
from storefolders import inlinks, look_up

AT_ONCE = Politeness(delay=0, in_flight=100)
C = A + "c"


def rows(crawl) -> dict[str, dict[str, str]]:
    """The lines of ``inlink dump pages``, by URL."""
    text = b"".join(block for block, _ in page_lines(stored_pages(crawl))).decode()
    names, *lines = (line.split("\t") for line in text.splitlines())
    return {row["url"]: row for row in (dict(zip(names, line, strict=True)) for line in lines)}


# -- redirects ------------------------------------------------------------------------------------------------------


def test_a_redirect_costs_no_click_and_keeps_its_status(world):
    crawl = world.open(politeness=AT_ONCE, rules=Rules(max_depth=1))
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], ["/r1", "/plain"])
    first = crawl.next(1)[0]
    assert first.url == A + "r1"
    second = crawl.redirected(first, "/r2", status=301)
    third = crawl.redirected(second, "/r3", status=307)
    last = crawl.redirected(third, "/end", status=200)
    assert (second.depth, third.depth, last.depth) == (1, 1, 1)
    crawl.crawled(last, ["/behind"])
    assert world.state(A + "behind") == "excluded"  # two clicks away
    hops = {"r1": ("redirect", 301), "r2": ("redirect", 307), "r3": ("refresh", 200)}
    for reopened in (False, True):
        crawl = world.again() if reopened else crawl
        dumped = rows(crawl)
        for name, (reason, status) in hops.items():
            page = crawl.page(A + name)
            assert (page.state, page.merged_into, page.depth) == ("merged", A + "end", 1)
            assert (page.merge_reason, page.status) == (reason, status)
            assert look_up(world.folder, A + name) == page
            row = dumped[A + name]
            assert (row["status"], row["merge_reason"], row["depth"]) == (str(status), reason, "1")
            why = crawl.why(A + name)
            assert (why.merge_reason, why.merge_status) == (reason, status)
            assert f"merged into {A}end ({reason} {status})" in str(why)
        assert crawl.page(A + "end").depth == 1


def test_a_redirect_without_a_status_is_from_an_old_client(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, B])
    session = hello(crawl)
    one, two = crawl.desk.next(session, 2).tasks
    crawl.desk.report(session, [Redirected(one.lease, "/x"), Redirected(two.lease, "/x", status=302)])
    found = crawl.page(A)
    assert (found.merge_reason, found.status) == ("redirect", 0)
    assert f"merged into {A}x (redirect)" in str(crawl.why(A))
    assert crawl.page(B).status == 302


def test_a_variant_is_merged_without_a_reason(world):
    crawl = world.open()
    crawl.seed([Link(A, 1, b"", "again:1")])
    crawl.crawled(crawl.next(1)[0], redirected_to=A)
    page = crawl.page(A + "#again:1")
    assert (page.state, page.merge_reason) == ("merged", None)


# -- canonical pages ------------------------------------------------------------------------------------------------


def test_a_canonical_page_counts_only_when_it_was_fetched(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], ["/b"])
    (b,) = crawl.next(9)
    crawl.crawled(b, ["/inner"], canonical_link="/missing")
    page = crawl.page(A + "b")
    assert (page.state, page.status, page.canonical) == ("crawled", 200, A + "missing")
    page = crawl.page(A + "missing")
    assert (page.state, page.crawls, page.depth, page.linked_from) == ("discovered", 0, 1, A + "b")
    assert "not merged: it is discovered" in str(crawl.why(A + "b"))
    leases = {lease.url: lease for lease in crawl.next(9)}
    assert set(leases) == {A + "missing", A + "inner"}
    crawl.failed(leases[A + "missing"], status=404)
    for reopened in (False, True):
        crawl = world.again() if reopened else crawl
        assert (world.state(A + "b"), world.state(A + "missing")) == ("crawled", "gone")
        assert crawl.page(A + "b").canonical == A + "missing"
        assert "not merged: it is gone" in str(crawl.why(A + "b"))
        assert stored_pages(crawl).links(crawl.page(A + "b").id).tolist() == [crawl.page(A + "inner").id]
        assert rows(crawl)[A + "b"]["canonical"] == str(crawl.page(A + "missing").id)
    crawl.crawled(A + "b")  # the next visit names none
    assert crawl.page(A + "b").canonical is None
    assert world.again().page(A + "b").canonical is None
    assert look_up(world.folder, A + "b").canonical is None


@pytest.mark.parametrize("page_first", [True, False])
def test_pages_are_merged_when_both_were_fetched(world, page_first):
    crawl = world.open(politeness=AT_ONCE, policy="pagerank")
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], ["/b", "/c"])
    leases = {lease.url: lease for lease in crawl.next(9)}
    order = [A + "b", C] if page_first else [C, A + "b"]
    for url in order:
        crawl.crawled(leases[url], ["/x"], canonical_link=C, status=203 if url == A + "b" else 200)
    for reopened in (False, True):
        crawl = world.again() if reopened else crawl
        page = crawl.page(A + "b")
        assert (page.state, page.merged_into, page.merge_reason) == ("merged", C, "canonical")
        assert (page.status, page.canonical) == (203, C)
        assert look_up(world.folder, A + "b") == page
        assert crawl.page(C).state == "crawled"
        assert crawl.view.standing().crawled == 2
        assert rows(crawl)[A + "b"]["merge_reason"] == "canonical"
        assert f"merged into {C} (canonical 203)" in str(crawl.why(A + "b"))
        assert sorted(inlinks(stored_pages(crawl), crawl.page(C).id).tolist()) == [0, crawl.page(A + "b").id]


KEPT_APART = {
    "gone": (lambda crawl, lease: crawl.failed(lease, status=410), "it is gone"),
    "redirects": (lambda crawl, lease: crawl.redirected(lease, "/d", status=301), "it was merged into http://a.com/d"),
    "noindex": (lambda crawl, lease: crawl.crawled(lease, noindex=True), "it asks not to be indexed"),
    "names another": (lambda crawl, lease: crawl.crawled(lease, canonical_link="/d"), "it names another"),
    "no success": (lambda crawl, lease: crawl.crawled(lease, status=404), "its status is 404"),
    "excluded": (lambda crawl, lease: crawl.exclude(lease, "robots"), "it is excluded"),
    "each other": (lambda crawl, lease: crawl.crawled(lease, canonical_link=A), "it names another"),
}  # fmt: skip


@pytest.mark.parametrize("how", KEPT_APART)
def test_a_page_stays_its_own_if_its_canonical_page_is_no_page(world, how):
    answer, reason = KEPT_APART[how]
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], ["/x"], canonical_link=C)
    leases = {lease.url: lease for lease in crawl.next(9)}
    answer(crawl, leases[C])
    for reopened in (False, True):
        crawl = world.again() if reopened else crawl
        page = crawl.page(A)
        assert (page.state, page.merged_into, page.canonical) == ("crawled", None, C)
        assert f"not merged: {reason}" in str(crawl.why(A))


def test_a_canonical_page_of_another_domain_is_a_link_and_no_more(world):
    crawl = world.open(politeness=AT_ONCE, rules=Rules(deny=["//c.org/"]))
    crawl.seed([A, A + "2"])
    one, two = crawl.next(2)
    crawl.crawled(one, canonical_link=B)
    crawl.crawled(two, canonical_link="http://c.org/")
    assert world.state("http://c.org/") == "excluded"
    crawl.crawled(crawl.next(1)[0])
    assert (world.state(A), world.state(B)) == ("crawled", "crawled")
    assert "not merged: it is in another domain" in str(crawl.why(A))


def test_the_canonical_link_of_a_failed_fetch_or_a_variant_does_not_count(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, Link(A, 1, b"form", "POST:1"), B])
    for lease in crawl.next(3):
        if lease.url == B:
            session = hello(crawl)
            crawl.release(lease)
            (task,) = crawl.desk.next(session, 1).tasks
            crawl.desk.report(session, [Crawled(task.lease, [], canonical_link="/c", error="broken")])
        else:
            crawl.crawled(lease, canonical_link="/c", status=404 if lease.url == A else 200)
    assert crawl.page(C) is None
    assert crawl.page(B + "c") is None


def test_data_for_the_canonical_page_are_carried(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A])
    with pytest.raises(ParameterError, match="data"):
        crawl.crawled(crawl.next(1)[0], canonical_link=Link("/c", data=b"x" * 65_537))
    crawl.crawled(A, canonical_link=Link("/c", data=b"callback"))
    crawl = world.again()
    assert crawl.next(1)[0].carried == b"callback"


def test_a_merge_that_a_crash_prevented_is_made_up_for(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, C])
    a, c = crawl.next(2)
    crawl.crawled(a, canonical_link=C)
    crawl.crawled(c)
    place = stored_pages(crawl).frames.of_kind(VISIT)[-1]
    events = world.folder / "events.log"
    raw = events.read_bytes()
    length = int.from_bytes(raw[place + 4 : place + 8], "little")
    world.close()
    events.write_bytes(raw[: place + length])
    (world.folder / "end.bin").unlink(missing_ok=True)
    crawl = world.again()
    assert crawl.page(A).merge_reason == "canonical"


def test_the_same_canonical_page_again_is_no_event(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A])
    for _ in range(3):
        crawl.crawled(A, canonical_link=C)
    crawl.crawled(A, canonical_link=A)
    crawl.crawled(A, canonical_link=A)
    assert len(stored_pages(crawl).frames.of_kind(CANONICAL)) == 2


# -- a twin ---------------------------------------------------------------------------------------------------------


@dataclass
class Answer:
    """What a URL answers: a redirect to ``to``, or a page."""

    to: int | None = None
    status: int = 200
    links: list[int] = field(default_factory=list)
    canonical: int | None = None
    noindex: bool = False


def answers(count: int) -> st.SearchStrategy[Answer]:
    page = st.integers(0, count - 1)
    moved = st.builds(Answer, to=page, status=st.sampled_from([200, 301, 302, 307, 308]))
    full = st.builds(
        Answer,
        status=st.sampled_from([200, 200, 200, 404]),
        links=st.lists(page, max_size=4),
        canonical=st.none() | page,
        noindex=st.sampled_from([False, False, False, True]),
    )
    return moved | full


WEBS = st.integers(2, 9).flatmap(lambda n: st.lists(answers(n), min_size=n, max_size=n))


class Twin:
    """Redirects, canonical pages and depths in the plainest form."""

    def __init__(self, web: list[Answer]):
        self.web, self.depths, self.into, self.visited = web, {0: 0}, {}, set()
        self.reasons: dict[int, tuple[str, int]] = {}

    def end(self, page: int) -> int:
        while page in self.into:
            page = self.into[page]
        return page

    def named(self, page: int) -> int | None:
        answer = self.web[page]
        return None if answer.canonical == page or answer.status != 200 else answer.canonical

    def redirected(self, page: int, to: int) -> None:
        self.depths.setdefault(to, self.depths[page])
        if self.end(to) != page:
            self.into[page] = self.end(to)
            status = self.web[page].status
            self.reasons[page] = ("redirect" if status > 200 else "refresh", status)

    def crawled(self, page: int) -> None:
        named = self.named(page)
        if named is not None:
            self.depths.setdefault(named, self.depths[page])
        for link in self.web[page].links:
            self.depths.setdefault(link, self.depths[page] + 1)
        self.visited.add(page)
        for other in (page, *sorted(self.visited)):
            target = self.named(other)
            if page in (other, target) and self.mergeable(other, target):
                self.into[other], self.reasons[other] = target, ("canonical", 200)

    def mergeable(self, page: int, target: int | None) -> bool:
        return (
            target is not None
            and page not in self.into
            and target in self.visited - self.into.keys()
            and self.web[target].status == 200
            and not self.web[target].noindex
            and self.named(target) is None
        )

    def shortest(self) -> dict[int, int]:
        """Fewest clicks from page 0, by relaxing all edges."""
        found = {0: 0}
        for _ in self.web:
            for page, depth in list(found.items()):
                answer = self.web[page]
                named = self.named(page) if answer.to is None else answer.to
                ends = [(named, depth)] if named is not None else []
                ends += [(link, depth + 1) for link in answer.links]
                for end, clicks in ends:
                    found[end] = min(clicks, found.get(end, clicks))
        return found


@settings(max_examples=75, deadline=None)
@given(WEBS, st.sampled_from(["first-come", "depth-first", "breadth-first"]), st.booleans())
def test_depths_and_merges_are_those_of_the_twin(tmp_path_factory, web, policy, at_once):
    folder, twin = tmp_path_factory.mktemp("web") / "c", Twin(web)
    urls = [f"http://a.com/{k}" for k in range(len(web))]
    arguments = {"policy": policy, "politeness": AT_ONCE}
    clock = Clock()
    crawl = opened(folder, clock, **arguments)
    crawl.seed([urls[0]])
    waiting = crawl.next(1)
    while waiting:
        lease = waiting.pop()
        page = urls.index(lease.url)
        answer = web[page]
        if answer.to is not None:
            twin.redirected(page, answer.to)
            then = crawl.redirected(lease, urls[answer.to], status=answer.status)
            if then is not None and then.url == urls[page]:
                # It leads back to itself, perhaps through pages that were merged into it.
                crawl.failed(then, status=404)
            elif then is not None:
                waiting.append(then)
        else:
            twin.crawled(page)
            crawl.crawled(
                lease,
                [urls[link] for link in answer.links],
                canonical_link=None if answer.canonical is None else urls[answer.canonical],
                status=answer.status,
                noindex=answer.noindex,
            )
        if not waiting:
            waiting = crawl.next(1 if at_once else 3)

    def check(crawl) -> None:
        dumped = rows(crawl)
        assert {url for url in urls if crawl.page(url) is not None} == {urls[page] for page in twin.depths}
        for page, depth in twin.depths.items():
            found = crawl.page(urls[page])
            assert found.depth == depth >= twin.shortest()[page]
            assert found.merged_into == (urls[twin.end(page)] if page in twin.into else None)
            assert crawl.view.page(urls[page]).depth == crawl.why(urls[page]).depth == depth
            row = dumped[urls[page]]
            assert (row["depth"], row["merge_reason"]) == (str(depth), found.merge_reason or "")
            if page in twin.into:
                assert (found.merge_reason, found.status) == twin.reasons[page]

    check(crawl)
    live = {page: crawl.page(urls[page]) for page in twin.depths}
    crawled = crawl.view.standing().crawled
    crawl.close()
    assert {page: look_up(folder, urls[page]) for page in twin.depths} == live
    crawl = opened(folder, clock, **arguments)
    check(crawl)
    assert crawl.view.standing().crawled == crawled
    states = stored_pages(crawl).states[: crawl.view.info().pages]
    assert np.count_nonzero(states == 2) == crawled
    crawl.close()

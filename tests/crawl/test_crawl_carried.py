"""Calls of a spider beyond pages and links: carried data, redirects, exclusions, delays, releases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlstrategies import Clock, opened, stored_pages
from crawlworld import A, B, C
from inlink.errors import ParameterError
from inlink.factors.parts import combined
from inlink.frontier.rules import Rules
from inlink.frontier.settings import Politeness
from inlink.protocol import Link
from inlink.store.carried import carried_in, encode_carried
from inlink.store.events import Events
from inlink.store.log import EVENTS
from inlink.urls.canonical import Base

AT_ONCE = Politeness(delay=0, in_flight=100)


@given(
    st.dictionaries(st.integers(0, 2**32 - 2), st.binary(max_size=50), min_size=1, max_size=30), st.binary()
)
def test_carried_data_are_found_again(data, before):
    frame = np.frombuffer(before + encode_carried(data), np.uint8)
    assert {page: carried_in(frame, page) for page in data} == data
    assert carried_in(frame, 2**32 - 1) is None


def test_links_and_seeds_carry_what_their_leases_give_back(world):
    crawl = world.open(politeness=AT_ONCE)
    assert crawl.seed([A, Link("HTTP://b.com#x", 0.5, b"for b")]) == 2
    one, two = crawl.next(5)
    assert (one.url, one.carried, two.url, two.carried) == (A, None, B, b"for b")
    assert crawl.page(B).score == 0.5
    crawl.crawled(one, [("/plain", 0.25), Link("/x", 0.75, b"first"), Link("/x#y", 2, b"second"), "/z"])
    found = {lease.url: lease.carried for lease in crawl.next(5)}
    assert found == {A + "plain": None, A + "x": b"first", A + "z": None}
    assert [crawl.page(A + name).score for name in ("plain", "x", "z")] == [0.25, 2, 0]
    crawl = world.again()
    assert crawl.release_all() == 4
    found = {lease.url: lease.carried for lease in crawl.next(5)}
    assert found == {B: b"for b", A + "plain": None, A + "x": b"first", A + "z": None}


def test_the_first_that_is_carried_stays(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, Link(B, 1, b"first")])
    crawl.seed([Link(B, 1, b"second")])
    crawl.crawled(crawl.next(1)[0], [Link(B, 1, b"third"), Link(C, 1, b"c")])
    assert [(lease.url, lease.carried) for lease in crawl.next(3)] == [(B, b"first"), (C, b"c")]


def test_variants_of_a_url_are_pages_of_their_own(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A])
    forms = [Link("/search", 0, b"1", "POST:1"), Link("/search", 0, b"2", "POST:2"), "/search"]
    crawl.crawled(crawl.next(1)[0], forms)
    crawl = world.again()
    found = {lease.url: (lease.carried, lease.depth) for lease in crawl.next(5)}
    assert found == {
        A + "search": (None, 1),
        A + "search#POST:1": (b"1", 1),
        A + "search#POST:2": (b"2", 1),
    }
    assert crawl.page(A + "search#POST:2").id != crawl.page(A + "search").id
    assert crawl.page(A + "search#elsewhere").id == crawl.page(A + "search").id
    assert crawl.crawled(A + "search#POST:1", status=201)
    assert crawl.page(A + "search#POST:1").status == 201
    assert world.state(A + "search") == "leased"


def test_too_much_to_carry_is_refused_before_anything_is_written(world):
    crawl = world.open()
    crawl.seed([A])
    lease = crawl.next(1)[0]
    with pytest.raises(ParameterError, match="got 65,537"):
        crawl.crawled(lease, [Link(B, 1, b"x" * 65537)])
    assert world.state(A) == "leased"
    assert crawl.page(B) is None
    assert crawl.crawled(lease, [Link(B, 1, b"x" * 65536)])
    assert len(crawl.next(1)[0].carried) == 65536


def test_carried_links_that_are_none_are_counted(world):
    crawl = world.open()
    assert crawl.seed([Link("mailto:x@y.z", 1, b""), Link("/relative", 1, b""), Link(A, 1, b"")]) == 1
    crawl.crawled(crawl.next(1)[0], [Link("javascript:void(0)", 1, b"x"), Link("ftp://a.com/", 1, b"x")])
    assert sum(crawl.refused.values()) == 4
    assert crawl.view.info().pages == 1


# -- redirects ------------------------------------------------------------------------------------------------------


def test_a_redirect_is_followed_at_once(world):
    crawl = world.open(politeness=Politeness(delay=100))
    crawl.seed([Link(A, 1, b"data")])
    lease = crawl.redirected(crawl.next(1)[0], "/b", carried=b"data")
    assert (lease.url, lease.carried, world.state(A), world.state(A + "b")) == (
        A + "b",
        b"data",
        "merged",
        "leased",
    )
    assert crawl.next(5) == []
    crawl = world.again()
    assert world.state(A + "b") == "leased"
    crawl.release_all()
    world.clock.now += 100
    lease = crawl.next(1)[0]
    assert (lease.url, lease.carried) == (A + "b", b"data")
    assert crawl.crawled(lease, ["/c"])
    assert crawl.page(A).merged_into == A + "b"


def test_a_redirect_to_what_was_fetched_needs_no_fetch(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, B, C])
    leases = crawl.next(3)
    crawl.crawled(leases[0])
    assert crawl.redirected(leases[1], A) is None
    assert (world.state(A), world.state(B)) == ("crawled", "merged")
    again = crawl.redirected(leases[2], A, again=True)
    assert (again.url, again.crawls) == (A, 1)
    assert crawl.crawled(again)
    assert crawl.page(A).crawls == 2
    assert crawl.redirected(again, B) is None  # answered for


def test_a_page_that_redirects_to_itself_is_fetched_again(world):
    crawl = world.open()
    crawl.seed([A])
    lease = crawl.redirected(crawl.next(1)[0], A)
    assert lease.url == A
    assert crawl.crawled(lease)
    assert world.state(A) == "crawled"


def test_two_redirects_to_one_page_are_one_fetch(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, B])
    one, two = crawl.next(2)
    assert crawl.redirected(one, C).url == C
    assert crawl.redirected(two, C) is None
    assert world.state(B) == "merged"


def test_a_redirect_out_of_bounds_ends_there(world):
    crawl = world.open(rules=Rules(hosts=["a.com"]), politeness=AT_ONCE)
    crawl.seed([A, A + "2"])
    one, two = crawl.next(2)
    assert crawl.redirected(one, B) is None
    assert world.state(B) == "excluded"
    assert crawl.redirected(two, "http://a.com:99999/") is None
    assert crawl.page(A + "2").error.startswith("redirects to an invalid URL")
    assert crawl.due_in() is None


def test_a_redirect_counts_against_the_targets_host(world):
    crawl = world.open(politeness=Politeness(delay=0, in_flight=1, host_budget=1))
    crawl.seed([A])
    lease = crawl.redirected(crawl.next(1)[0], B)
    crawl.crawled(lease, [B + "2", C])
    assert [one.url for one in crawl.next(5)] == [C]


# -- exclusions, delays, giving back --------------------------------------------------------------------------------


def test_an_excluded_page_waits_no_more(world):
    crawl = world.open()
    crawl.seed([A])
    assert crawl.exclude(crawl.next(1)[0], "Forbidden by robots.txt")
    crawl = world.again()
    page = crawl.page(A)
    assert (page.state, page.error) == ("excluded", "Forbidden by robots.txt")
    assert crawl.due_in() is None
    assert crawl.reload("excluded") == 1
    assert world.urls() == [A]


def test_a_waiting_page_is_excluded_by_its_url(world):
    crawl = world.open()
    crawl.seed([A])
    assert crawl.exclude(A)
    assert world.urls() == []


def test_a_hosts_own_delay_holds_after_reopening(world):
    crawl = world.open(politeness=Politeness(delay=1))
    crawl.seed([A, A + "2", A + "3"])
    lease = crawl.next(1)[0]
    assert crawl.host_delay(lease, 10)
    assert not crawl.host_delay(A, 5)  # politer already
    crawl.crawled(lease)
    assert crawl.due_in() == 10
    crawl = world.again()
    world.clock.now += 10
    crawl.crawled(crawl.next(5)[0])
    assert crawl.due_in() == 10


def test_the_robots_directives_of_a_page_are_kept(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, B])
    one, two = crawl.next(2)
    crawl.crawled(one, noindex=True)
    crawl.crawled(two, ["/x"], nofollow=True)
    crawl = world.again()
    assert [(crawl.page(url).noindex, crawl.page(url).nofollow) for url in (A, B)] == [
        (True, False),
        (False, True),
    ]
    assert world.state(B + "x") == "discovered"


def test_giving_all_back_leaves_no_lease(world):
    crawl = world.open(politeness=Politeness(delay=0, in_flight=2))
    crawl.seed([A, B, C])
    leases = crawl.next(3)
    assert crawl.release_all() == 3
    assert crawl.release_all() == 0
    assert not crawl.release(leases[0])
    assert sorted(world.urls()) == [A, B, C]


def test_the_standing_tells_how_far_a_crawl_has_come(world):
    crawl = world.open(policy="pagerank", politeness=AT_ONCE)
    assert crawl.standing().harvest is None
    crawl.seed([A, B])
    crawl.crawled(crawl.next(1)[0], [B + "1", B + "2", C])
    crawl.next(1)
    found = crawl.standing(hosts=1)
    assert (found.known, found.crawled, found.leased, found.waiting) == (5, 1, 1, 3)
    assert found.states == {"crawled": 1, "leased": 1, "discovered": 3}
    assert [(host.name, host.taken) for host in found.hosts] == [
        ("b.com", 1 if found.hosts[0].waiting == 2 else 0)
    ]
    ranks = [combined(crawl.why(f"{page:016x}").parts) for page in range(5)]
    assert found.harvest == pytest.approx(ranks[0] / sum(ranks))
    assert world.open(policy="breadth-first").standing().harvest is None


def test_pages_are_numbered_in_the_order_of_the_links(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, Link(B, 1, b"b"), "mailto:x", C, Link("ftp://x", 1, b"x"), "http://d.com/"])
    known = [A, B, C, "http://d.com/"]
    assert [crawl.page(url).id for url in known] == [0, 1, 2, 3]
    links = [
        "/0",
        Link("/1", 0.5, b"one"),
        "mailto:me",
        ("/2", 0.25),
        Link("data:x", 1, b"none"),
        Link("/3", 0, b"", "POST:1"),
        Link("/1", 0.75, b"again"),
        "/4",
        Link("/5", 0, b"five", text="Five"),
        "/0",
    ]
    crawl.crawled(A, links)
    names = ["0", "1", "2", "3#POST:1", "4", "5"]
    for reopened in (False, True):
        crawl = world.again() if reopened else crawl
        found = [crawl.page(A + name) for name in names]
        assert [page.id for page in found] == [4, 5, 6, 7, 8, 9]
        assert [page.score for page in found] == [0, 0.75, 0.25, 0, 0, 0]
        assert found[-1].linked_text == "Five"
        pages = stored_pages(crawl)
        assert [pages.carried(page.id) for page in found] == [None, b"one", None, b"", None, b"five"]


LINKS = st.lists(
    st.builds(
        Link,
        st.sampled_from(
            [f"/{k}" for k in range(6)] + [A + "0", A + "5", A + "7", "mailto:x", "#here", "http://[bad/"]
        ),
        st.sampled_from([None, 0.5]),
        st.sampled_from([b"", b"data"]),
        st.sampled_from(["", "", "v"]),
    ),
    max_size=12,
)


@given(LINKS, st.booleans())
def test_numbers_follow_the_order_of_all_links(tmp_path_factory, links, scored):
    crawl = opened(tmp_path_factory.mktemp("crawl") / "c", Clock())
    crawl.seed([A])
    given = [link if scored or link.data or link.variant else link.url for link in links]
    crawl.crawled(A, given)
    expected = [A]
    for link in links:
        url = link.url.replace(A, "/")
        if url.startswith("/") or (url == "#here" and link.variant):
            form = A + url[1:] * (url != "#here") + ("#" + link.variant if link.variant else "")
            expected += [form] * (form not in expected)
    assert [row.url for row in crawl.view.find("").rows] == expected
    crawl.close()


def test_a_visit_whose_scored_links_are_all_refused_has_no_scores(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.crawled(A, [("mailto:x", 0.5), Link("http://a b/", 0.5, text="Text", place="main")])
    events = list(Events(np.fromfile(crawl.folder / EVENTS, np.uint8)))
    visit = next(event for event in events if event.kind == "visit")
    assert (visit.flags, len(visit.pages)) == (0, 0)
    assert crawl.refused.total() == 2


@pytest.mark.parametrize(
    "odd", [" /odd", "http://a.com:80/", "http://b\u00fccher.example/", "/a/../b", "\ud800"]
)
@pytest.mark.parametrize("kind", [str, lambda url: Link(url, 0.5, b"data", text="Text")])
def test_only_odd_links_of_a_page_are_parsed(world, monkeypatch, odd, kind):
    parsed, forms = [], Base.forms

    def noted(base, hrefs, refused):
        parsed.extend(hrefs)
        return forms(base, parsed, refused)

    monkeypatch.setattr(Base, "forms", noted)
    crawl = world.open()
    crawl.seed([A])
    crawl.crawled(A, [kind(url) for url in (A + "1", odd, A + "2")])
    assert parsed == [odd]
    assert crawl.page(A + "2").linked_from == A

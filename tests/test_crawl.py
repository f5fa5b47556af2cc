"""A crawl as its users meet it: under a clock that the tests own, live and after reopening."""

import contextlib
import math
import os
import signal
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import STATIC, Clock, opened
from inlink.crawl import Crawl, look
from inlink.errors import FolderError, InUseError, ParameterError, UnknownNodeError
from inlink.frontier.policies import POLICIES, Policy
from inlink.frontier.queue import Politeness
from inlink.frontier.revisit import FixedInterval
from inlink.frontier.rules import Rules
from inlink.store import log as logs
from inlink.store.kernels import frames as kinds
from inlink.store.reader import Reader

A, B, C = "http://a.com/", "http://b.com/", "http://c.org/"


class World:
    """One crawl at a time, reopened at will."""

    def __init__(self, folder):
        self.folder, self.clock = folder, Clock()
        self.crawl: Crawl | None = None

    def open(self, **settings):
        self.close()
        self.settings = settings
        self.crawl = opened(self.folder, self.clock, **{"policy": "first-come", **settings})
        return self.crawl

    def again(self):
        return self.open(**self.settings)

    def close(self):
        if self.crawl is not None:
            self.crawl.close()
            self.crawl = None

    def urls(self, count=100):
        return [lease.url for lease in self.crawl.next(count)]

    def state(self, url):
        return self.crawl.page(url).state


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path / "c")
    yield one
    one.close()


@pytest.fixture(autouse=True)
def _patience():
    """A crawl that does not end fails its test, and not the whole run."""

    def enough(*_):
        raise TimeoutError("two minutes")

    before = signal.signal(signal.SIGALRM, enough)
    signal.alarm(120)  # on a cold cache, kernels are compiled meanwhile
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# -- leases ---------------------------------------------------------------------------------------------------------


def test_a_lease_says_what_is_to_be_fetched(world):
    crawl = world.open(lease_seconds=100)
    assert crawl.seed(["HTTP://A.com:80/#top", B]) == 2
    first, second = crawl.next(5)
    assert (first.url, first.given, first.page, first.depth, first.crawls) == (
        A,
        "HTTP://A.com:80/#top",
        0,
        0,
        0,
    )
    assert (second.url, second.given, second.number) == (B, None, first.number + 1)
    assert first.expires == world.clock.now + 100
    assert world.state(A) == "leased"
    assert crawl.next(5) == []
    assert crawl.due_in() == 100
    crawl.crawled(first, ["/x"])
    assert [(lease.url, lease.depth) for lease in crawl.next(5)] == [("http://a.com/x", 1)]


def test_next_0_gives_nothing(world):
    crawl = world.open()
    assert crawl.next(0) == []
    crawl.seed([A])
    assert crawl.next(0) == []
    assert world.state(A) == "discovered"


def test_a_lease_runs_out_and_late_answers_count_once(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A])
    early = crawl.next(1)[0]
    world.clock.now += 100
    late = crawl.next(1)[0]
    assert late.url == A
    assert late.number != early.number
    assert crawl.crawled(early, ["/x"])
    assert not crawl.crawled(late, ["/y"])
    assert not crawl.crawled(early, ["/y"])
    assert crawl.page(A).crawls == 1
    assert crawl.page("http://a.com/y") is None
    assert world.urls() == ["http://a.com/x"]


def test_the_newer_lease_may_answer_first(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A])
    early = crawl.next(1)[0]
    world.clock.now += 100
    late = crawl.next(1)[0]
    assert crawl.crawled(late)
    assert not crawl.crawled(early)
    assert crawl.page(A).crawls == 1
    assert crawl.due_in() is None


def test_answers_by_url_end_leases_one_after_the_other(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A])
    crawl.next(1)
    world.clock.now += 100
    crawl.next(1)
    assert crawl.crawled(A)
    assert not crawl.crawled(A)  # that of the other lease
    assert crawl.crawled(A)  # nobody asked for this one: it is a fetch of its own
    assert crawl.page(A).crawls == 2


def test_what_nobody_asked_for_counts(world):
    crawl = world.open()
    crawl.seed([A])
    assert crawl.crawled(A, ["/x"])
    assert crawl.page(A).state == "crawled"
    assert world.urls() == ["http://a.com/x"]
    with pytest.raises(UnknownNodeError, match="not known"):
        crawl.crawled("http://never.com/")
    with pytest.raises(UnknownNodeError):
        crawl.crawled("mailto:x")


def test_a_late_redirect_counts_once_too(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A])
    early = crawl.next(1)[0]
    world.clock.now += 100
    late = crawl.next(1)[0]
    assert crawl.crawled(late, redirected_to="/home")
    assert not crawl.crawled(early, redirected_to="/home")
    assert crawl.page("http://a.com/home").crawls == 1
    assert world.state(A) == "merged"


def test_release_gives_back_at_once(world):
    crawl = world.open()
    crawl.seed([A])
    lease = crawl.next(1)[0]
    assert crawl.release(lease)
    assert not crawl.release(lease)
    assert not crawl.release(A)
    assert not crawl.crawled(lease)
    assert world.urls() == [A]
    assert crawl.release(A)
    assert crawl.page(A).state == "discovered"
    world.again()
    assert world.urls() == [A]


def test_releasing_late_does_not_hand_out_twice(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A])
    early = crawl.next(1)[0]
    world.clock.now += 100
    late = crawl.next(1)[0]
    crawl.release(early)
    assert world.urls() == []  # the newer lease is out
    assert world.state(A) == "leased"
    assert crawl.crawled(late)


def test_a_late_release_does_not_bring_back_what_is_gone(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A])
    early = crawl.next(1)[0]
    world.clock.now += 100
    crawl.failed(crawl.next(1)[0], status=404)
    crawl.release(early)
    assert world.state(A) == "gone"


def test_leases_hold_after_reopening(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A, B, C])
    first, second, third = crawl.next(3)
    crawl.crawled(second)
    world.clock.now += 40
    crawl = world.again()
    assert crawl.next(5) == []
    assert crawl.due_in() == 60
    assert crawl.crawled(first)
    world.clock.now += 60
    (again,) = crawl.next(5)
    assert again.url == third.url
    assert again.number > third.number


def test_shorter_leases_after_reopening_run_out_first(world):
    crawl = world.open(lease_seconds=1000)
    crawl.seed([A, B])
    crawl.next(1)
    crawl = world.open(lease_seconds=10)
    crawl.next(1)
    assert crawl.due_in() == 10
    world.clock.now += 10
    assert world.urls() == [B]


# -- failures -------------------------------------------------------------------------------------------------------


def test_retries_with_back_off_and_then_failed(world):
    crawl = world.open(max_retries=3, retry_seconds=60, politeness=Politeness(delay=0.0, in_flight=9))
    crawl.seed([A])
    waits = []
    for number in range(4):
        lease = crawl.next(1)[0]
        assert crawl.failed(lease, f"reset {number}")
        page = crawl.page(A)
        assert (page.errors, page.error) == (number + 1, f"reset {number}")
        if number < 3:
            assert page.state == "discovered"
            waits.append(crawl.due_in())
            assert crawl.next(1) == []
            world.clock.now += waits[-1]
    assert waits == [60, 120, 240]
    assert crawl.page(A).state == "failed"
    assert crawl.due_in() is None
    assert crawl.reload() == 1
    page = crawl.page(A)
    assert (page.state, page.errors, page.error) == ("discovered", 0, None)


def test_a_host_that_was_let_go_is_asked_again_after_reload(world):
    crawl = world.open(max_retries=0, retry_seconds=60, politeness=Politeness(delay=0.0, park_after=1))
    crawl.seed([A])
    crawl.failed(crawl.next(1)[0], "no route")
    assert crawl.next(1) == []
    assert crawl.reload() == 1
    assert crawl.due_in() == 0
    assert world.urls() == [A]


def test_reload_holds_after_reopening(world):
    crawl = world.open(max_retries=0, retry_seconds=60, politeness=Politeness(delay=0.0, park_after=1))
    crawl.seed([A])
    crawl.failed(crawl.next(1)[0], "no route")
    crawl.reload()
    world.again()
    assert world.urls() == [A]


def test_a_success_forgets_the_failures(world):
    crawl = world.open(max_retries=1, retry_seconds=1)
    crawl.seed([A, "http://a.com/x"])
    crawl.failed(crawl.next(1)[0], "reset")
    world.clock.now += 100
    lease = next(one for one in crawl.next(2) if one.url == A)
    crawl.crawled(lease)
    page = crawl.page(A)
    assert (page.state, page.errors, page.error) == ("crawled", 0, None)
    assert not any("in a row" in name for name, _ in crawl.why("http://a.com/x").reasons)


@pytest.mark.parametrize("status", [404, 410])
def test_gone_is_gone(world, status):
    crawl = world.open()
    crawl.seed([A, "http://a.com/x"])
    lease = crawl.next(1)[0]
    assert crawl.failed(lease, status=status)
    page = crawl.page(lease.url)
    assert (page.state, page.status) == ("gone", status)
    assert world.urls() == ["http://a.com/x"]  # the host need not wait for it
    world.clock.now += 1e6
    crawl = world.again()
    assert crawl.page(A).state == "gone"
    assert crawl.reload() == 1
    assert crawl.page(A).state == "discovered"


@pytest.mark.parametrize(("status", "retry", "state"), [
    (403, None, "failed"), (403, True, "discovered"), (500, None, "discovered"), (500, False, "failed"),
    (None, False, "failed"), (404, True, "discovered"),
])  # fmt: skip
def test_who_says_whether_it_is_tried_again(world, status, retry, state):
    crawl = world.open()
    crawl.seed([A])
    crawl.failed(crawl.next(1)[0], "x", status=status, retry=retry)
    assert world.state(A) == state
    world.again()
    assert world.state(A) == state


def test_too_many_requests_make_the_host_wait(world):
    crawl = world.open(politeness=Politeness(delay=0.0, in_flight=9))
    crawl.seed([A, "http://a.com/x", B])
    leases = {lease.url: lease for lease in crawl.next(1)}
    crawl.failed(leases[A], status=429, retry_after="120")
    assert world.urls(9) == [B]
    assert dict(crawl.why("http://a.com/x").reasons)["a.com due in, seconds"] == 120
    crawl = world.again()  # a host's word holds after a restart
    world.clock.now += 119
    assert crawl.next(9) == []
    assert crawl.due_in() == 1
    world.clock.now += 1
    assert sorted(world.urls(9)) == [A, "http://a.com/x"]
    assert crawl.crawled(A)
    assert crawl.page(A).state == "crawled"


def test_a_page_that_was_crawled_meanwhile_is_not_tried_again(world):
    """A lease ran out; its successor failed and is to be tried again; then the first one answers after all."""
    crawl = world.open(lease_seconds=100, retry_seconds=60)
    crawl.seed([A])
    early = crawl.next(1)[0]
    world.clock.now += 100
    crawl.failed(crawl.next(1)[0], "reset")
    assert crawl.crawled(early)
    world.clock.now += 1000
    assert crawl.next(1) == []
    assert crawl.due_in() is None


def test_dead_hosts_come_last_and_are_parked(world):
    polite = Politeness(delay=0.0, in_flight=1, park_after=3, park_seconds=1000)
    crawl = world.open(politeness=polite, retry_seconds=1, max_retries=50, policy="best-first")
    crawl.seed(
        [(f"http://dead.com/{k}", 0.8) for k in range(9)] + [(f"http://good.com/{k}", 0.3) for k in range(4)]
    )
    assert world.urls(1)[0].startswith("http://dead.com/")
    crawl.failed("http://dead.com/0", "no route")
    world.clock.now += 1
    leases = crawl.next(1)
    assert leases[0].url.startswith("http://dead.com/")  # 0.8 / 2 is above 0.3
    crawl.failed(leases[0], "no route")
    world.clock.now += 2
    good, dead = crawl.next(2)  # 0.8 / 3 is below
    assert (good.url, dead.url) == ("http://good.com/0", "http://dead.com/0")
    crawl.failed(dead, "no route")
    crawl.crawled(good)
    assert dict(crawl.why("http://dead.com/5").reasons)["dead.com due in, seconds"] == 1000
    crawl = world.again()
    world.clock.now += 999
    assert [url.split("/")[2] for url in world.urls(9)] == ["good.com"]
    world.clock.now += 1
    lease = crawl.next(9)[0]
    assert lease.url.startswith("http://dead.com/")
    crawl.crawled(lease)  # it lives
    assert dict(crawl.why("http://dead.com/5").reasons)["dead.com due in, seconds"] == 0
    assert not any("in a row" in name for name, _ in crawl.why("http://dead.com/5").reasons)


# -- politeness -----------------------------------------------------------------------------------------------------


def test_delay_and_in_flight(world):
    crawl = world.open(politeness=Politeness(delay=2.0, in_flight=2))
    crawl.seed([f"http://a.com/{k}" for k in range(4)])
    first = crawl.next(9)
    assert len(first) == 1
    assert crawl.due_in() == 2
    world.clock.now += 2
    assert len(crawl.next(9)) == 1
    world.clock.now += 2
    assert crawl.next(9) == []  # two are out
    crawl.crawled(first[0])
    assert len(crawl.next(9)) == 1


def test_politeness_by_domain(world):
    crawl = world.open(politeness=Politeness(by="domain", delay=5.0, in_flight=9))
    crawl.seed(["http://a.x.co.uk/", "http://b.x.co.uk/", "http://y.co.uk/"])
    assert world.urls() == ["http://a.x.co.uk/", "http://y.co.uk/"]
    assert crawl.due_in() == 5
    world.clock.now += 5
    assert world.urls() == ["http://b.x.co.uk/"]


@pytest.mark.parametrize("reopen", [False, True])
def test_budgets_are_pages_of_a_host_and_of_a_domain(world, reopen):
    crawl = world.open(politeness=Politeness(delay=0.0, in_flight=99, host_budget=3, domain_budget=4))
    crawl.seed([f"http://{host}.a.com/{k}" for host in ("x", "y") for k in range(9)] + [B])
    taken = []
    for _ in range(20):
        for lease in crawl.next(2):
            taken.append(lease.url)
            crawl.crawled(lease)
        if reopen:
            crawl = world.again()
    hosts = Counter(url.split("/")[2] for url in taken)
    assert hosts == {"x.a.com": 3, "y.a.com": 1, "b.com": 1}
    assert crawl.due_in() is None
    reasons = dict(crawl.why("http://y.a.com/8").reasons)
    assert reasons["budget left, pages"] == 2
    assert reasons["budget left of its domain, pages"] == 0


def test_what_was_given_back_costs_no_budget(world):
    crawl = world.open(politeness=Politeness(delay=0.0, host_budget=1))
    crawl.seed([A])
    crawl.release(crawl.next(1)[0])
    assert world.urls() == [A]


def test_a_second_try_costs_no_budget(world):
    crawl = world.open(politeness=Politeness(delay=0.0, host_budget=1), retry_seconds=1)
    crawl.seed([A])
    crawl.failed(crawl.next(1)[0], "reset")
    world.clock.now += 10
    assert world.urls() == [A]


# -- rules ----------------------------------------------------------------------------------------------------------


def test_rules_exclude(world):
    crawl = world.open(rules=Rules(deny=[r"[.]png$", "host:b.com"], max_depth=1))
    crawl.seed([A, B])
    assert world.state(B) == "excluded"
    crawl.crawled(crawl.next(9)[0], ["/x", "/y.png", "http://b.com/z"])
    assert [world.state(url) for url in ("http://a.com/x", "http://a.com/y.png", "http://b.com/z")] == [
        "discovered", "excluded", "excluded",
    ]  # fmt: skip
    crawl = world.again()
    crawl.crawled(crawl.next(9)[0], ["/deep"])
    assert world.state("http://a.com/deep") == "excluded"
    assert crawl.next(9) == []
    assert crawl.due_in() is None


def test_a_crash_between_two_events_lets_nothing_forbidden_through(world):
    """The last event, which says what is excluded, did not come through; the one before, with the links, did."""
    rules = Rules(deny=["/no"])
    crawl = world.open(rules=rules)
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], ["/no", "/yes"])
    place = crawl.pages.frames_of_kind(kinds.EXCLUDE)[-1]
    world.close()
    events = world.folder / logs.EVENTS
    events.write_bytes(events.read_bytes()[:place])
    world.again()
    assert world.urls() == ["http://a.com/yes"]


# -- merging --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["redirected_to", "canonical_link"])
def test_merged_pages_keep_their_inlinks(world, how):
    crawl = world.open(policy="pagerank")
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], ["/old", "/new", "/other"])
    old, new, other = crawl.pages.find([A + "old", A + "new", A + "other"]).tolist()
    shares = crawl.frontier.policy.shares
    had = float(shares[new]) + 0.85 * (0.15 + float(shares[old]))  # in the graph, a page with one link
    assert crawl.crawled(A + "old", ["/other"], **{how: "/new"})
    page = crawl.page(A + "old")
    assert (page.state, page.merged_into) == ("merged", A + "new")
    page = crawl.page(A + "new")
    assert (page.state, page.crawls) == ("crawled", 1)
    assert float(shares[new]) == pytest.approx(had)
    assert crawl.pages.survivor(old) == new
    assert crawl.pages.inlinks(new).tolist() == [0, old]
    assert crawl.pages.links(new).tolist() == [other]
    assert crawl.pages.links(old).tolist() == []
    assert world.urls() == [A + "other"]
    crawl = world.again()
    assert crawl.page(A + "old").merged_into == A + "new"
    assert float(crawl.frontier.policy.shares[new]) == pytest.approx(had)
    assert crawl.next(9) == []


def test_redirects_to_new_pages_chains_and_loops(world):
    crawl = world.open()
    crawl.seed([A, B, C])
    a, b, c = crawl.next(3)
    assert crawl.crawled(a, redirected_to=B)  # b is merged into nothing, though it is leased
    assert not crawl.crawled(b)  # its visit was a's
    assert crawl.crawled(c, redirected_to=A)  # a is merged: its survivor is meant
    assert crawl.page(C).merged_into == B
    assert crawl.page(B).crawls == 2
    assert crawl.crawled(B, redirected_to=A)  # a loop: b stays what it is
    assert (world.state(B), crawl.page(B).crawls) == ("crawled", 3)
    assert crawl.crawled(B, redirected_to=B)
    assert crawl.crawled(B, redirected_to="http://d.com/x", links=["y"])
    assert crawl.page(A).merged_into == crawl.page(B).merged_into == "http://d.com/x"
    assert crawl.page("http://d.com/y").state == "discovered"
    crawl = world.again()
    assert crawl.page(C).merged_into == "http://d.com/x"
    assert world.urls() == ["http://d.com/y"]


@pytest.mark.parametrize(("page", "other"), [
    ("http://a.com/x", "http://b.com/"), ("http://10.0.0.1/x", "http://10.0.0.2/"),
    ("http://[::1]/x", "http://[2001:db8::1]/"), ("http://a.com/x", "mailto:me"), ("http://a.co.uk/", "http://b.co.uk/"),
])  # fmt: skip
def test_another_sites_word_for_canonical_does_not_count(world, page, other):
    crawl = world.open()
    crawl.seed([page])
    crawl.crawled(crawl.next(1)[0], canonical_link=other)
    assert world.state(page) == "crawled"
    assert crawl.page(other) is None


def test_canonical_within_a_domain_counts(world):
    crawl = world.open()
    crawl.seed(["http://m.a.co.uk/x"])
    crawl.crawled(crawl.next(1)[0], canonical_link="https://www.a.co.uk/x")
    assert crawl.page("http://m.a.co.uk/x").merged_into == "https://www.a.co.uk/x"


def test_links_are_relative_to_what_was_fetched(world):
    """A canonical link names the page; the base of its links is still the URL that answered."""
    crawl = world.open()
    crawl.seed([A + "print/x", B])
    a, b = crawl.next(2)
    crawl.crawled(a, ["y"], canonical_link="/story/x")
    assert crawl.page(A + "print/y") is not None
    assert crawl.page(A + "story/y") is None
    crawl.crawled(b, ["y"], redirected_to="/deep/x")
    assert crawl.page(B + "deep/y") is not None


# -- what is known of pages -----------------------------------------------------------------------------------------


def test_changes_are_counted_by_hash(world):
    crawl = world.open()
    crawl.seed([A])
    for number, (content, changes) in enumerate([(b"1", 0), (b"1", 0), (b"2", 1), (b"1", 2)]):
        world.clock.now += 10
        crawl.crawled(A, content_hash=content, status=206, score=0.5)
        page = crawl.page(A)
        assert (page.crawls, page.changes, page.content_hash, page.status) == (
            number + 1,
            changes,
            content,
            206,
        )
        assert page.last_crawl == world.clock.now
        assert page.first_crawl == 1_000_010
        if number == 1:
            crawl = world.again()


def test_a_long_hash_is_kept_as_far_as_it_goes(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.crawled(A, content_hash=b"x" * 300)
    crawl.crawled(A, content_hash=b"x" * 300)
    assert (crawl.page(A).changes, crawl.page(A).content_hash) == (0, b"x" * 255)


def test_a_second_crawl_replaces_the_links(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.crawled(A, ["/1", "/2", "/2"])
    assert crawl.pages.links(0).tolist() == [1, 2]
    crawl.crawled(A, ["/3", "/1"])
    assert crawl.pages.links(0).tolist() == [1, 3]
    assert crawl.pages.inlinks(2).tolist() == []
    crawl.crawled(A, [])
    assert crawl.pages.links(0).tolist() == []
    assert world.state(A + "2") == "discovered"


def test_scores_of_links_and_of_content(world):
    crawl = world.open(policy="best-first")
    crawl.seed([A, (B, 0.25)])
    assert crawl.page(A).score == 1.0
    crawl.crawled(A, [("/x", 0.5), ("/y", 0.75), ("/x", 0.625), "/z"])
    assert [crawl.page(A + path).score for path in "xyz"] == [0.625, 0.75, 0.0]
    crawl.crawled(B, [(A + "x", 0.875), (A + "y", 0.5), (A, 0.9)], score=0.125)
    assert [crawl.page(A + path).score for path in "xyz"] == [0.875, 0.75, 0.0]
    assert [crawl.page(url).score for url in (A, B)] == [0.0, 0.125]  # their content's
    crawl = world.again()
    assert world.urls() == [A + "x", A + "y", A + "z"]
    crawl.crawled(A + "x", score=0.375)
    assert crawl.page(A + "x").score == 0.375


def test_depth_and_where_it_was_linked_from(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.crawled(A, ["/1"])
    crawl.crawled(A + "1", ["/2", "/1"])
    crawl.crawled(A + "2", ["/1", "/"])
    for url, depth, source in ((A, 0, None), (A + "1", 1, A), (A + "2", 2, A + "1")):
        assert (crawl.page(url).depth, crawl.page(url).linked_from) == (depth, source)
    assert crawl.page("http://never.com/") is None


def test_refused_urls_are_counted_by_reason(world):
    crawl = world.open()
    crawl.seed([A, "mailto:x", "javascript:void(0)", "no url", "http://a.com/" + "x" * 3000, "http://a b/"])
    assert crawl.refused == {
        "link is not http": 2,
        "link is relative, with nothing to resolve it against": 1,
        "link is longer than 2,048 bytes": 1,
        "link is no valid URL": 1,
    }
    crawl.crawled(A, ["ftp://a.com/", "http://[/", "x"])
    assert crawl.refused["link is not http"] == 3
    assert crawl.refused["link is no valid URL"] == 2
    assert crawl.pages.num_pages == 2


def test_the_given_form_of_a_seed_is_kept(world):
    crawl = world.open()
    odd = "http://A.com/" + "\t" * 5000 + "ü"
    crawl.seed([odd, "HTTP://b.com/é"])
    before = dict(crawl.pages.given)
    assert before[1] == "HTTP://b.com/é"
    crawl = world.again()
    assert crawl.pages.given == before


def test_a_clock_that_goes_back_is_not_believed(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A])
    lease = crawl.next(1)[0]
    world.clock.now -= 5000
    assert crawl.due_in() == 100
    crawl.crawled(lease)
    assert crawl.page(A).last_crawl == world.clock.now + 5000
    crawl = world.again()
    crawl.crawled(A)
    page = crawl.page(A)
    assert page.last_crawl >= page.first_crawl


# -- the order ------------------------------------------------------------------------------------------------------

WEB = {
    A: [A + "1", A + "2", B],
    A + "1": [A + "3", B + "1"],
    A + "2": [A + "3", A + "4"],
    B: [B + "1", C],
    A + "3": [],
    A + "4": [C, C + "1"],
    B + "1": [],
    C: [C + "1"],
    C + "1": [A],
}


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("reopen", [False, True])
def test_every_policy_crawls_everything_once(world, policy, reopen):
    crawl = world.open(policy=policy)
    crawl.seed([A])
    seen = []
    while leases := world.crawl.next(2):
        for lease in leases:
            seen.append(lease.url)
            world.crawl.crawled(lease, WEB[lease.url])
        if reopen:
            world.again()
    assert sorted(seen) == sorted(WEB)
    assert seen[0] == A
    assert world.crawl.due_in() is None


def one_by_one(world, policy, web=None, seeds=(A,), **given):
    web = WEB if web is None else web
    crawl = world.open(policy=policy, **given)
    crawl.seed(seeds)
    seen = []
    while leases := crawl.next(1):
        seen.append(leases[0].url)
        crawl.crawled(leases[0], web.get(leases[0].url, []))
    return seen


def test_breadth_first_is_exact(world):
    assert one_by_one(world, "breadth-first") == [
        A, A + "1", A + "2", B, A + "3", B + "1", A + "4", C, C + "1",
    ]  # fmt: skip


def test_depth_first_takes_what_was_found_last(world):
    assert one_by_one(world, "depth-first") == [
        A, B, C, C + "1", B + "1", A + "2", A + "4", A + "3", A + "1",
    ]  # fmt: skip


def test_first_come_is_the_order_of_discovery(world):
    assert one_by_one(world, "first-come") == [
        A, A + "1", A + "2", B, A + "3", B + "1", A + "4", C, C + "1",
    ]  # fmt: skip


def test_fifo_takes_hosts_in_turns(world):
    crawl = world.open(policy="fifo")
    crawl.seed([A + "1", A + "2", A + "3", B + "1", B + "2", C + "1"])
    assert world.urls(6) == [A + "1", B + "1", C + "1", A + "2", B + "2", A + "3"]
    crawl.seed([A + "4", "http://d.com/"])
    assert world.urls(6) == ["http://d.com/", A + "4"]  # which has had no turn yet


def test_best_first_is_by_score(world):
    scores = {f"{A}{k}": (k * 5 % 9) / 16 for k in range(9)}
    crawl = world.open(policy="best-first")
    crawl.seed(list(scores.items()))
    assert world.urls(9) == sorted(scores, key=lambda url: -scores[url])
    assert crawl.next(1) == []


def test_opic_hands_cash_on(world):
    """A has 1, gives 1/2 to x and y each; B has 1 and gives all to y: y 1.5, x 0.5."""
    web = {A: [A + "x", A + "y"], B: [A + "y"]}
    assert one_by_one(world, "opic", web, [A, B]) == [A, B, A + "y", A + "x"]
    assert math.fsum(world.crawl.frontier.policy.cash[:4].tolist()) == pytest.approx(2)
    crawl = world.again()
    assert crawl.frontier.policy.cash[:4].tolist() == pytest.approx([0, 0, 0.5, 1.5])


def test_pagerank_pushes_as_a_hand_would(world):
    crawl = world.open(policy="pagerank", damping=0.5)
    crawl.seed([A])
    teleport, rank = 0.5, Counter()
    order = [A, A + "2", A + "1", B]
    known = [A]
    for url in order:
        share = 0.5 * (rank[url] + teleport) / len(WEB[url])
        for link in WEB[url]:
            rank[link] += share
        known += [link for link in WEB[url] if link not in known]
        crawl.crawled(url, WEB[url])
    found = [crawl.frontier.policy.shares[page] + teleport for page in range(len(known))]
    assert found == pytest.approx([rank[url] + teleport for url in known])
    left = sorted(
        (url for url in known if url not in order), key=lambda url: (-np.float32(rank[url]), known.index(url))
    )
    assert world.urls() == left
    assert dict(crawl.why(left[0]).reasons)["rank, un-normalised"] == pytest.approx(rank[left[0]] + teleport)


def test_pagerank_with_scores_and_across_hosts_only(world):
    crawl = world.open(policy="pagerank", use_scores=True, cross_domain_only=True)
    crawl.seed([A])
    crawl.crawled(A, [(A + "in", 0.9), (B, 0.1), (C, 0.1)], score=1.0)
    shares = crawl.frontier.policy.shares[:4].tolist()
    assert shares[1] == 0  # within the host
    assert shares[2] == shares[3] == pytest.approx(0.85 * 0.15 / 2, rel=1e-4)
    assert world.urls() == [A + "in", B, C]  # 0.15·0.9 of its own is more than 0.15·0.1 + 0.06


def test_host_diverse_spreads(world):
    """Nine pages of one host of which each has more rank than any of the other hosts."""
    crawl = world.open(policy="host-diverse")
    crawl.seed([A])
    crawl.crawled(A, [f"{B}{k}" for k in range(9)] + [f"http://h{k}.com/" for k in range(4)])
    crawl.seed(["http://s.com/"])
    crawl.crawled("http://s.com/", [f"{B}{k}" for k in range(9)])
    hosts = [url.split("/")[2] for url in world.urls(6)]
    assert hosts[0] == "b.com"
    assert sorted(hosts[1:5]) == ["b.com", *(f"h{k}.com" for k in range(3))] or set(hosts[1:]) > {
        "h0.com",
        "h1.com",
    }
    assert hosts.count("b.com") <= 3
    world.close()


def test_random_scatters_and_stays(world):
    crawl = world.open(policy="random")
    urls = [f"{A}{k}" for k in range(50)]
    crawl.seed(urls)
    first = world.urls(25)
    assert first != urls[:25]
    assert len({url for url in first if urls.index(url) >= 25}) > 3
    crawl = world.again()
    for url in first:
        crawl.release(url)
    assert world.urls(25) == first


class Longest(Policy):
    """A user's own: the longest URL first; and counts what it is told."""

    name = "longest"

    def __init__(self, pages, settings):
        super().__init__(pages, settings)
        self.told = Counter()
        self.made_known = 0

    def fold(self, events):
        for event in events:
            self.told[event.kind] += 1
            assert event.first == self.made_known
            self.made_known += event.new

    def priority(self, pages):
        return np.array([len(self.pages.url(int(page))) for page in pages], np.float32)

    def explain(self, page):
        return [("characters", float(len(self.pages.url(page))))]


def test_a_users_policy_lives_and_comes_back(world):
    crawl = world.open(policy=Longest)
    crawl.seed([A, B + "longer"])
    lease = crawl.next(1)[0]
    assert lease.url == B + "longer"
    crawl.crawled(lease, ["/12345678", "/1"])
    told = crawl.frontier.policy.told
    assert told == {"seed": 1, "lease": 1, "visit": 1}
    crawl = world.again()
    assert crawl.frontier.policy.told == told
    assert crawl.frontier.policy.made_known == crawl.pages.num_pages == 4
    assert dict(crawl.why(B + "1").reasons)["characters"] == len(B + "1")
    seen = look(world.folder, world.clock)  # where that class is not at hand, the order is not its
    assert seen.policy.name == "first-come"
    seen.pages.close()
    assert world.urls() == [B + "12345678", B + "1", A]


def test_unknown_settings_are_refused_in_one_line(world):
    for bad in ({"policy": "best"}, {"sync": "never"}, {"lease_seconds": 0}):
        with pytest.raises(ParameterError) as error:
            world.open(**bad)
        assert "\n" not in str(error.value)
    world.open()


# -- why ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        *(one for one in STATIC if one != "fifo"),
        "host-diverse",
        "pagerank",
        "fifo",
    ],
)
@settings(max_examples=12)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8)), min_size=1, max_size=12), st.integers(0, 4))
def test_why_tells_the_place_that_next_keeps(tmp_path_factory, policy, links, taken):
    crawl = opened(tmp_path_factory.mktemp("why") / "c", Clock(), policy=policy)
    with crawl:
        crawl.seed([A])
        crawl.crawled(A, [(f"http://h{host}.com/", host / 8) for host in range(4)])
        crawl.crawled(A, [(f"http://h{host}.com/{k}", (host + k) / 16) for host, k in links])
        crawl.next(taken)
        pages = [page for page in range(crawl.pages.num_pages) if page in crawl.frontier.queue]
        places = {crawl.pages.url(page): crawl.why(crawl.pages.url(page)).place for page in pages}
        order = []
        while leases := crawl.next(1):
            order.append(leases[0].url)
        assert [places[url] for url in order] == list(range(1, len(order) + 1))


def test_why_has_each_reason(world):
    polite = Politeness(delay=0.0, in_flight=1, host_budget=9, domain_budget=99, park_after=50)
    crawl = world.open(policy="host-diverse", politeness=polite, retry_seconds=50, lease_seconds=100)
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], [("/x", 0.5), "/a/b/a/b/a/b/a/b/", B, C])
    crawl.failed(crawl.next(1)[0], "no route")
    first = crawl.why(A + "x") if crawl.page(A + "x").errors else crawl.why(B)
    reasons = dict(crawl.why(A + "x").reasons)
    assert "policy host-diverse" in reasons
    assert reasons["score"] == 0.5
    assert reasons["depth"] == 1
    assert reasons["budget left, pages"] in (8, 7)
    assert reasons["rank, un-normalised"] == pytest.approx(0.15 + 0.85 * 0.15 / 4)
    assert any(name.startswith("pages taken from a.com") for name in reasons)
    assert crawl.why(A + "x").inlinks == [(A, pytest.approx(0.15 / 4))]
    trapped = dict(crawl.why(A + "a/b/a/b/a/b/a/b/").reasons)
    assert any(name.startswith("trap rule 'repeated segment'") for name in trapped)
    assert "trap penalty, all told" in trapped
    failed = next(url for url in (A + "x", B, C) if crawl.page(url).errors)
    reasons = dict(crawl.why(failed).reasons)
    assert reasons["tried again in, seconds"] == 50
    assert reasons["failures in a row"] == 1
    assert any("of " in name and "in a row" in name for name in reasons)
    assert crawl.why(failed).place is None
    assert first.url in str(first)
    lease = crawl.next(1)[0]
    world.clock.now += 30
    why = crawl.why(lease.url)
    assert dict(why.reasons)["lease runs out in, seconds"] == 70
    assert dict(why.reasons)["leased, number"] == lease.number
    assert why.state == "leased"
    assert why.place is None
    assert "leased, does not wait" in str(why)
    crawl.crawled(lease, redirected_to="http://z.com/")
    assert dict(crawl.why(lease.url).reasons)["merged into"] == "http://z.com/"
    with pytest.raises(UnknownNodeError):
        crawl.why("http://never.com/")


def test_looking_sees_what_the_crawl_sees(world):
    crawl = world.open(policy="breadth-first")
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], WEB[A])
    crawl.next(1)
    seen = look(world.folder, world.clock)
    now = world.clock.now
    assert [row[0] for row in seen.queue.order(99, now)] == [
        row[0] for row in crawl.frontier.queue.order(99, now)
    ]
    assert len(seen.leases) == 1
    seen.pages.close()
    with pytest.raises(FolderError):
        look(world.folder / "none")


# -- revisits -------------------------------------------------------------------------------------------------------


def test_a_crawled_page_is_not_fetched_again_unless_asked(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], ["/", A])
    world.clock.now += 1e9
    assert crawl.next(1) == []
    crawl.seed([A])
    assert crawl.next(1) == []
    assert crawl.due_in() is None


def test_schedules_bring_pages_back(world):
    crawl = world.open(revisit=FixedInterval(100))
    crawl.seed([A])
    for crawls in range(3):
        lease = crawl.next(1)[0]
        assert lease.crawls == crawls
        crawl.crawled(lease)
        assert crawl.due_in() == 100
        world.clock.now += 60
        assert crawl.next(1) == []
        if crawls == 1:
            crawl = world.again()
        assert crawl.due_in() == 40
        world.clock.now += 40
    assert crawl.page(A).crawls == 3


def test_a_page_crawled_early_is_due_later(world):
    crawl = world.open(revisit=FixedInterval(100))
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0])
    world.clock.now += 90
    crawl.crawled(A)
    world.clock.now += 50
    assert crawl.next(1) == []
    assert crawl.due_in() == 50


def test_a_revisit_that_fails_waits_as_long_after_reopening(world):
    crawl = world.open(revisit=FixedInterval(100), retry_seconds=1000)
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0])
    world.clock.now += 100
    crawl.failed(crawl.next(1)[0], "reset")
    assert crawl.due_in() == 1000
    crawl = world.again()
    assert crawl.due_in() == 1000


def test_sitemaps(world):
    crawl = world.open(policy="best-first")
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0])
    world.clock.now += 100
    assert crawl.sitemap([(A, world.clock.now - 200, 0.9), (B, None, 0.25), (C, 5.0, None)]) == 2
    assert world.urls() == [C, B]  # A has not changed since
    assert crawl.sitemap([(A, world.clock.now - 10, 0.9), ("mailto:x", 5.0, None)]) == 0
    crawl = world.again()
    assert world.urls() == [A]


# -- odd input ------------------------------------------------------------------------------------------------------

ODD = [
    "", " ", "#", "?", "/", "//", "///", "x", "../../..", "http:", "http://", "http:///", "https:x", "//b.com", "?q",
    "http://a.com/\ud800", "\udc80", "/\udfff/x", "http://a.com/new\nline", "\n", "a\nb\nc", "\thttp://b.com/\r\n",
    "http://a.com/" + "x" * 70_000, "x" * 70_000, "data:image/png;base64," + "A" * 70_000, "javascript:alert(1)",
    "http://a.com:99999/", "http://[::1", "http://[::1]:8/", "http://a.com\\b", "http://ü.com/ö?ä", "http://a.com/%zz",
    "/%e4%f6", "/\x00", "\x7f", "http://a..com/", "http://256.256.256.256/", "http://1.2/", "http://xn--/", "HTTP://A.COM",
    "http://user:pw@a.com/", "http://a.com:80", "http://a.com/a/./b/../c", "\ufeffhttp://a.com/", "http://a.com/\u202e",
    "http://a.com/ x y ", "http://" + "a" * 300 + ".com/", "http://a.com/#" + "f" * 5000,
]  # fmt: skip


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.sampled_from(ODD), st.text(st.characters(), max_size=12)), max_size=12),
    st.booleans(),
)
def test_no_link_breaks_a_crawl(tmp_path_factory, links, scored):
    folder, clock = tmp_path_factory.mktemp("odd") / "c", Clock()
    given_ = [(link, 0.5) if scored and k % 2 else link for k, link in enumerate(links)]
    with opened(folder, clock, policy="first-come") as crawl:
        crawl.seed([A])
        crawl.seed(given_)
        crawl.crawled(A, given_)
        crawl.crawled(A, given_[::-1])
        assert len(crawl.pages.links(0)) + sum(crawl.refused.values()) <= 3 * len(links) + 1
        urls = crawl.pages.urls(list(range(crawl.pages.num_pages)))
        assert len(set(urls)) == len(urls)
        assert crawl.pages.find(urls).tolist() == list(range(len(urls)))
        assert all(url.isascii() and " " not in url and "\n" not in url for url in urls)
        links_then = crawl.pages.links(0).tolist()
    with opened(folder, clock, policy="first-come") as crawl:
        assert crawl.pages.urls(list(range(crawl.pages.num_pages))) == urls
        assert crawl.pages.links(0).tolist() == links_then


def test_all_odd_links_at_once(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.crawled(A, ODD)
    known = crawl.pages.num_pages
    assert sum(crawl.refused.values()) >= 10
    crawl.crawled(A, iter([(link, 0.5) for link in ODD]))
    assert crawl.pages.num_pages == known
    assert crawl.page("http://a.com/newline") is not None  # as browsers have it
    assert crawl.page("http://a.com/abc") is not None


def test_a_million_links_on_one_page(world):
    crawl = world.open()
    crawl.seed([A])
    links = [f"http://a.com/{k}" for k in range(1_000_000)]
    assert crawl.crawled(crawl.next(1)[0], links)
    assert crawl.pages.num_pages == 1_000_001
    assert len(crawl.pages.links(0)) == 1_000_000
    assert crawl.crawled(A, [(links[k], 0.5) for k in (999_999, 0, 500_000)])
    assert crawl.pages.links(0).tolist() == [1, 500_001, 1_000_000]
    assert crawl.page(links[777_777]).linked_from == A
    crawl = world.again()
    assert crawl.pages.find([links[999_999]]).tolist() == [1_000_000]
    assert len(crawl.next(1000)) == 1000


BAD = [
    {"score": 1e300},
    {"score": None},
    {"score": "0.5"},
    {"status": -1},
    {"status": 70_000},
    {"status": None},
    {"content_hash": "text"},
    {"links": [("/x", "high")]},
    {"links": [("/x", None)]},
    {"links": [5]},
    {"links": [("/x", 1.0, 2.0)]},
]


def in_the_folder(world):
    """What the crawl knows stands in its folder, no more and no less."""
    reader = Reader(world.folder)
    assert reader.num_pages == world.crawl.pages.num_pages
    assert reader.pages.urls_end == world.crawl.pages.urls_end
    reader.close()


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_bad_argument_does_no_harm(world, bad):
    """Who catches the error and goes on, page by page, must not have a crawl whose numbers and URLs fall apart."""
    crawl = world.open()
    crawl.seed([A, B])
    with contextlib.suppress(Exception):  # whether it is refused, and how, is not this test's business
        crawl.crawled(A, **{"links": ["/1", "/2"], **bad})
    crawl.crawled(B, ["/3", "/4"])
    crawl.crawled(A, ["/5", "http://b.com/4"])
    in_the_folder(world)
    urls = crawl.pages.urls(list(range(crawl.pages.num_pages)))
    assert crawl.pages.find(urls).tolist() == list(range(len(urls)))
    crawl = world.again()
    assert crawl.pages.urls(list(range(crawl.pages.num_pages))) == urls
    assert crawl.pages.urls(crawl.pages.links(1)) == [B + "3", B + "4"]


@pytest.mark.parametrize("bad", [(B, "high"), (B, None)], ids=str)
def test_a_bad_seed_does_no_harm(world, bad):
    crawl = world.open()
    with contextlib.suppress(Exception):
        crawl.seed([A, bad])
    crawl.seed([C])
    in_the_folder(world)
    crawl.crawled(C, ["/x"])
    assert crawl.pages.urls(crawl.pages.links(int(crawl.pages.find([C])[0]))) == [C + "x"]


def test_a_score_that_is_no_number_spoils_no_order(world):
    crawl = world.open(policy="pagerank", use_scores=True)
    crawl.seed([A])
    try:
        crawl.crawled(A, [(A + str(k), k / 8) for k in range(8)], score=math.nan)
    except ParameterError:
        crawl.crawled(A, [(A + str(k), k / 8) for k in range(8)])
    assert world.urls() == [A + str(k) for k in reversed(range(8))]


def test_failed_takes_any_text(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.failed(A, "ü\ud800" * 1000, retry_after="\ud800 never")
    error = crawl.page(A).error
    assert error.startswith("ü?ü?")
    assert len(error) <= 500
    crawl = world.again()
    assert crawl.page(A).error == error


# -- folders --------------------------------------------------------------------------------------------------------


def test_a_second_crawl_is_refused(world):
    crawl = world.open()
    with pytest.raises(InUseError, match=rf"is being crawled by process {os.getpid()}:"):
        opened(world.folder, world.clock)
    crawl.seed([A])
    assert world.urls() == [A]


def test_closing_twice_is_no_harm(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.close()
    crawl.close()
    world.again()


def test_another_folder_is_left_as_it_is(tmp_path):
    from inlink.base.folder import building

    with building(tmp_path / "graph", "graph", 1) as writer:
        writer.write("offsets", np.zeros(1, np.uint64))
    before = sorted(path.name for path in (tmp_path / "graph").rglob("*"))
    with pytest.raises(FolderError):
        Crawl(tmp_path / "graph")
    assert sorted(path.name for path in (tmp_path / "graph").rglob("*")) == before
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FolderError):
        Crawl(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"

"""An operator's settings for a host: a block, another delay, a budget."""

import math
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlstrategies import Clock, differences, histories, opened, perform, stored_pages, whole
from crawlworld import A, B
from inlink.crawl.crawl import Crawl
from inlink.crawl.folder import look
from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier.hosts import HostState
from inlink.frontier.settings import Politeness
from inlink.protocol import Standing
from inlink.store.format import HOST_SET, HostSetRecord, salt_of, struct_of
from inlink.store.log import EVENTS, URLS
from inlink.store.reader import hash_seed_of
from wildframes import refused_when_wild, resealed

AT_ONCE = Politeness(delay=0, in_flight=9)
INF = math.inf


def pages(host: str, count: int) -> list[str]:
    return [f"http://{host}/{k}" for k in range(count)]


# -- blocks ---------------------------------------------------------------------------------------------------------


def test_a_block_ends_by_itself(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([*pages("a.com", 2), B])
    state = crawl.set_host("a.com", block=60)
    assert (state.blocked_for, state.due_in, state.set_by_operator) == (60, 60, ("block",))
    assert world.urls() == [B]
    assert "next fetch in 60.0 s, blocked by an operator until then" in str(crawl.why("http://a.com/0"))
    crawl.release_all()
    crawl = world.again()
    world.clock.now += 59
    assert [crawl.crawled(lease) for lease in crawl.next(9)] == [True]
    assert crawl.due_in() == 1
    world.clock.now += 1
    assert world.urls() == pages("a.com", 2)
    assert crawl.view.hosts().rows[0].set_by_operator == ()


@pytest.mark.parametrize("reopened", [False, True])
def test_a_host_that_is_blocked_for_ever_is_asked_once_the_block_is_lifted(world, reopened):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([*pages("a.com", 2), B])
    leases = crawl.next(1)
    assert crawl.set_host("http://a.com/not/known?x#y", block=INF).due_in is None
    assert crawl.crawled(leases[0], ["http://a.com/new"])  # tasks that are out go on
    if reopened:
        crawl = world.again()
    assert [row.url for row in crawl.view.order().rows] == [B]
    assert [crawl.crawled(lease) for lease in crawl.next(9)] == [True]
    assert crawl.due_in() is None  # only the operator can lead to more
    assert crawl.view.hosts().rows[0].blocked_for is None
    assert "blocked by an operator" in str(crawl.why("http://a.com/1"))
    standing = crawl.standing()
    assert msgspec.json.decode(msgspec.json.encode(standing), type=Standing) == standing
    hosts = crawl.view.hosts().rows
    assert msgspec.json.decode(msgspec.json.encode(hosts), type=list[HostState]) == hosts
    world.clock.now += 1e8
    assert crawl.next(9) == []
    assert crawl.set_host("a.com", block=0).due_in == 0
    if reopened:
        crawl = world.again()
    assert world.urls() == ["http://a.com/1", "http://a.com/new"]


def test_no_redirect_leads_to_a_closed_host(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed(["http://b.com/1", "http://b.com/2", "http://b.com/3", A])
    one, two, three, self = crawl.next(9)
    crawl.set_host("a.com", block=10)
    assert crawl.redirected(one, "http://a.com/new") is None
    assert crawl.redirected(self, A) is None  # it is to be asked again with a cookie
    crawl.set_host("b.com", budget=0)
    assert crawl.redirected(two, "http://b.com/new") is None
    assert crawl.redirected(three, "http://b.com/3") is None
    before = whole(crawl)
    crawl = world.again()
    assert differences(before, whole(crawl)) == {}
    world.clock.now += 10
    # A page that was given back is not one more.
    assert sorted(world.urls()) == [A, "http://a.com/new", "http://b.com/3"]
    crawl.set_host("b.com", budget=None)
    assert world.urls() == ["http://b.com/new"]


def test_a_lost_page_of_a_blocked_host_waits(world):
    crawl = world.open(politeness=AT_ONCE, lease_seconds=10)
    crawl.seed([A])
    crawl.next(1)
    world.lose(10)
    crawl.set_host("a.com", block=INF)
    assert (crawl.next(9), crawl.due_in()) == ([], None)
    crawl = world.again()
    assert (crawl.next(9), crawl.due_in()) == ([], None)
    crawl.set_host("a.com", block=0)
    assert world.urls() == [A]


# -- delays ---------------------------------------------------------------------------------------------------------


def test_a_delay_may_be_shorter_than_robots_txt_asks_for(world):
    crawl = world.open(politeness=Politeness(delay=2))
    crawl.seed(pages("a.com", 9))
    lease = crawl.next(1)[0]
    assert crawl.host_delay(lease, 86_400)
    crawl.crawled(lease)
    assert crawl.due_in() == 86_400
    world.clock.now += 0.25
    state = crawl.set_host("a.com", delay=0.5)
    assert (state.delay, state.due_in, state.set_by_operator) == (0.5, 0.25, ("delay",))
    assert crawl.host_delay("http://a.com/1", 90_000)  # it is kept, and the operator is above it
    assert crawl.due_in() == 0.25
    crawl = world.again()
    assert crawl.due_in() == 0.25
    world.clock.now += 0.25
    crawl.crawled(crawl.next(9)[0])
    assert crawl.due_in() == 0.5
    state = crawl.set_host("a.com", delay=None)
    assert (state.delay, state.due_in, state.set_by_operator) == (90_000, 90_000, ())
    assert world.again().due_in() == 90_000


@pytest.mark.parametrize("reopened", [False, True])
def test_a_wait_that_a_host_asks_for_holds_under_any_delay(world, reopened):
    crawl = world.open(politeness=Politeness(delay=3))
    crawl.seed(pages("a.com", 3))
    crawl.failed(crawl.next(1)[0], status=429, retry_after=120)
    if reopened:
        crawl = world.again()
    assert crawl.set_host("a.com", delay=0).due_in == 120
    assert crawl.set_host("a.com", block=10).due_in == 120
    crawl.set_host("a.com", block=200)
    crawl.set_host("a.com", block=0)
    if reopened:
        crawl = world.again()
    assert crawl.due_in() == 120


def test_a_wait_that_a_host_asks_for_while_it_is_blocked_holds_after_the_block(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed(pages("a.com", 3))
    lease = crawl.next(1)[0]
    crawl.set_host("a.com", block=INF)
    crawl.failed(lease, status=429, retry_after=120)
    crawl = world.again()
    assert crawl.set_host("a.com", block=0).due_in == 120


def test_a_crawl_rate_holds_whatever_the_delay(world):
    crawl = world.open(politeness=Politeness(delay=100, hard_rate=0.1, rate_window=5))
    crawl.seed(pages("a.com", 3))
    crawl.crawled(crawl.next(1)[0])
    assert 9 < crawl.set_host("a.com", delay=0).due_in < 100


def test_the_default_does_not_hide_what_robots_txt_asks_for(world):
    """The delay of a host was written as the longer of both, and so outlived a settings' delay that was lowered."""
    crawl = world.open(politeness=Politeness(delay=50))
    crawl.seed([*pages("a.com", 3), B])
    crawl.host_delay("http://a.com/0", 5)
    crawl.failed(B, status=429, retry_after=1)
    crawl = world.open(politeness=Politeness(delay=1))
    assert [row.delay for row in crawl.view.hosts().rows] == [5, 1]


# -- budgets --------------------------------------------------------------------------------------------------------


def test_a_budget_counts_from_now_on(world):
    crawl = world.open(politeness=Politeness(delay=0, in_flight=99, host_budget=4))
    crawl.seed(pages("a.com", 20))
    assert [crawl.crawled(lease) for lease in crawl.next(3)] == [True] * 3
    assert crawl.view.hosts().rows[0].budget_left == 1
    assert crawl.set_host("a.com", budget=5).budget_left == 5
    first, *_ = crawl.next(2)
    crawl.release(first)
    crawl = world.again()
    state = crawl.view.hosts().rows[0]
    assert (state.budget_left, state.set_by_operator) == (4, ("budget",))
    assert len(world.urls()) == 4
    assert crawl.due_in() == 600  # the leases'
    assert crawl.set_host("a.com", budget=None).budget_left is None
    assert len(world.urls()) == 20 - 8
    assert world.again().view.hosts().rows[0].budget_left is None


@pytest.mark.parametrize("by_operator", [False, True])
def test_a_page_that_waits_for_a_retry_counts_once(world, by_operator):
    """After reopening it counted as not taken, and gave its host a page too many when it was due."""
    crawl = world.open(politeness=Politeness(delay=0, in_flight=9, host_budget=None if by_operator else 1))
    crawl.seed([A, "http://a.com/1"])
    if by_operator:
        crawl.set_host("a.com", budget=1)
    crawl.failed(crawl.next(1)[0], status=500)
    crawl = world.again()
    assert crawl.next(9) == []
    world.clock.now += 60
    assert world.urls() == [A]
    assert crawl.view.hosts().rows[0].budget_left == 0


# -- which host -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["a.com", "A.com", " a.com ", "a.com:8080", "http://a.com", "https://user@A.COM:99/x?y", "a.com/path"],
)
def test_a_host_is_named_in_any_form(world, name):
    crawl = world.open()
    crawl.seed(["http://xa.com/", "http://a.co/", "http://a.com:81/", "http://a.community/"])
    assert crawl.set_host(name, delay=7).name == "a.com"
    assert [row.delay for row in crawl.view.hosts().rows] == [0, 0, 7, 0]


@pytest.mark.parametrize(
    "name", ["[2001:db8::7]", "http://[2001:db8::7]:81/x", "10.0.0.1", "xn--bcher-kva.example"]
)
def test_addresses_and_international_names(world, name):
    crawl = world.open()
    crawl.seed(["http://[2001:db8::7]/", "http://10.0.0.1/", "http://bücher.example/"])
    assert crawl.set_host(name, delay=7).delay == 7
    assert crawl.set_host("bücher.example", delay=8).delay == 8


def test_a_host_that_is_not_known_is_refused(world):
    crawl = world.open()
    events = crawl.view.info().events
    for name in ("a.com", "http://b.com/x"):
        with pytest.raises(
            UnknownNodeError, match=f"knows no host '{'a.com' if name == 'a.com' else 'b.com'}'"
        ):
            crawl.set_host(name, block=1)
    crawl.seed(["http://www.a.com/"])
    for name in ("a.com", "ww.a.com", "www.a.co", "wwww.a.com"):
        with pytest.raises(UnknownNodeError):
            crawl.set_host(name, block=1)
    for name in ("", " ", "a b", "http://", "://x", None, 5, b"www.a.com"):
        with pytest.raises(ParameterError, match="`host` must be a host's name or a URL"):
            crawl.set_host(name, block=1)
    assert crawl.view.info().events == events + 1  # the seed


def test_a_domain_where_politeness_counts_domains(world):
    crawl = world.open(politeness=Politeness(by="domain", delay=0, in_flight=99))
    crawl.seed(["http://www.a.co.uk/", "http://x.a.co.uk/", "http://b.co.uk/"])
    for name in ("www.a.co.uk", "x.a.co.uk", "a.co.uk", "other.a.co.uk", "http://a.co.uk/y"):
        assert crawl.set_host(name, block=60, delay=3).name == "a.co.uk"
    assert world.urls() == ["http://b.co.uk/"]
    with pytest.raises(UnknownNodeError):
        crawl.set_host("co.uk", block=1)
    crawl = world.again()
    assert crawl.next(9) == []
    world.clock.now += 60
    assert len(world.urls()) == 1
    assert crawl.due_in() == 3


def test_values_that_are_not_given_stay_and_equal_values_are_not_written(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.set_host("a.com", block=INF, delay=1.1, budget=5)
    events = crawl.view.info().events
    state = crawl.set_host("a.com")
    assert state == crawl.set_host(A, delay=1.1, block=INF, budget=5)
    assert state.set_by_operator == ("block", "delay", "budget")
    assert crawl.view.info().events == events
    assert crawl.set_host("a.com", block=0).set_by_operator == ("delay", "budget")
    assert crawl.set_host("a.com", delay=None).set_by_operator == ("budget",)


def test_a_look_from_outside_shows_it(world):
    crawl = world.open()
    crawl.seed([A])
    state = crawl.set_host("a.com", block=INF, delay=2, budget=3)
    seen = look(world.folder, world.clock)
    assert seen.hosts.state(0, world.clock.now) == state
    seen.pages.close()


# -- twins ----------------------------------------------------------------------------------------------------------

NAMES = ["a.com", "b.com", "c.org"]
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "block": st.sampled_from([0, 5.0, 700.0, INF]),
        "delay": st.sampled_from([None, 0, 0.1, 40.0]),
        "budget": st.sampled_from([None, 0, 1, 3]),
    },
)


@dataclass
class Twin:
    """One host, kept to in the most obvious way."""

    taken: float = -INF
    crawl_delay: float = 0.0
    wait: float = -INF
    blocked: float = -INF
    delay: float | None = None
    budget: float = INF
    waiting: int = 30
    out: list[Any] = field(default_factory=list)

    def due(self) -> float:
        delay = max(2.0, self.crawl_delay) if self.delay is None else self.delay
        return max(self.taken + delay, self.wait, self.blocked)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("next"), st.integers(1, 4)),
        st.tuples(st.just("wait"), st.sampled_from([0.05, 1.0, 5.0, 80.0])),
        st.tuples(st.just("set"), st.integers(0, 2), SETTINGS),
        st.tuples(st.just("crawl-delay"), st.integers(0, 2), st.sampled_from([1.0, 10.0, 60.0])),
        st.tuples(st.just("crawled"), st.integers(0, 2)),
        st.tuples(st.just("throttled"), st.integers(0, 2), st.sampled_from([1, 30, 100])),
    ),
    max_size=30,
)


@given(STEPS)
def test_hosts_are_asked_as_a_twin_says(tmp_path_factory, steps):
    clock, twins = Clock(), [Twin() for _ in NAMES]
    with Crawl(
        tmp_path_factory.mktemp("c") / "c",
        policy="first-come",
        clock=clock,
        max_retries=0,
        lease_seconds=1e9,
        politeness=Politeness(delay=2.0, in_flight=99),
    ) as crawl:
        crawl.seed([url for name in NAMES for url in pages(name, 30)])
        for what, *told in steps:
            twin = twins[told[0]] if what not in ("next", "wait") else Twin()
            if what == "wait":
                clock.now += told[0]
            elif what == "next":
                for lease in crawl.next(told[0]):
                    asked = twins[NAMES.index(lease.url.split("/")[2])]
                    assert asked.due() <= clock.now
                    assert asked.budget > 0
                    asked.taken, asked.budget, asked.waiting = clock.now, asked.budget - 1, asked.waiting - 1
                    asked.out.append(lease)
            elif what == "crawl-delay":
                twin.crawl_delay = max(twin.crawl_delay, told[1])
                crawl.host_delay(f"http://{NAMES[told[0]]}/0", told[1])
            elif what == "set":
                state = crawl.set_host(NAMES[told[0]], **told[1])
                if "block" in told[1]:
                    twin.blocked = clock.now + told[1]["block"] if told[1]["block"] else -INF
                if "delay" in told[1]:
                    wanted = told[1]["delay"]
                    twin.delay = None if wanted is None else float(struct_of(HostSetRecord).unpack(
                        struct_of(HostSetRecord).pack(0, wanted, 0, 0))[1])  # fmt: skip
                if "budget" in told[1]:
                    twin.budget = INF if told[1]["budget"] is None else told[1]["budget"]
                assert state.budget_left == (None if twin.budget == INF else twin.budget)
            elif twin.out:
                lease = twin.out.pop()
                if what == "crawled":
                    crawl.crawled(lease)
                else:
                    crawl.failed(lease, status=429, retry_after=told[1])
                    twin.wait = max(twin.wait, clock.now + told[1])
            for state, one in zip(crawl.view.hosts().rows, twins, strict=True):
                due = max(one.due() - clock.now, 0.0)
                told_due = INF if state.due_in is None else state.due_in
                # After a wait that a host asked for nobody knows how long ago the last fetch was.
                assert told_due == pytest.approx(due) if one.wait == -INF else told_due >= due - 1e-6
        crawl.next(0)


@given(
    histories(12),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2), SETTINGS), min_size=1, max_size=4),
    st.sampled_from(["host", "domain"]),
)
def test_reopening_changes_nothing(tmp_path_factory, history, sets, by):
    folder, clock, leases = tmp_path_factory.mktemp("c") / "c", Clock(), []
    settings = {"policy": "first-come", "politeness": Politeness(by=by, delay=0, in_flight=9, host_budget=6)}
    crawl = opened(folder, clock, **settings)
    for k, done in enumerate(history):
        perform(crawl, clock, leases, done)
        for _, host, wanted in [one for one in sets if one[0] == k]:
            crawl.set_host(NAMES[host], **wanted)
    crawl.pause()  # no time passes while it is closed
    crawl.resume()
    before, hosts = whole(crawl), crawl.view.hosts().rows
    crawl.close()
    crawl = opened(folder, clock, **settings)
    assert differences(before, whole(crawl)) == {}
    assert [one.set_by_operator for one in crawl.view.hosts().rows] == [one.set_by_operator for one in hosts]
    assert [one.blocked_for for one in crawl.view.hosts().rows] == [one.blocked_for for one in hosts]
    assert [one.delay for one in crawl.view.hosts().rows] == [one.delay for one in hosts]
    crawl.close()


# -- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_wild_wishes_are_damage_or_harmless(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, B])
    crawl.set_host("a.com", block=5, delay=1, budget=2)
    place = stored_pages(crawl).frames.of_kind(HOST_SET)[0]
    end = crawl.view.info().event_bytes
    world.close()
    events, urls = (world.folder / EVENTS).read_bytes(), (world.folder / URLS).read_bytes()
    salt = salt_of(hash_seed_of(world.folder))
    assert resealed(events[place:end], urls, salt) == events[place:end]

    def use(crawl):
        crawl.next(9)
        assert msgspec.json.encode(crawl.view.hosts())

    refused = refused_when_wild(world, place, end, use)
    assert {"page 2147483648", "HostSetRecord.blocked_until nan", "HostSetRecord.delay nan"} <= refused
    assert {"HostSetRecord.delay -1.0", "HostSetRecord.delay inf"} <= refused

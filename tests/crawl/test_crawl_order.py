"""In which order a crawl hands out pages, why, and when again."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import EAGER, STATIC, Clock, frontier_in, opened
from crawlworld import A, B, C
from inlink.base.clock import VirtualClock
from inlink.crawl.crawl import Crawl
from inlink.crawl.folder import look
from inlink.errors import FolderError, ParameterError, UnknownNodeError
from inlink.factors.parts import Part, combined
from inlink.frontier.policies import POLICIES, Policy
from inlink.frontier.revisit import FixedInterval
from inlink.frontier.settings import Politeness

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


@pytest.mark.parametrize(("policy", "order"), [
    ("breadth-first", [A, A + "1", A + "2", B, A + "3", B + "1", A + "4", C, C + "1"]),
    ("first-come", [A, A + "1", A + "2", B, A + "3", B + "1", A + "4", C, C + "1"]),
    ("depth-first", [A, B, C, C + "1", B + "1", A + "2", A + "4", A + "3", A + "1"]),
])  # fmt: skip
def test_orders_by_discovery_are_exact(world, policy, order):
    assert one_by_one(world, policy) == order


def test_fifo_takes_hosts_in_turns(world):
    crawl = world.open(policy="hosts-in-turns")
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
    for reopened in (False, True):
        crawl = world.again() if reopened else world.crawl
        cash = [combined(crawl.why(url).parts) for url in (A, B, A + "x", A + "y")]
        assert cash == pytest.approx([0, 0, 0.5, 1.5])


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
    found = [combined(crawl.why(url).parts) for url in known]
    assert found == pytest.approx([rank[url] + teleport for url in known])
    left = sorted(
        (url for url in known if url not in order), key=lambda url: (-np.float32(rank[url]), known.index(url))
    )
    assert world.urls() == left
    assert combined(crawl.why(left[0]).parts) == pytest.approx(rank[left[0]] + teleport)


def test_pagerank_with_scores_and_across_hosts_only(world):
    crawl = world.open(policy="pagerank", use_scores=True, cross_domain_only=True)
    crawl.seed([A])
    crawl.crawled(A, [(A + "in", 0.9), (B, 0.1), (C, 0.1)], score=1.0)
    shares = [combined(crawl.why(url).parts[:2]) for url in (A + "in", B, C)]
    assert shares[0] == 0  # within the host
    assert shares[1] == shares[2] == pytest.approx(0.85 * 0.15 / 2, rel=1e-4)
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
        Longest.made = self

    def fold(self, events):
        for event in events:
            self.told[event.kind] += 1
            assert event.first == self.made_known
            self.made_known += event.new

    def priority(self, pages):
        return np.array([len(self.pages.url(int(page))) for page in pages], np.float32)

    def explain(self, page):
        return [Part("characters", "+", float(len(self.pages.url(page))))]


def test_a_users_policy_lives_and_comes_back(world):
    crawl = world.open(policy=Longest)
    crawl.seed([A, B + "longer"])
    lease = crawl.next(1)[0]
    assert lease.url == B + "longer"
    crawl.crawled(lease, ["/12345678", "/1"])
    told = Longest.made.told
    assert told == {"settings": 1, "seed": 1, "lease": 1, "visit": 1}
    crawl = world.again()
    assert Longest.made.told == told
    assert Longest.made.made_known == crawl.view.info().pages == 4
    assert crawl.why(B + "1").parts == [Part("characters", "+", len(B + "1"))]
    with pytest.raises(ParameterError, match="code from outside inlink"):
        look(world.folder, world.clock)
    seen = look(world.folder, world.clock, Longest)
    assert type(seen.policy) is Longest
    seen.pages.close()
    assert world.urls() == [B + "12345678", B + "1", A]


# -- why ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        *(one for one in STATIC if one != "hosts-in-turns"),
        "host-diverse",
        "pagerank",
        "hosts-in-turns",
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
        places = {row.url: crawl.why(row.url).place for row in crawl.view.order(100).rows}
        order = []
        while leases := crawl.next(1):
            order.append(leases[0].url)
        assert [places[url] for url in order] == list(range(1, len(order) + 1))


def test_why_has_each_reason(world):
    polite = Politeness(delay=0.0, in_flight=1, host_budget=9, domain_budget=99, park_after=50)
    crawl = world.open(
        policy="host-diverse", politeness=polite, retry_seconds=50, lease_seconds=100, rerank_share=None
    )
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], [("/x", 0.5), "/a/b/a/b/a/b/a/b/", B, C])
    crawl.failed(crawl.next(1)[0], "no route")
    why = crawl.why(A + "x")
    assert (why.policy, why.score, why.depth) == ("host-diverse", 0.5, 1)
    assert why.host.budget_left in (8, 7)
    # The page has depth 1.
    distance = 2**0.125
    assert combined(why.parts) == pytest.approx((0.15 + 0.85 * 0.15 / 4) / distance)
    assert any("pages taken from the host" in part.name for part in why.host_parts)
    assert [(link.url, link.gives) for link in why.inlinks] == [
        (A, pytest.approx(0.85 * 0.15 / 4 / distance))
    ]
    assert why.inlinks_complete
    trapped = crawl.why(A + "a/b/a/b/a/b/a/b/")
    assert "repeated segment" in [penalty.rule for penalty in trapped.penalties]
    product = math.prod(penalty.factor for penalty in trapped.penalties)
    assert trapped.parts[-1] == Part("trap penalty", "×", pytest.approx(product))
    failed = next(url for url in (A + "x", B, C) if crawl.page(url).errors)
    why = crawl.why(failed)
    assert (why.due_in, why.failures, why.host.failures, why.place) == (50, 1, 1, None)
    assert Part("1 + failures of the host in a row", "÷", 2.0) in why.host_parts
    lease = crawl.next(1)[0]
    world.clock.now += 30
    why = crawl.why(lease.url)
    assert (why.lease_expires_in, why.lease, why.state) == (70, lease.number, "leased")
    assert why.place is None
    assert "leased, not waiting" in str(why)
    crawl.crawled(lease, redirected_to="http://z.com/")
    assert crawl.why(lease.url).merged_into == "http://z.com/"
    assert "merged into http://z.com/" in str(crawl.why(lease.url))
    with pytest.raises(UnknownNodeError):
        crawl.why("http://never.com/")


def test_looking_sees_what_the_crawl_sees(world):
    crawl = world.open(policy="breadth-first")
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], WEB[A])
    crawl.next(1)
    seen = look(world.folder, world.clock)
    now = world.clock.now
    assert [row[0] for row in seen.queue.order(99, now)] == [row.page for row in crawl.view.order(99).rows]
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


@pytest.mark.slow
@pytest.mark.parametrize("by", ["host", "domain"])
def test_only_answers_let_a_host_have_more_than_eight_open_leases(world, by):
    polite = Politeness(by=by, delay=0.0, in_flight=20)
    # Each opening would start a process that ranks.
    crawl = world.open(policy="host-diverse", politeness=polite, rerank_share=None)
    hosts = ["http://a.com/", "http://www.a.com/" if by == "domain" else "http://a.com/"]
    urls = [f"{hosts[k % 2]}{k}" for k in range(300)]
    crawl.seed(urls)
    leases, answered, limits = [], 0, set()
    for number in range(100):
        leases += crawl.next(99)
        limits.add(limit := min(20, max(8, answered)))
        host = crawl.why(urls[-2]).host
        assert len(leases) == host.in_flight == host.in_flight_limit == limit
        if number % 7 == 6:
            crawl = world.again()
        lease = leases.pop(0)
        answered += number % 4 != 3
        if number % 4 == 0:
            crawl.crawled(lease)
        elif number % 4 == 1:
            crawl.failed(lease, status=404)
        elif number % 4 == 2:
            leases.append(crawl.redirected(lease, f"{A}to/{number}"))
        else:
            crawl.release(lease)
    assert limits == set(range(8, 21))
    world.lose(1e6)
    while crawl.due_in() is not None:
        for lease in crawl.next(99):
            crawl.crawled(lease)
    assert set(map(world.state, urls)) == {"crawled", "gone", "merged"}


@pytest.mark.parametrize("policy", ["pagerank", "host-diverse", "hits", "hits-by-score"])
def test_revisits_between_two_rankings_leave_ranks_as_they_are(tmp_path, policy):
    """Otherwise, each visit would raise the ranks of all pages of a cycle."""
    clock = VirtualClock()
    urls = [f"http://a.example/{k}" for k in range(12)]
    links = {url: [urls[(k + 1) % 12], urls[5 * k % 12]] for k, url in enumerate(urls)}
    with Crawl(
        tmp_path / "c",
        policy=policy,
        clock=clock,
        politeness=EAGER,
        revisit=FixedInterval(60.0),
        rerank_share=None,
    ) as crawl:
        crawl.seed(urls[:1])

        def ranks_after(count: int) -> list[float]:
            while count:
                while leases := crawl.next(count):
                    for lease in leases:
                        crawl.crawled(lease, links[lease.url], score=0.5)
                    count -= len(leases)
                clock.advance(60.0)
            return frontier_in(crawl).policy.ranks(np.arange(12, dtype=np.uint32)).tolist()

        once = ranks_after(60)
        assert frontier_in(crawl).pages.tally.crawled == 12
        assert max(once) > 0
        assert ranks_after(60) == once

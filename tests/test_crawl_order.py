"""In which order a crawl hands out pages, why, and when again."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import STATIC, Clock, opened
from crawlworld import A, B, C
from inlink.crawl import look
from inlink.errors import FolderError, ParameterError, UnknownNodeError
from inlink.frontier.policies import POLICIES, Policy
from inlink.frontier.queue import Politeness
from inlink.frontier.revisit import FixedInterval

pytestmark = pytest.mark.usefixtures("patience")


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

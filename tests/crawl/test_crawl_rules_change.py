"""Rules hold for pages that were known before them, and such pages return when their rule goes."""

import pytest

from crawlworld import A, B
from inlink.crawl.view import CrawlView
from inlink.frontier.rules import Rules
from inlink.frontier.settings import Politeness
from inlink.store.format import SETTINGS
from storefolders import later_log

NO = Rules(deny=["host:b.com"])
REASON = "denied by host:b.com"


def denied(world, **settings):
    return world.open(**{**world.settings, "rules": NO, **settings})


def earlier(world):
    """A page that an event before the last made known."""
    crawl = world.open()
    crawl.seed([B])
    crawl.seed([A])


def leased(world):
    """A page that was leased at the stop, and whose lease ends unused afterwards."""
    crawl = world.open()
    crawl.seed([B])
    crawl.next(1)
    crawl.seed([A])
    denied(world).release_all()


def expired(world):
    """A page whose lease expires without an answer."""
    crawl = world.open(lease_seconds=60)
    crawl.seed([B])
    crawl.next(1)
    crawl.seed([A])
    denied(world)
    world.lose(61)


def retried(world):
    """A page that failed, and whose retry becomes due."""
    crawl = world.open(retry_seconds=60)
    crawl.seed([B])
    crawl.failed(crawl.next(1)[0], status=500)
    crawl.seed([A])
    denied(world)
    world.clock.now += 200


def lost(world):
    """A page whose lease was lost before the stop."""
    crawl = world.open(lease_seconds=60)
    crawl.seed([B])
    crawl.next(1)
    crawl.seed([A])
    world.lose(61)


@pytest.mark.parametrize("how", [earlier, leased, expired, retried, lost])
@pytest.mark.parametrize("reopened", [False, True])
def test_a_page_that_the_rules_refuse_is_excluded_when_it_would_be_leased(world, how, reopened):
    how(world)
    denied(world)
    if reopened:
        world.again()
    assert world.urls() == [A]
    assert world.urls() == []
    for _ in range(2):
        page = world.crawl.page(B)
        assert (page.state, page.error) == ("excluded", REASON)
        assert str(world.crawl.why(B)).startswith(f"{B}: excluded, {REASON}\n")
        assert CrawlView.open(world.folder).page(B).error == REASON
        assert world.crawl.due_in() is not None  # only the lease of A is out
        world.again()
    assert world.crawl.reload("excluded") == 0
    # The rule goes, and the page returns; reopening once more changes nothing.
    denied(world, rules=None)
    for _ in range(2):
        assert world.state(B) == "discovered"
        world.again()
    world.clock.now += 400
    assert world.urls() == [B]


def test_a_revisit_is_refused_and_the_page_is_a_crawled_one_once_the_rule_goes(world):
    crawl = world.open(revisit={"schedule": "FixedInterval", "seconds": 60})
    crawl.seed([B, A])
    for lease in crawl.next(2):
        crawl.crawled(lease, ["/x"])
    denied(world)
    world.clock.now += 61
    assert set(world.urls()) == {A, A + "x"}
    assert world.state(B) == "excluded"
    denied(world, rules=None)
    assert world.state(B) == "crawled"
    assert {B, B + "x"} <= set(world.urls())


def test_a_redirect_to_a_known_page_that_the_rules_refuse_is_not_followed(world):
    earlier(world)
    crawl = denied(world)
    (lease,) = crawl.next(9)
    crawl.seed([A + "2"])
    (second,) = crawl.next(9)
    assert crawl.redirected(lease, B) is None
    assert world.state(B) == "excluded"
    assert crawl.release(second)


def test_pages_return_one_by_one_as_their_rules_go(world):
    crawl = world.open()
    urls = [f"http://h{k}.com/{name}" for k in range(3) for name in ("a", "b.png")]
    crawl.seed(urls)
    crawl.seed([A])
    world.open(rules=Rules(deny=["host:h0.com", r"\.png$", "domain:h2.com"]))
    assert world.urls() == ["http://h1.com/a", A]
    assert world.crawl.page("http://h1.com/b.png").error == r"denied by \.png$"
    crawl = world.open(rules=Rules(deny=["host:h0.com"]))
    assert world.urls() == ["http://h1.com/b.png", "http://h2.com/a", "http://h2.com/b.png"]
    crawl.seed(["http://h0.com/new"])  # refused at the door
    assert world.state("http://h0.com/new") == "excluded"
    crawl = world.open(rules={"deny": (), "max_depth": 5})
    assert world.urls() == ["http://h0.com/a", "http://h0.com/b.png", "http://h0.com/new"]


def test_a_page_that_a_spider_excluded_does_not_return_with_a_rule(world):
    crawl = world.open()
    crawl.seed([B, B + "2"])
    crawl.exclude(B, "robots.txt")
    denied(world)
    assert world.urls() == []
    crawl = denied(world, rules=None)
    assert [world.state(B), world.state(B + "2")] == ["excluded", "discovered"]
    assert crawl.page(B).error == "robots.txt"


@pytest.mark.parametrize("policy", ["first-come", "host-diverse", "hosts-in-turns"])
def test_a_refused_page_costs_its_host_nothing(world, policy):
    """Delay, budget, turn, rate and lease of the host are as if the page had never been in the queue."""
    polite = Politeness(delay=10, host_budget=60, in_flight=1, soft_rate=0.01, hard_rate=0.1)
    crawl = world.open(policy=policy, politeness=polite)
    crawl.seed([f"{B}no{k}" for k in range(50)])
    crawl.seed([B + "yes", B + "last"])
    crawl.seed([A])
    crawl = denied(world, rules=Rules(deny=["/no"]))
    assert [row.url for row in crawl.view.order(9).rows][:2] in ([B + "yes", A], [A, B + "yes"])
    assert set(world.urls()) == {B + "yes", A}
    host = crawl.why(B + "last").host
    assert (host.taken, host.budget_left, host.in_flight, host.due_in) == (1, 59, 1, 10)
    assert crawl.view.standing().states["excluded"] == 50
    crawl.release_all()
    world.again()
    assert world.crawl.view.standing().states == {"discovered": 3, "excluded": 50}


def test_why_says_that_a_waiting_page_will_be_excluded(world):
    earlier(world)
    crawl = denied(world)
    why = crawl.why(B)
    assert (why.state, why.place, why.refused) == ("discovered", None, REASON)
    assert "will be excluded when its turn comes, denied by host:b.com" in str(why)
    assert crawl.why(A).refused is None
    assert crawl.why(A).place == 1


@pytest.mark.parametrize("payload", [b"[1]", b"{", b"\xff", b"7", b"[" * 100_000])
def test_a_log_with_settings_that_cannot_be_read_opens_and_its_pages_are_checked(world, payload):
    crawl = world.open()
    crawl.seed([A, B])
    denied(world)
    world.close()
    log = later_log(world.folder)
    log.append(SETTINGS, world.clock.now, payload=payload, first=2)
    log.close()
    crawl = denied(world)
    assert [lease.url for lease in crawl.next(9)] == [A]
    assert crawl.page(B).error == REASON

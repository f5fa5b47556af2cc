"""Outcomes of fetches: leases, failures, politeness; live and after reopening, under a clock that the tests own."""

from collections import Counter

import pytest

from crawlworld import A, B, C, hello
from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier.settings import Politeness
from inlink.protocol import Failed

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


@pytest.fixture
def leases(world):
    """A lease that expired, and its successor."""
    crawl = world.open(lease_seconds=100, retry_seconds=60)
    crawl.seed([A])
    early = crawl.next(1)[0]
    world.lose(100)
    late = crawl.next(1)[0]
    assert late.url == A
    assert late.number != early.number
    return crawl, early, late


def test_late_answers_count_once(world, leases):
    crawl, early, late = leases
    assert crawl.crawled(early, ["/x"])
    assert not crawl.crawled(late, ["/y"])
    assert not crawl.crawled(early, ["/y"])
    assert crawl.page(A).crawls == 1
    assert crawl.page("http://a.com/y") is None
    assert world.urls() == ["http://a.com/x"]


def test_the_newer_lease_may_answer_first(leases):
    crawl, early, late = leases
    assert crawl.crawled(late)
    assert not crawl.crawled(early)
    assert crawl.page(A).crawls == 1
    assert crawl.due_in() is None


def test_a_late_redirect_counts_once_too(world, leases):
    crawl, early, late = leases
    assert crawl.crawled(late, redirected_to="/home")
    assert not crawl.crawled(early, redirected_to="/home")
    assert crawl.page("http://a.com/home").crawls == 1
    assert world.state(A) == "merged"


def test_releasing_late_does_not_hand_out_twice(world, leases):
    crawl, early, late = leases
    crawl.release(early)
    assert world.urls() == []  # the newer lease is out
    assert world.state(A) == "leased"
    assert crawl.failed(late, status=404)
    crawl.release(early)
    assert world.state(A) == "gone"


def test_a_page_that_was_crawled_meanwhile_is_not_tried_again(world, leases):
    """The second lease failed and is to be tried again; then the first one answers after all."""
    crawl, early, late = leases
    crawl.failed(late, "reset")
    assert crawl.crawled(early)
    world.clock.now += 1000
    assert crawl.next(1) == []
    assert crawl.due_in() is None


def test_answers_by_url_end_leases_one_after_the_other(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A])
    crawl.next(1)
    world.lose(100)
    crawl.next(1)
    assert crawl.crawled(A)
    assert not crawl.crawled(A)  # that of the other lease
    assert crawl.crawled(A)  # nobody asked for this one: it is a fetch of its own
    assert crawl.page(A).crawls == 2


def test_an_answer_without_a_lease_counts(world):
    crawl = world.open()
    crawl.seed([A])
    assert crawl.crawled(A, ["/x"])
    assert crawl.page(A).state == "crawled"
    assert world.urls() == ["http://a.com/x"]
    with pytest.raises(UnknownNodeError, match="not known"):
        crawl.crawled("http://never.com/")
    with pytest.raises(UnknownNodeError):
        crawl.crawled("mailto:x")


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


def test_leases_hold_after_reopening(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A, B, C])
    first, second, third = crawl.next(3)
    crawl.crawled(second)
    world.clock.now += 40
    crawl = world.again()
    assert crawl.next(5) == []
    assert crawl.due_in() == 100  # nothing had happened for 40 seconds: for so long the crawl was down
    assert crawl.crawled(first)
    world.lose(100)
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
    assert crawl.next(1) == []
    assert (world.state(A), world.state(B)) == ("leased", "discovered")


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


@pytest.mark.parametrize("reopened", [False, True])
def test_a_host_that_was_let_go_is_asked_again_after_reload(world, reopened):
    crawl = world.open(max_retries=0, retry_seconds=60, politeness=Politeness(delay=0.0, park_after=1))
    crawl.seed([A])
    crawl.failed(crawl.next(1)[0], "no route")
    assert crawl.next(1) == []
    assert crawl.reload() == 1
    if reopened:
        crawl = world.again()
    assert crawl.due_in() == 0
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
    assert crawl.why("http://a.com/x").host.failures == 0


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
    assert crawl.reload() == crawl.reload("failed", "excluded") == 0
    with pytest.raises(ParameterError, match="`states` must be among failed, gone, excluded; got 'lost'"):
        crawl.reload("gone", "lost")
    assert crawl.reload("gone") == 1
    assert crawl.page(A).state == "discovered"


@pytest.mark.parametrize(("status", "retry", "state"), [
    (403, None, "failed"), (403, True, "discovered"), (500, None, "discovered"), (500, False, "failed"),
    (None, False, "failed"), (404, True, "discovered"),
])  # fmt: skip
def test_the_spider_or_the_status_decides_about_a_retry(world, status, retry, state):
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
    assert crawl.why("http://a.com/x").host.due_in == 120
    crawl = world.again()  # a host's word holds after a restart
    world.clock.now += 119
    assert crawl.next(9) == []
    assert crawl.due_in() == 1
    world.clock.now += 1
    assert sorted(world.urls(9)) == [A, "http://a.com/x"]
    assert crawl.crawled(A)
    assert crawl.page(A).state == "crawled"


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize(("answers", "wait"), [
    ([503], 0), ([503, 503], 30), ([503, 200, 503], 0), ([503, 404, 503], 0), ([503, 200, 503, 503], 30),
    ([(503, "5")], 5), ([503, (503, "5")], 5), ([(503, "0"), 503], 30), ([429], 30), ([429, 503], 30),
    ([(403, "7")], 7), ([(404, "7")], 7), ([(403, "soon")], 0), ([403], 0), ([500], 30),
])  # fmt: skip
def test_answers_that_hold_a_host_back(world, answers, wait, reopened):
    """A single 503 without Retry-After holds only its page back."""
    crawl = world.open(politeness=Politeness(delay=0.0, in_flight=9), retry_seconds=30)
    crawl.seed([f"{A}{k}" for k in range(len(answers) + 1)])
    waits = []
    for lease, given in zip(crawl.next(len(answers)), answers, strict=True):
        status, retry_after = given if isinstance(given, tuple) else (given, None)
        if status == 200:
            crawl.crawled(lease)
        else:
            crawl.failed(lease, status=status, retry_after=retry_after)
        if reopened:
            crawl = world.again()
        waits.append(crawl.due_in())
    assert waits[-1] == wait
    # The page itself waits too: the other one is alone.
    assert world.urls() == ([] if wait else [f"{A}{len(answers)}"])


@pytest.mark.parametrize("reopened", [False, True])
def test_requests_under_way_do_not_make_a_503_the_second_in_a_row(world, reopened):
    crawl = world.open(politeness=Politeness(delay=0.0, in_flight=3), retry_seconds=30)
    crawl.seed([f"{A}{k}" for k in range(9)])
    waits = []
    leases = crawl.next(3)
    for _ in range(4):
        world.clock.now += 1
        crawl.failed(leases.pop(0), status=503)
        crawl = world.again() if reopened else crawl
        # The host is handed out as many pages as it has answered.
        leases += crawl.next(1)
        waits.append(crawl.view.hosts().rows[0].due_in)
    assert waits == [0, 0, 0, 30]


def test_a_receipt_says_for_how_long_the_host_is_held_back(world):
    crawl = world.open(politeness=Politeness(delay=0.0, in_flight=9), retry_seconds=30)
    crawl.seed([f"{A}{k}" for k in range(4)])
    spider = hello(crawl)
    answers = [Failed(task.lease, status=503) for task in crawl.desk.next(spider, 4).tasks]
    answers[2].retry_after = "7"
    answers[3].retry_after = "99"
    # The third asks for less than the second has led to.
    receipts = crawl.desk.report(spider, answers)
    assert [receipt.host_wait for receipt in receipts] == [0, 30, 0, 99]


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
    assert crawl.why("http://dead.com/5").host.due_in == 1000
    crawl = world.again()
    world.clock.now += 999
    assert [url.split("/")[2] for url in world.urls(9)] == ["good.com"]
    world.clock.now += 1
    lease = crawl.next(9)[0]
    assert lease.url.startswith("http://dead.com/")
    crawl.crawled(lease)  # it lives
    assert crawl.why("http://dead.com/5").host.due_in == 0
    assert crawl.why("http://dead.com/5").host.failures == 0


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
    host = crawl.why("http://y.a.com/8").host
    assert (host.budget_left, host.domain_budget_left) == (2, 0)


@pytest.mark.parametrize("how", ["release", "failed", "lost"])
def test_a_second_try_costs_no_budget(world, how):
    crawl = world.open(politeness=Politeness(delay=0.0, host_budget=1), lease_seconds=100, retry_seconds=1)
    crawl.seed([A, A + "2"])
    lease = crawl.next(1)[0]
    if how == "lost":
        world.lose(100)
    else:
        getattr(crawl, how)(lease)
    world.clock.now += 10
    assert world.urls() == [A]

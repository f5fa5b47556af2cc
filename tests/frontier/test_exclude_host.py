"""All waiting pages of a host are excluded at once, and return with a reload only."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import Clock, differences, frontier_in, histories, opened, perform, whole
from crawlworld import A, B
from inlink.crawl.view import CrawlView
from inlink.errors import UnknownNodeError
from inlink.frontier.revisit import FixedInterval
from inlink.frontier.rules import Rules
from inlink.frontier.settings import Politeness
from inlink.store.format import EXCLUDE
from wildframes import refused_when_wild

AT_ONCE = Politeness(delay=0, in_flight=99)


def test_every_page_that_waits_is_excluded(world):
    """In the queue, for a retry, for its next visit, and since its lease was lost."""
    crawl = world.open(politeness=AT_ONCE, revisit=FixedInterval(1000), lease_seconds=100)
    names = ["lost", "crawled", "retried", "gone", "out", "waiting"]
    urls = {name: f"http://a.com/{name}" for name in names}
    crawl.seed([urls["lost"]])
    crawl.next(1)
    world.lose(100)
    crawl.seed([*urls.values(), B])
    session = crawl.desk.hello("one").number
    tasks = crawl.desk.next(session, 4, lost=False).tasks
    leases = {task.url.rpartition("/")[2]: task.lease for task in tasks}
    assert list(leases) == names[1:5]
    crawl.crawled(leases["crawled"])
    crawl.failed(leases["retried"], status=500)
    crawl.failed(leases["gone"], status=404)
    assert crawl.exclude_host("http://a.com/x", "over and done") == 4
    states = {name: world.state(f"http://a.com/{name}") for name in names}
    assert states == dict.fromkeys(names, "excluded") | {"gone": "gone", "out": "leased"}
    assert crawl.page("http://a.com/waiting").error == "over and done"
    assert "excluded, over and done" in str(crawl.why("http://a.com/waiting"))
    assert CrawlView.open(world.folder, world.clock).page("http://a.com/lost").error == "over and done"
    assert crawl.exclude_host("a.com") == 0
    crawl.crawled(leases["out"], ["/new"])  # the host itself goes on
    assert world.state("http://a.com/new") == "discovered"
    before = whole(crawl)
    crawl = world.again()
    assert differences(before, whole(crawl)) == {}
    assert crawl.page("http://a.com/waiting").error == "over and done"
    assert crawl.reload("gone", "excluded") == 5
    assert crawl.page("http://a.com/waiting").error is None
    crawl.next(0)
    assert crawl.standing().waiting >= 5


def test_a_change_of_rules_does_not_let_them_return(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, B])
    crawl.exclude_host("a.com")
    assert crawl.page(A).error == ""
    crawl.change_settings(rules=Rules(deny=["host:b.com"]))
    assert world.urls() == []
    crawl.change_settings(rules=None)
    assert world.urls() == [B]
    crawl = world.open(politeness=AT_ONCE, rules=Rules(deny=["nothing"]))
    assert world.state(A) == "excluded"
    crawl.reload("excluded")
    assert world.urls() == [A]


def test_only_what_was_not_crawled_for_long(world):
    crawl = world.open(politeness=AT_ONCE, revisit=FixedInterval(1e6))
    crawl.seed([f"http://a.com/{k}" for k in range(3)])
    for lease in crawl.next(2):
        crawl.crawled(lease)
    crawl.release_all()
    world.clock.now += 10
    crawl.seed(["http://a.com/new"])
    world.clock.now += 10
    crawl.crawled("http://a.com/1")
    assert crawl.exclude_host("a.com", older_than=20) == 0
    assert crawl.exclude_host("a.com", "old", older_than=15) == 2
    assert [world.state(f"http://a.com/{k}") for k in (0, 1, 2, "new")] == [
        "excluded", "crawled", "excluded", "discovered",
    ]  # fmt: skip
    assert crawl.exclude_host("a.com", older_than=0) == 1
    assert crawl.exclude_host("a.com") == 1


def test_a_registered_domain(world):
    crawl = world.open(politeness=Politeness(by="domain", delay=0, in_flight=9))
    crawl.seed(["http://x.a.com/", "http://y.a.com/", B])
    assert crawl.exclude_host("a.com", "x" * 600) == 2
    assert crawl.page("http://y.a.com/").error == "x" * 500
    assert world.urls() == [B]
    with pytest.raises(UnknownNodeError):
        crawl.exclude_host("c.org")


def test_many_pages(world, monkeypatch):
    monkeypatch.setattr("inlink.crawl.journal.MOST_EXCLUDED", 7)
    crawl = world.open(politeness=AT_ONCE)
    urls = [f"http://a.com/{k}" for k in range(50)]
    crawl.seed(urls)
    assert crawl.exclude_host("a.com", "why") == 50
    assert {crawl.page(url).error for url in urls} == {"why"}
    assert len(frontier_in(crawl).pages.frames.of_kind(EXCLUDE)) == 8


@settings(max_examples=30)
@given(histories(16), st.integers(0, 16), st.sampled_from([None, 20.0]))
def test_reopening_changes_nothing(tmp_path_factory, history, when, older):
    folder, clock, leases = tmp_path_factory.mktemp("c") / "c", Clock(), []
    given_ = {"policy": "first-come", "revisit": FixedInterval(50.0)}
    crawl = opened(folder, clock, **given_)
    for k, done in enumerate(history):
        perform(crawl, clock, leases, done)
        if k == when:
            waiting = len(frontier_in(crawl).queue)
            assert (
                crawl.exclude_host("a.com", "it must go", older_than=older)
                <= frontier_in(crawl).pages.num_pages
            )
            assert len(frontier_in(crawl).queue) <= waiting
            for page in range(frontier_in(crawl).pages.num_pages):
                if page in frontier_in(crawl).queue and older is None:
                    assert (
                        frontier_in(crawl).pages.table.host(int(frontier_in(crawl).pages.hosts[page]))
                        != "a.com"
                    )
    crawl.pause()  # no time passes while it is closed
    crawl.resume()
    before = whole(crawl)
    crawl.close()
    crawl = opened(folder, clock, **given_)
    assert differences(before, whole(crawl)) == {}
    crawl.close()


@pytest.mark.slow
def test_wild_exclusions_are_damage_or_harmless(world):
    crawl = world.open(politeness=AT_ONCE)
    crawl.seed([A, B])
    crawl.exclude_host("a.com", "why")
    (place,) = frontier_in(crawl).pages.frames.of_kind(EXCLUDE)
    end = frontier_in(crawl).pages.frames.end
    world.close()

    def use(crawl):
        assert msgspec.json.encode(crawl.view.why(A))
        crawl.reload("excluded")

    refused = refused_when_wild(world, place, end, use)
    assert {"page 2147483648", "listed 2147483648", "ExcludedRecord.reason_size 65535"} <= refused

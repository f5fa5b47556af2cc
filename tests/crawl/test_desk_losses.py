"""Lost tasks, expiry and renewal: what the desk does with leases that nobody answers for."""

import pytest

from crawlstrategies import EAGER, stored_pages
from crawlworld import A, B, C, hello, urls
from inlink.crawl.answers import Answers
from inlink.frontier.settings import Politeness
from inlink.protocol import (
    Crawled,
    Failed,
    Receipt,
    Redirected,
    Released,
    Tasks,
)
from inlink.store.format import LOST, RENEWED, REPORTED

D, E = "http://d.net/", "http://e.net/"


def test_a_lost_page_waits_longer_each_time_and_fails_in_the_end(world):
    crawl = world.open(lease_seconds=100, retry_seconds=10, max_losses=3)
    crawl.seed([A])
    for wait in (10, 20):
        assert world.urls() == [A]
        world.clock.now += 100
        assert world.urls() == []
        assert (world.state(A), crawl.due_in()) == ("discovered", wait)
        crawl = world.again()
        assert (world.state(A), crawl.due_in()) == ("discovered", wait)
        world.clock.now += wait
    assert world.urls() == [A]
    world.clock.now += 100
    assert world.urls() == []
    for _ in range(2):
        page = crawl.page(A)
        assert (page.state, page.error) == ("failed", "lost 3 times: the spider ended or did not answer")
        assert crawl.due_in() is None
        crawl = world.again()
    assert crawl.reload() == 1
    assert world.urls() == [A]
    world.clock.now += 100
    assert crawl.next(1) == []
    assert world.state(A) == "discovered"  # its losses were forgotten


@pytest.mark.parametrize("answer", [Crawled, lambda lease: Failed(lease, "no", retry=True)])
def test_an_answer_resets_the_losses(world, answer):
    crawl = world.open(lease_seconds=100, retry_seconds=10, max_losses=2)
    crawl.seed([A])
    one = hello(crawl)
    for _ in range(3):
        (task,) = crawl.desk.next(one, 1).tasks
        one = hello(crawl)
        world.clock.now += 10
        (task,) = crawl.desk.next(one, 1).tasks
        assert crawl.desk.report(one, [answer(task.lease)])[0].counted
        if answer is Crawled:
            assert world.state(A) == "crawled"
            return
        world.clock.now += 10_000
        one = hello(crawl)
    assert world.state(A) == "discovered"


def test_a_lost_page_comes_back_alone(world):
    crawl = world.open(retry_seconds=10, politeness=EAGER)
    crawl.seed([A, B])
    one = hello(crawl)
    assert urls(crawl.desk.next(one, 9)) == [A, B]
    one, other = hello(crawl), hello(crawl, "other")
    crawl.seed([f"http://host{k}.com/" for k in range(9)])
    held = crawl.desk.next(one, 2)
    assert held.due_in == 0
    world.clock.now += 10
    nothing = crawl.desk.next(one, 2)  # it drains, for A
    assert (nothing.tasks, nothing.due_in) == ([], None)
    assert urls(crawl.desk.next(other, 2)) == [B]  # it holds nothing, and gets the next one
    assert crawl.desk.next(other, 2) == Tasks([], None, 2)
    third = hello(crawl, "third")
    assert len(crawl.desk.next(third, 2).tasks) == 2  # the others go on
    crawl.desk.report(one, [Crawled(held.tasks[0].lease)])
    assert crawl.desk.next(one, 2).tasks == []
    crawl.desk.report(one, [Crawled(held.tasks[1].lease)])
    assert crawl.desk.next(one, 0) == Tasks([], 0.0, 3)
    (lone,) = crawl.desk.next(one, 2).tasks
    assert lone.url == A
    assert crawl.desk.next(one, 2).tasks == []
    world.clock.now += 1
    crawl = world.again()
    assert crawl.desk.next(one, 2).tasks == []
    assert crawl.desk.next(other, 2).tasks == []
    assert crawl.desk.report(one, [Released(lone.lease)]) == [Receipt(True)]
    (lone,) = crawl.desk.next(one, 2).tasks
    assert lone.url == A
    assert crawl.desk.report(one, [Crawled(lone.lease)]) == [Receipt(True)]
    assert len(crawl.desk.next(one, 2).tasks) == 2


def test_a_session_that_drains_and_ends_leaves_the_page_to_others(world):
    crawl = world.open(retry_seconds=10, politeness=EAGER)
    crawl.seed([A])
    crawl.desk.next(hello(crawl), 1)
    one, other = hello(crawl), hello(crawl, "other")
    crawl.seed([B, C, D, E])
    assert urls(crawl.desk.next(one, 1)) == [B]
    assert urls(crawl.desk.next(other, 1)) == [C]
    world.clock.now += 10
    assert crawl.desk.next(one, 1).tasks == []
    assert urls(crawl.desk.next(other, 1)) == [D]
    crawl.desk.bye(one)
    assert crawl.desk.next(other, 1).tasks == []  # now this one drains
    crawl.desk.bye(other)
    assert world.urls(1) == [A]


def test_a_session_that_drains_and_asks_no_more_does_not_keep_the_page(world):
    crawl = world.open(retry_seconds=10, politeness=EAGER)
    crawl.seed([A])
    crawl.desk.next(hello(crawl), 1)
    one, other = hello(crawl), hello(crawl, "other")
    crawl.seed([B])
    (held,) = crawl.desk.next(one, 1).tasks
    world.clock.now += 10
    assert crawl.desk.next(one, 1).tasks == []
    crawl.desk.report(one, [Crawled(held.lease)])
    assert urls(crawl.desk.next(other, 1)) == [A]


def test_a_lost_page_waits_for_its_host_without_a_spin(world):
    crawl = world.open(retry_seconds=10, politeness=Politeness(delay=50, in_flight=1))
    crawl.seed([A, A + "2"])
    one = hello(crawl)
    assert urls(crawl.desk.next(one, 9)) == [A]
    one = hello(crawl)
    assert crawl.desk.next(one, 9).due_in == 10
    world.clock.now += 10
    assert crawl.desk.next(one, 9) == Tasks([], 40.0)
    world.clock.now += 40
    assert urls(crawl.desk.next(one, 9)) == [A]


def test_a_lost_page_that_is_linked_to_does_not_come_sooner(world):
    crawl = world.open(retry_seconds=1000, politeness=EAGER)
    crawl.seed([A, B])
    one = hello(crawl)
    crawl.desk.next(one, 1)
    one = hello(crawl)
    (task,) = crawl.desk.next(one, 1).tasks
    crawl.desk.report(one, [Crawled(task.lease, [(A, 9.0)])])
    crawl.seed([A])
    assert crawl.desk.next(one, 9) == Tasks([], 1000.0)
    crawl = world.again()
    crawl.seed([A])
    assert crawl.desk.next(one, 9) == Tasks([], 1000.0)
    assert crawl.crawled(A)  # by its URL, without a lease
    assert crawl.desk.next(one, 9) == Tasks([])


def test_a_redirect_to_a_lost_page_is_not_followed_at_once(world):
    crawl = world.open(retry_seconds=10, politeness=EAGER)
    crawl.seed([A, B])
    crawl.desk.next(hello(crawl), 1)
    one = hello(crawl)
    (task,) = crawl.desk.next(one, 1).tasks
    assert crawl.desk.report(one, [Redirected(task.lease, A)]) == [Receipt(True)]
    world.clock.now += 10
    (task,) = crawl.desk.next(one, 9).tasks
    receipt = crawl.desk.report(one, [Redirected(task.lease, A)])[0]  # to itself, to set a cookie perhaps
    assert receipt.task.url == A
    crawl.seed([C])
    assert crawl.desk.next(one, 9).tasks == []


def test_a_crash_between_the_end_of_a_session_and_its_loss(world, monkeypatch):
    crawl = world.open(retry_seconds=10)
    crawl.seed([A])
    crawl.desk.next(hello(crawl), 1)
    monkeypatch.setattr(Answers, "lost", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        hello(crawl)
    monkeypatch.undo()
    crawl = world.again()
    assert (world.state(A), crawl.due_in()) == ("discovered", 10)


# -- time -------------------------------------------------------------------------------------------------------------


def test_nothing_expires_while_the_crawl_is_down(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A])
    one = hello(crawl)
    crawl.desk.next(one, 1)
    for _ in range(3):
        world.clock.now += 30
        crawl.seed([f"http://{world.clock.now}.com/"])  # it is up for 30 seconds, and down for an hour
        world.clock.now += 3600
        crawl = world.again()
    assert crawl.due_in() == 0
    crawl.desk.next(one, 0)
    assert world.state(A) == "leased"
    world.clock.now += 10
    crawl.desk.next(one, 0)
    assert world.state(A) == "discovered"


def test_renewal_ends_an_hour_after_a_lease_was_given(world):
    crawl = world.open(lease_seconds=600)
    crawl.seed([A])
    one, began = hello(crawl), world.clock.now
    (task,) = crawl.desk.next(one, 1).tasks
    renewed = 0
    while world.state(A) == "leased":
        world.clock.now += 50
        renewed += crawl.desk.renew(one)
        if world.clock.now - began == 1500:
            crawl = world.again()
        crawl.desk.next(one, 0)
    assert world.clock.now - began == 3600
    assert renewed == 60
    assert crawl.desk.report(one, [Crawled(task.lease)]) == [Receipt(True)]


def test_a_renewal_holds_after_reopening(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A])
    one = crawl.desk.hello("spider").number
    crawl.desk.next(one, 1)
    world.clock.now += 50
    assert crawl.desk.renew(one) == 1
    assert crawl.desk.renew(one) == 0  # nothing to win
    crawl = world.again()
    assert crawl.due_in() == 100
    world.clock.now += 100
    crawl.desk.next(one, 0)
    assert world.state(A) == "discovered"
    assert len(stored_pages(crawl).frames.of_kind(RENEWED)) == 1
    assert len(stored_pages(crawl).frames.of_kind(LOST)) == 1


def test_a_caller_that_repeats_nothing_writes_no_report(world):
    crawl = world.open()
    crawl.seed([A])
    one = hello(crawl)
    (task,) = crawl.desk.next(one, 1).tasks
    crawl.desk.report(one, [Crawled(task.lease)])
    assert not stored_pages(crawl).frames.of_kind(REPORTED)

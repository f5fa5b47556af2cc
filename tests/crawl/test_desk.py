"""The desk: sessions, repeats, losses and lone pages, under a clock that the tests own."""

import dataclasses
import signal
import subprocess
import sys
import textwrap

import pytest

from crawlstrategies import EAGER
from crawlworld import A, B, C, hello, urls
from inlink.errors import SessionError, StoreError
from inlink.frontier.settings import Politeness
from inlink.protocol import (
    Crawled,
    Excluded,
    Failed,
    HostDelay,
    Receipt,
    Redirected,
    Released,
    Tasks,
)
from inlink.store.log import Log

D, E = "http://d.net/", "http://e.net/"


# -- sessions ---------------------------------------------------------------------------------------------------------


def test_a_new_session_ends_its_owners_last_one_and_nobody_elses(world):
    crawl = world.open(retry_seconds=10)
    crawl.seed([A, B, C])
    one, other = hello(crawl, "one"), hello(crawl, "other")
    assert urls(crawl.desk.next(one, 1)) == [A]
    assert urls(crawl.desk.next(other, 1)) == [B]
    again = crawl.desk.hello("one", silent_after=60.0)
    assert (again.number, again.owner, again.lost, again.lease_seconds, again.silent_after) == (
        3,
        "one",
        1,
        600.0,
        60.0,
    )
    with pytest.raises(SessionError, match="session 1 has ended"):
        crawl.desk.next(one, 1)
    with pytest.raises(SessionError):
        crawl.desk.report(one, [])
    assert (world.state(A), world.state(B)) == ("discovered", "leased")
    assert urls(crawl.desk.next(other, 1)) == [C]
    assert crawl.desk.bye(other) == 2
    with pytest.raises(SessionError):
        crawl.desk.renew(other)
    assert (world.state(B), world.state(C)) == ("discovered", "discovered")


def test_sessions_go_on_after_reopening(world):
    crawl = world.open()
    crawl.seed([A, B, C])
    one, other, ended = hello(crawl, "one"), hello(crawl, "other"), hello(crawl, "ended")
    (task,) = crawl.desk.next(one, 1).tasks
    crawl.desk.bye(ended)
    crawl = world.again()
    with pytest.raises(SessionError):
        crawl.desk.next(ended, 1)
    assert crawl.desk.report(other, [Crawled(task.lease)]) == [Receipt(False)]
    assert crawl.desk.report(one, [Crawled(task.lease)]) == [Receipt(True)]
    assert hello(crawl, "new") == ended + 1
    assert crawl.desk.hello("one", rejoin=True).number == one
    assert crawl.desk.hello("nobody", rejoin=True).number == ended + 2


def test_a_silent_session_ends_but_not_while_the_crawl_is_down(world):
    crawl = world.open(retry_seconds=10)
    crawl.seed([A, B])
    one, other = hello(crawl, "one"), crawl.desk.hello("never silent").number
    assert urls(crawl.desk.next(one, 1)) == [A]
    world.clock.now += 59
    assert urls(crawl.desk.next(other, 1)) == [B]
    world.clock.now += 1000
    crawl = world.again()
    world.clock.now += 59
    assert crawl.next(1) == []
    assert world.state(A) == "leased"
    world.clock.now += 1
    assert crawl.next(1) == []
    assert (world.state(A), world.state(B)) == ("discovered", "leased")
    with pytest.raises(SessionError, match="begin a new session"):
        crawl.desk.next(one, 1)
    assert crawl.desk.next(other, 1).due_in == 10


# -- answers ----------------------------------------------------------------------------------------------------------


def test_a_lease_counts_by_its_number_alone(world):
    """A real number with another page's id and URL answers for the page that was leased."""
    crawl = world.open()
    crawl.seed([A, B])
    lease = crawl.next(1)[0]
    forged = dataclasses.replace(lease, page=1, url=B)
    assert not crawl.host_delay(dataclasses.replace(lease, number=99), 5.0)
    assert crawl.crawled(forged)
    assert (world.state(A), world.state(B)) == ("crawled", "discovered")
    assert not crawl.crawled(lease)
    assert not crawl.failed(12345)


def test_a_lease_of_another_session_does_not_count(world):
    crawl = world.open()
    crawl.seed([A, B])
    one, other = hello(crawl, "one"), hello(crawl, "other")
    (task,) = crawl.desk.next(one, 1).tasks
    lease = crawl.next(1)[0].number
    for foreign in (task.lease, lease, 12345):
        answers = [
            Crawled(foreign),
            Failed(foreign, "x"),
            Excluded(foreign),
            Released(foreign),
            Redirected(foreign, C),
        ]
        assert crawl.desk.report(other, answers) == [Receipt(False)] * 5
    assert (world.state(A), world.state(B)) == ("leased", "leased")


# -- repeats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reopen", [False, True])
def test_a_repeated_request_gives_the_tasks_that_are_still_out(world, reopen):
    crawl = world.open()
    crawl.seed([A, B, C])
    one = hello(crawl)
    first = crawl.desk.next(one, 2, 5)
    assert urls(first) == [A, B]
    if reopen:
        crawl = world.again()
    assert crawl.desk.next(one, 2, 5) == first
    crawl.desk.report(one, [Crawled(first.tasks[0].lease)])
    if reopen:
        crawl = world.again()
    assert crawl.desk.next(one, 9, 5).tasks == first.tasks[1:]
    with pytest.raises(SessionError, match="request 4 is older than 5"):
        crawl.desk.next(one, 2, 4)
    assert urls(crawl.desk.next(one, 2, 6)) == [C]
    assert urls(crawl.desk.next(one, 2, 6)) == [C]
    with pytest.raises(SessionError):
        crawl.desk.next(one, 2, 5)


@pytest.mark.parametrize("reopen", [False, True])
def test_a_repeated_report_gives_the_same_outcomes(world, reopen):
    """The target of a redirect included, for as long as it is out."""
    crawl = world.open(politeness=EAGER)
    crawl.seed([A, B, C])
    one = hello(crawl)
    tasks = crawl.desk.next(one, 3).tasks
    answers = [
        Crawled(tasks[0].lease, ["/x"]),
        Redirected(tasks[1].lease, D, b"kept"),
        Released(tasks[2].lease),
        Crawled(tasks[0].lease),
        HostDelay(A, 5.0),
    ]
    receipts = crawl.desk.report(one, answers, 3)
    assert [receipt.counted for receipt in receipts] == [True, True, True, False, True]
    target = receipts[1].task
    assert (target.url, target.carried) == (D, b"kept")
    if reopen:
        crawl = world.again()
    assert crawl.desk.report(one, answers, 3) == receipts
    assert crawl.page(A).crawls == 1
    with pytest.raises(SessionError, match="request 2 is older than 3"):
        crawl.desk.report(one, [], 2)
    assert crawl.desk.report(one, [Crawled(target.lease)], 4) == [Receipt(True)]
    if reopen:
        crawl = world.again()
    assert crawl.desk.report(one, [Crawled(target.lease)], 4) == [Receipt(True)]
    assert crawl.page(D).crawls == 1


@pytest.mark.parametrize("written", range(8))
def test_a_report_that_broke_off_is_taken_in_whole_by_its_repeat(world, monkeypatch, written):
    """The log fails after so many events of the report; what was written then is not done twice."""
    crawl = world.open(politeness=EAGER)
    crawl.seed([A, B, C, E, "http://f.net/"])
    one, other = hello(crawl), hello(crawl, "other")
    tasks = crawl.desk.next(one, 4).tasks
    (foreign,) = crawl.desk.next(other, 1).tasks
    crawl.desk.report(other, [Failed(foreign.lease, "x")])
    answers = [
        Crawled(tasks[0].lease, ["/x"]),
        Redirected(tasks[1].lease, D),
        Released(tasks[2].lease),
        Failed(tasks[3].lease, "no", 404),
        Crawled(foreign.lease),
    ]
    append, count = Log.append, 0

    def failing(*args, **given):
        nonlocal count
        count += 1
        if count > written:
            raise StoreError("no room")
        return append(*args, **given)

    monkeypatch.setattr(Log, "append", failing)
    try:
        crawl.desk.report(one, answers, 7)
        broke = False
    except StoreError:
        broke = True
    monkeypatch.undo()
    assert broke == (written < 6)
    crawl = world.again()
    receipts = crawl.desk.report(one, answers, 7)
    assert [receipt.counted for receipt in receipts] == [True, True, True, True, False]
    assert (world.state(A), world.state(B), world.state(C), world.state(E)) == (
        "crawled",
        "merged",
        "discovered",
        "gone",
    )
    assert crawl.page(A).crawls == 1
    assert crawl.page(E).errors == 1
    if receipts[1].task is not None:
        assert receipts[1].task.url == D
        assert world.state(D) == "leased"
    else:
        assert written == 2  # It broke between the merge and the lease: the target waits.
        assert world.state(D) == "discovered"
    assert crawl.desk.report(one, answers, 7) == receipts


KILLED = """
    import os, signal, sys
    from inlink.crawl.crawl import Crawl
    from inlink.protocol import Crawled, Redirected

    crawl = Crawl(sys.argv[1], policy="first-come")
    crawl.seed(["http://a.com/", "http://b.com/", "http://c.org/"])
    session = crawl.desk.hello("spider", silent_after=60.0).number
    tasks = crawl.desk.next(session, 2, 1).tasks
    answers = [Crawled(tasks[0].lease), Redirected(tasks[1].lease, "http://d.net/")]
    receipts = crawl.desk.report(session, answers, 1)
    crawl.desk.next(session, 1, 2)
    print(session, tasks[0].lease, tasks[1].lease, receipts[1].task.lease, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_repeats_after_kill_9(world):
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(world.folder)], capture_output=True, text=True
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    session, first, second, target = map(int, run.stdout.split())
    world.clock.now = 2e9
    crawl = world.open()
    answers = [Crawled(first), Redirected(second, D)]
    receipts = crawl.desk.report(session, answers, 1)
    assert [(receipt.counted, receipt.task and receipt.task.lease) for receipt in receipts] == [
        (True, None),
        (True, target),
    ]
    assert urls(crawl.desk.next(session, 5, 2)) == [C]
    with pytest.raises(SessionError):
        crawl.desk.next(session, 5, 1)
    assert crawl.page(A).crawls == 1


# -- waiting ----------------------------------------------------------------------------------------------------------


def test_tasks_of_other_sessions_are_told_apart_from_due_pages(world):
    crawl = world.open(politeness=Politeness(delay=7, in_flight=9))
    crawl.seed([A, A + "2"])
    one, other = hello(crawl, "one"), hello(crawl, "other")
    (task,) = crawl.desk.next(one, 9).tasks
    assert crawl.desk.next(other, 9) == Tasks([], 7.0, 1)
    world.clock.now += 7
    (second,) = crawl.desk.next(one, 9).tasks
    assert crawl.desk.next(other, 9) == Tasks([], None, 2)
    assert crawl.desk.next(one, 9) == Tasks([], None, 0)
    crawl.desk.report(one, [Crawled(task.lease), Crawled(second.lease)])
    assert crawl.desk.next(other, 9) == Tasks([])


def test_a_pause_is_kept(world):
    crawl = world.open()
    crawl.seed([A, B])
    one = hello(crawl)
    (task,) = crawl.desk.next(one, 1).tasks
    crawl.pause()
    crawl.pause()
    for _ in range(2):
        assert crawl.paused
        assert crawl.desk.next(one, 9) == Tasks([], None, 0, True)
        assert crawl.next(9) == []
        crawl = world.again()
    assert crawl.desk.report(one, [Crawled(task.lease)]) == [Receipt(True)]
    assert crawl.due_in() is None
    crawl.resume()
    assert urls(crawl.desk.next(one, 9)) == [B]
    assert not world.again().paused

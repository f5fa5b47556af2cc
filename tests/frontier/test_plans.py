"""Pages whose date has come: they enter the queue in steps, and none is forgotten."""

import pytest

from crawlstrategies import EAGER, Clock, frontier_in, opened
from inlink.base.clock import VirtualClock
from inlink.crawl.folder import look
from inlink.frontier import frontier
from inlink.frontier.revisit import FixedInterval

PAGES = [f"http://h{k % 3}.com/{k}" for k in range(40)]


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch):
    monkeypatch.setattr(frontier, "_ENTERING", 8)
    monkeypatch.setattr(frontier, "_CHANGED", 8)


def crawled(folder, clock):
    """A crawl whose pages are all due again after 100 seconds."""
    crawl = opened(folder, clock, policy="first-come", revisit=FixedInterval(100.0), politeness=EAGER)
    crawl.seed(PAGES)
    for lease in crawl.next(len(PAGES)):
        crawl.crawled(lease)
    return crawl


def test_pages_that_are_due_at_once_enter_in_steps(tmp_path):
    clock = Clock()
    with crawled(tmp_path / "c", clock) as crawl:
        clock.now += 100
        found = []
        # Each of the two calls lets 8 pages enter.
        while crawl.due_in() == 0:
            leases = crawl.next(100)
            assert 0 < len(leases) <= 16
            found += leases
        assert sorted(lease.url for lease in found) == sorted(PAGES)
        assert crawl.view.hosts().rows[0].taken == 14


def test_who_looks_sees_all_that_is_due(tmp_path):
    clock = Clock()
    crawled(tmp_path / "c", clock).close()
    clock.now += 100
    seen = look(tmp_path / "c", clock)
    while seen.advance(clock.now):
        pass
    assert len(seen.queue) == len(PAGES)
    seen.pages.close()


def test_in_virtual_time_all_enter_at_once(tmp_path):
    clock = VirtualClock(1_000.0)
    with crawled(tmp_path / "c", clock) as crawl:
        clock.advance(100)
        assert len(crawl.next(100)) == len(PAGES)


def test_many_changed_plans_are_left_out_in_steps(tmp_path):
    clock = Clock()
    with crawled(tmp_path / "c", clock) as crawl:
        front = frontier_in(crawl)
        for page in range(len(PAGES)):
            front.plan(page, clock.now + 500)
        clock.now += 100
        assert front.advance(clock.now)
        # Of the 40 plans that were changed, 8 are left out at a time.
        assert len(front.later) == 2 * len(PAGES) - 8
        while front.advance(clock.now):
            pass
        assert crawl.next(100) == []
        assert crawl.due_in() == 400

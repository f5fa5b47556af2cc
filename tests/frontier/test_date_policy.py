"""The policy ``date``: pages in the order of their dates, against a model of a few lines."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import Clock, opened
from inlink import Crawl
from inlink.errors import ParameterError
from inlink.factors.parts import combined
from inlink.frontier.policies import DATE_SCALE

AT_ONCE = {"delay": 0.0, "in_flight": 1000}
COUNT = 6
YEAR = 365 * 86_400

STEP = st.one_of(
    st.tuples(st.just("due"), st.integers(0, COUNT - 1), st.integers(-5 * YEAR, 50)),
    st.tuples(st.just("due"), st.integers(0, COUNT - 1), st.integers(-50, 50)),
    st.tuples(st.just("crawled"), st.integers(0, COUNT - 1), st.none()),
    st.tuples(st.just("wait"), st.integers(1, 100), st.none()),
)


@settings(max_examples=60)
@given(st.lists(STEP, max_size=15), st.booleans())
def test_the_order_is_that_of_the_dates(tmp_path_factory, steps, reopened):
    folder, clock = tmp_path_factory.mktemp("c") / "c", Clock()
    urls = [f"http://{'ab'[k % 2]}.com/{k}" for k in range(COUNT)]
    dates, waits = {}, set(urls)
    with opened(folder, clock, policy="date", politeness=AT_ONCE) as crawl:
        started = clock.now
        for url in urls:
            crawl.seed([url])
            dates[url] = clock.now
            clock.now += 1
        for kind, number, seconds in steps:
            if kind == "wait":
                clock.now += number
            elif kind == "due":
                crawl.set_due(urls[number], seconds)
                dates[urls[number]] = clock.now + seconds
                waits.add(urls[number])
            else:
                crawl.crawled(urls[number])
                dates[urls[number]] = clock.now
                waits.discard(urls[number])
        clock.now += 60
        order = sorted(waits, key=lambda url: (dates[url], urls.index(url)))
        if not reopened:
            check(crawl, order, dates, started)
    if reopened:
        with Crawl(folder, clock=clock) as crawl:
            check(crawl, order, dates, started)


def check(crawl, order, dates, started):
    for url in order:
        priority = 2.0 ** ((started - dates[url]) / DATE_SCALE)
        assert combined(crawl.why(url).parts) == pytest.approx(priority, rel=1e-6)
    assert [lease.url for lease in crawl.next(COUNT)] == order


def test_dates_far_away_are_in_order_or_level(tmp_path):
    with opened(tmp_path / "c", Clock(), policy="date", politeness=AT_ONCE) as crawl:
        urls = [f"http://a.com/{k}" for k in range(4)]
        crawl.seed(urls)
        for url, seconds in zip(urls, (-9e8, -1e9, -1, -2), strict=True):
            crawl.set_due(url, seconds)
        # Beyond 16 years dates are level, and the order is that of discovery.
        assert [lease.url for lease in crawl.next(4)] == [urls[0], urls[1], urls[3], urls[2]]
        for wild in (-1.1e9, math.nan, -math.inf):
            with pytest.raises(ParameterError, match="seconds must be"):
                crawl.set_due(urls[0], wild)

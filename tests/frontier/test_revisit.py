from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlink.errors import ParameterError
from inlink.frontier.revisit import Adaptive, ChangeRate, FixedInterval, History, Next, Schedule

DAY = 86_400.0
YEAR = 365 * DAY


def history(**given):
    return History(**{"first_crawl": 1.7e9, "last_crawl": 1.7e9 + 100, "crawls": 2} | given)


def test_a_fixed_interval_is_fixed():
    schedule = FixedInterval(3600)
    assert (
        schedule.next(history())
        == schedule.next(history(crawls=9, changes=8, status=404))
        == Next(3600, 3600)
    )
    assert FixedInterval().seconds == 30 * DAY


# -- Aduana's frequencies


def test_the_frequency_is_the_rate_of_changes():
    page = history(last_crawl=1.7e9 + 10 * DAY, crawls=11, changes=4)
    assert ChangeRate().next(page) == Next(pytest.approx(2 * DAY), pytest.approx(2 * DAY))
    assert ChangeRate(scale=4.0).next(page).due_in == pytest.approx(DAY / 2)
    assert ChangeRate(scale=None).next(page).due_in == 10
    assert ChangeRate(margin=1.0).next(page) == Next(pytest.approx(DAY), pytest.approx(2 * DAY))


def test_without_a_rate_the_default_frequency_holds():
    once = history(last_crawl=1.7e9, crawls=1)
    assert ChangeRate().next(once).due_in == 10
    assert ChangeRate(default=0.5, scale=100.0).next(once).due_in == 2
    assert ChangeRate().next(history(crawls=1)).due_in == 10
    at_one_moment = history(last_crawl=1.7e9, crawls=2, changes=1)
    assert ChangeRate().next(at_one_moment).due_in == 10
    backwards = history(last_crawl=1.6e9, crawls=2, changes=1)
    assert ChangeRate().next(backwards).due_in == 10
    assert ChangeRate(spec=[("", "x5")]).next(once).due_in == 2


def test_a_rate_without_bound_is_bounded():
    page = history(first_crawl=0.0, last_crawl=5e-324, crawls=1000, changes=999)
    assert ChangeRate().next(page) == Next(1.0, 1.0)
    assert ChangeRate(shortest=60, margin=9).next(page) == Next(60, 60)


def test_a_page_is_crawled_so_often_at_most():
    schedule = ChangeRate(max_crawls=3)
    assert schedule.next(history(crawls=2)).due_in is not None
    assert schedule.next(history(crawls=3)) == Next(None, 100.0)
    assert schedule.next(history(crawls=4)).due_in is None


def test_a_specification_says_it_by_url():
    schedule = ChangeRate(
        scale=7.0,
        spec=[("https?://news[.]", "x4"), ("http://a[.]com/daily", DAY), (".*hourly", "3600")],
    )
    page = history(last_crawl=1.7e9 + 400, changes=3, interval=5.0)
    found = {
        url: schedule.next(replace(page, url=url)).due_in
        for url in (
            "http://news.a.com/x",  # 4 changes and one in 400 s, four times as often
            "http://a.com/daily",
            "http://a.com/daily/hourly",  # the first that fits
            "http://a.com/hourly",
            "http://a.com/x?http://news.",  # begins otherwise: no rule fits
        )
    }
    assert list(found.values()) == [pytest.approx(25), DAY, DAY, 3600, None]
    assert schedule.next(replace(page, url="http://b.com/")) == Next(None, 5.0)


@given(
    st.floats(0, 4e9),
    st.floats(0, 4e9),
    st.integers(1, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.floats(0, 1e12),
)
def test_every_history_has_an_answer(first, last, crawls, changes, interval):
    for modified in (None, False, True):
        for status in (200, 404, None):
            page = History(first, last, crawls, changes, modified, interval, status, changed_at=first)
            for schedule in (FixedInterval(), ChangeRate(), ChangeRate(spec=[(".*", "x3")]), Adaptive()):
                answer = schedule.next(page)
                assert answer.due_in is not None
                assert 0 < answer.due_in <= answer.interval
                assert answer.interval < float("inf")


# -- Nutch's adaptive schedule


def nutch(
    interval, modified_time, fetch_time, state, inc=0.4, dec=0.2, sync=True, rate=0.3, initial=30 * DAY
):
    """setFetchSchedule of AdaptiveFetchSchedule.java, line by line, but for whole seconds; (next fetch, interval)."""
    reference = fetch_time
    interval = initial if interval == 0 else interval
    if modified_time <= 0:
        modified_time = fetch_time
    if state == "modified":
        interval *= 1 - dec
        modified_time = fetch_time
    elif state == "notmodified":
        interval *= 1 + inc
    if sync:
        delta = fetch_time - modified_time
        if delta > interval:
            interval = delta
        offset = delta * rate
        if delta > 0 and offset > YEAR:
            # In Java this is a division of whole numbers.
            offset = offset // delta * YEAR
        reference = fetch_time - offset
    if interval < 60:
        interval = 60
    elif interval > YEAR:
        interval = YEAR
    return reference + interval - fetch_time, interval


def test_the_worked_example():
    for modified, interval in ((None, 100), (True, 80), (False, 140)):
        assert Adaptive().next(history(interval=100.0, modified=modified)) == Next(
            pytest.approx(interval), pytest.approx(interval)
        )


@given(
    st.sampled_from([0.0, 1.0, 60.0, 100.0, 1e6, YEAR]) | st.floats(1, 1e8),
    st.floats(0, YEAR),
    st.sampled_from(["modified", "notmodified", "unknown"]),
    st.booleans(),
    st.floats(0, 1),
)
def test_adaptive_is_nutchs(interval, since, state, sync, rate):
    fetched = 1.7e9
    page = History(
        first_crawl=1e9,
        last_crawl=fetched,
        crawls=5,
        modified={"modified": True, "notmodified": False, "unknown": None}[state],
        interval=interval,
        changed_at=fetched - since,
    )
    answer = Adaptive(sync_delta=sync, sync_delta_rate=rate).next(page)
    due, new = nutch(interval, fetched - since, fetched, state, sync=sync, rate=rate)
    assert answer.interval == pytest.approx(new)
    assert answer.due_in == pytest.approx(min(due, 90 * DAY), abs=1e-3)


def test_adaptive_beside_nutchs_edges():
    schedule = Adaptive()
    # 100 s in force, unmodified, changed 1000 s ago: the interval becomes that, and 300 s are taken off
    page = history(interval=100.0, modified=False, last_crawl=1.7e9, changed_at=1.7e9 - 1000)
    assert schedule.next(page) == Next(pytest.approx(700), pytest.approx(1000))
    assert schedule.next(replace(page, changed_at=None)) == Next(pytest.approx(140), pytest.approx(140))
    assert schedule.next(replace(page, changed_at=1.8e9)).due_in == pytest.approx(140)  # a time to come
    assert schedule.next(replace(page, modified=True)).due_in == pytest.approx(80)
    # Shifts longer than a year: Nutch drops them, here the interval bounds them.
    yearly = replace(schedule, at_latest=10 * YEAR)
    ten_years = replace(page, changed_at=1.7e9 - 10 * YEAR)
    assert yearly.next(ten_years) == Next(pytest.approx(0.7 * YEAR), YEAR)
    assert nutch(100.0, 1.7e9 - 10 * YEAR, 1.7e9, "notmodified") == (YEAR, YEAR)
    two_years = replace(page, changed_at=1.7e9 - 2 * YEAR)
    assert yearly.next(two_years).due_in == pytest.approx(0.7 * YEAR)
    assert nutch(100.0, 1.7e9 - 2 * YEAR, 1.7e9, "notmodified")[0] == pytest.approx(0.4 * YEAR)
    # Every page is crawled again after 90 days; the interval in force may be longer.
    assert schedule.next(ten_years) == Next(90 * DAY, YEAR)


def test_the_first_crawl_changes_nothing():
    for modified in (None, False, True):
        page = history(crawls=1, last_crawl=1.7e9, modified=modified)
        assert Adaptive().next(page) == Next(30 * DAY, 30 * DAY)
        assert Adaptive(initial=7.0).next(page).interval == 60


def test_bounds_and_the_gone():
    assert Adaptive(shortest=99, longest=99).next(history(interval=1.0)).interval == 99
    schedule = Adaptive()
    assert schedule.next(history(interval=60.0, modified=True)).interval == 60
    assert schedule.next(history(interval=YEAR, modified=False)).interval == YEAR
    for status in (404, 410):
        for interval in (10.0, 100.0, 59 * DAY, 60 * DAY, 81 * DAY, 90 * DAY, YEAR):
            # setPageGoneSchedule of AbstractFetchSchedule.java, which has no other bounds.
            after = interval * 1.5 if interval * 1.5 < 90 * DAY else 90 * DAY * 0.9
            page = history(interval=interval, status=status, modified=True)
            assert schedule.next(page) == Next(pytest.approx(after), pytest.approx(after))
    assert schedule.next(history(interval=100.0, status=500)).interval == 100


def test_the_interval_finds_the_page():
    """A page that changes every three days is crawled about so often, whatever it starts with."""
    for start in (60.0, 30 * DAY, YEAR):
        schedule, now, interval, seen, crawls = Adaptive(initial=start), 0.0, 0.0, 0.0, []
        for number in range(1, 400):
            changed = (now // (3 * DAY)) * 3 * DAY
            page = History(
                0.0, now, number, 0, changed > seen, interval, changed_at=changed if number > 1 else None
            )
            answer = schedule.next(page)
            interval, seen = answer.interval, changed
            crawls.append(now)
            now += answer.due_in
        late = crawls[-100:]
        assert 1 * DAY < (late[-1] - late[0]) / 99 < 4 * DAY


@pytest.mark.parametrize(
    ("schedule", "arguments", "message"),
    [
        (FixedInterval, {"seconds": -1}, r"FixedInterval\.seconds must be a number of seconds"),
        (ChangeRate, {"scale": 0}, r"scale must be a number in \(0, 1e9\]"),
        (ChangeRate, {"scale": float("nan")}, r"scale must be a number in \(0, 1e9\]"),
        (ChangeRate, {"default": -1}, "default must be"),
        (ChangeRate, {"default": True}, "default must be"),
        (ChangeRate, {"shortest": 0}, "shortest must be"),
        (ChangeRate, {"margin": -1}, "margin must be"),
        (ChangeRate, {"max_crawls": 0}, "max_crawls must be"),
        (ChangeRate, {"spec": [("a(", 1)]}, r"'a\(' is not a valid regular expression"),
        (ChangeRate, {"spec": [("a", "y2")]}, "not 'y2'"),
        (ChangeRate, {"spec": [("a", "x")]}, "not 'x'"),
        (ChangeRate, {"spec": [("a", "x0")]}, "not 'x0'"),
        (ChangeRate, {"spec": [("a", float("inf"))]}, "not inf"),
        (ChangeRate, {"spec": [("a", -5)]}, "not -5"),
        (ChangeRate, {"spec": [("a", None)]}, "a rule must be a pair"),
        (ChangeRate, {"spec": [("a",)]}, "a rule must be a pair"),
        (ChangeRate, {"spec": [(b"a", 1)]}, "a rule must be a pair"),
        (Adaptive, {"initial": 0}, "initial must be a number of seconds"),
        (Adaptive, {"shortest": 100, "longest": 99}, "is above longest"),
        (Adaptive, {"inc": -0.1}, "inc must be"),
        (Adaptive, {"dec": 1.1}, r"dec must be a number in \[0, 1\]; got 1.1"),
        (Adaptive, {"sync_delta_rate": "x"}, "sync_delta_rate must be"),
        (Adaptive, {"gone": float("inf")}, "gone must be"),
    ],
)
def test_wrong_arguments_are_refused(schedule, arguments, message):
    with pytest.raises(ParameterError, match=message):
        schedule(**arguments)


def test_any_object_with_the_method_is_a_schedule():
    class Never:
        def next(self, history: History) -> Next:
            return Next(None, 0.0)

    schedules: list[Schedule] = [FixedInterval(), ChangeRate(), Adaptive(), Never()]
    assert [schedule.next(history(interval=60.0)).due_in for schedule in schedules] == [
        30 * DAY,
        100,
        60,
        None,
    ]

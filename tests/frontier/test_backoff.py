import math
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlink.frontier.backoff import (
    LONGEST_WAIT,
    OUTCOMES,
    STATUSES,
    classify,
    delay,
    retry_after,
    wait_under,
)

NOV_6 = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT


@pytest.mark.parametrize(
    ("value", "now", "seconds"),
    [
        ("120", 5.0, 120.0),
        (b" 120\t", 5.0, 120.0),
        (7, 5.0, 7.0),
        (7.5, 5.0, 7.5),
        ("1.5", 0.0, 1.5),
        ("0", 0.0, 0.0),
        ("9" * 5000, 0.0, LONGEST_WAIT),
        ("86401", 0.0, LONGEST_WAIT),
        ("Sun, 06 Nov 1994 08:49:37 GMT", NOV_6 - 30, 30.0),  # the three forms of RFC 9110, 5.6.7
        ("Sunday, 06-Nov-94 08:49:37 GMT", NOV_6 - 30, 30.0),
        ("Sun Nov  6 08:49:37 1994", NOV_6 - 30, 30.0),
        ("Sun, 06 Nov 1994 09:49:37 +0100", NOV_6 - 30, 30.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", NOV_6 + 30, 0.0),
        ("Sun, 06 Nov 2094 08:49:37 GMT", NOV_6, LONGEST_WAIT),
        ("Sun, 06 Nov 1994 24:00:00 GMT", NOV_6, None),
        ("Sun, 06 Nov 1994 23:60:00 GMT", NOV_6, None),
        ("Sun, 06 Nov 1994 23:59:61 GMT", NOV_6, None),
        ("Sun, 06 Nov 1994 08:49:60 GMT", NOV_6, 23.0),  # a leap second
        ("Sun, 06 Foo 1994 08:49:37 GMT", NOV_6, None),
        ("-5", 0.0, None),
        ("nan", 0.0, None),
        (float("nan"), 0.0, None),
        ("١٢", 0.0, None),
        ("soon", 0.0, None),
        ("", 0.0, None),
        (b"\xff", 0.0, None),
        (None, 0.0, None),
    ],
)
def test_retry_after(value, now, seconds):
    assert retry_after(value, now) == seconds


PIECES = [
    "Sun",
    "Sunday",
    ",",
    "06",
    "Nov",
    "1994",
    "94",
    "08:49:37",
    "99:99:99",
    "GMT",
    "-",
    "+9999999999",
    ":",
    ".",
]
NEARLY_DATES = st.lists(st.sampled_from([*PIECES, " "]), max_size=10).map("".join)


@given(st.text(max_size=40) | st.binary(max_size=40) | NEARLY_DATES, st.floats(0, 4e9))
def test_retry_after_survives_anything(value, now):
    seconds = retry_after(value, now)
    assert seconds is None or 0 <= seconds <= LONGEST_WAIT


@given(st.integers(0, 4_000_000_000), st.integers(0, 86_400))
def test_every_date_gives_its_distance(now, seconds):
    assert retry_after(formatdate(now + seconds, usegmt=True), float(now)) == seconds


def test_delay_doubles_up_to_its_cap():
    assert [delay(n, 30, 3600) for n in range(9)] == [0, 30, 60, 120, 240, 480, 960, 1920, 3600]
    assert delay(-1, 30, 3600) == 0
    assert delay(10**9, 1e-3, 3600) == 3600
    assert delay(100, 60) == LONGEST_WAIT
    assert delay(10**9, 0, 3600) == 0


@pytest.mark.parametrize(
    ("status", "error", "outcome"),
    [
        (200, None, "ok"),
        (301, "", "ok"),
        (304, None, "ok"),
        (200, "connection lost in the body", "network"),
        (299, "cut off", "network"),
        (302, "redirects to 'mailto:me@example.org', which must not be fetched", "ok"),
        (404, None, "gone"),
        (410, "x", "gone"),
        (429, None, "throttled"),
        (503, "x", "busy"),
        (500, None, "server"),
        (502, None, "server"),
        (599, None, "server"),
        (400, None, "client"),
        (403, "x", "client"),
        (451, None, "client"),
        (408, None, "network"),
        (999, None, "client"),
        (99, None, "client"),
        (600, None, "client"),
        (None, "DNS lookup failed", "network"),
        (None, None, "network"),
        (0, None, "network"),
    ],
)
def test_outcomes(status, error, outcome):
    assert classify(status, error) == outcome


def test_the_tables_of_outcomes():
    assert set(OUTCOMES) == {"ok", "gone", "throttled", "busy", "server", "client", "network"}
    assert all(name in OUTCOMES and first <= last for first, last, name in STATUSES)
    assert {classify(status) for status in range(1000)} == set(OUTCOMES)
    outcomes = OUTCOMES.values()
    assert {"throttled", "busy", "server", "network"} == {
        outcome.name for outcome in outcomes if outcome.retried
    }
    assert {"server", "network"} == {outcome.name for outcome in outcomes if outcome.against_host}
    assert {"throttled", "server", "network"} == {outcome.name for outcome in outcomes if outcome.host_waits}
    assert {"throttled", "busy"} == {outcome.name for outcome in outcomes if outcome.throttles}


@given(st.floats(1e-300, 1e6), st.floats(1e-3, 1e5), st.floats(0.002, 1e4))
def test_after_the_wait_the_rate_is_at_the_limit(heat, window, crawls):
    """By formula (2), a heat T falls to exp(−t/w)·T in t seconds, and is a rate of 1 ÷ (w·ln(1 + 1/T))."""
    limit = crawls / window
    wait = wait_under(heat, limit, window)
    left = heat * math.exp(-wait / window)
    rate = 1.0 / (window * math.log1p(1.0 / left))
    assert rate == pytest.approx(limit, rel=1e-6) or (wait == 0 and rate < limit)


def test_waits_at_their_edges():
    assert wait_under(0.0, 1.0, 1.0) == wait_under(5e-324, 1.0, 1.0) == wait_under(1.0, 0.0, 1.0) == 0.0
    assert wait_under(1.0, 1e-9, 1e-9) == pytest.approx(1e9)  # a gap of 1e18 windows

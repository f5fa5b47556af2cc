"""A few trials of each attack; ``make torture`` makes more."""

import pytest

from torture.trial import Ended, verdict


@pytest.mark.parametrize(
    ("ended", "right", "called"),
    [
        (Ended(0, "a\n", "", 9), "a\n", "right"),
        (Ended(0, "a\n", "", 9), None, "right"),
        (Ended(2, "", "inlink: x is damaged at byte 3\n", 9), "a\n", "refused"),
        (Ended(2, "", "Usage: inlink\nError: No such option\n", 9), "a\n", "refused"),
        (Ended(0, "b\n", "", 9), "a\n", "another answer: 'b' instead of 'a'"),
        (Ended(-11, "", "", 9), "a\n", "killed by SIGSEGV: "),
        (Ended(-9, "", "", 9, hung=True), "a\n", "hung"),
        (Ended(-9, "", "", 9999), "a\n", "took more than 3,000 MB of memory"),
        (
            Ended(1, "", "Traceback (most recent call last):\nKeyError: 'x'\n", 9),
            "a\n",
            "traceback: KeyError: 'x'",
        ),
        (Ended(1, "", "", 9), "a\n", "exit code 1: "),
        (Ended(2, "", "", 9), "a\n", "not one line: ''"),
        (
            Ended(2, "", "inlink: one\ninlink: two\n", 9),
            "a\n",
            "not one line: 'inlink: one\\ninlink: two\\n'",
        ),
    ],
)
def test_what_is_a_violation(ended, right, called):
    assert verdict(ended, right) == called

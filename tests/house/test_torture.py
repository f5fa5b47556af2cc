"""A few trials of each attack; ``make torture`` makes more."""

import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE
from torture.trial import Ended, verdict

TESTS = Path(__file__).parents[1]


@pytest.mark.soak
def test_every_attack_ends_in_the_right_answer_or_in_one_line():
    run = subprocess.run(
        [sys.executable, "-m", "torture", "--trials", "1", "--seed", "3"],
        cwd=TESTS, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


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
def test_violations_are_told_apart_from_right_answers(ended, right, called):
    assert verdict(ended, right) == called

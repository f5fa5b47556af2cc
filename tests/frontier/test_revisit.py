import pytest

from inlink.errors import ParameterError
from inlink.frontier.revisit import FixedInterval, History, Next, Schedule

DAY = 86_400.0


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


@pytest.mark.parametrize(
    ("schedule", "arguments", "message"),
    [
        (FixedInterval, {"seconds": -1}, r"FixedInterval\.seconds must be a number of seconds"),
        (FixedInterval, {"seconds": float("nan")}, "seconds must be"),
    ],
)
def test_wrong_arguments_are_refused(schedule, arguments, message):
    with pytest.raises(ParameterError, match=message):
        schedule(**arguments)


def test_any_object_with_the_method_is_a_schedule():
    class Never:
        def next(self, history: History) -> Next:
            return Next(None, 0.0)

    schedules: list[Schedule] = [FixedInterval(), Never()]
    assert [schedule.next(history(interval=60.0)).due_in for schedule in schedules] == [
        30 * DAY,
        None,
    ]

"""The arguments of a replay: types, ranges, defaults and helps. :mod:`inlink.replaying.checks` checks them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from inlink.base.declare import Parameter, Seconds
from inlink.base.settings import LONGEST

Count = Annotated[int, Parameter(at_least=1, at_most=1 << 32)]


class ReplayArguments(TypedDict, total=False):
    """The keywords of :func:`inlink.replay`. Those with a help are checked by their declaration."""

    policies: Annotated[Sequence[Any], Parameter(default=("host-diverse", "breadth-first"))]
    seeds: Annotated[str | Sequence[Sequence[Any]], Parameter(default="20x10")]
    budget: Annotated[float | int, Parameter(default=0.5)]
    marks: Annotated[Sequence[float], Parameter(default=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5))]
    baseline: Annotated[
        str | None,
        Parameter("The policy to compare with.", none="host-diverse if it is among them, else the first"),
    ]
    host_pages: Sequence[int] | None
    lines: Annotated[
        bool,
        Parameter(
            "Add clairvoyant greedy, look-ahead and the sort bound.",
            option="--lines/--no-lines",
            default=True,
        ),
    ]
    tau: Annotated[
        bool,
        Parameter(
            "Compare the ranks of the crawled part with those of the whole.",
            option="--tau/--no-tau",
            default=True,
        ),
    ]
    relevant: Annotated[
        float,
        Parameter(
            "The least content score of a relevant page.", at_least=-LONGEST, at_most=LONGEST, default=0.5
        ),
    ]
    top: Annotated[Count, Parameter("The number of pages of the measure top.", default=100)]
    wasted: Annotated[
        str | None,
        Parameter("Count fetches of URLs that this expression matches as wasted.", none="no fetches"),
    ]
    random_seed: Annotated[
        int,
        Parameter(
            "Seed of the random numbers that draw seed sets and changes.",
            at_least=0,
            at_most=1 << 32,
            default=1,
        ),
    ]
    parallel: Annotated[Count, Parameter("Fetches under way at a time.", default=1)]
    fetch_seconds: Annotated[
        Seconds,
        Parameter("Seconds that a fetch takes, if there is no recording of the time.", default=0.0),
    ]
    changes: Annotated[
        float | None,
        Parameter(
            "Mean seconds between two changes of a page, drawn at random.",
            unit="seconds",
            at_least=1e-3,
            at_most=LONGEST,
            none="the recorded changes",
        ),
    ]
    noise: Annotated[
        float,
        Parameter(
            "Standard deviation of the errors in the scores that a crawl gets; measures use the true scores.",
            at_least=0,
            # Scores must fit into a float32, errors included.
            at_most=1e6,
            default=0.0,
        ),
    ]
    settings: Mapping[str, Any] | None
    jobs: Annotated[Count, Parameter("Processes that replay at the same time.", default=1)]

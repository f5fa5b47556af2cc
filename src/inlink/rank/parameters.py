"""The types, ranges and meanings of the parameters that several rankings have. Signatures have their defaults."""

from typing import Annotated, Literal

from inlink.base.declare import Parameter
from inlink.errors import ParameterError
from inlink.rank.inputs import Nodes, NodeValues

Damping = Annotated[
    float, Parameter("Share of visits that follow a link, from 0 to below 1.", at_least=0, below=1)
]
DampingTo1 = Annotated[
    float,
    Parameter(
        "Share of visits that follow a link, from 0 to 1. 1 needs --method power and --max-iter.",
        at_least=0,
        at_most=1,
    ),
]
Tolerance = Annotated[
    float | None,
    Parameter("Bound on the L1 error to reach.", above=0, none="exactly `max_iter` rounds"),
]
MaxIter = Annotated[
    int | None,
    Parameter("Stop after this number of rounds, converged or not.", at_least=0, none="the default"),
]
Method = Annotated[Literal["gauss-seidel", "power"], Parameter("Method of solution.")]
Weighted = Annotated[
    bool | None,
    Parameter(
        "Count every arc the same, whatever its weight.",
        none="if the graph has weights",
        option="--unweighted",
    ),
]
Normalized = Annotated[bool, Parameter("Do not normalize the values.", option="--unnormalized")]
ThreadCount = Annotated[int | None, Parameter("Number of threads.", at_least=1, none="all processors")]
Seed = Annotated[int, Parameter("Seed of the random numbers, at least 0.", at_least=0)]
Confidence = Annotated[float, Parameter("Confidence of the error that is reported.", above=0, below=1)]
Sample = Annotated[
    int | None,
    Parameter(
        "Number of sources to draw. With all, the values are exact.",
        at_least=1,
        none="all nodes",
        option="-k",
    ),
]
Start = Annotated[NodeValues | None, Parameter("Name of a stored ranking to start from.")]
Teleport = Annotated[NodeValues | None, Parameter("the teleport vector", option="--scores")]
Trusted = Annotated[Nodes, Parameter("File of pages that are known to be good")]


def check_rounds(tol: float | None, max_iter: int | None) -> None:
    """Refuse rounds without an end.

    Raises
    ------
    inlink.errors.ParameterError
        If both are None.
    """
    if tol is None and max_iter is None:
        raise ParameterError("give `tol`, `max_iter` or both: without either the rounds would never end")

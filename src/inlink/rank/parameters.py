"""The types and ranges of the parameters of rankings, and the checks with which every ranking begins."""

from collections.abc import Sequence
from typing import Any

from inlink.base.declare import Parameter
from inlink.errors import ParameterError

__all__ = ["PARAMETERS", "check_choice", "check_parameters", "check_rounds"]


def _flag(name: str) -> Parameter:
    return Parameter(name=name, kind=bool)


PARAMETERS: dict[str, Parameter] = {
    row.name: row
    for row in (
        Parameter(name="alpha", kind=float, at_least=0),
        Parameter(name="beta", kind=float, above=0),
        Parameter(name="gamma", kind=float, above=0, at_most=1),
        Parameter(name="rho", kind=float, at_least=0),
        Parameter(name="damping", kind=float, at_least=0, below=1),
        Parameter(name="confidence", kind=float, above=0, below=1),
        Parameter(name="tol", kind=float, above=0, none="exactly `max_iter` rounds"),
        Parameter(name="max_iter", kind=int, at_least=0, none="the default"),
        Parameter(name="depth", kind=int, at_least=0),
        Parameter(name="walks", kind=int, at_least=2),
        Parameter(name="seed", kind=int, at_least=0),
        Parameter(name="log2m", kind=int, at_least=4, at_most=16, none="the default"),
        Parameter(name="runs", kind=int, at_least=1),
        Parameter(name="exact", kind=bool, none="by the number of nodes"),
        Parameter(name="k", kind=int, at_least=1, none="all nodes"),
        Parameter(name="certain", kind=int, at_least=1, none="no place in particular"),
        Parameter(name="threads", kind=int, at_least=1, none="all processors"),
        Parameter(name="weighted", kind=bool, none="if the graph has weights"),
        *map(_flag, ("normalized", "endpoints", "wf_improved", "limit_page", "limit_domain")),
    )
}
"""The types and ranges of parameters, by name. A parameter means the same in every ranking that has it."""


def check_parameters(**values: Any) -> None:
    """Check parameters by their names.

    Raises
    ------
    inlink.errors.ParameterError
        If a value is outside its range or has a wrong type. A bool does not count as a number.
    """
    for name, value in values.items():
        PARAMETERS[name].check(value, f"`{name}`")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Check that a value is one of the given words.

    Raises
    ------
    inlink.errors.ParameterError
        If the value is not one of ``choices``.
    """
    Parameter(name=name, kind=str, choices=tuple(choices)).check(value, f"`{name}`")


def check_rounds(tol: float | None, max_iter: int | None) -> None:
    """Check a tolerance and a number of rounds. One of the two may be None.

    Raises
    ------
    inlink.errors.ParameterError
        If ``tol`` is not a finite number above 0 or None, ``max_iter`` is not an integer of at least 0 or None, or both
        are None.
    """
    check_parameters(tol=tol, max_iter=max_iter)
    if tol is None and max_iter is None:
        raise ParameterError("give `tol`, `max_iter` or both: without either the rounds would never end")

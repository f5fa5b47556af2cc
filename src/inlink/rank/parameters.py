"""The types and ranges of the parameters of rankings, and the checks with which every ranking begins."""

from collections.abc import Sequence
from typing import Any

from inlink.base.settings import Setting, check, plain
from inlink.errors import ParameterError

__all__ = ["PARAMETERS", "check_choice", "check_parameters", "check_rounds"]


def _flag(name: str) -> Setting:
    return Setting(name, bool, False, "")


PARAMETERS: dict[str, Setting] = {
    row.name: row
    for row in (
        Setting("alpha", float, 0.1, "", at_least=0),
        Setting("beta", float, 1.0, "", above=0),
        Setting("gamma", float, 0.85, "", above=0, at_most=1),
        Setting("rho", float, 0.0, "", at_least=0),
        Setting("damping", float, 0.85, "", at_least=0, below=1),
        Setting("confidence", float, 0.95, "", above=0, below=1),
        Setting("tol", float, 1e-6, "", above=0, none="exactly `max_iter` rounds"),
        Setting("max_iter", int, None, "", at_least=0, none="the default"),
        Setting("depth", int, 2, "", at_least=0),
        Setting("walks", int, 10, "", at_least=2),
        Setting("seed", int, 0, "", at_least=0),
        Setting("log2m", int, None, "", at_least=4, at_most=16, none="the default"),
        Setting("runs", int, 1, "", at_least=1),
        Setting("exact", bool, None, "", none="by the number of nodes"),
        Setting("k", int, None, "", at_least=1, none="all nodes"),
        Setting("certain", int, None, "", at_least=1, none="no place in particular"),
        Setting("threads", int, None, "", at_least=1, none="all processors"),
        Setting("weighted", bool, None, "", none="if the graph has weights"),
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
        check(PARAMETERS[name], plain(value), f"`{name}`")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Check that a value is one of the given words.

    Raises
    ------
    inlink.errors.ParameterError
        If the value is not one of ``choices``.
    """
    check(Setting(name, str, choices[0], "", choices=tuple(choices)), value, f"`{name}`")


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

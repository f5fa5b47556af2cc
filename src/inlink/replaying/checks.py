"""Checks of a replay's arguments, before a crawl runs."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from inlink.base.declare import Parameter, parameters_of
from inlink.crawl.settings import changed, check_together
from inlink.errors import ParameterError
from inlink.frontier.policies import policy_found, policy_name
from inlink.frontier.ranked import STORED
from inlink.frontier.revisit import Schedule, revisit_as_data
from inlink.frontier.settings import Settings
from inlink.replaying.arguments import ReplayArguments
from inlink.replaying.play import crawl_settings
from inlink.replaying.seeds import check_seeds

__all__ = ["ReplayPlan", "checked"]

DEFAULT = "host-diverse"
REFUSED = ("policy", "rules", "url_rules", "lease_seconds", "sync", "self_links")
"""Settings that a replay does not accept, for example because they would change the URLs of the web's pages."""

HOST_PAGES = Parameter(name="`host_pages`", kind=int, at_least=0, at_most=1 << 32)


@dataclass(frozen=True)
class ReplayPlan:
    """Checked arguments of :func:`inlink.replay`; ``names`` are the names of the policies."""

    policies: tuple[Any, ...]
    names: tuple[str, ...]
    seeds: Any
    budget: float | int
    marks: tuple[float, ...]
    baseline: str
    host_pages: tuple[int, ...]
    lines: bool
    tau: bool
    relevant: float
    wasted: str | None
    random_seed: int
    parallel: int
    fetch_seconds: float
    changes: float | None
    noise: float
    settings: dict[str, Any]
    jobs: int

    def described(self) -> dict[str, Any]:
        """Return all parameters of the result, in the types of JSON."""
        return {
            "seeds": self.seeds if isinstance(self.seeds, str) else "given",
            "random_seed": self.random_seed,
            "budget": self.budget,
            "parallel": self.parallel,
            "fetch_seconds": self.fetch_seconds,
            "changes": self.changes,
            "noise": self.noise,
            "relevant": self.relevant,
            "wasted": self.wasted,
            "crawl": {name: self.settings[name] for name in sorted(self.settings)},
        }


def checked(arguments: ReplayArguments) -> ReplayPlan:
    """Check all arguments of :func:`inlink.replay`.

    Raises
    ------
    inlink.errors.ParameterError
        If an argument is out of its range.
    """
    values: dict[str, Any] = dict(arguments)
    for name, row in parameters_of(ReplayArguments).items():
        if row.help:
            values[name] = row.check(values[name], f"`{name}`")
    policies, baseline, sizes = arguments["policies"], values["baseline"], arguments["host_pages"] or ()
    names = _names(policies, values["jobs"])
    check_seeds(arguments["seeds"])
    if baseline is None:
        baseline = DEFAULT if DEFAULT in names else names[0]
    if baseline not in names:
        raise ParameterError(f"`baseline` must be one of the policies ({', '.join(names)}); got {baseline!r}")
    if values["wasted"] is not None:
        from inlink.urls.matching import matcher

        matcher(values["wasted"])
    host_pages = tuple(HOST_PAGES.check(size) for size in sizes)
    if len(set(host_pages)) < len(host_pages):
        raise ParameterError(f"`host_pages` names a size twice: {host_pages!r}")
    return ReplayPlan(
        **values
        | {
            "policies": tuple(policies),
            "names": names,
            "budget": _budget(arguments["budget"]),
            "marks": _marks(arguments["marks"]),
            "baseline": baseline,
            "host_pages": host_pages,
            "settings": _settings(arguments["settings"] or {}, policies),
        }
    )


def _names(policies: Sequence[Any], jobs: int) -> tuple[str, ...]:
    if isinstance(policies, str) or not isinstance(policies, Sequence) or not policies:
        raise ParameterError(f"`policies` must be a list of one or more policies; got {policies!r}")
    names = tuple(policy_name(policy) for policy in policies)
    for name, policy in zip(names, policies, strict=True):
        if name.startswith(STORED):
            raise ParameterError(
                f"policy {name}: a replay begins without stored rankings; leave this policy out"
            )
        policy_found(policy)
        if jobs != 1 and (not isinstance(policy, str) or name.startswith("__main__:")):
            raise ParameterError(f"policy {name}: other processes need its name, module:Class; use jobs=1")
        if names.count(name) > 1:
            raise ParameterError(f"policy {name} is named twice")
    return names


def _settings(settings: Mapping[str, Any], policies: Sequence[Any]) -> dict[str, Any]:
    for name in settings:
        if name in REFUSED:
            raise ParameterError(f"the setting {name} does not apply to a replay: leave it out")
    plain = {name: _as_data(value) for name, value in settings.items()}
    revisit: Any = settings.get("revisit")
    if isinstance(revisit, Schedule) and not isinstance(revisit, type):
        plain["revisit"] = revisit_as_data(revisit)
    for policy in policies:
        check_together(changed(Settings(), crawl_settings(policy_name(policy), plain)), policy_found(policy))
    return plain


def _as_data(value: Any) -> Any:
    """Return a setting's value in the types of JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _budget(budget: float | int) -> float | int:
    whole = isinstance(budget, int) and not isinstance(budget, bool)
    if whole and budget >= 1:
        return budget
    if isinstance(budget, float) and 0 < budget <= 1:
        return budget
    raise ParameterError(
        f"`budget` must be a share above 0 and at most 1.0, or a number of fetches; got {budget!r}"
    )


def _marks(marks: Sequence[float]) -> tuple[float, ...]:
    shares = tuple(marks)
    sound = all(
        isinstance(mark, float | int) and not isinstance(mark, bool) and 0 < mark <= 1 for mark in shares
    )
    if not shares or not sound or list(shares) != sorted(set(shares)):
        raise ParameterError(f"`marks` must be increasing shares above 0 and at most 1; got {list(marks)!r}")
    return tuple(float(mark) for mark in shares)

"""Checks of a replay's arguments, before a crawl runs."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from inlink.base.settings import LONGEST
from inlink.crawl.settings import changed, check_together
from inlink.errors import ParameterError
from inlink.frontier.policies import policy_found, policy_name
from inlink.frontier.ranked import STORED
from inlink.frontier.revisit import Schedule, revisit_as_data
from inlink.frontier.settings import Settings
from inlink.replaying.play import crawl_settings
from inlink.replaying.seeds import check_seeds

__all__ = ["ReplayPlan", "checked"]

DEFAULT = "host-diverse"
REFUSED = ("policy", "rules", "url_rules", "lease_seconds", "sync", "self_links")
"""Settings that a replay does not accept, for example because they would change the URLs of the web's pages."""

SHORTEST_CHANGE = 1e-3
"""The smallest mean time between two changes of a page, in seconds."""

MOST_NOISE = 1e6
"""Scores must fit into a float32, errors included."""


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


def checked(
    *,
    policies: Sequence[Any],
    seeds: Any,
    budget: float | int,
    marks: Sequence[float],
    baseline: str | None,
    host_pages: Sequence[int] | None,
    lines: bool,
    tau: bool,
    relevant: float,
    wasted: str | None,
    random_seed: int,
    parallel: int,
    fetch_seconds: float,
    changes: float | None,
    noise: float,
    settings: Mapping[str, Any] | None,
    jobs: int,
) -> ReplayPlan:
    """Check the arguments of :func:`inlink.replay`.

    Raises
    ------
    inlink.errors.ParameterError
        If an argument is out of its range.
    """
    names = _names(policies, jobs)
    check_seeds(seeds)
    if baseline is None:
        baseline = DEFAULT if DEFAULT in names else names[0]
    if baseline not in names:
        raise ParameterError(f"`baseline` must be one of the policies ({', '.join(names)}); got {baseline!r}")
    for name, flag in (("lines", lines), ("tau", tau)):
        if not isinstance(flag, bool):
            raise ParameterError(f"`{name}` must be True or False; got {flag!r}")
    if wasted is not None:
        from inlink.urls.matching import matcher

        matcher(wasted)
    sizes = tuple(_whole("host_pages", size, 0) for size in host_pages or ())
    if len(set(sizes)) < len(sizes):
        raise ParameterError(f"`host_pages` names a size twice: {sizes!r}")
    return ReplayPlan(
        policies=tuple(policies),
        names=names,
        seeds=seeds,
        budget=_budget(budget),
        marks=_marks(marks),
        baseline=baseline,
        host_pages=sizes,
        lines=lines,
        tau=tau,
        relevant=_number("relevant", relevant, -LONGEST),
        wasted=wasted,
        random_seed=_whole("random_seed", random_seed, 0),
        parallel=_whole("parallel", parallel, 1),
        fetch_seconds=_number("fetch_seconds", fetch_seconds, 0.0),
        changes=None if changes is None else _number("changes", changes, SHORTEST_CHANGE),
        noise=_noise(noise),
        settings=_settings(settings or {}, policies),
        jobs=_whole("jobs", jobs, 1),
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


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 1 << 32:
        raise ParameterError(f"`{name}` must be a whole number of at least {least}; got {value!r}")
    return value


def _noise(noise: Any) -> float:
    deviation = _number("noise", noise, 0.0)
    if deviation > MOST_NOISE:
        raise ParameterError(f"`noise` must be at most {MOST_NOISE:g}; got {noise!r}")
    return deviation


def _number(name: str, value: Any, least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int) or not least <= value <= LONGEST:
        raise ParameterError(f"`{name}` must be a number of at least {least:g}; got {value!r}")
    return float(value)

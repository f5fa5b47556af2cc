"""Checks of a replay's arguments before a crawl runs, and the seed sets that they describe."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import UInt32Array
from inlink.base.declare import Parameter, parameters_of
from inlink.base.opening import Stream, lines
from inlink.base.table import counted
from inlink.crawl.settings import changed, check_together
from inlink.errors import InputError, ParameterError, UnknownNodeError
from inlink.frontier.policies import policy_found, policy_name
from inlink.frontier.ranked import STORED
from inlink.frontier.revisit import Schedule, revisit_as_data
from inlink.frontier.settings import Settings
from inlink.replaying.arguments import ReplayArguments
from inlink.replaying.play import crawl_settings
from inlink.replaying.web import Web
from inlink.urls.canonical import canonical

DEFAULT = "host-diverse"
REFUSED = ("policy", "rules", "url_rules", "lease_seconds", "sync", "self_links")
"""Settings that a replay does not accept, for example because they would change the URLs of the web's pages."""

RECORDED = "recorded"
"""Name of the seed set that has the seeds of the recorded crawl."""

FRONT = "front"
"""Name of the seed set that has the front pages of all hosts, and prefix of sets that are drawn from them."""

_DRAWN = re.compile(r"(front:)?([1-9][0-9]{0,5})x([1-9][0-9]{0,8})")

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
    top: int
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
            "top": self.top,
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
    seeds = _read_seeds(arguments["seeds"])
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
            "seeds": seeds,
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


def _read_seeds(seeds: Any) -> Any:
    """Check the argument for seeds, as far as this needs no web, and read the sets of a file."""
    if isinstance(seeds, str | os.PathLike):
        if seeds in (RECORDED, FRONT) or (isinstance(seeds, str) and _DRAWN.fullmatch(seeds)):
            return seeds
        if not Path(seeds).is_file():
            raise ParameterError(
                "`seeds` must be SETSxPAGES, such as 20x10 for 20 sets of 10 pages, 'front', 'front:SETSxPAGES', "
                f"'recorded', or a file of URLs; got {os.fspath(seeds)!r}"
            )
        return _sets_in(Path(seeds))
    sets = isinstance(seeds, Sequence) and [
        pages
        for pages in seeds
        if isinstance(pages, Sequence | np.ndarray) and not isinstance(pages, str) and len(pages)
    ]
    if not sets or len(sets) < len(seeds):
        raise ParameterError("`seeds` must be a text, or a list of sets, each a list of URLs or page numbers")
    return seeds


def _sets_in(path: Path) -> list[list[str]]:
    """Read seed sets: one URL a line, with an empty line between two sets. Lines that begin with # are ignored."""
    sets = list[list[str]]([[]])
    with Stream(path) as stream:
        for _, line in lines(stream):
            text = line.decode("utf-8", "surrogateescape").strip()
            if not text:
                sets.append([])
            elif not text.startswith("#"):
                sets[-1].append(text)
    sets = [pages for pages in sets if pages]
    if not sets:
        raise InputError(
            f"{path}: there is no URL: write one a line, and an empty line between two seed sets"
        )
    return sets


def seed_sets(web: Web, seeds: Any, random_seed: int) -> list[UInt32Array]:
    """Return the sets of seed pages. The pages of each set are increasing.

    Drawn sets hold pages that can be fetched and have links. All these pages are equally likely.

    Parameters
    ----------
    web : Web
        The web.
    seeds : str or list of lists
        The seeds of a plan.
    random_seed : int
        Seed of the random numbers, at least 0.

    Raises
    ------
    inlink.errors.ParameterError
        If the web has fewer pages than a set needs, no recorded seeds or no front pages.
    inlink.errors.UnknownNodeError
        If the web lacks a page.
    """
    if not isinstance(seeds, str):
        numbers = {url: page for page, url in enumerate(web.urls)}
        return [
            np.unique(np.array([_page(web, numbers, page) for page in pages], np.uint32)) for pages in seeds
        ]
    if seeds == RECORDED:
        if not len(web.seeds):
            raise ParameterError(
                f"{web.name} is no recorded crawl, so it has no recorded seeds: give SETSxPAGES"
            )
        return [np.sort(web.seeds)]
    pages = np.flatnonzero((np.diff(web.offsets) > 0) & web.fetchable).astype(np.uint32)
    kind = "page"
    if seeds.startswith(FRONT):
        pages, kind = _front_pages(web, pages), "front page"
    drawn = _DRAWN.fullmatch(seeds)
    if drawn is None:
        return [pages]
    sets, count = int(drawn[2]), int(drawn[3])
    if len(pages) < count:
        raise ParameterError(
            f"`seeds` wants {counted(count, kind)} a set; {web.name} has {counted(len(pages), kind)} with links"
        )
    random = np.random.default_rng(random_seed)
    return [np.sort(random.choice(pages, count, replace=False)) for _ in range(sets)]


def _front_pages(web: Web, pages: UInt32Array) -> UInt32Array:
    """The front page of each host: among its ``pages``, the one with the shortest path and query."""
    if web.hosts != "real":
        raise ParameterError(
            f"{web.name} has no URLs, so front pages are not known: give SETSxPAGES, which draws among all pages"
        )
    best: dict[str, tuple[int, int, int]] = {}
    for page in pages.tolist():
        host, _, path = web.urls[page].partition("://")[2].partition("/")
        place = (path.count("/"), len(path), page)
        best[host] = min(place, best.get(host, place))
    if not best:
        raise ParameterError(f"{web.name} has no page with links to begin at")
    return np.array(sorted(page for _, _, page in best.values()), np.uint32)


def _page(web: Web, numbers: dict[str, int], seed: Any) -> int:
    if isinstance(seed, str):
        page = numbers.get(seed, numbers.get(canonical(seed, None, web.url_rules) or ""))
        if page is None:
            raise UnknownNodeError(f"{web.name} has no page {seed[:200]!r}: seeds are URLs or page numbers")
        return page
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < web.num_pages:
        raise ParameterError(f"a seed must be a URL or a page number below {web.num_pages:,}; got {seed!r}")
    return int(seed)

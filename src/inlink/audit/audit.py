"""Audit a crawled site: run the checks, and compare with an earlier audit."""

import os
import shlex
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from inlink.audit.checks import CHECKS, Check, Evidence, Level
from inlink.audit.site import UNREACHED, CrawledSite
from inlink.base.decoding import decoded
from inlink.base.progress import track
from inlink.base.table import counted
from inlink.crawl.arguments import check_flags
from inlink.crawl.links import listed
from inlink.errors import InputError, ParameterError

__all__ = ["Audit", "CheckResult", "Verdict", "audit", "fetched_urls", "load_audit"]

Cell = str | int | float

Verdict = Literal["complete", "inconclusive", "not judged"]


class CheckResult(msgspec.Struct, kw_only=True):
    """The result of a check.

    Attributes
    ----------
    name, title, why, level, columns, key
        As in :class:`inlink.audit.checks.Check`.
    rows : list of list
        The findings, or the rows of a table.
    verdict : {"complete", "inconclusive", "not judged"}
        "complete": all own pages with links were fetched. "inconclusive": there may be more findings. "not judged": the
        crawl lacks data that the check needs.
    reasons : list of str
        Reasons for a verdict other than "complete".
    command : str
        Command that prints all rows.
    new : int or None
        Number of rows that are not in the earlier audit. None: no audits were compared.
    mended : list of list or None
        Keys of rows that are only in the earlier audit.
    """

    name: str
    title: str
    why: str
    level: Level
    columns: list[str]
    key: int
    rows: list[list[Cell]]
    verdict: Verdict
    reasons: list[str]
    command: str
    new: int | None = None
    mended: list[list[Cell]] | None = None

    def keys(self) -> set[tuple[Cell, ...]]:
        """The keys of the rows."""
        return {tuple(row[: self.key]) for row in self.rows}


class Audit(msgspec.Struct, kw_only=True):
    """An audit of a site.

    Attributes
    ----------
    crawl : str
        The crawl's folder.
    made : str
        The time of the audit, in ISO 8601, UTC.
    hosts : list of str
        The hosts of the site.
    known, fetched, indexable : int
        Numbers of own pages.
    gaps : list of str
        Reasons why own pages were not fetched.
    depths : list of int
        Number of indexable pages 0, 1, 2, … clicks away from the front page.
    unreached : int
        Number of indexable pages that no links lead to.
    ranks : list of float
        The share of the site's PageRank by content links that the indexable pages of each depth have.
    checks : list of CheckResult
    since : str or None
        The crawl, moment or file that the audit was compared with.
    """

    crawl: str
    made: str
    hosts: list[str]
    known: int
    fetched: int
    indexable: int
    gaps: list[str]
    depths: list[int]
    unreached: int
    ranks: list[float]
    checks: list[CheckResult]
    since: str | None = None

    def failing(self, names: Collection[str]) -> list[str]:
        """Return the checks among ``names`` with findings; after :meth:`compare`, those with new findings."""
        return [
            check.name
            for check in self.checks
            if check.name in names and (bool(check.rows) if check.new is None else check.new > 0)
        ]

    def compare(self, other: "Audit", since: str) -> None:
        """Compare with an earlier audit: set ``new`` and ``mended`` of each check."""
        self.since = since
        earlier = {check.name: check for check in other.checks}
        for check in self.checks:
            if check.name in earlier and check.level != "table":
                before, now = earlier[check.name].keys(), check.keys()
                check.new = len(now - before)
                check.mended = sorted((list(key) for key in before - now), key=str)


def audit(
    folder: str | os.PathLike[str],
    *,
    only: Collection[str] | None = None,
    foreign: bool = False,
    earlier: Collection[str] = (),
) -> Audit:
    """Audit the site that a crawl has fetched.

    Parameters
    ----------
    folder : path-like
        The crawl's folder, which may be in use. It is not changed.
    only : collection of str or None
        Names of checks (:data:`inlink.audit.checks.CHECKS`); None is all.
    foreign : bool
        Check links to pages of other hosts too, if the crawl has fetched these pages.
    earlier : collection of str
        URLs of pages of an earlier crawl. They are orphans if no page links to them now.

    Returns
    -------
    Audit

    Raises
    ------
    inlink.errors.FolderError
        If the folder holds no crawl, or is damaged.
    inlink.errors.ParameterError
        If a check is not known, or an argument has another type.
    """
    check_flags(foreign=foreign)
    names = list(CHECKS) if only is None else listed(only, "`only`")
    for name in names:
        if name not in CHECKS:
            raise ParameterError(f"there is no check {name!r}: the checks are {', '.join(CHECKS)}")
    urls = frozenset(listed(earlier, "`earlier`"))
    with CrawledSite(folder) as site:
        return _audit(site, os.fspath(folder), names, foreign, urls)


def _audit(site: CrawledSite, folder: str, names: list[str], foreign: bool, earlier: frozenset[str]) -> Audit:
    evidence = Evidence(site, foreign=foreign, earlier=earlier)
    results = []
    with track("checking", len(names), "checks") as task:
        for name in names:
            check = CHECKS[name]
            reasons = _reasons(site, check, earlier)
            judged = not (check.needs == "facts" and not site.facts) and not (
                check.needs == "sitemap" and not site.in_sitemap.any() and not (earlier and name == "orphans")
            )
            results.append(
                CheckResult(
                    name=name,
                    title=check.title,
                    why=check.why,
                    level=check.level,
                    columns=list(check.columns),
                    key=check.key,
                    rows=[list(row) for row in check.rows(evidence)] if judged else [],
                    verdict="not judged" if not judged else "inconclusive" if reasons else "complete",
                    reasons=reasons,
                    command=f"inlink audit {shlex.quote(folder)} --only {name}",
                )
            )
            task.advance(1)
    clicks, ranks = _by_depth(evidence)
    hosts = np.unique(site.pages.hosts[: len(site.own)][site.own])
    return Audit(
        crawl=folder,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        hosts=[site.pages.table.host(int(host)) for host in hosts],
        known=int(np.count_nonzero(site.own)),
        fetched=int(np.count_nonzero(site.fetched)),
        indexable=int(np.count_nonzero(site.indexable)),
        gaps=site.gaps,
        depths=clicks,
        unreached=int(np.count_nonzero(site.indexable & (evidence.clicks == UNREACHED))),
        ranks=ranks,
        checks=results,
    )


def _reasons(site: CrawledSite, check: Check, earlier: frozenset[str]) -> list[str]:
    """Return the reasons why a check may have missed findings."""
    reasons = list(site.gaps)
    if check.needs == "facts" and site.without_facts:
        reasons.append(
            f"{counted(site.without_facts, 'page')} without facts: crawl them again with this version of inlink"
        )
    if check.needs == "sitemap" and not site.in_sitemap.any() and not earlier:
        reasons.append("no sitemap was read (inlink crawl --sitemaps)")
    return reasons


def _by_depth(evidence: Evidence) -> tuple[list[int], list[float]]:
    """The number of indexable pages of each depth, and their share of the rank by content links."""
    site = evidence.site
    reached = site.indexable & (evidence.clicks != UNREACHED)
    if not reached.any():
        return [], []
    clicks = evidence.clicks[reached]
    values = evidence.rank[reached]
    shares = np.bincount(clicks, weights=values / values.sum())
    return np.bincount(clicks).tolist(), [float(f"{share:.4g}") for share in shares]


def fetched_urls(folder: str | os.PathLike[str]) -> list[str]:
    """Return the URLs of the indexable pages of a crawl's site.

    Raises
    ------
    inlink.errors.FolderError
        If the folder holds no crawl, or is damaged.
    """
    with CrawledSite(folder) as site:
        return [site.url(page) for page in np.flatnonzero(site.indexable).tolist()]


def load_audit(path: Path) -> Audit:
    """Read an audit that ``inlink audit --json`` wrote.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read, or is no audit.
    """
    try:
        return decoded(path.read_bytes(), Audit)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} is no audit ({error}): give a file that `inlink audit --json` wrote, or a crawl's folder"
        ) from None

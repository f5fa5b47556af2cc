"""The settings of a crawl: one table, from which parameters, checks, options and the tables of the docs are made.

Each field below declares a setting: type, default, meaning in one line, unit and range. Groups are classes of their
own: :class:`Politeness` here, :class:`~inlink.frontier.rules.Rules`, :class:`~inlink.urls.canonical.UrlRules` and the
schedules of :mod:`inlink.frontier.revisit` where their code is.

A new setting is one line here and a parameter of :class:`inlink.Crawl`; ``make tables`` adds it to the docs. Tests fail
for a part that is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from inlink.base.declare import (
    Parameter,
    PositiveSeconds,
    Seconds,
    check_fields,
    parameters_of,
)
from inlink.base.settings import NO_LIMIT
from inlink.frontier.revisit import Schedule, revisit_rules
from inlink.frontier.rules import Rules
from inlink.urls.canonical import UrlRules

__all__ = ["GROUPS", "OLD_POLICIES", "TABLE", "Politeness", "Settings"]

POLICIES = (
    "host-diverse",
    "best-first",
    "pagerank",
    "hits",
    "hits-by-score",
    "opic",
    "breadth-first",
    "depth-first",
    "hosts-in-turns",
    "random",
    "revisit",
    "date",
    "first-come",
)
OLD_POLICIES = {"fifo": "hosts-in-turns"}
"""Former names of policies, and their present names."""


Rate = Annotated[float, Parameter(at_least=0, at_most=1e6)]
Budget = Annotated[int | None, Parameter(at_least=0, below=NO_LIMIT, none="no limit")]


@dataclass(frozen=True)
class Politeness:
    """Limits of requests to a host. The defaults are gentle to hosts.

    Parameters
    ----------
    by : {"host", "domain"}
        Whether the other fields apply to a host or to a registered domain.
    delay : float
        Seconds between two fetches.
    in_flight : int
        Maximum number of open leases of a host. Policy ``host-diverse`` begins with at most 8 of them.
    soft_rate, hard_rate : float
        Crawls a second above which a host comes after all others, and above which it is not asked; 0 is no limit.
        The rate is counted as Aduana does, by a temperature that rises by one with each crawl and cools down
        exponentially.
    rate_window : float
        Seconds over which a rate is counted: the time in which the temperature falls to 1/e.
    host_budget, domain_budget : int or None
        Maximum number of pages that the crawl fetches from a host or a domain. None is no limit.
    park_after : int
        Number of failures in a row after which the host is parked. Only failures that suggest a dead host count.
    park_seconds : float
        Seconds for which no page of a parked host is fetched. Then one of its pages is tried.

    Raises
    ------
    inlink.errors.ParameterError
        If a field is outside its range.
    """

    by: Annotated[
        Literal["host", "domain"], Parameter("Whether limits apply to hosts or registered domains.")
    ] = "host"
    delay: Annotated[Seconds, Parameter("Seconds between two fetches from a host.", option="--delay")] = 1.0
    in_flight: Annotated[
        int, Parameter("Maximum number of open leases of a host.", at_least=1, at_most=NO_LIMIT)
    ] = 1
    soft_rate: Annotated[
        Rate, Parameter("Crawls a second above which a host comes after all others; 0 is no limit.")
    ] = 0.0
    hard_rate: Annotated[
        Rate, Parameter("Crawls a second above which a host is not asked; 0 is no limit.")
    ] = 0.0
    rate_window: Annotated[PositiveSeconds, Parameter("Time constant of a host's crawl rate.")] = 60.0
    host_budget: Annotated[Budget, Parameter("Maximum number of pages from a host.")] = None
    domain_budget: Annotated[Budget, Parameter("Maximum number of pages from a registered domain.")] = None
    park_after: Annotated[
        int,
        Parameter("Number of failures in a row after which a host is parked.", at_least=1, at_most=NO_LIMIT),
    ] = 8
    park_seconds: Annotated[Seconds, Parameter("Seconds for which no page of a parked host is fetched.")] = (
        86_400.0
    )

    def __post_init__(self) -> None:
        check_fields(self, "politeness.")


@dataclass(frozen=True)
class Settings:
    """The settings of a crawl. Its folder stores them.

    The parameters are those of :class:`inlink.Crawl` of the same names. ``policy`` is a name here: a known name, or the
    import path of a class, ``module:Class``.
    """

    policy: Annotated[
        str,
        Parameter(
            "The policy that decides the order of the pages.",
            choices=POLICIES,
            old_names=OLD_POLICIES,
            other="ranking:NAME or module:Class",
            option="--policy",
        ),
    ] = "host-diverse"
    use_scores: Annotated[
        bool,
        Parameter("Mix content scores into `pagerank`, `host-diverse` or `hits`.", option="--use-scores"),
    ] = False
    cross_domain_only: Annotated[
        bool, Parameter("Count only links between hosts in the ranking, as Aduana does.")
    ] = False
    trust: Annotated[
        str | None,
        Parameter(
            "A file of trusted pages: one URL a line, optionally followed by a tab and a weight. `pagerank` and "
            "`host-diverse` then rank pages by the trust that reaches them, as TrustRank does.",
            none="no file",
            option="--trust",
        ),
    ] = None
    spam_mass: Annotated[
        bool,
        Parameter(
            "With `trust`: lower the priorities of hosts that get little of their rank from trusted pages.",
            option="--spam-mass",
        ),
    ] = False
    distrust: Annotated[
        str | None,
        Parameter(
            "A file of hosts that are known as spam: a host, domain or URL a line. `pagerank` and `host-diverse` then "
            "lower the priorities of their pages, and of hosts whose pages lead to them.",
            none="no list",
            option="--distrust",
        ),
    ] = None
    prior: Annotated[
        str | None,
        Parameter(
            "An earlier ranking of hosts: Common Crawl's ranks as a file, a URL or a release such as "
            "`cc-main-2026-apr-may-jun/host`, the folder of a ranking, or a file of a host, a tab and a value a line. "
            "`pagerank` and `host-diverse` begin with it and follow the crawl's own links as they become known.",
            none="no ranking",
            option="--prior",
        ),
    ] = None
    damping: Annotated[float, Parameter("Damping of PageRank.", above=0, below=1)] = 0.85
    politeness: Annotated[Politeness, Parameter("Delays, budgets and rates for each host.")] = Politeness()
    rules: Annotated[Rules | None, Parameter("Which URLs may be fetched.", none="all")] = None
    revisit: Annotated[Schedule | None, Parameter("When crawled pages are fetched again.", none="never")] = (
        None
    )
    revisit_rules: Annotated[
        Sequence[str],
        Parameter(
            "Intervals by host or URL, for any schedule: a pattern as in `rules.deny`, a blank, and `SECONDS` or "
            "`LEAST..MOST`. A text is the name of a file of such lines."
        ),
    ] = ()
    url_rules: Annotated[
        UrlRules | None,
        Parameter("Further rules for the canonical form of URLs.", none="the standard form", fixed=True),
    ] = None
    self_links: Annotated[
        bool,
        Parameter(
            "Keep links to a place on the page itself (`#top`), as links of the page to itself.",
            option="--self-links",
        ),
    ] = False
    sink_duplicates: Annotated[
        bool,
        Parameter(
            "Lower the priorities of pages on hosts, and in sections of hosts, whose fetched pages are mostly "
            "near-duplicates of earlier pages.",
            option="--sink-duplicates",
        ),
    ] = False
    lease_seconds: Annotated[
        PositiveSeconds,
        Parameter(
            "Seconds after which a page is lost if its lease was not answered. A lost page waits as before a retry, "
            "is then handed out alone, and is `failed` after `max_losses` losses."
        ),
    ] = 600.0
    max_retries: Annotated[
        int,
        Parameter(
            "How often a page that failed is tried again before it is `failed`.", at_least=0, at_most=254
        ),
    ] = 3
    retry_seconds: Annotated[Seconds, Parameter("Seconds before the first retry; they double each time.")] = (
        60.0
    )
    max_losses: Annotated[
        int,
        Parameter(
            "How often a page may lose its lease without an answer before it is `failed`.",
            at_least=1,
            at_most=254,
        ),
    ] = 3
    rerank_share: Annotated[
        float | None,
        Parameter(
            "A new ranking starts when this share more pages were crawled.",
            above=0,
            at_most=1e6,
            none="never",
        ),
    ] = 0.1
    rerank_seconds: Annotated[
        PositiveSeconds | None,
        Parameter("A new ranking starts after this many seconds.", none="never"),
    ] = None
    sync: Annotated[
        Literal["second", "full"],
        Parameter(
            "When the log is synced to disk, which protects it from a power cut: within a second, or at once."
        ),
    ] = "second"

    def __post_init__(self) -> None:
        check_fields(self)
        revisit_rules(tuple(self.revisit_rules))

    @property
    def revisits(self) -> bool:
        """Whether crawled pages are fetched again: by a schedule, or by a rule for their intervals."""
        return self.revisit is not None or bool(self.revisit_rules)


GROUPS: dict[str, type] = {"politeness": Politeness, "rules": Rules, "url_rules": UrlRules}
"""The groups of settings, by name."""

TABLE: dict[str, Parameter] = parameters_of(Settings) | {
    f"{group}.{name}": row for group, kind in GROUPS.items() for name, row in parameters_of(kind).items()
}
"""All settings of a crawl by name. A field of a group has the name ``group.field``."""

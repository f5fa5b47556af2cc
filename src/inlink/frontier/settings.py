"""The settings of a crawl: one table, from which parameters, checks, options and the tables of the docs are made.

Each field below is a row: type, default, meaning in one line, unit and range. Groups are classes of their own:
:class:`Politeness` here, :class:`~inlink.frontier.rules.Rules`, :class:`~inlink.urls.canonical.UrlRules` and the
schedules of :mod:`inlink.frontier.revisit` where their code is.

A new setting is one line here and a parameter of :class:`inlink.Crawl`; ``make tables`` adds it to the docs. Tests fail
for a part that is missing.
"""

from dataclasses import dataclass
from typing import Literal

from inlink.base.settings import LONGEST, NO_LIMIT, Setting, check_fields, rows_of, setting
from inlink.frontier.revisit import Schedule
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
    "first-come",
)
OLD_POLICIES = {"fifo": "hosts-in-turns"}
"""Former names of policies, and their present names."""


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
        Maximum number of open leases of a host.
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

    by: str = setting(
        "host", "Whether limits apply to hosts or registered domains.", choices=("host", "domain")
    )
    delay: float = setting(
        1.0,
        "Seconds between two fetches from a host.",
        unit="seconds",
        at_least=0,
        at_most=LONGEST,
        option="--delay",
    )
    in_flight: int = setting(1, "Maximum number of open leases of a host.", at_least=1, at_most=NO_LIMIT)
    soft_rate: float = setting(
        0.0,
        "Crawls a second above which a host comes after all others; 0 is no limit.",
        at_least=0,
        at_most=1e6,
    )
    hard_rate: float = setting(
        0.0, "Crawls a second above which a host is not asked; 0 is no limit.", at_least=0, at_most=1e6
    )
    rate_window: float = setting(
        60.0, "Time constant of a host's crawl rate.", unit="seconds", above=0, at_most=LONGEST
    )
    host_budget: int | None = setting(
        None, "Maximum number of pages from a host.", at_least=0, below=NO_LIMIT, none="no limit"
    )
    domain_budget: int | None = setting(
        None,
        "Maximum number of pages from a registered domain.",
        at_least=0,
        below=NO_LIMIT,
        none="no limit",
    )
    park_after: int = setting(
        8, "Number of failures in a row after which a host is parked.", at_least=1, at_most=NO_LIMIT
    )
    park_seconds: float = setting(
        86_400.0,
        "Seconds for which no page of a parked host is fetched.",
        unit="seconds",
        at_least=0,
        at_most=LONGEST,
    )

    def __post_init__(self) -> None:
        check_fields(self, "politeness.")


@dataclass(frozen=True)
class Settings:
    """The settings of a crawl. Its folder stores them.

    The parameters are those of :class:`inlink.Crawl` of the same names. ``policy`` is a name here: a known name, or the
    import path of a class, ``module:Class``.
    """

    policy: str = setting(
        "host-diverse",
        "The policy that decides the order of the pages.",
        choices=POLICIES,
        old_names=OLD_POLICIES,
        other="ranking:NAME or module:Class",
        option="--policy",
    )
    use_scores: bool = setting(
        False, "Mix content scores into `pagerank`, `host-diverse` or `hits`.", option="--use-scores"
    )
    cross_domain_only: bool = setting(False, "Count only links between hosts in the ranking, as Aduana does.")
    trust: str | None = setting(
        None,
        "A file of trusted pages: one URL a line, optionally followed by a tab and a weight. `pagerank` and "
        "`host-diverse` then rank pages by the trust that reaches them, as TrustRank does.",
        none="no file",
        option="--trust",
    )
    spam_mass: bool = setting(
        False,
        "With `trust`: lower the priorities of hosts that get little of their rank from trusted pages.",
        option="--spam-mass",
    )
    distrust: str | None = setting(
        None,
        "A file of hosts that are known as spam: a host, domain or URL a line. `pagerank` and `host-diverse` then "
        "lower the priorities of their pages, and of hosts whose pages lead to them.",
        none="no list",
        option="--distrust",
    )
    prior: str | None = setting(
        None,
        "An earlier ranking of hosts: Common Crawl's ranks as a file, a URL or a release such as "
        "`cc-main-2026-apr-may-jun/host`, the folder of a ranking, or a file of a host, a tab and a value a line. "
        "`pagerank` and `host-diverse` begin with it and follow the crawl's own links as they become known.",
        none="no ranking",
        option="--prior",
    )
    damping: float = setting(0.85, "Damping of PageRank.", above=0, below=1)
    politeness: Politeness = setting(Politeness, "Delays, budgets and rates for each host.")
    rules: Rules | None = setting(None, "Which URLs may be fetched.", none="all")
    revisit: Schedule | None = setting(None, "When crawled pages are fetched again.", none="never")
    url_rules: UrlRules | None = setting(
        None, "Further rules for the canonical form of URLs.", none="the standard form", fixed=True
    )
    self_links: bool = setting(
        False,
        "Keep links to a place on the page itself (`#top`), as links of the page to itself.",
        option="--self-links",
    )
    sink_duplicates: bool = setting(
        False,
        "Lower the priorities of pages on hosts, and in sections of hosts, whose fetched pages are mostly "
        "near-duplicates of earlier pages.",
        option="--sink-duplicates",
    )
    lease_seconds: float = setting(
        600.0,
        "Seconds after which a page is lost if its lease was not answered. A lost page waits as before a retry, "
        "is then handed out alone, and is `failed` after `max_losses` losses.",
        unit="seconds",
        above=0,
        at_most=LONGEST,
    )
    max_retries: int = setting(
        3, "How often a page that failed is tried again before it is `failed`.", at_least=0, at_most=254
    )
    retry_seconds: float = setting(
        60.0,
        "Seconds before the first retry; they double each time.",
        unit="seconds",
        at_least=0,
        at_most=LONGEST,
    )
    max_losses: int = setting(
        3,
        "How often a page may lose its lease without an answer before it is `failed`.",
        at_least=1,
        at_most=254,
    )
    rerank_share: float | None = setting(
        0.1,
        "A new ranking starts when this share more pages were crawled.",
        above=0,
        at_most=1e6,
        none="never",
    )
    rerank_seconds: float | None = setting(
        None,
        "A new ranking starts after this many seconds.",
        unit="seconds",
        above=0,
        at_most=LONGEST,
        none="never",
    )
    sync: Literal["second", "full"] = setting(
        "second",
        "When the log is synced to disk, which protects it from a power cut: within a second, or at once.",
        choices=("second", "full"),
    )

    def __post_init__(self) -> None:
        check_fields(self)


GROUPS: dict[str, type] = {"politeness": Politeness, "rules": Rules, "url_rules": UrlRules}
"""The groups of settings, by name."""

TABLE: dict[str, Setting] = rows_of(Settings) | {
    f"{name}.{row.name}": row for name, group in GROUPS.items() for row in rows_of(group).values()
}
"""All settings of a crawl by name. A field of a group has the name ``group.field``."""

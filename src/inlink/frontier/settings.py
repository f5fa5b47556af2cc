"""The settings of a crawl: one table, from which parameters, checks, options and the tables of the docs are made.

Each field below is a row: type, default, meaning in one line, unit and range. Groups are classes of their own:
:class:`Politeness` here, :class:`~inlink.frontier.rules.Rules`, :class:`~inlink.urls.canonical.UrlRules` and the
schedules of :mod:`inlink.frontier.revisit` where their code is.

A new setting is one line here, a parameter of :class:`inlink.Crawl`, and ``make tables`` for the docs; tests tell what
is missing.
"""

from dataclasses import dataclass
from typing import Literal

from inlink.base.settings import LONGEST, Setting, check_fields, rows_of, setting
from inlink.frontier.revisit import Schedule
from inlink.frontier.rules import Rules
from inlink.urls.canonical import UrlRules

__all__ = ["GROUPS", "NO_LIMIT", "TABLE", "Politeness", "Settings"]

NO_LIMIT = 0xFFFFFFFF
"""The largest number of leases or pages: as good as no limit."""

POLICIES = (
    "host-diverse",
    "best-first",
    "pagerank",
    "hits",
    "hits-by-score",
    "opic",
    "breadth-first",
    "depth-first",
    "fifo",
    "random",
    "revisit",
    "first-come",
)


@dataclass(frozen=True)
class Politeness:
    """How often a host may be asked. The defaults are gentle to hosts.

    Parameters
    ----------
    by : {"host", "domain"}
        What the other fields hold for: a host, or a registered domain.
    delay : float
        Seconds between two fetches.
    in_flight : int
        Leases out at a time.
    soft_rate, hard_rate : float
        Crawls a second above which a host comes after all others, and above which it is not asked; 0 is no limit.
        The rate is counted as Aduana does, by a temperature that rises by one with each crawl and cools down
        exponentially.
    rate_window : float
        Seconds over which a rate is counted: the time in which the temperature falls to 1/e.
    host_budget, domain_budget : int or None
        Pages that the crawl may take from a host, from a domain. None is no limit.
    park_after : int
        Failures in a row, of the kind that tell of a dead host, after which the host is parked.
    park_seconds : float
        Seconds that a parked host rests. Then one of its pages is tried.

    Raises
    ------
    inlink.errors.ParameterError
        If a field is outside its range.
    """

    by: str = setting("host", "What politeness counts.", choices=("host", "domain"))
    delay: float = setting(
        1.0,
        "Seconds between two fetches from a host.",
        unit="seconds",
        at_least=0,
        at_most=LONGEST,
        option="--delay",
    )
    in_flight: int = setting(1, "Leases out to a host at a time.", at_least=1, at_most=NO_LIMIT)
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
        60.0, "Seconds over which a rate is counted.", unit="seconds", above=0, at_most=LONGEST
    )
    host_budget: int | None = setting(
        None, "Pages that may be taken from a host.", at_least=0, below=NO_LIMIT, none="no limit"
    )
    domain_budget: int | None = setting(
        None,
        "Pages that may be taken from a registered domain.",
        at_least=0,
        below=NO_LIMIT,
        none="no limit",
    )
    park_after: int = setting(
        8, "Failures in a row after which a host is parked.", at_least=1, at_most=NO_LIMIT
    )
    park_seconds: float = setting(
        86_400.0, "Seconds that a parked host rests.", unit="seconds", at_least=0, at_most=LONGEST
    )

    def __post_init__(self) -> None:
        check_fields(self, "politeness.")


@dataclass(frozen=True)
class Settings:
    """The settings of a crawl. Its folder stores them.

    The parameters are those of :class:`inlink.Crawl` of the same names. ``policy`` is a name here: one of the known
    ones, or the place of a class, ``module:Class``.
    """

    policy: str = setting(
        "host-diverse",
        "What decides the order.",
        choices=POLICIES,
        other="ranking:NAME or module:Class",
        option="--policy",
    )
    use_scores: bool = setting(
        False, "Mix content scores into `pagerank`, `host-diverse` or `hits`.", option="--use-scores"
    )
    cross_domain_only: bool = setting(False, "Count only links between hosts in the ranking, as Aduana does.")
    trust: str | None = setting(
        None,
        "A file of trusted pages, one URL a line, a tab and a weight behind it if not 1: `pagerank` and `host-diverse` "
        "then rank pages by the trust that reaches them, as TrustRank does.",
        none="no file",
        option="--trust",
    )
    damping: float = setting(0.85, "Damping of PageRank.", above=0, below=1)
    politeness: Politeness = setting(Politeness, "Delays, budgets and rates for each host.")
    rules: Rules | None = setting(None, "Which URLs may be fetched.", none="all")
    revisit: Schedule | None = setting(None, "When crawled pages are fetched again.", none="never")
    url_rules: UrlRules | None = setting(
        None, "What else makes two URLs one page.", none="nothing beyond the standard", fixed=True
    )
    self_links: bool = setting(
        False,
        "Keep links to a place on the page itself (`#top`), as links of the page to itself.",
        option="--self-links",
    )
    lease_seconds: float = setting(
        600.0,
        "Seconds after which a page that was handed out and not answered for is lost. It waits as before a retry, is "
        "then handed out alone, and is `failed` after `max_losses` losses.",
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
        "A new ranking starts after so many seconds.",
        unit="seconds",
        above=0,
        at_most=LONGEST,
        none="never",
    )
    sync: Literal["second", "full"] = setting(
        "second",
        "When the log is safe from a power cut: within a second, or at once.",
        choices=("second", "full"),
    )

    def __post_init__(self) -> None:
        check_fields(self)


GROUPS: dict[str, type] = {"politeness": Politeness, "rules": Rules, "url_rules": UrlRules}
"""The settings that are groups."""

TABLE: dict[str, Setting] = rows_of(Settings) | {
    f"{name}.{row.name}": row for name, group in GROUPS.items() for row in rows_of(group).values()
}
"""All settings of a crawl, by name; those of groups as ``group.field``."""

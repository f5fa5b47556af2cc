"""For each setting a value that is not its default, for the tests of settings."""

from pathlib import Path
from typing import Any

from inlink.crawl.settings import lay_over
from inlink.frontier.revisit import FixedInterval
from inlink.frontier.settings import TABLE, Settings

NUMBERS = {name: row for name, row in TABLE.items() if row.kind in (int, float)}
CHOICES = {name: row for name, row in TABLE.items() if row.choices}

OTHERS: dict[str, Any] = {
    "policy": "hits",
    "use_scores": True,
    "cross_domain_only": True,
    "trust": str(Path(__file__).parent / "data" / "trust.txt"),
    "spam_mass": True,
    "distrust": str(Path(__file__).parent / "data" / "prior.txt"),
    "prior": str(Path(__file__).parent / "data" / "prior.txt"),
    "damping": 0.5,
    "self_links": True,
    "sink_duplicates": True,
    "lease_seconds": 30.0,
    "max_retries": 9,
    "retry_seconds": 7.5,
    "max_losses": 5,
    "rerank_share": None,
    "rerank_seconds": 77.0,
    "sync": "full",
    "revisit": FixedInterval(5.0),
    "revisit_rules": ("host:a.com 60", "[.]pdf$ 600..86400"),
    "politeness.by": "domain",
    "politeness.delay": 30.0,
    "politeness.in_flight": 3,
    "politeness.soft_rate": 0.25,
    "politeness.hard_rate": 1.5,
    "politeness.rate_window": 10.0,
    "politeness.host_budget": 17,
    "politeness.domain_budget": 99,
    "politeness.park_after": 2,
    "politeness.park_seconds": 60.0,
    "rules.allow": ("a",),
    "rules.deny": ("[.]jpg$", "host:x.example"),
    "rules.max_depth": 4,
    "rules.hosts": ("a.example",),
    "rules.domains": ("example.org",),
    "rules.shard": "1/1",
    "url_rules.sort_query": True,
    "url_rules.drop_session_ids": True,
    "url_rules.drop_parameters": ("utm_*", "ref"),
}
"""For each setting a value that is not its default."""


TOGETHER = {
    name: value for name, value in OTHERS.items() if name not in ("trust", "spam_mass", "distrust", "prior")
}
"""Those that can be given together."""


def all_others() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in TOGETHER.items():
        group, dot, field = name.partition(".")
        lay_over(found, group, {field: value} if dot else value)
    return found


def as_given(name: str, value: Any) -> dict[str, Any]:
    group, dot, field = name.partition(".")
    return {group: {field: value}} if dot else {name: value}


def got(settings: Settings, name: str) -> Any:
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value

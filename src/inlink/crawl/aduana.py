"""Aduana's settings as arguments of :class:`inlink.Crawl`.

Aduana (2015) was a frontier for Scrapy and Frontera, with PageRank or HITS over LMDB. Names, meanings and defaults here
are those of its ``aduana/__init__.py`` and ``aduana/frontera.py``. The docstring of :func:`crawl_arguments` and
``docs/migration.md`` list the differences.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from inlink.base.settings import LONGEST, NO_LIMIT
from inlink.errors import ParameterError
from inlink.frontier.rules import Rules
from inlink.frontier.settings import TABLE, Politeness

__all__ = ["DEFAULTS", "NAMES", "crawl_arguments"]

NAMES = (
    "PAGE_DB_PATH",
    "BACKEND_SCHEDULER",
    "SCORER",
    "USE_SCORES",
    "PAGE_RANK_DAMPING",
    "SOFT_CRAWL_LIMIT",
    "HARD_CRAWL_LIMIT",
    "MAX_CRAWL_DEPTH",
    "SCORE_UPDATE_INTERVAL",
)
"""The settings that :func:`crawl_arguments` reads."""

DEFAULTS: dict[str, object] = {"SCORER": None, "SOFT_CRAWL_LIMIT": 0.25, "HARD_CRAWL_LIMIT": 100.0}
"""Aduana's defaults that differ from inlink's."""

SCORERS: dict[str, dict[str, Any]] = {
    "None": {"policy": "best-first"},
    "HitsScorer": {"policy": "hits", "cross_domain_only": True},
    "PageRankScorer": {"policy": "pagerank", "cross_domain_only": True},
}
# The strings are those that Scrapy's option -s gives.
TRUE, FALSE = (True, 1, "1", "True", "true"), (False, 0, "0", "False", "false")


def crawl_arguments(settings: Mapping[str, object]) -> dict[str, Any]:
    """Return arguments with which ``inlink.Crawl(**arguments)`` crawls as Aduana did with these settings.

    Parameters
    ----------
    settings : mapping
        Aduana's settings (:data:`NAMES`); others are ignored. A setting that is None or missing gives no argument. The
        exception is a ``SCORER`` of None, which selects Aduana's order without a scorer. Pass
        ``{**DEFAULTS, **settings}`` for Aduana's defaults. Numbers and booleans may be strings, as from a command line.

    Returns
    -------
    dict
        Keyword arguments. They include ``folder`` if ``PAGE_DB_PATH`` is set.

    Raises
    ------
    inlink.errors.ParameterError
        If a scorer or scheduler is unknown, or a number is invalid.

    Notes
    -----
    Differences from Aduana:

    - ``PAGE_RANK_DAMPING`` always applies. In Aduana it applied only with ``USE_SCORES``.
    - As in Aduana, both scorers count only links between hosts. A page without such links passes on no score here;
      Aduana used its links within the host instead.
    - As in Aduana, the limits are crawls a second of a host, over a window of 10/HARD_CRAWL_LIMIT seconds. A host that
      reached a limit is crawled again once it has cooled down; Aduana stopped for ever. Aduana had no delays and
      no limit on simultaneous requests; both were left to the spider.
    - ``MAX_CRAWL_DEPTH`` counts seeds as 1; inlink's ``max_depth`` counts them as 0.
    - inlink has no ``FreqScheduler``: the schedule ``ByValue`` and the setting ``revisit_rules`` replace it.

    Examples
    --------
    >>> crawl_arguments({"SCORER": "aduana.PageRankScorer", "PAGE_RANK_DAMPING": 0.9, "PAGE_DB_PATH": "test-crawl"})
    {'folder': 'test-crawl', 'policy': 'pagerank', 'cross_domain_only': True, 'damping': 0.9}
    >>> crawl_arguments({"MAX_CRAWL_DEPTH": 3})["rules"].max_depth
    2
    """
    given = {name: settings[name] for name in NAMES if name in settings and settings[name] is not None}
    arguments: dict[str, Any] = {}
    if "PAGE_DB_PATH" in given:
        arguments["folder"] = given["PAGE_DB_PATH"]
    if "BACKEND_SCHEDULER" in given and _name(given["BACKEND_SCHEDULER"]) == "FreqScheduler":
        raise ParameterError(
            "BACKEND_SCHEDULER: inlink has no FreqScheduler: remove it, and give "
            "INLINK_REVISIT = {'schedule': 'ByValue', 'budget': …} with a number of revisits a day; "
            "INLINK_REVISIT_RULES replaces FREQ_SPEC"
        )
    if "BACKEND_SCHEDULER" in given:
        _named("BACKEND_SCHEDULER", given["BACKEND_SCHEDULER"], ("BFScheduler",))
    if "SCORER" in settings:
        arguments |= SCORERS[_named("SCORER", settings["SCORER"], SCORERS)]
    if "SOFT_CRAWL_LIMIT" in given or "HARD_CRAWL_LIMIT" in given:
        arguments["politeness"] = _politeness({**DEFAULTS, **given})
    if "USE_SCORES" in given:
        arguments["use_scores"] = _flag("USE_SCORES", given["USE_SCORES"])
    if "PAGE_RANK_DAMPING" in given:
        damping = _number("PAGE_RANK_DAMPING", given["PAGE_RANK_DAMPING"])
        arguments["damping"] = TABLE["damping"].check(damping, "PAGE_RANK_DAMPING")
    seconds = _number("SCORE_UPDATE_INTERVAL", given.get("SCORE_UPDATE_INTERVAL", 0))
    if seconds > 0:
        arguments["rerank_seconds"] = TABLE["rerank_seconds"].check(seconds, "SCORE_UPDATE_INTERVAL")
    depth = _number("MAX_CRAWL_DEPTH", given.get("MAX_CRAWL_DEPTH", 0))
    if depth > 0:
        most = TABLE["rules.max_depth"].check(max(math.floor(depth) - 1, 0), "MAX_CRAWL_DEPTH")
        arguments["rules"] = Rules(max_depth=most)
    return arguments


def _politeness(given: Mapping[str, object]) -> Politeness:
    """Return Aduana's two limits as politeness. A limit of 0 or less is off."""
    soft = max(_number("SOFT_CRAWL_LIMIT", given["SOFT_CRAWL_LIMIT"]), 0.0)
    hard = max(_number("HARD_CRAWL_LIMIT", given["HARD_CRAWL_LIMIT"]), 0.0)
    soft = TABLE["politeness.soft_rate"].check(soft, "SOFT_CRAWL_LIMIT")
    hard = TABLE["politeness.hard_rate"].check(hard, "HARD_CRAWL_LIMIT")
    limits = Politeness(delay=0.0, in_flight=NO_LIMIT, soft_rate=soft, hard_rate=hard)
    return replace(limits, rate_window=min(10.0 / hard, LONGEST)) if hard else limits


def _named(setting: str, value: object, known: Iterable[str]) -> str:
    """Return the known name of a class, which is given as the class or by name, with or without its modules."""
    name = _name(value)
    if name not in known:
        raise ParameterError(f"{setting} must be {' or '.join(known)}; got {value!r}")
    return name


def _name(value: object) -> str:
    return value.__name__ if isinstance(value, type) else str(value).rpartition(".")[2]


def _flag(setting: str, value: object) -> bool:
    if value not in TRUE + FALSE:
        raise ParameterError(f"{setting} must be True or False; got {value!r}")
    return value in TRUE


def _number(setting: str, value: object) -> float:
    convert: Callable[[Any], float] = float
    try:
        number = convert(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(f"{setting} must be a finite number; got {value!r}")
    return number

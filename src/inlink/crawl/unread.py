"""Find settings of Aduana and Frontera that have no effect in inlink, so that a warning can name them.

``docs/migration.md`` lists the replacement for each of them.
"""

from collections.abc import Container, Mapping

FRONTERA_READS = frozenset((
    "AUTO_START", "BACKEND", "CANONICAL_SOLVER", "DELAY_ON_EMPTY", "FRONTERA_SETTINGS", "MAX_NEXT_REQUESTS",
    "MAX_REQUESTS", "MIDDLEWARES", "REQUEST_MODEL", "RESPONSE_MODEL", "TEST_MODE",
))  # fmt: skip
"""Settings that Frontera itself reads if inlink is its backend."""

FAMILY = FRONTERA_READS | {
    "CRAWLING_STRATEGY", "DISCOVERY_MAX_PAGES", "DOMAINS_BLACKLIST", "DOMAIN_FINGERPRINT_FUNCTION",
    "DOMAIN_STATS_LOG_INTERVAL", "LOCAL_MODE", "LOGGING_CONFIG", "MESSAGE_BUS", "MESSAGE_BUS_CODEC", "NEW_BATCH_DELAY",
    "QUEUE_HOSTNAME_PARTITIONING", "RECORDER_ENABLED", "RECORDER_STORAGE_DROP_ALL_TABLES", "RECORDER_STORAGE_ENGINE",
    "SCORING_PARTITION_ID", "SEEDS_AWS_ACCESS_KEY", "SEEDS_AWS_SECRET_ACCESS_KEY", "SPIDER_PARTITION_ID",
    "STATE_CACHE_SIZE", "STATE_CACHE_SIZE_LIMIT", "STORE_CONTENT", "STRATEGY", "STRATEGY_ARGS", "SW_FLUSH_INTERVAL",
    "TLDEXTRACT_DOMAIN_INFO", "URL_FINGERPRINT_FUNCTION",
    "MAX_N_CRAWLS",
}  # fmt: skip
"""Unambiguous names of settings of Frontera, and of Aduana's frequency scheduler.

Others, such as USER of Aduana's server, are recognised by their module.
"""

PREFIXES = (
    "BC_", "FREQ_", "HBASE_", "INLINK_", "OVERUSED_", "SCORING_LOG_", "SPIDER_FEED_", "SPIDER_LOG_",
    "SQLALCHEMYBACKEND_", "STATS_LOG_", "ZMQ_",
)  # fmt: skip
"""Beginnings of further names of Frontera's, Aduana's and inlink's."""


def unread(settings: Mapping[str, object], module: Container[str], read: Container[str]) -> list[str]:
    """Return the names of those settings of Aduana, Frontera and inlink that have no effect.

    Parameters
    ----------
    settings : mapping
        All settings that the project sets. A value of None counts as not set.
    module : container of str
        The names in the module that ``FRONTERA_SETTINGS`` names. They can only be meant for Frontera, Aduana or inlink.
    read : container of str
        Names that have an effect.

    Returns
    -------
    list of str
        In alphabetical order.

    Examples
    --------
    >>> unread({"MAX_REQUESTS": 9, "DOWNLOAD_DELAY": 1, "SCORER": "HitsScorer", "FREQ_SCALE": 2}, (), {"SCORER"})
    ['FREQ_SCALE', 'MAX_REQUESTS']
    """
    return sorted(
        name
        for name, value in settings.items()
        if value is not None
        and (name in module or name in FAMILY or name.startswith(PREFIXES))
        and name not in read
    )


def warning(names: list[str]) -> str:
    """Return the warning about settings without effect."""
    return f"settings without effect in inlink: {', '.join(names)} (docs/migration.md has replacements)"

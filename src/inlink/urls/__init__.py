"""The canonical form, the host and the registered domain of URLs: pure functions by the WHATWG rules."""

from inlink.urls.canonical import MAX_LENGTH, Base, UrlRules, canonical, refusal
from inlink.urls.hosts import (
    domain_of,
    host_of,
    registered_domain,
    reverse_host,
    valid_host,
)

__all__ = [
    "MAX_LENGTH",
    "Base",
    "UrlRules",
    "canonical",
    "domain_of",
    "host_of",
    "refusal",
    "registered_domain",
    "reverse_host",
    "valid_host",
]

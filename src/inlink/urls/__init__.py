"""What a URL is called, which host it is on, and whose domain that is: pure functions on the WHATWG rules."""

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

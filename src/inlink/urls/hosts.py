"""Hosts and registered domains of URLs, by the rules of Common Crawl's graphs.

The host of a URL is defined by the WHATWG rules, in lower case and IDNA, without port, user or a trailing dot. Some
names are not hosts here, and so not nodes of a host graph:

- IP addresses, and single labels (``localhost``);
- names of more than 253 bytes;
- names with a label that is empty, longer than 63 bytes, or does not begin and end with a letter or digit (within a
  label, ``-`` and ``_`` are allowed);
- names whose last label is not a top-level domain of the public suffix list.

A registered domain has one label more than the longest public suffix (https://publicsuffix.org/).

Graphs hold both in reversed form, ``com.example.www``, so that the hosts of a domain are neighbours.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

from url import URL, URLError

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

_LABEL = r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}\.)+({_LABEL})")


@cache
def _suffixes(private: bool) -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList

    # This takes 40 ms, once.
    return PublicSuffixList(only_icann=not private)


@cache
def _top_level_domains() -> frozenset[str]:
    """The last labels of the rules in the list's ICANN section, in IDNA."""
    from importlib.resources import files

    labels = set()
    text = files("publicsuffixlist").joinpath("public_suffix_list.dat").read_text("utf-8")
    for line in text.partition("// ===END ICANN DOMAINS===")[0].splitlines():
        rule = line.strip()
        if rule and not rule.startswith("//"):
            labels.add(rule.rpartition(".")[2])
    ascii_ones = {label for label in labels if label.isascii()}
    encoded = {URL.parse(f"http://a.{label}/").host_str for label in labels - ascii_ones}
    return frozenset(ascii_ones | {name.removeprefix("a.") for name in encoded if name})


def valid_host(host: str) -> bool:
    """Return whether a name in lower case and IDNA can be a host of a host graph; see the module's rules.

    Examples
    --------
    >>> valid_host("www.example.com"), valid_host("localhost"), valid_host("127.0.0.1"), valid_host("a.b.invalid")
    (True, False, False, False)
    """
    if len(host) > 253:
        return False
    match = _HOST.fullmatch(host)
    return match is not None and match[1] in _top_level_domains()


def host_of(url: str, *, strip_www: bool = False) -> str | None:
    r"""The host of an absolute http or https URL; None if it has no host that a host graph may hold.

    Parameters
    ----------
    url : str
        The URL.
    strip_www : bool
        Drop a leading ``www.`` if at least two labels remain, as Common Crawl's graphs did before the release
        2025-26-nov-dec-jan.

    Examples
    --------
    >>> host_of("http://WWW.Example.com:8080/"), host_of("http://foo.com\\@evil.com/"), host_of("http://10.0.0.1/")
    ('www.example.com', 'foo.com', None)
    """
    try:
        parsed = URL.parse(url)
    except (URLError, UnicodeError):
        return None
    if parsed.scheme not in ("http", "https"):
        return None
    host = (parsed.host_str or "").removesuffix(".")
    if strip_www and host.startswith("www.") and host.count(".") > 1:
        host = host[4:]
    return host if valid_host(host) else None


def reverse_host(host: str) -> str:
    """A host with its labels in reverse order; applied twice it gives the host again.

    Examples
    --------
    >>> reverse_host("www.example.com")
    'com.example.www'
    """
    return ".".join(reversed(host.split(".")))


def registered_domain(host: str, *, private: bool = False, keep_suffixes: bool = False) -> str | None:
    """The registered domain of a host.

    Parameters
    ----------
    host : str
        A host in lower case and IDNA, not reversed.
    private : bool
        Use the list's private section too: ``github.io`` is then a suffix, and ``someone.github.io`` a domain.
    keep_suffixes : bool
        A host that is itself a public suffix, such as ``gov.uk``, is its own domain. Otherwise it has no domain.

    Returns
    -------
    str or None
        None if the host has no registered domain, because it is a public suffix or an address.

    Examples
    --------
    >>> registered_domain("www.example.co.uk"), registered_domain("gov.uk"), registered_domain("127.0.0.1")
    ('example.co.uk', None, None)
    >>> registered_domain("a.b.github.io"), registered_domain("a.b.github.io", private=True)
    ('github.io', 'b.github.io')
    """
    # No top-level domain is a number.
    if host.rpartition(".")[2].isdigit():
        return None
    suffixes = _suffixes(private)
    domain: str | None = suffixes.privatesuffix(host)
    if domain is None and keep_suffixes and suffixes.is_public(host):
        return host
    return domain


def domain_of(reversed_host: str, *, private: bool = False, keep_suffixes: bool = False) -> str | None:
    """The registered domain of a host, both reversed: see :func:`registered_domain`.

    Examples
    --------
    >>> domain_of("uk.co.example.www")
    'uk.co.example'
    """
    domain = registered_domain(reverse_host(reversed_host), private=private, keep_suffixes=keep_suffixes)
    return None if domain is None else reverse_host(domain)


def same_domain(first: str, other: str) -> bool:
    """Return whether two canonical URLs have the same host or registered domain."""
    hosts = [url.split("/", 3)[2].partition(":")[0] for url in (first, other)]
    domains = [registered_domain(host) for host in hosts]
    return hosts[0] == hosts[1] or (domains[0] is not None and domains[0] == domains[1])

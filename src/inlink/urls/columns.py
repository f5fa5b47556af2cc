"""Hosts and registered domains of columns of URLs, computed once for each distinct value."""

import re
from typing import Any

from inlink.base.strings import Strings, column_of
from inlink.urls.hosts import domain_of, host_of, reverse_host

__all__ = ["domains_of", "hosts_of"]

# The part of a URL before its path, or the whole line if that part is not plain.
_ORIGINS = re.compile(rb"(https?://[^/?#\\\x00-\x20]++(?=[/?#\\\n])|.*).*\n")


def hosts_of(names: Strings | Any, *, strip_www: bool = False) -> Strings:
    """The reversed hosts of a column of URLs. Each distinct origin is parsed once.

    Parameters
    ----------
    names : Strings, or what :func:`inlink.base.strings.column_of` takes, n
        URLs.
    strip_www : bool
        As in :func:`host_of`.

    Returns
    -------
    Strings, n
        A row has no value if the name is not an http URL or has no host that a host graph may hold.
    """
    column = column_of(names)
    text = column.lines()
    origins = column.to_pylist() if text is None else _ORIGINS.findall(text)
    hosts: dict[bytes | None, str | None] = {
        origin: _reversed_host(origin, strip_www) for origin in dict.fromkeys(origins)
    }
    return Strings.of([hosts[origin] for origin in origins])


def _reversed_host(url: bytes | None, strip_www: bool) -> str | None:
    try:
        host = host_of((url or b"").decode(), strip_www=strip_www)
    except UnicodeError:
        return None
    return None if host is None else reverse_host(host)


def domains_of(
    reversed_hosts: Strings | Any, *, private: bool = False, keep_suffixes: bool = False
) -> Strings:
    """The reversed registered domains of a column of reversed hosts. Each distinct host is looked up once.

    Parameters
    ----------
    reversed_hosts : Strings, or what :func:`inlink.base.strings.column_of` takes, n
        Hosts in the form of :func:`hosts_of`.
    private, keep_suffixes : bool
        As in :func:`registered_domain`.

    Returns
    -------
    Strings, n
        A row has no value if the host has none or has no registered domain.
    """

    def domain(raw: bytes) -> str | None:
        try:
            return domain_of(raw.decode(), private=private, keep_suffixes=keep_suffixes)
        except UnicodeError:
            return None

    return column_of(reversed_hosts).by_value(domain)

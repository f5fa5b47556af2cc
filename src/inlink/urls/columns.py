"""Hosts and registered domains of columns of URLs, computed once for each distinct value."""

from typing import Any

import numpy as np

from inlink.base.strings import Strings, bytes_in, column_of
from inlink.urls.hosts import domain_of, host_of, reverse_host

__all__ = ["domains_of", "hosts_of"]

_SCHEMES = (b"http://", b"https://")
# The part before the path ends at the third slash, or at another byte that ends a host.
_ENDS = bytes_in(b"/?#\\")
_ODD = bytes_in(range(33))


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

    def reversed_host(url: bytes) -> str | None:
        try:
            host = host_of(url.decode(), strip_www=strip_www)
        except UnicodeError:
            return None
        return None if host is None else reverse_host(host)

    return _origins(column_of(names)).by_value(reversed_host)


def _origins(urls: Strings) -> Strings:
    """Return each URL up to its path. URLs that do not begin with a plain origin stay whole."""
    first, last = int(urls.offsets[0]), int(urls.offsets[-1])
    text, bounds = urls.text[first:last], (urls.offsets - urls.offsets[0]).astype(np.int64)
    begins, ends = bounds[:-1], bounds[1:]
    stops = ends.copy()
    # Ends of hosts, and a last one beyond the text.
    found = np.append(np.flatnonzero((_ENDS | _ODD)[text]), len(text))
    for scheme in _SCHEMES:
        fits = ends - begins > len(scheme)
        for place, byte in enumerate(scheme):
            rows = np.flatnonzero(fits)
            fits[rows] = text[begins[rows] + place] == byte
        rows = np.flatnonzero(fits)
        hosts = begins[rows] + len(scheme)
        stop = np.minimum(found[np.searchsorted(found, hosts)], ends[rows])
        plain = (stop > hosts) & ((stop == ends[rows]) | _ENDS[text[np.minimum(stop, len(text) - 1)]])
        stops[rows[plain]] = stop[plain]
    lengths = stops - begins
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    places = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)
    return Strings(text[places], offsets.view(np.uint64), urls.valid)


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

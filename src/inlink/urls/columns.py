"""Hosts and registered domains of columns of URLs, computed once for each distinct value."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from inlink.urls.hosts import domain_of, host_of, reverse_host

__all__ = ["by_value", "domains_of", "hosts_of"]

# The part before the path. It ends at the third slash, or at another character that ends a host.
_ORIGIN = rb"^(?P<origin>https?://[^/?#\\\x00-\x20]+)(?:[/?#\\]|$)"


def hosts_of(names: pa.Array, *, strip_www: bool = False) -> pa.LargeBinaryArray:
    """The reversed hosts of a column of URLs. Each distinct origin is parsed once.

    Parameters
    ----------
    names : pyarrow.Array of string or binary (normal or large)[n]
        URLs.
    strip_www : bool
        As in :func:`host_of`.

    Returns
    -------
    pyarrow.LargeBinaryArray[n]
        Null if a name is not an http URL or has no host that a host graph may hold.
    """
    raw = _large_binary(names)
    origins = pc.struct_field(pc.extract_regex(raw, _ORIGIN), 0)
    hosts = by_value(origins, lambda origin: _reversed_host(origin, strip_www))
    # Names that do not begin with a plain origin (white space, upper case, "http:/x") are parsed one by one.
    odd = pc.and_(pc.is_null(origins), pc.is_valid(raw))
    if pc.any(odd).as_py():
        parsed = by_value(raw.filter(odd), lambda url: _reversed_host(url, strip_www))
        hosts = pc.replace_with_mask(hosts, odd, parsed)
    return hosts


def domains_of(
    reversed_hosts: pa.Array, *, private: bool = False, keep_suffixes: bool = False
) -> pa.LargeBinaryArray:
    """The reversed registered domains of a column of reversed hosts. Each distinct host is looked up once.

    Parameters
    ----------
    reversed_hosts : pyarrow.Array of string or binary (normal or large)[n]
        Hosts in the form of :func:`hosts_of`.
    private, keep_suffixes : bool
        As in :func:`registered_domain`.

    Returns
    -------
    pyarrow.LargeBinaryArray[n]
        Null if a host is null or has no registered domain.
    """

    def domain(raw: bytes) -> str | None:
        try:
            return domain_of(raw.decode(), private=private, keep_suffixes=keep_suffixes)
        except UnicodeError:
            return None

    return by_value(_large_binary(reversed_hosts), domain)


def _reversed_host(url: bytes, strip_www: bool) -> str | None:
    try:
        host = host_of(url.decode(), strip_www=strip_www)
    except UnicodeError:
        return None
    return None if host is None else reverse_host(host)


def _large_binary(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array if pa.types.is_large_binary(array.type) else array.cast(pa.large_binary())


def by_value(array: pa.Array, function: Callable[[bytes], Any]) -> pa.Array:
    """The results of ``function`` for each value, called once for each distinct value; null stays null."""
    encoded = array.dictionary_encode()
    results = pa.array([function(value) for value in encoded.dictionary.to_pylist()], pa.large_binary())
    return results.take(encoded.indices)

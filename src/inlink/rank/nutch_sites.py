"""A URL's page, host and domain by Nutch's rules, which differ from the rules of a host graph.

- page: the URL in lower case without its query (a fragment stays);
- host: the text between ``//`` and the path, in lower case, without user and port; also IP addresses and single
  labels;
- domain: the public suffix (the list's ICANN section) and one more label; the host if it has no such domain.

Names without ``//``, or without text after it, have no page, host or domain, and no rule of Nutch applies to them. In
graphs of hosts or domains only the name itself is known.

Source: org.apache.nutch.util.URLUtil (getPage, getHost, getDomainName), Nutch 1.23.
"""

from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlink.base.arrays import UInt32Array
from inlink.graph.graph import Graph
from inlink.graph.names import NO_NODE, NameTable
from inlink.urls.columns import by_value
from inlink.urls.hosts import reverse_host

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

__all__ = ["Site", "numbers", "numbers_of", "site_names"]

Site = Literal["page", "host", "domain"]

_AUTHORITY = rb"^[A-Za-z][A-Za-z0-9+.\-]*://(?P<authority>[^/?#]+)"
# Names processed at a time.
_BLOCK = 1 << 18


def site_names(names: pa.Array, site: Site, level: str | None = None) -> pa.LargeBinaryArray:
    """Return the page, host or domain of each name, large_binary[n]; null if the name has none.

    Parameters
    ----------
    names : pyarrow.Array of string or binary (normal or large)[n]
        URLs; or reversed hosts or domains, as graphs of these have them.
    site : {"page", "host", "domain"}
        The part to return. Hosts and domains are not reversed.
    level : {"page", "host", "domain"} or None
        The level of the graph that has these names.
    """
    raw = names if pa.types.is_large_binary(names.type) else names.cast(pa.large_binary())
    if level in ("host", "domain"):
        if site == "page":
            return raw
        return by_value(raw, _domain_of_reversed if level == "host" and site == "domain" else _reversed)
    authority = pc.struct_field(pc.extract_regex(raw, _AUTHORITY), 0)
    if site != "page":
        return by_value(authority, _host if site == "host" else _domain)
    try:
        text = pc.utf8_lower(raw.cast(pa.large_string())).cast(pa.large_binary())
    except pa.ArrowInvalid:
        # The names are not UTF-8. Letters beyond ASCII stay unchanged.
        text = pc.ascii_lower(raw.view(pa.large_string())).view(pa.large_binary())
    pages = pc.replace_substring_regex(text, rb"^([^?#]*)\?[^#]*", rb"\1", max_replacements=1)
    return pc.if_else(by_value(authority, _host).is_valid(), pages, pa.scalar(None, pa.large_binary()))


def numbers(values: pa.Array) -> UInt32Array:
    """Return a number for each value, uint32[len(values)]. Equal values have equal numbers; null has 2³² − 1."""
    indices = values.dictionary_encode().indices
    found: UInt32Array = (
        indices.cast(pa.int64()).fill_null(NO_NODE).to_numpy(zero_copy_only=False).astype(np.uint32)
    )
    return found


def numbers_of(graph: Graph, site: Site) -> tuple[UInt32Array, NameTable]:
    """:func:`numbers` of all nodes of a graph, uint32[n], and the values' table; a graph without names has none."""
    table = NameTable()
    found = np.full(graph.num_nodes, NO_NODE, np.uint32)
    if graph.names is not None:
        for start in range(0, graph.num_nodes, _BLOCK):
            stop = min(start + _BLOCK, graph.num_nodes)
            part = site_names(graph.names.arrow(start, stop), site, graph.level)
            there = np.asarray(part.is_valid())
            found[start:stop][there] = table.number(part.drop_null())
    return found, table


@cache
def _suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList(accept_unknown=False, only_icann=True)


def _host(authority: bytes) -> bytes | None:
    host = authority.rpartition(b"@")[2]
    host = host[: host.find(b"]") + 1] if host.startswith(b"[") else host.partition(b":")[0]
    try:
        return host.decode().lower().encode() or None
    except UnicodeError:
        return host.lower() or None


def _domain(authority: bytes) -> bytes | None:
    host = _host(authority)
    return None if host is None else _registered(host)


def _registered(host: bytes) -> bytes:
    try:
        name = host.decode().removesuffix(".")
    except UnicodeError:
        return host
    domain: str | None = _suffixes().privatesuffix(name)
    return host.removesuffix(b".") if domain is None else domain.encode()


def _reversed(name: bytes) -> bytes:
    return reverse_host(name.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _domain_of_reversed(name: bytes) -> bytes:
    return _registered(_reversed(name))

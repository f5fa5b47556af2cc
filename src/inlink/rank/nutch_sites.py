"""A URL's page, host and domain by Nutch's rules, which differ from the rules of a host graph.

- page: the URL in lower case without its query (a fragment stays);
- host: the text between ``//`` and the path, in lower case, without user and port; also IP addresses and single
  labels;
- domain: the public suffix (the list's ICANN section) and one more label; the host if it has no such domain.

Names without ``//``, or without text after it, have no page, host or domain, and no rule of Nutch applies to them. In
graphs of hosts or domains only the name itself is known.

Source: org.apache.nutch.util.URLUtil (getPage, getHost, getDomainName), Nutch 1.23.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from inlink.base.arrays import UInt32Array
from inlink.base.strings import Strings, column_of
from inlink.graph.graph import Graph
from inlink.graph.names import NO_NODE, NameTable
from inlink.urls.hosts import reverse_host

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


Site = Literal["page", "host", "domain"]

_AUTHORITY = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://([^/?#]+)")
_QUERY = re.compile(rb"^([^?#]*)\?[^#]*")
# Number of names that are processed at a time.
_BLOCK = 1 << 18


def site_names(names: Strings | Any, site: Site, level: str | None = None) -> Strings:
    """Return the page, host or domain of each name, n; a row has no value if the name has none.

    Parameters
    ----------
    names : Strings, or what :func:`inlink.base.strings.column_of` takes, n
        URLs; or reversed hosts or domains, as graphs of these have them.
    site : {"page", "host", "domain"}
        The part to return. Hosts and domains are not reversed.
    level : {"page", "host", "domain"} or None
        The level of the graph that has these names.
    """
    column = column_of(names)
    if level in ("host", "domain"):
        if site == "page":
            return column
        return column.by_value(_domain_of_reversed if level == "host" and site == "domain" else _reversed)
    rows = column.to_pylist()
    authorities = [None if row is None else _AUTHORITY.match(row) for row in rows]
    if site != "page":
        plain = Strings.of(match and match[1] for match in authorities)
        return plain.by_value(_host if site == "host" else _domain)
    has_host = Strings.of(match and match[1] for match in authorities).by_value(_host).is_valid()
    return Strings.of(_page(row) if there else None for row, there in zip(rows, has_host, strict=True))


def _page(url: bytes) -> bytes:
    """Return a URL in lower case without its query. Letters beyond ASCII stay if it is not UTF-8."""
    try:
        lower = url.decode().lower().encode()
    except UnicodeError:
        lower = url.lower()
    return _QUERY.sub(rb"\1", lower, count=1)


def numbers(values: Strings) -> UInt32Array:
    """Return a number for each row, uint32[n]. Equal values have equal numbers; rows without a value have 2³² − 1."""
    there = values.is_valid()
    result = np.full(len(values), NO_NODE, np.uint32)
    result[there] = NameTable().number(values.filter(there))
    return result


def numbers_of(graph: Graph, site: Site) -> tuple[UInt32Array, NameTable]:
    """Return the numbers of the sites of all nodes, uint32[n], as :func:`numbers`, and the table of the sites.

    In a graph without names, all numbers are 2³² − 1 and the table is empty.
    """
    table = NameTable()
    result = np.full(graph.num_nodes, NO_NODE, np.uint32)
    if graph.names is not None:
        for start, column in graph.names.columns(_BLOCK):
            part = site_names(column, site, graph.level)
            there = part.is_valid()
            result[start : start + len(part)][there] = table.number(part.filter(there))
    return result, table


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

"""The sites that ``inlink crawl`` stays on.

The sites become rules of the crawl, which the folder keeps:

- ``domain``, the default of a new crawl: the registered domains of the given URLs, and all hosts under them;
- ``host``: the hosts of the given URLs;
- ``everywhere``: no limit.

The public suffix list is used with its private section, so that ``a.github.io`` is a site, and ``github.io`` is not. A
host without a registered domain, such as an IP address, is a site of its own. Ports do not matter. If the caller sets
``rules.domains`` or ``rules.hosts``, these name the sites instead of the registered domains. The hosts of the given
URLs always belong to the sites.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from inlink.errors import ParameterError
from inlink.frontier.rules import Rules
from inlink.urls.canonical import canonical
from inlink.urls.hosts import registered_domain, valid_host

__all__ = ["Scope", "limits", "sites_of"]

Scope = Literal["domain", "host", "everywhere"]


def sites_of(urls: Iterable[str]) -> dict[str, str]:
    """Return the hosts of URLs, and the registered domain of each.

    Parameters
    ----------
    urls : iterable of str
        URLs; those that are not http URLs are ignored.

    Examples
    --------
    >>> sites_of(["https://docs.python.org/3/", "http://127.0.0.1:8000/", "https://a.github.io/"])
    {'docs.python.org': 'python.org', '127.0.0.1': '127.0.0.1', 'a.github.io': 'a.github.io'}
    """
    found = {}
    for url in urls:
        form = canonical(url)
        if form is None:
            continue
        host = form.split("/", 3)[2]
        name, colon, port = host.rpartition(":")
        host = (name if colon and port.isdigit() else host).removesuffix(".")
        found[host] = (registered_domain(host, private=True) if valid_host(host) else None) or host
    return found


def limits(
    scope: Scope | None, urls: Iterable[str], given: Mapping[str, Any], kept: Rules | None
) -> dict[str, tuple[str, ...] | None]:
    """Return the fields ``hosts`` and ``domains`` of a crawl's rules, as far as they change.

    Parameters
    ----------
    scope : {"domain", "host", "everywhere"} or None
        None: ``domain`` in a new crawl. In a crawl that exists: what the folder keeps, and the sites of the given URLs
        are added to it.
    urls : iterable of str
        The URLs that the run begins at.
    given : mapping
        The fields of the rules that the caller sets.
    kept : Rules or None
        The rules of the folder; None in a new crawl.

    Raises
    ------
    inlink.errors.ParameterError
        If ``scope`` is unknown or contradicts the given rules, or if there are no URLs to take the hosts of.
    """
    if scope is not None and scope not in get_args(Scope):
        raise ParameterError(f"`within` must be one of {', '.join(get_args(Scope))}; got {scope!r}")
    named = {name: tuple(given[name]) for name in ("hosts", "domains") if given.get(name)}
    if scope == "everywhere":
        if named:
            raise ParameterError(
                f"--everywhere cannot be combined with {' and '.join(f'rules.{name}' for name in named)}"
            )
        return {"hosts": None, "domains": None}
    sites = sites_of(urls)
    if scope == "host" and not sites:
        raise ParameterError("--host limits the crawl to the hosts of the given URLs: give URLs or --seeds")
    if scope == "host" or named:
        hosts = tuple(dict.fromkeys([*named.get("hosts", ()), *sites]))
        return {"hosts": hosts or None, "domains": named.get("domains")}
    domains = tuple(dict.fromkeys(sites.values()))
    if scope == "domain" or kept is None:
        return {"hosts": None, "domains": domains or None}
    if kept.domains is not None:
        return {"domains": tuple(dict.fromkeys([*kept.domains, *domains]))} if domains else {}
    if kept.hosts is not None:
        return {"hosts": tuple(dict.fromkeys([*kept.hosts, *sites]))} if sites else {}
    return {}

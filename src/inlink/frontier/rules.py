"""Which URLs may be fetched: allow, deny, hosts, domains, depth. Pure functions of the canonical URL.

A rule is a regular expression that matches anywhere in the URL, or ``host:example.org`` for that host alone, or
``domain:example.org`` for that name and every host under it. Any name works after ``domain:``, also
``docs.example.org``; the public suffix list is not used. Port and scheme do not matter to the last two.

A URL is forbidden if one of these holds; the first one is the reason:

1. it is deeper than ``max_depth`` links from a seed;
2. its host is none of ``hosts`` and in none of ``domains``, where either is given;
3. a rule of ``deny`` matches;
4. there are rules in ``allow``, and none matches.

Expressions are RE2's, which take linear time: see :mod:`inlink.urls.patterns`. In ``deny``, Nutch's rule against loops
may have the ``-`` that it has in ``regex-urlfilter.txt``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from inlink.base.settings import check_fields, setting
from inlink.errors import ParameterError
from inlink.urls.canonical import MAX_LENGTH, canonical
from inlink.urls.patterns import NUTCH_LOOPS, Pattern, compiled

__all__ = ["Rules"]


@dataclass(frozen=True)
class Rules:
    """Which URLs may be fetched; without arguments, all.

    Parameters
    ----------
    allow, deny : sequence of str
        Rules, as the module says; one string is one rule.
    max_depth : int or None
        The most links from a seed; seeds have depth 0.
    hosts : sequence of str or None
        Only these hosts.
    domains : sequence of str or None
        Only these names and the hosts under them. With both, what is in either.

    Raises
    ------
    inlink.errors.ParameterError
        If a regular expression or a host's name is none; it is named.

    Examples
    --------
    >>> rules = Rules(deny=["[.](jpg|png)$", "host:tracker.example.org"], max_depth=3, domains=["example.org"])
    >>> rules.verdict("http://www.example.org/a", depth=1)
    >>> rules.verdict("http://www.example.org/a.png", depth=1)
    'denied by [.](jpg|png)$'
    >>> rules.verdict("http://badexample.org/", depth=1)
    'outside the hosts and domains of this crawl'
    """

    allow: Sequence[str] = setting(
        (), "Only URLs in which one of these is found; empty for all.", option="--allow"
    )
    deny: Sequence[str] = setting((), "No URLs in which one of these is found.", option="--deny")
    max_depth: int | None = setting(
        None, "The most links from a seed.", at_least=0, at_most=0xFFFFFFFF, none="no limit", option="--depth"
    )
    hosts: Sequence[str] | None = setting(None, "Only these hosts.", none="all", commas=True)
    domains: Sequence[str] | None = setting(
        None, "Only these domains and the hosts under them.", none="all", commas=True, option="--domains"
    )

    def __post_init__(self) -> None:
        for what in ("allow", "deny", "hosts", "domains"):
            if isinstance(getattr(self, what), str):
                object.__setattr__(self, what, (getattr(self, what),))
        check_fields(self, "rules.")
        for what in ("hosts", "domains"):
            if getattr(self, what) is not None:
                names = tuple(_host_named(what, name) for name in getattr(self, what))
                object.__setattr__(self, what, names)
        _ = self._allow, self._deny  # so that what is wrong with them is said now

    def __bool__(self) -> bool:
        """Whether any URL is forbidden; a caller with many URLs need not ask otherwise."""
        return bool(self.allow or self.deny) or not (
            self.max_depth is None and self.hosts is None and self.domains is None
        )

    def verdict(self, url: str, depth: int = 0) -> str | None:
        """Why a URL may not be fetched.

        Parameters
        ----------
        url : str
            A canonical URL.
        depth : int
            Links from the nearest seed.

        Returns
        -------
        str or None
            A phrase that can be counted by; None if the URL may be fetched.
        """
        if self.max_depth is not None and depth > self.max_depth:
            return f"deeper than {self.max_depth} links from a seed"
        if len(url) > MAX_LENGTH:
            return f"longer than {MAX_LENGTH:,} bytes"
        host = _host_of(url)
        if self._within is not None and self._within.fitting(url, host) is None:
            return "outside the hosts and domains of this crawl"
        if self.deny and (rule := self._deny.fitting(url, host)) is not None:
            return f"denied by {rule}"
        if self.allow and self._allow.fitting(url, host) is None:
            return "allowed by no rule"
        return None

    @cached_property
    def _allow(self) -> "_Group":
        return _Group.of("allow", self.allow)

    @cached_property
    def _deny(self) -> "_Group":
        return _Group.of("deny", self.deny)

    @cached_property
    def _within(self) -> "_Group | None":
        if self.hosts is None and self.domains is None:
            return None
        return _Group(frozenset(self.hosts or ()), frozenset(self.domains or ()), ())


@dataclass(frozen=True)
class _Group:
    """Rules, any of which may fit; thousands of hosts and domains cost no more than one."""

    hosts: frozenset[str]
    domains: frozenset[str]
    patterns: tuple[Pattern, ...]

    @classmethod
    def of(cls, what: str, rules: Sequence[str]) -> "_Group":
        hosts, domains, patterns = set(), set(), []
        for text in rules:
            kind, _, name = text.partition(":")
            if kind == "host":
                hosts.add(_host_named(what, name))
            elif kind == "domain":
                domains.add(_host_named(what, name))
            else:
                nutch = what == "deny" and text == "-" + NUTCH_LOOPS
                patterns.append(compiled(NUTCH_LOOPS if nutch else text, what))
        return cls(frozenset(hosts), frozenset(domains), tuple(patterns))

    def fitting(self, url: str, host: str) -> str | None:
        """The rule that fits, None if none does."""
        if host in self.hosts:
            return f"host:{host}"
        if self.domains:
            name = host
            while name:
                if name in self.domains:
                    return f"domain:{name}"
                name = name.partition(".")[2]
        for pattern in self.patterns:
            if pattern.found_in(url):
                return pattern.text
        return None


def _host_named(what: str, name: str) -> str:
    """A host's name in canonical form."""
    form = None if re.search(r"[/?#@*\\\s]", name) else canonical(f"http://{name}/")
    host = "" if form is None else _host_of(form)
    if not host or form not in (f"http://{host}/", f"http://{host}./"):  # the second is "example.org."
        raise ParameterError(f"{what}: {name!r} is no host's name; give it without scheme, port and path")
    return host


def _host_of(url: str) -> str:
    """The host of a canonical URL, without port and trailing dot."""
    host = url.split("/", 3)[2] if url.count("/") >= 3 else ""
    name, colon, port = host.rpartition(":")
    if colon and port.isdigit():  # behind the last colon of an IPv6 address stands a bracket too
        host = name
    return host.removesuffix(".")

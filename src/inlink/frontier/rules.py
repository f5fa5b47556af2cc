"""Rules for the URLs of a crawl: allow, deny, hosts, domains, depth. Pure functions of the canonical URL.

A rule has one of three forms:

- a regular expression that matches anywhere in the URL;
- ``host:example.org`` for that host alone;
- ``domain:example.org`` for that name and every host under it. Any name works after ``domain:``, also
  ``docs.example.org``; the public suffix list is not used.

``host:`` and ``domain:`` ignore port and scheme.

A URL is forbidden if one of these conditions holds. The first condition that holds is the reason:

1. another shard owns its host;
2. the URL is deeper than ``max_depth`` clicks from a seed;
3. ``hosts`` or ``domains`` is given, and the host is in neither;
4. a rule of ``deny`` matches;
5. ``allow`` has rules, and none of them matches.

Regular expressions use RE2's syntax and take linear time: see :mod:`inlink.urls.patterns`. In ``deny``, Nutch's rule
against loops may keep the ``-`` that it has in ``regex-urlfilter.txt``.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import msgspec

from inlink.base.declare import Parameter, check_fields
from inlink.base.table import counted
from inlink.errors import ParameterError
from inlink.urls.canonical import MAX_LENGTH, canonical
from inlink.urls.patterns import NUTCH_LOOPS, Pattern, compiled
from inlink.urls.shards import Shard

__all__ = ["Rules"]

OTHER_SHARD = "another shard owns its host"
"""The reason for which a page of another shard is excluded."""


@dataclass(frozen=True)
class Rules:
    """Rules for which URLs may be fetched. Without arguments, all URLs may be.

    Parameters
    ----------
    allow, deny : sequence of str
        Rules, in the forms that the module's docstring lists. A single string is one rule.
    max_depth : int or None
        Maximum number of clicks from a seed; seeds have depth 0, and redirects are no clicks.
    hosts : sequence of str or None
        Only these hosts are allowed.
    domains : sequence of str or None
        Only these names and the hosts under them are allowed. If ``hosts`` is given too, a host in either is allowed.
    shard : str or None
        ``"K/N"``: only the hosts of shard K of N, see :mod:`inlink.urls.shards`.

    Raises
    ------
    inlink.errors.ParameterError
        If a regular expression or a host name is invalid; the message names it.

    Examples
    --------
    >>> rules = Rules(deny=["[.](jpg|png)$", "host:tracker.example.org"], max_depth=3, domains=["example.org"])
    >>> rules.verdict("http://www.example.org/a", depth=1)
    >>> rules.verdict("http://www.example.org/a.png", depth=1)
    'denied by [.](jpg|png)$'
    >>> rules.verdict("http://badexample.org/", depth=1)
    'outside the hosts and domains of this crawl'
    """

    allow: Annotated[
        Sequence[str],
        Parameter("Only URLs in which one of these rules matches; empty for all.", option="--allow"),
    ] = ()
    deny: Annotated[
        Sequence[str], Parameter("No URLs in which one of these rules matches.", option="--deny")
    ] = ()
    max_depth: Annotated[
        int | None,
        Parameter(
            "Maximum number of clicks from a seed.",
            at_least=0,
            at_most=0xFFFFFFFF,
            none="no limit",
            option="--depth",
        ),
    ] = None
    hosts: Annotated[Sequence[str] | None, Parameter("Only these hosts.", none="all", commas=True)] = None
    domains: Annotated[
        Sequence[str] | None,
        Parameter(
            "Only these domains and the hosts under them.", none="all", commas=True, option="--domains"
        ),
    ] = None
    shard: Annotated[
        str | None,
        Parameter("Only the hosts of this shard, such as `2/4`: see [shards.md](shards.md).", none="all"),
    ] = None

    def __post_init__(self) -> None:
        for what in ("allow", "deny", "hosts", "domains"):
            if isinstance(getattr(self, what), str):
                object.__setattr__(self, what, (getattr(self, what),))
        check_fields(self, "rules.")
        for what in ("hosts", "domains"):
            if getattr(self, what) is not None:
                names = tuple(host_named(what, name) for name in getattr(self, what))
                object.__setattr__(self, what, names)
        # Compile the rules now, so that an invalid rule raises its error here.
        _ = self._allow, self._deny, self.part

    def __bool__(self) -> bool:
        """Return whether any URL is forbidden. If not, a caller with many URLs can skip the check."""
        return bool(self.allow or self.deny) or not (
            self.max_depth is None and self.hosts is None and self.domains is None and self.shard is None
        )

    @cached_property
    def part(self) -> Shard | None:
        """The shard whose hosts are allowed; None if all hosts are."""
        return None if self.shard is None else Shard.from_text(self.shard)

    @cached_property
    def is_shard_only(self) -> bool:
        """Whether a page may be fetched if its host is the shard's."""
        return self == Rules(shard=self.shard)

    def verdict(self, url: str, depth: int = 0) -> str | None:
        """Return why a URL may not be fetched.

        Parameters
        ----------
        url : str
            A canonical URL.
        depth : int
            Links from the nearest seed.

        Returns
        -------
        str or None
            The reason, as a phrase that is the same for all URLs with this reason. None if the URL may be fetched.
        """
        host = host_of(url)
        if self.part is not None and not self.part.owns(host):
            return OTHER_SHARD
        if self.max_depth is not None and depth > self.max_depth:
            return f"deeper than {counted(self.max_depth, 'link')} from a seed"
        if len(url) > MAX_LENGTH:
            return f"longer than {MAX_LENGTH:,} bytes"
        if self._within is not None and self._within.fitting(url, host) is None:
            return "outside the hosts and domains of this crawl"
        if self.deny and (rule := self._deny.fitting(url, host)) is not None:
            return f"denied by {rule}"
        if self.allow and self._allow.fitting(url, host) is None:
            return "allowed by no rule"
        return None

    @cached_property
    def _allow(self) -> "RuleGroup":
        return RuleGroup.from_rules("allow", self.allow)

    @cached_property
    def _deny(self) -> "RuleGroup":
        return RuleGroup.from_rules("deny", self.deny)

    @cached_property
    def _within(self) -> "RuleGroup | None":
        if self.hosts is None and self.domains is None:
            return None
        return RuleGroup(frozenset(self.hosts or ()), frozenset(self.domains or ()), ())


class RuleGroup(msgspec.Struct, frozen=True):
    """A group of rules that matches if any rule does. Thousands of hosts cost no more than a single host."""

    hosts: frozenset[str]
    domains: frozenset[str]
    patterns: tuple[Pattern, ...]

    @classmethod
    def from_rules(cls, what: str, rules: Iterable[str]) -> "RuleGroup":
        """Make a group of rules. Messages call the setting ``what``.

        Raises
        ------
        inlink.errors.ParameterError
            If a regular expression or a host name is invalid.
        """
        hosts, domains, patterns = set(), set(), []
        for text in rules:
            kind, _, name = text.partition(":")
            if kind == "host":
                hosts.add(host_named(what, name))
            elif kind == "domain":
                domains.add(host_named(what, name))
            else:
                nutch = what == "deny" and text == "-" + NUTCH_LOOPS
                patterns.append(compiled(NUTCH_LOOPS if nutch else text, what))
        return cls(frozenset(hosts), frozenset(domains), tuple(patterns))

    def fitting(self, url: str, host: str) -> str | None:
        """Return the rule that matches: that of the host, else of its closest domain, else the first expression.

        Return None if no rule matches. ``host`` is the URL's host, as :func:`host_of` returns it.
        """
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


def host_named(what: str, name: str) -> str:
    """Return a host name in canonical form.

    Raises
    ------
    inlink.errors.ParameterError
        If it is not a host name. The message calls the setting ``what``.
    """
    form = None if re.search(r"[/?#@*\\\s]", name) else canonical(f"http://{name}/")
    host = "" if form is None else host_of(form)
    # The second form is that of a name with a trailing dot, such as "example.org.".
    if not host or form not in (f"http://{host}/", f"http://{host}./"):
        raise ParameterError(f"{what}: {name!r} is not a host name; give it without scheme, port and path")
    return host


def host_of(url: str) -> str:
    """Return the host of a canonical URL, without port and trailing dot."""
    host = url.split("/", 3)[2] if url.count("/") >= 3 else ""
    name, colon, port = host.rpartition(":")
    # In an IPv6 address, the text after the last colon ends with a bracket, so it is not all digits.
    if colon and port.isdigit():
        host = name
    return host.removesuffix(".")

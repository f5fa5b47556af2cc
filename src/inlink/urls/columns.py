"""Hosts and registered domains of columns of URLs, computed once for each distinct value."""

import re
from typing import Any, Literal

from inlink.base.strings import Strings, column_of
from inlink.errors import ParameterError
from inlink.urls.hosts import domain_of, host_of, reverse_host

HostNames = Literal["reversed", "plain"]
"""How a name that is no URL writes a host: ``com.example.www`` or ``www.example.com``."""

# The part of a URL before its path, or the whole line if that part is not plain.
_ORIGINS = re.compile(rb"(https?://[^/?#\\\x00-\x20]++(?=[/?#\\\n])|.*).*\n")


# Characters that are in no host. Behind some of them, a URL would have something else than a host.
_NO_HOST = re.compile(r"[/?#\\@\[\]%\x00-\x20\x7f]")
# The end of a host that is the whole of a name: a port, or the dot of the root.
_END = re.compile(r"\.?(?::\d{1,5})?$")


def hosts_of(names: Strings | Any, *, strip_www: bool = False, form: HostNames | None = None) -> Strings:
    """The reversed hosts of a column of URLs or hosts. Each distinct origin is parsed once.

    Parameters
    ----------
    names : Strings, or what :func:`inlink.base.strings.column_of` takes, n
        URLs, or hosts in any case, in Unicode or IDNA, with or without a port and a trailing dot.
    strip_www : bool
        As in :func:`host_of`.
    form : {"reversed", "plain"} or None
        How names that are no URLs write hosts. None: they have no host.

    Returns
    -------
    Strings, n
        A row has no value if the name is not an http URL or host, or has no host that a host graph may hold.
    """
    column = column_of(names)
    text = column.lines()
    origins = column.to_pylist() if text is None else _ORIGINS.findall(text)
    hosts: dict[bytes | None, str | None] = {
        origin: _reversed_host(origin, strip_www, form) for origin in dict.fromkeys(origins)
    }
    return Strings.of([hosts[origin] for origin in origins])


def _reversed_host(name: bytes | None, strip_www: bool, form: HostNames | None) -> str | None:
    try:
        text = (name or b"").decode()
    except UnicodeError:
        return None
    if form and "://" not in text:
        if _NO_HOST.search(text):
            return None
        # A port is behind the host, also if that is reversed. The dot of the root is at the other end then.
        text = _END.sub("", text)
        text = "http://" + (reverse_host(text.removeprefix(".")) if form == "reversed" else text) + "/"
    host = host_of(text, strip_www=strip_www)
    return None if host is None else reverse_host(host)


def form_of(names: Strings | Any) -> HostNames | None:
    """Return how the names of a sample write hosts; None if they are URLs, or hold no host.

    A name decides if it is a host in one form only, because it has a top-level domain at one end only:
    ``uk.co.example`` is no plain host, and ``example.com`` no reversed one, but ``io.example.dev`` may be both.

    Raises
    ------
    inlink.errors.ParameterError
        If names decide for both forms, or hosts are there and none decides, or many names are URLs and others hosts.
    """
    column = column_of(names)
    texts = column.to_pylist()
    votes: dict[str, bytes] = {}
    for text, plain, backward in zip(
        texts,
        hosts_of(column, form="plain").to_pylist(),
        hosts_of(column, form="reversed").to_pylist(),
        strict=True,
    ):
        kind = (
            "URL" if text and b"://" in text
            else "both" if plain and backward
            else "plain" if plain
            else "reversed" if backward
            else ""
        )  # fmt: skip
        votes.setdefault(kind, text or b"")
    votes.pop("", None)
    urls = sum(b"://" in text for text in texts if text)
    if not votes or urls >= 0.9 * len(texts):
        return None
    kinds = [kind for kind in ("plain", "reversed", "URL") if kind in votes]
    if kinds == ["plain"] or kinds == ["reversed"]:
        return kinds[0]  # type: ignore[return-value]
    if kinds == ["URL"] and "both" not in votes:
        return None
    shown = ", ".join(
        f"{votes[kind].decode(errors='replace')!r} ({what})"
        for kind, what in (
            ("plain", "a plain host"),
            ("reversed", "a reversed host"),
            ("both", "a plain or a reversed host"),
            ("URL", "a URL"),
        )
        if kind in votes
    )
    raise ParameterError(
        f"the names of the nodes do not tell how hosts are written: there is {shown}. Declare it with "
        "`hosts` (--hosts reversed for com.example.www, --hosts plain for www.example.com) when you build or fold the "
        "graph."
    )


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

"""The options of ``inlink crawl``, and their translation into settings of Scrapy and of the crawl.

The sites that a crawl stays on become rules of the crawl, which the folder keeps:

- ``domain``, the default of a new crawl: the registered domains of the given URLs, and all hosts under them;
- ``host``: the hosts of the given URLs;
- ``everywhere``: no limit.

The public suffix list is used with its private section, so that ``a.github.io`` is a site, and ``github.io`` is not. A
host without a registered domain, such as an IP address, is a site of its own. Ports do not matter. If the caller sets
``rules.domains`` or ``rules.hosts``, these name the sites instead of the registered domains. The hosts of the given
URLs always belong to the sites.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from inlink import __version__
from inlink.crawl.permissions import Kept, Permissions, kept, refuse_losses
from inlink.crawl.settings import checked, choose, is_there, lay_over
from inlink.errors import InputError, ParameterError
from inlink.frontier.rules import Rules
from inlink.scoring.words import topic_words
from inlink.scrapy.preset import Preset
from inlink.store.inbox import seeds_in
from inlink.urls.canonical import canonical
from inlink.urls.hosts import registered_domain, valid_host

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


AGENT = f"inlink/{__version__} (+https://pypi.org/project/inlink/)"

LARGEST = 10 << 20
"""Maximum size of a response in bytes, compressed or not. Larger responses are dropped."""

PUBLIC = Permissions()
"""Only public addresses."""

TIMEOUT = 30.0
"""Seconds to wait for a response."""


@dataclass(frozen=True)
class CrawlOptions:
    """The options of ``inlink crawl``. ``docs/crawl-sites.md`` describes an option for each attribute.

    Attributes
    ----------
    seeds : Path or None
        A file of URLs to start from, one a line.
    topic, keywords, classifier : str, sequence of str, Path or None
        Pages are scored by the classifier if it is given, else by the keywords, else by the topic. Links are scored by
        the topic if it is given, else by the joined keywords.
    settings : mapping
        Settings of the crawl to be changed, as keyword arguments of :class:`inlink.Crawl`. Other settings keep their
        values from the folder. In a new crawl the policy is ``best-first`` if links are scored, else ``host-diverse``.
        The delay is that of the preset, or 1 second.
    pages : int or None
        Stop when the crawl has this many pages, including those of earlier runs.
    seconds : float or None
        Stop this run after this time.
    until_top : int or None
        Stop as soon as this number of places, 1 … 1,000, is certain: see :class:`inlink.protocol.Certificate`.
    until_within : float
        The difference that is allowed between two pages that may change places, as a share of all rank.
    within : {"domain", "host", "everywhere"} or None
        The sites that the crawl stays on; see :mod:`inlink.scrapy.options`. None: the registered domains of the given
        URLs in a new crawl, else as the folder has it.
    concurrency : int
        Maximum number of simultaneous requests over all hosts. Each host gets one request at a time.
    agent : str
        The User-Agent. It should say how to contact the operator.
    warc, items, sqlite : Path or None
        Files to write. SQLite needs a preset.
    warc_seen : sequence of Path
        Archives or CDXJ indexes of earlier crawls. A body that they have is not written to the WARC again.
    wacz : Path or None
        Pack the WARC as this file at the end of the run, unless it is interrupted.
    preset : str or None
        A preset's name or file, as for :func:`inlink.scrapy.preset.load`.
    start : sequence of str
        Titles of the preset's articles to start from.
    sitemaps : bool or None
        Read the sitemaps that a host's robots.txt names. True: also ask for ``/sitemap.xml`` if it names none. False:
        read no sitemaps. None: those of robots.txt, of all hosts if the crawl stays on its sites, else of the hosts of
        the given URLs. With a preset no sitemaps are read.
    max_wait : float or None
        End the run if no page is due within this many seconds. None: 60 seconds, or never if pages are revisited.
    allow_private : bool
        Also fetch addresses that are not public: loopback, private, link-local, reserved. Hosts of URLs that are given
        to the run directly, not in a file, are always fetched. The folder keeps these permissions.
    allow_addresses, deny_addresses : sequence of str
        Addresses and networks (CIDR). Those in ``allow_addresses`` are fetched even if they are not public. Those in
        ``deny_addresses`` are never fetched. The folder keeps both.
    reset_addresses : bool
        Forget all addresses that earlier runs permitted or denied.
    apply_rules : bool
        Begin also if the rules or addresses of this run exclude more than a tenth of the waiting pages.
    """

    seeds: Path | None = None
    topic: str | None = None
    keywords: tuple[str, ...] = ()
    classifier: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    pages: int | None = None
    seconds: float | None = None
    until_top: int | None = None
    until_within: float = 0.01
    within: Scope | None = None
    concurrency: int = 16
    agent: str = AGENT
    warc: Path | None = None
    warc_seen: tuple[Path, ...] = ()
    wacz: Path | None = None
    items: Path | None = None
    sqlite: Path | None = None
    preset: str | None = None
    start: tuple[str, ...] = ()
    sitemaps: bool | None = None
    max_wait: float | None = None
    allow_private: bool = False
    allow_addresses: tuple[str, ...] = ()
    deny_addresses: tuple[str, ...] = ()
    reset_addresses: bool = False
    apply_rules: bool = False


def beginnings(urls: tuple[str, ...], options: CrawlOptions, preset: Preset | None) -> list[str]:
    """Return the URLs to start from, in canonical form.

    Raises
    ------
    inlink.errors.ParameterError
        If a URL is not an http URL, or an option needs a preset.
    """
    if preset is None and (options.start or options.sqlite):
        what = "--start names an article" if options.start else "--sqlite keeps the tables of a wiki"
        raise ParameterError(f"{what}: give --preset too")
    found = []
    for url in urls:
        form = _typed(url)
        found.append(form if preset is None else preset.start(form))
    if preset is not None:
        found += [preset.start(title) for title in options.start]
    return found


def _typed(text: str) -> str:
    """The canonical form of an http URL that the user typed, perhaps without its scheme."""
    if "://" not in text:
        if is_there(Path(text)):
            raise ParameterError(
                f"{text!r} is a folder of inlink, not a URL: use -o {text} to continue its crawl"
            )
        host = re.split("[/:?#]", text, maxsplit=1)[0]
        if "." not in host and host != "localhost" and not host.startswith("["):
            raise ParameterError(
                f"{text!r} is not a URL: write http://{text} if {host!r} is the name of a host"
            )
        form = canonical(f"http://{text}")
    else:
        form = canonical(text)
    if form is None:
        raise ParameterError(f"{text!r} is not an http URL")
    return form


def seeds_in_file(path: Path | None) -> list[str]:
    """Return the URLs of a file, unchanged.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read or has no http URL.
    """
    if path is None:
        return []
    try:
        text = path.read_text("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    urls = [url for url, _ in seeds_in(text, str(path))]
    if not any(canonical(url) is not None for url in urls):
        raise InputError(f"{path}: no line begins with an http URL")
    return urls


def folder_for(urls: list[str]) -> Path:
    """Return the default folder of a crawl, named after the host of the first URL.

    Raises
    ------
    inlink.errors.ParameterError
        If ``urls`` is empty.
    """
    if not urls:
        raise ParameterError(
            "no URL to begin at: give a URL, --seeds or --start, or a crawl's folder with -o"
        )
    return Path(f"{urlsplit(canonical(urls[0]) or '').hostname}.crawl")


def permissions_of(folder: Path, options: CrawlOptions, typed: Sequence[str]) -> tuple[Permissions, str]:
    """Return the addresses that a run may connect to, and a line about those that earlier runs permitted.

    Parameters
    ----------
    folder : Path
        The crawl's folder, which need not exist.
    options : CrawlOptions
    typed : sequence of str
        The URLs that the user typed.
    """
    had = kept(folder)
    if had is None or options.reset_addresses:
        had = Kept(PUBLIC, True)
    old = had.permissions if had.hold else Permissions(deny=had.permissions.deny)
    hosts = {host: "" for url in typed if (host := urlsplit(url).hostname)}
    found = Permissions(
        options.allow_private or old.private,
        hosts | old.hosts,
        tuple(dict.fromkeys([*old.allow, *options.allow_addresses])),
        tuple(dict.fromkeys([*old.deny, *options.deny_addresses])),
    )
    told = ", ".join(had.permissions.permitted())
    if told and had.hold:
        told = f"also fetches {told}, as permitted by an earlier run; --reset-addresses takes this back"
    elif told:
        told = f"does not fetch {told}, as permitted elsewhere: this folder is a copy, a backup or another user's"
    return found, told and f"{folder}: {told}"


def settings_of(
    folder: Path,
    options: CrawlOptions,
    preset: Preset | None,
    urls: Sequence[str],
    permissions: Permissions = PUBLIC,
) -> dict[str, Any]:
    """Return the settings of a run that begins at ``urls``, for Scrapy and for the crawl.

    The crawl itself handles order, politeness and retries.

    Raises
    ------
    inlink.errors.ParameterError
        If an option is outside its range, or the run would exclude more than a tenth of the waiting pages and
        ``apply_rules`` is not set.
    """
    if not options.agent.strip() or not options.agent.isprintable():
        raise ParameterError(f"--agent {options.agent!r}: the User-Agent must be a single line")
    # An empty option is a mistake, such as a variable of the shell that is not set.
    if options.topic is not None:
        topic_words(options.topic)
    content: Mapping[str, Any] | None = None
    if options.classifier:
        content = {"classifier": str(options.classifier)}
    elif options.keywords:
        content = {"keywords": list(options.keywords)}
    elif options.topic:
        content = {"topic": options.topic}
    # This raises an error now if an address is invalid.
    _ = permissions.rules
    links = options.topic or " ".join(options.keywords)
    given = _given(folder, options, preset, urls, "best-first" if links else "host-diverse")
    chosen = choose(folder, given)
    if not options.apply_rules:
        refuse_losses(folder, chosen, permissions)
    polite = chosen.settings.politeness
    lay_over(given, "politeness", {"delay": polite.delay, "in_flight": polite.in_flight})
    given["self_links"] = chosen.settings.self_links
    return {
        "SCHEDULER": "inlink.scrapy.run.WatchedScheduler",
        "INLINK_CRAWL": str(folder),
        **{f"INLINK_{name.upper()}": value for name, value in given.items()},
        "INLINK_CONTENT_SCORER": content,
        "INLINK_LINK_SCORER": {"topic": links} if links else None,
        "INLINK_SEEDS": None if options.seeds is None else str(options.seeds),
        **({} if options.max_wait is None else {"INLINK_MAX_WAIT": options.max_wait}),
        "INLINK_ALLOW_PRIVATE": permissions.private,
        "INLINK_ALLOW_ADDRESSES": permissions.allow,
        "INLINK_DENY_ADDRESSES": permissions.deny,
        # The waiting pages were judged above.
        "INLINK_APPLY_RULES": True,
        "USER_AGENT": options.agent,
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": options.concurrency,
        # These threads look up names.
        "REACTOR_THREADPOOL_MAXSIZE": max(options.concurrency, 10),
        # The crawl applies the delay when it hands out pages. Scrapy applies it here too, to requests for robots.txt
        # and after redirects.
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": polite.delay,
        "DOWNLOAD_DELAY_JITTER": 0.0,
        "DOWNLOAD_TIMEOUT": TIMEOUT,
        "DOWNLOAD_MAXSIZE": LARGEST,
        "DOWNLOAD_WARNSIZE": 0,
        "REDIRECT_MAX_TIMES": 5,
        "RETRY_ENABLED": False,
        "COOKIES_ENABLED": False,
        "HTTPCACHE_ENABLED": False,
        # No extension is needed. Two of them listen on a port, and Scrapy imports even those that are turned off.
        "EXTENSIONS_BASE": {},
        "LOG_INSTALL_ROOT_HANDLER": False,
        "LOG_FORMATTER": "inlink.scrapy.run.CalmLog",
        "DOWNLOADER_MIDDLEWARES": {"inlink.scrapy.spider.WireMiddleware": 990},
    }


def _given(
    folder: Path, options: CrawlOptions, preset: Preset | None, urls: Sequence[str], policy: str
) -> dict[str, Any]:
    """Return the settings of the crawl that are given. For a new crawl, add the defaults of ``inlink crawl``."""
    found: dict[str, Any] = {}
    new = not is_there(folder)
    if new:
        delay = 1.0 if preset is None or preset.delay is None else preset.delay
        found = {"policy": policy, "politeness": {"delay": delay, "in_flight": 1}, "max_retries": 3}
    for name, value in options.settings.items():
        lay_over(found, name, checked(name, value))
    rules = choose(folder, found).settings.rules or Rules()
    site_rules = limits(options.within, urls, _named(found.get("rules")), None if new else rules)
    if site_rules:
        lay_over(found, "rules", site_rules)
    if preset is not None and not rules.allow:
        lay_over(found, "rules", {"allow": ("^" + re.escape(preset.base),)})
    return found


def _named(rules: Any) -> Mapping[str, Any]:
    """The given fields of rules: the fields in a mapping, or all fields of an instance."""
    return rules if isinstance(rules, Mapping) else vars(rules) if isinstance(rules, Rules) else {}

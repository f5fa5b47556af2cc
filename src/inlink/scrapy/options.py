"""What ``inlink crawl`` can be asked for, and what that means for Scrapy and for the crawl."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from inlink import __version__
from inlink.errors import InputError, ParameterError
from inlink.scrapy.preset import Preset
from inlink.store.inbox import seeds_in
from inlink.urls.canonical import canonical
from inlink.urls.hosts import registered_domain, valid_host

__all__ = ["AGENT", "CrawlOptions", "beginnings", "domains_of", "folder_for", "seeds_in_file", "settings_of"]

AGENT = f"inlink/{__version__} (+https://pypi.org/project/inlink/)"

LARGEST = 10 << 20
"""Bytes of an answer, packed or unpacked; a larger one is not taken."""

TIMEOUT = 30.0
"""Seconds for an answer."""


@dataclass(frozen=True)
class CrawlOptions:
    """What to crawl, and how; see ``docs/commands.md``, where each option bears its name.

    Attributes
    ----------
    seeds : Path or None
        URLs to begin at, one a line.
    topic, keywords, classifier : str, sequence of str, Path or None
        What makes a page good: the classifier if there is one, else the keywords, else the topic. Links are scored by
        the topic, or by the keywords as one.
    policy : str or None
        None is ``best-first`` where links are scored, and ``host-diverse`` otherwise.
    pages : int or None
        End when the crawl has so many pages, those of earlier runs among them.
    seconds : float or None
        End this run then.
    depth : int or None
        Links from a seed at most.
    domains, allow, deny : sequence of str
        See :class:`inlink.Rules`.
    stay : bool
        Stay in the registered domains of the seeds.
    delay : float or None
        Seconds between two fetches from a host; None is the preset's, or 1.
    concurrency : int
        Requests at a time, over all hosts; one a host.
    agent : str
        What the crawl calls itself, with a way to reach who runs it.
    warc, items, sqlite : Path or None
        What to write besides. SQLite needs a preset.
    preset : str or None
        A name or a file: :func:`inlink.scrapy.preset.load`.
    start : sequence of str
        Titles of articles of the preset to begin at.
    """

    seeds: Path | None = None
    topic: str | None = None
    keywords: tuple[str, ...] = ()
    classifier: Path | None = None
    policy: str | None = None
    use_scores: bool = False
    pages: int | None = None
    seconds: float | None = None
    depth: int | None = None
    domains: tuple[str, ...] = ()
    stay: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    delay: float | None = None
    concurrency: int = 16
    agent: str = AGENT
    warc: Path | None = None
    items: Path | None = None
    sqlite: Path | None = None
    preset: str | None = None
    start: tuple[str, ...] = ()


def beginnings(urls: tuple[str, ...], options: CrawlOptions, preset: Preset | None) -> list[str]:
    """The URLs to begin at, in canonical form."""
    if preset is None and (options.start or options.sqlite):
        what = "--start names an article" if options.start else "--sqlite keeps the tables of a wiki"
        raise ParameterError(f"{what}: give --preset too")
    found = []
    for url in urls:
        form = canonical(url if "://" in url else f"http://{url}")
        if form is None:
            raise ParameterError(f"{url!r} is no http URL")
        found.append(form if preset is None else preset.start(form))
    if preset is not None:
        found += [preset.start(title) for title in options.start]
    return found


def seeds_in_file(path: Path | None) -> list[str]:
    """The URLs of a file, as they stand there.

    Raises
    ------
    inlink.errors.InputError
        If it cannot be read, or holds none.
    """
    if path is None:
        return []
    try:
        text = path.read_text("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    urls = [url for url, _ in seeds_in(text, str(path))]
    if not any(canonical(url) is not None for url in urls):
        raise InputError(f"{path}: none of its {len(urls):,} lines begins with an http URL")
    return urls


def folder_for(urls: list[str]) -> Path:
    """Where a crawl goes that was not told: named after the first URL's host.

    Raises
    ------
    inlink.errors.ParameterError
        If there is no URL.
    """
    if not urls:
        raise ParameterError("nothing to begin at: give a URL, --seeds or --start, or a crawl's folder by -o")
    return Path(f"{urlsplit(canonical(urls[0]) or '').hostname}.crawl")


def domains_of(urls: list[str]) -> tuple[str, ...]:
    """The registered domains of URLs; of a host that has none, the host."""
    hosts = {urlsplit(form).hostname or "" for url in urls if (form := canonical(url)) is not None}
    return tuple(sorted({registered_domain(host) or host if valid_host(host) else host for host in hosts}))


def settings_of(
    folder: Path, options: CrawlOptions, preset: Preset | None, stay: tuple[str, ...]
) -> dict[str, Any]:
    """Scrapy's settings. The order, politeness and retries are the crawl's business."""
    if not options.agent.strip() or not options.agent.isprintable():
        raise ParameterError(f"--agent {options.agent!r}: give one line")
    delay = options.delay
    if delay is None:
        delay = 1.0 if preset is None or preset.delay is None else preset.delay
    if not 0 <= delay < math.inf:
        raise ParameterError(f"--delay must be a number of seconds of at least 0, not {delay!r}")
    content: Mapping[str, Any] | None = None
    if options.classifier:
        content = {"classifier": str(options.classifier)}
    elif options.keywords:
        content = {"keywords": list(options.keywords)}
    elif options.topic:
        content = {"topic": options.topic}
    links = options.topic or " ".join(options.keywords)
    rules: dict[str, Any] = {"max_depth": options.depth, "allow": options.allow, "deny": options.deny}
    if options.domains or stay:
        rules["domains"] = [*options.domains, *stay]
    if preset is not None and not options.allow:
        rules["allow"] = ["^" + re.escape(preset.base)]
    return {
        "SCHEDULER": "inlink.scrapy.run.WatchedScheduler",
        "INLINK_CRAWL": str(folder),
        "INLINK_POLICY": options.policy or ("best-first" if links else "host-diverse"),
        "INLINK_USE_SCORES": options.use_scores,
        "INLINK_CONTENT_SCORER": content,
        "INLINK_LINK_SCORER": {"topic": links} if links else None,
        "INLINK_SEEDS": None if options.seeds is None else str(options.seeds),
        "INLINK_RULES": rules,
        "INLINK_POLITENESS": {"by": "host", "delay": delay, "in_flight": 1},
        "INLINK_MAX_RETRIES": 3,
        "USER_AGENT": options.agent,
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": options.concurrency,
        "REACTOR_THREADPOOL_MAXSIZE": max(options.concurrency, 10),  # names are looked up there
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,  # the crawl sees to the delay when it hands out; here it is kept on the
        "DOWNLOAD_DELAY": delay,  # wire too, between robots.txt, a redirect and what follows
        "DOWNLOAD_DELAY_JITTER": 0.0,
        "DOWNLOAD_TIMEOUT": TIMEOUT,
        "DOWNLOAD_MAXSIZE": LARGEST,
        "DOWNLOAD_WARNSIZE": 0,
        "REDIRECT_MAX_TIMES": 5,
        "RETRY_ENABLED": False,
        "COOKIES_ENABLED": False,
        "AUTOTHROTTLE_ENABLED": False,
        "HTTPCACHE_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "MEMUSAGE_ENABLED": False,
        "LOGSTATS_INTERVAL": 0,
        "LOG_INSTALL_ROOT_HANDLER": False,
        "LOG_FORMATTER": "inlink.scrapy.logs.CalmLog",
        "DOWNLOADER_MIDDLEWARES": {"inlink.scrapy.spider.WireMiddleware": 990},
    }

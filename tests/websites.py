"""Real sites out of Debian packages, each on an address of its own, and topics that are known to be in them.

``apt-get install --no-install-recommends postgresql-doc-15 apache2-doc sqlite3-doc anarchism`` brings all four. They
hold 2,300 pages (4,700 in all languages) written by people for people, with the links that such pages have.
"""

import gzip
import json
import mimetypes
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache, partial
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urlsplit

sys.path.insert(0, str(Path(__file__).parents[1] / "demo"))

from webserver import Reply, WebServer

ROBOTS = "/robots.txt"
LANGUAGES = ("en", "de", "fr", "ja", "ko")  # of suffixes such as index.html.en; the first that is there
_DOC = Path("/usr/share/doc")


class Site(NamedTuple):
    """A site: its address, the package that it is from, the folder that is its root, where to begin, its robots.txt.

    ``robots`` is None for what the package has, which is mostly none.
    """

    name: str
    host: str
    package: str
    root: Path
    start: str = "/index.html"
    robots: str | None = None

    def url(self, port: int) -> str:
        """The URL of its first page, if it is served on a port."""
        return f"http://{self.host}:{port}{self.start}"


# Apache's manual is there in eleven languages, most of it in English in all: two thousand duplicates, unless forbidden.
_ENGLISH = "User-agent: *\n" + "".join(
    f"Disallow: /{language}/\n"
    for language in ["da", "de", "es", "fr", "ja", "ko", "pt-br", "ru", "tr", "zh-cn"]
)
SITES = (
    Site("postgres", "127.0.0.1", "postgresql-doc-15", _DOC / "postgresql-doc-15/html"),
    Site("apache", "127.0.0.2", "apache2-doc", _DOC / "apache2-doc/manual", "/en/index.html", _ENGLISH),
    Site("sqlite", "127.0.0.3", "sqlite3-doc", _DOC / "sqlite3"),
    Site("anarchism", "127.0.0.4", "anarchism", _DOC / "anarchism/html"),
)


def sites() -> list[Site]:
    """Those whose packages are installed."""
    return [site for site in SITES if _lookup(site.root, site.start) is not None]


def serve(some: Iterable[Site]) -> WebServer:
    """A server for sites, to be used in a ``with``; ``url(server.port)`` of each is where to begin."""
    return WebServer({site.host: static(site.root, site.robots) for site in some})


# -- a folder as a site --------------------------------------------------------------------------------------------


def static(root: Path, robots: str | None = None):
    """A handler for a folder.

    A file is also found under its name without ``.gz`` or without the suffix of a language, as Apache's content
    negotiation has it. A folder without a slash is redirected to itself with one, and has its index.html there.
    """
    return partial(_answer, root, robots)


def _answer(root: Path, robots: str | None, target: str, headers: Mapping[str, str]) -> Reply:
    if target == ROBOTS and robots is not None:
        return Reply(body=robots.encode(), content_type="text/plain")
    path = unquote(target.partition("?")[0], errors="surrogateescape")
    file = _lookup(root, path)
    if file is None:
        return Reply(404, b"<title>Not found</title>")
    if file.is_dir():
        return Reply(301, headers=(("Location", target.partition("?")[0] + "/"),))
    kind = mimetypes.guess_type(path.rpartition("/")[2] or "index.html")[0] or "application/octet-stream"
    body = file.read_bytes()
    return Reply(body=gzip.decompress(body) if file.suffix == ".gz" else body, content_type=kind)


def _lookup(root: Path, path: str) -> Path | None:
    """The file or folder that a decoded path names."""
    wanted = root / path.lstrip("/")
    if path.endswith("/"):
        wanted /= "index.html"
    names = [wanted, *(wanted.with_name(f"{wanted.name}.{suffix}") for suffix in ("gz", *LANGUAGES))]
    return next((file for file in names if file.is_file() or (file == wanted and file.is_dir())), None)


# -- topics ----------------------------------------------------------------------------------------------------------


class Topic(NamedTuple):
    """A topic: words for a scorer, and the rule that says what is relevant, which was fixed before any crawl.

    A page is relevant if its title or one of its H1 holds one of ``words``: words of letters and digits, case aside, so
    that ``mod_ssl`` holds "ssl"; of several words, one after the other. Text, links and URLs have no say.
    """

    name: str
    description: str
    words: tuple[str, ...]

    def fits(self, document: str) -> bool:
        """Return whether a document is relevant."""
        heads = (" ".join(_WORD.findall(unescape(head).casefold())) for head in _HEADS.findall(document))
        return any(f" {word} " in f" {head} " for head in heads for word in self.words)

    def relevant(self, urls: Iterable[str]) -> set[str]:
        """Return the relevant URLs among ``urls``. A URL of no file of :data:`SITES` is not relevant."""
        return {url for url in urls if self.fits(_document(urlsplit(url).hostname, urlsplit(url).path))}


_HEADS = re.compile(r"<(?:title|h1)\b[^>]*>(.*?)</(?:title|h1)", re.I | re.S)
_WORD = re.compile(r"[^\W_]+|<[^>]*>")  # a tag between words parts them
TOPICS = (
    Topic(
        "replication",
        "replication and backup of a database: standby servers, write-ahead log shipping, failover, recovery, restore",
        (
            "replication",
            "standby",
            "failover",
            "high availability",
            "log shipping",
            "publication",
            "subscription",
        )
        + ("wal", "write ahead log", "write ahead logging", "backup", "restore", "recovery", "archiving"),
    ),
    Topic(
        "access",
        "authentication and encryption: passwords, users, certificates, SSL and TLS, who may connect to a server",
        ("authentication", "authorization", "auth", "authn", "authz", "password", "passwords", "htpasswd")
        + ("encryption", "ssl", "tls", "certificate", "certificates", "gssapi", "ldap", "roles"),
    ),
    Topic(
        "queries",
        "how a database plans a query: optimizer, indexes, statistics of tables, EXPLAIN",
        (
            "planner",
            "optimizer",
            "query planning",
            "query plan",
            "query optimization",
            "explain",
            "statistics",
        )
        + ("index", "indexes", "indices", "indexing", "gin", "gist", "brin"),
    ),
    Topic(
        "transactions",
        "transactions and locks: commit, rollback, savepoints, isolation, concurrent access to a database",
        ("transaction", "transactions", "commit", "rollback", "savepoint", "lock", "locks", "locking")
        + ("isolation", "concurrency", "two phase commit"),
    ),
    Topic(
        "modules",
        "modules of the Apache web server, their directives and how they are configured",
        ("mod", "module", "modules"),
    ),
    Topic(
        "capitalism",
        "what anarchists say of capitalism, property, wages and the capitalist class",
        ("capitalism", "capitalist", "capitalists", "property", "wages", "profits"),
    ),
)


@cache
def _document(host: str | None, path: str) -> str:
    site = next((one for one in SITES if one.host == host), None)
    file = _lookup(site.root, unquote(path, errors="surrogateescape")) if site else None
    if file is None or file.is_dir():
        return ""
    raw = file.read_bytes()[:100_000]
    return raw.decode("utf-8", "replace")


# -- what can be reached, by somebody else's crawler -----------------------------------------------------------------


def reachable(seeds: Iterable[str], allowed_hosts: Iterable[str]) -> set[str]:
    """URLs, without fragments, that answer 200 with HTML and that Scrapy's own CrawlSpider reaches.

    It also follows links that are marked nofollow, and never ends in a web with traps.

    Parameters
    ----------
    seeds : iterable of str
    allowed_hosts : iterable of str
        Hosts without ports.
    """
    given = json.dumps({"seeds": list(seeds), "hosts": list(allowed_hosts)})
    done = subprocess.run([sys.executable, __file__], input=given, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Scrapy failed:\n{done.stderr}")
    return set(json.loads(done.stdout))


def _crawl(seeds: list[str], hosts: list[str]) -> list[str]:
    """Crawl with Scrapy, in this process."""
    from scrapy.crawler import CrawlerProcess
    from scrapy.http import HtmlResponse
    from scrapy.linkextractors import LinkExtractor
    from scrapy.spiders import CrawlSpider, Rule

    found: list[str] = []

    class All(CrawlSpider):
        name = "all"
        start_urls = seeds
        allowed_domains = hosts
        rules = (Rule(LinkExtractor(), callback="keep", follow=True),)

        def keep(self, response):
            if isinstance(response, HtmlResponse) and response.status == 200:
                found.append(urldefrag(response.url).url)

        parse_start_url = keep

    process = CrawlerProcess(
        {
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
            "ROBOTSTXT_OBEY": True,
            "CONCURRENT_REQUESTS": 32,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
            "DOWNLOAD_DELAY": 0,
        }
    )
    process.crawl(All)
    process.start()
    return found


if __name__ == "__main__":
    task = json.load(sys.stdin)
    print(json.dumps(_crawl(task["seeds"], task["hosts"])))

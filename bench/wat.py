"""A made-up WAT file in Common Crawl's schema, for the extraction benchmark; the same for the same seed.

The file has what files of 2019 to 2025 have: records of requests, responses and metadata, repeated headers as lists,
many entries of every kind in the head, and the odd links that authors of pages write.
"""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["write_wat"]

_SYLLABLES = [
    *("ba", "con", "de", "fi", "gu", "hes", "in", "jo", "ka", "ler", "mi"),
    *("nu", "os", "pas", "ra", "sti", "tur", "ve", "wi", "xo", "yl", "zen"),
]
_RELS = [None] * 12 + ["nofollow", "noopener noreferrer", "nofollow noopener", "bookmark", "tag"]
_FILES = ["style.css", "main.js", "jquery.min.js", "icon.png", "theme.css", "app.bundle.js", "fonts.woff2"]
_HOSTED = [
    "fonts.googleapis.com",
    "www.googletagmanager.com",
    "cdnjs.cloudflare.com",
    "ajax.googleapis.com",
    "www.facebook.com",
    "twitter.com",
    "s.w.org",
    "www.instagram.com",
]
_OG = ["og:title", "og:description", "og:type", "og:site_name", "og:locale", "article:published_time"]

Json = dict[str, Any]


class _Web:
    """The names of hosts, and dice."""

    def __init__(self, pages: int, seed: int) -> None:
        # The same numbers in every Python since 3.2.
        self.dice = random.Random(seed)
        self.words = [self._word() for _ in range(1000)]
        self.hosts = [
            f"{'www.' if k % 2 else ''}{self._word()}{k:x}.{self.dice.choice(['com', 'org', 'de', 'co.uk'])}"
            for k in range(max(pages // 3, 20))
        ]

    def _word(self) -> str:
        return "".join(self.dice.choice(_SYLLABLES) for _ in range(self.dice.randint(1, 4)))

    def text(self, most: int) -> str:
        """Some words."""
        return " ".join(self.dice.choices(self.words, k=self.dice.randint(1, most)))

    def slug(self) -> str:
        """Words as they stand in a path."""
        return "-".join(self.dice.choices(self.words, k=self.dice.randint(1, 5)))

    def other(self) -> str:
        """A host; a few are named far more often than the rest."""
        if self.dice.random() < 0.25:
            return self.dice.choice(_HOSTED)
        return self.hosts[int(len(self.hosts) * self.dice.random() ** 3)]

    def path(self) -> str:
        """A path of a page."""
        return f"/{self.dice.choice(self.words)}/{self.slug()}-{self.dice.randrange(100_000)}"


def write_wat(path: Path, pages: int = 9000, links: int = 172, seed: int = 1) -> int:
    """Write `pages` pages with `links` links each on average, one gzip member a record; return all links.

    Each page has three records: request, response and metadata. The links counted are those of ``Links``; the head
    and the headers have about thirty more.
    """
    web = _Web(pages, seed)
    total = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        about = b"Software-Info: ia-web-commons.1.1.10-SNAPSHOT-20250102030405\r\nformat: WARC File Format 1.0\r\n"
        file.write(_member("warcinfo", "application/warc-fields", "x.warc.wat.gz", about))
        for number in range(pages):
            host = web.hosts[number * len(web.hosts) // pages]
            url = f"https://{host}/{web.slug()}/{number}.html"
            count = int(web.dice.expovariate(1 / links)) if links else 0
            total += count
            for kind, payload in (
                ("request", _request(host)),
                ("response", _response(web, host, [_entry(web, host) for _ in range(count)])),
                ("metadata", _metadata(web)),
            ):
                file.write(_member("metadata", "application/json", url, _record(web, kind, url, payload)))
    return total


def _link(web: _Web, host: str) -> str:
    kind = web.dice.random()
    path = web.path()
    if kind < 0.42:
        return path
    if kind < 0.62:
        return f"https://{host}{path}.html?id={web.dice.randrange(1000)}&page=2"
    if kind < 0.78:
        return f"https://{web.other()}{path}"
    if kind < 0.80:
        return f"//{web.other()}{path}.jpg"
    if kind < 0.92:
        return web.dice.choice(_RELATIVE)(web)
    if kind < 0.96:
        return web.dice.choice(["#", "#top", "#comments", f"#{web.slug()}", "javascript:void(0)"])
    if kind < 0.975:
        return web.dice.choice(["mailto:info@example.com", "tel:+49301234567", "javascript:;"])
    return web.dice.choice(_ODD)(web)


_RELATIVE: list[Callable[[_Web], str]] = [
    lambda web: f"..{web.path()}",
    lambda web: f"../../{web.slug()}/",
    lambda web: f"?page={web.dice.randrange(100)}&sort=asc",
    lambda web: f"{web.slug()}.html",
    lambda web: f"{web.slug()}.html",
    lambda web: f"{web.slug()}/{web.slug()}",
    lambda web: f"{web.slug()}.php?id={web.dice.randrange(10_000)}#top",
    lambda web: f"./{web.slug()}",
    lambda web: "/",
]
_ODD: list[Callable[[_Web], str]] = [
    lambda web: f"http://{web.other()}:8080/",
    lambda web: (
        f"https://{web.other()}{web.path()}?u=https%3A%2F%2F{web.other()}&t={'x' * web.dice.randrange(300)}"
    ),
    lambda web: (
        f"https://{web.other()}{web.path()}?u=https%3A%2F%2F{web.other()}&t={'x' * web.dice.randrange(300)}"
    ),
    lambda web: (
        f"https://{web.other()}{web.path()}?u=https%3A%2F%2F{web.other()}&t={'x' * web.dice.randrange(300)}"
    ),
    lambda web: f"{web.path()}?a=1&amp;b=2",
    lambda web: f"/übung/{web.slug()}",
    lambda web: f"/日本語/{web.slug()}",
    lambda web: f"/{web.text(3)}.pdf",
    lambda web: f" https://{web.other()}/ ",
    lambda web: f"HTTPS://{web.other().upper()}/",
    lambda web: f"https://{web.other()}",
    lambda web: f"http://{web.other()}/a/../b/./c",
    lambda web: f"www.{web.slug()}.com",
    lambda web: f"/search?q={{{web.slug()}}}|x",
    lambda web: f"https://bücher-{web.slug()}.de/",
    lambda web: f"http://192.0.2.{web.dice.randrange(255)}/",
    lambda web: "http://localhost/wp-admin",
    lambda web: "http:///path",
    lambda web: "http://",
    lambda web: "",
    lambda web: f'/x"{web.slug()}"',
    lambda web: f"\n/{web.slug()}\t",
    lambda web: f"https://user:pass@{web.other()}/",
    lambda web: f"whatsapp://send?text={web.slug()}",
    lambda web: f"ftp://{web.other()}/pub",
    lambda web: f"data:image/gif;base64,{'R0lGODlhAQABA' * web.dice.randrange(1, 8)}",
    lambda web: f"https://twitter.com/intent/tweet?url={web.slug()}#{web.slug()}",
    lambda web: "'+link+'",
]


def _entry(web: _Web, host: str) -> Json:
    kind = web.dice.random()
    if kind < 0.80:
        rel = web.dice.choice(_RELS)
        link = {"path": "A@/href", "text": f"{web.text(8)} “{web.text(1)}”", "url": _link(web, host)}
        if rel:
            link["rel"] = rel
        if web.dice.random() < 0.1:
            link["target"] = "_blank"
        return link
    if kind < 0.96:
        return {"alt": web.text(6), "path": "IMG@/src", "url": _link(web, host)}
    if kind < 0.98:
        return {"path": "FORM@/action", "method": "post", "url": _link(web, host)}
    if kind < 0.985:
        return {"path": "STYLE/#text", "href": f"//{web.other()}/{web.slug()}.css"}
    if kind < 0.99:
        return {}
    return {"path": web.dice.choice(["IFRAME@/src", "INPUT@/src", "DIV@/data-href"]), "url": _link(web, host)}


def _file(web: _Web, host: str) -> str:
    start = web.dice.choice(
        ["", "/", "//" + web.other() + "/", f"https://{host}/", f"https://{web.other()}/"]
    )
    return (
        f"{start}{web.slug()}/{web.dice.choice(_FILES)}?ver={web.dice.randrange(10)}.{web.dice.randrange(10)}"
    )


def _head(web: _Web, host: str) -> Json:
    dice = web.dice
    metas: list[Json] = [{"name": "viewport", "content": "width=device-width, initial-scale=1"}]
    metas += [{"property": name, "content": web.text(12)} for name in dice.sample(_OG, dice.randint(0, 6))]
    if dice.random() < 0.5:
        metas += [
            {"property": "og:url", "content": f"https://{host}{web.path()}"},
            {"property": "og:image", "content": f"https://{web.other()}{web.path()}.jpg"},
            {"name": "twitter:image", "content": f"https://{host}{web.path()}.jpg"},
            {"name": "robots", "content": "index, follow, max-image-preview:large"},
            {"name": "msapplication-TileImage", "content": "/tile.png"},
            {"http-equiv": "refresh", "content": "300"},
        ]
    head: Json = {
        "Metas": metas,
        "Scripts": [
            {"path": "SCRIPT@/src", "type": "text/javascript", "url": _file(web, host)}
            for _ in range(dice.randrange(16))
        ],
        "Title": web.text(10),
        "Link": [
            {"path": "LINK@/href", "rel": "stylesheet", "type": "text/css", "url": _file(web, host)}
            for _ in range(dice.randrange(16))
        ]
        + [{"path": "LINK@/href", "rel": "canonical", "url": f"https://{host}{web.path()}"}],
    }
    if dice.random() < 0.05:
        head["Base"] = dice.choice(
            ["/", f"https://{host}/", f"http://{web.other()}/x/", "sub/", f"//{host}/"]
        )
    return head


def _response(web: _Web, host: str, links: list[Json]) -> Json:
    dice = web.dice
    headers: Json = {
        "Content-Type": "text/html; charset=utf-8",
        "Server": "nginx",
        "Cache-Control": "max-age=600",
        "Date": "Fri, 01 May 2026 00:00:00 GMT",
        "X-Crawler-Content-Encoding": "gzip",
        "Content-Length": str(dice.randrange(100_000)),
        "Vary": "Accept-Encoding",
        "Strict-Transport-Security": "max-age=31536000",
    }
    api = f'<https://{host}/wp-json/>; rel="https://api.w.org/"'
    short = f"<https://{host}/?p={dice.randrange(10_000)}>; rel=shortlink"
    if dice.random() < 0.3:
        headers["Link"] = dice.choice([api, [api, short], f"{api}, {short}", "</style.css>; rel=preload"])
    if dice.random() < 0.3:
        headers["Set-Cookie"] = [f"{web.slug()}={dice.randrange(1 << 40):x}; path=/" for _ in range(2)]
    html: Json = {"Head": _head(web, host)}
    if links:
        html["Links"] = links
    return {
        "HTTP-Response-Metadata": {
            "Headers-Length": "317",
            "Entity-Trailing-Slop-Length": "0",
            "Entity-Length": "12345",
            "Headers": headers,
            "Response-Message": {"Status": "200", "Version": "HTTP/1.1", "Reason": "OK"},
            "HTML-Metadata": html,
            "Entity-Digest": _digest(web),
        }
    }


def _request(host: str) -> Json:
    return {
        "HTTP-Request-Metadata": {
            "Headers-Length": "319",
            "Headers": {
                "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                "User-Agent": "CCBot/2.0 (https://commoncrawl.org/faq/)",
                "Connection": "Keep-Alive",
                "Host": host,
            },
            "Request-Message": {"Path": "/", "Version": "HTTP/1.1", "Method": "GET"},
        }
    }


def _metadata(web: _Web) -> Json:
    language = {"reliable": True, "text-bytes": 5529, "languages": [{"code": "en", "text-covered": 0.99}]}
    records = [
        {"Value": str(web.dice.randrange(5000)), "Name": "fetchTimeMs"},
        {"Value": json.dumps(language), "Name": "languages-cld2"},
    ]
    return {"WARC-Metadata-Metadata": {"Metadata-Records": records}}


def _digest(web: _Web) -> str:
    return "sha1:" + "".join(web.dice.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=32))


def _identity(web: _Web) -> str:
    return f"<urn:uuid:{web.dice.randrange(1 << 32):08x}-0000-4000-8000-{web.dice.randrange(1 << 48):012x}>"


def _record(web: _Web, kind: str, url: str, payload: Json) -> bytes:
    header = {
        "WARC-Type": kind,
        "WARC-IP-Address": "192.0.2.1",
        "WARC-Date": "2026-05-01T00:00:00Z",
        "WARC-Record-ID": _identity(web),
        "WARC-Concurrent-To": _identity(web),
        "WARC-Payload-Digest": _digest(web),
        "Content-Length": "12345",
        "Content-Type": f"application/http; msgtype={kind}",
        "WARC-Target-URI": url,
        "WARC-Identified-Payload-Type": "text/html",
    }
    envelope = {
        "Format": "WARC",
        "WARC-Header-Length": "600",
        "Actual-Content-Length": "12345",
        "WARC-Header-Metadata": header,
        "Block-Digest": _digest(web),
        "Payload-Metadata": {
            "Actual-Content-Type": f"application/http; msgtype={kind}",
            **payload,
            "Trailing-Slop-Length": "4",
        },
    }
    container = {
        "Filename": "x.warc.gz",
        "Compressed": True,
        "Offset": str(web.dice.randrange(1 << 30)),
        "Gzip-Metadata": {
            "Inflated-Length": "25358",
            "Footer-Length": "8",
            "Inflated-CRC": str(web.dice.randrange(-(1 << 31), 1 << 31)),
            "Deflate-Length": "1234",
            "Header-Length": "10",
        },
    }
    value = {"Container": container, "Envelope": envelope}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _member(kind: str, content: str, about: str, block: bytes) -> bytes:
    name = "WARC-Filename" if kind == "warcinfo" else "WARC-Target-URI"
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\n{name}: {about}\r\nWARC-Date: 2026-05-01T00:00:00Z\r\n"
        "WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        "WARC-Refers-To: <urn:uuid:00000000-0000-4000-8000-000000000002>\r\n"
        f"Content-Type: {content}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", 6, mtime=0)

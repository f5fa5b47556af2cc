"""A made-up WAT file in Common Crawl's schema, for the extraction benchmark; the same for the same seed."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

__all__ = ["write_wat"]

_TAGS = ["A@/href"] * 8 + ["IMG@/src", "FORM@/action"]
_WORDS = [
    a + b + c
    for a in ("ba", "de", "li", "mo", "nu", "ra")
    for b in ("con", "ti", "ve", "pas")
    for c in ("", "ler", "xo")
]


def write_wat(path: Path, pages: int = 9000, links: int = 184, seed: int = 1) -> int:
    """Write ``pages`` records with ``links`` links each on average, one gzip member a record; returns all links."""
    dice = random.Random(seed)  # the same numbers in every Python since 3.2
    hosts = [
        f"{'www.' if k % 2 else ''}{dice.choice(_WORDS)}{k:x}.{dice.choice(['com', 'org', 'de', 'co.uk'])}"
        for k in range(max(pages // 3, 20))
    ]
    total = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(
            _member(
                "warcinfo",
                "application/warc-fields",
                "x.warc.wat.gz",
                b"software: bench\r\nformat: WARC File Format 1.0\r\n",
            )
        )
        for number in range(pages):
            host = hosts[number * len(hosts) // pages]
            url = f"https://{host}/{dice.choice(_WORDS)}/{number}.html"
            count = int(dice.expovariate(1 / links)) if links else 0
            found = [_link(dice, host, hosts) for _ in range(count)]
            total += count
            file.write(_member("metadata", "application/json", url, _record(url, found)))
    return total


def _link(dice: random.Random, host: str, hosts: list[str]) -> dict[str, str]:
    path = f"/{dice.choice(_WORDS)}/{dice.choice(_WORDS)}-{dice.randrange(100_000)}"
    kind = dice.random()
    if kind < 0.55:
        url = path
    elif kind < 0.75:
        url = f"https://{host}{path}.html?id={dice.randrange(1000)}&page=2"
    elif kind < 0.80:
        url = f"//{dice.choice(hosts)}{path}"
    elif kind < 0.84:
        url = dice.choice(["#top", "javascript:void(0)", "../up/", "mailto:a@example.com"])
    else:
        url = f"https://{hosts[int(len(hosts) * dice.random() ** 3)]}{path}"
    link = {"path": dice.choice(_TAGS), "url": url}
    if link["path"] == "A@/href":
        link["text"] = f"{dice.choice(_WORDS)} {dice.choice(_WORDS)} “{dice.choice(_WORDS)}”"
    return link


def _record(url: str, links: list[dict[str, str]]) -> bytes:
    head: dict[str, Any] = {
        "Title": "A page",
        "Metas": [{"name": "viewport", "content": "width=device-width"}],
        "Link": [{"path": "LINK@/href", "url": "/style.css", "rel": "stylesheet", "type": "text/css"}],
        "Scripts": [{"path": "SCRIPT@/src", "url": "/main.js", "type": "text/javascript"}],
    }
    headers = {"Content-Type": "text/html; charset=utf-8", "Server": "nginx", "Cache-Control": "max-age=600"}
    response = {
        "Response-Message": {"Status": "200", "Version": "HTTP/1.1", "Reason": "OK"},
        "Headers": headers,
        "HTML-Metadata": {"Head": head, "Links": links},
        "Entity-Length": "12345",
        "Entity-Digest": "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    }
    header = {
        "WARC-Type": "response",
        "WARC-Date": "2026-05-01T00:00:00Z",
        "WARC-Record-ID": "<urn:uuid:00000000-0000-4000-8000-000000000000>",
        "Content-Length": "12345",
        "Content-Type": "application/http; msgtype=response",
        "WARC-Target-URI": url,
        "WARC-Identified-Payload-Type": "text/html",
    }
    envelope = {
        "Format": "WARC",
        "WARC-Header-Length": "600",
        "WARC-Header-Metadata": header,
        "Payload-Metadata": {
            "Actual-Content-Type": "application/http; msgtype=response",
            "HTTP-Response-Metadata": response,
        },
    }
    container = {
        "Filename": "x.warc.gz",
        "Compressed": True,
        "Offset": "0",
        "Gzip-Metadata": {"Deflate-Length": "1234"},
    }
    return json.dumps({"Container": container, "Envelope": envelope}, separators=(",", ":")).encode()


def _member(kind: str, content: str, about: str, block: bytes) -> bytes:
    name = "WARC-Filename" if kind == "warcinfo" else "WARC-Target-URI"
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\n{name}: {about}\r\nWARC-Date: 2026-05-01T00:00:00Z\r\n"
        "WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        f"Content-Type: {content}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", 6, mtime=0)

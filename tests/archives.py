"""Small archives for tests: WARC, WAT, WET and ARC, as crawlers and Common Crawl's extractor write them."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inlink.archives import batches, records
from inlink.archives.records import Record
from inlink.archives.warc import RawPage
from inlink.base.damage import Tally
from inlink.base.opening import open_binary
from inlink.graph.batches import ArcBatch

A, B, C = "http://a.example.com/", "http://b.example.org/x", "http://c.example.net/"


def record(
    kind: str,
    body: bytes,
    *,
    url: str | None = None,
    content_type: str = "application/http; msgtype=response",
    date: str = "2024-05-01T00:00:00Z",
    length: int | None = None,
) -> bytes:
    """One WARC record; ``length`` may lie."""
    fields = [f"WARC-Type: {kind}", f"WARC-Date: {date}", f"Content-Type: {content_type}"]
    if url is not None:
        fields.append(f"WARC-Target-URI: {url}")
    fields.append(f"Content-Length: {len(body) if length is None else length}")
    return b"WARC/1.0\r\n" + "\r\n".join(fields).encode() + b"\r\n\r\n" + body + b"\r\n\r\n"


def http(body: bytes, *headers: str, status: str = "200 OK", content_type: str | None = "text/html") -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def response(url: str, html: str | bytes, *headers: str, **options: Any) -> bytes:
    body = html.encode() if isinstance(html, str) else html
    return record("response", http(body, *headers, **options), url=url)


def warcinfo(text: str = "software: test\r\n") -> bytes:
    return record("warcinfo", text.encode(), content_type="application/warc-fields")


def anchors(*hrefs: str, path: str = "A@/href") -> list[dict[str, str]]:
    return [{"path": path, "url": href, "text": "a link"} for href in hrefs]


def wat_json(
    url: str,
    links: list[Any] | None = None,
    *,
    head: dict[str, Any] | None = None,
    headers: dict[str, Any] | None = None,
    kind: str = "response",
    status: Any = "200",
) -> dict[str, Any]:
    """The WAT record of a response, in the form of Common Crawl's."""
    html: dict[str, Any] = {}
    if head is not None:
        html["Head"] = head
    if links is not None:
        html["Links"] = links
    return {
        "Container": {"Filename": "x.warc.gz", "Compressed": True, "Offset": "463"},
        "Envelope": {
            "Format": "WARC",
            "WARC-Header-Length": "345",
            "WARC-Header-Metadata": {
                "WARC-Type": kind,
                "WARC-Target-URI": url,
                "WARC-Date": "2024-05-01T00:00:00Z",
                "WARC-Record-ID": "<urn:uuid:0a1b2c3d-0000-4000-8000-000000000000>",
                "Content-Type": "application/http; msgtype=response",
            },
            "Payload-Metadata": {
                "Actual-Content-Type": "application/http; msgtype=response",
                "HTTP-Response-Metadata": {
                    "Response-Message": {"Version": "HTTP/1.1", "Status": status, "Reason": "OK"},
                    "Headers": {"Content-Type": "text/html", "Server": "nginx"} | (headers or {}),
                    "Headers-Length": "345",
                    "Entity-Length": "12345",
                    "HTML-Metadata": html,
                },
            },
        },
    }


def wat_record(
    value: Any, *, url: str = "http://a.example.com/", date: str = "2024-05-01T00:00:00Z"
) -> bytes:
    body = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    return record("metadata", body, url=url, content_type="application/json", date=date)


def arc_record(url: str, body: bytes, *, length: int | None = None, content_type: str = "text/html") -> bytes:
    size = len(body) if length is None else length
    return f"{url} 192.0.2.1 20080430204825 {content_type} {size}\n".encode() + body + b"\n"


def arc_start() -> bytes:
    body = b"1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n"
    return f"filedesc://test.arc 0.0.0.0 20080430204825 text/plain {len(body)}\n".encode() + body + b"\n"


def write(path: Path, records: list[bytes], *, packed: str = "") -> Path:
    """An archive; ``packed`` is "" (not at all), "records" (a gzip member each) or "whole" (one for all)."""
    if packed == "records":
        path.write_bytes(b"".join(gzip.compress(r, 1) for r in records))
    elif packed == "whole":
        path.write_bytes(gzip.compress(b"".join(records), 1))
    else:
        path.write_bytes(b"".join(records))
    return path


def synthetic_wat(path: Path, *, pages: int, links: int, seed: int = 0) -> int:
    """A WAT file in the proportions of Common Crawl's, for measurements; gives back the number of its links.

    Of the links two thirds are anchors, a third images, scripts and the like; of the anchors 40% are relative and
    the others lead to some 7 hosts in a hundred links. Each response has a request and a metadata record beside it.
    """
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 10))) for _ in range(2000)]
    hosts = [
        f"www.{rng.choice(words)}{i}.{rng.choice(['com', 'org', 'de', 'co.uk'])}" for i in range(pages * 8)
    ]
    total = 0
    with path.open("wb") as file:
        file.write(
            gzip.compress(warcinfo("Software-Info: ia-web-commons.1.1.10-SNAPSHOT-20240101000000\r\n"))
        )
        for _ in range(pages):
            own = rng.choice(hosts)
            near = rng.sample(hosts, max(links // 14, 1))
            found: list[dict[str, str]] = []
            count = rng.randint(links // 2, links * 3 // 2)
            for _ in range(count):
                where = "/".join(rng.choices(words, k=rng.randint(1, 5)))
                draw = rng.random()
                if draw < 0.33:
                    found.append({"path": "IMG@/src", "url": f"/img/{where}.png", "alt": rng.choice(words)})
                    continue
                href = f"/{where}" if draw < 0.55 else f"{where}.html" if draw < 0.6 else ""
                href = (
                    href
                    or f"https://{rng.choice(near) if rng.random() < 0.5 else own}/{where}?id={rng.randint(1, 9999)}"
                )
                found.append({"path": "A@/href", "url": href, "text": " ".join(rng.choices(words, k=4))})
            total += count
            url = f"https://{own}/{'/'.join(rng.choices(words, k=3))}"
            metas = [{"name": w, "content": " ".join(rng.choices(words, k=8))} for w in rng.sample(words, 12)]
            sheets = [
                {"path": "LINK@/href", "url": f"/css/{w}.css", "rel": "stylesheet"}
                for w in rng.sample(words, 8)
            ]
            value = wat_json(url, found, head={"Title": " ".join(words[:6]), "Metas": metas, "Link": sheets})
            for kind in ("request", "response", "metadata"):
                other = wat_json(url, kind=kind) if kind != "response" else value
                if kind != "response":
                    other["Envelope"]["Payload-Metadata"] = {
                        "HTTP-Request-Metadata": {"Headers": {"Host": own}}
                    }
                file.write(gzip.compress(wat_record(other, url=url), 6))
    return total


def sample() -> list[bytes]:
    """Three pages: A links to B, B to its host, C nowhere."""
    return [
        warcinfo(),
        response(A, f"<a href='{B}'>b</a>"),
        response(B, "<a href=/y>y</a>"),
        response(C, "no link"),
    ]


def records_of(path: Path, tally: Tally) -> Iterator[Record]:
    with open_binary(path) as file:
        yield from records.records(file, tally, name=str(path))


def pages_of(path: Path, tally: Tally | None = None, **options: Any) -> Iterator[batches.PageLinks]:
    with open_binary(path) as file:
        yield from batches.page_links(file, tally, name=str(path), **options)


def raw_pages_of(path: Path, tally: Tally, **options: Any) -> Iterator[RawPage]:
    with open_binary(path) as file:
        yield from batches.raw_pages(file, tally, **options)


def batches_of(path: Path, **options: Any) -> Iterator[ArcBatch]:
    with open_binary(path) as file:
        yield from batches.archive_batches(file, **options)


def links_of(path: Path, tally: Any = None, **options: Any) -> dict[str, list[str]]:
    """The links of each page in an archive."""
    return {page.url: page.links for page in pages_of(path, tally, **options)}

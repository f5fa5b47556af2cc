"""Pairs of hosts as Common Crawl's cc-pyspark gets them: FastWARC, orjson, a set a page; without its Spark.

The rules are those of cc-pyspark. Python's json is used if orjson is not installed. A pattern reads most hosts, and
urllib the others. A leading ``www.`` is removed. IP addresses and hosts of one label are left out.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.peers.base import needs

PARSER = "orjson" if find_spec("orjson") else "json"
NAME = "cc-pyspark's way, hosts"
COMPUTES = f"FastWARC, {PARSER}, a pattern or urlsplit, reversed hosts, a set a page"
LARGEST = 1 << 62

ABSOLUTE = re.compile(r"(?:https?:)?//", re.IGNORECASE)
PLAIN = re.compile(r"(?:https?:)?//([a-z0-9_.-]+)(?:[/?#]|\Z)", re.IGNORECASE | re.ASCII)
VALID = re.compile(r"(?:[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z0-9][a-z0-9_-]*\Z", re.ASCII)
ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+\Z", re.ASCII)
HEADER_LINK = re.compile(r"<([^>]*)>")


def available() -> str | None:
    return needs("fastwarc")


def pages(path: Path) -> Iterator[tuple[str, list[str], str | None]]:
    """For each response its URL, its links as they are written, and its base."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    loads = import_module(PARSER).loads
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream, record_types=WarcRecordType.metadata, parse_http=False):
            if record.headers.get("Content-Type") != "application/json":
                continue
            envelope = loads(record.reader.read())["Envelope"]
            about = envelope["WARC-Header-Metadata"]
            if about.get("WARC-Type") == "response":
                response = envelope["Payload-Metadata"].get("HTTP-Response-Metadata", {})
                yield about["WARC-Target-URI"], links_of(response), base_of(response)


def base_of(response: dict[str, Any]) -> str | None:
    """The base that a page names."""
    base: str | None = response.get("HTML-Metadata", {}).get("Head", {}).get("Base")
    return base


def links_of(response: dict[str, Any]) -> list[str]:
    """The links of the headers, the head and the body."""
    links = []
    for name, values in response.get("Headers", {}).items():
        if name.lower() in ("link", "content-location"):
            for value in values if isinstance(values, list) else [values]:
                links += HEADER_LINK.findall(value) if name.lower() == "link" else [value]
    html = response.get("HTML-Metadata", {})
    head = html.get("Head", {})
    for entry in [*head.get("Link", ()), *head.get("Scripts", ())]:
        if url := entry.get("url"):
            links.append(url)
    for entry in head.get("Metas", ()):
        if ABSOLUTE.match(entry.get("content", "")):
            links.append(entry["content"])
    for entry in html.get("Links", ()):
        if url := entry.get("url") or entry.get("href"):
            links.append(url)
    return links


def reversed_host(url: str) -> str | None:
    """``com.example.www``, or None for what is on no host."""
    if match := PLAIN.match(url):
        host = match[1].lower()
    else:
        try:
            host = (urlsplit(url).hostname or "").encode("idna").decode()
        except ValueError:
            return None
    host = host.removesuffix(".")
    if not VALID.match(host) or ADDRESS.match(host):
        return None
    labels = host.split(".")
    if labels[0] == "www" and len(labels) > 2:
        del labels[0]
    return ".".join(reversed(labels))


def run(path: Path, folder: Path) -> int:
    pairs = 0
    for page, links, base in pages(path):
        source = reversed_host(page)
        hosts = {reversed_host(link) for link in links if ABSOLUTE.match(link)}
        if base and ABSOLUTE.match(base):
            hosts.add(reversed_host(base))
        pairs += len(hosts - {None, source}) or 1
    return pairs

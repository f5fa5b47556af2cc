"""Pairs of hosts as Common Crawl's cc-pyspark gets them: warcio, json, urlparse; without its Spark."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.peers.base import needs

NAME = "cc-pyspark's way, hosts"
COMPUTES = "warcio, json, urlsplit, reversed hosts, a set a page"
LARGEST = 1 << 62


def available() -> str | None:
    return needs("warcio")


def pages(path: Path) -> Iterator[tuple[str, list[str], str | None]]:
    """For each response its URL, its links as they stand, and its base."""
    from warcio.archiveiterator import ArchiveIterator

    with path.open("rb") as stream:
        for record in ArchiveIterator(stream):
            if record.rec_type != "metadata" or record.content_type != "application/json":
                continue
            envelope = json.loads(record.content_stream().read())["Envelope"]
            if envelope["WARC-Header-Metadata"].get("WARC-Type") != "response":
                continue
            response: dict[str, Any] = envelope["Payload-Metadata"].get("HTTP-Response-Metadata", {})
            html = response.get("HTML-Metadata", {})
            head = html.get("Head", {})
            found = [link["url"] for link in head.get("Link", []) if "url" in link]
            found += [script["url"] for script in head.get("Scripts", []) if "url" in script]
            for link in html.get("Links", []):
                url = link.get("url") or link.get("href")
                if url:
                    found.append(url)
            yield envelope["WARC-Header-Metadata"]["WARC-Target-URI"], found, head.get("Base")


def reversed_host(url: str) -> str | None:
    """``com.example.www``, or None for what is on no host."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return None
    if not host or "." not in host:
        return None
    return ".".join(reversed(host.strip(".").split(".")))


def run(path: Path, folder: Path) -> int:
    pairs = 0
    for page, links, base in pages(path):
        source = reversed_host(page)
        hosts = {source}
        for link in [*links, base or ""]:
            if link.startswith(("http://", "https://", "//")):
                hosts.add(reversed_host(link))
        pairs += len(hosts - {None, source})
    return pairs

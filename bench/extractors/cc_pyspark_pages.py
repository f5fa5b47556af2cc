"""Pairs of pages as Common Crawl's cc-pyspark gets them: FastWARC, orjson, urljoin; without its Spark."""

from pathlib import Path
from urllib.parse import urljoin

from bench.extractors import cc_pyspark_hosts

NAME = "cc-pyspark's way, pages"
COMPUTES = f"FastWARC, {cc_pyspark_hosts.PARSER}, urljoin; nothing made canonical"
LARGEST = 1 << 62
available = cc_pyspark_hosts.available


def run(path: Path, folder: Path) -> int:
    pairs = 0
    for page, links, base in cc_pyspark_hosts.pages(path):
        try:
            root = urljoin(page, base) if base else page
        except ValueError:
            root = page
        for link in links:
            try:
                target = urljoin(root, link)
            except ValueError:
                continue
            pairs += target.startswith(("http://", "https://"))
    return pairs

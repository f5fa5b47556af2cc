"""inlink, pairs of pages."""

from pathlib import Path

from bench.extractors import inlink_hosts

NAME = "inlink, pages"
COMPUTES = "links joined by the WHATWG's rules and made canonical"
LARGEST = 1 << 62
available = inlink_hosts.available


def run(path: Path, folder: Path) -> int:
    return inlink_hosts.run(path, folder, "page")

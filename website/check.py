"""Check the website: ``python -m website.check site``.

Each link within it must lead to a page and a heading that exist, and no page may load anything from another host.
Links to other hosts are not followed, so that the check needs no network.
"""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser

__all__ = ["main", "problems"]

LOADED = ("img[src]", "script[src]", "iframe[src]", "link[rel=stylesheet][href]", "link[rel=icon][href]")


@cache
def parsed(page: Path) -> LexborHTMLParser:
    """Return a page of the website."""
    return LexborHTMLParser(page.read_text())


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the ids in a page."""
    return frozenset(node.attributes["id"] or "" for node in parsed(page).css("[id]"))


def problems(site: Path) -> Iterator[str]:
    """Yield a line for each broken link, and for each file that a page loads from another host."""
    for page in sorted(site.rglob("*.html")):
        # The page of a server for missing files has links from the root, which is not known here.
        if page.name == "404.html":
            continue
        where = page.relative_to(site)
        for selector in (*LOADED, "a[href]"):
            for node in parsed(page).css(selector):
                link = node.attributes.get("href") or node.attributes.get("src") or ""
                parts = urlsplit(link)
                if parts.scheme == "data":
                    continue
                if parts.scheme or parts.netloc:
                    if selector != "a[href]":
                        yield f"{where}: loads {link} from another host"
                    continue
                target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
                if target.is_dir():
                    target /= "index.html"
                if not target.is_file():
                    yield f"{where}: no file for the link {link}"
                elif (
                    parts.fragment
                    and target.suffix == ".html"
                    and unquote(parts.fragment) not in anchors(target)
                ):
                    yield f"{where}: no heading for the link {link}"


def main(site: Path) -> int:
    """Print the problems; return 1 if there are any."""
    found = list(problems(site))
    for line in found:
        print(line)
    pages = sum(1 for _ in site.rglob("*.html"))
    print(f"{site}: {pages} pages, {len(found)} problems")
    return int(bool(found) or pages == 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

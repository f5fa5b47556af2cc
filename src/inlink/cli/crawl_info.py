"""``inlink crawl-info``: what a crawl is, and how far it has come."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from inlink.cli.crawls import crawl_argument, writer_of
from inlink.cli.show import printable, say, show_json


@click.command("crawl-info")
@crawl_argument
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def crawl_info(folder: Path, as_json: bool) -> None:
    """Show the crawl in DIR: pages by state, hosts, links, events, bytes, policy, ranking, and its writer."""
    show_crawl(folder, as_json)


def show_crawl(folder: Path, as_json: bool) -> None:
    """Print the figures of a crawl."""
    from inlink.crawl.settings import stored
    from inlink.crawl.view import CrawlView
    from inlink.store.inbox import pending
    from inlink.store.pages import STATES

    view = CrawlView.open(folder)
    crawl = view.info()
    while crawl.links is None:
        crawl = view.info()
    found: dict[str, Any] = {
        "pages": crawl.pages,
        "states": {name: crawl.states.get(name, 0) for name in STATES},
        "crawled": crawl.crawled,
        "hosts": crawl.hosts,
        "links": crawl.links,
        "events": crawl.events,
        "bytes": _sizes(folder),
        "began": crawl.began,
        "policy": stored(folder).policy,
        "writer": writer_of(folder),
        "inbox": len(pending(folder)),
        "ranking": _ranking(folder, crawl.event_bytes),
    }
    if as_json:
        show_json(found)
        return
    ranking = found["ranking"]
    rows = [
        ("pages", f"{crawl.pages:,}"),
        *((f"  {name}", f"{count:,}") for name, count in found["states"].items() if count),
        ("crawled ever", f"{crawl.crawled:,}"),
        ("hosts", f"{crawl.hosts:,}"),
        ("links", f"{crawl.links:,}"),
        ("events", f"{crawl.events:,}"),
        ("on disk", f"{sum(found['bytes'].values()):,} bytes"),
        *((f"  {name}", f"{size:,}") for name, size in found["bytes"].items()),
        ("began", f"{datetime.fromtimestamp(crawl.began, UTC):%Y-%m-%d %H:%M:%S} UTC"),
        ("policy", found["policy"]),
        (
            "ranking",
            f"{ranking['algorithm']} of {ranking['pages']:,} pages, {ranking['behind']:,} bytes of events behind"
            if ranking
            else "none yet",
        ),
        ("writer", f"process {found['writer']}" if found["writer"] else "none"),
    ]
    if found["inbox"]:
        rows.append(("inbox", f"{found['inbox']:,} requests"))
    for label, value in rows:
        say(f"{label:<18} {printable(value)}")


def _sizes(folder: Path) -> dict[str, int]:
    """Bytes of each file and folder in the crawl's folder; files that disappear meanwhile are not counted."""
    sizes: dict[str, int] = {}
    for path in sorted(folder.rglob("*")):
        try:
            size = path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
        if size:
            name = path.relative_to(folder).parts[0]
            sizes[name] = sizes.get(name, 0) + size
    return sizes


def _ranking(folder: Path, end: int) -> dict[str, Any] | None:
    """The ranking that orders the crawl, if there is one; ``behind`` is the bytes of the log after it."""
    from inlink.base.folder import Folder
    from inlink.errors import FolderError
    from inlink.store.log import RANKS

    try:
        ranks = Folder(folder / RANKS, RANKS, 1)
    except FolderError:
        return None
    meta = ranks.header.meta
    return {
        "algorithm": meta.get("algorithm"),
        "pages": ranks.header.files["rank"].length,
        "behind": max(end - int(meta.get("covers", 0)), 0),
        "error": meta.get("error"),
        "converged": meta.get("converged"),
    }

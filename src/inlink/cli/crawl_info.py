"""``inlink crawl-info``: what a crawl is, and how far it has come."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from inlink.cli.crawls import crawl_argument, stored_settings, writer_of
from inlink.cli.show import printable, say, show_json


@click.command("crawl-info")
@crawl_argument
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def crawl_info(folder: Path, as_json: bool) -> None:
    """Show what DIR is: pages by state, hosts, links, events, bytes, policy, ranking, and who is writing it."""
    from inlink.sources.crawl import known_pages, num_links
    from inlink.store.inbox import pending
    from inlink.store.pages import STATES

    pages = known_pages(folder, with_urls=True)
    states = _counts(pages)
    found: dict[str, Any] = {
        "pages": pages.num_pages,
        "states": {name: states[code] for code, name in enumerate(STATES)},
        "crawled": pages.num_crawled,
        "hosts": pages.num_hosts,
        "links": num_links(pages),
        "events": pages.num_events,
        "bytes": _sizes(folder),
        "began": pages.started,
        "policy": stored_settings(folder).policy,
        "writer": writer_of(folder),
        "inbox": len(pending(folder)),
        "ranking": _ranking(folder, pages.events_end),
    }
    if as_json:
        show_json(found)
        return
    ranking = found["ranking"]
    rows = [
        ("pages", f"{pages.num_pages:,}"),
        *((f"  {name}", f"{count:,}") for name, count in found["states"].items() if count),
        ("crawled ever", f"{pages.num_crawled:,}"),
        ("hosts", f"{pages.num_hosts:,}"),
        ("links", f"{found['links']:,}"),
        ("events", f"{pages.num_events:,}"),
        ("on disk", f"{sum(found['bytes'].values()):,} bytes"),
        *((f"  {name}", f"{size:,}") for name, size in found["bytes"].items()),
        ("began", f"{datetime.fromtimestamp(pages.started, UTC):%Y-%m-%d %H:%M:%S} UTC"),
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


def _counts(pages: Any) -> list[int]:
    import numpy as np

    from inlink.store.pages import STATES

    found: list[int] = np.bincount(pages.states[: pages.num_pages], minlength=len(STATES)).tolist()
    return found


def _sizes(folder: Path) -> dict[str, int]:
    """Bytes by what lies in the folder, files and folders; what goes meanwhile is not counted."""
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
    """The ranking that the crawl's order goes by, if there is one; ``behind`` is what it has not seen of the log."""
    from inlink.base.folder import Folder
    from inlink.errors import FolderError
    from inlink.frontier.frontier import RANKS

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

"""``inlink seed``: URLs for a crawl to begin at."""

import sys
from pathlib import Path

import click

from inlink.cli.crawls import crawl_argument, reopened
from inlink.cli.show import printable, say

BATCH = 1_000  # URLs in one event


@click.command()
@crawl_argument
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
def seed(folder: Path, file: Path) -> None:
    """Make the URLs in FILE known in DIR: one a line, a tab and its score behind where it has one; - is standard input.

    The crawl is made if there is none. One that is running takes the URLs in at its next call.
    """
    from inlink.errors import InputError, InUseError
    from inlink.store.inbox import SEED, post, seeds_in
    from inlink.urls.canonical import canonical

    raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    seeds = seeds_in(text, str(file))
    if not any(canonical(url) is not None for url, _ in seeds):
        raise InputError(f"{file}: none of its {len(seeds):,} lines begins with an http URL")
    try:
        crawl = reopened(folder)
    except InUseError:
        post(folder, SEED, text)
        say(f"{len(seeds):,} lines are left in {folder}'s inbox, for the process that is crawling to take in")
        return
    with crawl:
        new = sum(crawl.seed(seeds[k : k + BATCH]) for k in range(0, len(seeds), BATCH))
        refused = sum(crawl.refused.values())
        say(f"{new:,} new URLs, {len(seeds) - new - refused:,} known already")
        for reason, number in crawl.refused.items():
            say(f"refused {number:,}: {printable(reason)}")

"""``inlink seed``: make URLs known to a crawl."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from inlink.cli.options import crawl_argument, set_option, settings_given
from inlink.cli.remote import refuse_settings, remote
from inlink.cli.show import counted, printable, say

# Number of URLs in one event.
BATCH = 1_000


@click.command()
@crawl_argument
@set_option
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
def seed(folder: Path | str, file: Path, **options: Any) -> None:
    """Add the URLs in FILE to the crawl in DIR. FILE has one URL a line, optionally followed by a tab and a score.

    Use - to read standard input. A crawl that does not exist is made. A running crawl takes in the URLs within seconds.
    """
    from inlink.base.opening import open_binary
    from inlink.crawl.crawl import Crawl
    from inlink.errors import InputError, InUseError
    from inlink.store.inbox import SEED, post, seeds_in
    from inlink.urls.canonical import canonical

    with open_binary(file) as stream:
        raw = stream.read()
    text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    seeds = seeds_in(text, str(file))
    if not any(canonical(url) is not None for url, _ in seeds):
        raise InputError(f"{file}: no line begins with an http URL")
    given = settings_given(options)
    if isinstance(folder, str):
        refuse_settings(folder, given)
        done = remote(folder).seed(seeds)
        _tell(done.new, len(seeds), done.refused)
        return
    try:
        crawl = Crawl(folder, **given)
    except InUseError:
        if given:
            raise
        post(folder, SEED, text)
        say(
            f"{counted(len(seeds), 'URL')} left in {folder}'s inbox: the running crawl takes them in within seconds"
        )
        return
    with crawl:
        new = sum(crawl.seed(seeds[k : k + BATCH]) for k in range(0, len(seeds), BATCH))
        _tell(new, len(seeds), crawl.refused)


def _tell(new: int, count: int, refused: Mapping[str, int]) -> None:
    say(f"{counted(new, 'new URL')}, {count - new - sum(refused.values()):,} known already")
    for reason, number in refused.items():
        say(f"refused {number:,}: {printable(reason)}")

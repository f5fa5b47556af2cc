"""``inlink find``: the URLs of a crawl that a regular expression fits."""

import sys
import time
from pathlib import Path

import click

from inlink.cli.crawls import crawl_argument, write_all


@click.command()
@crawl_argument
@click.argument("regex")
@click.option("-n", "--number", "count", type=click.IntRange(1), help="Stop after so many.")
@click.option(
    "--seconds", type=click.FloatRange(0), default=10.0, show_default=True, help="How long to search at most."
)
def find(folder: Path, regex: str, count: int | None, seconds: float) -> None:
    """Print the hash and the URL of the pages of DIR in whose URL REGEX (RE2's syntax) fits somewhere."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from inlink.errors import ParameterError
    from inlink.sources.crawl import known_pages, url_blocks

    pages = known_pages(folder)
    left = pages.num_pages if count is None else count
    stop, at_once = time.monotonic() + seconds, 8
    for first, text, offsets in url_blocks(pages):
        buffers = [None, pa.py_buffer(offsets.view(np.int64)), pa.py_buffer(text)]
        urls = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
        at = 0
        while at < len(urls):
            began = time.monotonic()
            if began > stop:
                raise ParameterError(
                    f"{regex!r}: searched {first + at:,} of {pages.num_pages:,} URLs in {seconds:g} seconds: "
                    "give it more with --seconds"
                )
            part = urls.slice(at, at_once)
            try:
                fits = pc.match_substring_regex(part, regex)
            except pa.ArrowInvalid as error:
                reason = str(error).removeprefix("Invalid regular expression: ")
                raise ParameterError(f"{regex!r} is no regular expression of RE2's: {reason}") from None
            found = np.flatnonzero(fits.to_numpy(zero_copy_only=False))[:left]
            if len(found):
                named = zip(
                    (found + first + at).tolist(), part.take(pa.array(found)).to_pylist(), strict=True
                )
                write_all(sys.stdout.buffer, b"".join(b"%016x %s\n" % line for line in named))
            left -= len(found)
            if left == 0:
                return
            at += len(part)
            # some expressions take RE2 14 µs a byte: the clock is looked at 20 times a second even so
            at_once = min(at_once * 2, 1 << 16) if time.monotonic() - began < 0.05 else max(at_once // 2, 1)

"""The kinds of attacks, and the loop that makes trials of one kind."""

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from torture.faults import failed_calls, interrupted_calls
from torture.flips import crawl_flip, graph_flip
from torture.frames import crafted_frame
from torture.inputs import mutated_input
from torture.kills import killed_build, killed_command, killed_library, killed_spider
from torture.logs import moved_log, second_writer
from torture.servers import killed_server
from torture.trial import Count, Kind

__all__ = ["KINDS", "trials"]

KINDS = {
    kind.name: kind
    for kind in (
        Kind("crawl flips", "damage to any file of a crawl's folder, then three commands", crawl_flip),
        Kind("graph flips", "damage to any file of a graph's folder, then a command", graph_flip),
        Kind(
            "crafted frames", "a wild number in a frame whose checksums hold, then a command", crafted_frame
        ),
        Kind(
            "moved logs", "bytes of a log inserted, removed, cut off or swapped, then every reader", moved_log
        ),
        Kind(
            "second writers",
            "a second writer that bypasses the lock, then everything acknowledged is looked for",
            second_writer,
            0.5,
        ),
        Kind("inputs", "a mutated file of each format, then `inlink build`", mutated_input),
        Kind(
            "failed calls",
            "a system call that fails, once or for good, during calls on a crawl, then all that was acknowledged",
            failed_calls,
            0.1,
        ),
        Kind(
            "interrupted calls",
            "Ctrl-C at a random moment of a call on a crawl, then all that was acknowledged",
            interrupted_calls,
            0.1,
        ),
        Kind(
            "killed library",
            "`kill -9` of a crawl, then everything acknowledged is looked for",
            killed_library,
            0.5,
        ),
        Kind(
            "killed commands",
            "`kill -9` of a command that writes, then its output and its next run",
            killed_command,
            0.5,
        ),
        Kind(
            "killed builds",
            "`kill -9` of a build of 30 archives until it ends, then its bytes",
            killed_build,
            0.1,
        ),
        Kind("killed spiders", "`kill -9` of a Scrapy spider until its site is crawled", killed_spider, 0.25),
        Kind(
            "killed servers",
            "`kill -9` of a server and of its two spiders until the web is crawled",
            killed_server,
            0.1,
        ),
    )
}


def trials(kind: Kind, place: Path, seed: int, over: Callable[[], bool], numbers: Iterable[int]) -> Count:
    """Make the trials with these numbers until ``over`` says so; the same seed makes the same trials."""
    counted = Count()
    folder = place / kind.name.replace(" ", "-")
    folder.mkdir(exist_ok=True)
    for number in numbers:
        if over():
            break
        for outcome in kind.attack(Random(f"{seed} {kind.name} {number}"), folder):
            counted.add(outcome, f"trial {number}")
    return counted

"""``inlink backup``, ``inlink repair`` and ``inlink reshard``: other folders with the same crawl."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlink.base.table import counted
from inlink.cli.options import Output, folder_argument, json_option
from inlink.cli.remote import FolderOrUrl
from inlink.cli.show import say, show_answer

if TYPE_CHECKING:
    from inlink.store.repair import Damage, LogReport


@click.command()
@folder_argument
@click.option(
    "--output",
    "-o",
    required=True,
    type=Output(),
    help="The copy: a folder that does not exist yet.",
)
def backup(folder: Path, output: Path) -> None:
    """Copy the crawl in DIR, also while it runs, and check the copy.

    The copy holds all complete events, the settings, the inbox and the ranking. You can use it like any crawl's folder.
    """
    from inlink.store import backup as backups

    done = backups.backup(folder, output)
    say(f"{output}: {counted(done.pages, 'page')}, {counted(done.events, 'event')}, {done.size:,} bytes")


@click.command()
@folder_argument
@click.option(
    "--output",
    "-o",
    type=Output(),
    help="Write a copy without damaged events to this new folder.",
)
@json_option
def repair(folder: Path, output: Path | None, as_json: bool) -> None:
    """Report the damage of the log of the crawl in DIR, or write a sound copy in which every page keeps its number.

    DIR is not changed. The exit code is 0 if the log is sound or a copy was written, and 1 if it is damaged.
    """
    from inlink.store import repair as repairs

    report = repairs.examine(folder) if output is None else repairs.repair(folder, output)
    damages = [damage._asdict() for damage in report.damages]
    show_answer({**report._asdict(), "damages": damages}, as_json, lambda _: _show(folder, report, output))
    if output is None and report.damages:
        sys.exit(1)


@click.command()
@click.argument(
    "folders",
    metavar="DIR...",
    nargs=-1,
    required=True,
    type=FolderOrUrl("this command works on crawls' folders: run it on the machine where the folders are"),
)
@click.option(
    "--shards",
    required=True,
    type=click.IntRange(1, 4096),
    help="The number of new shards. 1 is a crawl without shards.",
)
@click.option(
    "--output",
    "-o",
    required=True,
    type=Output(),
    help="A folder that does not exist yet, for the new shards' folders 1, 2, … or for the crawl without shards.",
)
def reshard(folders: tuple[Path, ...], shards: int, output: Path) -> None:
    """Write the stopped crawl in DIR as a crawl of another number of shards.

    DIR are the folders of all shards of the crawl, or that of a crawl without shards. They are not changed.
    """
    from inlink.crawl import reshard as resharding

    for made in resharding.reshard(folders, shards, output):
        say(f"{made.folder}: {counted(made.pages, 'page')} known, {made.size:,} bytes of events")


def _show(folder: Path, report: "LogReport", output: Path | None) -> None:
    for damage in report.damages:
        say(f"{folder / damage.file}: {told(damage)}")
    if report.tail:
        say(
            f"{folder}: {report.tail:,} bytes at the end are an unfinished event; opening the crawl moves them to torn/"
        )
    lost = f", {report.lost_urls:,} of them without their URLs" if report.lost_urls else ""
    events, places = counted(report.events, "sound event"), counted(len(report.damages), "damaged place")
    say(f"{folder}: {counted(report.pages, 'page')}{lost}; {events}; {places}")
    if output is not None:
        say(f"{output}: the sound events, with the same page numbers")


def told(damage: "Damage") -> str:
    """Describe a damaged place in one line."""
    pages = (
        f"; pages {damage.first:,} to {damage.first + damage.new - 1:,} became known there"
        if damage.new
        else ""
    )
    kind = f" of a {damage.kind} event" if damage.kind else ""
    size = damage.end - damage.begin
    where = (
        f"bytes {damage.begin:,} to {damage.end - 1:,} ({size:,} bytes{kind})"
        if size
        else f"byte {damage.begin:,}"
    )
    return f"{where}: {damage.fault}{pages}"

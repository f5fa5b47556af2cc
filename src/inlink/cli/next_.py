"""``inlink next``: the order of a crawl."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlink.cli.crawls import crawl_argument, reopened, stored_settings
from inlink.cli.show import say, show_json, show_table

if TYPE_CHECKING:
    from inlink.frontier.frontier import Frontier


@click.command("next")
@crawl_argument
@click.option(
    "-n", "--number", "count", type=click.IntRange(1), default=20, show_default=True, help="How many."
)
@click.option("--peek", is_flag=True, help="Only look: the order with reasons, nothing leased.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def next_(folder: Path, count: int, peek: bool, as_json: bool) -> None:
    """Lease the next URLs of DIR and print them, one a line; with --peek show them, leased to nobody.

    Leasing is the crawl's own business: it is refused while another process crawls.
    """
    if not peek:
        _lease(folder, count, as_json)
        return
    from inlink.crawl import look

    frontier = look(folder)
    now = time.time()
    frontier.advance(now)
    rows = [
        (place, page, priority, due, frontier.pages.url(page), _reasons(frontier, page))
        for place, (page, priority, due) in enumerate(frontier.queue.order(count, now), 1)
    ]
    if as_json:
        names = ("place", "page", "priority", "due_in", "url", "reasons")
        show_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    show_table(
        ["place", "priority", "due in", "URL", "why"],
        [
            (
                place,
                f"{priority:.6g}",
                f"{due:.1f}",
                url,
                _short(reasons),
            )
            for place, _, priority, due, url, reasons in rows
        ],
        right=(0, 1, 2),
    )


def _reasons(frontier: "Frontier", page: int) -> dict[str, float | str]:
    """What a page's priority is made of."""
    from inlink.frontier.traps import FACTORS

    told = dict(frontier.policy.explain(page))
    if frontier.traps[page]:
        told["trap penalty"] = float(FACTORS[frontier.traps[page]])
    if frontier.policy.sharing == "shared":
        told["taken from its host"] = int(frontier.queue.rows[frontier.queue.slot(page)]["taken"])
    return told


def _short(reasons: dict[str, float | str]) -> str:
    return ", ".join(
        f"{name} {value if isinstance(value, str) else format(value, '.4g')}"
        for name, value in reasons.items()
    )


def _lease(folder: Path, count: int, as_json: bool) -> None:
    from inlink.base.folder import Folder
    from inlink.errors import ParameterError
    from inlink.frontier.policies import POLICIES
    from inlink.store.reader import KIND, VERSION

    Folder(folder, KIND, VERSION)  # nothing is made here
    policy = stored_settings(folder).policy
    if policy not in POLICIES:
        raise ParameterError(
            f"{folder} goes by a policy of its own, {policy!r}: lease with Crawl.next, or --peek"
        )
    with reopened(folder) as crawl:
        leases = crawl.next(count)
        if as_json:
            show_json(
                [
                    {"url": one.url, "lease": one.number, "page": one.page, "expires": one.expires}
                    for one in leases
                ]
            )
            return
        for one in leases:
            say(one.url)

"""Commands that a crawl's operator gives: ``inlink seed``, ``reload`` and ``next``."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.base.table import counted, printable
from inlink.cli.options import as_of_option, crawl_argument, json_option, set_option, settings_given
from inlink.cli.remote import OWNER, refuse_settings, remote, spider, view_of
from inlink.cli.show import note, say, show_answer, show_table

if TYPE_CHECKING:
    from inlink.client.remote import RemoteCrawl
    from inlink.crawl.crawl import Crawl
    from inlink.crawl.questions.answers import OrderRow
    from inlink.protocol import Task, Tasks


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


@click.command()
@crawl_argument
@click.option(
    "--failed", "states", multiple=True, flag_value="failed", help="Pages that failed for good. The default."
)
@click.option("--gone", "states", flag_value="gone", multiple=True, help="Pages that are gone: 404, 410.")
@click.option(
    "--excluded",
    "states",
    flag_value="excluded",
    multiple=True,
    help="Pages that robots.txt, a rule, a refused address or an operator excluded, if the rules allow them now.",
)
@set_option
def reload(folder: Path | str, states: tuple[str, ...], **options: Any) -> None:
    """Let pages of DIR wait again: those that failed, or those that the options name.

    A running crawl does this itself.
    """
    from inlink.crawl.crawl import Crawl
    from inlink.errors import InUseError
    from inlink.store.inbox import RELOAD, post
    from inlink.store.reader import crawl_folder

    given = settings_given(options)
    if isinstance(folder, str):
        refuse_settings(folder, given)
        say(_told(remote(folder).reload(*states)))
        return
    # This command must not make a crawl.
    crawl_folder(folder)
    try:
        crawl = Crawl(folder, **given)
    except InUseError:
        if given:
            raise
        post(folder, RELOAD, "\n".join(states))
        say(f"the request is left in {folder}'s inbox: the running crawl carries it out within seconds")
        return
    with crawl:
        say(_told(crawl.reload(*states)))


def _told(count: int) -> str:
    return counted(count, "page waits again", "pages wait again")


MOST_A_REQUEST = 1_000
"""Maximum number of tasks that a server hands out at a time."""


@click.command("next")
@crawl_argument
@click.option(
    "-n",
    "--number",
    "count",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Number of pages.",
)
@click.option("--peek", is_flag=True, help="Show the order with reasons; lease nothing.")
@as_of_option
@json_option
@set_option
def next_(
    folder: Path | str, count: int, peek: bool, moment: str | None, as_json: bool, **options: Any
) -> None:
    """Lease the next URLs of DIR and print them, one a line. With --peek, show them without leasing them.

    URLs cannot be leased while another process is crawling.
    """
    given = settings_given(options)
    if moment is not None and not peek:
        raise click.UsageError("--as-of shows what came next then: give --peek too")
    if not peek:
        if isinstance(folder, str):
            refuse_settings(folder, given)
            _lease_there(spider(folder), count, as_json)
        else:
            _lease(folder, count, as_json, given)
        return
    from inlink.crawl.arguments import MOST_PLACES

    if count > MOST_PLACES:
        raise click.UsageError(f"--peek shows at most {MOST_PLACES} pages; got -n {count}")
    view = view_of(folder, given, moment)
    rows = view.order(count).rows
    show_answer(rows, as_json, _show_order)
    if not rows:
        states = ", ".join(f"{number:,} {name}" for name, number in view.info().states.items())
        note(f"no page waits for its turn; pages of this crawl: {states or 'none'}")


def _show_order(rows: "list[OrderRow]") -> None:
    show_table(
        ["place", "priority", "due in", "URL", "why"],
        [(row.place, f"{row.priority:.6g}", f"{row.due_in:.1f}", row.url, _reasons(row)) for row in rows],
        right=(0, 1, 2),
    )


def _reasons(row: "OrderRow") -> str:
    """The parts of a page's priority, in one line."""
    parts = [*row.parts, *row.host_parts]
    return ", ".join(f"{part.operation} {part.value:.4g} {part.name}" for part in parts)


def _lease(folder: Path, count: int, as_json: bool, given: dict[str, Any]) -> None:
    from inlink.crawl.crawl import Crawl
    from inlink.store.reader import crawl_folder

    # This command must not make a crawl.
    crawl_folder(folder)
    with Crawl(folder, **given) as crawl:
        session = crawl.desk.hello(OWNER, rejoin=True)
        reply = crawl.desk.next(session.number, count, lost=False)
        _show_tasks(reply.tasks, reply, crawl, session.lease_seconds, as_json)


def _lease_there(crawl: "RemoteCrawl", count: int, as_json: bool) -> None:
    """Lease from a server, which hands out a limited number of tasks a request."""
    seconds, tasks = crawl.begin().session.lease_seconds, list["Task"]()
    while True:
        reply = crawl.next(min(count - len(tasks), MOST_A_REQUEST), lost=False)
        tasks += reply.tasks
        if not reply.tasks or len(tasks) >= count:
            break
    _show_tasks(tasks, reply, crawl, seconds, as_json)


def _show_tasks(
    tasks: "list[Task]",
    reply: "Tasks",
    crawl: "Crawl | RemoteCrawl",
    seconds: float,
    as_json: bool,
) -> None:
    """Print tasks; if there are none, a line on standard error says why. ``reply`` is the last part of them."""
    expires = time.time() + seconds
    # A look-up may be a request to the server.
    rows = (
        {"url": task.url, "lease": task.lease, "page": page and page.id, "expires": expires}
        for task, page in ((task, crawl.page(task.url)) for task in tasks)
    )
    show_answer(rows, as_json, lambda _: sys.stdout.writelines(f"{task.url}\n" for task in tasks))
    if tasks:
        return
    standing = crawl.standing(hosts=0)
    if reply.paused:
        note("the crawl is paused")
    elif reply.due_in is not None:
        note(f"no page is due now; the next is due in {reply.due_in:,.0f} s")
    elif standing.waiting:
        leased = counted(standing.leased, "leased page")
        note(f"{counted(standing.waiting, 'page')} must wait for answers about {leased}")
    else:
        note("no page waits: add URLs by inlink seed, or let pages wait again by inlink reload")

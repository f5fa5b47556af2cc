"""``inlink token``: the access tokens of a server."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.cli.options import json_option
from inlink.cli.sections import Uncut
from inlink.cli.show import note, printable, say, show_answer, show_table

if TYPE_CHECKING:
    from inlink.server.tokens import Tokens

file_option = click.option(
    "--tokens",
    "file",
    type=click.Path(path_type=Path),
    help="The file of tokens. Default: the file of your account.",
)


@click.group(cls=Uncut)
def token() -> None:
    """Make, list and remove the tokens of a server. A running server notices within a second."""


@token.command()
@click.argument("name")
@click.option(
    "--role",
    required=True,
    type=click.Choice(["reader", "spider", "admin"]),
    help="A reader may look, a spider may also work, an admin may also steer.",
)
@click.option("--crawl", help="The only crawl that the token opens. Default: all.")
@file_option
def add(name: str, role: Any, crawl: str | None, file: Path | None) -> None:
    """Make a token for NAME and print it once. Only its SHA-256 is kept."""
    click.echo(_tokens(file).add(name, role, crawl))
    click.echo(
        "save this token now: it is not shown again. Clients take it from INLINK_TOKEN or INLINK_TOKEN_FILE",
        err=True,
    )


@token.command()
@file_option
@json_option
def list(file: Path | None, as_json: bool) -> None:
    """List the tokens."""
    rows = [{"name": kept.name, "role": kept.role, "crawl": kept.crawl} for kept in _tokens(file).all()]
    show_answer(
        rows,
        as_json,
        lambda _: show_table(
            ("name", "role", "crawl"),
            [(row["name"], row["role"], row["crawl"] or "all crawls") for row in rows],
        ),
    )
    if not rows:
        note("there are no tokens: inlink token add makes one")


@token.command()
@click.argument("name")
@file_option
def remove(name: str, file: Path | None) -> None:
    """Remove the token of NAME. It gives no access any more."""
    _tokens(file).remove(name)
    say(f"{printable(name)} is removed")


def _tokens(file: Path | None) -> "Tokens":
    from inlink.server.tokens import Tokens, default_file

    return Tokens(file or default_file())

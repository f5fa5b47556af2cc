"""``inlink serve`` and ``inlink token``: crawls behind HTTP for several spiders, and the tokens for them.

``python -m inlink.cli.serve`` runs a command until its standard input closes, for ``inlink serve --shards``.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.base.table import printable
from inlink.cli.options import json_option, set_option, settings_given
from inlink.cli.sections import Uncut
from inlink.cli.show import note, say, show_answer, show_table

if TYPE_CHECKING:
    from inlink.server.run import Options
    from inlink.server.tokens import Tokens


@click.command()
@click.argument("folders", metavar="DIR...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 selects a free port.",
)
@click.option(
    "--grpc-port",
    type=click.IntRange(0, 65535),
    help="Also serve the protocol URLFrontier, on this port; 0 selects a free port.",
)
@click.option(
    "--client-crawls",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Let clients of URLFrontier make and delete crawls in FOLDER.",
)
@click.option("--name", "names", multiple=True, help="Host name of the server in clients' URLs.")
@click.option(
    "--tokens", type=click.Path(path_type=Path), help="The file of tokens. Default: the file of your account."
)
@click.option("--tls-cert", "cert", type=click.Path(path_type=Path), help="Certificate, as PEM.")
@click.option("--tls-key", "key", type=click.Path(path_type=Path), help="Key of the certificate, as PEM.")
@click.option("--self-signed", is_flag=True, help="Make a certificate, to try out TLS.")
@click.option(
    "--client-ca", type=click.Path(path_type=Path), help="Require a client certificate that this CA signed."
)
@click.option("--insecure", is_flag=True, help="Allow addresses other than loopback without TLS.")
@click.option(
    "--peer-connections",
    default=64,
    show_default=True,
    type=click.IntRange(1),
    help="Connections of a peer without a token.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    help="Address or network of a reverse proxy, whose X-Forwarded-For is believed.",
)
@click.option("--shard", metavar="K/N", help="Serve shard K of a crawl that N servers share.")
@click.option(
    "--shard-url",
    "shard_urls",
    metavar="URL",
    multiple=True,
    help="URL of another shard of the crawl. May be repeated.",
)
@click.option(
    "--shards",
    metavar="N",
    type=click.IntRange(1),
    help="Serve N shards of a crawl on this machine, for trial: folders DIR/1 to DIR/N, and a port for each.",
)
@set_option
def serve(folders: tuple[Path, ...], shard: str | None, shards: int | None, **options: Any) -> None:
    """Serve the crawls in the folders DIR to spiders, with a dashboard. A crawl that does not exist is made.

    With --client-crawls, DIR is optional.

    On loopback no token is needed until you make a token. Other addresses need tokens and TLS: see inlink token.
    """
    from inlink.errors import MissingExtraError

    try:
        from inlink.server.run import Options
        from inlink.server.run import serve as run
    except ImportError as error:
        raise MissingExtraError(
            f"inlink serve needs {error.name}: install it with pip install 'inlink[server]'"
        ) from None
    settings = settings_given(options)
    if shards is not None:
        sys.exit(_serve_shards(folders, shards, Options(**options), shard))
    if shard is not None:
        settings["rules"] = {**settings.get("rules", {}), "shard": shard}
    run(folders, Options(**options, settings=settings), say)


def _serve_shards(folders: tuple[Path, ...], count: int, options: "Options", shard: str | None) -> int:
    from inlink.errors import ParameterError
    from inlink.server.fleet import serve_shards

    refused = {
        "--shard": shard,
        "--shard-url": options.shard_urls,
        "--client-crawls": options.client_crawls,
        "--self-signed": options.self_signed,
    }
    given = [name for name, value in refused.items() if value]
    if len(folders) != 1 or given:
        raise ParameterError(
            f"--shards needs exactly one folder, and cannot be given with {', '.join(given or refused)}"
        )
    context = click.get_current_context()
    rest = [
        (option.opts[0], context.params.get(option.name))
        for option in context.command.params
        if isinstance(option, click.Option) and option.name not in ("port", "grpc_port", "shards")
    ]
    arguments = [
        name if value is True else f"{name}={value}"
        for name, values in rest
        for value in (values if isinstance(values, tuple) else [values])
        if value not in (None, False)
    ]
    command = [sys.executable, "-m", "inlink.cli.serve", "serve", *arguments]
    return serve_shards(folders[0], count, options, command, say)


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


def _end_with_input() -> None:
    """End this process when its standard input closes, because ``inlink serve --shards`` has ended."""
    while os.read(0, 1 << 12):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    from inlink.cli import main

    threading.Thread(target=_end_with_input, daemon=True).start()
    main()

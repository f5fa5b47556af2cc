"""``inlink serve``: crawls behind HTTP, for several spiders."""

from pathlib import Path
from typing import Any

import click

from inlink.cli.options import set_option, settings_given
from inlink.cli.show import say


@click.command()
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
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
@set_option
def serve(folders: tuple[Path, ...], **options: Any) -> None:
    """Serve the crawls in the folders DIR to spiders, with a dashboard. A crawl that does not exist is made.

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
    run(folders, Options(**options, settings=settings), say)

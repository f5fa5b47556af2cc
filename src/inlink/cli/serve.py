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
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@click.option(
    "--grpc-port",
    type=click.IntRange(0, 65535),
    help="Speak URLFrontier too, on this port; 0 takes a free one.",
)
@click.option("--name", "names", multiple=True, help="Host name of the server in clients' URLs.")
@click.option("--tokens", type=click.Path(path_type=Path), help="The file of tokens; your own by default.")
@click.option("--tls-cert", "cert", type=click.Path(path_type=Path), help="Certificate, as PEM.")
@click.option("--tls-key", "key", type=click.Path(path_type=Path), help="Its key, as PEM.")
@click.option("--self-signed", is_flag=True, help="Make a certificate, to try TLS with.")
@click.option(
    "--client-ca", type=click.Path(path_type=Path), help="Clients need a certificate that this CA signed."
)
@click.option("--insecure", is_flag=True, help="Allow other addresses than loopback without TLS.")
@set_option
def serve(folders: tuple[Path, ...], **options: Any) -> None:
    """Serve the crawls in the folders DIR to spiders, and to people who watch. A crawl that is not there is made.

    On loopback no token is needed until one is made. Elsewhere tokens and TLS are needed: see inlink token.
    """
    from inlink.errors import MissingExtraError

    try:
        from inlink.server.run import Options
        from inlink.server.run import serve as run
    except ImportError as error:
        raise MissingExtraError(
            f"inlink serve needs {error.name}: install it with pip install 'inlink[server]'"
        ) from None
    names = (
        "host",
        "port",
        "names",
        "tokens",
        "cert",
        "key",
        "self_signed",
        "client_ca",
        "insecure",
        "grpc_port",
    )
    own = {name: options.pop(name) for name in names}
    run(folders, Options(**own, settings=settings_given(options)), say)

"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["folder_output", "graph_argument", "site_options"]

graph_argument = click.argument("graph", type=click.Path(path_type=Path))

folder_output = click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder to build. One that holds a graph is replaced when the new graph is whole.",
)


def site_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How hosts and domains are told from URLs."""
    for option in (
        click.option(
            "--strip-www",
            is_flag=True,
            help="Take www. off hosts, as Common Crawl did before the end of 2025.",
        ),
        click.option(
            "--private-suffixes",
            is_flag=True,
            help="Domains by the suffix list's private section too (github.io).",
        ),
        click.option(
            "--keep-suffixes", is_flag=True, help="Keep hosts that are suffixes themselves (gov.uk)."
        ),
    ):
        command = option(command)
    return command

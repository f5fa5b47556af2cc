"""``inlink page``: the stored data of one page of a crawl, or of one node of a graph."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from inlink.cli.crawls import unknown_page
from inlink.cli.lookups import node_argument, place_argument, print_node
from inlink.cli.remote import view_of
from inlink.cli.show import printable, say, show_json


@click.command()
@place_argument
@node_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def page(folder: Path | str, page: str, as_json: bool) -> None:
    """Show the stored data of one page. This is fast in a crawl or graph of any size.

    For a page of a crawl: state, score, depth, crawls. For a node of a graph: links, and values in stored rankings.
    """
    from inlink.graph.folders import is_graph

    if isinstance(folder, Path) and is_graph(folder):
        print_node(folder, page, as_json)
        return
    view = view_of(folder)
    known = view.page(page)
    while known is not None and not known.searched:
        known = view.page(page)
    if known is None:
        raise unknown_page(folder, page)
    fields = asdict(known)
    fields["content_hash"] = fields["content_hash"].hex()
    fields["fingerprint"] = f"{known.fingerprint:016x}" if known.fingerprint else ""
    del fields["searched"]
    if as_json:
        show_json(fields)
        return
    for name, value in fields.items():
        if name.endswith("_crawl") and value is not None:
            value = datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
        say(f"{name:<17} {'' if value is None else printable(str(value))}")

"""``inlink info`` and ``inlink crawl-info``: the figures of a graph, and of a crawl and its progress."""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.base.table import counted, printable
from inlink.cli.lookups import graph_at
from inlink.cli.options import crawl_argument, graph_argument, json_option
from inlink.cli.remote import remote, view_of
from inlink.cli.show import say, say_fields, show_answer, show_table
from inlink.errors import ParameterError, ServerError

if TYPE_CHECKING:
    from inlink.crawl.questions.about import RankingInfo
    from inlink.protocol import Certificate


@click.command()
@graph_argument
@click.option("--verify", is_flag=True, help="Check every file, even if the folder was checked before.")
@click.option(
    "--structure",
    is_flag=True,
    help="Also show strong components, bow tie, innermost k-core and distances, which takes longer.",
)
@json_option
def info(graph: Path, verify: bool, structure: bool, as_json: bool) -> None:
    """Show the figures of GRAPH: nodes, arcs, degrees, components, origin, rankings. For a crawl, see crawl-info.

    GRAPH may also be a file that inlink build reads, or - for standard input.

    If a ranking is damaged, the command reports it at the end, with exit code 2.
    """
    import inlink
    from inlink.base.folder import Folder
    from inlink.rank.ranking import FORMAT, KIND, list_rankings
    from inlink.store.reader import is_crawl

    if is_crawl(graph):
        if verify:
            from inlink.store.verify import verify as verify_crawl

            verify_crawl(graph)
        show_crawl(graph, as_json, structure)
        return
    opened = graph_at(graph, verify=verify)
    figures = {**asdict(opened.info()), "rankings": list_rankings(opened), "origin": opened.meta}
    if structure:
        figures["structure"] = inlink.structure(opened).figures()
    show_answer(figures, as_json, _say_figures)
    # Damaged rankings are not in the list: opening one raises the error that names it.
    for header in sorted(graph.glob("rankings/[!.]*/header.json")):
        Folder(header.parent, KIND, FORMAT)


def _say_figures(figures: dict[str, Any]) -> None:
    nodes, arcs, origin = figures["nodes"], figures["arcs"], figures["origin"]

    def share(part: int) -> str:
        return f"{part:,} ({part / nodes:.1%})" if nodes else f"{part:,}"

    def largest(side: str) -> tuple[str, str]:
        node = figures[f"max_{side}_node"]
        return f"largest {side}", f"{figures[f'max_{side}']:,}  {'' if node is None else printable(node)}"

    def size(name: str, digits: int) -> str:
        return f"{figures[name]:,} bytes" + (f", {figures[name] / arcs:.{digits}f} an arc" if arcs else "")

    fields = [
        ("nodes", f"{nodes:,}" + (f" ({figures['level']}s)" if figures["level"] else "")),
        ("arcs", f"{arcs:,}" + (", weighted" if figures["weighted"] else "")),
        *([] if figures["crawled"] is None else [("crawled", share(figures["crawled"]))]),
        ("dangling", share(figures["dangling"])),
        ("islands", share(figures["islands"])),
        ("self-loops", share(figures["self_loops"])),
        largest("outdegree"),
        largest("indegree"),
        (
            "weak components",
            f"{figures['components']:,}, the largest of {share(figures['largest_component'])} nodes",
        ),
        ("on disk", size("bytes", 1)),
        ("links", size("link_bytes", 2) + (", compressed" if figures["compressed"] else "")),
        ("rankings", ", ".join(figures["rankings"]) or "none"),
        *(("source", source) for source in origin.get("sources", [])),
        *(("skipped", f"{count:,} × {why}") for why, count in origin.get("skipped", {}).items()),
    ]
    say_fields(fields)
    if "structure" in figures:
        _say_structure(figures["structure"])


STEPS = 20
"""The largest number of lines for the neighbourhood function, not counting the last one."""


def _say_structure(figures: dict[str, Any]) -> None:
    pairs = figures["pairs"]
    nodes, reached = int(pairs[0]), pairs[-1] - pairs[0]

    def share(part: float, whole: float) -> str:
        return f"{part:,.0f}" + (f" ({part / whole:.1%})" if whole else "")

    def measured(name: str) -> str:
        value, error = figures[name], figures[f"{name}_error"]
        return f"{value:.4g}" + (f", relative standard error {error:.1%}" if error else "")

    largest = share(figures["largest_strong_component"], nodes)
    fields = [
        ("strong components", f"{figures['strong_components']:,}, the largest of {largest} nodes"),
        ("bow tie", ""),
        *((f"  {part}", share(size, nodes)) for part, size in figures["bow_tie"].items()),
        (
            "innermost k-core",
            f"{share(figures['largest_core_size'], nodes)}, k = {figures['largest_core_number']:,}",
        ),
        (
            "reachable pairs",
            share(reached, nodes * (nodes - 1))
            + (f", relative standard error {figures['pairs_error']:.1%}" if figures["pairs_error"] else ""),
        ),
    ]
    if reached:
        fields += [
            ("average distance", measured("average_distance")),
            ("effective diameter", measured("effective_diameter")),
            ("pairs within", ""),
        ]
        # Later shares would be printed as 100.0%.
        rest = sum(pairs[-1] - number >= 0.0005 * reached for number in pairs)
        shown = [*range(1, min(rest, STEPS) + 1), len(pairs) - 1]
        fields += [(f"  {counted(t, 'arc')}", share(pairs[t] - nodes, reached)) for t in dict.fromkeys(shown)]
    say_fields(fields)


PATIENCE = 60.0
"""Seconds to wait for the places that a server computes."""


@click.command("crawl-info")
@crawl_argument
@click.option(
    "--top",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Show which of the first N places by PageRank with teleports to the seeds are certain, instead.",
)
@click.option(
    "--within",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="With --top: pages whose ranks differ by at most this share of all rank may still change places. Default: 0.",
)
@json_option
def crawl_info(folder: Path | str, top: int | None, within: float | None, as_json: bool) -> None:
    """Show the crawl in DIR: pages by state, hosts, links, events, bytes, policy, ranking, and its writer."""
    if top is not None:
        _show_places(folder, top, within or 0.0, as_json)
        return
    if within is not None:
        raise ParameterError("--within says how exact --top is: give --top too")
    show_crawl(folder, as_json)


def _show_places(folder: Path | str, top: int, within: float, as_json: bool) -> None:
    """Print the best places of a crawl and their certainty."""
    from inlink.crawl.certificate import certificate_lines, certify

    places = certify(folder, top, within) if isinstance(folder, Path) else _remote_places(folder, top, within)

    def show(_: object) -> None:
        for line in certificate_lines(places):
            say(line)
        rows = [
            [row.place, f"{row.lower:.6f}", f"{row.upper:.6f}", row.url, "certain" if row.certain else "open"]
            for row in places.places
        ]
        show_table(("", "at least", "at most", "page", ""), rows, right=(0, 1, 2))

    show_answer(places, as_json, show)


def _remote_places(url: str, top: int, within: float) -> "Certificate":
    """Return the places that a server computes beside its other work."""
    crawl = remote(url)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        certificate = crawl.standing(top=top, within=within).certificate
        if certificate:
            return certificate
        time.sleep(0.5)
    raise ServerError(
        f"{url}: the server has not computed the certain places within {PATIENCE:.0f} s. Repeat the command later; "
        "a crawl without seeds has none"
    )


def show_crawl(folder: Path | str, as_json: bool, structure: bool = False) -> None:
    """Print the figures of a crawl and, with ``structure``, the structure of the graph of all known pages."""
    from inlink.store.format import STATES

    view = view_of(folder)
    crawl = view.info()
    while crawl.links is None:
        crawl = view.info()
    about = view.about()
    figures = {
        "pages": crawl.pages,
        "states": {name: crawl.states.get(name, 0) for name in STATES},
        "crawled": crawl.crawled,
        "hosts": crawl.hosts,
        "links": crawl.links,
        "events": crawl.events,
        "bytes": about.bytes,
        "began": crawl.began,
        "policy": about.policy,
        "writer": about.writer,
        "inbox": about.inbox,
        "ranking": about.ranking,
        "ranking_fault": about.ranking_fault,
        "addresses": about.addresses,
    }
    if structure and isinstance(folder, Path):
        import inlink

        figures["structure"] = inlink.structure(graph_at(folder)).figures()
    show_answer(figures, as_json, _say_crawl)


def _ranking_text(ranking: "RankingInfo") -> str:
    bounded = ranking.algorithm == "pagerank" and ranking.error is not None
    error = f", L1 error at most {ranking.error:.2g}" if bounded else ""
    return f"{ranking.algorithm} of {counted(ranking.pages, 'page')}{error}, {ranking.behind:,} bytes of the log behind"


def _say_crawl(figures: dict[str, Any]) -> None:
    ranking, sizes = figures["ranking"], figures["bytes"]
    fields: list[tuple[str, object]] = [
        ("pages", f"{figures['pages']:,}"),
        *((f"  {name}", f"{count:,}") for name, count in figures["states"].items() if count),
        ("crawled ever", f"{figures['crawled']:,}"),
        *((name, f"{figures[name]:,}") for name in ("hosts", "links", "events")),
        ("on disk", f"{sum(sizes.values()):,} bytes"),
        *((f"  {name}", f"{size:,}") for name, size in sizes.items()),
        ("began", f"{datetime.fromtimestamp(figures['began'], UTC):%Y-%m-%d %H:%M:%S} UTC"),
        ("policy", figures["policy"]),
        ("ranking", _ranking_text(ranking) if ranking else figures["ranking_fault"] or "none yet"),
        ("writer", f"process {figures['writer']}" if figures["writer"] else "none"),
    ]
    if figures["addresses"] is not None:
        fields.append(("addresses", figures["addresses"]))
    if figures["inbox"]:
        fields.append(("inbox", counted(figures["inbox"], "request")))
    say_fields(fields)
    if "structure" in figures:
        _say_structure(figures["structure"])

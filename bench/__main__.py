"""``python -m bench NAME``: the benchmarks, by name; without a name, a list of them."""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

BENCHMARKS = (
    "rank", "measures", "build", "extract", "crawl", "spider", "manual", "fleet", "view", "pauses", "server", "rerank",
    "spam", "shards", "orders", "freshness", "truth", "start", "certificate", "copies", "space", "release", "house",
    "edge", "tables",
)  # fmt: skip
DOCS = Path(__file__).parents[1] / "docs"
USAGE = f"usage: python -m bench {' | '.join(BENCHMARKS)}  (each with --help)"


def _rank(rest: list[str]) -> None:
    from bench import rank

    name, folder, setting, what = rest
    print(json.dumps(rank.work(name, Path(folder), float(setting), what)))


def _measure(rest: list[str]) -> None:
    from bench import measures

    name, measure, folder, target, *settings = rest
    measures.work(name, measure, Path(folder), float(target), [float(text) for text in settings])


def _pipeline(rest: list[str]) -> None:
    from bench import pipelines

    print(json.dumps(pipelines.work(rest[0], Path(rest[1]), Path(rest[2]))))


def _crawler(rest: list[str]) -> None:
    from bench.crawlers import base

    base.serve(rest[0], Path(rest[1]))


def _spider(rest: list[str]) -> None:
    from bench.spiders import run

    name, kind, robots, url, pages, place = rest
    run.work(name, kind, robots, url, int(pages), Path(place))


def _fleet_spider(rest: list[str]) -> None:
    from bench.fleets import run

    run.work(rest[0], int(rest[1]), int(rest[2]))


def _delay(rest: list[str]) -> None:
    from bench.fleets import delay

    delay.serve(int(rest[0]), int(rest[1]), float(rest[2]))


def _server_client(rest: list[str]) -> None:
    from bench import server

    number, port, batch, pages, certificate = rest
    print(json.dumps(server.client(int(port), int(number), int(batch), int(pages), certificate)))


def _without_server(rest: list[str]) -> None:
    from bench import server

    print(json.dumps(server.embedded(Path(rest[0]), int(rest[1]), int(rest[2]))))


def _release_step(rest: list[str]) -> None:
    from bench import release

    step, place, nodes, arcs, group = rest
    print(json.dumps(release.work(step, Path(place), int(nodes), int(arcs), group)))


PROCESSES: dict[str, Callable[[list[str]], None]] = {
    "work": _rank,
    "measure": _measure,
    "run": _pipeline,
    "crawler": _crawler,
    "spiderrun": _spider,
    "fleetrun": _fleet_spider,
    "fleetdelay": _delay,
    "serverclient": _server_client,
    "serverembedded": _without_server,
    "releasestep": _release_step,
}
"""The processes that benchmarks start, by command. Some print their result as JSON, others write it themselves."""


def print_tables(rest: list[str]) -> None:
    """Print the tables of the stored figures as Markdown, or write them into the pages that show them."""
    from bench import results, tables

    made = tables.tables(Path(rest[0]) if rest and rest != ["--docs"] else results.FOLDER)
    if rest == ["--docs"]:
        for page in sorted(DOCS.glob("*.md")):
            page.write_text(tables.in_page(page.read_text(), made))
        return
    for name, table in made.items():
        print(f"<!-- bench:{name} -->\n{table}\n<!-- /bench:{name} -->\n")


def main(arguments: list[str]) -> None:
    """Run the benchmark with the given name."""
    command, *rest = arguments or ["--help"]
    if command == "tables":
        print_tables(rest)
    elif command in ("build", "extract"):
        import_module("bench.pipelines").main(command, rest)
    elif command in BENCHMARKS:
        import_module(f"bench.{command}").main(rest)
    elif command in PROCESSES:
        PROCESSES[command](rest)
    else:
        sys.exit(USAGE)


if __name__ == "__main__":
    main(sys.argv[1:])

"""``python -m bench NAME``: the benchmarks, by name; without a name, a list of them."""

import json
import sys
from pathlib import Path

USAGE = (
    "usage: python -m bench rank | measures | build | extract | crawl | spider | fleet | view | pauses | server | "
    "rerank | spam | truth | start | certificate | copies | space | release | tables  (each with --help)"
)


def main(arguments: list[str]) -> None:
    """Hand over to the benchmark that was named."""
    command, *rest = arguments or ["--help"]
    if command == "rank":
        from bench import rank

        rank.main(rest)
    elif command == "work":  # one run of rank, in its own process
        from bench import rank

        name, folder, setting, what = rest
        print(json.dumps(rank.work(name, Path(folder), float(setting), what)))
    elif command == "measures":
        from bench import measures

        measures.main(rest)
    elif command == "measure":  # one run of measures, in its own process
        from bench import measures

        name, measure, folder, target, *settings = rest
        measures.work(name, measure, Path(folder), float(target), [float(one) for one in settings])
    elif command == "run":  # one run of build or extract
        from bench import pipelines

        print(json.dumps(pipelines.work(rest[0], Path(rest[1]), Path(rest[2]))))
    elif command in ("build", "extract"):
        from bench import pipelines

        pipelines.main(command, rest)
    elif command == "crawl":
        from bench import crawl

        crawl.main(rest)
    elif command == "crawler":  # one run of crawl, in its own process
        from bench.crawlers import base

        base.serve(rest[0], Path(rest[1]))
    elif command == "spider":
        from bench import spider

        spider.main(rest)
    elif command == "spiderrun":  # one run of spider, in its own process
        from bench.spiders import run

        name, kind, robots, url, pages, place = rest
        run.work(name, kind, robots, url, int(pages), Path(place))
    elif command == "fleet":
        from bench import fleet

        fleet.main(rest)
    elif command == "fleetrun":  # one spider of fleet, in its own process
        from bench.fleets import run as fleetrun

        fleetrun.work(rest[0], int(rest[1]), int(rest[2]))
    elif command == "view":
        from bench import view

        view.main(rest)
    elif command == "pauses":
        from bench import pauses

        pauses.main(rest)
    elif command == "server":
        from bench import server

        server.main(rest)
    elif command == "serverclient":  # a client of one run of server, in its own process
        from bench import server

        number, port, batch, pages, certificate = rest
        print(json.dumps(server.client(int(port), int(number), int(batch), int(pages), certificate)))
    elif command == "serverembedded":  # one run of server without a server, in its own process
        from bench import server

        print(json.dumps(server.embedded(Path(rest[0]), int(rest[1]), int(rest[2]))))
    elif command == "rerank":
        from bench import rerank

        rerank.main(rest)
    elif command == "spam":
        from bench import spam

        spam.main(rest)
    elif command == "start":
        from bench import start

        start.main(rest)
    elif command == "certificate":
        from bench import certificate as certain

        certain.main(rest)
    elif command == "copies":
        from bench import copies

        copies.main(rest)
    elif command == "space":
        from bench import space

        space.main(rest)
    elif command == "truth":
        from bench import truth

        truth.main(rest)
    elif command == "release":
        from bench import release

        release.main(rest)
    elif command == "releasestep":  # one step of release, in its own process
        from bench import release

        step, place, nodes, arcs, group = rest
        print(json.dumps(release.work(step, Path(place), int(nodes), int(arcs), group)))
    elif command == "tables":
        from bench import results, tables

        for name, table in tables.tables(Path(rest[0]) if rest else results.FOLDER).items():
            print(f"<!-- bench:{name} -->\n{table}\n<!-- /bench:{name} -->\n")
    else:
        sys.exit(USAGE)


if __name__ == "__main__":
    main(sys.argv[1:])

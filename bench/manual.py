"""``python -m bench manual``: Scrapy on inlink's scheduler, and on its own, crawling a manual on one host.

The spider follows all links by a rule, and its callback yields items for a pipeline. The site is a process, each crawl
another one. A second row has a share of answers with status 503, the same ones in each crawl.
"""

import os
from pathlib import Path
from typing import Any

from bench import cli, markdown, results
from bench.spider import crawl
from bench.spidersite import Site

__all__ = ["main", "manual_table"]

PEERS = ("scrapy_memory", "inlink")
PAGES = Path("/usr/share/doc/postgresql-doc-15/html")


def manual_table(figures: dict[str, Any]) -> str:
    """CPU and wall time of both schedulers, with and without answers that ask for a later try."""
    lines = [
        f"A manual of {figures['pages']:,} pages on one host. {markdown.where(figures)}",
        "",
        markdown.line("503", "scheduler", "CPU s", "CPU ÷ Scrapy's", "wall s", "wall ÷ Scrapy's"),
        markdown.line("---", "---", *["---:"] * 4),
    ]
    for row in figures["rows"]:
        first = row["runs"][PEERS[0]]
        for name, runs in row["runs"].items():
            cells = []
            for field in ("whole cpu", "wall"):
                cells += [markdown.spread([run[field] for run in runs])]
                cells += [markdown.ratio({"runs": runs}, {"runs": first}, field)]
            lines.append(markdown.line(f"{row['busy']:.0%}", figures["names"][name], *cells))
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench manual``."""
    parser = cli.parser("manual", __doc__, rounds=5, limit=900)
    parser.add_argument(
        "--pages", type=Path, default=PAGES, help="folder of HTML (default: PostgreSQL's manual)"
    )
    parser.add_argument(
        "--busy", type=float, nargs="+", default=[0.0, 0.04], help="shares of answers with 503"
    )
    options = parser.parse_args(arguments)
    rows = [{"busy": busy, "runs": {name: [] for name in PEERS}} for busy in options.busy]
    load, known = [os.getloadavg()[0]], 0
    for number in range(options.rounds + 1):
        for row in rows:
            with Site(options.pages, row["busy"]) as site:
                for name in PEERS:
                    run = crawl(name, "manual", False, site, 0, options.data, options.limit)
                    known = run["different"]
                    cli.note(f"{name}, {row['busy']:.0%}: {run['whole cpu']:.2f} s CPU, {run['wall']:.2f} s")
                    # The first round fills the caches of the system.
                    if number:
                        row["runs"][name].append(run)
        load.append(os.getloadavg()[0])
    names = {"scrapy_memory": "Scrapy", "inlink": "inlink"}
    figures = {"pages": known, "rows": rows, "names": names, "load": load, "machine": results.machine()}
    results.keep(options.results, "manual", figures)
    print(manual_table(figures))

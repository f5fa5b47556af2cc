"""The Markdown tables that are made of the stored figures."""

import json
import re
import statistics
from pathlib import Path
from typing import Any

from bench import markdown
from bench.crawltable import crawl_table
from bench.edge import edge_table
from bench.fleet import fleet_table
from bench.manual import manual_table
from bench.measuretable import measures_table
from bench.release import release_table
from bench.results import FOLDER
from bench.server import server_table
from bench.space import space_table
from bench.spidertable import spider_table
from bench.start import start_table

__all__ = ["build_table", "extract_table", "in_page", "rank_table", "tables"]

# A table in a page. The comments around it name its figures, and say if it shows only a part of them.
BLOCK = re.compile(r"<!-- (bench:.*?) -->\n(.*?)\n<!-- /bench", re.DOTALL)
STAMP = re.compile(r"measured at (\w{7}|an unknown commit)(?:, before a change)?")


def rank_table(figures: dict[str, Any]) -> str:
    """The ranking benchmark as a Markdown table; the first peer that ran is what the ratios refer to."""
    ran = [row for row in figures["rows"].values() if "runs" in row]
    lines = [
        f"{figures['graph']}: {figures['nodes']:,} nodes, {figures['arcs']:,} arcs, "
        f"true L1 error at most {figures['target']:.0e}. " + markdown.where(figures),
        "",
        markdown.line(
            "program",
            "wall s",
            "wall ÷ inlink's",
            "CPU s",
            "CPU ÷ inlink's",
            "true error",
            "bytes an arc, ranking",
            "bytes an arc, loading",
            "loading s",
        ),
        markdown.line("---", *["---:"] * 8),
    ]
    for row in ran:
        runs = row["runs"]
        cpus = [run["cpu"] for run in runs]
        lines.append(
            markdown.line(
                row["name"],
                markdown.spread([run["wall"] for run in runs]),
                markdown.ratio(row, ran[0], "wall"),
                "–" if None in cpus else markdown.spread(cpus),
                markdown.ratio(row, ran[0], "cpu"),
                f"{row['error']:.1e}",
                f"{statistics.median(run['peak'] for run in runs) / figures['arcs']:.1f}",
                f"{statistics.median(run['peak_loading'] for run in runs) / figures['arcs']:.1f}",
                f"{statistics.median(run['load'] for run in runs):.1f}",
            )
        )
    return "\n".join([*lines, "", *_footnotes(figures, ran)])


def _footnotes(figures: dict[str, Any], ran: list[dict[str, Any]]) -> list[str]:
    """Describe what each row computes, and name the rows that were not run, with the reason."""
    skipped = [row for row in figures["rows"].values() if "skipped" in row]
    return [
        *[f"- {row['name']}: {row['computes']}." for row in ran],
        *[f"- Not in the table, {row['name']}: {row['skipped']}." for row in skipped],
    ]


def build_table(figures: dict[str, Any]) -> str:
    """The building benchmark as a Markdown table."""
    return _simple(figures, f"{figures['lines']:,} lines of two names, {figures['bytes']:,} bytes", "arcs")


def extract_table(figures: dict[str, Any]) -> str:
    """The extraction benchmark as a Markdown table."""
    return _simple(
        figures,
        f"a WAT of {figures['pages']:,} pages, {figures['links']:,} links, {figures['bytes']:,} bytes",
        "links",
    )


def _simple(figures: dict[str, Any], what: str, unit: str) -> str:
    ran = [row for row in figures["rows"].values() if row.get("runs")]
    per = "link" if unit == "links" else "line"
    lines = [
        f"{what}. {markdown.where(figures)}",
        "",
        markdown.line(
            "program", "CPU s", "CPU ÷ inlink's", "wall s", f"CPU µs a {per}", "peak MB", f"{unit} found"
        ),
        markdown.line("---", *["---:"] * 6),
    ]
    for row in ran:
        runs, count = row["runs"], row["runs"][0]["count"]
        cpu = [run["cpu"] for run in runs]
        lines.append(
            markdown.line(
                row["name"],
                markdown.spread(cpu),
                markdown.ratio(row, ran[0], "cpu"),
                f"{statistics.median(run['wall'] for run in runs):.2f}",
                f"{statistics.median(cpu) / max(figures[f'{per}s'], 1) * 1e6:.2f}",
                f"{statistics.median(run['peak'] for run in runs) / 1e6:,.0f}",
                f"{count:,}",
            )
        )
    return "\n".join([*lines, "", *_footnotes(figures, ran)])


def tables(folder: Path = FOLDER) -> dict[str, str]:
    """All tables of a folder's figures, by the name of their file (``rank-web``, …)."""
    makers = {
        "rank": rank_table,
        "build": build_table,
        "extract": extract_table,
        "crawl": crawl_table,
        "spider": spider_table,
        "manual": manual_table,
        "fleet": fleet_table,
        "server": server_table,
        "edge": edge_table,
        "measures": measures_table,
        "start": start_table,
        "release": release_table,
        "space": space_table,
    }
    found = {}
    for path in sorted(folder.glob("*.json")):
        maker = makers.get(path.stem.split("-")[0])
        if maker:
            found[path.stem] = maker(json.loads(path.read_text()))
    return found


def in_page(page: str, made: dict[str, str]) -> str:
    """Return a page with new tables. In a table that shows a part of its figures, only the commits are replaced.

    Raises
    ------
    ValueError
        If such a table names no commit, or a commit that its figures do not have.
    """

    def block(match: re.Match[str]) -> str:
        names = re.findall(r"bench:([\w-]+)", match[1])
        table = made[names[0]]
        if match[1] != f"bench:{names[0]}":
            stamps = {stamp[1]: stamp[0] for name in names for stamp in STAMP.finditer(made[name])}
            commits = {stamp[1] for stamp in STAMP.finditer(match[2])}
            if not commits or commits - set(stamps):
                raise ValueError(f"{match[1]}: measured at {', '.join(stamps)}, but the page has {commits}")
            table = STAMP.sub(lambda stamp: stamps[stamp[1]], match[2])
        return match[0].replace(match[2], table)

    return BLOCK.sub(block, page)

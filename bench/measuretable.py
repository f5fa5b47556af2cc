"""The Markdown table of the measures, one for each graph."""

import math
import statistics
from typing import Any

from bench import markdown
from bench.measurers import base
from bench.results import stamp

__all__ = ["measures_table"]


def measures_table(figures: dict[str, Any]) -> str:
    """The figures of ``python -m bench measures`` as Markdown tables, and who is not in them and why."""
    loads = [
        one
        for graph in figures["graphs"].values()
        for row in graph["measures"].values()
        for one in row["load"]
    ]
    lines = [
        markdown.load({"machine": figures["machine"], "load": loads or [0.0]})
        + f". {markdown.ROUNDS} A ratio is to inlink on as many threads. Measurements of more than 20 s were run once "
        "and have no spread. Memory is the increase since before the graph was loaded, and includes the graph.",
        "",
    ]
    for name, graph in figures["graphs"].items():
        lines += _graph(name, graph, figures["peers"])
    shown = {measure for graph in figures["graphs"].values() for measure in graph["measures"]}
    lines += [
        f"- {base.MEASURES[one].title}: {base.MEASURES[one].asked}." for one in base.MEASURES if one in shown
    ]
    for peer in figures["peers"].values():
        if peer["missing"] is not None:
            lines.append(f"- Not in the tables, {peer['name']}: {peer['missing']}.")
            continue
        lines.append(f"- {peer['name']}: {peer['about']}.")
    alone = [
        base.MEASURES[one].title
        for one in base.MEASURES
        if one in shown
        and not any(
            one in peer["measures"]
            for name, peer in figures["peers"].items()
            if not name.startswith("inlink")
        )
    ]
    lines += [f"- No peer has: {', '.join(alone)}."] if alone else []
    return "\n".join(lines)


def _graph(name: str, graph: dict[str, Any], peers: dict[str, Any]) -> list[str]:
    lines = [
        f"**{name}**, {graph['nodes']:,} nodes, {graph['arcs']:,} arcs, Katz's α {graph['alpha']:g}:",
        "",
        markdown.line(
            "measure", "program", "threads", "wall s", "wall ÷ inlink's", "CPU s", "peak MB", "error"
        ),
        markdown.line("---", "---", *["---:"] * 6),
    ]
    absent = []
    for measure in base.MEASURES:
        if measure not in graph["measures"]:
            continue
        rows, title = graph["measures"][measure]["rows"], base.MEASURES[measure].title
        for key, row in rows.items():
            if "skipped" in row:
                how = f" ({row['how']})" if row["how"] and not row["skipped"].startswith("more") else ""
                why = row["skipped"].rstrip(".") + how
                absent.append(f"- Not in the table, {title}, {peers[key]['name']}: {why}.")
                continue
            first = _beside(key, rows, peers)
            runs = row["runs"]
            lines.append(
                markdown.line(
                    title,
                    peers[key]["name"],
                    "1" if peers[key]["threads"] == 1 else "all",
                    _spread([run["wall"] for run in runs]),
                    _ratio(runs, first) if first else "–",
                    _three(statistics.median(run["cpu"] for run in runs)),
                    f"{statistics.median(run['peak'] for run in runs) / 1e6:,.0f}",
                    "0" if row["error"] == 0 else f"{row['error']:.1e}",
                )
            )
    stamps: dict[str, list[str]] = {}
    for measure in graph["measures"]:
        stamps.setdefault(stamp(graph["measures"][measure]), []).append(base.MEASURES[measure].title)
    below = [f"- {'; '.join(titles)}: {text}." for text, titles in stamps.items()]
    return [*lines, "", *below, *absent, ""]


def _beside(key: str, rows: dict[str, Any], peers: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The runs of inlink on as many threads."""
    name = "inlink_one_thread" if peers[key]["threads"] == 1 else "inlink"
    runs: list[dict[str, Any]] | None = rows.get(name, {}).get("runs")
    return runs


def _ratio(runs: list[dict[str, Any]], first: list[dict[str, Any]]) -> str:
    return _spread([run["wall"] / other["wall"] for run, other in zip(runs, first, strict=False)])


def _spread(values: list[float]) -> str:
    middle = _three(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({_three(min(values))}–{_three(max(values))})"


def _three(value: float) -> str:
    """Three digits that count."""
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:,.{max(digits, 0)}f}"

"""The Markdown tables of the crawl's figures: taking pages in, asking for URLs, space, and what only inlink has."""

import statistics
from collections.abc import Callable, Iterator
from typing import Any

from bench import markdown

__all__ = ["crawl_table"]

Value = Callable[[dict[str, Any]], float]


def _cells(figures: dict[str, Any], size: int, part: str) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Each crawler's name, mode and runs at a size, where a part of the figures is there."""
    for row in figures["rows"].values():
        runs = [run["sizes"][str(size)] for run in row["runs"] if str(size) in run["sizes"]]
        for mode, label in row["modes"].items():
            if runs and mode in runs[0][part]:
                yield row["name"] + (f", {label}" if label else ""), mode, runs


def _middle(runs: list[dict[str, Any]], value: Value, digits: str = ".1f") -> str:
    return f"{statistics.median(value(run) for run in runs):{digits}}"


def _cpu(mode: str) -> Value:
    return lambda run: float(run["take"][mode]["cpu"] / run["take"][mode]["links"] * 1e6)


def _ratio(runs: list[dict[str, Any]], first: list[dict[str, Any]], mode: str, base: str) -> str:
    pairs = list(zip(runs, first, strict=False))
    return markdown.spread([_cpu(mode)(one) / _cpu(base)(other) for one, other in pairs])


def _taking(figures: dict[str, Any]) -> list[str]:
    lines = [
        markdown.line(
            "known URLs",
            "program",
            "CPU µs a link",
            "CPU ÷ inlink's",
            "CPU µs a link since the start",
            "pages/s",
            "links/s",
            "ms a page: 99th percentile, longest",
        ),
        markdown.line("---:", "---", *["---:"] * 6),
    ]
    for size in figures["known"]:
        cells = list(_cells(figures, size, "take"))
        for name, mode, runs in cells:
            plain = mode == "plain"
            speed = [run["take"][mode] for run in runs]
            lines.append(
                markdown.line(
                    f"{size:,}",
                    name,
                    markdown.spread([_cpu(mode)(run) for run in runs]),
                    _ratio(runs, cells[0][2], mode, cells[0][1]),
                    _middle(runs, lambda run: run["so far"] * 1e6, ".2f") if plain else "",
                    _middle(speed, lambda one: one["pages"] / one["wall"], ",.0f"),
                    _middle(speed, lambda one: one["links"] / one["wall"], ",.0f"),
                    _middle(speed, lambda one: one["p99"] * 1e3, ".2f")
                    + ", "
                    + _middle(speed, lambda one: one["slowest"] * 1e3),
                )
            )
    return lines


def _asking(figures: dict[str, Any]) -> list[str]:
    lines = [
        markdown.line(
            "known URLs",
            "program",
            "URLs a CPU s",
            "URLs a wall s",
            "ms a call: median",
            "99th percentile",
            "longest",
            "calls with fewer than 100",
            "CPU µs an answer",
        ),
        markdown.line("---:", "---", *["---:"] * 7),
    ]
    for size in figures["known"]:
        for name, mode, runs in _cells(figures, size, "next"):
            asked = [run["next"][mode] for run in runs]
            lines.append(markdown.line(f"{size:,}", name, *_request_cells(asked)))
        for row in figures["rows"].values():
            asked = [
                run["sizes"][str(size)]["ranking"]
                for run in row["runs"]
                if "ranking" in run["sizes"].get(str(size), {})
            ]
            if asked:
                seconds = _middle(asked, lambda one: one["ranking"])
                lines.append(
                    markdown.line(
                        f"{size:,}", f"{row['name']}, ranking for {seconds} s", *_request_cells(asked)
                    )
                )
    return lines


def _field(name: str, times: float = 1.0) -> Value:
    return lambda one: float(one[name]) * times


def _rate(clock: str) -> Value:
    return lambda one: float(one["urls"] / max(one[clock], 1e-9))


def _request_cells(asked: list[dict[str, Any]]) -> list[str]:
    return [
        _middle(asked, _rate("cpu"), ",.0f"),
        _middle(asked, _rate("wall"), ",.0f"),
        *(_middle(asked, _field(name, 1e3), ".2f") for name in ("median", "p99", "slowest")),
        f"{sum(one['short'] for one in asked)}/{sum(one['batches'] for one in asked)}",
        _middle(asked, _field("answer", 1e6)),
    ]


def _space(figures: dict[str, Any]) -> list[str]:
    lines = [
        markdown.line(
            "known URLs",
            "program",
            "memory",
            "memory with mapped files",
            "disk",
            "disk, by file",
            "opening s",
            "looking up a URL, s",
        ),
        markdown.line("---:", "---", "---:", "---:", "---:", "---", "---:", "---:"),
    ]
    for size in figures["known"]:
        for row in figures["rows"].values():
            runs = [run["sizes"][str(size)] for run in row["runs"] if str(size) in run["sizes"]]
            if not runs:
                continue
            parts = {
                name: statistics.median(run["disk"].get(name, 0) / run["disk known"] for run in runs)
                for name in runs[0]["disk"]
            }
            shown = [f"{name} {part:.1f}" for name, part in parts.items() if part >= 0.05]
            lines.append(
                markdown.line(
                    f"{size:,}",
                    row["name"],
                    _middle(runs, lambda run: run["memory"]["own"] / run["known"]),
                    _middle(runs, lambda run: run["memory"]["with files"] / run["known"]),
                    _middle(runs, lambda run: sum(run["disk"].values()) / run["disk known"]),
                    ", ".join(shown),
                    *(
                        _middle(runs, _field(name), ".2f") if name in runs[0] else ""
                        for name in ("open", "lookup")
                    ),
                )
            )
    return lines


def crawl_table(figures: dict[str, Any]) -> str:
    """The benchmark of the crawl as Markdown tables; the first crawler that ran is what the ratios refer to."""
    ran = [row for row in figures["rows"].values() if row["runs"]]
    lines = [
        f"A generated crawl, 35 links a page, 40% of them new, order {figures['order']}. {markdown.where(figures)}",
        "",
        f"Taking pages in, {figures['window']:,} links from when so many URLs are known:",
        "",
        *_taking(figures),
        "",
        "Asking for URLs, 100 at a time:",
        "",
        *_asking(figures),
        "",
        "Space, bytes a known URL:",
        "",
        *_space(figures),
        "",
    ]
    for row in ran:
        if "opened after kill" in row["runs"][0]:
            seconds = _middle(row["runs"], lambda run: run["opened after kill"], ".2f")
            last = list(row["runs"][0]["sizes"].values())[-1]["disk known"]
            memory = _middle(row["runs"], _field("memory after kill", 1 / last))
            lines.append(
                f"- {row['name']}, opened in {seconds} s after `kill -9` at the last size, takes {memory} bytes of "
                "memory a known URL."
            )
    lines += [f"- {row['name']}: {row['computes']}." for row in ran]
    lines += [
        f"- Not in the table, {row['name']}: {row['skipped']}."
        for row in figures["rows"].values()
        if "skipped" in row
    ]
    return "\n".join(lines)

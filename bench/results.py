"""The stored figures, and the Markdown tables made of them."""

import json
import os
import platform
import statistics
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "build_table", "extract_table", "keep", "machine", "memory", "rank_table", "tables"]

FOLDER = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """What a reader has to know of the machine."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    return {"processor": model, "cores": len(os.sched_getaffinity(0)), "python": platform.python_version()}


def memory(field: str, process: int | str = "self") -> int:
    """VmRSS or VmHWM (the highest VmRSS so far) of a process, in bytes; 0 for one that has ended.

    Not ``ru_maxrss``: Linux carries that over from the process that forked, through exec, so that a small program
    started by a large one seems as large.
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(field)), 0)


def keep(folder: Path, name: str, told: dict[str, Any]) -> None:
    """Store figures as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def _spread(values: list[float], digits: str = ".2f") -> str:
    middle = statistics.median(values)
    return f"{middle:{digits}} ({min(values):{digits}}–{max(values):{digits}})"


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _where(told: dict[str, Any]) -> str:
    on, load = told["machine"], told["load"]
    return (
        f"{on['processor']}, {on['cores']} processors, Python {on['python']}; "
        f"load average {min(load):.1f}–{max(load):.1f}. Medians (smallest–largest) of interleaved rounds; "
        "ratios are medians of the rounds' own ratios."
    )


def _ratio(row: dict[str, Any], first: dict[str, Any], field: str) -> str:
    pairs = list(zip(row["runs"], first["runs"], strict=False))
    if any(a[field] is None or b[field] is None for a, b in pairs):
        return "–"
    return _spread([a[field] / b[field] for a, b in pairs])


def rank_table(told: dict[str, Any]) -> str:
    """The ranking benchmark as a Markdown table; the first peer that ran is what the ratios refer to."""
    ran = [row for row in told["rows"].values() if "runs" in row]
    lines = [
        f"{told['graph']}: {told['nodes']:,} nodes, {told['arcs']:,} arcs, true L1 error at most {told['target']:.0e}. "
        + _where(told),
        "",
        _line(
            "",
            "wall s",
            "× wall",
            "CPU s",
            "× CPU",
            "true error",
            "bytes an arc, ranking",
            "loading",
            "load s",
        ),
        _line("---", *["---:"] * 8),
    ]
    for row in ran:
        runs = row["runs"]
        cpus = [run["cpu"] for run in runs]
        lines.append(
            _line(
                row["name"],
                _spread([run["wall"] for run in runs]),
                _ratio(row, ran[0], "wall"),
                "–" if None in cpus else _spread(cpus),
                _ratio(row, ran[0], "cpu"),
                f"{row['error']:.1e}",
                f"{statistics.median(run['peak'] for run in runs) / told['arcs']:.1f}",
                f"{statistics.median(run['peak_loading'] for run in runs) / told['arcs']:.1f}",
                f"{statistics.median(run['load'] for run in runs):.1f}",
            )
        )
    lines.append("")
    lines += [f"- {row['name']}: {row['computes']}." for row in ran]
    lines += [
        f"- Not in the table, {row['name']}: {row['skipped']}."
        for row in told["rows"].values()
        if "skipped" in row
    ]
    return "\n".join(lines)


def build_table(told: dict[str, Any]) -> str:
    """The building benchmark as a Markdown table."""
    return _simple(told, f"{told['lines']:,} lines of two names, {told['bytes']:,} bytes", "arcs")


def extract_table(told: dict[str, Any]) -> str:
    """The extraction benchmark as a Markdown table."""
    return _simple(
        told, f"a WAT of {told['pages']:,} pages, {told['links']:,} links, {told['bytes']:,} bytes", "links"
    )


def _simple(told: dict[str, Any], what: str, unit: str) -> str:
    ran = [row for row in told["rows"].values() if row.get("runs")]
    lines = [
        f"{what}. {_where(told)}",
        "",
        _line("", "CPU s", "× CPU", "wall s", f"µs a {unit[:-1]} (CPU)", "peak MB", unit),
        _line("---", *["---:"] * 6),
    ]
    for row in ran:
        runs, count = row["runs"], row["runs"][0]["count"]
        cpu = [run["cpu"] for run in runs]
        lines.append(
            _line(
                row["name"],
                _spread(cpu),
                _ratio(row, ran[0], "cpu"),
                f"{statistics.median(run['wall'] for run in runs):.2f}",
                f"{statistics.median(cpu) / max(told['links' if unit == 'links' else 'lines'], 1) * 1e6:.2f}",
                f"{statistics.median(run['peak'] for run in runs) / 1e6:,.0f}",
                f"{count:,}",
            )
        )
    lines.append("")
    lines += [f"- {row['name']}: {row['computes']}." for row in ran]
    lines += [
        f"- Not in the table, {row['name']}: {row['skipped']}."
        for row in told["rows"].values()
        if "skipped" in row
    ]
    return "\n".join(lines)


def harvest_table(told: dict[str, Any]) -> str:
    """The shares of PageRank brought home, by policy."""
    marks = [f"{mark:.0%}" for mark in told["marks"]]
    lines = [
        f"{told['graph']}: {told['nodes']:,} nodes, {told['reached']:,} of them reached from the seeds. Share of all "
        "PageRank that is home when so many of these have been fetched.",
        "",
        "| policy | " + " | ".join(marks) + " |",
        "| --- |" + " ---: |" * len(marks),
    ]
    lines += [
        f"| {name} | " + " | ".join(f"{one:.3f}" for one in row) + " |" for name, row in told["rows"].items()
    ]
    return "\n".join(lines)


def tables(folder: Path = FOLDER) -> dict[str, str]:
    """All tables of a folder's figures, by the name of their file (``rank-web``, …)."""
    from bench.crawltable import crawl_table

    makers = {
        "rank": rank_table,
        "build": build_table,
        "extract": extract_table,
        "crawl": crawl_table,
        "harvest": harvest_table,
    }
    found = {}
    for path in sorted(folder.glob("*.json")):
        maker = makers.get(path.stem.split("-")[0])
        if maker:
            found[path.stem] = maker(json.loads(path.read_text()))
    return found

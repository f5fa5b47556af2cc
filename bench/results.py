"""The stored figures, and the Markdown tables made of them."""

import json
import os
import platform
import statistics
from pathlib import Path
from typing import Any

__all__ = [
    "FOLDER", "build_table", "extract_table", "harvest_table", "keep", "machine", "memory", "rank_table",
    "spider_table", "tables",
]  # fmt: skip

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


def spider_table(told: dict[str, Any]) -> str:
    """Scrapy's schedulers beside inlink's: how fast they are, how large they get, and how crawls are gone on with."""
    lines = [
        f"{told['pages']:,} pages of 10 kB from 20 hosts on loopback, 40 links a page, 40 % of them new: "
        f"{told['known']:,} URLs known at the end. The site sends {told['alone']:,.0f} pages a second to a client that "
        f"only reads them. {_where(told)}",
        "",
        _line(
            "spider",
            "robots.txt",
            "scheduler",
            "pages/s",
            "× pages/s",
            "CPU s a 1,000 pages",
            "× CPU",
            "and ranking",
            "peak MB",
            "and ranking",
            "disk MB",
        ),
        _line("---", "---", "---", *["---:"] * 8),
    ]
    done = {key: row for key, row in told["rows"].items() if row["runs"]}
    for row in done.values():
        first = _stock(done, row)
        runs = [_spider_figures(run) for run in row["runs"]]
        base = [_spider_figures(run) for run in first["runs"]] if first else []
        lines.append(
            _line(
                row["spider"],
                "yes" if row["robots"] else "no",
                told["peers"][row["peer"]]["name"],
                _spread([run["rate"] for run in runs], ".0f"),
                _ratio({"runs": runs}, {"runs": base}, "rate") if base else "–",
                _spread([run["cpu"] for run in runs]),
                _ratio({"runs": runs}, {"runs": base}, "cpu") if base else "–",
                *(
                    f"{statistics.median(run[field] for run in runs):{digits}}"
                    for field, digits in (
                        ("ranking", ".2f"),
                        ("peak", ",.0f"),
                        ("ranking peak", ",.0f"),
                        ("disk", ",.1f"),
                    )
                ),
            )
        )
    lines += ["", *_going_on(told), ""]
    if told["cold"]:
        cold, warm = told["cold"]["cold"], told["cold"]["warm"]
        lines.append(
            f"- inlink's first start ever compiles its kernels: {told['again']:,} pages took {cold['whole']:.1f} s, "
            f"with the first request after {cold['first']:.1f} s; from then on {warm['whole']:.1f} and "
            f"{warm['first']:.1f} s."
        )
    lines += [f"- {peer['name']}: {peer['computes']}." for peer in told["peers"].values()]
    lines += [
        f"- Not in the table, {row['spider']} on {told['peers'][row['peer']]['name']}: {row['skipped']}."
        for row in told["rows"].values()
        if "skipped" in row
    ]
    return "\n".join(lines)


def _stock(rows: dict[str, dict[str, Any]], row: dict[str, Any]) -> dict[str, Any] | None:
    """The row of Scrapy in memory that another is compared with: the same spider, or the plain one if there is none."""
    robots = " robots" if row["robots"] else ""
    return rows.get(f"scrapy_memory {row['spider']}{robots}") or rows.get(f"scrapy_memory plain{robots}")


def _spider_figures(run: dict[str, Any]) -> dict[str, float]:
    thousands = run["pages"] / 1000
    return {
        "rate": run["pages"] / run["wall"],
        "cpu": run["cpu"] / thousands,
        "ranking": run["ranking"] / thousands,
        "peak": run["peak"] / 1e6,
        "ranking peak": run["peak of children"] / 1e6,
        "disk": run["disk"] / 1e6,
    }


def _going_on(told: dict[str, Any]) -> list[str]:
    """How crawls are gone on with: seconds from the start of the process to the first request at the site."""
    lines = [
        _line(
            "scheduler",
            "first request of a new crawl, s",
            "after a clean stop",
            "fetched again",
            "after `kill -9`",
            f"of {told['again']:,} pages asked for",
            "fetched again",
        ),
        _line("---", *["---:"] * 6),
    ]
    for name, runs in told["restarts"].items():
        new = told["rows"][f"{name} plain"]["runs"]
        cells = [_seconds(new)]
        for how in ("stopped", "killed"):
            after = [run[how] for run in runs]
            cells.append(_seconds(after))
            if how == "killed":
                cells.append(f"{statistics.median(run['pages'] for run in after):,.0f}")
            cells.append(", ".join(f"{run['twice']:,}" for run in after))
        if runs:
            lines.append(_line(told["peers"][name]["name"], *cells))
    return lines


def _seconds(runs: list[dict[str, Any]]) -> str:
    came = [run["first"] for run in runs if run["first"] is not None]
    return _spread(came) if came else "never"


def tables(folder: Path = FOLDER) -> dict[str, str]:
    """All tables of a folder's figures, by the name of their file (``rank-web``, …)."""
    from bench.crawltable import crawl_table
    from bench.measuretable import measures_table

    makers = {
        "rank": rank_table,
        "build": build_table,
        "extract": extract_table,
        "crawl": crawl_table,
        "harvest": harvest_table,
        "spider": spider_table,
        "measures": measures_table,
    }
    found = {}
    for path in sorted(folder.glob("*.json")):
        maker = makers.get(path.stem.split("-")[0])
        if maker:
            found[path.stem] = maker(json.loads(path.read_text()))
    return found

"""The table of the benchmark of spiders."""

import statistics
from typing import Any

from bench import markdown

__all__ = ["spider_table"]


def spider_table(figures: dict[str, Any]) -> str:
    """Scrapy's schedulers beside inlink's: how fast they are, how large they get, and how crawls are resumed."""
    lines = [
        f"{figures['pages']:,} pages of 10 kB from 20 hosts on loopback, 40 links a page, 40 % of them new: "
        f"{figures['known']:,} URLs known at the end. The site sends {figures['alone']:,.0f} pages a second to a "
        f"client that only reads them. {markdown.where(figures)}",
        "",
        markdown.line(
            "spider",
            "robots.txt",
            "scheduler",
            "pages/s",
            "pages/s ÷ Scrapy's",
            "CPU s for 1,000 pages",
            "CPU ÷ Scrapy's",
            "CPU s for 1,000 pages, ranking process",
            "peak MB",
            "peak MB, ranking process",
            "disk MB",
        ),
        markdown.line("---", "---", "---", *["---:"] * 8),
    ]
    done = {key: row for key, row in figures["rows"].items() if row["runs"]}
    for row in done.values():
        first = _stock(done, row)
        runs = [_spider_figures(run) for run in row["runs"]]
        base = [_spider_figures(run) for run in first["runs"]] if first else []
        lines.append(
            markdown.line(
                row["spider"],
                "yes" if row["robots"] else "no",
                figures["peers"][row["peer"]]["name"],
                markdown.spread([run["rate"] for run in runs], ".0f"),
                markdown.ratio({"runs": runs}, {"runs": base}, "rate") if base else "–",
                markdown.spread([run["cpu"] for run in runs]),
                markdown.ratio({"runs": runs}, {"runs": base}, "cpu") if base else "–",
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
    lines += ["", *_going_on(figures), ""]
    if figures["cold"]:
        cold, warm = figures["cold"]["cold"], figures["cold"]["warm"]
        lines.append(
            f"- In a source tree, inlink's first start ever compiles its loops: {figures['again']:,} pages took "
            f"{cold['whole']:.1f} s, with the first request after {cold['first']:.1f} s; from then on "
            f"{warm['whole']:.1f} and {warm['first']:.1f} s."
        )
    lines += [f"- {peer['name']}: {peer['computes']}." for peer in figures["peers"].values()]
    lines += [
        f"- Not in the table, {row['spider']} on {figures['peers'][row['peer']]['name']}: {row['skipped']}."
        for row in figures["rows"].values()
        if "skipped" in row
    ]
    return "\n".join(lines)


def _stock(rows: dict[str, dict[str, Any]], row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the in-memory Scrapy row to compare with: of the same spider, else of the plain spider."""
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


def _going_on(figures: dict[str, Any]) -> list[str]:
    """Return the table of resumed crawls: seconds from the start of the process to the first request at the site."""
    lines = [
        markdown.line(
            "scheduler",
            "new crawl: s to the first request",
            "after a clean stop: s to the first request",
            "pages fetched again",
            "after `kill -9`: s to the first request",
            f"pages fetched of {figures['again']:,} asked for",
            "pages fetched again",
        ),
        markdown.line("---", *["---:"] * 6),
    ]
    for name, runs in figures["restarts"].items():
        new = figures["rows"][f"{name} plain"]["runs"]
        cells = [_seconds(new)]
        for how in ("stopped", "killed"):
            after = [run[how] for run in runs]
            cells.append(_seconds(after))
            if how == "killed":
                cells.append(f"{statistics.median(run['pages'] for run in after):,.0f}")
            cells.append(", ".join(f"{run['twice']:,}" for run in after))
        if runs:
            lines.append(markdown.line(figures["peers"][name]["name"], *cells))
    return lines


def _seconds(runs: list[dict[str, Any]]) -> str:
    came = [run["first"] for run in runs if run["first"] is not None]
    return markdown.spread(came) if came else "never"

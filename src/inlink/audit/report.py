"""Write an audit as one HTML page, which can be read offline and without scripts, or as CSV files."""

import csv
import html
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from inlink.audit.audit import Audit, CheckResult
from inlink.base.disk import unwritable
from inlink.base.folder import atomic_file
from inlink.base.page import page_head
from inlink.base.strings import Strings
from inlink.base.table import counted

__all__ = ["MOST_ROWS", "write_csv", "write_html"]

MOST_ROWS = 200
"""Maximum number of rows of a check in the page. The page names the command that prints all."""

_LONGEST = 300
"""Maximum length of a cell in the page, in characters."""


def write_html(audit: Audit, path: Path) -> None:
    """Write an audit as one page.

    All texts of the crawl are escaped. The page loads nothing, and its script only sorts and filters tables.

    Raises
    ------
    inlink.errors.OutputError
        If the file cannot be written.
    """
    script = (files("inlink.audit") / "assets" / "report.js").read_text()
    title = f"Audit of {', '.join(audit.hosts[:3]) or audit.crawl}"
    with atomic_file(path) as work, work.open("w", encoding="utf-8", errors="replace") as file:
        file.write(f"{page_head(title, script=script)}<header><h1>{html.escape(title)}</h1>\n")
        file.writelines(_summary(audit))
        file.write("</header>\n<main>\n")
        file.writelines(_depths(audit))
        # If the site has one host, URLs are shown without it.
        origin = (
            re.compile(rf"https?://{re.escape(audit.hosts[0])}(?::\d+)?(?=/)")
            if len(audit.hosts) == 1
            else None
        )
        for check in audit.checks:
            file.writelines(_section(check, origin))
        file.write(f"</main>\n<script>{script}</script>\n</body></html>\n")


def _summary(audit: Audit) -> Iterator[str]:
    yield (
        f"<p>{counted(audit.fetched, 'page')} fetched of {audit.known:,} known on "
        f"{html.escape(', '.join(audit.hosts[:5]))}; {audit.indexable:,} indexable. "
        f"Made {html.escape(audit.made)} from the crawl <code>{html.escape(audit.crawl)}</code>.</p>\n"
    )
    if audit.gaps:
        gaps = html.escape("; ".join(audit.gaps))
        yield f"<p><strong>Not all pages were fetched</strong>: {gaps}.</p>\n"
    if audit.since is not None:
        yield f"<p>Compared with {html.escape(audit.since)}.</p>\n"
    compared = audit.since is not None
    yield '<table class="summary"><thead><tr><th>check<th>level<th class="number">found'
    yield '<th class="number">new<th class="number">mended' if compared else ""
    yield "<th>verdict</tr></thead><tbody>\n"
    for check in audit.checks:
        if check.level == "table":
            continue
        shade = check.level if check.rows else "none"
        yield f'<tr class="{shade}"><td><a href="#{check.name}">{html.escape(check.title)}</a><td>{check.level}'
        yield (
            f'<td class="number">{len(check.rows):,}'
            if check.verdict != "not judged"
            else '<td class="number">–'
        )
        if compared:
            for number in (check.new, None if check.mended is None else len(check.mended)):
                yield f'<td class="number">{"–" if number is None else f"{number:,}"}'
        yield f"<td>{check.verdict}</tr>\n"
    yield "</tbody></table>\n"


def _depths(audit: Audit) -> Iterator[str]:
    """Bars for the pages of each depth, and for their share of the rank."""
    if not audit.depths:
        return
    yield '<section id="depths"><h2>Depth</h2>\n<p>Pages by clicks from the front page, and their share of the rank by '
    yield "content links.</p>\n<table><thead><tr><th>clicks<th>pages<th>share of rank</tr></thead><tbody>\n"
    most, best = max(audit.depths), max(audit.ranks)
    for clicks, (pages, rank) in enumerate(zip(audit.depths, audit.ranks, strict=True)):
        yield f"<tr><td>{clicks}<td>{_bar(pages / most)} {pages:,}"
        yield f"<td>{_bar(rank / best if best else 0)} {rank:.1%}</tr>\n"
    if audit.unreached:
        yield f"<tr><td>no path<td>{_bar(audit.unreached / most)} {audit.unreached:,}<td></tr>\n"
    yield "</tbody></table></section>\n"


def _bar(share: float) -> str:
    return f'<meter min="0" max="1" value="{min(share, 1.0):.3f}"></meter>'


def _section(check: CheckResult, origin: re.Pattern[str] | None) -> Iterator[str]:
    shade = check.level if check.rows else "clean"
    number = "–" if check.verdict == "not judged" else f"{len(check.rows):,}"
    yield f'<section id="{check.name}" class="{shade}"><h2>{html.escape(check.title)}'
    yield f" <small>{number}</small></h2>\n<p>{html.escape(check.why)}</p>\n"
    if check.verdict != "complete" and check.level != "table":
        yield f"<p><em>{check.verdict}</em>: {html.escape('; '.join(check.reasons))}.</p>\n"
    if check.rows:
        yield '<div class="rows"><table class="sortable"><thead><tr>'
        for name, value in zip(check.columns, check.rows[0], strict=True):
            kind = ' class="number"' if isinstance(value, int | float) else ""
            yield f"<th{kind}>{html.escape(name.replace('_', ' '))}"
        yield "</tr></thead><tbody>\n"
        for row in check.rows[:MOST_ROWS]:
            yield f"<tr>{''.join(_cell(value, origin) for value in row)}</tr>\n"
        yield "</tbody></table></div>\n"
    if len(check.rows) > MOST_ROWS:
        yield f"<p>{MOST_ROWS:,} of {len(check.rows):,} rows. All: <code>{html.escape(check.command)}</code></p>\n"
    if check.mended:
        yield f"<details><summary>{counted(len(check.mended), 'row')} mended</summary><ul>\n"
        for key in check.mended[:MOST_ROWS]:
            yield f"<li>{html.escape(' – '.join(_short(str(part)) for part in key))}\n"
        yield "</ul></details>\n"
    yield "</section>\n"


def _cell(value: Any, origin: re.Pattern[str] | None) -> str:
    if isinstance(value, int | float):
        return f'<td class="number" data-value="{value}">{value:,}'
    text = html.escape(_short(value if origin is None else origin.sub("", value, count=1)))
    # Other schemes than http could run scripts.
    if value.startswith(("http://", "https://")) and " " not in value:
        return f'<td class="url"><a href="{html.escape(value)}" rel="noreferrer">{text}</a>'
    return f"<td>{text}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def write_csv(audit: Audit, folder: Path, *, safe_cells: bool = False) -> list[Path]:
    """Write a CSV file for each check, and return the paths. A file without findings has only a header.

    Parameters
    ----------
    audit : Audit
    folder : Path
        It is made if it is not there. Files of these names are replaced.
    safe_cells : bool
        Write ``'`` before texts that spreadsheets would read as a formula.

    Raises
    ------
    inlink.errors.OutputError
        If the folder cannot be made, or a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None
    written = []
    for check in audit.checks:
        path = folder / f"{check.name}.csv"
        rows: Sequence[Sequence[Any]] = check.rows
        if safe_cells:
            rows = [[_safe(value) for value in row] for row in rows]
        with (
            atomic_file(path) as work,
            work.open("w", encoding="utf-8", errors="replace", newline="") as file,
        ):
            csv.writer(file, lineterminator="\n").writerows([check.columns, *rows])
        written.append(path)
    return written


def _safe(value: Any) -> Any:
    return Strings.of([value]).safe_cells().to_pylist()[0].decode() if isinstance(value, str) else value

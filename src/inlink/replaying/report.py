"""Write a replay as one HTML page: the curves, and which differences to the baseline are certain."""

import base64
import html
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from inlink.base.folder import atomic_file
from inlink.base.page import page_head
from inlink.base.table import counted
from inlink.replaying.measures import MEASURES
from inlink.replaying.result import ENOUGH, Mean, Replay, shown

__all__ = ["write_report"]

Draw = Callable[[str, str, Path], None]
"""Writes the picture of a measure and a kind of hosts into a file of this name."""


def write_report(result: Replay, path: Path, draw: Draw | None = None) -> None:
    """Write a replay as one page that loads nothing and has no script.

    Parameters
    ----------
    result : Replay
        The replay, with at least one complete seed set.
    path : Path
        The file, which is replaced.
    draw : callable or None
        Draws the curves. None: the page has tables only.

    Raises
    ------
    inlink.errors.OutputError
        If the file cannot be written.
    """
    title = f"Replay of {result.web}"
    with atomic_file(path) as work, work.open("w", encoding="utf-8", errors="replace") as file:
        file.write(f"{page_head(title, images=True)}<header><h1>{html.escape(title)}</h1>\n")
        file.writelines(_summary(result))
        file.write("</header>\n<main>\n")
        for hosts in result.hosts:
            for measure in result.measures:
                file.writelines(_section(result, measure, hosts, draw))
        file.write("</main>\n</body></html>\n")


def _summary(result: Replay) -> Iterator[str]:
    pages, links, sets = (
        counted(result.pages, "page"),
        counted(result.links, "link"),
        counted(len(result.seeds), "seed set"),
    )
    yield f"<p>{pages}, {links}; {sets}; baseline {html.escape(result.baseline)}.</p>\n"
    if not result.complete:
        yield "<p><strong>The replay was interrupted</strong>: only complete seed sets are shown.</p>\n"
    for what, count in result.notes.items():
        yield f"<p>{count:,} {html.escape(what)}.</p>\n"
    yield (
        "<p>Each value is the mean over the seed sets, with its standard error. Below it stands the difference to the "
        "baseline on the same sets. ▲ and ▼ mark a certain difference: the mean is more than two standard errors from "
        f"0, on at least {ENOUGH} sets. About one of twenty comparisons of equal orders is marked too, by chance.</p>\n"
    )
    if len(result.seeds) < ENOUGH:
        yield f"<p><strong>No difference is certain with fewer than {ENOUGH} seed sets.</strong></p>\n"
    settings = ", ".join(
        f"{name} {value}" for name, value in result.settings.items() if value not in (None, {})
    )
    yield f"<p>Version {html.escape(result.version)}; {html.escape(settings)}.</p>\n"


def _section(result: Replay, measure: str, hosts: str, draw: Draw | None) -> Iterator[str]:
    kind = {"real": "", "all": ", one host"}.get(hosts, f", hosts of {hosts} pages")
    yield f"<section><h2>{measure}{kind}</h2>\n<p>{MEASURES[measure]}.</p>\n"
    if draw is not None:
        yield f'<img alt="Curves of {measure}" src="data:image/svg+xml;base64,{_picture(draw, measure, hosts)}">\n'
    yield '<div class="rows"><table><thead><tr><th>order'
    for mark in result.marks:
        yield f'<th class="number">{100 * mark:.4g}%'
    yield '<th class="number">area<th>won, lost, level</tr></thead><tbody>\n'
    for order in result.orders:
        if result.values(order, measure, "area", hosts):
            yield from _row(result, order, measure, hosts)
    yield "</tbody></table></div></section>\n"


def _row(result: Replay, order: str, measure: str, hosts: str) -> Iterator[str]:
    is_baseline = order == result.baseline
    yield f"<tr><td>{html.escape(order)}"
    places: list[float | str] = [*result.marks, "area"]
    for at in places:
        yield f'<td class="number">{shown(result.mean(order, measure, at, hosts))}'
        if not is_baseline:
            gap = result.paired(order, measure, at, hosts)
            mark, shade = ("▲", "better") if gap.mean > 0 else ("▼", "worse")
            difference = shown(Mean(gap.mean, gap.error), sign=True)
            yield (
                f'<br><small class="{shade}">{mark} {difference}'
                if gap.is_certain
                else f"<br><small>{difference}"
            )
            yield "</small>"
    if is_baseline:
        yield "<td>baseline</tr>\n"
    else:
        gap = result.paired(order, measure, "area", hosts)
        yield f"<td>{gap.won}, {gap.lost}, {gap.level}</tr>\n"


def _picture(draw: Draw, measure: str, hosts: str) -> str:
    """A picture as SVG in base64. As an image, it cannot run anything, and its styles stay its own."""
    with TemporaryDirectory(prefix="inlink-replay-") as folder:
        path = Path(folder) / "curves.svg"
        draw(measure, hosts, path)
        return base64.b64encode(path.read_bytes()).decode()

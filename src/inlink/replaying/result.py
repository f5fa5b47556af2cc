"""The result of a replay: tables with paired differences, which can be written as JSON, CSV, text and a picture."""

import csv
import io
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from inlink.base.folder import atomic_file
from inlink.base.table import counted, html_table
from inlink.errors import OutputError, ParameterError
from inlink.replaying.measures import Curve

GREEDY, LOOK_AHEAD, BOUND = "clairvoyant greedy (no bound)", "look-ahead", "sort bound"
OPTIMUM = "optimum of revisits"
"""The names of the lines that are drawn beside the policies."""

FORMAT = 1
LEVEL = 1e-12
"""Two values with at most this difference count as equal."""

ENOUGH = 10
"""The least number of seed sets from which a difference can be called certain."""


class Mean(NamedTuple):
    """A mean over seed sets, and its standard error; the error of one set is NaN."""

    mean: float
    error: float


class Paired(NamedTuple):
    """The difference between an order and the baseline on the same seed sets.

    ``won``, ``lost`` and ``level`` are numbers of sets, and ``worst`` is the least difference.
    """

    mean: float
    error: float
    won: int
    lost: int
    level: int
    worst: float

    @property
    def is_certain(self) -> bool:
        """Whether the mean is more than two standard errors from 0, on at least :data:`ENOUGH` sets."""
        return self.won + self.lost + self.level >= ENOUGH and abs(self.mean) > max(2 * self.error, LEVEL)


class Run(msgspec.Struct, frozen=True):
    """One order on one seed set.

    Attributes
    ----------
    hosts : str
        ``"real"``, the number of pages of a guessed host, or ``"all"`` for one host.
    order : str
        The policy, or the line.
    set : int
        The number of the seed set, from 0 on.
    reached : int
        Pages that the seeds reach.
    budget, fetches : int
        Fetches allowed, and made.
    counts : dict
        Fetches that failed or were redirected, URLs that are not recorded or were excluded.
    seconds : list of float
        The time at each mark, when its number of fetches was complete; empty for a line.
    measures : dict of str to Curve
        The curve of each measure.
    by_time : dict of str to list of float
        The measure at the times when the baseline had made the fetches of each mark; empty if no time passed.
    tau : list of float or None
        Kendall's τ between the ranks of the crawled part and of the whole; empty if it was not computed.
    wasted : list of float
        The share of fetches of wasted pages at each mark; empty if there was no expression for them.
    """

    hosts: str
    order: str
    set: int
    reached: int
    budget: int
    fetches: int
    counts: dict[str, int]
    seconds: list[float]
    measures: dict[str, Curve]
    by_time: dict[str, list[float]]
    tau: list[float | None]
    wasted: list[float]


class Replay(msgspec.Struct, frozen=True):
    """The result of :func:`inlink.replay`.

    Attributes
    ----------
    web : str
        The name of the graph, crawl or archive.
    pages, links : int
        Its size.
    notes : dict
        Numbers of pages and links that the recording does not know, by kind.
    orders : list of str
        Policies, then lines.
    baseline : str
        The order that the others are compared with.
    marks : list of float
        Shares of the pages that the seeds reach, at which values are kept.
    measures : list of str
        The names of the measures.
    hosts : list of str
        ``"real"``, or the sizes of guessed hosts.
    seeds : list of list of int
        The seed sets, as page numbers.
    settings : dict
        All other parameters that the result depends on.
    complete : bool
        False if the replay was interrupted: only whole seed sets are kept.
    runs : list of Run
        The runs.
    """

    web: str
    version: str
    pages: int
    links: int
    notes: dict[str, int]
    orders: list[str]
    baseline: str
    marks: list[float]
    measures: list[str]
    hosts: list[str]
    seeds: list[list[int]]
    settings: dict[str, Any]
    complete: bool
    runs: list[Run]
    format: int = FORMAT

    def values(
        self, order: str, measure: str = "pagerank", at: float | str = "area", hosts: str | None = None
    ) -> list[float]:
        """Return one value for each seed set.

        Parameters
        ----------
        order : str
            A policy or a line.
        measure : str
            One of ``measures``.
        at : float or str
            One of ``marks``; ``"area"`` is the mean over all fetches.
        hosts : str or None
            One of ``hosts``; None is the first.

        Raises
        ------
        inlink.errors.ParameterError
            If there is no such order, measure, mark or kind of hosts.

        Notes
        -----
        Freshness is NaN as long as no copy counts. Its ``"area"`` is the mean over the time.
        """
        hosts = self.hosts[0] if hosts is None else hosts
        for name, value, there in (
            ("order", order, self.orders),
            ("measure", measure, self.measures),
            ("at", at, [*self.marks, "area"]),
            ("hosts", hosts, self.hosts),
        ):
            if value not in there:
                raise ParameterError(f"`{name}` must be one of {', '.join(map(str, there))}; got {value!r}")
        place = None if at == "area" else self.marks.index(float(at))
        curves = [
            run.measures[measure]
            for run in self.runs
            if (run.order, run.hosts) == (order, hosts) and measure in run.measures
        ]
        return [curve.area if place is None else curve.at[place] for curve in curves]

    def mean(
        self, order: str, measure: str = "pagerank", at: float | str = "area", hosts: str | None = None
    ) -> Mean:
        """The mean over seed sets, with its standard error; the parameters are those of :meth:`values`."""
        return _mean(self.values(order, measure, at, hosts))

    def paired(
        self, order: str, measure: str = "pagerank", at: float | str = "area", hosts: str | None = None
    ) -> Paired:
        """The differences to the baseline on the same seed sets; the parameters are those of :meth:`values`."""
        own = self.values(order, measure, at, hosts)
        base = self.values(self.baseline, measure, at, hosts)
        gaps = [value - other for value, other in zip(own, base, strict=True)]
        mean = _mean(gaps)
        won, lost = sum(gap > LEVEL for gap in gaps), sum(gap < -LEVEL for gap in gaps)
        return Paired(*mean, won, lost, len(gaps) - won - lost, min(gaps, default=math.nan))

    def rows(self) -> list[dict[str, Any]]:
        """Every value as a row: hosts, order, set, measure, at, value; a missing value is None. For data frames."""
        return list(self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        for run in self.runs:
            keys = {"hosts": run.hosts, "order": run.order, "set": run.set}
            for name, curve in run.measures.items():
                pairs = [*zip(self.marks, curve.at, strict=True), ("area", curve.area), ("half", curve.half)]
                for at, value in pairs:
                    # NaN is the only value that differs from itself.
                    yield {**keys, "measure": name, "at": at, "value": None if value != value else value}
            lists: dict[str, Sequence[float | None]] = {
                "tau": run.tau,
                "wasted": run.wasted,
                "seconds": run.seconds,
            }
            lists |= {f"{name} by time": values for name, values in run.by_time.items()}
            for name, values in lists.items():
                for at, value in zip(self.marks, values, strict=False):
                    yield {**keys, "measure": name, "at": at, "value": value}
            for name, count in {"fetches": run.fetches, "reached": run.reached, **run.counts}.items():
                yield {**keys, "measure": name, "at": "end", "value": count}

    # -- as text ------------------------------------------------------------------------------------------------------

    def table(self, measure: str = "pagerank", hosts: str | None = None) -> tuple[list[str], list[list[str]]]:
        """Means with standard errors, and differences to the baseline, as text: heads and rows.

        Parameters
        ----------
        measure : str
            The name of the measure.
        hosts : str or None
            One of ``hosts``; None is the first.

        Raises
        ------
        inlink.errors.ParameterError
            If there is no such measure or kind of hosts.
        """
        shares = [f"{100 * mark:.4g}%" for mark in self.marks]
        heads = ["order", *shares, "area", "against the baseline", "won/lost/level", "worst"]
        places: list[float | str] = [*self.marks, "area"]
        rows = []
        for order in self.orders:
            if not self.values(order, measure, "area", hosts):
                continue
            cells = [shown(self.mean(order, measure, at, hosts)) for at in places]
            gap = self.paired(order, measure, "area", hosts)
            same = order == self.baseline
            more = ["baseline", "", ""] if same else [
                shown(Mean(gap.mean, gap.error), sign=True), f"{gap.won}/{gap.lost}/{gap.level}", f"{gap.worst:+.3f}",
            ]  # fmt: skip
            rows.append([order, *cells, *more])
        return heads, rows

    def __repr__(self) -> str:
        orders, sets = counted(len(self.orders), "order"), counted(len(self.seeds), "seed set")
        return f"<inlink replay of {self.web}: {orders}, {sets}{'' if self.complete else ', interrupted'}>"

    def _repr_html_(self) -> str:
        heads, rows = self.table(self.measures[0])
        return html_table(f"inlink replay of {self.web}: share of {self.measures[0]}", heads, rows)

    # -- as files -----------------------------------------------------------------------------------------------------

    def to_json(self) -> bytes:
        """The whole result as JSON: the same bytes for the same seeds and version."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    def to_csv(self) -> str:
        """:meth:`rows` as CSV: the same text for the same seeds and version."""
        out = io.StringIO()
        writer = csv.DictWriter(out, ["hosts", "order", "set", "measure", "at", "value"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self._rows())
        return out.getvalue()

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write ``replay.json`` and ``replay.csv`` into a folder, which is made; return their paths.

        Raises
        ------
        inlink.errors.OutputError
            If they cannot be written.
        """
        place = Path(folder)
        try:
            place.mkdir(exist_ok=True)
            paths = [place / "replay.json", place / "replay.csv"]
            for path, content in zip(paths, (self.to_json(), self.to_csv().encode()), strict=True):
                with atomic_file(path) as work:
                    work.write_bytes(content)
        except OSError as error:
            raise OutputError(f"{place}: cannot be written ({error.strerror or error})") from None
        return paths


def _mean(values: Sequence[float]) -> Mean:
    count = len(values)
    if not count:
        return Mean(math.nan, math.nan)
    mean = math.fsum(values) / count
    if count == 1:
        return Mean(mean, math.nan)
    return Mean(mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count))


def shown(mean: Mean, *, sign: bool = False) -> str:
    """A mean with its standard error as text, if it has one."""
    # Adding 0 makes 0 of -0.
    value = round(mean.mean, 3) + 0.0
    text = f"{value:+.3f}" if sign else f"{value:.3f}"
    return text if math.isnan(mean.error) else f"{text} ± {mean.error:.3f}"

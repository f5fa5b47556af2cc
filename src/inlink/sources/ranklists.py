"""Rankings as lists of names, values and places, read from folders, files and URLs."""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from inlink.base.arrays import Float64Array, Int64Array
from inlink.base.folder import Folder
from inlink.base.memory import require_memory
from inlink.base.opening import Stream, lines
from inlink.base.strings import Strings
from inlink.base.table import counted
from inlink.errors import FolderError, InputError, ParameterError
from inlink.graph.names import Names
from inlink.rank.ranking import FORMAT, KIND, Ranking
from inlink.rank.tables import is_table, read_table
from inlink.sources.crawlgraph import names_of
from inlink.sources.inputs import Location
from inlink.sources.rankings import stored_ranking
from inlink.sources.ranks import COLUMNS, Row, rank_rows
from inlink.sources.releases import MOST_RANKS, rank_file
from inlink.store.inbox import seeds_in
from inlink.store.prior import HostPlaces
from inlink.store.reader import crawl_folder, is_crawl, known_pages
from inlink.urls.canonical import canonical
from inlink.urls.hosts import reverse_host

_log = logging.getLogger("inlink.crawl")

# Number of lines of a file that are Python objects at a time.
_AT_A_TIME = 1 << 16
# A complete list of PageRank adds up to 1, but for the digits that a file drops.
_COMPLETE = 0.999


@dataclass(frozen=True, eq=False)
class RankList:
    """A ranking as a list.

    Attributes
    ----------
    name : str
        The name of the list in messages.
    names : Names or None
        The names of the nodes; None: they have numbers only.
    values : float64[n]
        Their values.
    places : int64[n]
        Their places in the whole ranking, from 1; nodes with the same value share the best place.
    positions : int64[n]
        Their places in this list, from 1; nodes with the same place are in the order of their names.
    whole : int
        Up to this place the list has every node of the ranking.
    complete : bool
        Whether the list has all nodes.
    """

    name: str
    names: Names | None
    values: Float64Array
    places: Int64Array
    positions: Int64Array
    whole: int
    complete: bool

    def __len__(self) -> int:
        return len(self.values)

    def label(self, node: int) -> str | int:
        """Return a node's name, or its number if there are no names."""
        return node if self.names is None else self.names[node]

    def absence(self, complete: str) -> str:
        """Return the meaning of a node's absence from the list; ``complete`` if the list has all nodes."""
        if self.complete:
            return complete
        return f"below place {len(self):,}" if self.whole == len(self) else "not listed"

    def told(self) -> str:
        """Return the list in a few words."""
        if self.complete:
            return f"{self.name}, all {len(self):,} nodes"
        if self.whole == len(self):
            return f"{self.name}, the first {len(self):,} places"
        return f"{self.name}, {counted(len(self), 'node')}; all of the first {self.whole:,} places are there"


def rank_list(source: str | os.PathLike[str] | Ranking, by: str) -> RankList:
    """Return a ranking as a list; see :func:`inlink.sources.diff.diff` for what `source` and `by` may be.

    Raises
    ------
    inlink.errors.InputError
        If a file cannot be read, or a name is repeated.
    inlink.errors.FolderError
        If a folder holds no such ranking.
    inlink.errors.ParameterError
        If Common Crawl's ranks have no such column.
    """
    if isinstance(source, Ranking):
        return _of_ranking(source, f"a ranking by {source.algorithm}")
    path = rank_file(source)
    if isinstance(path, str):
        return _of_text(path, by, MOST_RANKS)
    if path.is_dir():
        return _of_folder(path, by)
    if is_table(path):
        table = read_table(path)
        values = next(iter(table.columns.values()))
        ranks = _of_ranking(Ranking(values, algorithm="", names=table.names), str(path))
        return replace(ranks, complete=table.complete)
    return _of_text(path, by)


def _of_folder(path: Path, by: str) -> RankList:
    place, name = path, by
    if path.parent.name == "rankings" and _is_ranking(path):
        place, name = path.parent.parent, path.name
    ranking = stored_ranking(place, name)
    if is_crawl(place):
        from inlink.graph.kernels.names import order_of

        # Pages that became known after the ranking are left out.
        urls = names_of(known_pages(place, with_urls=False))
        offsets = urls.offsets[: len(ranking) + 1]
        ranking.names = Names(urls.text, offsets, order_of(urls.text, offsets))
        # The header of a copy of a crawl as it was has the origin of the copy.
        place = crawl_folder(place).header.meta.get("as_of", place)
    return _of_ranking(ranking, f"{place}, {name}")


def _is_ranking(path: Path) -> bool:
    try:
        Folder(path, KIND, FORMAT)
    except FolderError:
        return False
    return True


def _of_ranking(ranking: Ranking, name: str) -> RankList:
    require_memory(90 * len(ranking.values), f"places of {len(ranking.values):,} nodes")
    values = np.asarray(ranking.values, np.float64)
    order = np.argsort(-values, kind="stable")
    sorted_values = values[order]
    is_first = np.append(True, sorted_values[1:] != sorted_values[:-1])[: len(values)]
    first = np.maximum.accumulate(np.where(is_first, np.arange(1, len(values) + 1), 0))
    places = np.empty(len(values), np.int64)
    places[order] = first
    return RankList(
        name, ranking.names, values, places, _positions(places, ranking.names), len(values), complete=True
    )


def _of_text(path: Location, by: str, most: int | None = None) -> RankList:
    if by not in COLUMNS:
        columns = " or ".join(map(repr, COLUMNS))
        with Stream(path) as stream:
            if rank_rows(stream, path, "harmonic")[0]:
                raise ParameterError(f"{path}: Common Crawl's ranks are by {columns}; got {by!r}")
    with Stream(path, f"reading {Path(path).name}") as stream:
        common_crawl, rows = rank_rows(stream, path, by if by in COLUMNS else "pagerank")
        names, values, listed_places = _columns(islice(rows, most), path)
    places = listed_places if common_crawl and len(listed_places) else None
    if places is None:
        ranked = _of_ranking(Ranking(values, algorithm="", names=names), "")
        places = ranked.places
    positions = _positions(places, names)
    # The list is whole up to the first place that is larger than the number of places before it.
    ordered = np.sort(places)
    gaps = np.flatnonzero(ordered > np.arange(1, len(ordered) + 1))
    whole = int(gaps[0]) if len(gaps) else len(ordered)
    complete = by == "pagerank" and _COMPLETE <= float(values.sum()) <= 2 - _COMPLETE
    return RankList(
        f"{path}, {by}" if common_crawl else str(path), names, values, places, positions, whole, complete
    )


def _columns(rows: Iterator[Row], path: Location) -> tuple[Names, Float64Array, Int64Array]:
    """Return names, values and places; no places if the rows have none."""
    from inlink.graph.kernels.names import order_of

    texts, values, places = [], [], []
    while block := list(islice(rows, _AT_A_TIME)):
        texts.append(Strings.of(row.name for row in block))
        values.append(np.array([row.value for row in block]))
        places.append(np.array([row.place or 0 for row in block], np.int64))
    if not texts:
        raise InputError(f"{path}: there are no ranks in this file")
    column = Strings.concat(texts)
    try:
        names = Names(column.text, column.offsets, order_of(column.text, column.offsets))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    numbers = np.concatenate(places)
    return names, np.concatenate(values), numbers if numbers.all() else numbers[:0]


def _positions(places: Int64Array, names: Names | None) -> Int64Array:
    """Return places from 1 without ties: equal ones in the order of names, or of numbers without names."""
    by_name = np.arange(len(places)) if names is None or names.order is None else names.order.astype(np.int64)
    order = by_name[np.argsort(places[by_name], kind="stable")]
    positions = np.empty(len(places), np.int64)
    positions[order] = np.arange(1, len(places) + 1)
    return positions


# -- places of hosts -----------------------------------------------------------------------------------------


def host_places(source: str | os.PathLike[str], setting: str = "prior") -> HostPlaces:
    """Return the places of hosts in a ranking.

    Parameters
    ----------
    source : path-like
        One of these:

        - Common Crawl's ranks of hosts or domains, as a file, a URL or the name of a release, see
          :func:`inlink.sources.releases.rank_file`. Places are by harmonic centrality. The first 1,000,000 lines count.
        - The folder of a graph or crawl with a ranking ``pagerank``, a folder ``GRAPH/rankings/NAME``, or an exported
          ranking. The best 1,000,000 nodes count.
        - Lines of a host or URL, optionally followed by a tab and a value, which is 1 by default.

        The largest value of a host's pages counts.
    setting : str
        Name of the setting that names the source, for messages.

    Raises
    ------
    inlink.errors.InputError
        If the source cannot be read, has more than 1,000,000 lines without the header of Common Crawl's ranks, a
        value is not in [0, 1e30], or no host has a value above 0.
    inlink.errors.FolderError
        If a folder holds no ranking.
    """
    file = rank_file(source)
    best: dict[str, float] = {}
    ignored = 0
    for host, value in _host_values(file, setting):
        if host is None:
            ignored += 1
        elif value > 0:
            best[host] = max(value, best.get(host, 0.0))
    if not best:
        raise InputError(
            f"{setting}: {source} gives no host a value above 0: name a host or URL in each line"
        )
    if ignored:
        lines = counted(ignored, "line that names", "lines that name")
        _log.warning("%s: %s: ignored %s no host", setting, source, lines)
    return HostPlaces.of(best)


def _host_values(file: Location, setting: str) -> Iterator[tuple[str | None, float]]:
    """Yield hosts and their values; None for a name that is no host."""
    if isinstance(file, Path) and (file.is_dir() or is_table(file)):
        yield from _hosts_of_list(rank_list(file, "pagerank"), setting)
        return
    with Stream(file) as stream:
        common_crawl, rows = rank_rows(stream, file)
        if common_crawl:
            for row in islice(rows, MOST_RANKS):
                yield reverse_host(row.name.decode("utf-8", "replace")) or None, row.value
            return
    with Stream(file) as stream:
        first = [line for _, line in islice(lines(stream), MOST_RANKS + 1)]
    if len(first) > MOST_RANKS:
        raise InputError(f"{setting}: {file} has more than {MOST_RANKS:,} lines: keep the first lines only")
    for name, value in seeds_in(b"\n".join(first).decode("utf-8", "replace"), str(file)):
        if not 0 <= value <= 1e30:
            raise InputError(
                f"{setting}: {file}: the value of {name[:200]!r} must be in [0, 1e30]; got {value!r}"
            )
        yield _host(name), value


def _hosts_of_list(ranks: RankList, setting: str) -> Iterator[tuple[str | None, float]]:
    if ranks.names is None:
        raise InputError(f"{setting}: {ranks.name}: its nodes have no names, so their hosts are not known")
    for node in np.flatnonzero(ranks.positions <= MOST_RANKS).tolist():
        name = ranks.names[node]
        # Graphs of hosts and domains hold reversed names.
        yield (_host(name) if "://" in name else reverse_host(name) or None), float(ranks.values[node])


def _host(name: str) -> str | None:
    """Return the host of a URL or of a host's name, with its port, as a crawl writes it."""
    form = canonical(name if "://" in name else f"http://{name}/")
    return None if form is None else form.split("/", 3)[2]

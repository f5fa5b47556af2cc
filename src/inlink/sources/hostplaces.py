"""Read the places of hosts from a ranking of any kind: the setting ``prior`` of a crawl."""

import logging
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from inlink.base.opening import Stream, head, lines
from inlink.errors import InputError
from inlink.sources.inputs import Location
from inlink.sources.ranklists import RankList, rank_list
from inlink.sources.ranks import rank_rows
from inlink.sources.releases import MOST_RANKS, rank_file
from inlink.store.inbox import seeds_in
from inlink.store.prior import HostPlaces
from inlink.urls.canonical import canonical
from inlink.urls.hosts import reverse_host

__all__ = ["host_places"]

_log = logging.getLogger("inlink.crawl")


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
    for host, value in _values(file, setting):
        if host is None:
            ignored += 1
        elif value > 0:
            best[host] = max(value, best.get(host, 0.0))
    if not best:
        raise InputError(
            f"{setting}: {source} gives no host a value above 0: name a host or URL in each line"
        )
    if ignored:
        lines_ignored = "1 line that names" if ignored == 1 else f"{ignored:,} lines that name"
        _log.warning("%s: %s: ignored %s no host", setting, source, lines_ignored)
    return HostPlaces.of(best)


def _values(file: Location, setting: str) -> Iterator[tuple[str | None, float]]:
    """Yield hosts and their values; None for a name that is no host."""
    if isinstance(file, Path) and (file.is_dir() or _is_exported(file)):
        yield from _of_list(rank_list(file, "pagerank"), setting)
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


def _is_exported(file: Path) -> bool:
    start = head(file, 18)
    return start[:4] == b"PAR1" or start.startswith(b"# inlink ranking ")


def _of_list(ranks: RankList, setting: str) -> Iterator[tuple[str | None, float]]:
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

"""Compare two rankings: who moved, who is new or gone, and how far they agree."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np

from inlink.base.arrays import Int64Array
from inlink.base.declare import Parameter
from inlink.base.extras import load
from inlink.base.table import html_table
from inlink.errors import ParameterError
from inlink.rank.agreement import common_at, kendall, rank_biased_overlap, spearman
from inlink.rank.ranking import Ranking
from inlink.sources.ranklists import RankList, rank_list

if TYPE_CHECKING:
    import pandas
    import pyarrow

DEPTHS = (10, 100, 1000)
"""The depths at which the overlap is counted."""

_COUNT = Parameter(name="k", kind=int, at_least=0)
_WITHIN = Parameter(name="within", kind=int, at_least=0)
_PERSISTENCE = Parameter(name="persistence", kind=float, above=0, below=1)


class Overlap(NamedTuple):
    """The common nodes among the best of two lists.

    Attributes
    ----------
    depth : int
        The number of best nodes of each list that were compared.
    common : int
        The number of nodes among the best of both lists.
    whole : bool
        Whether both lists hold all places up to this depth. A list that was cut by another measure may lack some; then
        the best that it does hold were compared.
    """

    depth: int
    common: int
    whole: bool


class Change(NamedTuple):
    """A node in two rankings.

    Attributes
    ----------
    name : str or int
        Its name; its number if there are no names.
    place_a, place_b : int or None
        Its places, from 1; None where it is not listed.
    value_a, value_b : float or None
        Its values; None where it is not listed.
    told : str
        ``""`` if both list it; else the reason: ``"new"``, ``"gone"``, ``"below place 1,000"`` if the other list ends
        there, or ``"not listed"`` if the other list was cut by another measure.
    """

    name: str | int
    place_a: int | None
    place_b: int | None
    value_a: float | None
    value_b: float | None
    told: str


@dataclass(frozen=True, eq=False)
class Diff:
    """Two rankings side by side; made by :func:`diff`.

    Attributes
    ----------
    a, b : RankList
        The two lists: labels, values, places.
    common : int
        The number of nodes that both list.
    overlaps : tuple of Overlap
        The numbers of common nodes among the first 10, 100 and 1,000 of both; only depths that both lists reach.
    kendall, spearman : float or None
        τ-b and ρ of the values of the nodes that both list; None if that is fewer than two nodes, or all are equal.
    rank_biased_overlap : float
        RBO_EXT of the whole lists, equal values in the order of names.
    persistence : float
        The p of the rank-biased overlap.
    """

    a: RankList
    b: RankList
    common: int
    overlaps: tuple[Overlap, ...]
    kendall: float | None
    spearman: float | None
    rank_biased_overlap: float
    persistence: float
    _in_a: Int64Array
    _in_b: Int64Array

    def common_places(self) -> tuple[Int64Array, Int64Array]:
        """Return the places in A and in B of the nodes that both list, int64[common] each."""
        return self.a.places[self._in_a], self.b.places[self._in_b]

    def movers(
        self,
        k: int = 10,
        *,
        by: Literal["place", "value"] = "place",
        within: int = 1000,
        risen: bool = False,
    ) -> list[Change]:
        """Return the nodes that moved the most, of those that both lists have.

        Parameters
        ----------
        k : int
            The largest number of nodes, at least 0.
        by : {"place", "value"}
            The measure of a move: the ratio of the two places, so that from 1 to 10 is as far as from 100 to 1,000; or
            the difference of the two values.
        within : int
            Only nodes that are among this number of first nodes of either list; 0: all.
        risen : bool
            Only nodes whose place in B is better than in A; with ``by="value"``, whose value in B is larger.

        Returns
        -------
        list of Change
            The largest moves first; equal ones by their place in B.

        Raises
        ------
        inlink.errors.ParameterError
            If an argument is out of its range.
        """
        _COUNT.check(k, "`k`")
        _WITHIN.check(within, "`within`")
        if by not in ("place", "value"):
            raise ParameterError(f"`by` must be 'place' or 'value'; got {by!r}")
        before, after = self.common_places()
        if not isinstance(risen, bool):
            raise ParameterError(f"`risen` must be True or False; got {risen!r}")
        by_value = self.b.values[self._in_b] - self.a.values[self._in_a]
        moved = np.log(before / after) if by == "place" else by_value
        moved = np.maximum(moved, 0.0) if risen else np.abs(moved)
        near = np.minimum(self.a.positions[self._in_a], self.b.positions[self._in_b])
        candidates = np.flatnonzero((moved > 0) & ((near <= within) if within else True))
        order = np.lexsort((after[candidates], -moved[candidates]))[:k]
        return [
            self._change(int(self._in_a[row]), int(self._in_b[row])) for row in candidates[order].tolist()
        ]

    def new(self, k: int = 10) -> list[Change]:
        """Return the best k nodes that B lists and A does not, best first.

        Raises
        ------
        inlink.errors.ParameterError
            If ``k`` is below 0.
        """
        return [self._change(None, node) for node in _best_without(self.b, self._in_b, k)]

    def gone(self, k: int = 10) -> list[Change]:
        """Return the best k nodes that A lists and B does not, best first.

        Raises
        ------
        inlink.errors.ParameterError
            If ``k`` is below 0.
        """
        return [self._change(node, None) for node in _best_without(self.a, self._in_a, k)]

    def _change(self, a: int | None, b: int | None) -> Change:
        label = self.a.label(a) if a is not None else self.b.label(cast(int, b))
        absence = self.a.absence("new") if a is None else self.b.absence("gone") if b is None else ""
        pairs = [
            (None, None) if node is None else (int(ranks.places[node]), float(ranks.values[node]))
            for ranks, node in ((self.a, a), (self.b, b))
        ]
        (place_a, value_a), (place_b, value_b) = pairs
        return Change(label, place_a, place_b, value_a, value_b, absence)

    def to_arrow(self) -> "pyarrow.Table":
        """An Arrow table of all nodes of both lists: name, place_a, place_b, value_a, value_b; null where not listed.

        The nodes of A come first, in A's order, then those that only B has.
        """
        pa = load("pyarrow", "arrow", "an Arrow table")
        only_b = np.setdiff1d(np.arange(len(self.b)), self._in_b)
        there = np.full(len(self.a), -1, np.int64)
        there[self._in_a] = self._in_b
        in_a = np.concatenate([np.arange(len(self.a)), np.full(len(only_b), -1)])
        in_b = np.concatenate([there, only_b])

        def column(values: Any, rows: Int64Array) -> "pyarrow.Array":
            padded = np.append(values, values.dtype.type(0))
            return pa.array(padded[rows], mask=rows < 0)

        return pa.table(
            {
                "name": pa.array(
                    [self.a.label(int(node)) for node in range(len(self.a))]
                    + [self.b.label(int(node)) for node in only_b]
                ),
                "place_a": column(self.a.places, in_a),
                "place_b": column(self.b.places, in_b),
                "value_a": column(self.a.values, in_a),
                "value_b": column(self.b.values, in_b),
            }
        )

    def to_pandas(self) -> "pandas.DataFrame":
        """The table of :meth:`to_arrow` as a pandas data frame.

        Raises
        ------
        inlink.errors.MissingExtraError
            If pandas is not installed.
        """
        load("pandas", None, "to_pandas()")
        return self.to_arrow().to_pandas()

    def facts(self) -> list[str]:
        """Return lines of text: the two lists, what they have in common, and how far they agree."""
        # Up to a depth the lists are whole, and beyond it they are not.
        overlaps = [
            f"{f'at {depth:,}' if whole else f'of the {depth:,} best listed'}: {common:,}"
            for depth, common, whole in self.overlaps
        ]
        agreement = [f"Kendall's τ {_number(self.kendall)}", f"Spearman's ρ {_number(self.spearman)}"]
        rbo = f"rank-biased overlap {self.rank_biased_overlap:.3f} (p = {self.persistence:g})"
        only = len(self.a) - self.common, len(self.b) - self.common
        return [
            f"A: {self.a.told()}",
            f"B: {self.b.told()}",
            f"in common: {self.common:,}; only in A: {only[0]:,}; only in B: {only[1]:,}",
            *([f"overlap {'; '.join(overlaps)}"] if overlaps else []),
            f"{', '.join(agreement)} of the {self.common:,} in common; {rbo}",
        ]

    def __repr__(self) -> str:
        return f"<inlink diff of {self.a.name} and {self.b.name}: {self.common:,} in common, τ {_number(self.kendall)}>"

    def _repr_html_(self) -> str:
        heads = ["place in A", "place in B", "value in A", "value in B", "node"]
        rows = [
            ["" if cell is None else cell for cell in (*change[1:5], str(change.name))]
            for change in self.movers(10)
        ]
        return html_table(repr(self)[1:-1], heads, rows)


def diff(
    a: str | os.PathLike[str] | Ranking,
    b: str | os.PathLike[str] | Ranking,
    *,
    by: str | tuple[str, str] = "pagerank",
    persistence: float = 0.9,
) -> Diff:
    """Compare two rankings of nodes with the same names.

    Parameters
    ----------
    a, b : path-like or Ranking
        The folder of a graph or of a crawl that holds rankings, the folder of one ranking, a ranking that inlink
        exported as CSV, TSV or Parquet, Common Crawl's ranks of hosts or domains, or lines of a name, a tab and a
        value. Text files may be compressed. Nodes without names are matched by number. Of a URL, or a release of Common
        Crawl, the first 1,000,000 lines are read: see :func:`inlink.sources.releases.rank_file`.
    by : str or (str, str)
        The name of the stored ranking, or the column of Common Crawl's ranks (``"pagerank"`` or ``"harmonic"``); two
        names if A and B differ in it.
    persistence : float
        The p of the rank-biased overlap, between 0 and 1. With .9, the first ten places have 86% of the weight.

    Returns
    -------
    Diff
        The two lists, their correlations and their overlap.

    Raises
    ------
    inlink.errors.InputError
        If a file cannot be read.
    inlink.errors.FolderError
        If a folder holds no such ranking.
    inlink.errors.ParameterError
        If only one of the lists has names, or an argument is out of its range.

    Examples
    --------
    >>> import inlink
    >>> one = inlink.pagerank(inlink.Graph.from_arcs([("a", "b"), ("b", "c"), ("c", "b")]))
    >>> other = inlink.pagerank(inlink.Graph.from_arcs([("a", "c"), ("b", "c"), ("c", "d")]))
    >>> changes = inlink.diff(one, other)
    >>> changes.common, [change.name for change in changes.new(1)]
    (3, ['d'])
    """
    _PERSISTENCE.check(persistence, "`persistence`")
    both = (by, by) if isinstance(by, str) else tuple(by)
    if len(both) != 2 or not all(isinstance(name, str) for name in both):
        raise ParameterError(f"`by` must be one name or two; got {by!r}")
    first_list, second_list = rank_list(a, both[0]), rank_list(b, both[1])
    in_a, in_b = _matched(first_list, second_list)
    first, second = first_list.positions[in_a], second_list.positions[in_b]
    shorter = min(len(first_list), len(second_list))
    depths = [depth for depth in DEPTHS if depth <= shorter]
    common = common_at(first, second, max(depths, default=0))
    whole = min(first_list.whole, second_list.whole)
    x, y = first_list.values[in_a], second_list.values[in_b]
    several = len(in_a) > 1
    return Diff(
        first_list,
        second_list,
        len(in_a),
        tuple(Overlap(depth, int(common[depth]), depth <= whole) for depth in depths),
        kendall(x, y) if several else None,
        spearman(x, y) if several else None,
        rank_biased_overlap(first, second, (len(first_list), len(second_list)), persistence),
        persistence,
        in_a,
        in_b,
    )


def _matched(first: RankList, second: RankList) -> tuple[Int64Array, Int64Array]:
    """Return the places in both lists' arrays of the nodes that both have."""
    if (first.names is None) != (second.names is None):
        lacking = first if first.names is None else second
        raise ParameterError(
            f"{lacking.name} has no names, and the other ranking does, so nodes cannot be matched: give both rankings "
            "names, or neither"
        )
    if first.names is None or second.names is None:
        number = np.arange(min(len(first), len(second)), dtype=np.int64)
        return number, number
    there = second.names.find_all(first.names.column())
    common = np.flatnonzero(there >= 0)
    return common, there[common]


def _best_without(ranks: RankList, listed: Int64Array, k: int) -> list[int]:
    _COUNT.check(k, "`k`")
    nodes = np.setdiff1d(np.arange(len(ranks)), listed)
    best: list[int] = nodes[np.argsort(ranks.positions[nodes], kind="stable")[:k]].tolist()
    return best


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}".replace("-", "−")

"""Sections of a host: the pages that a crawl reached from each seed, and how fetches are divided between them.

Language editions, versions and the books of a library are sections of one host with few links between them. The pages
of a section that was crawled have many known linkers, and those of other sections have one or none. By rank alone, a
crawl would finish one section before it begins the next, and seeds would wait for half of the crawl.

**Sections.** Each seed begins a section. Every other page belongs to the section of the page that made it known.

**Divisors.** For each host with several seeds, Q measures whether links stay within sections. It uses the links between
the host's sections to pages that were known before the visit. A link to a new page tells nothing, because the page
joins the section of the visit. Let a_i be the share of these links of visit i that lead into its own section, b_i(g)
the share that leads into section g, n(g) the number of visits of section g, and n the number of all visits. Then

    Q = max(0, (Σ_i a_i/n − e) / (1 − e)),     e = Σ_g n(g)/n · Σ_i b_i(g)/n,                                    (1)

is 1 if all links stay within their sections, and near 0 if links do not depend on sections. The priorities of the pages
of section g are divided by

    (1 + pages crawled of g)^(Q⁴/4).                                                                             (2)

The exponent is rounded to a multiple of 1/32. So it is 0 for small Q, and roots and products give the power. If e is 1,
for example because only one section was begun, Q cannot be computed. Then it is 1 if m (below) is at least ½, else 0.

**Turns.** If a host has several seeds, those that wait get turns, the oldest first. The number m measures whether
visits of seeds discover pages of their host. It is 1 at first. Each visit of a seed, except the first, changes it to
0.6 m + 0.4 d/(d + k), where the visit has d links to new pages of the host and k links to known pages. While m is at
least ½, seeds get up to 3 of 10 of the first hundred fetches and 1 of 8 later ones; otherwise 1 of 64 fetches. So every
seed is fetched in the end.

docs/decisions/default-order.md has the measurements.
"""

from collections.abc import Callable

import numpy as np

from inlink.base.arrays import BoolArray, Float32Array, Float64Array, Int64Array, UInt32Array, UInt64Array
from inlink.store.blocks import LinkRows
from inlink.store.format import BY_SHARD, DISCOVERED, NO_PAGE, Head
from inlink.store.frames import fields_at
from inlink.store.pages import Pages

TURN = -1.0
"""The value of a seed whose turn it is, in place of its divisor minus 1."""

VISITS = 10_000
"""Q is computed from the links of this number of latest visits."""

SEEDS = 16
"""m is computed from this number of latest visits of seeds. Earlier visits would change it by less than 0.001."""


class SeedSections:
    """Divides a crawl into the sections of its seeds, and computes their divisors and turns.

    Parameters
    ----------
    pages : Pages
        The pages of the crawl. Their URLs need not be loaded.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        # The seed of each page's section.
        self._seed_of: UInt32Array = np.empty(0, np.uint32)
        # The seeds, and the number of each seed's host.
        self._seeds: UInt32Array = np.empty(0, np.uint32)
        self._hosts: Int64Array = np.empty(0, np.int64)
        self._numbers: dict[bytes, int] = {}
        self._makers = 0
        # The first page that another shard has discovered.
        self._outside: int | None = None

    def update(
        self, crawled: UInt32Array, places: UInt64Array, between: Callable[[], None] | None = None
    ) -> Float32Array | None:
        """Take in the pages that became known since the last call, and return the values of all pages.

        Parameters
        ----------
        crawled, places : uint32[k], uint64[k]
            Each crawled page once, and the place of its latest visit in the log. The visits must be sound:
            :meth:`.live.GrowingPageRank.update` checks them.
        between : callable or None
            Called without arguments every few milliseconds of work.

        Returns
        -------
        float32[pages] or None
            For each page the divisor (2) minus 1, or :data:`TURN` for a seed whose turn it is. None if all values are
            0. Values depend on the events only, not on earlier calls.
        """
        self._take_in()
        count, seeds = len(self._seed_of), self._seeds
        shared = np.bincount(self._hosts)[self._hosts] > 1
        if not shared.any():
            return None
        order = np.argsort(places, kind="stable")
        crawled, places = crawled[order], places[order]
        is_crawled = np.zeros(count, np.bool_)
        is_crawled[crawled] = True
        reveal = self._reveal(crawled, places)
        section = np.zeros(count, np.int64)
        section[seeds] = np.arange(len(seeds))
        taken = np.bincount(section[self._seed_of[crawled]], minlength=len(seeds))
        quality = self._quality(section, shared, crawled, places, reveal, between)
        divisors = np.where(shared, _power(1 + taken.astype(np.float64), quality[self._hosts]) - 1, 0.0)
        values: Float32Array = divisors.astype(np.float32)[section[self._seed_of]]
        values[self._turns(is_crawled, shared, reveal)] = TURN
        return values if values.any() else None

    def _take_in(self) -> None:
        """Find the sections of new pages."""
        pages, old = self._pages, len(self._seed_of)
        count, makers = pages.num_pages, slice(self._makers, pages.tally.makers)
        self._makers = pages.tally.makers
        firsts, places = pages.makers[makers], pages.maker_places[makers]
        log = pages.frames.at(places)
        sizes = np.append(firsts[1:], np.uint32(count)) - firsts
        linkers = np.repeat(fields_at(log, places, Head, "page"), sizes)
        fresh = np.arange(old, count, dtype=np.uint32)
        # All pages from other shards are one section, that of the first of them, and it shares no host.
        events = fields_at(log, places, Head, "page") == NO_PAGE
        outside = fields_at(log, places, Head, "flags") & BY_SHARD > 0
        from_outside = fresh[np.repeat(outside, sizes)]
        first = from_outside[: self._outside is None]
        if len(first):
            self._outside = int(first[0])
        linkers[from_outside - old] = NO_PAGE if self._outside is None else self._outside
        linkers[first - old] = NO_PAGE
        is_seed = linkers == NO_PAGE
        # A page was made known by an earlier page, so each round takes twice as many steps towards its seed.
        self._seed_of = np.concatenate([self._seed_of, np.where(is_seed, fresh, linkers)])
        while True:
            nearer = self._seed_of[self._seed_of[old:]]
            if np.array_equal(nearer, self._seed_of[old:]):
                break
            self._seed_of[old:] = nearer
        if is_seed.any():
            begun = places[outside & np.isin(firsts, first)].tolist()
            hosts = [
                self._numbers.setdefault(host, len(self._numbers))
                for place in places[events & (~outside | np.isin(firsts, first))].tolist()
                for host in ([b""] if place in begun else self._hosts_at(place))
            ]
            self._seeds = np.concatenate([self._seeds, fresh[is_seed]])
            self._hosts = np.concatenate([self._hosts, np.array(hosts, np.int64)])

    def _hosts_at(self, place: int) -> list[bytes]:
        """The host, with its port, of each page that an event made known."""
        at = np.array([place], np.uint64)
        log = self._pages.frames.at(at)
        begin, size = (int(fields_at(log, at, Head, name)[0]) for name in ("text_place", "text_size"))
        text = self._pages.table.text(begin, begin + size).tobytes()
        return [url.split(b"/", 3)[2] for url in text.split(b"\n")[:-1]]

    def _reveal(self, crawled: UInt32Array, places: UInt64Array) -> bool:
        """Return whether m is at least ½. The pages are in the order of their visits."""
        log, m = self._pages.frames.at(places), 1.0
        rows = np.flatnonzero(self._seed_of[crawled] == crawled)[1:][-SEEDS:]
        at = places[rows]
        news, lengths = fields_at(log, at, Head, "new"), fields_at(log, at, Head, "listed")
        for row, new, length in zip(rows.tolist(), news.tolist(), lengths.tolist(), strict=True):
            seed = int(np.searchsorted(self._seeds, crawled[row]))
            own = sum(self._numbers.get(host) == self._hosts[seed] for host in self._hosts_at(places[row]))
            if (all_links := own + length - new) > 0:
                m += 0.4 * (own / all_links - m)
        return m >= 0.5

    def _quality(
        self,
        section: Int64Array,
        shared: BoolArray,
        crawled: UInt32Array,
        places: UInt64Array,
        reveal: bool,
        between: Callable[[], None] | None,
    ) -> Float64Array:
        """Q of (1) for each host of seeds, float64[hosts]."""
        pages, hosts, num_hosts = self._pages, self._hosts, len(self._numbers)
        own = section[self._seed_of[crawled]]
        own = own[rows := np.flatnonzero(shared[own])[-VISITS:]]
        crawled, places = crawled[rows], places[rows]
        makers = slice(0, pages.tally.makers)
        # The pages below this number were known before the visit.
        known = np.append(pages.makers[makers], np.uint32(len(self._seed_of)))[
            np.searchsorted(pages.maker_places[makers], places)
        ]
        visits, same, led, at = np.zeros(len(shared)), np.zeros(len(shared)), np.zeros(len(shared)), 0
        for block, counts, links in LinkRows(pages.frames.log, crawled, places, None, between):
            row = np.repeat(np.arange(len(block)), counts)
            begins, at = own[at : at + len(block)], at + len(block)
            ends = section[self._seed_of[links]]
            counted = (links < known[at - len(block) : at][row]) & (links != block[row])
            counted &= hosts[ends] == hosts[begins[row]]
            row, ends = row[counted], ends[counted]
            each = np.bincount(row, minlength=len(block))
            visits += np.bincount(begins[each > 0], minlength=len(shared))
            weights = 1.0 / each[row]
            led += np.bincount(ends, weights, len(shared))
            inside = ends == begins[row]
            same += np.bincount(ends[inside], weights[inside], len(shared))
        n = np.maximum(np.bincount(hosts, visits, num_hosts), 1)
        chance = np.bincount(hosts, visits * led, num_hosts) / n**2
        stay = np.bincount(hosts, same, num_hosts) / n
        # A host whose visits have no such links has a chance of 0.
        unknown = (chance == 0) | (chance > 0.999)
        quality = np.clip((stay - chance) / np.where(unknown, 1.0, 1.0 - chance), 0.0, 1.0)
        return np.where(unknown, float(reveal), quality)

    def _turns(self, is_crawled: BoolArray, shared: BoolArray, reveal: bool) -> UInt32Array:
        """The seeds whose turn it is."""
        pages, seeds, count = self._pages, self._seeds[shared], int(is_crawled.sum())
        waits = ~is_crawled[seeds] & (pages.states[seeds] == DISCOVERED) & (pages.errors[seeds] == 0)
        most = min(3 * count // 10, (140 + count) // 8) if reveal else count // 64
        had = int(is_crawled[seeds].sum()) - 1
        due: UInt32Array = seeds[waits][: max(most - had, 0)]
        return due


def _power(values: Float64Array, quality: Float64Array) -> Float64Array:
    """Return values^(quality⁴/4), with the exponent rounded to a multiple of 1/32."""
    # Roots, unlike powers, are rounded in the same way on all machines.
    root = values
    for _ in range(5):
        root = np.sqrt(root)
    times, product = np.rint(8 * (quality * quality) * (quality * quality)), np.ones(len(values))
    for k in range(8):
        product = np.where(k < times, product * root, product)
    return product

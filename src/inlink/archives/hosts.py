"""Collect arcs between hosts or domains from pages with their links."""

import re
from typing import NamedTuple

import numpy as np

from inlink.archives.scanner import ScannedPage
from inlink.archives.warc import RawPage
from inlink.base.arrays import Int64Array, UInt32Array
from inlink.base.damage import Tally
from inlink.base.strings import Strings
from inlink.graph.batches import ArcBatch, Level
from inlink.urls import Base, canonical, domain_of, host_of, refusal, reverse_host
from inlink.urls.canonical import NOT_HTTP

__all__ = ["HostArcs", "HostNumbers"]

NO_HOST = "link without a host for a host graph (IP address, single label, or unknown top-level domain)"
NO_DOMAIN = "link to a host without a registered domain"
PAGE_ELSEWHERE = "page, with its links, without a host for a host graph"

# The largest number of origins that are kept from one batch to the next.
MAX_HOSTS = 2_000_000

# A shorter URL stays within MAX_LENGTH in canonical form on any host, since a character takes at most 12 bytes there.
_SHORT = 140
_SURROGATE = re.compile("[\ud800-\udfff]")


class HostNumbers:
    """Numbers of the hosts (or domains) of URLs.

    The origin of a URL is the text between its second and third slash. An origin is parsed once: only 7% of the links
    of a WAT file lead to a new one, so most links cost a split and a look-up. A negative number means that the URL
    has no node; the reason is ``reasons[-1 - number]``.
    """

    def __init__(self, level: Level, strip_www: bool, private: bool) -> None:
        self.level, self.strip_www, self.private = level, strip_www, private
        self.forget()

    def forget(self) -> None:
        """Forget all hosts and their numbers."""
        self.names: list[str] = []
        self.reasons: list[str] = []
        self.by_origin: dict[str, int] = {}
        self._by_name: dict[str, int] = {}

    def of_origin(self, origin: str) -> int | None:
        """Return the number of URLs with this origin; None if the whole URL must be parsed."""
        if not origin or min(origin) <= " ":
            return None
        self.by_origin[origin] = code = self.of_url(f"http://{origin}/")
        return code

    def of_url(self, url: str, base: Base | None = None) -> int:
        """Return the number of a URL, parsed as a whole."""
        form = base.canonical(url) if base else canonical(url)
        if form is None:
            return self.refuse(refusal(url, base.url if base else None) or "")
        return self.of_form(form)

    def of_form(self, form: str) -> int:
        """Return the number of a canonical URL."""
        origin = form.split("/", 3)[2]
        code = self.by_origin.get(origin)
        if code is None:
            host = host_of(form, strip_www=self.strip_www)
            name = None if host is None else reverse_host(host)
            if name is not None and self.level == "domain":
                name = domain_of(name, private=self.private)
            if name is None:
                code = self.refuse(NO_HOST if host is None else NO_DOMAIN)
            else:
                code = self._by_name.setdefault(name, len(self.names))
                if code == len(self.names):
                    self.names.append(name)
            self.by_origin[origin] = code
        return code

    def refuse(self, reason: str) -> int:
        """Return the negative number of a reason why a URL has no node."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return -1 - self.reasons.index(reason)


class _Origins:
    """The origins of links as the kernel knows them, with the numbers of their hosts."""

    def __init__(self, room: int = 1 << 12) -> None:
        self.slots = np.zeros(4 * room, np.uint32)
        self.arena = np.zeros(32 * room, np.uint8)
        self.origins = np.zeros(2 * room + 2, np.uint64)
        self.known = np.zeros(room, np.int64)
        # The number of origins that have the number of a host.
        self.count = 0

    def grow(self) -> None:
        """Make room for twice as many origins."""
        from inlink.archives.kernels.links import fill_slots

        old = self.arena, self.origins, self.known
        room, count = 2 * len(self.known), self.count
        self.__init__(room)  # type: ignore[misc]
        self.count = count
        self.arena[: len(old[0])], self.known[: len(old[2])] = old[0], old[2]
        self.origins[: len(old[1]) - 2], self.origins[-2:] = old[1][:-2], old[1][-2:]
        fill_slots(self.slots, self.origins)

    def look_up(self, hosts: HostNumbers) -> None:
        """Look up the hosts of new origins."""
        for number in range(self.count, int(self.origins[-2])):
            place, size = divmod(int(self.origins[2 * number + 1]), 256)
            origin = self.arena[place : place + size].tobytes().decode()
            code = hosts.by_origin.get(origin)
            if code is None:
                code = hosts.of_origin(origin)
            # The kernel knows no origins with white space.
            assert code is not None
            self.known[number] = code
        self.count = int(self.origins[-2])


class _Arrays(NamedTuple):
    """The kernels' output for a page."""

    codes: Int64Array
    odd: UInt32Array


class HostArcs:
    """Collects the arcs between the hosts or domains of a batch of pages.

    Parameters
    ----------
    name : str
        The archive's name, for the tally.
    tally : Tally
        Counts the links, and the pages and links that are left out.
    hosts : HostNumbers
        The numbers of hosts.
    self_loops : bool
        Keep the arcs from a node to itself.
    repeats : bool
        Collect an arc as often as the archive has it. False collects it once in a batch.
    """

    def __init__(self, name: str, tally: Tally, hosts: HostNumbers, self_loops: bool, repeats: bool) -> None:
        self._name, self._tally, self._hosts = name, tally, hosts
        self._self_loops, self._repeats = self_loops, repeats
        self._origins: _Origins | None = None
        self._stamps, self._stamp = np.zeros(0, np.uint32), 0
        self._arrays = _Arrays(np.zeros(0, np.int64), np.zeros(0, np.uint32))
        self._here = np.zeros(4, np.int64)
        self._begin()

    def _begin(self) -> None:
        # For each page, the number of its host, the number of its targets, and the targets.
        self._sources: list[int] = []
        self._lengths: list[int] = []
        self._targets: list[Int64Array] = []
        self.size = 0

    def add(self, page: RawPage | ScannedPage, url: str) -> None:
        """Add a page, whose canonical URL is `url`."""
        own = self._hosts.of_form(url)
        if own < 0:
            self._tally.skip(self._name, page.offset, PAGE_ELSEWHERE)
            return
        targets = self._targets_of(page, url, own)
        self._sources.append(own)
        self._lengths.append(len(targets))
        self._targets.append(targets)
        self.size += max(len(targets), 1)

    def _targets_of(self, page: RawPage | ScannedPage, url: str, own: int) -> Int64Array:
        """Return the numbers of the hosts that a page links to, int64[k], and count the links that have none."""
        if isinstance(page, ScannedPage):
            return self._scanned(page, url, own)
        return self._decoded(page, url, own)

    def _decoded(self, page: RawPage, url: str, own: int) -> Int64Array:
        targets = np.array(_codes(page, url, own, self._hosts), np.int64)
        refused = targets < 0
        if refused.any():
            self._refuse(targets[refused], page.offset)
            targets = targets[~refused]
        self._tally.links += len(targets)
        return targets if self._self_loops else targets[targets != own]

    def _scanned(self, page: ScannedPage, url: str, own: int) -> Int64Array:
        from inlink.archives.kernels import links as kernels

        codes = self._scan(page, url, own)
        if len(self._hosts.names) > len(self._stamps):
            self._stamps = np.append(self._stamps, np.zeros(len(self._hosts.names), np.uint32))
        self._stamp += 1
        assert self._origins is not None
        kept, refused = kernels.keep_hosts(
            codes,
            page.number,
            self._origins.known,
            own,
            self._self_loops,
            self._repeats,
            self._stamps,
            self._stamp,
        )
        if refused:
            self._refuse(codes[kept : kept + refused], page.offset)
        self._tally.links += page.number - refused
        return codes[:kept].copy()

    def _scan(self, page: ScannedPage, url: str, own: int) -> Int64Array:
        """Return the codes of a page's links, int64[≥ number], as :func:`keep_hosts` of the kernels takes them."""
        from inlink.archives.kernels import links as kernels

        hosts = self._hosts
        base, here, reach = None, own, len(url)
        if page.base is not None:
            base = Base(url, page.base)
            here, reach = hosts.of_form(base.url), max(reach, len(base.url))
        if page.number > len(self._arrays.codes):
            size = 2 * page.number
            self._arrays = _Arrays(np.zeros(size, np.int64), np.zeros(size, np.uint32))
        if self._origins is None:
            self._origins = _Origins()
        origins, (codes, odd), numbers = self._origins, self._arrays, self._here
        numbers[0], numbers[1], numbers[2], numbers[3] = here, own, hosts.refuse(NOT_HTTP), reach
        while True:
            odds = kernels.host_codes(
                page.text,
                page.links,
                page.number,
                numbers,
                page.entities,
                origins.slots,
                origins.origins,
                origins.arena,
                origins.known,
                codes,
                odd,
            )
            if odds != kernels.FULL:
                break
            origins.grow()
        origins.look_up(hosts)
        if odds:
            base, itself = base or Base(url), None
            for number in odd[:odds].tolist():
                href, header = page.href(number)
                if header and page.base is not None:
                    itself = itself or Base(url)
                codes[number] = hosts.of_url(href, itself if header and itself else base)
        return codes

    def _refuse(self, codes: Int64Array, offset: int) -> None:
        """Count links that have no host."""
        refused: dict[str, int] = {}
        for code in codes.tolist():
            reason = self._hosts.reasons[-1 - code]
            refused[reason] = refused.get(reason, 0) + 1
        self._tally.skip_all(self._name, offset, refused)

    def take(self) -> ArcBatch:
        """Return the batch, and begin another one."""
        pages = np.array(self._sources, np.uint32)
        tails = np.repeat(pages, np.array(self._lengths, np.int64))
        heads = np.concatenate(self._targets).astype(np.uint32)
        if not self._repeats:
            pairs = np.sort(tails.astype(np.uint64) << np.uint64(32) | heads)
            pairs = pairs[np.diff(pairs, prepend=~pairs[:1]) != 0]
            tails, heads = (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)
        used = np.zeros(len(self._hosts.names), np.bool_)
        used[pages] = used[heads] = True
        places = np.cumsum(used, dtype=np.uint32) - np.uint32(1)
        names = Strings.of(self._hosts.names[k] for k in np.flatnonzero(used).tolist())
        crawled = np.unique(places[pages])
        self._begin()
        if len(self._hosts.by_origin) > MAX_HOSTS:
            self._hosts.forget()
            self._origins, self._stamps = None, np.zeros(0, np.uint32)
        return ArcBatch(places[tails], places[heads], names, crawled=crawled)


def _codes(raw: RawPage, url: str, page: int, hosts: HostNumbers) -> list[int]:
    """Return the number of each link's host. It is negative where there is none, as in :class:`Hosts`."""
    base: Base | None = None
    # The host of relative links.
    here = page
    if raw.base is not None:
        base = Base(url, raw.base)
        here = hosts.of_form(base.url)
    codes: list[int] = []
    add, code_of = codes.append, hosts.by_origin.get
    for href in raw.links:
        code: int | None = None
        if len(href) < _SHORT and (href.isascii() or not _SURROGATE.search(href)):
            if href.startswith(("http://", "https://")):
                origin = href.split("/", 3)[2]
                code = code_of(origin)
                if code is None:
                    code = hosts.of_origin(origin)
            elif href[:1] == "/" and href[1:2].isalnum():
                code = here
        if code is None:
            base = base or Base(url)
            code = hosts.of_url(href, base)
        add(code)
    if raw.header_links:
        itself = Base(url)
        codes += [hosts.of_url(href, itself) for href in raw.header_links]
    return codes

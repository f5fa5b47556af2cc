"""Crawls at random, under a clock that tests own: what is done to a crawl, and all that it is, as data."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from hypothesis import strategies as st

from inlink.base.arrays import Float32Array, UInt32Array
from inlink.crawl.adopted import ranking_options
from inlink.crawl.crawl import Crawl
from inlink.frontier.frontier import Frontier
from inlink.frontier.queue import Queue
from inlink.frontier.settings import Politeness
from inlink.reranking.process import Ranker
from inlink.store.pages import Pages
from inlink.store.reader import known_pages

EAGER = Politeness(delay=0.0, in_flight=1000)
"""Nothing is waited for, so that the policy alone decides."""

STATIC = ("best-first", "breadth-first", "depth-first", "hosts-in-turns", "random", "first-come")
"""Policies whose keys are a function of the pages' columns."""

EXACT = re.compile(r"[a-z0-9.:\[\]/?=&_-]+")


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def host_of(url: str) -> str:
    """The host of a URL by Python's own parser, brackets kept."""
    parts = urlsplit(url)
    name = parts.hostname or ""
    return f"[{name}]" if ":" in name else name


HOSTS = st.sampled_from(
    ["a.com", "b.com", "www.a.com", "c.org", "x.y.co.uk", "localhost", "10.0.0.1", "[::1]", "[2001:db8::7]"]
)
PORTS = st.sampled_from(["", "", "", ":81", ":8080", ":65535"])
PATHS = st.text(alphabet="ab/-", max_size=6).map(lambda text: "/" + text.replace("//", "/").lstrip("/"))
URLS = st.builds(
    "{}://{}{}{}{}".format,
    st.sampled_from(["http", "https"]),
    HOSTS,
    PORTS,
    PATHS,
    st.sampled_from(["", "?", "?q=1", "?q=http://b.com/"]),
)
"""Canonical URLs, few enough to meet again."""

SCORES = st.floats(0, 1, width=32)
LINKS = st.lists(st.one_of(URLS, st.tuples(URLS, SCORES)), max_size=8)

OPERATIONS = st.one_of(
    st.tuples(st.just("seed"), st.lists(st.one_of(URLS, st.tuples(URLS, SCORES)), max_size=4)),
    st.tuples(st.just("next"), st.integers(0, 4)),
    st.tuples(
        st.just("crawled"),
        st.integers(0, 5),
        LINKS,
        st.fixed_dictionaries(
            {},
            optional={
                "score": SCORES,
                "content_hash": st.binary(max_size=3),
                "status": st.sampled_from([200, 206, 304]),
                "redirected_to": URLS,
                "canonical_link": URLS,
            },
        ),
    ),
    st.tuples(st.just("crawled by URL"), st.integers(0, 30), LINKS),
    st.tuples(
        st.just("failed"),
        st.integers(0, 5),
        st.sampled_from([None, 404, 403, 429, 500, 503]),
        st.sampled_from([None, None, "5", "soon"]),
    ),
    st.tuples(st.just("release"), st.integers(0, 5)),
    st.tuples(st.just("reload")),
    st.tuples(st.just("wait"), st.sampled_from([0.5, 30.0, 700.0])),
)

SEEDED: list[tuple[Any, ...]] = [("seed", ["http://a.com/", "http://b.com/", ("http://c.org/", 0.5)])]


def histories(size: int = 25, without: tuple[str, ...] = ()) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Changes of a crawl, made one after the other."""
    return st.lists(OPERATIONS.filter(lambda one: one[0] not in without), max_size=size).map(
        lambda some: SEEDED + some
    )


def perform(crawl: Crawl, clock: Clock, leases: list[Any], done: tuple[Any, ...]) -> None:
    """One operation; answers go to one of the leases in hand, if there are any."""
    what, *given = done
    if what == "seed":
        crawl.seed(given[0])
    elif what == "next":
        leases += crawl.next(given[0])
    elif what == "wait":
        clock.now += given[0]
    elif what == "reload":
        crawl.reload("failed", "gone", "excluded")
    elif what == "crawled by URL":
        page = given[0] % crawl.view.info().pages
        crawl.crawled(crawl.view.path(page, 1).rows[0].url, given[1])
    elif leases:
        lease = leases[given[0] % len(leases)]
        if given[0] < 5:  # else it will be answered once more
            leases.remove(lease)
        if what == "crawled":
            crawl.crawled(lease, given[1], **given[2])
        elif what == "failed":
            crawl.failed(lease, "it broke", status=given[1], retry_after=given[2])
        else:
            crawl.release(lease)


def columns(pages: Any) -> dict[str, Any]:
    """All that is folded from the log, one list a column."""
    n = pages.num_pages
    known = range(n)
    return {
        "pages": [pages.page(page) for page in known],
        "hosts": [pages.table.host(int(host)) for host in pages.hosts[:n]],
        "host numbers": pages.hosts[:n].tolist(),
        "states": pages.states[:n].tolist(),
        "errors": pages.errors[:n].tolist(),
        "depths": pages.depths[:n].tolist(),
        "canonicals": dict(sorted(pages.canonicals.items())),
        "scores": pages.scores[:n].tolist(),
        "visit places": [pages.visit_place(page) for page in known],
        "visits": [pages.visit(page) for page in known],
        "links": [pages.links(page).tolist() for page in known],
        "survivors": [pages.survivor(page) for page in known],
        "rows": sorted(zip(pages.crawled()[0].tolist(), pages.crawled()[1].tolist(), strict=True)),
        "given": dict(pages.given),
        "found": pages.table.find(pages.urls(list(known))).tolist(),
        "counts": (n, pages.tally.hosts, pages.tally.crawled, pages.tally.events, pages.tally.url_bytes),
        "by state": pages.state_counts.tolist(),
        "losses": pages.losses[:n].tolist(),
    }


def frontier_in(crawl: Crawl) -> Frontier:
    """The frontier in the memory of a crawl: the only place where tests of the order reach behind its doors."""
    return crawl._frontier


def publish_ranking(crawl: Crawl) -> None:
    """Rank all events so far, as the ranking process does, without adopting the ranking."""
    frontier = frontier_in(crawl)
    options = ranking_options(frontier.settings, frontier.policy)
    ranker = Ranker(crawl.folder, options, threading.Event())
    ranker.rank()
    ranker.pages.close()


def waiting(frontier: Frontier) -> dict[int, float]:
    """The pages in the queue and their keys."""
    queue = frontier.queue
    found = {page: queue.key(page) for page in range(frontier.pages.num_pages) if page in queue}
    assert len(found) == len(queue)
    return found


def out(frontier: Frontier) -> dict[int, tuple[int, float]]:
    """The pages that are leased: number of the lease, and its end."""
    found = {}
    for page in range(frontier.pages.num_pages):
        lease = frontier.leases.current(page)
        if lease is not None:
            found[page] = (lease.number, lease.expires)
    return found


def memory(crawl: Crawl) -> dict[str, Any]:
    """All that a crawl has folded in memory from its log, one list a column."""
    return columns(crawl._pages)


def plans(crawl: Crawl) -> dict[int, float]:
    """The pages that wait for a time, and the times."""
    return dict(crawl._frontier.plans)


def stored_pages(crawl: Crawl) -> Pages:
    """The pages in a crawl's folder, as another process reads them now."""
    return known_pages(crawl.folder)


def whole(crawl: Crawl) -> dict[str, Any]:
    """All that a crawl is now, after what was due has happened."""
    crawl.next(0)
    front = crawl._frontier
    slots = range(front.queue.num_slots)
    now = crawl._journal.tick()
    return {
        **memory(crawl),
        "waiting": waiting(front),
        "leases": out(front),
        "next lease": front.leases.next_number,
        "host failures": dict(front.hosts.failures),
        "factors": [float(front.queue.rows[slot]["factor"]) for slot in slots],
        "flying": [int(front.queue.rows[slot]["flying"]) for slot in slots],
        "hosts due in": [max(float(front.queue.rows[slot]["due"]) - now, 0.0) for slot in slots],
        "due in": crawl.due_in(),
    }


def differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The differences between two crawls."""
    return {name: (one[name], other[name]) for name in one if one[name] != other[name]}


def opened(folder: Path, clock: Callable[[], float], **settings: Any) -> Crawl:
    """A crawl that asks hosts eagerly unless told otherwise."""
    return Crawl(folder, clock=clock, **{"politeness": EAGER, **settings})


# -- the queue, called in one place ---------------------------------------------------------------------------------


def make_queue(
    hosts: list[int], politeness: Politeness, domains: list[int] | None = None, **given: Any
) -> Queue:
    """A queue over pages 0, 1, … of these hosts; ``domains`` is each host's."""
    queue = Queue(np.array(hosts + [0], np.uint32), politeness, **given)
    count = max(hosts, default=0) + 1
    domains = [0] * count if domains is None else domains
    if queue.by_domain:
        queue.waiting.slot_of[:count] = domains
        count = max(domains) + 1
        queue.rows["domain"][:count] = np.arange(count)
    else:
        queue.rows["domain"][:count] = domains
    queue.add_domains(0, max(domains) + 1)
    queue.add_slots(count)
    return queue


def blocks(keys: list[float], size: int) -> Iterator[tuple[UInt32Array, Float32Array]]:
    """The pages 0, 1, … and their keys, ``size`` at a time. Pages whose key is below 0 do not wait and are left out."""
    for begin in range(0, len(keys), size):
        fresh = np.array(keys[begin : begin + size], np.float32)
        waits = np.flatnonzero(fresh >= 0)
        yield (waits + begin).astype(np.uint32), fresh[waits]


def put(queue: Queue, pages: list[int], keys: list[float], now: float) -> None:
    """Place pages with keys, whatever is known of them otherwise."""
    n = len(queue.waiting.hosts)
    nothing = np.zeros(n, np.uint8)
    queue.place(
        np.array(pages, np.uint32),
        np.array(keys, np.float32),
        nothing,
        nothing,
        nothing,
        now,
        all_of_them=True,
    )

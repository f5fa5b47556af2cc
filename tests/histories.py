"""Histories of a crawl for the tests of what must not change it: all that spiders and an operator may do."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from checkpoints import keep
from crawlstrategies import HOSTS, OPERATIONS, URLS, Clock, frontier_in, perform
from inlink.crawl.crawl import Crawl
from inlink.errors import UnknownNodeError
from inlink.frontier.revisit import ByValue

PAGES = st.integers(0, 30)
MORE = st.one_of(
    OPERATIONS,
    st.tuples(st.just("failed by URL"), PAGES, st.sampled_from([None, 404, 403, 500])),
    st.tuples(st.just("exclude"), st.integers(0, 5)),
    st.tuples(st.just("exclude by URL"), PAGES),
    st.tuples(st.just("redirected"), st.integers(0, 5), URLS, st.booleans()),
    st.tuples(st.just("sitemap"), PAGES, st.sampled_from([0.0, 20.0, 1e5])),
    st.tuples(st.just("set_due"), PAGES, st.sampled_from([0.0, 10.0, 300.0, np.inf])),
    st.tuples(st.just("set_host"), HOSTS, st.integers(0, 3)),
    st.tuples(st.just("exclude_host"), HOSTS),
    st.tuples(st.just("deny"), st.sampled_from([None, "host:b.com", "host:a.com"])),
    st.tuples(st.just("release_all")),
    st.tuples(st.just("rerank")),
    st.tuples(st.just("checkpoint")),
)
"""All that is done to a crawl: answers with a lease and without, losses, an operator's changes, and checkpoints."""

BY_VALUE = ByValue(budget=40_000.0, initial=60.0, shortest=5.0, longest=400.0)

POLITE = st.fixed_dictionaries(
    {},
    optional={
        "in_flight": st.sampled_from([1, 2]),
        "host_budget": st.sampled_from([2, 5]),
        "domain_budget": st.sampled_from([3, 6]),
        "by": st.just("domain"),
    },
)


def do(crawl: Crawl, clock: Clock, leases: list[Any], done: tuple[Any, ...]) -> None:
    what, *told = done
    pages = frontier_in(crawl).pages
    if what in ("failed by URL", "exclude by URL", "sitemap", "set_due"):
        url = pages.url(told[0] % pages.num_pages)
    if what == "failed by URL":
        crawl.failed(url, "it broke", status=told[1])
    elif what == "exclude by URL":
        crawl.exclude(url, "robots.txt")
    elif what == "sitemap":
        crawl.sitemap([(url, clock.now - told[1], 0.5)])
    elif what == "set_due":
        crawl.set_due(url, told[1])
    elif what in ("exclude", "redirected") and leases:
        lease = leases.pop(told[0] % len(leases))
        if what == "exclude":
            crawl.exclude(lease, "robots.txt")
        elif (new := crawl.redirected(lease, told[1], again=told[2])) is not None:
            leases.append(new)
    elif what in ("set_host", "exclude_host"):
        try:
            if what == "set_host":
                crawl.set_host(told[0], budget=told[1])
            else:
                crawl.exclude_host(told[0])
        except UnknownNodeError:
            pass
    elif what == "deny":
        crawl.change_settings(rules=None if told[0] is None else {"deny": [told[0]]})
    elif what == "checkpoint":
        keep(crawl)
    elif what == "release_all":
        crawl.release_all()
    elif what == "rerank":
        crawl.rerank(wait=True)
    elif what not in ("exclude", "redirected"):
        perform(crawl, clock, leases, done)

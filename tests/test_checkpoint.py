"""A crawl that opens from a checkpoint is the crawl that is folded from its log, now and later."""

import logging
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from crawlstrategies import Clock, differences, histories, opened, perform, whole
from hypothesis import given, settings
from hypothesis import strategies as st

from inlink.crawl import checkpointing
from inlink.crawl.checkpointing import save
from inlink.crawl.crawl import Crawl, look
from inlink.frontier.frontier import Frontier
from inlink.frontier.policies import POLICIES
from inlink.store.checkpoint import CHECKPOINT




def keep(crawl: Crawl) -> None:
    save(crawl._frontier, crawl._core.journal.log)


def without(folder: Path, copy: Path) -> Path:
    """A copy of a crawl's folder whose events must all be folded."""
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(CHECKPOINT, "lock"))
    return copy


def order(frontier: Frontier, now: float) -> list[tuple[int, float, float]]:
    return frontier.queue.order(1000, now)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(POLICIES)), st.booleans(), histories(12), histories(12), histories(6), st.booleans()
)
def test_a_crawl_from_a_checkpoint_is_the_crawl_from_the_log(policy, scores, before, between, after, by_domain):
    chosen = {"policy": policy, "use_scores": scores and policy in ("pagerank", "host-diverse", "hits")}
    if by_domain:
        chosen["politeness"] = {"by": "domain", "delay": 1.0, "domain_budget": 6}
    with tempfile.TemporaryDirectory() as room:
        folder, clock, leases = Path(room) / "crawl", Clock(), []
        with opened(folder, clock, **chosen) as crawl:
            for done in before:
                perform(crawl, clock, leases, done)
            keep(crawl)
            for done in between:
                perform(crawl, clock, leases, done)
        copy = without(folder, Path(room) / "folded")
        clock.now += 1.0
        one, other = look(folder, clock), look(copy, clock)
        assert one.pages.checkpoint is not None
        assert other.pages.checkpoint is None
        assert order(one, clock.now) == order(other, clock.now)
        with Crawl(folder, clock=clock) as one, Crawl(copy, clock=clock) as other:
            assert one._pages.checkpoint is not None
            assert not differences(whole(one), whole(other))
            mine, theirs, start = list(leases), list(leases), clock.now
            for done in after:
                perform(one, clock, mine, done)
            one_now, now = whole(one), clock.now
            clock.now = start
            for done in after:
                perform(other, clock, theirs, done)
            assert clock.now == now
            assert not differences(one_now, whole(other))
            assert mine == theirs

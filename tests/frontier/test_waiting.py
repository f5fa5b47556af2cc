"""The trees that find the best page of a slot, against lists that are sorted anew at each step."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlstrategies import EAGER, blocks, make_queue, put
from inlink.frontier import queue as queue_module
from inlink.frontier.kernels.waiting import FAN, LEAF
from inlink.frontier.queue import Queue

DEEP = LEAF * FAN * FAN
"""Number of pages above which the tree of a slot has three levels."""


@dataclass
class Twin:
    """The waiting pages and their keys."""

    hosts: list[int]
    newest: bool
    keys: dict[int, float] = field(default_factory=dict)

    def best(self, host: int, most: int) -> list[int]:
        pages = [page for page in self.keys if self.hosts[page] == host]
        return sorted(pages, key=self.rank)[:most]

    def rank(self, page: int) -> tuple[float, int]:
        return -self.keys[page], -page if self.newest else page


def check(queue: Queue, twin: Twin) -> None:
    counts = Counter(twin.hosts[page] for page in twin.keys)
    assert len(queue) == len(twin.keys)
    for host in range(max(twin.hosts) + 1):
        assert queue.rows[host]["count"] == counts[host]
        for most in (1, 2, 40):
            assert queue.best(host, most).tolist() == twin.best(host, most)


MANY = st.one_of(st.integers(1, 4 * LEAF), st.integers(1, 2 * LEAF * FAN), st.integers(DEEP, DEEP + 2 * LEAF))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["place", "place few", "place best", "remove", "take", "re-key", "re-key some"]),
        st.integers(0, 2**32 - 1),
    ),
    max_size=8,
)


@settings(max_examples=40)
@given(MANY, st.integers(1, 3), st.booleans(), st.integers(1, 6), st.integers(0, 99), STEPS)
@example(
    DEEP + 1, 1, False, 2, 0, [("place", 1), ("take", 2), ("re-key some", 3), ("place few", 4), ("re-key", 5)]
)
@example(DEEP + 1, 2, True, 6, 1, [("place", 1), ("remove", 2), ("place best", 3), ("take", 4), ("place", 5)])
def test_best_pages_are_those_of_a_sorted_list(count, num_hosts, newest, num_keys, seed, steps):
    """Pages join in any order, in lists of different lengths, with few different keys."""
    random = np.random.default_rng(seed)
    hosts = np.minimum(random.integers(0, 20, count), num_hosts - 1).tolist()
    queue, twin = make_queue(hosts, EAGER, newest=newest), Twin(hosts, newest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue_module, "_AT_A_TIME", 5 * LEAF)
        for what, step_seed in steps:
            random = np.random.default_rng(step_seed)
            fresh = (random.integers(0, num_keys, count) / 8).tolist()
            do(queue, twin, what, random, fresh)
            check(queue, twin)


@settings(max_examples=25)
@given(MANY, st.integers(1, 3), st.booleans(), st.integers(1, 6), st.integers(0, 99), STEPS)
@example(DEEP + 1, 1, False, 4, 0, [("place few", 1), ("remove", 2), ("re-key", 3)])
@example(DEEP + 2 * LEAF, 2, True, 6, 1, [("take", 1), ("place", 2)])
def test_lists_that_are_made_at_once_serve_as_those_that_grew(
    count, num_hosts, newest, num_keys, seed, steps
):
    """A queue is filled from many pages, of which some do not wait, and then changes as any queue."""
    random = np.random.default_rng(seed)
    hosts = np.minimum(random.integers(0, 20, count), num_hosts - 1).tolist()
    keys = (random.integers(-num_keys, num_keys, count) / 8).tolist()
    queue, twin = make_queue(hosts, EAGER, newest=newest), Twin(hosts, newest)
    queue.fill(count, blocks(keys, 100), 0.0)
    twin.keys = {page: key for page, key in enumerate(keys) if key >= 0}
    check(queue, twin)
    for what, step_seed in steps:
        random = np.random.default_rng(step_seed)
        do(queue, twin, what, random, (random.integers(0, num_keys, count) / 8).tolist())
        check(queue, twin)


def do(queue: Queue, twin: Twin, what: str, random: np.random.Generator, fresh: list[float]) -> None:
    """One step of both; ``fresh`` has a new key for each page."""
    count, waiting = len(twin.hosts), sorted(twin.keys)
    if what.startswith("place"):
        pages = random.permutation(count)[: 3 if what == "place few" else count].tolist()
        if what == "place best":
            pages = twin.best(0, 5)
        put(queue, pages, [fresh[page] for page in pages], 0.0)
        twin.keys |= {page: fresh[page] for page in pages}
    elif what == "remove":
        for page in random.permutation(count)[: max(count // 2, 1)].tolist():
            queue.remove(page, 0.0)
            twin.keys.pop(page, None)
    elif what == "take":
        taken = queue.take(int(random.integers(0, 40)), 0.0)[0].tolist()
        assert taken == sorted(waiting, key=twin.rank)[: len(taken)]
        for page in taken:
            del twin.keys[page]
    else:
        queue.begin_rekeying()
        while queue.rekeying:
            pages = queue.next_to_rekey().tolist()
            queue.rekey(np.array([fresh[page] for page in pages], np.float32), 0.0)
            twin.keys |= {page: fresh[page] for page in pages}
            if what == "re-key some":
                break


def test_a_list_grows_while_it_gets_new_keys():
    """A host's pages get new keys in steps. Pages that join between two steps have new keys already."""
    hosts = [0] * (40 * LEAF)
    queue, twin = make_queue(hosts, EAGER), Twin(hosts, newest=False)
    known, fresh = 10 * LEAF + 3, [(page * 7 % 101) / 101 for page in range(len(hosts))]
    put(queue, list(range(known)), [0.5] * known, 0.0)
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue_module, "_AT_A_TIME", 2 * LEAF)
        queue.begin_rekeying()
        while queue.rekeying:
            pages = queue.next_to_rekey().tolist()
            seen += pages
            queue.rekey(np.array([fresh[page] for page in pages], np.float32), 0.0)
            if known + 19 < len(hosts):
                put(queue, list(range(known, known + 19)), fresh[known : known + 19], 0.0)
                known += 19
    assert sorted(seen) == list(range(10 * LEAF + 3))
    twin.keys = {page: float(np.float32(fresh[page])) for page in range(known)}
    check(queue, twin)
    assert queue.take(known, 0.0)[0].tolist() == twin.best(0, known)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40 * LEAF)), min_size=1, max_size=12))
@example([(host, 4 * LEAF + 1) for host in range(4)] * 3)
def test_trees_share_one_array_and_leave_no_gaps(runs):
    """Trees that grow do not overlap. With the places that they left, they take at most a third of a node a page."""
    hosts = [host for host, length in runs for _ in range(length)]
    queue = make_queue(hosts, EAGER)
    put(queue, list(range(len(hosts))), [0.5] * len(hosts), 0.0)
    end = int(queue.waiting.free[0])
    assert end <= 2 + len(hosts) / 3
    taken = np.zeros(end, np.int64)
    for row in queue.rows[: queue.num_slots]:
        room = int(row["room"])
        assert room * LEAF >= row["pages"] or room == 0
        begin, level = int(row["begin"]), room
        while level:
            taken[begin : begin + level] += 1
            begin, level = begin + level, -(-level // FAN) if level > FAN else 0
    assert taken.max() <= 1


def test_pages_that_do_not_wait_join_the_lists_too():
    """Pages become known in one order and wait in another. A page that nobody asked about is not in the queue."""
    hosts = [page % 2 for page in range(100)]
    queue = make_queue(hosts, EAGER)
    assert 7 not in queue
    queue.remove(7, 0.0)
    put(queue, [60], [0.25], 0.0)
    assert [page for page in range(100) if page in queue] == [60]
    assert np.flatnonzero(queue.contain(np.arange(100, dtype=np.uint32))).tolist() == [60]
    put(queue, [3, 99, 4], [0.5, 0.5, 0.75], 0.0)
    assert queue.best(0, 9).tolist() == [4, 60]
    assert queue.best(1, 9).tolist() == [3, 99]
    assert queue.best(1, 0).tolist() == []
    assert queue.take(9, 0.0)[0].tolist() == [4, 3, 99, 60]

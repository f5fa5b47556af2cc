"""The queue against a list that is searched from end to end at each step."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlrates import cooled, due_under
from crawlstrategies import blocks, make_queue, put
from inlink.base.settings import NO_LIMIT
from inlink.frontier import queue as queue_module
from inlink.frontier.kernels.waiting import LEAF
from inlink.frontier.settings import Politeness

PAGES = 24
EASY = Politeness(delay=0.0, in_flight=1000)


@dataclass
class Host:
    due: float = 0.0
    flying: int = 0
    taken: int = 0
    turn: int = 0
    budget: float = math.inf
    failures: int = 0


@dataclass
class Twin:
    """The queue as its description has it: no heap anywhere."""

    slots: list[int]  # of each page
    domains: list[int]  # of each slot
    polite: Politeness
    newest: bool = False
    sharing: str = "none"
    first_leases: int = NO_LIMIT
    keys: dict[int, float] = field(default_factory=dict)
    turns: int = 0

    def __post_init__(self):
        budget = self.polite.host_budget
        self.hosts = [Host(budget=math.inf if budget is None else budget) for _ in self.domains]
        most = self.polite.domain_budget
        self.left = dict.fromkeys(self.domains, math.inf if most is None else most)

    def open(self, slot: int) -> bool:
        host = self.hosts[slot]
        most = min(self.polite.in_flight, max(self.first_leases, host.taken - host.flying))
        return host.flying < most and host.budget > 0 and self.left[self.domains[slot]] > 0

    def rank(self, page: int) -> tuple[float, ...]:
        """The lowest comes next."""
        host, age = self.hosts[self.slots[page]], -page if self.newest else page
        key = self.keys[page]
        if self.sharing == "turns":
            best = min((q for q in self.keys if self.slots[q] == self.slots[page]), key=self.within)
            return (host.turn, -best if self.newest else best, *self.within(page))
        key *= 1 / (1 + host.failures)
        if self.sharing == "shared":
            key /= 1 + host.taken
        return (-key, age)

    def within(self, page: int) -> tuple[float, int]:
        return (-self.keys[page], -page if self.newest else page)

    def take(self, count: int, now: float) -> list[int]:
        found = []
        while len(found) < count:
            firsts = {}  # a slot offers only its own best page, which a shared key may not change
            for page in self.keys:
                slot = self.slots[page]
                if self.open(slot) and self.hosts[slot].due <= now:
                    firsts[slot] = min(firsts.get(slot, page), page, key=self.within)
            if not firsts:
                break
            page = min(firsts.values(), key=self.rank)
            host = self.hosts[self.slots[page]]
            self.turns += 1
            host.turn = self.turns
            host.flying += 1
            host.taken += 1
            host.budget -= 1
            self.left[self.domains[self.slots[page]]] -= 1
            host.due = max(host.due, now + float(np.float32(self.polite.delay)))
            del self.keys[page]
            found.append(page)
        return found

    def due_in(self, now: float) -> float | None:
        dues = [self.hosts[self.slots[page]].due for page in self.keys if self.open(self.slots[page])]
        return max(min(dues) - now, 0.0) if dues else None


KEYS = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0])
STEPS = st.one_of(
    st.tuples(st.just("place"), st.lists(st.tuples(st.integers(0, PAGES - 1), KEYS), max_size=12)),
    st.tuples(st.just("remove"), st.integers(0, PAGES - 1)),
    st.tuples(st.just("take"), st.integers(0, 6)),
    st.tuples(st.just("pass"), st.sampled_from([0.5, 1.0, 3.0])),
    st.tuples(st.just("land"), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.integers(0, 9), st.sampled_from([0.5, 4.0])),
    st.tuples(st.just("fail"), st.integers(0, 9), st.sampled_from([0, 1, 3])),  # exact in float32
    st.tuples(st.just("re-key"), st.lists(KEYS, min_size=PAGES, max_size=PAGES)),
    st.tuples(st.just("re-key some"), st.lists(KEYS, min_size=PAGES, max_size=PAGES), st.booleans()),
)
POLITE = st.builds(
    Politeness,
    by=st.sampled_from(["host", "domain"]),
    delay=st.sampled_from([0.0, 1.0, 2.5]),
    in_flight=st.sampled_from([1, 2, 1000]),
    host_budget=st.sampled_from([None, None, 0, 2, 5]),
    domain_budget=st.sampled_from([None, None, 3]),
)


def rekey(queue, keys, now):
    """Give all waiting pages new keys, as :meth:`Frontier.rekey_some` does call after call."""
    queue.begin_rekeying()
    seen = []
    while queue.rekeying:
        seen += rekey_some(queue, keys, now)
    return seen


def rekey_some(queue, keys, now):
    """One step of re-keying: the pages that have new keys."""
    pages = queue.next_to_rekey()
    queue.rekey(np.array([keys[page] for page in pages.tolist()], np.float32), now)
    return pages.tolist()


@settings(max_examples=300)
@given(
    st.lists(st.integers(0, 5), min_size=PAGES, max_size=PAGES),
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
    POLITE,
    st.booleans(),
    st.sampled_from(["none", "shared", "turns"]),
    st.sampled_from([1, 2, 3, NO_LIMIT]),
    st.lists(STEPS, max_size=30),
    st.sampled_from([LEAF, 1 << 14]),
)
@example(
    [0] * PAGES,
    [0] * 6,
    EASY,
    True,
    "none",
    NO_LIMIT,
    [("place", [(k, 0.5) for k in range(20)]), ("take", 6)],
    LEAF,
)
def test_queue_is_a_sorted_list(hosts, domains, polite, newest, sharing, first, steps, at_a_time):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue_module, "_AT_A_TIME", at_a_time)
        compare_with_twin(hosts, domains, polite, newest, sharing, first, steps)


def compare_with_twin(hosts, domains, polite, newest, sharing, first, steps):
    queue = make_queue([*hosts, 5], polite, domains, newest=newest, sharing=sharing, first_leases=first)
    if queue.by_domain:  # a slot is a domain
        slots, of_slots = [domains[host] for host in hosts], list(range(max(domains) + 1))
    else:
        slots, of_slots = hosts, domains
    twin = Twin(slots, of_slots, polite, newest, sharing, first)
    count, now, flying = len(of_slots), 0.0, []
    for what, *given_ in steps:
        if what == "place":
            pages = dict(given_[0])
            put(queue, list(pages), list(pages.values()), now)
            twin.keys.update(pages)
        elif what == "remove":
            queue.remove(given_[0], now)
            twin.keys.pop(given_[0], None)
        elif what == "take":
            pages, of = queue.take(given_[0], now)
            assert pages.tolist() == twin.take(given_[0], now)
            assert of.tolist() == [slots[page] for page in pages.tolist()]
            flying += of.tolist()
        elif what == "pass":
            now += given_[0]
        elif what == "land" and flying:
            slot = flying.pop(given_[0] % len(flying))
            queue.end_fetch(slot, now)
            twin.hosts[slot].flying -= 1
        elif what == "wait":
            slot = given_[0] % count
            queue.wait(slot, now + given_[1], now)
            twin.hosts[slot].due = max(twin.hosts[slot].due, now + given_[1])
        elif what == "fail":
            slot = given_[0] % count
            queue.rows[slot]["factor"] = 1 / (1 + given_[1])
            queue.settle(slot, now)
            twin.hosts[slot].failures = given_[1]
        elif what == "re-key":
            assert sorted(rekey(queue, given_[0], now)) == sorted(twin.keys)
            twin.keys = {page: given_[0][page] for page in twin.keys}
        elif what == "re-key some":
            if given_[1]:
                queue.begin_rekeying()
            if queue.rekeying:
                twin.keys |= {page: given_[0][page] for page in rekey_some(queue, given_[0], now)}
        assert len(queue) == len(twin.keys)
        assert [page in queue for page in range(PAGES)] == [page in twin.keys for page in range(PAGES)]
        assert all(queue.key(page) == key for page, key in twin.keys.items())
    queue.take(0, now)
    if (
        twin.polite.domain_budget is None
    ):  # a domain that is used up is found out only when it would be its turn
        assert queue.due_in(now) == twin.due_in(now)
    # to the end: what is due by time alone comes, in the twin's order, exactly when it was said to
    for _ in range(3 * PAGES):
        assert queue.take(PAGES, now)[0].tolist() == twin.take(PAGES, now)
        wait = queue.due_in(now)
        if twin.polite.domain_budget is None:
            assert wait == twin.due_in(now)
        if wait is None:
            break
        assert wait > 0
        assert not len(queue.take(1, now + wait * 0.999)[0])
        now += wait
    assert wait is None
    assert twin.take(PAGES, now + 1e9) == []


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 40), KEYS), min_size=1, max_size=300),
    st.booleans(),
    st.sampled_from(["none", "shared", "turns"]),
    st.randoms(use_true_random=False),
)
def test_filling_is_placing_one_by_one(pages, newest, sharing, random):
    hosts, keys = [host for host, _ in pages], [key for _, key in pages]
    at_once = make_queue(hosts, EASY, newest=newest, sharing=sharing)
    at_once.fill(len(pages), blocks(keys, 7), 0.0)
    together = make_queue(hosts, EASY, newest=newest, sharing=sharing)
    put(together, list(range(len(pages))), keys, 0.0)
    order = list(range(len(pages)))
    random.shuffle(order)
    one_by_one = make_queue(hosts, EASY, newest=newest, sharing=sharing)
    for page in order:
        put(one_by_one, [page], [keys[page]], 0.0)
    assert len(at_once) == len(together) == len(one_by_one) == len(pages)
    taken = at_once.take(len(pages), 0.0)[0].tolist()
    assert sorted(taken) == sorted(order)
    assert together.take(len(pages), 0.0)[0].tolist() == taken
    assert one_by_one.take(len(pages), 0.0)[0].tolist() == taken
    assert len(at_once) == 0


def test_pages_that_come_back_take_no_new_memory():
    hosts = [k % 3 for k in range(600)]
    queue, ends = make_queue(hosts, EASY), []
    for turn in range(5):
        put(queue, list(range(600)), [((k * 7 + turn) % 101) / 101 for k in range(600)], 0.0)
        assert len(queue) == 600
        pages = queue.take(600, 0.0)[0].tolist()
        assert pages == sorted(range(600), key=lambda k: (-np.float32(((k * 7 + turn) % 101) / 101), k))
        ends.append(int(queue.waiting.free[0]))
    assert len(set(ends)) == 1


@pytest.mark.parametrize("hosts", [[0] * 70_000 + [1], [0] + [1] * 70_000])
def test_a_slot_with_more_pages_than_one_step_is_rekeyed(hosts):
    n = 70_000
    queue = make_queue(hosts, EASY)
    queue.fill(n + 1, blocks([0.0] * (n + 1), n), 0.0)
    seen = rekey(queue, {page: page / (n + 1) for page in range(n + 1)}, 0.0)
    assert sorted(seen) == list(range(n + 1))
    assert queue.take(3, 0.0)[0].tolist() == [n, n - 1, n - 2]


def test_only_what_waits_is_placed():
    """Leased, crawled and failed pages are passed over, and such as wait for a second try unless they are in."""
    queue = make_queue([0] * 6, EASY)
    states = np.array([0, 1, 2, 0, 0, 0, 0], np.uint8)
    errors = np.array([0, 0, 0, 1, 1, 0, 0], np.uint8)
    traps = np.zeros(7, np.uint8)
    traps[5] = 1
    put(queue, [4], [0.25], 0.0)
    queue.place(np.arange(6, dtype=np.uint32), np.full(6, 0.5, np.float32), traps, states, errors, 0.0)
    assert [page for page in range(6) if page in queue] == [0, 4, 5]
    assert [queue.key(page) for page in (0, 4)] == [0.5, 0.5]
    assert queue.key(5) == pytest.approx(0.4)  # a trap's penalty


# -- crawl rates ----------------------------------------------------------------------------------------------------


def crawl_for(queue, seconds, step, land=True):
    """Take all that may be taken, every ``step`` seconds; the times at which each slot was asked."""
    asked: dict[int, list[float]] = {}
    now = 0.0
    while now < seconds:
        for slot in queue.take(1000, now)[1].tolist():
            asked.setdefault(slot, []).append(now)
            if land:
                queue.end_fetch(slot, now)
        now += step
    return asked


@pytest.mark.parametrize(("hard", "window"), [(0.5, 10.0), (2.0, 60.0), (0.02, 60.0), (5.0, 1.0)])
def test_never_above_the_hard_rate_in_the_long_run(hard, window):
    n = 4000
    queue = make_queue([0] * n, Politeness(delay=0.0, in_flight=10_000, hard_rate=hard, rate_window=window))
    put(queue, list(range(n)), [1.0] * n, 0.0)
    seconds = min(600 / hard, 4000.0)
    times = crawl_for(queue, seconds, min(0.25, 0.1 / hard))[0]
    burst = hard * window + 2
    assert len(times) <= hard * seconds + burst
    assert len(times) >= 0.9 * hard * seconds  # and it does not fall silent
    temperature, last = 0.0, 0.0
    for time in times:  # at no crawl is the temperature's rate above the limit
        temperature = cooled(temperature, time - last, window)
        assert due_under(temperature, hard, window) < 1e-3
        temperature, last = temperature + 1, time


def test_soft_rate_lets_others_go_first_but_leaves_nobody_idle():
    """Host 0 has all the best pages: above the soft rate it waits for the others, and goes on where they end."""
    hosts = [0] * 50 + [1] * 3
    polite = Politeness(delay=0.0, in_flight=1000, soft_rate=0.5, hard_rate=0.0, rate_window=2.0)
    queue = make_queue(hosts, polite)
    put(queue, list(range(53)), [1.0] * 50 + [0.1] * 3, 0.0)
    slots = queue.take(53, 0.0)[1].tolist()
    assert sorted(slots) == sorted(hosts)  # nobody is idle: all come, now
    assert set(slots[:4]) == {0, 1}  # host 1 comes as soon as host 0 is warm, long before its keys say so
    assert queue.due_in(0.0) is None


def test_between_soft_and_hard_the_hard_one_holds():
    polite = Politeness(delay=0.0, in_flight=1000, soft_rate=0.1, hard_rate=1.0, rate_window=5.0)
    queue = make_queue([0] * 500, polite)
    put(queue, list(range(500)), [1.0] * 500, 0.0)
    times = crawl_for(queue, 200.0, 0.1)[0]
    assert 180 <= len(times) <= 200 + 7


def test_never_idle_while_a_host_is_due():
    """A host that must not be asked (Retry-After) does not hold back one that is merely above the soft rate."""
    polite = Politeness(delay=0.0, in_flight=1000, soft_rate=0.01, hard_rate=10.0, rate_window=10.0)
    queue = make_queue([0] * 5 + [1] * 5, polite)
    put(queue, list(range(10)), [1.0] * 10, 0.0)
    assert sorted(queue.take(4, 0.0)[1].tolist()) == [0, 0, 1, 1]
    queue.wait(0, 50.0, 0.0)
    assert queue.due_in(1.0) == 0.0
    assert 1 in queue.take(1, 1.0)[1].tolist()


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 3), min_size=20, max_size=40),
    st.sampled_from([0.0, 0.05, 0.5]),
    st.sampled_from([0.0, 1.0, 4.0]),
    st.lists(
        st.one_of(
            st.tuples(st.just("take"), st.integers(1, 5)),
            st.tuples(st.just("wait"), st.integers(0, 3), st.sampled_from([2.0, 40.0])),
        ),
        max_size=12,
    ),
)
def test_due_in_agrees_with_what_take_gives(hosts, soft, hard, steps):
    """Under all limits at once: nothing comes before it is said to, and something then, until all is gone."""
    polite = Politeness(delay=0.5, in_flight=1000, soft_rate=soft, hard_rate=hard, rate_window=5.0)
    queue = make_queue([*hosts, 3], polite)
    put(queue, list(range(len(hosts))), [0.5] * len(hosts), 0.0)
    now, left = 0.0, set(range(len(hosts)))
    for what, *given_ in steps:
        if what == "take":
            left -= set(queue.take(given_[0], now)[0].tolist())
        else:
            queue.wait(given_[0], now + given_[1], now)
        now += 0.125
    for _ in range(1000):
        wait = queue.due_in(now)
        if wait is None:
            break
        if wait > 0:
            assert not len(queue.take(1, now + wait * 0.99)[0])
        now += wait
        found = queue.take(1, now)[0].tolist()
        assert found
        left -= set(found)
    assert not left


# -- limits ---------------------------------------------------------------------------------------------------------


def test_in_flight_and_budgets():
    polite = Politeness(delay=0.0, in_flight=2, host_budget=3, domain_budget=5)
    queue = make_queue([0] * 9 + [1] * 9 + [2] * 9, polite, domains=[0, 0, 1])
    put(queue, list(range(27)), [1.0] * 27, 0.0)
    assert queue.take(27, 0.0)[1].tolist() == [0, 0, 1, 1, 2, 2]
    assert queue.due_in(0.0) is None  # time alone changes nothing: an answer must come
    for slot in (0, 0, 1, 1, 2, 2):
        queue.end_fetch(slot, 0.0)
    # a host may give one more, and the domain of hosts 0 and 1 only one together
    assert queue.take(27, 0.0)[1].tolist() == [0, 2]
    for slot in (0, 2):
        queue.end_fetch(slot, 0.0)
    assert queue.take(27, 1e9)[1].tolist() == []
    assert queue.due_in(1e9) is None
    assert len(queue) == 27 - 8


def test_a_slot_has_few_open_leases_until_leases_have_ended():
    queue = make_queue([0] * 99 + [1] * 4, Politeness(delay=0.0, in_flight=6), first_leases=2)
    put(queue, list(range(103)), [1.0] * 99 + [0.5] * 4, 0.0)
    open_leases = []
    for _ in range(9):
        taken = queue.take(99, 0.0)[1].tolist()
        assert taken[taken.count(0) :] == [1] * taken.count(1)
        open_leases.append(int(queue.rows[0]["flying"]))
        assert open_leases[-1] == queue.most_leases(queue.rows[0])
        assert queue.free_in(0, 0.0) is None
        assert not queue.are_open()[0]
        queue.end_fetch(0, 0.0)
    assert open_leases == [2, 2, 2, 3, 4, 5, 6, 6, 6]
    assert queue.rows[1]["flying"] == 2


def test_without_limits_budgets_do_not_run_out():
    queue = make_queue([0, 0], EASY)
    put(queue, [0, 1], [1.0, 1.0], 0.0)
    queue.take(2, 0.0)
    assert queue.rows[0]["budget"] == NO_LIMIT
    assert queue.slots.domain_budgets[0] == NO_LIMIT


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 5), KEYS), min_size=1, max_size=40),
    st.booleans(),
    st.sampled_from(["none", "shared", "turns"]),
    st.integers(0, 10),
    st.integers(1, 45),
    st.sampled_from([{}, {"host_budget": 2}, {"domain_budget": 3}, {"host_budget": 2, "domain_budget": 3}]),
)
@example([(0, 1.0), (1, 2.0), (2, 0.5)], False, "none", 0, 3, {"domain_budget": 1})
def test_the_order_told_is_the_order_taken(pages, newest, sharing, before, count, budgets):
    """Each domain has two hosts."""
    polite = Politeness(delay=0.0, in_flight=1000, **budgets)
    hosts = [host for host, _ in pages]
    domains = [host // 2 for host in range(max(hosts) + 1)]
    queue = make_queue(hosts, polite, domains, newest=newest, sharing=sharing)
    put(queue, list(range(len(pages))), [key for _, key in pages], 0.0)
    queue.take(before, 0.0)
    told = [page for page, _, _ in queue.order(count, 0.0)]
    assert told == queue.take(count, 0.0)[0].tolist()

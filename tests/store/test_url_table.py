"""The table of URLs, against a dict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlstrategies import (
    URLS,
    Clock,
    host_of,
    opened,
    stored_pages,
)
from inlink.errors import StoreError, UnknownNodeError
from inlink.store import urls as urls_module
from inlink.store.format import NO_PAGE
from inlink.store.reader import known_pages
from storefolders import empty_pages, fnv


@given(st.lists(st.lists(URLS, max_size=20), max_size=6), st.integers(0, 2**63 - 1))
def test_table_is_a_dict(batches, seed):
    twin: dict[str, int] = {}
    hosts: dict[str, int] = {}
    with empty_pages(seed) as pages:
        for batch in batches:
            assert pages.table.find(batch).tolist() == [twin.get(url, NO_PAGE) for url in batch]
            expected, text = [], ""
            for url in batch:
                if url not in twin:
                    twin[url] = len(twin)
                    hosts.setdefault(host_of(url), len(hosts))
                    text += url + "\n"
                expected.append(twin[url])
            numbers, new, written = pages.table.number(batch)
            assert numbers.tolist() == expected
            assert (new, written) == (text.count("\n"), text.encode())
        assert pages.num_pages == len(twin)
        assert pages.tally.url_bytes == sum(len(url) + 1 for url in twin)
        assert pages.table.find(list(twin)).tolist() == list(twin.values())
        assert [pages.table.page_of(url) for url in twin] == list(twin.values())
        assert {pages.table.page_of(url + more) for url in twin for more in ("\n", "\nx", "ü")} <= {NO_PAGE}
        assert [pages.hosts[page] for page in twin.values()] == [hosts[host_of(url)] for url in twin]
        assert [pages.table.host(host) for host in range(pages.tally.hosts)] == list(hosts)


NEIGHBOURS = st.builds(
    "{}://{}{}{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["a.co", "a.com", "a.com.br", "b.com", "a-very-long-name.example.com", "[::1]"]),
    st.sampled_from(["", ":8", ":80", ":8080"]),
    st.sampled_from(["/", "/a.com/", "/x", "/?http://a.com/"]),
)


@given(st.lists(NEIGHBOURS, min_size=1, max_size=30, unique=True))
def test_hosts_that_follow_one_another(urls):
    """A URL that begins as the one before has its host; each other one is looked up."""
    with empty_pages() as pages:
        found, new, _ = pages.table.number(urls)
        assert new == len(urls)
        assert [pages.table.host(int(pages.hosts[page])) for page in found] == [host_of(url) for url in urls]


@pytest.mark.slow
def test_shards_grow():
    """So many URLs that each shard grows three times, in batches of very different sizes, half of each known."""
    twin: dict[str, int] = {}
    rng = np.random.default_rng(5)
    with empty_pages() as pages:
        before, size = pages.table.sizes.copy(), 1
        while len(twin) < 60_000:
            batch = [
                f"http://h{k % 997}.com/{fnv(b'%d' % k):x}" for k in rng.integers(0, 90_000, size).tolist()
            ]
            expected = [twin.setdefault(url, len(twin)) for url in batch]
            assert pages.table.number(batch)[0].tolist() == expected
            assert ((pages.table.sizes == 0) | (pages.table.sizes >= before)).all()
            before = pages.table.sizes.copy()
            size = min(size * 3, 20_000)
        assert pages.table.sizes.min() > 200
        assert int(pages.table.counts.sum()) == pages.num_pages == len(twin)
        assert pages.table.find(list(twin)).tolist() == list(twin.values())
        assert (pages.table.find([url + "x" for url in twin]) == NO_PAGE).all()
        assert pages.tally.hosts == 997
        assert [pages.table.host(int(pages.hosts[page])) for url, page in list(twin.items())[::50]] == [
            host_of(url) for url in list(twin)[::50]
        ]


@pytest.mark.slow
@pytest.mark.parametrize("at_a_time", [1, 100, 1 << 20])
def test_hosts_move_to_larger_tables_in_steps(monkeypatch, at_a_time):
    """Batches of one URL and of hundreds, with new and known hosts, while the table of hosts grows several times."""
    monkeypatch.setattr(urls_module, "_HOSTS_AT_A_TIME", at_a_time)
    hosts: dict[str, int] = {}
    rng, moving = np.random.default_rng(6), 0
    with empty_pages() as pages:
        for turn, size in enumerate([700, *[1] * 300, 40, 3, 900, *[5] * 200, 2000, *[2] * 100, 20_000, 1]):
            batch = [f"http://h{k}.com/{turn}" for k in rng.integers(0, 60_000, size).tolist()]
            numbers = pages.table.number(batch)[0]
            for url, page in zip(batch, numbers.tolist(), strict=True):
                assert int(pages.hosts[page]) == hosts.setdefault(host_of(url), len(hosts))
            moving += pages.table._larger is not None
        assert [pages.table.host(host) for host in range(pages.tally.hosts)] == list(hosts)
        assert 2 * len(hosts) <= len(pages.table.host_slots) <= 8 * len(hosts)
        assert bool(moving) == (at_a_time < 1 << 20)


def test_a_table_without_address_space_says_so(monkeypatch):
    """A table with room for few slots refuses one day, and knows what it knew."""
    monkeypatch.setattr(urls_module, "_PAGES", 1 << 16)
    with empty_pages() as pages:
        pages.table.number([f"http://a.com/{k}" for k in range(1000)])
        with pytest.raises(StoreError, match="no address space"):
            pages.table.number([f"http://a.com/{k}" for k in range(200_000)])
        assert pages.table.find([f"http://a.com/{k}" for k in range(1000)]).tolist() == list(range(1000))


def test_every_byte_of_a_url_counts():
    base = "http://example.org/0123456789-0123456789?0123456789"
    urls = [base] + [base[:k] + chr(ord(base[k]) ^ 1) + base[k + 1 :] for k in range(19, len(base))]
    urls += [base[:k] for k in range(19, len(base))] + [base + "0" * k for k in range(1, 20)]
    for seed in (0, 1, 2**63 - 1):
        with empty_pages(seed) as pages:
            assert pages.table.number(urls)[0].tolist() == list(range(len(urls)))
            assert pages.table.find(urls[::-1]).tolist() == list(range(len(urls)))[::-1]


@pytest.mark.parametrize("length", [0, 100, 2000])
def test_urls_of_pages_round_trip_across_marks(tmp_path, length):
    """Each 32nd page's place is kept; the others are found by counting, however long the lines are."""
    urls = [f"http://a.com/{k}" + "x" * (k * 31 % (length + 1)) for k in range(101)]
    with opened(tmp_path / "c", Clock()) as crawl:
        for begin in range(0, len(urls), 7):
            crawl.seed(urls[begin : begin + 7])
            some = urls[: begin + 7]
            assert stored_pages(crawl).urls(list(range(len(some)))) == some
    reader = known_pages(tmp_path / "c")
    assert reader.urls(list(range(101))[::-1]) == urls[::-1]
    for some in ([5, 40, 41, 7, 100, 100, 99], [64, 31, 32, 63], list(range(1, 101, 13)), []):
        assert reader.urls(some) == [urls[page] for page in some]
    for wrong in ([101], [97, 101], [97, 99, 127]):
        with pytest.raises(UnknownNodeError):
            reader.urls(wrong)
    reader.close()

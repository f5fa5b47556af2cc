"""The loop that spares most URLs the parser may only pass what the parser leaves as it is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlink.urls.canonical import MAX_LENGTH, canonical
from inlink.urls.kernels import CLASSES, plain_lines

_LABELS = "a www example com co-op 1 0x7f 127 xn--bcher-kva xn-- A a_b ü 1a - x"
LABELS = st.sampled_from([*_LABELS.split(), ""])
_PIECES = "/ a B . .. /./ /../ %2e %2E % %zz ? # ' ! | ^ { ü : @"
PIECES = st.sampled_from([*_PIECES.split(), " ", "\\"])
URLS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["http://", "https://", "HTTP://", "ftp://", "http:/", "//", "", "http://user@"]),
    st.lists(LABELS, min_size=1, max_size=4).map(".".join),
    st.sampled_from(["/", "", ":80/", ":8080/", "?"]),
    st.lists(PIECES, max_size=8).map("".join),
)


def plain(urls: list[str]) -> tuple[bool, list[bool]]:
    text = ("\n".join(urls) + "\n").encode("utf-8", "surrogatepass")
    found = np.zeros(len(urls), np.bool_)
    every = plain_lines(text, MAX_LENGTH, CLASSES, found)
    return bool(every), found.tolist()


@settings(max_examples=400)
@given(st.lists(URLS, min_size=1, max_size=6))
def test_plain_urls_are_canonical(urls):
    every, found = plain(urls)
    assert every == all(found)
    for url, passed in zip(urls, found, strict=True):
        if passed:
            assert canonical(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "https://www.example.co.uk/a/b.html?q=1&r=%20x/../y",
        "https://en.wikipedia.org/wiki/Kolmogorov_complexity",
        "https://x1.example.com/~user/(a)/b;c=d,e!*$+:@",
    ],
)
def test_ordinary_urls_are_plain(url):
    assert canonical(url) == url
    assert plain([url]) == (True, [True])


ODD = "http://1.2.3/ http://0x7f/ http://example.com http://example.com/#top http://example.com/a/%2e%2e/b h"


@pytest.mark.parametrize(
    "url",
    [*ODD.split(), "", "http://example.com/?q='", f"http://{'a' * 254}/", "http://e.com/" + "a" * MAX_LENGTH],
)
def test_urls_that_must_be_parsed_are_not_plain(url):
    assert plain([url, "http://example.com/"])[1] == [False, True]


def test_a_newline_within_a_link_is_noticed():
    assert not plain(["http://example.com/a\nhttp://example.com/b", "http://example.com/"])[0]

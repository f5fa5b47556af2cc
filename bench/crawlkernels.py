"""The compiled loops of the generated crawl: which links a page has, and the text of a URL.

Nothing is remembered from page to page. A URL's number tells its parent page, and so its host and its text, by
arithmetic and a hash (splitmix64's last steps); a crawl of any length takes the memory of one batch.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bench.kernels import GOLDEN, MIX1, MIX2, SHIFT1, SHIFT2, SHIFT3, U2, U10, U32, chance, draw
from inlink.base.jit import U0, U1, kernel

__all__ = [
    "BLOCK_NEW",
    "BLOCK_PAGES",
    "Shape",
    "first_new",
    "host_of",
    "known_page",
    "page_links",
    "turn",
    "write_pages",
    "write_url",
]

FEWEST_LINKS, MOST_LINKS = 20, 50
# A prime, 31. In a block of pages each number of links occurs once, in one of ORDERS orders.
BLOCK_PAGES = MOST_LINKS - FEWEST_LINKS + 1
ORDERS = 64

_STEPS = np.arange(ORDERS)[:, None]
_SIZES = FEWEST_LINKS + (np.arange(BLOCK_PAGES) * (1 + _STEPS % (BLOCK_PAGES - 1)) + 7 * _STEPS) % BLOCK_PAGES
# Two fifths of a page's links, rounded. Of a block's links it is exactly two fifths.
_NEW = (2 * _SIZES + 2) // 5
LINKS = _SIZES.astype(np.uint8)
NEW_BEFORE = np.concatenate([np.zeros((ORDERS, 1)), np.cumsum(_NEW, axis=1)], axis=1).astype(np.uint16)
# 434
BLOCK_NEW = int(NEW_BEFORE[0, -1])
SLOT = np.array([np.repeat(np.arange(BLOCK_PAGES), row) for row in _NEW], np.uint8)

PAGES64, NEW64, ORDERS64 = np.uint64(BLOCK_PAGES), np.uint64(BLOCK_NEW), np.uint64(ORDERS)
U3 = np.uint64(3)
# What a hash is drawn for
ORDER, PAGE, LOCAL, HOST, NAME, PATH = (np.uint64(n) << np.uint64(56) for n in range(1, 7))

# Chances of 2³². A page that a link from another host led to has none but new links within its own, so that the
# shares among the others lie above the three quarters that come out.
NEW_WITHIN_HOST = np.uint64(int(0.86 * 2**32))
OLD_WITHIN_HOST = np.uint64(int(0.89 * 2**32))
TO_OLD_PAGE = np.uint64(int(0.50 * 2**32))
FEWEST_HOSTS, URLS_A_HOST = np.uint64(512), np.uint64(20)
TRIES = np.uint64(8)

_WORD_TEXT = (
    "about account annual archive article author autumn basket beach bicycle board book bridge bright budget build "
    "camera canal castle center chart city class climate cloud coast coffee color common corner cotton country course "
    "craft cream daily dance data design detail digital dinner doctor dream early earth energy engine event family "
    "farm field film final fish flight floor flower forest forum frame free fresh garden general gift glass global "
    "gold grand green group guide harbor health heart help herb hill history holiday home honey hotel house idea "
    "image index island item journal kitchen lake land language large law leaf learn letter level library light line "
    "list local machine market master matter meadow media member metal method mobile model modern moment money month "
    "morning motor mountain museum music nature network night north notes number ocean office online open orange order "
    "organic outdoor page paint paper park partner party path people phone photo piece plan plant play point post "
    "power press price print product profile project public quality question quick radio rain record red region "
    "report rest review river road rock room round rules sale salt school science sea search season second section "
    "series service shop short show silver simple site small smart snow social solar song source south space special "
    "sport spring square star station stone store story street studio style sugar summer sun super supply support "
    "table tea team test text theme time tools topic tour town track trade train travel tree tutorial update urban "
    "user valley value video view village voice water wave weather web week west white wild window winter wood world"
)
_WORD_LIST = _WORD_TEXT.split()
WORDS = np.frombuffer("".join(_WORD_LIST).encode(), np.uint8)
WORD_ENDS = np.cumsum([0] + [len(word) for word in _WORD_LIST]).astype(np.uint64)
NUM_WORDS = np.uint64(len(_WORD_LIST))
_ENDING_LIST = [".com"] * 7 + [".org"] * 2 + [".net", ".de", ".co.uk", ".fr", ".info", ".com.br", ".nl"]
ENDINGS = np.frombuffer("".join(_ENDING_LIST).encode(), np.uint8)
ENDING_ENDS = np.cumsum([0] + [len(ending) for ending in _ENDING_LIST]).astype(np.uint64)
NUM_ENDINGS = np.uint64(len(_ENDING_LIST))
HTTPS, WWW, HTML = (np.frombuffer(text, np.uint8) for text in (b"https://", b"www.", b".html"))
MAX_URL = 8 + 4 + 2 * 10 + 10 + 7 + 2 + 4 * (10 + 1) + 10 + 5
SLASH, HYPHEN, NEWLINE, ZERO = (
    np.uint8(ord("/")),
    np.uint8(ord("-")),
    np.uint8(ord("\n")),
    np.uint64(ord("0")),
)


class Shape(NamedTuple):
    """The parameters of a crawl: the number of seeds, the number from which on the order is scattered, and the seed of
    the random numbers."""

    seeds: np.uint64
    scattered: np.uint64
    seed: np.uint64


@kernel
def hashed(seed: np.uint64, number: np.uint64, purpose: np.uint64) -> np.uint64:
    """Return 64 random bits that are always the same for the same three numbers."""
    z = (seed + purpose) * MIX2 + (number + U1) * GOLDEN
    z = (z ^ (z >> SHIFT1)) * MIX1
    z = (z ^ (z >> SHIFT2)) * MIX2
    return np.uint64(z ^ (z >> SHIFT3))


@kernel
def block_order(block: np.uint64, web: Shape) -> np.uint64:
    """Return the number of the order of the pages of a block."""
    return np.uint64(hashed(web.seed, block, ORDER) % ORDERS64)


@kernel
def page_links(page: np.uint64, web: Shape) -> np.uint64:
    """Return the number of links of the page of a turn, 20 to 50."""
    return np.uint64(LINKS[block_order(page // PAGES64, web), page % PAGES64])


@kernel
def turn(number: np.uint64, web: Shape) -> np.uint64:
    """Return the turn in which a URL is crawled, the first one at 0. The function is its own inverse: it also returns
    the URL of a turn.

    From ``web.scattered`` on, a power of two, the bits of a number are reversed between any two powers of two. So a
    page comes far from its siblings, as in a crawl that waits between requests to a host.
    """
    if number < web.scattered:
        return number
    low, turned = web.scattered, U0
    while low + low <= number:
        low += low
    bit, rest = U1, number - low
    while bit < low:
        turned = turned + turned + (rest & U1)
        rest >>= U1
        bit += bit
    return low + turned


@kernel
def first_new(page: np.uint64, web: Shape) -> np.uint64:
    """Return the number of the first new URL on the page of a turn: the number of URLs that are known before it."""
    block = page // PAGES64
    return np.uint64(
        web.seeds + block * NEW64 + np.uint64(NEW_BEFORE[block_order(block, web), page % PAGES64])
    )


@kernel
def known_page(number: np.uint64, web: Shape) -> np.uint64:
    """Return the turn of the page that made a URL known. The URL must not be a seed."""
    place = number - web.seeds
    block = place // NEW64
    return np.uint64(block * PAGES64 + np.uint64(SLOT[block_order(block, web), place % NEW64]))


@kernel
def is_local(number: np.uint64, web: Shape) -> bool:
    """Return whether a URL is on the host of the page that made it known."""
    return bool(number >= web.seeds and (hashed(web.seed, number, LOCAL) >> U32) < NEW_WITHIN_HOST)


@kernel
def host_of(number: np.uint64, web: Shape) -> np.uint64:
    """Return the number of a URL's host: its parent's host, or one drawn by Zipf's law from those that exist then."""
    while is_local(number, web):
        number = turn(known_page(number, web), web)
    hosts = FEWEST_HOSTS + number // URLS_A_HOST
    state = np.empty(1, np.uint64)
    state[0] = hashed(web.seed, number, HOST)
    # Class k holds 8·2ᵏ hosts. All classes are equally likely, so the r-th host has about 1/r of the URLs.
    classes = U1
    while (U1 << classes) - U1 < (hosts >> U3):
        classes += U1
    size = np.uint64(8) << draw(state, classes)
    return np.uint64((size - np.uint64(8) + draw(state, size)) % hosts)


@kernel
def old_target(page: np.uint64, end: np.uint64, web: Shape, state: npt.NDArray[np.uint64]) -> np.uint64:
    """Return the URL below ``end`` of a link of a page: a neighbour on its host, or any."""
    if chance(state, OLD_WITHIN_HOST):
        here = page
        # Up to a parent, as links in menus and breadcrumbs do.
        for _ in range(U0, U1 + draw(state, U3)):
            if is_local(here, web):
                here = turn(known_page(here, web), web)
        # Then down to another child of it.
        for _ in range(U0, draw(state, U3)):
            place = turn(here, web)
            low, high = first_new(place, web), first_new(place + U1, web)
            child = low + draw(state, high - low)
            if child >= end or not is_local(child, web):
                break
            here = child
        if here != page:
            return here
    # Early pages have more inlinks, about 1/number.
    if chance(state, TO_OLD_PAGE):
        bits = U0
        while (end >> bits) > U1:
            bits += U1
        return draw(state, U1 << draw(state, bits + U1))
    return draw(state, end)


@kernel
def put(
    text: npt.NDArray[np.uint8], low: np.uint64, high: np.uint64, out: npt.NDArray[np.uint8], at: np.uint64
) -> np.uint64:
    """Copy ``text[low:high]``; returns the place behind it."""
    for i in range(low, high):
        out[at] = text[i]
        at += U1
    return at


@kernel
def put_word(chosen: np.uint64, out: npt.NDArray[np.uint8], at: np.uint64) -> np.uint64:
    """Write a word of the list."""
    word = chosen % NUM_WORDS
    return np.uint64(put(WORDS, WORD_ENDS[word], WORD_ENDS[word + U1], out, at))


@kernel
def put_number(number: np.uint64, out: npt.NDArray[np.uint8], at: np.uint64) -> np.uint64:
    """Write a number in decimal digits."""
    digits, rest = U1, number // U10
    while rest > U0:
        digits += U1
        rest //= U10
    place = at + digits
    for _ in range(U0, digits):
        place -= U1
        out[place] = np.uint8(ZERO + number % U10)
        number //= U10
    return at + digits


@kernel
def write_url(number: np.uint64, web: Shape, out: npt.NDArray[np.uint8], at: np.uint64) -> np.uint64:
    """Write the URL of a number; returns the place behind it."""
    host = host_of(number, web)
    bits = hashed(web.seed, host, NAME)
    at = put(HTTPS, U0, np.uint64(len(HTTPS)), out, at)
    if bits & U1:
        at = put(WWW, U0, np.uint64(len(WWW)), out, at)
    at = put_word(bits >> np.uint64(1), out, at)
    at = put_word(bits >> np.uint64(17), out, at)
    at = put_number(host, out, at)
    ending = (bits >> np.uint64(33)) % NUM_ENDINGS
    at = put(ENDINGS, ENDING_ENDS[ending], ENDING_ENDS[ending + U1], out, at)
    out[at] = SLASH
    path = hashed(web.seed, number, PATH)
    # One of the host's five sections.
    at = put_word((bits >> np.uint64(40)) + path % np.uint64(5), out, at + U1)
    out[at] = SLASH
    at = put_word(path >> np.uint64(8), out, at + U1)
    out[at] = HYPHEN
    at = put_word(path >> np.uint64(24), out, at + U1)
    if path & U3:
        out[at] = HYPHEN
        at = put_word(path >> np.uint64(40), out, at + U1)
    out[at] = HYPHEN
    at = put_number(number, out, at + U1)
    if bits & U2:
        at = put(HTML, U0, np.uint64(len(HTML)), out, at)
    return at


@kernel
def write_pages(first: np.uint64, count: np.uint64, web: Shape, out: npt.NDArray[np.uint8]) -> np.uint64:
    """Write pages as lines, each its URL and then its links, with an empty line behind; returns the bytes written."""
    state = np.empty(1, np.uint64)
    row = np.empty(MOST_LINKS, np.uint64)
    at = U0
    for one in range(first, first + count):
        page = np.uint64(one)
        state[0] = hashed(web.seed, page, PAGE)
        here = turn(page, web)
        at = write_url(here, web, out, at)
        out[at] = NEWLINE
        at += U1
        number = first_new(page, web)
        end, missing, links = number, first_new(page + U1, web) - number, page_links(page, web)
        for i in range(U0, links):
            if draw(state, links - i) < missing:
                row[i] = number
                number += U1
                missing -= U1
            else:
                # Small hosts have few pages to link to.
                for _ in range(U0, TRIES):
                    target = old_target(here, end, web, state)
                    twice = False
                    for j in range(U0, i):
                        twice = twice or row[j] == target
                    if not twice:
                        break
                row[i] = target
            at = write_url(row[i], web, out, at)
            out[at] = NEWLINE
            at += U1
        out[at] = NEWLINE
        at += U1
    return at

"""Fingerprints and anchor texts: how they are made, kept with a visit, and shown."""

import random
from zlib import crc32

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy import Request
from scrapy.http import HtmlResponse

from crawlstrategies import Clock, opened, stored_pages
from inlink.cli import commands
from inlink.crawl.crawl import Crawl
from inlink.crawl.view import CrawlView
from inlink.protocol import PLACES, Link, Task
from inlink.scoring.fingerprint import FEWEST_WORDS, fingerprint
from inlink.scoring.words import words
from inlink.scrapy.visits import Visit, answer_for
from inlink.store.anchors import LONGEST_ANCHOR, MOST_ANCHOR_BYTES, anchors_in, encode_labels
from inlink.store.format import NO_PAGE
from inlink.store.near import MOST_BITS
from storefolders import look_up

A = "http://a.com/"
WORDS = [f"word{k}" for k in range(50)]


def text_of(seed: int, count: int = 400) -> str:
    """A text of random words; other seeds give other texts."""
    return " ".join(random.Random(seed).choices(WORDS, k=count))


# -- fingerprints -----------------------------------------------------------------------------------------------------


def plainly(text: str) -> int:
    """The fingerprint as its definition says, with Python's own integers, one shingle and one bit at a time."""
    codes = [crc32(word.encode("utf-8", "surrogatepass")) for word in words(text)]
    if len(codes) < FEWEST_WORDS:
        return 0
    votes = [0] * 64
    for one, two, three in zip(codes, codes[1:], codes[2:], strict=False):
        value = ((one * 0x9E3779B97F4A7C15 + two) * 0x9E3779B97F4A7C15 + three) % 2**64
        value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
        value ^= value >> 31
        for bit in range(64):
            votes[bit] += 1 if value >> bit & 1 else -1
    return sum(1 << bit for bit in range(64) if votes[bit] > 0) or 1


@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=120).map(" ".join))
def test_a_fingerprint_is_that_of_the_definition(text):
    found = fingerprint(text)
    assert found == plainly(text)
    assert type(found) is int
    assert 0 <= found < 2**64
    assert (found > 0) == (len(words(text)) >= FEWEST_WORDS)


def test_long_texts_are_counted_in_parts(monkeypatch):
    text = text_of(1, 500)
    whole = fingerprint(text)
    for part in (1, 3, 7, 100, 497, 498, 499):
        monkeypatch.setattr("inlink.scoring.fingerprint._PART", part)
        assert fingerprint(text) == whole == plainly(text)


def test_a_small_change_changes_few_bits_and_other_texts_differ_in_many():
    texts = [text_of(seed) for seed in range(40)]
    found = [fingerprint(text) for text in texts]
    for k, text in enumerate(texts):
        assert fingerprint(text.upper().replace(" ", " - ")) == found[k]
        near = fingerprint("Print this page " + text)
        assert (near ^ found[k]).bit_count() <= 8
        for other in found[:k]:
            assert (found[k] ^ other).bit_count() > 2 * MOST_BITS
    # With more of the same text, one more sentence changes less.
    long = text_of(99, 4000)
    assert (fingerprint(long) ^ fingerprint(long + " Printed on Monday")).bit_count() <= MOST_BITS


# -- anchor texts -----------------------------------------------------------------------------------------------------


def plain_labels(linked, texts, codes, pages):
    """The slow twin of `encode_labels`."""
    best: dict[int, str] = {}
    places: dict[int, int] = {}
    for page, text, code in zip(linked, texts, codes, strict=True):
        before = places.get(page, 0)
        if text and (page not in best or code > before):
            best[page] = text
        if code > before:
            places[page] = code
    places.pop(NO_PAGE, None)
    parts, left = [], MOST_ANCHOR_BYTES
    for page in pages:
        raw = " ".join(best.get(page, "")[: 8 * LONGEST_ANCHOR].split())[:LONGEST_ANCHOR]
        raw = raw.encode("utf-8", "replace")[:255].decode("utf-8", "ignore").encode()
        raw = raw if len(raw) <= left else b""
        left -= len(raw)
        parts.append(bytes([len(raw)]) + raw)
    raw = b"".join(parts) if any(len(part) > 1 for part in parts) else b""
    return raw, len(raw), bytes(places.get(page, 0) for page in pages) if places else b""


# White space of each width, characters of each width, and lone surrogates.
CHARACTERS = (
    "a b\t\n\x1f\x7f\x85\xa0é\u1680\u2000\u200a\u200b\u2027\u2028\u2029\u202f\u205f\u3000中\ud800\udfff😀"
)
TEXTS = st.one_of(
    st.text(st.sampled_from(CHARACTERS), max_size=300),
    st.text(max_size=100),
    st.builds(str.__mul__, st.sampled_from(["é", "中", "😀", "a ", "x\u3000", " "]), st.integers(0, 700)),
)


@given(
    st.lists(st.tuples(st.integers(0, 12) | st.just(NO_PAGE), TEXTS, st.integers(0, len(PLACES))), min_size=1)
)
def test_texts_and_places_are_those_of_the_slow_twin(links):
    linked, texts, codes = zip(*links, strict=True)
    pages = sorted({page for page in linked if page != NO_PAGE})
    found = encode_labels(np.array(linked, np.uint32), texts, bytes(codes), np.array(pages, np.uint32))
    assert found == plain_labels(linked, texts, codes, pages)
    if found[0]:
        kept = anchors_in(found[0], 0, len(pages))
        assert all(len(text) <= LONGEST_ANCHOR for text in kept)


def test_white_space_is_that_of_python():
    spaces = [chr(code) for code in range(0x110000) if chr(code).isspace()]
    for code in {
        *map(ord, spaces),
        *(ord(space) + 1 for space in spaces),
        *(ord(space) - 1 for space in spaces),
    }:
        text = f"a{chr(code)}b"
        raw, _, _ = encode_labels(np.zeros(1, np.uint32), [text], b"\0", np.zeros(1, np.uint32))
        assert anchors_in(raw, 0, 1) == [" ".join(text.split())], hex(code)


def test_the_texts_of_a_visit_are_bounded():
    pages = np.arange(1000, dtype=np.uint32)
    raw, size, _ = encode_labels(pages, ["é" * 500] * 1000, bytes(1000), pages)
    assert size == len(raw) <= MOST_ANCHOR_BYTES + 1000
    kept = anchors_in(raw, 0, 1000)
    assert set(kept) == {"", "é" * LONGEST_ANCHOR}
    assert kept.index("") == MOST_ANCHOR_BYTES // (2 * LONGEST_ANCHOR)


def test_a_link_keeps_its_first_text_and_its_other_data(tmp_path):
    links = [
        Link("/one", 0.5, text=" First\n text "),
        "/bare",
        Link("mailto:a@a.com", text="refused"),
        ("/two", 0.25),
        Link("/one", 0.75, text="second text"),
        Link("/form", data=b"form", variant="POST:1", text="Send"),
        Link("http://b.com/ ", text="with a space"),
    ]
    with opened(tmp_path / "c", Clock(), policy="pagerank") as crawl:
        crawl.seed([A])
        assert crawl.crawled(crawl.next(1)[0], links)
        shown = {
            url: crawl.page(url).linked_text
            for url in (A, A + "one", A + "bare", A + "two", A + "form#POST:1", "http://b.com/")
        }
        scores = [crawl.page(A + name).score for name in ("one", "two", "bare")]
        (inlink,) = crawl.why(A + "one").inlinks
        told = str(crawl.why(A + "one"))
        carried = stored_pages(crawl).carried(stored_pages(crawl).table.page_of(A + "form#POST:1"))
    assert shown == {
        A: None,
        A + "one": "First text",
        A + "bare": None,
        A + "two": None,
        A + "form#POST:1": "Send",
        "http://b.com/": "with a space",
    }
    assert scores == [0.75, 0.25, 0.0]
    assert (inlink.url, inlink.text) == (A, "First text")
    assert f'{A}  "First text"' in told
    assert carried == b"form"
    assert look_up(tmp_path / "c", A + "one").linked_text == "First text"
    assert CrawlView.open(tmp_path / "c").page(A + "one").linked_text == "First text"


# -- a page of a crawl ------------------------------------------------------------------------------------------------


def near_by_definition(crawl: Crawl, page: int) -> str | None:
    """The first page that was first crawled before a page and whose latest text is nearly the same."""
    pages = stored_pages(crawl)
    visits = {
        one: pages.visit(one)
        for one in range(pages.num_pages)
        if one not in pages.merged and pages.visit(one)
    }
    if page not in visits or not visits[page].fingerprint:
        return None
    earlier = [
        (visit.first_crawl, one)
        for one, visit in visits.items()
        if (visit.first_crawl, one) < (visits[page].first_crawl, page)
        and visit.fingerprint
        and (visit.fingerprint ^ visits[page].fingerprint).bit_count() <= MOST_BITS
    ]
    return pages.url(min(earlier)[1]) if earlier else None


SPOTS = st.sampled_from([0, 1, 3, 7, 15, 1 << 63, 1 << 63 | 1, np.uint64(2**64 - 1), 2**64 - 8])


@pytest.mark.slow
@settings(max_examples=12)
@given(st.lists(st.tuples(st.integers(0, 7), SPOTS, st.booleans(), st.integers(0, 2)), max_size=30))
def test_the_earliest_near_duplicate_is_told_by_every_reader(tmp_path_factory, answers):
    """Pages that are crawled, crawled again, merged, and fail before they are crawled."""
    folder = tmp_path_factory.mktemp("near") / "c"
    clock = Clock()
    urls = [f"http://a.com/{k}" for k in range(8)]
    with opened(folder, clock) as crawl:
        crawl.seed(urls)
        for page, spot, merged, wait in answers:
            clock.now += wait
            if merged and page:
                crawl.crawled(urls[page], fingerprint=spot, redirected_to=urls[page // 2])
            elif merged:
                crawl.failed(urls[page], "no answer", retry=True)
            else:
                crawl.crawled(urls[page], fingerprint=spot)
        right = {url: near_by_definition(crawl, number) for number, url in enumerate(urls)}
        assert {url: crawl.page(url).near_duplicate_of for url in urls} == right
        assert {url: crawl.why(url).near_duplicate_of for url in urls} == right
    assert {url: CrawlView.open(folder).page(url).near_duplicate_of for url in urls} == right


def test_a_search_that_pauses_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("inlink.crawl.questions.searches._VISITS", 1)
    monkeypatch.setattr("inlink.crawl.view._SECONDS", -1.0)
    with opened(tmp_path / "c", Clock()) as crawl:
        crawl.seed([f"http://a.com/{k}" for k in range(5)])
        for k in range(5):
            crawl.crawled(f"http://a.com/{k}", fingerprint=8 if k != 1 else 1 << 40)
        told = [crawl.page("http://a.com/4") for _ in range(6)]
        assert [page.searched for page in told] == [False] * 4 + [True] * 2
        assert {page.near_duplicate_of for page in told} == {"http://a.com/0"}


def test_commands_tell_a_near_duplicate_and_the_text_of_a_link(tmp_path):
    folder = tmp_path / "c"
    with opened(folder, Clock(), policy="pagerank") as crawl:
        crawl.seed([A])
        crawl.crawled(crawl.next(1)[0], [Link("/print", text="Printer version"), "/other"], fingerprint=7)
        crawl.crawled(A + "print", ["/"], fingerprint=15)
        crawl.crawled(A + "other", ["/"], fingerprint=2**60)

    def told(*args: str) -> str:
        return CliRunner().invoke(commands, list(args), catch_exceptions=False).output

    page = told("page", str(folder), A + "print")
    rows = dict(line.split(maxsplit=1) for line in page.splitlines() if len(line.split()) > 1)
    assert rows["near_duplicate_of"] == A
    assert rows["linked_text"] == "Printer version"
    assert rows["fingerprint"] == "000000000000000f"
    assert f"near-duplicate of {A}" in told("why", str(folder), A + "print")
    assert '"Printer version"' in told("why", str(folder), A + "print")
    assert "near-duplicate" not in told("why", str(folder), A + "other")
    shown = msgspec.json.decode(told("page", str(folder), A + "other", "--json"))
    assert (shown["near_duplicate_of"], shown["fingerprint"]) == (None, "1000000000000000")


# -- a spider ---------------------------------------------------------------------------------------------------------


def test_a_spider_sends_the_fingerprint_and_the_texts_of_links():
    body = text_of(5)
    html = f'<p>{body}</p><a href="/print"><b>Printer</b>  version</a> <a href="x"><img alt="A picture"></a>'
    url = "http://a.com/page"
    response = HtmlResponse(url, body=html.encode(), request=Request(url))
    visit = Visit(Task(1, url), response.request, sent=True, response=response, status=200)
    visit.links = [
        A + "print",
        ("/x", 0.5),
        Link("/print", data=b"form", text="mine"),
        A + "elsewhere",
        ("bad", 1, 2),
    ]
    answer = answer_for(visit, None, None, False)
    assert answer.fingerprint == fingerprint(f"{body} Printer version A picture")
    assert answer.links == [
        Link(A + "print", text="Printer version", place="body"),
        Link("/x", 0.5, text="A picture", place="body"),
        Link("/print", data=b"form", text="mine", place="body"),
        Link(A + "elsewhere"),
        ("bad", 1, 2),
    ]

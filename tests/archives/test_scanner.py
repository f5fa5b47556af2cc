"""The scanner of WAT records gives what decoding them gives, on any bytes."""

import io
import json
import subprocess
import sys
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from archives import anchors, record, synthetic_wat, wat_json
from inlink.archives.batches import archive_batches
from inlink.archives.kernels import forms
from inlink.archives.kernels import links as module
from inlink.archives.kernels.links import NEW, host_links, keep_hosts
from inlink.archives.kernels.wat import FULL, OTHER, PAGE, UNSURE, WORK
from inlink.archives.records import records
from inlink.base.damage import Tally
from inlink.errors import DamageError
from inlink.urls.canonical import Base
from inlink.urls.classes import byte_classes
from watdice import (
    BASES,
    HREFS,
    OPTIONS,
    PAGE_URL,
    URLS,
    archive,
    arcs_found,
    shaken,
    wat,
    written,
)
from watdice import (
    check_scan as check,
)

REAL = [
    "later.wat",
    "slice.warc.wat",
    "crawls/cc-2019-22-excerpt.wat.txt",
    "crawls/CC-MAIN-20140820021334-00006-ip-10-180-136-8.ec2.internal.warc.wat",
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", REAL)
def test_real_files_give_the_same(data, name, options):
    check(data(name).read_bytes(), **options)


def scanned(text: bytes, begin: int = 0, end: int | None = None, *, room: int = 1 << 13) -> int:
    """The answer of the scanner for the record between two places."""
    state, links = np.zeros(4, np.int64), np.zeros(room, np.uint64)
    answer = host_links(
        np.frombuffer(text, np.uint8),
        np.array([begin, len(text) if end is None else end, 0], np.uint64),
        1,
        -1,
        np.zeros(WORK, np.uint64),
        links,
        np.zeros(1 << 14, np.uint32),
        np.zeros(1 << 13, np.uint64),
        np.zeros(1 << 17, np.uint8),
        np.zeros((1 << 12) - 1, np.int64),
        np.zeros(1 << 13, np.int64),
        np.zeros(1 << 14, np.uint64),
        np.zeros(5, np.uint64),
        state,
    )
    if answer == module.DONE:
        return PAGE if state[1] else OTHER
    return {module.FULL: FULL, module.UNSURE: UNSURE}[answer]


@pytest.mark.parametrize("name", REAL)
def test_real_records_are_nearly_all_scanned(data, name):
    answers = Counter(
        scanned(one.body) for one in records(io.BytesIO(data(name).read_bytes()), Tally()) if one.is_json
    )
    assert answers[PAGE] > 0
    assert answers[UNSURE] == 0


def test_generated_files_give_the_same(tmp_path):
    synthetic_wat(tmp_path / "x", pages=30, links=60)
    check((tmp_path / "x").read_bytes(), links="all", self_links=True)


SEEDS = st.integers(0, 2**32)


@settings(max_examples=80)
@given(SEEDS, st.sampled_from(OPTIONS), st.booleans(), st.booleans())
def test_usual_records_give_the_same(seed, options, self_links, old):
    dice = Random(seed)
    bodies = [written(wat(dice), dice, 0.0).encode() for _ in range(4)]
    check(
        archive(bodies, "2014-05-01T00:00:00Z" if old else "2024-05-01T00:00:00Z"),
        self_links=self_links,
        **options,
    )


@settings(max_examples=80)
@given(SEEDS, st.sampled_from(OPTIONS), st.sampled_from([0.003, 0.03]))
def test_records_of_any_shape_give_the_same(seed, options, odds):
    dice = Random(seed)
    bodies = [written(shaken(wat(dice), dice, odds), dice, odds).encode() for _ in range(4)]
    check(archive(bodies), **options)


PIECES = [
    *(
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\\u",
        b"\\ud800",
        b"\\ud83d\\ude00",
        b"\\u00e9",
        b"\\/",
        b"\x00",
    ),
    *(
        b"1",
        b"-",
        b"01",
        b"1.",
        b"1e",
        b"1e5",
        b"1" * 300,
        b"1" * 5000,
        b"1e999",
        b"nul",
        b"null",
        b"NaN",
        b"\xff",
        b"\xc3",
    ),
    *(
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x98\x83",
        b"\xf0\x9f\x98\x80",
        b"\x7f",
        b"\x1f",
        b" ",
    ),
    *(
        b'"url":',
        b'"Links":[]',
        b'"path":"A@/href",',
        b"[" * 70,
        b"\xef\xbb\xbf",
        b'"Envelope":{},',
        b"// x\n",
    ),
]


@settings(max_examples=120)
@given(SEEDS, st.sampled_from(OPTIONS))
def test_damaged_records_give_the_same(seed, options):
    dice = Random(seed)
    bodies = []
    for _ in range(4):
        body = bytearray(written(wat(dice), dice, 0.0).encode())
        for _ in range(dice.randrange(4)):
            at = dice.randrange(len(body) + 1)
            end = min(at + dice.randrange(3), len(body))
            body[at:end] = dice.choice(PIECES)
        if dice.random() < 0.1:
            del body[dice.randrange(len(body)) :]
        bodies.append(bytes(body))
    check(archive(bodies), **options)


@settings(max_examples=60)
@given(
    st.sampled_from(URLS[:3]),
    st.none() | st.sampled_from(BASES),
    st.lists(
        st.text(st.sampled_from("ab/.:?#%2eE&;@\\ \u00e9\u212a\"'<>{}|^`[]~_-=+,!$*()\t\nhtps"), max_size=12)
    ),
)
@example(PAGE_URL, None, HREFS)
@example(URLS[2], "http://base.org/x/../y/z?a/b", HREFS)
@example("HTTP://c.co.uk/a//b", "", HREFS)
def test_any_link_is_resolved_as_the_parser_does(url, base, hrefs):
    value = wat_json(url, anchors(*hrefs), head={} if base is None else {"Base": base})
    check(archive([json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")]), self_links=True)


def test_each_link_has_the_form_that_the_parser_gives():
    for url in URLS[:3]:
        for href in HREFS:
            body = json.dumps(wat_json(url, anchors(href))).encode()
            arcs, *_ = arcs_found(archive([body]), scan=True, level="page", self_links=True)
            # A pair of surrogates is one character.
            form = Base(url).canonical(json.loads(json.dumps(href)))
            assert list(arcs) == ([] if form is None else [(url, form)])


def test_strict_reading_stops_where_decoding_does():
    bodies = [json.dumps(wat_json(PAGE_URL, anchors("/x"))).encode(), b'{"Envelope":', b"\xff"]
    for level in ("page", "host"):
        with pytest.raises(DamageError, match="JSON is invalid"):
            list(archive_batches(io.BytesIO(archive(bodies)), level=level, strict=True))


@pytest.mark.slow
def test_many_links_and_hosts_make_the_arrays_longer():
    hrefs = [f"http://h{k}.example{k % 700}.com/{k % 3}" for k in range(20_000)]
    check(archive([json.dumps(wat_json(PAGE_URL, anchors(*hrefs, "/x", "/x"))).encode()]), links="all")


def test_an_array_that_is_too_short_is_told():
    body = json.dumps(wat_json(PAGE_URL, anchors("/x", "/y", "/z"))).encode()
    assert scanned(body, room=4) == FULL
    assert scanned(body, room=5) == PAGE
    assert scanned(json.dumps(wat_json(PAGE_URL, kind="request")).encode()) == OTHER
    assert scanned(body[:-1]) == UNSURE
    # The record may stand between other bytes.
    text = b"{}" + body + b"}"
    assert scanned(text, 2, 2 + len(body)) == PAGE
    assert scanned(text, 2, 3 + len(body)) == scanned(text, 2, 1 + len(body)) == UNSURE


@given(
    st.lists(st.tuples(st.integers(-3, 6), st.lists(st.integers(-3, 6), max_size=9)), max_size=5),
    st.booleans(),
    st.booleans(),
)
def test_hosts_that_are_kept(pages, self_loops, repeats):
    known = np.array([5, -2], np.int64)

    def truth(code):
        return int(known[code - 5]) if code >= 5 else code

    # Codes 5 and 6 stand for origins that were looked up later.
    coded = [[NEW + code - 5 if code >= 5 else code for code in [own, *codes]] for own, codes in pages]
    codes = np.array([code for page in coded for code in page[1:]], np.int64)
    ends = np.cumsum([0, *(len(page) - 1 for page in coded)])
    rows = np.zeros((len(pages), 5), np.int64)
    rows[:, 1], rows[:, 2] = [page[0] for page in coded], ends[:-1]
    sources, lengths, refused = np.zeros(5, np.int64), np.zeros(5, np.int64), np.zeros(6, np.int64)
    kept = keep_hosts(
        codes,
        len(codes),
        rows.view(np.uint64).ravel(),
        len(pages),
        known,
        self_loops,
        repeats,
        np.zeros(6, np.uint32),
        1,
        sources,
        lengths,
        refused,
    )
    at, reasons = 0, {}
    for number, (own, page) in enumerate(pages):
        own, page = truth(own), [truth(code) for code in page]
        assert sources[number] == own
        wanted = [code for code in page if code >= 0 and (self_loops or code != own)] if own >= 0 else []
        assert codes[at : at + lengths[number]].tolist() == (
            wanted if repeats else list(dict.fromkeys(wanted))
        )
        at += lengths[number]
        for code in page:
            if own >= 0 and code < 0:
                reasons.setdefault(-1 - code, [0, number])[0] += 1
    assert kept == at
    assert [[int(count), int(page)] for count, page in refused.reshape(-1, 2) if count] == [
        reasons[reason] for reason in sorted(reasons)
    ]


_AT_THE_EDGE = """
import ctypes, json, mmap, sys
import numpy as np
from random import Random
from inlink.archives.kernels.links import host_links
from inlink.archives.kernels.wat import WORK

size = mmap.PAGESIZE
area = mmap.mmap(-1, 17 * size)
place = ctypes.addressof(ctypes.c_char.from_buffer(area))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mprotect(ctypes.c_void_p(place + 16 * size), size, 0) == 0
memory = np.frombuffer(area, np.uint8)
memory.flags.writeable = False
tables = [
    *(np.zeros(WORK, np.uint64), np.zeros(4096, np.uint64), np.zeros(1 << 14, np.uint32)),
    *(np.zeros(1 << 13, np.uint64), np.zeros(1 << 17, np.uint8), np.zeros((1 << 12) - 1, np.int64)),
    *(np.zeros(1 << 13, np.int64), np.zeros(1 << 14, np.uint64), np.zeros(5, np.uint64)),
]
bodies = json.loads(sys.stdin.read())
for body in bodies:
    body = body.encode("latin-1")[: 16 * size]
    for end in (*range(min(len(body), 2000) + 1), len(body)):
        area[16 * size - end : 16 * size] = body[:end]
        for rules in (0, 1, 3):
            text, frame = memory[16 * size - end : 16 * size], np.array([0, end, 0], np.uint64)
            host_links(text, frame, rules, -1, *tables, np.zeros(4, np.int64))
print("read", len(bodies))
"""


@pytest.mark.slow
def test_nothing_is_read_behind_the_end():
    dice = Random(1)
    bodies = [written(wat(dice), dice, 0.01).encode() for _ in range(4)]
    bodies += [bytes(dice.choices(b'"\\{}[],:\xc3\xe2u', k=60)) for _ in range(50)]
    bodies += [b'{"a":' + piece + b'"' for piece in PIECES]
    done = subprocess.run(
        [sys.executable, "-c", _AT_THE_EDGE],
        input=json.dumps([body.decode("latin-1") for body in bodies]),
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"read {len(bodies)}\n", (done.returncode, done.stderr[-500:])


def test_records_of_other_kinds_beside(tmp_path):
    other = record("metadata", b"fetchTimeMs: 1\r\n", url=PAGE_URL, content_type="application/warc-fields")
    check(other + archive([json.dumps(wat_json(PAGE_URL, anchors("/x", "http://b.org/"))).encode()]) + other)


@pytest.mark.parametrize(
    ("arena", "ends", "urls", "links", "slots", "odd", "answer"),
    [
        (4095, 9, 9000, 6, 16, 12, forms.FULL_FORMS),
        (9000, 2, 9000, 6, 16, 12, forms.FULL_FORMS),
        (9000, 9, 4095, 6, 16, 12, forms.FULL_URLS),
        (9000, 9, 9000, 5, 16, 12, forms.FULL),
        (9000, 9, 9000, 6, 8, 12, forms.FULL),
        (9000, 9, 9000, 6, 16, 11, forms.FULL),
        (9000, 9, 9000, 6, 16, 12, forms.DONE),
    ],
)
def test_forms_are_written_only_where_there_is_room(arena, ends, urls, links, slots, odd, answer):
    body = json.dumps(wat_json(PAGE_URL, anchors("/x", "mailto:x", "/x#y", "http://B.org/"))).encode()
    state, odds, rows = np.zeros(8, np.int64), np.zeros(odd, np.uint64), np.zeros(5, np.uint64)
    written, places = np.zeros(arena, np.uint8), np.zeros(ends, np.int64)
    pages, page_ends = np.zeros(urls, np.uint8), np.zeros(9, np.int64)
    assert (
        forms.page_forms(
            np.frombuffer(body, np.uint8), np.array([0, len(body), 0], np.uint64), 1, 0, byte_classes(),
            np.zeros(WORK, np.uint64), np.zeros(links, np.uint64), np.zeros(slots, np.uint64),
            np.zeros(4096, np.uint8), pages, page_ends, written, places, odds, rows, state,
        )
        == answer
    )  # fmt: skip
    if answer == forms.DONE:
        # A record; a page; its URL; a form; an odd link; two links to the form; a page that used the slots.
        assert state.tolist() == [1, 1, 1, 1, 1, 2, 1, 0]
        assert rows[:3].tolist() == [0, 1, 1]
        assert bytes(pages[: page_ends[1]]) == PAGE_URL.encode()
        assert bytes(written[: places[1]]) == b"http://www.example.com/x"
        assert odds[1] == 0
    else:
        assert state[0] == 0

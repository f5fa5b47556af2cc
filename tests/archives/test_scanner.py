"""The scanner of WAT records gives what decoding them gives, on any bytes."""

import io
import json
import subprocess
import sys
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from archives import anchors, record, synthetic_wat, wat_json
from inlink.archives.batches import archive_batches
from inlink.archives.kernels import forms
from inlink.archives.kernels.links import NEW, keep_hosts
from inlink.archives.kernels.wat import FULL, OTHER, PAGE, UNSURE, WORK, scan_record
from inlink.archives.records import records
from inlink.archives.scanner import ScannedPage, Scanner
from inlink.base.damage import Tally
from inlink.errors import DamageError
from inlink.urls.canonical import Base
from inlink.urls.kernels import PATH
from watdice import BASES, HREFS, PAGE_URL, URLS, archive, shaken, wat, written

OPTIONS = [
    {"like": "commoncrawl"},
    {"like": "commoncrawl", "links": "a"},
    {"like": "commoncrawl", "location": True},
    {"links": "all", "any_status": True},
    {"links": "all", "exact_schemes": True},
    {"links": "all", "location": False},
    {"any_status": True},
    {},
    {"links": "all"},
    {"links": "all", "nofollow": False},
    {"nofollow": False},
]
REAL = [
    "later.wat",
    "slice.warc.wat",
    "crawls/cc-2019-22-excerpt.wat.txt",
    "crawls/CC-MAIN-20140820021334-00006-ip-10-180-136-8.ec2.internal.warc.wat",
]


def found(data: bytes, *, scan: bool, **options: Any) -> tuple[Counter, set[str], set[str], Tally]:
    """The arcs, the nodes, the crawled nodes and the tally of an archive."""
    tally = Tally()
    arcs: Counter = Counter()
    nodes, crawled = set(), set()
    for batch in archive_batches(io.BytesIO(data), name="x", scan=scan, tally=tally, **options):
        names = [raw.decode() for raw in batch.names.to_pylist()]
        pairs = [
            (names[s], names[t]) for s, t in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
        ]
        if not options.get("repeats", True) and options.get("level") != "page":
            assert len(set(pairs)) == len(pairs)
        arcs.update(pairs)
        nodes |= set(names)
        crawled |= {names[place] for place in batch.crawled.tolist()}
    return arcs, nodes, crawled, tally


def check(data: bytes, **options: Any) -> None:
    """Scanning and decoding give the same, for hosts and for pages, with repeated arcs and without."""
    for level in ("page", "host"):
        given_options = {**options, "level": level}
        scanned = found(data, scan=True, **given_options)
        assert scanned == found(data, scan=False, **given_options)
        once = found(data, scan=True, repeats=False, **given_options)
        assert (set(once[0]), *once[1:]) == (set(scanned[0]), *scanned[1:])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", REAL)
def test_real_files_give_the_same(data, name, options):
    check(data(name).read_bytes(), **options)


@pytest.mark.parametrize("name", REAL)
def test_real_records_are_nearly_all_scanned(data, name):
    scanner, tally = Scanner(1), Tally()
    answers = Counter(
        type(scanner.page(one.body, one.offset, False))
        for one in records(io.BytesIO(data(name).read_bytes()), tally)
        if one.kind == "metadata"
    )
    assert answers[ScannedPage] > 0
    assert answers[bool] == 0


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
            arcs, *_ = found(archive([body]), scan=True, level="page", self_links=True)
            # A pair of surrogates is one character.
            form = Base(url).canonical(json.loads(json.dumps(href)))
            assert list(arcs) == ([] if form is None else [(url, form)])


def test_strict_reading_stops_where_decoding_does():
    bodies = [json.dumps(wat_json(PAGE_URL, anchors("/x"))).encode(), b'{"Envelope":', b"\xff"]
    for level in ("page", "host"):
        with pytest.raises(DamageError, match="JSON is invalid"):
            list(archive_batches(io.BytesIO(archive(bodies)), level=level, strict=True))


def test_many_links_and_hosts_make_the_arrays_longer():
    hrefs = [f"http://h{k}.example{k % 700}.com/{k % 3}" for k in range(20_000)]
    check(archive([json.dumps(wat_json(PAGE_URL, anchors(*hrefs, "/x", "/x"))).encode()]), links="all")


def test_an_array_that_is_too_short_is_told():
    body = np.frombuffer(json.dumps(wat_json(PAGE_URL, anchors("/x", "/y", "/z"))).encode(), np.uint8)
    work = np.zeros(WORK, np.uint64)
    assert scan_record(body, 1, work, np.zeros(2, np.uint64)) == FULL
    assert scan_record(body, 1, work, np.zeros(3, np.uint64)) == PAGE
    assert work[0] == 3
    request = json.dumps(wat_json(PAGE_URL, kind="request")).encode()
    assert scan_record(np.frombuffer(request, np.uint8), 1, work, np.zeros(3, np.uint64)) == OTHER
    assert scan_record(body[:-1], 1, work, np.zeros(3, np.uint64)) == UNSURE


@given(st.lists(st.integers(-3, 6), max_size=20), st.booleans(), st.booleans())
def test_hosts_that_are_kept(codes, self_loops, repeats):
    known = np.array([5, -2], np.int64)
    # Codes 5 and 6 stand for origins that were looked up later.
    given_codes = np.array([NEW + code - 5 if code >= 5 else code for code in codes], np.int64)
    truth = [int(known[code - 5]) if code >= 5 else code for code in codes]
    kept, refused = keep_hosts(
        given_codes, len(codes), known, 1, self_loops, repeats, np.zeros(6, np.uint32), 1
    )
    wanted = [code for code in truth if code >= 0 and (self_loops or code != 1)]
    assert given_codes[kept : kept + refused].tolist() == [code for code in truth if code < 0] or sorted(
        given_codes[kept : kept + refused].tolist()
    ) == sorted(code for code in truth if code < 0)
    assert sorted(given_codes[:kept].tolist()) == sorted(wanted if repeats else set(wanted))


_AT_THE_EDGE = """
import ctypes, json, mmap, sys
import numpy as np
from random import Random
from inlink.archives.kernels.wat import WORK, scan_record

size = mmap.PAGESIZE
area = mmap.mmap(-1, 17 * size)
place = ctypes.addressof(ctypes.c_char.from_buffer(area))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mprotect(ctypes.c_void_p(place + 16 * size), size, 0) == 0
memory = np.frombuffer(area, np.uint8)
memory.flags.writeable = False
work, links = np.zeros(WORK, np.uint64), np.zeros(4096, np.uint64)
bodies = json.loads(sys.stdin.read())
for body in bodies:
    body = body.encode("latin-1")[: 16 * size]
    for end in range(len(body) + 1):
        area[16 * size - end : 16 * size] = body[:end]
        for rules in (0, 1, 3):
            scan_record(memory[16 * size - end : 16 * size], rules, work, links)
print("read", len(bodies))
"""


def test_nothing_is_read_behind_the_end():
    dice = Random(1)
    bodies = [written(wat(dice), dice, 0.01).encode() for _ in range(12)]
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
    ("arena", "ends", "answer"), [(4095, 9, forms.FULL), (9000, 2, forms.FULL), (9000, 9, 1)]
)
def test_forms_are_written_only_where_there_is_room(arena, ends, answer):
    body = json.dumps(wat_json(PAGE_URL, anchors("/x", "mailto:x", "/x#y", "http://B.org/"))).encode()
    text, links = np.frombuffer(body, np.uint8), np.zeros(4, np.uint64)
    assert scan_record(text, 1, np.zeros(WORK, np.uint64), links) == PAGE
    classes = np.full(256, PATH, np.uint8)
    classes[ord("#")] = 0
    told, odd = np.zeros(3, np.int64), np.zeros(4, np.uint32)
    url = np.frombuffer(PAGE_URL.encode(), np.uint8)
    written, places = np.zeros(arena, np.uint8), np.zeros(ends, np.int64)
    slots = np.zeros(16, np.uint64)
    assert (
        forms.page_forms(text, links, 4, url, url, 0, classes, slots, 1, written, places, told, odd) == answer
    )
    if answer != forms.FULL:
        assert told.tolist() == [1, 2, 1]  # a form; links to it; links that are not http
        assert bytes(written[: places[1]]) == b"http://www.example.com/x"
        assert odd[0] == 3

"""Gzip members that are scanned many at a time give the same results as records that are read one by one."""

import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from archives import A, anchors, record, response, synthetic_wat, warcinfo, wat_json, wat_record
from inlink.archives import records as reader
from inlink.archives import streams
from inlink.archives.batches import archive_batches
from inlink.archives.kernels import forms
from inlink.archives.kernels.members import ALWAYS, frame_members
from inlink.archives.kernels.wat import WORK
from inlink.base.damage import Tally
from inlink.errors import DamageError, FormatError
from inlink.urls.classes import byte_classes
from watdice import OPTIONS, PAGE_URL, arcs_found, check_scan, shaken, wat, written

SEEDS = st.integers(0, 2**32)


@pytest.fixture(scope="module", autouse=True)
def _numbered() -> None:
    """Compile the kernels before the first example, because examples have a deadline."""
    check_scan(b"".join(map(gzip.compress, usual(Random(1), 3))))


def usual(dice: Random, count: int, odds: float = 0.0) -> list[bytes]:
    return [wat_record(written(shaken(wat(dice), dice, odds), dice, odds).encode()) for _ in range(count)]


def other(dice: Random) -> bytes:
    """A record that is not plain, or whose neighbours are not."""
    body = json.dumps(wat_json(PAGE_URL, anchors("/x?a=1&amp;b=2", "http://b.org/"))).encode()
    plain = wat_record(body)
    makers: list[Callable[[], bytes]] = [
        warcinfo,
        lambda: warcinfo("Software-Info: ia-web-commons.1.0-SNAPSHOT-20140819100050\r\n"),
        lambda: response(A, "<a href=/x>"),
        lambda: record("conversion", b"x", content_type="text/html"),
        lambda: wat_record(body, date="2014-01-01T00:00:00Z"),
        lambda: wat_record(body, date=dice.choice(["", "2019-07-0", "20190101", "2019-0a-01", "0000-00-00"])),
        lambda: plain.replace(b"WARC-Type", dice.choice([b"warc-type ", b"WARC-TYPE", b"WARC-Typo"])),
        lambda: plain.replace(
            b": metadata", dice.choice([b":metadata", b":\tMetadata  ", b": metadata\x0b", b":"])
        ),
        lambda: plain.replace(
            b"Content-Length: ", dice.choice([b"Content-Length: 0", b"Content-Length: 9", b"X: "])
        ),
        lambda: plain.replace(b"\r\n", b"\n", dice.randrange(1, 9)),
        lambda: plain.replace(b"WARC-Date: ", b"WARC-Date: 2014-01-01\r\nWARC-Date: "),
        lambda: plain.replace(
            b"WARC-Date", b"X-" + b"y" * dice.choice([10, 40_000, 70_000]) + b": z\r\nWARC-Date"
        ),
        lambda: plain[: dice.randrange(len(plain))],
        lambda: plain + dice.choice([b"\r\n", b"x", plain]),
        lambda: wat_record(b'{"Envelope"'),
        lambda: wat_record(b"\xff"),
        lambda: wat_record(wat_json("")),
        lambda: b"",
    ]
    return dice.choice(makers)()


@settings(max_examples=100)
@given(SEEDS, st.sampled_from(OPTIONS), st.sampled_from([0.0, 0.02]))
def test_members_give_what_records_give(seed, options, odds):
    dice = Random(seed)
    made = [warcinfo(), *usual(dice, dice.randrange(1, 9), odds)]
    for _ in range(dice.randrange(4)):
        made.insert(dice.randrange(len(made) + 1), other(dice))
    check_scan(b"".join(gzip.compress(one, 1) for one in made) + b"\0" * dice.randrange(3), **options)


@settings(max_examples=200)
@given(SEEDS)
def test_damaged_members_give_what_damaged_records_give(seed):
    dice = Random(seed)
    data = bytearray(
        b"".join(gzip.compress(one, 1) for one in [*usual(dice, 4), other(dice), *usual(dice, 3)])
    )
    for _ in range(dice.randrange(1, 3)):
        place = dice.randrange(len(data))
        match dice.choice(["flip", "drop", "insert"]):
            case "flip":
                data[place] ^= dice.randrange(1, 256)
            case "drop":
                del data[place : place + dice.randrange(1, 50)]
            case "insert":
                data[place:place] = dice.randbytes(9)
    check_damaged(bytes(data))


def check_damaged(data: bytes) -> None:
    """Scanning and decoding give the same results or the same error message, in strict mode too."""
    for strict in (False, True):
        outcomes = []
        for scan in (True, False):
            try:
                outcomes.append(arcs_found(data, scan=scan, level="host", links="all", strict=strict))
            except (DamageError, FormatError) as error:
                outcomes.append((type(error), str(error)))
        assert outcomes[0] == outcomes[1]


def small() -> list[bytes]:
    return [
        warcinfo(),
        *(
            wat_record(wat_json(f"http://a{k}.example.com/", anchors("/x", f"http://b{k}.org/")))
            for k in range(3)
        ),
        response(A, "<a href=/y>"),
        wat_record(wat_json(A, anchors("/z"))),
    ]


@pytest.mark.slow
def test_a_file_cut_anywhere_gives_what_records_give():
    data = b"".join(gzip.compress(one, 1) for one in small())
    for end in range(1, len(data) + 1, 3):
        check_damaged(data[:end])


@pytest.mark.slow
def test_blocks_of_any_size_give_the_same(monkeypatch):
    data = b"".join(gzip.compress(one, 1) for one in small())
    whole = {level: arcs_found(data, scan=False, level=level) for level in ("host", "page")}
    for size in [*range(3, 300), len(data) // 2, len(data) - 1, len(data), len(data) + 1]:
        monkeypatch.setattr(reader, "_BLOCK", size)
        for level, wanted in whole.items():
            assert arcs_found(data, scan=True, level=level) == wanted


@pytest.mark.parametrize("ahead", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [1, 2000, 1 << 19])
@pytest.mark.parametrize("piece", [500, 1500, 1 << 20])
def test_any_number_of_members_ahead_gives_the_same(tmp_path, monkeypatch, ahead, size, piece):
    synthetic_wat(tmp_path / "x", pages=5, links=20)
    data = (tmp_path / "x").read_bytes() + b"".join(gzip.compress(one, 1) for one in small())
    wanted = arcs_found(data, scan=False, level="page")
    monkeypatch.setattr(reader, "_AHEAD", ahead)
    monkeypatch.setattr(reader, "_AHEAD_BYTES", size)
    # A longer member is read by itself.
    monkeypatch.setattr(reader, "_PIECE", piece)
    assert arcs_found(data, scan=True, level="page") == wanted


def test_members_with_long_gzip_headers_are_read_like_others(monkeypatch):
    """The source keeps only the last bytes of the file, so that it could not go back to such a member."""
    monkeypatch.setattr(reader, "KEPT", 1 << 17)
    monkeypatch.setattr(streams, "KEPT", 1 << 17)

    def member(number: int, odd: bool) -> bytes:
        whole = wat_record(wat_json(f"http://a{number}.com/", anchors(f"http://b{number}.com/")))
        packed = gzip.compress(whole.replace(b"\r\n", b"\r\nX: \t\r\n", 1) if odd else whole)
        # The flag of a file's name, and a name.
        return packed[:3] + b"\x08" + packed[4:10] + b"n" * 200_000 + b"\0" + packed[10:]

    head = b"".join(gzip.compress(wat_record(wat_json(f"{A}{k}", anchors("/x")))) for k in range(4))
    data = head + b"".join(member(number, odd=number % 2 == 1) for number in range(6))
    check_scan(data)
    _, _, crawled, tally = arcs_found(data, scan=True, level="page")
    assert (len(crawled), tally.records, tally.skipped) == (10, 10, {})


def test_plain_members_are_read_ahead():
    """If no member were read ahead, the other tests would pass too."""
    made = [
        warcinfo(),
        *(wat_record(wat_json(f"http://a{k}.example.com/", anchors("/x"))) for k in range(20)),
    ]
    data, tally, ahead = b"".join(map(gzip.compress, made)), Tally(), []
    stream = reader.records(io.BytesIO(data), tally, ahead=True)
    for part in stream:
        if isinstance(part, reader.Members):
            part.used = min(len(part.ends), 6)
            ahead.append((len(part.ends), part.used))
    assert ahead == [(1, 1), (2, 2), (4, 4), (8, 6), (1, 1), (2, 2), (2, 2)]
    assert tally.records == 21


def test_batches_end_between_blocks(monkeypatch):
    from inlink.archives import batches as module

    made = [
        wat_record(wat_json(f"http://a{k}.example{k}.com/", anchors("/x", f"//b{k}.org"))) for k in range(60)
    ]
    data = b"".join(map(gzip.compress, [warcinfo(), *made]))
    wanted = {level: arcs_found(data, scan=False, level=level) for level in ("host", "page", "domain")}
    monkeypatch.setattr(module, "BATCH", 10)
    monkeypatch.setattr(module, "MAX_HOSTS", 5)
    for level, arcs in wanted.items():
        assert len(list(archive_batches(io.BytesIO(data), level=level))) > 2
        assert arcs_found(data, scan=True, level=level) == arcs


# headers ----------------------------------------------------------------------------------------------------------

FIELDS = [
    *(
        b"WARC-Type: metadata",
        b"warc-type:  METADATA ",
        b"WARC-Type: metadata",
        b"WARC-Type: response",
        b"WARC-Type:",
    ),
    *(b"Content-Type: application/json", b"content-type:APPLICATION/JSON; x", b"Content-Type: text/plain"),
    *(b"WARC-Date: 2014-05-01T00:00:00Z", b"WARC-Date: 2024-05-01T00:00:00Z", b"WARC-Date: x", b"WARC-Date:"),
    *(
        b"Content-Length: 7",
        b"Content-Length: 7",
        b"content-length: 07 ",
        b"Content-Length: 8",
        b"Content-Length: +7",
    ),
    *(
        b"WARC-Target-URI: http://a.org/",
        b"X",
        b"X:",
        b" WARC-Type: response",
        b"X\tY: \xff",
        b"WARC-Type : metadata",
    ),
    *(b"Content-Length", b"WARC-Dates: 2014-05-01", b": metadata", b"Content-Length: " + b"9" * 30, b""),
]
GOOD = [
    b"WARC/1.0",
    b"WARC-Type: metadata",
    b"Content-Type: application/json",
    b"WARC-Date: 2014-05-01",
    b"Content-Length: 7",
]


@settings(max_examples=500)
@given(
    st.sampled_from([b"WARC/1.0", b"WARC/1.1", b"WARC/x", b"WARX/1.0", b"WARC/1.0 "]),
    st.lists(st.sampled_from(FIELDS), max_size=9),
    st.sampled_from([b"\r\n", b"\r\n", b"\n", b"\r"]),
    st.sampled_from([b"\r\n\r\n", b"\r\n\r\n", b"\n\n", b"", b"\r\n\r\nx"]),
    st.sampled_from([0, 20190708, ALWAYS]),
    st.integers(0, 3),
)
@example(GOOD[0], GOOD[1:], b"\r\n", b"\r\n\r\n", 20190708, 0)
@example(GOOD[0], [*GOOD[1:], GOOD[1]], b"\r\n", b"\r\n\r\n", 20190708, 0)
def test_headers_are_read_as_the_reader_reads_them(start, fields, line, end, until, cut):
    body = b'{"a":1}'
    data = line.join([start, *fields]) + b"\r\n\r\n" + body + end
    data = data[: len(data) - cut]
    frames = np.zeros(3, np.uint64)
    if not frame_members(np.frombuffer(data, np.uint8), np.array([len(data)], np.uint64), until, frames):
        return
    end_of_header = data.index(b"\r\n\r\n") + 4
    truth, length = reader.warc_header(data[:end_of_header], 0)
    assert truth.is_json
    assert frames[:2].tolist() == [end_of_header, end_of_header + length] == [len(data) - 11, len(data) - 4]
    assert data[-4:] == b"\r\n\r\n"
    wanted = truth.date[:10] < b"2019-07-08" if until == 20190708 else until == ALWAYS
    assert bool(frames[2]) == wanted


def test_a_plain_header_is_read():
    data = b"\r\n".join(GOOD) + b'\r\n\r\n{"a":1}\r\n\r\n'
    for copies in (1, 3):
        text = np.frombuffer(data * copies + b"WARC", np.uint8)
        ends = np.array([*(len(data) * (k + 1) for k in range(copies)), len(text)], np.uint64)
        frames = np.zeros(3 * len(ends), np.uint64)
        assert frame_members(text, ends, 20190708, frames) == copies
        for k in range(copies):
            begin, end, entities = frames[3 * k : 3 * k + 3].tolist()
            assert (bytes(text[begin:end]), entities) == (b'{"a":1}', 1)


_AT_THE_EDGE = """
import ctypes, json, mmap, sys
import numpy as np
from inlink.archives.kernels.members import frame_members

size = mmap.PAGESIZE
area = mmap.mmap(-1, 2 * size)
place = ctypes.addressof(ctypes.c_char.from_buffer(area))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mprotect(ctypes.c_void_p(place + size), size, 0) == 0
memory = np.frombuffer(area, np.uint8)
memory.flags.writeable = False
for text in json.loads(sys.stdin.read()):
    text = text.encode("latin-1")
    for end in range(len(text) + 1):
        area[size - end : size] = text[:end]
        frame_members(memory[size - end : size], np.array([end], np.uint64), 20190708, np.zeros(3, np.uint64))
print("read")
"""


def test_nothing_is_read_behind_the_end_of_a_header():
    texts = [
        b"\r\n".join(GOOD) + b'\r\n\r\n{"a":1}\r\n\r\n',
        b"WARC/1.0\r\n" + b"\r\n".join(FIELDS) + b"\r\n\r\n",
    ]
    texts += [b"WARC/1.0\r\n" + field + b"\r\n" for field in FIELDS]
    done = subprocess.run(
        [sys.executable, "-c", _AT_THE_EDGE],
        input=json.dumps([text.decode("latin-1") for text in texts]),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "read\n", (done.returncode, done.stderr[-500:])


# repeated links ---------------------------------------------------------------------------------------------------


def _slot(url: bytes, mask: int) -> int:
    """The place of a link in the table of a page's links, as the kernel computes it."""
    most, prime = 2**64 - 1, 0x9E3779B97F4A7C15
    value, words = prime, len(url) & ~7
    for at in range(0, words, 8):
        value = (value ^ int.from_bytes(url[at : at + 8], "little")) * prime & most
        value ^= value >> 32
    for byte in url[words:]:
        value = (value ^ byte) * prime & most
    return (((value ^ (value >> 32)) * prime & most) >> 32) & mask


def test_many_links_with_one_place_in_the_table_are_all_there():
    urls = [url for k in range(60_000) if _slot((url := f"http://b.org/{k}").encode(), 511) == 7][:100]
    assert len(urls) == 100
    body = json.dumps(wat_json(PAGE_URL, anchors(*urls, *urls))).encode()
    written, ends = np.zeros(1 << 16, np.uint8), np.zeros(300, np.int64)
    state, links = np.zeros(8, np.int64), np.zeros(202, np.uint64)
    answer = forms.page_forms(
        np.frombuffer(body, np.uint8), np.array([0, len(body), 0], np.uint64), 1, 0, byte_classes(),
        np.zeros(WORK, np.uint64), links, np.zeros(512, np.uint64), np.zeros(4096, np.uint8),
        np.zeros(9000, np.uint8), np.zeros(9, np.int64), written, ends, np.zeros(404, np.uint64),
        np.zeros(5, np.uint64), state,
    )  # fmt: skip
    assert answer == forms.DONE
    count = int(state[3])
    taken = [bytes(written[ends[k] : ends[k + 1]]).decode() for k in range(count)]
    assert set(taken) == set(urls)
    # Only the first 64 are looked up.
    assert count == 100 + 36
    assert state[5] == 200


def test_links_that_differ_in_their_ends_have_places_of_their_own():
    slots = {
        _slot(f"http://www.archive.org/iathreads/post-view.php?id=2{k:06}".encode(), 8191)
        for k in range(2000)
    }
    assert len(slots) > 1500

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archives import (
    A,
    B,
    C,
    anchors,
    arc_record,
    arc_start,
    batches_of,
    http,
    links_of,
    pages_of,
    record,
    records_of,
    response,
    sample,
    warcinfo,
    wat_json,
    wat_record,
    write,
)
from inlink.archives import records as reader
from inlink.base.damage import Tally
from inlink.errors import DamageError, FormatError, InputError
from inlink.sources.archive import kind_of

SAMPLE_LINKS = {A: [B], B: ["http://b.example.org/y"], C: []}


def bodies(path, tally=None):
    return [r.body for r in records_of(path, tally or Tally())]


# records ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", ["", "records", "whole"])
def test_an_archive_however_it_is_packed(tmp_path, packed):
    path = write(tmp_path / "any name at all", sample(), packed=packed)
    tally = Tally(strict=True)
    assert links_of(path, tally) == SAMPLE_LINKS
    assert (tally.records, tally.pages, tally.links, tally.skipped) == (4, 3, 2, {})
    assert kind_of(path) == "warc"


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_gzip_members_that_end_anywhere(tmp_path, size):
    raw = b"".join(sample())
    cut = b"".join(gzip.compress(raw[i : i + size]) for i in range(0, len(raw), size))
    (tmp_path / "x.gz").write_bytes(cut + b"\0" * 100)  # and padding
    assert links_of(tmp_path / "x.gz", Tally(strict=True)) == SAMPLE_LINKS


@pytest.mark.parametrize(
    "name", ["web.warc.gz", "small.warc.gz", "crawls/aut-example.warc.gz", "crawls/warcfile.warc.gz"]
)
def test_records_are_those_of_fastwarc(data, name):
    fastwarc = pytest.importorskip("fastwarc")
    path = data(name)
    theirs = [(r.stream_pos, r.reader.read()) for r in fastwarc.ArchiveIterator(str(path), parse_http=False)]
    assert [(r.offset, r.body) for r in records_of(path, Tally(strict=True))] == theirs


def test_records_of_arc_are_those_of_warcio(tmp_path):
    warcio = pytest.importorskip("warcio")
    pages = [
        arc_record(A, http(b"<a href=x>")),
        arc_record("dns:a.com", b"x", content_type="text/dns"),
        arc_record(B, http(b"")),
    ]
    for packed in ("", "records"):
        path = write(tmp_path / f"x{packed}.arc", [arc_start(), *pages], packed=packed)
        with path.open("rb") as file:
            theirs = [r.rec_headers.get_header("uri") for r in warcio.ArchiveIterator(file)]
        ours = list(records_of(path, Tally(strict=True)))
        assert [r.url.decode() for r in ours] == theirs
        assert [r.kind for r in ours] == ["warcinfo", "response", "resource", "response"]
        assert links_of(path) == {A: [A + "x"], B: []}
        assert kind_of(path) == "arc"


def test_arc_headers_of_both_versions(tmp_path):
    two = f"{B} 192.0.2.1 20080430204825 text/html 200 abc - 17 x.arc 22\n".encode() + http(b"1")[:22] + b"\n"
    spaced = arc_record("http://a.com/with space", http(b"<a href=y>"))
    path = write(tmp_path / "x.arc", [arc_start(), two, spaced])
    assert [r.url for r in records_of(path, Tally(strict=True))][1:] == [
        B.encode(),
        b"http://a.com/with space",
    ]


def test_other_ways_to_write_headers(tmp_path):
    odd = (
        b"WARC/1.1\nwarc-TYPE:Response\nWARC-Target-URI: <http://a.example.com/>\nX-Noise\nContent-length : 34\n\n"
        b"HTTP/1.0 200 OK\n\n<html> <a href=q>\n"
    )
    path = write(tmp_path / "x", [b"\r\n\r\n", odd, *sample()[2:]])
    assert links_of(path, Tally(strict=True)) == {A: [A + "q"], B: SAMPLE_LINKS[B], C: []}


def test_no_archives(tmp_path):
    for name, data in {
        "text": b"hello\n" * 1000,
        "empty": b"",
        "zeros": b"\0" * 5000,
        "gz": gzip.compress(b"hello"),
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(FormatError, match="is not a web archive"):
            bodies(path)
        assert kind_of(path) is None
    with pytest.raises(InputError, match="cannot be read"):
        bodies(tmp_path / "absent")
    with pytest.raises(InputError, match="cannot be read"):
        bodies(tmp_path)


# damage -------------------------------------------------------------------------------------------------------


def damage_of(path):
    """Return the records that reading leaves out, by reason; check that strict reading refuses the first of them."""
    tally = Tally()
    found = bodies(path, tally)
    assert tally.records == len(found)
    damage = {reason: (entry.count, entry.offset) for reason, entry in tally.skipped.items() if entry.damage}
    if damage:
        with pytest.raises(DamageError) as error:
            bodies(path, Tally(strict=True))
        offset = min(offset for _, offset in damage.values())
        assert str(path) in str(error.value)
        assert f"at byte {offset:,}:" in str(error.value)
    return found, damage


@pytest.mark.slow
@pytest.mark.parametrize("packed", ["", "records", "whole"])
def test_a_file_cut_short_anywhere(tmp_path, packed, at):
    data = write(tmp_path / "whole", sample(), packed=packed).read_bytes()
    whole = bodies(tmp_path / "whole")
    ends = np.cumsum([len(gzip.compress(r, 1)) if packed else len(r) for r in sample()]).tolist()
    path = tmp_path / "cut"
    # Each file behind a URL takes some milliseconds.
    for cut in range(20, len(data), 1 if at(path) == path else 173):
        path.write_bytes(data[:cut])
        found, damage = damage_of(at(path))
        assert found == whole[: len(found)]
        if packed == "whole":
            assert damage == {reader.CUT_MEMBER: (1, 0)}
        elif packed:
            begun = [0, *ends]
            assert len(found) == sum(end <= cut for end in ends)
            assert damage == ({} if cut in ends else {reader.CUT_MEMBER: (1, begun[len(found)])})
        elif not damage:  # up to the two line ends after a record
            assert any(end - 4 <= cut <= end for end in ends)


def test_lengths_that_lie(tmp_path, at):
    good = response(A, "first")
    for lie in (10, 75, 1000, 10**15):
        bad = record("response", http(b"x" * 50), url=B, length=lie)
        for packed in ("", "records", "whole"):
            path = write(tmp_path / "x", [good, bad, response(C, "last")], packed=packed)
            found, damage = damage_of(at(path))
            assert [body[-5:] for body in found] == [b"first", b"\nlast"], (lie, packed)
            assert list(damage) == [reader.BAD_LENGTH]


def test_headers_that_are_malformed(tmp_path, at):
    good, last = response(A, "first"), response(C, "last")
    for old, new in (
        (b"Content-Length: ", b"Content-Length: x"),
        (b"Content-Length: ", b"No-Length: "),
        (b"WARC-Type: ", b"Type: "),
        (b"WARC/1.0", b"WRAC/1.0"),
    ):
        bad = response(B, "second").replace(old, new)
        for packed in ("", "records", "whole"):
            found, damage = damage_of(at(write(tmp_path / "x", [good, bad, last], packed=packed)))
            assert len(found) in (1, 2)
            assert found[-1].endswith(b"last")
            assert sum(count for count, _ in damage.values()) == 1
    endless = b"WARC/1.0\r\n" + b"X-Header: x\r\n" * 10_000 + b"\r\n\r\n"
    found, damage = damage_of(at(write(tmp_path / "x", [good, endless, last])))
    assert len(found) == 2
    assert list(damage) == [reader.BAD_HEADER]


def test_damage_in_the_middle_costs_one_record(tmp_path, at):
    pages = [response(f"http://{i}.example.com/", "text " * 500 + str(i)) for i in range(30)]
    members = [gzip.compress(page) for page in pages]
    first = sum(map(len, members[:10]))
    for place in (0, 1, 3, 15, len(members[10]) // 2, len(members[10]) - 6, len(members[10]) - 2):
        data = bytearray(b"".join(members))
        data[first + place] ^= 0x55
        path = tmp_path / "x.warc.gz"
        path.write_bytes(data)
        found, damage = damage_of(at(path))
        assert len(found) in (29, 30)  # some bytes of a gzip header mean nothing
        assert len(found) == 29 or place == 3
        assert [offset for _, offset in damage.values()] in ([first], [] if place == 3 else [at])
    path.write_bytes(b"".join(members[:10]) + b"noise" * 1000 + b"".join(members[10:]))
    found, damage = damage_of(at(path))
    assert len(found) == 30
    assert damage == {reader.NO_MEMBER: (1, first)}


def complete_by_fastwarc(path):
    """Read an archive with fastwarc and a check of lengths: the complete records, and whether it ended by an error."""
    from fastwarc.warc import ArchiveIterator

    found = []
    try:
        with path.open("rb") as file:
            for one in ArchiveIterator(file, parse_http=False):
                body = one.reader.read()
                if len(body) == one.content_length:
                    found.append(body)
    except OSError:
        return found, True
    return found, False


@pytest.mark.parametrize("kind", ["flipped", "lying"])
def test_fastwarc_loses_what_comes_after_damage(tmp_path, kind):
    """This is why inlink has a reader of its own, as docs/dependencies.md says."""
    pytest.importorskip("fastwarc")
    pages = [response(f"http://{i}.example.com/", "text " * 500 + str(i)) for i in range(30)]
    members = [gzip.compress(page) for page in pages]
    path = write(tmp_path / "x", pages, packed="records")
    assert complete_by_fastwarc(path) == (bodies(path), False)
    if kind == "flipped":
        data = bytearray(b"".join(members))
        data[sum(map(len, members[:10])) + len(members[10]) // 2] ^= 0x55
        path.write_bytes(data)
    else:
        pages[10] = pages[10].replace(b"Content-Length: ", b"Content-Length: 99999", 1)
        path = write(tmp_path / "y", pages)
    found, failed = complete_by_fastwarc(path)
    assert len(found) == 10
    assert failed == (kind == "flipped")
    assert len(bodies(path)) == 29


def test_a_damaged_beginning_is_passed_over(tmp_path, at):
    for packed in ("", "records"):
        data = write(tmp_path / "x", sample(), packed=packed).read_bytes()
        (tmp_path / "y").write_bytes(b"?" + data[1:])
        found, damage = damage_of(at(tmp_path / "y"))
        assert len(found) == 3
        assert len(damage) == 1


def test_reading_gives_up_after_many_faults(tmp_path, monkeypatch, at):
    monkeypatch.setattr(reader, "MAX_FAULTS", 5)
    bad = record("response", b"x" * 50, url=B, length=3)
    found, damage = damage_of(at(write(tmp_path / "x", [response(A, "a"), *[bad] * 20, response(C, "c")])))
    assert len(found) == 1
    assert {reason: count for reason, (count, _) in damage.items()} == {
        reader.BAD_LENGTH: 5,
        reader.TOO_MANY: 1,
    }


def test_long_records_are_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MAX_RECORD", 100)
    tally = Tally(strict=True)
    path = write(tmp_path / "x", [response(A, "x" * 10_000), response(C, "last")], packed="whole")
    assert [len(body) for body in bodies(path, tally)] == [100, len(http(b"last"))]
    assert tally.skipped[reader.LONG_RECORD].count == 1


@pytest.mark.parametrize(
    ("name", "kept", "pages", "damage"),
    [
        ("cut.warc.gz", 128, 51, {reader.CUT_MEMBER: (1, 51_334)}),
        ("clipped.warc.gz", 0, 0, {reader.CUT_MEMBER: (1, 0)}),
        ("quirk.warc.gz", 13, 12, {}),
        ("bad.arc.gz", 3, 2, {reader.BAD_LENGTH: (1, 0), reader.CUT: (1, 0)}),
        # 422 records begin; the last holds 11,984 of its 57,938 bytes
        ("broken/cut-at-1000000.warc.gz", 421, 132, {reader.CUT_MEMBER: (1, 987_735)}),
        # one record, 75,207 of 88,275 bytes long
        ("broken/clipped.warc.gz", 0, 0, {reader.CUT_MEMBER: (1, 0)}),
        # header lines ended by LF in HTTP, CRLF in WARC, a Content-Encoding that is none, a date that is none
        ("broken/clueweb-quirk.warc.gz", 30, 29, {}),
        # one gzip member, three records whose lengths were true before their headers were blanked, the last at the end
        ("broken/badexample.arc.gz", 3, 1, {reader.BAD_LENGTH: (2, 0), reader.CUT: (1, 0)}),
    ],
)
def test_broken_archives(data, tmp_path, at, name, kept, pages, damage):
    path = at(Path(shutil.copy(data(name), tmp_path)))
    found, told = damage_of(path)
    assert len(found) == kept
    assert told == damage
    tally = Tally()
    assert len(list(pages_of(path, tally))) == pages == tally.pages
    assert tally.damaged == sum(count for count, _ in damage.values())
    assert sum(line.startswith("left out: ") for line in tally.lines()) == len(tally.skipped)


@pytest.mark.parametrize(
    ("name", "part", "records", "kept"),
    [
        ("web.warc.gz", "cut.warc.gz", 254, 128),
        ("crawls/aut-example.warc.gz", "broken/cut-at-1000000.warc.gz", 822, 421),
    ],
)
def test_the_cut_archive_has_what_the_whole_one_begins_with(data, name, part, records, kept):
    whole, cut = bodies(data(name)), bodies(data(part))
    assert len(whole) == records
    assert cut == whole[:kept]


SMALL = {
    packed: [
        warcinfo(),
        response(A, "<a href=x>x</a>"),
        wat_record(wat_json(B, anchors("y"))),
        response(C, "z"),
    ]
    for packed in ("", "records", "whole")
} | {"arc": [arc_start(), arc_record(A, http(b"<a href=x>")), arc_record(B, http(b"y"))]}


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(list(SMALL)), st.data())
def test_any_damage_is_told_and_never_a_crash(tmp_path, packed, data):
    path = write(tmp_path / "x", SMALL[packed], packed="" if packed == "arc" else packed)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(len(raw) - 1, 0)))
        match data.draw(st.sampled_from(["flip", "cut", "drop", "insert"])):
            case "flip" if raw:
                raw[place] ^= data.draw(st.integers(1, 255))
            case "cut":
                del raw[place:]
            case "drop":
                del raw[place : place + data.draw(st.integers(1, 50))]
            case "insert":
                raw[place:place] = data.draw(st.binary(min_size=1, max_size=20))
    path.write_bytes(raw)
    tally = Tally()
    unknown = False
    try:
        for level in ("page", "host"):
            list(batches_of(path, level=level, links="all", tally=tally))
    except FormatError:
        unknown = True  # nothing in it looks like a record any more
        assert tally.records == 0
    message = ""
    try:
        list(batches_of(path, links="all", strict=True))
    except DamageError as error:
        message = str(error)
    except FormatError:
        assert unknown
    assert bool(message) == bool(tally.damaged) or unknown
    assert not message or (f"{path}: " in message and ", at byte " in message)

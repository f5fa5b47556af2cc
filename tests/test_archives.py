import gzip
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from archives import (
    anchors,
    arc_record,
    arc_start,
    http,
    record,
    response,
    warcinfo,
    wat_json,
    wat_record,
    write,
)
from inlink.base.progress import Task, reporting
from inlink.errors import DamageError, FormatError, InlinkError, InputError, ParameterError
from inlink.sources import records as reader
from inlink.sources.archives import archive_batches, archive_kind, page_links, raw_pages
from inlink.sources.damage import Tally
from inlink.sources.html import MAX_DOCUMENT
from inlink.sources.records import records
from inlink.urls import domain_of, host_of, reverse_host

A, B, C = "http://a.example.com/", "http://b.example.org/x", "http://c.example.net/"


def bodies(path, tally=None):
    return [r.body for r in records(path, tally or Tally())]


def sample():
    return [
        warcinfo(),
        response(A, f"<a href='{B}'>b</a>"),
        response(B, "<a href=/y>y</a>"),
        response(C, "no link"),
    ]


def links_of(path, tally=None, **options):
    return {page.url: page.links for page in page_links(path, tally, **options)}


SAMPLE_LINKS = {A: [B], B: ["http://b.example.org/y"], C: []}

# records ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", ["", "records", "whole"])
def test_an_archive_however_it_is_packed(tmp_path, packed):
    path = write(tmp_path / "any name at all", sample(), packed=packed)
    tally = Tally(strict=True)
    assert links_of(path, tally) == SAMPLE_LINKS
    assert (tally.records, tally.pages, tally.links, tally.skipped) == (4, 3, 2, {})
    assert archive_kind(path) == "warc"


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_gzip_members_that_end_anywhere(tmp_path, size):
    raw = b"".join(sample())
    cut = b"".join(gzip.compress(raw[i : i + size]) for i in range(0, len(raw), size))
    (tmp_path / "x.gz").write_bytes(cut + b"\0" * 100)  # and padding
    assert links_of(tmp_path / "x.gz", Tally(strict=True)) == SAMPLE_LINKS


def test_records_are_those_of_fastwarc(shared_data):
    fastwarc = pytest.importorskip("fastwarc")
    for name in ("aut-example.warc.gz", "warcfile.warc.gz"):
        path = shared_data(f"crawls/{name}")
        theirs = [
            (r.stream_pos, r.reader.read()) for r in fastwarc.ArchiveIterator(str(path), parse_http=False)
        ]
        assert [(r.offset, r.body) for r in records(path, Tally(strict=True))] == theirs


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
        ours = list(records(path, Tally(strict=True)))
        assert [r.url.decode() for r in ours] == theirs
        assert [r.kind for r in ours] == ["warcinfo", "response", "resource", "response"]
        assert links_of(path) == {A: [A + "x"], B: []}
        assert archive_kind(path) == "arc"


def test_arc_headers_of_both_versions(tmp_path):
    two = f"{B} 192.0.2.1 20080430204825 text/html 200 abc - 17 x.arc 22\n".encode() + http(b"1")[:22] + b"\n"
    spaced = arc_record("http://a.com/with space", http(b"<a href=y>"))
    path = write(tmp_path / "x.arc", [arc_start(), two, spaced])
    assert [r.url for r in records(path, Tally(strict=True))][1:] == [B.encode(), b"http://a.com/with space"]


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
        with pytest.raises(FormatError, match="is no web archive"):
            bodies(path)
        assert archive_kind(path) is None
    with pytest.raises(InputError, match="cannot be read"):
        bodies(tmp_path / "absent")
    with pytest.raises(InputError, match="cannot be read"):
        bodies(tmp_path)


# damage -------------------------------------------------------------------------------------------------------


def damage_of(path):
    """What reading leaves out, by reason, and that strict reading refuses the first of it."""
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


@pytest.mark.parametrize("packed", ["", "records", "whole"])
def test_a_file_cut_short_anywhere(tmp_path, packed):
    data = write(tmp_path / "whole", sample(), packed=packed).read_bytes()
    whole = bodies(tmp_path / "whole")
    ends = np.cumsum([len(gzip.compress(r, 1)) if packed else len(r) for r in sample()]).tolist()
    for cut in range(20, len(data)):
        path = tmp_path / "cut"
        path.write_bytes(data[:cut])
        found, damage = damage_of(path)
        assert found == whole[: len(found)]
        if packed == "whole":
            assert damage == {reader.CUT_MEMBER: (1, 0)}
        elif packed:
            begun = [0, *ends]
            assert len(found) == sum(end <= cut for end in ends)
            assert damage == ({} if cut in ends else {reader.CUT_MEMBER: (1, begun[len(found)])})
        elif not damage:  # up to the two line ends after a record
            assert any(end - 4 <= cut <= end for end in ends)


def test_lengths_that_lie(tmp_path):
    good = response(A, "first")
    for lie in (10, 75, 1000, 10**15):
        bad = record("response", http(b"x" * 50), url=B, length=lie)
        for packed in ("", "records", "whole"):
            path = write(tmp_path / "x", [good, bad, response(C, "last")], packed=packed)
            found, damage = damage_of(path)
            assert [body[-5:] for body in found] == [b"first", b"\nlast"], (lie, packed)
            assert list(damage) == [reader.BAD_LENGTH]


def test_headers_that_are_malformed(tmp_path):
    good, last = response(A, "first"), response(C, "last")
    for old, new in (
        (b"Content-Length: ", b"Content-Length: x"),
        (b"Content-Length: ", b"No-Length: "),
        (b"WARC-Type: ", b"Type: "),
        (b"WARC/1.0", b"WRAC/1.0"),
    ):
        bad = response(B, "second").replace(old, new)
        for packed in ("", "records", "whole"):
            found, damage = damage_of(write(tmp_path / "x", [good, bad, last], packed=packed))
            assert len(found) in (1, 2)
            assert found[-1].endswith(b"last")
            assert sum(count for count, _ in damage.values()) == 1
    endless = b"WARC/1.0\r\n" + b"X-Header: x\r\n" * 10_000 + b"\r\n\r\n"
    found, damage = damage_of(write(tmp_path / "x", [good, endless, last]))
    assert len(found) == 2
    assert list(damage) == [reader.BAD_HEADER]


def test_damage_in_the_middle_costs_one_record(tmp_path):
    pages = [response(f"http://{i}.example.com/", "text " * 500 + str(i)) for i in range(30)]
    members = [gzip.compress(page) for page in pages]
    at = sum(map(len, members[:10]))
    for place in (0, 1, 3, 15, len(members[10]) // 2, len(members[10]) - 6, len(members[10]) - 2):
        data = bytearray(b"".join(members))
        data[at + place] ^= 0x55
        path = tmp_path / "x"
        path.write_bytes(data)
        found, damage = damage_of(path)
        assert len(found) in (29, 30)  # some bytes of a gzip header mean nothing
        assert len(found) == 29 or place == 3
        assert [offset for _, offset in damage.values()] in ([at], [] if place == 3 else [at])
    path.write_bytes(b"".join(members[:10]) + b"noise" * 1000 + b"".join(members[10:]))
    found, damage = damage_of(path)
    assert len(found) == 30
    assert damage == {reader.NO_MEMBER: (1, at)}


def test_a_damaged_beginning_is_passed_over(tmp_path):
    for packed in ("", "records"):
        data = write(tmp_path / "x", sample(), packed=packed).read_bytes()
        (tmp_path / "y").write_bytes(b"?" + data[1:])
        found, damage = damage_of(tmp_path / "y")
        assert len(found) == 3
        assert len(damage) == 1


def test_reading_gives_up_after_many_faults(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MAX_FAULTS", 5)
    bad = record("response", b"x" * 50, url=B, length=3)
    found, damage = damage_of(write(tmp_path / "x", [response(A, "a"), *[bad] * 20, response(C, "c")]))
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
        # 422 records begin; the last holds 11,984 of its 57,938 bytes
        ("cut-at-1000000.warc.gz", 421, 132, {reader.CUT_MEMBER: (1, 987_735)}),
        # one record, 75,207 of 88,275 bytes long
        ("clipped.warc.gz", 0, 0, {reader.CUT_MEMBER: (1, 0)}),
        # header lines ended by LF in HTTP, CRLF in WARC, a Content-Encoding that is none, a date that is none
        ("clueweb-quirk.warc.gz", 30, 29, {}),
        # one gzip member, three records whose lengths were true before their headers were blanked, the last at the end
        ("badexample.arc.gz", 3, 1, {reader.BAD_LENGTH: (2, 0), reader.CUT: (1, 0)}),
    ],
)
def test_real_broken_archives(shared_data, name, kept, pages, damage):
    path = shared_data(f"broken/{name}")
    found, told = damage_of(path)
    assert len(found) == kept
    assert told == damage
    tally = Tally()
    assert len(list(page_links(path, tally))) == pages == tally.pages
    assert tally.damaged == sum(count for count, _ in damage.values())
    assert sum(line.startswith("left out: ") for line in tally.lines()) == len(tally.skipped)


def test_the_cut_archive_has_what_the_whole_one_begins_with(shared_data):
    whole = bodies(shared_data("crawls/aut-example.warc.gz"))
    cut = bodies(shared_data("broken/cut-at-1000000.warc.gz"))
    assert len(whole) == 822
    assert cut == whole[:421]


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
            list(archive_batches(path, level=level, links="all", tally=tally))
    except FormatError:
        unknown = True  # nothing in it looks like a record any more
        assert tally.records == 0
    message = ""
    try:
        list(archive_batches(path, links="all", strict=True))
    except DamageError as error:
        message = str(error)
    except FormatError:
        assert unknown
    assert bool(message) == bool(tally.damaged) or unknown
    assert not message or (f"{path}: " in message and ", at byte " in message)


# pages --------------------------------------------------------------------------------------------------------


def page(tmp_path, body, *headers, url=A, tally=None, links="a", nofollow=True, **options):
    path = write(tmp_path / "x", [response(url, body, *headers, **options)])
    (found,) = page_links(path, tally, links=links, nofollow=nofollow)
    return found.links


def brotli_quality_0(data: bytes) -> bytes:
    return pa.compress(data, "brotli", asbytes=True)


LINK = b"<html><a href=/x>x</a>"


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data, wbits=-15)),
        ("br", brotli_quality_0),
        ("zstd", lambda data: pa.compress(data, "zstd", asbytes=True)),
        ("gzip", bytes),  # as archivers store it that unpack and keep the header
        ("br", bytes),
        ("deflate", bytes),
        ("identity", bytes),
        ("br, gzip", lambda data: gzip.compress(brotli_quality_0(data))),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_content_and_transfer_codings(tmp_path, coding, pack, chunked):
    body = pack(LINK + b" " * 1000)
    headers = [f"Content-Encoding: {coding}"]
    if chunked:
        parts = [body[i : i + 50] for i in range(0, len(body), 50)]
        body = (
            b"".join(b"%x;ext=1\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\nTrailer: x\r\n\r\n"
        )
        headers.append("Transfer-Encoding: chunked")
    tally = Tally()
    assert page(tmp_path, body, *headers, tally=tally) == [A + "x"]
    assert tally.skipped == {}
    if pack is not bytes:
        page(tmp_path, body[:-20], *headers, tally=tally)
        assert tally.skipped["page whose Content-Encoding or chunks are damaged"].count == 1
    assert page(tmp_path, LINK, "Transfer-Encoding: chunked") == [A + "x"]  # kept the header, not the chunks


def test_codings_that_are_bombs_or_unknown(tmp_path):
    bomb = gzip.compress(LINK + b" " * (MAX_DOCUMENT * 2), 9)
    assert len(bomb) < 200_000
    for body, headers in (
        (bomb, ["Content-Encoding: gzip"]),
        (gzip.compress(bomb), ["Content-Encoding: gzip, gzip"]),
        (pa.compress(LINK + b" " * (MAX_DOCUMENT * 2), "brotli", asbytes=True), ["Content-Encoding: br"]),
    ):
        tally = Tally()
        assert page(tmp_path, body, *headers, tally=tally) == [A + "x"]
        assert list(tally.skipped) == [f"rest of a page beyond {MAX_DOCUMENT:,} bytes"]
    tally = Tally()
    assert page(tmp_path, LINK, "Content-Encoding: rot13", tally=tally) == [A + "x"]
    assert list(tally.skipped) == ["page with a Content-Encoding that is not known"]


def test_only_html_that_was_found_has_links(tmp_path):
    assert page(tmp_path, LINK, content_type="text/plain") == []
    assert page(tmp_path, LINK, content_type="Application/XHTML+XML; charset=utf-8") == [A + "x"]
    assert page(tmp_path, LINK, content_type=None) == [A + "x"]
    assert page(tmp_path, b"GIF89a <a href=x>", content_type=None) == []
    assert page(tmp_path, LINK, status="404 Not Found") == []
    assert page(tmp_path, LINK, status="203") == [A + "x"]
    assert page(tmp_path, b'<a href="/\xfc">', content_type="text/html; charset=windows-1251") == [
        A + "%D1%8C"
    ]
    assert page(tmp_path, '<base href="http://base.org/d/"><a href=x>') == ["http://base.org/d/x"]


def test_headers_are_links_with_all(tmp_path):
    headers = ["Location: /moved", "link: <l1>; rel=next, <http://l.org/>", "Content-Location: cl"]
    moved = [A + "moved", A + "cl", A + "l1", "http://l.org/"]
    assert page(tmp_path, "<base href=/b/>", *headers, status="301 Moved", links="all") == moved
    assert page(tmp_path, "<base href=/b/><img src=i>", *headers, links="all") == [A + "b/i", *moved]
    assert page(tmp_path, "", *headers, status="301 Moved") == []


def test_nofollow_in_pages(tmp_path):
    body = "<a href=1 rel=nofollow>1</a><a href=2>2</a>"
    assert len(page(tmp_path, body)) == 2
    assert page(tmp_path, body, nofollow=False) == [A + "2"]
    assert page(tmp_path, body, "X-Robots-Tag: noindex, nofollow", nofollow=False) == []


def test_what_is_no_page_is_counted(tmp_path):
    odd = [
        record("response", b"20080430204825", url="dns:a.com", content_type="text/dns"),
        record("response", b"", url=B),
        record("response", http(b""), url="http://exa mple.com/"),
        record("request", b"GET / HTTP/1.0\r\n\r\n", url=A),
        record("revisit", b"", url=A),
        record("resource", b"<a href=x>", url=A, content_type="text/html"),
        response(A, "<a href='mailto:x'><a href='http://['><a href=" + "x" * 3000 + ">"),
    ]
    tally = Tally(strict=True)
    assert links_of(write(tmp_path / "x", odd), tally) == {A: [], B: []}
    assert {reason: entry.count for reason, entry in tally.skipped.items()} == {
        "response to no http request": 1,
        "response record without an HTTP header": 1,
        "page's URL is no valid URL": 1,
        "link is not http": 1,
        "link is no valid URL": 1,
        "link is longer than 2,048 bytes": 1,
    }
    assert tally.skipped["link is not http"].offset == sum(map(len, odd[:-1]))
    assert tally.damaged == 0


# batches ------------------------------------------------------------------------------------------------------


def arcs_of(batches):
    """The arcs by name, and all names."""
    arcs, nodes = Counter(), set()
    for batch in batches:
        names = batch.names.to_pylist()
        nodes.update(names)
        assert batch.sources.dtype == batch.targets.dtype == np.uint32
        assert len(batch.sources) == len(batch.targets)
        arcs.update(
            (names[i], names[j]) for i, j in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
        )
    return arcs, nodes


def twin(path, level, *, strip_www=False, private=False, links="a"):
    """Host and domain arcs from canonical pages and links, one by one."""

    def name(url):
        host = host_of(url, strip_www=strip_www)
        if host is None:
            return None
        host = reverse_host(host)
        return domain_of(host, private=private) if level == "domain" else host

    arcs, nodes = Counter(), set()
    for page in page_links(path, links=links):
        source = page.url if level == "page" else name(page.url)
        if source is None:
            continue
        nodes.add(source)
        for link in page.links:
            target = link if level == "page" else name(link)
            if target is not None and (level == "page" or target != source):
                arcs[source, target] += 1
                nodes.add(target)
    return arcs, nodes


OPTIONS = [{}, {"strip_www": True}, {"private": True}, {"links": "all"}]


@pytest.mark.parametrize("name", ["aut-example.warc.gz", "warcfile.warc.gz", "cc-2019-22-excerpt.wat.txt"])
@pytest.mark.parametrize("level", ["page", "host", "domain"])
def test_batches_of_real_archives_against_the_twin(shared_data, name, level):
    path = shared_data(f"crawls/{name}")
    for options in OPTIONS if level == "domain" else OPTIONS[:2]:
        given_options = dict(options)
        if "private" in options:
            given_options["private_suffixes"] = given_options.pop("private")
        assert arcs_of(archive_batches(path, level=level, **given_options)) == twin(path, level, **options)


def test_figures_of_a_real_archive(shared_data):
    path = shared_data("crawls/aut-example.warc.gz")
    tally = Tally()
    arcs, _ = arcs_of(archive_batches(path, tally=tally))
    assert (tally.records, tally.pages) == (822, 261)  # of 299 responses, 38 are of the DNS
    assert tally.links == sum(arcs.values()) == 37_826 - tally.skipped["link is not http"].count
    assert len(arcs) == 20_067


hrefs = st.sampled_from(
    [
        "/x",
        "y",
        "#z",
        "?q",
        "//b.org/x",
        "http://b.org",
        "https://www.b.org/x?http://c.org/",
        "http://c.co.uk:8080/x",
    ]
    + [
        "HTTP://C.co.uk/",
        "http://c.co.uk\\@evil.com/",
        "http://c.co.uk?x",
        "http://c.co.uk#x/y",
        "mailto:a@b.org",
        "http://[",
    ]
    + [
        "http://127.0.0.1/",
        "http://localhost/x",
        "http:/d.org",
        "http:///d.org/",
        " http://d.org ",
        "http://d.org ",
        "/",
    ]
    + [
        "http://d.org\t/x",
        "http://ü.org/" + "ü" * 150,
        "http://u@d.org/",
        "/" + "☃" * 139,
        "http://e.org/" + "☃" * 400,
    ]
    + [
        "//",
        "/\\f.org/",
        "/\t/f.org/",
        "http://x.github.io/",
        "http://gov.uk/",
        "http://g.org:99999/",
        "",
        "x" * 2100,
        "/&",
    ]
    + [
        "http://d.org /x",
        "http://a.example.com/",
        "http://www.example.com/",
        "https://\\\\h.org/",
        "javascript:x",
        "ftp://i.org/",
    ]
)
page_urls = st.sampled_from(
    [A, "http://www.example.com/d/", "https://x.github.io/", "http://10.0.0.1/", "http://c.co.uk/a"]
)
bases = st.none() | st.sampled_from(
    ["http://base.org/x/", "/dir/", "mailto:x", "http://10.0.0.1/", "//www.b.org"]
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(page_urls, bases, st.lists(hrefs, max_size=8)), max_size=5), st.sampled_from(OPTIONS)
)
@example([(A, "//www.b.org", ["/x", "y", "http://www.b.org/"])], {})
def test_host_batches_are_the_folded_page_links(tmp_path, pages, options):
    values = [
        wat_json(url, anchors(*links), head={} if base is None else {"Base": base})
        for url, base, links in pages
    ]
    path = write(tmp_path / "x", [warcinfo(), *map(wat_record, values)])
    given_options = dict(options)
    if "private" in options:
        given_options["private_suffixes"] = given_options.pop("private")
    for level in ("host", "domain"):
        assert arcs_of(archive_batches(path, level=level, **given_options)) == twin(path, level, **options)
    assert arcs_of(archive_batches(path, links=options.get("links", "a"))) == twin(path, "page")


def test_batches_are_cut_and_names_forgotten_without_a_trace(tmp_path, monkeypatch):
    from inlink.sources import archives as module

    pages = [
        response(f"http://h{i % 7}.example{i}.com/", "".join(f"<a href=//t{j}.org/>" for j in range(i)))
        for i in range(20)
    ]
    path = write(tmp_path / "x", pages)
    whole = {level: arcs_of(archive_batches(path, level=level)) for level in ("page", "host", "domain")}
    monkeypatch.setattr(module, "BATCH", 10)
    monkeypatch.setattr(module, "_MAX_HOSTS", 5)
    for level, expected in whole.items():
        batches = list(archive_batches(path, level=level))
        assert len(batches) > 5
        assert arcs_of(batches) == expected


def test_links_without_a_host_are_counted(tmp_path):
    links = "".join(
        f"<a href='{href}'>" for href in ("http://10.0.0.1/", "http://gov.uk/", "mailto:x", "http://b.org/")
    )
    path = write(tmp_path / "x", [response(A, links), response("http://10.0.0.1/", links)])
    tally = Tally()
    arcs, nodes = arcs_of(archive_batches(path, level="domain", tally=tally))
    assert (arcs, nodes) == (Counter({("com.example", "org.b"): 1}), {"com.example", "org.b"})
    assert sorted(entry.count for entry in tally.skipped.values()) == [1, 1, 1, 1]
    assert (tally.pages, tally.links) == (2, 1)


@pytest.mark.parametrize("level", ["page", "host", "domain"])
def test_crawled_nodes_are_the_pages_own(tmp_path, monkeypatch, level):
    from inlink.sources import archives as module

    monkeypatch.setattr(module, "BATCH", 2)
    page = "<a href='http://elsewhere.org/'>x</a><a href='/y'>y</a>"
    path = write(tmp_path / "x", [response(url, page) for url in (A, A + "2", B, "http://10.0.0.1/")])
    batches = list(module.archive_source(path, level=level, tally=Tally()).batches)
    assert len(batches) > 1
    _, nodes = arcs_of(batches)
    names = {name for batch in batches for name in batch.names.take(pa.array(batch.crawled)).to_pylist()}
    assert names < nodes
    expected = {
        "page": {A, A + "2", B, "http://10.0.0.1/"},
        "host": {"com.example.a", "org.example.b"},
        "domain": {"com.example", "org.example"},
    }
    assert names == expected[level]


def test_parameters_are_checked(tmp_path):
    path = write(tmp_path / "x", sample())
    with pytest.raises(ParameterError, match="level"):
        list(archive_batches(path, level="site"))
    with pytest.raises(ParameterError, match="links"):
        list(raw_pages(path, Tally(), links="b"))


def test_progress_counts_the_bytes_of_the_file(tmp_path):
    told = []

    class Reporter:
        def task(self, label, total, unit):
            told.append(Task(label, total, unit))
            return told[-1]

    for packed in ("", "records"):
        path = write(tmp_path / "x.warc", sample() * 2000, packed=packed)
        with reporting(Reporter()):
            list(archive_batches(path))
        assert (told[-1].label, told[-1].unit) == ("reading x.warc", "B")
        assert told[-1].done == told[-1].total == path.stat().st_size


def test_tally_keeps_the_first_place():
    tally = Tally()
    tally.skip("a", 5, "why", 3)
    tally.skip(Path("b"), 7, "why")
    tally.damage("c", 1234, "what")
    assert tally.lines() == [
        "left out: 1 × what (first: c, byte 1,234)",
        "left out: 4 × why (first: a, byte 5)",
    ]
    assert tally.damaged == 1
    with pytest.raises(InlinkError, match="c: what, at byte 1,234: "):
        Tally(strict=True).damage("c", 1234, "what")

import gzip
import zipfile
import zlib
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import inlink
from archives import (
    A,
    B,
    anchors,
    batches_of,
    http,
    links_of,
    pages_of,
    raw_pages_of,
    record,
    response,
    sample,
    warcinfo,
    wat_json,
    wat_record,
    write,
)
from foldercommands import run
from inlink.archives.html import MAX_DOCUMENT
from inlink.base.damage import Tally
from inlink.base.progress import Work, reporting
from inlink.errors import DamageError, FormatError, InlinkError, ParameterError
from inlink.sources.archive import archive_source
from inlink.urls.hosts import domain_of, host_of, reverse_host

# pages --------------------------------------------------------------------------------------------------------


def page(tmp_path, body, *headers, url=A, tally=None, links="a", nofollow=True, **options):
    path = write(tmp_path / "x", [response(url, body, *headers, **options)])
    (found,) = pages_of(path, tally, links=links, nofollow=nofollow)
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
        assert tally.skipped["page with damaged Content-Encoding or chunks"].count == 1
    assert page(tmp_path, LINK, "Transfer-Encoding: chunked") == [A + "x"]  # kept the header, not the chunks


@pytest.mark.slow
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
    assert list(tally.skipped) == ["page with an unknown Content-Encoding"]


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


def test_records_that_are_no_pages_are_counted(tmp_path):
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
        "response to a request that was not HTTP": 1,
        "response record without an HTTP header": 1,
        "page's URL is no valid URL": 1,
        "revisit record whose content is not in the archive before it": 1,
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
        names = [raw.decode() for raw in batch.names.to_pylist()]
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
    for page in pages_of(path, links=links):
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


@pytest.mark.parametrize(("level", "name"), [
    *product(
        ["page", "host", "domain"],
        ["web.warc.gz", "small.warc.gz", "slice.warc", "slice.warc.wat", "later.wat", "quirk.warc.gz", "bad.arc.gz",
         "crawls/warcfile.warc.gz", "crawls/cc-2019-22-excerpt.wat.txt"],
    ),
    # The largest file: each option takes two seconds.
    pytest.param("page", "crawls/aut-example.warc.gz", marks=pytest.mark.slow),
    pytest.param("host", "crawls/aut-example.warc.gz", marks=pytest.mark.soak),
    pytest.param("domain", "crawls/aut-example.warc.gz", marks=pytest.mark.soak),
])  # fmt: skip
def test_batches_of_archives_against_the_twin(data, name, level):
    path = data(name)
    for options in OPTIONS if level == "domain" else OPTIONS[:2]:
        given_options = dict(options)
        if "private" in options:
            given_options["private_suffixes"] = given_options.pop("private")
        assert arcs_of(batches_of(path, level=level, **given_options)) == twin(path, level, **options)


def test_figures_of_an_archive(data):
    path = data("web.warc.gz")
    tally = Tally()
    arcs, _ = arcs_of(batches_of(path, tally=tally, self_links=True))
    records = gzip.decompress(path.read_bytes()).split(b"WARC/1.0\r\nWARC-Type: ")[1:]
    responses = [
        one for one in records if one.startswith(b"response") and b"WARC-Target-URI: dns:" not in one
    ]
    assert (tally.records, tally.pages) == (len(records), len(responses)) == (254, 110)
    assert tally.links == sum(arcs.values()) > len(arcs) == 1_406


@pytest.mark.slow
def test_figures_of_a_real_archive(data):
    path = data("crawls/aut-example.warc.gz")
    tally = Tally()
    arcs, _ = arcs_of(batches_of(path, tally=tally, self_links=True))
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


@pytest.mark.slow
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
        assert arcs_of(batches_of(path, level=level, **given_options)) == twin(path, level, **options)
    assert arcs_of(batches_of(path, links=options.get("links", "a"))) == twin(path, "page")


def test_batches_are_cut_and_names_forgotten_without_a_trace(tmp_path, monkeypatch):
    from inlink.archives import batches as module

    pages = [
        response(f"http://h{i % 7}.example{i}.com/", "".join(f"<a href=//t{j}.org/>" for j in range(i)))
        for i in range(20)
    ]
    path = write(tmp_path / "x", pages)
    whole = {level: arcs_of(batches_of(path, level=level)) for level in ("page", "host", "domain")}
    monkeypatch.setattr(module, "BATCH", 10)
    monkeypatch.setattr(module, "MAX_HOSTS", 5)
    for level, expected in whole.items():
        batches = list(batches_of(path, level=level))
        assert len(batches) > 5
        assert arcs_of(batches) == expected


def test_links_without_a_host_are_counted(tmp_path):
    links = "".join(
        f"<a href='{href}'>" for href in ("http://10.0.0.1/", "http://gov.uk/", "mailto:x", "http://b.org/")
    )
    path = write(tmp_path / "x", [response(A, links), response("http://10.0.0.1/", links)])
    tally = Tally()
    arcs, nodes = arcs_of(batches_of(path, level="domain", tally=tally))
    assert (arcs, nodes) == (Counter({("com.example", "org.b"): 1}), {"com.example", "org.b"})
    assert sorted(entry.count for entry in tally.skipped.values()) == [1, 1, 1, 1]
    assert (tally.pages, tally.links) == (2, 1)


@pytest.mark.parametrize("level", ["page", "host", "domain"])
def test_crawled_nodes_are_the_pages_own(tmp_path, monkeypatch, level):
    from inlink.archives import batches as module

    monkeypatch.setattr(module, "BATCH", 2)
    page = "<a href='http://elsewhere.org/'>x</a><a href='/y'>y</a>"
    path = write(tmp_path / "x", [response(url, page) for url in (A, A + "2", B, "http://10.0.0.1/")])
    batches = list(archive_source(path, level=level, tally=Tally()).batches)
    assert len(batches) > 1
    _, nodes = arcs_of(batches)
    names = {raw.decode() for batch in batches for raw in batch.names.take(batch.crawled).to_pylist()}
    assert names < nodes
    expected = {
        "page": {A, A + "2", B, "http://10.0.0.1/"},
        "host": {"com.example.a", "org.example.b"},
        "domain": {"com.example", "org.example"},
    }
    assert names == expected[level]


def test_a_batch_has_room_for_many_long_urls(tmp_path):
    urls = [f"{A}{k:02}{'x' * 1500}" for k in range(90)]
    path = write(tmp_path / "x", [response(url, "<a href='/y'>y</a>") for url in urls])
    (batch,) = archive_source(path, level="page", tally=Tally()).batches
    assert [raw.decode() for raw in batch.names.take(batch.crawled).to_pylist()] == urls


def test_parameters_are_checked(tmp_path):
    path = write(tmp_path / "x", sample())
    with pytest.raises(ParameterError, match="level"):
        list(batches_of(path, level="site"))
    with pytest.raises(ParameterError, match="links"):
        list(raw_pages_of(path, Tally(), links="b"))


@pytest.mark.slow
def test_progress_counts_the_bytes_of_the_file(tmp_path):
    told = []

    class Reporter:
        def task(self, label, total, unit):
            told.append(Work(label, total, unit))
            return told[-1]

    for packed in ("", "records"):
        path = write(tmp_path / "x.warc", sample() * 2000, packed=packed)
        with reporting(Reporter()):
            list(archive_source(path).batches)
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


# WACZ ----------------------------------------------------------------------------------------------------------


def wacz(path: Path, method: int = zipfile.ZIP_STORED, name: str = "archive/b.warc") -> Path:
    """A WACZ with a packed and a plain WARC file, and what stands beside them."""
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("datapackage.json", "{}")
        archive.writestr("archive/a.warc.gz", gzip.compress(response(A, f'<a href="{B}">b</a>')))
        archive.writestr(name, response(B, f'<a href="{A}">a</a>' + " " * 10_000))
        archive.writestr("indexes/index.cdx.gz", b"not an archive")
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("name", ["archive/b.warc", "archive/../../b.warc", "archive//etc/B.WARC"])
def test_a_wacz_is_read_like_its_warc_files(tmp_path, method, name):
    (tmp_path / "in").mkdir()
    path = wacz(tmp_path / "in" / "site.zip", method, name)
    graph = inlink.read(path)
    assert sorted(graph.edges) == [(A, B), (B, A)]
    assert graph.crawled.all()
    assert inlink.read([path, path], level="host").num_arcs == 2
    assert "2 nodes, 2 arcs" in run("build", path, "-o", tmp_path / "g")
    replayed = inlink.replay(path, policies=["breadth-first"], seeds=[[A]], budget=9, marks=[1.0])
    assert (replayed.runs[0].reached, replayed.runs[0].fetches) == (2, 2)
    # Nothing is unpacked.
    assert sorted(place.name for place in tmp_path.rglob("*.[wW]*")) == []


def test_damage_in_a_wacz_costs_its_file_only(tmp_path):
    whole = wacz(tmp_path / "whole.wacz", zipfile.ZIP_DEFLATED).read_bytes()
    at = whole.index(b"archive/b.warc") + 60
    path = tmp_path / "x.wacz"
    path.write_bytes(whole[:at] + bytes(20) + whole[at + 20 :])
    tally = Tally()
    arcs = sum(len(batch.sources) for batch in archive_source(path, tally=tally).batches)
    assert (arcs, tally.pages) == (1, 1)
    assert "damaged file in a WACZ" in tally.skipped
    with pytest.raises(DamageError, match=r"archive/b\.warc: damaged file in a WACZ"):
        inlink.read(path, strict=True)
    path.write_bytes(whole[:-30])
    with pytest.raises(DamageError, match="the zip archive is damaged"):
        inlink.read(path)


def test_what_no_wacz_may_be_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.wacz"
    with pytest.raises(FormatError, match="encrypted, or not packed by deflate"):
        inlink.read(wacz(path, zipfile.ZIP_LZMA))
    whole = wacz(path).read_bytes()
    # Encrypted, as the directory says.
    at = whole.index(b"PK\x01\x02", whole.index(b"PK\x01\x02") + 4)
    path.write_bytes(whole[: at + 8] + b"\x01" + whole[at + 9 :])
    with pytest.raises(FormatError, match="encrypted, or not packed by deflate"):
        inlink.read(path)
    monkeypatch.setattr("inlink.sources.archive._MAX_DIRECTORY", 100)
    with pytest.raises(DamageError, match="its directory is too large"):
        inlink.read(wacz(path))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("links.tsv", "a\tb\n")
    monkeypatch.undo()
    with pytest.raises(FormatError, match="has no WARC file"):
        inlink.read(path, format="warc")


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 400), st.binary(max_size=8), st.booleans())
def test_any_damage_of_a_wacz_is_one_line(tmp_path_factory, at, fresh, cut):
    path = tmp_path_factory.mktemp("wacz") / "x.wacz"
    whole = wacz(path, zipfile.ZIP_DEFLATED).read_bytes()
    place = len(whole) - 400 + at if cut else at
    path.write_bytes(whole[:place] + fresh + whole[place + len(fresh) :])
    try:
        inlink.read(path)
    except InlinkError as error:
        assert "\n" not in str(error)  # noqa: PT017

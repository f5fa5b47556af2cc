"""Bodies that are in the WARC already, or in an earlier one, are revisit records; the index is that of cdxj-indexer."""

import gzip
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("scrapy")
pytest.importorskip("warcio")
pytest.importorskip("wacz")

import surt
from cdxj_indexer.main import CDXJIndexer
from scrapy import Request
from scrapy.http import Response
from warcio.archiveiterator import ArchiveIterator

import inlink
from archives import record, response
from inlink.archives.batches import page_links
from inlink.archives.cdxj import read_line, url_key
from inlink.base.damage import Tally
from inlink.errors import InputError, OutputError
from inlink.scrapy.outputs import WarcFile
from inlink.urls.canonical import canonical

HTML = {"Content-Type": "text/html; charset=utf-8"}


def body(number: int) -> bytes:
    return b'<title>%d</title><a href="n%d">next</a>' % (number, number) + b"." * 300


def write(path: Path, *pages: tuple[str, bytes], seen: tuple[Path, ...] = (), **more: object) -> None:
    with WarcFile(path, "tester/1", seen) as warc:
        for url, content in pages:
            warc.write(Request(url), Response(url, body=content, **({"headers": HTML} | more)))


def heads(path: Path) -> list[tuple[str, str | None, object]]:
    """Type and URL of each response and revisit record, and its header."""
    with path.open("rb") as file:
        return [
            (one.rec_type, one.rec_headers.get_header("WARC-Target-URI"), one.rec_headers)
            for one in ArchiveIterator(file)
            if one.rec_type in ("response", "revisit")
        ]


def kinds(path: Path) -> list[str]:
    return [kind for kind, _, _ in heads(path)]


def index_by_others(path: Path) -> str:
    out = io.StringIO()
    out.close = lambda: None
    CDXJIndexer(out, [str(path)], sort=True).process_all()
    return out.getvalue()


def check_index(path: Path) -> None:
    assert path.with_name(path.name.replace(".warc.gz", ".cdxj")).read_text() == index_by_others(path)


A, B = "http://a.example/d/", "http://b.example/"


def test_unchanged_pages_and_copies_refer_to_the_first_response(tmp_path):
    path = tmp_path / "a.warc.gz"
    write(path, (A, body(1)), (A, body(1)), (B, body(1)), (A, body(2)))
    write(path, (B, body(2)), (A, body(1)))
    found = heads(path)
    assert [kind for kind, _, _ in found] == [
        "response",
        "revisit",
        "revisit",
        "response",
        "revisit",
        "revisit",
    ]
    for place, original in ((1, 0), (2, 0), (4, 3), (5, 0)):
        head, first = found[place][2], found[original][2]
        assert head.get_header("WARC-Profile") == (
            "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
        )
        assert head.get_header("WARC-Refers-To-Target-URI") == first.get_header("WARC-Target-URI")
        assert head.get_header("WARC-Refers-To-Date") == first.get_header("WARC-Date")
        assert head.get_header("WARC-Payload-Digest") == first.get_header("WARC-Payload-Digest")
    with path.open("rb") as file:
        revisit, question = list(ArchiveIterator(file))[3:5]
    assert revisit.http_headers.get_statuscode() == "200"
    assert revisit.http_headers.get_header("Content-Type") == HTML["Content-Type"]
    assert question.rec_type == "request"
    assert question.rec_headers.get_header("WARC-Concurrent-To") == revisit.rec_headers.get_header(
        "WARC-Record-ID"
    )
    with path.open("rb") as file:
        assert [
            one.content_stream().read() for one in ArchiveIterator(file) if one.rec_type == "revisit"
        ] == [b""] * 4
    check_index(path)


@pytest.mark.parametrize(
    ("content", "more"),
    [(b"", {}), (b"x" * 255, {}), (body(1), {"status": 404}), (body(1), {"flags": ["download_stopped"]})],
)
def test_short_bodies_errors_and_cut_downloads_are_written_again(tmp_path, content, more):
    path = tmp_path / "a.warc.gz"
    write(path, (A, content), (A, content), **more)
    write(path, (A, content), **more)
    assert kinds(path) == ["response"] * 3
    check_index(path)


PAGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([200, 404])), max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(PAGES, min_size=1, max_size=3))
def test_an_archive_with_revisits_has_the_pages_and_links_of_what_was_fetched(tmp_path_factory, runs):
    folder = tmp_path_factory.mktemp("r")
    path = folder / "a.warc.gz"
    wanted = []
    for run in runs:
        with WarcFile(path, "x") as warc:
            for site, number, status in run:
                url = f"http://h{site}.example/{site}/"
                warc.write(Request(url), Response(url, status=status, headers=HTML, body=body(number)))
                wanted.append((url, [f"{url}n{number}"] if status == 200 else []))
    tally = Tally(strict=True)
    with path.open("rb") as file:
        assert [(page.url, page.links) for page in page_links(file, tally)] == wanted
    assert tally.skipped == {}
    fetched = [page for run in runs for page in run]
    new = [kind == "response" for kind in kinds(path)]
    firsts = {number for _, number, status in fetched if status == 200}
    assert sum(new) == len(firsts) + sum(status == 404 for _, _, status in fetched)
    check_index(path)
    if wanted:
        graph, indexed = inlink.read(path), inlink.read(folder / "a.cdxj")
        assert sorted(graph.edges) == sorted({(url, link) for url, links in wanted for link in links})
        assert (sorted(indexed.edges), indexed.crawled.tolist()) == (
            sorted(graph.edges),
            graph.crawled.tolist(),
        )


@pytest.mark.parametrize("form", [".warc.gz", ".cdxj", ".wacz"])
def test_what_an_earlier_archive_has_is_not_written_again(tmp_path, form):
    old, new = tmp_path / "old.warc.gz", tmp_path / "new.warc.gz"
    write(old, (A, body(1)), (A, body(1)), (A, body(3)))
    seen = tmp_path / f"old{form}"
    if form == ".wacz":
        with zipfile.ZipFile(seen, "w") as archive:
            archive.write(old, "archive/old.warc.gz")
    write(new, (B, body(1)), (B, body(2)), (A, body(2)), (A, body(3)), seen=(seen,))
    assert kinds(new) == ["revisit", "response", "revisit", "revisit"]
    first = heads(old)[0][2]
    head = heads(new)[0][2]
    assert head.get_header("WARC-Refers-To-Target-URI") == A
    date = first.get_header("WARC-Date")
    assert head.get_header("WARC-Refers-To-Date") == (f"{date[:19]}Z" if form == ".cdxj" else date)
    # The second archive alone lacks the content, and a warning says so.
    tally = Tally()
    with new.open("rb") as file:
        assert [page.url for page in page_links(file, tally)] == [B, A]
    [(reason, entry)] = tally.skipped.items()
    assert (reason, entry.count) == ("revisit record whose content is not in the archive before it", 2)
    # Both in one index have it.
    merged = tmp_path / "both.cdxj"
    lines = [line for name in ("old", "new") for line in (tmp_path / f"{name}.cdxj").read_text().splitlines()]
    merged.write_text("".join(f"{line}\n" for line in sorted(lines)))
    graph = inlink.read(merged)
    assert (B, f"{B}n1") in sorted(graph.edges)
    assert graph.meta.get("skipped", {}) == {}


def test_a_strangers_index_writes_no_fields(tmp_path):
    old = tmp_path / "old.warc.gz"
    write(old, (A, body(1)))
    index = tmp_path / "old.cdxj"
    index.write_text(index.read_text().replace(f'"{A}"', f'"{A}\\r\\nWARC-Type: metadata"'))
    write(tmp_path / "new.warc.gz", (A, body(1)), seen=(index,))
    assert kinds(tmp_path / "new.warc.gz") == ["response"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("org,a)/ 20260101000000 {}\n", "old.cdxj, line 1: not a line of CDXJ"),
        ('org,a)/ 20261301000000 {"offset": 1, "filename": "x"}\n', "old.cdxj, line 1: not a line of CDXJ"),
        ("a\tb\n", "old.tsv: neither a WARC nor CDXJ"),
    ],
)
def test_an_earlier_index_that_cannot_be_read_is_refused_before_anything_is_written(tmp_path, text, said):
    old = tmp_path / said.split(",")[0].split(":")[0]
    old.write_text(text)
    with pytest.raises(InputError, match=said):
        write(tmp_path / "new.warc.gz", seen=(old,))
    assert list(tmp_path.iterdir()) == [old]


def test_the_index_is_right_after_a_crash(tmp_path):
    path, index = tmp_path / "a.warc.gz", tmp_path / "a.cdxj"
    write(path, (A, body(1)), (B, body(2)))
    whole, stale = path.read_bytes(), index.read_text()
    write(path, (A, body(2)), (B, body(3)))
    later = path.read_bytes()
    for cut in range(len(whole) - 300, len(later), 97):
        # There is an index of an earlier run, or none.
        path.write_bytes(later[:cut])
        index.write_text(stale) if cut % 2 else index.unlink()
        write(path, (A, body(3)), (B, body(1)))
        check_index(path)
        assert kinds(path)[-1] == "revisit"


def test_several_records_in_a_member_are_refused(tmp_path):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(response(A, "x") + response(B, "y")))
    with pytest.raises(
        OutputError, match="has several records in the gzip member at byte 0: name another file"
    ):
        WarcFile(path, "x")


def test_an_index_that_cannot_be_written_is_one_line(tmp_path):
    path, index = tmp_path / "a.warc.gz", tmp_path / "a.cdxj"
    index.mkdir()
    with pytest.raises(OutputError, match=r"a\.cdxj, where the index belongs, is a folder"):
        WarcFile(path, "x")
    assert list(tmp_path.iterdir()) == [index]
    index.rmdir()
    warc = WarcFile(path, "x")
    warc.write(Request(A), Response(A, body=body(1)))
    index.mkdir()
    with pytest.raises(OutputError, match=r"a\.cdxj is a folder"):
        warc.close()
    assert kinds(path) == ["response"]


def revisit(url: str, digest: str, head: bytes = b"") -> bytes:
    made = record("revisit", head, url=url)
    return made.replace(b"\r\n", b"\r\nWARC-Payload-Digest: sha1:%s\r\n" % digest.encode(), 1)


def original(url: str, digest: str, html: str) -> bytes:
    return response(url, html).replace(b"\r\n", b"\r\nWARC-Payload-Digest: sha1:%s\r\n" % digest.encode(), 1)


def test_revisits_in_other_files_of_a_wacz(tmp_path):
    """Also with a status of 304, and with no HTTP header at all."""
    parts = {
        "archive/a.warc.gz": gzip.compress(original(A, "ONE", "<a href=x>x</a>")),
        "archive/b.warc": revisit(B, "ONE", b"HTTP/1.1 304 Not Modified\r\n\r\n")
        + original(A, "TWO", "<a href=y>"),
        "archive/c.warc.gz": gzip.compress(revisit("http://c.example/", "TWO"))
        + gzip.compress(revisit("http://d.example/", "NONE")),
    }
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(tmp_path / "x.wacz", "w", method) as archive:
            for name, data in parts.items():
                archive.writestr(name, data)
        graph = inlink.read(tmp_path / "x.wacz")
        links = {(A, f"{A}x"), (A, f"{A}y")}
        if method == zipfile.ZIP_STORED:
            # The second record of b.warc has a place of its own, because the file is not packed.
            links |= {(B, f"{B}x"), ("http://c.example/", "http://c.example/y")}
        assert set(graph.edges) == links
        [(text, count)] = graph.meta["skipped"].items()
        assert text.startswith("revisit record whose content is not in the archive before it, first in ")
        assert count == (1 if method == zipfile.ZIP_STORED else 3)


def test_a_stream_that_cannot_seek_counts_its_revisits(tmp_path):
    data = original(A, "ONE", "<a href=x>x</a>") + revisit(B, "ONE")
    for seekable, pages in ((True, [A, B]), (False, [A])):
        stream = io.BytesIO(data)
        stream.seekable = lambda known=seekable: known  # type: ignore[method-assign]
        tally = Tally()
        assert [page.url for page in page_links(stream, tally)] == pages
        assert sum(entry.count for entry in tally.skipped.values()) == 2 - len(pages)


SEGMENT = st.text(st.sampled_from("abAB./%2e2F25~é &=;?'\"()[]#+,:@www0"), max_size=12)
HOSTS = [
    "www.Example.org",
    "www2.a.b",
    "example.org.",
    "127.0.0.1",
    "[::1]",
    "xn--e1afmkfd.xn--p1ai",
    "u:p@a.org",
]


@settings(max_examples=300)
@given(
    st.sampled_from(["http", "https"]),
    st.sampled_from(HOSTS),
    st.sampled_from(["", ":80", ":443", ":8080"]),
    SEGMENT,
    st.sampled_from(["", "?"]),
    SEGMENT,
    st.booleans(),
)
def test_keys_are_those_of_the_package_surt(scheme, host, port, path, mark, query, clean):
    url = f"{scheme}://{host}{port}/{path}{mark}{query}".strip()
    url = (canonical(url) or "http://a.org/") if clean else url
    assert url_key(url) == surt.surt(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://a.org/?sid=0123456789abcdef0123456789ABCDEF&x=1",
        "http://a.org/x?a=1&PHPSESSID=0123456789abcdef0123456789ABCDEF",
        "http://a.org/(A(0123456789abcdef01234567))/x.aspx?b",
        "http://a.org/(0123456789abcdef01234567)/x.aspx",
        "http://a.org/?cfid=1&cftoken=2&z=2",
        "http://a.org/%0a%00b//c/../d/?",
    ],
)
def test_keys_without_sessions(url):
    assert url_key(url) == surt.surt(url)


@given(st.binary(max_size=200))
def test_any_line_is_an_entry_or_none(line):
    assert read_line(line) is None
    assert read_line(b"a 20260101000000 {" + line + b"}") is None or b"offset" in line


def test_lines_of_other_programs():
    pywb = b'org,a)/ 20260102030405 {"url": "http://a.org/", "status": 200, "offset": 17, "filename": "w/a.warc.gz"}\r'
    time, entry = read_line(pywb)
    assert (time.isoformat(), entry.offset, entry.filename) == (
        "2026-01-02T03:04:05+00:00",
        17,
        "w/a.warc.gz",
    )
    assert read_line(pywb.replace(b"17", b"-17")) is None
    assert read_line(pywb.replace(b"17", b"1" * 30)) is None
    assert read_line(pywb.replace(b"17", b'"17"'))[1].offset == 17
    assert read_line(b"!meta 0 {}") is None

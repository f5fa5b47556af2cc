"""The WARC that a crawl writes: true, whole after whatever happened, and readable by others."""

import gzip
import io
import os
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scrapy")
pytest.importorskip("warcio")

from scrapy import Request
from scrapy.http import Headers, HtmlResponse, Response
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

import inlink
from inlink.errors import InUseError, OutputError
from inlink.scrapy.outputs import Appended, WarcFile, whole_lines

URL = "http://example.org/a?b=1"


def records(path: Path) -> list[tuple[str, str | None, bytes, bytes]]:
    """Type, URL, the header of HTTP and what stands behind it, byte by byte."""
    found = []
    with path.open("rb") as file:
        for record in ArchiveIterator(file, no_record_parse=True):
            head, _, body = record.raw_stream.read().partition(b"\r\n\r\n")
            found.append((record.rec_type, record.rec_headers.get_header("WARC-Target-URI"), head, body))
    return found


def check(path: Path) -> None:
    """Digests are right, by warcio's own checker."""

    checker = Checker(SimpleNamespace(inputs=[str(path)], verbose=False))
    checker.process_all()
    assert checker.exit_value == 0


def write(path: Path, *pages: tuple[str, bytes], **more: object) -> None:
    with WarcFile(path, "tester/1") as warc:
        for url, body in pages:
            warc.write(Request(url), Response(url, body=body, **more))


def test_a_request_and_its_answer(tmp_path):
    path = tmp_path / "a.warc.gz"
    request = Request(URL, headers={"User-Agent": "tester/1", "Accept": ["text/html", "*/*"]})
    body = gzip.compress(b"<a href=/c>c</a>")
    response = HtmlResponse(
        URL,
        status=200,
        headers={"Content-Type": "text/html", "Content-Encoding": "gzip", "Set-Cookie": [b"a=1", b"b=\xe2"]},
        body=body,
        ip_address=ip_address("127.0.0.1"),
        protocol="HTTP/1.0",
    )
    with WarcFile(path, "tester/1") as warc:
        warc.write(request, response)
    info, answer, question = records(path)
    assert info[0] == "warcinfo"
    assert b"http-header-user-agent: tester/1" in info[2] + info[3]
    assert answer[:2] == ("response", URL)
    lines = answer[2].split(b"\r\n")
    assert lines[0] == b"HTTP/1.0 200 OK"
    assert sorted(lines[1:]) == [
        b"Content-Encoding: gzip",
        b"Content-Length: %d" % len(body),
        b"Content-Type: text/html",
        b"Set-Cookie: a=1",
        b"Set-Cookie: b=\xe2",
    ]
    assert answer[3] == body
    assert question[:2] == ("request", URL)
    assert question[2].split(b"\r\n") == [
        b"GET /a?b=1 HTTP/1.1",
        b"Host: example.org",
        b"User-Agent: tester/1",
        b"Accept: text/html",
        b"Accept: */*",
    ]
    assert question[3] == b""
    check(path)
    with path.open("rb") as file:
        heads = [record.rec_headers for record in ArchiveIterator(file)]
    assert {head.protocol for head in heads} == {"WARC/1.1"}
    assert heads[1].get_header("WARC-IP-Address") == "127.0.0.1"
    assert heads[2].get_header("WARC-Concurrent-To") == heads[1].get_header("WARC-Record-ID")
    assert heads[2].get_header("WARC-Date") == heads[1].get_header("WARC-Date")


def test_inlink_reads_it(tmp_path):
    path = tmp_path / "a.warc.gz"
    write(
        path,
        ("http://example.org/", b"<a href=/b>b</a> <a href=http://example.net/>n</a>"),
        ("http://example.org/b", b"<a href=/>home</a>"),
        headers={"Content-Type": "text/html"},
    )
    graph = inlink.read(path)
    assert graph.meta.get("skipped", {}) == {}
    assert sorted(graph.names[:]) == ["http://example.net/", "http://example.org/", "http://example.org/b"]
    assert graph.num_arcs == 3
    assert graph.crawled is not None
    assert graph.crawled.sum() == 2


@given(
    st.binary(max_size=3000),
    st.integers(100, 999),
    st.lists(st.tuples(st.text("abcXYZ-", min_size=1, max_size=9), st.binary(max_size=30)), max_size=5),
)
def test_any_answer_comes_back_from_the_warc(tmp_path_factory, body, status, fields):
    path = tmp_path_factory.mktemp("w") / "a.warc.gz"
    headers = Headers()
    for name, value in fields:
        headers.appendlist(name, value)
    with WarcFile(path, "x") as warc:
        warc.write(Request(URL), Response(URL, status=status, headers=headers, body=body))
    with path.open("rb") as file:
        kinds = [(one.rec_type, one.content_stream().read()) for one in ArchiveIterator(file)]
    assert [kind for kind, _ in kinds] == ["warcinfo", "response", "request"]
    found = records(path)[1]
    assert found[2].split(b" ")[1] == b"%d" % status
    assert found[3] == body
    check(path)


def test_each_run_goes_on_behind_the_last(tmp_path):
    path = tmp_path / "a.warc.gz"
    write(path, ("http://a.example/", b"one"))
    write(path, ("http://b.example/", b"two"))
    kinds = [(kind, url) for kind, url, _, _ in records(path)]
    assert kinds == [
        ("warcinfo", None),
        ("response", "http://a.example/"),
        ("request", "http://a.example/"),
        ("warcinfo", None),
        ("response", "http://b.example/"),
        ("request", "http://b.example/"),
    ]
    check(path)


@pytest.mark.slow
def test_a_cut_end_is_cut_off_wherever_it_was_cut(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: None)  # Each waits for the disk.
    path = tmp_path / "a.warc.gz"
    # the second body is a WARC itself and cannot be packed: nothing of it may be taken for the end
    write(path, ("http://a.example/", b"one"))
    inner = path.read_bytes()
    write(path, ("http://b.example/", inner + os.urandom(300) + inner))
    whole = path.read_bytes()
    ends = [0]
    with path.open("rb") as file:
        walk = ArchiveIterator(file)
        for _ in walk:
            walk.read_to_end()
            ends.append(walk.get_record_offset() + walk.get_record_length())
    assert ends[-1] == len(whole)
    around_ends = {end + step for end in ends[:-1] for step in range(-9, 10)}
    for cut in sorted({*range(0, len(whole), 10), len(whole) - 1, *around_ends} - {*range(-9, 0)}):
        path.write_bytes(whole[:cut])
        with WarcFile(path, "x"):
            pass
        kept = max(end for end in ends if end <= cut)
        assert path.read_bytes()[:kept] == whole[:kept]
        with path.open("rb") as file:
            file.seek(kept)
            assert [one.rec_type for one in ArchiveIterator(file)] == ["warcinfo"], cut


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"dear diary", "is not a WARC of gzip members from byte 0"),
        (gzip.compress(b"dear diary", mtime=0), "holds data that are not WARC records, at byte 0"),
        (b"WARC/1.1\r\n", "is not a WARC of gzip members from byte 0"),
    ],
)
def test_a_file_that_is_no_warc_stays_unchanged(tmp_path, content, said):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(content)
    with pytest.raises(OutputError, match=said):
        WarcFile(path, "x")
    assert path.read_bytes() == content


def test_damage_in_the_middle_is_told_and_nothing_is_cut(tmp_path):
    path = tmp_path / "a.warc.gz"
    write(path, ("http://a.example/", b"one" * 100), ("http://b.example/", b"two"))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(OutputError, match="is not a WARC of gzip members from byte"):
        WarcFile(path, "x")
    assert path.read_bytes() == raw


def test_names_and_places_that_cannot_be(tmp_path):
    with pytest.raises(OutputError, match=r"ends with \.warc\.gz"):
        WarcFile(tmp_path / "a.warc", "x")
    with pytest.raises(OutputError, match="cannot be written"):
        WarcFile(tmp_path / "none" / "a.warc.gz", "x")
    (tmp_path / "d.warc.gz").mkdir()
    with pytest.raises(OutputError, match="is not a regular file"):
        WarcFile(tmp_path / "d.warc.gz", "x")


def test_two_cannot_write_one_file(tmp_path):
    path = tmp_path / "a.warc.gz"
    with WarcFile(path, "x"), pytest.raises(InUseError, match="written by another process"):
        WarcFile(path, "x")
    with WarcFile(path, "x"):
        pass


@pytest.mark.slow
def test_a_file_that_cannot_grow_stays_whole(tmp_path):
    path = tmp_path / "a.warc.gz"
    script = """
import resource, signal, sys
from scrapy import Request
from scrapy.http import Response
from inlink.errors import OutputError
from inlink.scrapy.outputs import WarcFile
import os
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
url = "http://a.example/"
with WarcFile(sys.argv[1], "x") as warc:
    warc.write(Request(url), Response(url, body=b"one"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (warc.size + 1000, warc.size + 1000))
    try:
        warc.write(Request(url), Response(url, body=os.urandom(5000)))
    except OutputError as error:
        print(error)
    warc.write(Request(url), Response(url, body=b"two"))
"""
    run = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "a.warc.gz: cannot be written (File too large): free some space" in run.stdout
    assert [body for kind, _, _, body in records(path) if kind == "response"] == [b"one", b"two"]
    check(path)


@given(st.binary(max_size=300), st.integers(0, 3), st.binary(max_size=20))
def test_lines_are_whole_too(tmp_path_factory, start, breaks, rest):
    path = tmp_path_factory.mktemp("l") / "a.jsonl"
    kept = start + b"\n" * breaks
    path.write_bytes(kept + rest)
    before = kept + rest
    with Appended(path, whole_lines) as file:
        file.append(b"new\n")
    assert path.read_bytes() == before[: before.rfind(b"\n") + 1] + b"new\n"


def test_the_last_line_is_found_far_back():
    text = b"first\n" + b"x" * 200_000
    assert whole_lines(io.BytesIO(text)) == 6
    assert whole_lines(io.BytesIO(text + b"\n")) == len(text) + 1
    assert whole_lines(io.BytesIO(b"x" * 200_000)) == 0

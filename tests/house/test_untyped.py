"""Pages whose content type says nothing: read if they begin as HTML does, and told if they cannot be read."""

from pathlib import Path

import pytest

from archives import A, pages_of, response, warcinfo, write
from inlink.archives.html import looks_like_html
from inlink.scoring.reading import NOT_TEXT, read_page

PAGE = b'<!doctype html><title>t</title><a href="/x">x</a>'


@pytest.mark.parametrize(
    ("document", "html"),
    [
        (PAGE, True),
        (b"\xef\xbb\xbf \n<!-- made by hand --> <HTML lang=en>", True),
        (b'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml">', True),
        (b"PK\x03\x04" + PAGE, False),
        (b"<htmlx>", False),
        (b"<p>no beginning of a document", False),
        (b"<!--" * 100_000, False),
        (b"", False),
    ],
)
def test_documents_that_look_like_html(document: bytes, html: bool):
    assert looks_like_html(document) is html


@pytest.mark.parametrize("kind", ["application/octet-stream", "Binary/Octet-Stream; charset=utf-8"])
def test_html_without_a_type_is_read(tmp_path: Path, kind: str):
    page = read_page(PAGE, A, content_type=kind)
    assert ([link.url for link in page.links], page.title, page.problem) == ([A + "x"], "t", None)
    path = write(tmp_path / "x.warc", [warcinfo(), response(A, PAGE, content_type=kind)])
    assert [one.links for one in pages_of(path)] == [[A + "x"]]


@pytest.mark.parametrize("kind", ["application/octet-stream", "application/pdf", "image/png", ""])
def test_other_content_is_not_read_and_says_so(tmp_path: Path, kind: str):
    body = b"%PDF-1.4\0" + PAGE
    page = read_page(body, A, content_type=kind)
    assert (page.links, page.text, page.problem) == ([], "", NOT_TEXT)
    assert read_page(b"", A, content_type=kind).problem is None
    path = write(tmp_path / "x.warc", [warcinfo(), response(A, body, content_type=kind)])
    assert [one.links for one in pages_of(path)] == [[]]


def test_a_preset_reads_it_too():
    pytest.importorskip("scrapy")
    from inlink.scrapy.preset import Preset

    preset = Preset(A)
    assert len(preset.articles(read_page(PAGE, A, content_type="application/octet-stream"))) == 1
    assert preset.articles(read_page(b"\0" + PAGE, A, content_type="application/octet-stream")) == []

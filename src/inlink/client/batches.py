"""Answers and seeds on their way to a server, in parts that the server takes."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from inlink.base.table import counted
from inlink.crawl.intake import checked_answers, checked_entries
from inlink.crawl.links import listed, split_links
from inlink.errors import ParameterError
from inlink.protocol import Answer, AnyLink, Crawled, Link

log = logging.getLogger("inlink.client")

MOST_ANSWERS = 1_000
"""Maximum number of answers in a report."""

MOST_LINKS = 10_000
"""Maximum number of links of a page, and of URLs in a request for seeds."""

MOST_BYTES = 7 << 20
"""Maximum number of bytes of an answer. The server takes bodies of up to 8 MiB."""

BATCH_BYTES = 2 << 20
"""Number of bytes after which a batch ends, because the server decodes a batch in one piece."""


def answer_batches(answers: Sequence[Answer]) -> Iterator[tuple[Sequence[Answer], list[bytes]]]:
    """Cut a report into parts that the server takes: answers, and the same as JSON. All are checked before the first.

    An invalid link costs its page all its links, as in a crawl's folder. A page with more links than a server takes
    keeps the first of them, and the log says so.

    Raises
    ------
    inlink.errors.ParameterError
        If an answer has a value out of its range.
    """
    encoded = [_encoded_answer(answer) for answer in checked_answers(answers)]
    for part in _cut([len(answer) for answer in encoded], MOST_ANSWERS):
        yield answers[part], encoded[part]


def seed_batches(urls: Iterable[AnyLink]) -> Iterator[bytes]:
    """Encode URLs as JSON lists, in parts that the server takes.

    Raises
    ------
    inlink.errors.ParameterError
        If a link is invalid, or too large for a request.
    """
    links = [_json(link) for link in _plain(listed(urls))]
    for link in links:
        if len(link) > MOST_BYTES:
            raise ParameterError(
                f"a link has {len(link):,} bytes: a server takes {MOST_BYTES:,}; got {link[:100]!r}"
            )
    for part in _cut([len(link) for link in links], MOST_LINKS):
        yield b"[" + b",".join(links[part]) + b"]"


def sitemap_batches(entries: Iterable[tuple[str, float | None, float | None]]) -> Iterator[bytes]:
    """Encode a sitemap's entries as JSON lists, in parts that the server takes.

    Raises
    ------
    inlink.errors.ParameterError
        If an entry is invalid.
    """
    rows = [_json(row) for row in checked_entries(listed(entries, "entries")) if _is_unicode(row[0])]
    for part in _cut([len(row) for row in rows], MOST_LINKS):
        yield b"[" + b",".join(rows[part]) + b"]"


def _cut(sizes: Sequence[int], most: int) -> Iterator[slice]:
    begin, size = 0, 0
    for k, length in enumerate(sizes):
        if k > begin and (k - begin == most or size + length > BATCH_BYTES):
            yield slice(begin, k)
            begin, size = k, 0
        size += length
    if begin < len(sizes):
        yield slice(begin, len(sizes))


def _encoded_answer(answer: Answer) -> bytes:
    if not isinstance(answer, Crawled) or not answer.links:
        return _json(answer)
    try:
        links = _plain(answer.links)
    except ParameterError as error:
        return _json(msgspec.structs.replace(answer, links=[], error=str(error)))
    if len(links) > MOST_LINKS:
        log.warning(
            "the page of lease %d has %s: a server takes the first %d",
            answer.lease,
            counted(len(links), "link"),
            MOST_LINKS,
        )
        links = links[:MOST_LINKS]
    raw = _json(msgspec.structs.replace(answer, links=links))
    if len(raw) <= MOST_BYTES:
        return raw
    kept, size = 0, len(_json(msgspec.structs.replace(answer, links=[])))
    while (size := size + len(_json(links[kept])) + 1) <= MOST_BYTES:
        kept += 1
    log.warning(
        "the page of lease %d has links of %d bytes in all: a server takes the first %d of %s",
        answer.lease,
        len(raw),
        kept,
        counted(len(links), "link"),
    )
    return _json(msgspec.structs.replace(answer, links=links[:kept]))


def _plain(links: Sequence[AnyLink]) -> list[AnyLink]:
    """Check links, and leave out those whose URL is not valid Unicode, which JSON cannot hold."""
    split_links(links)
    if all(type(link) is str for link in links) and _is_unicode("".join(links)):  # type: ignore[arg-type]
        return list(links)
    return [
        link
        for link in links
        if _is_unicode(link if isinstance(link, str) else link.url if isinstance(link, Link) else link[0])
    ]


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=_number)
    except UnicodeEncodeError:
        # Only texts of links, errors and reasons are left, and the targets of redirects.
        return msgspec.json.encode(_replaced(msgspec.to_builtins(value, enc_hook=_number)))


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _replaced(part) for key, part in value.items()}
    return [_replaced(part) for part in value] if isinstance(value, list) else value


def _number(value: Any) -> Any:
    """Convert a number of NumPy, or of another kind, to a Python number."""
    return value.item() if hasattr(value, "item") else float(value)

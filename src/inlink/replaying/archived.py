"""An archive (WARC or ARC) as a web: its responses with their statuses, redirects and links, to crawl again offline."""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from inlink.archives.period import moment
from inlink.archives.records import Record, records
from inlink.archives.warc import page_of_response, parse_http
from inlink.base.damage import Tally
from inlink.errors import FormatError
from inlink.graph.graph import Rows
from inlink.replaying.web import (
    FAILED,
    PAGE,
    REDIRECT,
    UNKNOWN,
    Web,
    change_columns,
    merged_graph,
    plain_columns,
)
from inlink.sources.archive import archives_in
from inlink.urls.canonical import Base, canonical

_MOST_REDIRECTS = 20


class _ArchivedResponse(NamedTuple):
    status: int
    links: list[str]
    location: str | None


def web_of_archive(path: str | os.PathLike[str]) -> Web:
    """Return an archive as a web. A URL that was requested twice answers as it did the first time.

    A 2xx response is a page, also without links. A 3xx response with a ``Location`` is a redirect if at most 20
    redirects lead from it to a page. Any other response is a failure. A URL that is linked and has no response in the
    archive is not known. Whether a page changed is known from the first to the last of its 2xx responses, if it has
    several. A ``revisit`` record has the content of the record that it refers to.

    Raises
    ------
    inlink.errors.FormatError
        If it holds no HTTP response.
    inlink.errors.InputError
        If it cannot be read.
    """
    name, tally = os.fspath(path), Tally()
    answers: dict[str, _ArchivedResponse] = {}
    captures: dict[str, list[tuple[float, bytes]]] = {}
    for part, file, size, originals in archives_in(path, tally):
        for record in records(file, tally, name=part, size=size):
            url = canonical(record.url) if record.kind in ("response", "revisit") else None
            if url is None:
                continue
            if record.kind == "response":
                originals.add(record.digest, record.offset, part)
            else:
                record = originals.response(record) or record
            if record.kind == "response" and url not in answers:
                answer = _response(record, url, tally, part)
                if answer is not None:
                    answers[url] = answer
            if (capture := _capture(record)) is not None:
                captures.setdefault(url, []).append(capture)
    if not answers:
        raise FormatError(
            f"{name}: no HTTP response can be read: a replay needs a WARC or ARC with responses"
        )
    return _web(Path(name).name, answers, _histories(captures))


def _capture(record: Record) -> tuple[float, bytes] | None:
    """Return the Unix time at which a record was captured, and a hash of its content, which is empty for a revisit.

    None for a record without a date, and for a response that is no page.
    """
    try:
        time = moment(record.date).timestamp()
    except ValueError:
        return None
    if record.kind == "revisit":
        return time, b""
    http = parse_http(record.body)
    if http is None or not http.status.startswith(b"2"):
        return None
    return time, hashlib.blake2b(http.body, digest_size=16).digest()


def _histories(captures: dict[str, list[tuple[float, bytes]]]) -> dict[str, list[tuple[float, bytes]]]:
    """Return the captures of each URL in the order of time, in seconds since the first capture of all."""
    began = min((time for pairs in captures.values() for time, _ in pairs), default=0.0)
    histories: dict[str, list[tuple[float, bytes]]] = {}
    for url, pairs in captures.items():
        content = b""
        for time, checksum in sorted(pairs, key=lambda capture: capture[0]):
            content = checksum or content
            # The record that the first revisits refer to may be in another archive.
            if content:
                histories.setdefault(url, []).append((time - began, content))
    return histories


def _response(record: Record, url: str, tally: Tally, name: str) -> _ArchivedResponse | None:
    http = parse_http(record.body)
    if http is None or not http.status.isdigit():
        return None
    status, refused = int(http.status), dict[str, int]()
    if 300 <= status < 400:
        location = http.fields.get(b"location", [b""])[0].decode("utf-8", "replace")
        return _ArchivedResponse(status, [], Base(url).canonical(location) if location else None)
    page = page_of_response(record, tally, name, links="a", nofollow=True)
    links = [] if page is None else Base(url, page.base).canonical_links(page.links, refused)
    return _ArchivedResponse(status, links, None)


def _web(
    name: str, answers: dict[str, _ArchivedResponse], histories: dict[str, list[tuple[float, bytes]]]
) -> Web:
    numbers: dict[str, int] = {}
    for url, answer in answers.items():
        for address in (url, *answer.links, *([answer.location] if answer.location else [])):
            numbers.setdefault(address, len(numbers))
    n = len(numbers)
    columns, outcomes = plain_columns(n), np.full(n, UNKNOWN, np.uint8)
    columns["statuses"][:] = 0
    columns |= change_columns(n, {numbers[url]: seen for url, seen in histories.items() if url in numbers})
    rows: list[list[int]] = [[] for _ in range(n)]
    for url, answer in answers.items():
        page = numbers[url]
        columns["statuses"][page] = answer.status
        if 200 <= answer.status < 300:
            outcomes[page], rows[page] = PAGE, sorted({numbers[link] for link in answer.links})
        else:
            outcomes[page] = FAILED
    for url, answer in answers.items():
        target = _end(url, answers) if answer.location else None
        if target is not None:
            outcomes[numbers[url]], columns["targets"][numbers[url]] = REDIRECT, numbers[target]
    offsets = np.zeros(n + 1, np.uint64)
    offsets[1:] = np.cumsum([len(row) for row in rows])
    links = np.array([link for row in rows for link in row], np.uint32)
    return Web(
        name=name,
        hosts="real",
        urls=list(numbers),
        graph=merged_graph(Rows(offsets, links), columns["targets"]),
        offsets=offsets,
        links=links,
        outcomes=outcomes,
        notes={"pages that are not recorded": int((outcomes == UNKNOWN).sum())},
        **columns,
    )


def _end(url: str, answers: dict[str, _ArchivedResponse]) -> str | None:
    """Return the page at the end of redirects; None if they end at no page."""
    for _ in range(_MOST_REDIRECTS + 1):
        answer = answers.get(url)
        if answer is None:
            return None
        if answer.location is None:
            return url if 200 <= answer.status < 300 else None
        url = answer.location
    return None

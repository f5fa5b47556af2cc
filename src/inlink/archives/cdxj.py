"""CDXJ, the index of archives that pywb and others read: a line for each record, sorted.

A line has a key made from the URL, a timestamp of 14 digits, and JSON with the place of the record. The lines that are
written are those of the package ``cdxj-indexer``.
"""

import json
import re
from datetime import datetime
from typing import Annotated
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

import msgspec

from inlink.archives.period import moment
from inlink.archives.records import Record
from inlink.archives.warc import parse_http

_SAFE = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_WWW = re.compile(r"www\d*\.")
_PORTS = {"http": 80, "https": 443}
_SESSION_IN_PATH = re.compile(r"(.*/)\((?:(?:[a-z]\([0-9a-z]{24}\))+|[0-9a-z]{24})\)/([^?]+\.aspx.*)")
_SESSIONS_IN_QUERY = [
    re.compile(rf"(.*){session}(?:&(.*))?")
    for session in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
]


def url_key(url: str) -> str:
    """Return the key of an http URL in an index: its SURT, as the Internet Archive's tools write it.

    URLs that differ only in the scheme, ``www.``, case, escapes, sessions or the order of parameters have one key.

    Examples
    --------
    >>> url_key("https://www.Example.org:443/A/?b=2&a=1#top")
    'org,example)/a?a=1&b=2'
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return url
    host = _WWW.sub("", _escaped(_unescaped(host).replace(b"..", b".").strip(b".")).lower(), count=1)
    key = ",".join(reversed(host.split(".")))
    if port and port != _PORTS.get(parts.scheme):
        key += f":{port}"
    path = _escaped(_plain_path(_unescaped(parts.path))).lower()
    if match := _SESSION_IN_PATH.fullmatch(path):
        path = match[1] + match[2]
    if len(path) > 1:
        path = path.removesuffix("/")
    query = _escaped(_unescaped(parts.query)).lower()
    for session in _SESSIONS_IN_QUERY:
        if match := session.fullmatch(query):
            query = match[1] + (match[2] or "")
    query = "&".join("=".join(pair) for pair in sorted(part.split("=", 1) for part in query.split("&")))
    return f"{key}){path}?{query}" if query else f"{key}){path}"


def _unescaped(text: str) -> bytes:
    data, plain = text.encode("utf-8", "surrogateescape"), unquote_to_bytes(text)
    while plain != data:
        data, plain = plain, unquote_to_bytes(plain)
    return data


def _escaped(data: bytes) -> str:
    return quote_from_bytes(data, safe=_SAFE)


def _plain_path(path: bytes) -> bytes:
    """Remove empty segments, ``.`` and ``..`` from a path."""
    kept: list[bytes] = []
    for segment in path.split(b"/")[1:]:
        if segment == b".." and kept:
            kept.pop()
        elif segment != b".":
            kept.append(segment)
    return b"/" + b"/".join([*filter(None, kept[:-1]), *kept[-1:]])


_INDEXED = ("response", "revisit", "resource", "metadata")
_TYPE_END = re.compile(r"[;\s]")


def index_line(record: Record, length: int, filename: str) -> str | None:
    """Return the line of a record, without a line end; None for records that are not in indexes.

    Parameters
    ----------
    record : Record
        Its body may be cut after the HTTP header.
    length : int
        Number of bytes of its gzip member.
    filename : str
        The archive's name.

    Raises
    ------
    ValueError
        If the record has no valid date.
    """
    fields = record.content_type.startswith(b"application/warc-fields")
    if record.kind not in _INDEXED or (record.kind in ("resource", "metadata") and fields):
        return None
    url, index = record.url.decode("utf-8", "replace"), {}
    index["url"] = url
    http = parse_http(record.body) if record.kind in ("response", "revisit") else None
    types = [record.content_type] if http is None else http.fields.get(b"content-type", [])[:1]
    if record.kind == "revisit":
        index["mime"] = "warc/revisit"
    elif types:
        index["mime"] = _TYPE_END.split(types[0].decode("utf-8", "replace"), maxsplit=1)[0]
    if http is not None:
        index["status"] = http.status.decode("ascii")
    if record.digest:
        index["digest"] = record.digest.decode("ascii", "replace")
    index |= {"length": str(length), "offset": str(record.offset), "filename": filename}
    return f"{url_key(url)} {moment(record.date):%Y%m%d%H%M%S} {json.dumps(index)}"


class IndexEntry(msgspec.Struct):
    """The fields of an index line that inlink reads.

    Attributes
    ----------
    offset : int
        Byte offset of the record.
    filename : str
        The archive, relative to the folder of the index.
    url, mime, digest : str or None
        The URL, the content type, ``warc/revisit`` for a revisit record, and the payload digest.
    status : str, int or None
        The HTTP status.
    """

    offset: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
    filename: str
    url: str | None = None
    mime: str | None = None
    digest: str | None = None
    status: str | int | None = None


_DECODER = msgspec.json.Decoder(IndexEntry, strict=False)
LINE = re.compile(rb"[^ ]+ ([0-9]{14}) (\{.*\})\s*")


def read_line(line: bytes) -> tuple[datetime, IndexEntry] | None:
    """Return the time and the entry in a line of an index; None if it is no such line."""
    match = LINE.fullmatch(line)
    try:
        return (moment(match[1]), _DECODER.decode(match[2])) if match else None
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None

"""The headers of records in web archives, WARC and ARC."""

import re
from dataclasses import dataclass

__all__ = ["ARC", "BAD_HEADER", "WARC", "FaultError", "Record", "arc_header", "plain_header", "warc_header"]

WARC = re.compile(rb"WARC/\d")
ARC = re.compile(rb"[a-zA-Z][a-zA-Z0-9+.-]{1,20}:[^\n]{1,8000} \d{1,15}\r?\n")
_FIELDS = re.compile(
    rb"^(warc-type|warc-target-uri|content-length|content-type|warc-date)[ \t]*:[ \t]*([^\r\n]*)", re.I | re.M
)
# The header of a record in a WAT file of Common Crawl.
_OF_WAT = re.compile(
    rb"WARC/1\.\d\r\nWARC-Type: ([a-z]+)\r\nWARC-Target-URI: ([^\s<][^\s]*)\r\nWARC-Date: ([^\s]+)\r\n"
    rb"WARC-Record-ID: [^\s]+\r\nWARC-Refers-To: [^\s]+\r\n"
    rb"Content-Type: ([a-z/]+)\r\nContent-Length: (\d{1,7})\r\n\r\n"
)
BAD_HEADER = "malformed record header"


@dataclass(slots=True)
class Record:
    """A complete record.

    Attributes
    ----------
    kind : str
        The WARC-Type in lower case. For ARC: ``"response"`` for an HTTP response, ``"warcinfo"`` for the description
        of the file, else ``"resource"``.
    url : bytes
        The target URI, as written.
    content_type : bytes
        Content type of the record in lower case, such as ``application/http; msgtype=response``.
    date : bytes
        The WARC-Date, as written; empty for ARC.
    body : bytes
        The content of the record, including the HTTP header.
    offset : int
        Byte offset of the record, or of the gzip member that holds it.
    """

    kind: str
    url: bytes
    content_type: bytes
    date: bytes
    body: bytes
    offset: int


class FaultError(Exception):
    """A damaged place. Caught in :func:`inlink.archives.records.records`."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.what, self.offset = what, offset


def warc_header(header: bytes, offset: int) -> tuple[Record, int]:
    """Read the header of a WARC record: the record without its body, and the length of the body."""
    if not WARC.match(header):
        raise FaultError(BAD_HEADER, offset)
    fields: dict[bytes, bytes] = {}
    for name, value in _FIELDS.findall(header):
        fields.setdefault(name.lower(), value.strip())
    length = fields.get(b"content-length", b"")
    if not length.isdigit() or len(length) > 18 or b"warc-type" not in fields:
        raise FaultError(BAD_HEADER, offset)
    url = fields.get(b"warc-target-uri", b"")
    # WARC 1.0 prescribed the brackets by mistake, and Wget writes them.
    if url.startswith(b"<") and url.endswith(b">"):
        url = url[1:-1]
    kind = fields[b"warc-type"].lower().decode("ascii", "replace")
    content_type = fields.get(b"content-type", b"").lower()
    return Record(kind, url, content_type, fields.get(b"warc-date", b""), b"", offset), int(length)


def plain_header(header: bytes) -> tuple[Record, int] | None:
    """Read a header of the usual form quickly; None if it has another form."""
    match = _OF_WAT.fullmatch(header)
    if match:
        named, url, date, content_type, length = match.groups()
        return Record(named.decode(), url, content_type, date, b"", 0), int(length)
    lines = header.split(b"\r\n")
    if len(lines) < 4 or not header.startswith(b"WARC/1.") or header.count(b"\n") != len(lines) - 1:
        return None
    if header.count(b"\r") != len(lines) - 1:
        return None
    fields: dict[bytes, bytes] = {}
    for line in lines[1:-2]:
        name, colon, value = line.partition(b":")
        if not colon:
            return None
        fields[_LOWER.get(name) or _lower(name)] = value.strip()
    length = fields.get(b"content-length", b"")
    kind = fields.get(b"warc-type")
    url = fields.get(b"warc-target-uri", b"")
    # If a field is repeated, there are fewer names than lines.
    if (
        kind is None
        or not length.isdigit()
        or len(length) > 7
        or url[:1] == b"<"
        or len(fields) != len(lines) - 3
    ):
        return None
    content_type, date = fields.get(b"content-type", b"").lower(), fields.get(b"warc-date", b"")
    return Record(kind.lower().decode("ascii", "replace"), url, content_type, date, b"", 0), int(length)


# The names of fields in headers that were read, and their forms in lower case.
_LOWER: dict[bytes, bytes] = {}


def _lower(name: bytes) -> bytes:
    lower = name.rstrip(b" \t").lower()
    if len(_LOWER) < 1000 and len(name) < 100:
        _LOWER[name] = lower
    return lower


def arc_header(line: bytes, offset: int) -> tuple[Record, int]:
    """Read ``URL IP-address date type length``. Version 2 has five more fields before the length."""
    words = line.split()
    if len(words) < 5 or not words[-1].isdigit() or len(words[-1]) > 18 or not ARC.match(line):
        raise FaultError(BAD_HEADER, offset)
    # Old URLs may contain spaces.
    url = words[0] if len(words) == 10 else b" ".join(words[:-4])
    kind = "warcinfo" if url.startswith(b"filedesc:") else "resource"
    if url[:5].lower().startswith(b"http"):
        kind = "response"
    return Record(kind, url, b"application/http; msgtype=response", b"", b"", offset), int(words[-1])

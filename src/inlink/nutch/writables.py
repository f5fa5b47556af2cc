"""Decode the objects in Nutch's segments and crawl databases: ParseData and CrawlDatum.

Source: org.apache.nutch.parse.ParseData, .Outlink, .ParseStatus, org.apache.nutch.metadata.Metadata,
org.apache.nutch.crawl.CrawlDatum, org.apache.nutch.protocol.ProtocolStatus (Nutch 1.23), and
org.apache.hadoop.io.MapWritable.
"""

import struct
from dataclasses import dataclass

import numpy as np

from inlink.nutch.fields import Fields, Writable

STATUS = {
    1: "db_unfetched", 2: "db_fetched", 3: "db_gone", 4: "db_redir_temp", 5: "db_redir_perm", 6: "db_notmodified",
    7: "db_duplicate", 8: "db_orphan", 9: "db_parse_failed",
    0x21: "fetch_success", 0x22: "fetch_retry", 0x23: "fetch_redir_temp", 0x24: "fetch_redir_perm",
    0x25: "fetch_gone", 0x26: "fetch_notmodified",
    0x41: "signature", 0x42: "injected", 0x43: "linked", 0x44: "parse_metadata", 0x45: "parse_failed",
}  # fmt: skip
# The statuses that link.delete.gone treats as gone. They include redirects.
GONE = (0x23, 0x24, 0x25)

_FETCH_TIME = b"_ftk_"
# Statuses of CrawlDatum before version 5.
_OLD_STATUS = {
    0: 0x41,
    1: 1,
    2: 2,
    3: 3,
    4: 0x43,
    5: 0x21,
    6: 0x22,
    7: 0x25,
}
_PROTOCOL = {
    1: "success", 2: "failed", 10: "proto_not_found", 11: "gone", 12: "moved", 13: "temp_moved", 14: "notfound",
    15: "retry", 16: "exception", 17: "access_denied", 18: "robots_denied", 19: "redir_exceeded", 20: "notfetching",
    21: "notmodified", 22: "wouldblock", 23: "blocked",
}  # fmt: skip
_HADOOP = "org.apache.hadoop.io."
_CLASSES = dict(
    enumerate(
        (
            "ArrayWritable", "BooleanWritable", "BytesWritable", "FloatWritable", "IntWritable", "LongWritable",
            "MapWritable", "MD5Hash", "NullWritable", "ObjectWritable", "SortedMapWritable", "Text",
            "TwoDArrayWritable", "VIntWritable", "VLongWritable",
        ),
        -127,
    )
)  # fmt: skip
# The deepest nesting of maps.
_DEEPEST = 8
# The score's place in a CrawlDatum of version 3 to 7: after version, status, time, retries and interval.
_SCORE_AT = 15


def _parse_data(fields: Fields) -> tuple[list[bytes], int | None]:
    """Read a page's outlinks in the order of the document, and the time of its fetch if it is known.

    Parameters
    ----------
    fields : Fields
        Its next field is a ParseData.

    Returns
    -------
    links : list of bytes
        URLs. Repeated links are repeated.
    time : int or None
        Milliseconds since 1970, UTC.

    Raises
    ------
    ValueError
        If the bytes are not a ParseData of version 5.
    """
    if fields.byte() != 5:
        raise ValueError("not version 5")
    if fields.byte() not in (1, 2):
        raise ValueError("an unknown version of ParseStatus")
    # Major and minor code of the status.
    fields.take(3)
    # The packed strings of version 1 have the same layout.
    fields.strings()
    # The title.
    fields.text()
    links = []
    for _ in range(fields.int32()):
        links.append(fields.text())
        # The anchor.
        fields.text()
        if fields.byte():
            read_map(fields)
    time = None
    for name, values in _metadata(fields):
        if name == _FETCH_TIME and values and time is None:
            try:
                time = int(values[0][:20])
            except ValueError:
                time = None
    # Metadata of the parser is read to find the end of the object.
    _metadata(fields)
    return links, time if time is not None and 0 <= time < 1 << 62 else None


def _metadata(fields: Fields) -> list[tuple[bytes, list[bytes]]]:
    """Read a Metadata of Nutch: names, each with its values."""
    return [(fields.text(), [fields.text() for _ in range(fields.int32())]) for _ in range(fields.int32())]


@dataclass
class CrawlDatum:
    """An entry of a crawl database or of crawl_fetch.

    Attributes
    ----------
    status : int
        A number in :data:`STATUS`.
    fetch_time, modified_time : int
        Milliseconds since 1970, UTC. `fetch_time` is the time of the fetch; in a crawl database, of the next fetch.
    retries, interval : int
        Retries since the last fetch; seconds between two fetches.
    score : float
        The score of the page.
    signature : bytes or None
        The digest of the content; None if there is none.
    metadata : list of (str, str)
        Names and values as Nutch prints them.
    raw : bytes
        The serialised CrawlDatum.
    """

    status: int
    fetch_time: int
    modified_time: int
    retries: int
    interval: int
    score: float
    signature: bytes | None
    metadata: list[tuple[str, str]]
    raw: bytes = b""


def _crawl_datum(fields: Fields) -> CrawlDatum:
    """Read a CrawlDatum of version 3 to 7. Raise ValueError if the bytes are not a CrawlDatum."""
    begin = fields.at
    version = fields.byte()
    if not 3 <= version <= 7:
        raise ValueError("an unknown version of CrawlDatum")
    status, fetch_time, retries = fields.byte(), fields.int64(), fields.byte()
    interval = fields.int32() if version > 5 else _rounded(fields.float32())
    score, modified = fields.float32(), fields.int64()
    size = fields.byte()
    signature = fields.take(size) if size > 0 else None
    metadata = read_map(fields) if version > 3 and fields.byte() else []
    if version < 5:
        status = _OLD_STATUS.get(status, 1)
    raw = fields.data[begin : fields.at]
    return CrawlDatum(status, fetch_time, modified, retries, interval, score, signature, metadata, raw)


def with_score(datum: CrawlDatum, score: float) -> bytes:
    """Return the serialised CrawlDatum with another score, a 32-bit float. All other bytes stay the same."""
    with np.errstate(over="ignore"):
        packed = struct.pack(">f", np.float32(score))
    return datum.raw[:_SCORE_AT] + packed + datum.raw[_SCORE_AT + 4 :]


def _rounded(value: float) -> int:
    return int(value + 0.5) if abs(value) < 2**31 else 0


def read_map(fields: Fields, depth: int = 0) -> list[tuple[str, str]]:
    """Read a MapWritable, with keys and values as text."""
    if depth > _DEEPEST:
        raise ValueError("maps within maps")
    classes = dict(_CLASSES)
    for _ in range(fields.byte()):
        number = fields.byte()
        classes[number] = fields.utf().decode("utf-8", "replace")
    entries = []
    for _ in range(fields.int32()):
        key = _writable(fields, classes, depth)
        entries.append((key, _writable(fields, classes, depth)))
    return entries


def _writable(fields: Fields, classes: dict[int, str], depth: int) -> str:
    name = classes.get(fields.byte(), "").removeprefix(_HADOOP)
    if name == "Text":
        return fields.text().decode("utf-8", "surrogateescape")
    if name == "IntWritable":
        return str(fields.int32())
    if name == "LongWritable":
        return str(fields.int64())
    if name == "FloatWritable":
        from inlink.nutch.java import java_float

        return java_float(fields.float32())
    if name == "BooleanWritable":
        return "true" if fields.byte() else "false"
    if name in ("VIntWritable", "VLongWritable"):
        return str(fields.vint())
    if name == "ByteWritable":
        return str(fields.byte())
    if name == "NullWritable":
        return "(null)"
    if name == "BytesWritable":
        return fields.take(fields.int32()).hex(" ")
    if name == "MD5Hash":
        return fields.take(16).hex()
    if name in ("MapWritable", "SortedMapWritable"):
        return "{" + ", ".join(f"{key}={value}" for key, value in read_map(fields, depth + 1)) + "}"
    if name == "org.apache.nutch.protocol.ProtocolStatus":
        return _protocol_status(fields)
    raise ValueError("metadata of an unknown class")


def _protocol_status(fields: Fields) -> str:
    if fields.byte() != 2:
        raise ValueError("an unknown version of ProtocolStatus")
    code, modified, args = fields.byte(), fields.int64(), fields.strings()
    text = f"{_PROTOCOL.get(code, 'null')}({code}), lastModified={modified}"
    words = [None if arg is None else arg.decode("utf-8", "surrogateescape") for arg in args or []]
    if len(words) == 1:
        return f"{text}: {'null' if words[0] is None else words[0]}"
    return text + "".join(f", args[{k}]={word}" for k, word in enumerate(words) if word is not None)


PARSE_DATA = Writable("org.apache.nutch.parse.ParseData", _parse_data)
CRAWL_DATUM = Writable("org.apache.nutch.crawl.CrawlDatum", _crawl_datum)

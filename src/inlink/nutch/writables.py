"""What Nutch's segments and crawl databases hold: ParseData and CrawlDatum.

Source: org.apache.nutch.parse.ParseData, .Outlink, .ParseStatus, org.apache.nutch.metadata.Metadata,
org.apache.nutch.crawl.CrawlDatum, org.apache.nutch.protocol.ProtocolStatus (Nutch 1.23), and
org.apache.hadoop.io.MapWritable.
"""

from dataclasses import dataclass

from inlink.nutch.sequencefile import Fields, Writable

__all__ = ["CRAWL_DATUM", "GONE", "PARSE_DATA", "STATUS", "CrawlDatum"]

STATUS = {
    1: "db_unfetched", 2: "db_fetched", 3: "db_gone", 4: "db_redir_temp", 5: "db_redir_perm", 6: "db_notmodified",
    7: "db_duplicate", 8: "db_orphan", 9: "db_parse_failed",
    0x21: "fetch_success", 0x22: "fetch_retry", 0x23: "fetch_redir_temp", 0x24: "fetch_redir_perm",
    0x25: "fetch_gone", 0x26: "fetch_notmodified",
    0x41: "signature", 0x42: "injected", 0x43: "linked", 0x44: "parse_metadata", 0x45: "parse_failed",
}  # fmt: skip
GONE = (0x23, 0x24, 0x25)  # what link.delete.gone calls gone: redirected pages too

_FETCH_TIME = b"_ftk_"
_OLD_STATUS = {
    0: 0x41,
    1: 1,
    2: 2,
    3: 3,
    4: 0x43,
    5: 0x21,
    6: 0x22,
    7: 0x25,
}  # of CrawlDatum before version 5
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
_DEEPEST = 8  # maps within maps


def _parse_data(fields: Fields) -> tuple[list[bytes], int | None]:
    """A page's outlinks in the order of the document, and when it was fetched if that is said.

    Parameters
    ----------
    fields : Fields
        Stands at a ParseData, and behind it afterwards.

    Returns
    -------
    links : list of bytes
        URLs, as often as they stand there.
    time : int or None
        Milliseconds since 1970, UTC.

    Raises
    ------
    ValueError
        If the bytes are no ParseData of version 5.
    """
    if fields.byte() != 5:
        raise ValueError("not version 5")
    if fields.byte() not in (1, 2):
        raise ValueError("an unknown version of ParseStatus")
    fields.take(3)  # its major and minor code
    fields.strings()  # packed strings of version 1 are laid out alike
    fields.text()  # the title
    links = []
    for _ in range(fields.int32()):
        links.append(fields.text())
        fields.text()  # the anchor
        if fields.byte():
            _map(fields)
    time = None
    for name, values in _metadata(fields):
        if name == _FETCH_TIME and values and time is None:
            try:
                time = int(values[0][:20])
            except ValueError:
                time = None
    # What the parser noted is read only because nothing may follow it.
    _metadata(fields)
    return links, time if time is not None and 0 <= time < 1 << 62 else None


def _metadata(fields: Fields) -> list[tuple[bytes, list[bytes]]]:
    """A Metadata of Nutch: names, each with its values."""
    return [(fields.text(), [fields.text() for _ in range(fields.int32())]) for _ in range(fields.int32())]


@dataclass
class CrawlDatum:
    """What a crawl database, or crawl_fetch, says of a URL.

    Attributes
    ----------
    status : int
        A number in :data:`STATUS`.
    fetch_time, modified_time : int
        Milliseconds since 1970, UTC: when it was fetched, or in a crawl database when it is to be fetched.
    retries, interval : int
        Retries since the last fetch; seconds between two fetches.
    score : float
    signature : bytes or None
    metadata : list of (str, str)
        As Nutch prints it.
    """

    status: int
    fetch_time: int
    modified_time: int
    retries: int
    interval: int
    score: float
    signature: bytes | None
    metadata: list[tuple[str, str]]


def _crawl_datum(fields: Fields) -> CrawlDatum:
    """Read a CrawlDatum of version 3 to 7; ValueError if the bytes are none."""
    version = fields.byte()
    if not 3 <= version <= 7:
        raise ValueError("an unknown version of CrawlDatum")
    status, fetch_time, retries = fields.byte(), fields.int64(), fields.byte()
    interval = fields.int32() if version > 5 else _rounded(fields.float32())
    score, modified = fields.float32(), fields.int64()
    size = fields.byte()
    signature = fields.take(size) if size > 0 else None
    metadata = _map(fields) if version > 3 and fields.byte() else []
    if version < 5:
        status = _OLD_STATUS.get(status, 1)
    return CrawlDatum(status, fetch_time, modified, retries, interval, score, signature, metadata)


def _rounded(value: float) -> int:
    return int(value + 0.5) if abs(value) < 2**31 else 0


def _map(fields: Fields, depth: int = 0) -> list[tuple[str, str]]:
    """A MapWritable, its keys and values as text."""
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
        return "{" + ", ".join(f"{key}={value}" for key, value in _map(fields, depth + 1)) + "}"
    if name == "org.apache.nutch.protocol.ProtocolStatus":
        return _protocol_status(fields)
    raise ValueError("metadata of a class that is not read")


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

"""Nutch's files for the tests, written straight from Hadoop's and Nutch's formats and from nothing of inlink's."""

import gzip
import struct
import zlib
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

TEXT = "org.apache.hadoop.io.Text"
PARSE_DATA = "org.apache.nutch.parse.ParseData"
CRAWL_DATUM = "org.apache.nutch.crawl.CrawlDatum"
DEFAULT = "org.apache.hadoop.io.compress.DefaultCodec"
GZIP = "org.apache.hadoop.io.compress.GzipCodec"
# Not UTF-8, as 16 random bytes seldom are.
SYNC = bytes(range(200, 216))


def vint(n: int) -> bytes:
    if -112 <= n <= 127:
        return struct.pack("b", n)
    start, n = (-120, ~n) if n < 0 else (-112, n)
    size = (n.bit_length() + 7) // 8
    return struct.pack("b", start - size) + n.to_bytes(size, "big")


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return vint(len(raw)) + raw


def sequence_file(
    path: Path,
    records: list[tuple[bytes, bytes]],
    value_class: str = TEXT,
    *,
    mode: str = "record",
    codec: str = DEFAULT,
    every: int = 3,
    version: int = 6,
) -> Path:
    """Write a SequenceFile; a sync mark, or a block's end, after ``every`` records. The keys are Texts."""
    # Without a time, so that the same records are the same bytes.
    pack = partial(gzip.compress, mtime=0) if codec == GZIP else zlib.compress
    out = bytearray(b"SEQ" + bytes([version]) + text(TEXT) + text(value_class))
    out += bytes([mode != "none", mode == "block"])
    if mode != "none" and version >= 5:
        out += text(codec)
    if version >= 6:
        out += struct.pack(">i", 1) + text("made by") + text("a test")
    out += SYNC
    mark = b"\xff\xff\xff\xff" + SYNC
    if mode == "block":
        for k in range(0, len(records), every):
            block = records[k : k + every]
            out += mark + vint(len(block))
            for part in (
                b"".join(vint(len(key)) for key, _ in block),
                b"".join(key for key, _ in block),
                b"".join(vint(len(value)) for _, value in block),
                b"".join(value for _, value in block),
            ):
                out += vint(len(pack(part))) + pack(part)
    else:
        for k, (key, value) in enumerate(records):
            if k and k % every == 0:
                out += mark
            body = pack(value) if mode == "record" else value
            out += struct.pack(">ii", len(key) + len(body), len(key)) + key + body
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(out)
    return path


def checksums(path: Path) -> None:
    """Write Hadoop's checksum file of a file."""
    raw = path.read_bytes()
    sums = [zlib.crc32(raw[k : k + 512]) for k in range(0, len(raw), 512)]
    (path.parent / f".{path.name}.crc").write_bytes(b"crc\0" + struct.pack(f">{len(sums) + 1}I", 512, *sums))


def metadata(entries: dict[str, str]) -> bytes:
    out = struct.pack(">i", len(entries))
    for key, value in entries.items():
        out += text(key) + struct.pack(">i", 1) + text(value)
    return out


def map_writable(entries: dict[str, object]) -> bytes:
    """Values that are str, int, float, or bytes: a ProtocolStatus."""
    nutch = "org.apache.nutch.protocol.ProtocolStatus"
    custom = any(isinstance(value, bytes) for value in entries.values())
    out = struct.pack(">b", custom)
    if custom:
        out += b"\x01" + struct.pack(">H", len(nutch)) + nutch.encode()
    out += struct.pack(">i", len(entries))
    for key, value in entries.items():
        out += struct.pack("b", -116) + text(key)
        if isinstance(value, bytes):
            out += b"\x01" + value
        elif isinstance(value, int):
            out += struct.pack(">bi", -123, value)
        elif isinstance(value, float):
            out += struct.pack(">bf", -124, value)
        else:
            out += struct.pack("b", -116) + text(str(value))
    return out


def protocol_status(code: int, *args: str) -> bytes:
    out = struct.pack(">bbqi", 2, code, 0, len(args))
    return out + b"".join(struct.pack(">i", len(arg.encode())) + arg.encode() for arg in args)


def parse_data(links: list[str], time: int | None = None, *, noted: bool = False) -> bytes:
    out = b"\x05" + b"\x02\x01" + struct.pack(">h", 0) + struct.pack(">i", -1) + text("A title")
    out += struct.pack(">i", len(links))
    for k, link in enumerate(links):
        out += text(link) + text(f"anchor {k}")
        out += b"\x01" + map_writable({"weight": 0.5, "rel": "next"}) if noted and k == 0 else b"\x00"
    times = {} if time is None else {"_ftk_": str(time)}
    return (
        out
        + metadata({"Content-Type": "text/html", **times, "Content-Length": "120"})
        + metadata({"CharEncoding": "utf-8"})
    )


def crawl_datum(
    status: int,
    time: int,
    *,
    score: float = 0.0,
    retries: int = 0,
    interval: int = 2592000,
    modified: int = 0,
    signature: bytes = b"",
    notes: dict[str, object] | None = None,
) -> bytes:
    out = struct.pack(">bbqbifq", 7, status, time, retries, interval, score, modified)
    out += struct.pack(">b", len(signature)) + signature
    return out + (b"\x01" + map_writable(notes) if notes else b"\x00")


def segment(
    folder: Path,
    pages: dict[str, tuple[int | None, list[str]]],
    fetched: dict[str, tuple[int, int]] | None = None,
    **options: object,
) -> Path:
    """A segment: pages and their times and links; crawl_fetch: URLs and their status and time."""
    found = [(text(url), parse_data(links, time, noted=True)) for url, (time, links) in sorted(pages.items())]
    sequence_file(folder / "parse_data" / "part-r-00000" / "data", found, PARSE_DATA, **options)
    (folder / "parse_data" / "part-r-00000" / "index").write_bytes(b"SEQ, but nobody reads it")
    (folder / "parse_data" / "_SUCCESS").write_bytes(b"")
    if fetched is not None:
        data = [(text(url), crawl_datum(status, time)) for url, (status, time) in sorted(fetched.items())]
        sequence_file(folder / "crawl_fetch" / "part-r-00000" / "data", data, CRAWL_DATUM, **options)
    return folder


# URLs for LinkRank, and Nutch's ways to cut them to a domain and to a page.
PAGES = [
    "http://a.example.com/",
    "http://a.example.com/?q=1",
    "http://A.example.com/?q=2",
    "http://b.example.com/x",
    "https://www.example.org/",
    "http://example.org:8080/?x#y",
    "http://10.0.0.1/",
    "http://10.0.0.1/x",
    "http://localhost/",
    "http://c.example.co.uk/",
    "http://d.example.co.uk/",
    "nohost",
]


def domain(url: str) -> str | None:
    host = urlsplit(url).hostname
    if host is None or host[0].isdigit() or "." not in host:
        return host
    return ".".join(host.split(".")[-3:] if host.endswith(".co.uk") else host.split(".")[-2:])


def page(url: str) -> str | None:
    parts = urlsplit(url.lower())
    return parts._replace(query="").geturl() if parts.hostname else None

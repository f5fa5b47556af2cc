"""Archives read from streams that are no files: memory, pipes, sockets that give a byte at a time."""

import contextlib
import gzip
import io
import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archives import A, B, C, arc_record, arc_start, http, response, sample, warcinfo, wat_json, wat_record
from inlink.archives import streams
from inlink.archives.batches import archive_batches, archive_kind, page_links
from inlink.archives.records import records
from inlink.archives.streams import Rewindable
from inlink.base.damage import Tally
from inlink.base.progress import Work, reporting
from inlink.errors import DamageError, FormatError, InputError, ParameterError

WAT = [warcinfo(), wat_record(wat_json(A, [{"path": "A@/href", "url": B}]), url=A)]
ARC = [arc_start(), arc_record(A, http(b"<a href=x>")), arc_record(B, http(b""))]


class Trickle:
    """Gives at most so many bytes at once, and can nothing but read."""

    def __init__(self, data: bytes, most: int) -> None:
        self._data, self._most, self._at = data, most, 0

    def read(self, size: int, /) -> bytes:
        part = self._data[self._at : self._at + min(size, self._most)]
        self._at += len(part)
        return part

    def close(self) -> None:
        pass


def packed(parts: list[bytes], how: str) -> bytes:
    if how == "records":
        return b"".join(gzip.compress(part, 1) for part in parts)
    return gzip.compress(b"".join(parts), 1) if how == "whole" else b"".join(parts)


def read_all(stream, **options):
    """Records and tally of a stream, or the error that it ends with."""
    tally = Tally(**options)
    try:
        kept = [(r.offset, r.kind, r.url, r.body) for r in records(stream, tally, name="x")]
    except (DamageError, FormatError) as error:
        return str(error)
    return kept, tally


@pytest.mark.parametrize("how", ["", "records", "whole"])
@pytest.mark.parametrize(("kind", "parts"), [("warc", sample()), ("wat", WAT), ("arc", ARC)])
def test_records_links_and_batches_of_memory_and_of_a_pipe(tmp_path, how, kind, parts):
    data = packed(parts, how)
    (tmp_path / "x").write_bytes(data)

    def pipe():
        reading, writing = os.pipe()

        def feed():
            with os.fdopen(writing, "wb") as file:
                file.write(data)

        threading.Thread(target=feed).start()
        return os.fdopen(reading, "rb")

    def memory():
        return io.BytesIO(data)

    def of(make, reading):
        with contextlib.closing(make()) as stream:
            return reading(stream)

    def arcs(stream):
        batches = archive_batches(stream, level="host")
        return [(b.names.to_pylist(), b.sources.tolist(), b.targets.tolist()) for b in batches]

    kept, tally = of(memory, read_all)
    assert tally.records == len(kept) == len(parts)
    for make in (lambda: (tmp_path / "x").open("rb"), pipe, lambda: Trickle(data, 3)):
        assert of(make, read_all) == (kept, tally)
        assert of(make, archive_kind) == kind
        for reading in (lambda stream: list(page_links(stream)), arcs):
            assert of(make, reading) == of(memory, reading)


ARCHIVES = {
    (how, name): packed(parts, how)
    for how in ("", "records", "whole")
    for name, parts in {"warc": [*sample(), response(A, "x" * 40_000), *sample()], "arc": ARC}.items()
}


@settings(deadline=None)
@given(st.sampled_from(list(ARCHIVES)), st.integers(1, 70_000), st.data())
def test_damage_and_cuts_are_told_alike_however_the_bytes_come(which, most, data):
    raw = bytearray(ARCHIVES[which])
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] ^= data.draw(st.integers(1, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    for strict in (False, True):
        assert read_all(Trickle(cut, most), strict=strict) == read_all(io.BytesIO(cut), strict=strict)


def test_a_search_after_damage_begins_within_the_member():
    """The next record begins inside the damaged member, whose rest was read already; none of it is lost."""
    first = gzip.compress(response(A, os.urandom(60_000)), 0)
    data = first[:50_000] + gzip.compress(response(B, os.urandom(40_000))) + gzip.compress(response(C, "c"))
    for make in (io.BytesIO, lambda raw: Trickle(raw, 100)):
        found, tally = read_all(make(data))
        assert [url for _, _, url, _ in found] == [B.encode(), C.encode()]
        assert tally.damaged == 1


def test_no_more_is_kept_than_the_bound(monkeypatch):
    monkeypatch.setattr(streams, "KEPT", 1000)
    source = Rewindable(io.BytesIO(bytes(10_000)), "x")
    while source.read(300):
        pass
    assert 10_000 - 1300 <= source.rewind(0) <= 9000
    assert len(source.read(10_000)) <= 1300


def test_streams_are_named_and_tell_progress(tmp_path):
    told = []

    class Reporter:
        def task(self, label, total, unit):
            told.append(Work(label, total, unit))
            return told[-1]

    data = packed(sample(), "records")
    with reporting(Reporter()):
        list(records(Trickle(data, 10), Tally(), name="s3://bucket/x.warc.gz", size=len(data)))
    assert (told[0].label, told[0].done, told[0].total) == ("reading x.warc.gz", len(data), len(data))
    with pytest.raises(DamageError, match=r"^<stream>: "):
        list(records(io.BytesIO(data[:-3]), Tally(strict=True)))
    (tmp_path / "y").write_bytes(data[:-3])
    with (tmp_path / "y").open("rb") as file, pytest.raises(DamageError, match=r"/y: "):
        list(records(file, Tally(strict=True)))


def test_streams_that_cannot_be_read():
    with pytest.raises(ParameterError, match="`read` must return bytes; got str"):
        list(records(io.StringIO("WARC/1.0"), Tally()))

    class Broken:
        def read(self, size: int, /) -> bytes:
            raise ConnectionResetError("connection reset by peer")

    with pytest.raises(InputError, match=r"b\.warc: cannot be read \(connection reset by peer\)"):
        list(archive_batches(Broken(), name="b.warc"))


@given(
    st.binary(max_size=300), st.lists(st.tuples(st.integers(1, 50), st.integers(0, 300))), st.integers(1, 40)
)
def test_rewinding_gives_the_same_bytes_again(data, steps, most):
    source = Rewindable(Trickle(data, most), "x")
    place = 0
    for size, back in steps:
        part = source.read(size)
        assert part == data[place : place + size]
        place = min(place + size, len(data))
        place = source.rewind(place - back)
        assert place <= max(place, 0)
    assert source.read(1000) == data[place:]


@given(st.binary(min_size=1, max_size=300), st.integers(1, 50), st.integers(0, 300))
def test_a_stream_forgets_the_parts_before_the_place(data, size, place):
    source = Rewindable(io.BytesIO(data), "x")
    read = b""
    while part := source.read(size):
        read += part
    assert read == data
    source.forget(place)
    reached = source.rewind(place)
    assert reached >= min(place, len(data)) - size
    assert source.read(1000) == data[reached:]

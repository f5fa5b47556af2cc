"""SequenceFiles, written by the tests' own writer, whole and damaged."""

import contextlib
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlink.errors import DamageError, FormatError, InputError
from inlink.sources.damage import Tally
from inlink.sources.sequencefile import MAX_RECORD, Fields, records
from nutchfiles import DEFAULT, GZIP, SYNC, TEXT, sequence_file, text, vint

MODES = [("none", DEFAULT), ("record", DEFAULT), ("record", GZIP), ("block", DEFAULT), ("block", GZIP)]


def read(path: Path, tally: Tally | None = None) -> list[tuple[bytes, bytes]]:
    return [(one.key, one.value) for one in records(path, TEXT, TEXT, tally or Tally(strict=True))]


def some(count: int) -> list[tuple[bytes, bytes]]:
    return [(text(f"key {k}"), text("value " * k)) for k in range(count)]


@pytest.mark.parametrize(("mode", "codec"), MODES)
@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_what_was_written_is_read(tmp_path, mode, codec, count):
    path = sequence_file(tmp_path / "data", some(count), mode=mode, codec=codec)
    assert read(path) == some(count)


@pytest.mark.parametrize(
    ("mode", "version"), [("none", 4), ("record", 4), ("block", 4), ("record", 5), ("none", 5)]
)
def test_older_versions_are_read(tmp_path, mode, version):
    assert read(sequence_file(tmp_path / "data", some(7), mode=mode, version=version)) == some(7)


def test_records_larger_than_what_is_read_at_a_time(tmp_path):
    large = [(text("a"), bytes(3 << 20)), (text("b"), b"x" * (2 << 20))]
    for mode, codec in MODES:
        assert read(sequence_file(tmp_path / "data", large, mode=mode, codec=codec)) == large


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_of_variable_length(number):
    fields = Fields(vint(number))
    assert fields.vint() == number
    assert fields.at == len(fields.data)


@given(st.binary(max_size=300))
@settings(max_examples=200)
def test_any_bytes_are_read_or_refused(tmp_path_factory, junk):
    path = tmp_path_factory.mktemp("junk") / "data"
    path.write_bytes(b"SEQ\x06" + text(TEXT) + text(TEXT) + junk)
    tally = Tally()
    with contextlib.suppress(InputError):  # and nothing else
        found = list(records(path, TEXT, TEXT, tally))
        assert len(found) <= len(junk)


@pytest.mark.parametrize(("mode", "codec"), MODES)
@given(data=st.data())
def test_damage_is_left_out_counted_and_never_invents_keys(tmp_path_factory, mode, codec, data):
    path = sequence_file(tmp_path_factory.mktemp("hurt") / "data", some(12), mode=mode, codec=codec)
    raw = bytearray(path.read_bytes())
    body = raw.index(SYNC) + 16
    at = data.draw(st.integers(body, len(raw) - 1))
    if data.draw(st.booleans()):
        raw[at] ^= data.draw(st.integers(1, 255))
    else:
        del raw[at:]
    path.write_bytes(raw)
    tally = Tally()
    found = read(path, tally)
    lost = [record for record in some(12) if record not in found]
    if lost and at < len(raw):
        assert tally.damaged or len(found) >= 11  # a flipped byte of a key or value that nothing checks
    if lost and at == len(raw) and mode != "block":
        assert len(found) + len(lost) == 12
        assert found == some(12)[: len(found)]  # a cut file keeps what stands before


@pytest.mark.parametrize("mode", ["none", "record", "block"])
def test_reading_goes_on_behind_the_next_sync_mark(tmp_path, mode):
    path = sequence_file(tmp_path / "data", some(12), mode=mode, every=3)
    raw = bytearray(path.read_bytes())
    where = raw.index(SYNC) + 16
    if mode == "block":
        where += 22
    raw[where : where + 4] = b"\x7f\xff\xff\xff"  # a length of two gigabytes
    path.write_bytes(raw)
    tally = Tally()
    assert read(path, tally) == some(12)[3:]
    assert tally.damaged == 1
    with pytest.raises(DamageError, match=r"cut or damaged, at byte [\d,]+"):
        read(path)


def test_what_unpacks_to_too_much_is_left_out(tmp_path):
    bomb = zlib.compress(bytes(MAX_RECORD + 1))
    path = sequence_file(tmp_path / "data", [], mode="record")
    with path.open("ab") as file:
        file.write(struct.pack(">ii", 2 + len(bomb), 2) + text("k") + bomb)
        small = zlib.compress(b"v")
        file.write(struct.pack(">ii", 2 + len(small), 2) + text("l") + small)
    tally = Tally()
    assert read(path, tally) == [(text("l"), b"v")]
    assert list(tally.skipped) == ["a SequenceFile's value that cannot be unpacked"]


def test_what_is_no_such_file_is_refused_by_name(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"PAR1 and so on")
    with pytest.raises(FormatError, match="no SequenceFile"):
        read(path)
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="no SequenceFile"):
        read(path)
    path.write_bytes(b"SEQ\x03")
    with pytest.raises(FormatError, match="version 3"):
        read(path)
    path.write_bytes(b"SEQ\x06" + text(TEXT))
    with pytest.raises(DamageError, match="header"):
        read(path)
    with pytest.raises(FormatError, match=r"not org\.apache\.hadoop\.io\.Text and other"):
        list(records(sequence_file(path, some(1)), TEXT, "other", Tally()))
    with pytest.raises(FormatError, match="SnappyCodec"):
        read(sequence_file(path, some(1), codec="org.apache.hadoop.io.compress.SnappyCodec"))
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "absent")

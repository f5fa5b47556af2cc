"""SequenceFiles, written by the tests' own writer, whole and damaged."""

import contextlib
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inlink.base.damage import Tally
from inlink.errors import DamageError, FormatError, InputError
from inlink.nutch import sequencefile
from inlink.nutch.fields import TEXT, Fields, Writable
from inlink.nutch.sequencefile import MAX_RECORD, records
from nutchfiles import DEFAULT, GZIP, SYNC, checksums, sequence_file, text, vint
from nutchfiles import TEXT as TEXT_CLASS

MODES = [("none", DEFAULT), ("record", DEFAULT), ("record", GZIP), ("block", DEFAULT), ("block", GZIP)]


def read(path: Path, tally: Tally | None = None) -> list[tuple[bytes, bytes]]:
    tally = tally or Tally(strict=True)
    return [(text(key), text(value)) for key, value in records(path, TEXT, TEXT, tally)]


def some(count: int) -> list[tuple[bytes, bytes]]:
    return [(text(f"key {k}"), text("value " * k)) for k in range(count)]


@pytest.mark.parametrize(("mode", "codec"), MODES)
@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_records_that_were_written_are_read(tmp_path, mode, codec, count):
    path = sequence_file(tmp_path / "data", some(count), mode=mode, codec=codec)
    assert read(path) == some(count)


@pytest.mark.parametrize(
    ("mode", "version"), [("none", 4), ("record", 4), ("block", 4), ("record", 5), ("none", 5)]
)
def test_older_versions_are_read(tmp_path, mode, version):
    assert read(sequence_file(tmp_path / "data", some(7), mode=mode, version=version)) == some(7)


def test_records_larger_than_what_is_read_at_a_time(tmp_path):
    large = [(text("a"), text(bytes(3 << 20))), (text("b"), text(b"x" * (2 << 20)))]
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
    path.write_bytes(b"SEQ\x06" + text(TEXT_CLASS) + text(TEXT_CLASS) + junk)
    tally = Tally()
    with contextlib.suppress(InputError):  # and nothing else
        found = list(records(path, TEXT, TEXT, tally))
        assert len(found) <= len(junk)


def lost_groups(found: list[tuple[bytes, bytes]]) -> set[int]:
    """The groups of three records, each between two sync marks, of which some(12) is missing from ``found``."""
    return {k // 3 for k, record in enumerate(some(12)) if record not in found}


@pytest.mark.parametrize(("mode", "codec"), MODES)
@given(at=st.integers(0, 800), flip=st.integers(1, 255))
# The length of record 6 grew: the record hid two others and a sync mark, and ended where record 9 begins.
@example(at=223, flip=156)
def test_a_damaged_byte_hides_no_record_in_silence(tmp_path_factory, mode, codec, at, flip):
    path = sequence_file(tmp_path_factory.mktemp("hurt") / "data", some(12), mode=mode, codec=codec)
    raw = bytearray(path.read_bytes())
    body = raw.index(SYNC) + 16
    raw[body + at % (len(raw) - body)] ^= flip
    path.write_bytes(raw)
    tally = Tally()
    found = read(path, tally)
    if tally.damaged:
        assert found == [record for record in some(12) if record in found]
        assert len(lost_groups(found)) <= 1
        return
    # Nothing protects the characters of uncompressed text. All else that is changed is damage.
    changed = [pair for pair in zip(found, some(12), strict=True) if pair[0] != pair[1]]
    assert len(changed) <= (mode != "block")
    for (key, value), (old_key, old_value) in changed:
        assert (len(key), len(value)) == (len(old_key), len(old_value))
        assert value == old_value or (mode == "none" and key == old_key)


@pytest.mark.parametrize(("mode", "codec"), MODES)
@given(at=st.integers(0, 800), flip=st.integers(1, 255))
def test_a_damaged_header_hides_no_record_in_silence(tmp_path_factory, mode, codec, at, flip):
    path = sequence_file(tmp_path_factory.mktemp("hurt") / "data", some(12), mode=mode, codec=codec)
    raw = bytearray(path.read_bytes())
    raw[at % (raw.index(SYNC) + 16)] ^= flip
    path.write_bytes(raw)
    tally = Tally()
    with contextlib.suppress(DamageError, FormatError):
        found = read(path, tally)
        assert tally.damaged or found == some(12)


@pytest.mark.parametrize(("mode", "codec"), MODES)
@given(at=st.integers(0, 800))
def test_a_cut_file_keeps_what_stands_before(tmp_path_factory, mode, codec, at):
    folder = tmp_path_factory.mktemp("cut")
    raw = sequence_file(folder / "data", some(12), mode=mode, codec=codec).read_bytes()
    body = raw.index(SYNC) + 16
    raw = raw[: body + at % (len(raw) - body)]
    (folder / "data").write_bytes(raw)
    tally = Tally()
    found = read(folder / "data", tally)
    assert found == some(12)[: len(found)]
    shorter = sequence_file(folder / "shorter", found, mode=mode, codec=codec).read_bytes()
    if mode != "block":
        # A file that ends with a sync mark is whole, too.
        assert raw.startswith(shorter)
        shorter += b"\xff\xff\xff\xff" + SYNC if len(raw) == len(shorter) + 20 else b""
    assert bool(tally.damaged) == (raw != shorter)


def test_metadata_that_runs_over_the_sync_mark_is_refused(tmp_path):
    path = sequence_file(tmp_path / "data", some(4), mode="none", every=4)
    raw = bytearray(path.read_bytes())
    where = raw.index(text("a test"))
    raw[where] = 42
    # The 16 bytes behind this text are the end of record 1, and record 2 follows.
    assert raw[where + 1 + 42 + 16 :].startswith(struct.pack(">ii", 19, 6) + text("key 2"))
    path.write_bytes(raw)
    with pytest.raises(DamageError, match="header"):
        read(path)


@pytest.mark.parametrize(("mode", "codec"), MODES[:3])
def test_a_record_that_takes_in_the_next_is_damage(tmp_path, mode, codec):
    path = sequence_file(tmp_path / "data", some(3), mode=mode, codec=codec)
    raw = bytearray(path.read_bytes())
    first = raw.index(SYNC) + 16
    (length,) = struct.unpack_from(">i", raw, first)
    (more,) = struct.unpack_from(">i", raw, first + 8 + length)
    struct.pack_into(">i", raw, first, length + 8 + more)
    path.write_bytes(raw)
    tally = Tally()
    assert read(path, tally) == some(3)[1:]
    assert tally.damaged == 1


@pytest.mark.parametrize(("mode", "codec"), MODES[:3])
@pytest.mark.parametrize("more", [1, 3, 4, 10, 19, 20, 21])
def test_a_record_that_runs_into_a_sync_mark_ends_there(tmp_path, mode, codec, more):
    path = sequence_file(tmp_path / "data", some(3), mode=mode, codec=codec, every=1)
    raw = bytearray(path.read_bytes())
    first = raw.index(SYNC) + 16
    (length,) = struct.unpack_from(">i", raw, first)
    struct.pack_into(">i", raw, first, length + more)
    path.write_bytes(raw)
    tally = Tally()
    assert read(path, tally) == some(3)[1:]
    assert tally.damaged == 1


def test_a_record_does_not_contain_the_sync_mark(tmp_path):
    path = sequence_file(tmp_path / "data", [(text("a"), text(SYNC)), *some(3)], mode="none", every=1)
    tally = Tally()
    assert read(path, tally) == some(3)
    assert tally.damaged == 1


@pytest.mark.parametrize("mode", ["none", "record", "block"])
def test_keys_and_values_fit_their_lengths_exactly(tmp_path, mode):
    odd = [
        (text("long key") + b"x", text("v")),
        (text("short key")[:-1], text("v")),
        (b"", text("v")),
        (text("a"), text("long value") + b"x"),
        (text("b"), text("short value")[:-1]),
        (text("c"), b""),
    ]
    path = sequence_file(tmp_path / "data", [*some(2), *odd, *some(1)], mode=mode)
    tally = Tally()
    assert read(path, tally) == some(2) + some(1)
    assert {reason: skipped.count for reason, skipped in tally.skipped.items()} == {
        "a Text that cannot be read (cut short)": 4,
        "a Text that cannot be read (shorter than its record says)": 2,
    }


@pytest.mark.parametrize("count", [0, 2, 4])
def test_a_block_has_as_many_records_as_it_says(tmp_path, count):
    path = sequence_file(tmp_path / "data", some(6), mode="block")
    raw = bytearray(path.read_bytes())
    where = raw.index(SYNC) + 36
    assert raw[where] == 3
    raw[where] = count
    path.write_bytes(raw)
    tally = Tally()
    assert read(path, tally) == some(6)[3:]
    assert tally.damaged == 1


@pytest.mark.parametrize("mode", ["none", "record", "block"])
def test_reading_goes_on_at_the_next_record_or_block(tmp_path, mode):
    path = sequence_file(tmp_path / "data", some(12), mode=mode, every=3)
    raw = bytearray(path.read_bytes())
    where = raw.index(SYNC) + 16
    if mode == "block":
        where += 22
    raw[where : where + 4] = b"\x7f\xff\xff\xff"  # a length of two gigabytes
    path.write_bytes(raw)
    tally = Tally()
    assert read(path, tally) == some(12)[3 if mode == "block" else 1 :]
    assert tally.damaged == 1
    assert next(iter(tally.skipped.values())).size == (
        87 if mode == "block" else 8 + 7 + (mode == "record") * 8
    )
    with pytest.raises(DamageError, match=r"cut or damaged, at byte [\d,]+"):
        read(path)


@pytest.mark.parametrize(("mode", "codec"), MODES[:3])
@given(at=st.integers(0, 4000), flip=st.integers(1, 255))
def test_a_damaged_byte_costs_one_record_without_any_sync_mark(tmp_path_factory, mode, codec, at, flip):
    path = sequence_file(tmp_path_factory.mktemp("hurt") / "data", some(40), mode=mode, codec=codec, every=99)
    raw = bytearray(path.read_bytes())
    body = raw.index(SYNC) + 16
    at = body + at % (len(raw) - body)
    raw[at] ^= flip
    path.write_bytes(raw)
    tally = Tally()
    found = read(path, tally)
    if tally.damaged:
        assert found == [record for record in some(40) if record in found]
        assert len(found) == 39
        (entry,) = tally.skipped.values()
        assert entry.offset <= at < entry.offset + entry.size
        assert f"{entry.size:,} bytes passed over" in tally.lines()[0]
    # The byte is passed over, or is a character of uncompressed text.
    assert len(found) + tally.damaged == 40


@pytest.mark.parametrize(("mode", "codec"), MODES)
@given(at=st.integers(0, 4000), flip=st.integers(1, 255))
def test_with_hadoops_checksums_no_damaged_byte_is_read(tmp_path_factory, mode, codec, at, flip):
    path = sequence_file(tmp_path_factory.mktemp("hurt") / "data", some(60), mode=mode, codec=codec, every=20)
    checksums(path)
    assert read(path) == some(60)
    raw = bytearray(path.read_bytes())
    body = raw.index(SYNC) + 16
    at = body + at % (len(raw) - body)
    raw[at] ^= flip
    path.write_bytes(raw)
    tally = Tally()
    found = read(path, tally)
    assert found == [record for record in some(60) if record in found]
    entry = tally.skipped["chunk that differs from its checksum (.crc)"]
    assert (entry.count, entry.offset) == (1, at // 512 * 512)
    assert found
    with pytest.raises(DamageError, match=f"differs from its checksum .*at byte {at // 512 * 512:,}"):
        read(path)


def test_records_that_are_all_damaged_cost_one_search(tmp_path, monkeypatch):
    bad = [(text(f"key {k}"), text("value") + b"x") for k in range(500)]
    path = sequence_file(tmp_path / "data", bad, mode="none", every=1000)
    peeked = []
    peek = sequencefile._Buffer.peek
    monkeypatch.setattr(sequencefile._Buffer, "peek", lambda *args: peeked.append(args) or peek(*args))
    tally = Tally()
    assert read(path, tally) == []
    assert tally.damaged == 500
    assert len(peeked) < 10 * 500


def test_a_checksum_file_of_another_file_is_damage(tmp_path):
    path = sequence_file(tmp_path / "data", some(60), mode="none")
    checksums(path)
    sums = tmp_path / ".data.crc"
    whole = sums.read_bytes()
    for raw in (
        whole[:-1],
        whole + bytes(4),
        b"crc\1" + whole[4:],
        b"crc\0" + bytes(4),
        b"crc\0\xff\0\0\0",
        b"",
    ):
        sums.write_bytes(raw)
        tally = Tally()
        assert read(path, tally) == some(60)
        assert list(tally.skipped) == ["checksum file (.crc) that is damaged or belongs to another file"]
        with pytest.raises(DamageError, match="belongs to another file"):
            read(path)
    sums.write_bytes(whole)
    assert read(path) == some(60)


@pytest.mark.slow
def test_blocks_that_unpack_to_too_much_are_left_out(tmp_path):
    bomb = zlib.compress(bytes(MAX_RECORD + 1))
    path = sequence_file(tmp_path / "data", [], mode="record")
    with path.open("ab") as file:
        file.write(struct.pack(">ii", 2 + len(bomb), 2) + text("k") + bomb)
        small = zlib.compress(text("v"))
        file.write(struct.pack(">ii", 2 + len(small), 2) + text("l") + small)
    tally = Tally()
    assert read(path, tally) == [(text("l"), text("v"))]
    assert list(tally.skipped) == ["a SequenceFile's value that cannot be unpacked"]


def test_a_file_of_another_kind_is_refused_by_name(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"PAR1 and so on")
    with pytest.raises(FormatError, match="not a SequenceFile"):
        read(path)
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="not a SequenceFile"):
        read(path)
    path.write_bytes(b"SEQ\x03")
    with pytest.raises(FormatError, match="version 3"):
        read(path)
    path.write_bytes(b"SEQ\x06" + text(TEXT_CLASS))
    with pytest.raises(DamageError, match="header"):
        read(path)
    with pytest.raises(FormatError, match=r"not org\.apache\.hadoop\.io\.Text and other"):
        list(records(sequence_file(path, some(1)), TEXT, Writable("other", Fields.text), Tally()))
    with pytest.raises(FormatError, match="SnappyCodec"):
        read(sequence_file(path, some(1), codec="org.apache.hadoop.io.compress.SnappyCodec"))
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "absent")

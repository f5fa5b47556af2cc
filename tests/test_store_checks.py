"""Whole frames, torn tails and damage, against every byte of a small log flipped."""

import re
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlstrategies import Clock, opened
from goldencrawl import GOLDEN, visit
from inlink.crawl.folder import look
from inlink.errors import FolderError
from inlink.store import format as layout
from inlink.store.checks import frames
from inlink.store.format import HEAD_SIZE, Head, struct_of
from inlink.store.kernels.checks import crc32
from inlink.store.log import EVENTS, URLS, Log
from inlink.store.lookup import look_up
from inlink.store.reader import Reader


@given(st.binary(max_size=200), st.integers(0, 20), st.integers(0, 20))
def test_the_checksum_is_zlibs(data, begin, less):
    begin, end = min(begin, len(data)), max(len(data) - less, min(begin, len(data)))
    array = np.frombuffer(data, np.uint8)
    assert crc32(array, np.uint64(begin), np.uint64(end)) == zlib.crc32(data[begin:end])


def small_log(folder: Path) -> tuple[bytes, bytes]:
    """A log of seven events, of all sizes, some with URLs; the last is a sync mark."""
    log, known = Log(folder, "full"), 0
    for number, urls in enumerate(
        ([b"http://a.com/"], [], [b"http://b.com/", b"http://c.com/"], [], [b"http://d.com/"])
    ):
        text = b"".join(url + b"\n" for url in urls)
        if known:
            told = visit(list(range(known)), content_hash=b"\x1f" * number)
            log.append(layout.VISIT, float(number), 0, first=known, new=len(urls), urls=text, **told)
        else:
            log.append(layout.SEED, float(number), new=len(urls), urls=text, listed=1, payload=b"\0")
        known += len(urls)
    log.append(layout.GIVEN, 5.0, 0, payload=layout.MARKER.to_bytes(4, "little") * 9, first=known)
    log.close()
    return (folder / URLS).read_bytes(), (folder / EVENTS).read_bytes()


def as_array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def stretches(urls: bytes, events: bytes):
    return list(frames(as_array(urls), as_array(events)))


def test_a_sound_log_is_its_frames(tmp_path: Path):
    urls, events = small_log(tmp_path)
    found = stretches(urls, events)
    assert len(found) == 7
    assert [one.begin for one in found] + [len(events)] == [0] + [one.end for one in found]
    assert all(one.head is not None and not one.fault for one in found)
    assert [one.head.kind for one in found][-1] == layout.SYNCED
    assert found[-1].head.synced == found[-1].begin


def test_reading_goes_on_behind_any_flipped_bit(tmp_path: Path):
    """Any bit of the log may be flipped: all other frames are found, with their page numbers."""
    urls, events = small_log(tmp_path)
    sound = stretches(urls, events)
    for byte in range(len(events)):
        for bit in (1, 16, 128):
            bad = bytearray(events)
            bad[byte] ^= bit
            found = stretches(urls, bytes(bad))
            hit = next(one for one in sound if one.begin <= byte < one.end)
            assert [one for one in found if not one.fault] == [one for one in sound if one is not hit], byte
            assert [(one.begin, one.end) for one in found if one.fault] == [(hit.begin, hit.end)], byte
            in_head = byte < hit.begin + HEAD_SIZE
            (damaged,) = (one for one in found if one.fault)
            assert (damaged.head is None) == in_head
            assert ("head" if in_head else "payload") in damaged.fault
    for byte in range(len(urls)):
        bad = bytearray(urls)
        bad[byte] ^= 1
        found = stretches(bytes(bad), events)
        assert [one.head for one in found] == [one.head for one in sound]
        (damaged,) = (one for one in found if one.fault)
        assert damaged.fault == "the checksum of an event's URLs differs"
        head = damaged.head
        assert head.text_place <= byte < head.text_place + head.text_size


def test_reading_goes_on_behind_a_hole(tmp_path: Path):
    urls, events = small_log(tmp_path)
    sound = stretches(urls, events)
    for begin in range(0, len(events), 7):
        end = min(begin + 150, len(events))
        bad = events[:begin] + bytes(end - begin) + events[end:]
        found = stretches(urls, bad)
        kept = [one for one in sound if bad[one.begin : one.end] == events[one.begin : one.end]]
        assert [one for one in found if not one.fault] == kept
        assert [one.begin for one in found] + [len(events)] == [0] + [one.end for one in found]


def test_a_log_cut_short_ends_in_damage(tmp_path: Path):
    urls, events = small_log(tmp_path)
    sound = stretches(urls, events)
    for size in range(len(events)):
        found = stretches(urls, events[:size])
        assert [one for one in found if not one.fault] == [one for one in sound if one.end <= size]


# -- torn tails, and damage ----------------------------------------------------------------------------------------


def crawl_folder(folder: Path) -> Path:
    """A closed crawl of a few events."""
    with opened(folder, Clock(), policy="hosts-in-turns") as crawl:
        crawl.seed([f"http://a.com/{k}" for k in range(5)])
        for lease in crawl.next(4):
            crawl.crawled(lease, [f"{lease.url}/{k}" for k in range(3)], score=0.5)
    return folder


def flip(file: Path, byte: int) -> None:
    raw = bytearray(file.read_bytes())
    raw[byte] ^= 4
    file.write_bytes(raw)


def test_closing_says_how_far_the_log_is_safe_once(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    events = (folder / EVENTS).read_bytes()
    *_, last = stretches((folder / URLS).read_bytes(), events)
    assert (last.head.kind, last.head.synced) == (layout.SYNCED, last.begin)
    with opened(folder, Clock(), policy="hosts-in-turns"):
        pass
    assert (folder / EVENTS).read_bytes() == events


def test_damage_where_the_log_was_safe_is_refused_and_nothing_is_changed(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    events = (folder / EVENTS).read_bytes()
    sound = stretches((folder / URLS).read_bytes(), events)
    for at, name in [(one.begin + 20, EVENTS) for one in sound[:-1]] + [(3, URLS), (40, URLS)]:
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        flip(copy / name, at)
        before = {path.name: path.read_bytes() for path in copy.iterdir() if path.is_file()}
        place = next((one.begin for one in sound if one.begin <= at < one.end), 0)
        for way in (lambda path: opened(path, Clock(), policy="hosts-in-turns"), Reader, look):
            with pytest.raises(FolderError, match=re.escape(f"{copy / name} is damaged at byte")) as error:
                way(copy)
            assert "nothing was changed" in str(error.value)
            assert "backup" in str(error.value)
            if name == EVENTS:
                assert f"at byte {place:,} " in str(error.value)
        after = {path.name: path.read_bytes() for path in copy.iterdir() if path.is_file()}
        assert {name: after[name] for name in (URLS, EVENTS)} == {
            name: before[name] for name in (URLS, EVENTS)
        }
        shutil.rmtree(copy)


def test_a_torn_tail_with_whole_frames_behind_a_hole_is_cut(tmp_path: Path):
    """A power cut: pages of the file were written in any order, and nothing was synced behind a byte."""
    folder = crawl_folder(tmp_path / "c")
    reader = Reader(folder)
    end, known = reader.end, reader.num_pages
    reader.close()
    log = Log(folder)
    for number in range(4):
        log.append(layout.GIVEN, 2e6, 0, payload=b"%d" % number * 50, first=known)
    log._last = None
    log.close()
    flip(folder / EVENTS, end + HEAD_SIZE + 10)
    reader = Reader(folder)
    assert (reader.end, reader.num_pages) == (end, known)
    reader.close()
    with opened(folder, Clock(2e6), policy="hosts-in-turns") as crawl:
        assert "an unfinished event" in crawl.recovered
    assert (folder / EVENTS).read_bytes()[:end] == (folder / EVENTS).read_bytes()
    with opened(folder, Clock(2e6), policy="hosts-in-turns") as crawl:
        assert "unfinished" not in crawl.recovered


def test_damage_is_found_by_who_looks_one_page_up(tmp_path: Path):
    """Each byte of the log flipped: the right page, or a refusal."""
    folder = Path(shutil.copytree(GOLDEN, tmp_path / "c"))
    right = look_up(folder, 0)
    for name in (EVENTS, URLS):
        raw = (folder / name).read_bytes()
        refused = 0
        for byte in range(0, len(raw), 3):
            flip(folder / name, byte)
            try:
                assert look_up(folder, 0) == right, (name, byte)
            except FolderError:
                refused += 1
            (folder / name).write_bytes(raw)
        assert refused > (300 if name == EVENTS else 4)


def test_damage_behind_an_index_is_found(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("inlink.store.urls._FEW", 1)
    folder = crawl_folder(tmp_path / "c")
    assert (folder / "index").is_dir()
    flip(folder / EVENTS, 150)
    with pytest.raises(FolderError, match="damaged at byte 0 "):
        opened(folder, Clock(), policy="hosts-in-turns")


# -- what later versions write --------------------------------------------------------------------------------------


def test_anchors_and_fingerprints_are_passed_over_by_every_reader(tmp_path: Path):
    """A visit as a spider of issue 15 will tell it, between two of today's."""
    folder = tmp_path / "c"
    with opened(folder, Clock(), policy="hits", use_scores=True) as crawl:
        crawl.seed(["http://a.com/"])
        crawl.crawled("http://a.com/", ["/1", "/2"])
        known = crawl._pages.num_pages
    told = visit(
        {0: 0.25, 2: 0.75}, crawls=1, fingerprint=2**63 + 1, content_hash=b"hash", anchors={0: "home", 2: "ü" * 99},
        carried={2: b"a request"},
    )  # fmt: skip
    log = Log(folder)
    log.append(layout.VISIT, 2e6, 1, status=200, score=0.5, first=known, **told)
    log._last = 2e6, known
    log.close()
    with opened(folder, Clock(3e6), policy="hits", use_scores=True) as crawl:
        pages = crawl._pages
        assert pages.links(1).tolist() == [0, 2]
        assert pages.inlinks(2).tolist() == [0, 1]
        assert pages.visit(1).content_hash == b"hash"
        assert pages.carried(2) == b"a request"
        assert float(pages.scores[2]) == 0.75
        assert look_up(folder, 2).score == 0.75
        assert look_up(folder, 1) == pages.page(1)
        assert crawl.crawled("http://a.com/2", ["/"])
        assert crawl.why("http://a.com/1").state == "crawled"
    reader = Reader(folder)
    assert reader.pages.links(2).tolist() == [0]
    reader.close()


def test_a_head_is_as_long_as_its_fields():
    assert struct_of(Head).size == layout.HEAD.itemsize == HEAD_SIZE == layout.CHECKED.size + 4

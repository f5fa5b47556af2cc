"""Whole frames, torn tails and damage, against every byte of a small log flipped."""

import os
import re
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlcommand import inlink
from crawlstrategies import Clock, opened, stored_pages
from foldercommands import shell
from goldencrawl import GOLDEN, visit
from inlink.crawl.folder import look
from inlink.errors import FolderError
from inlink.protocol import Link
from inlink.store import format as layout
from inlink.store.checks import last_whole, refuse_damage
from inlink.store.format import HEAD_SIZE, Head, salt_of, struct_of, synced_of
from inlink.store.kernels.checks import crc32
from inlink.store.log import END, EVENTS, URLS, Log, ends_in
from inlink.store.reader import hash_seed_of, known_pages
from inlink.store.verify import verify
from storefolders import flip, frames, inlinks, later_log, look_up


@given(st.binary(max_size=200), st.integers(0, 20), st.integers(0, 20), st.integers(0, 2**32 - 1))
def test_the_checksum_is_zlibs(data, begin, less, start):
    begin, end = min(begin, len(data)), max(len(data) - less, min(begin, len(data)))
    array = np.frombuffer(data, np.uint8)
    assert crc32(array, np.uint64(begin), np.uint64(end), np.uint64(start)) == zlib.crc32(
        data[begin:end], start
    )


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
    log.append(layout.GIVEN, 5.0, 0, payload=(SALT & 0xFFFFFFFF).to_bytes(4, "little") * 9, first=known)
    log.close()
    return (folder / URLS).read_bytes(), (folder / EVENTS).read_bytes()


SALT = salt_of(0)


def as_array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def stretches(urls: bytes, events: bytes, salt: int = SALT):
    return list(frames(as_array(urls), as_array(events), salt))


def test_a_sound_log_is_its_frames(tmp_path: Path):
    urls, events = small_log(tmp_path)
    found = stretches(urls, events)
    assert len(found) == 7
    assert [one.begin for one in found] + [len(events)] == [0] + [one.end for one in found]
    assert all(one.head is not None and not one.fault for one in found)
    assert [one.head.kind for one in found][-1] == layout.SYNCED
    assert synced_of(found[-1].head) == found[-1].begin
    assert synced_of(found[-1].head._replace(place=1 << 33, unsynced=layout.MOST_UNSYNCED)) == 0
    assert [one.head.number for one in found] == list(range(7))


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


# -- torn tails, and damage ----------------------------------------------------------------------------------------


def crawl_folder(folder: Path) -> Path:
    """A closed crawl of a few events."""
    with opened(folder, Clock(), policy="hosts-in-turns") as crawl:
        crawl.seed([f"http://a.com/{k}" for k in range(5)])
        for lease in crawl.next(4):
            crawl.crawled(lease, [f"{lease.url}/{k}" for k in range(3)], score=0.5)
    return folder


def test_closing_says_how_far_the_log_is_safe_once(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    events = (folder / EVENTS).read_bytes()
    *_, last = stretches((folder / URLS).read_bytes(), events, salt_of(hash_seed_of(folder)))
    assert (last.head.kind, synced_of(last.head)) == (layout.SYNCED, last.begin)
    with opened(folder, Clock(), policy="hosts-in-turns"):
        pass
    assert (folder / EVENTS).read_bytes() == events


def test_damage_where_the_log_was_safe_is_refused_and_nothing_is_changed(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    events = (folder / EVENTS).read_bytes()
    sound = stretches((folder / URLS).read_bytes(), events, salt_of(hash_seed_of(folder)))
    for at, name in [(one.begin + 20, EVENTS) for one in sound] + [(3, URLS), (40, URLS)]:
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        flip(copy / name, at)
        before = {path.name: path.read_bytes() for path in copy.iterdir() if path.is_file()}
        place = next((one.begin for one in sound if one.begin <= at < one.end), 0)
        for way in (lambda path: opened(path, Clock(), policy="hosts-in-turns"), known_pages, look):
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
    reader = known_pages(folder)
    end, known = reader.frames.end, reader.num_pages
    reader.close()
    log = later_log(folder, synced=False)
    for number in range(4):
        log.append(layout.GIVEN, 2e6, 0, payload=b"%d" % number * 50, first=known)
    log.abandon()
    flip(folder / EVENTS, end + HEAD_SIZE + 10)
    reader = known_pages(folder)
    assert (reader.frames.end, reader.num_pages) == (end, known)
    reader.close()
    with opened(folder, Clock(2e6), policy="hosts-in-turns") as crawl:
        assert "an unfinished event" in crawl.recovered
    assert (folder / EVENTS).read_bytes()[:end] == (folder / EVENTS).read_bytes()
    with opened(folder, Clock(2e6), policy="hosts-in-turns") as crawl:
        assert "unfinished" not in crawl.recovered


@pytest.mark.slow
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


# -- the end of the log -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_commands_refuse_a_log_that_was_moved_or_cut(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    raw = (folder / EVENTS).read_bytes()
    middle = len(raw) // 2
    for bad in (raw[:middle] + b"x" + raw[middle:], raw[:middle] + raw[middle + 1 :], raw[:1000]):
        (folder / EVENTS).write_bytes(bad)
        for command in (("dump", "pages", folder), ("info", folder, "--verify")):
            told = shell(*command, cwd=tmp_path, code=2)
            assert told.count("\n") == 1, told
            if bad == raw[:1000]:
                assert f"events.log ends at byte 1,000; it was synced to byte {len(raw):,}" in told
                assert "`inlink repair" in told
                assert "`inlink backup`" in told
        repaired = inlink("-q", "repair", folder, cwd=tmp_path, code=1)
        assert "1 damaged place" in repaired.stdout


def test_the_end_of_a_closed_crawl_is_exact(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    newest, older = ends_in(folder)
    size = (folder / EVENTS).stat().st_size
    reader = known_pages(folder)
    assert (newest.urls_end, newest.events_end) == ((folder / URLS).stat().st_size, size)
    assert (newest.frames, newest.pages) == (reader.tally.frames, reader.num_pages)
    assert newest.folder == folder.stat().st_ino
    assert older.turn == newest.turn - 1
    reader.close()
    # A cut by whole events is found too.
    for one in stretches(
        (folder / URLS).read_bytes(), (folder / EVENTS).read_bytes(), salt_of(hash_seed_of(folder))
    ):
        os.truncate(copy_of(folder) / EVENTS, one.begin)
        for way in (
            known_pages,
            look,
            verify,
            lambda path: look_up(path, 0),
            lambda path: opened(path, Clock()),
        ):
            with pytest.raises(
                FolderError, match=f"ends at byte {one.begin:,}; it was synced to byte {size:,}"
            ):
                way(tmp_path / "copy")


def copy_of(folder: Path) -> Path:
    shutil.rmtree(folder.parent / "copy", ignore_errors=True)
    return Path(shutil.copytree(folder, folder.parent / "copy"))


def test_any_byte_of_the_end_may_be_damaged(tmp_path: Path):
    """One slot is left: nothing is lost, and a cut log is refused as far as that slot knows."""
    folder = crawl_folder(tmp_path / "c")
    raw = (folder / END).read_bytes()
    for byte in range(len(raw)):
        (folder / END).write_bytes(raw[:byte] + bytes([raw[byte] ^ 1]) + raw[byte + 1 :])
        assert len(ends_in(folder)) == 1
        known_pages(folder).close()
    os.truncate(folder / EVENTS, 1000)
    with pytest.raises(FolderError, match="it was synced to byte"):
        known_pages(folder)


@pytest.mark.parametrize("raw", [None, b"", bytes(120), b"x" * 500])
def test_a_missing_end_is_told_and_made_again(tmp_path: Path, caplog, raw: bytes | None):
    folder = crawl_folder(tmp_path / "c")
    (folder / END).unlink()
    if raw is not None:
        (folder / END).write_bytes(raw)
    verify(folder)
    (told,) = caplog.messages
    assert f"{folder / END} is missing or damaged" in told
    caplog.clear()
    with opened(folder, Clock()) as crawl:
        assert told in caplog.messages
        assert crawl.page("http://a.com/0") is not None
    caplog.clear()
    verify(folder)
    assert not caplog.messages
    assert ends_in(folder)[0].events_end == (folder / EVENTS).stat().st_size


def test_what_the_writer_syncs_meanwhile_is_no_damage(tmp_path: Path):
    """A reader has read the log before the writer synced more, and then reads the end."""
    with opened(tmp_path / "c", Clock(), sync="full") as crawl:
        crawl.seed(["http://a.com/"])
        reader = known_pages(tmp_path / "c")
        urls, events = reader.table.all().copy(), reader.frames.all().copy()
        for number in range(3):
            crawl.seed([f"http://b.com/{number}"])
        reached = last_whole(urls, events, reader.salt)
        refuse_damage(tmp_path / "c", events, reached)
        reader.refresh()
        assert reader.num_pages == 4
        reader.close()


def test_a_killed_crawl_opens_with_its_events(tmp_path: Path):
    """Events after the last sync are not in end.bin, and are there."""
    folder = tmp_path / "c"
    crawl = opened(folder, Clock())
    crawl.seed(["http://a.com/"])
    killed = Path(shutil.copytree(folder, tmp_path / "killed"))
    crawl.close()
    assert all(end.events_end == 0 for end in ends_in(killed))
    with opened(killed, Clock()) as again:
        assert again.page("http://a.com/") is not None


# -- forged frames ----------------------------------------------------------------------------------------------------


def forged(salt: int, place: int, number: int) -> bytes:
    """A sound frame of a log with a salt: one more page is gone."""
    payload = struct_of(layout.FailedRecord).pack(0.0) + b"forged"
    head = Head(
        salt & 0xFFFFFFFF, HEAD_SIZE + len(payload), place, 0, number, 0, 2e6, 0, 1, 0, 0, 0, 0, 0.0,
        layout.IS_GONE, 0, layout.FAILED, zlib.crc32(payload), 0, 0,
    )  # fmt: skip
    checked = layout.CHECKED.pack(*head[:-1])
    return checked + layout.head_check(checked, salt) + payload


def test_no_text_can_hold_an_event(tmp_path: Path):
    """Frames of other crawls in a URL, a text, carried data, an error and a hash, with possible places and numbers."""
    folder = tmp_path / "c"
    salts = [salt_of(0), salt_of(1), layout.OLD_SALT, 0]

    def frame(number: int) -> bytes:
        return b"".join(forged(salt, (folder / EVENTS).stat().st_size + HEAD_SIZE, number) for salt in salts)

    with opened(folder, Clock(), politeness={"delay": 0, "in_flight": 99}) as crawl:
        crawl.seed(["http://a.com/", "http://b.com/", "http://c.com/"])
        first, second, third = crawl.next(3)
        text = frame(1).decode("latin-1")
        crawl.crawled(first, [Link("/1", text=text, data=frame(1))], content_hash=frame(2)[:255])
        crawl.failed(second, text)
        crawl.exclude(third, text)
        crawl.seed([f"HTTP://D.com/?{text}"])
    raw, urls = (folder / EVENTS).read_bytes(), (folder / URLS).read_bytes()
    salt = salt_of(hash_seed_of(folder))
    assert raw.count(b"forged") > 5
    true = [one.begin for one in stretches(urls, raw, salt)]
    for begin in true:
        bad = raw[: begin + 10] + bytes([raw[begin + 10] ^ 1]) + raw[begin + 11 :]
        found = stretches(urls, bad, salt)
        assert [one.begin for one in found if one.head is not None] == [at for at in true if at != begin]
        # Bytes are missing, so that a forged frame could begin anywhere.
        found = stretches(urls, raw[:begin] + raw[begin + HEAD_SIZE + 1 :], salt)
        assert {one.head.number for one in found if one.head is not None} <= set(range(len(true)))
        assert len([one for one in found if one.head is not None]) == len(true) - 1
    # The right salt passes, so it is the salt that protects.
    at = true[4] + 200
    bad = raw[:at] + forged(salt, at, 4) + raw[at:]
    assert at in [one.begin for one in stretches(urls, bad, salt) if one.head is not None]


def test_frames_of_another_crawl_are_damage(tmp_path: Path):
    for name in "ab":
        with opened(tmp_path / name, Clock(), policy="first-come") as crawl:
            crawl.seed(["http://a.com/", "http://b.com/"])
    assert (tmp_path / "a" / EVENTS).stat().st_size == (tmp_path / "b" / EVENTS).stat().st_size
    shutil.copy(tmp_path / "a" / EVENTS, tmp_path / "b" / EVENTS)
    with pytest.raises(FolderError, match="damaged at byte 0"):
        known_pages(tmp_path / "b")


# -- what later versions write --------------------------------------------------------------------------------------


def test_anchors_and_fingerprints_are_passed_over_by_every_reader(tmp_path: Path):
    """A visit as a spider of issue 15 will tell it, between two of today's."""
    folder = tmp_path / "c"
    with opened(folder, Clock(), policy="hits", use_scores=True) as crawl:
        crawl.seed(["http://a.com/"])
        crawl.crawled("http://a.com/", ["/1", "/2"])
        known = stored_pages(crawl).num_pages
    told = visit(
        {0: 0.25, 2: 0.75}, crawls=1, fingerprint=2**63 + 1, content_hash=b"hash", anchors={0: "home", 2: "ü" * 99},
        carried={2: b"a request"},
    )  # fmt: skip
    log = later_log(folder)
    log.append(layout.VISIT, 2e6, 1, status=200, score=0.5, first=known, **told)
    log.close()
    with opened(folder, Clock(3e6), policy="hits", use_scores=True) as crawl:
        pages = stored_pages(crawl)
        assert pages.links(1).tolist() == [0, 2]
        assert inlinks(pages, 2).tolist() == [0, 1]
        assert pages.visit(1).content_hash == b"hash"
        assert pages.carried(2) == b"a request"
        assert float(pages.scores[2]) == 0.75
        assert look_up(folder, 2).score == 0.75
        assert look_up(folder, 1) == pages.page(1)
        assert crawl.crawled("http://a.com/2", ["/"])
        assert crawl.why("http://a.com/1").state == "crawled"
    reader = known_pages(folder)
    assert reader.links(2).tolist() == [0]
    reader.close()


def test_a_head_is_as_long_as_its_fields():
    assert struct_of(Head).size == layout.HEAD.itemsize == HEAD_SIZE == layout.CHECKED.size + 4

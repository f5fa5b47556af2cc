"""``inlink repair``: what is sound is found, and a copy has all of it under the same page numbers."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import inlink
from crawlstrategies import Clock, opened, stored_pages
from goldencrawl import GOLDEN
from inlink.cli import commands
from inlink.crawl.folder import look
from inlink.errors import FolderError, InlinkError, OutputError
from inlink.store import format as layout
from inlink.store.events import Events
from inlink.store.format import HEAD_SIZE, salt_of
from inlink.store.log import END, EVENTS, URLS
from inlink.store.reader import hash_seed_of, known_pages
from inlink.store.repair import LogReport, examine, repair
from inlink.store.verify import verify
from inlink.urls.canonical import canonical
from storefolders import flip, frames, later_log
from wildframes import stretches, wild_heads


def crawl_folder(folder: Path, seed: int = 0) -> Path:
    """A closed crawl with visits, failures, merges, exclusions and revisits."""
    rng = np.random.default_rng(seed)
    with opened(folder, Clock(), policy="hosts-in-turns", use_scores=True) as crawl:
        crawl.seed([f"http://{name}.com/" for name in "abc"])
        for number in range(6):
            for lease in crawl.next(3):
                links = [(f"/{k}", float(rng.random())) for k in rng.integers(0, 12, 4).tolist()]
                if number % 4 == 3:
                    crawl.failed(lease, "no answer")
                elif number % 3 == 2:
                    crawl.crawled(lease, links, redirected_to=f"http://d.com/{number}")
                else:
                    crawl.crawled(lease, links, score=0.5, content_hash=b"x" * number)
        crawl.crawled("http://a.com/", ["/1", "/2"])
        crawl.exclude("http://b.com/", "not wanted")
    return folder


def copy_of(folder: Path, name: str) -> Path:
    target = folder.parent / name
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(folder, target))


def said_of(folder: Path, byte: int, name: str) -> set[int]:
    """The pages that the event at a byte says something of, by the sound log."""
    events, urls = np.fromfile(folder / EVENTS, np.uint8), np.fromfile(folder / URLS, np.uint8)
    found: set[int] = set()
    for one in frames(urls, events, salt_of(hash_seed_of(folder))):
        head = one.head
        assert head is not None
        in_text = head.text_place <= byte < head.text_place + head.text_size
        if not (in_text if name == URLS else one.begin <= byte < one.end):
            continue
        found |= set(range(head.first, head.first + head.new))
        if name == EVENTS:
            found |= {head.page} - {layout.NO_PAGE}
            for event in Events(events[one.begin : one.end]):
                found |= set(event.pages.tolist())
    return found


def assert_alike(original: Path, copy: Path, apart: set[int]) -> None:
    """All pages of both crawls are alike, apart from some, and what is told of those elsewhere."""
    before, after = known_pages(original), known_pages(copy)
    assert after.num_pages == before.num_pages
    for number in set(range(before.num_pages)) - apart:
        old, new = before.page(number), after.page(number)
        maker = before.maker(number)
        for field in old.__dataclass_fields__:
            ancestors, page = {maker}, maker
            while page != layout.NO_PAGE:
                page = before.maker(page)
                ancestors.add(page)
            if field == "linked_from" and maker in apart:
                continue
            if field == "depth" and ancestors & apart:
                continue
            if field == "merged_into" and before.survivor(number) in apart:
                continue
            assert getattr(new, field) == getattr(old, field), (number, field)
        assert np.array_equal(after.links(number), before.links(number))
        assert after.carried(number) == before.carried(number)
        assert after.table.page_of(old.url) == number
    before.close()
    after.close()


def check_repair(folder: Path, byte: int, name: str, bits: int = 4, *, use: bool = True) -> LogReport:
    """Flip a bit of a file, repair, and compare."""
    bad = copy_of(folder, "bad")
    flip(bad / name, byte, bits)
    raw = {file: (bad / file).read_bytes() for file in (URLS, EVENTS)}
    target = folder.parent / "repaired"
    shutil.rmtree(target, ignore_errors=True)
    report = repair(bad, target)
    assert raw == {file: (bad / file).read_bytes() for file in (URLS, EVENTS)}
    sizes = np.fromfile(target / EVENTS, np.uint8), np.fromfile(target / URLS, np.uint8)
    assert all(not one.fault for one in frames(sizes[1], sizes[0], salt_of(hash_seed_of(folder))))
    assert not examine(target).damages
    if report.damages:
        (damage,) = report.damages
        assert damage.file == name
        assert damage.begin <= byte < damage.end
        assert_alike(folder, target, said_of(folder, byte, name))
    if use:
        with inlink.Crawl(
            target, clock=lambda: 2e6, revisit={"schedule": "FixedInterval", "seconds": 60}
        ) as crawl:
            crawl.next(9)
            crawl.seed(["http://new.com/"])
            assert crawl.page("http://new.com/").id == report.pages
        look(target).pages.close()
    return report


@pytest.mark.slow
@pytest.mark.parametrize("name", [EVENTS, URLS])
def test_any_byte_of_the_golden_crawl(tmp_path: Path, name: str):
    folder = Path(shutil.copytree(GOLDEN, tmp_path / "c"))
    (folder / "settings.json").write_text("{}")
    size = (folder / name).stat().st_size
    for number, byte in enumerate(range(0, size, 29 if name == EVENTS else 5)):
        report = check_repair(folder, byte, name, use=number % 9 == 0)
        assert report.damages


@pytest.mark.slow
@given(
    st.integers(0, 3),
    st.integers(0, 10**9),
    st.sampled_from([1, 64]),
    st.sampled_from([EVENTS, EVENTS, URLS]),
)
@settings(max_examples=30)
def test_any_byte_of_a_crawl(tmp_path_factory, seed: int, byte: int, bits: int, name: str):
    place = tmp_path_factory.getbasetemp() / f"repair-{seed}"
    place.mkdir(exist_ok=True)
    folder = place / "c" if (place / "c").exists() else crawl_folder(place / "c", seed)
    check_repair(folder, byte % (folder / name).stat().st_size, name, bits, use=byte % 4 == 0)


def test_many_damages_at_once(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c", 1)
    begins = [begin for begin, _ in stretches((folder / EVENTS).read_bytes())]
    bad = copy_of(folder, "bad")
    apart: set[int] = set()
    for begin in (begins[2], begins[3], begins[4] + 100, begins[9] + 20, begins[-4] + 95):
        flip(bad / EVENTS, begin + 10)
        apart |= said_of(folder, begin + 10, EVENTS)
    flip(bad / URLS, 3)
    apart |= said_of(folder, 3, URLS)
    report = repair(bad, tmp_path / "repaired")
    assert len(report.damages) >= 4
    assert_alike(folder, tmp_path / "repaired", apart)
    assert repair(tmp_path / "repaired", tmp_path / "again").damages == []


MOVES = ("insert", "remove", "cut", "swap")


@settings(max_examples=40)
@given(
    st.integers(0, 3),
    st.sampled_from(MOVES),
    st.integers(0, 10**9),
    st.integers(1, 700),
    st.binary(min_size=1, max_size=200),
)
def test_events_come_back_to_their_places(
    tmp_path_factory, seed: int, move: str, at: int, size: int, new: bytes
):
    """Bytes were inserted, removed, cut off or swapped: all events whose bytes are whole are at their places again."""
    place = tmp_path_factory.getbasetemp() / f"repair-{seed}"
    place.mkdir(exist_ok=True)
    folder = place / "c" if (place / "c").exists() else crawl_folder(place / "c", seed)
    raw = (folder / EVENTS).read_bytes()
    at %= len(raw)
    middle, end = at + size, min(at + 2 * size, len(raw))
    parts = {
        "insert": [raw[:at], new, raw[at:]],
        "remove": [raw[:at], raw[middle:]],
        "cut": [raw[:at]],
        "swap": [raw[:at], raw[middle:end], raw[at:middle], raw[end:]],
    }[move]
    edges = {0, len(raw)} | {"insert": {at}, "remove": {at, middle}, "cut": {at}}.get(move, {at, middle, end})
    missing = range(at, {"remove": middle, "cut": len(raw)}.get(move, at))
    bad, target = copy_of(folder, "bad"), place / "repaired"
    (bad / EVENTS).write_bytes(b"".join(parts))
    shutil.rmtree(target, ignore_errors=True)
    report = repair(bad, target)
    whole = [
        (begin, stop)
        for begin, stop in stretches(raw)
        if not any(begin < edge < stop for edge in edges) and begin not in missing
    ]
    after = (target / EVENTS).read_bytes()
    moved = b"".join(parts) != raw
    assert bool(report.damages) == moved
    if moved:
        assert report.events >= sum(raw[begin + 78] != layout.SYNCED for begin, _ in whole)
    for begin, stop in whole:
        # The number of the frame may be another, and so may the end of a chain of visits.
        kind = raw[begin + 78]
        assert after[begin : begin + 20] == raw[begin : begin + 20]
        # A URL that replaces a lost one has another length.
        assert after[begin + 32 : begin + 56] == raw[begin + 32 : begin + 56]
        assert after[begin + 60 : begin + 80] == raw[begin + 60 : begin + 80]
        assert kind == layout.VISIT or after[begin + HEAD_SIZE : stop] == raw[begin + HEAD_SIZE : stop]
    assert (target / URLS).read_bytes().count(b"\n") == (folder / URLS).read_bytes().count(b"\n")
    reader, original = known_pages(target), known_pages(folder)
    assert reader.num_pages == original.num_pages
    for page in range(original.num_pages):
        assert reader.table.page_of(original.url(page)) in (page, layout.NO_PAGE)
    reader.close()
    original.close()
    with inlink.Crawl(target, clock=lambda: 2e6) as crawl:
        crawl.next(3)
        crawl.seed(["http://new.com/"])
    verify(target)


@pytest.mark.slow
@pytest.mark.parametrize("new", [b"", b"x", b"http://x.com/\n" * 3])
def test_urls_that_were_moved_are_found(tmp_path: Path, new: bytes):
    """The URLs of one event are lost at most: those into which bytes were inserted, or from which they were removed."""
    folder = crawl_folder(tmp_path / "c", 2)
    raw = (folder / URLS).read_bytes()
    heads = [
        one.head
        for one in frames(
            *(np.fromfile(folder / name, np.uint8) for name in (URLS, EVENTS)), salt_of(hash_seed_of(folder))
        )
    ]
    for at in range(0, len(raw), 11):
        bad, target = copy_of(folder, "bad"), tmp_path / "repaired"
        (bad / URLS).write_bytes(raw[:at] + new + raw[at + (not new) :])
        shutil.rmtree(target, ignore_errors=True)
        report = repair(bad, target)
        assert report.damages
        hit = [head.new for head in heads if head.text_place <= at < head.text_place + head.text_size]
        assert report.lost_urls <= hit[0]
        lines = (target / URLS).read_bytes().split(b"\n")
        assert [line for line in lines if b".invalid" not in line] == [
            one for one, line in zip(raw.split(b"\n"), lines, strict=True) if b".invalid" not in line
        ]
        verify(target)


def test_a_cut_log_keeps_its_urls(tmp_path: Path):
    """A copy of a running crawl whose log was copied before its end: the pages wait."""
    folder = crawl_folder(tmp_path / "c")
    reader = known_pages(folder)
    urls = [reader.url(page) for page in range(reader.num_pages)]
    reader.close()
    bad = copy_of(folder, "bad")
    with (bad / EVENTS).open("r+b") as file:
        file.truncate(1000)
    report = repair(bad, tmp_path / "repaired")
    (damage,) = report.damages
    assert (damage.end, report.pages, report.lost_urls) == (1000, len(urls), 0)
    with opened(tmp_path / "repaired", Clock(2e6)) as crawl:
        pages = stored_pages(crawl)
        assert [pages.url(page) for page in range(pages.num_pages)] == urls


def test_a_lost_url_gets_one_of_its_own_and_is_never_fetched(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    bad = copy_of(folder, "bad")
    flip(bad / URLS, 9)
    report = repair(bad, tmp_path / "repaired")
    assert report.lost_urls == 3
    with opened(tmp_path / "repaired", Clock()) as crawl:
        for number in range(3):
            page = stored_pages(crawl).page(number)
            assert page.url.startswith("http://")
            assert page.url.endswith(f".invalid/{number}")
            assert canonical(page.url) == page.url
            assert page.state == "excluded"
            assert crawl.why(page.url).state == "excluded"
        assert not any(".invalid" in lease.url for lease in crawl.next(99))


def test_urls_stay_where_their_checksum_holds(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    for at in (30, layout.HEAD_SIZE + 3):
        bad = copy_of(folder, "bad")
        begin = stretches((folder / EVENTS).read_bytes())[1][0]
        flip(bad / EVENTS, begin + at)
        target = tmp_path / f"repaired-{at}"
        report = repair(bad, target)
        assert report.lost_urls == 0
        assert (target / URLS).read_bytes() == (folder / URLS).read_bytes()


@pytest.mark.slow
def test_wild_events_are_left_out(tmp_path: Path):
    events, urls = (GOLDEN / EVENTS).read_bytes(), (GOLDEN / URLS).read_bytes()
    folder = Path(shutil.copytree(GOLDEN, tmp_path / "c"))
    (folder / "settings.json").write_text("{}")
    for begin, end in stretches(events)[:-1]:
        for told, frame in wild_heads(events[begin:end], urls):
            if told in (
                "page 1000000000",
                "new 1000000000",
                "lease 1000000000",
                "first 7",
                "text_place 7",
                "kind 0",
            ):
                (folder / EVENTS).write_bytes(events[:begin] + frame + events[end:])
                report = repair(folder, tmp_path / "repaired")
                assert [damage.begin for damage in report.damages] == [begin], told
                reader = known_pages(tmp_path / "repaired")
                assert reader.num_pages == 5
                reader.close()
                shutil.rmtree(tmp_path / "repaired")


def test_a_torn_tail_is_no_damage_and_is_left_out(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    log = later_log(folder, synced=False)
    known = examine(folder).pages
    for number in range(3):
        log.append(layout.GIVEN, 2e6, 0, payload=b"%d" % number * 50, first=known)
    log.abandon()
    begin = stretches((folder / EVENTS).read_bytes())[-3][0]
    flip(folder / EVENTS, begin + 95)
    report = examine(folder)
    assert report.damages == []
    assert report.tail == (folder / EVENTS).stat().st_size - begin
    repair(folder, tmp_path / "repaired")
    assert examine(tmp_path / "repaired").tail == 0
    assert_alike(folder, tmp_path / "repaired", set())


def test_a_log_whose_every_head_is_damaged(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    raw = (folder / EVENTS).read_bytes()
    (folder / EVENTS).write_bytes(bytes(byte ^ 1 for byte in raw))
    (damage,) = examine(folder).damages
    assert (damage.begin, damage.end) == (0, len(raw))
    # The URLs are sound, and end.bin says how many there are.
    report = repair(folder, tmp_path / "repaired")
    assert (report.lost_urls, report.pages) == (0, len((folder / URLS).read_bytes().split()))
    assert (tmp_path / "repaired" / URLS).read_bytes() == (folder / URLS).read_bytes()
    # Without that, it is young enough for a torn tail.
    (folder / END).unlink()
    assert examine(folder).damages == []
    assert examine(folder).tail > len(raw)


def test_the_command(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")

    def run(*given: object) -> tuple[int, str]:
        done = CliRunner().invoke(commands, ["-q", "repair", *map(str, given)])
        assert done.exception is None or isinstance(done.exception, SystemExit | InlinkError), done.exception
        return done.exit_code, done.output

    code, said = run(folder)
    assert code == 0
    assert "0 damaged places" in said
    begin, end = stretches((folder / EVENTS).read_bytes())[2]
    flip(folder / EVENTS, begin + 100)
    code, said = run(folder)
    assert code == 1
    assert f"{folder / EVENTS}: bytes {begin:,} to {end - 1:,} ({end - begin:,} bytes of a " in said
    assert "1 damaged place" in said
    code, said = run(folder, "-o", tmp_path / "new")
    assert code == 0
    assert "the same page numbers" in said
    assert run(tmp_path / "new")[0] == 0
    with pytest.raises(OutputError, match="exists"):
        repair(folder, tmp_path / "new")
    with pytest.raises(FolderError):
        repair(tmp_path / "nothing", tmp_path / "newer")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "new"]


def test_nothing_half_written_stays(tmp_path: Path, monkeypatch):
    folder = crawl_folder(tmp_path / "c")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("inlink.store.repair._Writer.finish", full)
    with pytest.raises(OutputError, match="No space left on device"):
        repair(folder, tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["c"]

"""Wild numbers in frames whose checksums are right: the right answer or an error in one line, from every way in."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import inlink
from goldencrawl import GOLDEN
from inlink.cli import commands
from inlink.errors import FolderError, InlinkError
from inlink.store.format import KINDS
from inlink.store.log import EVENTS, URLS
from inlink.store.reader import known_pages
from storefolders import look_up
from wildframes import resealed, stretches, wild_heads, wild_payloads

URL = "http://a.example/"
FRAMES = stretches((GOLDEN / EVENTS).read_bytes())
READING = (
    ("crawl-info",),
    ("next", "--peek"),
    ("why", URL),
    ("find", "."),
    ("links", URL),
    ("page", URL),
    ("path", "http://d.example/"),
    ("dump", "pages"),
)
PARTS = 13
"""`make test` tries each 13th wild form of a frame, beginning at another form for each frame. `make soak` tries all.

Few frames have a record of their own, so each sixth form of a record's fields is tried.
"""


def kind_at(number: int) -> str:
    begin, _ = FRAMES[number]
    return KINDS[(GOLDEN / EVENTS).read_bytes()[begin + 78]]


def one_line(error: BaseException) -> None:
    assert isinstance(error, InlinkError), repr(error)
    assert "\n" not in str(error)


def use(folder: Path, told: str, out: Path) -> None:
    """Look at a crawl in every way, then crawl on."""
    for name, *more in READING:
        first = [name, *more[:1]] if name == "dump" else [name]
        rest = more[1:] if name == "dump" else more
        result = CliRunner().invoke(commands, ["-q", *first, str(folder), *rest])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            one_line(result.exception)
    try:
        inlink.read(folder, into=out)
    except InlinkError as error:
        one_line(error)
    shutil.rmtree(out, ignore_errors=True)
    try:
        with inlink.Crawl(folder, clock=lambda: 1000.0) as crawl:
            session = crawl.desk.hello("spider-2")
            crawl.desk.next(session.number, 9)
            crawl.crawled(URL, ["/new"])
            crawl.why(URL)
    except InlinkError as error:
        one_line(error)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.soak) for part in range(1, PARTS))]
)
@pytest.mark.parametrize("number", range(len(FRAMES)), ids=lambda n: f"{n}-{kind_at(n)}")
def test_wild_numbers_are_refused_or_harmless(tmp_path: Path, number: int, part: int):
    events, urls = (GOLDEN / EVENTS).read_bytes(), (GOLDEN / URLS).read_bytes()
    folder = Path(shutil.copytree(GOLDEN, tmp_path / "c"))
    begin, end = FRAMES[number]
    refused = tried = 0
    seen: set[str] = set()
    wild = [*wild_heads(events[begin:end], urls), *wild_payloads(events[begin:end], urls)]
    records = [form for form in wild if "." in form[0]]
    others = [form for form in wild if "." not in form[0]]
    for told, frame in records[part % 6 :: 6] + others[(part + number) % PARTS :: PARTS]:
        # A shorter frame is the last: the places of those behind would be wrong.
        rest = events[end:] if len(frame) == end - begin else b""
        (folder / EVENTS).write_bytes(events[:begin] + frame + rest)
        for page in (0, 2, 3):
            try:
                look_up(folder, page)
            except InlinkError as error:
                one_line(error)
        try:
            known_pages(folder).close()
        except FolderError as error:
            one_line(error)
            told_of = str(error)
            named = (f"at byte {begin:,}", "does not follow", "it was synced to byte", URLS)
            refused += any(part in told_of for part in named)
            tried += 1
            continue
        # One value of each field that passes: the others differ no more.
        field = told.split()[0]
        if field not in seen or field == "byte":
            seen.add(field)
            if field != "byte" or "255" in told:
                copy = Path(shutil.copytree(folder, tmp_path / "used"))
                use(copy, told, tmp_path / "graph")
                shutil.rmtree(copy)
    assert refused == tried > 2


def test_logs_that_crashed_earlier_versions_are_refused(tmp_path: Path):
    """A page beyond the table was written out of bounds; counts of 10⁹ took all memory."""
    events, urls = (GOLDEN / EVENTS).read_bytes(), (GOLDEN / URLS).read_bytes()
    folder = Path(shutil.copytree(GOLDEN, tmp_path / "c"))
    found = 0
    for number, (begin, end) in enumerate(FRAMES):
        for told, frame in wild_heads(events[begin:end], urls):
            if told in ("page 1000000000", "listed 1000000000", "new 1000000000", "lease 1000000000"):
                if told.startswith("listed") and kind_at(number) not in ("visit", "seed", "lease", "lost"):
                    continue
                (folder / EVENTS).write_bytes(events[:begin] + frame + events[end:])
                with pytest.raises(FolderError, match=f"damaged at byte {begin:,} .*impossible values"):
                    known_pages(folder)
                found += 1
    assert found > 80


def test_a_text_that_is_not_its_lines_is_refused(tmp_path: Path):
    """The checksum of the URLs holds, and there are more lines, or fewer, or no ASCII."""
    events, urls = (GOLDEN / EVENTS).read_bytes(), (GOLDEN / URLS).read_bytes()
    folder = Path(shutil.copytree(GOLDEN, tmp_path / "c"))
    for at, value in ((5, 10), (17, 65), (8, 0xE9)):
        bad = bytearray(urls)
        bad[at] = value
        begin, end = FRAMES[1]
        (folder / URLS).write_bytes(bad)
        (folder / EVENTS).write_bytes(events[:begin] + resealed(events[begin:end], bytes(bad)) + events[end:])
        with pytest.raises(FolderError, match="impossible values"):
            known_pages(folder)
        with pytest.raises(FolderError):
            look_up(folder, 0)


def test_a_place_behind_the_log_is_no_frame(tmp_path: Path):
    pages = known_pages(GOLDEN)
    for place in (1, 2**20, 2**40, len(np.fromfile(GOLDEN / EVENTS, np.uint8)) - 3):
        with pytest.raises(FolderError, match="damaged"):
            pages.frames.frame(place)

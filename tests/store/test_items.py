"""Items of pages: they count only with their visit, and are exported in the order of the log."""

import json
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink.cli import commands
from inlink.crawl.intake import MOST_ITEMS, check_items
from inlink.errors import FolderError, ParameterError
from inlink.protocol import Crawled
from inlink.sources.dumping import item_lines
from inlink.store import frames
from inlink.store.events import Event, Events
from inlink.store.format import HAS_ITEMS
from inlink.store.log import EVENTS
from inlink.store.reader import known_pages
from inlink.store.repair import repair
from served import served

HOME, A, B = "https://e.org/", "https://e.org/a", "https://e.org/b"


def lines(*items: object) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


def opened(folder: Path) -> inlink.Crawl:
    return inlink.Crawl(folder, politeness={"delay": 0})


def filled(folder: Path) -> inlink.Crawl:
    """The home page has two items, /a one at its first and one at its second visit, /b none."""
    crawl = opened(folder)
    crawl.seed([HOME])
    crawl.crawled(crawl.next(1)[0], ["/a", "/b"], items=lines({"n": 1}, {"n": 2}))
    crawl.crawled(A, ["/c"], items=lines({"n": 3}))
    crawl.crawled(B, ["/d"])
    crawl.crawled(A, [], items=lines({"n": 4}))
    return crawl


def exported(folder: Path, *, latest: bool = False) -> bytes:
    pages = known_pages(folder)
    try:
        return b"".join(block for block, _ in item_lines(pages, latest=latest))
    finally:
        pages.close()


def events(folder: Path) -> list[Event]:
    return list(Events(np.fromfile(folder / EVENTS, np.uint8)))


def dump(*arguments: object) -> Result:
    return CliRunner().invoke(commands, ["-q", "dump", "items", *map(str, arguments)])


ALL, LATEST = lines({"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}), lines({"n": 1}, {"n": 2}, {"n": 4})


@pytest.mark.parametrize("part", [1, 300, 1 << 24])
def test_the_export_has_all_items_in_the_order_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    """Also while the crawl is open, after it was opened again, and if the log is read in small parts."""
    monkeypatch.setattr(frames, "_PART", part)
    with filled(tmp_path / "c"):
        assert exported(tmp_path / "c") == ALL
    with opened(tmp_path / "c") as crawl:
        crawl.crawled(B, [], items=lines({"n": 5}))
    assert exported(tmp_path / "c") == ALL + lines({"n": 5})
    assert exported(tmp_path / "c", latest=True) == LATEST + lines({"n": 5})


def test_the_command_writes_the_same_bytes_twice(tmp_path: Path) -> None:
    filled(tmp_path / "c").close()
    assert dump(tmp_path / "c").stdout_bytes == ALL
    for name in ("1.jsonl", "2.jsonl"):
        assert dump(tmp_path / "c", "-o", tmp_path / name).exit_code == 0
        assert (tmp_path / name).read_bytes() == ALL
    assert dump(tmp_path / "c", "--latest").stdout_bytes == LATEST
    assert json.loads(dump(tmp_path / "c", "--latest", "--json").stdout) == [{"n": 1}, {"n": 2}, {"n": 4}]


@pytest.mark.parametrize("option", ["--aduana", "--facts", "--raw", "--anchors", "--safe-cells"])
def test_options_of_other_dumps_are_refused(tmp_path: Path, option: str) -> None:
    filled(tmp_path / "c").close()
    assert dump(tmp_path / "c", option).exit_code == 2
    assert CliRunner().invoke(commands, ["dump", "pages", str(tmp_path / "c"), "--latest"]).exit_code == 2


def test_items_without_their_visit_do_not_count(tmp_path: Path) -> None:
    """As if the process died between the two events, or while it wrote either of them."""
    with filled(tmp_path / "c"):
        pass
    whole = events(tmp_path / "c")
    size = (tmp_path / "c" / EVENTS).stat().st_size
    last = next(event.place for event in reversed(whole) if event.kind == "items")
    visit = next(event.place for event in reversed(whole) if event.kind == "visit")
    assert last < visit < size
    for cut in (last, last + 10, visit, visit + 10):
        folder = tmp_path / f"cut-{cut}"
        shutil.copytree(tmp_path / "c", folder)
        with (folder / EVENTS).open("r+b") as file:
            file.truncate(cut)
        (folder / "end.bin").unlink()
        shutil.rmtree(folder / "index", ignore_errors=True)
        shutil.rmtree(folder / "checkpoint", ignore_errors=True)
        with opened(folder) as crawl:
            assert exported(folder) == lines({"n": 1}, {"n": 2}, {"n": 3})
            # The page is fetched again, with other items or with none.
            crawl.crawled(A, [], items=lines({"n": 6}))
            crawl.crawled(B, [])
        assert exported(folder) == lines({"n": 1}, {"n": 2}, {"n": 3}, {"n": 6})


def test_an_answer_that_does_not_count_keeps_no_items(tmp_path: Path) -> None:
    with opened(tmp_path / "c") as crawl:
        crawl.seed([HOME])
        lease = crawl.next(1)[0]
        assert crawl.crawled(lease, [], items=lines({"n": 1}))
        assert not crawl.crawled(lease, [], items=lines({"n": 2}))
    assert exported(tmp_path / "c") == lines({"n": 1})


def test_items_of_a_redirect_belong_to_its_target(tmp_path: Path) -> None:
    with opened(tmp_path / "c") as crawl:
        crawl.seed([HOME])
        crawl.crawled(crawl.next(1)[0], ["/b"], redirected_to=A, items=lines({"n": 1}))
        # A later redirect merges the page, so --latest leaves out the items of its earlier visit.
        crawl.crawled(A, [], redirected_to=B, items=lines({"n": 2}))
    assert exported(tmp_path / "c") == lines({"n": 1}, {"n": 2})
    assert exported(tmp_path / "c", latest=True) == lines({"n": 2})


def test_a_visit_without_items_has_no_further_event(tmp_path: Path) -> None:
    with filled(tmp_path / "c"):
        pass
    found = [event for event in events(tmp_path / "c") if event.kind in ("items", "visit")]
    assert [event.kind for event in found] == ["items", "visit", "items", "visit", "visit", "items", "visit"]
    visits = [bool(event.flags & HAS_ITEMS) for event in found if event.kind == "visit"]
    assert visits == [True, True, False, True]


def test_crawls_of_earlier_versions_have_no_items(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[1] / "golden" / "crawl-3", tmp_path / "c")
    assert exported(tmp_path / "c") == b""
    assert dump(tmp_path / "c").exit_code == 0


def test_damaged_items_are_reported_and_a_repair_leaves_them_out(tmp_path: Path) -> None:
    filled(tmp_path / "c").close()
    place = next(event.place for event in events(tmp_path / "c") if event.kind == "items")
    raw = bytearray((tmp_path / "c" / EVENTS).read_bytes())
    raw[raw.index(b'{"n": 2}', place)] ^= 1
    (tmp_path / "c" / EVENTS).write_bytes(raw)
    with pytest.raises(FolderError, match="damaged"):
        exported(tmp_path / "c")
    assert len(repair(tmp_path / "c", tmp_path / "d").damages) == 1
    assert exported(tmp_path / "d") == lines({"n": 3}, {"n": 4})
    with opened(tmp_path / "d") as crawl:
        page = crawl.page(HOME)
        assert page is not None
        assert page.state == "crawled"


def test_a_visit_whose_items_are_missing_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "c").close()
    # A program that takes the flag for another one, or that dropped the event.
    monkeypatch.setattr(frames, "ITEMS", 63)
    with pytest.raises(FolderError, match="damaged at byte"):
        exported(tmp_path / "c")


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"n": 1}], "must be JSON lines as bytes"),
        ('{"n": 1}\n', "must be JSON lines as bytes"),
        (None, "must be JSON lines as bytes"),
        (b'{"n": 1}', "must end with a newline"),
        (b"[1]\n", "line 1: not a JSON object"),
        (b'{"n": 1}\n\n', "line 2: not a JSON object"),
        (b'{"n":\n1}\n', "line 1: not a JSON object"),
        (b'{"n": 1}\n{"n": NaN}\n', "line 2: not a JSON object"),
        (b'{"n": "\xff"}\n', "line 1: not a JSON object"),
        (b'{"n": 1}{"n": 2}\n', "line 1: not a JSON object"),
        (b'{"n": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "line 1: not a JSON object"),
        (b'{"n": "' + b"x" * MOST_ITEMS + b'"}\n', "at most 1,048,576"),
    ],
)
def test_bad_items_are_refused_and_change_nothing(tmp_path: Path, items: object, message: str) -> None:
    with opened(tmp_path / "c") as crawl:
        crawl.seed([HOME])
        with pytest.raises(ParameterError, match=message):
            crawl.crawled(HOME, [], items=items)  # type: ignore[arg-type]
        page = crawl.page(HOME)
        assert page is not None
        assert page.state == "discovered"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(), json_values, max_size=3), max_size=4))
def test_all_json_objects_are_accepted(items: list[dict[str, object]]) -> None:
    raw = lines(*items)
    try:
        for item in items:
            json.dumps(item, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # A lone surrogate is no text in UTF-8.
        return
    check_items(raw)
    answer = Crawled(1, items=raw)
    assert msgspec.json.decode(msgspec.json.encode(answer), type=Crawled) == answer


def test_items_go_through_a_server(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with served(folder) as server, inlink.connect(f"{server.url}/v1/crawls/c", owner="one") as crawl:
        crawl.seed([HOME])
        (task,) = crawl.next(1).tasks
        assert crawl.report([Crawled(task.lease, ["/a"], items=lines({"n": 1}))])[0].counted
        # The last answer does not count.
        assert not crawl.report([Crawled(task.lease, [], items=lines({"n": 2}))])[0].counted
        (task,) = crawl.next(1, wait=5).tasks
        largest = b'{"n": "' + b"x" * (MOST_ITEMS - 10) + b'"}\n'
        links = [f"/{k:01000}" for k in range(9000)]
        assert crawl.report([Crawled(task.lease, links, items=largest)])[0].counted
    assert exported(folder) == lines({"n": 1}) + largest

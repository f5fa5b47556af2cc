"""How many functions Python calls for a visit, for a request, and for a record of an archive.

Unlike a time, this number does not depend on the machine. Functions of Python and of C count, and kernels too. A change
of a figure must be meant: ``PYTHONPATH=tests python tests/house/test_calls.py`` writes the figures of this Python into
`calls.json`.
"""

import gzip
import io
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import inlink
from archives import anchors, wat_json, wat_record
from inlink.archives.batches import archive_batches
from inlink.base import machinecode
from inlink.protocol import Link, PageFacts

FILE = Path(__file__).with_name("calls.json")
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
LINKS = 35
WARM, MEASURED = 50, 60
# Numbers of records in two archives. The difference of their calls leaves out the cost of opening an archive.
RECORDS = 500, 1500

Links = Callable[[int], list[Any]]


def absolute(turn: int) -> list[Any]:
    return [f"https://h{(7 * turn + k) % 50}.org/p/{37 * turn * k % 5000}/x{k}" for k in range(LINKS)]


VISITS: dict[str, tuple[Links, PageFacts | None]] = {
    "absolute links": (absolute, None),
    "repeated links": (lambda _: absolute(1), None),
    "one relative link": (lambda turn: [*absolute(turn)[1:], f"/rel/{turn}"], None),
    "root-relative links": (lambda turn: [f"/{url.split('/', 3)[3]}" for url in absolute(turn)], None),
    "links with scores": (lambda turn: [(url, 0.5) for url in absolute(turn)], None),
    "links with texts and places": (
        lambda turn: [Link(url, text=f"text {turn}", place="main") for url in absolute(turn)],
        None,
    ),
    "links with data": (lambda turn: [Link(url, data=b"data") for url in absolute(turn)], None),
    "one link for the parser": (lambda turn: [*absolute(turn)[1:], f"http://bücher.example/{turn}"], None),
    "absolute links and facts": (absolute, PageFacts(title="Title", heading="Heading", headings=2, size=99)),
}


def calls_of(work: Callable[[], object]) -> int:
    """The number of functions of Python and of C that a call leads to."""
    count = 0

    def look(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    # The call of `work`, and that of `setprofile`.
    return count - 2


def usual(counts: list[int]) -> int:
    """The most frequent number: now and then a table grows, or a second has passed."""
    return Counter(counts).most_common(1)[0][0]


def visit_calls(folder: Path, links: Links, facts: PageFacts | None) -> dict[str, int]:
    """The calls of `next` and of `crawled` for a page."""
    nexts, visits, now = [], [], [1e9]
    with inlink.Crawl(folder, clock=lambda: now[0], politeness={"delay": 0}, rerank_share=None) as crawl:
        crawl.seed([f"https://h{k}.org/" for k in range(WARM + MEASURED)])
        for turn in range(WARM + MEASURED):
            now[0] += 1
            out, leases = links(turn), list[Any]()
            nexts.append(calls_of(lambda leases=leases: leases.extend(crawl.next(1))) - 1)
            (lease,) = leases
            visits.append(calls_of(lambda lease=lease, out=out: crawl.crawled(lease, out, facts=facts)))
    return {"next": usual(nexts[WARM:]), "crawled": usual(visits[WARM:])}


def record_calls(level: str) -> int:
    """The calls for a WAT record with 35 links, in a gzip member of its own, as in Common Crawl's files."""
    pages = [
        # Not compressed, so that the number of blocks of the file does not depend on zlib.
        gzip.compress(
            wat_record(wat_json(f"http://www.site{turn % 7}.com/{turn}", anchors(*absolute(turn)))), 0
        )
        for turn in range(RECORDS[1])
    ]
    counts = []
    for number in RECORDS:
        stream = io.BytesIO(b"".join(pages[:number]))
        counts.append(
            calls_of(lambda stream=stream: list(archive_batches(stream, name="a.wat", level=level)))
        )
    return round((counts[1] - counts[0]) / (RECORDS[1] - RECORDS[0]))


def figures() -> dict[str, int]:
    counted: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (links, facts) in VISITS.items():
            counts = visit_calls(Path(folder) / name.replace(" ", ""), links, facts)
            counted[f"crawled: {name}"] = counts["crawled"]
            counted["next(1)"] = counts["next"]
    for level in ("host", "page"):
        record_calls(level)
        counted[f"WAT record: {level}"] = record_calls(level)
    return counted


@pytest.mark.skipif(bool(machinecode.missing), reason="Numba compiles kernels here: make machinecode")
def test_no_figure_has_changed():
    noted = json.loads(FILE.read_text())
    if VERSION not in noted:
        pytest.skip(
            f"{FILE.name} has no figures of Python {VERSION}: "
            "PYTHONPATH=tests python tests/house/test_calls.py adds them"
        )
    assert figures() == noted[VERSION]


def test_at_most_seventy_calls_for_a_page_of_35_links():
    kinds = ("absolute links", "root-relative links", "links with scores", "links with texts and places")
    for counts in json.loads(FILE.read_text()).values():
        assert all(counts[f"crawled: {kind}"] <= 70 for kind in kinds)


if __name__ == "__main__":
    there = json.loads(FILE.read_text()) if FILE.exists() else {}
    FILE.write_text(json.dumps(there | {VERSION: figures()}, indent=1) + "\n")

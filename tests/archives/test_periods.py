"""Archives are read by the dates of their records, all at once or only at the places that an index names."""

import json
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inlink
from archives import arc_record, arc_start, http, record, response, wat_json, wat_record, write
from foldercommands import run
from inlink.archives.period import moment
from inlink.archives.records import records
from inlink.base.damage import Tally
from inlink.errors import DamageError, FormatError, InputError, ParameterError

FORMS = ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%d", "%Y-%m", "%Y"]


def page(k: int) -> str:
    return f"http://p{k}.example/"


def stamped(k: int, date: str) -> bytes:
    return record("response", http(b"<a href=x>x</a>"), url=page(k), date=date)


def index(folder: Path, name: str = "a.warc.gz") -> Path:
    """Return an index of an archive, without inlink's code for indexes."""
    lines = []
    with (folder / name).open("rb") as file:
        for one in records(file, Tally(), name=name):
            digits = "".join(c for c in one.date.decode() if c.isdigit())[:14]
            digits += "00000101000000"[len(digits) :]
            place = {"offset": str(one.offset), "filename": name}
            lines.append(f"k {digits} {json.dumps(place)}\n")
    path = folder / "a.cdxj"
    path.write_text("".join(sorted(lines)))
    return path


MOMENTS = st.datetimes(datetime(1998, 1, 1), datetime(2001, 1, 1))
DATES = st.tuples(MOMENTS, st.sampled_from(FORMS)).map(lambda pair: pair[0].strftime(pair[1]))


def begin(date: str) -> str:
    """Return the beginning of a date as text that sorts by time, without inlink's code for dates."""
    date = date.removesuffix("Z")
    date += "0000-01-01T00:00:00.000000"[len(date) :]
    return date.replace("T00:00:00000", "T00:00:00.000")


@settings(max_examples=80, deadline=None)
@given(
    st.lists(DATES, min_size=1, max_size=8),
    st.none() | DATES,
    st.none() | DATES,
    st.sampled_from(["warc", "records", "arc", "wat", "cdxj", "wacz"]),
)
def test_the_pages_of_a_period_are_those_of_a_filter(tmp_path_factory, dates, since, until, form):
    folder = tmp_path_factory.mktemp("p")
    path = folder / "a"
    if form == "arc":
        whole = [moment(date).strftime("%Y%m%d%H%M%S") for date in dates]
        dates = [f"{moment(digits):%Y-%m-%dT%H:%M:%SZ}" for digits in whole]
        made = [
            arc_record(page(k), http(b"<a href=x>x</a>")).replace(b"20080430204825", digits.encode())
            for k, digits in enumerate(whole)
        ]
        write(path, [arc_start(), *made])
    elif form == "wat":
        write(
            path,
            [
                wat_record(wat_json(page(k), [{"path": "A@/href", "url": "x"}]), date=d)
                for k, d in enumerate(dates)
            ],
            packed="records",
        )
    else:
        warc = [stamped(k, date) for k, date in enumerate(dates)]
        write(folder / "a.warc.gz", warc, packed="" if form == "warc" else "records")
        path = index(folder) if form == "cdxj" else folder / "a.warc.gz"
        if form == "wacz":
            path = folder / "a.wacz"
            with zipfile.ZipFile(path, "w") as archive:
                archive.write(folder / "a.warc.gz", "archive/a.warc.gz")
    if since is not None and until is not None and begin(since) >= begin(until):
        with pytest.raises(ParameterError, match="must be before `until`"):
            inlink.read(path, since=since, until=until)
        return
    wanted = {
        (page(k), f"{page(k)}x")
        for k, date in enumerate(dates)
        if (since is None or begin(since) <= begin(date)) and (until is None or begin(date) < begin(until))
    }
    graph = inlink.read(path, since=since, until=until, strict=True)
    assert set(graph.edges) == wanted


def test_the_beginning_of_a_date():
    for text in (
        "2026",
        "2026-01",
        "2026-01-01",
        "2026-01-01T00:00",
        "20260101000000",
        "2026-01-01T01:00+01:00",
    ):
        assert moment(text) == datetime(2026, 1, 1, tzinfo=UTC)
    assert moment(b"2026-01-01T00:00:00.25Z") - moment("2026") == timedelta(milliseconds=250)


@given(st.text(max_size=12) | st.text("0123456789-T:Z+.W", max_size=26))
def test_any_text_is_a_date_or_a_value_error(text):
    try:
        assert moment(text).tzinfo is UTC
    except ValueError:
        pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--from", "2026-13"),
            "`since` (--from) must be a date such as 2026, 2026-01, 2026-01-31 or 2026-01-31T12:00:0",
        ),
        (("--to", "soon"), "`until` (--to) must be a date such as"),
        (
            ("--from", "2026-02", "--to", "2026-02-01"),
            "`since` (--from) must be before `until` (--to); got '2026-02'",
        ),
    ],
)
def test_a_wrong_date_is_refused_before_anything_is_read(tmp_path, options, said):
    with pytest.raises(ParameterError) as refused:
        run("build", tmp_path / "none.warc", "-o", tmp_path / "g", *options)
    assert said in str(refused.value)
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "x.tsv", [b"a\tb\n"])
    with pytest.raises(ParameterError, match=r"format edgelist has no option `since` \(--from\)"):
        inlink.read(tmp_path / "x.tsv", since="2026")


def test_records_without_a_date_are_counted(tmp_path):
    path = write(tmp_path / "a.warc", [stamped(0, "2026-01-01"), stamped(1, "yesterday"), stamped(2, "")])
    assert inlink.read(path).num_arcs == 3
    graph = inlink.read(path, until="2030")
    assert graph.num_arcs == 1
    [(text, count)] = graph.meta["skipped"].items()
    assert (text.startswith("record without a valid date, first in "), count) == (True, 2)


def test_only_the_places_of_the_period_are_read(tmp_path):
    """All other records are overwritten after they were indexed; a revisit reads the record that it refers to."""
    digest = b"WARC-Payload-Digest: sha1:ABC\r\n"
    old = stamped(0, "2025-12-31").replace(b"\r\n", b"\r\n" + digest, 1)
    again = record("revisit", b"", url=page(1), date="2026-01-02").replace(b"\r\n", b"\r\n" + digest, 1)
    made = [
        old,
        stamped(2, "2025-12-31"),
        stamped(3, "2026-01-31T23:59:59.5Z"),
        again,
        stamped(4, "2026-02-01"),
    ]
    path = write(tmp_path / "a.warc.gz", made, packed="records")
    with path.open("rb") as file:
        offsets = [one.offset for one in records(file, Tally())]
    written = index(tmp_path)
    lines = written.read_text().replace(
        f'{{"offset": "{offsets[0]}"', f'{{"digest": "ABC", "offset": "{offsets[0]}"'
    )
    written.write_text(
        lines.replace(f'{{"offset": "{offsets[3]}"', f'{{"mime": "warc/revisit", "offset": "{offsets[3]}"')
    )
    data = bytearray(path.read_bytes())
    data[offsets[1] : offsets[2]] = bytes(offsets[2] - offsets[1])
    data[offsets[4] :] = bytes(len(data) - offsets[4])
    path.write_bytes(data)
    (tmp_path / "sub").mkdir()
    path.rename(tmp_path / "sub" / "a.warc.gz")
    written.write_text(written.read_text().replace("a.warc.gz", "sub/a.warc.gz"))
    said = run("build", written, "-o", tmp_path / "g", "--from", "2026-01", "--to", "2026-02", "--strict")
    assert "4 nodes, 2 arcs" in said
    assert set(inlink.Graph.open(tmp_path / "g").edges) == {
        (page(3), f"{page(3)}x"),
        (page(1), f"{page(1)}x"),
    }
    # The whole index names places without records.
    graph = inlink.read(written)
    assert (graph.num_arcs, sum(graph.meta["skipped"].values())) == (3, 2)
    with pytest.raises(DamageError, match=r"sub/a\.warc\.gz: place without a whole record, at byte"):
        inlink.read(written, strict=True)


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        (
            "/etc/a.warc.gz",
            FormatError,
            "line 2: the archive '/etc/a.warc.gz' is not in the folder of the index",
        ),
        ("../a.warc.gz", FormatError, "line 2: the archive '../a.warc.gz' is not in the folder"),
        ("b/../../a.warc.gz", FormatError, "is not in the folder"),
        ("", FormatError, "line 2: the archive '' is not in the folder"),
        ("none.warc.gz", InputError, "'none.warc.gz', which is no file: put the archive there"),
        ("-", InputError, "'-', which is no file"),
        ("sub", InputError, "'sub', which is no file"),
        ("n" * 9000, InputError, "nnn', which is no file"),
        ("https://a.example/a.warc.gz", InputError, "which is no file"),
    ],
)
def test_an_index_does_not_lead_out_of_its_folder(tmp_path, monkeypatch, name, error, said):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    write(tmp_path / "a.warc.gz", [stamped(0, "2026")], packed="records")
    path = tmp_path / "in" / "a.cdxj"
    place = json.dumps({"offset": 0, "filename": name})
    path.write_text(f'k 20260101000000 {{"offset": 0, "filename": "b.warc"}}\nk 20260101000000 {place}\n')
    write(tmp_path / "in" / "b.warc", [stamped(0, "2026")])
    monkeypatch.chdir(path.parent)
    with pytest.raises(error) as refused:
        inlink.read(path.name)
    assert said in str(refused.value)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 250), st.binary(max_size=6), st.integers(0, 9))
def test_any_damage_of_an_index_is_one_line(tmp_path_factory, at, fresh, cut):
    folder = tmp_path_factory.mktemp("i")
    write(folder / "a.warc.gz", [stamped(k, "2026") for k in range(3)], packed="records")
    path = index(folder)
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + fresh + whole[at + cut :])
    said = ""
    try:
        assert inlink.read(path, format="cdxj").num_arcs <= 3
    except InputError as error:
        said = str(error)
    assert "\n" not in said


def test_bad_lines_of_an_index_are_damage(tmp_path):
    write(tmp_path / "a.warc.gz", [stamped(0, "2026")], packed="records")
    path = index(tmp_path)
    path.write_text(path.read_text() + "no line\n" * 2)
    graph = inlink.read(path)
    assert (graph.num_arcs, list(graph.meta["skipped"].values())) == (1, [2])
    with pytest.raises(DamageError, match=r"a\.cdxj: line that is not CDXJ, at byte"):
        inlink.read(path, strict=True)
    path.write_text("no line\n")
    with pytest.raises(DamageError, match="no record can be read"):
        inlink.read(path, format="cdxj")


@pytest.mark.slow
def test_an_index_and_an_archive_become_one_graph(tmp_path):
    write(tmp_path / "a.warc.gz", [stamped(k, f"2026-0{k + 1}") for k in range(3)], packed="records")
    other = write(tmp_path / "b.warc", [stamped(7, "2026-02"), response(page(8), "x")])
    graph = inlink.read([index(tmp_path), other], since="2026-02", workers=2)
    assert set(graph.edges) == {(page(k), f"{page(k)}x") for k in (1, 2, 7)}

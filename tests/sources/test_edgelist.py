"""Edge lists against a slow twin, and against what is wrong with them."""

import csv
import gzip
import io
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from inlink.base import opening
from inlink.cli import commands
from inlink.errors import DamageError, InputError, ParameterError
from inlink.sources.edgelist import edge_list


def arcs(source):
    """Every arc as (source, target, weight), in order; names as bytes."""
    found = []
    for batch in source.batches:
        names = None if batch.names is None else batch.names.to_pylist()
        weights = [None] * len(batch.sources) if batch.weights is None else batch.weights.tolist()
        for s, t, w in zip(batch.sources.tolist(), batch.targets.tolist(), weights, strict=True):
            found.append((s, t, w) if names is None else (names[s], names[t], w))
    return found


def read(tmp_path, raw, name="links.tsv", at=Path, **options):
    path = tmp_path / name
    path.write_bytes(raw)
    return arcs(edge_list(at(path), **options))


@pytest.mark.parametrize(
    ("raw", "name", "wanted"),
    [
        (b"a\tb\nb\tc\n", "l.tsv", [(b"a", b"b"), (b"b", b"c")]),
        (b"a\tb\r\nb\tc\r\n", "l.tsv", [(b"a", b"b"), (b"b", b"c")]),
        (b"a\tb\nb\tc", "l.tsv", [(b"a", b"b"), (b"b", b"c")]),
        (b"\xef\xbb\xbfa,b\nb,c\n", "l.csv", [(b"a", b"b"), (b"b", b"c")]),
        (b"# a comment\n#another\n\n0 1\n\n1  2 \n # no\n", "l.txt", [(0, 1), (1, 2)]),
        (b"# Directed graph\n# FromNodeId\tToNodeId\n0\t1\n# between\n1\t2\n", "l.txt", [(0, 1), (1, 2)]),
        (b"% asym unweighted\n% 3 3 3\n1 2\n2 3\n", "out.konect", [(1, 2), (2, 3)]),
        (b"%%no\n%C3%81\tb\n%41\t% c\n", "l.tsv", [(b"%C3%81", b"b"), (b"%41", b"% c")]),
        (b"a\tb\n% c\td\n", "l.tsv", [(b"a", b"b"), (b"% c", b"d")]),
        (b"Source,Target\n1,2\n", "l.csv", [(1, 2)]),
        (b"from\tto\nx\ty\n", "l.tsv", [(b"x", b"y")]),
        (b"Id;To Node;From_Node\n9;a;b\n8;c;d\n", "l.csv", [(b"b", b"a"), (b"d", b"c")]),
        (b"1,2\n3,4\n", "l.txt", [(1, 2), (3, 4)]),
        (b"New York,Los Angeles\nRome,Oslo\n", "l.txt", [(b"New York", b"Los Angeles"), (b"Rome", b"Oslo")]),
        (b'"1",2\n', "l.csv", [(b"1", b"2")]),
        (
            b'"a ""b"", c","d\ne"\nf,\n"","\t"\r\n',
            "l.csv",
            [(b'a "b", c', b"d\ne"), (b"f", b""), (b"", b"\t")],
        ),
        (b'a "q"\tb\n', "l.tsv", [(b'a "q"', b"b")]),
        (b"\xff\xfea\0\tb\x01\n" * 2, "no", None),
        (b"a\0\xff\tb\x01\n", "l.tsv", [(b"a\0\xff", b"b\x01")]),
        (b"# inlink: names\n1\t2\n", "l.tsv", [(b"1", b"2")]),
        (b"00\t1\n", "l.tsv", [(0, 1)]),
        (b"a\tb\tc\td\n", "l.tsv", [(b"a", b"b")]),
        (b"", "l.tsv", None),
    ],
)
def test_forms(tmp_path, raw, name, wanted):
    if wanted is None:
        with pytest.raises(InputError):
            read(tmp_path, raw, name)
    else:
        assert read(tmp_path, raw, name) == [(*arc, None) for arc in wanted]


@pytest.mark.parametrize(
    ("raw", "options", "wanted"),
    [
        (b"a b 0.5\nb c 2\n", {}, [(b"a", b"b", 0.5), (b"b", b"c", 2.0)]),
        (b"0 1 1e-3 77\n1 0 123456789.123456789 78\n", {}, [(0, 1, 1e-3), (1, 0, 123456789.123456789)]),
        (b"0 1 0.5\n", {"weights": False}, [(0, 1, None)]),
        (b"Source,Weight,Target\n0,3,1\n", {"separator": "comma"}, [(0, 1, 3.0)]),
        (b'a;b;"0.25"\n', {"separator": ";"}, [(b"a", b"b", 0.25)]),
        (b"a\tb\tx\n", {}, [(b"a", b"b", None)]),
        (b"# inlink: names\n%\t\t0.5\n", {}, [(b"%", b"", 0.5)]),
        (b"12 13\n", {"nodes": "names"}, [(b"12", b"13", None)]),
        (b"% c\n12 13\n", {"nodes": "ids"}, [(12, 13, None)]),
        (b"a|b\n", {"separator": "|"}, [(b"a", b"b", None)]),
    ],
)
def test_weights_and_options(tmp_path, raw, options, wanted):
    assert read(tmp_path, raw, "links.txt", **options) == wanted


LINES = b"home\tnews\nnews\tabout\nabout\tstory\n"


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        (b"from_page\tto_page\n", b"1\t2\n2\t3\n"),
        (b"x\ty\n", b"1\t2\n2\t3\n"),
        (b"x\ty\tz\n", b"a\tb\t0.5\nc\td\t2\n"),
        (b"pages\tlinks\n", b"http://a.org/\thttp://b.org/\nhttp://c.org/\thttp://d.org/\n"),
        (b"x\ty\n", b"a.org\tb.org\nc.org\td.org\n"),
        (b"Linking Page\tlinked-page2\n", LINES),
        (b"sourceURL\tTargetURL\n", LINES),
    ],
)
def test_a_header_of_other_words_is_told_and_can_be_declared(tmp_path, first, rest):
    with pytest.warns(
        UserWarning, match=r"links\.tsv: the first line \(.*looks like names of columns.*--header"
    ):
        told = read(tmp_path, first + rest)
    kept, left_out = (read(tmp_path, first + rest, header=header) for header in (False, True))
    assert told == kept
    assert len(kept) == len(left_out) + 1
    assert left_out == read(tmp_path, rest)


@pytest.mark.parametrize(
    "raw",
    [
        LINES,
        b"a\tb\nc\td\ne\tf\n",
        b"x\t1\n2\t3\n4\t5\n",
        b"localhost\ta.org\nb.org\tc.org\nd.org\te.org\n",
        b"page\tlink\nlink\thost\nhost\tpage\n",
        b"A\tB\t1\nC\tD\t2\nE\tF\t3\n",
        b"x\ty\n1\t2\n",
        b"# FromNodeId\tToNodeId\n0\t1\n1\t2\n",
    ],
)
def test_lists_without_a_header_are_not_told_to_have_one(tmp_path, raw):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(tmp_path, raw)


def test_a_known_header_can_be_declared_an_arc(tmp_path):
    raw = b"source\ttarget\nsource\tsink\n"
    assert read(tmp_path, raw) == [(b"source", b"sink", None)]
    assert read(tmp_path, raw, header=False) == [(b"source", b"target", None), (b"source", b"sink", None)]
    # A declared header of unknown words leaves the columns as they are detected.
    assert read(tmp_path, b"x,y,z\n0,1,2.5\n1,0,1\n", header=True) == [(0, 1, 2.5), (1, 0, 1)]
    assert read(tmp_path, b"weight,from,to\n2.5,0,1\n", header=True) == [(0, 1, 2.5)]
    # The header is the first line that is neither empty nor a comment.
    assert read(tmp_path, b"# x,y\n\nx,y\n0,1\n", header=True) == [(0, 1, None)]


def test_the_command_tells_of_a_header_and_takes_the_options(tmp_path):
    (tmp_path / "l.tsv").write_bytes(b"page_1\tpage_2\n" + LINES)
    for options, number, told in (([], 4, True), (["--header"], 3, False), (["--no-header"], 4, False)):
        run = CliRunner().invoke(
            commands, ["build", str(tmp_path / "l.tsv"), "-o", str(tmp_path / "g"), *options]
        )
        assert run.exit_code == 0
        assert f"{number} arcs" in run.stdout
        assert ("looks like names of columns" in run.stderr) == told


@given(
    st.floats(min_value=0, exclude_min=True, allow_infinity=False)
    | st.decimals(0, 10**6, places=3).map(float)
)
def test_weights_are_read_to_the_last_bit(tmp_path_factory, weight):
    path = tmp_path_factory.getbasetemp() / "weights.tsv"
    for text in (repr(weight), f"{weight:.17e}"):
        if float(text) > 0:
            path.write_text(f"a\tb\t{text}\n")
            assert arcs(edge_list(path)) == [(b"a", b"b", float(text))]


def test_number_of_nodes(tmp_path):
    path = tmp_path / "links.tsv"
    path.write_bytes(b"# inlink: nodes=12\n0\t1\n")
    source = edge_list(path)
    assert source.num_nodes == 12
    assert arcs(source) == [(0, 1, None)]


@pytest.mark.parametrize("pack", [gzip.compress, lambda raw: pa.compress(raw, "zstd", asbytes=True), bytes])
def test_blocks_and_packing(tmp_path, pack, monkeypatch):
    monkeypatch.setattr(opening, "BLOCK", 97)
    rows = [(f"host{k // 3}".encode(), b"x" * (k % 50)) for k in range(500)]
    raw = b"".join(b"%s\t%s\n" % row for row in rows)
    assert read(tmp_path, pack(raw[:4000]) + pack(raw[4000:])) == [(*row, None) for row in rows]
    quoted = b"".join(b'"%s\n"",",%s\n' % row for row in rows)
    assert read(tmp_path, pack(quoted), "l.csv") == [(a + b'\n",', b, None) for a, b in rows]


def test_the_same_source_is_given_once(tmp_path):
    path = tmp_path / "links.tsv"
    path.write_bytes(b"a\tb\na\tc\nb\ta\na\td\n")
    (batch,) = edge_list(path).batches
    assert batch.names.to_pylist() == [b"a", b"b", b"c", b"b", b"a", b"a", b"d"]
    assert batch.sources.tolist() == [0, 0, 3, 5]


FIELD = st.binary(max_size=8) | st.sampled_from(
    [b"a", b"b", b"1", b"22", b'"', b"#x", b"%", b"% y", b" ", b"a,b"]
)


@given(st.lists(st.tuples(FIELD, FIELD), max_size=30), st.booleans())
def test_csv_against_the_standard_library(tmp_path_factory, rows, crlf):
    # csv knows text only: each byte as a character
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n" if crlf else "\n")
    writer.writerows([a.decode("latin-1"), b.decode("latin-1")] for a, b in rows)
    path = tmp_path_factory.getbasetemp() / "quoted.csv"
    path.write_bytes(
        b"s\xc3\xb6urce,source,target\n" + b"".join(b"x,%s\n" % line for line in _records(out.getvalue()))
    )
    assert arcs(edge_list(path)) == [(a, b, None) for a, b in rows]


def _records(text):
    """The CSV text cut into records, without their ends."""
    rows = csv.reader(io.StringIO(text, newline=""))
    for row in rows:
        yield ",".join('"' + field.replace('"', '""') + '"' for field in row).encode("latin-1")


PLAIN = st.binary(min_size=1, max_size=8).map(lambda raw: re.sub(rb"[\t\r\n#%\xef\xff\xfe]", b"_", raw))


@given(st.lists(st.tuples(PLAIN, PLAIN), max_size=30))
def test_tsv_against_split(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "plain.tsv"
    path.write_bytes(b"# inlink: names\n" + b"".join(b"%s\t%s\n" % row for row in rows))
    wanted = [tuple(line.split(b"\t")) for line in path.read_bytes().split(b"\n")[1:] if line]
    assert arcs(edge_list(path)) == [(*row, None) for row in wanted]


def test_names_after_numbers_in_the_first_block(tmp_path):
    assert read(tmp_path, b"1\t2\n" * 500 + b"a\t3\n")[-1] == (b"a", b"3", None)


@pytest.mark.parametrize(
    ("raw", "options", "message"),
    [
        (b"a\tb\nc\n", {}, r"links\.tsv, line 2: expected two fields separated by tabs; got 'c'"),
        (b"a\tb\n#\n\n" + b"x" * 300 + b"\n", {}, r"links\.tsv, line 4: expected two fields .* got 'x{100}'"),
        (b"1\t2\nx\t3\n", {"nodes": "ids"}, r"line 2: expected a node number.* got 'x'.*--nodes names"),
        (b"1\t2\n-1\t3\n", {"nodes": "ids"}, r"line 2: expected a node number.* got '-1'"),
        (
            b"1\t4294967295\n",
            {},
            r"line 1: node number must be below 4,294,967,295; got 4294967295.*--nodes names",
        ),
        (b"1\t99999999999999999999999999\n", {}, r"line 1: node number must be below .* got 9{26}"),
        (b"a\tb\t1\nc\td\t0\n", {}, r"line 2: weight must be a finite number above 0; got '0'.*--no-weights"),
        (b"a\tb\t1\nc\td\tnan\n", {}, r"line 2: weight .* got 'nan'"),
        (b"a\tb\t1\nc\td\t1_0\n", {"weights": True}, r"line 2: weight .* got '1_0'"),
        (b"a\tb\t1\nc\td\n", {"weights": True}, r"line 2: expected a weight.* got 'c\\td'"),
        (b'a,b\n"c,d\n', {"separator": ","}, r"line 2: the quote is not closed"),
        (
            b'a,b\n"c"d,e\n',
            {"separator": ","},
            r"line 2: expected ',' or the end of the line after the closing quote of '\"c\"'",
        ),
        (b"1: 2 3 -1\n2: -1\n", {}, r"lines have from 2 to 4 fields.*--separator"),
        (b"BZh91AY&SY", {}, r"packed with bzip2: unpack it first"),
        (b"\xff\xfea\0\t\0", {}, r"UTF-16: convert it"),
    ],
)
def test_bad_lines_are_named(tmp_path, at, raw, options, message):
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, raw, at=at, **options)
    assert "\n" not in str(caught.value)


def test_later_blocks_may_not_turn_to_names(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "BLOCK", 64)
    with pytest.raises(InputError, match=r"line 301: expected a node number.* got 'x'"):
        read(tmp_path, b"1\t2\n" * 300 + b"x\t2\n")


def test_a_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "BLOCK", 64)
    monkeypatch.setattr(opening, "MAX_LINE", 1000)
    with pytest.raises(InputError, match=r"line 3: longer than"):
        read(tmp_path, b"a\tb\na\tb\n" + b"x" * 5000)


@pytest.mark.parametrize("pack", [gzip.compress, lambda raw: pa.compress(raw, "zstd", asbytes=True)])
def test_cut_and_damaged_packing(tmp_path, at, pack):
    packed = pack(np.random.default_rng(1).bytes(50_000).hex().encode() + b"\tb\n")
    here = at(tmp_path) == tmp_path
    where = r" before byte [\d,]+" if here else ""
    with pytest.raises(DamageError, match=rf"links\.tsv\.gz: compressed data cut or damaged{where}:"):
        read(tmp_path, packed[:-2000], "links.tsv.gz", at)
    if pack is not gzip.compress:
        return  # without a checksum, as Arrow writes it, other bytes are other text
    middle = len(packed) // 2
    with pytest.raises(DamageError, match=r"cut or damaged"):
        read(tmp_path, packed[:middle] + bytes(64) + packed[middle + 64 :], "links.tsv.gz", at)


def test_missing_and_wrong_options(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        edge_list(tmp_path / "no.tsv")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(InputError, match="is not a regular file"):
            edge_list(path)
    (tmp_path / "a.tsv").write_bytes(b"a\tb\n")
    for options in ({"separator": "ab"}, {"separator": "\n"}):
        with pytest.raises(ParameterError):
            edge_list(tmp_path / "a.tsv", **options)


def test_a_list_with_comments(data):
    path = data("links.tsv")
    lines = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    assert [[end.decode() for end in arc[:2]] for arc in arcs(edge_list(path))] == lines
    assert len(lines) > 300


def test_wikispeedia(data):
    found = arcs(edge_list(data("graphs/wikispeedia/links.tsv")))
    assert len(found) == 119_879
    assert len({name for arc in found for name in arc[:2]}) == 4_589

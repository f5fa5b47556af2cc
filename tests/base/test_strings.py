"""Columns of strings, against pyarrow's arrays."""

import re
import sys

import numpy as np
import pyarrow as pa
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from inlink.base.strings import Strings, bytes_in, column_of, from_arrow, to_arrow
from inlink.errors import MissingExtraError, ParameterError
from inlink.sources.write import as_text, join_columns, join_rows
from inlink.urls.matching import matcher

rows = st.lists(st.binary(max_size=6) | st.sampled_from([b"", b"a", b"&&", "ä".encode()]), max_size=12)
rows_or_none = st.lists(st.none() | st.binary(max_size=6), max_size=12)


@given(rows_or_none)
def test_a_column_is_a_list(values):
    column = Strings.of(values)
    assert column.to_pylist() == list(column) == values
    assert [column[k] for k in range(-len(values), len(values))] == values * 2
    assert len(column) == len(values)
    assert column.is_valid().tolist() == [value is not None for value in values]
    assert column.to_bytes() == b"".join(value or b"" for value in values)


@given(rows_or_none, st.integers(-14, 14), st.integers(-14, 14))
def test_a_part_is_a_slice_and_can_be_worked_on(values, start, stop):
    part, expected = Strings.of(values)[start:stop], values[start:stop]
    assert part.to_pylist() == expected
    assert part.replace(b"a", b"bcd").to_pylist() == [v and v.replace(b"a", b"bcd") for v in expected]
    assert part.count(bytes_in(b"ab")).tolist() == [len(re.findall(b"[ab]", v or b"")) for v in expected]
    assert Strings.concat([part, Strings.of([b"x"]), part]).to_pylist() == [*expected, b"x", *expected]


@given(rows_or_none, st.data())
def test_take_and_filter_are_pyarrows(values, data):
    column, array = Strings.of(values), pa.array(values, pa.large_binary())
    places = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20)) if values else []
    assert column.take(places).to_pylist() == array.take(pa.array(places, pa.int64())).to_pylist()
    mask = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    assert (
        column.filter(np.array(mask, bool)).to_pylist()
        == array.filter(pa.array(mask, pa.bool_())).to_pylist()
    )


@given(rows_or_none, st.integers(0, 12), st.sampled_from([pa.binary(), pa.large_binary()]))
def test_arrow_and_back(values, start, kind):
    array = pa.array(values, kind)[start:]
    for column in (from_arrow(array), column_of(array), column_of(pa.chunked_array([array]))):
        assert column.to_pylist() == values[start:]
        assert to_arrow(column).to_pylist() == values[start:]
        to_arrow(column[1:]).validate(full=True)


@given(rows)
def test_utf8_is_pyarrows(values):
    array = pa.array(values, pa.large_binary())
    try:
        array.cast(pa.large_string())
        valid = True
    except pa.ArrowInvalid:
        valid = False
    assert Strings.of(values).is_utf8() == valid


def test_a_character_that_is_cut_by_the_end_of_a_row_is_not_utf8():
    assert not Strings.of([b"\xc3", b"\xa4"]).is_utf8()
    assert Strings.of(["ä", b""]).is_utf8()


@given(rows_or_none)
def test_by_value_calls_a_function_once_for_each_value(values):
    seen = []

    def upper(value: bytes) -> bytes | None:
        seen.append(value)
        return value.upper() or None

    assert Strings.of(values).by_value(upper).to_pylist() == [
        value.upper() or None if value else None for value in values
    ]
    assert sorted(seen) == sorted({value for value in values if value is not None})


@given(rows, st.data())
def test_rows_can_be_replaced(values, data):
    odd = sorted(data.draw(st.sets(st.integers(0, len(values) - 1)))) if values else []
    found = Strings.of(values).with_rows(np.array(odd, np.int64), Strings.of([b"new"] * len(odd)))
    assert found.to_pylist() == [b"new" if k in odd else value for k, value in enumerate(values)]


def test_a_column_takes_strings_and_nothing_else():
    assert column_of(("a", b"\xff", "\udcff")).to_pylist() == [b"a", b"\xff", b"\xff"]
    with pytest.raises(ParameterError, match="names must be strings or bytes; got 3"):
        column_of([b"a", 3])


@given(rows.filter(len))
def test_rows_are_joined(values):
    column = Strings.of(values)
    assert join_columns(b"<", column, b"|", column, b">").to_pylist() == [b"<%b|%b>" % (v, v) for v in values]
    assert join_rows(column, b"\n") == b"".join(value + b"\n" for value in values)


@given(st.lists(st.floats(width=64) | st.sampled_from([0.0, -0.0, 1e300, 5e-324, 12.0]), max_size=9))
def test_floats_as_text_read_back_as_the_same_numbers(values):
    texts = as_text(np.array(values, np.float64)).to_pylist()
    assert np.array([float(text) for text in texts]).tobytes() == np.array(values).tobytes() or any(
        np.isnan(values)
    )
    assert not any(text.endswith(b".0") for text in texts)
    single = np.array(values, np.float64).clip(-1e30, 1e30).astype(np.float32)
    shown = as_text(single).to_pylist()
    assert np.array_equal(np.array([float(text) for text in shown], np.float32), single, equal_nan=True)
    assert all(len(text) <= 16 for text in shown)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=9))
def test_whole_numbers_as_text(values):
    assert as_text(np.array(values, np.uint64)).to_pylist() == [b"%d" % value for value in values]


def test_without_pyarrow_the_message_has_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtraError, match=r"an Arrow array needs pyarrow: pip install 'inlink\[arrow\]'"
    ):
        to_arrow(Strings.of([b"a"]))


_EXPRESSIONS = r"a$ ^b ^$ a.b [^a]b \Ab b\z (?i)A \bb \Bb \s (?s)a.b (?-m:^b) a|^"
EXPRESSIONS = _EXPRESSIONS.split()


@given(st.lists(st.text("ab\n -", max_size=4), max_size=150), st.sampled_from(EXPRESSIONS))
def test_a_search_in_many_names_finds_those_of_a_search_in_each(names, expression):
    program = re2.compile(expression)
    expected = [row for row, name in enumerate(names) if program.search(name)]
    assert matcher(expression)(Strings.of(names)).tolist() == expected


_pieces = st.sampled_from(["a", "b", ".", "[^a]", r"\s", r"\b", r"\B", "^", "$", r"\W", "-", " ", "ä", "\n"])
_expressions = st.recursive(
    _pieces,
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map("|".join)
        | st.tuples(inner, st.sampled_from("*+?")).map(lambda pair: f"(?:{pair[0]}){pair[1]}")
        | inner.map("({})".format)
    ),
    max_leaves=6,
)


@given(st.lists(st.text("abä -", max_size=5), max_size=40), _expressions, st.integers(0, 3))
def test_a_search_for_any_expression_is_that_of_each_name(names, expression, first):
    program = re2.compile(expression)
    expected = [row for row, name in enumerate(names[first:]) if program.search(name)]
    assert matcher(expression)(Strings.of(names)[first:]).tolist() == expected


@pytest.mark.parametrize("expression", ["b$", "^a*b"])
def test_a_search_in_more_names_than_a_block_finds_all(expression):
    names = [b"aab" if row % 997 == 0 or row in (4095, 4096, 8999) else b"aa" for row in range(9_000)]
    expected = [row for row, name in enumerate(names) if name == b"aab"]
    assert matcher(expression)(Strings.of(names)).tolist() == expected


@given(rows)
def test_lines_are_rows_with_newlines(values):
    assert Strings.of(values).lines() == (
        None if b"\n" in b"".join(values) else b"".join(value + b"\n" for value in values)
    )


@given(st.lists(st.text("abAB.", max_size=4), max_size=150))
def test_a_search_for_text_ignores_case(names):
    assert matcher("b.", "text")(Strings.of(names)).tolist() == [
        row for row, name in enumerate(names) if "b." in name.lower()
    ]


def test_a_slice_with_a_step_is_refused():
    with pytest.raises(IndexError, match="step 1; got 2"):
        Strings.of(["a", "b", "c"])[::2]

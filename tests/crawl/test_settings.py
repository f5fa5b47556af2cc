"""Settings: one table, its checks by every door, and what a crawl's folder keeps of them."""

import inspect
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings as ScrapySettings

from inlink.base.declare import Parameter, parameters_of
from inlink.cli import commands
from inlink.crawl.crawl import Crawl
from inlink.crawl.settings import checked, choose, encoded, from_name, lay_over, stored
from inlink.errors import ParameterError
from inlink.frontier.policies import POLICIES
from inlink.frontier.revisit import ByValue, FixedInterval, revisit_as_data
from inlink.frontier.settings import GROUPS, TABLE, Settings
from inlink.scrapy.settings import crawl_settings
from settingscases import NUMBERS, OTHERS, as_given, got
from settingsdocs import DOCS, written

# -- the table ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_tables_in_the_docs_are_those_of_the_code(page: Path):
    text = page.read_text()
    assert written(text) == text, "run: python tests/settingsdocs.py"


def test_the_docs_have_all_tables():
    text = "".join(page.read_text() for page in DOCS.glob("*.md"))
    assert [text.count(f"<!-- settings: {name} -->") for name in ("crawl", "scrapy", "options")] == [1, 1, 1]


def test_every_setting_is_a_parameter_of_the_crawl_and_in_its_docstring():
    parameters = dict(inspect.signature(Crawl).parameters)
    assert [parameters.pop(name).name for name in ("folder", "clock")] == ["folder", "clock"]
    declared = {name: row.default for name, row in parameters_of(Settings).items()}
    assert {name: shown.default for name, shown in parameters.items()} == declared
    with pytest.raises(TypeError, match=r"Crawl.__init__\(\) got an unexpected keyword argument 'dampin'"):
        Crawl("never-made", dampin=0.5)  # type: ignore[call-arg]
    text = " ".join((Crawl.__doc__ or "").split("Attributes")[0].split())
    for name, row in parameters_of(Settings).items():
        assert f"{name} :" in text or f"{name}, " in text or f", {name} :" in text
        if isinstance(row.default, float | int):
            assert f"{row.default:g}" in text or str(row.default) in text, name
    for group in (*GROUPS.values(), FixedInterval, ByValue):
        for name in parameters_of(group):
            assert name in (group.__doc__ or ""), (group, name)


def test_policies_of_the_table_are_those_that_there_are():
    assert sorted(TABLE["policy"].choices) == sorted(POLICIES)
    assert OTHERS.keys() == TABLE.keys() - GROUPS.keys()


# -- ranges, by all doors -------------------------------------------------------------------------------------------


def bounds(row: Parameter) -> tuple[list[float], list[float]]:
    """Numbers that are just inside and just outside the range of a setting."""

    def near(bound: float, towards: float) -> float:
        return bound + (1 if towards > bound else -1) if row.kind is int else math.nextafter(bound, towards)

    inside, outside = [], []
    for bound, closed, out in (
        (row.at_least, True, -math.inf),
        (row.above, False, -math.inf),
        (row.at_most, True, math.inf),
        (row.below, False, math.inf),
    ):
        if bound is not None:
            bound = row.kind(bound)
            inside.append(bound if closed else near(bound, -out))
            outside.append(near(bound, out) if closed else bound)
    return inside, outside


def by_scrapy(name: str, text: str, folder: Path) -> Any:
    group, dot, field = name.partition(".")
    value = json.dumps({field: text}) if dot else text
    where, found = crawl_settings(
        ScrapySettings({"INLINK_CRAWL": str(folder), f"INLINK_{group.upper()}": value})
    )
    return got(choose(Path(where), found).settings, name)


def by_command(name: str, text: str, folder: Path) -> Any:
    seeds = folder.with_name("seeds")
    seeds.write_text("http://a.com/\n")
    result = CliRunner().invoke(commands, ["-q", "seed", str(folder), str(seeds), "--set", f"{name}={text}"])
    if result.exception is not None:
        raise result.exception
    return got(stored(folder), name)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_accepted_at_its_bounds_and_refused_outside_by_all_doors(name, tmp_path):
    row, folder = TABLE[name], tmp_path / "c"
    inside, outside = bounds(row)
    assert len(inside) == 2, "a range has two bounds"
    for value in inside:
        assert got(choose(folder, as_given(name, value)).settings, name) == value
        assert by_scrapy(name, repr(value), folder) == value
        group, found = from_name(name, repr(value))
        assert got(choose(folder, {group: found}).settings, name) == value
    wrong = [*outside, math.nan, math.inf, -math.inf, True, "many"]
    for value in wrong:
        with pytest.raises(ParameterError) as here:
            choose(folder, as_given(name, value))
        said, _, shown = str(here.value).partition("; got ")
        assert said == f"{name} must be {row.meaning}"
        assert shown == repr(value)
        with pytest.raises(ParameterError) as there:
            by_scrapy(name, str(value), folder)
        place = f"INLINK_{name.partition('.')[0].upper()}{name[len(name.partition('.')[0]) :]}"
        assert str(there.value) == f"{place} must be {row.meaning}; got {str(value)!r}"
        with pytest.raises(ParameterError) as command:
            by_command(name, str(value), folder)
        assert str(command.value) == f"--set {name} must be {row.meaning}; got {str(value)!r}"
    with pytest.raises(ParameterError) as long:
        Crawl(folder, **as_given(name, outside[0]))
    assert str(long.value) == f"{name} must be {row.meaning}; got {outside[0]!r}"
    if row.none is None:
        with pytest.raises(ParameterError, match="got None"):
            choose(folder, as_given(name, None))
    assert not folder.exists()


@pytest.mark.parametrize("name", sorted(TABLE.keys() - NUMBERS.keys()))
def test_other_types_are_refused(name, tmp_path):
    row, folder = TABLE[name], tmp_path / "c"
    wrong: list[Any] = [3, 1.5, object(), b"x"]
    if row.kind is bool:
        wrong += [1, 0, "yes"]
    if row.kind is tuple:
        wrong += [[""], [1], {"a": 1}]
        if name.startswith("url_rules"):  # one string is one rule
            wrong.append("abc")
    if row.choices:
        wrong += ["", "hosts", "a:", ":b"]
    if row.none is None:
        wrong.append(None)
    for value in wrong:
        with pytest.raises(ParameterError) as caught:
            Crawl(folder, **as_given(name, value))
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("given_settings", "said"),
    [
        ({"policy": "no.such.module:Thing"}, "cannot be imported here"),
        ({"policy": "inlink.errors:InlinkError"}, "must be a subclass of Policy"),
        ({"policy": int}, "must be a name, a subclass of Policy or an instance"),
        ({"revisit": {"schedule": "Weekly"}}, "give a schedule"),
        ({"revisit": {"schedule": "ByValue", "budgets": 1}}, "cannot be made of"),
        (
            {"revisit": {"schedule": "Adaptive"}},
            "revisit: inlink has no schedule Adaptive any more; give another",
        ),
        ({"revisit": {"schedule": "ChangeRate", "scale": 2.0}}, "no schedule ChangeRate any more"),
        ({"revisit": {"schedule": "inlink.errors:InlinkError"}}, "has no method next"),
        ({"politeness": {"dely": 1}}, "no setting is called 'dely'; did you mean delay?"),
        ({"rules": {"deny": "("}}, "is not a valid regular expression"),
    ],
)
def test_a_refused_setting_leaves_no_folder(given_settings, said, tmp_path):
    with pytest.raises(ParameterError, match=said.replace("?", "[?]")):
        Crawl(tmp_path / "c", **given_settings)
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_none_get_a_hint():
    with pytest.raises(ParameterError, match=r"did you mean politeness\.delay\?"):
        from_name("delay", "3")
    with pytest.raises(ParameterError, match=r"did you mean max_retries\?"):
        from_name("max_retry", "3")
    result = CliRunner().invoke(commands, ["next", "c", "--set", "damping"])
    assert str(result.exception).startswith("--set takes NAME=VALUE")


@pytest.mark.parametrize(("call", "said"), [
    (lambda crawl: crawl.next(-1), "count must be a whole number in [0, 4294967295]; got -1"),
    (lambda crawl: crawl.seed("http://b.com/"), "URLs must be a list, such as [url]; got the single string"),
    (lambda crawl: crawl.seed([7]), "a link must be a URL"),
    (lambda crawl: crawl.crawled("a", score=math.nan), "score must be a number in (-3e+38, 3e+38); got nan"),
    (lambda crawl: crawl.crawled("a", status=7000), "status must be a whole number in [0, 999]; got 7000"),
    (lambda crawl: crawl.crawled("a", content_hash="x"), "content_hash must be bytes; got str"),
    (lambda crawl: crawl.crawled(3.0), "a page is named by its lease, its lease's number or its URL; got 3.0"),
    (lambda crawl: crawl.sitemap(["http://b.com/"]), "sitemap takes triples"),
    (lambda crawl: crawl.host_delay(1, -1), "seconds must be a number of seconds in [0, 1e9]"),
])  # fmt: skip
def test_messages_name_the_argument_its_range_and_the_value(tmp_path, call, said):
    with Crawl(tmp_path / "c") as crawl, pytest.raises(ParameterError) as caught:
        call(crawl)
    assert said in str(caught.value)


# -- any settings ---------------------------------------------------------------------------------------------------


def numbers(row: Parameter) -> st.SearchStrategy[Any]:
    (low, high), _ = bounds(row)
    found: st.SearchStrategy[Any] = (
        st.integers(int(low), int(high)) if row.kind is int else st.floats(low, high, allow_nan=False)
    )
    return found | st.none() if row.none else found


def values(row: Parameter) -> st.SearchStrategy[Any]:
    if row.kind is bool:
        return st.booleans()
    if row.kind in (int, float):
        return numbers(row)
    if row.choices:
        return st.sampled_from(row.choices)
    if row.name in ("rules.shard", "shard"):
        return st.sampled_from(["2/4", "1/1", None])
    if row.kind is str:
        return st.sampled_from(["a.txt", "folder/b.txt"]) | st.none()
    if row.name == "revisit_rules":
        return st.sampled_from([(), ("host:a.example 60",), ("x 1..", "y ..9")])
    names = st.lists(st.sampled_from(["a.example", "b.example", "example"]), max_size=2).map(tuple)
    return names | st.none() if row.none else names


SOME = st.fixed_dictionaries(
    {}, optional={name: values(row) for name, row in TABLE.items() if row.name not in (*GROUPS, "revisit")}
)


def settings_of(changes: Mapping[str, Any], base: Settings) -> Settings:
    found: dict[str, Any] = {}
    for name, value in changes.items():
        group, dot, field = name.partition(".")
        lay_over(found, group, {field: value} if dot else value)
    for name, group in GROUPS.items():
        if name in found:
            found[name] = replace(getattr(base, name) or group(), **checked(name, found[name]))
    return replace(base, **found)


@given(SOME, st.sampled_from([None, FixedInterval(3.0), ByValue(budget=5.0)]))
def test_the_settings_that_were_given_are_kept(tmp_path_factory, changes, schedule):
    settings = replace(settings_of(changes, Settings()), revisit=schedule)
    data = json.loads(encoded(settings))
    assert "url_rules" not in data  # those are in the header, which never changes
    assert data.pop("check") == zlib.crc32(msgspec.json.encode(data))
    again = {
        name: None if data[name] is None else group(**data[name])
        for name, group in GROUPS.items()
        if name in data
    }
    assert data.pop("revisit") == json.loads(json.dumps(revisit_as_data(schedule)))
    assert Settings(**{**data, **again}, revisit=schedule, url_rules=settings.url_rules) == settings


@given(SOME)
def test_text_means_the_same_as_the_value(changes):
    for name, value in changes.items():
        row = TABLE[name]
        if isinstance(value, tuple) and (len(value) != 1 and not row.commas):
            continue
        if name == "revisit_rules":
            # A text names a file.
            continue
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        _, found = from_name(name, text)
        if "." in name:
            found = found[name.partition(".")[2]]
        assert found == value, (name, text)


@given(
    st.sampled_from(sorted(TABLE)), st.text() | st.floats() | st.integers() | st.none() | st.lists(st.text())
)
def test_anything_is_taken_by_the_table_or_refused_by_name(tmp_path_factory, name, value):
    folder = tmp_path_factory.getbasetemp() / "never made"
    said = None
    try:
        choose(folder, as_given(name, value))
    except ParameterError as error:
        said = str(error)
    assert said is None or name.rpartition(".")[2] in said
    assert said is None or "\n" not in said
    assert not folder.exists()

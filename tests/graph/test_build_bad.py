"""A file that cannot be read among good ones: left out whole, counted, told with its place, or refused."""

import gzip
import json
import re
import sqlite3
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from click.testing import CliRunner

import inlink
from archives import anchors, sample, wat_json, wat_record, write
from inlink import Graph
from inlink.base import opening
from inlink.cli import commands
from inlink.errors import FormatError, InputError, ParameterError
from inlink.sources.recognise import recognise
from torture.inputs import mutate

HTML = b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head>\n<body>Not, found</body></html>\n"
XML = b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code></Error>'
JSON = b'{"error": "not found", "code": 404}\n'
RANDOM = Random(4).randbytes(5000)


def files_of(graph: Graph) -> dict[str, bytes]:
    """The bytes of a graph's arrays, and what its header says of them."""
    header = json.loads((graph.path / "header.json").read_bytes())
    data = {
        name: (graph.path / str(header["generation"]) / f"{name}.bin").read_bytes()
        for name in header["files"]
    }
    return data | {"level": json.dumps(header["meta"].get("level")).encode()}


def build(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(commands, ["-q", "build", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return 2, str(result.exception)
    return result.exit_code, result.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "a.warc.gz", sample())
    write(tmp_path / "b.warc.gz", sample())
    (tmp_path / "a.tsv").write_text("".join(f"http://a{k}.org/\thttp://b{k % 7}.org/\n" for k in range(50)))
    (tmp_path / "b.tsv").write_text("".join(f"http://b{k % 7}.org/\thttp://c{k}.org/\n" for k in range(50)))
    return tmp_path


def bad_files(folder: Path, ending: str) -> dict[str, tuple[Path, str]]:
    """A bad file of each kind, and what is said of it."""
    good = (folder / f"a{ending}").read_bytes()
    packed = good if ending == ".warc.gz" else gzip.compress(good)
    contents = {
        "empty": (b"", "empty"),
        "page": (HTML, "HTML|not a web"),
        "error": (XML, "XML|not a web"),
        "json": (JSON, "is JSON|not a web"),
        "random": (RANDOM, ""),
        "cut": (packed[:40], "cut|byte 0"),
        "packed-page": (gzip.compress(HTML), "HTML|not a web"),
    }
    found = {}
    for name, (content, said) in contents.items():
        path = folder / f"{name}{ending}"
        path.write_bytes(content)
        found[name] = path, said
    (folder / f"folder{ending}").mkdir()
    return found | {
        "absent": (folder / f"absent{ending}", "does not exist|No such file"),
        "folder": (folder / f"folder{ending}", "folder|directory"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".warc.gz", ".tsv"])
@pytest.mark.parametrize("named", [True, False], ids=["format named", "recognised"])
def test_each_kind_of_bad_file_is_left_out_and_told(folder: Path, at, ending: str, named: bool):
    good = [folder / f"a{ending}", folder / f"b{ending}"]
    bad = bad_files(folder, ending)
    if named and ending == ".tsv":
        # Whoever names the format may have nodes such as these.
        del bad["json"]
    wanted = files_of(inlink.read(good, into=folder / "good"))
    format = ({".tsv": "edgelist"}.get(ending, "warc")) if named else None
    if at(folder) != folder:
        # Behind a URL a folder is no file.
        bad = {name: (at(path), said) for name, (path, said) in bad.items() if name != "folder"}
        bad["absent"] = bad["absent"][0], "does not exist|the server answers 404"
        good = [at(path) for path in good]
    files = [good[0], *(path for path, _ in bad.values()), good[1]]
    with pytest.warns(UserWarning, match=f"left out {len(bad)} of {len(files)} files. The first: .*empty"):
        graph = inlink.read(files, format=format, into=folder / "g")
    assert files_of(graph) == wanted
    skipped = [reason for reason in graph.meta["skipped"] if reason.startswith("file: ")]
    assert len(skipped) == len(bad)
    for (path, said), reason in zip(
        bad.values(), sorted(skipped, key=lambda r: files.index(place(r, files))), strict=True
    ):
        assert str(path) in reason
        assert re.search(said, reason), reason
    assert len(graph.meta["sources"]) == 2
    for k, (path, _) in enumerate(bad.values()):
        with pytest.raises(InputError):
            inlink.read([*good, path], format=format, strict=True, into=folder / f"{k}.strict")
        with pytest.raises(InputError):
            inlink.read(path, format=format, into=folder / "alone")
    with pytest.raises(InputError, match=f"None of the {len(bad)} files can be read. The first: .*empty"):
        inlink.read([path for path, _ in bad.values()], format=format, into=folder / "none")
    made = {path.name for path in folder.iterdir()}
    assert not {"alone", "none", "none.parts", *(f"{k}.strict" for k in range(len(bad)))} & made


def place(reason: str, files: list[Path | str]) -> Path | str:
    return max((path for path in files if str(path) in reason), key=lambda path: len(str(path)))


@pytest.mark.parametrize("weight", ["", "\t2.5", "\t3"])
def test_arcs_before_the_fault_of_a_file_are_forgotten(folder: Path, monkeypatch, weight: str):
    """Names, arcs, weights, and that there are weights at all."""
    monkeypatch.setattr(opening, "BLOCK", 256)
    (folder / "a.tsv").write_text("".join(f"a{k}\tb{k % 7}{weight}\n" for k in range(50)))
    late = "".join(f"a{k}\tz{k}\t0.5\n" for k in range(500))
    (folder / "late.tsv").write_text(late + "alone\n")
    (folder / "cut.tsv.gz").write_bytes(gzip.compress(late.encode())[:-9])
    good = [folder / "a.tsv", folder / "b.tsv"]
    wanted = files_of(inlink.read(good, into=folder / "good"))
    for at in range(3):
        files: list[Path] = list(good)
        files[at:at] = [folder / "late.tsv", folder / "cut.tsv.gz"]
        with pytest.warns(UserWarning, match="left out 2 of 4 files"):
            graph = inlink.read(files, into=folder / "g")
        assert files_of(graph) == wanted
        reasons = list(graph.meta["skipped"])
        assert reasons[0].startswith(f"file: {folder / 'late.tsv'}, line 501: expected two fields")
        assert re.match(
            rf"file: {folder / 'cut.tsv.gz'}: compressed data cut or damaged before byte", reasons[1]
        )


def test_stated_numbers_of_nodes_of_bad_files_do_not_count(tmp_path: Path):
    (tmp_path / "a.tsv").write_text("0\t1\n")
    (tmp_path / "b.tsv").write_text("# inlink: nodes=90\n7\t8\n7\tx\n")
    with pytest.warns(UserWarning, match="line 3: expected a node number"):
        graph = inlink.read([tmp_path / "a.tsv", tmp_path / "b.tsv"])
    assert (graph.num_nodes, graph.num_arcs, graph.names) == (2, 1, None)


def test_a_cut_archive_is_read_as_far_as_it_goes(folder: Path, at):
    write(folder / "a.warc.gz", sample(), packed="records")
    raw = (folder / "a.warc.gz").read_bytes()
    cut = folder / "cut.warc.gz"
    cut.write_bytes(raw[: len(raw) * 2 // 3])
    alone = inlink.read(at(cut), into=folder / "alone")
    assert files_of(alone) == files_of(inlink.read(cut, into=folder / "here"))
    assert alone.meta["records"] > 0
    assert "file ends inside" in next(iter(alone.meta["skipped"]))
    both = inlink.read([at(cut), at(folder / "b.warc.gz")])
    assert both.meta["records"] == alone.meta["records"] + inlink.read(folder / "b.warc.gz").meta["records"]
    assert not any(reason.startswith("file: ") for reason in both.meta["skipped"])


@pytest.mark.slow
@pytest.mark.parametrize("at", ["http", "s3"], indirect=True)
def test_any_damage_is_read_alike_behind_a_url(tmp_path: Path, at):
    """Archives and edge lists of each packing: the same graph, or an error."""
    lines = "".join(f"http://a{k}.org/\thttp://b{k % 7}.org/\n" for k in range(500)).encode()
    wat = [wat_record(wat_json(f"http://a{k}.org/", anchors("http://b.org/x"))) for k in range(9)]
    samples = {
        "x.warc.gz": write(tmp_path / "x", sample() * 5, packed="records").read_bytes(),
        "x.warc": b"".join(sample()),
        "x.wat.gz": write(tmp_path / "x", wat, packed="records").read_bytes(),
        "x.tsv": lines,
        "x.tsv.gz": gzip.compress(lines),
        "x.tsv.zst": pa.compress(lines, "zstd", asbytes=True),
    }
    random = Random(1)

    def outcome(path: Path | str) -> object:
        try:
            graph = inlink.read(path, into=tmp_path / "g")
        except InputError:
            return "refused"
        return files_of(graph), [reason.partition(" of ")[0] for reason in graph.meta.get("skipped", {})]

    for k in range(30):
        name = list(samples)[k % len(samples)]
        raw = bytearray(samples[name])
        mutate(raw, random)
        (tmp_path / name).write_bytes(raw)
        here, there = (outcome(path) for path in (tmp_path / name, at(tmp_path / name)))
        assert str(here).replace(str(tmp_path / name), "") == str(there).replace(str(at(tmp_path / name)), "")


def test_the_command_counts_and_tells_them(folder: Path):
    (folder / "page.tsv").write_bytes(HTML)
    files = [folder / "a.tsv", folder / "page.tsv", folder / "b.tsv", folder / "b.tsv"]
    code, said = build(*files, "-o", folder / "g")
    assert code == 0
    assert f"{folder / 'b.tsv'} is named more than once, so its links count 2 times" in said
    assert "left out 1 of 4 files\n" in said
    assert f"skipped 1: file: {folder / 'page.tsv'} is XML or HTML" in said
    code, said = build(*files, "-o", folder / "strict", "--strict")
    assert (code, "page.tsv is XML or HTML" in said) == (2, True)
    code, said = build(folder / "page.tsv", folder / "none", "-o", folder / "bad")
    assert (code, "None of the 2 files can be read" in said) == (2, True)
    assert not {"strict", "bad"} & {path.name for path in folder.iterdir()}
    code, said = build(*files, "-o", folder / "hosts", "--level", "host")
    assert code == 0
    assert "skipped 1: file: " in said


def test_formats_that_stand_alone_are_judged_by_the_files_that_can_be_read(tmp_path: Path):
    graph = Graph.from_arcs([("a", "b"), ("b", "c")])
    (tmp_path / "bad").write_bytes(HTML)
    for name in ("g.parquet", "g.sqlite", "g.graphml", "g.gexf", "g.mtx"):
        inlink.write(graph, tmp_path / name)
        with pytest.warns(UserWarning, match="left out 1 of 2 files"):
            assert inlink.read([tmp_path / name, tmp_path / "bad"]).num_arcs == 2
    with pytest.raises(ParameterError, match="different formats: gexf, graphml"):
        inlink.read([tmp_path / "g.graphml", tmp_path / "g.gexf", tmp_path / "bad"])
    with sqlite3.connect(tmp_path / "no-arcs.sqlite") as base:
        base.execute("CREATE TABLE t (x)")
    base.close()
    with pytest.warns(UserWarning, match="no-arcs.sqlite: table t has the columns x"):
        assert inlink.read([tmp_path / "no-arcs.sqlite", tmp_path / "g.sqlite"]).num_arcs == 2


def test_texts_that_are_no_edge_lists_are_told_apart(tmp_path: Path):
    path = tmp_path / "x.warc.gz"
    for content, said in (
        (b"429 Too many requests\n", "named as warc and is no archive; it begins with '429 Too"),
        (JSON, "is JSON"),
        (RANDOM, "not recognised|no archive"),
    ):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=said):
            recognise(path)
    for seed in range(40):
        path = tmp_path / "random"
        path.write_bytes(Random(seed).randbytes(3000))
        with pytest.raises(FormatError):
            recognise(path)
    path.write_bytes("straße\tcafé\n".encode("latin-1"))
    assert recognise(path) == "edgelist"

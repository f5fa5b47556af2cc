"""Formats are recognised by the content of files."""

import gzip
import os
import sqlite3
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from inlink import Graph
from inlink.errors import FormatError, InputError
from inlink.sources.files import read_source
from inlink.sources.formats import FORMATS, implementation
from inlink.sources.recognise import recognise


def make(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


TEXTS = {
    "edgelist": [
        b"a\tb\n",
        b"1 2\n",
        b"# only\n",
        b"Source,Target\n",
        b"\xef\xbb\xbfa;b\n",
        b"%C3%81\tb\n",
        b"n 0\n",
        b"e f\n",
    ],
    "kleinberg": [b"n 0 http://a/\ne 0 0\n", b"# x\nn 3 a\n"],
    "matrixmarket": [b"%%MatrixMarket matrix coordinate pattern general\n1 1 0\n", b"%%matrixmarket x\n"],
    "graphml": [b'<?xml version="1.0"?>\n<!-- x -->\n<graphml xmlns="x">', b"\xef\xbb\xbf<graphml>"],
    "gexf": [b'<?xml version="1.0"?><gexf version="1.3">'],
    "gml": [b"graph [\n]\n", b'Creator "x"\r\ngraph\r\n[\r\n', b"# x\ngraph [ directed 1 node [ id 1 ] ]"],
}


@pytest.mark.parametrize(
    ("wanted", "content"), [(name, text) for name, texts in TEXTS.items() for text in texts]
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda raw: pa.compress(raw, "zstd", asbytes=True)])
def test_text_formats(tmp_path, wanted, content, pack):
    assert recognise(make(tmp_path, "no-name", pack(content))) == wanted


def test_other_formats(tmp_path):
    sqlite3.connect(tmp_path / "a").executescript("CREATE TABLE t (source, target)").connection.close()
    assert recognise(tmp_path / "a") == "sqlite"
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "b")
    assert recognise(tmp_path / "b") == "parquet"
    scipy.sparse.save_npz(tmp_path / "c.npz", scipy.sparse.eye_array(3, format="csr"))
    assert recognise((tmp_path / "c.npz").rename(tmp_path / "c")) == "npz"
    Graph.from_arcs([(0, 1)], into=tmp_path / "d")
    assert recognise(tmp_path / "d") == "graph"
    assert sum(len(batch.sources) for batch in read_source(tmp_path / "d").batches) == 1
    parts = tmp_path / "parts"
    parts.mkdir()
    pq.write_table(pa.table({"a": [1], "b": [2]}), parts / "part-0.parquet")
    assert recognise(parts) == "parquet"
    assert [b.targets.tolist() for b in read_source(parts).batches] == [[2]]


def test_folders_and_names_without_files(tmp_path):
    crawl = tmp_path / "cc"
    crawl.mkdir()
    make(crawl, "x-host-vertices.txt.gz", gzip.compress(b"0\tcom.a\n"))
    with pytest.raises(FormatError, match="this folder was not made by inlink"):
        recognise(crawl)
    make(crawl, "x-host-edges.txt.gz", gzip.compress(b""))
    for path in (crawl, crawl / "x-host", crawl / "x-host-edges.txt.gz", crawl / "x-host-*.gz"):
        assert recognise(path) == "commoncrawl"
    make(tmp_path, "half.properties", b"#BVGraph properties\narcs=1\n")
    for path in ("half", "half.graph", "half.properties"):
        with pytest.raises(InputError, match=r"half\.graph is missing.*export the graph again"):
            recognise(tmp_path / path)
    make(tmp_path, "g.graph", b"\x80")
    for path in ("g", "g.graph", "g.properties"):
        with pytest.raises(InputError, match=r"g\.properties is missing.*export the graph again"):
            recognise(tmp_path / path)
    make(tmp_path, "g.properties", b"nodes=1\n")
    for name in ("g", "g.graph", "g.properties"):
        assert recognise(tmp_path / name) == "bvgraph"
    with pytest.raises(InputError, match="does not exist"):
        recognise(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is empty. Name the format with --format \(warc, arc, wat, cdxj, bvgraph, edgelist"),
        (b"\n\n", "is empty"),
        (b"word\nanother\n", "format not recognised .* lines of two fields"),
        (b"<!DOCTYPE html><html>", "is XML or HTML, but neither GraphML nor GEXF"),
        (b"\x7fELF\x00\x01 \x02\t", "format not recognised"),
        (b"\xfd7zXZ\0...", "packed with xz: unpack it first"),
    ],
)
def test_unknown_content(tmp_path, content, message):
    with pytest.raises(FormatError, match=message) as caught:
        recognise(make(tmp_path, "f", content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("packed", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(
    ("members", "message"),
    [
        (["archive/data.warc.gz", "datapackage.json"], None),
        (["logs/crawl.log", "datapackage.json", "archive/a/B.WARC"], None),
        (["archive/", "archive/data.cdx", "data.warc.gz", "xarchive/data.warc"], "is a zip"),
        (["links.tsv"], "is a zip archive, which cannot be read: unpack it first"),
    ],
)
def test_zip_archives_are_no_matrices(tmp_path, members, message, packed):
    path = tmp_path / "site.wacz"
    with zipfile.ZipFile(path, "w", packed) as archive:
        for name in members:
            archive.writestr(name, "a\tb\n")
    if message is None:
        assert recognise(path) == "warc"
        return
    with pytest.raises(FormatError, match=message):
        recognise(path)


def test_any_bytes(tmp_path):
    rng = np.random.default_rng(2)
    for k in range(200):
        path = make(
            tmp_path,
            "f",
            rng.bytes(int(rng.integers(1, 300)))
            if k % 2
            else bytes(rng.choice([9, 10, 34, 44, 97], 50).tolist()),
        )
        try:
            for _ in read_source(path).batches:
                pass
        except InputError as error:
            assert "f" in str(error)  # noqa: PT017


@pytest.mark.parametrize("name", FORMATS)
def test_the_table_names_functions_that_exist(name):
    entry = FORMATS[name]
    assert entry.name == name
    assert entry.description
    for where in filter(None, (entry.reader, entry.writer)):
        assert callable(implementation(where))


@pytest.mark.slow
def test_recognising_imports_neither_numba_nor_scipy(tmp_path):
    path = make(tmp_path, "f", b"a\tb\n")
    code = (
        "import sys; from inlink.sources.recognise import recognise; import inlink.sources.write\n"
        f"recognise({str(path)!r}); print([m for m in ('numba', 'scipy', 'networkx') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True
    )
    assert done.stdout == "[]\n"


SLICE = "crawls/CC-MAIN-20140820021334-00006-ip-10-180-136-8.ec2.internal.warc"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("web", "bvgraph"),
        ("gr0.Harbour", "kleinberg"),
        ("links.tsv", "edgelist"),
        ("hosts.gml", "gml"),
        ("domains.graphml", "graphml"),
        ("web.warc.gz", "warc"),
        ("slice.warc", "warc"),
        ("slice.warc.wat", "wat"),
        ("later.wat", "wat"),
        ("bad.arc.gz", "arc"),
        ("quirk.warc.gz", "warc"),
        ("hosts-graph", "commoncrawl"),
        ("graphs/cnr-2000", "bvgraph"),
        ("graphs/gr0.California", "kleinberg"),
        ("graphs/wikispeedia/links.tsv", "edgelist"),
        ("graphs/polblogs.gml", "gml"),
        ("graphs/4867-gephi.graphml", "graphml"),
        ("crawls/aut-example.warc.gz", "warc"),
        (SLICE, "warc"),
        (f"{SLICE}.wat", "wat"),
        ("crawls/cc-2019-22-excerpt.wat.txt", "wat"),
        ("broken/badexample.arc.gz", "arc"),
        ("broken/clueweb-quirk.warc.gz", "warc"),
    ],
)
def test_files_as_they_are_found(data, name, wanted):
    assert recognise(data(name)) == wanted


@pytest.mark.parametrize("name", ["slice.warc.wet", f"{SLICE}.wet"])
def test_text_without_links_is_refused(data, name):
    with pytest.raises(FormatError, match="WET archives"):
        recognise(data(name))


@pytest.mark.parametrize(
    "name", ["numbered.dat", "adjacency_list", "graphs/hollins.dat", "graphs/tsap-Movies-adj_list"]
)
def test_other_forms_are_not_taken_for_edge_lists(data, name):
    with pytest.raises(InputError, match="lines have from"):
        read_source(data(name))

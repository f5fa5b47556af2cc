"""The samples in ``tests/data`` are those that ``tests/data/make.py`` makes."""

import gzip
import importlib.util
import zlib
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"


def content(path: Path) -> bytes:
    """The unpacked content of a file: not every zlib compresses to the same bytes."""
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and not path.suffix.startswith(".py"))
    return {str(path.relative_to(folder)) for path in found}


@pytest.mark.slow
def test_they_are_what_the_script_makes(tmp_path):
    spec = importlib.util.spec_from_file_location("make", DATA / "make.py")
    assert spec is not None
    assert spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    make.make(tmp_path)
    made = files(tmp_path)
    assert made == files(DATA)
    for name in sorted(made - {"cut.warc.gz", "clipped.warc.gz"}):
        assert content(tmp_path / name) == content(DATA / name), name


def test_broken_archives_are_cut_from_whole_ones():
    whole, cut = ((DATA / name).read_bytes() for name in ("web.warc.gz", "cut.warc.gz"))
    assert whole.startswith(cut)
    assert len(cut) < len(whole)
    reader = zlib.decompressobj(31)
    assert reader.decompress((DATA / "clipped.warc.gz").read_bytes()).startswith(b"WARC/1.0\r\n")
    assert not reader.eof


def test_they_are_small():
    sizes = [(DATA / name).stat().st_size for name in files(DATA)]
    assert max(sizes) < 300_000
    assert sum(sizes) < 1_000_000

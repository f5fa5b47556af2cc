"""The README's first commands, on the site that the README names."""

import re
from pathlib import Path

import pytest

import websites
from test_docs import run_console

pytestmark = pytest.mark.slow

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCK = re.compile(
    r"^<!-- not run: tests/docs/test_readme.py [^\n]+ -->\n^```console\n(.*?)^```$", re.M | re.S
)


def test_three_commands_find_the_pages_that_matter(tmp_path: Path):
    pytest.importorskip("scrapy")
    manual = next((site for site in websites.sites() if site.package == "postgresql-doc-15"), None)
    if manual is None:
        pytest.skip("Debian package absent: postgresql-doc-15")
    (block,) = BLOCK.findall(README)
    assert len(re.findall(r"^\$ inlink ", block, re.M)) == 3
    with websites.serve([manual]) as server:
        here = block.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
        run_console(re.sub(r"\$ inlink (?!top)", "$ inlink -q ", here), tmp_path)


def test_the_settings_and_commands_that_a_reader_looks_for_are_there():
    for text in (
        "pip install inlink",
        "make demo",
        "make test",
        "INLINK_CRAWL",
        "apt-get install postgresql-doc",
    ):
        assert text in README, text

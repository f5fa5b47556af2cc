"""The performance pages show the stored figures, and the commit at which each was measured."""

from pathlib import Path

import pytest

from bench import tables

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("performance*.md"))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "docs" / "scale.md"], ids=lambda page: page.name)
def test_tables_are_those_of_the_results(page: Path):
    text = page.read_text()
    assert tables.BLOCK.search(text)
    assert text == tables.in_page(text, tables.tables()), (
        "The figures, or the files that they time, have changed: run `python -m bench tables --docs`."
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_section_with_a_table_says_at_which_commit_it_was_measured(page: Path):
    for section in page.read_text().split("\n#")[1:]:
        if "\n| " in section and "Where another program is better" not in section:
            assert tables.STAMP.search(section), section.splitlines()[0]

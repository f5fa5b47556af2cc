"""The tables in the docs that are made from the code; ``python tests/settingsdocs.py`` writes them anew."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from inlink.base.declare import Parameter, parameters_of
from inlink.crawl.settings import SpiderSettings
from inlink.frontier.settings import GROUPS, TABLE, Settings
from inlink.store.format import STATES
from inlink.store.life import MOVES

DOCS = Path(__file__).parents[1] / "docs"
MARKED = re.compile(r"(<!-- (?:settings|table): (\w+) -->\n).*?(<!-- end of (?:settings|table) -->)", re.S)


def default(row: Parameter) -> str:
    if row.default is None:
        return f"None ({row.none})"
    if row.name in GROUPS:
        return ""
    return f"`{row.default!r}`".replace("'", '"')


def values(row: Parameter) -> str:
    """The values that a setting takes, except for its choices, which have a table of their own."""
    said = row.meaning.removeprefix("'host-diverse'") if row.choices else row.meaning
    if row.name == "policy":
        said = "a [policy](#the-order), or module:Class of your own"
    return said.replace("|", "\\|")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def crawl() -> str:
    return table(
        ("setting", "default", "values", "meaning"),
        (
            (f"`{name}`", default(row), values(row), row.help + " Fixed once the crawl is made." * row.fixed)
            for name, row in TABLE.items()
        ),
    )


def scrapy() -> str:
    def rows() -> Iterator[tuple[str, str, str]]:
        for group in (SpiderSettings, Settings):
            for name, row in parameters_of(group).items():
                yield f"`INLINK_{name.upper()}`", default(row), row.help

    return table(("setting", "default", "meaning"), rows())


def options() -> str:
    return table(
        ("option", "setting", "meaning"),
        ((f"`{row.option}`", f"`{name}`", row.help) for name, row in TABLE.items() if row.option),
    )


def life() -> str:
    states = (*STATES, "`crawled` if the page has a visit, else `discovered`")

    def rows() -> Iterator[tuple[str, ...]]:
        for move in MOVES:
            sources = ", ".join(STATES[state] for state in move.sources) or "–"
            if len(move.sources) == len(STATES) - 1:
                sources = "any but merged"
            yield move.event, sources, states[move.target], move.writer, move.counters or "–"

    return table(("event", "from", "to", "by", "failures and losses"), rows())


TABLES = {"crawl": crawl, "scrapy": scrapy, "options": options, "life": life}


def written(text: str) -> str:
    """A page with its tables made anew."""
    return MARKED.sub(lambda found: found[1] + "\n" + TABLES[found[2]]() + "\n" + found[3], text)


if __name__ == "__main__":
    for page in DOCS.glob("*.md"):
        page.write_text(written(page.read_text()))

"""Text for people: names, counted nouns, and small HTML tables for notebooks, with every cell escaped."""

from collections.abc import Iterable, Sequence

# Maximum number of characters of a cell.
_LIMIT = 200


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun, whose plural ends with s unless it is given: ``1 page``, ``1,000 pages``."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def printable(name: object) -> str:
    """A name as one line of text, with control characters and undecodable bytes escaped."""
    text = str(name)
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def html_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table with a caption, and a line of column heads if ``heads`` are given.

    Numbers are right-aligned, with commas between thousands. A cell has at most 200 characters.
    """
    parts = ["<table>", f"<caption>{_text(title)}</caption>"]
    if heads:
        parts.append("<tr>" + "".join(f"<th>{_text(head)}</th>" for head in heads) + "</tr>")
    parts.extend("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return "\n".join([*parts, "</table>"])


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f'<td style="text-align: right">{value:,}</td>'
    if isinstance(value, float):
        return f'<td style="text-align: right">{value:.6g}</td>'
    return f'<td style="text-align: left">{_text(value)}</td>'


def _text(value: object) -> str:
    # Most commands print no HTML, so they do not import this module.
    import html

    text = str(value)
    return html.escape(printable(text if len(text) <= _LIMIT else text[: _LIMIT - 1] + "…"))

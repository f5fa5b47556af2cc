"""Pack the WARC of a crawl as a WACZ, with a list of its pages, by the package ``wacz``."""

import contextlib
import io
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inlink.archives.records import records
from inlink.archives.warc import HTML_TYPE, decoded, parse_http
from inlink.base.damage import Tally
from inlink.base.extras import load
from inlink.base.folder import atomic_file
from inlink.base.unfinished import unfinished_folder
from inlink.errors import OutputError
from inlink.scoring.reading import read_page
from inlink.sources.archive import archives_in


def pack_wacz(warc: Path, wacz: Path) -> None:
    """Pack a WARC as a WACZ. An older file there is replaced when the new one is complete.

    Raises
    ------
    inlink.errors.OutputError
        If the WACZ cannot be written.
    inlink.errors.MissingExtraError
        If the package is not installed.
    """
    with warnings.catch_warnings():
        # Python warns of the source of a dependency when it compiles it for the first time.
        warnings.simplefilter("ignore")
        package = load("wacz.main", "wacz", "--wacz")
    try:
        with unfinished_folder(wacz) as scratch, atomic_file(wacz) as work:
            pages = scratch / "pages.jsonl"
            with pages.open("w", encoding="ascii") as file:
                file.writelines(f"{json.dumps(page)}\n" for page in _pages(warc))
            arguments = ["create", "--output", work, "--pages", pages, "--copy-pages", warc.absolute()]
            with contextlib.redirect_stdout(io.StringIO()) as told:
                if package.main([str(argument) for argument in arguments]):
                    raise OutputError(f"{wacz}: cannot be packed ({told.getvalue().strip()[-200:]})")
    except OutputError:
        raise
    # The package has no errors of its own.
    except Exception as error:
        raise OutputError(f"{wacz}: cannot be packed ({type(error).__name__}: {error})") from None


def _pages(warc: Path) -> Iterator[dict[str, Any]]:
    """The lines of a list of pages: HTML that was fetched with status 200, with its title if its content is there."""
    yield {"format": "json-pages-1.0", "id": "pages", "title": "Pages"}
    tally = Tally()
    for name, stream, size, originals in archives_in(warc, tally):
        for record in records(stream, tally, name=name, size=size):
            if record.kind == "response":
                originals.add(record.digest, record.offset, name)
            elif record.kind == "revisit":
                record = originals.response(record) or record
            else:
                continue
            http = parse_http(record.body)
            if http is None or http.status != b"200":
                continue
            kind = b" ".join(http.fields.get(b"content-type", [])[:1]).lower()
            if not HTML_TYPE.search(kind):
                continue
            url = record.url.decode("utf-8", "replace")
            page = {"id": str(record.offset), "url": url, "ts": record.date.decode("ascii", "replace")}
            if title := read_page(decoded(http)[0], url, content_type=kind.decode("latin-1")).title:
                page["title"] = title
            yield page

"""A wiki's pages and links in SQLite, in two tables.

``WikiLinks(link, title, crawled)`` has a row for each known article, and ``WikiGraph(fromLink, toLink)`` a row for each
link between two articles, repeats included. Both contain canonical URLs. The preset for Wikipedia is based on the
crawler that introduced these tables (C. Carter, "Random Walkers and Web Crawlers", 2019).

The rows of a page are written in one transaction, before the crawl's own log takes the page in. So every page that the
log knows as crawled is in the tables, and writing it twice after a crash changes nothing.
"""

import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from inlink.errors import OutputError

__all__ = ["WikiTables"]

_TABLES = {
    "WikiLinks": "CREATE TABLE WikiLinks (link TEXT PRIMARY KEY, title TEXT, crawled INTEGER)",
    "WikiGraph": "CREATE TABLE WikiGraph (fromLink TEXT, toLink TEXT)",
}
_COLUMNS = {"WikiLinks": ["link", "title", "crawled"], "WikiGraph": ["fromLink", "toLink"]}
# Seconds to wait for another process that is writing.
_BUSY = 5.0


class WikiTables:
    """The tables, made if they do not exist; a context manager.

    Parameters
    ----------
    path : path-like
        An SQLite database; other tables in it do not change.

    Raises
    ------
    inlink.errors.OutputError
        If the file is not a database, cannot be written, or has tables of these names with other columns.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._database = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None)
        except sqlite3.Error as error:
            raise OutputError(f"{self.path}: cannot be opened ({error}): name another file") from None
        try:
            self._database.execute("PRAGMA trusted_schema = OFF")
            # A commit does not wait for the disk, and readers do not wait for the writer.
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute("BEGIN IMMEDIATE")
            for table, columns in _COLUMNS.items():
                there = [row[1] for row in self._database.execute(f"PRAGMA table_info({table})")]
                if not there:
                    self._database.execute(_TABLES[table])
                elif there != columns:
                    raise OutputError(
                        f"{self.path}: its table {table} has the columns {', '.join(there)}, and not "
                        f"{', '.join(columns)}: name another file"
                    )
            self._database.execute("CREATE INDEX IF NOT EXISTS WikiGraphFrom ON WikiGraph (fromLink)")
            self._database.execute("COMMIT")
        except BaseException as error:
            self._database.close()
            if isinstance(error, sqlite3.Error):
                raise OutputError(f"{self.path}: cannot be written ({error}): name another file") from None
            raise

    def crawled(self, addresses: Iterable[tuple[str, str]], links: Iterable[tuple[str, str]]) -> None:
        """Write a page.

        Parameters
        ----------
        addresses : iterable of (str, str)
            The URLs of the page, each with its title. If the page was requested by an alias, the alias is among them
            and gets the same links.
        links : iterable of (str, str)
            The URL and the title of the target of each link, repeats included. They replace those of an earlier visit.

        Raises
        ------
        inlink.errors.OutputError
            If the database cannot be written. Then no row of the page is in the tables.
        """
        known, run = list(links), self._database.execute
        try:
            run("BEGIN IMMEDIATE")
            for url, title in addresses:
                run(
                    "INSERT INTO WikiLinks VALUES (?, ?, 1) ON CONFLICT (link) DO UPDATE SET crawled = 1",
                    (url, title),
                )
                run("DELETE FROM WikiGraph WHERE fromLink = ?", (url,))
                self._database.executemany(
                    "INSERT INTO WikiGraph VALUES (?, ?)", [(url, target) for target, _ in known]
                )
            self._database.executemany("INSERT OR IGNORE INTO WikiLinks VALUES (?, ?, 0)", known)
            run("COMMIT")
        except sqlite3.Error as error:
            if self._database.in_transaction:
                run("ROLLBACK")
            raise OutputError(
                f"{self.path}: cannot be written ({error}): free some space, and run the command again"
            ) from None

    def close(self) -> None:
        """Merge the write-ahead log into the database file, and close it."""
        try:
            self._database.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error:
            # Another process reads the database. It stays complete as it is.
            pass
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

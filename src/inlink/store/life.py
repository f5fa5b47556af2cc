"""The life of a page: its states, and the events that move it from one state to another.

:data:`MOVES` has a row for each event that moves pages. The kernel ``step`` in ``store/kernels/fold.py`` makes these
moves when it folds the log, whatever state the page is in. The code that writes an event makes sure that the page is in
one of the row's states. The tests compare both with the table, and docs/architecture.md shows it.

A *lost* page is in one of the waiting states and has losses. It waits outside the queue, and is leased alone. An answer
for a merged page goes to the page that it was merged into. An answer to a lease that has ended counts too, unless the
page was answered since, so answers move pages of all states but ``merged``.
"""

from typing import NamedTuple

from inlink.store.format import (
    CRAWLED,
    DISCOVERED,
    EXCLUDE,
    EXCLUDED,
    EXCLUDED_ONE,
    FAILED,
    FAILED_PAGE,
    GONE,
    IS_GONE,
    LEASE,
    LEASED,
    LOST,
    MERGE,
    MERGED,
    RELEASE,
    RELOAD,
    RETRIED,
    STATES,
    VISIT,
)

WAITING = (DISCOVERED, CRAWLED)
"""States of pages that wait: in the queue, for a date, or because their leases were lost."""

OPEN = (DISCOVERED, LEASED)
"""States of pages without an answer. A leased page may have an answer from before."""

GIVEN_UP = (FAILED_PAGE, GONE)
"""States of pages that could not be fetched."""

RELOADABLE = (*GIVEN_UP, EXCLUDED)
"""States of pages that an operator can let wait again."""

BACK = len(STATES)
"""As a target: the state in which the page waits again, ``crawled`` if it has a visit, else ``discovered``."""

_NOT_MERGED = (DISCOVERED, LEASED, CRAWLED, *RELOADABLE)


class Move(NamedTuple):
    """An event that moves a page.

    Attributes
    ----------
    event : str
        The event in words, for the docs.
    kind : int
        The kind of the event; 0 for an event of any kind that makes the page known.
    sources : tuple of int
        The states in which the page may be before the event.
    target : int
        The state after it, or :data:`BACK`.
    writer : str
        Who causes the event, in words.
    counters : str
        The effect on the page's failures and losses, in words.
    flags : int
        The flags of the event. The first row whose kind and flags fit an event is the event's row.
    over : bool
        Whether a loss is the last one.
    """

    event: str
    kind: int
    sources: tuple[int, ...]
    target: int
    writer: str
    counters: str = ""
    flags: int = 0
    over: bool = False


_HANDED_OUT = (*WAITING, LEASED, *GIVEN_UP)
_FAILED = "failures + 1, losses = 0"
MOVES = (
    Move("URL becomes known", 0, (), DISCOVERED, "seeds, links, redirects"),
    Move("lease", LEASE, _HANDED_OUT, LEASED, "the crawl if the page waits, redirects"),
    Move("visit", VISIT, _NOT_MERGED, CRAWLED, "spiders", "failures = losses = 0"),
    Move("failure: gone", FAILED, _NOT_MERGED, GONE, "spiders", _FAILED, IS_GONE),
    Move("failure: excluded", FAILED, _NOT_MERGED, EXCLUDED, "spiders", _FAILED, EXCLUDED_ONE),
    Move("failure: to be retried", FAILED, _NOT_MERGED, BACK, "spiders", _FAILED, RETRIED),
    Move("failure", FAILED, _NOT_MERGED, FAILED_PAGE, "spiders, the last loss", _FAILED),
    Move("release", RELEASE, (LEASED,), BACK, "spiders, operators"),
    Move("last loss", LOST, (LEASED,), FAILED_PAGE, "expired leases and sessions", "losses + 1", over=True),
    Move("loss", LOST, (LEASED,), BACK, "expired leases and sessions", "losses + 1"),
    Move("reload", RELOAD, RELOADABLE, BACK, "operators, rules", "losses = 0, failures = 0 without a visit"),
    Move("exclusion", EXCLUDE, _HANDED_OUT, EXCLUDED, "rules, operators, repairs (from any state)"),
    Move("merge", MERGE, _NOT_MERGED, MERGED, "redirects, canonical links"),
)
"""All events that move pages."""

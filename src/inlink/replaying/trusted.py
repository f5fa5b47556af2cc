"""The setting ``trust`` in a replay: the trusted pages of the web that is replayed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from inlink.base.arrays import Float64Array, UInt32Array
from inlink.errors import InputError
from inlink.factors.trust import read_trust
from inlink.replaying.web import Web

__all__ = ["TrustedPages", "trusted_in", "trusted_settings"]


class TrustedPages(NamedTuple):
    """Trusted pages of a web, uint32[k], increasing, and their weights, float64[k]."""

    pages: UInt32Array
    weights: Float64Array


def trusted_in(web: Web, path: str | None) -> TrustedPages | None:
    """Read a file of trusted pages; return those that the web has, or None if there is no file.

    Parameters
    ----------
    web : Web
        The web.
    path : str or None
        See :func:`inlink.factors.trust.read_trust`.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be used, or names no page of the web.
    """
    if path is None:
        return None
    weights = read_trust(path, web.url_rules, Counter())
    pages = [page for page, url in enumerate(web.urls) if url in weights]
    if not pages:
        raise InputError(
            f"trust: {path} names no page of {web.name}: name URLs of its pages, such as {web.urls[0]}"
        )
    return TrustedPages(np.array(pages, np.uint32), np.array([weights[web.urls[page]] for page in pages]))


@contextmanager
def trusted_settings(
    web: Web, settings: Mapping[str, Any], trusted: TrustedPages | None
) -> Iterator[dict[str, Any]]:
    """Yield the settings for a replay on one web. Their ``trust`` names a temporary file, which has its pages only."""
    if trusted is None:
        yield dict(settings)
        return
    with TemporaryDirectory(prefix="inlink-replay-") as folder:
        file = Path(folder) / "trust.txt"
        rows = zip(trusted.pages.tolist(), trusted.weights.tolist(), strict=True)
        file.write_text("".join(f"{web.urls[page]}\t{weight!r}\n" for page, weight in rows), "utf-8")
        yield {**settings, "trust": str(file)}

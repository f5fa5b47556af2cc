"""A page's links as they come from a spider, made into lines of canonical URLs."""

from collections.abc import Iterable, MutableMapping

import numpy as np
import numpy.typing as npt

from inlink.store.kernels.frames import encode_links
from inlink.urls.canonical import MAX_LENGTH, Base, UrlRules
from inlink.urls.hosts import registered_domain
from inlink.urls.kernels import CLASSES, plain_lines

__all__ = ["Link", "coded", "same_domain", "to_lines"]

Link = str | tuple[str, float]
F32 = npt.NDArray[np.float32]


def to_lines(
    links: Iterable[Link],
    page_url: str | None,
    rules: UrlRules | None,
    refused: MutableMapping[str, int],
    *,
    canonical: bool = False,
) -> tuple[bytes, int, F32]:
    """Links in canonical form, one a line.

    Parameters
    ----------
    links : iterable of str or (str, float)
    page_url : str or None
        What relative links are resolved against.
    rules : UrlRules or None
    refused : mutable mapping of str to int
        Counts what is refused, by reason.
    canonical : bool
        They are in canonical form already.

    Returns
    -------
    lines : bytes
        A newline behind each.
    count : int
        How many.
    scores : float32[count] or float32[0]
        Empty where none has one; 0 for those that have none.
    """
    given = list(links)
    scores = np.empty(0, np.float32)
    hrefs: list[str] = given  # type: ignore[assignment]
    try:
        text = "\n".join(hrefs)  # fails where one has a score
    except TypeError:
        pairs = [(one, 0.0) if isinstance(one, str) else one for one in given]
        hrefs = [href for href, _ in pairs]
        scores = np.nan_to_num(np.array([score for _, score in pairs], np.float32))
        text = "\n".join(hrefs)
    count = len(hrefs)
    if not count:
        return b"", 0, scores
    lines = text.encode("utf-8", "surrogatepass") + b"\n"
    if canonical and lines.count(b"\n") == count:
        return lines, count, scores
    plain = np.empty(count, np.bool_)
    if rules is None and plain_lines(
        np.frombuffer(lines, np.uint8), np.uint64(count), np.uint64(MAX_LENGTH), CLASSES, plain
    ):
        return lines, count, scores  # nearly always, where a link extractor has made them absolute
    base = Base(page_url or "about:blank", rules=rules)
    if not len(scores):
        forms = base.canonical_links(hrefs, refused)
    else:
        forms, kept = [], []
        for k, href in enumerate(hrefs):
            found = base.canonical_links([href], refused)
            forms += found
            kept += [k] * len(found)
        scores = scores[kept]
    return ("\n".join(forms) + "\n").encode("ascii") if forms else b"", len(forms), scores


def coded(pages: npt.NDArray[np.uint32], scores: F32) -> tuple[int, bytes]:
    """Pages and their scores as a frame holds them, and how many; sorts both in place, each page once."""
    out = np.empty(5 * len(pages) + 4 * len(scores), np.uint8)
    count, size = encode_links(pages, scores, out)
    return int(count), out[: int(size)].tobytes()


def same_domain(one: str, other: str) -> bool:
    """Whether two canonical URLs have the same host or registered domain."""
    hosts = [url.split("/", 3)[2].partition(":")[0] for url in (one, other)]
    domains = [registered_domain(host) for host in hosts]
    return hosts[0] == hosts[1] or (domains[0] is not None and domains[0] == domains[1])

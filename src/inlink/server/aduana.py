"""The two endpoints of Aduana's server, for spiders that have its client.

They work on the server's only crawl, in one session that never ends because of silence. An answer names its page by the
URL. If this session holds a lease on the page, the answer ends that lease. Without a lease, an answer for a page that
was crawled before does not count, so a repeated answer changes nothing. An unknown URL is added to the crawl.
"""

from typing import Any

import msgspec

from inlink.base.decoding import decoded
from inlink.crawl.crawl import Crawl
from inlink.crawl.links import checked_score, split_links
from inlink.errors import ParameterError, UnknownNodeError
from inlink.protocol import AnyLink, Crawled
from inlink.server.bodies import BodyError
from inlink.server.endpoints import Endpoints, Plain, Raw
from inlink.server.keeper import Keeper
from inlink.server.site import Site
from inlink.server.spiders import MOST_TASKS, check_links

ENDPOINTS = Endpoints()

OWNER = "aduana"
"""The owner of the session in which these endpoints work."""


class AduanaPage(msgspec.Struct, frozen=True):
    """A page that Aduana's client crawled. Other fields are ignored, as in Aduana."""

    url: str
    score: float = 0.0
    links: list[AnyLink] = []
    content_hash: str | int | None = None


class Number(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of requests, at most 1,000."""

    n: int = 10


@ENDPOINTS.add("POST", "/crawled", "spider", 201)
async def aduana_crawled(site: Site, raw: Raw) -> Plain:
    """Take in a page, as Aduana's server does: a JSON object with url, score, links and content_hash."""
    try:
        page = decoded(raw.body, AduanaPage)
        check_links(page.links, "links", "a page has")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ParameterError) as error:
        raise BodyError(400, f"the body is not a page of Aduana's client: {error}") from None
    await _only(site).change(lambda opened: _take_in(opened, page))
    return Plain(b"", b"text/plain", 201)


@ENDPOINTS.add("GET", "/request", "spider")
async def aduana_request(site: Site, query: Number) -> list[str]:
    """Hand out URLs to fetch, as Aduana's server does."""
    if not 0 <= query.n <= MOST_TASKS:
        raise ParameterError(f"`n` must be from 0 to {MOST_TASKS:,}; got {query.n}")

    def work(opened: Crawl) -> list[str]:
        return [task.given or task.url for task in opened.desk.next(_session(opened), query.n).tasks]

    return await _only(site).change(work)


def _only(site: Site) -> Keeper:
    if len(site.keepers) != 1:
        raise UnknownNodeError(
            f"Aduana's endpoints need a server with one crawl; this server has {', '.join(site.keepers)}"
        )
    return next(iter(site.keepers.values()))


def _session(opened: Crawl) -> int:
    return opened.desk.hello(OWNER, rejoin=True).number


def _hash(value: str | int | None) -> bytes:
    """Return a content hash as bytes. Aduana's own hashes are 64-bit integers."""
    if isinstance(value, int):
        return (value % 2**64).to_bytes(8, "little")
    return (value or "").encode("utf-8", "surrogatepass")


def _take_in(opened: Crawl, page: AduanaPage) -> None:
    session, content = _session(opened), _hash(page.content_hash)
    lease = opened.desk.lease_on(session, page.url)
    if lease is not None:
        opened.desk.report(session, [Crawled(lease, page.links, page.score, content)])
        return
    # An unknown URL is seeded, so the other values are checked before.
    checked_score(page.score)
    split_links(page.links)
    known = opened.page(page.url)
    if known is None:
        before: Any = opened.refused.copy()
        if not opened.seed([page.url]):
            reasons = ", ".join(opened.refused - before)
            raise BodyError(400, f"{page.url[:300]!r} is refused: {reasons}")
    elif known.state == "crawled":
        return
    opened.crawled(page.url, page.links, score=page.score, content_hash=content)

"""A small generated web on 127.0.0.x: ``python demo/smallweb.py`` serves it and prints its seeds.

It has what real webs have: hosts of very unequal sizes, topics that link to themselves, anchors that tell nothing,
hubs, a link farm, endless calendars and session ids, slow and failing hosts, redirects, odd encodings. And it knows
the truth about itself, so that a crawl of it can be checked and measured: see :class:`SmallWeb`. Linux
answers on all of 127.0.0.0/8; other systems need the addresses set up first.
"""

import argparse
import hashlib
import html
import posixpath
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Self
from urllib.parse import urlsplit

from webplan import COUNTED, ENCODED, Link, Node, Place, native, plan
from webserver import Reply, Request, WebServer
from words import DESCRIPTIONS, NATIVE, TOPICS, anchor, paragraph, sentence

__all__ = ["SmallWeb"]

SLOW, HANG = (
    0.1,
    1.0,
)  # seconds: the slow host's response time, and the time after which the failing host hangs up
CRAWL_DELAY = 0.2  # seconds, in the robots.txt of the polite host
RETRY_AFTER = 1  # seconds, of 429 and 503
HUGE = 2_000_000  # characters
ITEMS = 12  # in the shop
ONCE = {"throttled": 429, "busy": 503, "flaky": 500}  # the status of the first answer
_MONTH = re.compile(r"/cal/(\d{1,9})/(\d{1,2})(?:\?d=(\d{1,2}))?")
_SHOP = re.compile(r"/shop/(?:item/(\d{1,3}))?(?:\?sid=(\w{1,40}))?")


class SmallWeb:
    """A web and the truth about it; served for the time of a ``with`` block, or by :meth:`apart`.

    Parameters
    ----------
    pages : int
        Pages that a crawl must fetch, exactly.
    hosts : int
        Addresses from 127.0.0.1 on.
    seed : int
        Of all that is random: the same numbers give the same bytes in any process.
    port : int
        0 is any that is free, known once it is served.
    log : Path or None
        Where requests are written as well.

    Attributes
    ----------
    topic, description : str
        What a focused crawl looks for: the name, and words for a scorer.
    """

    def __init__(
        self, pages: int = 2000, hosts: int = 12, seed: int = 1, *, port: int = 0, log: Path | None = None
    ) -> None:
        self.nodes, self.roles = plan(pages, hosts, seed)
        self.seed, self.hosts = seed, [f"127.0.0.{number + 1}" for number in range(hosts)]
        self.topic = next(iter(TOPICS))
        self.description = DESCRIPTIONS[self.topic]
        handlers = {host: partial(self._answer, number) for number, host in enumerate(self.hosts)}
        self.server = WebServer(handlers, port, log)
        self._numbers = {host: number for number, host in enumerate(self.hosts)}
        self._asked: Counter[Place] = Counter()

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.__exit__(*error)  # type: ignore[arg-type]

    @classmethod
    @contextmanager
    def apart(cls, log: Path, pages: int = 2000, hosts: int = 12, seed: int = 1) -> Iterator[Self]:
        """Serve in another process, which writes its log to a file; ``webserver.read_log(log)`` reads it."""
        shape = [f"--{name}={value}" for name, value in (("pages", pages), ("hosts", hosts), ("seed", seed))]
        command = [sys.executable, __file__, *shape, f"--log={log}"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            first = process.stdout.readline().split()
            if not first:
                raise RuntimeError(f"{' '.join(command)}: it did not start")
            try:
                yield cls(pages, hosts, seed, port=urlsplit(first[0]).port or 0)
            finally:
                process.stdin.close()  # this ends the process

    # -- the truth ------------------------------------------------------------------------------------------------

    @property
    def log(self) -> list[Request]:
        """All requests that were served in this process."""
        return self.server.log

    def url(self, place: Place) -> str:
        """The URL of a place."""
        if not self.server.port:
            raise RuntimeError("this web has no port yet: serve it, or give it one")
        return f"http://{self.hosts[place[0]]}:{self.server.port}{place[1]}"

    def node(self, url: str) -> Node | None:
        """The plan's node for a URL; None inside traps and for unknown URLs."""
        place = self._place(url)
        return None if place is None else self.nodes.get(place)

    def seeds(self) -> list[str]:
        """Two home pages from which every counted page can be reached."""
        return [self.url((self.roles.portal, "/")), self.url((self.roles.events, "/"))]

    def pages(self) -> set[str]:
        """The URLs that a crawl should fetch, in canonical form.

        They answer 200 with HTML, are outside traps, robots.txt allows them, and robots may follow the links to them.
        """
        return {self.url(node.place) for node in self.nodes.values() if node.kind in COUNTED}

    def relevant(self) -> set[str]:
        """The pages of :meth:`pages` that are about :attr:`topic`."""
        return {url for url in self.pages() if self.topic_of(url) == self.topic}

    def of_kind(self, kind: str) -> list[str]:
        """All URLs of one kind of :data:`webplan.KINDS`; for traps, the entrance."""
        return [self.url(node.place) for node in self.nodes.values() if node.kind == kind]

    def topic_of(self, url: str) -> str | None:
        """The topic of a page; "spam" for the link farm, None if there is no topic or no page."""
        node = self.node(url)
        return node.topic or None if node else None

    def kind_of(self, url: str) -> str | None:
        """The kind of a URL, inside a trap the trap's; None if the URL is not part of this web or answers 404."""
        place = self._place(url)
        if place is None:
            return None
        if place in self.nodes:
            return self.nodes[place].kind
        return self._trap(place)[0]

    def links(self, url: str) -> list[str]:
        """The targets of a page's links as absolute URLs, each once, in their order on the page."""
        place = self._place(url)
        if place is None:
            return []
        node = self.nodes.get(place)
        links = node.links if node and self._trap(place)[0] is None else self._trap(place)[1]
        return list(dict.fromkeys(self.url(link.place) for link in links))

    def marker(self, url: str) -> str:
        """The sentence in another language on an "encoded" page; "" if it cannot be decoded."""
        node = self.node(url)
        return native(node.detail) if node and node.kind == "encoded" else ""

    def _place(self, url: str) -> Place | None:
        parts = urlsplit(url)
        host = self._numbers.get(parts.hostname or "")
        if host is None or parts.port != self.server.port:
            return None
        return host, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def _trap(self, place: Place) -> tuple[str | None, list[Link]]:
        """The trap that contains a place, and the links there; None outside traps."""
        host, path = place
        if host == self.roles.events and (month := _MONTH.fullmatch(path)):
            year, number = int(month[1]), int(month[2])
            paths = [f"/cal/{year}/{number}?d={day}" for day in range(1, 29)]
            for later in (-1, 1):
                months = year * 12 + number - 1 + later
                paths.append(f"/cal/{months // 12}/{months % 12 + 1}")
            return "calendar", [Link((host, path)) for path in paths]
        if host == self.roles.shop and (page := _SHOP.fullmatch(path)):
            token = hashlib.sha256(f"{self.seed}{path}".encode()).hexdigest()[:12]
            names = ["", *(f"item/{item}" for item in range(ITEMS))]
            if page[1] is None or int(page[1]) < ITEMS:
                return "session", [Link((host, f"/shop/{name}?sid={token}")) for name in names]
        return None, []

    # -- what is served ---------------------------------------------------------------------------------------------

    def _answer(self, host: int, path: str, _: Mapping[str, str]) -> Reply:
        wait = SLOW if host == self.roles.slow else 0.0
        if path == "/robots.txt":
            return self._robots(host, wait)
        if path == "/sitemap.xml" and host == self.roles.portal:
            return Reply(body=self._sitemap(), content_type="application/xml")
        trap, links = self._trap((host, path))
        if trap:
            return Reply(body=self._trap_page(trap, path, links))
        node = self.nodes.get((host, path))
        if node is None or node.kind == "gone":
            status = 410 if node and node.detail % 3 == 2 else 404
            return Reply(status, b"<title>Not found</title><p>There is nothing here.", wait=wait)
        return self._node(node, wait)

    def _node(self, node: Node, wait: float) -> Reply:
        if node.kind in ONCE:
            self._asked[node.place] += 1
            if self._asked[node.place] == 1:
                later = () if node.kind == "flaky" else (("Retry-After", str(RETRY_AFTER)),)
                return Reply(ONCE[node.kind], b"<p>Not now.", headers=later)
        if node.kind == "broken":
            return Reply(500, b"<p>It broke.")
        if node.kind == "hang":
            return Reply(wait=HANG, hang_up=True)
        if node.kind in ("redirect", "loop"):
            assert node.target is not None
            same = node.target[0] == node.host  # within a host, as a path
            return Reply(
                node.detail,
                headers=(("Location", node.target[1] if same else self.url(node.target)),),
                wait=wait,
            )
        if node.kind == "binary":
            body = b"%PDF-1.4\n%" + Random(f"{self.seed}{node.path}").randbytes(20_000)
            declared = {0: "application/pdf", 1: "application/octet-stream"}.get(node.detail, "text/html")
            return Reply(body=body, content_type=declared)
        if node.kind == "empty":
            return Reply(body=b"<title></title><img src=/dot.png>" if node.detail else b"", wait=wait)
        if node.kind == "encoded":
            codec, header, _, _ = ENCODED[node.detail]
            return Reply(
                body=self.html(node).encode(codec),
                content_type=f"text/html; charset={header}" if header else "text/html",
            )
        original = self.nodes[node.target] if node.kind == "twin" and node.target else node
        return Reply(body=self.html(original).encode(), wait=wait)

    def _robots(self, host: int, wait: float) -> Reply:
        if host == self.roles.shop:
            return Reply(404, b"<p>No robots.txt.", wait=wait)
        if host == self.roles.unsure:
            return Reply(500, b"<p>It broke.")
        rules = {
            self.roles.portal: f"Allow: /\nSitemap: {self.url((host, '/sitemap.xml'))}",
            self.roles.polite: f"Crawl-delay: {CRAWL_DELAY}\nDisallow: /private/",
        }.get(host, "Disallow:")
        return Reply(body=f"User-agent: *\n{rules}\n".encode(), content_type="text/plain", wait=wait)

    def _sitemap(self) -> bytes:
        rows = "".join(
            f"<url><loc>{html.escape(self.url(node.place))}</loc><lastmod>2026-01-{1 + k % 28:02}</lastmod>"
            f"<priority>{0.8 if node.kind == 'hub' else 0.5}</priority></url>\n"
            for k, node in enumerate(self.nodes.values())
            if node.host == self.roles.portal and (node.kind in COUNTED or node.kind == "orphan")
        )
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{space}">\n{rows}</urlset>\n'.encode()

    def _trap_page(self, trap: str, path: str, links: list[Link]) -> bytes:
        name = re.sub(r"\?sid=.*", "", path)
        rows = "".join(
            f'<li><a href="{html.escape(link.place[1])}">{number}</a>' for number, link in enumerate(links)
        )
        text = "No events on this day." if trap == "calendar" else "A fine jar, in stock."
        return f"<!doctype html><title>{name}</title><h1>{name}</h1><p>{text}<ul>{rows}</ul>".encode()

    def html(self, node: Node) -> str:
        """The text of a page, before it is encoded."""
        rng = Random(f"{self.seed}/{node.host}{node.path.partition('?')[0]}")
        head = [f"<title>{html.escape(node.title)}</title>"]
        body = [f"<h1>{html.escape(node.title)}</h1>"]
        if node.kind in ("noindex", "nofollow"):
            head.append(f'<meta name="robots" content="{node.kind}">')
        if node.kind == "alias" and node.target:
            head.append(f'<link rel="canonical" href="{html.escape(node.target[1])}">')
        if node.kind == "encoded":
            _, _, meta, language = ENCODED[node.detail]
            head += [f'<meta charset="{meta}">'] if meta else []
            body.append(f"<p>{NATIVE[language or 'fr']}.")
        body.append(f"<p>{paragraph(rng, node.topic, rng.randint(3, 10))}")
        listed = node.kind in ("hub", "huge") or node.path == "/"
        for link in node.links:
            target = self.nodes.get(link.place)
            topic, heading = (target.topic, target.title) if target else ("", "")
            text = anchor(rng, heading or link.place[1], topic)
            rel = ' rel="nofollow"' if link.nofollow else ""
            tag = f'<a href="{html.escape(self._href(rng, node, link.place))}"{rel}>{html.escape(text)}</a>'
            if listed:
                body.append(f"<li>{tag}")
                continue
            about = TOPICS.get(topic) if rng.random() < 0.5 else None
            before = sentence(rng, about) if about else paragraph(rng, node.topic, 1)
            body.append(f"<p>{before} {tag} {paragraph(rng, node.topic, 1)}")
        if node.kind == "huge":
            size = sum(map(len, body))
            some = paragraph(rng, node.topic, 200)
            body.append(f"<p>{(some * ((HUGE - size) // len(some) + 1))[: HUGE - size]}")
        body.append(f"<footer><p>Host {node.host + 1} of the small web</footer>")
        lines = ["<!doctype html>", f"<html><head>{''.join(head)}</head><body>", *body, "</body></html>\n"]
        return "\n".join(lines)

    def _href(self, rng: Random, node: Node, place: Place) -> str:
        """A link as it is written on a page: absolute, a path, or relative to the page's folder."""
        host, path = place
        chance = rng.random()
        if host != node.host or node.absolute or chance < 0.2:
            return self.url(place)
        if chance < 0.25:
            return f"{path}#top"
        folder = posixpath.dirname(node.path.partition("?")[0])
        if chance < 0.6 and posixpath.dirname(path.partition("?")[0]) == folder != "/":
            return path[len(folder) + 1 :] or "./"
        return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Serve a small web and print its seeds; it ends when its standard input does (Ctrl-D)."
    )
    parser.add_argument("--port", type=int, default=0, help="the same on all hosts; 0 is any that is free")
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--hosts", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, help="file for the requests, a JSON array a line")
    given = parser.parse_args()
    try:
        web = SmallWeb(given.pages, given.hosts, given.seed, port=given.port, log=given.log)
        with web:
            print(*web.seeds(), flush=True)
            sys.stdin.read()
    except (ValueError, OSError) as error:
        sys.exit(f"smallweb: {error}")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()

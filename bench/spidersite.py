"""A site for spiders: 20 hosts on loopback, pages that are made when they are asked for, the same on every machine.

Every page has 16 children that no page but it introduces, and links to 24 pages at most that whoever came to it has met
before: the first page and its menu, its parent, its siblings, its parent's parent and siblings. So in whatever order a
spider goes, 40 % of the links are new, and after n pages it knows 16 n + 1. Three children of four are on their
parent's host.

The server speaks HTTP/1.1 with connections kept open, and nothing that a spider of this benchmark does not ask for. It
is a process of its own: :class:`Site` starts it, and it follows commands on its standard input, one a line, and answers
each with a line of JSON:

    forget          drop all pages but the first, and all counts
    mark            note from now on when the first request comes, and count pages
    wait PAGES MOST answer when so many pages have been sent since the mark, or after MOST seconds
    told            figures: see :func:`Counts.summary`; ``left`` are pages that somebody may know and nobody asked for
"""

import asyncio
import hashlib
import json
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self, cast

__all__ = ["CHILDREN", "Manual", "Page", "Pages", "Site", "speed"]

HOSTS = 20
CHILDREN = 16
LINKS = 40
# Number of 256 children that are on their parent's host.
LOCAL = 192
# Bytes of a page, about.
SIZE = 10_000
_TEXT = """
harbour meadow lantern copper willow anchor garden pepper saddle timber velvet basket candle marble orchard pebble
quarry ribbon silver thistle walnut barley cobalt dragon ember falcon ginger hazel island jasmine kettle ladder magnet
needle oyster pillow quiver raven summit tunnel valley window yellow zephyr
"""
WORDS = _TEXT.split()
ROBOTS = "User-agent: *\n" + "".join(f"Disallow: /{word}/{word}/\n" for word in WORDS[:20])


def _hashed(number: int, purpose: bytes) -> bytes:
    return hashlib.blake2b(number.to_bytes(8), digest_size=16, person=purpose).digest()


def _sentence(number: int) -> str:
    words = [WORDS[one % len(WORDS)] for one in _hashed(number, b"sentence")]
    return f"{' '.join(words).capitalize()}."


SENTENCES = [_sentence(number) for number in range(256)]


@dataclass(slots=True, eq=False)
class Page:
    """A page; ``number`` is of 64 bits and follows from its ancestors."""

    number: int
    url: str
    parent: "Page | None"
    depth: int
    children: list["Page"] = field(default_factory=list)


class Pages:
    """The pages that somebody may know of, made with the page that introduces them.

    Parameters
    ----------
    port : int
        Of all hosts.
    deepest : int or None
        Pages that deep have no children: with it, the site has an end.
    """

    def __init__(self, port: int, deepest: int | None = None) -> None:
        self.port, self.deepest = port, deepest
        self._by_target: dict[str, Page] = {}
        self.root = self._page(0, 0, None)

    def _page(self, number: int, host: int, parent: Page | None) -> Page:
        first, second, third = (WORDS[one % len(WORDS)] for one in number.to_bytes(8)[:3])
        target = f"/{first}/{second}-{third}-{number:016x}.html" if parent else "/"
        page = Page(
            number,
            f"http://127.0.0.{host + 1}:{self.port}{target}",
            parent,
            parent.depth + 1 if parent else 0,
        )
        self._by_target[target] = page
        return page

    @property
    def known(self) -> int:
        """Number of pages that a page which was sent links to, the first page included."""
        return len(self._by_target)

    def find(self, target: str) -> Page | None:
        """The page of a path, if one that was sent has a link to it."""
        return self._by_target.get(target)

    def children(self, page: Page) -> list[Page]:
        """The pages that a page introduces."""
        if not page.children and (self.deepest is None or page.depth < self.deepest):
            here = int(page.url.split(":", 2)[1].rpartition(".")[2]) - 1
            for child in range(CHILDREN):
                drawn = _hashed((page.number + child) % 2**64, b"child")
                host = here if drawn[8] < LOCAL else drawn[9] % HOSTS
                page.children.append(self._page(int.from_bytes(drawn[:8]), host, page))
        return page.children

    def links(self, page: Page) -> list[Page]:
        """The links of a page, its children last."""
        old: dict[Page, None] = dict.fromkeys([self.root, *self.children(self.root)[:6]])
        parent = page.parent
        if parent is not None:
            old |= dict.fromkeys([parent, *parent.children[:9]])
            above = parent.parent
            if above is not None:
                old |= dict.fromkeys([above, *above.children])
        old.pop(page, None)
        # The first page's menu is its children.
        for child in (children := self.children(page)):
            old.pop(child, None)
        return [*list(old)[: LINKS - CHILDREN], *children]

    def html(self, page: Page) -> str:
        """A page as it is sent."""
        links = self.links(page)
        drawn = _hashed(page.number, b"text")
        name = page.url.rpartition("/")[2].partition(".")[0].rpartition("-")[0] or "start"
        menu = "\n".join(
            f'<li class="item"><a href="{one.url}" title="{SENTENCES[one.number % 97]}">{_name(one)}</a></li>'
            for one in links[:8]
        )
        parts = []
        for number, one in enumerate(links[8:]):
            text = SENTENCES[(drawn[number % 16] + 3 * number) % 256]
            parts.append(
                f'<p id="p{number}">{text}\nSee <a class="link" href="{one.url}">{_name(one)}</a> for more.</p>'
            )
        head = (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f"<title>{name.replace('-', ' ')} {page.number:x}</title>\n"
            f'<meta name="description" content="{SENTENCES[drawn[0]]}">\n<link rel="canonical" href="{page.url}">\n'
            '<link rel="stylesheet" href="/style.css">\n<script>var page = {"loaded": true};</script>\n</head>\n'
            f'<body>\n<nav><ul>\n{menu}\n</ul></nav>\n<main>\n<h1>{name}</h1>\n<div class="text">\n'
        )
        body = "\n".join(parts)
        left = max(SIZE - len(head) - len(body) - 80, 0) // 100
        more = "\n".join(f"<p>{SENTENCES[(drawn[1] + number) % 256]}</p>" for number in range(left))
        foot = f"</div>\n</main>\n<footer>{page.depth} steps from the start</footer>\n</body>\n</html>\n"
        return f"{head}{body}\n{more}\n{foot}"


def _name(page: Page) -> str:
    return page.url.rpartition("/")[2][:-22].replace("-", " ") or "start"


class Manual:
    """The pages of a folder of HTML. A share of the requests is answered with 503, the same ones in each crawl.

    Parameters
    ----------
    folder : Path
        Its ``index.html`` is the first page.
    busy : float
        The share.
    """

    def __init__(self, folder: Path, busy: float) -> None:
        files = {f"/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*.html")}
        self._files = {target: path.read_bytes() for target, path in files.items()}
        self._files["/"] = self._files["/index.html"]
        self.known, self._busy, self._asked = len(self._files), busy, Counter[str]()

    def find(self, target: str) -> str | None:
        """Return the path itself, if the folder has this page."""
        return target if target in self._files else None

    def html(self, target: str) -> bytes | None:
        """A page as it is sent; None if this request is answered with 503."""
        self._asked[target] += 1
        drawn = hashlib.blake2b(f"{target} {self._asked[target]}".encode(), digest_size=4).digest()
        return None if int.from_bytes(drawn) < self._busy * 2**32 else self._files[target]


# -- the server -------------------------------------------------------------------------------------------------------


class Counts:
    """The requests since the mark, and the number of requests of each page since the last reset."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.mark()

    def mark(self) -> None:
        self.first: float | None = None
        self.last: float | None = None
        self.pages, self.robots, self.missing, self.busy = 0, 0, 0, 0
        self.cpu = time.process_time()
        self._waiting: tuple[int, asyncio.Event] | None = None

    def page(self, target: str) -> None:
        self.sent[target] += 1
        self.pages += 1
        self.last = time.monotonic()
        if self._waiting is not None and self.pages >= self._waiting[0]:
            self._waiting[1].set()

    async def wait(self, pages: int, most: float) -> None:
        self._waiting = pages, (reached := asyncio.Event())
        if self.pages < pages:
            with suppress(TimeoutError):
                await asyncio.wait_for(reached.wait(), most)

    def summary(self) -> dict[str, Any]:
        """``first`` and ``last`` are when the first request came and the last page was sent, by the system's monotonic
        clock; ``twice`` are pages sent again.
        """
        return {
            "first": self.first,
            "last": self.last,
            "pages": self.pages,
            "robots": self.robots,
            "missing": self.missing,
            "busy": self.busy,
            "different": len(self.sent),
            "twice": self.sent.total() - len(self.sent),
            "cpu": time.process_time() - self.cpu,
        }


class _Server:
    """All connections' pages and counts."""

    def __init__(self, port: int, arguments: list[str]) -> None:
        self.port, self._arguments = port, arguments
        self.forget()

    def forget(self) -> None:
        self.pages: Pages | Manual
        self.counts, rest = Counts(), self._arguments
        if len(rest) == 2:
            self.pages = Manual(Path(rest[0]), float(rest[1]))
        else:
            self.pages = Pages(self.port, int(rest[0]) if rest else None)

    def answer(self, target: str) -> bytes:
        counts = self.counts
        if counts.first is None:
            counts.first = time.monotonic()
        pages: Any = self.pages
        page = pages.find(target)
        kind, status = "text/html; charset=utf-8", "200 OK"
        if page is not None:
            html = pages.html(page)
            if html is None:
                body, status = b"<title>Busy</title>", "503 Service Unavailable"
                counts.busy += 1
            else:
                body = html if isinstance(html, bytes) else html.encode()
                counts.page(target)
        elif target == "/robots.txt":
            counts.robots += 1
            body, kind = ROBOTS.encode(), "text/plain"
        else:
            counts.missing += 1
            body, status = b"<title>Not found</title>", "404 Not Found"
        head = f"HTTP/1.1 {status}\r\nServer: bench\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


class _Connection(asyncio.Protocol):
    def __init__(self, server: _Server) -> None:
        self._server, self._heard = server, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        *requests, self._heard = (self._heard + data).split(b"\r\n\r\n")
        for request in requests:
            self._transport.write(self._server.answer(request.split(b" ", 2)[1].decode("latin-1")))


def _sockets() -> list[socket.socket]:
    """A listening socket for each host, all on one port."""
    for _ in range(100):
        found = [socket.create_server(("127.0.0.1", 0), backlog=256)]
        port = found[0].getsockname()[1]
        try:
            found += [
                socket.create_server((f"127.0.0.{host + 1}", port), backlog=256) for host in range(1, HOSTS)
            ]
            return found
        # Another process has this port on one of the addresses.
        except OSError:
            for one in found:
                one.close()
    raise RuntimeError("no port is free on all hosts of the site")


async def _serve(arguments: list[str]) -> None:
    loop, sockets = asyncio.get_running_loop(), _sockets()
    server = _Server(sockets[0].getsockname()[1], arguments)
    for one in sockets:
        await loop.create_server(lambda: _Connection(server), sock=one)
    source = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(source), sys.stdin)
    answer: dict[str, Any] = {"port": server.port}
    while True:
        print(json.dumps(answer), flush=True)
        what, *rest = (await source.readline()).decode().split() or [""]
        answer = {}
        if what == "forget":
            server.forget()
        elif what == "mark":
            server.counts.mark()
        elif what == "wait":
            await server.counts.wait(int(rest[0]), float(rest[1]))
            answer = {"pages": server.counts.pages}
        elif what == "told":
            answer = server.counts.summary() | {"left": server.pages.known - len(server.counts.sent)}
        else:
            return


class Site:
    """The site's process, seen from the harness; a context manager.

    Parameters
    ----------
    *arguments : object
        ``deepest`` of :class:`Pages`, or ``folder`` and ``busy`` of :class:`Manual`.
    """

    def __init__(self, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.spidersite", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[1],
        )
        self.port: int = self._answer()["port"]
        self.url = f"http://127.0.0.1:{self.port}/"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        line = cast(IO[bytes], self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"the site ended with exit code {self._process.wait()}")
        return cast(dict[str, Any], json.loads(line))

    def tell(self, command: str) -> dict[str, Any]:
        """Give a command and wait for its answer."""
        source = cast(IO[bytes], self._process.stdin)
        source.write(command.encode() + b"\n")
        source.flush()
        return self._answer()


def speed(site: Site, requests: int = 20_000, connections: int = 16) -> float:
    """Pages a second that a site sends to a client which does nothing but read them: no spider can have more.

    It follows links as it goes, so that pages are made in the time.
    """
    return asyncio.run(_speed(site.port, requests, connections))


async def _speed(port: int, requests: int, connections: int) -> float:
    targets, left = ["/"], requests

    async def ask() -> None:
        nonlocal left
        source, sink = await asyncio.open_connection("127.0.0.1", port)
        while left > 0:
            if not targets:
                # Wait until the other spiders have found pages.
                await asyncio.sleep(0.001)
                continue
            left -= 1
            sink.write(f"GET {targets.pop()} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            head = await source.readuntil(b"\r\n\r\n")
            body = await source.readexactly(int(head.partition(b"Content-Length: ")[2].split(b"\r")[0]))
            if len(targets) < connections:
                parts = body.decode().split('class="link" href="http://')[-CHILDREN // 2 :]
                targets.extend("/" + part.partition('"')[0].partition("/")[2] for part in parts)
        sink.close()
        await sink.wait_closed()

    began = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(connections)))
    return requests / (time.perf_counter() - began)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1:]))

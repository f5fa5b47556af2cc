"""Shards of a crawl for tests: a server process for each, which can be killed and started again, and a web for them."""

import contextlib
import random
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from crawlcommand import Forked
from inlink.frontier.rules import host_of
from inlink.server.run import listening
from inlink.urls.shards import Shard
from sites import Answer, Asked, Site, html
from spiderruns import pages_of

HOSTS = 12
"""Hosts 127.0.0.1 to 127.0.0.12, so that each of three shards has some of them."""


class Shards:
    """Processes of ``inlink serve``, one for each shard; used in a ``with`` block.

    Parameters
    ----------
    folder : Path
        Shard K is the crawl in its folder ``K``.
    count : int
    *settings : str
        Settings for ``--set``.
    """

    def __init__(self, folder: Path, count: int, *settings: str) -> None:
        self.folder, self.count = folder, count
        self._settings = ["politeness.delay=0", "politeness.in_flight=8", "retry_seconds=0.05", *settings]
        self._stack = contextlib.ExitStack()
        self._processes: dict[int, Forked] = {}
        # They are kept, so that nobody else gets these ports while a shard is away.
        listeners = [self._stack.enter_context(listening("127.0.0.1", 0)) for _ in range(count)]
        self.ports = [listener.getsockname()[1] for listener in listeners]
        self.urls = [f"http://127.0.0.1:{port}/v1/crawls/{k}" for k, port in enumerate(self.ports, 1)]

    @property
    def url(self) -> str:
        """The URLs of all shards, as a spider gets them."""
        return ",".join(self.urls)

    def __enter__(self) -> Self:
        for k in range(1, self.count + 1):
            self.start(k)
        for k in range(1, self.count + 1):
            self.wait_for(k)
        return self

    def __exit__(self, *_: object) -> None:
        with self._stack:
            for process in self._processes.values():
                process.send_signal(signal.SIGTERM)
            for process in self._processes.values():
                process.wait()

    def start(self, k: int, *peers: str) -> None:
        """Start shard ``k``; by default it knows the URLs of all shards."""
        command = ["inlink", "serve", str(self.folder / str(k))]
        command += [f"--port={self.ports[k - 1]}", f"--shard={k}/{self.count}"]
        command += [f"--shard-url={url}" for url in peers or self.urls]
        command += [f"--set={setting}" for setting in self._settings]
        out = self.folder / f"server{k}.out"
        out.unlink(missing_ok=True)
        self._processes[k] = Forked(
            *command,
            cwd=self.folder,
            out=out,
            err=self.folder / f"server{k}.err",
            XDG_CONFIG_HOME=str(self.folder),
        )

    def wait_for(self, k: int) -> None:
        """Wait until shard ``k`` listens."""
        self._processes[k].wait_for_address()

    def kill(self, k: int) -> None:
        """Kill shard ``k``."""
        process = self._processes.pop(k)
        process.kill()
        process.wait()

    def pid(self, k: int) -> int:
        """The process of shard ``k``."""
        return self._processes[k].pid

    def states(self) -> Counter[str]:
        """The number of pages in each state at their owners, once all shards have ended."""
        states: Counter[str] = Counter()
        for k in range(1, self.count + 1):
            part = Shard(k, self.count)
            for url, page in pages_of(self.folder / str(k)).items():
                states[page.state] += part.owns(host_of(url))
        return +states


def crossing_web(size: int, seed: int = 1, delay: float = 0.0) -> Site:
    """A site with pages ``/0`` to ``/{size - 1}``, each on one of 12 hosts. From ``/0`` on host 1 all can be reached.

    Of the links, 30% lead to a page on another host.
    """
    dice = random.Random(seed)
    hosts = [1, *(dice.randint(1, HOSTS) for _ in range(size - 1))]
    links: list[set[int]] = [set() for _ in range(size)]

    def linked(earlier: int, page: int) -> None:
        links[earlier].add(page)

    for page in range(1, size):
        is_crossing = dice.random() < 0.3
        same = [earlier for earlier in range(page) if (hosts[earlier] != hosts[page]) == is_crossing]
        linked(dice.choice(same or range(page)), page)
        linked(page, dice.choice([other for other in range(size) if hosts[other] == hosts[page]]))

    def answer(asked: Asked) -> Answer:
        path = asked.path.strip("/")
        page = int(path) if path.isdigit() else -1
        if not 0 <= page < size or asked.host != f"127.0.0.{hosts[page]}":
            return Answer("no such page", 404)
        urls = [site.url(f"/{other}", hosts[other]) for other in sorted(links[page])]
        return html(*urls, delay=delay)

    site = Site(answer, HOSTS)
    return site


@contextlib.contextmanager
def scrapy_spider(folder: Path, name: str, where: str, start: str, **settings: object) -> Iterator[Forked]:
    """A process of a spider that follows all links; its log is the file ``NAME.log``."""
    file = folder / "walking.py"
    file.write_text("from spiderruns import Walker\n\nclass Walking(Walker):\n    name = 'walking'\n")
    given = {
        "SCHEDULER": "inlink.scrapy.Scheduler",
        "INLINK_CRAWL": where,
        "INLINK_OWNER": name,
        "TELNETCONSOLE_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "CONCURRENT_REQUESTS": 4,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
        "DOWNLOAD_DELAY": 0,
        "LOG_LEVEL": "INFO",
        **settings,
    }
    command = ["scrapy", "runspider", str(file), "-a", f"start={start}"]
    command += [part for key, value in given.items() for part in ("-s", f"{key}={value}")]
    log = folder / f"{name}.log"
    spider = Forked(*command, cwd=folder, out=log, err=log)
    try:
        yield spider
    finally:
        spider.kill()
        spider.wait()


class Proxy:
    """A way to a port of this machine that can be cut: nothing arrives any more, but no connection ends.

    Parameters
    ----------
    port : int

    Attributes
    ----------
    port : int
        The port of the way.
    """

    def __init__(self, port: int) -> None:
        self._target, self._listener = port, listening("127.0.0.1", 0)
        self.port = self._listener.getsockname()[1]
        self._is_open = threading.Event()
        self._is_open.set()
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_open.set()
        for end in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def stop(self) -> None:
        """Forward nothing."""
        self._is_open.clear()

    def go_on(self) -> None:
        """Forward all data again, with the data that were held back."""
        self._is_open.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                try:
                    far = socket.create_connection(("127.0.0.1", self._target))
                except ConnectionError:
                    near.close()
                    continue
                self._sockets += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(1 << 16):
                self._is_open.wait()
                target.sendall(content)
            target.shutdown(socket.SHUT_WR)

"""All shards of a crawl on one machine, for tests and trial: a server for each, started again when it dies."""

import contextlib
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from inlink.errors import ParameterError
from inlink.server.run import Options, listening

log = logging.getLogger("inlink.server")

MOST_SHARDS = 64
"""Maximum number of shards on one machine."""

PAUSE_SECONDS = 1.0
"""Seconds before a server that died is started again."""


def serve_shards(
    folder: Path,
    count: int,
    options: Options,
    command: Sequence[str],
    say: Callable[[str], object] = print,
) -> int:
    """Serve all shards of a crawl until a signal comes; return the exit code.

    Parameters
    ----------
    folder : Path
        Shard K is the crawl in its folder ``K``.
    count : int
        Number of shards.
    options : Options
        The first shard listens on ``port``, and each further shard on the next port. If ``port`` is 0, the ports are
        free ports.
    command : sequence of str
        A program that serves a crawl until its standard input closes, with the arguments of ``inlink serve`` for all
        servers. Those for folder, ports and shards are added.
    say : callable
        Called with each line that a server prints, and with the URLs of all shards once all of them listen.

    Raises
    ------
    inlink.errors.ParameterError
        If the number of shards is out of its range.
    inlink.errors.OutputError
        If a port is in use.
    """
    if not 1 <= count <= MOST_SHARDS:
        raise ParameterError(f"--shards must be from 1 to {MOST_SHARDS}; got {count}")
    name = options.names[0] if options.names else options.host
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
    scheme = "http" if options.cert is None else "https"
    base = f"{scheme}://[{name}]" if ":" in name else f"{scheme}://{name}"
    with contextlib.ExitStack() as stack:
        listeners = [
            stack.enter_context(listening(options.host, options.port + k if options.port else 0))
            for k in range(count)
        ]
        ports = [listener.getsockname()[1] for listener in listeners]
        if sys.platform != "linux":
            # On Linux, a port stays reserved for the server and its restarts while this process keeps it.
            stack.close()
        urls = [f"{base}:{port}/v1/crawls/{k}" for k, port in enumerate(ports, 1)]
        shards = []
        for k, port in enumerate(ports, 1):
            own = [str(folder / str(k)), f"--port={port}", f"--shard={k}/{count}"]
            if options.grpc_port is not None:
                own.append(f"--grpc-port={options.grpc_port + k - 1 if options.grpc_port else 0}")
            own += [f"--shard-url={url}" for url in urls]
            shards.append(_Shard(f"shard {k}/{count}", [*command, *own], say))
        return _serve(shards, ",".join(urls), say)


def _serve(shards: "Sequence[_Shard]", urls: str, say: Callable[[str], object]) -> int:
    try:
        for shard in shards:
            shard.thread.start()
        for shard in shards:
            shard.settled.wait()
        if not any(shard.has_failed for shard in shards):
            say("all shards, for INLINK_CRAWL:")
            say(urls)
            for shard in shards:
                shard.thread.join()
    except KeyboardInterrupt:
        # Ctrl-C, and SIGTERM.
        pass
    finally:
        for shard in shards:
            shard.end()
        for shard in shards:
            if shard.thread.is_alive():
                shard.thread.join()
    return 2 if any(shard.has_failed for shard in shards) else 0


class _Shard:
    """The server of a shard, and the thread that starts it again.

    Attributes
    ----------
    settled : threading.Event
        Set once the server listens, or has failed.
    has_failed : bool
        Whether its first start failed, so that it is not started again. It has printed the reason.
    """

    def __init__(self, name: str, command: Sequence[str], say: Callable[[str], object]) -> None:
        self._name, self._command, self._say = name, command, say
        self._process: subprocess.Popen[str] | None = None
        self._lock, self._ended = threading.Lock(), threading.Event()
        self.settled, self.has_failed = threading.Event(), False
        self.thread = threading.Thread(target=self._keep, name="inlink-shard", daemon=True)

    def end(self) -> None:
        """Ask the server to end, and do not start it again."""
        with self._lock:
            self._ended.set()
            if self._process is not None:
                self._process.terminate()

    def _keep(self) -> None:
        while True:
            with self._lock:
                if self._ended.is_set():
                    break
                # A session of its own keeps Ctrl-C from the server, which this process ends. If this process dies, the
                # server's standard input closes.
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
            assert self._process.stdout is not None
            with self._process.stdout as lines:
                for line in lines:
                    self._say(f"{self._name}: {line.rstrip()}")
                    if line.startswith("http"):
                        self.settled.set()
            code = self._process.wait()
            if not self._ended.is_set():
                if not self.settled.is_set():
                    self.has_failed = True
                    break
                log.warning("%s ended with exit code %d, and is started again", self._name, code)
            self._ended.wait(PAUSE_SECONDS)
        self.settled.set()

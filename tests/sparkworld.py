"""A server of archives that kills the process that reads them, as a machine does that runs out of memory."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from loopback import loopback
from patience import wait_until

__all__ = ["Killer", "serving"]

WORKER, EXECUTOR = b"pyspark.daemon", b"CoarseGrainedExecutorBackend"


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def below(root: int) -> list[int]:
    """The processes that descend from a process."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(entry.name))
    found, wait = [], [root]
    while wait:
        more = children.get(wait.pop(), [])
        found += more
        wait += more
    return found


class Killer:
    """Kills what descends from this process and has a word in its command.

    Attributes
    ----------
    word : bytes
        In the command of a process: :data:`WORKER`, a process of Python for tasks, or :data:`EXECUTOR`.
    left : int
        How often it kills still.
    ready : function, or None
        Called before each kill, again and again, until it returns True.
    """

    def __init__(self, word: bytes, ready: Callable[[], bool] | None = None) -> None:
        self.word, self.ready, self.left, self.killed = word, ready, 0, 0

    def __call__(self) -> bool:
        """Kill, if there is still something to do. Return whether anything was killed."""
        if self.ready and self.left > 0:
            wait_until(self.ready, "the other tasks to end")
        # The daemon forks the workers, so a worker has the same command as its parent.
        pids = [pid for pid in below(os.getpid()) if self.word in command(pid)]
        if self.word == WORKER:
            pids = [pid for pid in pids if pid in {child for parent in pids for child in below(parent)}]
        if self.left <= 0 or not pids:
            return False
        self.left -= 1
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.killed += len(pids)
        return True


@contextmanager
def serving(folder: Path, kill: Killer) -> Iterator[str]:
    """Serve the files of a folder. Kill in the middle of a file, and then send the rest of it.

    The first request of a task asks for the version of the file only.
    """
    asked: dict[str, int] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = (folder / self.path.strip("/")).read_bytes()
            asked[self.path] = asked.get(self.path, 0) + 1
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("ETag", '"1"')
            self.end_headers()
            try:
                self.wfile.write(data[: len(data) // 2])
                self.wfile.flush()
                if asked[self.path] % 2 == 0:
                    kill()
                self.wfile.write(data[len(data) // 2 :])
            except OSError:
                pass

        def log_message(self, format: str, *args: object) -> None:
            pass

    with loopback(Handler) as server:
        yield f"http://127.0.0.1:{server.server_port}"

"""``inlink``, ``scrapy`` and programs for tests, each in a process of its own.

Most of the time of a short command would be imports. So a server imports the modules once, and forks for each command.
"""

import atexit
import gc
import json
import os
import re
import resource
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from tempfile import TemporaryDirectory
from typing import Any

from patience import wait_until

INLINK = [sys.executable, "-m", "inlink"]

LOOPBACK = ["--allow-address", "127.0.0.0/8"]
"""The sites of the tests are on loopback, which ``inlink crawl`` does not fetch unless it is allowed."""

Done = subprocess.CompletedProcess[str]
_turn = threading.Lock()


class Forked:
    """A command under way.

    Parameters
    ----------
    *argv : object
        ``inlink`` or ``scrapy`` or the file of a program, and its arguments.
    cwd : Path
    out, err : Path
        Files to which stdout and stderr are appended.
    stdin : Path
    limit : int
        Size in bytes of the largest file that the command can write, as on a disk that is full. 0: no limit.
    **env : str
        Variables beside those of this process.
    """

    def __init__(
        self,
        *argv: object,
        cwd: Path,
        out: Path,
        err: Path,
        stdin: Path = Path(os.devnull),
        limit: int = 0,
        **env: str,
    ) -> None:
        self.returncode: int | None = None
        self._out, self._err, self._lock = out, err, threading.Lock()
        for file in (out, err):
            file.touch()
        job = {"argv": [*map(str, argv)], "cwd": str(cwd), "env": {**os.environ, **env}, "limit": limit}
        self.pid = _ask({**job, "files": [str(stdin), str(out), str(err)]})

    @property
    def out(self) -> str:
        """The output on stdout so far."""
        return self._out.read_text(errors="replace")

    @property
    def err(self) -> str:
        """The output on stderr so far."""
        return self._err.read_text(errors="replace")

    def poll(self) -> int | None:
        """Return the exit code, or None while the command runs."""
        # The server can wait for a process only once, and other threads may send signals.
        with self._lock:
            if self.returncode is None:
                self.returncode = _ask({"pid": self.pid})
            return self.returncode

    def wait(self) -> int:
        """Return the exit code once the command has ended."""
        pause = 0.0005
        while self.poll() is None:
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        assert self.returncode is not None
        return self.returncode

    def wait_for_error(self, text: str) -> None:
        """Wait until the command has written this text to stderr."""
        wait_until(lambda: text in self.err or self.poll() is not None, text)
        assert text in self.err, self.err

    def wait_for_address(self) -> str:
        """Wait until the command has written a line that begins with ``http`` to stdout, and return the line."""
        line = re.compile(r"^(http.*)\n", re.M)
        wait_until(lambda: line.search(self.out) or self.poll() is not None, "an address")
        match = line.search(self.out)
        assert match, self.err
        return match[1]

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless the command has ended."""
        self.send_signal(signal.SIGKILL)


@contextmanager
def forked(*argv: object, cwd: Path, stdin: str = "", merged: bool = False, **more: Any) -> Iterator[Forked]:
    """Start a command whose output goes to temporary files, and kill it at the end of the block."""
    with TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("in", "out", "err")]
        for file in files:
            file.write_text(stdin if file.name == "in" else "")
        run = Forked(*argv, cwd=cwd, stdin=files[0], out=files[1], err=files[1 if merged else 2], **more)
        try:
            yield run
        finally:
            run.kill()
            run.wait()


def inlink(*given: object, cwd: Path, code: int | None = 0, program: str = "inlink", **more: Any) -> Done:
    """Run a command of ``inlink`` or of ``scrapy`` to its end.

    Check its exit code if ``code`` is a number. If ``merged`` is true, stdout includes stderr.
    """
    with forked(program, *given, cwd=cwd, **more) as run:
        done = Done([*map(str, given)], run.wait(), run.out, "" if more.get("merged") else run.err)
    assert code is None or done.returncode == code, done
    return done


def crawl(*given: object, cwd: Path, code: int = 0, quiet: bool = True, **more: Any) -> Done:
    """``inlink crawl``, to its end."""
    return inlink(*(["-q"] if quiet else []), "crawl", *given, *LOOPBACK, cwd=cwd, code=code, **more)


@contextmanager
def begin(*given: object, cwd: Path, quiet: bool = True) -> Iterator[Forked]:
    """Start ``inlink crawl``, and kill it at the end of the block."""
    with forked("inlink", *(["-q"] if quiet else []), "crawl", *given, *LOOPBACK, cwd=cwd) as run:
        yield run


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@cache
def _server() -> "subprocess.Popen[str]":
    """The server, which ends with this process."""
    server = subprocess.Popen(
        [sys.executable, "-W", "error::ResourceWarning", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
    )
    atexit.register(server.communicate)
    return server


def _ask(question: dict[str, Any]) -> Any:
    """Return the server's answer. Only one thread may ask at a time."""
    with _turn:
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(question) + "\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())


def _import_scrapy() -> None:
    """Import the modules that each spider needs, but no reactor, because each command installs its own."""
    import scrapy

    for room in (
        "commands",
        "core.downloader",
        "downloadermiddlewares",
        "spidermiddlewares",
        "extensions",
    ):
        for module in iter_modules([f"{scrapy.__path__[0]}/{room.replace('.', '/')}"]):
            if module.name != "statsmailer":  # It is deprecated.
                import_module(f"scrapy.{room}.{module.name}")
    import_module("inlink.scrapy.run")
    import_module("scrapy.core.downloader.handlers.http11")
    assert "twisted.internet.reactor" not in sys.modules


@cache
def _import_for(word: str) -> None:
    """Import the modules that commands with this word need."""
    if word in ("crawl", "scrapy"):
        with suppress(ImportError):
            _import_scrapy()
    if word == "plot":
        import_module("inlink.plot")
    if word == "serve":
        import_module("inlink.server.run")
    # Garbage collection in a fork would write to every object, so the system would copy all of their memory.
    gc.freeze()


def _run(job: dict[str, Any]) -> None:
    """Run a command in this process, which is a fork."""
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    for number, name in enumerate(job["files"]):
        os.dup2(os.open(name, os.O_RDWR | os.O_APPEND | os.O_CREAT), number)
    if job["limit"]:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["limit"], job["limit"]))
    # Tests read the output while the command runs.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.argv = job["argv"]
    program = sys.argv[0]
    # Python adds the folder of a program, and `python -m inlink` this folder.
    sys.path.insert(0, str(Path(program).parent) if program.endswith(".py") else job["cwd"])
    try:
        if program == "scrapy":
            import_module("scrapy.cmdline").execute()
        elif program != "inlink":
            runpy.run_path(program, run_name="__main__")
        else:
            import_module("inlink.cli").main()
    except SystemExit as end:
        if program != "inlink" or {"crawl", "serve"} & set(sys.argv):
            raise
        # A normal shutdown of the interpreter would take most of the time of a short command.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 0)
    sys.exit()


def _import_inlink() -> None:
    """Import all modules but those of doors and the one that imports Numba, which few commands need."""
    import inlink

    # They are imported if a command needs them.
    late = {"inlink.base.compiling", "inlink.frontera", "inlink.networkx", "inlink.plot", "inlink.scrapy"}
    late |= {"inlink.server", "inlink.spark"}
    rooms = [room.name for room in iter_modules(inlink.__path__, "inlink.") if room.ispkg]
    for room in (import_module(name) for name in rooms if name not in late):
        for module in iter_modules(room.__path__, f"{room.__name__}."):
            if module.name not in late:
                import_module(module.name)


def _serve() -> None:
    _import_inlink()
    while line := sys.stdin.readline():
        job = json.loads(line)
        if "pid" in job:
            ended, status = os.waitpid(job["pid"], os.WNOHANG)
            print(json.dumps(os.waitstatus_to_exitcode(status) if ended else None), flush=True)
            continue
        for word in job["argv"]:
            _import_for(word)
        program = Path(job["argv"][0])
        if program.suffix == ".py" and "scrapy" in program.read_text():
            _import_for("scrapy")
        child = os.fork()
        if not child:
            _run(job)
        print(child, flush=True)


if __name__ == "__main__":
    _serve()

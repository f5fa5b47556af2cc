"""``inlink`` for tests, in a process of its own.

Most of the time of a short command would be imports. So a server imports the modules once, and forks for each command.
"""

import atexit
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

INLINK = [sys.executable, "-m", "inlink"]

LOOPBACK = ["--allow-address", "127.0.0.0/8"]
"""The sites of the tests are on loopback, which ``inlink crawl`` does not fetch unless it is allowed."""

Done = subprocess.CompletedProcess[str]


def inlink(
    *given: object,
    cwd: Path,
    code: int | None = 0,
    stdin: str = "",
    merged: bool = False,
    program: str = "inlink",
    **env: str,
) -> Done:
    """Run a command of ``inlink`` or of ``scrapy``.

    Check its exit code if ``code`` is a number. If ``merged`` is true, stdout includes stderr.
    """
    arguments = list(map(str, given))
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.NamedTemporaryFile("w+", buffering=1)) for _ in range(3)]
        files[0].write(stdin)
        files[0].flush()
        job = {
            "argv": [program, *arguments],
            "cwd": str(cwd),
            "env": {**os.environ, **env},
            "files": [files[0].name, files[1].name, files[1 if merged else 2].name],
        }
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        done = Done(
            arguments,
            int(server.stdout.readline()),
            *(Path(file.name).read_text(errors="replace") for file in files[1:]),
        )
    assert code is None or done.returncode == code, done
    return done


def crawl(*given: object, cwd: Path, code: int = 0, quiet: bool = True) -> Done:
    """``inlink crawl``, to its end."""
    return inlink(*(["-q"] if quiet else []), "crawl", *given, *LOOPBACK, cwd=cwd, code=code)


@contextmanager
def begin(*given: object, cwd: Path, quiet: bool = True) -> "Iterator[subprocess.Popen[str]]":
    """``inlink crawl``, under way; it does not outlive the block."""
    with subprocess.Popen(
        [*INLINK, *(["-q"] if quiet else []), "crawl", *map(str, given), *LOOPBACK],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            yield run
        finally:
            run.kill()  # does nothing where it has ended


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@cache
def _server() -> "subprocess.Popen[str]":
    """The server, which ends when this process closes the pipe."""
    return subprocess.Popen(
        [sys.executable, "-W", "error::ResourceWarning", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
    )


def _serve() -> None:
    from inlink.cli import main

    with suppress(ImportError):
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
        for name in ("cli.crawl", "crawl.crawl", "scrapy.run"):
            import_module(f"inlink.{name}")
        import_module("scrapy.core.downloader.handlers.http11")
    # Garbage collection in a fork would write to every object, so the system would copy all of their memory.
    gc.freeze()
    # Each command installs its own reactor.
    assert "twisted.internet.reactor" not in sys.modules
    while line := sys.stdin.readline():
        job = json.loads(line)
        if "plot" in job["argv"]:
            import_module("inlink.plot")
        child = os.fork()
        if not child:
            os.chdir(job["cwd"])
            os.environ.clear()
            os.environ.update(job["env"])
            for number, name in enumerate(job["files"]):
                os.dup2(os.open(name, os.O_RDWR | os.O_APPEND), number)
            sys.argv = job["argv"]
            # `python -m inlink` adds this folder too.
            sys.path.insert(0, job["cwd"])
            try:
                if sys.argv[0] == "scrapy":
                    import_module("scrapy.cmdline").execute()
                main()
            except SystemExit as end:
                if "crawl" in sys.argv or sys.argv[0] == "scrapy":
                    raise
                # A normal shutdown of the interpreter would take most of the time of a short command.
                atexit._run_exitfuncs()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(end.code if isinstance(end.code, int) else 0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    _serve()

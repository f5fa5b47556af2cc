"""Commands on a crawl's folder, run in this process or in one of their own."""

from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

from crawlcommand import inlink
from inlink.cli import commands
from inlink.crawl.folder import look

A, AX, AY, B = (
    "http://a.example.com/",
    "http://a.example.com/x",
    "http://a.example.com/y",
    "http://b.example.org/",
)
COMMANDS = {  # what each needs behind the folder
    "crawl-info": [],
    "next": ["--peek"],
    "why": [A],
    "find": ["."],
    "links": [A],
    "path": [A],
    "dump": [],
    "reload": [],
}


def arguments(command: str, folder: object) -> list[str]:
    first = ["dump", "pages"] if command == "dump" else [command]
    return [*first, str(folder), *COMMANDS[command]]


def run(*given: object, stdin: str | None = None) -> str:
    """A command in this process: quick."""
    result = CliRunner().invoke(commands, ["-q", *map(str, given)], input=stdin, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def shell(*given: object, cwd: Path, code: int = 0, stdin: str = "") -> str:
    """A command in a process of its own; what it says on standard error where it fails."""
    done = inlink("-q", *given, cwd=cwd, code=code, stdin=stdin)
    assert "Traceback" not in done.stderr
    return done.stderr if code else done.stdout


@contextmanager
def look_at(folder: Path):
    frontier = look(folder)
    yield frontier
    frontier.pages.close()

"""Every example in the README and the docs runs, and says what it says there.

A page's blocks share one folder and one Python namespace. In ``console`` blocks a line that begins with ``$`` is a
command and what follows is its output; ``python`` blocks with ``>>>`` are doctests, others only have to run.
``...`` stands for anything. A block after ``<!-- not run: reason -->`` is skipped. A block after
``<!-- file: name -->`` is added to the end of that file.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from crawlcommand import inlink

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:<!-- (not run|file): ([^\n]+) -->\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)
COMPILING = re.compile(r"^.*compiling loops to machine code.*\n", re.M)
"""The line that the first command on a machine says, wherever in the page that command stands."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+(?:e-?\d+)?(?![\w.])")


def same(expected: str, found: str) -> bool:
    """Whether the texts agree but for white space and the last digits of decimals.

    A rank is certified to a bound and not to a digit: a crawl that fetched its pages in another order numbers them in
    another order, and its sums end in other digits.
    """

    def squeeze(text: str) -> list[str]:
        return [" ".join(line.split()) for line in text.strip().splitlines()]

    def with_numbers_of(line: str, other: str) -> str:
        numbers, others = DECIMAL.findall(line), DECIMAL.findall(other)
        if numbers == others or [float(x) for x in numbers] != pytest.approx(
            [float(x) for x in others], rel=2e-5
        ):
            return line
        written = iter(others)
        return DECIMAL.sub(lambda _: next(written), line)

    lines, others = squeeze(found), squeeze(expected)
    if len(lines) == len(others):
        lines = list(map(with_numbers_of, lines, others))
    return doctest.OutputChecker().check_output("\n".join(others), "\n".join(lines), FLAGS)


@pytest.mark.parametrize(("expected", "found", "equal"), [
    ("5  0.00435338  a", "5 0.00435337 a", True),
    ("5 0.00435338 a", "5 0.00435638 a", False),
    ("5 0.00435338 a", "6 0.00435338 a", False),
    ("0.5 0.00435338 ... a", "0.5 0.00435337 1.25 a", False),
    ("v15.20 of ...", "v15.21 of 2.5", False),
    ("1 2.50001\n...", "1 2.50000\nb\nc", False),
])  # fmt: skip
def test_outputs_agree_but_for_the_last_digits_of_ranks(expected: str, found: str, equal: bool):
    assert same(expected, found) is equal


def run_shell(command: str, folder: Path, stdin: str = "") -> str:
    """Return the output of a command that needs a shell."""
    run = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "120",
        },
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return run.stdout


def run_command(command: str, folder: Path) -> str:
    """Return the output of a command, whose first process is a fork if it is one of ``inlink`` or ``scrapy``."""
    first, pipe, rest = command.partition(" | ")
    words, *files = re.split(r" (2?)> (\S+)", first)
    if words.split()[0] not in ("inlink", "scrapy") or set(first) & set("&;<") or any(files[2::3]):
        return run_shell(command, folder)
    program, *arguments = shlex.split(words)
    # The shell replaces variables and other commands.
    if set(words) & set("$`*?~#!\\"):
        program, *arguments = run_shell(f"printf '%s\\0' {words}", folder).split("\0")[:-1]
    run = inlink(
        *arguments, cwd=folder, code=None, program=program, COLUMNS="120", merged=not (files or pipe)
    )
    said = {"": run.stdout, "2": run.stderr}
    for number, name in zip(files[::3], files[1::3], strict=True):
        (folder / name).write_text(said.pop(number))
    if pipe:
        return said.get("2", "") + run_shell(rest, folder, said.get("", ""))
    return "".join(said.values())


def run_console(block: str, folder: Path) -> None:
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, rest = part.partition("\n")
        while command.endswith("\\"):
            line, _, rest = rest.partition("\n")
            command = command[:-1] + line
        found = COMPILING.sub("", run_command(command, folder))
        assert same(rest, found), f"$ {command}\nexpected:\n{rest}\nfound:\n{found}"


def run_python(block: str, names: dict[str, object], page: Path) -> None:
    if ">>>" not in block:
        exec(compile(block, str(page), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(block, names, page.name, str(page), 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_on_the_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for mark, name, language, block in BLOCK.findall(page.read_text()):
        if mark == "not run":
            continue
        if mark == "file":
            with (tmp_path / name).open("a") as file:
                file.write(block)
        elif language == "console":
            run_console(block, tmp_path)
        elif language == "python":
            run_python(block, names, page)


def test_docstring_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    ran = 0
    for path in sorted((ROOT / "src" / "inlink").rglob("*.py")):
        if ">>> " not in path.read_text():
            continue
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        module = __import__(name, fromlist=["_"])
        result = doctest.testmod(module, optionflags=FLAGS)
        assert result.failed == 0, path
        ran += result.attempted
    assert ran > 0

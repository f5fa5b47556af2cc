"""``python -m torture.mutants``: random faults in kernels, which may fail a test but never crash.

A mutant is one change of a constant, an operator, a comparison, a loop's bound or a buffer's size, in a copy of the
project. Its kernels are compiled with bounds checks, and the tests of its module run until one fails. A mutant may end
by a failed test (an assertion or an IndexError), by the time limit, or may pass all tests. It must not crash.

With ``--python``, the faults are in Python code, and it counts how many the tests notice. Then a mutant may also lose a
call, a condition or the value that a function returns. The tests of its room run too.
"""

import argparse
import ast
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from mmap import PAGESIZE
from pathlib import Path
from random import Random
from typing import NamedTuple

from torture.trial import LARGEST, scratch, until

ROOT = Path(__file__).parents[2]

SWAPS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}

# Compiles one module, or links all. Each call is a process of its own, as in ahead.build.
COMPILE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from ahead import build
machine, folder, modules = sys.argv[1], Path(sys.argv[2]), sys.argv[4:]
if len(modules) == 1 and sys.argv[3] == "":
    build.build_module(modules[0], machine, folder)
else:
    build._link(ThreadPoolExecutor(1), folder, modules, build.levels_of(machine), machine, Path(sys.argv[3]))
"""

# Every process of a test writes the traceback of a crash to a file.
STARTUP = """
import faulthandler, os
faulthandler.enable(open(os.path.join(os.environ["INLINK_CRASHES"], str(os.getpid())), "w"))
"""


class Mutant(NamedTuple):
    """A change of one expression: of the bytes from ``begin`` to ``end`` of a file, at a line and column."""

    kind: str
    file: str
    line: int
    column: int
    begin: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column} ({self.kind}): `{self.before}` became `{self.after}`"


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    """The mutants of one node: what it is, the node that is replaced, and its new text."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in SWAPS:
            yield "operator", node, f"({ast.unparse(ast.BinOp(left, SWAPS[type(op)](), right))})"
        case ast.AugAssign(target, op, value) if type(op) in SWAPS:
            yield "operator", node, ast.unparse(ast.AugAssign(target, SWAPS[type(op)](), value))
        case ast.Compare(left, [op], [right]) if type(op) in SWAPS:
            yield "comparison", node, f"({ast.unparse(ast.Compare(left, [SWAPS[type(op)]()], [right]))})"
        case ast.Constant(int(value)) if not isinstance(value, bool):
            yield "constant", node, str(value + 1)
        case ast.Name("U0" | "U1" as name, ast.Load()):
            yield "constant", node, {"U0": "U1", "U1": "U0"}[name]
        case ast.Call(ast.Name("range"), [end] | [_, end, *_]):
            unsigned = not re.fullmatch(r"\d+|len\(.*\)", ast.unparse(end))
            yield "loop bound", end, f"({ast.unparse(end)} + {'np.uint64(1)' if unsigned else '1'})"
        case ast.Call(ast.Attribute(ast.Name("np"), "empty" | "zeros" | "full" | "ones"), [size, *_]):
            if not isinstance(size, ast.Tuple) and ast.unparse(size) != "0":
                yield "buffer", size, f"max(int({ast.unparse(size)}) - 1, 0)"


def python_changes(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    """The mutants of one node of Python code, as :func:`changes` gives them."""
    match node:
        case ast.BoolOp(op, values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and, or", node, f"({ast.unparse(ast.BoolOp(other, values))})"
        case ast.UnaryOp(ast.Not(), operand):
            yield "condition", node, f"({ast.unparse(operand)})"
        case ast.If(test) | ast.IfExp(test) | ast.While(test):
            yield "condition", test, f"(not ({ast.unparse(test)}))"
        case ast.Constant(bool(value)):
            yield "constant", node, str(not value)
        case ast.Return(ast.AST() as value) if not isinstance(value, ast.Constant):
            yield "returned value", value, "None"
        case ast.Expr(ast.Call()):
            yield "lost call", node, "None"
        case ast.Call(ast.Name("range"), [end] | [_, end, *_]):
            yield "loop bound", end, f"({ast.unparse(end)} + 1)"
        case ast.Compare(_, [ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()], _):
            yield "comparison", node, f"(not ({ast.unparse(node)}))"
        case _:
            # Without bounds checks, nothing notices a short buffer of a kernel.
            yield from (change for change in changes(node) if change[0] != "buffer")


def python_parts(node: ast.AST, inside: bool = False) -> Iterator[ast.AST]:
    """All nodes in bodies of functions, without annotations, decorators and the texts of errors."""
    if isinstance(node, ast.Raise | ast.JoinedStr):
        return
    if inside:
        yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        # The argument `strict` is an assertion, which no caller fails.
        if name == "keywords" and isinstance(node, ast.Call) and ast.unparse(node.func) == "zip":
            continue
        in_body = inside or (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and name == "body")
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from python_parts(child, in_body)


def python_mutants(root: Path) -> dict[str, list[Mutant]]:
    """All mutants of Python code in ``src`` that is no kernel, by kind."""
    made: dict[str, list[Mutant]] = {}
    for path in sorted((root / "src").rglob("*.py")):
        if "kernels" not in path.with_suffix("").parts:
            every = (
                change
                for node in python_parts(ast.parse(path.read_text()))
                for change in python_changes(node)
            )
            for mutant in in_file(root, path, set(every)):
                made.setdefault(mutant.kind, []).append(mutant)
    return made


def in_file(root: Path, path: Path, changed: set[tuple[str, ast.AST, str]]) -> Iterator[Mutant]:
    """The mutants of a file whose text stands in one line."""
    raw = path.read_bytes()
    starts = [0, *itertools.accumulate(map(len, raw.splitlines(keepends=True)))]
    for kind, node, after in sorted(
        changed, key=lambda change: (change[1].lineno, change[1].col_offset, change[2])
    ):
        if node.lineno == node.end_lineno:
            begin, end = (
                starts[node.lineno - 1] + offset for offset in (node.col_offset, node.end_col_offset)
            )
            before, name = raw[begin:end].decode(), str(path.relative_to(root))
            yield Mutant(kind, name, node.lineno, node.col_offset + 1, begin, end, before, after)


def parts(tree: ast.AST, kernels: bool) -> Iterator[ast.AST]:
    """The statements to change: bodies of kernels, or the simple statements that allocate arrays."""
    for node in ast.walk(tree):
        if kernels and isinstance(node, ast.FunctionDef) and node.decorator_list:
            yield from node.body
        if (
            not kernels
            and isinstance(node, ast.Assign | ast.Return | ast.Expr)
            and "np.empty(" in ast.unparse(node)
        ):
            yield node


def mutants(root: Path, kernels: bool) -> dict[str, list[Mutant]]:
    """All mutants of the kernels, or of the modules that call kernels, by kind."""
    made: dict[str, list[Mutant]] = {}
    for path in sorted((root / "src").rglob("*.py")):
        text = path.read_text()
        imported = re.search(r"^from inlink\.[\w.]*kernels", text, re.M)
        if (
            not (kernels or imported)
            or ("kernels" in path.relative_to(root).with_suffix("").parts) != kernels
        ):
            continue
        changed = {
            change
            for part in parts(ast.parse(text), kernels)
            for inner in ast.walk(part)
            for change in changes(inner)
        }
        for mutant in in_file(root, path, changed):
            made.setdefault(mutant.kind, []).append(mutant)
    return {kind: sorted(made[kind]) for kind in sorted(made)}


def imports(path: Path) -> set[str]:
    """The modules that a module imports, and the names that it takes from them."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


class Project:
    """A copy of the project, with the checked machine code of its kernels unless only Python code changes."""

    def __init__(self, place: Path, objects: Path | None, python: bool) -> None:
        self.root, self.objects, self.crashes = (
            place / "project",
            objects or place / "objects",
            place / "crashes",
        )
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                shutil.copy2(ROOT / name, self.root / name)
        (place / "startup").mkdir()
        (place / "startup" / "sitecustomize.py").write_text(STARTUP)
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, (place / "startup", self.root / "src", self.root))),
            "INLINK_CRASHES": str(self.crashes),
            "INLINK_THREADS": "2",
        }
        self.python = python
        self.crashes.mkdir()
        source = self.root / "src"
        self.imports = {
            ".".join(path.relative_to(source).with_suffix("").parts): imports(path)
            for path in source.rglob("*.py")
        }
        self.tests = {
            str(path.relative_to(self.root)): imports(path)
            for path in (self.root / "tests").glob("*/test_*.py")
        }
        if python:
            return
        self.environment |= {"INLINK_CHECK_BOUNDS": "1", "INLINK_MACHINE_CODE": "off"}
        recorded = (self.root / "ahead" / "signatures.json").read_text()
        self.compiled = sorted(set(re.findall(r'^"(inlink[\w.]+):', recorded, re.M)))
        self.objects.mkdir(exist_ok=True)
        new = [module for module in self.compiled if not (self.objects / f"{module}.json").exists()]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            assert all(pool.map(lambda module: self._run(self.objects, "", module), new))

    def _run(self, folder: Path, library: str, *modules: str) -> bool:
        given = [sys.executable, "-c", COMPILE, os.uname().machine, str(folder), library, *modules]
        done = subprocess.run(given, cwd=self.root, env=self.environment, capture_output=True, text=True)
        return done.returncode == 0

    def users(self, module: str) -> set[str]:
        """All modules of kernels that contain the code of a module, and itself."""
        whole, new = {module}, {module}
        while new:
            new = {name for name, names in self.imports.items() if names & new and "kernels" in name} - whole
            whole |= new
        return whole

    def machine_code(self, module: str) -> Path | None:
        """Compile what a change of a module touches; None if this fails, as for most changes of types."""
        objects, library = (self.root.with_name(name) for name in ("changed", "code"))
        shutil.rmtree(objects, ignore_errors=True)
        shutil.copytree(self.objects, objects)
        for name in sorted(self.users(module) & set(self.compiled)):
            if not self._run(objects, "", name):
                return None
        return library if self._run(objects, str(library), *self.compiled) else None

    def tests_of(self, module: str) -> list[str]:
        """The files of tests that import a module or a module that uses it, or that are named after one of these."""
        near = self.users(module)
        near |= {name for name, names in self.imports.items() if names & near}
        named = {f"test_{name.rpartition('.')[2]}.py" for name in near}
        first = [name for name, names in self.tests.items() if module in names]
        rest = [name for name, names in self.tests.items() if names & near or Path(name).name in named]
        room = f"tests/{module.split('.')[1]}/"
        also = [name for name in self.tests if self.python and name.startswith(room)]
        return list(dict.fromkeys([*sorted(first), *sorted(also), *sorted(rest)]))

    def end_of(self, mutant: Mutant, limit: int, last: list[str]) -> str:
        """Make a mutant, and return how it ended; empty if it cannot be compiled."""
        path = self.root / mutant.file
        sound = path.read_bytes()
        path.write_bytes(sound[: mutant.begin] + mutant.after.encode() + sound[mutant.end :])
        try:
            module = ".".join(Path(mutant.file).with_suffix("").parts[1:])
            if not self.python:
                code = self.machine_code(module if "kernels" in module else self.compiled[0])
                if code is None:
                    return ""
                self.environment["INLINK_MACHINE_CODE"] = str(code)
            return self._ended(list(dict.fromkeys([*self.tests_of(module), *last])), limit)
        finally:
            path.write_bytes(sound)

    def _ended(self, tests: list[str], limit: int) -> str:
        for file in self.crashes.iterdir():
            file.unlink()
        temporary = self.root.with_name("tests")
        given = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-v",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:faulthandler",
        ]
        given += [f"--basetemp={temporary}", "-m", "not slow", *tests]
        output = self.root.with_name("output")
        with output.open("w") as file:
            child = subprocess.Popen(
                given,
                cwd=self.root, env=self.environment, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
            over = until(limit)
            while child.poll() is None and not over() and memory_of(child.pid) < LARGEST:
                time.sleep(0.2)
            # Nothing that it started may outlive it.
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        shutil.rmtree(temporary, ignore_errors=True)
        out = output.read_text()
        crashed = [text for text in (file.read_text() for file in self.crashes.iterdir()) if text]
        if crashed:
            return f"crash: {crashed[0].splitlines()[0]}"
        if child.returncode == -signal.SIGKILL:
            return f"time limit: {(re.findall(r'^tests/[^ ]+', out, re.M) or [''])[-1]}"
        if child.returncode < 0:
            return f"crash: signal {-child.returncode}"
        if child.returncode == 0:
            return "survived"
        why = (re.findall(r"^(?:FAILED|ERROR) (.*)", out, re.M) or [out[-300:]])[-1]
        return ("IndexError: " if "IndexError" in out else "failed: ") + why


def memory_of(pid: int) -> int:
    """The memory of a process in MB; 0 if it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGESIZE >> 20
    return 0


def main() -> int:
    """Make the mutants; return 1 if one crashed."""
    parser = argparse.ArgumentParser(prog="torture.mutants", description=__doc__)
    parser.add_argument("--mutants", type=int, default=30, help="how many; default 30")
    parser.add_argument("--seed", type=int, default=1, help="other mutants with another seed; default 1")
    parser.add_argument(
        "--limit", type=float, default=600.0, help="seconds for the tests of one; default 600"
    )
    parser.add_argument(
        "--objects", type=Path, help="a folder that keeps the compiled kernels for other runs"
    )
    parser.add_argument("--python", action="store_true", help="faults in Python code, not in kernels")
    parser.add_argument("tests", nargs="*", help="files of tests that run after those of a mutant's module")
    options = parser.parse_args()
    random, ends = Random(options.seed), Counter[str]()
    with scratch() as place:
        project = Project(place, options.objects, options.python)
        if options.python:
            inside = doors = python_mutants(project.root)
        else:
            inside, doors = mutants(project.root, kernels=True), mutants(project.root, kernels=False)
        while ends.total() < options.mutants:
            # Every fifth mutant is one of a buffer that a Python function allocates for kernels.
            pool = doors if ends.total() % 5 == 4 else inside
            mutant = random.choice(pool[random.choice(list(pool))])
            ended = project.end_of(mutant, options.limit, options.tests)
            if ended:
                ends[ended.partition(":")[0]] += 1
                sys.stdout.write(f"{ends.total()}. {mutant}: {ended}\n")
                sys.stdout.flush()
    sys.stdout.write(", ".join(f"{end}: {count}" for end, count in ends.most_common()) + "\n")
    return int(ends["crash"] > 0)


if __name__ == "__main__":
    sys.exit(main())

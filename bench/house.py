"""Measures of the source itself: ``python -m bench house`` prints how much there is to read, and how it hangs together.

None of the figures is a limit, except two that ``tests/house/test_house.py`` holds: circles of files, and class names
that stand for two things.
"""

import ast
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "inlink"
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def files(folder: Path) -> list[Path]:
    """Return the Python files below a folder, in order."""
    return sorted(folder.rglob("*.py"))


def lines(folder: Path) -> int:
    """Return the number of lines of all Python files below a folder."""
    return sum(len(path.read_text().splitlines()) for path in files(folder))


def tokens(folder: Path) -> int:
    """Return the number of Python's tokens below a folder, without comments, newlines and indents."""
    count = 0
    for path in files(folder):
        with path.open("rb") as file:
            count += sum(token.type not in _LAYOUT for token in tokenize.tokenize(file.readline))
    return count


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return the nodes of a file's syntax tree, the module first. Those of all files take 300 MB."""
    return list(ast.walk(ast.parse(path.read_text())))


def imports(source: Path = SOURCE) -> dict[str, set[str]]:
    """Return the modules of the package that each module imports, lazily or for types only too.

    The package itself is left out: it holds nothing of its own, it only names what the modules hold.
    """
    names = {
        _dotted(path, source): path
        for path in files(source)
        if path.parent != source or path.stem != "__init__"
    }
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        wanted = set()
        for node in nodes(path):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    wanted.add(inner if inner in names else node.module or "")
        graph[name] = {other for other in wanted if other in names and other != name}
    return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, the largest first.

    They are the strongly connected components of more than one module (Tarjan, 1972).
    """
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    groups = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        path.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
            if other in path:
                low[name] = min(low[name], low[other])
        if low[name] == number[name]:
            at = path.index(name)
            if len(path) - at > 1:
                groups.append(sorted(path[at:]))
            del path[at:]

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return sorted(groups, key=lambda group: (-len(group), group))


def double_classes(source: Path = SOURCE) -> dict[str, list[str]]:
    """Return the names that more than one class has, with their modules."""
    places = defaultdict(list)
    for path in files(source):
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(_dotted(path, source))
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def files_with(word: str, folder: Path) -> list[Path]:
    """Return the Python files below a folder that contain a word."""
    return [path for path in files(folder) if word in path.read_text()]


def private_uses(folder: Path) -> int:
    """Return how often the files below a folder use a private attribute of something that is not ``self``."""
    count = 0
    for path in files(folder):
        for node in ast.walk(ast.parse(path.read_text())):
            count += (
                isinstance(node, ast.Attribute)
                and node.attr.startswith("_")
                and not node.attr.endswith("__")
                and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
            )
    return count


class Walk:
    """The calls of a walk through the package: its functions in the order in which Python called them.

    Kernels are left out. They are compiled, and with machine code Python does not see the calls.
    """

    def __init__(self) -> None:
        self.files: list[str] = []

    def __call__(self, call: Callable[[], Any]) -> Any:
        """Make a call, and note each function of the package that it calls."""

        def look(frame: Any, event: str, _: object) -> None:
            path = Path(frame.f_code.co_filename)
            is_ours = path.is_relative_to(SOURCE) and "kernels" not in (path.stem, path.parent.name)
            if event == "call" and is_ours:
                self.files.append(str(path))

        sys.setprofile(look)
        try:
            return call()
        finally:
            sys.setprofile(None)

    def __str__(self) -> str:
        changes = sum(a != b for a, b in zip(self.files, self.files[1:], strict=False))
        return f"{len(self.files)} calls, {len(set(self.files))} files, {changes} changes of file"


def walks() -> Iterator[tuple[str, Walk]]:
    """Yield the two walks of a crawl that are made for each page: a task, and the report on a page with three links.

    Once a second a task does more, so the shortest of five walks is taken.
    """
    from inlink import Crawl

    with tempfile.TemporaryDirectory() as folder, Crawl(f"{folder}/crawl", politeness={"delay": 0}) as crawl:
        crawl.seed([f"https://h{i}.org/" for i in range(50)])
        # The first ranking comes after the walks.
        for lease in crawl.next(4):
            crawl.crawled(lease, links=["/a", f"https://x{lease.page}.com/"])
        tasks, answers = [Walk() for _ in range(5)], [Walk() for _ in range(5)]
        for k in range(5):
            lease = tasks[k](lambda: crawl.next(1))[0]
            links = ["/q", f"https://o{k}.org/", f"https://z{k}.net/a"]
            answers[k](partial(crawl.crawled, lease, links=links))
        yield "Crawl.crawled, 3 links", min(answers, key=lambda walk: len(walk.files))
        yield "Crawl.next(1)", min(tasks, key=lambda walk: len(walk.files))


def main(rest: list[str]) -> None:
    """Print all measures."""
    if rest:
        sys.exit("usage: python -m bench house")
    graph = imports()
    groups, doubles = circles(graph), double_classes()
    elsewhere = [
        path for path in files_with("spam_mass", SOURCE) if "rank" not in path.relative_to(SOURCE).parts
    ]
    rows: list[tuple[str, object]] = [
        ("tokens in src", f"{tokens(SOURCE):,}"),
        ("lines in src", f"{lines(SOURCE):,}"),
        ("modules", len(graph)),
        *walks(),
        ("files with spam_mass outside rank", len(elsewhere)),
        ("files of crawl with content_hash", len(files_with("content_hash", SOURCE / "crawl"))),
        ("lines in tests", f"{lines(ROOT / 'tests'):,}"),
        ("private attributes used in tests", private_uses(ROOT / "tests")),
        ("circles of files", f"{len(groups)} of {sum(map(len, groups))} files"),
        ("class names used twice", len(doubles)),
    ]
    for name, value in rows:
        print(f"{name:36}{value}")
    rooms = Counter(name.split(".")[1] for name in graph if "." in name)
    for group in groups:
        print("circle:", ", ".join(group))
    for name, where in doubles.items():
        print(f"class {name}:", ", ".join(where))
    print("modules of each room:", ", ".join(f"{room} {count}" for room, count in rooms.most_common()))


def _dotted(path: Path, source: Path) -> str:
    return ".".join(path.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__")

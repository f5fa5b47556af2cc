"""The house keeps its own rules: rooms, public names, light imports, documented commands."""

import ast
import inspect
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import click

import inlink
from bench import house
from inlink import Crawl
from inlink.base.table import counted
from inlink.cli import commands

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "inlink"
ROOMS = [
    "errors",
    "base",
    "urls",
    "protocol",
    "graph",
    "rank",
    "store",
    "archives",
    "sources",
    "nutch",
    "scoring",
    "factors",
    "reranking",
    "frontier",
    "crawl",
    "client",
    "replaying",
    "audit",
]
DOORS = [
    "scrapy",
    "frontera",
    "networkx",
    "plot",
    "spark",
    "server",
    "cli",
]  # the last imports the others, lazily


def dotted(path: Path) -> str:
    """A module's name."""
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@cache
def imports(path: Path) -> frozenset[str]:
    found = set()
    for node in house.nodes(path):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return frozenset(found)


def test_rooms_import_only_rooms_before_them():
    for path in modules():
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        assert room in ROOMS + DOORS, f"{path}: a room that the table in docs/architecture.md does not know"
        for name in imports(path):
            if name.startswith("inlink."):
                other = name.split(".")[1]
                if other in ROOMS and room in ROOMS:
                    assert ROOMS.index(other) <= ROOMS.index(room), f"{path} imports {name}"
                if other in DOORS:
                    assert room in (other, "cli"), f"{path} imports {name}"


def test_architecture_lists_the_rooms_in_this_order():
    table = re.findall(r"^\| `(\w+)(?:\.py|/)` \|", (ROOT / "docs" / "architecture.md").read_text(), re.M)
    assert table == ROOMS + DOORS


def test_only_one_module_imports_numba_and_only_the_gate_imports_that_module():
    compiling = SOURCE / "base" / "compiling.py"
    for path in modules():
        if any(name.split(".")[0] == "numba" for name in imports(path)):
            assert path == compiling
        if "inlink.base.compiling" in imports(path):
            assert path == SOURCE / "base" / "jit.py"


def test_kernels_live_in_kernels_modules_and_have_tests():
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").glob("*/test_*.py"))
    tested = set(re.findall(r"^ *(?:from|import) (inlink[\w.]*)", tests, re.M))
    tested |= {
        f"{module}.{name}"
        for module, names in re.findall(r"^ *from (inlink[\w.]*) import (\([^)]*\)|.*)$", tests, re.M)
        for name in re.findall(r"\w+", names)
    }
    wanted = {dotted(path): imports(path) for path in modules()}
    for path in modules():
        if "jit import" not in path.read_text() or not re.search(
            r"^@(kernel|inlined)\b", path.read_text(), re.M
        ):
            continue
        assert "kernels" in path.parts or path.stem == "kernels", path
        users = {name for name, names in wanted.items() if dotted(path) in names}
        assert tested & {dotted(path), *users}, f"no test imports {dotted(path)}, nor a module that uses it"


def test_archives_can_be_imported_alone():
    code = (
        "import sys; import inlink.archives.batches\n"
        "print(sorted(name for name in sys.modules if name.startswith('inlink.')), "
        "[name for name in ('numba', 'scipy', 'networkx', 'scrapy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, heavy = map(ast.literal_eval, re.findall(r"\[.*?\]", done.stdout))
    assert not heavy
    graph = {name for name in loaded if name.split(".")[1] == "graph"}
    assert graph == {"inlink.graph", "inlink.graph.batches"}
    assert {name.split(".")[1] for name in loaded} == {"archives", "base", "errors", "graph", "urls"}


def test_nothing_is_evaluated_or_unpickled():
    for path in modules():
        names = imports(path)
        assert not names & {"pickle", "marshal", "shelve", "dill", "yaml"}, path
        assert "allow_pickle=True" not in path.read_text(), path


def test_structs_are_decoded_in_one_module():
    """Elsewhere, two threads that decode a struct for the first time would end the process."""
    plain = re.compile(r"msgspec\.(?:convert|json\.decode|msgpack\.decode)\(")
    kinds = re.compile(r"(?:type=|, )(?:dict|list)\[(?:(?:str|int|Any)(?:, )?)+\]\)|decode\([^=]*\)$")
    wrong = [
        f"{path.name}: {ast.unparse(call)}"
        for path in modules()
        if path.name != "decoding.py" and "msgspec" in path.read_text()
        for call in house.nodes(path)
        if isinstance(call, ast.Call)
        and plain.match(ast.unparse(call))
        and not kinds.search(ast.unparse(call))
    ]
    assert wrong == []


def test_public_names_are_these():
    assert sorted(inlink.__all__) == [
        "Crawl",
        "CrawlView",
        "Drift",
        "Graph",
        "InlinkError",
        "Politeness",
        "PublishedGraph",
        "RankChanges",
        "Ranking",
        "Rules",
        "Structure",
        "VirtualClock",
        "Walks",
        "__version__",
        "anti_trustrank",
        "betweenness",
        "cheirank",
        "closeness",
        "connect",
        "degree",
        "diff",
        "drift",
        "eigenvector",
        "errors",
        "harmonic",
        "hits",
        "katz",
        "linkrank",
        "loops",
        "mcmc",
        "opic",
        "pagerank",
        "percolation",
        "progress",
        "publish",
        "read",
        "replay",
        "salsa",
        "spam_mass",
        "structure",
        "trustrank",
        "whatif",
        "write",
    ]
    for name in inlink.__all__:
        assert getattr(inlink, name) is not None
        assert name in dir(inlink)


def test_every_public_name_has_a_docstring_with_its_parameters():
    for name in set(inlink.__all__) - {"__version__"}:
        thing = getattr(inlink, name)
        assert thing.__doc__, name
        if inspect.isfunction(thing) and name != "progress":
            for section in ("Parameters", "Raises"):
                assert f"{section}\n" in thing.__doc__, (name, section)
            code = thing.__code__
            for parameter in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                assert re.search(rf"^\s*(\w+, )*\**{parameter}(, \w+)*( :|$)", thing.__doc__, re.M), (
                    name,
                    parameter,
                )


def test_public_functions_of_the_rooms_of_graphs_say_what_they_raise():
    errors = set(inlink.errors.__all__)

    def check(node: ast.Module | ast.ClassDef, place: str) -> None:
        for part in node.body:
            if isinstance(part, ast.ClassDef) and not part.name.startswith("_"):
                check(part, f"{place} {part.name}")
            if not isinstance(part, ast.FunctionDef) or part.name.startswith("_"):
                continue
            raised = [one.exc for one in ast.walk(part) if isinstance(one, ast.Raise) and one.exc]
            if any(isinstance(one, ast.Call) and ast.unparse(one.func) in errors for one in raised):
                assert "Raises\n" in (ast.get_docstring(part) or ""), f"{place} {part.name}"

    for path in modules():
        if path.relative_to(SOURCE).parts[0] in ("base", "urls", "graph", "rank", "plot"):
            check(house.nodes(path)[0], str(path))


def test_importing_and_helping_are_light():
    for argv in (["-c", "import inlink"], ["-m", "inlink", "--help"], ["-m", "inlink", "build", "--help"]):
        script = "import sys\n"
        if argv[0] == "-c":
            script += argv[1]
        else:
            script += f"sys.argv = {['inlink', *argv[2:]]!r}\nfrom inlink.cli import main\n"
            script += "try:\n    main()\nexcept SystemExit:\n    pass"
        heavy = {"scrapy", "twisted", "numba", "scipy", "networkx", "pyarrow", "llvmlite", "matplotlib"}
        script += f"\nheavy = {heavy} & set(sys.modules)"
        script += "\nassert not heavy, heavy"
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr


NOT_AT_START = {
    *(f"numpy.{name}" for name in ("fft", "ma", "polynomial", "random", "testing")),
    *("multiprocessing", "networkx", "pandas", "pyarrow", "re2", "rich", "scipy", "sqlite3", "threadpoolctl"),
}
"""Modules that neither a short command nor a Scrapy crawl without special settings may import."""


def assert_not_loaded(script: str, *unused: str) -> None:
    """Run a script in a new process, which must not load these modules nor those of NOT_AT_START."""
    script += (
        f"\nimport sys\nunused = {set(unused)!r}\n"
        # Without machine code, kernels are compiled by Numba, which imports many of these modules.
        f"unused |= set() if 'numba' in sys.modules else {NOT_AT_START!r}\n"
        "loaded = unused & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_a_scrapy_project_loads_only_the_modules_of_a_local_crawl():
    unused = [
        "inlink.scrapy.job",
        "inlink.client.remote",
        "inlink.sources.ranklists",
        "inlink.urls.matching",
    ]
    assert_not_loaded("import inlink.scrapy", "warcio", "scrapy.core.downloader.handlers.http11", *unused)


def test_short_commands_load_only_the_modules_of_graphs_and_crawls(tmp_path):
    edges, graph, folder = tmp_path / "edges.tsv", str(tmp_path / "graph"), str(tmp_path / "crawl")
    edges.write_text("a\tb\nb\tc\nc\ta\n")
    with Crawl(folder) as crawl:
        crawl.seed(["https://example.org/"])
    page = "https://example.org/"
    given = [["build", str(edges), "-o", graph], ["rank", graph], ["top", graph], ["info", graph]]
    given += [
        ["links", graph, "a"],
        ["page", folder, page],
        ["why", folder, page],
        ["next", folder, "--peek"],
    ]
    script = "from inlink.cli import commands\n"
    script += f"for given in {given!r}:\n    commands.main(['-q', *given], standalone_mode=False)"
    rooms = (
        "client",
        "frontera",
        "networkx",
        "nutch",
        "plot",
        "replaying",
        "scoring",
        "scrapy",
        "server",
        "spark",
    )
    assert_not_loaded(
        script, *(f"inlink.{room}" for room in rooms), "scrapy", "selectolax", "ssl", "socketserver"
    )


def options(command: click.Command) -> list[str]:
    if isinstance(command, click.Group):
        return [name for one in command.commands.values() for name in options(one)]
    return [
        name
        for parameter in command.get_params(command.make_context(None, [], resilient_parsing=True))
        if isinstance(parameter, click.Option)
        for name in parameter.opts
        if name.startswith("--") and name != "--help"
    ]


def test_every_command_and_option_is_documented():
    pages = ["commands", "crawl-commands", "crawl-sites", "audit", "drift", "nutch", "replay", "spark"]
    page = "\n".join((ROOT / "docs" / f"{name}.md").read_text() for name in pages)
    for name, command in commands.every().items():
        assert f"## inlink {name}\n" in page
        section = page.split(f"## inlink {name}\n")[1].split("\n## ")[0]
        # These two are options of every command.
        for option in set(options(command)) - {"--quiet", "--verbose"}:
            assert option in section, (name, option)


def test_the_repository_has_no_large_files():
    for path in subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split():
        assert (ROOT / path).stat().st_size < 300_000, path


FACADE = {f"inlink.graph.{name}" for name in ("build", "derive", "frames", "graph", "interop", "views")}
"""The files of `Graph`, whose methods call functions that make graphs."""


def test_no_circle_of_files_but_the_facade_of_graphs():
    circles = house.circles(house.imports())
    assert not [circle for circle in circles if not set(circle) <= FACADE]


def test_no_class_name_stands_for_two_things():
    assert not house.double_classes()


def test_measures_of_the_house_on_a_small_package(tmp_path):
    package = tmp_path / "inlink"
    package.mkdir()
    (package / "__init__.py").write_text("from inlink.a import A\n")
    (package / "a.py").write_text("class A: ...\ndef later():\n    from inlink import b\n")
    (package / "b.py").write_text("from inlink.c import C\nclass A: ...\n")
    (package / "c.py").write_text("import inlink.a  # it closes the circle\nclass C: ...\n")
    (package / "d.py").write_text("import inlink.a\n\n\nif A:\n    x._y = self._z\n")
    graph = house.imports(package)
    assert graph["inlink.b"] == {"inlink.c"}
    assert house.circles(graph) == [["inlink.a", "inlink.b", "inlink.c"]]
    assert house.double_classes(package) == {"A": ["inlink.a", "inlink.b"]}
    assert house.lines(package) == 13
    assert house.private_uses(package) == 1
    assert house.tokens(package) == 6 + 13 + 10 + 8 + 14


def test_a_walk_counts_the_calls_of_the_package():
    walk = house.Walk()
    assert walk(lambda: inlink.Graph.from_arcs([("a", "b")]).num_nodes) == 2
    assert walk.files
    assert all(Path(path).is_relative_to(SOURCE) for path in walk.files)


def test_walks_of_a_crawl_do_not_grow():
    """The work for each page: a change of these figures must be meant."""
    assert {name: str(walk) for name, walk in house.walks()} == {
        "Crawl.crawled, 3 links": "31 calls, 15 files, 25 changes of file",
        "Crawl.next(1)": "20 calls, 13 files, 15 changes of file",
    }


NOUNS = (
    "answers|arcs|attempts|columns|crawls|days|domains|draws|edges|elements|entries|errors|events|failures|fetches|"
    "fields|files|hosts|items|iterations|leases|lines|links|loops|nodes|numbers|orders|pages|parts|places|records|"
    "redirects|requests|rounds|rows|runs|seeds|sessions|sets|sitemaps|sources|steps|sweeps|tasks|times|tokens|URLs|values|"
    "visits|warnings|words"
)
AFTER = re.compile(rf" (?:(?!(?:bytes|has|is|must|names|of|that|was|without)\b)[a-z-]+ ){{0,2}}(?:{NOUNS})\b")
PERCENT = re.compile(rf"%d{AFTER.pattern}")
# In "one of 5 pages" the noun is plural in any case.
WHOLE = re.compile(
    r"\b(?:all|least|most|column|each|first|for|from|means|of|than|the|to)(?: the)? $|^ ?$|seconds \($|^names are $"
)


def test_counted_nouns_are_written_in_one_way():
    """A number before a noun is written by `inlink.base.table.counted`, so that nobody reads "1 sweeps"."""
    assert [counted(number, "page") for number in (0, 1, 1000)] == ["0 pages", "1 page", "1,000 pages"]
    assert [counted(number, "row is", "rows are") for number in (1, 2)] == ["1 row is", "2 rows are"]
    wrong = []
    for path in modules():
        for node in house.nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts = [
                    text for text in PERCENT.findall(node.value) if "none of the first" not in node.value
                ]
                wrong += [f"{path}:{node.lineno}: {text}" for text in texts]
            parts = [ast.Constant(""), *node.values] if isinstance(node, ast.JoinedStr) else []
            for before, value, after in zip(parts, parts[1:], parts[2:], strict=False):
                text = before.value if isinstance(before, ast.Constant) else "x"
                if (
                    isinstance(value, ast.FormattedValue)
                    and value.conversion == -1
                    and isinstance(after, ast.Constant)
                    and AFTER.match(after.value)
                    and not WHOLE.search(text)
                    and not re.match(r"[A-Z_]+$|counted\(", ast.unparse(value.value))
                ):
                    wrong.append(f"{path}:{node.lineno}: {{{ast.unparse(value.value)}}}{after.value}")
    assert wrong == [], "\n".join(wrong)

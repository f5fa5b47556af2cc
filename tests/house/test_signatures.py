"""The record of the kernels' signatures fits the sources: no kernel is stale, and none that Python calls is missing."""

import ast
import json
from pathlib import Path

import pytest

from bench import house

ROOT = Path(__file__).parents[2]
RECORD = json.loads((ROOT / "ahead" / "signatures.json").read_text())
SOURCE = ROOT / "src"


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def kernel_modules() -> list[Path]:
    return sorted({*SOURCE.rglob("kernels/*.py"), *SOURCE.rglob("kernels.py")})


def decorated(function: ast.stmt) -> bool:
    return isinstance(function, ast.FunctionDef) and any(
        (isinstance(one, ast.Name) and one.id == "kernel")
        or (isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "kernel")
        for one in function.decorator_list
    )


def kernels() -> dict[str, ast.FunctionDef]:
    """The kernels of the sources, by module and name."""
    return {
        f"{dotted(path)}:{node.name}": node
        for path in kernel_modules()
        for node in house.nodes(path)
        if isinstance(node, ast.FunctionDef) and decorated(node)
    }


def fields(place: str) -> list[str]:
    """The fields of a named tuple in the sources."""
    module, _, name = place.partition(":")
    path = SOURCE.joinpath(*module.split(".")).with_suffix(".py")
    made = next(node for node in house.nodes(path) if isinstance(node, ast.ClassDef) and node.name == name)
    return [node.target.id for node in made.body if isinstance(node, ast.AnnAssign)]


def tuples(text: object) -> list[list[object]]:
    """All named tuples in the text of a type."""
    if not isinstance(text, list):
        return []
    inside = [found for part in text for found in tuples(part)]
    return [text, *inside] if text[:1] == ["named"] else inside


def test_recorded_kernels_exist_and_take_as_many_arguments():
    known = kernels()
    assert set(RECORD) <= set(known), "kernels were renamed or removed: record the signatures again"
    for name, calls in RECORD.items():
        arguments = known[name].args
        most = len(arguments.args)
        for call in calls:
            assert most - len(arguments.defaults) <= len(call) <= most, name
            for _, place, parts in tuples(call):
                assert len(parts) == len(fields(place)), f"{name}: {place} has other fields"


@pytest.mark.slow
def test_each_kernel_that_python_calls_is_recorded():
    known = kernels()
    inside = {dotted(path) for path in kernel_modules()}
    called = set()
    for path in SOURCE.rglob("*.py"):
        if dotted(path) in inside:
            continue
        modules = {}
        for node in house.nodes(path):
            if not isinstance(node, ast.ImportFrom):
                continue
            for name in node.names:
                called.add(f"{node.module}:{name.name}")
                modules[name.asname or name.name] = f"{node.module}.{name.name}"
        called |= {
            f"{modules[node.value.id]}:{node.attr}"
            for node in house.nodes(path)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
        }
    missing = sorted(called & set(known) - set(RECORD))
    assert not missing, f"record the signatures again: nothing is known of {missing}"

"""The notebooks of the docs run, and give the output that is stored in them."""

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from test_docs import COMPILING, same

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def run(source: str, names: dict[str, Any]) -> tuple[str, str | None]:
    """Run a cell: what it prints, and the repr of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            keep = ast.Assign([ast.Name("_", ast.Store())], last.value)
            exec(compile(ast.fix_missing_locations(ast.Module([keep], [])), "cell", "exec"), names)
    value = None if last is None else names["_"]
    return COMPILING.sub("", printed.getvalue()), None if value is None else repr(value)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_give_the_stored_output(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = 0
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        printed, value = run(source, names)
        stored = {output["output_type"]: output for output in cell["outputs"]}
        assert set(stored) <= {"stream", "execute_result"}, source
        assert same("".join(stored.get("stream", {}).get("text", "")), printed), source
        if value is None:
            assert "execute_result" not in stored, source
        else:
            assert same("".join(stored["execute_result"]["data"]["text/plain"]), value), source
        shown += len(stored)
    assert shown > 3


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 3

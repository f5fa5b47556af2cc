"""NetworkX's own tests with inlink as the backend, and the number of those in which a function of inlink ran.

``python tests/networkxruns.py`` runs all of NetworkX's tests. As a plugin of pytest, this module writes what ran in
which test to the file that ``INLINK_NETWORKX_RAN`` names.
"""

import functools
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PLACE = "INLINK_NETWORKX_RAN"
# The tests of the measures that inlink has.
QUICK = [
    "algorithms/link_analysis",
    *(
        f"algorithms/centrality/tests/test_{name}_centrality.py"
        for name in ("betweenness", "closeness", "degree", "eigenvector", "harmonic", "katz", "percolation")
    ),
]

Ran = dict[str, dict[str, Any]]
_functions: dict[str, set[str]] = defaultdict(set)
_outcomes: dict[str, str] = {}
_current = ""


def metadata(folder: Path) -> None:
    """Write the entry points of pyproject.toml as an installed package has them, whatever is installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = folder / "inlink-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: inlink\nVersion: 0\n")
    with (info / "entry_points.txt").open("w") as file:
        for group, entries in project["entry-points"].items():
            file.write(f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items()))


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which NetworkX finds the backend of this source tree."""
    metadata(folder)
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}"}


def run(paths: list[str], folder: Path) -> tuple[Ran, str]:
    """Run tests of NetworkX, and return for each test the functions of inlink that ran, and its outcome."""
    import networkx

    package = Path(networkx.__file__).parent
    ran = folder / "ran.json"
    environ = environment(folder) | {
        PLACE: str(ran),
        "NETWORKX_TEST_BACKEND": "inlink",
        "NETWORKX_FALLBACK_TO_NX": "1",
    }
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "networkxruns", "-p", "no:cacheprovider"),
            *(
                "-c",
                os.devnull,
                f"--rootdir={package}",
                f"--confcutdir={package}",
                "-W",
                "ignore",
                "--import-mode=append",
            ),
            *(str(package / path) for path in paths),
        ],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
    )
    return json.loads(ran.read_text()) if ran.exists() else {}, done.stdout + done.stderr


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
        except NotImplementedError:
            raise
        except Exception:
            _functions[_current].add(name)
            raise
        _functions[_current].add(name)
        return result

    return counted


def pytest_configure() -> None:
    from inlink.networkx import backend
    from inlink.networkx.info import info

    for name in info()["functions"]:
        setattr(backend, name, _counted(name, getattr(backend, name)))


def pytest_runtest_logstart(nodeid: str) -> None:
    global _current
    _current = nodeid


def pytest_runtest_logreport(report: Any) -> None:
    if report.when == "call" or not report.passed:
        _outcomes[report.nodeid] = "xfailed" if hasattr(report, "wasxfail") else report.outcome


def pytest_sessionfinish() -> None:
    ran = {
        test: {"functions": sorted(_functions[test]), "outcome": outcome}
        for test, outcome in _outcomes.items()
    }
    Path(os.environ[PLACE]).write_text(json.dumps(ran))


def count(ran: Ran) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """Return the outcomes of the tests in which a function of inlink ran: of all, and by function."""
    total: Counter[str] = Counter()
    by_function: dict[str, Counter[str]] = defaultdict(Counter)
    for test in ran.values():
        if test["functions"]:
            total[test["outcome"]] += 1
        for name in test["functions"]:
            by_function[name][test["outcome"]] += 1
    return total, by_function


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        found, said = run(["."], Path(place))
    print(said[-2000:])
    outcomes, functions = count(found)
    print(f"{len(found):,} tests; inlink ran in {sum(outcomes.values()):,}: {dict(outcomes)}")
    for function, result in sorted(functions.items()):
        print(f"{function}: {dict(result)}")

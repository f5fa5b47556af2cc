"""``python -m ahead record [--add] COMMAND``: run a command, and record the types of the arguments of kernels.

Each process of the command writes its calls to a folder as they come, so that it may be killed. Calls from one kernel
to another are not recorded, because they are compiled into the caller. The signatures
declare an array read-only if the kernel does not write to it. Finding these arrays takes about three minutes. A run
replaces all earlier signatures. With ``--add`` it keeps those whose kernels still take as many arguments.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ahead import signatures

__all__ = ["record"]

FOLDER = "INLINK_RECORD_FOLDER"

ROOT = Path(__file__).parents[1]


def record(command: list[str], *, add: bool = False) -> int:
    """Run a command, and write the signatures of the kernels that it calls to a file. Return its exit code.

    Parameters
    ----------
    command : list of str
    add : bool
        Keep the earlier signatures of kernels that still take as many arguments.
    """
    # This process inspects kernels as Numba's objects, so it must not load machine code either.
    os.environ["INLINK_MACHINE_CODE"] = "off"
    from ahead.writing import with_read_only

    with tempfile.TemporaryDirectory() as folder:
        places = [str(Path(__file__).parent / "startup"), str(ROOT), str(ROOT / "src")]
        path = os.pathsep.join([*places, *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"PYTHONPATH": path, FOLDER: folder}
        code = subprocess.run(command, env=environment).returncode
        known: dict[str, list[Any]] = signatures.sound() if add else {}
        for file in Path(folder).iterdir():
            for line in file.read_text().splitlines():
                kernel, call = json.loads(line)
                known.setdefault(kernel, []).append(call)
        signatures.write(with_read_only(signatures.merged(known)))
        count = sum(map(len, signatures.read().values()))
        print(f"{count} signatures of {len(known)} kernels", file=sys.stderr)
    return code


def _install(folder: Path) -> None:
    """Note the calls of this process from now on."""
    import numba
    from numba.core import types
    from numba.extending import typeof_impl

    from inlink.base import jit

    class Recorder:
        def __init__(self, dispatcher: Any) -> None:
            self.dispatcher = dispatcher
            self.calls: set[tuple[Any, ...]] = set()
            function = dispatcher.py_func
            self.place = f"{function.__module__}:{function.__qualname__}"

        def __call__(self, *given: Any) -> Any:
            call = tuple(map(numba.typeof, given))
            if call not in self.calls:
                self.calls.add(call)
                if self.place.startswith("inlink."):
                    keep(self.place, call)
            return self.dispatcher(*given)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.dispatcher, name)

    def keep(place: str, call: tuple[Any, ...]) -> None:
        try:
            line = json.dumps([place, [signatures.described(given) for given in call]])
        except ValueError as error:
            print(f"{place}: {error}", file=sys.stderr)
            return
        with (folder / str(os.getpid())).open("a") as file:
            file.write(line + "\n")

    @typeof_impl.register(Recorder)
    def _(recorder: Recorder, _: object) -> Any:
        return types.Dispatcher(recorder.dispatcher)

    gate: Any = jit
    compiled = gate._compiled
    gate._compiled = lambda function, allocates: Recorder(compiled(function, allocates))


if FOLDER in os.environ:
    _install(Path(os.environ[FOLDER]))

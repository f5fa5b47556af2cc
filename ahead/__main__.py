"""Machine code ahead of time.

``python -m ahead build FOLDER [MACHINE]`` makes the libraries, ``python -m ahead record [--add] COMMAND`` notes
signatures, and ``python -m ahead versions`` checks that Numba and NumPy are those that this was tested with.
"""

import sys
from collections.abc import Callable
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run one of these."""
    match arguments:
        case ["record", "--add", *command] if command:
            from ahead.record import record

            return record(command, add=True)
        case ["record", *command] if command:
            from ahead.record import record

            return record(command)
        case ["build", folder, *machine] if len(machine) < 2:
            from ahead.build import build

            return _in_one_line(lambda: build(Path(folder), *machine))
        case ["versions"]:
            from ahead.build import check_versions

            return _in_one_line(check_versions)
        case ["modules", machine, folder, *modules]:
            from ahead.build import build_modules

            return _in_one_line(lambda: build_modules(modules, machine, Path(folder)))
    print(__doc__, file=sys.stderr)
    return 2


def _in_one_line(make: Callable[[], None]) -> int:
    try:
        make()
    except RuntimeError as error:
        print(f"ahead: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

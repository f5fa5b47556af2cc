"""Machine code ahead of time.

``python -m ahead build FOLDER [MACHINE]`` makes the libraries, and ``python -m ahead record [--add] COMMAND`` notes
signatures.
"""

import sys
from pathlib import Path

from ahead.record import record


def main(arguments: list[str]) -> int:
    """Run one of the two."""
    match arguments:
        case ["record", "--add", *command] if command:
            return record(command, add=True)
        case ["record", *command] if command:
            return record(command)
        case ["build", folder, *machine] if len(machine) < 2:
            from ahead.build import build

            build(Path(folder), *machine)
            return 0
        case ["module", module, machine, folder]:
            from ahead.build import build_module

            build_module(module, machine, Path(folder))
            return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

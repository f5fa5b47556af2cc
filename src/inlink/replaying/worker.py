"""The process of :mod:`inlink.replaying.jobs`: reads tasks from its input, and writes their results to its output."""

import os
import signal
import sys
from pathlib import Path

import msgspec
import numpy as np

from inlink.errors import ParameterError
from inlink.replaying.jobs import COLUMNS, RANKS, ReplayTask, perform
from inlink.replaying.web import Web

__all__ = ["main"]


class _Request(msgspec.Struct):
    task: ReplayTask
    out: str


def main(folder: Path) -> None:
    """Answer each line of the input until it ends."""
    # The crawl's folder is removed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Output of a policy must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)
    web = Web.load(folder, name="", hosts="")
    ranks = np.load(folder / RANKS, mmap_mode="r")
    for line in sys.stdin.buffer:
        request = msgspec.json.decode(line, type=_Request)
        try:
            done = perform(web, ranks, request.task)
        except ParameterError as error:
            answers.write(msgspec.json.encode({"refused": str(error)}) + b"\n")
            continue
        except Exception as error:
            answers.write(msgspec.json.encode({"error": f"{type(error).__name__}: {error}"}) + b"\n")
            continue
        played = done.played
        np.savez(request.out, **{name: getattr(played, name) for name in COLUMNS})
        reply = {"counts": played.counts, "cpu": played.cpu, "tau": done.tau}
        answers.write(msgspec.json.encode(reply) + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

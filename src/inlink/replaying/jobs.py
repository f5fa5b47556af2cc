"""Replays one after another, or several at a time in separate processes.

A process is a new Python (:mod:`inlink.replaying.worker`), never a fork. It maps the web's arrays from a temporary
folder, and gets one task after another as a line of JSON. The results do not depend on the number of processes.
"""

import json
import os
import queue
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inlink.base.arrays import Float64Array
from inlink.base.unfinished import unfinished_folder
from inlink.errors import ParameterError
from inlink.replaying.changes import changes_of
from inlink.replaying.measures import agreement
from inlink.replaying.play import Played, memory_folder, play
from inlink.replaying.web import Web

__all__ = ["Done", "ReplayTask", "perform", "performed"]

RANKS = "ranks.npy"
COLUMNS = ("home", "fetched", "times", "copies", "stale")
"""The arrays of :class:`.play.Played`."""

LONGEST_END = 10.0
"""Seconds after which a process that does not end is killed."""


class ReplayTask(msgspec.Struct, frozen=True):
    """One replay to make.

    ``counts`` are the numbers of fetches after which the ranks of the crawled part are compared with those of the
    whole; empty if that is not wanted. ``changes`` and ``change_seed`` are arguments of
    :func:`.changes.changes_of`. The other fields are parameters of :func:`.play.play`.
    """

    policy: Any
    set: int
    seeds: list[int]
    budget: int
    settings: dict[str, Any]
    parallel: int
    fetch_seconds: float
    counts: list[int]
    damping: float
    changes: float | None
    change_seed: int


class Done(msgspec.Struct, frozen=True):
    """The result of a task."""

    task: ReplayTask
    played: Played
    tau: list[float | None]


def perform(
    web: Web, ranks: Float64Array, task: ReplayTask, between: Callable[[int], None] | None = None
) -> Done:
    """Do one task in this process."""
    played = play(
        web,
        task.policy,
        np.array(task.seeds, np.uint32),
        task.budget,
        task.settings,
        parallel=task.parallel,
        fetch_seconds=task.fetch_seconds,
        changes=changes_of(web, task.changes, task.change_seed),
        between=between,
    )
    tau = agreement(web.graph, played.home, task.counts, ranks, task.damping) if task.counts else []
    return Done(task, played, tau)


@contextmanager
def performed(
    web: Web, ranks: Float64Array, tasks: Sequence[ReplayTask], jobs: int, between: Callable[[int], None]
) -> Iterator[Iterator[Done]]:
    """Yield an iterator over the results of tasks, in the order of their ends. Processes end with the block."""
    if jobs == 1:
        yield (perform(web, ranks, task, between) for task in tasks)
        return
    with unfinished_folder(memory_folder() / "inlink-replay") as folder:
        web.save(folder)
        np.save(folder / RANKS, ranks)
        workers = [_Worker(folder, number) for number in range(min(jobs, len(tasks)))]
        try:
            yield _in_parallel(workers, tasks, between)
        finally:
            for worker in workers:
                worker.end()


def _in_parallel(
    workers: list["_Worker"], tasks: Sequence[ReplayTask], between: Callable[[int], None]
) -> Iterator[Done]:
    free: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    for worker in workers:
        free.put(worker)

    def perform_on_free(task: ReplayTask) -> Done:
        worker = free.get()
        try:
            return worker.perform(task)
        finally:
            free.put(worker)

    with ThreadPoolExecutor(len(workers)) as pool:
        waiting: set[Future[Done]] = {pool.submit(perform_on_free, task) for task in tasks}
        try:
            while waiting:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in ready:
                    done = future.result()
                    between(len(done.played.fetched))
                    yield done
        finally:
            for future in waiting:
                future.cancel()
            if waiting:
                for worker in workers:
                    worker.end()


class _Worker:
    """One process that performs tasks."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._number = folder, number
        self._process = subprocess.Popen(
            [sys.executable, "-m", "inlink.replaying.worker", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C is for the command, which then ends the process.
            start_new_session=True,
            # Policies of the user's own are found where this process finds them.
            env=os.environ | {"PYTHONPATH": os.pathsep.join(place or "." for place in sys.path)},
        )

    def perform(self, task: ReplayTask) -> Done:
        """Do a task in the process, and return its result.

        Raises
        ------
        inlink.errors.ParameterError
            If the code of the policy raised an exception.
        RuntimeError
            If the task failed for another reason; the message is that of the process.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        out = self._folder / f"{self._number}.npz"
        try:
            self._process.stdin.write(msgspec.json.encode({"task": task, "out": str(out)}) + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (OSError, ValueError):
            line = b""
        reply: dict[str, Any] = json.loads(line) if line else {"error": "a replay's process ended early"}
        if "refused" in reply:
            raise ParameterError(reply["refused"])
        if "error" in reply:
            raise RuntimeError(reply["error"])
        with np.load(out) as arrays:
            columns = {name: arrays[name] for name in COLUMNS}
            played = Played(**columns, counts=reply["counts"], cpu=reply["cpu"])
        return Done(task, played, reply["tau"])

    def end(self) -> None:
        """End the process, which removes its crawl."""
        self._process.terminate()
        try:
            self._process.wait(LONGEST_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

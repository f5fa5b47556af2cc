"""Waiting times of tests: no test measures speed by the clock, so a busy machine must not fail one.

Tests wait for what has to happen, and give up only when it hangs. :data:`PATIENCE` says after how long that is. Each
test as a whole has that time as well (see ``conftest.py``), so that a hang ends with a traceback.
"""

import os
import subprocess
import time
from collections.abc import Callable

__all__ = ["PATIENCE", "finish", "wait_until"]

PATIENCE = float(os.environ.get("INLINK_TEST_PATIENCE", 900))
"""Seconds after which a test, or what it waits for, is taken to hang. Set ``INLINK_TEST_PATIENCE`` to change it."""


def finish(child: "subprocess.Popen[str]") -> tuple[str, str]:
    """Wait for a process to end, and return what it wrote to its pipes; one that hangs is killed."""
    try:
        return child.communicate()
    except BaseException:
        child.kill()
        child.communicate()
        raise


def wait_until(condition: Callable[[], object], what: str, every: float = 0.01) -> None:
    """Wait until a condition holds, looking again after ``every`` seconds.

    Raises
    ------
    TimeoutError
        If it does not hold within :data:`PATIENCE`. The message names ``what`` was waited for.
    """
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE:g} s for {what}")
        time.sleep(every)

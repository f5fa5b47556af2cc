"""Start Spark."""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

import inlink.errors
from inlink.errors import InlinkError, MissingExtraError, ParameterError

# A master on this machine. Spark listens on loopback there, and repeats tasks only if the master says how often.
_LOCAL = re.compile(r"local(\[(\w+|\*)\])?$")
_TRIES = 4
_LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
# An exception of inlink in the traceback of a task.
_OWN = re.compile(r"^\s*inlink\.errors\.(\w+): (.*)", re.M)
_STOPPED = re.compile(
    "stopped SparkContext|SparkContext was shut down|All masters are unresponsive|Master removed"
)
# If one of these variables is set, Spark has a configuration that may name a master.
_CONFIGURED = ("PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "MASTER")


def active() -> SparkSession | None:
    """Return the Spark session that is active in this process."""
    return SparkSession.getActiveSession()


def session(master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """Return the Spark session that is active, or start one.

    Parameters
    ----------
    master : str or None
        The cluster: ``"local[2]"``, ``"yarn"``, ``"spark://HOST:7077"``, … None takes that of ``spark-submit`` or of
        Spark's configuration, or else all processors of this machine.
    conf : mapping of str to str, or None
        Settings of Spark, such as ``{"spark.driver.memory": "4g"}``.

    Returns
    -------
    SparkSession
        On a local master it listens on loopback only, has no web page, and tries a task four times.

    Raises
    ------
    inlink.errors.MissingExtraError
        If Java is missing.
    inlink.errors.ParameterError
        If Spark does not start with these settings.

    Examples
    --------
    >>> import inlink.spark
    >>> spark = inlink.spark.session("local[2]")  # doctest: +SKIP
    """
    running = active()
    if running is not None:
        return running
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        raise MissingExtraError(
            "Spark needs Java 17 or newer: install it (Debian: apt-get install openjdk-17-jre-headless), or set "
            "JAVA_HOME"
        )
    chosen = dict(conf or {})
    master = master or chosen.pop("spark.master", None)
    if master is None and not any(os.environ.get(name) for name in _CONFIGURED):
        master = "local[*]"
    builder = SparkSession.builder.appName("inlink")
    settings = {"spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false"}
    if master is not None:
        if master.startswith("local"):
            settings |= _LOOPBACK
            # Otherwise Spark takes the first python3 of the search path.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        local = _LOCAL.match(master)
        builder = builder.master(f"local[{local[2] or 1},{_TRIES}]" if local else master)
    try:
        for name, value in (settings | chosen).items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise ParameterError(
            f"Spark does not start ({_reason(error)}). Check that its master {master} is right and "
            "answers, and that executors can start"
        ) from None


def collected(frame: DataFrame) -> list[Row]:
    """Return the rows of a table.

    Raises
    ------
    inlink.errors.InlinkError
        If a task failed as often as Spark tries it.
    """
    with spark_errors():
        return frame.collect()


@contextmanager
def spark_errors() -> Iterator[None]:
    """Raise an InlinkError for an error of Spark: see :func:`failure`."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise failure(error) from None


def failure(error: Exception) -> InlinkError:
    """Return the reason why a job of Spark failed: the error of inlink in a task, or the first reason of Spark."""
    text = str(error)
    own = _OWN.search(text)
    if own and own[1] in inlink.errors.__all__:
        in_task: InlinkError = getattr(inlink.errors, own[1])(own[2])
        return in_task
    if is_stopped(error):
        return InlinkError(
            "Spark: the cluster ended the application: no executor started, or somebody stopped it. Read the logs "
            "of master and workers. Common causes are too little memory (spark.executor.memory) and a missing Java"
        )
    return InlinkError(f"Spark: {_reason(error)}")


def is_stopped(error: Exception) -> bool:
    """Return whether a job of Spark failed because the whole application has ended."""
    return bool(_STOPPED.search(str(error)))


def _reason(error: Exception) -> str:
    """Return the first line of an error of Java or Python that names the error."""
    lines = [line.strip(" \t:") for line in str(error).splitlines()]
    reasons = [line for line in lines if "Exception" in line or "Error" in line] or lines or [""]
    return " ".join(reasons[0].split())[:400]

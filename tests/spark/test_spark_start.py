"""One line says why Spark does not start."""

import os
import subprocess
import sys
from typing import Any

import pytest

from inlink.errors import MissingExtraError, ParameterError

pytest.importorskip("pyspark", reason="pyspark is not installed")

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

import inlink.spark
from inlink.spark import start


@pytest.mark.slow
def test_without_java_one_line_says_what_to_install(tmp_path):
    code = "import inlink.spark; inlink.spark.session()"
    env = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert MissingExtraError.__name__ in done.stderr.splitlines()[-1]
    assert "openjdk-17-jre-headless" in done.stderr


def test_a_master_that_does_not_answer_is_told_in_one_line(monkeypatch):
    """Spark gives up after a minute, with the stack of Java. Here is what py4j raises then."""

    def fail(builder: Any) -> Any:
        raise Py4JError(
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
            ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"
            + "\tat org.apache.spark.SparkContext.assertNotStopped\n"
            * 40
        )

    monkeypatch.setattr(start, "active", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", fail)
    with pytest.raises(ParameterError) as caught:
        inlink.spark.session("spark://127.0.0.1:1")
    assert str(caught.value) == (
        "Spark does not start (java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.). "
        "Check that its master spark://127.0.0.1:1 is right and answers, and that executors can start"
    )

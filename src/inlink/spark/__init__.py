"""Graphs and rankings on a Spark cluster.

:func:`build` reads archives in Spark's tasks, and :func:`rank` computes PageRank there. They return what
:func:`inlink.read` and :func:`inlink.pagerank` return. :func:`session` starts Spark. ``SCRIPT`` is the path of a script
for ``spark-submit``, which takes the arguments of the command ``inlink``.
"""

from pathlib import Path

from inlink.errors import MissingExtraError

try:
    import pyspark as _pyspark
except ModuleNotFoundError as _error:
    if _error.name != "pyspark":
        raise
    raise MissingExtraError("PySpark is not installed: pip install 'inlink[spark]'") from None

from inlink.spark.pagerank import rank
from inlink.spark.parts import SparkTasks, build
from inlink.spark.rows import read_arcs
from inlink.spark.start import active, session

__all__ = ["SCRIPT", "SparkTasks", "active", "build", "rank", "read_arcs", "session"]

SCRIPT = Path(__file__).parent / "script" / "inlink_spark.py"

del _pyspark

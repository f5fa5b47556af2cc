"""The command ``inlink`` for ``spark-submit``, which runs files and no modules."""

import runpy

runpy.run_module("inlink", run_name="__main__", alter_sys=True)

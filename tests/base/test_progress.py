"""Commands tell once that they compile loops, wherever they begin to."""

import logging
import subprocess
import sys

from inlink.base import progress as module
from inlink.base.progress import progress

LOG = logging.getLogger("inlink.compiling")


def test_compiling_is_said_while_progress_is_shown(capsys, monkeypatch):
    # A notebook shows it already.
    monkeypatch.setattr(LOG, "handlers", [])
    LOG.info("before")
    with progress():
        LOG.info("compiling")
        module.show_compiling()
        LOG.info("once")
    assert capsys.readouterr().err == "inlink: compiling\ninlink: once\n"
    LOG.handlers.clear()
    LOG.setLevel(logging.NOTSET)
    LOG.info("after")
    assert capsys.readouterr().err == ""


def test_compiling_is_said_in_a_notebook():
    script = (
        "import sys, types, logging\n"
        "sys.modules['ipykernel'] = types.ModuleType('ipykernel')\n"
        "import inlink\n"
        "logging.getLogger('inlink.compiling').info('compiling')\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "inlink: compiling\n")


def test_a_log_that_shows_it_already_is_enough(capsys):
    import pytest

    pytest.importorskip("scrapy")
    from inlink.scrapy.job import Job
    from inlink.scrapy.run import logging_to

    with progress(), logging_to(Job(), verbose=False, quiet=False):
        LOG.info("compiling")
    assert capsys.readouterr().err.count("compiling") == 1

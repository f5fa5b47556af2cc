"""Imports of many modules at once: nothing is collected meanwhile, and nothing in the process stays changed."""

import gc
import os
import subprocess
import sys

import pytest

from inlink.base.importing import quick_imports

VARIABLE = "OPENBLAS_THREAD_TIMEOUT"


@pytest.fixture(autouse=True)
def collecting(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    was = gc.isenabled()
    gc.enable()
    yield
    if not was:
        gc.disable()


def test_collection_and_environment_are_as_before_after_the_imports():
    with quick_imports():
        assert (gc.isenabled(), os.environ[VARIABLE]) == (False, "4")
        with quick_imports():
            pass
        assert (gc.isenabled(), os.environ[VARIABLE]) == (False, "4")
    assert (gc.isenabled(), VARIABLE in os.environ) == (True, False)


def test_an_import_that_fails_leaves_nothing_changed():
    with pytest.raises(ImportError), quick_imports():
        raise ImportError
    assert (gc.isenabled(), VARIABLE in os.environ) == (True, False)


def test_choices_of_the_user_stay(monkeypatch):
    monkeypatch.setenv(VARIABLE, "20")
    gc.disable()
    with quick_imports():
        assert os.environ[VARIABLE] == "20"
    assert (gc.isenabled(), os.environ[VARIABLE]) == (False, "20")


@pytest.mark.slow
@pytest.mark.parametrize(
    "imported", ["import inlink.scrapy", pytest.param("import inlink; inlink.Crawl", marks=pytest.mark.soak)]
)
def test_nothing_is_collected_while_the_modules_of_a_crawl_are_imported(imported):
    script = (
        "import gc, sys, scrapy.crawler\n"
        "from twisted.internet import reactor\n"
        "import scrapy.core.engine\n"
        "collected = []\n"
        "gc.collect()\n"
        "gc.callbacks.append(lambda phase, told: collected.append(told['generation']))\n"
        "before = len(sys.modules)\n"
        f"{imported}\n"
        "gc.callbacks.clear()\n"
        "assert len(sys.modules) > before + 100, len(sys.modules) - before\n"
        # Each collection is told at its begin and its end. Without the context there are about 40 collections.
        "assert len(collected) < 10, collected\n"
        "assert gc.isenabled()\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr

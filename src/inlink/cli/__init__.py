"""The commands. They are thin: the library does the work.

Modules here import only click and light modules. Each command imports the rest when it runs, so that ``inlink --help``
is quick. The module of a command is imported when it is called, and those of all commands for ``inlink --help``.
"""

import os
import signal
import sys
from typing import Any, NoReturn

import click

from inlink import __version__
from inlink.base.table import printable
from inlink.cli.sections import Sections
from inlink.errors import InlinkError


@click.group(cls=Sections, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="inlink")
def commands() -> None:
    """Build and rank link graphs of crawls and archives, and run crawls that fetch the best pages first.

    \b
    inlink build crawl.warc.gz -o graph     build a graph from archives or graph files
    inlink rank graph                       rank the graph, and keep the ranking in its folder
    inlink top graph --by pagerank          show the best nodes
    inlink crawl https://example.org/       crawl politely; with --topic, the best pages first
    inlink next mycrawl --peek              show the next pages of a crawl, with reasons
    """  # noqa: D301


commands.add_section(
    "Graphs",
    [
        "build",
        "build:fold",
        "build:subgraph",
        "rank",
        "top",
        "whatif",
        "top:diff",
        "drift",
        "info",
        "export",
        "publish",
        "plot",
    ],
)
commands.add_section(
    "Crawls",
    [
        "crawl",
        "steer:seed",
        "steer:next_",
        "info:crawl_info",
        "steer:reload",
        "audit",
        "replay",
        "export:import_ranking",
        "export:dump",
        "repair:backup",
        "repair",
    ],
)
commands.add_section(
    "Look-ups in a graph or a crawl",
    [f"lookups:{name}" for name in ("page", "why", "find", "links", "near", "path")],
)
commands.add_section("Several spiders on one crawl", ["serve", "serve:token", "repair:reshard"])
commands.add_section("As in Nutch", ["nutch"])
commands.add_section("On a Spark cluster", ["spark"])


def main() -> NoReturn:
    """Run a command: bad input is one line on standard error and exit code 2."""
    # SIGTERM cleans up like Ctrl-C.
    signal.signal(signal.SIGTERM, _interrupt)
    # OpenBLAS would start a thread for each processor when NumPy is imported, and no command uses them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # They are None if they are closed, as by >&-.
    if sys.stdout is None or sys.stderr is None:
        nowhere = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    try:
        code = commands.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort) as error:
        _fail(f"interrupted; {str(error) or 'unfinished output was removed'}", 130)
    except InlinkError as error:
        _fail(str(error))
    except OSError as error:
        from inlink.base.disk import described

        _fail(described(error, "a file"))
    except ModuleNotFoundError as error:
        if error.name not in ("fcntl", "resource"):
            raise
        _fail(
            "crawls need Linux or macOS: this system has no locks on files (fcntl); graphs and ranks need none"
        )
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        _fail(
            "the system starts no further thread: raise the limits of memory and processes (ulimit -v, ulimit -u)"
        )
    except MemoryError:
        _fail("not enough memory: the data of all nodes must fit in memory; use a machine with more memory")
    sys.exit(code or 0)


def _interrupt(*_: Any) -> NoReturn:
    raise KeyboardInterrupt


def _fail(message: str, code: int = 2) -> NoReturn:
    # A server's words may be in it, and must not steer the terminal.
    line = printable(" ".join(message.split()))
    sys.stderr.write(f"inlink: {line}\n")
    sys.exit(code)

import gc
import os
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from random import Random
from shutil import disk_usage
from time import time
from typing import Any
from urllib.parse import unquote
from urllib.request import Request, urlopen

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from loopback import loopback
from patience import PATIENCE

ROOT = Path(__file__).parents[1]

# `make test` gives the same verdict each time: no random examples, no stored ones, nothing that depends on speed.
# There is no deadline because the first call of a kernel compiles it.
settings.register_profile(
    "inlink",
    max_examples=20,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make soak` runs all examples that a test asks for, and 100 by default. They are also the same each time.
settings.register_profile("soak", settings.get_profile("inlink"), max_examples=100)
# Number of examples of each property test in `make quick`.
settings.register_profile("quick", settings.get_profile("inlink"), max_examples=5)
# `make search` tries random examples, and failures of earlier searches first.
settings.register_profile(
    "search",
    settings.get_profile("inlink"),
    derandomize=False,
    database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
    print_blob=True,
)
settings.load_profile("inlink")
# A search multiplies each test's number of examples by this.
SEARCH_FACTOR = 10
# `make test` runs this share of a test's examples, but at least this number of them.
TEST_SHARE, TEST_LEAST = 1 / 3, 20
# A test whose examples take long asks for fewer. `make soak` multiplies their number by this.
SOAK_FACTOR = 4


def searching(config: pytest.Config) -> bool:
    """Return whether `make search` runs, not `make test`."""
    return bool(config.getoption("--hypothesis-profile") == "search")


def pytest_configure(config: pytest.Config) -> None:
    """Let tests send SIGINT, and make Hypothesis draw the same constants in every process.

    Without a search, it must not draw those of modules that happen to be imported already. They depend on the tests
    that ran before in the same process.
    """
    from hypothesis.internal.conjecture import providers

    # Modules and tests stay in memory. Collecting garbage while they are imported would only take time.
    gc.disable()
    # A shell starts background jobs with SIGINT ignored, and commands that tests interrupt would inherit this.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    if not searching(config) and hasattr(providers, "_get_local_constants"):
        providers._get_local_constants = lambda: providers._local_constants


def pytest_collection_finish() -> None:
    """Collect garbage from now on."""
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Set each test's number of examples. In a search, shuffle the tests, because not all may run in time."""
    profile = config.getoption("--hypothesis-profile")
    for test in filter(is_hypothesis_test, {getattr(item, "function", None) for item in items}):
        own = getattr(test, "_hypothesis_internal_use_settings", None)
        # Schemathesis keeps the settings of its tests elsewhere.
        if own is None:
            continue
        examples = own.max_examples
        if searching(config):
            examples *= SEARCH_FACTOR
        elif profile == "quick":
            examples = min(examples, settings.get_profile("quick").max_examples)
        elif profile == "soak":
            examples *= SOAK_FACTOR if examples < TEST_LEAST else 1
        else:
            examples = min(examples, max(TEST_LEAST, int(examples * TEST_SHARE)))
        test._hypothesis_internal_use_settings = settings(own, max_examples=examples)
    if searching(config):
        # All processes of one run need the same order.
        Random(os.environ.get("PYTEST_XDIST_TESTRUNUID")).shuffle(items)
    else:
        # Workers of pytest-xdist take tests from the end of each other's lists. So tests at the start of a list stay
        # with one worker, and Spark's tests share its Java process. With four such processes they take twice the time.
        items.sort(key=lambda item: "spark" not in item.path.parts)


# Tests write and remove a hundred thousand small files. In memory, this takes a third less time than on a disk. A
# container may have too little of this memory.
_memory = Path("/dev/shm")
if "TMPDIR" not in os.environ and _memory.is_dir() and disk_usage(_memory).free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(_memory)

# Spark's tests start many short Java processes. There, Java's optimising compiler and parallel garbage collector take
# more time than they save.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# An edit of any kernel, or of the log's format, makes all cached machine code stale (base/jit.py). Each state of them
# has a cache of its own here, so that going back to an earlier state compiles nothing.
_sources = [path for path in sorted((ROOT / "src").rglob("*.py")) if "kernels" in str(path)]
_sources.append(ROOT / "src" / "inlink" / "store" / "format.py")
_kernels = sha256(b"".join(path.read_bytes() for path in _sources))
# The user's own cache and state have no part in tests.
os.environ["XDG_CACHE_HOME"] = str(ROOT / ".cache")
os.environ["XDG_STATE_HOME"] = str(ROOT / ".cache" / "state")
_checked = "-checked" if os.environ.get("INLINK_CHECK_BOUNDS", "") not in ("", "0") else ""
os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(ROOT / ".cache" / f"numba-{_kernels.hexdigest()[:16]}{_checked}")
)


@pytest.fixture(scope="session")
def data() -> Callable[[str], Path]:
    """Find a sample of ``tests/data`` by its name, or a real crawl or graph in ``../shared/data`` by its path.

    Where the real one is absent, the test is skipped and says its name. Each format has a sample, so that no path
    of the code depends on real data. A path may lack its suffix, as the two files of a BVGraph are named.
    """

    def find(relative: str) -> Path:
        own = "/" not in relative
        path = (ROOT / "tests" / "data" if own else ROOT.parent / "shared" / "data") / relative
        if not path.exists() and not list(path.parent.glob(f"{path.name}.*")):
            if own:
                raise FileNotFoundError(path)
            pytest.skip(f"real data absent: {relative}")
        return path

    return find


@contextmanager
def _patience() -> Iterator[None]:
    """Raise in what hangs, so that it fails with the traceback of where it waits, and the other tests still run."""

    def enough(*_: object) -> None:
        raise TimeoutError(
            f"this did not end within {PATIENCE:g} s; INLINK_TEST_PATIENCE is how long it may take"
        )

    before = signal.signal(signal.SIGALRM, enough)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    # The rest of a search is skipped when its time is up.
    if time() > float(os.environ.get("SEARCH_UNTIL", "inf")):
        pytest.skip("the time of this search is up")
    with _patience():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    from inlink.base.jit import Late

    needed = set()

    def call(late: Late, *given: Any) -> Any:
        if late.python.__module__.startswith("inlink."):
            needed.add(late.python.__qualname__)
        return compile_and_call(late, *given)

    compile_and_call, Late.__call__ = Late.__call__, call  # type: ignore[method-assign]
    try:
        with _patience():
            result = yield
    finally:
        Late.__call__ = compile_and_call  # type: ignore[method-assign]
    # Users who install the wheel without Numba cannot call these kernels. Nothing is collected if the tests run without
    # machine code, because Numba then compiles all kernels.
    assert not needed, (
        f"no machine code accepts the arguments of {sorted(needed)}: run python -m ahead record --add COMMAND"
    )
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None]:
    with _patience():
        return (yield)


@pytest.fixture
def s3(monkeypatch) -> Iterator[dict[str, str]]:
    """Serve an empty S3 on loopback, and give the environment variables that lead to it.

    moto keeps its buckets in the process and not in the server, so they are removed at first.
    """
    server = pytest.importorskip("moto.server", reason="moto is not installed")
    for name in ("AWS_PROFILE", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    made = server.ThreadedMotoServer("127.0.0.1", 0)
    made.start()
    try:
        endpoint = "http://{}:{}".format(*made.get_host_and_port())
        urlopen(Request(f"{endpoint}/moto-api/reset", method="POST")).close()
        yield {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
        }
    finally:
        made.stop()


class _Files(BaseHTTPRequestHandler):
    """Serves the files below a folder, as ``http://`` and as the bucket of an S3 server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        path = Path(
            self.server.folder, unquote(self.path.partition("?")[0]).removeprefix("/bucket").lstrip("/")
        )  # type: ignore[attr-defined]
        data = path.read_bytes() if path.is_file() else b""
        low, high = 0, len(data)
        if not path.is_file():
            self.send_response(404)
        elif wanted := self.headers.get("Range", "").removeprefix("bytes="):
            low, high = int(wanted.partition("-")[0]), min(int(wanted.partition("-")[2] or high) + 1, high)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {low}-{high - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(high - low))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data[low:high])

    do_HEAD = do_GET  # noqa: N815 - the name that BaseHTTPRequestHandler looks for

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def file_server(tmp_path_factory) -> Iterator[str]:
    """Serve all files of the tests on loopback, and give the URL of the folder that holds them."""
    with loopback(_Files) as server:
        server.folder = tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture(params=["file", "http", "s3"])
def at(request, tmp_path_factory, monkeypatch) -> Callable[[Path], Path | str]:
    """Name a file of a test as it is, or by a URL that leads to it. Damage must show alike."""
    if request.param == "file":
        return lambda path: path
    root, url = tmp_path_factory.getbasetemp(), request.getfixturevalue("file_server")
    if request.param == "s3":
        pytest.importorskip("obstore", reason="obstore is not installed")
        for name in ("AWS_PROFILE", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL_S3"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        url = "s3://bucket"
    return lambda path: f"{url}/{path.relative_to(root)}"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Any]:
    """A crawl that is opened, reopened and closed at will."""
    from crawlworld import World  # imports kernels, so not before the cache is keyed

    one = World(tmp_path / "c")
    yield one
    one.close()

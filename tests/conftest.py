import os
import signal
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# no deadline: the first call of a kernel compiles it; no randomness in CI: a red run must be of the change's making
settings.register_profile("inlink", deadline=None, max_examples=60, derandomize=bool(os.environ.get("CI")))
settings.load_profile("inlink")

ROOT = Path(__file__).parents[1]

# A cached kernel does not notice that a kernel it calls was edited in another file: key the cache by them all.
_kernels = sha256(
    b"".join(p.read_bytes() for p in sorted((ROOT / "src").rglob("*.py")) if "kernels" in str(p))
)
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache" / f"numba-{_kernels.hexdigest()[:16]}"))


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Real crawls and graphs that lie beside the project; a test is skipped, saying so, where one is absent."""

    def find(relative: str) -> Path:
        path = ROOT.parent / "shared" / "data" / relative
        if not path.exists() and not list(path.parent.glob(f"{path.name}.*")):
            pytest.skip(f"shared data absent: {relative}")
        return path

    return find


@pytest.fixture
def patience() -> Iterator[None]:
    """A crawl that does not end fails its test, and not the whole run."""

    def enough(*_: object) -> None:
        raise TimeoutError("two minutes")

    before = signal.signal(signal.SIGALRM, enough)
    signal.alarm(120)  # on a cold cache, kernels are compiled meanwhile
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Any]:
    """A crawl that is opened, reopened and closed at will."""
    from crawlworld import World  # imports kernels, so not before the cache is keyed

    one = World(tmp_path / "c")
    yield one
    one.close()

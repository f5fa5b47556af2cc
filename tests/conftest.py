import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

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

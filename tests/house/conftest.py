from collections.abc import Iterator

import pytest

from bench import house


@pytest.fixture(scope="module", autouse=True)
def _forget_syntax_trees() -> Iterator[None]:
    """The tests of a module share the syntax trees of all files, which take too much memory to be kept longer."""
    yield
    house.nodes.cache_clear()

from collections.abc import Iterator

import pytest

from bench import house


@pytest.fixture(scope="module", autouse=True)
def _forget_syntax_trees() -> Iterator[None]:
    """Remove the syntax trees that the tests of a module share, because they take 300 MB."""
    yield
    house.nodes.cache_clear()

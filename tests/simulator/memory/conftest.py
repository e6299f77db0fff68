"""In this folder the reference engine has plain memories: engines share no model of them here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.simulator.memory.plain_memories import independent_memories


@pytest.fixture(autouse=True, scope="module")
def plain() -> Iterator[None]:
    with independent_memories():
        yield

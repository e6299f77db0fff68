"""In this folder the reference engine has plain memories: engines share no model of them here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from t2s.simulator import reference_engine
from tests.simulator.memory.plain_memories import plain_memories


@pytest.fixture(autouse=True, scope="module")
def plain() -> Iterator[None]:
    """The memories of ``plain_memories``, except where a test has a ``MonkeyPatch`` of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference_engine, "memories_of", plain_memories)
        yield

"""What the tests of backends share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the builds of Verilator keep what they share."""
    return tmp_path_factory.mktemp("verilator-runtime")

"""Golden files: expected texts that live under ``tests/golden``.

``pytest --update-golden`` rewrites them; read the diff before you commit it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"

Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """``golden("folder/name.txt", text)``: fails with a full diff if the text has changed."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            return
        if not path.exists():
            pytest.fail(f"there is no golden file {name}; make it with --update-golden")
        expected = path.read_text(encoding="utf-8")
        if text != expected:
            diff = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm=""
            )
            pytest.fail("\n".join([f"{name} has changed", *diff]), pytrace=False)

    return check

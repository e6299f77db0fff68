"""Golden files, and parts of the tests.

Expected texts live under ``tests/golden``.  ``pytest --update-golden`` rewrites them; read the diff
before you commit it.

``pytest --part 2/4`` runs the second of four parts of the tests, about alike in number.  A test is
always in the same part, whatever others there are.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

GOLDEN = Path(__file__).parent / "golden"

Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )
    parser.addoption("--part", metavar="K/N", help="run the K-th of N parts of the tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    given = config.getoption("--part")
    if given is None:
        return
    found = re.fullmatch(r"(\d+)/(\d+)", given)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise pytest.UsageError(f"--part {given} is not a part: 2/4 is the second of four")
    number, count = int(found[1]), int(found[2])
    parts = [crc32(item.nodeid.encode()) % count + 1 for item in items]
    left = [item for item, part in zip(items, parts, strict=True) if part != number]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item, part in zip(items, parts, strict=True) if part == number]


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

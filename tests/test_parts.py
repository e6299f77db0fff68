"""Parts of the tests, of which the gate runs one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import pytest_collection_modifyitems

NAMES = [f"tests/test_a.py::test_b[{number}]" for number in range(400)]


def part(given: str | None) -> list[str]:
    """The names of the tests of a part."""
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in NAMES]
    left = list[Any]()
    hook = SimpleNamespace(pytest_deselected=lambda items: left.extend(items))
    config: Any = SimpleNamespace(getoption=lambda option: given, hook=hook)
    pytest_collection_modifyitems(config, items)
    assert len(items) + len(left) == (len(NAMES) if given else len(items))
    return [item.nodeid for item in items]


def test_each_test_is_in_one_part() -> None:
    parts = [part(f"{number}/4") for number in range(1, 5)]
    assert sorted(name for one in parts for name in one) == sorted(NAMES)
    assert all(60 < len(one) < 140 for one in parts)
    assert part(None) == part("1/1") == NAMES


@pytest.mark.parametrize("given", ["0/4", "5/4", "4", "a/b", "1/0"])
def test_what_is_no_part(given: str) -> None:
    with pytest.raises(pytest.UsageError, match="is not a part: 2/4 is the second of four"):
        part(given)

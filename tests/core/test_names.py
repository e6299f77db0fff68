"""Fresh names."""

from __future__ import annotations

from t2s.core.names import NameSupply


def test_a_free_name_is_kept() -> None:
    assert NameSupply().fresh("A") == "A"


def test_taken_names_are_numbered_from_two() -> None:
    supply = NameSupply(["A"])
    assert [supply.fresh("A"), supply.fresh("A"), supply.fresh("B")] == ["A_2", "A_3", "B"]


def test_a_number_in_use_is_skipped() -> None:
    supply = NameSupply(["A", "A_2"])
    assert supply.fresh("A") == "A_3"
    assert supply.fresh("A_2") == "A_2_2"


def test_supplies_are_independent() -> None:
    NameSupply().fresh("A")
    assert NameSupply().fresh("A") == "A"

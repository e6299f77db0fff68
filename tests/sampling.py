"""Tables of cases of which some run always, and all of them among the slow tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet


def sampled(
    names: str | Sequence[str], cases: Iterable[Any], *, quick: int, **options: Any
) -> pytest.MarkDecorator:
    """``parametrize`` with ``quick`` of the cases, evenly spaced; all others are slow tests."""
    single = "," not in names if isinstance(names, str) else len(names) == 1
    listed = list(cases)
    step = (len(listed) - 1) / max(quick - 1, 1)
    chosen = {round(number * step) for number in range(quick)}
    return pytest.mark.parametrize(
        names,
        [case if at in chosen else _slow(case, single) for at, case in enumerate(listed)],
        **options,
    )


def _slow(case: Any, single: bool) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow], id=case.id)
    return pytest.param(*((case,) if single else case), marks=pytest.mark.slow)

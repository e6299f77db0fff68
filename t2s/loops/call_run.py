"""Running loops around calls by address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.core.preparation import preparation
from t2s.loops.call_nest import FUNCTION, STATUS, NestedCall, nest_of
from t2s.loops.ir import LoopArray
from t2s.loops.machine import machine_code

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NestRun:
    """What loops around a call run on: its address, arrays and numbers by the arguments' names.

    The first value of an array is where the loops begin.
    """

    nest: NestedCall
    address: int
    arrays: Mapping[str, Array]
    numbers: Mapping[str, int]


def run_nest(run: NestRun) -> int | None:
    """Make all calls.  The status of one that failed, which was the last; ``None`` if none did."""
    with preparation():
        function = nest_of(run.nest)
        code = machine_code(function)
    numbers = {**run.numbers, FUNCTION: run.address, STATUS: 0}
    table = np.zeros(1 + len(function.arguments), np.int64)
    for one in function.arguments:
        array = isinstance(one, LoopArray)
        table[function.slot(one.name)] = (
            run.arrays[one.name].ctypes.data if array else numbers[one.name]
        )
    failed = code.run(table.ctypes.data, 0)
    return int(table[function.slot(STATUS)]) if failed else None

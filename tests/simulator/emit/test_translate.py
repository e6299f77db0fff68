"""Kernels mean in machine code what they mean in Python, and what they cannot say is refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from t2s.core.errors import InternalError
from t2s.llvm.kernels import CompiledKernel, translate
from t2s.llvm.operands import Argument, Record, inlined

INT, BOOL = Argument.INT64, Argument.BOOLEAN
SIGNED, UNSIGNED, NARROW = Argument.INT64_ARRAY, Argument.UINT64_ARRAY, Argument.INT32_ARRAY
U = np.uint64
_TWO, _COUNT = U(2), 5
CORNERS = (0, 1, -1, 2, -2, 3, -3, 7, -8, 63, -64, 1 << 30, -(1 << 30), (1 << 31) - 1)


def compiled(function: Callable[..., Any], *arguments: Argument | Record) -> CompiledKernel:
    """A function of this file as a kernel."""
    return CompiledKernel(
        module=__name__, name=function.__name__, sources=(Path(__file__),), arguments=arguments
    )


def operators(x: int, y: int, found: Any) -> None:
    found[0], found[1], found[2] = x + y, x - y, x * y
    found[3], found[4], found[5] = x & y, x | y, x ^ y
    found[6], found[7] = x >> (y & 63), (x & 0xFFFF) << (y & 15)
    found[8], found[9] = -x, ~x
    if y != 0:
        found[10] = x // y
        found[11] = x % y
    found[12], found[13], found[14] = min(x, y), max(x, 1, y), bool(x) + 1
    found[15] = (x < y) + 2 * (x <= y) + 4 * (x == y) + 8 * (x != y) + 16 * (x > y) + 32 * (x >= y)
    found[16] = (-1 < x < y) + 2 * (not x) + 4 * (x > 0 and y > 0) + 8 * (x > 0 or not y > 0)
    found[17] = x if x > y else -1 if y == 0 else y + 1


def test_operators_of_signed_numbers() -> None:
    run = compiled(operators, INT, INT, SIGNED)
    for x, y in product(CORNERS, CORNERS):
        expected, found = [0] * 18, np.zeros(18, np.int64)
        operators(x, y, expected)
        run(x, y, found)
        assert found.tolist() == list(map(int, expected)), (x, y)


def unsigned(x: Any, found: Any) -> None:
    a, b = x[U(0)], x[U(1)]
    found[U(0)], found[U(1)] = a // b, a % b
    found[U(2)], found[U(3)] = a >> _TWO, max(a, b)
    if a > b:
        found[U(4)] += 3
    found[U(5)] = U(np.int64(a) >> 2)
    for number in range(b, b + U(3)):
        found[U(6)] += number


def test_operators_of_unsigned_numbers() -> None:
    x, found = np.array([(1 << 64) - 9, 5], np.uint64), np.zeros(7, np.uint64)
    compiled(unsigned, UNSIGNED, UNSIGNED)(x, found)
    a, top = (1 << 64) - 9, (1 << 64) - 1
    assert found.tolist() == [a // 5, a % 5, a >> 2, a, 3, (-9 >> 2) & top, 5 + 6 + 7]


def collatz(start: int, seen: Any) -> int:
    """Loops of all kinds, left by all ways."""
    count, value = 0, start
    while True:
        seen[count] = value
        if value == 1:
            break
        count += 1
        if value & 1 == 0:
            value //= 2
            continue
        value = 3 * value + 1
    for place in range(count // 2):
        other = count - place
        seen[place], seen[other] = seen[other], seen[place]
    for place in range(count, -1, -2):
        if seen[place] > 40:
            return place
        else:
            seen[place] += 1000
    while value < 3:
        value += 1
    first = second = value
    return -first - second


def test_control_flow() -> None:
    run = compiled(collatz, INT, SIGNED)
    for start in (1, 2, 7, 27, 97):
        expected, found = [0] * 200, np.zeros(200, np.int64)
        assert run(start, found) == collatz(start, expected)
        assert found.tolist() == expected


class Parts(NamedTuple):
    """A record with a field of each type."""

    narrow: Any
    signed: Any
    unsigned: Any
    number: int
    flag: bool


PARTS = Record(Parts, (NARROW, SIGNED, UNSIGNED, INT, BOOL))


@inlined
def _both(parts: Parts, at: Any) -> tuple[Any, Any, bool]:
    value = parts.signed[at]
    return value + parts.number, parts.narrow[at], parts.flag and value > 0


def _nothing(parts: Parts, at: Any) -> None:
    if at > 2:
        return
    parts.unsigned[at] += U(1)


def sums(step: int) -> Callable[..., int]:
    """A function with a free variable."""

    def run(parts: Parts, more: bool) -> int:
        total = np.int64(0)
        for at in range(0, len(parts.signed), 1):
            one, other, both = _both(parts, at)
            total += step * one
            total += other if both or more else _both(parts, at)[1] - 1
            _nothing(parts, at)
        return total

    return run


run_sums = sums(10)


def test_records_calls_and_free_variables() -> None:
    for flag, more in product((False, True), (False, True)):
        parts = Parts(
            np.array([-1, 2, 3, -4], np.int32),
            np.array([5, -6, 7, 8]),
            np.array([0, 1, 2, 3], np.uint64),
            100,
            flag,
        )
        copy = Parts(*(part.copy() if isinstance(part, np.ndarray) else part for part in parts))
        run = compiled(run_sums, PARTS, BOOL)
        kernel = CompiledKernel(
            module=__name__, name="run_sums", sources=run.sources, arguments=run.arguments
        )
        assert kernel(parts, more) == run_sums(copy, more)
        assert parts.unsigned.tolist() == copy.unsigned.tolist() == [1, 2, 3, 3]


def test_the_last_numbers_may_be_given_later() -> None:
    seen = np.zeros(200, np.int64)
    run = compiled(spread, SIGNED, INT, INT).prepared(seen)
    assert [run(3, 4), run(5, 6)] == [7, 11]
    assert seen[:2].tolist() == [5, 6]


def spread(seen: Any, x: int, y: int) -> int:
    seen[0], seen[1] = x, y
    return x + y


# -- what is refused ------------------------------------------------------------------------------


def mixed(x: int, found: Any) -> None:
    found[0] = found[0] + x


def changing(x: int, found: Any) -> None:
    value = x > 3
    value = x
    found[0] = U(value)


def halves(x: int, found: Any) -> None:
    found[0] = U(x / 2)


def floats(x: int, found: Any) -> None:
    found[0] = 0.5


def unknown(x: int, found: Any) -> None:
    found[0] = nowhere(x)  # noqa: F821


def printed(x: int, found: Any) -> None:
    repr(x)


def endless(x: int, found: Any) -> int:
    return endless(x, found)


def uneven(x: int, found: Any) -> Any:
    if x > 3:
        return x
    return x, x


def forgotten(x: int, found: Any) -> Any:
    if x > 3:
        return x


def stepped(x: int, found: Any) -> None:
    for at in range(0, 10, x):
        found[at] = U(0)


def over_items(x: int, found: Any) -> None:
    for item in found:
        found[0] = item


def of_numbers(x: int, found: Any) -> None:
    found[0] = x[0]


def other_array(x: int, found: Any) -> None:
    alias = found
    alias = found
    alias[0] = U(x)


REFUSED = {
    mixed: "signed and unsigned integers are mixed",
    changing: "this does not become BOOLEAN",
    halves: "kernels have no such operator",
    floats: "kernels have no such expression",
    unknown: "nowhere is not there",
    printed: "kernels cannot call this",
    endless: "the kernel endless calls itself",
    uneven: "all ways out of a function return as many values",
    forgotten: "all ways out of a function return as many values",
    stepped: "the step of a range is a constant",
    over_items: "kernels have no such statement",
    of_numbers: "only arrays have elements, at numbers",
    other_array: "alias is assigned to twice, and is not a number",
}


def test_what_kernels_cannot_say_is_refused() -> None:
    for function, message in REFUSED.items():
        with pytest.raises(InternalError, match=message) as caught:
            translate(function, (INT, UNSIGNED))
        assert function is endless or f"{Path(__file__).name}:" in str(caught.value)


@pytest.mark.parametrize(
    "array", [np.zeros(2, np.float64), np.zeros((2, 2), np.int64), np.zeros(4, np.int64)[::2]]
)
def test_arrays_have_to_be_flat_and_of_their_type(array: np.ndarray) -> None:
    with pytest.raises(InternalError, match="a kernel takes a flat array of int64"):
        compiled(collatz, INT, SIGNED)(1, array)

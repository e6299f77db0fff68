"""The fused multiply-add: rounded once, for every number that there is."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import t2s
from t2s.core.ops import Op, apply_operator
from t2s.core.types import BFloat, Float, Int, Type, UInt

EDGES = [0.0, -0.0, 1.0, -1.0, 3.0, 1 / 3, 2.0**-1074, -(2.0**-1022), 1e-310, 1.7e308, -1e160]
EDGES += [2.0**27 + 1, 1 + 2.0**-52, 1 - 2.0**-53, 2.0**-540, 2.0**600]
EDGES += [math.inf, -math.inf, math.nan]


def fma(type: Type, *operands: object) -> object:
    with np.errstate(all="ignore"):
        arrays = tuple(np.asarray(operand, type.numpy) for operand in operands)
        return apply_operator(Op.FUSED_MULTIPLY_ADD, type, arrays)


def exactly(a: float, b: float, c: float) -> float:
    """By fractions; of numbers that are finite."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a == 0 or b == 0 else 0.0
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def check(a: list[float], b: list[float], c: list[float]) -> None:
    """All at once and one by one."""
    found = np.asarray(fma(Float(64), a, b, c))
    for number, (x, y, z) in enumerate(zip(a, b, c, strict=True)):
        alone = float(np.asarray(fma(Float(64), x, y, z)))
        assert np.float64(alone).tobytes() == found[number].tobytes() or math.isnan(alone)
        if all(map(math.isfinite, (x, y, z))):
            wanted = exactly(x, y, z)
            assert np.float64(wanted).tobytes() == found[number].tobytes(), (x, y, z)
        else:
            with np.errstate(all="ignore"):
                plain = np.float64(x) * np.float64(y) + np.float64(z)
            assert math.isnan(plain) == math.isnan(found[number])


def test_edges() -> None:
    points = [(a, b, c) for a in EDGES for b in EDGES for c in EDGES]
    check(*(list(column) for column in zip(*points, strict=True)))


FLOATS = st.floats(width=64, allow_nan=False, allow_infinity=False)
USUAL = st.floats(-1e30, 1e30)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(FLOATS | USUAL, FLOATS | USUAL, FLOATS | USUAL), min_size=5, max_size=40))
def test_float64(points: list[tuple[float, float, float]]) -> None:
    near = [(a, b, -(a * b)) for a, b, _ in points if math.isfinite(a * b)]
    half = [(1 + 2.0**-30, 1 + a * 2.0**-52, c) for a, _, c in points if abs(a) < 1e10]
    columns = zip(*points, *near, *half, strict=True)
    check(*(list(column) for column in columns))


def test_float32_is_rounded_once() -> None:
    generator = np.random.default_rng(1)
    bits = generator.integers(0, 2**32, (3, 3000), dtype=np.uint32)
    a, b, c = bits.view(np.float32)
    with np.errstate(all="ignore"):
        c[::2] = -(a * b)[::2]
        c[1::4] = (a * b)[1::4] * np.float32(2**-24)
    found = np.asarray(fma(Float(32), a, b, c))
    for x, y, z, one in zip(a, b, c, found, strict=True):
        if not all(map(math.isfinite, map(float, (x, y, z)))):
            continue
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if abs(exact) > 2**127 or not exact:
            continue
        low, high = np.nextafter(one, np.float32(-np.inf)), np.nextafter(one, np.float32(np.inf))
        error = abs(Fraction(float(one)) - exact)
        assert all(error <= abs(Fraction(float(n)) - exact) for n in (low, high))
    assert fma(Float(32), 1 + 2.0**-23, 1 + 2.0**-23, -1 - 2.0**-22) == 2.0**-46


@pytest.mark.parametrize("type", [Int(8), UInt(8), Int(32), UInt(64)])
def test_integers_wrap(type: Type) -> None:
    top = int(np.iinfo(type.numpy).max)
    assert fma(type, top, 1, 1) == np.iinfo(type.numpy).min
    assert fma(type, 3, 4, 5) == 17


@pytest.mark.parametrize("type", [Float(16), BFloat()], ids=str)
def test_narrow_floats_go_through_float32(type: Type) -> None:
    a, b, c = np.array([1.5, 3.0, 300.0]), np.array([2.5, 1 / 3, 200.0]), np.array([0.125, -1, 1])
    narrow = [part.astype(type.numpy).astype(np.float32) for part in (a, b, c)]
    expected = np.asarray(fma(Float(32), *narrow)).astype(type.numpy)
    assert np.asarray(fma(type, a, b, c)).tobytes() == expected.tobytes()


def test_users_say_when() -> None:
    """Only what is written as t2s.fma is rounded once."""
    i = t2s.Var("i")
    A, B, C = (t2s.ImageParam(t2s.Float(64), 1, name=name) for name in "ABC")
    once, twice = t2s.Func("once"), t2s.Func("twice")
    once[i] = t2s.fma(A[i], B[i], C[i])
    twice[i] = A[i] * B[i] + C[i]
    inputs = {"A": np.array([1 + 2.0**-30] * 6), "B": np.array([1 - 2.0**-30] * 6)}
    inputs["C"] = np.full(6, -1.0)
    for func, value in ((once, -(2.0**-60)), (twice, 0.0)):
        func.bound(i, 0, 6)
        for engine in ("python", "native"):
            found = t2s.simulate(func, inputs, engine=engine).outputs[func.name]
            np.testing.assert_array_equal(found, np.full(6, value))
        np.testing.assert_array_equal(t2s.interpret(func, inputs), np.full(6, value))
    with pytest.raises(t2s.errors.UserError, match="the operator fma is not defined on bool"):
        t2s.fma(A[i] < 1, B[i] < 1, C[i] < 1)

"""The device table and what is read from it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from t2s.core.expr import Broadcast, Cast, Expr, Local, ReduceLanes, Select
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, BFloat, Bool, Float, Int, Type, UInt
from t2s.simulator.devices import DEVICES, TypeFamily, family_of

ARRIA10 = DEVICES["arria10"]
FLOAT32 = Float(32)


def local(type: Type) -> Local:
    return Local(name="v", type=type)


@pytest.mark.parametrize(
    ("type", "family"),
    [
        (Bool(), TypeFamily.BOOL),
        (Int(8), TypeFamily.INTEGER),
        (UInt(64), TypeFamily.INTEGER),
        (BFloat(), TypeFamily.BFLOAT16),
        (Float(16), TypeFamily.FLOAT16),
        (FLOAT32.with_lanes(8), TypeFamily.FLOAT32),
        (Float(64), TypeFamily.FLOAT64),
    ],
)
def test_families(type: Type, family: TypeFamily) -> None:
    assert family_of(type) is family


def tree(lanes: int, type: Type = FLOAT32) -> Expr:
    return ReduceLanes(operator=Op.ADD, value=local(type.with_lanes(lanes)), type=type)


@pytest.mark.parametrize(
    ("expr", "cycles"),
    [
        (local(FLOAT32) + local(FLOAT32), 4),
        (local(INT32) + local(INT32), 1),
        (local(INT32) < local(INT32), 0),
        (local(FLOAT32) < local(FLOAT32), 1),
        (local(INT32) * local(INT32), 3),
        (tree(16), 4 * 4),
        (tree(5), 3 * 4),
        (tree(2, INT32), 1),
        (
            Select(condition=local(BOOL), if_true=local(INT32), if_false=local(INT32), type=INT32),
            0,
        ),
        (Cast(value=local(INT32), type=FLOAT32), ARRIA10.conversion_latency),
        (Cast(value=local(INT32), type=Int(64)), 0),
        (Cast(value=local(Float(64)), type=FLOAT32), ARRIA10.conversion_latency),
        (Broadcast(value=local(FLOAT32), type=FLOAT32.with_lanes(4)), 0),
    ],
)
def test_latency_of_expressions(expr: Expr, cycles: int) -> None:
    assert ARRIA10.latency_of(expr) == cycles
    assert DEVICES["ideal"].latency_of(expr) == 0


def test_bandwidth_per_cycle_is_exact() -> None:
    assert ARRIA10.memory_bytes_per_cycle == Fraction(34_100, 215)
    assert DEVICES["ideal"].memory_bytes_per_cycle is None


def test_boards() -> None:
    assert (ARRIA10.clock_hz, ARRIA10.dsp_blocks, ARRIA10.ram_blocks) == (215_000_000, 1518, 2713)
    stratix10 = DEVICES["stratix10"]
    assert (stratix10.dsp_blocks, stratix10.ram_blocks) == (5760, 11721)
    assert "not a machine" in DEVICES["ideal"].description


def test_variants_do_not_touch_the_original() -> None:
    fast = replace(ARRIA10, name="fast", clock_hz=300_000_000)
    assert fast.operator_latency(Op.ADD, FLOAT32) == 4
    assert ARRIA10.clock_hz == 215_000_000
    assert hash(fast) != hash(ARRIA10)
    with pytest.raises(TypeError):
        ARRIA10.operator_latencies[Op.ADD, TypeFamily.FLOAT32] = 1  # type: ignore[index]


@pytest.mark.parametrize("size", [8, 16, 32])
def test_a_cgra_takes_time_for_float64_alone(size: int) -> None:
    device = DEVICES[f"cgra{size}"]
    assert device.load_latency == device.store_latency == device.conversion_latency == 0
    assert device.memory_bytes_per_cycle is None
    assert str(size * size // 4) in device.description
    for operator in Op:
        wanted = 4 if operator.value in ("+", "-", "*", "fma") else 0
        assert device.operator_latency(operator, Float(64)) == wanted
        assert device.operator_latency(operator, INT32) == 0

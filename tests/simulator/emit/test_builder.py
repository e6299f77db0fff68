"""The kit writes LLVM code that LLVM reads, and that does what its methods say."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from t2s.core.errors import InternalError
from t2s.llvm.compile import compile_module
from t2s.llvm.ir import (
    DOUBLE,
    FLOAT,
    I1,
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    Builder,
    Module,
    Value,
    constant_vector,
    integer,
    null,
    vector_type,
)

Emit = Callable[[Builder, Value, Value], Value]


def computed(emit: Emit, left: int, right: int) -> int:
    """What a function of two numbers gives."""
    module = Module()
    function = module.function("run", I64, [I64, I64], attributes="nounwind")
    builder = Builder(function)
    builder.ret(emit(builder, *function.args))
    engine = compile_module(str(module))
    numbers = (ctypes.c_int64,) * 2
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *numbers)(engine.get_function_address("run"))
    return int(run(left, right))


@pytest.mark.parametrize(
    ("emit", "expected"),
    [
        (lambda b, x, y: b.add(x, y, "nsw"), -4),
        (lambda b, x, y: b.sub(x, y), -10),
        (lambda b, x, y: b.mul(x, y), -21),
        (lambda b, x, y: b.sdiv(x, y), -2),
        (lambda b, x, y: b.srem(x, y), -1),
        (lambda b, x, y: b.udiv(b.neg(x), y), 2),
        (lambda b, x, y: b.urem(b.neg(x), y), 1),
        (lambda b, x, y: b.and_(x, y), -7 & 3),
        (lambda b, x, y: b.or_(x, y), -7 | 3),
        (lambda b, x, y: b.xor(x, y), -7 ^ 3),
        (lambda b, x, y: b.not_(x), 6),
        (lambda b, x, y: b.shl(x, y), -56),
        (lambda b, x, y: b.ashr(x, y), -1),
        (lambda b, x, y: b.lshr(x, y), ((1 << 64) - 7) >> 3),
        (lambda b, x, y: b.zext(b.icmp_signed("<", x, y), I64), 1),
        (lambda b, x, y: b.zext(b.icmp_unsigned("<", x, y), I64), 0),
        (lambda b, x, y: b.sext(b.icmp_signed("!=", x, y), I64), -1),
        (lambda b, x, y: b.zext(b.trunc(x, I8), I64), 249),
        (lambda b, x, y: b.select(integer(0, I1), x, y, unpredictable=True), 3),
        (lambda b, x, y: b.intrinsic("llvm.abs.i64", I64, [x, integer(0, I1)]), 7),
        (
            lambda b, x, y: b.bitcast(b.fneg(b.sitofp(y, DOUBLE)), I64),
            int(np.float64(-3).view(np.int64)),
        ),
    ],
)
def test_operators(emit: Emit, expected: int) -> None:
    assert computed(emit, -7, 3) == expected


def test_floats_and_nan() -> None:
    def compare(builder: Builder, left: Value, right: Value) -> Value:
        nan = builder.fdiv(null(FLOAT), null(FLOAT))
        found = builder.zext(builder.is_nan(nan), I64)
        for number, compare in enumerate((builder.fcmp_ordered, builder.fcmp_unordered), 1):
            holds = builder.zext(compare("==", nan, nan), I64)
            found = builder.or_(found, builder.shl(holds, integer(number)))
        return found

    assert computed(compare, 0, 0) == 0b101


def test_blocks_loops_and_slots() -> None:
    """The sum of the squares below x, a y for each even one."""

    def emit(builder: Builder, x: Value, y: Value) -> Value:
        total = builder.alloca(I64)
        builder.store(integer(0), total)
        with builder.counting(integer(0), x) as index:
            square = builder.mul(index, index)
            builder.store(builder.add(builder.load(total, total.kept), square), total)
            odd = builder.trunc(index, I1)
            with builder.if_then(builder.not_(odd), rare=True):
                with builder.goto_entry_block():
                    other = builder.alloca(I64)
                builder.store(y, other)
                both = builder.add(builder.load(total, I64), builder.load(other, I64))
                builder.store(both, total)
        return builder.load(total, I64)

    assert computed(emit, 5, 100) == 30 + 300


def test_a_switch_goes_to_the_first_block_for_other_numbers() -> None:
    def emit(builder: Builder, x: Value, y: Value) -> Value:
        blocks = [builder.function.block("case") for _ in range(3)]
        after = builder.function.block("after")
        builder.switch(x, blocks)
        builder.position_at_end(after)
        found = builder.phi(I64)
        for number, block in enumerate(blocks):
            builder.position_at_end(block)
            builder.branch(after)
            found.add_incoming(integer(10 + number), block)
        builder.position_at_end(after)
        return found

    assert [computed(emit, x, 0) for x in (-1, 0, 1, 2, 3)] == [10, 10, 11, 12, 10]


def test_vectors() -> None:
    """Lanes go where they are sent."""

    def emit(builder: Builder, x: Value, y: Value) -> Value:
        numbers = builder.add(
            builder.splat(builder.trunc(x, I32), 4), constant_vector(range(4), I32)
        )
        changed = builder.insert_element(numbers, builder.trunc(y, I32), 2)
        picked = builder.shuffle_vector(changed, null(vector_type(I32, 4)), [3, 2, 7])
        lanes = [builder.zext(builder.extract_element(picked, lane), I64) for lane in range(3)]
        found = lanes[0]
        for lane in lanes[1:]:
            found = builder.add(builder.mul(found, integer(100)), lane)
        return found

    assert computed(emit, 10, 77) == 13_77_00


def test_memory_tables_and_calls() -> None:
    module = Module()
    store = module.function("store", VOID, [POINTER, I64], attributes="noinline", noalias=True)
    store.internal = True
    builder = Builder(store)
    where = builder.offset(store.args[0], builder.mul(store.args[1], integer(8)))
    table = builder.offset(module.table("squares", I64, [0, 1, 4, 9]), integer(24))
    builder.store(builder.load(table, I64, align=8), where, align=8)
    builder.ret_void()
    run = module.function("run", VOID, [POINTER])
    builder = Builder(run)
    builder.call(store, [run.args[0], integer(2)])
    builder.ret_void()
    memory = np.zeros(4, np.int64)
    engine = compile_module(str(module))
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.get_function_address("run"))
    call(memory.ctypes.data)
    assert memory.tolist() == [0, 0, 9, 0]


def test_a_block_ends_once() -> None:
    function = Module().function("run", VOID, [])
    builder = Builder(function)
    builder.ret_void()
    with pytest.raises(InternalError, match="block entry0 of run ends twice"):
        builder.ret_void()

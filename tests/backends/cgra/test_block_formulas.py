"""Blocks by hand on cells: expressions of every operator, registers that change places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import t2s
from t2s.backends.cgra_tia.fabric import CgraFabric
from t2s.backends.cgra_tia.lift import lift_placed
from t2s.backends.cgra_tia.lower import lower_to_netlist
from t2s.backends.cgra_tia.machine.profile_b import run_placed
from t2s.backends.cgra_tia.netlist import Netlist, unplaced
from t2s.core.expr import Cast, Expr, Local, Select, apply, const, equals
from t2s.core.ops import Array, Op
from t2s.core.types import INT32, Float, Int, Type
from t2s.graph.body import Register, RegisterWrite
from t2s.graph.graph import Graph
from t2s.graph.nodes import Choice, Machine, Put, Rule
from t2s.sparse import Streams
from tests.graph import machines

OPEN = CgraFabric(name="open", rows=16, columns=16)
DOUBLE, WORD = Float(64), Int(64)
FORTY = 1 << 40


def least(a: Expr, b: Expr) -> Expr:
    return apply(Op.MINIMUM, a, b)


def chosen(a: Expr, b: Expr) -> Expr:
    return Select(condition=a < b, if_true=a, if_false=b, type=a.type)


def both(a: Expr, b: Expr) -> Expr:
    zero = const(0, a.type)
    inside = (zero < a) & ~(b < zero)
    outside = inside | equals(a, b)
    return Select(condition=outside, if_true=a, if_false=zero, type=a.type)


FLOATS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "product and sum": lambda a, b: a * b + a,
    "two sums": lambda a, b: (a + b) * (a - b),
    "negated": lambda a, b: -a + 0.25,
    "least": lambda a, b: least(a, b * b) - b,
    "most of three": lambda a, b: apply(Op.MAXIMUM, a, apply(Op.MAXIMUM, b, const(1.0, DOUBLE))),
    "whole part": lambda a, b: Cast(value=Cast(value=a, type=WORD), type=DOUBLE),
    "fused": lambda a, b: apply(Op.FUSED_MULTIPLY_ADD, a, b, a),
    "minus zero": lambda a, b: Select(
        condition=a < b,
        if_true=const(0.0, DOUBLE),
        if_false=const(-0.0, DOUBLE),
        type=DOUBLE,
    ),
}

INTEGERS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "product and sum": lambda a, b: b + a * 7,
    "large numbers": lambda a, b: a + const(FORTY, WORD),
    "two numbers": lambda a, b: 3 * (a + 5),
    "quarter": lambda a, b: a // 4,
    "rest": lambda a, b: a % 8,
    "negated": lambda a, b: -a,
    "chosen": chosen,
    "conditions": both,
    "bits": lambda a, b: apply(Op.XOR, a & b, ~(a | b)),
    "short": lambda a, b: Cast(value=Cast(value=a * const(FORTY, WORD), type=INT32), type=WORD),
}


def computing(formula: Callable[[Expr, Expr], Expr], type: Type) -> tuple[Graph, dict[str, Array]]:
    """y[i] by a formula of a[i] and b[i]."""
    s = Streams("formula")
    _, ref = s.scan_dense(s.root(), 8)
    a, b = (s.load(ref, s.tensor(name, type)) for name in "ab")
    s.write_values(s.compute(formula, a, b), s.output("y", type))
    generator = np.random.default_rng(3)
    arrays = {name: generator.integers(-9, 9, 8).astype(type.numpy) for name in "ab"}
    if type.is_float:
        arrays = {name: array + generator.random(8) for name, array in arrays.items()}
    return s.graph(), arrays


def same(graph: Graph, arrays: dict[str, Array], *, contract: bool = False) -> Netlist:
    """The cells give the bits of the graph, and the lifted graph their cycles."""
    netlist = lower_to_netlist(graph, contract=contract)
    design = unplaced(netlist, OPEN, 2)
    run = run_placed(design, arrays)
    lifted = t2s.simulate(lift_placed(design), arrays, engine="python", progress=False)
    assert run.cycles == lifted.cycles
    wanted = t2s.simulate(graph, arrays, engine="python", progress=False)
    for name, array in wanted.outputs.items():
        assert run.outputs[name].tobytes() == lifted.outputs[name].tobytes()
        if not contract:
            assert run.outputs[name].tobytes() == array.tobytes()
        np.testing.assert_allclose(run.outputs[name], array)
    return netlist


SHORT: dict[str, Callable[[Expr, Expr], Expr]] = {
    "least": lambda a, b: least(a * b, const(0)),
    "half": lambda a, b: a * b // 2,
    "shifted": lambda a, b: a + b >> 1,
}


@pytest.mark.parametrize("name", SHORT)
def test_int32_wraps_around(name: str) -> None:
    """Products beyond 32 bits, also from one block to the next."""
    s = Streams("short")
    _, ref = s.scan_dense(s.root(), 6)
    a, b = (s.load(ref, s.tensor(name, INT32)) for name in "ab")
    product = s.compute(Op.MULTIPLY, a, b)
    s.write_values(s.compute(SHORT[name], product, b), s.output("y", INT32))
    large = np.array([1 << 20, 3, 1 << 17, -5, 70_000, -(1 << 31)], np.int32)
    other = np.array([1 << 12, -4, 1 << 14, 7, 70_001, 1], np.int32)
    same(s.graph(), {"a": large, "b": other})


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    same(*computing(FLOATS[name], DOUBLE))


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    same(*computing(INTEGERS[name], WORD))


def opcodes(netlist: Netlist) -> set[str]:
    return {i.opcode.value for cell in netlist.cells for i in cell.program.instructions}


def test_a_product_and_a_sum_are_one_operation_if_that_is_wanted() -> None:
    graph, arrays = computing(FLOATS["product and sum"], DOUBLE)
    fused, apart = same(graph, arrays, contract=True), same(graph, arrays)
    assert "fmac" in opcodes(fused)
    assert opcodes(apart) & {"fmul", "fadd", "fmac"} == {"fmul", "fadd"}


def test_a_block_without_inputs_keeps_the_run_alive() -> None:
    """A source that nobody feeds has a token until it ends."""
    arrays = {"x": np.array([3, 1, 4, 0, 5], np.int32)}
    netlist = same(machines.copying(), arrays)
    assert [u.name for u in netlist.units if u.kind.value == "seq"] == ["source.alive"]


def test_registers_that_change_places() -> None:
    """``r, s = s, r + value`` in one rule; what is put is made of the old values."""
    graph = machines.copying()
    source, sink = graph.machines
    r, s = (Local(name=name, type=INT32) for name in "rs")
    mode = source.modes[0]

    def changed(rule: Rule) -> Rule:
        if not rule.puts or rule.puts[0].value is None:
            return rule
        value = rule.puts[0].value
        puts = (Put(channel="xs", value=r * 10 + s),)
        swap = (
            RegisterWrite(register="r", indices=(), value=s),
            RegisterWrite(register="s", indices=(), value=r + value),
        )
        return replace(rule, body=(*rule.body, *swap), puts=puts)

    choices = tuple(_changed(choice, changed) for choice in mode.choices)
    modes = tuple(replace(m, choices=choices) if m is mode else m for m in source.modes)
    registers = (
        *source.registers,
        *(Register(name=name, type=INT32, shape=(), distance=1) for name in "rs"),
    )
    made: Machine = replace(source, registers=registers, modes=modes)
    arrays = {"x": np.array([3, 1, 4, 1, 5, 0], np.int32)}
    found = replace(graph, nodes=(made, sink))
    same(found, arrays)
    assert t2s.simulate(found, arrays, progress=False).outputs["y"].tolist()[:4] == [0, 3, 31, 17]


def _changed(choice: Choice, change: Callable[[Rule], Rule]) -> Choice:
    if isinstance(choice.inside, Rule):
        return replace(choice, inside=change(choice.inside))
    return replace(choice, inside=tuple(_changed(inner, change) for inner in choice.inside))

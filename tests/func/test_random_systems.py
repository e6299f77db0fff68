"""Random recurrences: the interpreter against evaluation on demand, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import t2s
from t2s import Func, ImageParam, Int
from t2s.core.expr import Apply, Const, Expr, Index, Read, Select, evaluate
from t2s.core.ops import apply_operator
from t2s.func.expressions import Expression
from t2s.func.freeze import freeze
from t2s.func.ir import TemporalProgram
from tests.func.recurrences import recurrences

INT = Int(32)
i, j, k = t2s.variables("i j k")
x = ImageParam(INT, 3, name="x", shape=(12, 12, 12))
ORIGIN = 4  # of x, whose subscripts start at zero


class OnDemand:
    """Elements of functions by recursion over their definitions; independent of any order."""

    def __init__(self, program: TemporalProgram, inputs: dict[str, Any]) -> None:
        self.functions = {function.name: function for function in program.functions}
        self.inputs = inputs
        self.known: dict[tuple[str, tuple[int, ...]], Any] = {}

    def element(self, name: str, point: tuple[int, ...]) -> Any:
        if (name, point) not in self.known:
            function = self.functions[name]
            environment = dict(zip(function.arguments, map(np.int32, point), strict=True))
            self.known[name, point] = self.value(function.initial.value, environment)
        return self.known[name, point]

    def value(self, expr: Expr, environment: dict[str, Any]) -> Any:
        match expr:
            case Read(source=source, indices=indices):
                point = tuple(int(self.value(index, environment)) for index in indices)
                if source in self.inputs:
                    return self.inputs[source][point]
                return self.element(source, point)
            case Select(condition=condition, if_true=if_true, if_false=if_false):
                chosen = if_true if self.value(condition, environment) else if_false
                return self.value(chosen, environment)
            case Apply(operator=operator, operands=operands, type=type):
                values = tuple(self.value(operand, environment) for operand in operands)
                return apply_operator(operator, type, values)
            case Const() | Index():
                return evaluate(expr, environment)
        raise TypeError(expr)


Rows = tuple[Any, Any]  # functions of the outer index that give minimum and end
ROWS: dict[str, Rows] = {
    "box": (lambda outer: -1, lambda outer: 3),
    "upper": (lambda outer: outer, lambda outer: 4),
    "lower": (lambda outer: -2, lambda outer: outer + 1),
    "band": (lambda outer: outer - 1, lambda outer: outer + 2),
}


def outside(point: list[Any], low: int, rows: list[Rows]) -> Expression:
    """Whether a point (of expressions) is not in the domain."""
    first, second, third = point
    bounds = [(first, low, low + 3)]
    bounds += [(second, rows[0][0](first), rows[0][1](first))]
    bounds += [(third, rows[1][0](second), rows[1][1](second))]
    conditions = [part for value, start, end in bounds for part in (value < start, value >= end)]
    result = conditions[0]
    for condition in conditions[1:]:
        result = result | condition
    return result


@st.composite
def systems(draw: st.DrawFn) -> tuple[Func, ...]:
    """Three members that read each other at random legal distances, over random rows.

    F reads H of an earlier iteration, G reads F and H reads G of the same one, so that they are
    one system; all other reads are random.
    """
    members = recurrences("F G H", INT)
    low = draw(st.integers(-2, 1))
    rows = [ROWS[draw(st.sampled_from(sorted(ROWS)))] for _ in range(2)]
    carried = draw(st.sets(st.integers(0, 2), min_size=1))

    def distance() -> tuple[int, ...]:
        parts = [draw(st.integers(-1, 2)) if axis in carried else 0 for axis in range(3)]
        first = next((part for part in parts if part), 0)
        return tuple(-part for part in parts) if first < 0 else tuple(parts)

    for number, member in enumerate(members):
        reads = [(number - 1, (0, 0, 0))]
        if number == 0:
            step = min(carried)
            reads = [(2, tuple(int(axis == step) for axis in range(3)))]
        for _ in range(draw(st.integers(0, 2))):
            source, back = draw(st.integers(0, 2)), distance()
            if any(back) or source < number:
                reads.append((source, back))
        value: Any = x[i + ORIGIN, j + ORIGIN, k + ORIGIN] + number
        for source, back in reads:
            point = [index - part for index, part in zip((i, j, k), back, strict=True)]
            read = members[source][tuple(point)]
            value = value + t2s.select(outside(point, low, rows), number, 3 * read)
        member[i, j, k] = value
    members[0].bound(i, low, 3)
    members[1].bound(j, rows[0][0](i), rows[0][1](i) - rows[0][0](i))
    members[2].bound(k, rows[1][0](j), rows[1][1](j) - rows[1][0](j))
    return members


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(systems(), st.permutations([0, 1, 2]))
def test_random_systems(members: tuple[Func, ...], order: list[int]) -> None:
    together = Func("together")
    together[i, j, k] = members[0][i, j, k] + 5 * members[1][i, j, k] + 7 * members[2][i, j, k]
    outputs = [*(members[number] for number in order), together]
    program = freeze(outputs)
    assert [system.members for system in program.systems] == [("F", "G", "H", "together")]
    values = np.random.default_rng(0).integers(-9, 9, x.shape).astype(np.int32)
    result = t2s.interpret(outputs, {"x": values})
    assert tuple(result) == program.outputs
    oracle = OnDemand(program, {"x": values})
    for function in program.functions:
        origin = [low for low, _ in function.bounds]
        for position in np.ndindex(function.shape):
            point = tuple(a + b for a, b in zip(origin, position, strict=True))
            at = dict(zip(function.arguments, map(np.int32, point), strict=True))
            exists = all(
                0 <= at[d.name] - evaluate(d.minimum, at) < evaluate(d.extent, at)
                for d in function.initial.domain
            )
            expected = oracle.element(function.name, point) if exists else 0
            assert result[function.name][position] == expected

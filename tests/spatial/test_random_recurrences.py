"""Random recurrences under random schedules: refused at the user's line, or equal to the oracle."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import t2s
from t2s import Func, ImageParam, Int, Var
from t2s.errors import UnsupportedError, UserError
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph
from tests.func.recurrences import recurrences

PROFILE = settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
x = ImageParam(Int(32), 2, name="x")
y = ImageParam(Int(32), 1, name="y")
NAMES = ("i", "j")
LOOPS = {name: Var(name) for name in ("i", "j", "ii", "jj", "p", "s", "t")}
i, j = LOOPS["i"], LOOPS["j"]


@dataclass
class Recurrence:
    """A system over (i, j), its schedule, and what was drawn, for the report."""

    members: tuple[Func, ...]
    outputs: tuple[Func, ...]
    loops: dict[str, int]
    log: list[str] = field(default_factory=list)

    @property
    def owner(self) -> Func:
        return self.members[0]


def guarded(source: Func, by: tuple[int, int], extents: tuple[int, int]) -> Any:
    """``source`` at a distance, 0 outside."""
    inside = None
    for index, step, extent in zip((i, j), by, extents, strict=True):
        test = index >= step if step > 0 else index < extent + step if step < 0 else None
        if test is not None:
            inside = test if inside is None else inside & test
    read = source[i - by[0], j - by[1]]
    return read if inside is None else t2s.select(inside, read, 0)


@st.composite
def recurrence(draw: st.DrawFn) -> Recurrence:
    extents = (draw(st.integers(2, 4)), draw(st.sampled_from([2, 3, 4, 6])))
    members = recurrences("M D"[: draw(st.sampled_from([1, 3]))], Int(32))
    behind = st.one_of(
        st.tuples(st.integers(1, 2), st.integers(-2, 2)), st.tuples(st.just(0), st.integers(1, 3))
    )
    log = []
    for at, member in enumerate(members):
        value = x[i, j] if draw(st.booleans()) else x[i, j] * y[j]
        value = value + guarded(members[(at + 1) % len(members)], draw(behind), extents)
        log.append(f"{member.name} {extents}")
        if draw(st.booleans()):
            value = value - guarded(member, draw(behind), extents)
        if at and draw(st.booleans()):
            value = value + 2 * members[0][i, j]
        member[i, j] = value
        log[-1] += f" = {value!r}"
    triangular = draw(st.booleans()) and extents[0] <= extents[1]
    members[0].bound(i, 0, extents[0])
    if triangular and len(members) == 1:
        # values to the left of the diagonal are not there: read straight up or from the left only
        members = recurrences("M", Int(32))
        (M,) = members
        M[i, j] = x[i, j] + t2s.select(i > 0, M[i - 1, j], 1) - t2s.select(j > i, M[i, j - 1], 0)
        M.bound(i, 0, extents[0]).bound(j, i, extents[1] - i)
        log = [f"triangle {extents}"]
    else:
        members[0].bound(j, 0, extents[1])
    outputs: tuple[Func, ...] = members[-1:]
    if draw(st.booleans()):
        last = Func("last")
        last[i] = members[-1][i, extents[1] - 1]
        outputs = (last.bound(i, 0, extents[0]),)
    if len(members) == 2 and outputs[0] is members[-1] and draw(st.booleans()):
        outputs = members
    return Recurrence(
        members=members, outputs=outputs, loops=dict(zip(NAMES, extents, strict=True)), log=log
    )


def split(draw: st.DrawFn, program: Recurrence) -> None:
    name = draw(st.sampled_from(sorted(program.loops)))
    extent = program.loops[name]
    factor = draw(st.sampled_from([n for n in range(1, extent + 1) if extent % n == 0]))
    inner = name + name
    if inner in program.loops or len(inner) > 2:
        return
    program.owner.split(LOOPS[name], LOOPS[name], LOOPS[inner], factor)
    program.loops |= {name: extent // factor, inner: factor}
    program.log.append(f"split {name} {factor}")


def reorder(draw: st.DrawFn, program: Recurrence) -> None:
    order = draw(st.permutations(sorted(program.loops)))
    program.owner.reorder(*(LOOPS[name] for name in order))
    program.log.append(f"reorder {order}")


def unroll(draw: st.DrawFn, program: Recurrence) -> None:
    name = draw(st.sampled_from(sorted(program.loops)))
    program.owner.unroll(LOOPS[name])
    program.log.append(f"unroll {name}")


def transform(draw: st.DrawFn, program: Recurrence) -> None:
    names = draw(st.permutations(sorted(program.loops)))[: draw(st.integers(1, 3))]
    loops = [LOOPS[name] for name in names]
    if len(names) == 1 or draw(st.booleans()):
        factors = [draw(st.integers(0, 2)) for _ in names]
        program.owner.space_time_transform(loops, factors)
        program.log.append(f"skew {names} {factors}")
        return
    targets = [LOOPS[name] for name in ("p", "s", "t")[-draw(st.integers(2, len(names))) :]]
    small = st.integers(-1, 2)
    rows = [[draw(small) for _ in names] for _ in targets]
    if draw(st.booleans()):  # a schedule that steps over everything that is not placed
        extents = [program.loops[name] for name in names]
        rows[-1] = [prod(extents[at + 1 :]) for at in range(len(names))]
    program.owner.space_time_transform(loops, targets, rows)
    program.log.append(f"transform {names} {rows}")


@st.composite
def scheduled(draw: st.DrawFn) -> Recurrence:
    program = draw(recurrence())
    for step in draw(st.lists(st.sampled_from([split, split, reorder]), max_size=3)):
        step(draw, program)
    draw(st.sampled_from([unroll, transform, transform]))(draw, program)
    if draw(st.booleans()):
        program.owner.isolate_producer(x, Func("x_loader"))
    if draw(st.booleans()):
        program.outputs[0].isolate_consumer(Func("unloader"))
    return program


def lowered(program: Recurrence) -> Graph | None:
    """The graph, or ``None`` if the schedule was refused at a line of the user's."""
    try:
        return t2s.lower(program.outputs)
    except UserError as refusal:
        error = refusal
    assert type(error) in (UserError, UnsupportedError), str(error)
    assert error.location is not None, str(error)
    assert "/tests/" in error.location.file, str(error)
    return None


@pytest.mark.slow
@PROFILE
@given(scheduled())
def test_values_and_cycles(program: Recurrence) -> None:
    note("\n".join(program.log))
    graph = lowered(program)
    if graph is None:
        return
    random = np.random.default_rng(1)
    inputs = {
        tensor.name: random.integers(-9, 9, tensor.shape, np.int32)
        for tensor in graph.tensors
        if tensor.name in ("x", "y")
    }
    expected = t2s.interpret(program.outputs, inputs)
    wanted = expected if isinstance(expected, dict) else {program.outputs[0].name: expected}
    python = t2s.simulate(graph, inputs, engine="python", progress=False)
    native = t2s.simulate(graph, inputs, engine="native", progress=False)
    untimed = interpret_graph(graph, inputs, {})
    assert python.cycles == native.cycles
    for name, value in wanted.items():
        np.testing.assert_array_equal(python.outputs[name], value, err_msg=name)
        np.testing.assert_array_equal(native.outputs[name], value, err_msg=name)
        np.testing.assert_array_equal(untimed[name], value, err_msg=name)


@settings(PROFILE, max_examples=15)
@given(scheduled())
def test_lowering_is_deterministic(program: Recurrence) -> None:
    graph = lowered(program)
    if graph is not None:
        assert t2s.lower(program.outputs) == graph

"""Random index notation: assignments, formats, loop orders and inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from t2s.core.ops import Op
from t2s.core.walk import Term, walk
from t2s.errors import UserError
from t2s.sparse import Format, Notation, Schedule, coo, make_format, parse
from t2s.sparse_repr.notation.ir import (
    Assignment,
    Combine,
    Sum,
    accesses,
    all_variables,
)

Array = np.ndarray[Any, Any]
VARIABLES = "ijkl"
NAMES = "ABCDE"


@dataclass(frozen=True, kw_only=True)
class Case:
    """An assignment, how to schedule it, and what to run it on."""

    text: str
    assignment: Assignment
    schedule: Schedule
    inputs: dict[str, Array]

    def __repr__(self) -> str:
        formats = ", ".join(f"{t.name}:{t.format}" for t in self.assignment.tensors)
        return f"Case({self.text!r}, {formats}, {self.schedule.directives})"


@st.composite
def formats(draw: st.DrawFn, order: int, kinds: str) -> Format:
    """Any levels in any order of modes, or a list of coordinates."""
    if order and kinds != "d" and draw(st.integers(0, 4)) == 0:
        return coo(order, draw(st.permutations(range(order))))
    letters = "".join(draw(st.sampled_from(kinds)) for _ in range(order))
    return make_format(letters, draw(st.permutations(range(order))))


@st.composite
def expressions(
    draw: st.DrawFn, leaves: tuple[str, ...], depth: int, functions: Sequence[str] = ()
) -> str:
    """Sums, products and, rarely, quotients, functions and choices of accesses and numbers."""
    if depth == 0:
        number = draw(st.integers(0, 9)) == 0
        return str(draw(st.integers(1, 4))) if number else draw(st.sampled_from(leaves))
    if functions and draw(st.integers(0, 9)) == 0:
        parts = [draw(expressions(leaves, depth - 1, functions)) for _ in range(2)]
        condition = draw(st.sampled_from(leaves))
        condition = f"({condition}-{draw(st.integers(1, 8))})" if draw(st.booleans()) else condition
        return f"where({condition},{parts[0]},{draw(st.sampled_from(('0', parts[1])))})"
    if functions and draw(st.integers(0, 7)) == 0:
        inner = draw(expressions(leaves, depth - 1, functions))
        call = f"{draw(st.sampled_from(functions))}({inner})"
        return f"stored({call})" if draw(st.booleans()) else call
    operator = draw(st.sampled_from("**++-*+*-*" * 2 + "/"))
    left = draw(expressions(leaves, draw(st.integers(0, depth - 1)), functions))
    right = draw(expressions(leaves, draw(st.integers(0, depth - 1)), functions))
    if operator == "-" and draw(st.integers(0, 2)) == 0:
        return f"{draw(st.sampled_from(('min', 'max')))}({left},{right})"
    return f"({left}{operator}{right})"


@st.composite
def cases(
    draw: st.DrawFn, *, extent: int = 3, zero: bool = True, functions: Sequence[str] = ()
) -> Case:
    """Up to five operands of up to four modes, in all level kinds and all orders of loops."""
    variables = VARIABLES[: draw(st.integers(1, 4))]
    stored: dict[str, Format] = {}
    leaves = []
    for name in NAMES[: draw(st.integers(1, 5))]:
        chosen = draw(st.permutations(variables))[: draw(st.integers(0, len(variables)))]
        stored[name] = draw(formats(len(chosen), "dsssdubtl"))
        leaves.append(f"{name}({','.join(chosen)})" if chosen else name)
    value = draw(expressions(tuple(leaves), draw(st.integers(0, 3)), functions))
    result = draw(st.permutations(variables))[: draw(st.integers(0, len(variables)))]
    kinds = draw(st.sampled_from(("d", "s", "ds", "dsub")))
    stored["X"] = draw(formats(len(result), kinds))
    text = f"X({','.join(result)})={value}" if result else f"X={value}"
    smallest = 0 if zero and draw(st.integers(0, 9)) == 0 else 1
    extents = {name: draw(st.integers(smallest, extent)) for name in VARIABLES}
    used = {name: format for name, format in stored.items() if name in text}
    assignment = _parsed(text, used, {"X": [extents[name] for name in result]})
    schedule = draw(schedules(all_variables(assignment)))
    parts = [
        term
        for term in walk(assignment.value)
        if isinstance(term, Combine) and not any(map(_is_no_part, walk(term)))
    ]
    if parts and draw(st.integers(0, 7)) == 0:
        part = draw(st.sampled_from(parts))
        schedule = schedule.precompute(Notation(part, {}), "W")
    generator = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    inputs = {}
    for access in accesses(assignment.value):
        shape = tuple(extents[name] for name in access.variables)
        part = draw(st.sampled_from((0.0, 0.3, 0.6, 1.0)))
        array = generator.integers(1, 9, shape) * (generator.random(shape) < part)
        inputs[access.tensor] = np.asarray(array, np.float64)
    return Case(text=text, assignment=assignment, schedule=schedule, inputs=inputs)


def _parsed(text: str, formats: dict[str, Format], shapes: dict[str, Sequence[int]]) -> Assignment:
    """The assignment; sums that functions leave unclear are around these, as the hint writes it."""
    while True:
        try:
            return parse(text, formats, shapes)
        except UserError as error:
            if error.hint is None or "or around it" not in error.message:
                raise
            text = error.hint.split(" or ")[1]


def _is_no_part(term: Term) -> bool:
    """Sums, and quotients: a workspace that holds an infinity is a tensor as any other, whose
    infinities are not multiplied with what is not stored."""
    return isinstance(term, Sum) or (isinstance(term, Combine) and term.operator is Op.DIVIDE)


@st.composite
def schedules(draw: st.DrawFn, variables: tuple[str, ...]) -> Schedule:
    """Any order of loops, sometimes with a split, fused loops or lanes.

    Discordant tensors are transposed.
    """
    schedule, loops = Schedule().transpose(), list(variables)
    if loops and draw(st.integers(0, 5)) == 0:
        at = draw(st.integers(0, len(loops) - 1))
        schedule = schedule.split(loops[at], "outer", "inner", draw(st.integers(1, 3)))
        loops[at : at + 1] = ["outer", "inner"]
    if loops and draw(st.integers(0, 4)) == 0:
        schedule = schedule.vectorize(draw(st.sampled_from(loops)), draw(st.integers(2, 3)))
    ordered = bool(loops) and draw(st.booleans())
    if ordered:
        loops = draw(st.permutations(loops))
        schedule = schedule.reorder(*loops)
    if ordered and len(loops) > 1 and draw(st.integers(0, 2)) == 0:
        at = draw(st.integers(0, len(loops) - 2))
        schedule = schedule.fuse(loops[at], loops[at + 1], "fused")
        loops[at : at + 2] = ["fused"]
        if draw(st.booleans()):
            schedule = schedule.split("fused", "runs", "run", draw(st.integers(1, 3)))
            schedule = schedule.parallelize("runs", draw(st.integers(1, 3)))
            loops[at] = "runs"
    if loops and draw(st.integers(0, 4)) == 0:
        schedule = schedule.parallelize(draw(st.sampled_from(loops)), draw(st.integers(1, 3)))
    if variables and draw(st.integers(0, 7)) == 0:
        schedule = schedule.skip(draw(st.sampled_from(variables)))
    return schedule

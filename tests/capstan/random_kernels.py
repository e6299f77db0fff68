"""Random assignments for Capstan: formats, expressions, schedules, extents and inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import t2s
from t2s.core.ops import Op
from t2s.sparse import Notation, Schedule, Tensor, make_format
from t2s.sparse_repr.notation.ir import Combine, accesses

NAMES = ("i", "j", "k")


@dataclass(frozen=True)
class RandomKernel:
    """An assignment with a schedule and inputs."""

    result: Tensor
    schedule: Schedule
    inputs: dict[str, Any]


def _operand(draw: Any, name: str, inputs: dict[str, Any], extents: dict[str, int]) -> Notation:
    count = draw(st.integers(0, 3))
    variables = draw(st.permutations(NAMES))[:count]
    letters = "".join(draw(st.sampled_from("ds")) for _ in variables)
    modes = draw(st.permutations(range(count))) if draw(st.booleans()) else range(count)
    tensor = Tensor(name, make_format(letters, tuple(modes)))
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    shape = tuple(extents[one] for one in variables)
    density = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    values = generator.integers(1, 9, shape) * (generator.random(shape) < density)
    inputs[name] = values.astype(np.int32)
    return tensor[tuple(t2s.Var(one) for one in variables)] if count else tensor


@st.composite
def random_kernels(draw: Any) -> RandomKernel:
    """Products, sums and both, of two to four operands."""
    extents = {name: draw(st.integers(0, 4)) for name in NAMES}
    inputs: dict[str, Any] = {}
    terms: list[Notation] = []
    left = draw(st.integers(2, 4))
    letters = iter("BCDE")
    while left:
        factors = draw(st.integers(1, left))
        left -= factors
        term = _operand(draw, next(letters), inputs, extents)
        for _ in range(factors - 1):
            term = term * _operand(draw, next(letters), inputs, extents)
        terms.append(-term if draw(st.integers(0, 4)) == 0 else term)
    value = terms[0]
    for term in terms[1:]:
        value = value + term if draw(st.booleans()) else value - term
    used = sorted({name for n in value.tensors for name in _variables(value, n)})
    kept = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
    letters_of = "".join(draw(st.sampled_from("ds")) for _ in kept)
    modes = tuple(draw(st.permutations(range(len(kept)))))
    result = Tensor("A", make_format(letters_of, modes))
    result[tuple(t2s.Var(name) for name in kept) if kept else ...] = value
    schedule = Schedule().environment(
        outer_par=draw(st.sampled_from([1, 2, 3, 16])),
        inner_par=draw(st.sampled_from([1, 4, 16])),
    )
    if draw(st.booleans()):
        schedule = schedule.reorder(*draw(st.permutations(used))) if used else schedule
    if kept and draw(st.integers(0, 3)) == 0:
        schedule = schedule.communicate("A", draw(st.sampled_from(kept)))
    for part in _parts(draw, terms, value):
        schedule = schedule.precompute(*part)
    sums = [name for name in used if name not in kept]
    if sums and draw(st.booleans()):
        schedule = schedule.accelerate(draw(st.sampled_from(sums)), "reduction")
    return RandomKernel(result, schedule, inputs)


def _parts(draw: Any, terms: list[Notation], value: Notation) -> list[tuple[Any, ...]]:
    """At most one part of the expression with a workspace and its variables."""
    chosen = draw(st.sampled_from(["none", "none", "operand", "sum"]))
    if chosen == "operand":
        access = draw(st.sampled_from(accesses(value.value)))
        part, variables = Notation(access, {}), access.variables
    elif chosen == "sum" and len(terms) > 1 and isinstance(value.value, Combine):
        first = value.value
        while isinstance(first.left, Combine) and first.left.operator is not Op.MULTIPLY:
            first = first.left
        part = Notation(first, {})
        variables = tuple(dict.fromkeys(v for one in accesses(first) for v in one.variables))
    else:
        return []
    over = tuple(draw(st.permutations(variables))[: draw(st.integers(0, len(variables)))])
    letters = "".join(draw(st.sampled_from("ds")) for _ in over)
    format = make_format(letters).on_chip if over else make_format("")
    return [(part, Tensor("W", format), over)]


def _variables(value: Notation, name: str) -> set[str]:
    return {
        v for access in accesses(value.value) if access.tensor == name for v in access.variables
    }

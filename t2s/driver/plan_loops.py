"""Our loops of a plan: a statement on arrays and stored tensors, on this machine.

This is all that plans know of how statements without functions are computed.  A product with one
sparse operand goes through its stored entries and computes nothing else; any other statement is
computed by ``evaluate``, on dense arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from t2s.capability.normal import normal_form
from t2s.driver.plan_inputs import dense_view, is_dense, places_of
from t2s.plan.interpret import statement_value
from t2s.sparse_repr.notation.ir import Access, Assignment
from t2s.sparse_repr.semiring import PLUS_TIMES
from t2s.sparse_repr.tensors.tensor import SparseTensor, from_coordinates

Array = np.ndarray[Any, Any]
Value = Array | SparseTensor

MOST_ELEMENTS = 1 << 20
"""Elements of operands that are gathered at once."""


def run_loops(
    assignment: Assignment,
    values: Mapping[str, Value],
    extents: Mapping[str, int],
    kind: np.dtype[Any],
) -> Value:
    """What a statement computes: an array, or a tensor in the format of its result."""
    sampled = _Sampled.of(assignment, values)
    if sampled is not None:
        return sampled.computed(extents, kind)
    dense = {name: dense_view(value) for name, value in values.items()}
    return statement_value(assignment, dense, extents, kind, places_of(values))


class _Sampled:
    """A product with one sparse operand: what is there of it is where that one stores something."""

    def __init__(
        self, assignment: Assignment, sparse: Access, others: list[Access], values: Any
    ) -> None:
        self.assignment = assignment
        self.sparse = sparse
        self.others = others
        self.values = values

    @classmethod
    def of(cls, assignment: Assignment, values: Mapping[str, Value]) -> _Sampled | None:
        """The product that a statement is, if it is one."""
        terms = normal_form(assignment.value, assignment.semiring)
        if assignment.semiring != PLUS_TIMES or len(terms) != 1 or terms[0].coefficient != 1:
            return None
        factors = [factor for factor in terms[0].factors if isinstance(factor, Access)]
        once = all(len(set(one.variables)) == len(one.variables) for one in factors)
        once = once and all(one.finite for one in factors)
        if len(factors) != len(terms[0].factors) or not once:
            return None
        sparse = [one for one in factors if isinstance(values[one.tensor], SparseTensor)]
        names = {name for one in factors for name in one.variables}
        if len(sparse) != 1 or not set(assignment.result.variables) <= names:
            return None
        others = [one for one in factors if one is not sparse[0]]
        return cls(assignment, sparse[0], others, values)

    def computed(self, extents: Mapping[str, int], kind: np.dtype[Any]) -> Value:
        stored: SparseTensor = self.values[self.sparse.tensor]
        table, entries = stored.coordinates()
        at = dict(zip(self.sparse.variables, table.T, strict=True))
        rest = tuple(
            dict.fromkeys(name for one in self.others for name in one.variables if name not in at)
        )
        result = self.assignment.result.variables
        inner = tuple(name for name in result if name not in at)
        outer = tuple(name for name in result if name in at)
        shape = tuple(extents[name] for name in (*outer, *inner))
        same = not inner and set(outer) == set(at)
        found = np.zeros((len(entries),) if same else shape, kind)
        size = max(1, MOST_ELEMENTS // max(1, prod(extents[name] for name in rest)))
        for start in range(0, len(entries), size):
            part = slice(start, start + size)
            here = {name: column[part] for name, column in at.items()}
            made = self._product(entries[part], here, rest, inner, kind)
            if same:
                found[part] = made
            else:
                np.add.at(found, tuple(here[name] for name in outer) or (), _summed(made, outer))
        if same:
            full = tuple(extents[name] for name in result)
            format = self.assignment.tensor(self.assignment.result.tensor).format
            places = tuple(at[name] for name in result)
            if not is_dense(format):
                return from_coordinates(np.stack(places, axis=1), found, full, format)
            target = np.zeros(full, kind)
            target[places] = found
            return target
        order = [(*outer, *inner).index(name) for name in result]
        return found.transpose(order)

    def _product(
        self,
        entries: Array,
        here: Mapping[str, Array],
        rest: tuple[str, ...],
        inner: tuple[str, ...],
        kind: np.dtype[Any],
    ) -> Array:
        """The products of some entries, with an axis for them and for each variable of inner."""
        letters = {name: number + 1 for number, name in enumerate(rest)}
        operands: list[Any] = [np.asarray(entries, kind), [0]]
        for one in self.others:
            array = dense_view(self.values[one.tensor])
            ours = [name for name in one.variables if name in here]
            left = [name for name in one.variables if name not in here]
            moved = array.transpose([one.variables.index(name) for name in (*ours, *left)])
            if ours:
                moved = moved[tuple(here[name] for name in ours)]
            operands += [moved, [*([0] if ours else []), *(letters[name] for name in left)]]
        with np.errstate(all="ignore"):
            made = np.einsum(*operands, [0, *(letters[name] for name in inner)])
        return np.asarray(made, kind)


def _summed(made: Array, outer: tuple[str, ...]) -> Array:
    """What is added at once, where the result has none of the entries' variables."""
    return made if outer else np.add.reduce(made, axis=0, dtype=made.dtype)

"""Lower bounds on the cycles of a kernel, from the coordinates of its inputs alone.

A scanner, an array and an ALU take one element in a cycle, and the end of a fiber in another.  So a
stage takes at least as many cycles as it has products and fibers of them, and as a compressed level
has coordinates in all fibers that its loops scan: those of inputs that are not below a coordinate
which another factor lacks.  Lanes share them.
Both numbers only depend on the order of the loops, so they are counted once for all formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from t2s.core.ops import Op
from t2s.driver.assignment_design import Compiled
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    Statement,
    Where,
    result_of,
)
from t2s.sparse_repr.formats import Part
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Combine,
    Expression,
    Negative,
    Over,
    Sum,
    Unary,
)
from t2s.sparse_repr.tensors.tensor import SparseTensor, from_coordinates

MOST_TUPLES = 1 << 23
"""Loops with more iterations are not counted."""

Indices = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, kw_only=True)
class _Tree:
    """The entries of an input as a tree with a level for each of its variables, in loop order.

    The children of node ``p`` at depth ``d`` are ``first[d][p]`` up to ``first[d][p + 1]``;
    ``coordinates[d]`` are those of all nodes of the next depth, and ``keys[d]`` the same with their
    parents, in order.
    """

    first: tuple[Indices, ...]
    coordinates: tuple[Indices, ...]
    keys: tuple[Indices, ...]


@dataclass(frozen=True, kw_only=True)
class _Level:
    """Of a loop: its iterations, all together, and what is scanned of each input at it."""

    iterations: int
    scanned: tuple[tuple[Access, int], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Taken:
    """Coordinates of some modes of a result, a row for each of them; those of others are all."""

    modes: tuple[int, ...]
    coordinates: Indices

    def as_entries(self, shape: Sequence[int]) -> SparseTensor:
        """A tensor over these modes that has something where they are taken."""
        extents = [shape[mode] for mode in self.modes]
        return from_coordinates(self.coordinates, np.ones(len(self.coordinates)), extents)


TAKEN = "#taken"
"""The name of the coordinates that are taken, as a factor beside the tensors."""


@dataclass(kw_only=True)
class Bounds:
    """Bounds for kernels of one assignment on the same inputs."""

    inputs: Mapping[str, Any]
    extents: Mapping[str, int]
    _levels: dict[tuple[object, ...], tuple[_Level, ...]] = field(default_factory=dict)
    _trees: dict[tuple[object, ...], _Tree] = field(default_factory=dict)

    def of(self, kernel: Compiled, stored: Mapping[str, Any]) -> int:
        """No run of the kernel on these inputs takes fewer cycles; 0 if nothing is known.

        Stages run one after another.  One that reads what another stores is not counted.
        """
        if not all(isinstance(value, SparseTensor) for value in self.inputs.values()):
            return 0
        program = kernel.for_inputs(stored).program
        return sum(self._of_stage(program, stage) for stage in program.stages)

    def of_order(self, assignment: Assignment, order: Sequence[str] | None, taken: Taken) -> int:
        """No loops in that order, or in any, compute in fewer cycles what is ``taken``.

        Scanners of what is not taken are not counted, so that loops may find rows by address.
        """
        if not len(taken.coordinates):
            return 0
        variables = assignment.result.variables
        own = self
        among: tuple[Access, ...] = ()
        if taken.modes:
            entries = taken.as_entries([self.extents[name] for name in variables])
            own = replace(self, inputs={**self.inputs, TAKEN: entries}, _levels={}, _trees={})
            taken_at = tuple(variables[mode] for mode in taken.modes)
            among = (Access(tensor=TAKEN, variables=taken_at),)
        most = 0
        for factors in _products(assignment.value):
            term = (*dict.fromkeys(factors), *among)
            names = dict.fromkeys(name for access in term for name in access.variables)
            if (
                len({access.tensor for access in factors}) < len(factors)
                or any(len(set(access.variables)) < len(access.variables) for access in term)
                or not names.keys() <= {*(order or names)}
            ):
                continue
            loops = tuple(name for name in order or names if name in names)
            fibers = 1
            levels = own._levels_of(term, loops)
            for number, level in enumerate(levels):
                if order is not None or number == len(loops) - 1:
                    most = max(most, level.iterations + (fibers if order is not None else 1))
                fibers = level.iterations
        return most

    def _of_stage(self, program: ConcreteProgram, stage: Statement) -> int:
        terms = _computed(stage, ())
        return max((self._of_term(program, term) for term in terms), default=0)

    def _of_term(self, program: ConcreteProgram, term: _Term) -> int:
        stored: dict[Access, Access] = {}
        for access in term.factors:
            source = _of_input(program, access)
            if source is None or source.tensor not in self.inputs:
                return 0
            stored[source] = access
        factors = tuple(stored)
        names = {name for access in factors for name in access.variables}
        own = [loop for loop in term.loops if loop.variable in names]
        if (
            len({access.tensor for access in factors}) < len(term.factors)
            or any(len(set(access.variables)) < len(access.variables) for access in factors)
            or any(loop.fused or loop.vector for loop in term.loops)
            or len(own) < len(names)
        ):
            return 0
        most, lanes, fibers = 0, 1, 1
        levels = self._levels_of(factors, tuple(loop.variable for loop in own))
        for loop, level in zip(own, levels, strict=False):
            for source, scanned in level.scanned:
                access = stored[source]
                format = program.format_of(access.tensor)
                place = format.modes.index(access.variables.index(loop.variable))
                if format.levels[place].letter == "s" and not loop.skip:
                    most = max(most, -(-scanned // lanes))
            lanes *= loop.lanes
            # every fiber ends with a token of its own
            most = max(most, -(-(level.iterations + fibers) // lanes))
            fibers = level.iterations
        return most

    def _levels_of(self, term: tuple[Access, ...], order: tuple[str, ...]) -> tuple[_Level, ...]:
        key = term, order
        if key not in self._levels:
            self._levels[key] = tuple(self._counted(term, order))
        return self._levels[key]

    def _counted(self, term: tuple[Access, ...], order: tuple[str, ...]) -> Iterator[_Level]:
        """Join the factors of a term, loop by loop; the loops after too many tuples are missing."""
        trees = {access: self._tree(access, order) for access in term}
        at: dict[Access, Indices] = {access: np.zeros(1, np.int64) for access in term}
        depth = dict.fromkeys(term, 0)
        for variable in order:
            here = [access for access in term if variable in access.variables]
            fibers = {access: _fibers(trees[access], depth[access], at[access]) for access in here}
            scanned = tuple((access, int(counts.sum())) for access, (_, counts) in fibers.items())
            expanded, least = min(scanned, key=lambda item: item[1])
            if least > MOST_TUPLES:
                # what a single factor has is counted without a visit
                yield _Level(iterations=least if len(here) == 1 else 0, scanned=scanned)
                return
            starts, counts = fibers[expanded]
            rows = np.repeat(np.arange(len(counts)), counts)
            offsets = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
            children = starts[rows] + offsets
            coordinates = trees[expanded].coordinates[depth[expanded]][children]
            found: dict[Access, Indices] = {expanded: children}
            inside = np.ones(len(rows), np.bool_)
            for access in here:
                if access is not expanded:
                    keys = trees[access].keys[depth[access]]
                    wanted = at[access][rows] * self.extents[variable] + coordinates
                    places = np.searchsorted(keys, wanted)
                    found[access] = np.minimum(places, max(0, len(keys) - 1))
                    inside &= (places < len(keys)) & (
                        keys[found[access]] == wanted if len(keys) else False
                    )
            for access in term:
                at[access] = (found[access] if access in found else at[access][rows])[inside]
            for access in here:
                depth[access] += 1
            yield _Level(iterations=int(inside.sum()), scanned=scanned)

    def _tree(self, access: Access, order: tuple[str, ...]) -> _Tree:
        variables = tuple(name for name in order if name in access.variables)
        key = access.tensor, tuple(access.variables.index(name) for name in variables)
        if key not in self._trees:
            modes = self.inputs[access.tensor].entries().modes
            columns = [modes[mode] for mode in key[1]]
            sort = np.lexsort(columns[::-1]) if columns else np.zeros(0, np.int64)
            nodes, count = np.zeros(len(sort), np.int64), 1
            first, coordinates, keys = [], [], []
            for variable, column in zip(variables, columns, strict=True):
                every = nodes * self.extents[variable] + column[sort]
                unique, inverse = np.unique(every, return_inverse=True)
                parents = unique // self.extents[variable]
                first.append(np.searchsorted(parents, np.arange(count + 1)))
                coordinates.append(unique % self.extents[variable])
                keys.append(unique)
                nodes, count = inverse.reshape(-1), len(unique)
            self._trees[key] = _Tree(
                first=tuple(first), coordinates=tuple(coordinates), keys=tuple(keys)
            )
        return self._trees[key]


def _of_input(program: ConcreteProgram, access: Access) -> Access | None:
    """The access to the tensor that a view has in another order; ``None`` for other views."""
    for view in program.views:
        if view.name == access.tensor:
            if any(parts != (Part(mode=parts[0].mode),) for parts in view.parts):
                return None
            by_mode = {
                parts[0].mode: variable
                for parts, variable in zip(view.parts, access.variables, strict=True)
            }
            if len(by_mode) < len(view.parts):
                return None
            return replace(
                access, tensor=view.source, variables=tuple(by_mode[m] for m in sorted(by_mode))
            )
    return access


def _fibers(tree: _Tree, depth: int, nodes: Indices) -> tuple[Indices, Indices]:
    """Where the children of each of some nodes start, and how many there are."""
    starts = tree.first[depth][nodes]
    return starts, tree.first[depth][nodes + 1] - starts


@dataclass(frozen=True, kw_only=True)
class _Term:
    """A product that a stage computes, and the loops around it."""

    factors: tuple[Access, ...]
    loops: tuple[Forall, ...]


def _computed(statement: Statement, loops: tuple[Forall, ...]) -> list[_Term]:
    """The products that a statement computes, with those of temporaries in their place.

    Loops of a consumer and of its producer side by side are no nest: a product of a temporary and
    something else is left out then.
    """
    match statement:
        case Forall(body=body):
            return _computed(body, (*loops, statement))
        case Assign(value=value):
            return [_Term(factors=factors, loops=loops) for factors in _products(value)]
        case Where(consumer=consumer, producer=producer):
            name, terms = result_of(producer).tensor, []
            inner = _computed(producer, loops)
            for term in _computed(consumer, loops):
                others = tuple(access for access in term.factors if access.tensor != name)
                if len(others) == len(term.factors):
                    terms.append(term)
                elif not others or term.loops == loops:
                    terms += [replace(each, factors=(*others, *each.factors)) for each in inner]
            return terms


def _products(value: Expression) -> list[tuple[Access, ...]]:
    """Products of accesses, each of which the stage computes; factors without one are left out."""
    match value:
        case Access():
            return [(value,)] if value.variables else [()]
        case Negative(value=inner) | Unary(value=inner) | Sum(value=inner) | Over(value=inner):
            return _products(inner)
        case Combine(operator=Op.MULTIPLY, left=left, right=right):
            return [(*a, *b) for a, b in product(_products(left), _products(right))]
        case Combine(left=left, right=right):
            return [*_products(left), *_products(right)]
    return [()]

"""Single coordinates of an axis, such as the queries among queries, keys and values.

Index notation has no numbers for indices.  A tensor of which nothing but some coordinates is read
gets a statement for each of them, and so on up to the weights, which are cut: that costs no cycle.
Where a tensor is needed in whole, or is an input, its part is a product with a vector that has a
single element, stored without its zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.walk import Term, rewrite, walk
from t2s.sparse_repr.notation.ir import (
    Access,
    Combine,
    Expression,
    Extent,
    OfRow,
    Sum,
    accesses,
)

Array = np.ndarray[Any, np.dtype[Any]]

Place = tuple[tuple[int, int], ...]
"""Positions among the variables of a tensor, in order, and the coordinate at each of them."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A tensor that consists of another one's elements at a place."""

    of: str
    at: Place


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A tensor at the variables of its statement, and the value there."""

    target: Access
    value: Expression


@dataclass(kw_only=True)
class PartsMaker:
    """Defines ``parts`` of tensors by their names, and those that they need themselves.

    ``variables`` and ``shapes`` are of each tensor that is not a part; ``weights`` and ``sparse``
    are of the model, and get those of parts.
    """

    names: NameSupply
    variables: Mapping[str, tuple[str, ...]]
    shapes: dict[str, tuple[int, ...]]
    weights: dict[str, Array]
    sparse: set[str]
    parts: dict[str, Part] = field(default_factory=dict)
    made: list[Definition] = field(default_factory=list)

    def define(
        self, statements: Sequence[Definition], inputs: Sequence[str], outputs: Sequence[str]
    ) -> list[Definition]:
        """The statements that the outputs need, with those of parts.

        What reads a tensor comes behind it, so the last statement is the first one here.
        """
        needed = set(outputs)
        for statement in reversed(statements):
            name = statement.target.tensor
            places = self._places(name, needed)
            definitions = [statement]
            if name in needed or not all(_can_cut(statement, at) for at in places.values()):
                self._multiply(name, places)
            else:
                definitions = [self._cut(statement, part, at) for part, at in places.items()]
            self.made += definitions
            needed.update(each.tensor for made in definitions for each in accesses(made.value))
        for name in inputs:
            self._multiply(name, self._places(name, needed))
        for name in list(self.weights):
            for part, at in self._places(name, needed).items():
                self._cut_weight(name, part, at)
        return self.made[::-1]

    def _places(self, name: str, needed: set[str]) -> dict[str, Place]:
        """The parts of a tensor that are needed, and where they are."""
        return {part: of.at for part, of in self.parts.items() if of.of == name and part in needed}

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The extents of a tensor or part."""
        if name not in self.parts:
            return self.shapes[name]
        part = self.parts[name]
        fixed = dict(part.at)
        return tuple(size for at, size in enumerate(self.shapes[part.of]) if at not in fixed)

    def _cut(self, statement: Definition, part: str, at: Place) -> Definition:
        """The statement of a part, which reads parts of what the whole reads."""
        fixed = {statement.target.variables[position]: value for position, value in at}

        def cut(term: Term) -> Term | None:
            if not isinstance(term, Access):
                return None
            place = tuple(
                (position, fixed[name])
                for position, name in enumerate(term.variables)
                if name in fixed
            )
            if not place:
                return None
            left = tuple(name for name in term.variables if name not in fixed)
            return Access(tensor=self._part(term.tensor, place), variables=left)

        left = tuple(name for name in statement.target.variables if name not in fixed)
        return Definition(
            target=Access(tensor=part, variables=left), value=rewrite(statement.value, cut)
        )

    def _part(self, name: str, at: Place) -> str:
        """The part of a tensor, or of a part."""
        of = self.parts.get(name, Part(of=name, at=()))
        left = [p for p in range(len(self.shapes[of.of])) if p not in dict(of.at)]
        place = tuple(sorted((*of.at, *((left[position], value) for position, value in at))))
        wanted = Part(of=of.of, at=place)
        for found, part in self.parts.items():
            if part == wanted:
                return found
        made = self.names.fresh(_name(of.of, place))
        self.parts[made] = wanted
        return made

    def _cut_weight(self, name: str, part: str, at: Place) -> None:
        whole = self.weights[name].reshape(self.shapes[name])
        index: list[Any] = [slice(None)] * whole.ndim
        for position, value in at:
            index[position] = value
        self.weights[part] = whole[tuple(index)]
        if name in self.sparse:
            self.sparse.add(part)

    def _multiply(self, name: str, places: Mapping[str, Place]) -> None:
        """Parts as products of a whole tensor and a vector with one element."""
        for part, place in places.items():
            fixed = dict(place)
            variables = self.variables[name]
            shape = tuple(self.shapes[name][position] for position in fixed)
            one = np.zeros(shape, np.float32)
            one[tuple(fixed.values())] = 1
            vector = self.names.fresh(f"only_{_name(name, place)}")
            self.weights[vector], self.shapes[vector] = one, shape
            self.sparse.add(vector)
            self.made.append(
                Definition(
                    target=Access(
                        tensor=part,
                        variables=tuple(v for at, v in enumerate(variables) if at not in fixed),
                    ),
                    value=Combine(
                        operator=Op.MULTIPLY,
                        left=Access(tensor=name, variables=variables),
                        right=Access(tensor=vector, variables=tuple(variables[p] for p in fixed)),
                    ),
                )
            )


def _can_cut(statement: Definition, at: Place) -> bool:
    """Whether nothing in a statement is along the variables of a place."""
    fixed = {statement.target.variables[position] for position, _ in at}
    return not any(
        fixed.intersection(names) for term in walk(statement.value) for names in _along(term)
    )


def _name(tensor: str, at: Place) -> str:
    return "_".join((tensor, *(str(value) for _, value in at)))


def _along(term: Term) -> list[tuple[str, ...]]:
    """The variables along which a term is a function or a sum, or of which it is the extent."""
    match term:
        case OfRow(variables=variables) | Sum(variables=variables):
            return [variables]
        case Extent(variable=variable):
            return [(variable,)]
    return []


def digits(coordinate: int, extents: Sequence[int]) -> tuple[int, ...]:
    """The coordinates along the factors of an axis, outermost first."""
    found = []
    for at in range(len(extents)):
        inner = prod(extents[at + 1 :])
        found.append(coordinate // inner % extents[at])
    return tuple(found)

"""Index notation, drawn at random, and what it means in numpy: shares no code with t2s."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.hunt.choices import Choices

Operator = Callable[[Any, Any], Any]


def _least(left: Any, right: Any) -> Any:
    return np.where(right < left, right, left)


def _greatest(left: Any, right: Any) -> Any:
    return np.where(right > left, right, left)


_PLAIN: Mapping[str, Operator] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "min": _least,
    "max": _greatest,
}


@dataclass(frozen=True, slots=True)
class Ring:
    """What ``+`` and ``*`` are, and the value of what is not stored; ``name`` is that in t2s."""

    name: str = "PLUS_TIMES"
    add: str = "+"
    multiply: str = "*"
    zero: float = 0

    def operator(self, written: str) -> Operator:
        """What an operator means."""
        return _PLAIN[{"+": self.add, "*": self.multiply}.get(written, written)]

    def total(self, value: Any, axes: tuple[int, ...]) -> Any:
        """The sum over axes, in the type of the values; that of bools is *or*."""
        if value.dtype == np.bool_:
            return value.any(axis=axes, keepdims=True)
        if self.add == "+":
            return value.sum(axis=axes, keepdims=True, dtype=value.dtype)
        reduce = np.minimum.reduce if self.add == "min" else np.maximum.reduce
        return reduce(value, axis=axes, keepdims=True, initial=value.dtype.type(self.zero))


PLUS_TIMES = Ring()
RINGS = (
    Ring("MIN_PLUS", "min", "+", np.inf),
    Ring("MAX_PLUS", "max", "+", -np.inf),
    Ring("MAX_TIMES", "max", "*", 0),
    Ring("MIN_MAX", "min", "max", np.inf),
)


@dataclass(frozen=True, slots=True)
class Term:
    """A formula: an operator with two sides, a negative, a sum, an operand, or a number.

    ``variables`` are those of an operand, or those that a sum is over.
    """

    operator: str
    sides: tuple[Term, ...] = ()
    name: str = ""
    variables: str = ""
    number: int = 0

    def __str__(self) -> str:
        match self.operator:
            case "operand":
                return f"{self.name}({','.join(self.variables)})" if self.variables else self.name
            case "number":
                return str(self.number)
            case "negative":
                return f"(-{self.sides[0]})"
            case "sum":
                return f"sum({','.join(self.variables)}, {self.sides[0]})"
            case "min" | "max":
                return f"{self.operator}({self.sides[0]},{self.sides[1]})"
        return f"({self.sides[0]}{self.operator}{self.sides[1]})"

    def parts(self) -> list[Term]:
        """The term and all inside of it."""
        return [self, *(part for side in self.sides for part in side.parts())]

    def free(self) -> set[str]:
        """The variables in it that no sum in it is over."""
        inside = set[str]().union(*(side.free() for side in self.sides))
        return (
            inside - set(self.variables) if self.operator == "sum" else inside | {*self.variables}
        )

    def value(self, arrays: Mapping[str, Any], order: str, kind: Any, ring: Ring) -> Any:
        """Over all variables of ``order``, one axis each; what is missing has one element."""
        if self.operator == "number":
            return np.full((1,) * len(order), self.number, kind)
        if self.operator == "operand":
            array = arrays[self.name]
            names = "".join(sorted(set(self.variables), key=order.index))
            array = np.einsum(f"{self.variables}->{names}", array)
            return array.reshape([array.shape[names.index(v)] if v in names else 1 for v in order])
        sides = [side.value(arrays, order, kind, ring) for side in self.sides]
        if self.operator == "negative":
            return -sides[0]
        if self.operator == "sum":
            return ring.total(sides[0], tuple(order.index(v) for v in self.variables))
        return ring.operator(self.operator)(*sides)


def doubtful(
    term: Term, inputs: Mapping[str, Any], extents: Mapping[str, int], result: str, ring: Ring
) -> Any:
    """Where a quotient of the term is not finite, or what is computed of it may not be.

    There the result says what is stored: what is not is neither multiplied nor divided.
    """
    order = "".join(sorted(extents))
    kind = kind_of(term, inputs, ring)
    arrays = {name: value.astype(kind) for name, value in inputs.items()}

    def doubts(part: Term) -> Any:
        found = np.zeros((1,) * len(order), np.bool_)
        for side in part.sides:
            found = found | doubts(side)
        if part.operator == "/":
            found = found | ~np.isfinite(part.value(arrays, order, kind, ring))
        if part.operator == "sum":
            axes = tuple(order.index(v) for v in part.variables)
            found = found.any(axis=axes, keepdims=True)
        return found

    found = doubts(term)
    axes = tuple(at for at, v in enumerate(order) if v not in result)
    found = found.any(axis=axes, keepdims=True)
    found = np.broadcast_to(found, [extents[v] if v in result else 1 for v in order])
    kept = [v for v in order if v in result]
    found = found.reshape([extents[v] for v in kept])
    return np.transpose(found, [kept.index(v) for v in result])


def kind_of(term: Term, inputs: Mapping[str, Any], ring: Ring) -> Any:
    """The type of all values: numpy's for the operands, and what the documentation adds."""
    kinds = [value.dtype for value in inputs.values()]
    common = np.result_type(*kinds) if kinds else np.dtype(np.float64)
    operators = {part.operator for part in term.parts()}
    if common.kind in "iub" and ("/" in operators or np.isinf(ring.zero)):
        return np.dtype(np.float64)
    if common.kind == "b" and ("number" in operators or ring != PLUS_TIMES):
        return np.dtype(np.int64)
    return common


def computed(
    term: Term,
    inputs: Mapping[str, Any],
    extents: Mapping[str, int],
    result: str,
    ring: Ring = PLUS_TIMES,
) -> Any:
    """The dense result over the variables ``result``.

    Each term that the additions at the top join is summed over its own variables.
    """
    order = "".join(sorted(extents))
    kind = kind_of(term, inputs, ring)
    arrays = {name: value.astype(kind) for name, value in inputs.items()}
    total: Any = None
    for sign, part in _terms(term):
        value = np.asarray(part.value(arrays, order, kind, ring))
        axes = tuple(at for at, v in enumerate(order) if v in part.free() and v not in result)
        value = ring.total(value, axes) if axes else value
        value = -value if sign < 0 else value
        total = value if total is None else ring.operator("+")(total, value)
    kept = [v for v in order if v in result]
    total = np.broadcast_to(total, [extents[v] if v in result else 1 for v in order])
    total = total.reshape([extents[v] for v in kept])
    return np.transpose(total, [kept.index(v) for v in result]).astype(kind)


def _terms(term: Term) -> list[tuple[int, Term]]:
    """What the additions at the top join, with signs."""
    if term.operator == "negative":
        return [(-sign, part) for sign, part in _terms(term.sides[0])]
    if term.operator in ("+", "-"):
        left, right = term.sides
        sign = 1 if term.operator == "+" else -1
        return _terms(left) + [(sign * s, t) for s, t in _terms(right)]
    return [(1, term)]


def drawn(c: Choices, leaves: Sequence[Term], result: str, ring: Ring, deep: int) -> Term:
    """A term of the leaves."""
    if deep == 0:
        if c.chance(12):
            return Term("number", number=c.between(1, 4))
        return c.one_of(leaves)
    operators = ["*", "+", "*", "-", "+", "*", "min", "max", "*", "/"]
    if ring != PLUS_TIMES:
        operators = ["*", "+", "*", "min", "max"]
    operator = c.one_of(operators)
    left = drawn(c, leaves, result, ring, c.between(0, deep - 1))
    made = Term(operator, (left, drawn(c, leaves, result, ring, deep - 1)))
    summed = sorted(made.free() - set(result))
    if summed and c.chance(10):
        return Term("sum", (made,), variables=c.one_of(summed))
    if ring == PLUS_TIMES and c.chance(12):
        return Term("negative", (made,))
    return made

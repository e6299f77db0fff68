"""Sums of index notation that leave the type in which the statement is computed.

As for Funcs (``func/overflow.py``), whose warning this is: sums of signed integers alone; the
ranges of the operands say first whether a sum may overflow, and then the statement is computed
again in a wide type, by compiled loops.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from t2s.core.location import user_location
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.types import Float, Int, Kind, value_range
from t2s.core.walk import walk
from t2s.driver.plan_loops import run_loops
from t2s.func.overflow import NarrowSum, range_of
from t2s.sparse_repr.binding import Binding
from t2s.sparse_repr.concrete.workspaces import take_out_sums
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Combine,
    Expression,
    Negative,
    Number,
    Sum,
    all_variables,
    print_expression,
)
from t2s.sparse_repr.semiring import PLUS_TIMES
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored

Array = np.ndarray[Any, Any]
Interval = tuple[int, int]


def warn_of_narrow_sums(
    assignment: Assignment, binding: Binding, result: SparseTensor | Array
) -> None:
    """Warn, at the line of a statement, of each of its sums that leaves the type of a run.

    A sum inside of others counts where the ``result`` is not what it would be.
    """
    sums = any(isinstance(term, Sum) for term in walk(assignment.value))
    if not sums or binding.type.kind is not Kind.INT or assignment.semiring != PLUS_TIMES:
        return
    names = NameSupply([*all_variables(assignment), *(t.name for t in assignment.tensors)])
    parts = take_out_sums(assignment, names)
    most = _largest(parts, binding)
    low, high = value_range(binding.type)
    if most <= high:
        return
    wide = Int(64) if most < 1 << 63 else Float(64)
    values: dict[str, Any] = {}
    for name, one in binding.given.items():
        stored = one.values.astype(wide.numpy)
        values[name] = as_stored(one.shape, one.format, one.levels, stored, fill=one.fill)
    location = assignment.location or user_location()
    found: list[NarrowSum] = []
    for part in parts:
        value = values[part.result.tensor] = run_loops(part, values, binding.extents, wide)
        numbers = value.values if isinstance(value, SparseTensor) else value
        slack = 0 if wide == Int(64) else most >> 50
        if not numbers.size or low - slack <= numbers.min() <= numbers.max() <= high + slack:
            continue
        final = part is parts[-1]
        if final and found and not any(isinstance(term, Sum) for term in walk(part.value)):
            continue  # it is a function of sums that are too large already
        found.append(
            NarrowSum(
                name=part.result.tensor if final else print_expression(part.value),
                type=binding.type,
                least=int(numbers.min()),
                most=int(numbers.max()),
                location=location,
                declared=False,
            )
        )
    if found and not _same(values[assignment.result.tensor], result):
        for narrow in found:
            narrow.warn()


def _same(wide: SparseTensor | Array, narrow: SparseTensor | Array) -> bool:
    """Whether two results have the same values, whatever zeros they store."""
    entries = []
    for one in (wide, narrow):
        if isinstance(one, SparseTensor):
            table, values = one.coordinates()
        else:
            table, values = np.argwhere(one != 0), one[one != 0]
        order = np.lexsort(table.T[::-1]) if table.shape[1] else np.arange(len(values))
        kept = order[values[order] != 0]
        entries.append((table[kept], values[kept]))
    return all(np.array_equal(*pair) for pair in zip(*entries, strict=True))


def _largest(parts: tuple[Assignment, ...], binding: Binding) -> int:
    """The largest magnitude that may come up on the way to the sums of a statement."""
    ranges = {name: range_of(one.values) for name, one in binding.given.items()}
    sizes = {name: len(one.values) for name, one in binding.given.items()}
    most = 0

    def visit(value: Expression) -> Interval:
        nonlocal most
        match value:
            case Access(tensor=tensor):
                made = ranges[tensor]
            case Number(value=number):
                made = min(0, int(number)), max(0, int(number))
            case Negative(value=inner):
                low, high = visit(inner)
                made = -high, -low
            case Sum(variables=variables, value=inner):
                count = prod(binding.extents[name] for name in variables)
                for access in _factors(inner):
                    if set(variables) <= set(access.variables) and access.tensor in sizes:
                        count = min(count, sizes[access.tensor])
                low, high = visit(inner)
                made = min(0, low * count), max(0, high * count)
            case Combine(operator=operator, left=left, right=right):
                (a, b), (c, d) = visit(left), visit(right)
                corners = a * c, a * d, b * c, b * d
                match operator:
                    case Op.ADD:
                        made = a + c, b + d
                    case Op.SUBTRACT:
                        made = a - d, b - c
                    case Op.MULTIPLY:
                        made = min(corners), max(corners)
                    case _:
                        made = min(a, c), max(b, d)
        most = max(most, -made[0], made[1])
        return made

    for part in parts:
        ranges[part.result.tensor] = visit(part.value)
    return most


def _factors(value: Expression) -> tuple[Access, ...]:
    """The tensors that a product is of."""
    match value:
        case Combine(operator=Op.MULTIPLY, left=left, right=right):
            return (*_factors(left), *_factors(right))
        case Access():
            return (value,)
    return ()

"""The loops on this CPU for a statement of a plan, in an order of our choice.

Dense arrays can be read in any order, by their strides, so only sparse tensors constrain the order
of loops.  Within these constraints the loops walk sparse tensors once, write sparse results in
order, and traverse dense arrays along memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import Any

from t2s.core.walk import walk
from t2s.sparse_repr.concrete.build import build_program
from t2s.sparse_repr.concrete.ir import ConcreteProgram
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access, Assignment, Sum, accesses, all_variables

MOST_ORDERED = 6
"""Variables of which all orders are tried; others have the order of streams."""

MemoryOrders = tuple[tuple[str, tuple[int, ...]], ...]
"""The modes of dense arrays by name, the one with the largest steps first."""


@lru_cache(maxsize=256)
def program_in_loops(assignment: Assignment, memory: MemoryOrders = ()) -> ConcreteProgram:
    """The loops of a statement; ``memory`` has the memory order of the modes of dense arrays.

    Tensors whose levels the loops do not walk are transposed.
    """
    schedule = Schedule().transpose()
    order = order_of_loops(assignment, dict(memory))
    ordered = schedule if order is None else schedule.reorder(*order)
    return build_program(assignment, ordered, hoist=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Path:
    """The variables of an access, by levels, or by the steps of a dense array."""

    variables: tuple[str, ...]
    sparse: bool
    written: bool = False


def order_of_loops(
    assignment: Assignment, memory: Mapping[str, tuple[int, ...]]
) -> tuple[str, ...] | None:
    """The best order; ``None`` if sparse tensors allow none, or sums are nested."""
    value = assignment.value
    inner = value.value if isinstance(value, Sum) else value
    variables = all_variables(assignment)
    if len(variables) > MOST_ORDERED or any(isinstance(term, Sum) for term in walk(inner)):
        return None
    paths = []
    for access in (assignment.result, *accesses(value)):
        format = assignment.tensor(access.tensor).format
        if not format.plain or format.coordinate_list:
            return None
        paths.append(_path(access, format, memory, written=access is assignment.result))
    walked = [path for path in paths if path.sparse]
    good = [
        order for order in permutations(variables) if all(_fits(path, order) for path in walked)
    ]
    return min(good, key=lambda order: _badness(order, paths), default=None)


def _path(
    access: Access, format: Format, memory: Mapping[str, tuple[int, ...]], *, written: bool
) -> _Path:
    sparse = not all(level.full for level in format.levels)
    modes = format.modes if sparse or written else memory.get(access.tensor, format.modes)
    names = tuple(access.variables[mode] for mode in modes)
    return _Path(variables=names, sparse=sparse, written=written)


def _fits(path: _Path, order: Sequence[str]) -> bool:
    places = [order.index(name) for name in path.variables]
    return places == sorted(places)


def _badness(order: Sequence[str], paths: Sequence[_Path]) -> tuple[int, ...]:
    """The cost of an order, most important criterion first."""
    result = paths[0]
    summed = [name for name in order if name not in result.variables]
    again, jumps, against = 0, 0, 0
    for path in paths:
        names = path.variables
        if path.sparse and not path.written:
            last = max(order.index(name) for name in names)
            again += sum(name not in names for name in order[:last])
        elif not path.sparse:
            jumps += bool(order) and order[-1] in names and names[-1] != order[-1]
            against += sum(
                order.index(one) > order.index(other)
                for at, one in enumerate(names)
                for other in names[at:]
            )
    waits = 0
    if result.sparse and result.variables:
        last = max(order.index(name) for name in result.variables)
        waits = sum(order.index(name) < last for name in summed)
    serial = bool(order) and order[-1] in summed and not result.sparse
    return again, waits, jumps, int(serial), against


def order_in_memory(array: Any) -> tuple[int, ...]:
    """The modes of an array by decreasing stride."""
    modes = range(array.ndim)
    return tuple(sorted(modes, key=lambda mode: (-abs(array.strides[mode]), mode)))

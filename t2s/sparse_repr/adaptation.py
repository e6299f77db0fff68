"""Adapt a compiled program to the sizes and entries of the inputs of a call.

A temporary becomes a dense array if that fits; one with zeros of a dense array does not store them,
and one with many empty rows, as an input shows, stores compressed rows.  A fiber that would be
scanned repeatedly is copied first, or the sum of the other factors is stored, if that is cheaper.
Costs are estimated from the extents and the entries of each level, as if coordinates were random.

Only programs with finite operands are adapted: a dense array has zeros where nothing is stored, and
zero times infinity is NaN.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod

import numpy as np

from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.core.walk import Term, walk
from t2s.sparse_repr.binding import Binding
from t2s.sparse_repr.concrete.ir import (
    EMPTY,
    ROOM,
    UNKNOWN_SIZES,
    Adaptation,
    ConcreteProgram,
    Rescan,
    StageWorkspace,
)
from t2s.sparse_repr.notation.ir import Access, Combine, Expression, Number, Sum, Unary, accesses
from t2s.sparse_repr.tensors.tensor import SparseTensor


def sums_apart(program: ConcreteProgram, binding: Binding) -> Adaptation:
    """The sums of a program that take fewer cycles as two stages."""
    if not program.rescans or not _finite(program, binding):
        return UNKNOWN_SIZES
    paying = (rescan.term for rescan in program.rescans if _pays(rescan, binding))
    return Adaptation(apart=frozenset(paying))


def stored_temporaries(
    program: ConcreteProgram, binding: Binding, adapted: Adaptation
) -> Adaptation:
    """The formats of a program's temporaries, after that choice of sums."""
    workspaces = [
        workspace
        for workspace in program.workspaces
        if workspace.roomy or workspace.padded or workspace.rows
    ]
    if not workspaces or not _finite(program, binding):
        return adapted
    exact = _divides_by_no_zero(program, binding)
    return replace(
        adapted,
        dense=_names(o for o in workspaces if o.roomy and _has_room(o.result, binding.extents)),
        without_zeros=_names(o for o in workspaces if o.padded and exact),
        hollow=_names(o for o in workspaces if exact and _has_empty_rows(o, binding)),
    )


def looked_up_rows(program: ConcreteProgram, binding: Binding) -> Adaptation:
    """The inputs of a graph of statements whose rows are looked up.

    They are those with more rows than the other input has coordinates for a visit.
    """

    def length(access: Access, name: str) -> float:
        return _fibers(access, binding.tensors[access.tensor])[name]

    scans = (scan for scan in program.row_scans if binding.extents[scan.row] <= ROOM)
    paying = (s for s in scans if length(s.access, s.row) > length(s.by, s.row))
    return Adaptation(looked_up=frozenset(scan.access.tensor for scan in paying))


def _names(workspaces: Iterable[StageWorkspace]) -> frozenset[str]:
    return frozenset(workspace.result.tensor for workspace in workspaces)


def _has_empty_rows(workspace: StageWorkspace, binding: Binding) -> bool:
    """Whether this share of an input's rows, and so of a workspace's rows, is empty."""
    fibers = (np.diff(binding.given[name].levels[1]["pos"]) for name in workspace.rows)
    return any(np.count_nonzero(fiber == 0) >= max(1, EMPTY * len(fiber)) for fiber in fibers)


def _divides_by_no_zero(program: ConcreteProgram, binding: Binding) -> bool:
    """Whether all divisors are inputs without zeros: 0 divided by 0 would not stay 0."""
    terms = _terms_of(program)
    divisors = (t.right for t in terms if isinstance(t, Combine) and t.operator is Op.DIVIDE)

    def is_nonzero(divisor: Expression) -> bool:
        if not isinstance(divisor, Access) or divisor.tensor not in binding.given:
            return isinstance(divisor, Number) and divisor.value != 0
        tensor = binding.given[divisor.tensor]
        full = all(level.full for level in tensor.format.levels)
        return full and bool(np.all(tensor.values))

    return all(map(is_nonzero, divisors))


def looks_up_more(program: ConcreteProgram, other: ConcreteProgram) -> bool:
    """Whether the additional temporaries of a program are located into.

    Sums are, in dense arrays; of a copy it is the outermost level that would be scanned again.
    """

    def looked_up(concrete: ConcreteProgram) -> int:
        levels = (
            o.format.levels if isinstance(o.value, Sum) else o.format.levels[:1]
            for o in concrete.workspaces
        )
        return sum(all(level.full for level in some) for some in levels)

    return looked_up(program) - looked_up(other) >= len(program.workspaces) - len(other.workspaces)


def _has_room(access: Access, extents: Mapping[str, int]) -> bool:
    return prod(extents[name] for name in access.variables) <= ROOM


def _terms_of(program: ConcreteProgram) -> Iterator[Term]:
    values = [*(workspace.value for workspace in program.workspaces), program.value]
    return (term for value in values if value is not None for term in walk(value))


def _finite(program: ConcreteProgram, binding: Binding) -> bool:
    """Whether operands and functions of them are finite, and zeros count as what is not stored."""
    for term in _terms_of(program):
        if isinstance(term, Unary):
            observes = term.stored and not term.function.keeps_zero
            if observes or not term.function.is_finite:
                return False
    kind: Type = binding.type
    return not kind.is_float or all(np.isfinite(o.values).all() for o in binding.given.values())


def _pays(rescan: Rescan, binding: Binding) -> bool:
    """Whether scanning the factor takes longer than a stage that copies it, or masks by it.

    Where it is looked up the loop visits what the others have.  A loop takes the cycles of its own
    merge or of the loops inside, whichever are more.
    """
    if rescan.factor.tensor not in binding.given or not _has_room(rescan.factor, binding.extents):
        return False
    factors = accesses(rescan.term.value)
    if any(factor.tensor not in binding.given for factor in factors):
        return False
    fibers = {factor: _fibers(factor, binding.given[factor.tensor]) for factor in factors}

    def iterations(name: str, among: Collection[Access] = factors) -> float:
        """Of the loop over a variable, where it meets the fibers of some factors."""
        size = binding.extents[name]
        shares = (
            fibers[factor][name] / size for factor in among if name in fibers[factor] and size
        )
        return size * prod(shares)

    levels = list(fibers[rescan.factor])
    inner, order = levels[rescan.level], rescan.order
    rounds = prod(map(iterations, order[: order.index(rescan.again) + 1]))
    inside = prod(map(iterations, order[order.index(inner) + 1 :]))
    own = fibers[rescan.factor][inner]
    others = iterations(inner, [factor for factor in factors if factor != rescan.factor])
    both = iterations(inner)
    stored = both if inner != levels[-1] else others  # a value that is looked up may be zero
    deeper = inner != order[-1]
    scanned = max(own + others - both, both * (inside + 1) * deeper)
    looked_up = max(others, (others + stored * inside) * deeper)  # a fiber ends with one more cycle
    entries = len(binding.given[rescan.factor.tensor].values)
    extent = max(1, binding.extents[inner])
    return rounds * (scanned - looked_up) > entries + extent


def _fibers(access: Access, tensor: SparseTensor) -> dict[str, float]:
    """The average number of coordinates of a fiber of each level, by variable."""
    lengths: dict[str, float] = {}
    count = 1
    for level, arrays, extent, mode in zip(
        tensor.format.levels, tensor.levels, tensor.extents, tensor.format.modes, strict=True
    ):
        positions = level.positions(arrays, count, extent)
        lengths[access.variables[mode]] = positions / max(1, count)
        count = positions
    return lengths

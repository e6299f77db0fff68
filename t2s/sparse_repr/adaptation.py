"""What the sizes in a call show that a program without them cannot know.

A temporary is a dense array where there is room for one.  A fiber that would be scanned again and
again is not, where that costs more than to store the sum of the other factors first.  What that
costs is estimated from the extents and the entries of each level, as if coordinates were random.

Only programs of finite operands are changed: a dense array has zeros where nothing is stored, and
zero times infinity is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from t2s.core.types import Type
from t2s.sparse_repr.binding import Binding
from t2s.sparse_repr.concrete.ir import ROOM, UNKNOWN_SIZES, Adaptation, ConcreteProgram, Rescan
from t2s.sparse_repr.notation.ir import Access, accesses
from t2s.sparse_repr.tensors.tensor import SparseTensor


def sums_apart(program: ConcreteProgram, binding: Binding) -> Adaptation:
    """The sums of a program that take fewer cycles in two stages."""
    if not program.rescans or not _finite(binding):
        return UNKNOWN_SIZES
    paying = (rescan.term for rescan in program.rescans if _pays(rescan, binding))
    return Adaptation(apart=frozenset(paying))


def dense_temporaries(
    program: ConcreteProgram, binding: Binding, adapted: Adaptation
) -> Adaptation:
    """Which of the temporaries of a program are dense arrays, after that choice."""
    roomy = [one for one in program.workspaces if one.roomy]
    if not roomy or not _finite(binding):
        return adapted
    names = (o.result.tensor for o in roomy if _has_room(o.result, binding.extents))
    return Adaptation(apart=adapted.apart, dense=frozenset(names))


def looks_up_more(program: ConcreteProgram, other: ConcreteProgram) -> bool:
    """Whether the temporaries that a program has more than another one are dense arrays."""

    def dense(one: ConcreteProgram) -> int:
        return sum(all(level.full for level in o.format.levels) for o in one.workspaces)

    return dense(program) - dense(other) >= len(program.workspaces) - len(other.workspaces)


def _has_room(access: Access, extents: Mapping[str, int]) -> bool:
    return prod(extents[name] for name in access.variables) <= ROOM


def _finite(binding: Binding) -> bool:
    kind: Type = binding.type
    return not kind.is_float or all(np.isfinite(o.values).all() for o in binding.given.values())


def _pays(rescan: Rescan, binding: Binding) -> bool:
    """Whether the scans of the factor take longer than the stage that reads the sum of the others.

    The first stage scans what the others have in each iteration, either way.
    """
    if rescan.factor.tensor not in binding.given or not _has_room(rescan.factor, binding.extents):
        return False
    factors = accesses(rescan.term.value)
    if any(factor.tensor not in binding.given for factor in factors):
        return False
    fibers = {factor: _fibers(factor, binding.given[factor.tensor]) for factor in factors}
    inner = next(reversed(list(fibers[rescan.factor])))
    extent = max(1, binding.extents[inner])
    rounds = 1.0
    for name in rescan.order[: rescan.order.index(rescan.again) + 1]:
        size = binding.extents[name]
        shares = (own[name] / size for own in fibers.values() if name in own and size)
        rounds *= size * prod(shares)
    own = fibers[rescan.factor][inner]
    others = extent * prod(
        fibers[factor][inner] / extent
        for factor in factors
        if factor != rescan.factor and inner in fibers[factor]
    )
    together = own + others - own * others / extent
    entries = len(binding.given[rescan.factor.tensor].values)
    return rounds * (together - others) > entries + extent


def _fibers(access: Access, tensor: SparseTensor) -> dict[str, float]:
    """How many coordinates a fiber of each level has on average, by its variable."""
    found: dict[str, float] = {}
    count = 1
    for level, arrays, extent, mode in zip(
        tensor.format.levels, tensor.levels, tensor.extents, tensor.format.modes, strict=True
    ):
        positions = level.positions(arrays, count, extent)
        found[access.variables[mode]] = positions / max(1, count)
        count = positions
    return found

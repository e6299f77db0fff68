"""Proof that a load unit may load what a definition reads.

A definition reads an element only where its path condition holds.  Hardware decides whether to load
from the static part of that condition alone (``conditions.py``); what depends on data merely
selects between values that are there.  So the address has to be in range under the static part.
"""

from __future__ import annotations

from t2s.core.errors import UnsupportedError
from t2s.core.expr import Read, conjuncts, reads
from t2s.core.isl import LoopDomain, is_affine
from t2s.core.printer import show
from t2s.func.bounds import GuardedRead
from t2s.func.ir import TemporalProgram
from t2s.spatial.analysis.conditions import is_static
from t2s.spatial.ir import Kernel


def check_loadable(program: TemporalProgram, kernel: Kernel, guarded: GuardedRead) -> None:
    """Raise ``UnsupportedError`` for an address that depends on data or may be out of range."""
    read = guarded.read
    location = read.location or kernel.location
    inner = next((part for index in read.indices for part in reads(index)), None)
    if inner is not None:
        raise UnsupportedError(
            f"{show(read)} in {kernel.name} is read at a place that depends on data",
            location=location,
            expected="subscripts of loop variables, numbers and Params",
            given=show(inner),
            hint="it can be computed by t2s.interpret; hardware for it is not generated yet",
        )
    parts = conjuncts(guarded.condition)
    dynamic = [part for part in parts if not is_static(part)]
    if not dynamic:
        return
    domain = LoopDomain([d.interval for d in kernel.domain], filter(is_affine, parts))
    for index, (low, extent) in zip(read.indices, _bounds(program, read), strict=True):
        found = domain.range_of(index) if is_affine(index) else None
        if found is not None and low <= found[0] and found[1] < low + extent:
            continue
        if domain.is_empty():
            continue
        raise UnsupportedError(
            f"{show(read)} in {kernel.name} cannot be loaded ahead of the condition that guards it",
            location=location,
            expected=f"{show(index)} within {low}..{low + extent - 1} whatever the data",
            given=f"a guard that depends on data: {show(dynamic[0])}",
            hint="add a condition on the loops, as in t2s.select((i > 0) & (x[i] > 0), ...), or "
            "clamp the subscript with t2s.max and t2s.min",
        )


def _bounds(program: TemporalProgram, read: Read) -> tuple[tuple[int, int], ...]:
    """(minimum, extent) of each dimension of what is read."""
    for array in program.inputs:
        if array.name == read.source:
            return tuple((0, extent) for extent in array.shape)
    return program.function(read.source).bounds

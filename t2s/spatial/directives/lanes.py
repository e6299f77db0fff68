"""``vstore`` of gathered results: the loop that was gathered last becomes the lanes.

Before -> after, for 8 PEs along ``jj`` that ``C_collector.gather(C, jj)`` collects from::

    C_unloader.vstore(C)    C_unloader: for i: for jj: store C[i, jj]
                        ->  C_unloader: for i: store C[i, 0..7]
                            C_collector[jj]: for i: take the vector of C_collector[jj+1], put
                                the own value into lane jj, send the vector to C_collector[jj-1]
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.errors import UserError
from t2s.spatial.analysis.lookup import constant_bounds, same_loop
from t2s.spatial.directive import VectorStore
from t2s.spatial.directives.vectorize import consumers, vstore
from t2s.spatial.ir import Kernel, Loop, LoopKind, SpatialProgram
from t2s.spatial.work import StoreUnit


def store_vectors(program: SpatialProgram, name: str, directive: VectorStore) -> SpatialProgram:
    """Apply ``vstore``, along the loop that the user named if there is one."""
    program = _store_vectors(program, name, directive)
    vector = program.kernel(name).vector_loop
    along = vector.name if vector is not None else "none"
    if directive.lanes not in (None, along):
        raise UserError(
            f"{directive.text} on {name}: {directive.lanes} is not the innermost loop of {name}",
            location=directive.location,
            expected=f"the loop whose iterations become lanes: {along}",
            given=f"lanes={directive.lanes}",
            hint="what is gathered last is innermost",
        )
    return program


def _store_vectors(program: SpatialProgram, name: str, directive: VectorStore) -> SpatialProgram:
    """Gathered results become vectors here, vectors that are computed are stored as always."""
    kernel = program.kernel(name)
    gathered = _gathered_loops(program, kernel)
    if not gathered or kernel.vector_loop is not None or kernel.function != directive.function:
        return vstore(program, name, directive)
    if not isinstance(kernel.work, StoreUnit):
        storing = next(k.name for k in consumers(program, name) if isinstance(k.work, StoreUnit))
        raise UserError(
            f"{directive.text} on {name}: {name} does not store",
            location=directive.location,
            expected="the last Func of the chain of consumers",
            given=name,
            hint=f"write {storing}.vstore({directive.function})",
        )
    serial = kernel.kind(LoopKind.SERIAL)
    loop = serial[-1]
    between = _between(program, kernel, loop)
    if between is None:
        collected = ", ".join(other.name for other in gathered)
        raise UserError(
            f"{directive.text} on {name}: the innermost loop {loop.name} of {name} is not gathered",
            location=directive.location,
            expected=f"a loop along which PEs are gathered innermost: {collected}",
            given="loops, outermost first: " + ", ".join(other.name for other in serial),
            hint=f"write {name}.reorder(...) first, or gather along {loop.name}",
        )
    constant_bounds(kernel, loop, directive)
    for relay in between:
        vector = same_loop(relay.loops, loop)
        lanes = tuple(
            replace(own, kind=LoopKind.VECTOR, reason=f"lanes of vectors by {directive.text}")
            if own is vector
            else own
            for own in relay.loops
        )
        program = program.with_kernel(replace(relay, loops=lanes, vectorised=directive))
    return program


def _sender(program: SpatialProgram, kernel: Kernel) -> Kernel | None:
    """Where a consumer takes its results from."""
    operand = next((o for o in kernel.operands if o.is_result), None)
    return None if operand is None else program.kernel(operand.producer)


def _gathered_loops(program: SpatialProgram, kernel: Kernel) -> list[Loop]:
    """The loops along which results are gathered on their way to a kernel, or in it."""
    found: list[Loop] = []
    here: Kernel | None = kernel
    while here is not None:
        loop = None if here.gathering is None else here.loop(here.gathering.loop)
        found += [] if loop is None else [loop]
        here = _sender(program, here)
    return found


def _between(program: SpatialProgram, kernel: Kernel, loop: Loop) -> list[Kernel] | None:
    """The kernel and those before it down to the one that gathers along the loop, excluded."""
    passing = [kernel]
    while True:
        sender = _sender(program, passing[-1])
        if sender is None:
            return None
        own = same_loop(sender.loops, loop)
        if own is None:
            return None
        if sender.gathering is not None and sender.gathering.loop == own.name:
            return passing
        if own.kind is not LoopKind.SERIAL:
            return None
        passing.append(sender)

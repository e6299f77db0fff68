"""Well-formedness of spatial programs, checked after every directive and every pass.

These are promises of the passes to each other; a violation is an ``InternalError``.  A pass that
leaves a kernel alone leaves the object alone, so only the kernels that are new are looked into.
"""

from __future__ import annotations

from t2s.core.errors import InternalError
from t2s.core.expr import index_names
from t2s.spatial.ir import SpatialKernel, SpatialProgram
from t2s.spatial.work import Relay, StoreUnit


def verify_program(program: SpatialProgram, known: SpatialProgram | None = None) -> None:
    """Raise ``InternalError`` if the program is not well-formed, as ``known`` is."""
    done = set() if known is None else {id(kernel) for kernel in known.kernels}
    before: set[str] = set()
    for kernel in program.kernels:
        if kernel.name in before:
            raise InternalError(f"two kernels are named {kernel.name}")
        for operand in kernel.operands:
            if operand.producer not in before:
                raise InternalError(f"{operand.producer} does not come before {kernel.name}")
        if id(kernel) not in done:
            _verify_nest(kernel)
            _verify_work(kernel)
        before.add(kernel.name)


def _verify_nest(kernel: SpatialKernel) -> None:
    loops = {loop.name for loop in kernel.loops}
    if len(loops) != len(kernel.loops):
        raise InternalError(f"{kernel.name} has two loops of one name")
    for name, expr in kernel.variables:
        missing = index_names(expr) - loops
        if missing:
            raise InternalError(f"{name} of {kernel.name} uses unknown loops {sorted(missing)}")
    if {name for name, _ in kernel.variables} != {d.name for d in kernel.domain}:
        raise InternalError(f"the variables of {kernel.name} are not those of its domain")
    outside: set[str] = set()
    for loop in kernel.loops:
        missing = (index_names(loop.minimum) | index_names(loop.extent)) - outside
        if missing:
            raise InternalError(f"bounds of {loop.name} in {kernel.name} use {sorted(missing)}")
        outside.add(loop.name)
    if kernel.active is not None and index_names(kernel.active) - loops:
        raise InternalError(f"{kernel.name} is active by unknown loops: {kernel.active}")


def _verify_work(kernel: SpatialKernel) -> None:
    if isinstance(kernel.work, Relay | StoreUnit) and len(kernel.operands) != 1:
        raise InternalError(f"{kernel.name} passes on {len(kernel.operands)} operands")
    names = [operand.name for operand in kernel.operands]
    if len(set(names)) != len(names):
        raise InternalError(f"two operands of {kernel.name} have one name: {names}")
    variables = {dimension.name for dimension in kernel.domain}
    for what in (kernel.condition, *(part for o in kernel.operands for part in o.access)):
        missing = set() if what is None else index_names(what) - variables
        if missing:
            raise InternalError(f"{kernel.name} uses unknown variables {sorted(missing)}")

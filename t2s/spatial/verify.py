"""Well-formedness of spatial programs, checked around every pass.

These are promises of the passes to each other; a violation is an ``InternalError``.
"""

from __future__ import annotations

from t2s.core.errors import InternalError
from t2s.core.expr import index_names
from t2s.spatial.ir import Kernel, SpatialProgram
from t2s.spatial.work import Relay, StoreUnit


def verify_program(program: SpatialProgram) -> None:
    """Raise ``InternalError`` if the program is not well-formed."""
    names = [kernel.name for kernel in program.kernels]
    if len(set(names)) != len(names):
        raise InternalError(f"two kernels of one name in {names}")
    for position, kernel in enumerate(program.kernels):
        _verify_kernel(kernel)
        for operand in kernel.operands:
            if operand.producer not in names[:position]:
                raise InternalError(f"{operand.producer} does not come before {kernel.name}")


def _verify_kernel(kernel: Kernel) -> None:
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
    if isinstance(kernel.work, Relay | StoreUnit) and len(kernel.operands) != 1:
        raise InternalError(f"{kernel.name} passes on {len(kernel.operands)} operands")

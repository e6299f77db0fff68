"""Load and store units for everything that the user did not isolate.

Pure Funcs that are still read are inlined; every remaining read becomes an operand that a load
kernel of its own sends, with the loops of the kernel; every result that is still stored by the
kernel that computes it gets a store kernel.  After this pass only load kernels hold reads and only
store kernels store.  Before it ``drop_unread_stores`` drops what is streamed and read by nobody.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.errors import InternalError, UnsupportedError
from t2s.core.expr import Expr, Local, Read, reads
from t2s.core.names import NameSupply
from t2s.spatial.analysis.occurrences import all_reads, check_loadable, loads_of
from t2s.spatial.directives.isolate import (
    computing,
    consumer_of,
    consumer_of_result,
    storing,
    with_locals,
    with_operand,
)
from t2s.spatial.inline import inline_functions
from t2s.spatial.ir import SpatialKernel, SpatialProgram
from t2s.spatial.operands import KernelOperand, StreamedResults
from t2s.spatial.work import Evaluation, LoadUnit, Reduction, StoreTarget, StoreUnit

MOST_LOADS = 4096
"""Most load units of one kernel."""


def place_memory_units(program: SpatialProgram) -> SpatialProgram:
    """Give every kernel that touches memory its load and store units."""
    names = NameSupply(kernel.name for kernel in program.kernels)
    for kernel in program.kernels:
        program = _place_loads(program, kernel.name, names)
    for kernel in program.kernels:
        match kernel.work:
            case (
                Evaluation(store=StoreTarget() as target) | Reduction(store=StoreTarget() as target)
            ):
                program = _place_store(program, kernel, target, names)
        for result in kernel.results:
            if result.consumer is None:
                program = _place_result_store(program, kernel.name, result.function, names)
    return program


def _place_loads(program: SpatialProgram, name: str, names: NameSupply) -> SpatialProgram:
    kernel = inline_functions(program.temporal, program.kernel(name))
    match kernel.work:
        case LoadUnit(value=Read()):
            return program.with_kernel(kernel)
        case LoadUnit(value=value):
            kernel = replace(kernel, work=computing(value))
    program = program.with_kernel(kernel)
    for guarded, _ in all_reads(kernel):
        check_loadable(program.temporal, kernel, guarded)
    locals: dict[Expr, Local] = {}
    loads = loads_of(kernel)
    if len(loads) > MOST_LOADS:
        raise UnsupportedError(
            f"{name} would need a load unit for each of {len(loads):,} reads",
            location=kernel.location,
            expected=f"at most {MOST_LOADS:,} different elements in one iteration",
            hint="read along an RDom, or keep one of the Funcs in memory: give it an update",
        )
    for occurrence in loads:
        source = next(iter(reads(occurrence.value))).source
        unit = names.fresh(f"{name}_load_{source}")
        program, locals[occurrence.value] = with_operand(
            program, program.kernel(name), occurrence, (unit,), None
        )
    return with_locals(program, name, locals)


def _place_result_store(
    program: SpatialProgram, name: str, function: str, names: NameSupply
) -> SpatialProgram:
    kernel = program.kernel(name)
    result = kernel.result(function)
    if result is None:
        raise InternalError(f"{name} has no result {function}")
    unit = consumer_of_result(kernel, result, names.fresh(f"{function}_store"))
    target = StoreTarget(tensor=function, indices=result.indices)
    program = program.with_kernel(kernel.with_consumer(result, unit.name))
    return program.with_after(name, storing(unit, target))


def _place_store(
    program: SpatialProgram, kernel: SpatialKernel, target: StoreTarget, names: NameSupply
) -> SpatialProgram:
    unit = consumer_of(kernel, names.fresh(f"{kernel.name}_store"))
    program = program.with_kernel(kernel.without_store())
    return program.with_after(kernel.name, storing(unit, target))


def drop_unread_stores(program: SpatialProgram) -> SpatialProgram:
    """Functions that are streamed and that nobody reads from memory are not stored.

    If both happens, what is streamed leaves before the store unit.
    """
    inlined = (inline_functions(program.temporal, kernel) for kernel in program.kernels)
    loaded = {guarded.read.source for kernel in inlined for guarded, _ in all_reads(kernel)}
    loaded |= set(program.temporal.outputs)
    for kernel in program.kernels:
        takers = [k for k in program.kernels if any(_takes(o, kernel) for o in k.operands)]
        if kernel.store is None or not takers:
            continue
        if kernel.store.tensor not in loaded:
            program = program.with_kernel(kernel.without_store())
        elif isinstance(kernel.work, StoreUnit):
            before = kernel.operands[0].producer
            for taker in takers:
                operands = tuple(
                    replace(o, producer=before) if _takes(o, kernel) else o for o in taker.operands
                )
                program = program.with_kernel(replace(taker, operands=operands))
    return program


def _takes(operand: KernelOperand, kernel: SpatialKernel) -> bool:
    return isinstance(operand.taken, StreamedResults) and operand.producer == kernel.name

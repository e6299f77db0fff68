"""Load and store units for everything that the user did not isolate.

Pure Funcs that are still read are inlined; every remaining read becomes an operand that a load
kernel of its own sends, with the loops of the kernel; every result that is still stored by the
kernel that computes it gets a store kernel.  After this pass only load kernels hold reads and only
store kernels store.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.expr import Expr, Read, reads
from t2s.core.names import NameSupply
from t2s.func.bounds import GuardedRead, guarded_reads
from t2s.graph.nodes import Role
from t2s.spatial.conditions import any_of
from t2s.spatial.inline import inline_functions
from t2s.spatial.ir import Kernel, SpatialProgram
from t2s.spatial.passes.isolate import all_reads, consumer_of, extract
from t2s.spatial.passes.safety import check_loadable


def place_memory_units(program: SpatialProgram) -> SpatialProgram:
    """Give every kernel that touches memory its load and store units."""
    names = NameSupply(kernel.name for kernel in program.kernels)
    for kernel in program.kernels:
        program = _place_loads(program, kernel.name, names)
    for kernel in program.kernels:
        if kernel.store is not None and kernel.role is not Role.STORE:
            program = _place_store(program, kernel, names)
    return program


def _place_loads(program: SpatialProgram, name: str, names: NameSupply) -> SpatialProgram:
    kernel = inline_functions(program.temporal, program.kernel(name))
    if isinstance(kernel.value, Read) and kernel.role is Role.LOAD:
        return program.with_kernel(kernel)
    if kernel.role is Role.LOAD:
        sources = tuple(read.source for read in reads(kernel.value))
        kernel = replace(kernel, role=Role.COMPUTE, vector_operands=sources)
    program = program.with_kernel(kernel)
    for guarded, _ in all_reads(kernel):
        check_loadable(program.temporal, kernel, guarded)
    while True:
        kernel = program.kernel(name)
        at_start = kernel.initial is not None
        found = _merged(kernel.initial) if kernel.initial is not None else []
        if not found:
            found, at_start = _merged(kernel.value), False
        if not found:
            return program
        unit = names.fresh(f"{name}_load_{found[0].read.source}")
        program = extract(program, kernel, found[0], at_start, (unit,), None)


def _merged(expr: Expr) -> list[GuardedRead]:
    """The distinct reads; one that occurs several times happens where any of them does."""
    merged: dict[Read, GuardedRead] = {}
    for guarded in guarded_reads(expr):
        known = merged.get(guarded.read)
        if known is not None and known.condition != guarded.condition:
            condition = any_of(known.condition, guarded.condition)
            guarded = GuardedRead(read=guarded.read, condition=condition)
        merged[guarded.read] = guarded
    return list(merged.values())


def _place_store(program: SpatialProgram, kernel: Kernel, names: NameSupply) -> SpatialProgram:
    unit = consumer_of(kernel, names.fresh(f"{kernel.name}_store"))
    unit = replace(unit, role=Role.STORE, store=kernel.store)
    program = program.with_kernel(replace(kernel, store=None))
    return program.with_after(kernel.name, unit)

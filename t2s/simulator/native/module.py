"""A graph as one LLVM module, and its machine code.

The module has one entry, ``run(arena, budget)``: it calls the functions of the nodes round robin
until a whole round fires nothing or ``budget`` firings are made, and returns the number of
firings, or -1 after a fault.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from t2s.graph.graph import Graph
from t2s.simulator.native.emit_node import FAULTED, emit_node
from t2s.simulator.native.layout import Layout
from t2s.simulator.native.llvm import Function, binding, ir
from t2s.simulator.native.representation import I64, POINTER, integer

_ENTRY = "run"
_COMPILED_MODULES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The code of a graph as text, and the messages of its run-time checks (fault 1 is first)."""

    text: str
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Machine code in memory, as long as this object lives.

    ``run`` takes the address of an arena and a budget, and releases the GIL.
    """

    run: Callable[[int, int], int]
    engine: Any


def emit_program(graph: Graph, layout: Layout) -> Program:
    """Write the code of a graph."""
    module = ir.Module(name="t2s")
    faults: list[str] = []
    functions = [
        emit_node(module, graph, node, layout, number, faults)
        for number, node in enumerate(graph.pe_arrays)
    ]
    for function in functions:
        function.linkage = "internal"
    _emit_run(module, functions)
    return Program(text=str(module), faults=tuple(faults))


def _emit_run(module: Any, functions: list[Function]) -> None:
    run = ir.Function(module, ir.FunctionType(I64, [POINTER, I64]), name=_ENTRY)
    arena, budget = run.args
    builder = ir.IRBuilder(run.append_basic_block("entry"))
    leave, faulty, again = (run.append_basic_block(name) for name in ("leave", "faulty", "again"))
    total = builder.alloca(I64, name="total")
    builder.store(integer(0), total)
    builder.branch(again)
    builder.position_at_end(again)
    before = builder.load(total, typ=I64)
    for function in functions:
        so_far = builder.load(total, typ=I64)
        fired = builder.call(function, [arena, builder.sub(budget, so_far)])
        advance = run.append_basic_block("advance")
        failed = builder.icmp_signed("==", fired, integer(FAULTED))
        builder.cbranch(failed, faulty, advance)
        builder.position_at_end(advance)
        builder.store(builder.add(so_far, fired), total)
    after = builder.load(total, typ=I64)
    progress = builder.icmp_signed(">", after, before)
    builder.cbranch(builder.and_(progress, builder.icmp_signed("<", after, budget)), again, leave)
    builder.position_at_end(leave)
    builder.ret(builder.load(total, typ=I64))
    builder.position_at_end(faulty)
    builder.ret(integer(FAULTED))


@lru_cache(maxsize=_COMPILED_MODULES)
def compile_text(text: str) -> Machine:
    """Machine code for this CPU.  Programs used lately are kept, by their text."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = _target_machine()
    module = binding.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    _optimise(module, machine)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    run = prototype(engine.get_function_address(_ENTRY))
    return Machine(run=run, engine=engine)


def _target_machine() -> Any:
    """The host CPU.  LLVM fuses no multiplication with an addition that does not ask for it."""
    features = binding.get_host_cpu_features().flatten()
    target = binding.Target.from_triple(binding.get_process_triple())
    return target.create_target_machine(
        cpu=binding.get_host_cpu_name(), features=features, opt=2, jit=True
    )


def _optimise(module: Any, machine: Any) -> None:
    options = binding.create_pipeline_tuning_options(speed_level=2)
    options.loop_unrolling = False
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)

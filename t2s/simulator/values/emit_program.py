"""A graph as one LLVM module, and its machine code.

The module has one entry, ``run(arena, budget)``: it calls the functions of the nodes round robin
until a whole round fires nothing or ``budget`` firings are made, and returns the number of
firings, or -1 after a fault.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from t2s.core.collector import without_collections
from t2s.graph.graph import Graph
from t2s.graph.machine import Machine
from t2s.graph.machine_shapes import MachineShape, shapes_of
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.compile import ENTRY
from t2s.simulator.emit.llvm import I64, POINTER, LLVMFunction, Module, Value, integer
from t2s.simulator.values.emit_frame import FAULTED
from t2s.simulator.values.emit_machine import emit_machine
from t2s.simulator.values.emit_node import emit_node
from t2s.simulator.values.layout import Key, ValueLayout
from t2s.simulator.values.shared_code import numbers_of, renamed


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The code of a graph as text, and the messages of its run-time checks (fault 1 is first)."""

    text: str
    faults: tuple[str, ...]


@without_collections()
def emit_program(graph: Graph, layout: ValueLayout) -> Program:
    """Write the code of a graph."""
    module = Module()
    faults: list[str] = []
    shapes = shapes_of(graph)
    made: dict[int, _SharedFunction] = {}
    counts = Counter(shape.number for shape in shapes.values())
    calls: list[tuple[LLVMFunction, list[Value]]] = []
    for number, node in enumerate(graph.nodes):
        if not isinstance(node, Machine):
            calls.append((emit_node(module, graph, node, layout, number, faults), []))
            continue
        shape = shapes[node.name]
        if counts[shape.number] == 1:
            calls.append((emit_machine(module, graph, node, layout, number, faults), []))
            continue
        if shape.number not in made:
            made[shape.number] = _shared_function(module, graph, node, layout, number, shape)
        shared = made[shape.number]
        numbers = shared.numbers(graph, layout, shape, len(faults))
        faults += shared.faults_of(shape)
        calls.append((shared.function, [module.table(f"table{number}", I64, numbers)]))
    for function, _ in calls:
        function.internal = True
    _emit_run(module, calls)
    return Program(text=str(module), faults=tuple(faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class _SharedFunction:
    """A function that several machines share, and the one for which it was written."""

    function: LLVMFunction
    first: MachineShape
    places: tuple[Key, ...]
    faults: tuple[str, ...]

    def numbers(
        self, graph: Graph, layout: ValueLayout, shape: MachineShape, faults: int
    ) -> list[int]:
        """The table of one of the machines, whose faults come after so many others."""
        return numbers_of(graph, layout, self.places, self.first.names_in(shape), faults)

    def faults_of(self, shape: MachineShape) -> list[str]:
        """The messages of one of the machines."""
        return renamed(self.faults, self.first.names_in(shape))


def _shared_function(
    module: Module,
    graph: Graph,
    node: Machine,
    layout: ValueLayout,
    number: int,
    shape: MachineShape,
) -> _SharedFunction:
    places: list[Key] = []
    faults: list[str] = []
    function = emit_machine(module, graph, node, layout, number, faults, places)
    return _SharedFunction(
        function=function, first=shape, places=tuple(places), faults=tuple(faults)
    )


def _emit_run(module: Module, functions: list[tuple[LLVMFunction, list[Value]]]) -> None:
    run = module.function(ENTRY, I64, [POINTER, I64])
    arena, budget = run.args
    builder = Builder(run)
    leave, faulty, again = (run.block(name) for name in ("leave", "faulty", "again"))
    total = builder.alloca(I64)
    builder.store(integer(0), total)
    builder.branch(again)
    builder.position_at_end(again)
    before = builder.load(total, I64)
    for function, tables in functions:
        so_far = builder.load(total, I64)
        fired = builder.call(function, [arena, builder.sub(budget, so_far), *tables])
        advance = run.block("advance")
        failed = builder.icmp_signed("==", fired, integer(FAULTED))
        builder.cbranch(failed, faulty, advance)
        builder.position_at_end(advance)
        builder.store(builder.add(so_far, fired), total)
    after = builder.load(total, I64)
    progress = builder.icmp_signed(">", after, before)
    builder.cbranch(builder.and_(progress, builder.icmp_signed("<", after, budget)), again, leave)
    builder.position_at_end(leave)
    builder.ret(builder.load(total, I64))
    builder.position_at_end(faulty)
    builder.ret(integer(FAULTED))

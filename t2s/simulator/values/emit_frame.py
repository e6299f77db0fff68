"""The frame of a node's function: a loop over its places, and what begins and ends a visit of one.

``node(arena, budget)`` returns the number of firings, at most ``budget``, or -1 after a fault.  The
shape of the code::

    for each place that has not finished:       # visit
        ...                                     # what the node does there; it counts its firings
        if that may help, visit the place again # leave
"""

from __future__ import annotations

from dataclasses import dataclass, field

from t2s.core.errors import InternalError
from t2s.core.expr import Expr, index_names
from t2s.core.ops import C_FUNCTIONS
from t2s.graph.graph import Graph, Tensor
from t2s.graph.machine import Machine
from t2s.graph.nodes import PEArray
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.expressions import ExpressionEmitter
from t2s.simulator.emit.llvm import (
    I1,
    I32,
    I64,
    POINTER,
    BasicBlock,
    LLVMFunction,
    Module,
    Slot,
    Value,
    integer,
)
from t2s.simulator.emit.representation import load_value, offset_by
from t2s.simulator.values.layout import FINISHED, Key, Section, ValueLayout
from t2s.simulator.values.shared_code import FAULTS, NUMBER, OF_A_NODE, PlaceTable


@dataclass(slots=True, kw_only=True)
class NodeContext:
    """The function being emitted for one node.

    Attributes
    ----------
    builder: positioned where code is being emitted.
    arena: pointer to the arena, the first argument.
    names: values of parameters, space indices, loop indices and locals where code is emitted.
    faults: messages of the run-time checks of the whole module; fault ``n`` is the ``n - 1``-th.
    abandon: block that leaves the function after a fault was noted, if there are faults.
    pe: number of the PE being visited, row-major.
    table: where the function finds the places of its node in the arena, if several nodes share it.
    """

    graph: Graph
    node: PEArray | Machine
    layout: ValueLayout
    function: LLVMFunction
    builder: Builder
    arena: Value
    faults: list[str]
    abandon: BasicBlock | None
    names: dict[str, Value] = field(default_factory=dict)
    expressions: ExpressionEmitter = field(init=False)
    pe: Value = field(init=False)
    table: PlaceTable | None = None

    def __post_init__(self) -> None:
        functions = {
            operator: self.builder.load(self.address(self.layout.c_functions, number), I64)
            for number, operator in enumerate(C_FUNCTIONS)
        }
        self.expressions = ExpressionEmitter(self.builder, self.names, functions)

    @property
    def pe_array(self) -> PEArray:
        """The node, where it is known not to be a machine."""
        assert isinstance(self.node, PEArray)
        return self.node

    def address(self, section: Section, index: Value | int = 0, stride: int = 8) -> Value:
        """The address of entry ``index`` of a section whose entries take ``stride`` bytes."""
        if isinstance(index, int) and not self._is_looked_up(section):
            return offset_by(self.builder, self.arena, section.offset + index * stride)
        offset = self._looked_up(section.key) if self._is_looked_up(section) else section.offset
        start = offset_by(self.builder, self.arena, offset)
        if isinstance(index, int):
            return offset_by(self.builder, start, index * stride) if index else start
        return offset_by(self.builder, start, self.scaled(index, stride))

    def _is_looked_up(self, section: Section) -> bool:
        return self.table is not None and section.key[0] in OF_A_NODE

    def _looked_up(self, key: Key) -> Value:
        """A number that differs from node to node; it is loaded once, at the entry."""
        assert self.table is not None
        return self.table.value(self.builder, key)

    def number_of(self, tensor: Tensor) -> Value:
        """The position of a tensor among those of the graph."""
        if self.table is not None:
            return self._looked_up((NUMBER, tensor.name))
        return integer(self.graph.tensors.index(tensor))

    def scaled(self, index: Value, stride: int) -> Value:
        """``index * stride``, which does not overflow."""
        return self.builder.mul(index, integer(stride), "nsw")

    def pointer(self, section: Section, index: int = 0) -> Value:
        """A pointer that is stored in the arena."""
        return self.builder.load(self.address(section, index), POINTER)

    def block(self, name: str) -> BasicBlock:
        """A new block of the function."""
        return self.function.block(name)

    def bind_space(self) -> None:
        """Bind the space indices of the place ``pe``, from its row-major number."""
        builder, rest = self.builder, self.pe
        for dimension in reversed(self.node.space):
            extent = integer(dimension.extent)
            value = builder.add(builder.urem(rest, extent), integer(dimension.minimum))
            self.names[dimension.name] = builder.trunc(value, I32)
            rest = builder.udiv(rest, extent)

    def load_parameters(self) -> None:
        """Bind the names of all scalar parameters."""
        for parameter in self.graph.parameters:
            where = self.address(self.layout.parameter(parameter.name))
            self.names[parameter.name] = load_value(self.builder, where, parameter.type, 1)

    def is_invariant(self, *exprs: Expr | None) -> bool:
        """Whether these hold one value through all firings of a PE (``None``: 'always')."""
        if isinstance(self.node, Machine):
            return True
        loops = {loop.name for loop in self.node.loops}
        return not any(index_names(expr) & loops for expr in exprs if expr is not None)

    def locate(
        self, indices: tuple[Expr, ...], shape: tuple[int, ...], lanes: int = 1
    ) -> tuple[Value, Value]:
        """Row-major number of an element, and whether all its indices are in range.

        ``lanes`` elements are wanted from there along the last dimension.
        """
        builder = self.builder
        flat, valid = integer(0), integer(1, I1)
        for position, (index, extent) in enumerate(zip(indices, shape, strict=True)):
            last = position == len(shape) - 1
            limit = max(0, extent - lanes + 1) if last else extent
            value = self.expressions.wide(index)
            valid = builder.and_(valid, builder.icmp_unsigned("<", value, integer(limit)))
            flat = builder.add(self.scaled(flat, extent), value)
        return flat, valid

    def fault(self, message: str) -> Value:
        """The number of a new fault."""
        self.faults.append(message)
        number = integer(len(self.faults))
        if self.table is None:
            return number
        return self.builder.add(self._looked_up((FAULTS,)), number)

    def give_up(self) -> None:
        """Leave the function after a fault was noted."""
        if self.abandon is None:
            raise InternalError(f"{self.node.name} has a fault where there can be none")
        self.builder.branch(self.abandon)

    def require(self, holds: Value, message: str) -> None:
        """Stop the run with a fault where ``holds`` is false; go on in a new block."""
        builder = self.builder
        failed, passed = self.block("failed"), self.block("passed")
        builder.cbranch(holds, passed, failed, weights=(1 << 20, 1))
        builder.position_at_end(failed)
        builder.store(self.fault(message), self.address(self.layout.fault))
        builder.store(self.pe, self.address(self.layout.place))
        self.give_up()
        builder.position_at_end(passed)


def smaller(builder: Builder, left: Value, right: Value) -> Value:
    """The minimum of two signed numbers."""
    return builder.select(builder.icmp_signed("<", left, right), left, right)


FAULTED = -1
"""What the function returns after a fault."""


class Frame:
    """The function under construction, in ``context``; what changes lives in stack slots.

    ``visit``, ``leave`` and ``next`` are blocks: the code of a visit begins in the first one (with
    ``begin_visit``) and ends in the second one (with ``end_visit``), or goes to the third one at
    once if there is nothing to do.
    """

    def __init__(
        self,
        module: Module,
        graph: Graph,
        node: PEArray | Machine,
        layout: ValueLayout,
        number: int,
        faults: list[str],
        places: list[Key] | None = None,
    ) -> None:
        """With ``places`` the function has a table of these as its last argument."""
        shared = [] if places is None else [POINTER]
        function = module.function(
            f"node{number}",
            I64,
            [POINTER, I64, *shared],
            attributes="nounwind noinline",
            noalias=True,
        )
        builder, abandon = Builder(function), function.block("abandon")
        self.function = function
        self.context = NodeContext(
            graph=graph,
            node=node,
            layout=layout,
            function=function,
            builder=builder,
            arena=function.args[0],
            faults=faults,
            abandon=abandon,
            table=None if places is None else PlaceTable(pointer=function.args[2], keys=places),
        )
        self._builder = builder
        self._abandon = abandon
        self._pe, self._budget, self._fired = (builder.alloca(I64) for _ in range(3))
        self.visit, self.leave, self.next = (
            function.block(name) for name in ("visit", "leave", "next")
        )

    def emit_loop(self) -> None:
        """The loop over the places, and the exits."""
        context, builder = self.context, self._builder
        budget = self.function.args[1]
        builder.store(integer(0), self._pe)
        builder.store(budget, self._budget)
        select, leave = context.block("select"), context.block("return")
        unfinished = builder.load(context.address(self._unfinished), I64)
        builder.cbranch(builder.icmp_signed("==", unfinished, integer(0)), leave, select)

        builder.position_at_end(select)
        context.pe = self.load(self._pe)
        more = builder.icmp_signed("<", context.pe, integer(context.node.place_count))
        left = builder.icmp_signed(">", self.budget(), integer(0))
        builder.cbranch(builder.and_(more, left), self.visit, leave)

        builder.position_at_end(self.next)
        builder.store(builder.add(context.pe, integer(1)), self._pe)
        builder.branch(select)

        builder.position_at_end(leave)
        builder.ret(builder.sub(budget, self.budget()))
        builder.position_at_end(self._abandon)
        builder.ret(integer(FAULTED))

    def begin_visit(self) -> tuple[Value, Value]:
        """Where the state of the place is, and its first word, the status; it is not finished."""
        context, builder = self.context, self._builder
        live = context.block("live")
        builder.position_at_end(self.visit)
        section = context.layout.state(context.node.name)
        state = context.address(section, context.pe, 4 * section.shape[1])
        status = builder.load(state, I32)
        done = builder.icmp_signed(">=", status, integer(FINISHED, I32))
        builder.cbranch(done, self.next, live)
        builder.position_at_end(live)
        context.bind_space()
        builder.store(integer(0), self._fired)
        return state, status

    def budget(self) -> Value:
        """How many firings are left."""
        return self.load(self._budget)

    def fired(self) -> Value:
        """How many firings this visit has made."""
        return self.load(self._fired)

    def count(self, fired: Value) -> None:
        """There were so many, and now one more."""
        builder = self._builder
        builder.store(builder.add(fired, integer(1), "nuw nsw"), self._fired)

    def finish(self) -> None:
        """The place will not fire any more."""
        builder, where = self._builder, self.context.address(self._unfinished)
        builder.store(builder.sub(builder.load(where, I64), integer(1)), where)

    def end_visit(self, fired: Value, useful: Value) -> None:
        """Pay; visit the place again if it fired, may fire, and a further visit is ``useful``."""
        builder = self._builder
        left = builder.sub(self.budget(), fired)
        builder.store(left, self._budget)
        moved = builder.icmp_signed(">", fired, integer(0))
        funded = builder.icmp_signed(">", left, integer(0))
        again = builder.and_(useful, builder.and_(moved, funded))
        builder.cbranch(again, self.visit, self.next)

    def load(self, slot: Slot) -> Value:
        """What is in a slot."""
        return self._builder.load(slot, slot.kept)

    @property
    def _unfinished(self) -> Section:
        return self.context.layout.unfinished(self.context.node.name)

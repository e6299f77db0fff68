"""What the parts of a node's emitter share: the builder, the arena, names and faults."""

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
from t2s.simulator.emit.llvm import I1, I32, I64, POINTER, Block, Function, Value, integer
from t2s.simulator.emit.representation import load_value, offset_by
from t2s.simulator.values.layout import Key, Layout, Section
from t2s.simulator.values.shared_code import FAULTS, NUMBER, OF_A_NODE, Table


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
    layout: Layout
    function: Function
    builder: Builder
    arena: Value
    faults: list[str]
    abandon: Block | None
    names: dict[str, Value] = field(default_factory=dict)
    expressions: ExpressionEmitter = field(init=False)
    pe: Value = field(init=False)
    table: Table | None = None

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

    def block(self, name: str) -> Block:
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

"""The description of a product design: what it computes, and with which parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.core.expr import Expr, Read
from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.core.types import BOOL, INT32, Type
from t2s.graph.body import SpaceDimension
from t2s.graph.build import Out, space
from t2s.graph.graph import ScalarParameter, StreamKind
from t2s.reduction.circuits import LANE, Circuit
from t2s.sparse_repr.representation.chain_layout import (
    BlockJob,
    MatrixDimension,
    MatrixUnits,
    units_of,
)
from t2s.sparse_repr.representation.hardware.wires import wire
from t2s.sparse_repr.representation.inverse_map import InverseMap, Order
from t2s.sparse_repr.representation.storage import Storage

VECTOR_LINES = 2
"""Lines of the dense operand that are loaded in a cycle, by as many units: nothing can be computed
until it is there, and two lines are most of the bandwidth of a board."""

ELEMENT, WORD = "element", "word"
"""Space dimensions: the multiplier of a machine, and the element of a line of memory."""

MATRIX, VECTOR = "a", "x"
"""Locals that stand for the value of the matrix and of the dense operand in ``Product.term``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductOperand:
    """A dense operand or the result; ``location`` is where the user declared it."""

    name: str
    type: Type
    location: SourceLocation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeName:
    """A node: its name, and the user's line that asked for it."""

    name: str
    location: SourceLocation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Names of the nodes; isolated parts have the user's names."""

    matrix_loader: NodeName
    vector_loader: NodeName
    vector_feeder: NodeName
    multiplier: NodeName
    adder: NodeName
    combiner: NodeName
    decoder: NodeName
    reduction: NodeName
    unloader: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultStart:
    """The start value of the result.

    Attributes
    ----------
    value: the expression, over the Vars ``row`` and ``side`` and reads of operands.
    operands, shapes, padded: the inputs that it reads, their shapes, and those in memory.
    loaders: the node that loads each of the reads.
    """

    value: Expr
    row: str
    side: str | None
    operands: tuple[ProductOperand, ...]
    shapes: Mapping[str, tuple[int, ...]]
    padded: Mapping[str, tuple[int, ...]]
    loaders: Mapping[Read, str]
    location: SourceLocation


@dataclass(frozen=True, kw_only=True, eq=False)
class Product:
    """``y[r] = start; y[i] += term(A.values[p, q], x[j])`` for a stored matrix.

    Attributes
    ----------
    term: the term of the sum, over the locals ``a`` and ``x`` and scalars.
    start: what the result starts from; ``None`` for 0.
    scalars: the scalars of ``term`` and ``start``.
    width: number of right-hand sides: columns of ``x`` and ``y`` if they have two dimensions.
    vector, result: the dense operand and the result; ``matrix`` the sparse one.
    block: values of a stream that are handled in one step, by as many multipliers.
    rows_at_once: rows of a dense block that are handled in one step, each by its own part of the
        multipliers.
    fused: lanes of one reduction circuit.
    combined: whether the sums of two machines are combined before they are reduced.
    distinct: whether no row is on two machines.
    continuous: whether the values of a row follow one another on every machine.
    origin: the chain of the arrays of the matrix, and the promises that the design relies on.
    structure_loaders: units that load a part of the structure, by its name; else they are those
        of the matrix.
    words: elements of the result that are stored in a cycle: a line of memory.
    banks: banks of the dense operand, a power of two; 0 for a copy for each multiplier.
    """

    matrix: ProductOperand
    vector: ProductOperand
    result: ProductOperand
    storage: Storage
    mapping: InverseMap
    term: Expr
    start: ResultStart | None
    scalars: tuple[ScalarParameter, ...]
    width: int
    flat: bool
    block: int
    rows_at_once: int
    fused: int
    combined: bool
    distinct: bool
    continuous: bool
    circuit: Circuit
    nodes: Nodes
    origin: tuple[str, ...]
    structure_loaders: Mapping[str, NodeName]
    words: int
    banks: int
    location: SourceLocation | None

    @property
    def lanes(self) -> tuple[SpaceDimension, ...]:
        """The space of the machines."""
        return (space(LANE, self.machines),)

    @property
    def places(self) -> tuple[SpaceDimension, ...]:
        """The space of the multipliers: machines, and elements of a block if it has several."""
        return (*self.lanes, *((space(ELEMENT, self.block),) if self.block > 1 else ()))

    @property
    def values_wire(self) -> Out:
        """The wire that brings each multiplier the values of the matrix."""
        return wire(f"{self.nodes.multiplier.name}_matrix", self.matrix.type)

    @property
    def places_wire(self) -> Out:
        """The wire that brings the feeders the column of every value; -1 is padding."""
        kind = StreamKind.VALUE if self.direct else StreamKind.COORDINATE
        return wire(f"{self.nodes.vector_feeder.name}_place", INT32, kind)

    @property
    def vector_wire(self) -> Out:
        """The wire that brings each multiplier the elements of the dense operand."""
        return wire(f"{self.nodes.multiplier.name}_vector", self.vector.type)

    @property
    def valid_wire(self) -> Out:
        """The wire that tells values from padding, where padding may be between values."""
        return wire(f"{self.nodes.multiplier.name}_valid", BOOL, StreamKind.CONTROL)

    @property
    def rows_node(self) -> str:
        """The node that takes the rows of the steps."""
        return self.nodes.multiplier.name if self.block == 1 else self.nodes.adder.name

    @property
    def row_wires(self) -> tuple[Out, ...]:
        """The wires that bring the rows of a step: one for each row that is handled at once.

        If one decoder assigns the rows, there is one for each machine.
        """
        first = f"{self.rows_node}_row"
        names = [first, *(f"{first}_{row}" for row in range(1, self.rows_at_once))]
        if self.dealt:
            names = [f"{first}_{machine}" for machine in range(self.machines)]
        return tuple(wire(name, INT32, StreamKind.COORDINATE) for name in names)

    @property
    def multipliers(self) -> int:
        """Multipliers of all machines."""
        return self.machines * self.block

    @property
    def place_taker(self) -> str:
        """The node that takes the column index of every multiplier."""
        feeder = self.nodes.vector_feeder.name
        return f"{feeder}_asking" if self.banks else feeder

    @property
    def bank_lines(self) -> int:
        """Firings that fill a bank."""
        return self.vector_lines // max(1, self.banks // self.vector_words)

    @property
    def bank_firings(self) -> tuple[str, int] | None:
        """The node of the banks, and the firings of each without conflicts."""
        if not self.banks:
            return None
        return f"{self.nodes.vector_feeder.name}_bank", self.bank_lines + self.steps

    @property
    def slack(self) -> int:
        """Additional tokens of channels beside the path of the dense operand through banks."""
        return 6 * self.banks

    @property
    def machines(self) -> int:
        """Streams of values."""
        return self.mapping.machines

    @property
    def units(self) -> MatrixUnits:
        """How the coordinates of a value divide into those of its unit and its offset in the
        unit.
        """
        return units_of(self.storage.layout, self.storage.shape)

    @property
    def direct(self) -> bool:
        """Whether fibers are rows and units are values: rows and columns need no arithmetic."""
        return self.storage.layout.rows_of_values

    @property
    def slots(self) -> int:
        """Slots of every stream, at least one."""
        return max(1, self.storage.slots)

    @property
    def steps(self) -> int:
        """Steps of every stream, at least one."""
        return -(-self.slots * self.storage.unit // self.block)

    @property
    def decoded(self) -> int:
        """The number of tokens from the decoder to each machine: rows of steps, or fibers of
        slots.
        """
        return self.steps if self.direct else self.slots

    @property
    def slots_decoded_at_once(self) -> int:
        """Slots that share a token from the decoder."""
        return self.block if self.direct else 1

    @property
    def padded(self) -> bool:
        """Whether padding may be between values, not only after them."""
        return bool(self.storage.layout.blocks) or not self.direct

    @property
    def dealt(self) -> bool:
        """Whether one decoder assigns the rows, or blocks of rows, to all machines in each step."""
        order, job, lengths = self.mapping.order, self.mapping.job, self.mapping.lengths
        if lengths is None or self.mapping.fiber is not None:
            return False
        if not (self.direct and self.plain_rows):
            return False
        if lengths.fibers not in (None, 1) or order not in (Order.STRIDED, Order.REPLAYED):
            return False
        return isinstance(job, BlockJob) or (order is Order.REPLAYED and job.fibers == 1)

    @property
    def rows(self) -> int:
        """Elements of the result for each right-hand side, at least one."""
        return max(1, self.storage.shape[0])

    @property
    def columns(self) -> int:
        """Elements of the dense operand for each right-hand side, at least one."""
        return max(1, self.storage.shape[1])

    @property
    def vector_words(self) -> int:
        """Elements of the dense operand that are loaded in a cycle."""
        words = min(VECTOR_LINES * self.words, max(1, self.columns * self.width))
        return 1 << (words.bit_length() - 1) if self.banks else words

    @property
    def vector_lines(self) -> int:
        """The number of lines of the dense operand; all banks get the same number of words."""
        lines = -(-self.columns * self.width // self.vector_words)
        rounds = max(1, self.banks // self.vector_words)
        return -(-lines // rounds) * rounds

    @property
    def ascending(self) -> bool:
        """Whether every machine takes its rows in ascending order."""
        return (
            self.direct
            and self.plain_rows
            and self.mapping.order in (Order.STRIDED, Order.REPLAYED)
        )

    @property
    def plain_rows(self) -> bool:
        """Whether fibers are single rows and units single values."""
        mapping = self.mapping
        grouped = bool(mapping.tiles) or bool(self.storage.layout.groups)
        return mapping.major is MatrixDimension.ROWS and not grouped

    def shape(self, extent: int) -> tuple[int, ...]:
        """The shape of the dense operand or of the result."""
        return (extent,) if self.flat else (extent, self.width)

    @property
    def vector_shape(self) -> tuple[int, ...]:
        """The shape of the dense operand; a start value may read more of it than the term."""
        shape = self.shape(self.storage.shape[1])
        read = self.start.shapes.get(self.vector.name) if self.start is not None else None
        return shape if read is None else tuple(max(pair) for pair in zip(shape, read, strict=True))

    @property
    def _taken(self) -> set[str]:
        """The user's names of inputs and results."""
        operands = self.start.operands if self.start is not None else ()
        names = {each.name for each in (self.vector, self.result, *operands)}
        return names | {each.name for each in self.scalars}

    def stream_name(self, structure: str) -> str:
        """The name of the tensor of a part of the structure."""
        names = NameSupply({*self._taken, self.values_name})
        taken = [names.fresh(f"{self.matrix.name}_{part}") for part in self.mapping.streams()]
        return taken[self.mapping.streams().index(structure)]

    @property
    def values_name(self) -> str:
        """The name of the tensor of the values."""
        names = NameSupply(self._taken)
        return names.fresh(f"{self.matrix.name}_values")

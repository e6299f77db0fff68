"""PEs as processes: what one PE takes and sends in each class of its iterations.

Each PE is treated on its own, at its point of the space domain.  Memory is a stream like a channel:
a ``Load`` takes from a load unit, a ``Store`` sends to a store unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.backends.cgra_tia.lower.schedule import Classes, LoopNest, classes_of
from t2s.backends.cgra_tia.lower.unit_nests import UnitNest, address_nest
from t2s.backends.cgra_tia.lower.values import (
    Arrival,
    Decided,
    Kept,
    Operation,
    StaticChoice,
    Value,
    ValueReader,
    WordLiteral,
    computed,
    pattern_of,
)
from t2s.backends.cgra_tia.netlist import Provenance, StreamUnit, UnitKind
from t2s.core.expr import Const, Expr
from t2s.core.location import SourceLocation
from t2s.core.types import INT32, Kind, Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.graph import Graph, MemorySpace, Tensor
from t2s.graph.nodes import PEArray
from t2s.graph.specialize import fold_statement, without_unused


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenStream:
    """An element of an array of streams: of a channel, of the units of a node, or of a ring."""

    array: str
    element: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.array}[{','.join(map(str, self.element))}]" if self.element else self.array


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFacts:
    """What the elements of an array have in common: the capacity they need, and the user's line."""

    capacity: int
    location: SourceLocation | None


@dataclass(frozen=True, slots=True)
class Taken:
    """The token that a firing takes from a stream."""

    stream: TokenStream


Resolved = WordLiteral | Taken | Operation
"""What a value is in one class."""


@dataclass(frozen=True, kw_only=True)
class Port:
    """A statement that takes or sends: its stream, or one for each class, and its condition."""

    stream: TokenStream | None
    array: str
    columns: tuple[int, ...] = ()
    condition: int | None = None


@dataclass(frozen=True, kw_only=True)
class FileAccess:
    """A read or a write of a register file, by the statement at ``position`` in the body."""

    register: str
    indices: tuple[Expr, ...]
    condition: int | None
    position: int
    value: Value | None = None


@dataclass(kw_only=True)
class ClassStep:
    """What a process does in one class: the tokens that it takes and the values that it sends.

    ``kept`` has the source of each read of a register file.
    """

    row: tuple[int | float | bool, ...]
    takes: dict[int, TokenStream] = field(default_factory=dict)
    sends: dict[TokenStream, Value] = field(default_factory=dict)
    kept: dict[int, Value | TokenStream] = field(default_factory=dict)
    _known: dict[int, Resolved] = field(default_factory=dict)

    @property
    def taken(self) -> set[TokenStream]:
        """The streams from which it takes a token."""
        return {
            *self.takes.values(),
            *(s for s in self.kept.values() if isinstance(s, TokenStream)),
        }

    def resolved(self, value: Value) -> Resolved:
        """The value with all static choices decided."""
        match value:
            case WordLiteral():
                return value
            case Operation():
                return self._operation(value)
            case Decided(column=column, type=type):
                return WordLiteral(pattern=pattern_of(self.row[column], type), type=type)
            case Arrival(port=port, type=type):
                stream = self.takes.get(port)
                return WordLiteral(pattern=0, type=type) if stream is None else Taken(stream)
            case Kept(read=read, type=type):
                source = self.kept.get(read, WordLiteral(pattern=0, type=type))
                return Taken(source) if isinstance(source, TokenStream) else self.resolved(source)
            case StaticChoice(column=column, if_true=if_true, if_false=if_false):
                return self.resolved(if_true if self.row[column] else if_false)

    def _operation(self, operation: Operation) -> Resolved:
        """The operation, or its result if all operands are literals."""
        if operation.number not in self._known:
            operands = [self.resolved(operand) for operand in operation.operands]
            literals = [operand for operand in operands if isinstance(operand, WordLiteral)]
            whole = len(literals) == len(operands)
            self._known[operation.number] = computed(operation, literals) if whole else operation
        return self._known[operation.number]

    def used(self) -> set[TokenStream]:
        """The streams whose tokens its sends depend on."""
        streams: set[TokenStream] = set()
        waiting, seen = list(self.sends.values()), set[int]()
        while waiting:
            match self.resolved(waiting.pop()):
                case Taken(stream):
                    streams.add(stream)
                case Operation(operands=operands) as operation if id(operation) not in seen:
                    seen.add(id(operation))
                    waiting.extend(operands)
        return streams

    def reads(self, value: Value) -> set[int]:
        """The reads of register files that a value depends on."""
        reads: set[int] = set()
        waiting, seen = [value], set[int]()
        while waiting:
            part = waiting.pop()
            match part:
                case Kept(read=read):
                    reads.add(read)
                    continue
                case StaticChoice(column=column, if_true=if_true, if_false=if_false):
                    waiting.append(if_true if self.row[column] else if_false)
                case Operation(operands=operands) if id(part) not in seen:
                    seen.add(id(part))
                    waiting.extend(operands)
        return reads


@dataclass(kw_only=True)
class CellProcess:
    """One PE: the classes of its iterations, and what it does in each."""

    name: str
    origin: Provenance
    nest: LoopNest
    classes: Classes
    steps: list[ClassStep]
    reader: ValueReader
    reads: list[FileAccess] = field(default_factory=list)
    writes: list[FileAccess] = field(default_factory=list)
    parameters: dict[str, TokenStream] = field(default_factory=dict)


@dataclass(kw_only=True)
class StreamTable:
    """The streams of a design: facts of each array, and the stream units at their ends."""

    graph: Graph
    facts: dict[str, StreamFacts] = field(default_factory=dict)
    sources: dict[TokenStream, StreamUnit] = field(default_factory=dict)
    sinks: dict[TokenStream, StreamUnit] = field(default_factory=dict)


# Reads the body of one PE at its point: its ports, its values, and its stream units.
#
# Refused: arrays that stream units do not reach, accesses that are not loop nests, and two tokens
# of one stream in one firing.

WORD_TYPES = (Type(Kind.FLOAT, 64), Type(Kind.INT, 64), INT32)
"""What arrays in memory have to be of."""


class ProcessReader:
    """Reads one PE of a node."""

    def __init__(self, streams: StreamTable, node: PEArray, point: tuple[int, ...], nest: LoopNest):
        self._streams = streams
        self._graph = streams.graph
        self._node = node
        self._point = point
        self._nest = nest
        self._values = ValueReader(nest.subject, node.location, self._parameter)
        self._parameters: dict[str, Arrival] = {}
        self._takes: list[Port] = []
        self._sends: list[tuple[Port, Value]] = []
        self._units: list[tuple[Port, Load | Store]] = []
        self._reads: list[FileAccess] = []
        self._writes: list[FileAccess] = []

    def process(self) -> CellProcess:
        """The PE as a process; its stream units are added to the streams."""
        folded = [fold_statement(s, self._nest.folded) for s in self._node.body]
        for position, statement in enumerate(without_unused([s for s in folded if s is not None])):
            self._read(statement, position)
        whole = bool(self._writes)
        classes = classes_of(self._nest, self._values.columns.exprs, whole=whole)
        steps = [self._step(row) for row in classes.rows]
        for port, statement in self._units:
            self._make_unit(port, statement, classes)
        return CellProcess(
            name=place_name(self._node.name, self._point),
            origin=Provenance(
                node=self._node.name, point=self._point, location=self._node.location
            ),
            nest=self._nest,
            classes=classes,
            steps=steps,
            reader=self._values,
            reads=self._reads,
            writes=self._writes,
            parameters={
                name: stream
                for name, arrival in self._parameters.items()
                if (stream := self._takes[arrival.port].stream) is not None
            },
        )

    # --------------------------------------------------------------------------- statements

    def _read(self, statement: Statement, position: int) -> None:
        values = self._values
        match statement:
            case Let(target=target, value=value):
                values.locals[target] = values.value(value)
            case Receive(target=target, channel=channel, type=type, condition=condition):
                values.checked_type(type)
                index = self._graph.channel(channel).sink_index
                port = self._channel_port(channel, index, condition)
                values.locals[target] = Arrival(port=len(self._takes), type=type)
                self._takes.append(port)
            case Load(target=target, type=type, condition=condition):
                values.checked_type(type)
                port = self._unit_port(statement, condition)
                values.locals[target] = Arrival(port=len(self._takes), type=type)
                self._takes.append(port)
            case Send(channel=channel, value=value, condition=condition):
                index = self._graph.channel(channel).source_index
                port = self._channel_port(channel, index, condition)
                self._sends.append((port, values.value(value)))
            case Store(value=value, condition=condition):
                port = self._unit_port(statement, condition)
                self._sends.append((port, values.value(value)))
            case RegisterRead(target=target, register=register, indices=indices, type=type):
                values.checked_type(type)
                values.locals[target] = Kept(read=len(self._reads), type=type)
                self._access(self._reads, register, indices, None, position)
            case RegisterWrite(
                register=register, indices=indices, value=value, condition=condition
            ):
                written = values.value(value)
                self._access(self._writes, register, indices, condition, position, written)

    def _parameter(self, name: str, type: Type) -> Value:
        """A scalar of the user: an array of one element, whose token stays in the PE."""
        if name not in self._parameters:
            array = f"{self._node.name}.{name}"
            stream = TokenStream(array=array, element=self._point)
            self._streams.facts.setdefault(
                array, StreamFacts(capacity=1, location=self._node.location)
            )
            self._parameters[name] = Arrival(port=len(self._takes), type=type)
            self._takes.append(Port(stream=stream, array=array))
        return self._parameters[name]

    def _access(
        self,
        into: list[FileAccess],
        register: str,
        indices: tuple[Expr, ...],
        condition: Expr | None,
        position: int,
        value: Value | None = None,
    ) -> None:
        into.append(
            FileAccess(
                register=register,
                indices=indices,
                condition=self._values.condition(condition),
                position=position,
                value=value,
            )
        )

    def _channel_port(self, name: str, index: tuple[Expr, ...], condition: Expr | None) -> Port:
        channel = self._graph.channel(name)
        self._streams.facts.setdefault(
            name, StreamFacts(capacity=channel.capacity, location=channel.location)
        )
        element = [self._nest.folded(expr) for expr in index]
        fixed = tuple(int(expr.value) for expr in element if isinstance(expr, Const))
        moves = len(fixed) < len(element)
        return Port(
            stream=None if moves else TokenStream(array=name, element=fixed),
            array=name,
            columns=tuple(map(self._values.columns.of, element)) if moves else (),
            condition=self._values.condition(condition),
        )

    def _unit_port(self, statement: Load | Store, condition: Expr | None) -> Port:
        tensor = self._graph.tensor(statement.tensor)
        check_tensor(tensor, self._nest.subject, self._node.location)
        array = f"{self._node.name}.{tensor.name}"
        self._streams.facts.setdefault(array, StreamFacts(capacity=1, location=self._node.location))
        same = sum(1 for _, other in self._units if other.tensor == tensor.name)
        element = (*self._point, same) if same else self._point
        port = Port(
            stream=TokenStream(array=array, element=element),
            array=array,
            condition=self._values.condition(condition),
        )
        self._units.append((port, statement))
        return port

    # ------------------------------------------------------------------------------ classes

    def _step(self, row: tuple[int | float | bool, ...]) -> ClassStep:
        step = ClassStep(row=row)
        for number, port in enumerate(self._takes):
            if port.condition is None or row[port.condition]:
                stream = self._stream(port, row)
                if stream in step.takes.values():
                    self._twice("takes two tokens from", stream)
                step.takes[number] = stream
        for port, value in self._sends:
            if port.condition is None or row[port.condition]:
                stream = self._stream(port, row)
                if stream in step.sends:
                    self._twice("sends two tokens to", stream)
                step.sends[stream] = value
        return step

    def _twice(self, does: str, stream: TokenStream) -> None:
        why = f"one firing {does} {stream}, and a cell moves one token of a channel in a cycle"
        refuse(self._nest.subject, why, self._node.location)

    def _stream(self, port: Port, row: tuple[int | float | bool, ...]) -> TokenStream:
        if port.stream is not None:
            return port.stream
        return TokenStream(array=port.array, element=tuple(int(row[at]) for at in port.columns))

    # -------------------------------------------------------------------------------- units

    def _make_unit(self, port: Port, statement: Load | Store, classes: Classes) -> None:
        """Add the unit that loads or stores, with its nest."""
        tensor = self._graph.tensor(statement.tensor)
        needed = [port.condition is None or bool(row[port.condition]) for row in classes.rows]
        condition = None
        if not all(needed):
            assert port.condition is not None
            condition = self._values.columns.exprs[port.condition]
        nest = address_nest(self._nest, statement.indices, tensor.allocated, condition)
        if nest is None:
            refuse(
                self._nest.subject,
                f"its accesses to {tensor.name!r} are not those of a nest of 8 loops with an "
                "affine address: let the host order the array (Place.HOST)",
                self._node.location,
            )
        assert port.stream is not None
        loads = isinstance(statement, Load)
        unit = unit_of(port.stream, UnitKind.LOAD if loads else UnitKind.STORE, tensor, nest)
        unit = replace(
            unit,
            origin=Provenance(
                node=self._node.name, point=self._point, location=self._node.location
            ),
        )
        (self._streams.sources if loads else self._streams.sinks)[port.stream] = unit


def unit_of(stream: TokenStream, kind: UnitKind, tensor: Tensor, nest: UnitNest) -> StreamUnit:
    """A unit at the end of a stream, named after the stream."""
    return StreamUnit(
        name=str(stream), kind=kind, loops=nest.loops, tensor=tensor.name, address=nest.address
    )


def place_name(name: str, point: Sequence[int]) -> str:
    """The name of a node's PE: ``C[1,2]``."""
    return f"{name}[{','.join(map(str, point))}]" if point else name


def check_tensor(tensor: Tensor, subject: str, location: SourceLocation | None) -> None:
    """Refuse arrays that stream units do not reach."""
    if tensor.type not in WORD_TYPES:
        refuse(
            f"array {tensor.name!r}",
            f"it is of {tensor.type}, and words of this CGRA are float64, int64 and int32",
            tensor.location or location,
        )
    if tensor.place is not MemorySpace.MEMORY:
        why = f"{tensor.name!r} is an array{tensor.place_text}, and cells have none"
        refuse(subject, why, location)
    if tensor.open:
        refuse(
            f"array {tensor.name!r}",
            "its length is known only when the design runs, and stream units have fixed nests",
            tensor.location or location,
        )

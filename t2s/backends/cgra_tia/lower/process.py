"""PEs as processes: what one PE takes and sends in each class of its iterations.

Every PE is on its own here, at its point of the space domain.  Memory is a stream like a channel:
a ``Load`` takes from a unit that loads, a ``Store`` sends to one that stores.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from t2s.backends.cgra_tia.lower.schedule import Classes, LoopNest
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
from t2s.backends.cgra_tia.netlist import Provenance, StreamUnit
from t2s.core.expr import Expr
from t2s.core.location import SourceLocation
from t2s.graph.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenStream:
    """An element of an array of streams: of a channel, or of the units of a node, or a ring."""

    array: str
    element: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.array}[{','.join(map(str, self.element))}]" if self.element else self.array


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFacts:
    """What the elements of an array have in common: room that it needs, and the user's line."""

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
    """A statement that takes or sends: a stream, or one for each class, and when."""

    stream: TokenStream | None
    array: str
    columns: tuple[int, ...] = ()
    condition: int | None = None


@dataclass(frozen=True, kw_only=True)
class FileAccess:
    """A read or a write of a register file; ``position`` is that of the statement in the body."""

    register: str
    indices: tuple[Expr, ...]
    condition: int | None
    position: int
    value: Value | None = None


@dataclass(kw_only=True)
class ClassStep:
    """What a process does in one class: takes tokens, and sends values.

    ``kept`` says where the reads of register files get their values from.
    """

    row: tuple[int | float | bool, ...]
    takes: dict[int, TokenStream] = field(default_factory=dict)
    sends: dict[TokenStream, Value] = field(default_factory=dict)
    kept: dict[int, Value | TokenStream] = field(default_factory=dict)
    _known: dict[int, Resolved] = field(default_factory=dict)

    @property
    def taken(self) -> set[TokenStream]:
        """The streams that it takes a token from."""
        return {
            *self.takes.values(),
            *(s for s in self.kept.values() if isinstance(s, TokenStream)),
        }

    def resolved(self, value: Value) -> Resolved:
        """The value with everything static decided."""
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
        """The operation, or its result where all operands are literals."""
        if operation.number not in self._known:
            operands = [self.resolved(operand) for operand in operation.operands]
            literals = [operand for operand in operands if isinstance(operand, WordLiteral)]
            whole = len(literals) == len(operands)
            self._known[operation.number] = computed(operation, literals) if whole else operation
        return self._known[operation.number]

    def used(self) -> set[TokenStream]:
        """The streams whose tokens its sends depend on."""
        found: set[TokenStream] = set()
        waiting, seen = list(self.sends.values()), set[int]()
        while waiting:
            match self.resolved(waiting.pop()):
                case Taken(stream):
                    found.add(stream)
                case Operation(operands=operands) as operation if id(operation) not in seen:
                    seen.add(id(operation))
                    waiting.extend(operands)
        return found

    def reads(self, value: Value) -> set[int]:
        """The reads of register files that a value needs."""
        found: set[int] = set()
        waiting, seen = [value], set[int]()
        while waiting:
            part = waiting.pop()
            match part:
                case Kept(read=read):
                    found.add(read)
                    continue
                case StaticChoice(column=column, if_true=if_true, if_false=if_false):
                    waiting.append(if_true if self.row[column] else if_false)
                case Operation(operands=operands) if id(part) not in seen:
                    seen.add(id(part))
                    waiting.extend(operands)
        return found


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
    """The arrays of streams of a design, and the stream units at their ends."""

    graph: Graph
    facts: dict[str, StreamFacts] = field(default_factory=dict)
    sources: dict[TokenStream, StreamUnit] = field(default_factory=dict)
    sinks: dict[TokenStream, StreamUnit] = field(default_factory=dict)

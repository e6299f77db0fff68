"""What each PE does in each of its firings, in terms of the public core: words, streams, registers.

A PE at its point becomes a ``WordProcess``: the sequence of its firings, each of some *kind*
(``FiringKind``).  A kind has everything static decided: the streams that a firing takes from, the
values that it sends, and what it keeps in registers.  Memory is a stream too: a ``Load`` takes from
a stream of a read port, with an address for each token, and a ``Store`` sends to a write port.

Refused, with the user's node and line: vectors, types other than integers of 32 bits, scalars whose
value is given when the design runs, arrays of unknown length, and PEs with too many kinds of
firings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.backends.cgra_tia.lower.process import TokenStream
from t2s.backends.cgra_tia.lower.schedule import LoopNest, enumerated
from t2s.core.expr import Const, Expr, Local, Parameter, index_names, is_static, simplify
from t2s.core.location import SourceLocation
from t2s.core.ops import Array
from t2s.core.types import Type
from t2s.core.walk import Term, children, rebuild, walk
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.control.iterations import Iterations, rows_apart
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.nodes import PEArray
from t2s.graph.specialize import fold_statement, without_unused

MOST_FIRINGS = 1 << 20
"""Most firings of a PE: all of them are enumerated."""

MOST_KINDS = 64
"""Most kinds of firings before those that do the same become one."""

WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class FileElement:
    """An element of a register file."""

    register: str
    place: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringKind:
    """What a firing does: streams in the order of the body, and values as expressions.

    Tokens and registers are locals in them (see ``token`` and ``kept``).  ``parts`` has, for a
    stream that carries the tokens of several streams, those that it carries to this firing.
    """

    takes: tuple[TokenStream, ...]
    sends: tuple[tuple[TokenStream, Expr], ...]
    writes: tuple[tuple[FileElement, Expr], ...]
    parts: tuple[tuple[TokenStream, tuple[TokenStream, ...]], ...] = ()

    def tokens(self, stream: TokenStream) -> int:
        """How many tokens a firing takes from a stream."""
        return len(dict(self.parts).get(stream, (stream,))) if stream in self.takes else 0


@dataclass(frozen=True, kw_only=True)
class MemoryAccess:
    """The elements of a tensor that a stream accesses, in order, as flat positions.

    ``lanes`` numbers the streams that share a port (``None``: there is one).
    """

    tensor: str
    addresses: Array
    loads: bool
    node: str
    location: SourceLocation | None
    lanes: Array | None = None


@dataclass(kw_only=True)
class WordProcess:
    """One PE: the kind of each of its firings, in order."""

    name: str
    node: PEArray
    point: tuple[int, ...]
    kinds: tuple[FiringKind, ...]
    sequence: Array
    initial: dict[FileElement, int] = field(default_factory=dict)
    elements: dict[str, FileElement] = field(default_factory=dict)

    @property
    def location(self) -> SourceLocation | None:
        return self.node.location

    @property
    def subject(self) -> str:
        return f"node {self.node.name!r}"

    @property
    def takes(self) -> tuple[TokenStream, ...]:
        """The streams that it takes from."""
        return tuple(dict.fromkeys(s for kind in self.kinds for s in kind.takes))

    @property
    def sends(self) -> tuple[TokenStream, ...]:
        """The streams that it sends to."""
        return tuple(dict.fromkeys(s for kind in self.kinds for s, _ in kind.sends))


def token(stream: TokenStream, type: Type) -> Local:
    """The value of the token that a firing takes from a stream."""
    return Local(name=f"take {stream}", type=type)


def kept(element: FileElement, type: Type) -> Local:
    """The content of an element of a register file before a firing."""
    return Local(name=f"kept {element.register}{list(element.place)}", type=type)


def checked_word(type: Type, subject: str, location: SourceLocation | None) -> None:
    """Refuse types that do not fit the words of the public core."""
    if type.lanes > 1:
        why = "it computes with vectors, and words of the public core are scalars: drop vload"
        refuse(subject, why, location)
    if not type.is_bool and not (type.is_integer and type.bits == WORD_BITS):
        refuse(
            subject,
            f"it computes with {type}, and words of the public core are int32 and uint32: declare "
            "the inputs with Int(32) or UInt(32), or place the design with t2s.cgra.place, whose "
            "cells have float64",
            location,
        )


class FiringReader:
    """Reads one PE of a node; ``accesses`` collects the streams at its memory."""

    def __init__(
        self,
        graph: Graph,
        node: PEArray,
        point: tuple[int, ...],
        nest: LoopNest,
        accesses: dict[TokenStream, MemoryAccess],
    ) -> None:
        self._graph = graph
        self._node = node
        self._point = point
        self._nest = nest
        self._accesses = accesses
        folded = [fold_statement(statement, nest.folded) for statement in node.body]
        self._body = without_unused([s for s in folded if s is not None])
        self._columns: dict[Expr, int] = {}
        self._memory: dict[int, TokenStream] = {}
        self._elements: dict[str, FileElement] = {}

    def process(self) -> WordProcess:
        """The PE with all of its firings."""
        iterations = self._iterations()
        for at, statement in enumerate(self._body):
            self._note(at, statement)
        values = [iterations.values(column) for column in self._columns]
        rows, sequence = self._rows(values, iterations.count)
        kinds = [self._kind(row) for row in rows]
        same: dict[FiringKind, int] = {}
        number = np.array([same.setdefault(kind, len(same)) for kind in kinds], np.int64)
        self._find_addresses(iterations)
        point = f"[{','.join(map(str, self._point))}]" if self._point else ""
        return WordProcess(
            name=f"{self._node.name}{point}",
            node=self._node,
            point=self._point,
            kinds=tuple(same),
            sequence=number[sequence],
            initial={
                element: int(register.initial)
                for element in self._elements.values()
                for register in self._node.registers
                if register.name == element.register and register.initial
            },
            elements=self._elements,
        )

    def _iterations(self) -> Iterations:
        iterations = enumerated(self._nest, self._nest.loops)
        if iterations.count > MOST_FIRINGS:
            self._refuse(
                f"each PE fires {iterations.count:,} times, and at most {MOST_FIRINGS:,} firings "
                "are supported: make the loops smaller"
            )
        if self._node.active is None:
            return iterations
        active = iterations.where([self._nest.folded(self._node.active)])
        indices = {name: values[active] for name, values in iterations.names.items()}
        return Iterations(shape=(int(active.sum()),), names=indices)

    # ----------------------------------------------------------------------- what is static

    def _note(self, at: int, statement: Statement) -> None:
        """Collect the static parts of a statement, which determine the kind of a firing."""
        condition = getattr(statement, "condition", None)
        if condition is not None:
            self._column(condition)
        match statement:
            case Receive(channel=channel, type=type):
                self._check(type)
                self._static(self._graph.channel(channel).sink_index)
            case Send(channel=channel, value=value):
                self._static(self._graph.channel(channel).source_index)
                self._value_columns(value)
            case Let(value=value):
                self._value_columns(value)
            case Load(tensor=tensor, type=type):
                self._check(type)
                self._memory[at] = self._memory_stream(tensor)
            case Store(tensor=tensor, value=value):
                self._value_columns(value)
                self._memory[at] = self._memory_stream(tensor)
            case RegisterRead(indices=indices, type=type):
                self._check(type)
                self._static(indices)
            case RegisterWrite(indices=indices, value=value):
                self._static(indices)
                self._value_columns(value)

    def _memory_stream(self, tensor: str) -> TokenStream:
        declared = self._graph.tensor(tensor)
        self._check(declared.type)
        if declared.open or declared.place is not MemorySpace.MEMORY:
            why = (
                f"is{declared.place_text}"
                if declared.place_text
                else "has no length before it runs"
            )
            self._refuse(f"{tensor!r} {why}, and ports lead to arrays in the memory")
        same = sum(1 for stream in self._memory.values() if stream.array.endswith(f".{tensor}"))
        element = (*self._point, same) if same else self._point
        return TokenStream(array=f"{self._node.name}.{tensor}", element=element)

    def _static(self, indices: Sequence[Expr]) -> None:
        for index in indices:
            self._column(self._nest.folded(index))

    def _column(self, expr: Expr) -> None:
        if not is_static(expr):
            names = sorted({term.name for term in walk(expr) if isinstance(term, Parameter)})
            self._refuse(
                f"what it does depends on the parameter {names[0]!r}, which is given when the "
                "design runs: use a number"
            )
        self._columns.setdefault(expr, len(self._columns))

    def _value_columns(self, expr: Expr) -> None:
        self._check(expr.type)
        if isinstance(expr, Parameter):
            self._refuse(
                f"it computes with {expr.name!r}, a scalar that is given when the design runs, "
                "and there is no port for such: make it an input of one element"
            )
        if is_static(expr) and index_names(expr):
            self._column(expr)
            return
        for term in children(expr):
            assert isinstance(term, Expr)
            self._value_columns(term)

    def _rows(
        self, values: Sequence[Array], count: int
    ) -> tuple[list[tuple[int | bool, ...]], Array]:
        """The distinct rows of column values, and the row of each iteration."""
        codes, first = rows_apart(values, count)
        if len(first) > MOST_KINDS:
            self._refuse(
                f"its firings are of {len(first)} kinds, and a PE of the public core tells few "
                "apart: what it does, or the element of a register file that it uses, depends on "
                "loops in too many ways"
            )
        return [tuple(value[at].item() for value in values) for at in first], codes

    # ------------------------------------------------------------------------------- kinds

    def _kind(self, row: tuple[int | bool, ...]) -> FiringKind:
        """The kind of the firings in which the static parts have the values of this row."""
        known: dict[str, Expr] = {}
        held: dict[FileElement, Expr] = {}
        takes: list[TokenStream] = []
        sends: list[tuple[TokenStream, Expr]] = []

        def value(expr: Expr) -> Expr:
            return self._decided(expr, row, known)

        for at, statement in enumerate(self._body):
            condition = getattr(statement, "condition", None)
            happens = condition is None or bool(row[self._columns[condition]])
            match statement:
                case Let(target=target):
                    known[target] = value(statement.value)
                case Receive(target=target, type=type) | Load(target=target, type=type):
                    known[target] = Const(value=0, type=type)
                    if happens:
                        stream = self._stream(at, statement, row)
                        self._once(takes, stream, "takes two tokens from")
                        takes.append(stream)
                        known[target] = token(stream, type)
                case Send() | Store() if happens:
                    stream = self._stream(at, statement, row)
                    self._once([other for other, _ in sends], stream, "sends two tokens to")
                    sends.append((stream, value(statement.value)))
                case RegisterRead(target=target, register=register, type=type):
                    element = self._element(register, statement.indices, row)
                    before = kept(element, type)
                    self._elements[before.name] = element
                    known[target] = held.get(element, before)
                case RegisterWrite(register=register) if happens:
                    element = self._element(register, statement.indices, row)
                    held[element] = value(statement.value)
        return FiringKind(takes=tuple(takes), sends=tuple(sends), writes=tuple(held.items()))

    def _once(self, streams: list[TokenStream], stream: TokenStream, what: str) -> None:
        if stream in streams:
            self._refuse(f"one firing {what} {str(stream)!r}")

    def _element(
        self, register: str, indices: Sequence[Expr], row: tuple[int | bool, ...]
    ) -> FileElement:
        place = tuple(int(row[self._columns[self._nest.folded(index)]]) for index in indices)
        return FileElement(register, place)

    def _stream(self, at: int, statement: Statement, row: tuple[int | bool, ...]) -> TokenStream:
        if at in self._memory:
            return self._memory[at]
        assert isinstance(statement, Receive | Send)
        channel = self._graph.channel(statement.channel)
        index = channel.sink_index if isinstance(statement, Receive) else channel.source_index
        element = tuple(int(row[self._columns[self._nest.folded(part)]]) for part in index)
        return TokenStream(array=channel.name, element=element)

    def _decided(self, expr: Expr, row: tuple[int | bool, ...], known: dict[str, Expr]) -> Expr:
        """The value with static parts evaluated and locals substituted."""

        def put(term: Term) -> Term:
            assert isinstance(term, Expr)
            if isinstance(term, Local):
                return known[term.name]
            if is_static(term):
                if index_names(term):
                    return Const(value=row[self._columns[term]], type=term.type)
                return simplify(term)
            return rebuild(term, put)

        value = put(expr)
        assert isinstance(value, Expr)
        return simplify(value)

    # --------------------------------------------------------------------------- addresses

    def _find_addresses(self, iterations: Iterations) -> None:
        for at, stream in self._memory.items():
            statement = self._body[at]
            assert isinstance(statement, Load | Store)
            tensor = self._graph.tensor(statement.tensor)
            indices = [self._nest.folded(index) for index in statement.indices]
            flat = iterations.elements(indices, tensor.allocated)
            if statement.condition is not None:
                flat = flat[iterations.where([statement.condition])]
            if len(flat):
                self._accesses[stream] = MemoryAccess(
                    tensor=tensor.name,
                    addresses=flat,
                    loads=isinstance(statement, Load),
                    node=self._node.name,
                    location=self._node.location,
                )

    def _check(self, type: Type) -> None:
        checked_word(type, self._nest.subject, self._node.location)

    def _refuse(self, why: str) -> NoReturn:
        refuse(self._nest.subject, why, self._node.location)

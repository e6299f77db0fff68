"""The untimed meaning of a machine, written once: what ``semantics.fire`` is for a PE array.

A ``MachineState`` is one machine of the array between two firings.  ``decide`` gives its next
firing, or what it waits for; ``fire`` carries it out.  The interpreter and the plain engine stand
on these two.

Callers hold ``np.errstate(all="ignore")``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from t2s.core.errors import UserError
from t2s.core.expr import Expr
from t2s.core.ops import Array, apply_operator
from t2s.graph.body import Let, Load, RegisterRead, RegisterWrite, Statement, Store, by_lanes
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.machine import (
    VALUE,
    Choice,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Path,
    Rule,
    Search,
    SortedMemory,
)
from t2s.graph.semantics import (
    Closures,
    Environment,
    PortUse,
    element_of,
    gathered,
    new_registers,
    outside,
    scatter,
    window,
    zero_of,
)

MOST_ELEMENTS = 1 << 31
"""Most elements of an open tensor."""


class ProtocolError(UserError):
    """A machine met a token that its protocol does not allow, or an element that is not there."""


class Token(NamedTuple):
    """What a channel of nesting 1 and more carries; one of nesting 0 carries the value alone."""

    value: Array
    tag: int = VALUE

    def __str__(self) -> str:
        shown = show_token(self.tag, self.value)
        bare = self.tag == VALUE or not np.any(self.value)
        return shown if bare else f"{shown} with {self.value}"


def show_token(tag: int, value: Array | None = None) -> str:
    """A token as in the literature: the value, ``N``, ``D``, ``S0``, ``S1``, ..."""
    match tag:
        case 0:
            return str(value)
        case -1:
            return "N"
        case -2:
            return "D"
    return f"S{tag - 1}"


class PointMemory:
    """The points of a ``SortedMemory`` in lexicographic order, and their values."""

    def __init__(self, declared: SortedMemory) -> None:
        self._declared = declared
        self._keys: list[tuple[int, ...]] = []
        self._points: dict[tuple[int, ...], Array] = {}
        self._sorted = True

    def __len__(self) -> int:
        return len(self._points)

    def add(self, key: tuple[int, ...], value: Array) -> None:
        """Combine a value into a point."""
        if key in self._points:
            operands = (self._points[key], value)
            self._points[key] = apply_operator(
                self._declared.operator, self._declared.type, operands
            )[()]
            return
        self._points[key] = value
        self._keys.insert(bisect_left(self._keys, key), key)

    def first(self) -> tuple[tuple[int, ...], Array] | None:
        """The first point and its value."""
        return (self._keys[0], self._points[self._keys[0]]) if self._keys else None

    def drop(self) -> None:
        """Remove the first point, if there is one."""
        if self._keys:
            del self._points[self._keys.pop(0)]


@dataclass(frozen=True, slots=True)
class Decision:
    """The next firing: its code, its way, and the locals bound on the way to the rule."""

    code: int
    path: Path
    locals: Environment


class MachineState:
    """One machine of an array of machines.  ``ended`` once a rule without a next mode has fired."""

    def __init__(
        self, graph: Graph, node: Machine, point: Sequence[int], parameters: Mapping[str, Array]
    ) -> None:
        self.graph = graph
        self.node = node
        self.ended = False
        self._closures = Closures()
        self.mode = node.modes[0]
        self._space: Environment = dict(parameters)
        for dimension, value in zip(node.space, point, strict=True):
            self._space[dimension.name] = np.int32(value)
        self.registers = new_registers(node)
        self.memories = {memory.name: PointMemory(memory) for memory in node.memories}
        self.paths = node.paths()
        self._codes = {path.rule.name: code for code, path in enumerate(self.paths)}
        self._modes = {mode.name: mode for mode in node.modes}
        self._heads = {head.channel: head for head in node.heads}
        self.inputs = {
            channel.name: PortUse(channel.name, element_of(channel.sink_index, self._space))
            for channel in graph.inputs_of(node.name)
        }
        self.outputs = {
            channel.name: PortUse(channel.name, element_of(channel.source_index, self._space))
            for channel in graph.outputs_of(node.name)
        }
        self._tagged = {
            channel.name: channel.stream.nesting > 0
            for channel in (*graph.inputs_of(node.name), *graph.outputs_of(node.name))
        }

    def decide(
        self, heads: Mapping[str, Any], memory: Mapping[str, Array]
    ) -> Decision | tuple[str, ...]:
        """The next firing; where a head is missing for it, the heads that it is known to need.

        ``heads`` are the heads that are there.  Nothing is changed.  Raises ``ProtocolError`` if
        no alternative holds.
        """
        local = dict(self._space)
        for register in self.node.registers:
            if not register.shape:
                held = self.registers[register.name][()]
                local[register.name] = held.copy() if held.ndim else held
        needs = self.mode.needs
        if not self._bind(needs, heads, local):
            return needs
        choices: tuple[Choice, ...] = self.mode.choices
        while True:
            choice = self._chosen(choices, heads, local)
            needs += choice.needs
            if not self._bind(choice.needs, heads, local):
                return needs
            for statement in choice.body:
                self._execute(statement, local, memory)
            match choice.inside:
                case Rule(name=name):
                    code = self._codes[name]
                    return Decision(code, self.paths[code], local)
                case inner:
                    choices = inner

    def fire(self, decision: Decision, memory: dict[str, Array]) -> dict[str, Any]:
        """Carry out a firing; the tokens that it puts, by channel."""
        local, rule = decision.locals, decision.path.rule
        for statement in rule.body:
            self._execute(statement, local, memory)
        sent = {
            put.channel: self._token(put.channel, put.value, put.tag, local) for put in rule.puts
        }
        if rule.next is None:
            self.ended = True
        else:
            self.mode = self._modes[rule.next]
        return sent

    def _value(self, expr: Expr, local: Environment) -> Array:
        return self._closures.value(expr, local)

    def _integers(self, indices: tuple[Expr, ...], local: Environment) -> tuple[int, ...]:
        return tuple(int(self._value(index, local)) for index in indices)

    def _bind(self, needs: tuple[str, ...], heads: Mapping[str, Any], local: Environment) -> bool:
        """Bind the locals of heads; false if one of them is not there."""
        for name in needs:
            if name not in heads:
                return False
            head = self._heads[name]
            if head.tag is None:
                local[head.value] = heads[name]
            else:
                local[head.value], local[head.tag] = heads[name].value, np.int32(heads[name].tag)
        return True

    def _chosen(
        self, choices: tuple[Choice, ...], heads: Mapping[str, Any], local: Environment
    ) -> Choice:
        for choice in choices:
            if choice.when is None or bool(self._value(choice.when, local)):
                return choice
        seen = [
            f"{name}: {heads[name]}" for name in self._heads if self._heads[name].value in local
        ]
        raise ProtocolError(
            f"{self.node.name!r} met tokens that it cannot take",
            location=self.node.location,
            expected=self.mode.expected or f"tokens that mode {self.mode.name!r} accepts",
            given=", ".join(seen) or "no tokens",
            hint="look at the streams that are joined here: they have to have the same shape",
        )

    def _token(self, channel: str, value: Expr | None, tag: Expr | None, local: Environment) -> Any:
        stream = self.graph.channel(channel).stream
        sent = zero_of(stream.element) if value is None else self._value(value, local)
        if not self._tagged[channel]:
            return sent
        kind = VALUE if tag is None else int(self._value(tag, local))
        keeps = kind == VALUE or stream.values_under_tags
        return Token(sent if keeps else zero_of(stream.element), kind)

    def _execute(
        self, statement: Statement, local: Environment, memory: Mapping[str, Array]
    ) -> None:
        match statement:
            case Let(target=target, value=value):
                local[target] = self._value(value, local)
            case Load(target=target, tensor=tensor, indices=indices) if by_lanes(indices):
                leading, lanes = self._named("load", tensor, indices, local, memory)
                type = self.graph.tensor(tensor).type
                local[target] = gathered(memory[tensor], leading, lanes, type)
            case Load(target=target, tensor=tensor, indices=indices, type=type):
                local[target] = self._load(
                    tensor, self._integers(indices, local), type.lanes, memory
                )
            case Search(target=target):
                local[target] = self._search(statement, local, memory)
            case Store(tensor=tensor, indices=indices, value=value) if by_lanes(indices):
                leading, lanes = self._named("store", tensor, indices, local, memory)
                type = self.graph.tensor(tensor).type
                scatter(memory[tensor], leading, lanes, self._value(value, local), type)
            case Store(tensor=tensor, indices=indices, value=value):
                self._store(
                    tensor, self._integers(indices, local), self._value(value, local), memory
                )
            case RegisterRead(target=target, register=register, indices=indices):
                where = self._register(register, indices, local)
                local[target] = self.registers[register][where].copy()
            case RegisterWrite(register=register, indices=indices, value=value):
                where = self._register(register, indices, local)
                self.registers[register][where] = self._value(value, local)
            case MemoryAdd(memory=name, keys=keys, value=value):
                self.memories[name].add(self._integers(keys, local), self._value(value, local))
            case MemorySize(target=target, memory=name):
                local[target] = np.int32(len(self.memories[name]))
            case MemoryFirst():
                self._first(statement, local)
            case MemoryDrop(memory=name):
                self.memories[name].drop()

    def _first(self, statement: MemoryFirst, local: Environment) -> None:
        declared = next(m for m in self.node.memories if m.name == statement.memory)
        found = self.memories[statement.memory].first()
        keys, value = found or ((0,) * len(declared.keys), zero_of(declared.type))
        for target, key, type in zip(statement.targets, keys, declared.keys, strict=True):
            local[target] = type.numpy.type(key)
        local[statement.value] = value

    def _load(
        self, name: str, indices: tuple[int, ...], lanes: int, memory: Mapping[str, Array]
    ) -> Array:
        array = memory[name]
        shape = (len(array),) if isinstance(array, list) else array.shape
        if isinstance(array, list):
            zero = self.graph.tensor(name).type.numpy.type(0)
            self._check("load", name, indices, lanes, (MOST_ELEMENTS,))
            found = array[indices[0] : indices[0] + lanes]
            found = found + [zero] * (lanes - len(found))
            return np.array(found, zero.dtype) if lanes > 1 else found[0]
        self._check("load", name, indices, lanes, shape)
        return array[window(indices, lanes)].copy()

    def _search(self, statement: Search, local: Environment, memory: Mapping[str, Array]) -> Array:
        begin, end = (
            int(self._value(statement.begin, local)),
            int(self._value(statement.end, local)),
        )
        array = memory[statement.tensor]
        if begin < end:
            self._check("search", statement.tensor, (begin,), 1, (len(array),))
            self._check("search", statement.tensor, (end - 1,), 1, (len(array),))
            value = self._value(statement.value, local)
            begin += int(np.searchsorted(array[begin:end], value))
        return statement.begin.type.numpy.type(begin)

    def _store(
        self, name: str, indices: tuple[int, ...], value: Array, memory: Mapping[str, Array]
    ) -> None:
        array = memory[name]
        lanes = np.size(value)
        if isinstance(array, list):
            end = indices[0] + lanes
            self._check("store", name, indices, lanes, (MOST_ELEMENTS,))
            zero = self.graph.tensor(name).type.numpy.type(0)
            array.extend([zero] * (end - len(array)))
            array[indices[0] : end] = np.atleast_1d(np.asarray(value, zero.dtype))
            return
        self._check("store", name, indices, lanes, array.shape)
        array[window(indices, lanes)] = value

    def _named(
        self,
        verb: str,
        name: str,
        indices: tuple[Expr, ...],
        local: Environment,
        memory: Mapping[str, Array],
    ) -> tuple[tuple[int, ...], Array]:
        """The other indices and the lanes of a gather or scatter, all of which are inside."""
        leading, lanes = self._integers(indices[:-1], local), self._value(indices[-1], local)
        tensor = self.graph.tensor(name)
        grows = tensor.open and tensor.role is not TensorRole.INPUT
        shape = (MOST_ELEMENTS,) if grows else memory[name].shape
        found = outside(leading, lanes, shape)
        if found is not None:
            lane, dimension, index = found
            raise ProtocolError(
                f"{self.node.name!r} {verb}s outside of {name!r}",
                location=self.node.location,
                expected=f"an index from 0 to {shape[dimension] - 1} in dimension {dimension}, or"
                " lanes of -1, which touch nothing",
                given=f"{index} for lane {lane} in mode {self.mode.name!r}",
                hint="the arrays of a tensor have to fit each other",
                notes=[(tensor.location, f"{name!r} is declared here")],
            )
        return leading, lanes

    def _check(
        self, verb: str, name: str, indices: tuple[int, ...], lanes: int, shape: tuple[int, ...]
    ) -> None:
        for dimension, (index, extent) in enumerate(zip(indices, shape, strict=True)):
            width = lanes if dimension == len(shape) - 1 else 1
            if 0 <= index <= extent - width:
                continue
            tensor = self.graph.tensor(name)
            raise ProtocolError(
                f"{self.node.name!r} {verb}{'es' if verb == 'search' else 's'} outside of {name!r}",
                location=self.node.location,
                expected=f"an index from 0 to {extent - width} in dimension {dimension}"
                if extent >= width
                else f"no {verb}: {name!r} has {extent} elements",
                given=f"{index} in mode {self.mode.name!r}",
                hint="the arrays of a tensor have to fit each other",
                notes=[(tensor.location, f"{name!r} is declared here")],
            )

    def _register(
        self, name: str, indices: tuple[Expr, ...], local: Environment
    ) -> tuple[int, ...]:
        where = self._integers(indices, local)
        shape = self.registers[name].shape[: len(where)]  # the lanes of a vector are behind
        if any(not 0 <= at < extent for at, extent in zip(where, shape, strict=True)):
            raise ProtocolError(
                f"{self.node.name!r} uses an element outside of its register file {name!r}",
                location=self.node.location,
                expected=f"indices below {shape}",
                given=f"{where} in mode {self.mode.name!r}",
            )
        return where

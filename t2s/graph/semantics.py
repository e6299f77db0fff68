"""The untimed meaning of nodes and machines, written once.

``space_points`` and ``iterations`` enumerate the PEs of a node and the firings of a PE;
``port_uses`` says which channel elements a firing receives from and sends to (static control);
``fire`` executes the body.  The reference engine, the untimed interpreter and the tests of the
native engine and of the backends all use these four functions.  Machines have theirs below.
``closure`` compiles a scalar expression to a Python function, equal to ``evaluate`` but without
walking the expression.

Callers of ``fire`` hold ``np.errstate(all="ignore")``.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from t2s.core.errors import UserError
from t2s.core.expr import Apply, Const, Expr, Index, Local, Parameter, Select, evaluate
from t2s.core.identity_cache import IdentityCache
from t2s.core.ops import Array, Op, apply_operator
from t2s.core.types import Type
from t2s.graph.body import (
    Let,
    Load,
    Receive,
    RegisterRead,
    RegisterWrite,
    Send,
    Statement,
    Store,
    by_lanes,
)
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.nodes import (
    VALUE,
    Choice,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Node,
    Path,
    PEArray,
    Rule,
    Search,
    SortedMemory,
)

Environment = dict[str, Array]


@dataclass(frozen=True, slots=True)
class PortUse:
    """One element of a channel array: ``channel[element]``."""

    channel: str
    element: tuple[int, ...]


def space_points(node: Node) -> Iterator[tuple[int, ...]]:
    """The points of a node's space domain, in row-major order."""
    yield from product(*(range(d.minimum, d.minimum + d.extent) for d in node.space))


def pe_points(node: Node) -> Iterator[tuple[int, ...]]:
    """Those of them that have a PE, or a machine."""
    return (p for p in space_points(node) if not isinstance(node, PEArray) or node.has_pe(p))


def iterations(
    node: PEArray, point: tuple[int, ...], parameters: Mapping[str, Array]
) -> Iterator[Environment]:
    """The firings of one PE in order: environments of space indices, loop indices, parameters."""
    if not node.has_pe(point):
        return
    base: Environment = dict(parameters)
    for dimension, value in zip(node.space, point, strict=True):
        base[dimension.name] = np.int32(value)

    def nest(level: int, environment: Environment) -> Iterator[Environment]:
        if level == len(node.loops):
            yield environment
            return
        loop = node.loops[level]
        minimum = int(evaluate(loop.minimum, environment))
        extent = int(evaluate(loop.extent, environment))
        for value in range(minimum, minimum + extent):
            yield from nest(level + 1, {**environment, loop.name: np.int32(value)})

    yield from nest(0, base)


def holds(condition: Expr | None, environment: Environment) -> bool:
    """Whether a static condition is met (``None`` means always)."""
    return condition is None or bool(evaluate(condition, environment))


def port_uses(
    graph: Graph, node: PEArray, environment: Environment
) -> tuple[tuple[PortUse, ...], tuple[PortUse, ...]]:
    """The channel elements that this firing receives from and sends to, in body order."""
    receives: list[PortUse] = []
    sends: list[PortUse] = []
    for statement in node.body:
        match statement:
            case Receive(channel=channel, condition=condition) if holds(condition, environment):
                index = graph.channel(channel).sink_index
                receives.append(PortUse(channel, element_of(index, environment)))
            case Send(channel=channel, condition=condition) if holds(condition, environment):
                index = graph.channel(channel).source_index
                sends.append(PortUse(channel, element_of(index, environment)))
    return tuple(receives), tuple(sends)


def element_of(indices: tuple[Expr, ...], environment: Environment) -> tuple[int, ...]:
    """The integer value of index expressions."""
    return tuple(int(evaluate(index, environment)) for index in indices)


def zero_of(type: Type) -> Array:
    """The zero of a type: a numpy scalar, or a vector of lanes."""
    return np.zeros(type.lanes, type.numpy) if type.lanes > 1 else type.numpy.type(0)


def new_registers(node: Node) -> dict[str, Array]:
    """The register files of one PE or machine as they start; lanes are the last axis."""
    return {
        register.name: np.full(
            register.shape + ((register.type.lanes,) if register.type.lanes > 1 else ()),
            register.initial,
            register.type.numpy,
        )
        for register in node.registers
    }


def fire(
    node: PEArray,
    environment: Environment,
    tokens: Mapping[str, Array],
    registers: dict[str, Array],
    memory: dict[str, Array],
) -> dict[str, Array]:
    """Execute the body once and return the values sent, by channel.

    ``tokens`` holds the received token of every channel that ``port_uses`` names; ``registers``
    and ``memory`` are changed in place.
    """
    local = dict(environment)
    sent: dict[str, Array] = {}
    for statement in node.body:
        match statement:
            case Receive(target=target, channel=channel, type=type):
                local[target] = tokens[channel] if channel in tokens else zero_of(type)
            case Let(target=target, value=value):
                local[target] = evaluate(value, local)
            case Send(channel=channel, value=value, condition=condition):
                if holds(condition, local):
                    sent[channel] = evaluate(value, local)
            case Load(target=target, tensor=tensor, indices=indices, type=type):
                local[target] = zero_of(type)
                if holds(statement.condition, local):
                    where = window(element_of(indices, local), type.lanes)
                    local[target] = memory[tensor][where].copy()
            case Store(tensor=tensor, indices=indices, value=value, condition=condition):
                if holds(condition, local):
                    where = window(element_of(indices, local), value.type.lanes)
                    memory[tensor][where] = evaluate(value, local)
            case RegisterRead(target=target, register=register, indices=indices):
                local[target] = registers[register][element_of(indices, local)].copy()
            case RegisterWrite(register=register, indices=indices, value=value):
                if holds(statement.condition, local):
                    registers[register][element_of(indices, local)] = evaluate(value, local)
    return sent


def window(indices: tuple[int, ...], lanes: int) -> tuple[int | slice, ...]:
    """The numpy index of ``lanes`` contiguous elements that start at ``indices``."""
    if lanes == 1:
        return indices
    return (*indices[:-1], slice(indices[-1], indices[-1] + lanes))


HOLE = -1
"""The index of a lane that touches nothing, in a gather or scatter."""


def outside(
    leading: Sequence[int], lanes: Array, shape: Sequence[int]
) -> tuple[int, int, int] | None:
    """The first lane that names an element outside of a shape, the dimension and the index there.

    ``None`` if there is none.
    """
    for lane, at in enumerate(lanes.tolist()):
        place = (*leading, at)
        for dimension, (index, extent) in enumerate(zip(place, shape, strict=True)):
            if at != HOLE and not 0 <= index < extent:
                return lane, dimension, index
    return None


def gathered(array: Array, leading: tuple[int, ...], lanes: Array, type: Type) -> Array:
    """The elements that the lanes name; zero at holes, and behind the end of a growing list."""
    result = np.zeros(len(lanes), type.numpy)
    if isinstance(array, list):
        for lane, at in enumerate(lanes.tolist()):
            if 0 <= at < len(array):
                result[lane] = array[at]
        return result
    named = lanes != HOLE
    if np.any(named):
        result[named] = array[leading][lanes[named]]
    return result


def scatter(array: Array, leading: tuple[int, ...], lanes: Array, value: Array, type: Type) -> None:
    """Overwrite the elements that the lanes name, lane after lane; a growing list may get longer.

    ``type`` is that of an element.
    """
    elements = np.asarray(value, type.numpy)
    row = array
    if isinstance(array, list):
        array.extend([type.numpy.type(0)] * (int(lanes.max()) + 1 - len(array)))
    elif np.any(lanes != HOLE):
        row = array[leading] if leading else array
    for lane, at in enumerate(lanes.tolist()):
        if at != HOLE:
            row[at] = elements[lane]


Closure = Callable[[Environment], Array]

_BINARY: Mapping[Op, Callable[[Array, Array], Array]] = MappingProxyType(
    {
        Op.ADD: operator.add,
        Op.SUBTRACT: operator.sub,
        Op.MULTIPLY: operator.mul,
        Op.EQUAL: operator.eq,
        Op.NOT_EQUAL: operator.ne,
        Op.LESS: operator.lt,
        Op.LESS_EQUAL: operator.le,
        Op.GREATER: operator.gt,
        Op.GREATER_EQUAL: operator.ge,
        Op.AND: operator.and_,
        Op.OR: operator.or_,
        Op.MINIMUM: lambda left, right: right if right < left else left,
        Op.MAXIMUM: lambda left, right: right if right > left else left,
    }
)


class Closures:
    """The functions of expressions, each made once."""

    def __init__(self) -> None:
        self._made = IdentityCache[Expr, Closure]()

    def value(self, expr: Expr, environment: Environment) -> Array:
        """The value of an expression of a graph."""
        return self._made.get(expr, closure)(environment)


def closure(expr: Expr) -> Closure:
    """The function of one expression."""
    match expr:
        case Const(value=value, type=type):
            constant = np.asarray(value, type.numpy)[()]
            return lambda environment: constant
        case Index(name=name) | Local(name=name) | Parameter(name=name):
            return lambda environment: environment[name]
        case Apply(operator=found, operands=operands) if _is_common(expr):
            compute = _BINARY[found]
            left, right = (closure(operand) for operand in operands)
            return lambda environment: compute(left(environment), right(environment))
        case Select(condition=condition, if_true=if_true, if_false=if_false) if (
            expr.type.lanes == 1
        ):
            test, yes, no = closure(condition), closure(if_true), closure(if_false)
            return lambda environment: yes(environment) if test(environment) else no(environment)
    return lambda environment: evaluate(expr, environment)


def _is_common(expr: Apply) -> bool:
    """Whether numpy's operators on scalars agree with ``apply_operator``."""
    types = {operand.type for operand in expr.operands}
    return expr.operator in _BINARY and all(
        type.lanes == 1 and type.numpy.kind in "biuf" for type in types
    )


# The untimed meaning of a machine, written once: what ``semantics.fire`` is for a PE array.
#
# A ``MachineState`` is one machine of the array between two firings.  ``decide`` gives its next
# firing, or what it waits for; ``fire`` carries it out.  The interpreter and the plain engine stand
# on these two.
#
# Callers hold ``np.errstate(all="ignore")``.

MOST_ELEMENTS = 1 << 31
"""Most elements of an open tensor."""


class ProtocolError(UserError):
    """A machine met a token that its protocol does not allow, or an element out of range."""


class Token(NamedTuple):
    """A token of a channel of nesting 1 or more; channels of nesting 0 carry plain values."""

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
        entry = self.memories[statement.memory].first()
        keys, value = entry or ((0,) * len(declared.keys), zero_of(declared.type))
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
            vector = array[indices[0] : indices[0] + lanes]
            vector = vector + [zero] * (lanes - len(vector))
            return np.array(vector, zero.dtype) if lanes > 1 else vector[0]
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
        bad_lane = outside(leading, lanes, shape)
        if bad_lane is not None:
            lane, dimension, index = bad_lane
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

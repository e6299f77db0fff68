"""The untimed meaning of a node, written once.

``space_points`` and ``iterations`` enumerate the PEs of a node and the firings of a PE;
``port_uses`` says which channel elements a firing receives from and sends to (static control);
``fire`` executes the body.  The plain Python engine, the untimed interpreter and the tests of the
native engine and of the backends all stand on these four functions.  Machines have theirs in
``graph.machine_semantics``.  ``closure`` makes a Python function of a scalar expression: what
``evaluate`` gives, without walking the expression.

Callers of ``fire`` hold ``np.errstate(all="ignore")``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

import numpy as np

from t2s.core.expr import Apply, Const, Expr, Index, Local, Parameter, Select, evaluate
from t2s.core.ops import Array, Op
from t2s.core.types import Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store
from t2s.graph.graph import Graph
from t2s.graph.nodes import Node, PEArray

Environment = dict[str, Array]


@dataclass(frozen=True, slots=True)
class PortUse:
    """One element of a channel array: ``channel[element]``."""

    channel: str
    element: tuple[int, ...]


def space_points(node: Node) -> Iterator[tuple[int, ...]]:
    """The points of a node's space domain, in row-major order."""
    yield from product(*(range(d.minimum, d.minimum + d.extent) for d in node.space))


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
        self._made: dict[int, tuple[Expr, Closure]] = {}

    def value(self, expr: Expr, environment: Environment) -> Array:
        """The value of an expression of a graph."""
        made = self._made.get(id(expr))
        if made is None:
            made = self._made[id(expr)] = (expr, closure(expr))
        return made[1](environment)


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
    """Whether numpy's own operators on scalars do the same as ``apply_operator``."""
    types = {operand.type for operand in expr.operands}
    return expr.operator in _BINARY and all(
        type.lanes == 1 and type.numpy.kind in "biuf" for type in types
    )

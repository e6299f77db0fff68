"""The rules of bodies: statements well typed, locals bound before use, control static, and indices
inside of the extents of registers and memory in every iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from t2s.core.expr import Expr, conjuncts
from t2s.core.expr import const as number
from t2s.core.isl import Interval, LoopDomain, NotAffine, is_affine
from t2s.core.location import SourceLocation
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
)
from t2s.graph.graph import Channel, Graph, Tensor, TensorRole
from t2s.graph.nodes import PEArray
from t2s.graph.verify_expr import (
    ExprScope,
    GraphError,
    one_of,
    spell,
    verify_condition,
    verify_expr,
    verify_indices,
)
from t2s.graph.verify_types import refuse_lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyVerifier:
    """Checks the statements of one body in order; ``locals`` are those bound so far."""

    graph: Graph
    node: PEArray
    static: ExprScope
    locals: dict[str, Type] = field(default_factory=dict)

    def verify(self, statement: Statement) -> None:
        """Check one statement and bind its target."""
        match statement:
            case Receive(channel=name, target=target, type=type, condition=condition):
                what = f"Receive from channel {name!r}"
                verify_condition(condition, self.static, what)
                self._types_equal(what, self._channel(name, what).stream.element, type)
                self.locals[target] = type
            case Send(channel=name, value=value, condition=condition):
                what = f"Send to channel {name!r}"
                verify_condition(condition, self.static, what)
                self._value(value, what)
                self._types_equal(what, self._channel(name, what).stream.element, value.type)
            case Let(target=target, value=value):
                self._value(value, f"Let of {target!r}")
                self.locals[target] = value.type
            case Load(target=target, tensor=name, indices=indices, type=type):
                verify_condition(statement.condition, self.static, f"Load of tensor {name!r}")
                self._access(f"Load of tensor {name!r}", name, indices, type)
                self.locals[target] = type
            case Store(tensor=name, indices=indices, value=value, condition=condition):
                what = f"Store to tensor {name!r}"
                verify_condition(condition, self.static, what)
                self._value(value, what)
                self._access(what, name, indices, value.type)
                self._not_an_input(what, self.graph.tensor(name))
            case RegisterRead(target=target, register=name, indices=indices, type=type):
                self._register(f"RegisterRead of {name!r}", name, indices, type)
                self.locals[target] = type
            case RegisterWrite(register=name, indices=indices, value=value, condition=condition):
                what = f"RegisterWrite of {name!r}"
                verify_condition(condition, self._dynamic(), what)
                self._value(value, what)
                self._register(what, name, indices, value.type)

    def _dynamic(self) -> ExprScope:
        return replace(self.static, locals=self.locals)

    def _value(self, value: Expr, what: str) -> None:
        verify_expr(value, self._dynamic(), f"the value of {what}")

    def _types_equal(self, what: str, expected: Type, given: Type) -> None:
        if expected != given:
            raise self.static.subject.error(
                f"{what} has the wrong type",
                expected=spell(expected),
                given=spell(given),
                hint="insert a Cast, or change the declared type",
            )

    def _channel(self, name: str, what: str) -> Channel:
        try:
            return self.graph.channel(name)
        except KeyError:
            raise self.static.subject.error(
                f"{what}: there is no such channel",
                expected=one_of(channel.name for channel in self.graph.channels),
                given=repr(name),
            ) from None

    def _tensor(self, name: str, what: str) -> Tensor:
        try:
            return self.graph.tensor(name)
        except KeyError:
            raise self.static.subject.error(
                f"{what}: there is no such tensor",
                expected=one_of(tensor.name for tensor in self.graph.tensors),
                given=repr(name),
            ) from None

    def _access(self, what: str, name: str, indices: tuple[Expr, ...], type: Type) -> None:
        tensor = self._tensor(name, what)
        shape = tensor.allocated
        refuse_lanes(indices, self.static, what)
        verify_indices(indices, len(shape), self.static, what)
        self._types_equal(what, tensor.type.with_lanes(type.lanes), type)
        innermost = shape[-1] if shape else 1
        if innermost < type.lanes:
            raise self.static.subject.error(
                f"{what}: {type.lanes} lanes do not fit into the last dimension",
                expected=f"a last dimension of at least {type.lanes}",
                given=f"shape {shape}",
                hint="choose a shorter vector, or pad the tensor",
            )

    def _not_an_input(self, what: str, tensor: Tensor) -> None:
        if tensor.role is TensorRole.INPUT:
            raise self.static.subject.error(
                f"{what}: an input is not written",
                expected="a tensor of role output or intermediate",
                given=f"role {tensor.role.value}",
                notes=[(tensor.location, f"tensor {tensor.name!r} is made here")],
            )

    def _register(self, what: str, name: str, indices: tuple[Expr, ...], type: Type) -> None:
        registers = {register.name: register for register in self.node.registers}
        if name not in registers:
            raise self.static.subject.error(
                f"{what}: there is no such register",
                expected=one_of(registers),
                given=repr(name),
            )
        verify_indices(indices, len(registers[name].shape), self.static, what)
        self._types_equal(what, registers[name].type, type)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Access:
    """``lanes`` elements of ``name`` from ``indices`` on, where ``condition`` holds."""

    verb: str
    name: str
    indices: tuple[Expr, ...]
    shape: tuple[int, ...]
    lanes: int = 1
    condition: Expr | None = None
    declared: SourceLocation | None = None


def verify_bounds(graph: Graph, node: PEArray) -> None:
    """Raise ``GraphError`` for an access that leaves its register file or tensor."""
    found = [access for access in _accesses(graph, node) if access.indices]
    if not found:
        return
    try:
        nest = _nest(node)
    except NotAffine:
        return
    for access in found:
        if all(is_affine(part) for part in conjuncts(access.condition)):
            _verify(node, access, nest.restricted(*conjuncts(access.condition)))


def _verify(node: PEArray, access: _Access, used: LoopDomain) -> None:
    if used.is_empty():
        return
    for dimension, (index, extent) in enumerate(zip(access.indices, access.shape, strict=True)):
        width = access.lanes if dimension == len(access.shape) - 1 else 1
        found = used.range_of(index) if is_affine(index) else None
        if found is None or (found[0] >= 0 and found[1] + width <= extent):
            continue
        raise GraphError(
            f"{node.name!r} {access.verb} outside of {access.name!r}",
            location=node.location,
            expected=f"indices 0 to {extent - 1} in dimension {dimension} of {access.shape}",
            given=f"indices {found[0]} to {found[1] + width - 1}",
            hint="guard the access with a condition, or give the tensor the shape it is used with",
            notes=[(access.declared, f"{access.name!r} is declared here")],
        )


def _nest(node: PEArray) -> LoopDomain:
    space = [
        Interval(name=d.name, minimum=number(d.minimum), extent=number(d.extent))
        for d in node.space
    ]
    loops = [Interval(name=x.name, minimum=x.minimum, extent=x.extent) for x in node.loops]
    return LoopDomain([*space, *loops], [] if node.exists is None else [node.exists])


def _accesses(graph: Graph, node: PEArray) -> Iterator[_Access]:
    shapes = {register.name: register.shape for register in node.registers}
    for statement in node.body:
        match statement:
            case RegisterRead(register=name, indices=indices):
                yield _Access(verb="reads", name=name, indices=indices, shape=shapes[name])
            case RegisterWrite(register=name, indices=indices, condition=condition):
                yield _Access(
                    verb="writes",
                    name=name,
                    indices=indices,
                    shape=shapes[name],
                    condition=condition,
                )
            case Load(tensor=name) | Store(tensor=name):
                tensor = graph.tensor(name)
                loads = isinstance(statement, Load)
                type = statement.type if isinstance(statement, Load) else statement.value.type
                yield _Access(
                    verb="loads" if loads else "stores",
                    name=name,
                    indices=statement.indices,
                    shape=tensor.allocated,
                    lanes=type.lanes,
                    condition=statement.condition,
                    declared=tensor.location,
                )

"""The rules of bodies: statements well typed, locals bound before use, control static."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from t2s.core.expr import Expr
from t2s.core.printer import show
from t2s.core.types import BOOL, Type
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
from t2s.graph.verify_expr import Scope, one_of, spell, verify_expr, verify_indices


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyVerifier:
    """Checks the statements of one body in order; ``locals`` are those bound so far."""

    graph: Graph
    node: PEArray
    static: Scope
    locals: dict[str, Type] = field(default_factory=dict)

    def verify(self, statement: Statement) -> None:
        """Check one statement and bind its target."""
        match statement:
            case Receive(channel=name, target=target, type=type, condition=condition):
                what = f"Receive from channel {name!r}"
                self._condition(condition, self.static, what)
                self._types_equal(what, self._channel(name, what).stream.element, type)
                self.locals[target] = type
            case Send(channel=name, value=value, condition=condition):
                what = f"Send to channel {name!r}"
                self._condition(condition, self.static, what)
                self._value(value, what)
                self._types_equal(what, self._channel(name, what).stream.element, value.type)
            case Let(target=target, value=value):
                self._value(value, f"Let of {target!r}")
                self.locals[target] = value.type
            case Load(target=target, tensor=name, indices=indices, type=type):
                self._condition(statement.condition, self.static, f"Load of tensor {name!r}")
                self._access(f"Load of tensor {name!r}", name, indices, type)
                self.locals[target] = type
            case Store(tensor=name, indices=indices, value=value, condition=condition):
                what = f"Store to tensor {name!r}"
                self._condition(condition, self.static, what)
                self._value(value, what)
                self._access(what, name, indices, value.type)
                self._not_an_input(what, self.graph.tensor(name))
            case RegisterRead(target=target, register=name, indices=indices, type=type):
                self._register(f"RegisterRead of {name!r}", name, indices, type)
                self.locals[target] = type
            case RegisterWrite(register=name, indices=indices, value=value, condition=condition):
                what = f"RegisterWrite of {name!r}"
                self._condition(condition, self._dynamic(), what)
                self._value(value, what)
                self._register(what, name, indices, value.type)

    def _dynamic(self) -> Scope:
        return replace(self.static, locals=self.locals)

    def _value(self, value: Expr, what: str) -> None:
        verify_expr(value, self._dynamic(), f"the value of {what}")

    def _condition(self, condition: Expr | None, scope: Scope, what: str) -> None:
        if condition is None:
            return
        verify_expr(condition, scope, f"the condition of {what}")
        if condition.type != BOOL:
            raise self.static.subject.error(
                f"the condition of {what} is not a truth value",
                expected="an expression of type bool",
                given=f"{show(condition)} of type {condition.type}",
            )

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

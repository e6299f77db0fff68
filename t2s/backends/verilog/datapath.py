"""The datapath of a PE: what a firing computes, and its register files."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from t2s.backends.text.expressions import (
    Binary,
    If,
    Name,
    TargetExpression,
    TargetStatement,
    Ternary,
)
from t2s.backends.verilog.data_types import bits_of, start_of
from t2s.backends.verilog.expressions import ExpressionWriter, flat
from t2s.backends.verilog.interfaces import Interface
from t2s.backends.verilog.verilog_ast import (
    BIT,
    TRUE,
    WORD,
    ZEROS,
    Bits,
    Declaration,
    UnrolledFor,
    both,
    element,
    put,
    variable,
)
from t2s.core.expr import Expr
from t2s.core.types import Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store
from t2s.graph.nodes import PEArray


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """A register write of the present firing."""

    register: str
    enable: str
    at: str
    value: str


class Datapath:
    """Writes the block that computes values, from top to bottom of the body.

    ``static`` names space indices, loop indices and parameters; ``needs`` says, by channel,
    whether the present firing takes a token.
    """

    def __init__(
        self, interface: Interface, node: PEArray, static: dict[str, str], needs: dict[str, str]
    ) -> None:
        self.interface, self.node, self.needs = interface, node, needs
        self.identifiers = interface.identifiers
        self.names = dict(static)
        self.writer = ExpressionWriter(names=self.names, identifiers=self.identifiers)
        self.registers = {register.name: register for register in node.registers}
        self.files = {name: self.identifiers.fresh(name) for name in self.registers}
        self.declarations: list[Declaration] = []
        self.body: list[TargetStatement] = []
        self.writes: list[_Write] = []

    def build(self) -> None:
        """Fill ``declarations`` and ``body``, the combinational block."""
        for register in self.registers.values():
            self._declare(self.files[register.name], bits_of(register.type), prod(register.shape))
        taking = {port.channel.name: port for port in self.interface.taking}
        sending = {port.channel.name: port for port in self.interface.sending}
        loads, stores = iter(self.interface.loads), iter(self.interface.stores)
        for statement in self.node.body:
            match statement:
                case Receive(target=target, channel=channel, type=type):
                    needed = Name(name=self.needs[channel])
                    self._bind(target, type, _or_zero(needed, Name(name=taking[channel].token)))
                case Load(target=target, type=type):
                    load = next(loads)
                    data = _or_zero(Name(name=load.enable), Name(name=load.data))
                    self._bind(target, type, data)
                case Let(target=target, value=value):
                    name = self._named(target, bits_of(value.type))
                    self.body += self.writer.assign(name, value)
                    self.names[target] = name
                case Send(channel=channel, value=value):
                    self.body += self.writer.assign(sending[channel].value, value)
                case Store(value=value):
                    self.body += self.writer.assign(next(stores).data, value)
                case RegisterRead():
                    self._read(statement)
                case RegisterWrite():
                    self._write(statement)
        self.declarations += self.writer.declarations

    def updates(self) -> tuple[TargetStatement, ...]:
        """Register writes at the end of a firing."""
        return tuple(
            If(
                condition=Name(name=write.enable),
                then=(
                    put(
                        element(write.register, Name(name=write.at)),
                        Name(name=write.value),
                        clocked=True,
                    ),
                ),
            )
            for write in self.writes
        )

    def resets(self) -> tuple[TargetStatement, ...]:
        """Register files get the values that they start with."""
        return tuple(
            UnrolledFor(
                variable="at",
                count=prod(register.shape),
                body=(
                    put(
                        element(self.files[name], Name(name="at")), start_of(register), clocked=True
                    ),
                ),
            )
            for name, register in self.registers.items()
        )

    def _declare(self, name: str, type: Bits, count: int | None = None) -> None:
        self.declarations.append(variable(name, type, count))

    def _named(self, wanted: str, type: Bits) -> str:
        name = self.identifiers.fresh(wanted)
        self._declare(name, type)
        return name

    def _bind(self, target: str, type: Type, value: TargetExpression) -> None:
        name = self._named(target, bits_of(type))
        self.body.append(put(name, value))
        self.names[target] = name

    def _where(self, register: str, indices: tuple[Expr, ...]) -> TargetExpression:
        written = tuple(self.writer.index(index) for index in indices)
        self.body += self.writer.take_before()
        return flat(written, self.registers[register].shape)

    def _read(self, statement: RegisterRead) -> None:
        """What is in the register file, or what this firing has written to the place."""
        file = self.files[statement.register]
        where = self._where(statement.register, statement.indices)
        earlier = [write for write in self.writes if write.register == file]
        if earlier:
            at = self._named(f"{statement.target}_at", WORD)
            self.body.append(put(at, where))
            where = Name(name=at)
        value: TargetExpression = element(file, where)
        for write in earlier:
            same = Binary(operator="==", left=Name(name=write.at), right=where)
            value = Ternary(
                condition=both(Name(name=write.enable), same),
                if_true=Name(name=write.value),
                if_false=value,
            )
        self._bind(statement.target, statement.type, value)

    def _write(self, statement: RegisterWrite) -> None:
        file = self.files[statement.register]
        enable = self._named(f"{file}_write", BIT)
        at = self._named(f"{file}_at", WORD)
        value = self._named(f"{file}_value", bits_of(statement.value.type))
        condition: TargetExpression = TRUE
        if statement.condition is not None:
            condition = self.writer.scalar(statement.condition)
            self.body += self.writer.take_before()
        self.body.append(put(enable, condition))
        self.body.append(put(at, self._where(statement.register, statement.indices)))
        self.body += self.writer.assign(value, statement.value)
        self.writes.append(_Write(register=file, enable=enable, at=at, value=value))


def _or_zero(condition: TargetExpression, value: TargetExpression) -> TargetExpression:
    return Ternary(condition=condition, if_true=value, if_false=ZEROS)

"""The datapath of a PE: what a firing computes, in stages, and its register files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from t2s.backends.text.expressions import (
    Binary,
    If,
    Name,
    TargetExpression,
    TargetStatement,
    Ternary,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import bits_of, start_of
from t2s.backends.verilog.expressions import flat
from t2s.backends.verilog.interfaces import Interface, LoadPort
from t2s.backends.verilog.loop_counters import Counter
from t2s.backends.verilog.staged_values import Names, StagedValues
from t2s.backends.verilog.stages import Stages
from t2s.core.expr import Apply, Const, Expr, Index, Local, Select
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store
from t2s.graph.nodes import PEArray

ALWAYS = 1 << 30
"""The stage of a value that is the same in all firings: it never has to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """A register write of the firing that is in the stage of the register file.

    ``at`` is the element, where there are several.
    """

    register: str
    enable: str
    at: str | None
    value: str


class Datapath(StagedValues):
    """Writes the block that computes values, from top to bottom of the body.

    ``names`` has space indices, loop indices and parameters; ``counters`` the registers of loop
    indices.  ``needs`` has, for each channel from which not every firing takes a token, whether the
    present one does.
    """

    def __init__(
        self,
        interface: Interface,
        node: PEArray,
        names: Names,
        counters: Mapping[str, tuple[str, Counter]],
        needs: Mapping[str, str],
    ) -> None:
        stages = Stages(node, interface.plan, interface.plan.files)
        super().__init__(interface.plan, stages, interface.identifiers, names)
        self.interface, self.node, self.needs = interface, node, needs
        self.counters = counters
        self.files_of = stages
        self.registers = {register.name: register for register in node.registers}
        self.files = {name: self.identifiers.fresh(name) for name in self.registers}
        self.lets = {s.target: s.value for s in node.body if isinstance(s, Let)}
        self.writes: list[_Write] = []

    def build(self) -> None:
        """Fill ``declarations``, ``instances`` and ``body``, the combinational block."""
        for register in self.registers.values():
            count = prod(register.shape)
            single = None if count == 1 else count
            self.declare(self.files[register.name], bits_of(register.type), single)
        taking = {port.channel.name: port for port in self.interface.taking}
        sending = {port.channel.name: port for port in self.interface.sending}
        loads, stores = iter(self.interface.loads), iter(self.interface.stores)
        for statement in self.node.body:
            match statement:
                case Receive(target=target, channel=channel, type=type):
                    token = Name(name=taking[channel].token)
                    self._bind(target, type, _or_zero(self.needs.get(channel), token), 0)
                case Load():
                    self._load(statement, next(loads))
                case Let(target=target, value=value):
                    self._let(target, value)
                case Send(channel=channel, value=value):
                    late = self.plan.late.get(channel, 0)
                    self.body += self._assign(sending[channel].value, value, late)
                case Store(value=value):
                    store = next(stores)
                    self.body += self._assign(store.data, value, store.stage)
                case RegisterRead():
                    self._read(statement)
                case RegisterWrite():
                    self._write(statement)
        self.declarations += self.writer.declarations

    # ---------------------------------------------------------------------------------- values

    def _assign(self, target: str, value: Expr, stage: int) -> list[TargetStatement]:
        return self.writer.assign(target, self.at(value, stage, feeding=False))

    def here(self, expr: Expr, stage: int, feeding: bool) -> Expr:
        cleared = self._cleared(expr)
        if cleared is not None:
            return self._accumulated(expr, *cleared, stage, feeding)
        return super().here(expr, stage, feeding)

    def _cleared(self, expr: Expr) -> tuple[Expr, Expr, Expr] | None:
        """The condition, the sum and the term of a sum that begins anew where the condition holds,
        if the technology has cells for that.
        """
        if not (self.plan.technology.clears_in_carry and self.plan.chip):
            return None
        match expr:
            case Apply(operator=Op.ADD, operands=(left, right), type=type) if (
                type.is_integer and type.lanes == 1
            ):
                for begun, term in ((left, right), (right, left)):
                    match self.lets.get(begun.name) if isinstance(begun, Local) else begun:
                        case Select(condition=condition, if_true=Const(value=0), if_false=sum):
                            return condition, sum, term
        return None

    def _accumulated(
        self, expr: Expr, clear: Expr, sum: Expr, term: Expr, stage: int, feeding: bool
    ) -> Local:
        """An adder of the library that clears its sum."""
        name = self.named("sum", bits_of(expr.type))
        pairs = [
            (text, self.signal(value, stage, feeding))
            for text, value in (("clear", clear), ("sum", sum), ("value", term))
        ]
        self.instances.append(
            ast.Instance(
                module="accumulate",
                name=self.identifiers.fresh("accumulator"),
                parameters=(("WIDTH", number(expr.type.bits)),),
                connections=(*pairs, ("next", Name(name=name))),
            )
        )
        local = Local(name=f"sum@{len(self.wires)}", type=expr.type)
        self.wires[local.name] = name, stage, expr.type
        self.names[local.name] = name
        return local

    # --------------------------------------------------------------------------------- stages

    def index(self, name: str, expr: Index, stage: int) -> Expr:
        if name not in self.counters:
            return expr
        if stage == 0:
            return Index(name=name, type=INT32)
        register, counter = self.counters[name]
        later = f"{name}@{stage}"
        self.names[later] = counter.value(self.pipeline.after(register, counter.type, stage))
        return Index(name=later, type=INT32)

    def fired(self, stage: int) -> TargetExpression:
        """Whether a stage has the values of a firing."""
        fires = self.pipeline.after(port.FIRES, ast.BIT, stage, reset=True)
        return Name(name=fires)

    def _bind(self, target: str, type: Type, value: TargetExpression, stage: int) -> None:
        name = self.named(target, bits_of(type))
        self.body.append(ast.put(name, value))
        self.names[target] = name
        self.wires[target] = name, stage, type

    def _let(self, target: str, value: Expr) -> None:
        feeding = self.files_of.feeds(target)
        if self.stages.registers(value, feeding):
            local = self.named_value(value, feeding, target)
            name, since, type = self.wires[local.name]
            # a register in place of a wire, so that the local is in its own stage
            stage = self.stages.locals[target] or 0
            late = self.pipeline.after(name, bits_of(type), stage - since)
            self.names[target] = late
            self.wires[target] = late, stage, type
            return
        found = self.stages.of(value, feeding)
        here = self.at(value, found or 0, feeding=feeding)
        name = self.named(target, bits_of(value.type))
        self.body += self.writer.assign(name, here)
        self.names[target] = name
        self.wires[target] = name, ALWAYS if found is None else found, value.type
        self._kept(target, name, found or 0)

    def _kept(self, target: str, name: str, stage: int) -> None:
        """A local that every firing writes into a register is there one cycle later."""
        writes = [s for s in self.node.body if isinstance(s, RegisterWrite)]
        for write in writes:
            register = self.registers[write.register]
            if (
                isinstance(write.value, Local)
                and write.value.name == target
                and write.condition is None
                and prod(register.shape) == 1
                and sum(other.register == register.name for other in writes) == 1
                and self.plan.file(register.name).written == stage
            ):
                self.pipeline.begin(name, self.files[register.name])

    def _load(self, statement: Load, load: LoadPort) -> None:
        stage = self.plan.load_latency
        enable = None
        if statement.condition is not None:
            enable = self.pipeline.after(load.enable, ast.BIT, stage)
        data = _or_zero(enable, Name(name=load.data))
        self._bind(statement.target, statement.type, data, stage)

    # --------------------------------------------------------------------------- register files

    def updates(self) -> tuple[TargetStatement, ...]:
        """Register writes at the end of a stage."""
        updates: list[TargetStatement] = []
        for write in self.writes:
            stage = self.plan.file(write.register).written
            updates.append(
                If(
                    condition=ast.both(self.fired(stage), Name(name=write.enable)),
                    then=(
                        ast.put(
                            self._element(write.register, _name(write.at)),
                            Name(name=write.value),
                            clocked=True,
                        ),
                    ),
                )
            )
        return tuple(updates)

    def resets(self) -> tuple[TargetStatement, ...]:
        """Statements that set register files to their initial values."""
        resets: list[TargetStatement] = []
        for name, register in self.registers.items():
            at = Name(name="at")
            start = ast.put(self._element(name, at), start_of(register), clocked=True)
            count = prod(register.shape)
            resets.append(
                start if count == 1 else ast.UnrolledFor(variable="at", count=count, body=(start,))
            )
        return tuple(resets)

    def _element(self, register: str, where: TargetExpression | None) -> TargetExpression:
        """An element of a register file; one of a single element is a variable."""
        file = Name(name=self.files[register])
        if where is None or prod(self.registers[register].shape) == 1:
            return file
        return ast.Element(base=file, index=where)

    def _where(self, name: str, statement: RegisterRead | RegisterWrite, stage: int) -> str | None:
        """A wire with the element that a statement means; ``None`` for a single one."""
        shape = self.registers[statement.register].shape
        if prod(shape) == 1:
            return None
        there = [self.at(index, stage, feeding=True) for index in statement.indices]
        written = tuple(self.writer.index(index) for index in there)
        self.body += self.writer.take_before()
        bits = (prod(shape) - 1).bit_length()
        at = self.named(name, ast.Bits(width=bits))
        self.body.append(ast.put(at, ast.Resize(bits=bits, value=flat(written, shape))))
        return at

    def _read(self, statement: RegisterRead) -> None:
        """The content of a register file, or what this firing has written to the place."""
        stage = self.stages.locals[statement.target] or 0
        at = self._where(f"{statement.target}_at", statement, stage)
        value = self._element(statement.register, _name(at))
        for write in self.writes:
            if write.register != statement.register:
                continue
            same: list[TargetExpression] = [Name(name=write.enable)]
            if write.at is not None and at is not None:
                same.append(Binary(operator="==", left=Name(name=write.at), right=Name(name=at)))
            value = Ternary(
                condition=ast.both(*same),
                if_true=Name(name=write.value),
                if_false=value,
            )
        self._bind(statement.target, statement.type, value, stage)

    def _write(self, statement: RegisterWrite) -> None:
        file = self.files[statement.register]
        stage = self.plan.file(statement.register).written
        enable = self.named(f"{file}_write", ast.BIT)
        value = self.named(f"{file}_value", bits_of(statement.value.type))
        condition: TargetExpression = ast.TRUE
        if statement.condition is not None:
            condition = self.signal(statement.condition, stage, True)
        self.body.append(ast.put(enable, condition))
        at = self._where(f"{file}_at", statement, stage)
        written = self.at(statement.value, stage, feeding=True)
        self.body += self.writer.assign(value, written)
        self.writes.append(_Write(register=statement.register, enable=enable, at=at, value=value))


def _name(text: str | None) -> Name | None:
    return None if text is None else Name(name=text)


def _or_zero(condition: str | None, value: TargetExpression) -> TargetExpression:
    if condition is None:
        return value
    return Ternary(condition=Name(name=condition), if_true=value, if_false=ast.ZEROS)

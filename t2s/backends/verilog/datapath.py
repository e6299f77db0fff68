"""The datapath of a PE: what a firing computes, in stages, and its register files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from t2s.backends.text.identifiers import Identifiers
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import bits_of, start_of
from t2s.backends.verilog.expressions import ExpressionWriter, flat
from t2s.backends.verilog.float_operators import FloatModule, float_module
from t2s.backends.verilog.interfaces import Interface, LoadPort
from t2s.backends.verilog.loop_counters import Counter
from t2s.backends.verilog.stages import Stages, multiplier_operands
from t2s.core.expr import Apply, Cast, Const, Expr, Index, Local, Parameter, Select
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.core.walk import Term, rebuild
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store
from t2s.graph.nodes import PEArray

ALWAYS = 1 << 30
"""The stage of a value that is the same in all firings: it never has to wait."""

Names = Mapping[str, str | TargetExpression]


class Pipeline:
    """The registers between stages: each holds what a signal was one cycle earlier."""

    def __init__(self, identifiers: Identifiers) -> None:
        self.identifiers = identifiers
        self.declarations: list[ast.Item] = []
        self.moves: list[TargetStatement] = []
        self.resets: list[TargetStatement] = []
        self._after: dict[tuple[str, int], str] = {}

    def after(self, name: str, type: ast.Bits, cycles: int, *, reset: bool = False) -> str:
        """The signal ``name`` as it was some cycles ago; with ``reset`` 0 before the start."""
        earlier = name
        for cycle in range(1, cycles + 1):
            key = name, cycle
            if key not in self._after:
                register = self.identifiers.fresh(f"{name}_after_{cycle}")
                self.declarations.append(ast.variable(register, type))
                self.moves.append(ast.put(register, Name(name=earlier), clocked=True))
                if reset:
                    self.resets.append(ast.put(register, ast.ZEROS, clocked=True))
                self._after[key] = register
            earlier = self._after[key]
        return earlier

    def begin(self, name: str, register: str) -> None:
        """Take an existing register for the signal as it was one cycle ago."""
        self._after[name, 1] = register


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """A register write of the firing that is in the stage of the register file.

    ``at`` is the element, where there are several.
    """

    register: str
    enable: str
    at: str | None
    value: str


class Datapath:
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
        self.interface, self.node, self.needs = interface, node, needs
        self.counters = counters
        self.identifiers = interface.identifiers
        self.plan = interface.plan
        self.stages = Stages(node, self.plan, self.plan.files)
        self.pipeline = Pipeline(self.identifiers)
        self.names = dict(names)
        self.wires: dict[str, tuple[str, int, Type]] = {}
        self.writer = ExpressionWriter(names=self.names, identifiers=self.identifiers)
        self.registers = {register.name: register for register in node.registers}
        self.files = {name: self.identifiers.fresh(name) for name in self.registers}
        self.lets = {s.target: s.value for s in node.body if isinstance(s, Let)}
        self.declarations: list[ast.Declaration] = []
        self.body: list[TargetStatement] = []
        self.instances: list[ast.Item] = []
        self.writes: list[_Write] = []
        self._named_values: dict[tuple[Expr, bool], Local] = {}

    def build(self) -> None:
        """Fill ``declarations``, ``instances`` and ``body``, the combinational block."""
        for register in self.registers.values():
            count = prod(register.shape)
            single = None if count == 1 else count
            self._declare(self.files[register.name], bits_of(register.type), single)
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

    def at(self, expr: Expr, stage: int, *, feeding: bool) -> Expr:
        """A value as it is in a stage, over locals of that stage.

        What is narrow is computed early and waits: a comparison, not its operands.
        """
        match expr:
            case Index(name=name) if name in self.counters:
                return self._counter(name, stage)
            case Const() | Index() | Parameter():
                return expr
            case Local(name=name):
                return self._later(name, stage)
        ready = self.stages.of(expr, feeding)
        if ready is None:
            return expr
        if isinstance(expr, Cast) and self.stages.registers(expr, feeding) == 0:
            return replace(expr, value=self.at(expr.value, stage, feeding=feeding))
        if stage == ready and self.stages.registers(expr, feeding) == 0:
            return self._here(expr, stage, feeding)
        return self._later(self._named_value(expr, feeding, "part").name, stage)

    def _here(self, expr: Expr, stage: int, feeding: bool) -> Expr:
        """An operator without registers, in the stage of its operands."""
        cleared = self._cleared(expr)
        if cleared is not None:
            return self._accumulated(expr, *cleared, stage, feeding)

        def operand(term: Term) -> Term:
            return self.at(term, stage, feeding=feeding) if isinstance(term, Expr) else term

        return rebuild(expr, operand)

    def _named_value(self, expr: Expr, feeding: bool, stem: str) -> Local:
        """A local for a value, in a wire of the stage in which it is computed."""
        key = expr, feeding
        if key in self._named_values:
            return self._named_values[key]
        inside = self.stages.operands(expr, feeding) or 0
        factors = multiplier_operands(expr, self.plan.technology)
        registers = self.stages.registers(expr, feeding)
        local = Local(name=f"{stem}@{len(self.wires)}", type=expr.type)
        module = float_module(expr)
        if module is not None and registers:
            assert isinstance(expr, Apply)
            name = self._float_result(module, expr, inside, feeding)
            inside += registers
        elif factors is not None and registers:
            left, right = factors
            product = self._product(
                (self._signal(left.value, inside, feeding), left.bits),
                (self._signal(right.value, inside, feeding), right.bits),
                registers,
            )
            value = ast.Resize(bits=expr.type.bits, value=Name(name=product))
            name = self._named(stem, bits_of(expr.type))
            self.body.append(ast.put(name, value))
            inside += registers
        else:
            here = self._here(expr, inside, feeding)
            name = self._named(stem, bits_of(expr.type))
            self.body += self.writer.assign(name, here)
        self.wires[local.name] = name, inside, expr.type
        self.names[local.name] = name
        self._named_values[key] = local
        return local

    def _signal(self, expr: Expr, stage: int, feeding: bool) -> TargetExpression:
        value = self.writer.scalar(self.at(expr, stage, feeding=feeding))
        self.body += self.writer.take_before()
        return value

    def _product(
        self,
        left: tuple[TargetExpression, int],
        right: tuple[TargetExpression, int],
        registers: int,
    ) -> str:
        """A multiplier of the library."""
        product = self._named("product", ast.Bits(width=left[1] + right[1], signed=True))
        self.instances.append(
            ast.Instance(
                module="multiply",
                name=self.identifiers.fresh("multiplier"),
                parameters=(
                    ("LEFT", number(left[1])),
                    ("RIGHT", number(right[1])),
                    ("STAGES", number(registers)),
                ),
                connections=(
                    (port.CLOCK, Name(name=port.CLOCK)),
                    ("left", ast.Resize(bits=left[1], value=left[0])),
                    ("right", ast.Resize(bits=right[1], value=right[0])),
                    ("product", Name(name=product)),
                ),
            )
        )
        return product

    def _float_result(self, module: FloatModule, expr: Apply, stage: int, feeding: bool) -> str:
        """A module for each lane, with all registers but perhaps the last."""
        operands = []
        for stem, value in zip(("left", "right"), expr.operands, strict=True):
            subtrahend = stem == "right" and expr.operator is Op.SUBTRACT
            there = self.at(value, stage, feeding=feeding)
            name = self._named(stem, bits_of(value.type))
            negated = Apply(operator=Op.NEGATE, operands=(there,), type=value.type)
            self.body += self.writer.assign(name, negated if subtrahend else there)
            operands.append((stem, name))
        result = self._named(module.result, bits_of(expr.type))
        latency = self.plan.latency_of(expr)
        output = latency == self.stages.registers(expr, feeding)
        for lane in range(expr.type.lanes):
            lanes = None if expr.type.lanes == 1 else lane
            self.instances.append(
                ast.Instance(
                    module=module.name,
                    name=self.identifiers.fresh(f"{module.name}_{lane}"),
                    parameters=(
                        *((name, number(value)) for name, value in module.parameters),
                        ("STAGES", number(latency)),
                        ("OUTPUT", number(int(output))),
                    ),
                    connections=(
                        (port.CLOCK, Name(name=port.CLOCK)),
                        *((stem, _lane(name, lanes)) for stem, name in operands),
                        (module.result, _lane(result, lanes)),
                    ),
                )
            )
        return result

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
        name = self._named("sum", bits_of(expr.type))
        pairs = [
            (text, self._signal(value, stage, feeding))
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

    def _later(self, local: str, stage: int) -> Local:
        """A local as it is in a later stage than that of its wire."""
        name, since, type = self.wires[local]
        if stage <= since:
            return Local(name=local, type=type)
        later = f"{local}@{stage}"
        self.names[later] = self.pipeline.after(name, bits_of(type), stage - since)
        return Local(name=later, type=type)

    def _counter(self, index: str, stage: int) -> Expr:
        if stage == 0:
            return Index(name=index, type=INT32)
        name, counter = self.counters[index]
        later = f"{index}@{stage}"
        self.names[later] = counter.value(self.pipeline.after(name, counter.type, stage))
        return Index(name=later, type=INT32)

    def fired(self, stage: int) -> TargetExpression:
        """Whether a stage has the values of a firing."""
        fires = self.pipeline.after(port.FIRES, ast.BIT, stage, reset=True)
        return Name(name=fires)

    def _declare(self, name: str, type: ast.Bits, count: int | None = None) -> None:
        self.declarations.append(ast.variable(name, type, count))

    def _named(self, stem: str, type: ast.Bits) -> str:
        name = self.identifiers.fresh(stem)
        self._declare(name, type)
        return name

    def _bind(self, target: str, type: Type, value: TargetExpression, stage: int) -> None:
        name = self._named(target, bits_of(type))
        self.body.append(ast.put(name, value))
        self.names[target] = name
        self.wires[target] = name, stage, type

    def _let(self, target: str, value: Expr) -> None:
        feeding = self.stages.feeds(target)
        if self.stages.registers(value, feeding):
            local = self._named_value(value, feeding, target)
            name, since, type = self.wires[local.name]
            # a register in place of a wire, so that the local is in its own stage
            stage = self.stages.locals[target] or 0
            late = self.pipeline.after(name, bits_of(type), stage - since)
            self.names[target] = late
            self.wires[target] = late, stage, type
            return
        found = self.stages.of(value, feeding)
        here = self.at(value, found or 0, feeding=feeding)
        name = self._named(target, bits_of(value.type))
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
        at = self._named(name, ast.Bits(width=bits))
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
        enable = self._named(f"{file}_write", ast.BIT)
        value = self._named(f"{file}_value", bits_of(statement.value.type))
        condition: TargetExpression = ast.TRUE
        if statement.condition is not None:
            condition = self._signal(statement.condition, stage, True)
        self.body.append(ast.put(enable, condition))
        at = self._where(f"{file}_at", statement, stage)
        written = self.at(statement.value, stage, feeding=True)
        self.body += self.writer.assign(value, written)
        self.writes.append(_Write(register=statement.register, enable=enable, at=at, value=value))


def _name(text: str | None) -> Name | None:
    return None if text is None else Name(name=text)


def _lane(name: str, lane: int | None) -> TargetExpression:
    return Name(name=name) if lane is None else ast.element(name, lane)


def _or_zero(condition: str | None, value: TargetExpression) -> TargetExpression:
    if condition is None:
        return value
    return Ternary(condition=Name(name=condition), if_true=value, if_false=ast.ZEROS)

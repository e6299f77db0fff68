"""The choice of a machine as logic: which rule is the next firing, and what it computes.

Everything is wires that depend on the state and on the heads only.  Each alternative and each rule
has a wire that says that it is taken.  The values of a rule are computed whether it is taken or
not; its memory requests are enabled by the wire of the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from t2s.backends.text.expressions import (
    Binary,
    Literal,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Ternary,
    Unary,
    call,
    number,
)
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import bits_of
from t2s.backends.verilog.expressions import ExpressionWriter, flat
from t2s.backends.verilog.interfaces import Interface, LoadPort, SearchPort, StorePort
from t2s.backends.verilog.machine_stages import written_out
from t2s.backends.verilog.machine_values import MachineValues
from t2s.backends.verilog.sorted_memory import PointPorts
from t2s.core.expr import Const, Expr, Local
from t2s.core.types import Kind
from t2s.core.walk import walk
from t2s.graph.body import Let, Load, RegisterRead, RegisterWrite, Statement, Store
from t2s.graph.nodes import (
    Choice,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Mode,
    Put,
    Register,
    Rule,
    Search,
)

NOWHERE = Literal(text="32'hffffffff")  # an address that is outside of every tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEffect:
    """A register write of a rule: the variable of the value, and the place in a register file."""

    register: str
    value: str
    at: TargetExpression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A token of a rule: the variables of its value (``None`` is zero) and its tag.

    The value is there in a ``stage`` after the firing, the tag in that of the firing.
    """

    channel: str
    value: str | None
    tag: TargetExpression | None
    stage: int = 0


@dataclass(kw_only=True)
class RuleLogic:
    """A rule: the wire that says that it is the next firing, and its effects.

    ``added`` are, by sorted memory, the variables with the keys and with the value; ``dropped`` the
    memories that lose their first point.
    """

    taken: str
    rule: Rule
    needs: tuple[str, ...]
    written: list[RuleEffect] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    added: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Names of the state of a machine, and of its heads.

    ``start`` are those of parameters, space indices and registers of one element, before a firing.
    ``bits`` are the types of the registers themselves, which have the bits in which values differ.
    """

    mode: str
    finished: str
    modes: Mapping[str, str]
    files: Mapping[str, str]
    bits: Mapping[str, ast.Bits]
    points: Mapping[str, PointPorts]
    start: Mapping[str, str]
    heads: Mapping[str, Mapping[str, str]]


class RuleWriter:
    """Walks through the modes and fills ``items``, ``values`` and ``rules``.

    ``stray`` are the conditions under which no alternative holds, ``outside`` those under which an
    index of a register file is out of range.
    """

    def __init__(self, interface: Interface, node: Machine, state: State) -> None:
        self.node, self.state = node, state
        self.identifiers = interface.identifiers
        self.bare = {p.channel.name for p in interface.sending if not p.keeps_values}
        self.valid = {port.channel.name: port.valid for port in interface.taking}
        self.registers: dict[str, Register] = {r.name: r for r in node.registers}
        self._loads = iter(interface.loads)
        self._stores = iter(interface.stores)
        self._searches = iter(interface.searches)
        self.items: list[ast.Item] = []
        self.values = MachineValues(interface)
        self._computed: dict[str, Expr] = {}
        self.rules: list[RuleLogic] = []
        self.stray: list[TargetExpression] = []
        self.outside: list[TargetExpression] = []

    def build(self) -> None:
        """Write all modes."""
        for mode in self.node.modes:
            self._mode(mode)

    def _mode(self, mode: Mode) -> None:
        state = self.state
        self.items.append(ast.Heading(text=f"mode {mode.name}"))
        in_mode = Binary(
            operator="==", left=Name(name=state.mode), right=Name(name=state.modes[mode.name])
        )
        running = ast.negation(Name(name=state.finished))
        reached = self._wire(
            f"at_{mode.name}", ast.both(running, in_mode, *self._there(mode.needs))
        )
        names = {**state.start, **self._seen(mode.needs)}
        self._choices(mode.name, mode.choices, reached, mode.needs, names)

    def _choices(
        self,
        label: str,
        choices: tuple[Choice, ...],
        reached: str,
        needs: tuple[str, ...],
        names: Mapping[str, str],
    ) -> None:
        """Alternatives in order: the first that holds is taken, once its heads are valid."""
        before: list[TargetExpression] = [Name(name=reached)]
        for position, choice in enumerate(choices):
            inner = choice.inside
            what = inner.name if isinstance(inner, Rule) else f"{label}_{position}"
            holds: list[TargetExpression] = []
            if choice.when is not None:
                holds = [Name(name=self._condition(f"if_{what}", choice.when, names))]
            chosen = ast.both(*before, *holds, *self._there(choice.needs))
            taken = self._wire(f"rule_{what}" if isinstance(inner, Rule) else what, chosen)
            before.append(ast.negation(holds[0] if holds else ast.TRUE))
            known = {**names, **self._seen(choice.needs)}
            logic = RuleLogic(taken=taken, rule=Rule(name=what), needs=(*needs, *choice.needs))
            for statement in choice.body:
                self._statement(statement, logic, known)
            if isinstance(inner, Rule):
                logic.rule = inner
                self._rule(logic, known)
            else:
                self._choices(what, inner, taken, logic.needs, known)
        if all(choice.when is not None for choice in choices):
            self.stray.append(ast.both(*before))

    def _rule(self, logic: RuleLogic, names: dict[str, str]) -> None:
        for statement in logic.rule.body:
            self._statement(statement, logic, names)
        for sent in logic.rule.puts:
            logic.sent.append(self._sent(sent, logic.rule.name, names))
        self.rules.append(logic)

    def _sent(self, sent: Put, rule: str, names: Mapping[str, str]) -> Sent:
        constant = isinstance(sent.tag, Const)
        nothing = isinstance(sent.tag, Const) and sent.tag.value != 0 and sent.channel in self.bare
        value, tag, stage = None, None, 0
        if sent.value is not None and not nothing:
            stem, written = f"{rule}_{sent.channel}", self._in_signals(sent.value, names)
            if self.values.sent.sent(written):
                value, stage = self.values.value(stem, written)
            else:
                value = self._let(stem, sent.value, names)
        if sent.tag is not None:
            tag = self._scalar(f"{rule}_{sent.channel}_tag", sent.tag, names, inline=constant)
        return Sent(channel=sent.channel, value=value, tag=tag, stage=stage)

    # ----------------------------------------------------------------------------- statements

    def _statement(self, statement: Statement, logic: RuleLogic, names: dict[str, str]) -> None:
        match statement:
            case Let(target=target, value=value):
                written = self._in_signals(value, names)
                names[target] = self._let(target, value, names)
                if self.values.sent.sent(written):
                    self._computed[names[target]] = written
            case Load(target=target):
                names[target] = self._load(statement, next(self._loads), logic.taken, names)
            case Search(target=target):
                names[target] = self._search(statement, next(self._searches), logic.taken, names)
            case Store():
                self._store(statement, next(self._stores), logic.taken, names)
            case RegisterRead():
                self._read(statement, logic, names)
            case RegisterWrite(register=register, value=value):
                at = self._element(register, statement.indices, logic.taken, names)
                name = f"{logic.rule.name}_{register}"
                logic.written.append(
                    RuleEffect(register=register, value=self._let(name, value, names), at=at)
                )
            case MemorySize(target=target, memory=memory):
                names[target] = self.state.points[memory].count
            case MemoryFirst(targets=targets, value=value_name, memory=memory):
                ports = self.state.points[memory]
                names |= dict(zip(targets, ports.first_keys, strict=True))
                names[value_name] = ports.first_value
            case MemoryAdd(memory=memory, keys=keys, value=value):
                name = f"{logic.rule.name}_{memory}"
                columns = [self._let(f"{name}_key", key, names) for key in keys]
                columns.append(self._let(f"{name}_value", value, names))
                logic.added[memory] = tuple(columns)
            case MemoryDrop(memory=memory):
                logic.dropped.append(memory)
            case _:
                raise TypeError(f"{statement.__class__.__name__} is not a statement of a machine")

    def _load(self, statement: Load, port: LoadPort, taken: str, names: Mapping[str, str]) -> str:
        self.items.append(
            ast.ContinuousAssignment(target=Name(name=port.enable), value=Name(name=taken))
        )
        self._address(port.address, statement.indices, port, names)
        name = port.data
        if port.needed != port.type:
            name = self._declared(statement.target, port.type)
            data = ast.Slice(base=Name(name=port.data), high=port.needed.width - 1, low=0)
            whole = ast.widened(data, port.needed, port.type)
            self.items.append(ast.ContinuousAssignment(target=Name(name=name), value=whole))
        if port.stage:
            self.values.sent.locals[name] = port.stage
        return name

    def _store(
        self, statement: Store, port: StorePort, taken: str, names: Mapping[str, str]
    ) -> None:
        self.items.append(
            ast.ContinuousAssignment(target=Name(name=port.enable), value=Name(name=taken))
        )
        self._address(port.address, statement.indices, port, names)
        self._assign(port.data, statement.value, names)

    def _search(
        self, statement: Search, port: SearchPort, taken: str, names: Mapping[str, str]
    ) -> str:
        self.items.append(
            ast.ContinuousAssignment(target=Name(name=port.enable), value=Name(name=taken))
        )
        for target, bound in ((port.begin, statement.begin), (port.end, statement.end)):
            writer = self._writer(names)
            self._set(target, _position(writer, bound), writer)
        self._assign(port.value, statement.value, names)
        name = self._declared(statement.target, bits_of(statement.begin.type))
        writer = self._writer(names)
        begin, end = writer.scalar(statement.begin), writer.scalar(statement.end)
        position = ast.Resize(bits=statement.begin.type.bits, value=Name(name=port.found))
        some = Binary(operator="<", left=begin, right=end)
        self._set(name, Ternary(condition=some, if_true=position, if_false=begin), writer)
        return name

    def _address(
        self,
        target: str,
        indices: tuple[Expr, ...],
        port: LoadPort | StorePort,
        names: Mapping[str, str],
    ) -> None:
        """The flat address of an element; out of range for an element outside of the tensor."""
        writer = self._writer(names)
        places = tuple(_position(writer, index) for index in indices)
        shape = port.tensor.allocated
        place = flat(places, shape)
        if len(places) > 1:
            inside = ast.both(
                *(_below(at, extent) for at, extent in zip(places, shape, strict=True))
            )
            place = Ternary(condition=inside, if_true=place, if_false=NOWHERE)
        if port.address_type != ast.WORD:
            place = ast.Resize(bits=port.address_type.width, value=place)
        self._set(target, place, writer)

    def _element(
        self, register: str, indices: tuple[Expr, ...], taken: str, names: Mapping[str, str]
    ) -> TargetExpression | None:
        """The place in a register file, with a fault if out of range; ``None`` for one element."""
        shape = self.registers[register].shape
        if not shape:
            return None
        writer = self._writer(names)
        places = tuple(_position(writer, index) for index in indices)
        name = self._declared(f"{register}_place", ast.WORD)
        self._set(name, flat(places, shape), writer)
        for at, index, extent in zip(places, indices, shape, strict=True):
            if isinstance(index, Const) and 0 <= index.value < extent:
                continue
            held = self._declared(f"{register}_inside", ast.BIT)
            self._set(held, _below(at, extent), writer)
            self.outside.append(ast.both(Name(name=taken), ast.negation(Name(name=held))))
        return Name(name=name)

    def _read(self, statement: RegisterRead, logic: RuleLogic, names: dict[str, str]) -> None:
        """The content of a register, or what this firing has written to the place."""
        register = statement.register
        at = self._element(register, statement.indices, logic.taken, names)
        file, whole = self.state.files[register], bits_of(statement.type)
        held = Name(name=file) if at is None else ast.element(file, at)
        value: TargetExpression = ast.widened(held, self.state.bits[register], whole)
        for write in logic.written:
            if write.register == register and (at is None or write.at is None):
                value = Name(name=write.value)
            elif write.register == register and at is not None and write.at is not None:
                same = Binary(operator="==", left=write.at, right=at)
                value = Ternary(condition=same, if_true=Name(name=write.value), if_false=value)
        name = self._declared(statement.target, whole)
        self.items.append(ast.ContinuousAssignment(target=Name(name=name), value=value))
        names[statement.target] = name

    # -------------------------------------------------------------------------------- writing

    def _there(self, needs: tuple[str, ...]) -> list[TargetExpression]:
        return [Name(name=self.valid[channel]) for channel in needs]

    def _seen(self, needs: tuple[str, ...]) -> dict[str, str]:
        return {local: name for n in needs for local, name in self.state.heads[n].items()}

    def _writer(self, names: Mapping[str, str]) -> ExpressionWriter:
        return ExpressionWriter(names=names, identifiers=self.identifiers)

    def _declared(self, stem: str, type: ast.Bits) -> str:
        name = self.identifiers.fresh(stem)
        self.items.append(ast.variable(name, type))
        return name

    def _wire(self, stem: str, value: TargetExpression) -> str:
        name = self._declared(stem, ast.BIT)
        self.items.append(ast.ContinuousAssignment(target=Name(name=name), value=value))
        return name

    def _condition(self, stem: str, value: Expr, names: Mapping[str, str]) -> str:
        name = self._declared(stem, ast.BIT)
        self._assign(name, value, names)
        return name

    def _in_signals(self, value: Expr, names: Mapping[str, str]) -> Expr:
        """A value over signals of the machine, with products that come later written out."""
        signals = {
            term.name: Local(name=names[term.name], type=term.type)
            for term in walk(value)
            if isinstance(term, Local)
        }
        return written_out(written_out(value, signals), self._computed)

    def _let(self, stem: str, value: Expr, names: Mapping[str, str]) -> str:
        """The variable of a value: an existing one, or a new one."""
        if isinstance(value, Local):
            return names[value.name]
        name = self._declared(stem, bits_of(value.type))
        self._assign(name, value, names)
        return name

    def _scalar(
        self, stem: str, value: Expr, names: Mapping[str, str], *, inline: bool
    ) -> TargetExpression:
        if inline:
            return self._writer(names).scalar(value)
        return Name(name=self._let(stem, value, names))

    def _assign(self, target: str, value: Expr, names: Mapping[str, str]) -> None:
        writer = self._writer(names)
        self._block(writer.assign(target, value), writer)

    def _set(self, target: str, value: TargetExpression, writer: ExpressionWriter) -> None:
        self._block([*writer.take_before(), ast.put(target, value)], writer)

    def _block(self, body: list[TargetStatement], writer: ExpressionWriter) -> None:
        self.items += writer.declarations
        writer.declarations.clear()
        match body:
            case [Set(target=target, value=value)]:
                self.items.append(ast.ContinuousAssignment(target=target, value=value))
            case _:
                self.items.append(ast.AlwaysComb(body=tuple(body)))


def _position(writer: ExpressionWriter, index: Expr) -> TargetExpression:
    """An index in 32 bits; one that does not fit becomes out of range."""
    if index.type.bits < 32 or (index.type.kind is Kind.INT and index.type.bits == 32):
        return writer.index(index)
    wide = ast.Resize(bits=64, value=call("$unsigned", writer.scalar(index)))
    fits = Binary(operator="<", left=wide, right=Literal(text="64'h80000000"))
    outside = Unary(operator="-", operand=number(1))
    return Ternary(condition=fits, if_true=writer.index(index), if_false=outside)


def _below(value: TargetExpression, extent: int) -> TargetExpression:
    """Whether an index is from 0 to ``extent - 1``."""
    positive = call("$unsigned", ast.Resize(bits=32, value=value))
    return Binary(operator="<", left=positive, right=Literal(text=f"32'd{extent}"))


def any_of(rules: Sequence[RuleLogic]) -> TargetExpression:
    """Whether one of these rules is the next firing."""
    return ast.either(*(Name(name=rule.taken) for rule in rules))

"""One kernel per machine: a loop over firings, a ``switch`` over modes, an ``if`` for each choice.

A head is read when a mode or a choice needs it, and kept until a rule takes it.  If every rule that
follows takes it, it is an ordinary variable; otherwise a flag says whether it is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from t2s.backends.kernels import kernel_ast as ast
from t2s.backends.kernels.channel_io import is_control
from t2s.backends.kernels.comments import machine_comment
from t2s.backends.kernels.dialect import Dialect
from t2s.backends.kernels.digit_counters import DigitCounters
from t2s.backends.kernels.expressions import Expressions
from t2s.backends.kernels.operators import Helpers
from t2s.backends.kernels.scope import FileScope, KernelDesign
from t2s.backends.text.expressions import (
    Do,
    If,
    Literal,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Unary,
    binary,
    number,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.core.expr import Expr, Local, Parameter
from t2s.core.types import Type
from t2s.core.walk import walk
from t2s.graph import body as graph
from t2s.graph.body import Register
from t2s.graph.graph import ScalarParameter, TensorRole
from t2s.graph.nodes import Choice, Machine, Mode, Rule
from t2s.graph.ports import accesses_of_machine

MODE = "mode"


def machine_arguments(
    design: KernelDesign, node: Machine
) -> tuple[list[str], list[ScalarParameter]]:
    """The tensors and scalars that are arguments of a machine's kernel, in this order."""
    tensors: dict[str, None] = {}
    for statement in node.statements():
        if isinstance(statement, graph.Load | graph.Store):
            tensors[statement.tensor] = None
    used = {term.name for mode in node.modes for term in walk(mode) if isinstance(term, Parameter)}
    return list(tensors), [p for p in design.graph.parameters if p.name in used]


def lower_machine(
    design: KernelDesign, file: FileScope, node: Machine, helpers: Helpers
) -> ast.KernelDefinition:
    """The kernel of a machine."""
    dialect = design.dialect
    identifiers = _Taken(dialect, file.visible)
    mode = identifiers.fresh(MODE)
    tensors, scalars = machine_arguments(design, node)
    tensor_names = {name: identifiers.fresh(name) for name in tensors}
    names = {scalar.name: identifiers.fresh(scalar.name) for scalar in scalars}
    registers = {register.name: identifiers.fresh(register.name) for register in node.registers}
    held = _held(node)
    holders = {
        head.channel: _Holder(
            value=identifiers.fresh(head.value), flag=identifiers.fresh(f"has_{head.value}")
        )
        for head in node.heads
        if head.channel in held
    }
    lowering = _Lowering(
        design=design,
        file=file,
        node=node,
        helpers=helpers,
        names=names,
        mode=mode,
        tensors=tensor_names,
        registers=registers,
        holders=holders,
    )
    scope = lowering.outermost(identifiers)
    cases = tuple(
        ast.SwitchCase(value=at, comment=each.name, body=tuple(lowering.mode_of(each, scope)))
        for at, each in enumerate(node.modes)
    )
    running = binary(">=", Name(name=mode), number(0))
    loop = ast.While(
        condition=running,
        body=(ast.Switch(value=Name(name=mode), cases=cases),),
        pipeline=ast.Pipeline(
            interval=max(accesses_of_machine(node).values(), default=1), memory=bool(tensors)
        ),
    )
    first = ast.Declare(type="int", name=mode, initial=number(0))
    return ast.KernelDefinition(
        name=file.kernels[node.name],
        parameters=(
            *(lowering.tensor_parameter(name) for name in tensors),
            *(
                ast.TypedName(type=f"const {dialect.scalar_name(s.type)}", name=names[s.name])
                for s in scalars
            ),
        ),
        body=(*lowering.state(), first, loop),
        comment=machine_comment(node),
        once=True,
    )


def _held(node: Machine) -> frozenset[str]:
    """Channels whose head some rule needs but does not take."""
    return frozenset(
        name for path in node.paths() for name in path.needs if name not in path.rule.takes
    )


def _register(dialect: Dialect, register: Register, name: str) -> ast.Declare:
    shape = tuple(register.shape)
    spelling = dialect.storage_name if shape else dialect.value_name
    return ast.Declare(
        type=spelling(register.type),
        name=name,
        dimensions=shape,
        initial=dialect.start_of(register, shape),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holder:
    """The variables of a head that may stay: its value, and whether it is held."""

    value: str
    flag: str


class _Taken(Identifiers):
    """The identifiers that are visible at a place; an inner scope adds its own to a copy."""

    def __init__(self, dialect: Dialect, taken: tuple[str, ...]) -> None:
        super().__init__(dialect.variable_name, taken)
        self._dialect = dialect
        self._seen = list(taken)

    def fresh(self, stem: str) -> str:
        name = super().fresh(stem)
        self._seen.append(name)
        return name

    def inner(self) -> _Taken:
        return _Taken(self._dialect, tuple(self._seen))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """The meaning of locals at a place."""

    dialect: Dialect
    locals: dict[str, TargetExpression]
    taken: _Taken

    def inner(self) -> _Scope:
        return replace(self, locals=dict(self.locals), taken=self.taken.inner())

    def bind(self, target: str, type: Type, value: TargetExpression) -> ast.Declare:
        name = self.taken.fresh(target)
        self.locals[target] = Name(name=name)
        return ast.Declare(type=self.dialect.value_name(type), name=name, initial=value)


@dataclass(frozen=True, kw_only=True)
class _Lowering:
    """The parts of one machine's kernel."""

    design: KernelDesign
    file: FileScope
    node: Machine
    helpers: Helpers
    names: Mapping[str, str]
    mode: str
    tensors: Mapping[str, str]
    registers: Mapping[str, str]
    holders: Mapping[str, _Holder]

    @property
    def dialect(self) -> Dialect:
        return self.design.dialect

    def tensor_parameter(self, tensor: str) -> ast.TypedName:
        info = self.design.graph.tensor(tensor)
        read_only = info.role is TensorRole.INPUT
        return self.dialect.tensor_parameter(
            self.tensors[tensor], info.type, stored=not read_only, shared=not read_only
        )

    def outermost(self, identifiers: _Taken) -> _Scope:
        """The scope of registers and held heads, for all modes."""
        meanings: dict[str, TargetExpression] = {}
        for register in self.node.registers:
            if not register.shape:
                meanings[register.name] = Name(name=self.registers[register.name])
        for head in self.node.heads:
            if head.channel in self.holders:
                meanings[head.value] = Name(name=self.holders[head.channel].value)
        return _Scope(dialect=self.dialect, locals=meanings, taken=identifiers)

    def state(self) -> list[TargetStatement]:
        """Declarations of registers, and of heads that may stay."""
        statements: list[TargetStatement] = [
            _register(self.dialect, register, self.registers[register.name])
            for register in self.node.registers
        ]
        for name, holder in self.holders.items():
            type = self.design.graph.channel(name).stream.element
            statements.append(ast.Declare(type=self.dialect.value_name(type), name=holder.value))
            initial = Literal(text="false")
            statements.append(ast.Declare(type="bool", name=holder.flag, initial=initial))
        return statements

    def mode_of(self, mode: Mode, outer: _Scope) -> list[TargetStatement]:
        scope = outer.inner()
        return [*self._take_in(mode, scope), *self._choices(mode.choices, scope)]

    def _lower(self, expr: Expr, scope: _Scope) -> TargetExpression:
        return self._expressions(scope).lower(expr)

    def _expressions(self, scope: _Scope) -> Expressions:
        expressions = Expressions(self.helpers, {}, self.names, DigitCounters((), scope.taken))
        expressions.locals = scope.locals
        return expressions

    # ------------------------------------------------------------------------------- heads

    def _take_in(self, place: Mode | Choice, scope: _Scope) -> list[TargetStatement]:
        """Read the heads that are not held yet."""
        statements: list[TargetStatement] = []
        used = {term.name for term in walk(place) if isinstance(term, Local)}
        for name in place.needs:
            channel = self.design.graph.channel(name)
            head = next(head for head in self.node.heads if head.channel == name)
            taken = self.dialect.read_channel(Name(name=self.file.channels[name]))
            fence = self.dialect.control_fence() if is_control(channel) else []
            if name not in self.holders:
                if self.dialect.drops_unused and head.value not in used:
                    statements += [Do(call=taken), *fence]
                    continue
                statements += [scope.bind(head.value, channel.stream.element, taken), *fence]
                continue
            holder = self.holders[name]
            filled = (
                Set(target=Name(name=holder.value), value=taken),
                *fence,
                Set(target=Name(name=holder.flag), value=Literal(text="true")),
            )
            empty = Unary(operator="!", operand=Name(name=holder.flag))
            statements.append(If(condition=empty, then=filled))
        return statements

    # ----------------------------------------------------------------------------- choices

    def _choices(self, choices: tuple[Choice, ...], scope: _Scope) -> list[TargetStatement]:
        """The first alternative that holds; it is an error if none does."""
        if not choices:
            return [
                ast.Remark(text="tokens that the protocol does not allow"),
                *self.dialect.protocol_error(self.node.name, Name(name=self.mode)),
            ]
        first, *others = choices
        if first.when is None:
            return self._inside(first, scope)
        return [
            If(
                condition=self._lower(first.when, scope),
                then=tuple(self._inside(first, scope.inner())),
                otherwise=tuple(self._choices(tuple(others), scope.inner())),
            )
        ]

    def _inside(self, choice: Choice, scope: _Scope) -> list[TargetStatement]:
        statements = self._take_in(choice, scope)
        for statement in choice.body:
            statements += self._statement(statement, scope)
        match choice.inside:
            case Rule() as rule:
                return [*statements, *self._rule(rule, scope)]
            case inner:
                return [*statements, *self._choices(inner, scope)]

    def _rule(self, rule: Rule, scope: _Scope) -> list[TargetStatement]:
        statements: list[TargetStatement] = [ast.Remark(text=rule.name)]
        statements += self._kept_from_before(rule, scope)
        for statement in rule.body:
            statements += self._statement(statement, scope)
        for name in rule.takes:
            if name in self.holders:
                flag = Name(name=self.holders[name].flag)
                statements.append(Set(target=flag, value=Literal(text="false")))
        for put in rule.puts:
            channel = self.design.graph.channel(put.channel)
            type = channel.stream.element
            value = self.dialect.zero(type) if put.value is None else self._lower(put.value, scope)
            if is_control(channel):
                statements += self.dialect.control_fence()
            target = Name(name=self.file.channels[put.channel])
            statements.append(self.dialect.write_channel(target, value))
        after = [mode.name for mode in self.node.modes]
        following = -1 if rule.next is None else after.index(rule.next)
        return [*statements, Set(target=Name(name=self.mode), value=number(following))]

    def _kept_from_before(self, rule: Rule, scope: _Scope) -> list[TargetStatement]:
        """Copies of registers that the rule changes but whose old values it uses."""
        written = {s.register for s in rule.body if isinstance(s, graph.RegisterWrite)}
        used: set[str] = set()
        changed: set[str] = set()
        for part in (*rule.body, *rule.puts):
            names = {term.name for term in walk(part) if isinstance(term, Local)}
            used |= names & changed
            if isinstance(part, graph.RegisterWrite):
                changed.add(part.register)
        return [
            self._copied(register, scope)
            for register in self.node.registers
            if register.name in written & used and not register.shape
        ]

    def _copied(self, register: Register, scope: _Scope) -> ast.Declare:
        name = scope.taken.fresh(f"{self.registers[register.name]}_before")
        scope.locals[register.name] = Name(name=name)
        initial = Name(name=self.registers[register.name])
        return ast.Declare(type=self.dialect.value_name(register.type), name=name, initial=initial)

    # -------------------------------------------------------------------------- statements

    def _statement(self, statement: graph.Statement, scope: _Scope) -> list[TargetStatement]:
        match statement:
            case graph.Let(target=target, value=value):
                return [scope.bind(target, value.type, self._lower(value, scope))]
            case graph.RegisterRead(target=target, register=name, indices=indices, type=type):
                return [scope.bind(target, type, self._place(name, indices, scope))]
            case graph.RegisterWrite(register=name, indices=indices, value=value):
                place = self._place(name, indices, scope)
                return [Set(target=place, value=self._lower(value, scope))]
            case graph.Load(target=target, tensor=tensor, indices=indices, type=type):
                return [scope.bind(target, type, self._address(tensor, indices, scope))]
            case graph.Store(tensor=tensor, indices=indices, value=value):
                place = self._address(tensor, indices, scope)
                return [Set(target=place, value=self._lower(value, scope))]
        raise TypeError(f"{statement.__class__.__name__} has no form in a kernel")

    def _place(self, register: str, indices: tuple[Expr, ...], scope: _Scope) -> TargetExpression:
        return ast.element(
            self.registers[register], *(self._lower(index, scope) for index in indices)
        )

    def _address(self, tensor: str, indices: tuple[Expr, ...], scope: _Scope) -> TargetExpression:
        shape = self.design.graph.tensor(tensor).allocated
        return ast.element(self.tensors[tensor], self._expressions(scope).address(indices, shape))

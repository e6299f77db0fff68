"""One kernel per machine: a loop over firings, a ``switch`` over modes, an ``if`` for each choice.

A head is read when a mode or a choice needs it, and kept until a rule takes it.  If every rule that
follows takes it, it is an ordinary variable; otherwise a flag says whether it is held.  A token of
a stream with stop tokens is a struct of a value and a tag.

In a ``sparse`` dialect, the last statements of a machine report how it went: 0, ``PROTOCOL_ERROR``
or ``NO_ROOM``, and then the lengths of the open tensors that it has stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from t2s.backends.kernels import kernel_ast as ast
from t2s.backends.kernels.channel_io import is_control
from t2s.backends.kernels.comments import machine_comment
from t2s.backends.kernels.dialect import TAG, VALUE, Dialect, StateArray
from t2s.backends.kernels.digit_counters import DigitCounters
from t2s.backends.kernels.expressions import Expressions
from t2s.backends.kernels.machine_memory import (
    MachineMemory,
    MachineTensor,
    PointNames,
    deciding_tensors,
    interval_of,
    machine_tensor,
)
from t2s.backends.kernels.operators import Helpers
from t2s.backends.kernels.registers import LARGEST_REGISTERS
from t2s.backends.kernels.scope import FileScope, KernelDesign
from t2s.backends.text.expressions import (
    Do,
    If,
    Literal,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Ternary,
    Unary,
    binary,
    number,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.core.expr import Const, Expr, Local, Parameter, const
from t2s.core.intervals import interval
from t2s.core.types import INT32, Type
from t2s.core.walk import walk
from t2s.graph import body as graph
from t2s.graph.body import Register
from t2s.graph.graph import ScalarParameter, TensorRole
from t2s.graph.nodes import (
    Choice,
    Head,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Mode,
    Put,
    Rule,
    Search,
)

MODE, STATUS = "mode", "status"

PROTOCOL_ERROR, NO_ROOM = 1, 2
"""What a machine reports after tokens that it cannot take, and where the chip has no room."""


def machine_arguments(
    design: KernelDesign, node: Machine
) -> tuple[list[str], list[ScalarParameter]]:
    """The tensors and scalars that are arguments of a machine's kernel, in this order."""
    tensors: dict[str, None] = {}
    for statement in node.statements():
        if isinstance(statement, graph.Load | graph.Store | Search):
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
    used = {
        name: machine_tensor(design.graph.tensor(name), node, file, identifiers) for name in tensors
    }
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
    status = identifiers.fresh(STATUS)
    memory = MachineMemory(
        node=node,
        file=file,
        helpers=helpers,
        tensors=used,
        points={
            m.name: PointNames(
                type=file.points[node.name, m.name],
                array=identifiers.fresh(m.name),
                first=identifiers.fresh(f"{m.name}_first"),
                count=identifiers.fresh(f"{m.name}_count"),
            )
            for m in node.memories
        },
        index=identifiers.fresh("i"),
        fail=lambda what: [
            *dialect.stop_simulation(what),
            Set(target=Name(name=status), value=number(NO_ROOM)),
        ],
    )
    lowering = _Lowering(
        design=design,
        file=file,
        node=node,
        helpers=helpers,
        names=names,
        mode=mode,
        status=status,
        memory=memory,
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
        pipeline=None
        if lowering.searches
        else ast.Pipeline(
            interval=interval_of(node, used),
            memory=any(not use.copied for use in used.values()),
        ),
    )
    first = ast.Declare(type="int", name=mode, initial=number(0))
    report = [file.reports[node.name]] if dialect.sparse else []
    counts = [use.count for use in used.values() if use.count is not None]
    return ast.KernelDefinition(
        name=file.kernels[node.name],
        parameters=(
            *(lowering.tensor_parameter(use) for use in used.values()),
            *(
                ast.TypedName(type="const int", name=use.length)
                for use in used.values()
                if use.length is not None
            ),
            *(
                ast.TypedName(type=f"const {dialect.scalar_name(s.type)}", name=names[s.name])
                for s in scalars
            ),
        ),
        body=(
            *memory.at_start(),
            *lowering.state(),
            *(ast.Declare(type="int", name=status, initial=number(0)) for _ in report),
            first,
            loop,
            *memory.at_end(),
            *(
                dialect.write_channel(Name(name=channel), Name(name=variable))
                for channel in report
                for variable in (status, *counts)
            ),
        ),
        comment=(*machine_comment(node), *lowering.speed()),
        once=True,
    )


def _held(node: Machine) -> frozenset[str]:
    """Channels whose head some rule needs but does not take."""
    return frozenset(
        name for path in node.paths() for name in path.needs if name not in path.rule.takes
    )


def _register(dialect: Dialect, node: Machine, register: Register, name: str) -> ast.Declare:
    shape = tuple(register.shape)
    spelling = dialect.storage_name if shape else dialect.value_name
    attributes: tuple[str, ...] = ()
    if shape and dialect.sparse:
        split = _apart(node, register)
        array = StateArray(name=name, type=register.type, dimensions=shape, split=split)
        attributes = dialect.array_attributes(array)
    return ast.Declare(
        attributes=attributes,
        type=spelling(register.type),
        name=name,
        dimensions=shape,
        initial=dialect.start_of(register, shape),
    )


def _apart(node: Machine, register: Register) -> tuple[int, ...]:
    """The dimensions of a register file whose elements are accessed at once, or that are small."""
    dimensions = range(len(register.shape))
    if prod(register.shape) * register.type.bytes <= LARGEST_REGISTERS:
        return tuple(dimensions)
    used = [
        statement.indices
        for statement in node.statements()
        if isinstance(statement, graph.RegisterRead | graph.RegisterWrite)
        and statement.register == register.name
    ]
    constants = [{i[at] for i in used if isinstance(i[at], Const)} for at in dimensions]
    return tuple(at for at in dimensions if len(constants[at]) > 1)


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
    status: str
    memory: MachineMemory
    registers: Mapping[str, str]
    holders: Mapping[str, _Holder]

    @property
    def dialect(self) -> Dialect:
        return self.design.dialect

    def tensor_parameter(self, use: MachineTensor) -> ast.TypedName:
        read_only = use.tensor.role is TensorRole.INPUT
        return self.dialect.tensor_parameter(
            use.pointer, use.tensor.type, stored=not read_only, shared=not read_only
        )

    @property
    def searches(self) -> bool:
        """Whether a firing has loops of its own."""
        found = any(isinstance(statement, Search) for statement in self.node.statements())
        return found or bool(self.node.memories)

    def speed(self) -> list[str]:
        """What a user has to know of the cycles that a firing takes."""
        if not self.dialect.sparse:
            return []
        lines: list[str] = []
        copied = [use.tensor.name for use in self.memory.tensors.values() if use.copied]
        if copied:
            lines.append(f"  on the chip: {', '.join(copied)}")
        if self.searches:
            lines.append("  it searches: a firing takes a cycle and more for each step of a search")
        deciding = deciding_tensors(self.node)
        slow = [name for name in deciding if name not in copied]
        if slow:
            lines.append(
                f"  it decides on what it loads of {', '.join(slow)}: a firing takes the latency "
                "of memory"
            )
        elif deciding and not self.searches:
            lines.append("  it decides on what it loads: a firing takes 2 or 3 cycles")
        return lines

    def outermost(self, identifiers: _Taken) -> _Scope:
        """The scope of registers and held heads, for all modes."""
        meanings: dict[str, TargetExpression] = {}
        for register in self.node.registers:
            if not register.shape:
                meanings[register.name] = Name(name=self.registers[register.name])
        for head in self.node.heads:
            if head.channel in self.holders:
                meanings |= self._head(head, self.holders[head.channel].value)
        return _Scope(dialect=self.dialect, locals=meanings, taken=identifiers)

    @cached_property
    def unused(self) -> frozenset[str]:
        """Registers that nothing reads, where the dialect has no variables for these."""
        if not self.dialect.drops_unused:
            return frozenset()
        terms = [term for mode in self.node.modes for term in walk(mode)]
        used = {term.name for term in terms if isinstance(term, Local)}
        used |= {term.register for term in terms if isinstance(term, graph.RegisterRead)}
        return frozenset(register.name for register in self.node.registers) - used

    def state(self) -> list[TargetStatement]:
        """Declarations of registers, and of heads that may stay."""
        statements: list[TargetStatement] = [
            _register(self.dialect, self.node, register, self.registers[register.name])
            for register in self.node.registers
            if register.name not in self.unused
        ]
        for name, holder in self.holders.items():
            statements.append(ast.Declare(type=self._token_type(name), name=holder.value))
            initial = Literal(text="false")
            statements.append(ast.Declare(type="bool", name=holder.flag, initial=initial))
        return statements

    def _token_type(self, channel: str) -> str:
        stream = self.design.graph.channel(channel).stream
        dialect = self.dialect
        name = dialect.token_name if stream.nesting else dialect.value_name
        return name(stream.element)

    def _head(self, head: Head, variable: str) -> dict[str, TargetExpression]:
        """What the locals of a head mean, whose token is in a variable."""
        token = Name(name=variable)
        if head.tag is None:
            return {head.value: token}
        return {
            head.value: ast.FieldOf(base=token, field=VALUE),
            head.tag: ast.FieldOf(base=token, field=TAG),
        }

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
                if self.dialect.drops_unused and not used & {head.value, head.tag}:
                    statements += [Do(call=taken), *fence]
                    continue
                variable = scope.taken.fresh(head.value)
                type = self._token_type(name)
                statements += [ast.Declare(type=type, name=variable, initial=taken), *fence]
                scope.locals.update(self._head(head, variable))
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
                *(
                    Set(target=Name(name=self.status), value=number(PROTOCOL_ERROR))
                    for _ in range(self.dialect.sparse)
                ),
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
            if is_control(self.design.graph.channel(put.channel)):
                statements += self.dialect.control_fence()
            target = Name(name=self.file.channels[put.channel])
            statements.append(self.dialect.write_channel(target, self._token(put, scope)))
        after = [mode.name for mode in self.node.modes]
        following = -1 if rule.next is None else after.index(rule.next)
        return [*statements, Set(target=Name(name=self.mode), value=number(following))]

    def _token(self, put: Put, scope: _Scope) -> TargetExpression:
        """A value, or a struct of it and of its tag; under another tag than 0 the value is 0."""
        stream = self.design.graph.channel(put.channel).stream
        zero = Const(value=0, type=stream.element)
        if not stream.nesting:
            return self._lower(zero if put.value is None else put.value, scope)
        tag, value = put.tag or const(0), put.value or zero
        for head in self.node.heads:
            match value, tag:
                case Local(name=head.value), Local(name=head.tag) if (
                    stream.values_under_tags
                    or not self.design.graph.channel(head.channel).stream.values_under_tags
                ):
                    token = scope.locals[head.value]
                    assert isinstance(token, ast.FieldOf)
                    return token.base
        bare = isinstance(tag, Const) and tag.value != 0 and not stream.values_under_tags
        data = self._lower(zero if bare else value, scope)
        of_token = self._lower(tag, scope)
        if not (isinstance(tag, Const) or value == zero or stream.values_under_tags):
            is_value = binary("==", of_token, number(0))
            data = Ternary(condition=is_value, if_true=data, if_false=self._lower(zero, scope))
        return self._struct(stream.element, data, of_token)

    def _struct(
        self, type: Type, value: TargetExpression, tag: TargetExpression
    ) -> TargetExpression:
        dialect, token = self.dialect, Name(name="token")
        name = dialect.token_name(type)
        tag_type = dialect.token_of(type).fields[1].type
        return self.helpers.define(
            name.removesuffix("_t"),
            name,
            ((dialect.storage_name(type), VALUE), ("int", TAG)),
            (value, tag),
            lambda: (
                ast.Declare(type=name, name="token"),
                Set(target=ast.FieldOf(base=token, field=VALUE), value=Name(name=VALUE)),
                Set(
                    target=ast.FieldOf(base=token, field=TAG),
                    value=ast.CastTo(type=tag_type, values=(Name(name=TAG),)),
                ),
                ast.Return(value=token),
            ),
        )

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
            case graph.RegisterWrite(register=name) if name in self.unused:
                return []
            case graph.RegisterWrite(register=name, indices=indices, value=value):
                place = self._place(name, indices, scope)
                return [Set(target=place, value=self._lower(value, scope))]
            case graph.Load(target=target, tensor=tensor, indices=indices, type=type):
                if not self.dialect.sparse:
                    return [scope.bind(target, type, self._address(tensor, indices, scope))]
                loaded = self.memory.load(statement, lambda e: self._lower(e, scope), scope.taken)
                if loaded.value is None:
                    assert loaded.variable is not None
                    scope.locals[target] = Name(name=loaded.variable)
                    return loaded.before
                return [*loaded.before, scope.bind(target, type, loaded.value)]
            case graph.Store(tensor=tensor, indices=indices, value=value):
                if self.dialect.sparse:
                    return self.memory.store(
                        statement, lambda e: self._lower(e, scope), scope.taken
                    )
                place = self._address(tensor, indices, scope)
                return [Set(target=place, value=self._lower(value, scope))]
            case Search(target=target, begin=begin):
                found = self.memory.search(statement, lambda e: self._lower(e, scope))
                return [scope.bind(target, begin.type, found)]
            case MemoryAdd(memory=memory, keys=keys, value=value):
                lowered = tuple(self._lower(key, scope) for key in keys)
                return self.memory.add(memory, lowered, self._lower(value, scope), scope.taken)
            case MemorySize(target=target, memory=memory):
                return [scope.bind(target, INT32, Name(name=self.memory.points[memory].count))]
            case MemoryFirst(targets=targets, value=value_name, memory=memory):
                declared = next(m for m in self.node.memories if m.name == memory)
                types = (*declared.keys, declared.type)
                parts = zip((*targets, value_name), types, self.memory.first(memory), strict=True)
                return [scope.bind(name, type, part) for name, type, part in parts]
            case MemoryDrop(memory=memory):
                return self.memory.drop(memory)
        raise TypeError(f"{statement.__class__.__name__} has no form in a kernel")

    def _place(self, register: str, indices: tuple[Expr, ...], scope: _Scope) -> TargetExpression:
        """An element of a register file."""
        shape = next(r.shape for r in self.node.registers if r.name == register)
        places: list[TargetExpression] = []
        for index, extent in zip(indices, shape, strict=True):
            known = interval(index, {})
            at = self._lower(index, scope)
            if known is None or known[0] < 0 or known[1] >= extent:
                at = self.dialect.inside(at, number(extent))
            places.append(at)
        return ast.element(self.registers[register], *places)

    def _address(self, tensor: str, indices: tuple[Expr, ...], scope: _Scope) -> TargetExpression:
        shape = self.design.graph.tensor(tensor).allocated
        pointer = self.memory.tensors[tensor].pointer
        return ast.element(pointer, self._expressions(scope).address(indices, shape))

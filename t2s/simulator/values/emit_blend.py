"""Alternatives of a machine that are computed together, so that the choice needs no branch.

Which of its tokens a join takes, and whether a reference is there, no CPU foresees; a branch would
cost more than all else that a firing does.  So alternatives that are cheap and lead to the same
mode are all computed, and what they put, take and write is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from t2s.core.expr import Apply, Cast, Const, Expr, Index, Local, Parameter, Select
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.core.walk import walk
from t2s.graph.body import Let, Load, RegisterWrite, by_lanes
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.machine import Choice, Put, Rule
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import I1, I32, I64, Slot, Value, integer
from t2s.simulator.emit.representation import load_value, offset_by, zero
from t2s.simulator.values.emit_frame import NodeContext
from t2s.simulator.values.emit_ports import StreamPort

_CHEAP = frozenset(
    {
        *(Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.MINIMUM, Op.MAXIMUM, Op.NEGATE, Op.ABSOLUTE),
        *(Op.EQUAL, Op.NOT_EQUAL, Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL),
        *(Op.AND, Op.OR, Op.XOR, Op.NOT),
    }
)
_MOST_RULES = 8
_MOST_LOADS = 1

Token = tuple[Value | None, Value | None]


def blended_rules(graph: Graph, choices: Sequence[Choice], registers: Mapping[str, object]) -> int:
    """How many rules of some alternatives are computed together; the others are branches."""
    rules = [rule for choice in choices for rule in _rules(graph, choice, registers) or ()]
    alike = {rule.next for rule in rules}
    loads = sum(isinstance(s, Load) for rule in rules for s in rule.body)
    fitting = 2 <= len(rules) <= _MOST_RULES and len(alike) == 1 and loads <= _MOST_LOADS
    return len(rules) if fitting else 0


def _rules(
    graph: Graph, choice: Choice, registers: Mapping[str, object]
) -> tuple[Rule, ...] | None:
    """The rules of an alternative; ``None`` if it has to be a branch."""
    statements = (*choice.body, *(choice.inside.body if isinstance(choice.inside, Rule) else ()))
    if choice.needs or not all(_is_cheap(graph, s, registers) for s in statements):
        return None
    if choice.when is not None and not _costs_little(choice.when):
        return None
    if isinstance(choice.inside, Rule):
        rule = choice.inside
        tokens = [e for put in rule.puts for e in (put.value, put.tag) if e is not None]
        return (rule,) if rule.next is not None and all(map(_costs_little, tokens)) else None
    found: list[Rule] = []
    for inner in choice.inside:
        rules = _rules(graph, inner, registers)
        if rules is None:
            return None
        found += rules
    return tuple(found)


def _is_cheap(graph: Graph, statement: object, registers: Mapping[str, object]) -> bool:
    match statement:
        case Let(value=value):
            return _costs_little(value)
        case Load(indices=indices) if by_lanes(indices):
            return False
        case Load(tensor=tensor, condition=None, indices=indices):
            found = graph.tensor(tensor)
            given = not found.open or found.role is TensorRole.INPUT
            return given and all(map(_costs_little, indices))
        case RegisterWrite(register=register, condition=None, value=value):
            return register in registers and _costs_little(value)
        case _:
            return False


def _costs_little(expr: Expr) -> bool:
    for term in walk(expr):
        match term:
            case Apply(operator=operator) if operator not in _CHEAP:
                return False
            case Apply() | Const() | Index() | Parameter() | Local() | Select() | Cast():
                pass
            case Expr():
                return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaf:
    """A rule: where it is taken, its tokens by channel and the registers that it writes."""

    taken: Value
    rule: Rule
    tokens: dict[str, tuple[Value, Value]]
    writes: dict[str, Value]


@dataclass(slots=True, kw_only=True)
class BlendEmitter:
    """Emits alternatives together; ``token`` gives the value and the tag of what a rule puts."""

    context: NodeContext
    inputs: Mapping[str, StreamPort]
    outputs: Mapping[str, StreamPort]
    registers: Mapping[str, tuple[Slot, Type]]
    codes: Mapping[str, int]
    token: Callable[[Put], Token]
    tensors: Mapping[str, Value]
    _leaves: list[_Leaf] = field(default_factory=list)

    def choose(self, choices: Sequence[Choice]) -> tuple[Value, list[Choice]]:
        """Compute the alternatives that can be; whether one is taken, and what is left."""
        self._leaves = []
        builder, open = self.context.builder, integer(1, I1)
        left: list[Choice] = []
        for choice in choices:
            holds = integer(1, I1)
            if choice.when is not None:
                holds = self.context.expressions.emit(choice.when)
            if _rules(self.context.graph, choice, self.registers) is None:
                left.append(choice)
            else:
                self._enter(choice, _both(builder, open, holds))
            open = _both(builder, open, builder.not_(holds))
        taken = self._leaves[0].taken
        for leaf in self._leaves[1:]:
            taken = builder.or_(taken, leaf.taken)
        return taken, left

    def _enter(self, choice: Choice, taken: Value) -> None:
        """Collect the rules of an alternative that is taken where ``taken`` holds."""
        context, builder = self.context, self.context.builder
        kept = dict(context.names)
        for statement in choice.body:
            self._emit_statement(statement, taken, {})
        if isinstance(choice.inside, Rule):
            rule, writes = choice.inside, dict[str, Value]()
            for statement in rule.body:
                self._emit_statement(statement, taken, writes)
            tokens = {put.channel: self._whole(put) for put in rule.puts}
            self._leaves.append(_Leaf(taken=taken, rule=rule, tokens=tokens, writes=writes))
        else:
            open = taken
            for inner in choice.inside:
                if inner.when is None:
                    self._enter(inner, open)
                    break
                holds = context.expressions.emit(inner.when)
                self._enter(inner, _both(builder, open, holds))
                open = _both(builder, open, builder.not_(holds))
        context.names.clear()
        context.names.update(kept)

    def _emit_statement(self, statement: object, taken: Value, writes: dict[str, Value]) -> None:
        names = self.context.names
        match statement:
            case Let(target=target, value=value):
                names[target] = self.context.expressions.emit(value)
            case Load(target=target):
                names[target] = self._load(statement, taken)
            case RegisterWrite(register=register, value=value):
                writes[register] = self.context.expressions.emit(value)

    def _load(self, load: Load, taken: Value) -> Value:
        """A value from memory; some other value where it is not wanted."""
        context, builder, type = self.context, self.context.builder, load.type
        tensor = context.graph.tensor(load.tensor)
        number, inside = self._place(tensor, load)
        never = integer(0, I1)
        outside = builder.select(taken, builder.not_(inside), never)
        context.require(
            builder.not_(outside), f"{context.node.name} leaves the bounds of {tensor.name}"
        )
        start = self.tensors[tensor.name]
        where = offset_by(builder, start, context.scaled(number, tensor.type.scalar.bytes))
        anywhere = context.address(context.layout.fault)
        where = _select(context, builder.select(taken, inside, never), where, anywhere)
        return load_value(builder, where, type, type.scalar.bytes)

    def _place(self, tensor: Tensor, load: Load) -> tuple[Value, Value]:
        """The number of an element, and whether there is one."""
        context, builder, lanes = self.context, self.context.builder, load.type.lanes
        if not tensor.open:
            return context.locate(load.indices, tensor.allocated, lanes)
        index = context.expressions.wide(load.indices[0])
        length = builder.load(context.address(context.layout.extent(tensor.name)), I64)
        ends = builder.icmp_signed("<=", builder.add(index, integer(lanes)), length)
        return index, builder.and_(builder.icmp_signed(">=", index, integer(0)), ends)

    def _whole(self, put: Put) -> tuple[Value, Value]:
        value, tag = self.token(put)
        element = self.outputs[put.channel].channel.stream.element
        return zero(element) if value is None else value, integer(0, I32) if tag is None else tag

    @property
    def mode(self) -> str:
        """Where all these rules lead to."""
        return str(self._leaves[0].rule.next)

    def fire(self) -> Value:
        """Put, take and write what the rule does that is taken; its code."""
        leaves = self._leaves
        for channel, port in self.outputs.items():
            putting = [leaf for leaf in leaves if channel in leaf.tokens]
            if putting:
                value = self._chosen([(leaf.taken, leaf.tokens[channel][0]) for leaf in putting])
                tag = self._chosen([(leaf.taken, leaf.tokens[channel][1]) for leaf in putting])
                port.put(value, tag, self._any(putting))
        for channel, port in self.inputs.items():
            taking = [leaf for leaf in leaves if channel in leaf.rule.takes]
            if taking:
                port.take(self._any(taking))
        for register, (slot, _) in self.registers.items():
            writing = [leaf for leaf in leaves if register in leaf.writes]
            if writing:
                old = self.context.builder.load(slot, slot.kept)
                new = [(leaf.taken, leaf.writes[register]) for leaf in writing]
                rest = [] if len(writing) == len(leaves) else [(integer(1, I1), old)]
                self.context.builder.store(self._chosen([*new, *rest]), slot)
        codes = [(leaf.taken, integer(self.codes[leaf.rule.name], I32)) for leaf in leaves]
        return self._chosen(codes)

    def _any(self, leaves: Sequence[_Leaf]) -> Value | None:
        """Whether one of these is taken; ``None`` if that is certain."""
        if len(leaves) == len(self._leaves):
            return None
        taken = leaves[0].taken
        for leaf in leaves[1:]:
            taken = self.context.builder.or_(taken, leaf.taken)
        return taken

    def _chosen(self, values: Sequence[tuple[Value, Value]]) -> Value:
        """The value beside the condition that holds."""
        found = values[-1][1]
        for taken, value in reversed(values[:-1]):
            if not _same(value, found):
                found = _select(self.context, taken, value, found)
        return found


def _same(left: Value, right: Value) -> bool:
    return left.text == right.text and left.type is right.type


def _both(builder: Builder, left: Value, right: Value) -> Value:
    """Both conditions; what the right one says does not matter if the left one does not hold."""
    if left.text == "1":
        return right
    return builder.select(left, right, integer(0, I1))


def _select(context: NodeContext, condition: Value, if_true: Value, if_false: Value) -> Value:
    """A selection that must not become a branch."""
    return context.builder.select(condition, if_true, if_false, unpredictable=True)

"""Vectors of firings in LLVM (see ``vectors``).

The shape of the code, at the beginning of a mode::

    count the tokens that lie side by side in every input, and the space in every output
    while there are eight:
        decide in every lane                    # a mask for each rule
        the tokens of all rules, selected by lane
        write all eight of them, and eight codes into the trace
        if there is a lane without a rule:
            keep those before the first one
            go to single
    single: one firing, as without vectors

What is written and not kept lies in free space, and is written over.  Where all eight are kept,
nothing but a branch depends on it, which the CPU predicts: otherwise the next vector could not
begin before the decisions of this one are made, which would take longer than its work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from t2s.core.errors import InternalError
from t2s.core.expr import Expr, Local
from t2s.core.types import INT32, Type
from t2s.core.walk import walk
from t2s.graph.body import Let, Load, RegisterWrite
from t2s.graph.nodes import VALUE, Choice, Head, Machine, MemoryAdd, Mode, Put, Rule
from t2s.llvm.expressions import register_type
from t2s.llvm.ir import (
    I1,
    I32,
    I64,
    BasicBlock,
    Builder,
    Slot,
    Value,
    constant_vector,
    integer,
    integer_type,
    null,
    vector_type,
)
from t2s.simulator.values.emit_burst import Port
from t2s.simulator.values.emit_frame import NodeContext, StreamPort, smaller
from t2s.simulator.values.emit_lanes import TensorMemory, nowhere
from t2s.simulator.values.emit_memory import MemoryEmitter
from t2s.simulator.values.layout import code_type
from t2s.simulator.values.spans import Change, change_of
from t2s.simulator.values.vectors import LANES, VectorRules, for_lanes, varied_heads, varies_with

_MASK = vector_type(I1, LANES)
_BYTE = integer_type(LANES)

_MANY = 4
"""Firings that are worth a vector where other rules interrupt."""

_SHORTEST_WAIT, _LONGEST_WAIT = 8, 64
"""Single firings before another vector is tried there, and at first."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A rule: the lanes that take it, its tokens by channel, value and tag, and a point it adds.

    A point is its coordinates, and the value.
    """

    taken: Value
    rule: Rule
    tokens: dict[str, tuple[Value, Value]]
    point: list[Value]


def _stream(port: Port) -> StreamPort:
    assert isinstance(port, StreamPort)
    return port


class VectorEmitter:
    """Emits the rules of one mode as vectors of firings."""

    def __init__(
        self,
        context: NodeContext,
        node: Machine,
        rules: VectorRules,
        inputs: Mapping[str, Port],
        outputs: Mapping[str, Port],
        tensors: Mapping[str, Value],
        registers: Mapping[str, tuple[Slot, Type]],
        memories: Mapping[str, MemoryEmitter],
    ) -> None:
        self._context, self._node, self._rules = context, node, rules
        self._builder: Builder = context.builder
        self._inputs = {name: _stream(inputs[name]) for name in rules.takes}
        self._outputs = {name: _stream(outputs[name]) for name in rules.puts}
        self._tensors, self._nowhere = tensors, nowhere(context)
        self._registers, self._memories = registers, memories
        with self._builder.goto_entry_block():
            self._ahead: Slot = self._builder.alloca(I64)
            self._waits: Slot = self._builder.alloca(I64)
            self._left: Slot = self._builder.alloca(I64)
            if rules.interrupted:
                self._builder.store(integer(_SHORTEST_WAIT), self._waits)
                self._builder.store(integer(_SHORTEST_WAIT), self._left)
        self._leaves: list[_Leaf] = []
        self._outside = null(_MASK)
        self._varied: set[str] = set()

    def emit(
        self,
        mode: Mode,
        heads: Mapping[str, Head],
        space: Value,
        note: Callable[[Value, Value], None],
        single: BasicBlock,
    ) -> None:
        """Fire as long as that is possible, then go to ``single``.

        ``space`` is the number of firings that there is space for; ``note`` adds firings to the
        trace: the codes of eight, and how many there were.
        """
        context, builder = self._context, self._builder
        self._wait_for_a_while(single)
        for port in list(self._inputs.values())[:1]:  # machines are often visited for a few tokens
            self._or_single(builder.icmp_signed(">", port.room(), integer(LANES)), single)
        ahead = space
        for port in (*self._inputs.values(), *self._outputs.values()):
            ahead = smaller(builder, ahead, port.ahead())
        builder.store(ahead, self._ahead)
        again = context.block("vectors")
        builder.branch(again)
        builder.position_at_end(again)
        ahead = builder.load(self._ahead, I64)
        more = builder.icmp_signed(">", ahead, integer(LANES))  # and one for a single firing
        self._or_single(more, single)
        names = context.names
        for channel, port in self._inputs.items():
            head, (value, tag) = heads[channel], port.heads(LANES)
            names[head.value] = value
            if head.tag is not None:
                names[head.tag] = tag
        self._varied = varied_heads(self._node, self._rules.takes).union(self._rules.counters)
        for register, by in self._rules.counters.items():
            slot, _ = self._registers[register]
            steps = constant_vector([lane * by for lane in range(LANES)], I32)
            first = builder.splat(builder.load(slot, slot.kept), LANES)
            names[register] = builder.add(first, steps)
        self._single = single
        self._enter(mode.choices, integer(-1, _MASK))
        kept = builder.and_(self._any_rule(), builder.not_(self._outside))
        missing = builder.not_(self._bits(kept))
        number = builder.intrinsic("llvm.cttz.i8", _BYTE, [missing, integer(0, I1)])
        count = builder.zext(number, I64)
        if self._rules.memory is not None:
            lowest = builder.and_(missing, builder.neg(missing))
            self._add_points(builder.sub(lowest, integer(1, _BYTE)), count)
        if self._rules.go_on:
            all, some = context.block("all"), context.block("some")
            none_missing = builder.icmp_signed("==", missing, integer(0, _BYTE))
            builder.cbranch(none_missing, all, some)
            builder.position_at_end(all)
            self._fire(integer(LANES), note)
            builder.store(builder.sub(ahead, integer(LANES)), self._ahead)
            builder.branch(again)
            builder.position_at_end(some)
        self._or_fail(number, single)
        self._fire(count, note)
        builder.store(builder.sub(ahead, count), self._ahead)
        builder.branch(single)

    def _fire(self, count: Value, note: Callable[[Value, Value], None]) -> None:
        """Make the first ``count`` firings, but for points."""
        builder = self._builder
        for channel, port in self._outputs.items():
            values, tags = zip(*(leaf.tokens[channel] for leaf in self._leaves), strict=True)
            port.put_many(self._chosen(values), self._chosen(tags), count)
        for port in self._inputs.values():
            port.take_many(count)
        for register, by in self._rules.counters.items():
            slot, _ = self._registers[register]
            more = builder.mul(builder.trunc(count, I32), integer(by, I32))
            builder.store(builder.add(builder.load(slot, slot.kept), more), slot)
        note(self._codes(), count)

    def _add_points(self, before: Value, count: Value) -> None:
        """Add the points of the first ``count`` lanes, whose bits are in ``before``."""
        builder = self._builder
        adding = [leaf for leaf in self._leaves if leaf.point]
        wanted = adding[0].taken
        for leaf in adding[1:]:
            wanted = builder.or_(wanted, leaf.taken)
        wanted = builder.and_(wanted, builder.bitcast(before, _MASK))
        *keys, value = (
            self._chosen_of(adding, parts)
            for parts in zip(*(leaf.point for leaf in adding), strict=True)
        )
        assert self._rules.memory is not None
        self._memories[self._rules.memory].add_lanes(keys, value, wanted, count)

    def _codes(self) -> Value:
        """The code of the rule in each lane."""
        type = integer_type(8 * code_type(self._node).itemsize)
        numbers = [self._rules.codes[leaf.rule.name] for leaf in self._leaves]
        return self._chosen([integer(number, vector_type(type, LANES)) for number in numbers])

    def _wait_for_a_while(self, single: BasicBlock) -> None:
        """After vectors in vain, make single firings before the next attempt."""
        if self._rules.interrupted:
            builder = self._builder
            waits, left = self._context.block("wait"), builder.load(self._left, I64)
            over = self._context.block("over")
            builder.cbranch(builder.icmp_signed(">", left, integer(0)), waits, over)
            builder.position_at_end(waits)
            builder.store(builder.sub(left, integer(1)), self._left)
            builder.branch(single)
            builder.position_at_end(over)

    def _or_fail(self, number: Value, single: BasicBlock) -> None:
        """Go to ``single`` if no lane fires.

        After a vector of few firings, single ones come first, twice as many each time.
        """
        builder = self._builder
        some = builder.icmp_signed(">", number, integer(0, _BYTE))
        if self._rules.interrupted:
            many = builder.icmp_signed(">=", number, integer(_MANY, _BYTE))
            longer = builder.add(builder.load(self._waits, I64), builder.load(self._waits, I64))
            longer = smaller(builder, longer, integer(_LONGEST_WAIT))
            builder.store(builder.select(many, integer(_SHORTEST_WAIT), longer), self._waits)
            builder.store(builder.select(many, integer(0), longer), self._left)
        self._or_single(some, single)

    def _or_single(self, holds: Value, single: BasicBlock) -> None:
        go = self._context.block("vector")
        self._builder.cbranch(holds, go, single)
        self._builder.position_at_end(go)

    def _enter(self, choices: tuple[Choice, ...], open: Value) -> None:
        """Collect the rules among alternatives that are tried in the lanes ``open``."""
        builder, names = self._builder, self._context.names
        last = max(n for n, choice in enumerate(choices) if self._rules.among(choice))
        for choice in choices[: last + 1]:
            taken = open
            if choice.when is not None:
                holds = self._wide(choice.when)
                taken = builder.and_(open, holds)
                open = builder.and_(open, builder.not_(holds))
            if self._rules.among(choice):
                saved, varied = dict(names), set(self._varied)
                for statement in choice.body:
                    self._emit_statement(statement, taken)
                if isinstance(choice.inside, Rule):
                    self._leaf(choice.inside, taken)
                else:
                    self._enter(choice.inside, taken)
                names.clear()
                names.update(saved)
                self._varied = varied

    def _leaf(self, rule: Rule, taken: Value) -> None:
        point: list[Value] = []
        for statement in rule.body:
            match statement:
                case MemoryAdd(keys=keys, value=value):
                    point = [self._wide(part) for part in (*keys, value)]
                case RegisterWrite():
                    pass
                case _:
                    self._emit_statement(statement, taken)
        tokens = {put.channel: self._token(put) for put in rule.puts}
        self._leaves.append(_Leaf(taken, rule, tokens, point))

    def _emit_statement(self, statement: object, taken: Value) -> None:
        match statement:
            case Let(target=target, value=value):
                self._context.names[target] = self._wide(value)
            case Load(target=target):
                self._context.names[target] = self._load(statement, taken)
            case _:
                raise InternalError(f"{statement} in a vector of firings")
        self._varied.add(target)

    def _load(self, load: Load, taken: Value) -> Value:
        """A value from memory for each lane, any value if it is not needed.

        A lane that leaves the bounds is noted, so that it is left to a single firing.  So are all
        whose values would lie side by side, but do not.
        """
        builder, (index,) = self._builder, load.indices
        start = self._tensors[load.tensor]
        memory = TensorMemory.of(self._context, load, start, self._nowhere)
        if self._counts(index):
            values, holds = memory.beside(self._wide(index))
            self._or_single(holds, self._single)
            return values
        values, inside = memory.each(self._wide(index), taken)
        self._outside = builder.or_(self._outside, builder.and_(taken, builder.not_(inside)))
        return values

    def _counts(self, index: Expr) -> bool:
        """Whether an index goes on by the same distance from lane to lane."""
        counted = self._rules.counters.keys()
        changes = {
            e.name: Change.LINEAR
            if e.name in counted
            else (Change.VARIED if e.name in self._varied else Change.FIXED)
            for e in walk(index)
            if isinstance(e, Local)
        }
        return change_of(index, changes) is Change.LINEAR

    def _token(self, put: Put) -> tuple[Value, Value]:
        """The values and tags of a put, in all lanes."""
        builder, port = self._builder, self._outputs[put.channel]
        values = null(register_type(port.channel.stream.element.with_lanes(LANES)))
        tags = null(register_type(INT32.with_lanes(LANES)))
        if put.tag is not None:
            tags = self._wide(put.tag)
        if put.value is None:
            return values, tags
        if put.tag is None or port.keeps_values:
            return self._wide(put.value), tags
        plain = builder.icmp_signed("==", tags, integer(VALUE, tags.type))
        return builder.select(plain, self._wide(put.value), values), tags

    def _wide(self, expr: Expr) -> Value:
        return self._context.expressions.emit(for_lanes(expr, varies_with(self._varied)))

    def _any_rule(self) -> Value:
        any = self._leaves[0].taken
        for leaf in self._leaves[1:]:
            any = self._builder.or_(any, leaf.taken)
        return any

    def _chosen(self, values: Sequence[Value]) -> Value:
        """What the rule of each lane says; any value where there is none."""
        return self._chosen_of(self._leaves, values)

    def _chosen_of(self, leaves: Sequence[_Leaf], values: Sequence[Value]) -> Value:
        """The same for some of the rules."""
        chosen = values[-1]
        for leaf, value in zip(leaves[-2::-1], values[-2::-1], strict=True):
            if value.text != chosen.text:
                chosen = self._builder.select(leaf.taken, value, chosen)
        return chosen

    def _bits(self, lanes: Value) -> Value:
        """A bit for each lane."""
        return self._builder.bitcast(lanes, _BYTE)

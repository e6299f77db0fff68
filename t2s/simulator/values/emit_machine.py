"""The function of one machine: its places in row-major order; firing budgets; if-conversion.

The shape of the code::

    for each place that has not finished:       # visit, see ``emit_frame``
        the number of firings that space in outputs, trace and memories allows
        go to the saved mode
        mode: while firings are allowed:        # a block for each mode
            many firings at once, if possible   # see ``emit_burst``
            wait for the needed heads, or pause
            decide between the alternatives     # a tree of branches; none: refuse
            rule: body, puts, takes             # note the rule in the trace
            go to the block of its next mode
        save counters, registers and mode       # pause, finish or refuse
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from t2s.core.expr import Apply, Cast, Const, Expr, Index, Local, Parameter, Select
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.core.walk import walk
from t2s.graph.body import Let, Load, RegisterRead, RegisterWrite, Statement, Store, by_lanes
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.nodes import (
    VALUE,
    Choice,
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
from t2s.llvm.expressions import (
    convert,
    load_value,
    offset_by,
    register_type,
    store_value,
    token_alignment,
    zero,
)
from t2s.llvm.ir import (
    I1,
    I32,
    I64,
    POINTER,
    BasicBlock,
    Builder,
    LLVMFunction,
    Module,
    Slot,
    Value,
    integer,
    integer_type,
    null,
)
from t2s.simulator.program.codes import most_in_run
from t2s.simulator.values.emit_body import BodyEmitter, emit_search
from t2s.simulator.values.emit_burst import BurstEmitter, Port
from t2s.simulator.values.emit_frame import Frame, NodeContext, StreamPort, smaller
from t2s.simulator.values.emit_memory import MemoryEmitter
from t2s.simulator.values.emit_vectors import VectorEmitter
from t2s.simulator.values.layout import (
    FAILED,
    FINISHED,
    NOT_WAITING,
    RUNNING,
    TRACE_ADDRESS,
    TRACE_LEFT,
    TRACE_LENGTH,
    TRACE_LIMIT,
    TRACE_WORDS,
    Key,
    ValueLayout,
    code_type,
    most_adds,
)
from t2s.simulator.values.span_ports import SpanPort
from t2s.simulator.values.spans import Burst
from t2s.simulator.values.vectors import vector_rules


def emit_machine(
    module: Module,
    graph: Graph,
    node: Machine,
    layout: ValueLayout,
    number: int,
    faults: list[str],
    places: list[Key] | None = None,
    *,
    vectors: bool = False,
) -> LLVMFunction:
    """Add the function of a machine to a module; messages of its checks are added to ``faults``.

    A place that meets a fault stops before that firing, and the others go on.  With ``places`` the
    function serves several machines: its last argument is a table of these numbers, whose keys are
    added to the list (see ``shared_code``).  With ``vectors`` rules may fire in vectors, which is
    more code, and does the same.
    """
    frame = Frame(module, graph, node, layout, number, faults, places)
    _MachineEmitter(frame, node, vectors=vectors).emit()
    return frame.function


class _MachineEmitter:
    """Emits the blocks of one machine's function; variables live in stack slots."""

    def __init__(self, frame: Frame, node: Machine, *, vectors: bool) -> None:
        self._frame, self._vectors = frame, vectors
        self._context = context = frame.context
        self._node = node
        self._builder = builder = context.builder
        self._mode = builder.alloca(I32)
        self._wait = builder.alloca(I32)
        self._waits = 0
        self._heads = {head.channel: head for head in node.heads}
        self._status = builder.alloca(I32)
        self._allowed: Value
        self._trace: Value
        self._state: Value
        self._trace_state: Value
        graph = context.graph
        layout, carried = context.layout, context.layout.spans.carried
        self._in_bursts = layout.in_bursts(node.name)
        self._room, self._runs = builder.alloca(I64), builder.alloca(I64)
        self._inputs: dict[str, Port] = {
            channel.name: (SpanPort if channel.name in carried else StreamPort)(
                context, channel, receives=True
            )
            for channel in graph.inputs_of(node.name)
        }
        self._outputs: dict[str, Port] = {
            channel.name: (SpanPort if channel.name in carried else StreamPort)(
                context, channel, receives=False
            )
            for channel in graph.outputs_of(node.name)
        }
        self._memories = {memory.name: MemoryEmitter(context, memory) for memory in node.memories}
        self._scalars = {
            register.name: (builder.alloca(register_type(register.type)), register.type)
            for register in node.registers
            if register.shape == ()
        }
        context.load_parameters()
        self._tensors = {
            statement.tensor: context.pointer(context.layout.tensor(statement.tensor))
            for statement in node.statements()
            if isinstance(statement, Load | Store)
        }
        self._body = BodyEmitter(context, {}, self._tensors)
        self._leave = frame.leave
        self._modes = {mode.name: context.block("mode") for mode in node.modes}
        self._codes = {path.rule.name: code for code, path in enumerate(node.paths())}
        self._blend = IfConversionEmitter(
            context=context,
            inputs=self._inputs,
            outputs=self._outputs,
            registers=self._scalars,
            codes=self._codes,
            token=self._token,
            tensors=self._tensors,
        )

    def emit(self) -> None:
        """The whole function."""
        self._frame.emit_loop()
        self._emit_visit()
        for number, mode in enumerate(self._node.modes):
            self._emit_mode(number, mode)
        self._emit_leave()

    def _emit_visit(self) -> None:
        """Visit one place: compute its budget, and jump to its mode."""
        context, builder = self._context, self._builder
        self._state, _ = self._frame.begin_visit()
        builder.store(integer(RUNNING, I32), self._status)
        for port in (*self._inputs.values(), *self._outputs.values()):
            port.begin_visit()
        for memory in self._memories.values():
            memory.begin_visit()
        for register, (slot, type) in self._scalars.items():
            builder.store(
                load_value(builder, self._register(register, type), type, token_alignment(type)),
                slot,
            )
        counted = [
            port
            for port in self._outputs.values()
            if isinstance(port, StreamPort) or not self._in_bursts
        ]
        self._trace_state, self._trace, self._allowed = emit_firing_budget(
            context, self._node, self._frame.budget(), counted, self._memories
        )
        self._begin_trace()
        self._find_room()
        mode = builder.load(offset_by(builder, self._state, 4), I32)
        builder.switch(mode, list(self._modes.values()))

    def _begin_trace(self) -> None:
        """Note the length of a trace of runs."""
        if self._in_bursts:
            length = offset_by(self._builder, self._trace_state, 8 * TRACE_LENGTH)
            self._builder.store(self._builder.load(length, I64), self._runs)

    def _find_room(self) -> None:
        """Note how many runs and spans there is space for, in the trace and in every output."""
        if self._in_bursts:
            builder = self._builder
            limit = builder.load(offset_by(builder, self._trace_state, 8 * TRACE_LIMIT), I64)
            room = builder.sub(limit, self._load(self._runs))
            for port in self._outputs.values():
                if isinstance(port, SpanPort):
                    room = smaller(builder, room, port.room())
            builder.store(room, self._room)

    def _go_on(self) -> Value:
        """Whether another firing is allowed."""
        builder = self._builder
        allowed = builder.icmp_signed("<", self._frame.fired(), self._allowed)
        if not self._in_bursts:
            return allowed
        return builder.and_(allowed, builder.icmp_signed(">", self._load(self._room), integer(0)))

    def _emit_mode(self, number: int, mode: Mode) -> None:
        """Wait for the heads that the mode needs, then decide."""
        context, builder = self._context, self._builder
        builder.position_at_end(self._modes[mode.name])
        builder.store(integer(number, I32), self._mode)
        builder.store(integer(NOT_WAITING, I32), self._wait)
        ready = context.block("ready")
        builder.cbranch(self._go_on(), ready, self._leave)
        builder.position_at_end(ready)
        saved = dict(context.names)
        start = {register: self._load(slot) for register, (slot, _) in self._scalars.items()}
        context.names.update(start)
        for burst in context.layout.spans.bursts.get(self._node.name, ()):
            if burst.path.mode.name == mode.name:
                self._emit_burst(burst)
        if self._vectors and not self._in_bursts:
            self._emit_vectors(mode, start)
        refuse, fail = context.block("refuse"), context.block("fail")
        context.abandon = fail
        self._emit_needs(mode.needs)
        self._emit_choices(mode.choices, refuse)
        self._restore(saved)
        builder.position_at_end(refuse)
        message = f"{self._node.name} in mode {mode.name} refuses its tokens"
        builder.store(context.fault(message), context.address(context.layout.fault))
        builder.branch(fail)
        builder.position_at_end(fail)
        for register, value in start.items():
            builder.store(value, self._scalars[register][0])
        builder.store(integer(FAILED, I32), self._status)
        builder.branch(self._leave)

    def _emit_burst(self, burst: Burst) -> None:
        """Fire a rule many times at once, if that is possible; else go on in a new block."""
        context, builder = self._context, self._builder
        saved = dict(context.names)
        emitter = BurstEmitter(
            context,
            burst,
            self._heads,
            self._inputs,
            self._outputs,
            self._scalars,
            self._memories,
        )
        single = context.block("single")
        fired = self._frame.fired()
        most = integer(most_in_run(self._code_bits))
        count = smaller(builder, builder.sub(self._allowed, fired), most)
        count = emitter.emit_checks(count, single)
        emitter.emit()
        self._note_run(integer(burst.code, I32), count)
        self._frame.count(fired, count)
        self._find_room()
        builder.branch(self._modes[burst.path.mode.name])
        builder.position_at_end(single)
        self._restore(saved)

    def _emit_vectors(self, mode: Mode, start: dict[str, Value]) -> None:
        """Fire eight times at once, as long as that is possible; then go on in a new block.

        ``start`` are the values of registers at the beginning of a single firing.
        """
        context, builder = self._context, self._builder
        rules = vector_rules(context.graph, self._node, mode)
        if rules is None:
            return
        saved = dict(context.names)
        single = context.block("single")
        emitter = VectorEmitter(
            context,
            self._node,
            rules,
            self._inputs,
            self._outputs,
            self._tensors,
            self._scalars,
            self._memories,
        )
        space = builder.sub(self._allowed, self._frame.fired())
        emitter.emit(mode, self._heads, space, self._note_many, single)
        builder.position_at_end(single)
        start |= {name: self._load(self._scalars[name][0]) for name in rules.counters}
        self._restore({**saved, **start})

    def _note_many(self, codes: Value, count: Value) -> None:
        """Add the first ``count`` firings to the trace; all codes are written."""
        bytes, fired = self._code_bits // 8, self._frame.fired()
        where = offset_by(self._builder, self._trace, self._context.scaled(fired, bytes))
        self._builder.store(codes, where, align=bytes)
        self._frame.count(fired, count)

    def _emit_needs(self, needs: tuple[str, ...]) -> None:
        """Wait for heads, one after the other, and bind their names."""
        context, builder = self._context, self._builder
        for name in needs:
            ready = context.block("ready")
            builder.store(integer(self._waits, I32), self._wait)
            builder.cbranch(self._inputs[name].exhausted(), self._leave, ready)
            builder.position_at_end(ready)
            self._waits += 1
            head = self._heads[name]
            value, tag = self._inputs[name].head()
            context.names[head.value] = value
            if head.tag is not None:
                context.names[head.tag] = tag

    def _restore(self, names: dict[str, Value]) -> None:
        self._context.names.clear()
        self._context.names.update(names)

    def _emit_choices(self, choices: tuple[Choice, ...], refuse: BasicBlock) -> None:
        """Emit the first alternative that holds, on every path through the code."""
        context, builder = self._context, self._builder
        if if_convertible_rules(context.graph, choices, self._scalars):
            choices = self._emit_blended(choices)
        for choice in choices:
            otherwise: BasicBlock | None = None
            if choice.when is not None:
                chosen, otherwise = context.block("chosen"), context.block("otherwise")
                builder.cbranch(context.expressions.emit(choice.when), chosen, otherwise)
                builder.position_at_end(chosen)
            saved = dict(context.names)
            self._emit_needs(choice.needs)
            for statement in choice.body:
                self._emit_statement(statement)
            match choice.inside:
                case Rule() as rule:
                    self._emit_rule(rule)
                case inner:
                    self._emit_choices(inner, refuse)
            self._restore(saved)
            if otherwise is None:
                return
            builder.position_at_end(otherwise)
        builder.branch(refuse)

    def _emit_blended(self, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
        """Emit the if-converted alternatives; return the others."""
        builder = self._builder
        holds, left = self._blend.choose(choices)
        chosen, otherwise = self._context.block("blended"), self._context.block("otherwise")
        builder.cbranch(holds, chosen, otherwise, unpredictable=True)
        builder.position_at_end(chosen)  # one branch instead of one for each rule
        self._note(self._blend.fire())
        builder.branch(self._modes[self._blend.mode])
        builder.position_at_end(otherwise)
        return tuple(left)

    @property
    def _code_bits(self) -> int:
        return 8 * code_type(self._node).itemsize

    def _note(self, code: Value) -> None:
        """Add a firing to the trace."""
        builder, fired = self._builder, self._frame.fired()
        self._frame.count(fired)
        if self._in_bursts:
            self._note_run(code, integer(1))
            builder.store(builder.sub(self._load(self._room), integer(1)), self._room)
            return
        bytes = self._code_bits // 8
        where = offset_by(builder, self._trace, self._context.scaled(fired, bytes))
        builder.store(builder.trunc(code, integer_type(self._code_bits)), where, align=bytes)

    def _note_run(self, code: Value, count: Value) -> None:
        """Add firings to the last run of the trace, or as a new one."""
        context, builder, bits = self._context, self._builder, self._code_bits
        last, more = self._load(self._runs), builder.trunc(count, I32)
        word = builder.load(offset_by(builder, self._trace, context.scaled(last, 4)), I32)
        same = builder.icmp_signed("==", builder.and_(word, integer((1 << bits) - 1, I32)), code)
        total = builder.add(builder.ashr(word, integer(bits, I32)), more)
        fits = builder.icmp_signed("<=", total, integer(most_in_run(bits), I32))
        begun = builder.icmp_signed(">=", word, integer(0, I32))
        goes_on = builder.and_(same, builder.and_(fits, begun))
        shifted = builder.shl(more, integer(bits, I32))
        run = builder.select(goes_on, builder.add(word, shifted), builder.or_(shifted, code))
        at = builder.add(last, builder.zext(builder.not_(goes_on), I64))
        builder.store(run, offset_by(builder, self._trace, context.scaled(at, 4)))
        builder.store(at, self._runs)

    def _emit_rule(self, rule: Rule) -> None:
        """Emit one firing of a rule."""
        builder = self._builder
        for statement in rule.body:
            self._emit_statement(statement)
        tokens = [(put.channel, *self._token(put)) for put in rule.puts]
        for channel, value, tag in tokens:
            self._outputs[channel].put(value, tag)
        for channel in rule.takes:
            self._inputs[channel].take()
        self._note(integer(self._codes[rule.name], I32))
        if rule.next is not None:
            builder.branch(self._modes[rule.next])
            return
        builder.store(integer(FINISHED, I32), self._status)
        self._frame.finish()
        builder.branch(self._leave)

    def _token(self, put: Put) -> tuple[Value | None, Value | None]:
        """The value and the tag of a token; the value is zero if the stream prescribes it."""
        builder, emit = self._builder, self._context.expressions.emit
        value = None if put.value is None else emit(put.value)
        if put.tag is None:
            return value, None
        tag = convert(builder, emit(put.tag), put.tag.type, INT32)
        if value is not None and not self._outputs[put.channel].keeps_values:
            plain = builder.icmp_signed("==", tag, integer(VALUE, I32))
            value = builder.select(plain, value, null(value.type))
        return value, tag

    def _emit_statement(self, statement: Statement) -> None:
        """One statement; scalar registers and sorted memories are this module's."""
        names = self._context.names
        match statement:
            case RegisterRead(target=target, register=register) if register in self._scalars:
                names[target] = self._load(self._scalars[register][0])
            case RegisterWrite(register=register, value=value) if register in self._scalars:
                emitted = self._context.expressions.emit(value)
                self._builder.store(emitted, self._scalars[register][0])
            case Search(target=target):
                names[target] = emit_search(self._context, statement)
            case MemoryAdd(memory=memory, keys=keys, value=value):
                self._memories[memory].add(keys, value)
            case MemorySize(target=target, memory=memory):
                names[target] = self._memories[memory].size()
            case MemoryFirst(targets=targets, value=value, memory=memory):
                coordinates, point = self._memories[memory].first()
                names[value] = point
                names.update(zip(targets, coordinates, strict=True))
            case MemoryDrop(memory=memory):
                self._memories[memory].drop()
            case _:
                self._body.emit_statement(statement)

    def _emit_leave(self) -> None:
        """Write everything back; revisit the place if that may help."""
        builder = self._builder
        builder.position_at_end(self._leave)
        fired = self._frame.fired()
        builder.store(self._load(self._status), self._state)
        builder.store(self._load(self._mode), offset_by(builder, self._state, 4))
        builder.store(self._load(self._wait), offset_by(builder, self._state, 8))
        for port in (*self._inputs.values(), *self._outputs.values()):
            port.end_visit()
        for register, (slot, type) in self._scalars.items():
            where = self._register(register, type)
            store_value(builder, self._load(slot), where, type, token_alignment(type))
        length = offset_by(builder, self._trace_state, 8 * TRACE_LENGTH)
        if self._in_bursts:
            builder.store(self._load(self._runs), length)
            left = offset_by(builder, self._trace_state, 8 * TRACE_LEFT)
            builder.store(builder.sub(builder.load(left, I64), fired), left)
        else:
            builder.store(builder.add(builder.load(length, I64), fired), length)
        self._frame.end_visit(fired, builder.not_(self._go_on()))

    def _register(self, name: str, type: Type) -> Value:
        section = self._context.layout.register(self._node.name, name)
        return self._context.address(section, self._context.pe, type.bytes)

    def _load(self, slot: Slot) -> Value:
        return self._frame.load(slot)


# The number of firings that a visit of a machine may make, regardless of its inputs.


def emit_firing_budget(
    context: NodeContext,
    node: Machine,
    budget: Value,
    outputs: Sequence[Port],
    memories: Mapping[str, MemoryEmitter],
) -> tuple[Value, Value, Value]:
    """The address of the trace, the position of its next code, and the firings allowed.

    A rule puts at most one token into a channel and a code into the trace, so as many firings as
    these have space for need no further checks.  A trace of runs is the position of the word before
    the first one instead.
    """
    builder = context.builder
    state = context.address(context.layout.trace(node.name), context.pe, 8 * TRACE_WORDS)
    address, length, limit, left = (
        builder.load(offset_by(builder, state, 8 * word), I64)
        for word in (TRACE_ADDRESS, TRACE_LENGTH, TRACE_LIMIT, TRACE_LEFT)
    )
    if context.layout.in_bursts(node.name):
        trace, allowed = builder.inttoptr(address, POINTER), smaller(builder, left, budget)
    else:
        start = context.scaled(length, code_type(node).itemsize)
        trace = builder.inttoptr(builder.add(address, start), POINTER)
        allowed = smaller(builder, builder.sub(limit, length), budget)
    for port in outputs:
        allowed = smaller(builder, allowed, port.room())
    for name, memory in memories.items():
        most = most_adds(node, name)
        if most:
            allowed = smaller(builder, allowed, builder.udiv(memory.space(), integer(most)))
    return state, trace, allowed


# If-conversion: alternatives of a machine that are computed together, so that no branch is needed.
#
# No CPU predicts which of its tokens a join takes, or whether a reference exists; a mispredicted
# branch would cost more than the rest of a firing.  So alternatives that are cheap and lead to the
# same mode are all computed, and their puts, takes and writes are selected.

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


def if_convertible_rules(
    graph: Graph, choices: Sequence[Choice], registers: Mapping[str, object]
) -> int:
    """The number of rules of alternatives that are if-converted; the others are branches."""
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
    rules_: list[Rule] = []
    for inner in choice.inside:
        rules = _rules(graph, inner, registers)
        if rules is None:
            return None
        rules_ += rules
    return tuple(rules_)


def _is_cheap(graph: Graph, statement: object, registers: Mapping[str, object]) -> bool:
    match statement:
        case Let(value=value):
            return _costs_little(value)
        case Load(indices=indices) if by_lanes(indices):
            return False
        case Load(tensor=tensor, condition=None, indices=indices):
            declaration = graph.tensor(tensor)
            is_input = not declaration.open or declaration.role is TensorRole.INPUT
            return is_input and all(map(_costs_little, indices))
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
    """A rule: its condition, its tokens by channel, and the registers that it writes."""

    taken: Value
    rule: Rule
    tokens: dict[str, tuple[Value, Value]]
    writes: dict[str, Value]


@dataclass(slots=True, kw_only=True)
class IfConversionEmitter:
    """Emits if-converted alternatives; ``token`` gives value and tag of a rule's puts."""

    context: NodeContext
    inputs: Mapping[str, Port]
    outputs: Mapping[str, Port]
    registers: Mapping[str, tuple[Slot, Type]]
    codes: Mapping[str, int]
    token: Callable[[Put], Token]
    tensors: Mapping[str, Value]
    _leaves: list[_Leaf] = field(default_factory=list)

    def choose(self, choices: Sequence[Choice]) -> tuple[Value, list[Choice]]:
        """If-convert the alternatives that can be; return whether one is taken, and the rest."""
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
        """Collect the rules of an alternative whose condition is ``taken``."""
        context, builder = self.context, self.context.builder
        saved = dict(context.names)
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
        context.names.update(saved)

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
        """A value from memory, or an arbitrary value if it is not needed."""
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
        """The number of an element, and whether it exists."""
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
        """The mode that all these rules lead to."""
        return str(self._leaves[0].rule.next)

    def fire(self) -> Value:
        """Carry out the puts, takes and writes of the taken rule; return its code."""
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
        """Whether any of these is taken; ``None`` if one certainly is."""
        if len(leaves) == len(self._leaves):
            return None
        taken = leaves[0].taken
        for leaf in leaves[1:]:
            taken = self.context.builder.or_(taken, leaf.taken)
        return taken

    def _chosen(self, values: Sequence[tuple[Value, Value]]) -> Value:
        """The value whose condition holds."""
        chosen = values[-1][1]
        for taken, value in reversed(values[:-1]):
            if not _same(value, chosen):
                chosen = _select(self.context, taken, value, chosen)
        return chosen


def _same(left: Value, right: Value) -> bool:
    return left.text == right.text and left.type is right.type


def _both(builder: Builder, left: Value, right: Value) -> Value:
    """The conjunction; the right condition is irrelevant if the left one does not hold."""
    if left.text == "1":
        return right
    return builder.select(left, right, integer(0, I1))


def _select(context: NodeContext, condition: Value, if_true: Value, if_false: Value) -> Value:
    """A selection that must not become a branch."""
    return context.builder.select(condition, if_true, if_false, unpredictable=True)

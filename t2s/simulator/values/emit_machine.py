"""The function of one machine: it runs every place, in row-major order, as far as it gets.

The shape of the code::

    for each place that has not finished:       # visit, see ``emit_frame``
        how many firings do space in outputs, trace and memories allow?
        go to the saved mode
        mode: while firings are allowed:        # a block for each mode
            wait for the needed heads, or pause
            decide between the alternatives     # a tree of branches; none: refuse
            rule: body, puts, takes             # note the rule in the trace
            go to the block of its next mode
        save counters, registers and mode       # pause, finish or refuse
"""

from __future__ import annotations

from t2s.core.types import INT32, Type
from t2s.graph.body import Load, RegisterRead, RegisterWrite, Statement, Store
from t2s.graph.graph import Graph
from t2s.graph.machine import (
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
from t2s.simulator.emit.casts import convert
from t2s.simulator.emit.llvm import (
    I32,
    I64,
    BasicBlock,
    LLVMFunction,
    Module,
    Slot,
    Value,
    integer,
    integer_type,
    null,
)
from t2s.simulator.emit.representation import (
    load_value,
    offset_by,
    register_type,
    store_value,
    token_alignment,
)
from t2s.simulator.values.emit_allowance import emit_allowance
from t2s.simulator.values.emit_blend import BlendEmitter, blended_rules
from t2s.simulator.values.emit_body import BodyEmitter, emit_search
from t2s.simulator.values.emit_frame import Frame
from t2s.simulator.values.emit_memory import MemoryEmitter
from t2s.simulator.values.emit_ports import StreamPort
from t2s.simulator.values.layout import (
    FAILED,
    FINISHED,
    NOT_WAITING,
    RUNNING,
    TRACE_LENGTH,
    Key,
    ValueLayout,
    code_type,
)


def emit_machine(
    module: Module,
    graph: Graph,
    node: Machine,
    layout: ValueLayout,
    number: int,
    faults: list[str],
    places: list[Key] | None = None,
) -> LLVMFunction:
    """Add the function of a machine to a module; messages of its checks are added to ``faults``.

    A place that meets a fault stops before that firing, and the others go on.  With ``places`` the
    function serves several machines: its last argument is a table of these numbers, whose keys are
    added to the list (see ``shared_code``).
    """
    frame = Frame(module, graph, node, layout, number, faults, places)
    _MachineEmitter(frame, node).emit()
    return frame.function


class _MachineEmitter:
    """Emits the blocks of one machine's function; what changes lives in stack slots."""

    def __init__(self, frame: Frame, node: Machine) -> None:
        self._frame = frame
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
        self._inputs = {
            channel.name: StreamPort(context, channel, receives=True)
            for channel in graph.inputs_of(node.name)
        }
        self._outputs = {
            channel.name: StreamPort(context, channel, receives=False)
            for channel in graph.outputs_of(node.name)
        }
        self._memories = {memory.name: MemoryEmitter(context, memory) for memory in node.memories}
        self._scalars = {
            register.name: (builder.alloca(register_type(register.type)), register.type)
            for register in node.registers
            if register.shape == ()
        }
        context.load_parameters()
        tensors = {
            statement.tensor: context.pointer(context.layout.tensor(statement.tensor))
            for statement in node.statements()
            if isinstance(statement, Load | Store)
        }
        self._body = BodyEmitter(context, {}, tensors)
        self._leave = frame.leave
        self._modes = {mode.name: context.block("mode") for mode in node.modes}
        self._codes = {path.rule.name: code for code, path in enumerate(node.paths())}
        self._blend = BlendEmitter(
            context=context,
            inputs=self._inputs,
            outputs=self._outputs,
            registers=self._scalars,
            codes=self._codes,
            token=self._token,
            tensors=tensors,
        )

    def emit(self) -> None:
        """The whole function."""
        self._frame.emit_loop()
        self._emit_visit()
        for number, mode in enumerate(self._node.modes):
            self._emit_mode(number, mode)
        self._emit_leave()

    def _emit_visit(self) -> None:
        """Look at one place: what it may do, and where to go on."""
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
        self._trace_state, self._trace, self._allowed = emit_allowance(
            context, self._node, self._frame.budget(), self._outputs, self._memories
        )
        mode = builder.load(offset_by(builder, self._state, 4), I32)
        builder.switch(mode, list(self._modes.values()))

    def _emit_mode(self, number: int, mode: Mode) -> None:
        """Wait for the heads that the mode needs, then decide."""
        context, builder = self._context, self._builder
        builder.position_at_end(self._modes[mode.name])
        builder.store(integer(number, I32), self._mode)
        builder.store(integer(NOT_WAITING, I32), self._wait)
        go = builder.icmp_signed("<", self._frame.fired(), self._allowed)
        ready = context.block("ready")
        builder.cbranch(go, ready, self._leave)
        builder.position_at_end(ready)
        kept = dict(context.names)
        start = {register: self._load(slot) for register, (slot, _) in self._scalars.items()}
        context.names.update(start)
        refuse, fail = context.block("refuse"), context.block("fail")
        context.abandon = fail
        self._emit_needs(mode.needs)
        self._emit_choices(mode.choices, refuse)
        self._restore(kept)
        builder.position_at_end(refuse)
        message = f"{self._node.name} in mode {mode.name} refuses its tokens"
        builder.store(context.fault(message), context.address(context.layout.fault))
        builder.branch(fail)
        builder.position_at_end(fail)
        for register, value in start.items():
            builder.store(value, self._scalars[register][0])
        builder.store(integer(FAILED, I32), self._status)
        builder.branch(self._leave)

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
        """The first alternative that holds; ends every way through the code."""
        context, builder = self._context, self._builder
        if blended_rules(context.graph, choices, self._scalars):
            choices = self._emit_blended(choices)
        for choice in choices:
            otherwise: BasicBlock | None = None
            if choice.when is not None:
                chosen, otherwise = context.block("chosen"), context.block("otherwise")
                builder.cbranch(context.expressions.emit(choice.when), chosen, otherwise)
                builder.position_at_end(chosen)
            kept = dict(context.names)
            self._emit_needs(choice.needs)
            for statement in choice.body:
                self._emit_statement(statement)
            match choice.inside:
                case Rule() as rule:
                    self._emit_rule(rule)
                case inner:
                    self._emit_choices(inner, refuse)
            self._restore(kept)
            if otherwise is None:
                return
            builder.position_at_end(otherwise)
        builder.branch(refuse)

    def _emit_blended(self, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
        """The alternatives that are computed together; the others."""
        builder = self._builder
        holds, left = self._blend.choose(choices)
        chosen, otherwise = self._context.block("blended"), self._context.block("otherwise")
        builder.cbranch(holds, chosen, otherwise, unpredictable=True)
        builder.position_at_end(chosen)  # one branch, not one for each rule
        self._note(self._blend.fire())
        builder.branch(self._modes[self._blend.mode])
        builder.position_at_end(otherwise)
        return tuple(left)

    def _note(self, code: Value) -> None:
        """Add a firing to the trace."""
        builder, bytes = self._builder, code_type(self._node).itemsize
        fired = self._frame.fired()
        where = offset_by(builder, self._trace, self._context.scaled(fired, bytes))
        kept = integer_type(8 * bytes)
        builder.store(builder.trunc(code, kept), where, align=bytes)
        self._frame.count(fired)

    def _emit_rule(self, rule: Rule) -> None:
        """A firing."""
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
        """The value and the tag of a token; the value is zero where its stream says so."""
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
                coordinates, found = self._memories[memory].first()
                names[value] = found
                names.update(zip(targets, coordinates, strict=True))
            case MemoryDrop(memory=memory):
                self._memories[memory].drop()
            case _:
                self._body.emit_statement(statement)

    def _emit_leave(self) -> None:
        """Write everything back; visit the place once more if that may help."""
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
        builder.store(builder.add(builder.load(length, I64), fired), length)
        self._frame.end_visit(fired, builder.icmp_signed("==", fired, self._allowed))

    def _register(self, name: str, type: Type) -> Value:
        section = self._context.layout.register(self._node.name, name)
        return self._context.address(section, self._context.pe, type.bytes)

    def _load(self, slot: Slot) -> Value:
        return self._frame.load(slot)

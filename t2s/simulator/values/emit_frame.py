"""The frame of a node's function: its loop over places, its ports, and code that machines share.

``node(arena, budget)`` returns the number of firings, at most ``budget``, or -1 after a fault.  The
shape of the code::

    for each place that has not finished:       # visit
        ...                                     # the node's code; it counts its firings
        if that may help, visit the place again # leave
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from t2s.core.errors import InternalError
from t2s.core.expr import Expr, index_names
from t2s.core.ops import C_FUNCTIONS
from t2s.core.types import INT32, Type
from t2s.graph.body import Receive, Send
from t2s.graph.graph import Channel, Graph, Tensor
from t2s.graph.nodes import Machine, PEArray
from t2s.llvm.expressions import (
    ExpressionEmitter,
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
    undefined,
    vector_type,
)
from t2s.simulator.values.layout import FINISHED, Key, Section, ValueLayout, token_layout


@dataclass(slots=True, kw_only=True)
class NodeContext:
    """The function being emitted for one node.

    Attributes
    ----------
    builder: positioned where code is being emitted.
    arena: pointer to the arena, the first argument.
    names: values of parameters, space indices, loop indices and locals where code is emitted.
    faults: messages of the run-time checks of the whole module; fault ``n`` is the ``n - 1``-th.
    abandon: block that leaves the function after a fault was noted, if there are faults.
    pe: number of the PE being visited, row-major.
    table: the table of the node's places in the arena, for a function that several nodes share.
    """

    graph: Graph
    node: PEArray | Machine
    layout: ValueLayout
    function: LLVMFunction
    builder: Builder
    arena: Value
    faults: list[str]
    abandon: BasicBlock | None
    names: dict[str, Value] = field(default_factory=dict)
    expressions: ExpressionEmitter = field(init=False)
    pe: Value = field(init=False)
    table: PlaceTable | None = None

    def __post_init__(self) -> None:
        functions = {
            operator: self.builder.load(self.address(self.layout.c_functions, number), I64)
            for number, operator in enumerate(C_FUNCTIONS)
        }
        self.expressions = ExpressionEmitter(self.builder, self.names, functions)

    @property
    def pe_array(self) -> PEArray:
        """The node, which is known to be a PE array."""
        assert isinstance(self.node, PEArray)
        return self.node

    def address(self, section: Section, index: Value | int = 0, stride: int = 8) -> Value:
        """The address of entry ``index`` of a section whose entries take ``stride`` bytes."""
        if isinstance(index, int) and not self._is_looked_up(section):
            return offset_by(self.builder, self.arena, section.offset + index * stride)
        offset = self._looked_up(section.key) if self._is_looked_up(section) else section.offset
        start = offset_by(self.builder, self.arena, offset)
        if isinstance(index, int):
            return offset_by(self.builder, start, index * stride) if index else start
        return offset_by(self.builder, start, self.scaled(index, stride))

    def _is_looked_up(self, section: Section) -> bool:
        return self.table is not None and section.key[0] in OF_A_NODE

    def _looked_up(self, key: Key) -> Value:
        """A number that differs between nodes, loaded once at the entry."""
        assert self.table is not None
        return self.table.value(self.builder, key)

    def number_of(self, tensor: Tensor) -> Value:
        """The position of a tensor among those of the graph."""
        if self.table is not None:
            return self._looked_up((NUMBER, tensor.name))
        return integer(self.graph.tensors.index(tensor))

    def scaled(self, index: Value, stride: int) -> Value:
        """``index * stride``, which does not overflow."""
        return self.builder.mul(index, integer(stride), "nsw")

    def pointer(self, section: Section, index: int = 0) -> Value:
        """Load a pointer from the arena."""
        return self.builder.load(self.address(section, index), POINTER)

    def block(self, name: str) -> BasicBlock:
        """A new block of the function."""
        return self.function.block(name)

    def bind_space(self) -> None:
        """Bind the space indices of the place ``pe``, from its row-major number."""
        builder, rest = self.builder, self.pe
        for dimension in reversed(self.node.space):
            extent = integer(dimension.extent)
            value = builder.add(builder.urem(rest, extent), integer(dimension.minimum))
            self.names[dimension.name] = builder.trunc(value, I32)
            rest = builder.udiv(rest, extent)

    def load_parameters(self) -> None:
        """Bind the names of all scalar parameters."""
        for parameter in self.graph.parameters:
            where = self.address(self.layout.parameter(parameter.name))
            self.names[parameter.name] = load_value(self.builder, where, parameter.type, 1)

    def is_invariant(self, *exprs: Expr | None) -> bool:
        """Whether expressions are constant over all firings of a PE (``None`` means 'always')."""
        if isinstance(self.node, Machine):
            return True
        loops = {loop.name for loop in self.node.loops}
        return not any(index_names(expr) & loops for expr in exprs if expr is not None)

    def locate(
        self, indices: tuple[Expr, ...], shape: tuple[int, ...], lanes: int = 1
    ) -> tuple[Value, Value]:
        """Row-major number of an element, and whether all its indices are in range.

        ``lanes`` elements along the last dimension must be in range.
        """
        builder = self.builder
        flat, valid = integer(0), integer(1, I1)
        for position, (index, extent) in enumerate(zip(indices, shape, strict=True)):
            last = position == len(shape) - 1
            limit = max(0, extent - lanes + 1) if last else extent
            value = self.expressions.wide(index)
            valid = builder.and_(valid, builder.icmp_unsigned("<", value, integer(limit)))
            flat = builder.add(self.scaled(flat, extent), value)
        return flat, valid

    def element_of(self, channel: Channel, *, receives: bool) -> Value:
        """The element of a channel that a place of a machine uses; a fault if there is none."""
        index = channel.sink_index if receives else channel.source_index
        element, valid = self.locate(index, channel.shape)
        verb = "receives from" if receives else "sends to"
        self.require(valid, f"{self.node.name} {verb} no element of {channel.name}")
        return element

    def fault(self, message: str) -> Value:
        """The number of a new fault."""
        self.faults.append(message)
        number = integer(len(self.faults))
        if self.table is None:
            return number
        return self.builder.add(self._looked_up((FAULTS,)), number)

    def give_up(self) -> None:
        """Leave the function after a fault was noted."""
        if self.abandon is None:
            raise InternalError(f"{self.node.name} has a fault where there can be none")
        self.builder.branch(self.abandon)

    def require(self, holds: Value, message: str) -> None:
        """Stop the run with a fault where ``holds`` is false; go on in a new block."""
        builder = self.builder
        failed, passed = self.block("failed"), self.block("passed")
        builder.cbranch(holds, passed, failed, weights=(1 << 20, 1))
        builder.position_at_end(failed)
        builder.store(self.fault(message), self.address(self.layout.fault))
        builder.store(self.pe, self.address(self.layout.place))
        self.give_up()
        builder.position_at_end(passed)


def smaller(builder: Builder, left: Value, right: Value) -> Value:
    """The minimum of two signed numbers."""
    return builder.select(builder.icmp_signed("<", left, right), left, right)


FAULTED = -1
"""What the function returns after a fault."""


class Frame:
    """The function under construction, in ``context``; variables live in stack slots.

    ``visit``, ``leave`` and ``next`` are blocks: the code of a visit begins in the first one (with
    ``begin_visit``) and ends in the second one (with ``end_visit``), or goes to the third one at
    once if there is nothing to do.
    """

    def __init__(
        self,
        module: Module,
        graph: Graph,
        node: PEArray | Machine,
        layout: ValueLayout,
        number: int,
        faults: list[str],
        places: list[Key] | None = None,
    ) -> None:
        """With ``places`` the function has a table of these as its last argument."""
        shared = [] if places is None else [POINTER]
        function = module.function(
            f"node{number}",
            I64,
            [POINTER, I64, *shared],
            attributes="nounwind noinline",
            noalias=True,
        )
        builder, abandon = Builder(function), function.block("abandon")
        self.function = function
        self.context = NodeContext(
            graph=graph,
            node=node,
            layout=layout,
            function=function,
            builder=builder,
            arena=function.args[0],
            faults=faults,
            abandon=abandon,
            table=None if places is None else PlaceTable(pointer=function.args[2], keys=places),
        )
        self._builder = builder
        self._abandon = abandon
        self._pe, self._budget, self._fired = (builder.alloca(I64) for _ in range(3))
        self.visit, self.leave, self.next = (
            function.block(name) for name in ("visit", "leave", "next")
        )

    def emit_loop(self) -> None:
        """The loop over the places, and the exits."""
        context, builder = self.context, self._builder
        budget = self.function.args[1]
        builder.store(integer(0), self._pe)
        builder.store(budget, self._budget)
        select, leave = context.block("select"), context.block("return")
        unfinished = builder.load(context.address(self._unfinished), I64)
        builder.cbranch(builder.icmp_signed("==", unfinished, integer(0)), leave, select)

        builder.position_at_end(select)
        context.pe = self.load(self._pe)
        more = builder.icmp_signed("<", context.pe, integer(context.node.place_count))
        left = builder.icmp_signed(">", self.budget(), integer(0))
        builder.cbranch(builder.and_(more, left), self.visit, leave)

        builder.position_at_end(self.next)
        builder.store(builder.add(context.pe, integer(1)), self._pe)
        builder.branch(select)

        builder.position_at_end(leave)
        builder.ret(builder.sub(budget, self.budget()))
        builder.position_at_end(self._abandon)
        builder.ret(integer(FAULTED))

    def begin_visit(self) -> tuple[Value, Value]:
        """The address of the place's state, and its status word; the place is unfinished."""
        context, builder = self.context, self._builder
        live = context.block("live")
        builder.position_at_end(self.visit)
        section = context.layout.state(context.node.name)
        state = context.address(section, context.pe, 4 * section.shape[1])
        status = builder.load(state, I32)
        done = builder.icmp_signed(">=", status, integer(FINISHED, I32))
        builder.cbranch(done, self.next, live)
        builder.position_at_end(live)
        context.bind_space()
        builder.store(integer(0), self._fired)
        return state, status

    def budget(self) -> Value:
        """How many firings are left."""
        return self.load(self._budget)

    def fired(self) -> Value:
        """How many firings this visit has made."""
        return self.load(self._fired)

    def count(self, fired: Value, more: Value | None = None) -> None:
        """Increase the number of firings, by one or by ``more``."""
        builder = self._builder
        more = integer(1) if more is None else more
        builder.store(builder.add(fired, more, "nuw nsw"), self._fired)

    def finish(self) -> None:
        """Mark the place as finished."""
        builder, where = self._builder, self.context.address(self._unfinished)
        builder.store(builder.sub(builder.load(where, I64), integer(1)), where)

    def end_visit(self, fired: Value, useful: Value) -> None:
        """Deduct the firings; revisit the place if it fired, may fire, and that is ``useful``."""
        builder = self._builder
        left = builder.sub(self.budget(), fired)
        builder.store(left, self._budget)
        moved = builder.icmp_signed(">", fired, integer(0))
        funded = builder.icmp_signed(">", left, integer(0))
        again = builder.and_(useful, builder.and_(moved, funded))
        builder.cbranch(again, self.visit, self.next)

    def load(self, slot: Slot) -> Value:
        """Load a slot."""
        return self._builder.load(slot, slot.kept)

    @property
    def _unfinished(self) -> Section:
        return self.context.layout.unfinished(self.context.node.name)


# Ports: how a node's code receives from and sends to the rings of a channel.
#
# A ring belongs to one element of a channel array.  Its *own* counter is the one this side advances
# (tokens received, or tokens sent); the *limit* bounds it.  Both sides of all channels run in one
# thread, and limits only grow, so a limit that was read early is merely conservative: a PE that
# sends to itself sees its own tokens at its next visit.
#
# A **batched** port uses one element in all firings of a PE, and either in every firing or in none.
# The number of firings it allows is known at the start of a visit: the loop over the firings checks
# nothing and walks straight through the ring.  Other ports check in every firing; a **fixed** one
# uses a single element, so its counter stays in a register.

UNLIMITED = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticPort:
    """One side of a channel: the only ``Receive`` or ``Send`` of a body that uses it."""

    channel: Channel
    receives: bool
    condition: Expr | None
    fixed: bool
    batched: bool

    @property
    def index(self) -> tuple[Expr, ...]:
        return self.channel.sink_index if self.receives else self.channel.source_index

    @property
    def element(self) -> Type:
        return self.channel.stream.element


def port_of(context: NodeContext, statement: Receive | Send) -> StaticPort:
    """The port that a statement of the node uses."""
    channel = context.graph.channel(statement.channel)
    receives = isinstance(statement, Receive)
    fixed = context.is_invariant(*(channel.sink_index if receives else channel.source_index))
    return StaticPort(
        channel=channel,
        receives=receives,
        condition=statement.condition,
        fixed=fixed,
        batched=fixed and context.is_invariant(statement.condition),
    )


class PortEmitter:
    """Emits the code of one port of one node; the methods are called in the order below."""

    def __init__(self, context: NodeContext, port: StaticPort) -> None:
        """At the entry of the function: load the ring table."""
        self.port = port
        self._context = context
        builder, layout, name = context.builder, context.layout, port.channel.name
        self._rings = context.pointer(layout.ring(name))
        self._capacity = builder.load(context.address(layout.ring(name), 1), I64)
        self._mask = builder.sub(self._capacity, integer(1))
        heads, tails = layout.heads(name), layout.tails(name)
        self._own, self._other = (heads, tails) if port.receives else (tails, heads)
        self._counter: Value
        if port.fixed:
            self._counter = builder.alloca(I64)
        self._limit: Value
        self._valid: Value
        self._slot: Value
        self.element: Value
        self.condition: Value | None = None
        """When the statement takes effect; ``None``: in every firing."""

    # -- once per visit of a PE ---------------------------------------------------------------

    def begin_visit(self) -> None:
        """Read the counters of a fixed element; evaluate an invariant condition."""
        port, context = self.port, self._context
        if port.condition is not None and context.is_invariant(port.condition):
            self.condition = context.expressions.emit(port.condition)
        if port.fixed:
            own = self._open()
            context.builder.store(own, self._counter)
            if port.batched:
                self._slot = self._address(own)

    def allowance(self) -> tuple[Value, Value]:
        """For a batched port: firings until tokens or space run out, and until the ring wraps."""
        builder = self._context.builder
        own = builder.load(self._counter, I64)
        available = builder.sub(self._limit, own)
        straight = builder.sub(self._capacity, builder.and_(own, self._mask))
        return self._if_used(available, UNLIMITED), self._if_used(straight, UNLIMITED)

    def misuse(self) -> Value:
        """For a batched port: the fault number if its element does not exist, or 0."""
        context, builder = self._context, self._context.builder
        number = builder.select(self._valid, integer(0), context.fault(self._missing()))
        return self._if_used(number, 0)

    def end_visit(self, firings: Value) -> None:
        """Write the counter of a fixed element back, after this number of firings."""
        context, builder = self._context, self._context.builder
        if not self.port.fixed:
            return
        own = builder.load(self._counter, I64)
        if self.port.batched:
            own = builder.add(own, self._if_used(firings, 0))
        builder.store(own, context.address(self._own, self.element))

    # -- once per firing ----------------------------------------------------------------------

    def begin_firing(self) -> Value | None:
        """Whether this firing has to wait for the port; ``None`` for a batched port."""
        port, context, builder = self.port, self._context, self._context.builder
        if port.batched:
            return None
        if port.condition is not None and not context.is_invariant(port.condition):
            self.condition = context.expressions.emit(port.condition)
        if port.fixed:
            own = builder.load(self._counter, I64)
        else:
            own = self._open()
            self._counter = context.address(self._own, self.element)
        exhausted = builder.icmp_signed("==", own, self._limit)
        if self.condition is None:
            context.require(self._valid, self._missing())
            return exhausted
        unused = builder.not_(self.condition)
        context.require(builder.or_(unused, self._valid), self._missing())
        return builder.and_(self.condition, exhausted)

    def next_slot(self, firing: Value) -> Value:
        """The address of the token of the ``firing``-th firing of this visit."""
        context, builder = self._context, self._context.builder
        if self.port.batched:
            distance = context.scaled(firing, self.port.element.bytes)
            return offset_by(builder, self._slot, distance)
        own = builder.load(self._counter, I64)
        builder.store(builder.add(own, integer(1)), self._counter)
        return self._address(own)

    def _open(self) -> Value:
        """Find the element and its limit; returns its own counter.

        An index may be out of range if the condition does not hold; it is replaced by 0.
        """
        context, builder = self._context, self._context.builder
        flat, self._valid = context.locate(self.port.index, self.port.channel.shape)
        self.element = builder.select(self._valid, flat, integer(0))
        own = builder.load(context.address(self._own, self.element), I64)
        other = builder.load(context.address(self._other, self.element), I64)
        self._limit = other if self.port.receives else builder.add(other, self._capacity)
        return own

    def _address(self, counter: Value) -> Value:
        """The address of token number ``counter`` in the element's ring."""
        context, builder = self._context, self._context.builder
        first = builder.mul(self.element, self._capacity, "nsw")
        token = builder.add(first, builder.and_(counter, self._mask))
        return offset_by(builder, self._rings, context.scaled(token, self.port.element.bytes))

    def _if_used(self, value: Value, otherwise: int) -> Value:
        """``value`` where the condition of a batched port holds."""
        if self.condition is None:
            return value
        return self._context.builder.select(self.condition, value, integer(otherwise))

    def _missing(self) -> str:
        verb = "receives from" if self.port.receives else "sends to"
        return f"{self._context.node.name} {verb} no element of {self.port.channel.name}"


class StreamPort:
    """One side of a channel at a machine; the methods are called in the order below.

    Its element depends on space indices only, so it uses one ring during a visit of a place, and
    its counter stays in a register.  Tokens of nested streams have a tag (``layout.token_layout``).
    """

    def __init__(self, context: NodeContext, channel: Channel, *, receives: bool) -> None:
        """At the entry of the function."""
        self.channel = channel
        self._context = context
        self._receives = receives
        self._token = token_layout(channel)
        builder, layout, name = context.builder, context.layout, channel.name
        self._rings = context.pointer(layout.ring(name))
        self._capacity = builder.load(context.address(layout.ring(name), 1), I64)
        self._mask = builder.sub(self._capacity, integer(1))
        heads, tails = layout.heads(name), layout.tails(name)
        self._own, self._other = (heads, tails) if receives else (tails, heads)
        self._counter: Value = builder.alloca(I64)
        self._element: Value
        self._limit: Value
        self._first: Value

    # -- once per visit of a place ------------------------------------------------------------

    def begin_visit(self) -> None:
        """Find the element, read its counters, and compute where its ring starts."""
        context, builder = self._context, self._context.builder
        self._element = context.element_of(self.channel, receives=self._receives)
        own = builder.load(context.address(self._own, self._element), I64)
        other = builder.load(context.address(self._other, self._element), I64)
        builder.store(own, self._counter)
        self._limit = other if self._receives else builder.add(other, self._capacity)
        first = builder.mul(self._element, self._capacity, "nsw")
        self._first = offset_by(builder, self._rings, context.scaled(first, self._token.stride))

    def room(self) -> Value:
        """The number of tokens, or of free slots, at the start of the visit."""
        return self._context.builder.sub(self._limit, self._own_counter())

    def end_visit(self) -> None:
        """Write the counter back."""
        context = self._context
        context.builder.store(self._own_counter(), context.address(self._own, self._element))

    # -- once per firing ----------------------------------------------------------------------

    @property
    def keeps_values(self) -> bool:
        """Whether a token has a value regardless of its tag."""
        return self.channel.stream.values_under_tags

    def exhausted(self) -> Value:
        """Whether tokens (or free slots) have run out."""
        return self._context.builder.icmp_signed("==", self._own_counter(), self._limit)

    def head(self) -> tuple[Value, Value]:
        """The value and the tag of the next token, which stays in the ring."""
        builder, element = self._context.builder, self.channel.stream.element
        slot = self._slot()
        value = load_value(
            builder, offset_by(builder, slot, self._token.value), element, self._alignment
        )
        if self.channel.stream.nesting == 0:
            return value, integer(0, I32)
        return value, load_value(builder, slot, INT32, INT32.bytes)

    def take(self, moves: Value | None = None) -> None:
        """Remove the next token if ``moves`` holds."""
        builder = self._context.builder
        step = integer(1) if moves is None else builder.zext(moves, I64)
        builder.store(builder.add(self._own_counter(), step), self._counter)

    def put(self, value: Value | None, tag: Value | None, moves: Value | None = None) -> None:
        """Append a token if ``moves`` holds; there must be space for one in any case."""
        builder, element = self._context.builder, self.channel.stream.element
        slot = self._slot()
        if self.channel.stream.nesting:
            store_value(builder, integer(0, I32) if tag is None else tag, slot, INT32, INT32.bytes)
        store_value(
            builder,
            zero(element) if value is None else value,
            offset_by(builder, slot, self._token.value),
            element,
            self._alignment,
        )
        self.take(moves)

    # -- once per vector of firings, of tokens with a tag and a value of 32 or 64 bits ------------

    def ahead(self) -> Value:
        """How many tokens are there, side by side; of an output: how many slots, full or free."""
        builder, own = self._context.builder, self._own_counter()
        beside = builder.sub(self._capacity, builder.and_(own, self._mask))
        return smaller(builder, beside, self.room()) if self._receives else beside

    def heads(self, count: int) -> tuple[Value, Value]:
        """The values and the tags of the next tokens, which stay in the ring."""
        builder, element = self._context.builder, self.channel.stream.element
        word = integer_type(element.bits)
        tokens = builder.load(self._slot(), vector_type(word, 2 * count), element.bytes)
        tags, values = (
            builder.shuffle_vector(tokens, undefined(tokens.type), range(first, 2 * count, 2))
            for first in (0, 1)
        )
        type = register_type(element.with_lanes(count))
        return builder.bitcast(values, type), builder.trunc(tags, vector_type(I32, count))

    def put_many(self, values: Value, tags: Value, count: Value) -> None:
        """Append the first ``count`` of these tokens; the others are written, too."""
        builder, element = self._context.builder, self.channel.stream.element
        words = vector_type(integer_type(element.bits), values.type.lanes)
        parts = builder.zext(tags, words), builder.bitcast(values, words)
        order = [lane + part * words.lanes for lane in range(words.lanes) for part in (0, 1)]
        builder.store(builder.shuffle_vector(*parts, order), self._slot(), element.bytes)
        self.take_many(count)

    def take_many(self, count: Value) -> None:
        """Remove so many tokens, which are there."""
        builder = self._context.builder
        builder.store(builder.add(self._own_counter(), count), self._counter)

    @property
    def _alignment(self) -> int:
        element = self.channel.stream.element
        return element.scalar.bytes if self.channel.stream.nesting else token_alignment(element)

    def _own_counter(self) -> Value:
        return self._context.builder.load(self._counter, I64)

    def _slot(self) -> Value:
        context, builder = self._context, self._context.builder
        position = builder.and_(self._own_counter(), self._mask)
        return offset_by(builder, self._first, context.scaled(position, self._token.stride))


# One function for all machines of one shape, which differ only in names and places in the arena.
#
# The copies of a loop's body that ``parallelize`` makes are such machines.  The function of a shape
# takes a table of the differences: offsets of sections, numbers of tensors, the number of the first
# fault. So the code of a graph grows with its shapes, not with its machines.

OF_A_NODE = frozenset(
    [
        "tensor",
        "extent",
        "ring",
        "heads",
        "tails",
        "span heads",
        "span tails",
        "data",
        "data heads",
        "data tails",
        "unfinished",
        "state",
        "trace",
        "memory",
        "register",
    ]
)
"""Kinds of sections that belong to a node, a channel or a tensor."""

NUMBER = "number"
"""Key of a tensor's position among those of the graph."""

FAULTS = "faults"
"""Key of the number of faults of earlier machines."""

_NOT_IN_CODE = frozenset({"location", "region"})


@dataclass(slots=True, kw_only=True)
class PlaceTable:
    """The table of the function being emitted; ``keys`` grows with its look-ups."""

    pointer: Value
    keys: list[Key]
    _values: dict[Key, Value] = field(default_factory=dict)

    def value(self, builder: Builder, key: Key) -> Value:
        """An entry, loaded at the entry of the function."""
        if key not in self._values:
            with builder.goto_entry_block():
                where = offset_by(builder, self.pointer, 8 * len(self.keys))
                self._values[key] = builder.load(where, I64)
            self.keys.append(key)
        return self._values[key]


def numbers_of(
    graph: Graph, layout: ValueLayout, keys: Sequence[Key], names: Mapping[str, str], faults: int
) -> list[int]:
    """The table of a machine for the keys that its function, written for another one, looks up."""
    tensors = {tensor.name: number for number, tensor in enumerate(graph.tensors)}
    numbers: list[int] = []
    for kind, *rest in keys:
        key = tuple(names.get(name, name) for name in rest)
        if kind == FAULTS:
            numbers.append(faults)
        elif kind == NUMBER:
            numbers.append(tensors[key[0]])
        else:
            numbers.append(layout.sections[kind, *key].offset)
    return numbers


def renamed(messages: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Messages with names replaced."""
    pattern = re.compile(r"(?<!\w)(" + "|".join(map(re.escape, names)) + r")(?!\w)")
    return [pattern.sub(lambda found: names[found[1]], message) for message in messages]

"""The testbench: memory, its contents, bandwidth and stalls, and what is counted.

It is for simulation only.  Settings are read from the command line (``+name=value``): every
latency, capacity and interval under the name of its port, ``+store_latency``, the memory's rate in
fractions of a byte (``+rate=`` and ``+unit=``), ``+seed=`` and ``+one_in=`` of pseudo-random
stalls, ``+max_cycles=``, and ``+quiet=``, after how many cycles without a firing nothing will ever
happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.base import DeviceTimes
from t2s.backends.text.expressions import (
    Binary,
    Do,
    If,
    Literal,
    Name,
    TargetExpression,
    TargetStatement,
    Ternary,
    call,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog.data_types import bits_of, signed_as, width_of
from t2s.backends.verilog.faults import FaultFinder, FaultNames
from t2s.backends.verilog.interfaces import Interface, SearchPort, StorePort
from t2s.backends.verilog.limits import Bounds
from t2s.backends.verilog.top import AccessNames, NodeNames, SearchNames, Top
from t2s.backends.verilog.verilog_ast import (
    BIT,
    FALSE,
    LONG,
    TRUE,
    WORD,
    AlwaysComb,
    AlwaysFF,
    Bits,
    Declaration,
    Element,
    FinalBlock,
    HardwareModule,
    Heading,
    InitialBlock,
    Instance,
    Item,
    Resize,
    Signal,
    UnrolledFor,
    both,
    either,
    element,
    negation,
    put,
    taken,
    variable,
)
from t2s.graph.graph import Tensor, TensorRole
from t2s.graph.nodes import Machine

P, AT, LANE = "p", "at", "lane"
ONE, ZERO = number(1), number(0)
LONG_ZERO = Literal(text="64'sd0")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbenchVariables:
    """Variables of the testbench itself."""

    cycle: str
    last_firing: str
    last_store: str
    quiet: str
    running: str
    ended: str


class Testbench:
    """Builds the module."""

    def __init__(self, top: Top, timing: DeviceTimes, bounds: Bounds) -> None:
        self.top, self.timing, self.bounds = top, timing, bounds
        fresh = top.identifiers.fresh
        self.settings: list[tuple[str, Bits, int]] = []
        self.option = {
            name: self._setting(fresh(name), LONG, value)
            for name, value in (
                ("store_latency", timing.store_latency),
                ("rate", 0 if timing.memory_rate is None else timing.memory_rate.numerator),
                ("unit", 1 if timing.memory_rate is None else timing.memory_rate.denominator),
                ("seed", 0),
                ("one_in", 0),
                ("max_cycles", 0),
                ("quiet", 100_000),
            )
        }
        for channel, names in top.channels:
            self._setting(names.latency, WORD, timing.channels[channel.name].latency)
            self._setting(names.capacity, WORD, timing.channels[channel.name].capacity)
        for interface, node in top.nodes:
            self._setting(node.interval, WORD, timing.intervals[interface.node.name])
        for parameter, text in zip(top.graph.parameters, top.parameters, strict=True):
            self._setting(text, bits_of(parameter.type), 0)
        self.memories = {
            tensor.name: fresh(f"memory_{tensor.name}") for tensor in top.graph.tensors
        }
        self.lengths = {
            tensor.name: fresh(f"{self.memories[tensor.name]}_length")
            for tensor in top.graph.tensors
            if tensor.open
        }
        for tensor in top.graph.tensors:
            if tensor.open and tensor.role is TensorRole.INPUT:
                self._setting(self.lengths[tensor.name], LONG, 0)
        self.counts = [
            tuple(fresh(f"{interface.node.name}_{what}") for what in ("firings", "first", "last"))
            for interface, _ in top.nodes
        ]
        self.own = TestbenchVariables(
            cycle=fresh("cycle"),
            last_firing=fresh("last_firing"),
            last_store=fresh("last_store"),
            quiet=fresh("quiet_cycles"),
            running=fresh("running"),
            ended=fresh("ended"),
        )
        self.arbiter = Arbiter(top, self.option, self.own.cycle)
        self.faults = FaultFinder(
            top=top,
            names=FaultNames(
                kind=fresh("fault"),
                node=fresh("fault_node"),
                place=fresh("fault_place"),
                tensor=fresh("fault_tensor"),
            ),
            lengths={tensor.name: self._length(tensor) for tensor in top.graph.tensors},
        )

    def _length(self, tensor: Tensor) -> TargetExpression:
        """The number of elements that may be touched."""
        if tensor.open and tensor.role is TensorRole.INPUT:
            return Name(name=self.lengths[tensor.name])
        return number(self.bounds.length(tensor))

    def _setting(self, name: str, type: Bits, value: int) -> str:
        self.settings.append((name, type, value))
        return name

    def build(self) -> HardwareModule:
        """The module."""
        return HardwareModule(
            name="testbench",
            about=(f"A testbench of {self.top.graph.name}: for simulation only.",),
            ports=(taken(port.CLOCK),),
            items=(
                *self._declarations(),
                self._design(),
                *MemoryModel(top=self.top, arrays=self.memories, growing=self._growing()).build(),
                *self.arbiter.build(),
                *self.faults.build(),
                *self._counting(),
                FinalBlock(body=self._report()),
            ),
        )

    # --------------------------------------------------------------------------- declarations

    def _declarations(self) -> list[Item]:
        top = self.top
        known = {name for name, _, _ in self.settings} | {port.CLOCK, port.RESET}
        items: list[Item] = [Declaration(variable=Signal(name=port.RESET, type=BIT, initial=TRUE))]
        items += [variable(name, type) for name, type, _ in self.settings]
        items += [
            Declaration(variable=p.variable) for p in top.ports if p.variable.name not in known
        ]
        own = self.own
        items += [variable(n, LONG) for n in (own.cycle, own.last_firing, own.last_store)]
        items += [variable(own.quiet, LONG), variable(own.running), variable(own.ended, WORD)]
        items += self.arbiter.declarations()
        for (interface, _), counts in zip(top.nodes, self.counts, strict=True):
            items += [variable(name, LONG, interface.node.place_count) for name in counts]
        items += [
            variable(self.memories[tensor.name], _element(tensor), self.bounds.length(tensor))
            for tensor in top.graph.tensors
        ]
        items += [variable(name, LONG) for name in self._growing().values()]
        return [*items, InitialBlock(body=self._start())]

    def _start(self) -> tuple[TargetStatement, ...]:
        body: list[TargetStatement] = []
        for name, type, value in self.settings:
            start = Literal(text=f"64'sd{value}") if type == LONG else number(value)
            body.append(put(name, start))
            form = "%h" if name in self.top.parameters else "%d"
            plusarg = call("$value$plusargs", Literal(text=f'"{name}={form}"'), Name(name=name))
            body.append(Do(call=call("void'", plusarg)))
        for tensor in self.top.graph.tensors:
            memory = self.memories[tensor.name]
            if tensor.role is TensorRole.INPUT:
                file = Literal(text=f'"{memory}.hex"')
                body.append(Do(call=call("$readmemh", file, Name(name=memory))))
            else:
                count = self.bounds.length(tensor)
                body.append(UnrolledFor(variable=AT, count=count, body=(put(_at(memory), ZERO),)))
        body += [put(name, ZERO) for name in self._growing().values()]
        return tuple(body)

    def _growing(self) -> dict[str, str]:
        """The lengths that follow from what is stored, by tensor."""
        return {
            tensor.name: self.lengths[tensor.name]
            for tensor in self.top.graph.tensors
            if tensor.open and tensor.role is not TensorRole.INPUT
        }

    def _design(self) -> Instance:
        names = [p.variable.name for p in self.top.ports]
        return Instance(
            module=self.top.module,
            name=self.top.identifiers.fresh("design"),
            connections=tuple((name, Name(name=name)) for name in names),
        )

    # ------------------------------------------------------------------------------- counting

    def _counting(self) -> list[Item]:
        own = self.own
        running: list[TargetStatement] = [put(own.running, FALSE)]
        for interface, names in self.top.nodes:
            if _is_endless(interface):
                continue
            unfinished = If(
                condition=negation(_of(names.finished)),
                then=(put(own.running, TRUE),),
            )
            running.append(
                UnrolledFor(variable=P, count=interface.node.place_count, body=(unfinished,))
            )
        return [
            Heading(text="what happens, and the end"),
            AlwaysComb(body=tuple(running)),
            AlwaysFF(
                body=(
                    If(
                        condition=Name(name=port.RESET),
                        then=self._first_cycle(),
                        otherwise=self._one_cycle(),
                    ),
                )
            ),
        ]

    def _first_cycle(self) -> tuple[TargetStatement, ...]:
        own = self.own
        zeros = (own.last_firing, own.last_store, own.quiet, own.ended)
        body = [_later(name, ZERO) for name in zeros]
        body += [_later(port.RESET, FALSE), _later(own.cycle, ONE)]
        loops: list[TargetStatement] = []
        for (interface, _), counts in zip(self.top.nodes, self.counts, strict=True):
            clear = tuple(put(_of(name), ZERO, clocked=True) for name in counts)
            loops.append(UnrolledFor(variable=P, count=interface.node.place_count, body=clear))
        return (*body, *loops)

    def _one_cycle(self) -> tuple[TargetStatement, ...]:
        own = self.own
        cycle = Name(name=own.cycle)
        body: list[TargetStatement] = [
            _later(own.cycle, Binary(operator="+", left=cycle, right=ONE)),
            _later(own.quiet, Binary(operator="+", left=Name(name=own.quiet), right=ONE)),
        ]
        for (interface, names), counts in zip(self.top.nodes, self.counts, strict=True):
            firings, first, last = counts
            none = Binary(operator="==", left=_of(firings), right=LONG_ZERO)
            more = Binary(operator="+", left=_of(firings), right=ONE)
            then: list[TargetStatement] = [
                put(_of(firings), more, clocked=True),
                put(_of(last), cycle, clocked=True),
                If(condition=none, then=(put(_of(first), cycle, clocked=True),)),
                _later(own.last_firing, cycle),
                _later(own.quiet, ZERO),
            ]
            timed = [
                _of(access.enable)
                for store, access in zip(interface.stores, names.stores, strict=True)
                if store.timed
            ]
            if timed:
                stored = either(*timed)
                then.append(If(condition=stored, then=(_later(own.last_store, cycle),)))
            fired = If(condition=_of(names.fires), then=tuple(then))
            body.append(UnrolledFor(variable=P, count=interface.node.place_count, body=(fired,)))
        limit, quiet = Name(name=self.option["max_cycles"]), Name(name=self.option["quiet"])
        over = both(
            Binary(operator="!=", left=limit, right=LONG_ZERO),
            Binary(operator=">", left=cycle, right=limit),
        )
        still = Binary(operator=">=", left=Name(name=own.quiet), right=quiet)
        done = negation(Name(name=own.running))
        if any(_is_endless(interface) for interface, _ in self.top.nodes):
            done = both(done, still)
        ends = If(
            condition=done,
            then=self._end(1),
            otherwise=(
                If(
                    condition=still,
                    then=self._end(2),
                    otherwise=(If(condition=over, then=self._end(3)),),
                ),
            ),
        )
        if self.faults.needed:
            failed = Binary(operator="!=", left=Name(name=self.faults.names.kind), right=ZERO)
            ends = If(condition=failed, then=self._fail(), otherwise=(ends,))
        return (*body, ends)

    def _fail(self) -> tuple[TargetStatement, ...]:
        names = (self.own.cycle, *self.faults.names.all)
        shown = _show("t2s fault %0d %0d %0d %0d %0d", *(Name(name=name) for name in names))
        return (shown, *self._end(4))

    def _end(self, how: int) -> tuple[TargetStatement, ...]:
        return (_later(self.own.ended, number(how)), Do(call=call("$finish")))

    def _report(self) -> tuple[TargetStatement, ...]:
        own = self.own
        stored, fired = Name(name=own.last_store), Name(name=own.last_firing)
        complete = Binary(operator="+", left=stored, right=Name(name=self.option["store_latency"]))
        after = both(
            Binary(operator="!=", left=stored, right=LONG_ZERO),
            Binary(operator=">", left=complete, right=fired),
        )
        cycles = Ternary(condition=after, if_true=complete, if_false=fired)
        body: list[TargetStatement] = [_show("t2s run %0d %0d", Name(name=own.ended), cycles)]
        for (interface, _), counts in zip(self.top.nodes, self.counts, strict=True):
            line = _show("t2s pe %0d %0d %0d", *(_of(name) for name in counts))
            body.append(UnrolledFor(variable=P, count=interface.node.place_count, body=(line,)))
        for channel, names in self.top.channels:
            line = _show("t2s held %0d", _at(names.held))
            body.append(UnrolledFor(variable=AT, count=channel.element_count, body=(line,)))
        for tensor in self.top.graph.tensors:
            if tensor.role is TensorRole.OUTPUT:
                body += self._written(tensor)
        return tuple(body)

    def _written(self, tensor: Tensor) -> tuple[TargetStatement, ...]:
        """The output in a file; if its length is known only now, so many elements."""
        memory = Name(name=self.memories[tensor.name])
        file = Literal(text=f'"{memory.name}.out"')
        if not tensor.open:
            return (Do(call=call("$writememh", file, memory)),)
        length = Name(name=self.lengths[tensor.name])
        last = Resize(bits=32, value=Binary(operator="-", left=length, right=ONE))
        some = Binary(operator=">", left=length, right=LONG_ZERO)
        write = Do(call=call("$writememh", file, memory, ZERO, last))
        return (_show("t2s length %0d", length), If(condition=some, then=(write,)))


def _is_endless(interface: port.Interface) -> bool:
    """Whether the node may wait for ever when all others have ended."""
    return isinstance(interface.node, Machine) and interface.node.endless


def _element(tensor: Tensor) -> Bits:
    return Bits(width=width_of(tensor.type))


def _of(name: str) -> TargetExpression:
    return element(name, Name(name=P))


def _at(name: str) -> TargetExpression:
    return element(name, Name(name=AT))


def _later(target: str | TargetExpression, value: TargetExpression) -> TargetStatement:
    return put(target, value, clocked=True)


def _show(form: str, *values: TargetExpression) -> TargetStatement:
    return Do(call=call("$display", Literal(text=f'"{form}"'), *values))


# Memory in the testbench: what it holds, and how it is read, written and searched.


@dataclass(frozen=True, kw_only=True)
class MemoryModel:
    """The part of a testbench that answers load and store units.

    ``arrays`` names the contents of each tensor, ``growing`` the number of elements of each tensor
    whose length follows from what is stored.
    """

    top: Top
    arrays: Mapping[str, str]
    growing: Mapping[str, str]

    def build(self) -> tuple[Item, ...]:
        """The items."""
        items: list[Item] = [Heading(text="memory: read at once, written at the end of the cycle")]
        writes: list[TargetStatement] = []
        for interface, names in self.top.nodes:
            count = interface.node.place_count
            for load, access in zip(interface.loads, names.loads, strict=True):
                memory = self.arrays[load.tensor.name]
                moves = _lanes(load.type, access, memory, reads=True)
                items.append(AlwaysComb(body=(UnrolledFor(variable=P, count=count, body=moves),)))
            for search, signals in zip(interface.searches, names.searches, strict=True):
                items += self._search(search, signals, count)
            for store, access in zip(interface.stores, names.stores, strict=True):
                moves = (*self._grow(store, access), *self._write(store, access))
                whether = both(
                    negation(Name(name=port.RESET)), _of(names.fires), _of(access.enable)
                )
                one = If(condition=whether, then=moves)
                writes.append(UnrolledFor(variable=P, count=count, body=(one,)))
        if writes:
            items.append(AlwaysFF(body=tuple(writes)))
        return tuple(items)

    def _write(self, store: StorePort, access: AccessNames) -> tuple[TargetStatement, ...]:
        return _lanes(store.type, access, self.arrays[store.tensor.name], reads=False)

    def _grow(self, store: StorePort, access: AccessNames) -> tuple[TargetStatement, ...]:
        """The tensor is at least as long as what is stored into it needs."""
        if store.tensor.name not in self.growing:
            return ()
        length = Name(name=self.growing[store.tensor.name])
        wide = call("$signed", Resize(bits=64, value=_of(access.address)))
        end = Binary(operator="+", left=wide, right=number(store.type.lanes))
        longer = Binary(operator=">", left=end, right=length)
        return (If(condition=longer, then=(put(length, end),)),)

    def _search(self, search: SearchPort, signals: SearchNames, count: int) -> list[Item]:
        """Halve what is left until there is one place: as many steps as a position has bits."""
        fresh = self.top.identifiers.fresh
        names = [fresh(f"{signals.found}_{what}") for what in ("low", "high", "middle")]
        low, high, middle = (Name(name=name) for name in names)
        memory, type = self.arrays[search.tensor.name], search.statement.value.type
        here = signed_as(element(memory, middle), type)
        smaller = Binary(operator="<", left=here, right=_of(signals.value))
        more = Binary(operator="<", left=call("$signed", low), right=call("$signed", high))
        half = Binary(
            operator="/", left=Binary(operator="-", left=high, right=low), right=number(2)
        )
        above = Binary(operator="+", left=middle, right=number(1))
        step = If(
            condition=more,
            then=(
                put(middle, Binary(operator="+", left=low, right=half)),
                If(condition=smaller, then=(put(low, above),), otherwise=(put(high, middle),)),
            ),
        )
        body = (
            put(low, _of(signals.begin)),
            put(high, _of(signals.end)),
            put(middle, number(0)),
            UnrolledFor(variable="step", count=32, body=(step,)),
            put(_of(signals.found), low),
        )
        loop = UnrolledFor(variable=P, count=count, body=body)
        return [*(variable(name, WORD) for name in names), AlwaysComb(body=(loop,))]


def _lanes(
    type: Bits, access: AccessNames, memory: str, *, reads: bool
) -> tuple[TargetStatement, ...]:
    """Move all lanes of PE ``p`` between memory and the port."""
    data, address = _of(access.data), _of(access.address)
    if type.lanes == 1:
        place: TargetExpression = element(memory, address)
        return (put(data, place) if reads else put(place, data, clocked=True),)
    where = Binary(operator="+", left=address, right=Name(name=LANE))
    place = element(memory, where)
    lane = Element(base=data, index=Name(name=LANE))
    move = put(lane, place) if reads else put(place, lane, clocked=True)
    return (UnrolledFor(variable=LANE, count=type.lanes, body=(move,)),)


# The bandwidth of memory in the testbench: who moves bytes when, and pseudo-random stalls.
#
# Units are served in the order in which they come.  A unit takes a turn, the next number, in the
# first cycle in which it is ready and not held up, unless memory serves it in that very cycle;
# units of one cycle come in the order of PEs.  Memory serves turns in order while there is credit,
# and a firing may overdraw it.

LONG_ONE = Literal(text="64'sd1")


@dataclass(frozen=True, slots=True, kw_only=True)
class _MemoryUnits:
    """The PEs of a node that accesses memory: names of variables with one element for each PE.

    ``turn`` is the turn that a PE has, 0 if it has none; ``joins`` says that it takes one in this
    cycle, ``taken`` which.
    """

    interface: Interface
    names: NodeNames
    first: int
    turn: str
    taken: str
    joins: str

    def each(self, *body: TargetStatement) -> UnrolledFor:
        """The statements for every PE ``p``."""
        return UnrolledFor(variable=P, count=self.interface.node.place_count, body=body)


class Arbiter:
    """Builds the items; ``option`` names the settings, ``cycle`` the present cycle."""

    def __init__(self, top: Top, option: Mapping[str, str], cycle: str) -> None:
        self.option, self.cycle = option, Name(name=cycle)
        self.rate = Name(name=option["rate"])
        fresh = top.identifiers.fresh
        self.credit, self.left = fresh("credit"), fresh("left")
        self.served, self.serving = fresh("served_turns"), fresh("serving_turns")
        self.given, self.giving = fresh("given_turns"), fresh("giving_turns")
        self.owed = fresh("owed")
        self.units: list[_MemoryUnits] = []
        first = 0
        for interface, names in top.nodes:
            if interface.memory:
                name = interface.node.name
                units = _MemoryUnits(
                    interface=interface,
                    names=names,
                    first=first,
                    turn=fresh(f"{name}_turn"),
                    taken=fresh(f"{name}_taken_turn"),
                    joins=fresh(f"{name}_joins"),
                )
                self.units.append(units)
            first += interface.node.place_count
        self.places = sum(units.interface.node.place_count for units in self.units)

    def declarations(self) -> list[Item]:
        """The variables; ``owed`` is a ring of the costs of the turns that wait."""
        if not self.units:
            return []
        names = (self.credit, self.left, self.served, self.serving, self.given, self.giving)
        items: list[Item] = [variable(name, LONG) for name in names]
        items.append(variable(self.owed, LONG, self.places))
        for units in self.units:
            count = units.interface.node.place_count
            items += [variable(units.turn, LONG, count), variable(units.taken, LONG, count)]
            items.append(variable(units.joins, BIT, count))
        return items

    def build(self) -> tuple[Item, ...]:
        """The items."""
        if not self.units:
            return ()
        return (
            Heading(text="bandwidth and stalls of memory: first come, first served"),
            AlwaysComb(body=self._grants()),
            AlwaysFF(
                body=(
                    If(
                        condition=Name(name=port.RESET),
                        then=self._first_cycle(),
                        otherwise=self._one_cycle(),
                    ),
                )
            ),
        )

    # --------------------------------------------------------------------------------- grants

    def _grants(self) -> tuple[TargetStatement, ...]:
        """Those who have waited, then those who come."""
        serving = Name(name=self.serving)
        waits = Binary(operator="<", left=serving, right=Name(name=self.given))
        next_turn = _plus(serving, LONG_ONE)
        serve = If(
            condition=both(waits, self._credit()),
            then=(self._pay(self._owed(next_turn)), put(self.serving, next_turn)),
        )
        return (
            put(self.left, Name(name=self.credit)),
            put(self.serving, Name(name=self.served)),
            put(self.giving, Name(name=self.given)),
            UnrolledFor(variable=AT, count=self.places, body=(serve,)),
            *(units.each(*self._one_grant(units)) for units in self.units),
        )

    def _one_grant(self, units: _MemoryUnits) -> tuple[TargetStatement, ...]:
        names = units.names
        granted, joins, turn = _of(names.granted), _of(units.joins), _of(units.turn)
        giving = Name(name=self.giving)
        free = either(
            Binary(operator="==", left=_of(names.moved), right=number(0)),
            Binary(operator="==", left=self.rate, right=LONG_ZERO),
        )
        served = Binary(operator="<=", left=turn, right=Name(name=self.serving))
        # whoever has waited is served before, so if credit is left nobody waits any more
        comes = If(
            condition=free,
            then=(put(granted, TRUE),),
            otherwise=(
                If(
                    condition=self._credit(),
                    then=(
                        put(granted, TRUE),
                        self._pay(self._cost(names)),
                    ),
                    otherwise=(
                        put(joins, TRUE),
                        put(self.giving, _plus(giving, LONG_ONE)),
                        put(_of(units.taken), giving),
                    ),
                ),
            ),
        )
        return (
            put(granted, FALSE),
            put(joins, FALSE),
            put(_of(units.taken), LONG_ZERO),
            If(
                condition=Binary(operator="!=", left=turn, right=LONG_ZERO),
                then=(put(granted, served),),
                otherwise=(
                    If(
                        condition=both(_of(names.ready), negation(self._held(units))),
                        then=(comes,),
                    ),
                ),
            ),
        )

    def _held(self, units: _MemoryUnits) -> TargetExpression:
        """Whether a pseudo-random stall holds PE ``p`` up."""
        place = Name(name=P)
        return call(
            "stalls::holds",
            Resize(bits=32, value=Name(name=self.option["seed"])),
            Resize(bits=32, value=Name(name=self.option["one_in"])),
            _plus(place, number(units.first)) if units.first else place,
            Resize(bits=32, value=self.cycle),
        )

    def _cost(self, names: NodeNames) -> TargetExpression:
        """Bytes of PE ``p``, in the unit of credit."""
        moved = call("$signed", Resize(bits=64, value=_of(names.moved)))
        return Binary(operator="*", left=moved, right=Name(name=self.option["unit"]))

    def _credit(self) -> TargetExpression:
        return Binary(operator=">", left=Name(name=self.left), right=LONG_ZERO)

    def _pay(self, cost: TargetExpression) -> TargetStatement:
        return put(self.left, Binary(operator="-", left=Name(name=self.left), right=cost))

    def _owed(self, turn: TargetExpression) -> TargetExpression:
        return element(self.owed, Binary(operator="%", left=turn, right=number(self.places)))

    # ---------------------------------------------------------------------------------- state

    def _first_cycle(self) -> tuple[TargetStatement, ...]:
        clear = [units.each(_later(_of(units.turn), LONG_ZERO)) for units in self.units]
        return (
            _later(Name(name=self.credit), self.rate),
            _later(Name(name=self.served), LONG_ZERO),
            _later(Name(name=self.given), LONG_ZERO),
            *clear,
        )

    def _one_cycle(self) -> tuple[TargetStatement, ...]:
        earned = _plus(Name(name=self.left), self.rate)
        credit = Ternary(condition=self._credit(), if_true=self.rate, if_false=earned)
        lines: list[TargetStatement] = []
        for units in self.units:
            turn, taken = _of(units.turn), _of(units.taken)
            join = (_later(turn, taken), _later(self._owed(taken), self._cost(units.names)))
            leave = If(condition=_of(units.names.granted), then=(_later(turn, LONG_ZERO),))
            lines.append(units.each(If(condition=_of(units.joins), then=join, otherwise=(leave,))))
        return (
            _later(Name(name=self.credit), credit),
            _later(Name(name=self.served), Name(name=self.serving)),
            _later(Name(name=self.given), Name(name=self.giving)),
            *lines,
        )


def _plus(left: TargetExpression, right: TargetExpression) -> TargetExpression:
    return Binary(operator="+", left=left, right=right)

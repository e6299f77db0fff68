"""The testbench: memory and its contents, bandwidth, stalls, and counters.

It is for simulation only.  Settings are read from the command line (``+name=value``): every
latency, capacity and interval under the name of its port, ``+store_latency``, the memory's rate in
fractions of a byte (``+rate=`` and ``+unit=``), ``+seed=`` and ``+one_in=`` of pseudo-random
stalls, ``+max_cycles=``, and ``+quiet=``, the number of cycles without a firing after which the
design is deadlocked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

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
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import bits_of, signed_as, width_of
from t2s.backends.verilog.faults import FaultFinder, FaultNames
from t2s.backends.verilog.interfaces import Interface, LoadPort, SearchPort, StorePort
from t2s.backends.verilog.limits import Bounds
from t2s.backends.verilog.top import AccessNames, NodeNames, SearchNames, Top
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
        self.settings: list[tuple[str, ast.Bits, int]] = []
        self.option = {
            name: self._setting(fresh(name), ast.LONG, value)
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
        if top.constants is None:
            for channel, names in top.channels:
                self._setting(names.latency, ast.WORD, timing.channels[channel.name].latency)
                self._setting(names.capacity, ast.WORD, timing.channels[channel.name].capacity)
            for interface, node in top.nodes:
                self._setting(node.interval, ast.WORD, timing.intervals[interface.node.name])
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
                self._setting(self.lengths[tensor.name], ast.LONG, 0)
        self.counts = [
            tuple(fresh(f"{interface.node.name}_{what}") for what in ("firings", "first", "last"))
            for interface, _ in top.nodes
        ]
        self.state = TestbenchVariables(
            cycle=fresh("cycle"),
            last_firing=fresh("last_firing"),
            last_store=fresh("last_store"),
            quiet=fresh("quiet_cycles"),
            running=fresh("running"),
            ended=fresh("ended"),
        )
        self.arbiter = Arbiter(top, self.option, self.state.cycle)
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
        """The number of elements that may be accessed."""
        if tensor.open and tensor.role is TensorRole.INPUT:
            return Name(name=self.lengths[tensor.name])
        return number(self.bounds.length(tensor))

    def _setting(self, name: str, type: ast.Bits, value: int) -> str:
        self.settings.append((name, type, value))
        return name

    def build(self) -> ast.HardwareModule:
        """The module."""
        return ast.HardwareModule(
            name="testbench",
            about=(f"A testbench of {self.top.graph.name}: for simulation only.",),
            ports=(ast.input_port(port.CLOCK),),
            items=(
                *self._declarations(),
                self._design(),
                *MemoryModel(top=self.top, arrays=self.memories, growing=self._growing()).build(),
                *self.arbiter.build(),
                *self.faults.build(),
                *self._counting(),
                ast.FinalBlock(body=self._report()),
            ),
        )

    # --------------------------------------------------------------------------- declarations

    def _declarations(self) -> list[ast.Item]:
        top = self.top
        known = {name for name, _, _ in self.settings} | {port.CLOCK, port.RESET}
        items: list[ast.Item] = [
            ast.Declaration(variable=ast.Signal(name=port.RESET, type=ast.BIT, initial=ast.TRUE))
        ]
        items += [ast.variable(name, type) for name, type, _ in self.settings]
        items += [
            ast.Declaration(variable=p.variable) for p in top.ports if p.variable.name not in known
        ]
        if top.constants is not None:
            items.append(ast.variable(top.done))
        state = self.state
        items += [
            ast.variable(n, ast.LONG) for n in (state.cycle, state.last_firing, state.last_store)
        ]
        items += [
            ast.variable(state.quiet, ast.LONG),
            ast.variable(state.running),
            ast.variable(state.ended, ast.WORD),
        ]
        items += self.arbiter.declarations()
        for (interface, _), counts in zip(top.nodes, self.counts, strict=True):
            items += [ast.variable(name, ast.LONG, interface.node.place_count) for name in counts]
        items += [
            ast.variable(self.memories[tensor.name], _element(tensor), self.bounds.length(tensor))
            for tensor in top.graph.tensors
        ]
        items += [ast.variable(name, ast.LONG) for name in self._growing().values()]
        return [*items, ast.InitialBlock(body=self._start())]

    def _start(self) -> tuple[TargetStatement, ...]:
        body: list[TargetStatement] = []
        for name, type, value in self.settings:
            start = Literal(text=f"64'sd{value}") if type == ast.LONG else number(value)
            body.append(ast.put(name, start))
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
                body.append(
                    ast.UnrolledFor(variable=AT, count=count, body=(ast.put(_at(memory), ZERO),))
                )
        body += [ast.put(name, ZERO) for name in self._growing().values()]
        return tuple(body)

    def _growing(self) -> dict[str, str]:
        """The variables of lengths that depend on what is stored, by tensor."""
        return {
            tensor.name: self.lengths[tensor.name]
            for tensor in self.top.graph.tensors
            if tensor.open and tensor.role is not TensorRole.INPUT
        }

    def _design(self) -> ast.Instance:
        top = self.top
        connections = [(p.variable.name, Name(name=p.variable.name)) for p in top.ports]
        design = ast.Instance(
            module=top.module,
            name=top.identifiers.fresh("design"),
            connections=tuple(connections),
        )
        if top.constants is None:
            return design
        starts = ((top.start, ast.TRUE), (top.done, Name(name=top.done)))
        return replace(design, module=top.chip, connections=(*connections, *starts))

    # ------------------------------------------------------------------------------- counting

    def _counting(self) -> list[ast.Item]:
        state = self.state
        running: list[TargetStatement] = [ast.put(state.running, ast.FALSE)]
        for interface, names in self.top.nodes:
            if _is_endless(interface):
                continue
            unfinished = If(
                condition=ast.negation(_of(names.finished)),
                then=(ast.put(state.running, ast.TRUE),),
            )
            running.append(
                ast.UnrolledFor(variable=P, count=interface.node.place_count, body=(unfinished,))
            )
        return [
            ast.Heading(text="what happens, and the end"),
            ast.AlwaysComb(body=tuple(running)),
            ast.AlwaysFF(
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
        state = self.state
        zeros = (state.last_firing, state.last_store, state.quiet, state.ended)
        body = [_later(name, ZERO) for name in zeros]
        body += [_later(port.RESET, ast.FALSE), _later(state.cycle, ONE)]
        loops: list[TargetStatement] = []
        for (interface, _), counts in zip(self.top.nodes, self.counts, strict=True):
            clear = tuple(ast.put(_of(name), ZERO, clocked=True) for name in counts)
            loops.append(ast.UnrolledFor(variable=P, count=interface.node.place_count, body=clear))
        return (*body, *loops)

    def _one_cycle(self) -> tuple[TargetStatement, ...]:
        state = self.state
        cycle = Name(name=state.cycle)
        body: list[TargetStatement] = [
            _later(state.cycle, Binary(operator="+", left=cycle, right=ONE)),
            _later(state.quiet, Binary(operator="+", left=Name(name=state.quiet), right=ONE)),
        ]
        for (interface, names), counts in zip(self.top.nodes, self.counts, strict=True):
            firings, first, last = counts
            none = Binary(operator="==", left=_of(firings), right=LONG_ZERO)
            more = Binary(operator="+", left=_of(firings), right=ONE)
            then: list[TargetStatement] = [
                ast.put(_of(firings), more, clocked=True),
                ast.put(_of(last), cycle, clocked=True),
                If(condition=none, then=(ast.put(_of(first), cycle, clocked=True),)),
                _later(state.last_firing, cycle),
                _later(state.quiet, ZERO),
            ]
            timed = [
                _of(access.enable)
                for store, access in zip(interface.stores, names.stores, strict=True)
                if store.timed and not interface.plan.chip
            ]
            if timed:
                stored = ast.either(*timed)
                then.append(If(condition=stored, then=(_later(state.last_store, cycle),)))
            fired = If(condition=_of(names.fires), then=tuple(then))
            body.append(
                ast.UnrolledFor(variable=P, count=interface.node.place_count, body=(fired,))
            )
        body += self._late_stores()
        limit, quiet = Name(name=self.option["max_cycles"]), Name(name=self.option["quiet"])
        over = ast.both(
            Binary(operator="!=", left=limit, right=LONG_ZERO),
            Binary(operator=">", left=cycle, right=limit),
        )
        still = Binary(operator=">=", left=Name(name=state.quiet), right=quiet)
        done = ast.negation(Name(name=state.running))
        if any(_is_endless(interface) for interface, _ in self.top.nodes):
            done = ast.both(done, still)
        elif self.top.constants is not None:
            done = ast.both(done, Name(name=self.top.done))
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

    def _stores_of_chips(self) -> list[tuple[int, str, int]]:
        """Stage, enable and number of PEs of the timed stores that say when they happen."""
        return [
            (store.stage, access.enable, interface.node.place_count)
            for interface, names in self.top.nodes
            for store, access in zip(interface.stores, names.stores, strict=True)
            if store.timed and interface.plan.chip
        ]

    def _late_stores(self) -> list[TargetStatement]:
        """The last firing that stores; of the stores of one cycle the latest firing comes last."""
        last, cycle = Name(name=self.state.last_store), Name(name=self.state.cycle)
        statements: list[TargetStatement] = []
        for stage, enable, count in sorted(self._stores_of_chips(), key=lambda s: -s[0]):
            fired = Binary(operator="-", left=cycle, right=number(stage)) if stage else cycle
            later = Binary(operator=">", left=fired, right=last)
            stored = If(condition=ast.both(_of(enable), later), then=(_later(last, fired),))
            statements.append(ast.UnrolledFor(variable=P, count=count, body=(stored,)))
        return statements

    def _fail(self) -> tuple[TargetStatement, ...]:
        names = (self.state.cycle, *self.faults.names.all)
        shown = _show("t2s fault %0d %0d %0d %0d %0d", *(Name(name=name) for name in names))
        return (shown, *self._end(4))

    def _end(self, how: int) -> tuple[TargetStatement, ...]:
        return (_later(self.state.ended, number(how)), Do(call=call("$finish")))

    def _report(self) -> tuple[TargetStatement, ...]:
        state = self.state
        stored, fired = Name(name=state.last_store), Name(name=state.last_firing)
        complete = Binary(operator="+", left=stored, right=Name(name=self.option["store_latency"]))
        after = ast.both(
            Binary(operator="!=", left=stored, right=LONG_ZERO),
            Binary(operator=">", left=complete, right=fired),
        )
        cycles = Ternary(condition=after, if_true=complete, if_false=fired)
        body: list[TargetStatement] = [_show("t2s run %0d %0d", Name(name=state.ended), cycles)]
        for (interface, _), counts in zip(self.top.nodes, self.counts, strict=True):
            line = _show("t2s pe %0d %0d %0d", *(_of(name) for name in counts))
            body.append(ast.UnrolledFor(variable=P, count=interface.node.place_count, body=(line,)))
        for channel, names in self.top.channels if self.top.constants is None else ():
            line = _show("t2s held %0d", _at(names.held))
            body.append(ast.UnrolledFor(variable=AT, count=channel.element_count, body=(line,)))
        for tensor in self.top.graph.tensors:
            if tensor.role is TensorRole.OUTPUT:
                body += self._written(tensor)
        return tuple(body)

    def _written(self, tensor: Tensor) -> tuple[TargetStatement, ...]:
        """Write an output to a file; an open tensor up to its final length."""
        memory = Name(name=self.memories[tensor.name])
        file = Literal(text=f'"{memory.name}.out"')
        if not tensor.open:
            return (Do(call=call("$writememh", file, memory)),)
        length = Name(name=self.lengths[tensor.name])
        last = ast.Resize(bits=32, value=Binary(operator="-", left=length, right=ONE))
        some = Binary(operator=">", left=length, right=LONG_ZERO)
        write = Do(call=call("$writememh", file, memory, ZERO, last))
        return (_show("t2s length %0d", length), If(condition=some, then=(write,)))


def _is_endless(interface: port.Interface) -> bool:
    """Whether the node may wait forever once all others have ended."""
    return isinstance(interface.node, Machine) and interface.node.endless


def _element(tensor: Tensor) -> ast.Bits:
    return ast.Bits(width=width_of(tensor.type))


def _of(name: str) -> TargetExpression:
    return ast.element(name, Name(name=P))


def _at(name: str) -> TargetExpression:
    return ast.element(name, Name(name=AT))


def _later(target: str | TargetExpression, value: TargetExpression) -> TargetStatement:
    return ast.put(target, value, clocked=True)


def _show(form: str, *values: TargetExpression) -> TargetStatement:
    return Do(call=call("$display", Literal(text=f'"{form}"'), *values))


# Memory in the testbench: contents, loads, stores and searches.


@dataclass(frozen=True, kw_only=True)
class MemoryModel:
    """The part of a testbench that serves load and store units.

    ``arrays`` names the content of each tensor, ``growing`` the length of each tensor whose length
    depends on what is stored.
    """

    top: Top
    arrays: Mapping[str, str]
    growing: Mapping[str, str]

    def build(self) -> tuple[ast.Item, ...]:
        """The items."""
        items: list[ast.Item] = [
            ast.Heading(text="memory: read at once, written at the end of the cycle")
        ]
        writes: list[TargetStatement] = []
        for interface, names in self.top.nodes:
            count = interface.node.place_count
            for load, access in zip(interface.loads, names.loads, strict=True):
                items += self._load(load, access, count)
            for search, signals in zip(interface.searches, names.searches, strict=True):
                items += self._search(search, signals, count)
            for store, access in zip(interface.stores, names.stores, strict=True):
                moves = (*self._grow(store, access), *self._write(store, access))
                fires = [] if interface.plan.chip else [_of(names.fires)]
                whether = ast.both(ast.negation(Name(name=port.RESET)), *fires, _of(access.enable))
                guarded = If(condition=whether, then=moves)
                writes.append(ast.UnrolledFor(variable=P, count=count, body=(guarded,)))
        if writes:
            items.append(ast.AlwaysFF(body=tuple(writes)))
        return tuple(items)

    def _load(self, load: LoadPort, access: AccessNames, count: int) -> list[ast.Item]:
        """What a load reads, and the registers through which it comes later."""
        fresh = self.top.identifiers.fresh
        names = [fresh(f"{access.data}_{cycle}") for cycle in range(load.stage)] + [access.data]
        now = replace(access, data=names[0])
        moves = _lanes(load.type, now, self.arrays[load.tensor.name], reads=True)
        items: list[ast.Item] = [ast.variable(name, load.type, count) for name in names[:-1]]
        items.append(ast.AlwaysComb(body=(ast.UnrolledFor(variable=P, count=count, body=moves),)))
        if load.stage:
            delays = tuple(
                ast.put(_of(after), _of(before), clocked=True) for before, after in pairwise(names)
            )
            loop = ast.UnrolledFor(variable=P, count=count, body=delays)
            items.append(ast.AlwaysFF(body=(loop,)))
        return items

    def _write(self, store: StorePort, access: AccessNames) -> tuple[TargetStatement, ...]:
        return _lanes(store.type, access, self.arrays[store.tensor.name], reads=False)

    def _grow(self, store: StorePort, access: AccessNames) -> tuple[TargetStatement, ...]:
        """Extend a tensor to the address of a store."""
        if store.tensor.name not in self.growing:
            return ()
        length = Name(name=self.growing[store.tensor.name])
        wide = call("$signed", ast.Resize(bits=64, value=_of(access.address)))
        end = Binary(operator="+", left=wide, right=number(store.type.lanes))
        longer = Binary(operator=">", left=end, right=length)
        return (If(condition=longer, then=(ast.put(length, end),)),)

    def _search(self, search: SearchPort, signals: SearchNames, count: int) -> list[ast.Item]:
        """Binary search: as many steps as a position has bits."""
        fresh = self.top.identifiers.fresh
        names = [fresh(f"{signals.found}_{what}") for what in ("low", "high", "middle")]
        low, high, middle = (Name(name=name) for name in names)
        memory, type = self.arrays[search.tensor.name], search.statement.value.type
        candidate = signed_as(ast.element(memory, middle), type)
        smaller = Binary(operator="<", left=candidate, right=_of(signals.value))
        more = Binary(operator="<", left=call("$signed", low), right=call("$signed", high))
        half = Binary(
            operator="/", left=Binary(operator="-", left=high, right=low), right=number(2)
        )
        above = Binary(operator="+", left=middle, right=number(1))
        step = If(
            condition=more,
            then=(
                ast.put(middle, Binary(operator="+", left=low, right=half)),
                If(
                    condition=smaller,
                    then=(ast.put(low, above),),
                    otherwise=(ast.put(high, middle),),
                ),
            ),
        )
        body = (
            ast.put(low, _of(signals.begin)),
            ast.put(high, _of(signals.end)),
            ast.put(middle, number(0)),
            ast.UnrolledFor(variable="step", count=32, body=(step,)),
            ast.put(_of(signals.found), low),
        )
        loop = ast.UnrolledFor(variable=P, count=count, body=body)
        return [*(ast.variable(name, ast.WORD) for name in names), ast.AlwaysComb(body=(loop,))]


def _lanes(
    type: ast.Bits, access: AccessNames, memory: str, *, reads: bool
) -> tuple[TargetStatement, ...]:
    """Move all lanes of PE ``p`` between memory and the port."""
    data, address = _of(access.data), _of(access.address)
    if type.lanes == 1:
        place: TargetExpression = ast.element(memory, address)
        return (ast.put(data, place) if reads else ast.put(place, data, clocked=True),)
    where = Binary(operator="+", left=address, right=Name(name=LANE))
    place = ast.element(memory, where)
    lane = ast.Element(base=data, index=Name(name=LANE))
    move = ast.put(lane, place) if reads else ast.put(place, lane, clocked=True)
    return (ast.UnrolledFor(variable=LANE, count=type.lanes, body=(move,)),)


# Memory bandwidth in the testbench, and pseudo-random stalls.
#
# Units are served in the order of their requests.  In the first cycle in which a unit is ready and
# not stalled, it takes a turn (the next number), unless memory serves it in the same cycle; units
# of one cycle are in the order of PEs.  Memory serves turns in order while there is credit, which a
# firing may overdraw.

LONG_ONE = Literal(text="64'sd1")


@dataclass(frozen=True, slots=True, kw_only=True)
class _MemoryUnits:
    """The PEs of a node that accesses memory: names of variables with one element for each PE.

    ``turn`` is the turn of a PE, 0 if it has none; ``joins`` says that it takes one in this cycle,
    ``taken`` which one.
    """

    interface: Interface
    names: NodeNames
    first: int
    turn: str
    taken: str
    joins: str

    def each(self, *body: TargetStatement) -> ast.UnrolledFor:
        """The statements for every PE ``p``."""
        return ast.UnrolledFor(variable=P, count=self.interface.node.place_count, body=body)


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

    def declarations(self) -> list[ast.Item]:
        """The variables; ``owed`` is a ring buffer of the costs of waiting turns."""
        if not self.units:
            return []
        names = (self.credit, self.left, self.served, self.serving, self.given, self.giving)
        items: list[ast.Item] = [ast.variable(name, ast.LONG) for name in names]
        items.append(ast.variable(self.owed, ast.LONG, self.places))
        for units in self.units:
            count = units.interface.node.place_count
            items += [
                ast.variable(units.turn, ast.LONG, count),
                ast.variable(units.taken, ast.LONG, count),
            ]
            items.append(ast.variable(units.joins, ast.BIT, count))
        return items

    def build(self) -> tuple[ast.Item, ...]:
        """The items."""
        if not self.units:
            return ()
        return (
            ast.Heading(text="bandwidth and stalls of memory: first come, first served"),
            ast.AlwaysComb(body=self._grants()),
            ast.AlwaysFF(
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
        """Grants: first to waiting units, then to new requests."""
        serving = Name(name=self.serving)
        waits = Binary(operator="<", left=serving, right=Name(name=self.given))
        next_turn = _plus(serving, LONG_ONE)
        serve = If(
            condition=ast.both(waits, self._credit()),
            then=(self._pay(self._owed(next_turn)), ast.put(self.serving, next_turn)),
        )
        return (
            ast.put(self.left, Name(name=self.credit)),
            ast.put(self.serving, Name(name=self.served)),
            ast.put(self.giving, Name(name=self.given)),
            ast.UnrolledFor(variable=AT, count=self.places, body=(serve,)),
            *(units.each(*self._one_grant(units)) for units in self.units),
        )

    def _one_grant(self, units: _MemoryUnits) -> tuple[TargetStatement, ...]:
        names = units.names
        granted, joins, turn = _of(names.granted), _of(units.joins), _of(units.turn)
        giving = Name(name=self.giving)
        free = ast.either(
            Binary(operator="==", left=_of(names.moved), right=number(0)),
            Binary(operator="==", left=self.rate, right=LONG_ZERO),
        )
        served = Binary(operator="<=", left=turn, right=Name(name=self.serving))
        # waiting units are served first, so remaining credit means that none waits
        comes = If(
            condition=free,
            then=(ast.put(granted, ast.TRUE),),
            otherwise=(
                If(
                    condition=self._credit(),
                    then=(
                        ast.put(granted, ast.TRUE),
                        self._pay(self._cost(names)),
                    ),
                    otherwise=(
                        ast.put(joins, ast.TRUE),
                        ast.put(self.giving, _plus(giving, LONG_ONE)),
                        ast.put(_of(units.taken), giving),
                    ),
                ),
            ),
        )
        return (
            ast.put(granted, ast.FALSE),
            ast.put(joins, ast.FALSE),
            ast.put(_of(units.taken), LONG_ZERO),
            If(
                condition=Binary(operator="!=", left=turn, right=LONG_ZERO),
                then=(ast.put(granted, served),),
                otherwise=(
                    If(
                        condition=ast.both(_of(names.ready), ast.negation(self._held(units))),
                        then=(comes,),
                    ),
                ),
            ),
        )

    def _held(self, units: _MemoryUnits) -> TargetExpression:
        """Whether a pseudo-random stall holds PE ``p``."""
        place = Name(name=P)
        return call(
            "stalls::holds",
            ast.Resize(bits=32, value=Name(name=self.option["seed"])),
            ast.Resize(bits=32, value=Name(name=self.option["one_in"])),
            _plus(place, number(units.first)) if units.first else place,
            ast.Resize(bits=32, value=self.cycle),
        )

    def _cost(self, names: NodeNames) -> TargetExpression:
        """The bytes of PE ``p``, in units of credit."""
        moved = call("$signed", ast.Resize(bits=64, value=_of(names.moved)))
        return Binary(operator="*", left=moved, right=Name(name=self.option["unit"]))

    def _credit(self) -> TargetExpression:
        return Binary(operator=">", left=Name(name=self.left), right=LONG_ZERO)

    def _pay(self, cost: TargetExpression) -> TargetStatement:
        return ast.put(self.left, Binary(operator="-", left=Name(name=self.left), right=cost))

    def _owed(self, turn: TargetExpression) -> TargetExpression:
        return ast.element(self.owed, Binary(operator="%", left=turn, right=number(self.places)))

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

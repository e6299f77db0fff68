"""The testbench: memory, its bandwidth and its stalls, and what is counted.

It is for simulation only.  Settings are read from the command line (``+name=value``): every
latency, capacity and interval under the name of its port, ``+store_latency``, the memory's rate in
fractions of a byte (``+rate=`` and ``+unit=``), ``+seed=`` and ``+one_in=`` of pseudo-random
stalls, ``+max_cycles=``, and ``+quiet=``, after how many cycles without a firing nothing will ever
happen.
"""

from __future__ import annotations

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
from t2s.backends.verilog.arbiter import Arbiter
from t2s.backends.verilog.data_types import bits_of, width_of
from t2s.backends.verilog.faults import FaultFinder, FaultNames
from t2s.backends.verilog.memory import MemoryModel
from t2s.backends.verilog.room import Bounds
from t2s.backends.verilog.top import Top
from t2s.backends.verilog.verilog_ast import (
    BIT,
    FALSE,
    LONG,
    TRUE,
    WORD,
    Bits,
    Clocked,
    Combinational,
    Declaration,
    Finally,
    HardwareModule,
    Heading,
    Initially,
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
class Own:
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
        self.own = Own(
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
                Finally(body=self._report()),
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
        return [*items, Initially(body=self._start())]

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
            Combinational(body=tuple(running)),
            Clocked(
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


def _later(name: str, value: TargetExpression) -> TargetStatement:
    return put(name, value, clocked=True)


def _show(form: str, *values: TargetExpression) -> TargetStatement:
    return Do(call=call("$display", Literal(text=f'"{form}"'), *values))

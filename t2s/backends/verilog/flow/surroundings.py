"""What is around a chip whatever its memories are: parameters and start, grants, and cycles.

All units are always granted, as memory with a port for each of them does, so the cycles are those
of a device whose bandwidth is no limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from t2s.backends.base import DeviceTimes
from t2s.backends.text.expressions import (
    Binary,
    Name,
    TargetExpression,
    Ternary,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import literal
from t2s.backends.verilog.interfaces import Interface, StorePort
from t2s.backends.verilog.reductions import depth_of, reduction
from t2s.backends.verilog.top import NodeNames, Top
from t2s.core.ops import Array

LIBRARY = ("drained.sv", "last_cycle.sv", "later_cycle.sv")
P = "p"


class Surroundings:
    """The chip of a design and what counts its cycles, as items of a module around it.

    ``reset`` is the signal that holds the chip, and ``cycles`` how long its run has taken, once
    ``over`` is 1.  The module around it declares these two.
    """

    def __init__(
        self,
        top: Top,
        times: DeviceTimes,
        parameters: Mapping[str, Array],
        *,
        reset: str,
        cycles: str,
    ) -> None:
        self.top, self.times, self.parameters = top, times, parameters
        self.reset, self.cycles = reset, cycles
        self._fresh = fresh = top.identifiers.fresh
        self._done, self.over = map(fresh, ("ended", "over"))
        self._cycle, self._fired, self._last_firing = map(fresh, ("cycle", "fired", "last_firing"))
        self._stores: list[tuple[StorePort, str]] = []

    def chip(self) -> Iterator[ast.Item]:
        """The signals of the chip, and the chip itself, which starts with the end of its reset."""
        for each in self.top.ports:
            if each.variable.name not in (port.CLOCK, port.RESET):
                yield ast.Declaration(variable=each.variable)
        yield ast.variable(self._done)
        yield ast.variable(self.over)
        yield ast.variable(self._cycle, ast.WORD)
        yield ast.variable(self._fired)
        yield ast.variable(self._last_firing, ast.WORD)
        values: dict[str, TargetExpression] = {
            name: literal(self.parameters[parameter.name].item(), parameter.type)
            for parameter, name in zip(self.top.graph.parameters, self.top.parameters, strict=True)
        }
        values[port.RESET] = Name(name=self.reset)
        ports = (each.variable.name for each in self.top.ports)
        yield ast.Instance(
            module=self.top.chip,
            name=self._fresh("chip"),
            connections=(
                *((name, values.get(name, Name(name=name))) for name in ports),
                (self.top.start, ast.TRUE),
                (self.top.done, Name(name=self._done)),
            ),
        )
        # results are compared, and their cycles counted, through registers of every store
        stores = sum(len(interface.stores) for interface, _ in self.top.nodes)
        yield ast.Instance(
            module="drained",
            name=self._fresh("drain"),
            parameters=(("CYCLES", number(4 * (2 + stores))),),
            connections=(
                (port.CLOCK, Name(name=port.CLOCK)),
                (port.RESET, Name(name=self.reset)),
                ("done", Name(name=self._done)),
                ("over", Name(name=self.over)),
            ),
        )

    def grants(self, interface: Interface, names: NodeNames) -> Iterator[ast.Item]:
        """All PEs of a node that accesses memory are always granted."""
        if interface.memory:
            grant = ast.put(of_place(names.granted), ast.TRUE)
            count = interface.node.place_count
            yield ast.AlwaysComb(body=(ast.UnrolledFor(variable=P, count=count, body=(grant,)),))

    def last_store(self, store: StorePort, enable: str, count: int) -> Iterator[ast.Item]:
        """A register with the cycle in which one of the PEs last stored something."""
        stored, last = self._fresh(f"{store.enable}_any"), self._fresh(f"{store.enable}_last")
        yield ast.variable(stored)
        yield ast.variable(last, ast.WORD)
        stores = [(enable, count)]
        yield from reduction(self._fresh, stored, stores, self.reset, every=False)
        yield self._last_cycle(last, stored, store.stage + depth_of(stores))
        self._stores.append((store, last))

    def counting(self) -> Iterator[ast.Item]:
        """``cycles``, behind the items of all stores: the last firing, or the end of a store."""
        yield ast.Heading(text="the cycle of the last firing, or of the end of the last store")
        reset, one = Name(name=self.reset), number(1)
        following = Binary(operator="+", left=Name(name=self._cycle), right=one)
        counted = Ternary(condition=reset, if_true=one, if_false=following)
        yield ast.AlwaysFF(body=(ast.put(self._cycle, counted, clocked=True),))
        fires = [(names.fires, interface.node.place_count) for interface, names in self.top.nodes]
        yield from reduction(self._fresh, self._fired, fires, self.reset, every=False)
        yield self._last_cycle(self._last_firing, self._fired, depth_of(fires))
        last = self._last_firing
        for store, stored in self._stores:
            later = self._fresh(f"{stored}_complete")
            yield ast.variable(later, ast.WORD)
            latency = self.times.store_latency if store.timed else 0
            yield ast.Instance(
                module="later_cycle",
                name=self._fresh(f"{later}_register"),
                parameters=(("LATENCY", number(latency)),),
                connections=(
                    (port.CLOCK, Name(name=port.CLOCK)),
                    ("firing", Name(name=last)),
                    ("store", Name(name=stored)),
                    ("later", Name(name=later)),
                ),
            )
            last = later
        yield ast.ContinuousAssignment(target=Name(name=self.cycles), value=Name(name=last))

    def _last_cycle(self, last: str, happens: str, before: int) -> ast.Instance:
        return ast.Instance(
            module="last_cycle",
            name=self._fresh(f"{last}_register"),
            parameters=(("BEFORE", number(before)),),
            connections=(
                (port.CLOCK, Name(name=port.CLOCK)),
                (port.RESET, Name(name=self.reset)),
                ("cycle", Name(name=self._cycle)),
                ("happens", Name(name=happens)),
                ("last", Name(name=last)),
            ),
        )


def of_place(name: str) -> TargetExpression:
    """The element of a signal in a loop over places."""
    return ast.element(name, Name(name=P))


def lane_of(word: ast.Element, lanes: int, lane: int) -> TargetExpression:
    """One of the lanes of a word; all of it if it has but one."""
    return word if lanes == 1 else ast.Element(base=word, index=number(lane))


def row_of(address: str, place: int, type: ast.Bits, shift: int) -> TargetExpression:
    """The address of a unit without its lowest bits, which choose a lane of a word."""
    whole = ast.element(address, place)
    if shift == 0:
        return whole
    if shift >= type.width:
        return ast.FALSE
    return ast.Slice(base=whole, high=type.width - 1, low=shift)

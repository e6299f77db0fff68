"""Memory in the testbench: what it holds, and how it is read, written and searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.text.expressions import (
    Binary,
    If,
    Name,
    TargetExpression,
    TargetStatement,
    call,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog.data_types import signed_as
from t2s.backends.verilog.interfaces import SearchPort, StorePort
from t2s.backends.verilog.top import AccessNames, SearchNames, Top
from t2s.backends.verilog.verilog_ast import (
    WORD,
    Bits,
    Clocked,
    Combinational,
    Element,
    Heading,
    Item,
    Resize,
    UnrolledFor,
    both,
    element,
    negation,
    put,
    variable,
)

P, LANE = "p", "lane"


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
                items.append(
                    Combinational(body=(UnrolledFor(variable=P, count=count, body=moves),))
                )
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
            items.append(Clocked(body=tuple(writes)))
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
        return [*(variable(name, WORD) for name in names), Combinational(body=(loop,))]


def _of(name: str) -> TargetExpression:
    return element(name, Name(name=P))


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

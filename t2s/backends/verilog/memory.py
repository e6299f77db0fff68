"""Memory in the testbench: what it holds, and how it is read and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog.top import AccessNames, Top
from t2s.backends.verilog.verilog_ast import (
    Binary,
    Bits,
    Clocked,
    Combinational,
    Element,
    Expression,
    For,
    If,
    Item,
    Literal,
    Name,
    Remark,
    Statement,
    both,
    element,
    negation,
    number,
    put,
)

P, LANE = "p", "lane"
ZERO = number(0)
LONG_ZERO = Literal(text="64'sd0")


@dataclass(frozen=True, kw_only=True)
class MemoryModel:
    """The part of a testbench that answers load and store units.

    ``arrays`` names the contents of each tensor.
    """

    top: Top
    arrays: Mapping[str, str]

    def build(self) -> tuple[Item, ...]:
        """The items."""
        items: list[Item] = [Remark(text="memory: read at once, written at the end of the cycle")]
        reads: list[Statement] = []
        writes: list[Statement] = []
        for interface, names in self.top.nodes:
            for load, access in zip(interface.loads, names.loads, strict=True):
                memory = self.arrays[load.tensor.name]
                moves = _lanes(load.type, access, memory, reads=True)
                reads.append(For(variable=P, count=interface.node.place_count, body=moves))
            for store, access in zip(interface.stores, names.stores, strict=True):
                memory = self.arrays[store.tensor.name]
                moves = _lanes(store.type, access, memory, reads=False)
                whether = both(
                    negation(Name(name=port.RESET)), _of(names.fires), _of(access.enable)
                )
                one = If(condition=whether, then=moves)
                writes.append(For(variable=P, count=interface.node.place_count, body=(one,)))
        if reads:
            items.append(Combinational(body=tuple(reads)))
        if writes:
            items.append(Clocked(body=tuple(writes)))
        return tuple(items)


def _of(name: str) -> Expression:
    return element(name, Name(name=P))


def _lanes(type: Bits, access: AccessNames, memory: str, *, reads: bool) -> tuple[Statement, ...]:
    """Move all lanes of PE ``p`` between memory and the port."""
    data, address = _of(access.data), _of(access.address)
    if type.lanes == 1:
        place: Expression = element(memory, address)
        return (put(data, place) if reads else put(place, data, clocked=True),)
    where = Binary(operator="+", left=address, right=Name(name=LANE))
    place = element(memory, where)
    lane = Element(base=data, index=Name(name=LANE))
    move = put(lane, place) if reads else put(place, lane, clocked=True)
    return (For(variable=LANE, count=type.lanes, body=(move,)),)

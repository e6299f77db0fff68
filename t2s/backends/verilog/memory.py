"""Memory in the testbench: what it holds, its bandwidth, and its pseudo-random stalls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog.interfaces import Interface
from t2s.backends.verilog.top import AccessNames, NodeNames, Top
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
    Resize,
    Statement,
    Ternary,
    both,
    call,
    either,
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

    ``arrays`` names the contents of each tensor, ``option`` the settings; ``cycle`` is the present
    cycle, ``credit`` what the bandwidth allows at its start, ``left`` at its end.
    """

    top: Top
    arrays: Mapping[str, str]
    option: Mapping[str, str]
    cycle: str
    credit: str
    left: str

    def build(self) -> tuple[Item, ...]:
        """The items."""
        return (*self._accesses(), *self._bandwidth())

    def _accesses(self) -> list[Item]:
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
        return items

    def _bandwidth(self) -> list[Item]:
        """Grants in the order of PEs, while there is credit; a PE may overdraw it."""
        left, credit = Name(name=self.left), Name(name=self.credit)
        rate = Name(name=self.option["rate"])
        grants: list[Statement] = [put(left, credit)]
        first = 0
        for interface, names in self.top.nodes:
            if interface.memory:
                grants.append(self._grants(interface, names, first))
            first += interface.node.place_count
        earned = Binary(operator="+", left=left, right=rate)
        full = Binary(operator=">", left=left, right=LONG_ZERO)
        next_credit = Ternary(condition=full, if_true=rate, if_false=earned)
        start = Ternary(condition=Name(name=port.RESET), if_true=rate, if_false=next_credit)
        return [
            Remark(text="bandwidth and stalls of memory"),
            Combinational(body=tuple(grants)),
            Clocked(body=(put(credit, start, clocked=True),)),
        ]

    def _grants(self, interface: Interface, names: NodeNames, first: int) -> Statement:
        left, rate = Name(name=self.left), Name(name=self.option["rate"])
        moved = _of(names.moved)
        number_of_pe = Binary(operator="+", left=Name(name=P), right=number(first))
        held = call(
            "stalls::holds",
            Resize(bits=32, value=Name(name=self.option["seed"])),
            Resize(bits=32, value=Name(name=self.option["one_in"])),
            number_of_pe if first else Name(name=P),
            Resize(bits=32, value=Name(name=self.cycle)),
        )
        served = either(
            Binary(operator="==", left=moved, right=ZERO),
            Binary(operator="==", left=rate, right=LONG_ZERO),
            Binary(operator=">", left=left, right=LONG_ZERO),
        )
        granted = _of(names.granted)
        cost = Binary(
            operator="*",
            left=call("$signed", Resize(bits=64, value=moved)),
            right=Name(name=self.option["unit"]),
        )
        pays = both(granted, Binary(operator="!=", left=rate, right=LONG_ZERO))
        paid = put(left, Binary(operator="-", left=left, right=cost))
        body: tuple[Statement, ...] = (
            put(granted, both(_of(names.ready), negation(held), served)),
            If(condition=pays, then=(paid,)),
        )
        return For(variable=P, count=interface.node.place_count, body=body)


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

"""The bandwidth of memory in the testbench: who moves bytes when, and pseudo-random stalls.

Units are served in the order in which they come.  A unit takes a turn, the next number, in the
first cycle in which it is ready and not held up, unless memory serves it in that very cycle; units
of one cycle come in the order of PEs.  Memory serves turns in order while there is credit, and a
firing may overdraw it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.text.expressions import (
    Binary,
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
from t2s.backends.verilog.interfaces import Interface
from t2s.backends.verilog.top import NodeNames, Top
from t2s.backends.verilog.verilog_ast import (
    BIT,
    FALSE,
    LONG,
    TRUE,
    Clocked,
    Combinational,
    Heading,
    Item,
    Resize,
    UnrolledFor,
    both,
    either,
    element,
    negation,
    put,
    variable,
)

P, AT = "p", "at"
LONG_ZERO, LONG_ONE = Literal(text="64'sd0"), Literal(text="64'sd1")


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
            Combinational(body=self._grants()),
            Clocked(
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


def _of(name: str) -> TargetExpression:
    return element(name, Name(name=P))


def _plus(left: TargetExpression, right: TargetExpression) -> TargetExpression:
    return Binary(operator="+", left=left, right=right)


def _later(target: TargetExpression, value: TargetExpression) -> TargetStatement:
    return put(target, value, clocked=True)

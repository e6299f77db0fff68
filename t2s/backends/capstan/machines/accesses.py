"""Reads and writes of memories on the chip, at addresses that follow from locals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from t2s.backends.capstan.machines.bodies import BodyUnit, FiringCase, PatternBody
from t2s.backends.capstan.machines.kit import Wire, put
from t2s.backends.capstan.machines.vectors import addresses, at_least, both, number, plus, zero
from t2s.core.expr import Expr, Local
from t2s.core.location import SourceLocation
from t2s.core.walk import walk
from t2s.graph.body import Load, Role, Store
from t2s.graph.graph import Tensor
from t2s.patterns.ir import ReadMemory, WriteMemory


def read(
    body: PatternBody,
    statements: Sequence[ReadMemory],
    tensor: Tensor,
    begin: Expr,
    ready: Sequence[str],
) -> dict[str, Wire]:
    """What some statements read in a memory, by their targets.

    Its word 0 is that at ``begin`` of the tensor, and it is complete when the locals ``ready`` are
    there.  A memory unit serves all of them in a cycle.
    """
    first = statements[0]
    unit = BodyUnit(body, f"read_{first.memory}", Role.LOAD, first.location)
    unit.wait(ready)
    times = body.draft.times
    type = tensor.type.with_lanes(body.lanes)
    loads: list[Load] = []
    puts, empty = [], []
    found: dict[str, Wire] = {}
    inside: Expr | None = None
    for statement in statements:
        index = unit.vector(_from(begin, statement.index))
        if body.lanes > 1:
            index = addresses(unit.valid, index)
        else:
            there = both(unit.valid, at_least(index, number(0)))
            inside = there if inside is None else both(inside, there)
        out = unit.output(statement.target, type, latency=times.hop + times.memory_access)
        name = unit.local("word")
        loads.append(Load(target=name, tensor=tensor.name, indices=(index,), type=type))
        puts.append(put(out, Local(name=name, type=type)))
        empty.append(put(out, zero(type)))
        found[statement.target] = out
    cases = [FiringCase(name="read", when=inside, body=tuple(loads), puts=tuple(puts))]
    if inside is not None:
        cases.append(FiringCase(name="nothing", puts=tuple(empty)))
    unit.at_each(cases)
    unit.finish()
    return found


def _from(begin: Expr, index: Expr) -> Expr:
    return index if begin == number(0) else plus(begin, index)


def varies(
    body: PatternBody,
    index: Expr,
    values: Mapping[str, Expr],
    allocated: Set[str],
    inside: PatternBody | None = None,
) -> bool:
    """Whether an index follows each of the loops around, as that of words written once does.

    Only loops ``inside`` of a body count, if there is one: it has the memory anew each time.
    ``values`` are those of the locals that are bound.  The ``allocated`` ones are those that an
    allocator answers: they follow all loops around it.
    """
    names = set(_needed(index, values))
    here: PatternBody | None = body
    while here is not None and here is not inside and here.around is not None:
        found = names & here.made
        if here.carry is None and not found:
            return False
        if found & allocated:
            return True
        here = here.around
    return True


def varies_in(body: PatternBody, index: Expr, values: Mapping[str, Expr]) -> bool:
    """Whether an index follows the loop of a body."""
    return bool(set(_needed(index, values)) & body.made)


def _needed(expr: Expr, values: Mapping[str, Expr]) -> Iterator[str]:
    """The locals that an expression needs, without those that are bound to others."""
    for term in walk(expr):
        if isinstance(term, Local):
            if term.name in values:
                yield from _needed(values[term.name], values)
            else:
                yield term.name


def writes(body: PatternBody, statement: WriteMemory, tensor: Tensor) -> Wire:
    """Store a value in each iteration; the wire of the one token that says that all are stored."""
    unit = BodyUnit(body, f"write_{statement.memory}", Role.STORE, statement.location)
    index, value = unit.vector(statement.index), unit.vector(statement.value)
    stored = unit.output(f"{statement.memory}_written")
    if body.lanes > 1:
        index = addresses(unit.valid, index)
    store = Store(tensor=tensor.name, indices=(index,), value=value)
    there = None if body.lanes > 1 else unit.valid
    cases = [FiringCase(name="write", when=there, body=(store,))]
    if there is not None:
        cases.append(FiringCase(name="nothing"))
    unit.at_each(cases, done=[put(stored)])
    unit.finish()
    return stored


def returned(body: PatternBody, name: str, tensor: Tensor, location: SourceLocation | None) -> None:
    """Hand a local of the whole program back to the host."""
    unit = BodyUnit(body, f"return_{name}", Role.STORE, location)
    value = unit.reads(name)
    store = Store(tensor=tensor.name, indices=(number(0),), value=value)
    unit.at_each([FiringCase(name="store", body=(store,))])
    unit.finish()

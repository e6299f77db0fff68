"""What the directives of a product say: parts, tiles, promises, before any matrix is known.

A directive that means nothing for such a product is refused at its own line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from t2s.core.errors import UnsupportedError
from t2s.sparse_repr.representation.definition import Definition, unsupported
from t2s.sparse_repr.representation.hardware.product import Part
from t2s.spatial.directive import (
    Directive,
    IsolateConsumer,
    IsolateProducer,
    Reorder,
    Tile,
    Unroll,
)
from t2s.spatial.schedule import ScheduledFunc
from t2s.spatial.sparse_directives import (
    BufferAll,
    CombineReduction,
    ContinuousReduction,
    DistinctReduction,
    IsolateReduction,
    LoadStructure,
    ReductionCircuit,
)


@dataclass
class Schedule:
    """What the directives of all Funcs of a product say."""

    definition: Definition
    parts: dict[str, Part] = field(default_factory=dict)
    structure: dict[str, Part] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    unrolled: dict[str, set[str]] = field(default_factory=dict)
    tiles: dict[str, tuple[str, str, int, Tile]] = field(default_factory=dict)
    combined: dict[str, CombineReduction] = field(default_factory=dict)
    promises: list[ContinuousReduction | DistinctReduction] = field(default_factory=list)
    circuit: ReductionCircuit | None = None
    banked: BufferAll | None = None
    loads: list[tuple[str, LoadStructure]] = field(default_factory=list)


PARTNERS = ("multiplier", "adder", "reduction")
"""Parts that compute: from each of them, what it takes can be isolated."""


def schedule_of(func: ScheduledFunc, definition: Definition) -> Schedule:
    """Interpret all directives, in the order in which they were written."""
    schedule = Schedule(definition=definition)
    schedule.roles[func.name] = "reduction"
    schedule.parts["reduction"] = Part(name=func.name, location=definition.location)
    funcs = {func.name: func}
    pending: list[ScheduledFunc] = [func]
    while pending:
        for other in pending.pop().isolated:
            funcs[other.name] = other
            pending.append(other)
    for name, directive in func.journal:
        _interpret(schedule, funcs[name], directive)
    return schedule


def _interpret(schedule: Schedule, func: ScheduledFunc, directive: Directive) -> None:
    role = schedule.roles.get(func.name)
    match directive:
        case IsolateProducer():
            _isolate_producer(schedule, role, directive)
        case IsolateConsumer(consumers=(consumer,)) if role == "reduction":
            _assign(schedule, consumer, "unloader", directive)
        case IsolateReduction(function=function) if role == "reduction":
            _assign(schedule, function, "adder", directive)
        case LoadStructure():
            schedule.loads.append((func.name, directive))
        case Unroll(loops=loops):
            schedule.unrolled.setdefault(func.name, set()).update(loops)
        case Tile(loops=(loop,), inners=(inner,), factors=(factor,)) if role in PARTNERS:
            schedule.tiles[func.name] = (loop, inner, factor, directive)
        case CombineReduction() if role in PARTNERS:
            schedule.combined[directive.loop] = directive
        case ContinuousReduction() | DistinctReduction():
            schedule.promises.append(directive)
        case ReductionCircuit() if role == "reduction":
            schedule.circuit = directive
        case BufferAll(operand=operand, banks=banks):
            wanted = {
                "feeder": schedule.definition.vector.name,
                "unloader": schedule.definition.func.name,
            }
            if role is None or wanted.get(role) != operand or (banks and role != "feeder"):
                _meaningless(directive, func)
            if banks:
                schedule.banked = directive
        case Reorder(loops=loops) if set(loops) <= _loops(schedule):
            pass  # machines are in space, so both orders are the same
        case _:
            _meaningless(directive, func)


def _loops(schedule: Schedule) -> set[str]:
    definition = schedule.definition
    return {definition.machine, definition.position}


def _meaningless(directive: Directive, func: ScheduledFunc) -> NoReturn:
    raise UnsupportedError(
        f"{directive.text} on {func.name} means nothing for a product of a sparse matrix",
        location=directive.location,
        expected="the directives that docs/representations.md lists for this part",
        given=directive.text,
    )


def _isolate_producer(schedule: Schedule, role: str | None, directive: IsolateProducer) -> None:
    definition, names = schedule.definition, directive.producers
    if directive.on_host or role not in PARTNERS:
        unsupported(
            directive.location,
            f"{directive.text} is not possible here",
            "isolation on the device, from a part that computes",
            directive.text,
        )
    if directive.operand == definition.matrix.values.name and len(names) == 1:
        _assign(schedule, names[0], "loader", directive)
    elif directive.operand == definition.vector.name and len(names) <= 2:
        _assign(schedule, names[0], "vector_loader", directive)
        if len(names) == 2:
            _assign(schedule, names[1], "feeder", directive)
    elif directive.target is not None and len(names) == 1:
        _assign(schedule, names[0], "multiplier", directive)
    else:
        unsupported(
            directive.location,
            f"{directive.text} isolates something else",
            f"{definition.matrix.name}.values, {definition.vector.name} (a chain of at most two),"
            " or the whole term",
            directive.text,
        )


def _assign(schedule: Schedule, name: str, role: str, directive: Directive) -> None:
    schedule.roles[name] = role
    schedule.parts[role] = Part(name=name, location=directive.location)

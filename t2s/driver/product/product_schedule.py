"""What the directives of a product say: parts, tiles, promises.

A directive that means nothing for such a product is refused at its own line; promises are checked
against the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NoReturn

from t2s.core.errors import UnsupportedError, UserError
from t2s.reduction.carry import interrupted_target, shared_target
from t2s.sparse_repr.representation.chain_layout import FibreJob, units_of
from t2s.sparse_repr.representation.chain_words import MatrixDimension
from t2s.sparse_repr.representation.hardware.product import NodeName
from t2s.sparse_repr.representation.inverse_map import Order
from t2s.sparse_repr.representation.product_definition import ProductDefinition, unsupported
from t2s.sparse_repr.representation.storage import Storage
from t2s.spatial.directive import Directive, IsolateConsumer, IsolateProducer
from t2s.spatial.directives.loops import Reorder, Tile, Unroll
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


class Duty(Enum):
    """What a Func of a product does, because of the directives that made it."""

    LOAD_MATRIX = auto()
    LOAD_VECTOR = auto()
    FEED_VECTOR = auto()
    MULTIPLY = auto()
    ADD = auto()
    REDUCE = auto()
    UNLOAD = auto()


@dataclass
class ProductSchedule:
    """What the directives of all Funcs of a product say."""

    definition: ProductDefinition
    parts: dict[Duty, NodeName] = field(default_factory=dict)
    structure: dict[str, NodeName] = field(default_factory=dict)
    duties: dict[str, Duty] = field(default_factory=dict)
    unrolled: dict[str, set[str]] = field(default_factory=dict)
    tiles: dict[str, Tile] = field(default_factory=dict)
    combined: dict[str, CombineReduction] = field(default_factory=dict)
    promises: list[ContinuousReduction | DistinctReduction] = field(default_factory=list)
    circuit: ReductionCircuit | None = None
    banked: BufferAll | None = None
    loads: list[tuple[str, LoadStructure]] = field(default_factory=list)


PARTNERS = (Duty.MULTIPLY, Duty.ADD, Duty.REDUCE)
"""Parts that compute: from each of them, what it takes can be isolated."""


def schedule_of(func: ScheduledFunc, definition: ProductDefinition) -> ProductSchedule:
    """Interpret all directives, in the order in which they were written."""
    schedule = ProductSchedule(definition=definition)
    schedule.duties[func.name] = Duty.REDUCE
    schedule.parts[Duty.REDUCE] = NodeName(name=func.name, location=definition.location)
    funcs = {func.name: func}
    pending: list[ScheduledFunc] = [func]
    while pending:
        for other in pending.pop().isolated:
            funcs[other.name] = other
            pending.append(other)
    for name, directive in func.journal:
        _interpret(schedule, funcs[name], directive)
    return schedule


def _interpret(schedule: ProductSchedule, func: ScheduledFunc, directive: Directive) -> None:
    duty = schedule.duties.get(func.name)
    match directive:
        case IsolateProducer():
            _isolate_producer(schedule, duty, directive)
        case IsolateConsumer(consumers=(consumer,)) if duty is Duty.REDUCE:
            _assign(schedule, consumer, Duty.UNLOAD, directive)
        case IsolateReduction(function=function) if duty is Duty.REDUCE:
            _assign(schedule, function, Duty.ADD, directive)
        case LoadStructure():
            schedule.loads.append((func.name, directive))
        case Unroll(loops=loops):
            schedule.unrolled.setdefault(func.name, set()).update(loops)
        case Tile(loops=(_,), inners=(_,), factors=(_,)) if duty in PARTNERS:
            schedule.tiles[func.name] = directive
        case CombineReduction() if duty in PARTNERS:
            schedule.combined[directive.loop] = directive
        case ContinuousReduction() | DistinctReduction():
            schedule.promises.append(directive)
        case ReductionCircuit() if duty is Duty.REDUCE:
            schedule.circuit = directive
        case BufferAll(operand=operand, banks=banks):
            wanted = {
                Duty.FEED_VECTOR: schedule.definition.vector.name,
                Duty.UNLOAD: schedule.definition.func.name,
            }
            if (
                duty is None
                or wanted.get(duty) != operand
                or (banks and duty is not Duty.FEED_VECTOR)
            ):
                _meaningless(directive, func)
            if banks:
                schedule.banked = directive
        case Reorder(loops=loops) if set(loops) <= _loops(schedule):
            pass  # machines are in space, so both orders are the same
        case _:
            _meaningless(directive, func)


def _loops(schedule: ProductSchedule) -> set[str]:
    definition = schedule.definition
    return {definition.machine, definition.position}


def _meaningless(directive: Directive, func: ScheduledFunc) -> NoReturn:
    raise UnsupportedError(
        f"{directive.text} on {func.name} means nothing for a product of a sparse matrix",
        location=directive.location,
        expected="the directives that docs/representations.md lists for this part",
        given=directive.text,
    )


def _isolate_producer(
    schedule: ProductSchedule, duty: Duty | None, directive: IsolateProducer
) -> None:
    definition, names = schedule.definition, directive.producers
    if directive.on_host or duty not in PARTNERS:
        unsupported(
            directive.location,
            f"{directive.text} is not possible here",
            "isolation on the device, from a part that computes",
            directive.text,
        )
    if directive.operand == definition.matrix.values.name and len(names) == 1:
        _assign(schedule, names[0], Duty.LOAD_MATRIX, directive)
    elif directive.operand == definition.vector.name and len(names) <= 2:
        _assign(schedule, names[0], Duty.LOAD_VECTOR, directive)
        if len(names) == 2:
            _assign(schedule, names[1], Duty.FEED_VECTOR, directive)
    elif directive.target is not None and len(names) == 1:
        _assign(schedule, names[0], Duty.MULTIPLY, directive)
    else:
        unsupported(
            directive.location,
            f"{directive.text} isolates something else",
            f"{definition.matrix.name}.values, {definition.vector.name} (a chain of at most two),"
            " or the whole term",
            directive.text,
        )


def _assign(schedule: ProductSchedule, name: str, duty: Duty, directive: Directive) -> None:
    schedule.duties[name] = duty
    schedule.parts[duty] = NodeName(name=name, location=directive.location)


def keep_promises(schedule: ProductSchedule, storage: Storage) -> tuple[bool, bool]:
    """Check promises against the matrix; whether reductions are distinct, and continuous.

    Distinct: no row is on two machines, with its padding.  Continuous: on every machine the values
    of a row follow one another; so it is where rows are the fibres and units have one row.  Where
    the chain does not say so it has to be promised: a design is for all matrices of some sizes.
    """
    definition = schedule.definition
    rows = storage.decode()[0] if schedule.promises else storage.values
    for promise in schedule.promises:
        if promise.loop != definition.machine:
            unsupported(
                promise.location,
                f"{promise.text} promises something about {promise.loop}",
                f"a promise about the machines, {definition.machine}",
                promise.loop,
            )
        if isinstance(promise, ContinuousReduction):
            broken = interrupted_target(rows)
            if broken is not None:
                raise UserError(
                    f"{promise.text} is not true for this matrix",
                    location=promise.location,
                    expected="the values of every row one after the other on a machine",
                    given=f"row {broken[1]} goes on after another row on machine {broken[0]}",
                )
        else:
            shared = shared_target(rows)
            if shared is not None:
                raise UserError(
                    f"{promise.text} is not true for this matrix",
                    location=promise.location,
                    expected="every row on one machine",
                    given=f"row {shared[2]} on machines {shared[0]} and {shared[1]}",
                    hint="schedule rows, or leave the promise out: sums of machines are then added",
                )
    mapping = definition.matrix.decoder
    units = units_of(storage.layout, storage.shape)
    by_rows = mapping.major is MatrixDimension.ROWS and units.factor(MatrixDimension.ROWS) == 1
    whole = by_rows and isinstance(mapping.job, FibreJob) and mapping.order is not Order.FREE
    promised = {type(promise) for promise in schedule.promises}
    apart = DistinctReduction in promised and not storage.layout.blocks
    return whole or apart, by_rows or ContinuousReduction in promised

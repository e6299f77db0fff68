"""The road from a product of a sparse matrix to its graph.

Like ``driver``, of which it is a part, it knows the directives of ``t2s.spatial`` and what
``t2s.sparse_repr`` builds from them: directives become the parts and numbers of a ``Product``.
A directive that means nothing for such a product is refused at its own line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import evaluate
from t2s.core.location import user_location
from t2s.func.collect import needed_funcs, output_funcs
from t2s.func.func import TemporalFunc
from t2s.graph.graph import Graph
from t2s.reduction.circuits import Circuit, LinearArray, Structure
from t2s.reduction.targets import Target, interrupted_target, shared_target
from t2s.sparse_repr.representation import parameter as sparse
from t2s.sparse_repr.representation.definition import Definition, definition_of, unsupported
from t2s.sparse_repr.representation.hardware.design import product_arrays, product_graph
from t2s.sparse_repr.representation.hardware.product import (
    MATRIX,
    VECTOR,
    Nodes,
    Operand,
    Part,
    Product,
)
from t2s.sparse_repr.representation.inverse_map import Order
from t2s.sparse_repr.representation.layout import BlockJob, FibreJob
from t2s.sparse_repr.representation.storage import Storage
from t2s.sparse_repr.representation.vocabulary import Dimension
from t2s.spatial.directives import (
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

LINE_BYTES = 64
"""Bytes of a line of memory: what a load or store unit moves in a cycle."""

Array = np.ndarray[Any, Any]


def is_sparse(design: object) -> bool:
    """Whether a design is a Func that reads a matrix in a representation."""
    if not isinstance(design, TemporalFunc):
        return False
    kinds = sparse.Values | sparse.Coordinate
    return any(isinstance(s, kinds) for w in design.written for s in w.symbols.values())


def refuse_sparse(design: object) -> None:
    """Raise ``UnsupportedError`` if a Func of a dense design reads a sparse matrix."""
    for func in needed_funcs(output_funcs(design)):
        if is_sparse(func):
            raise UnsupportedError(
                f"{func.name} is a product of a sparse matrix, which is a design of its own",
                location=func.written[-1].location,
                expected=f"{func.name} alone, to interpret, lower or simulate",
                given="a design of several Funcs, or a printout of its loops",
                hint="let the next design read the result of this one as an input",
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
        case BufferAll(operand=operand):
            wanted = {
                "feeder": schedule.definition.vector.name,
                "unloader": schedule.definition.func.name,
            }
            if role is None or wanted.get(role) != operand:
                _meaningless(directive, func)
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


def product_of(design: ScheduledFunc, matrix: object) -> Product:
    """The product that a Func computes for a matrix, with its directives, checked."""
    definition = definition_of(design)
    schedule = schedule_of(design, definition)
    storage = definition.matrix.store(matrix)
    mapping = definition.matrix.decoder
    _check_supported(definition, storage)
    block = _block(schedule)
    combined = _combined(schedule, mapping.machines)
    _check_structure(schedule)
    _check_unrolled(schedule)
    type = design.type.strengthened()
    circuit = schedule.circuit
    levels = circuit.levels if circuit is not None else _levels(type.bits if type.is_float else 0)
    structure: Structure = circuit.structure if circuit is not None else LinearArray
    location = circuit.location if circuit is not None else definition.location
    line = max(1, LINE_BYTES // max(type.bytes, definition.vector.type.bytes))
    width = definition.width
    rows, columns = storage.shape
    return Product(
        matrix=Operand(
            name=definition.matrix.name,
            type=definition.matrix.type,
            location=definition.matrix.location,
        ),
        vector=Operand(
            name=definition.vector.name,
            type=definition.vector.type,
            location=definition.vector.location,
        ),
        result=Operand(name=design.name, type=type, location=design.location),
        storage=storage,
        mapping=mapping,
        term=definition.term,
        width=width,
        flat=definition.side is None,
        block=block,
        fused=_fused(schedule, mapping.machines, combined),
        combined=combined,
        distinct=_keep_promises(schedule, storage) and not combined,
        circuit=Circuit(structure=structure, levels=levels, type=type, location=location),
        nodes=_nodes(schedule),
        structure_loaders=schedule.structure,
        words=min(line, max(1, width * max(rows, columns))),
        location=definition.location,
    )


def _levels(bits: int) -> int:
    """Levels that hide the latency of an addition on the devices that we know."""
    return 0 if not bits else 3 if bits == 64 else 2


def _check_supported(definition: Definition, storage: Storage) -> None:
    layout, chain = storage.layout, definition.matrix.chain
    job = layout.schedule.job if layout.schedule is not None else None
    reason = None
    if 0 in storage.shape:
        reason = f"a matrix of {storage.shape[0]} x {storage.shape[1]} elements"
    elif layout.skewed or layout.tiles:
        reason = "units of more than one value"
    elif layout.minor is None:
        reason = "a matrix that is not packed"
    elif layout.minor.dimension is not Dimension.COLUMNS:
        reason = "packed columns, whose values reach the rows in no order"
    elif layout.groups:
        reason = "blocks of rows"
    elif layout.fibre is not None and isinstance(job, BlockJob) and not layout.indexed_slots:
        reason = "rows without their own numbers in blocks"
    elif isinstance(job, FibreJob) and layout.indexed_slots and layout.blocks:
        reason = "rows with an index for each value in blocks"
    if reason is None:
        return
    raise UnsupportedError(
        f"{definition.func.name} needs hardware for {reason}, which is not there yet",
        location=definition.location,
        expected="pack(Columns, ...), block(Columns, ...) and a schedule of rows or blocks",
        given=repr(chain),
        notes=((definition.matrix.location, f"{definition.matrix.name} is declared here"),),
        hint="the arrays of this representation can be built, and decoded again, without hardware",
    )


def _block(schedule: Schedule) -> int:
    """Values that a machine handles in a step, from a tile of the positions."""
    definition = schedule.definition
    layout = definition.matrix.chain.layout
    for name, (loop, inner, factor, directive) in schedule.tiles.items():
        if loop != definition.position:
            continue
        if inner not in schedule.unrolled.get(name, set()):
            unsupported(
                directive.location,
                f"{directive.text} on {name} leaves {inner} in time",
                f"unroll({inner}): a multiplier for each",
                directive.text,
            )
        total = layout.schedule.job if layout.schedule is not None else None
        size = total.slots if isinstance(total, BlockJob) else layout.block_slots
        if size % factor:
            raise UserError(
                f"{directive.text} on {name}: a row may end inside of a block of {factor} values",
                location=directive.location,
                expected=f"a divisor of {size}, the values of a block of {definition.matrix.name}",
                given=str(factor),
                hint=f"block(Columns, {factor}, Zero, Length(b)) in the chain makes such blocks",
            )
        return factor
    return 1


def _combined(schedule: Schedule, machines: int) -> bool:
    """Whether machines are combined; checks all ``combine_reduction``."""
    definition = schedule.definition
    inner = {tile[1] for tile in schedule.tiles.values() if tile[0] == definition.position}
    found = False
    for loop, directive in schedule.combined.items():
        if loop in inner and directive.target is Target.SAME:
            continue  # the adder tree
        if loop == definition.machine and machines == 2 and not found:
            found = directive.target is Target.MAYBE_DIFFERENT
        if not found:
            unsupported(
                directive.location,
                f"{directive.text} is not possible here",
                f"SameTarget for the elements of a block, MaybeDifferentTarget for"
                f" {definition.machine} over two machines",
                f"{machines} machines",
            )
    return found


def _fused(schedule: Schedule, machines: int, combined: bool) -> int:
    """Lanes of one reduction circuit, from a tile of the machines."""
    definition = schedule.definition
    tile = schedule.tiles.get(definition.func.name)
    if tile is None or tile[0] != definition.machine:
        return 1
    _, inner, factor, directive = tile
    if machines % factor or combined:
        raise UserError(
            f"{directive.text} on {definition.func.name} does not divide the machines",
            location=directive.location,
            expected=f"a divisor of {machines}, without combining machines",
            given=str(factor),
        )
    if inner in schedule.unrolled.get(definition.func.name, set()):
        return 1
    return factor


def _check_structure(schedule: Schedule) -> None:
    """All parts of the structure that the decoder reads are loaded, and no others."""
    matrix = schedule.definition.matrix
    needed = matrix.decoder.streams()
    loaded: dict[str, LoadStructure] = {}
    for name, directive in schedule.loads:
        for part in directive.parts:
            if part not in needed:
                raise UserError(
                    f"{directive.text} on {name}: the inverse map of {matrix.name} does not use"
                    f" {part}",
                    location=directive.location,
                    expected=f"parts of {', '.join(needed)}",
                    given=part,
                )
            loaded[part] = directive
            if schedule.roles.get(name) != "loader":
                schedule.structure[part] = Part(name=name, location=directive.location)
    missing = [part for part in needed if part not in loaded]
    if loaded and missing:
        last = schedule.loads[-1][1]
        raise UserError(
            f"nothing loads {missing[0]}, which the inverse map of {matrix.name} needs",
            location=last.location,
            expected=f"load_structure({', '.join(needed)})",
            given=last.text,
        )


def _check_unrolled(schedule: Schedule) -> None:
    """Machines are hardware: where a part has directives, its loop over machines is in space."""
    definition = schedule.definition
    for role in ("loader", "multiplier"):
        part = schedule.parts.get(role)
        if part is None or definition.machine in schedule.unrolled.get(part.name, set()):
            continue
        if role == "multiplier" or "multiplier" not in schedule.parts:
            raise UserError(
                f"{part.name} is one unit for all machines",
                location=part.location,
                expected=f"{part.name}.unroll({definition.machine}): a unit for each machine",
                given=f"no unroll({definition.machine}) on {part.name}",
            )


def _keep_promises(schedule: Schedule, storage: Storage) -> bool:
    """Check promises against the matrix; whether no row is on two machines, with its padding."""
    definition = schedule.definition
    rows, _ = storage.decode()
    for promise in schedule.promises:
        if isinstance(promise, ContinuousReduction):
            broken = interrupted_target(rows)
            if broken is not None:
                raise UserError(
                    f"{promise.text} is not true for this matrix",
                    location=promise.location,
                    expected="the values of every row one after the other on a machine",
                    given=f"row {broken[1]} goes on after another row on machine {broken[0]}",
                )
        elif promise.loop == definition.machine:
            shared = shared_target(rows)
            if shared is not None:
                raise UserError(
                    f"{promise.text} is not true for this matrix",
                    location=promise.location,
                    expected="every row on one machine",
                    given=f"row {shared[2]} on machines {shared[0]} and {shared[1]}",
                    hint="schedule rows, or leave the promise out: sums of machines are then added",
                )
    order = definition.matrix.decoder.order
    whole = isinstance(definition.matrix.decoder.job, FibreJob)
    apart = not storage.layout.blocks and shared_target(rows) is None
    return (whole and order is not Order.FREE) or apart


def _nodes(schedule: Schedule) -> Nodes:
    """Parts by their names; those that were not isolated get names of their own."""
    definition, parts = schedule.definition, schedule.parts
    result, matrix, vector = definition.func.name, definition.matrix.name, definition.vector.name
    here = definition.location

    def part(role: str, name: str) -> Part:
        return parts.get(role, Part(name=name, location=here))

    return Nodes(
        matrix_loader=part("loader", f"{matrix}_loader"),
        vector_loader=part("vector_loader", f"{vector}_loader"),
        vector_feeder=part("feeder", f"{vector}_feeder"),
        multiplier=part("multiplier", f"{result}_multiplier"),
        adder=part("adder", f"{result}_adder"),
        combiner=part("combiner", f"{result}_combiner"),
        decoder=Part(name=f"{matrix}_decoder", location=here),
        reduction=parts["reduction"],
        unloader=part("unloader", f"{result}_unloader"),
    )


def split_inputs(design: ScheduledFunc, inputs: Mapping[str, Any]) -> tuple[object, dict[str, Any]]:
    """The matrix, and the other inputs."""
    name = definition_of(design).matrix.name
    if name not in inputs:
        raise UserError(
            f"the matrix {name} is missing",
            location=user_location(),
            expected=f"an input named {name}: a scipy.sparse matrix, an array or a Storage",
            given=", ".join(sorted(inputs)) or "no inputs",
        )
    return inputs[name], {key: value for key, value in inputs.items() if key != name}


def lower_product(design: ScheduledFunc, matrix: object) -> tuple[Graph, dict[str, Array]]:
    """The graph for a matrix, and the arrays of the matrix that it takes."""
    product = product_of(design, matrix)
    return product_graph(product), product_arrays(product)


def interpret_product(design: ScheduledFunc, inputs: Mapping[str, Any]) -> Array:
    """The product with numpy, value by value in the order of the matrix."""
    definition = definition_of(design)
    matrix, others = split_inputs(design, inputs)
    entries = definition.matrix.store(matrix).coordinates()
    dense = np.asarray(others[definition.vector.name])
    values = entries.values if definition.side is None else entries.values[:, None]
    with np.errstate(all="ignore"):
        terms = evaluate(definition.term, {MATRIX: values, VECTOR: dense[entries.columns]})
        shape = (entries.shape[0], *dense.shape[1:])
        result = np.zeros(shape, design.type.strengthened().numpy)
        np.add.at(result, entries.rows, terms)
    return result

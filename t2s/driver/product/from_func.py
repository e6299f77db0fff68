"""From a Func and a matrix to a ``Product``, its graph, and its value by numpy.

Directives determine parts and tiles; sizes of the hardware follow from them and from the
representation of the matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, NoReturn

import numpy as np

from t2s.core.arrays import ArraySpec, check_inputs
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import evaluate
from t2s.core.location import user_location
from t2s.core.names import NameSupply
from t2s.core.types import Type
from t2s.func.func import ImageParam
from t2s.graph.graph import Graph, ScalarParameter
from t2s.reduction.carry import Target, interrupted_target, shared_target
from t2s.reduction.circuits import Circuit, LinearArray
from t2s.sparse_repr.representation import parameter as sparse
from t2s.sparse_repr.representation.chain_layout import (
    BlockJob,
    FiberJob,
    MatrixDimension,
    units_of,
)
from t2s.sparse_repr.representation.hardware.product import (
    MATRIX,
    VECTOR,
    NodeName,
    Nodes,
    Product,
    ProductOperand,
    ResultStart,
)
from t2s.sparse_repr.representation.hardware.product_graph import product_arrays, product_graph
from t2s.sparse_repr.representation.inverse_map import Order
from t2s.sparse_repr.representation.product_definition import (
    ProductDefinition,
    definition_of,
    environment_of,
    extents_of,
    start_values,
    unsupported,
)
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

Array = np.ndarray[Any, Any]

LINE_BYTES = 64
"""Bytes of a line of memory: what a load or store unit moves in a cycle."""


def split_inputs(design: ScheduledFunc, inputs: Mapping[str, Any]) -> tuple[object, dict[str, Any]]:
    """Split inputs into the matrix and all others."""
    name = definition_of(design).matrix.name
    if name not in inputs:
        raise UserError(
            f"the matrix {name} is missing",
            location=user_location(),
            expected=f"an input named {name}: a scipy.sparse matrix, an array or a Storage",
            given=", ".join(sorted(inputs)) or "no inputs",
        )
    return inputs[name], {key: value for key, value in inputs.items() if key != name}


def product_of(design: ScheduledFunc, matrix: object) -> Product:
    """The product that a Func computes for a matrix, with its directives, checked."""
    definition = definition_of(design)
    schedule = schedule_of(design, definition)
    storage = definition.matrix.store(matrix)
    mapping = definition.matrix.decoder
    distinct, continuous = keep_promises(schedule, storage)
    block, rows_at_once = block_of(schedule, storage, continuous)
    check_size(definition, mapping.machines, block)
    combined = combined_of(schedule, mapping.machines, continuous)
    check_structure(schedule)
    check_unrolled(schedule)
    type = design.type.strengthened()
    known = (*schedule.parts.values(), *schedule.structure.values())
    names = NameSupply(part.name for part in known)
    line = max(1, LINE_BYTES // max(type.bytes, definition.vector.type.bytes))
    width = definition.width
    rows, columns = storage.shape
    return Product(
        matrix=_operand(definition.matrix),
        vector=_operand(definition.vector),
        result=ProductOperand(name=design.name, type=type, location=design.location),
        storage=storage,
        mapping=mapping,
        term=definition.sized(definition.term, storage),
        start=_origin(definition, storage, names),
        scalars=tuple(
            ScalarParameter(name=each.name, type=each.type, location=each.location)
            for each in definition.scalars
        ),
        width=width,
        flat=definition.side is None,
        block=block,
        rows_at_once=rows_at_once,
        fused=fused_of(schedule, mapping.machines, combined, continuous),
        combined=combined,
        distinct=distinct and not combined,
        continuous=continuous,
        circuit=_circuit(schedule, type),
        nodes=_nodes(schedule, names),
        origin=(
            repr(definition.matrix.chain),
            *sorted({promise.text for promise in schedule.promises}),
        ),
        structure_loaders=schedule.structure,
        words=min(line, max(1, width * max(rows, columns))),
        banks=banks_of(schedule, mapping.machines, block),
        location=definition.location,
    )


def _operand(symbol: sparse.MatrixParam | ImageParam) -> ProductOperand:
    return ProductOperand(name=symbol.name, type=symbol.type, location=symbol.location)


def _circuit(schedule: ProductSchedule, type: Type) -> Circuit:
    """The requested reduction circuit, or one that hides the latency of an addition.

    The default is sized for the slowest known device; integers need no circuit.
    """
    circuit = schedule.circuit
    if circuit is not None:
        structure, levels, location = circuit.structure, circuit.levels, circuit.location
        return Circuit(structure=structure, levels=levels, type=type, location=location)
    levels = 0 if not type.is_float else 3 if type.bits == 64 else 2
    location = schedule.definition.location
    return Circuit(structure=LinearArray, levels=levels, type=type, location=location)


def _origin(
    definition: ProductDefinition, storage: Storage, names: NameSupply
) -> ResultStart | None:
    """The start value with the sizes of a matrix, and names for its loaders."""
    if definition.start is None:
        return None
    value = definition.sized(definition.start.value, storage)
    start = replace(definition.start, value=value)
    rows, width = storage.shape[0], definition.width
    return ResultStart(
        value=value,
        row=start.row,
        side=start.side,
        operands=tuple(map(_operand, start.operands.values())),
        shapes=extents_of(start, rows, width),
        padded=extents_of(start, max(1, rows), width),
        loaders={read: names.fresh(f"{read.source}_start_loader") for read in start.reads},
        location=start.location,
    )


def _nodes(schedule: ProductSchedule, names: NameSupply) -> Nodes:
    """The parts by name; parts that are not isolated get unique names."""
    definition, parts = schedule.definition, schedule.parts
    result, matrix, vector = definition.func.name, definition.matrix.name, definition.vector.name
    location = definition.location

    def part(duty: Duty | None, name: str) -> NodeName:
        part_func = parts.get(duty) if duty is not None else None
        return part_func or NodeName(name=names.fresh(name), location=location)

    return Nodes(
        matrix_loader=part(Duty.LOAD_MATRIX, f"{matrix}_loader"),
        vector_loader=part(Duty.LOAD_VECTOR, f"{vector}_loader"),
        vector_feeder=part(Duty.FEED_VECTOR, f"{vector}_feeder"),
        multiplier=part(Duty.MULTIPLY, f"{result}_multiplier"),
        adder=part(Duty.ADD, f"{result}_adder"),
        combiner=part(None, f"{result}_combiner"),
        decoder=part(None, f"{matrix}_decoder"),
        reduction=parts[Duty.REDUCE],
        unloader=part(Duty.UNLOAD, f"{result}_unloader"),
    )


def lower_product(design: ScheduledFunc, matrix: object) -> tuple[Graph, dict[str, Array]]:
    """The graph for a matrix, and the arrays of the matrix that it takes."""
    return parts_of(product_of(design, matrix))


def parts_of(product: Product) -> tuple[Graph, dict[str, Array]]:
    """The graph of a product, and the arrays of the matrix that it takes."""
    return product_graph(product), product_arrays(product)


def bytes_moved(product: Product) -> int:
    """Bytes of the matrix, its structure, the operand and the result, each moved once."""
    arrays = sum(array.nbytes for array in product_arrays(product).values())
    rows, columns = product.storage.shape
    operand, result = product.vector.type.bytes, product.result.type.bytes
    for read in product.start.loaders if product.start is not None else ():
        arrays += product.width * rows * read.type.bytes
    return arrays + product.width * (columns * operand + rows * result)


def interpret_product(design: ScheduledFunc, inputs: Mapping[str, Any]) -> Array:
    """Compute the product with numpy, value by value in storage order.

    Stored zeros, for example in dense blocks, are multiplied like all other values.
    """
    definition = definition_of(design)
    matrix, others = split_inputs(design, inputs)
    storage, vector = definition.matrix.store(matrix), definition.vector
    sides = () if definition.side is None else (definition.width,)
    shape = (storage.shape[0], *sides)
    origin = _origin(definition, storage, NameSupply())
    read = dict(origin.shapes) if origin is not None else {}
    own = (storage.shape[1], *sides)
    known = read.get(vector.name, own)
    read[vector.name] = tuple(max(pair) for pair in zip(own, known, strict=True))
    operands = {vector.name: vector, **(definition.start.operands if definition.start else {})}
    specs = [
        *(ArraySpec(name=name, type=each.type, shape=read[name], location=each.location)
          for name, each in operands.items()),
        *(ArraySpec(name=each.name, type=each.type, shape=(), location=each.location)
          for each in definition.scalars),
    ]  # fmt: skip
    arrays = check_inputs(specs, others)
    scalars = {each.name: arrays[each.name] for each in definition.scalars}
    dense = arrays[vector.name]
    rows, columns = storage.decode()
    entries = np.flatnonzero(rows >= 0)
    entries = entries[np.lexsort((columns.flat[entries], rows.flat[entries]))]
    values = storage.values.flat[entries] if not sides else storage.values.flat[entries][:, None]
    elements = (
        dense[columns.flat[entries]][..., : definition.width]
        if sides
        else dense[columns.flat[entries]]
    )
    term = definition.sized(definition.term, storage)
    result = np.zeros(shape, design.type.strengthened().numpy)
    with np.errstate(all="ignore"):
        terms = evaluate(*environment_of(term, {MATRIX: values, VECTOR: elements}, scalars))
        if origin is not None and definition.start is not None:
            start = replace(definition.start, value=origin.value)
            result[...] = start_values(start, shape, arrays, scalars)
        np.add.at(result, rows.flat[entries], terms)
    return result


# The directives of a product: parts, tiles, promises.
#
# A directive that does not apply to products is refused at its own line; promises are checked
# against the matrix.


class Duty(Enum):
    """The duty of a Func of a product, given by the directive that created it."""

    LOAD_MATRIX = auto()
    LOAD_VECTOR = auto()
    FEED_VECTOR = auto()
    MULTIPLY = auto()
    ADD = auto()
    REDUCE = auto()
    UNLOAD = auto()


@dataclass
class ProductSchedule:
    """The combined directives of all Funcs of a product."""

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
"""Compute parts: the operands of each can be isolated."""


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
            specs = {
                Duty.FEED_VECTOR: schedule.definition.vector.name,
                Duty.UNLOAD: schedule.definition.func.name,
            }
            if (
                duty is None
                or specs.get(duty) != operand
                or (banks and duty is not Duty.FEED_VECTOR)
            ):
                _meaningless(directive, func)
            if banks:
                schedule.banked = directive
        case Reorder(loops=loops) if set(loops) <= _loops(schedule):
            pass  # machines are in space, so the order of the two loops does not matter
        case _:
            _meaningless(directive, func)


def _loops(schedule: ProductSchedule) -> set[str]:
    definition = schedule.definition
    return {definition.machine, definition.position}


def _meaningless(directive: Directive, func: ScheduledFunc) -> NoReturn:
    raise UnsupportedError(
        f"{directive.text} on {func.name} does not apply to a product of a sparse matrix",
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
    """Check promises against the matrix; returns whether reductions are distinct, and continuous.

    Distinct: no row, including its padding, is on two machines.  Continuous: on every machine the
    values of a row are consecutive, as they are if fibers are rows and units have one row.  Any
    other chain needs a promise, because a design serves all matrices of its sizes.
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
                    expected="consecutive values of every row on a machine",
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
    whole = by_rows and isinstance(mapping.job, FiberJob) and mapping.order is not Order.FREE
    promised = {type(promise) for promise in schedule.promises}
    apart = DistinctReduction in promised and not storage.layout.blocks
    return whole or apart, by_rows or ContinuousReduction in promised


# The size of the hardware: blocks of a step, fused lanes, units of machines and of structure.

MOST_MULTIPLIERS = 256
"""The most multipliers of a design: each is a unit with many incoming channels."""


def check_size(definition: ProductDefinition, machines: int, block: int) -> None:
    """Refuse designs that are too large to build."""
    if machines * block > MOST_MULTIPLIERS:
        scheduling = definition.matrix.chain.layout.schedule
        assert scheduling is not None
        each = f" of {block} multipliers each" if block > 1 else ""
        unsupported(
            scheduling.location,
            f"{definition.func.name} has too many multipliers",
            f"at most {MOST_MULTIPLIERS} of all machines together",
            f"{machines} machines{each}",
        )


MOST_WAYS = 1024
"""The most multipliers times banks: every step passes all banks."""


def banks_of(schedule: ProductSchedule, machines: int, block: int) -> int:
    """Banks of the dense operand; 0 means a copy for each multiplier."""
    directive = schedule.banked
    if directive is None:
        return 0
    definition = schedule.definition
    if definition.side is not None:
        unsupported(
            directive.location,
            f"{directive.text} is not possible for several right-hand sides",
            f"a product of one vector, or buffer({directive.operand})",
            f"{definition.width} right-hand sides",
        )
    if machines * block * directive.banks > MOST_WAYS:
        unsupported(
            directive.location,
            f"{directive.text} has too many banks for its multipliers",
            f"at most {MOST_WAYS // (machines * block)} banks",
            f"{machines * block} multipliers",
        )
    return directive.banks


def block_of(schedule: ProductSchedule, storage: Storage, continuous: bool) -> tuple[int, int]:
    """The values that a machine handles in a step, and their rows, from a tile of the positions."""
    definition = schedule.definition
    for name, directive in schedule.tiles.items():
        (loop,), (inner,), (factor,) = directive.loops, directive.inners, directive.factors
        if loop != definition.position:
            continue
        if inner not in schedule.unrolled.get(name, set()):
            unsupported(
                directive.location,
                f"{directive.text} on {name} leaves {inner} in time",
                f"unroll({inner}): a multiplier for each",
                directive.text,
            )
        if storage.layout.rows_of_values:
            values, rows, where = _slots_of_a_job(storage), 1, ", Length(b)) in the chain"
        else:
            values, rows = _rows_of_a_unit(storage)
            rows, where = 1 if continuous else rows, ") before pack"
        at_once = max(1, factor // values)
        if values % factor and not (factor == values * at_once and rows % at_once == 0):
            several = f", or {values} for each of a divisor of {rows} rows" if rows > 1 else ""
            raise UserError(
                f"{directive.text} on {name}: a row may end inside of a block of {factor} values",
                location=directive.location,
                expected=f"a divisor of {values}, the values of a block of"
                f" {definition.matrix.name}{several}",
                given=str(factor),
                hint=f"block(Columns, {factor}, Zero{where} makes such blocks",
            )
        return factor, at_once
    return 1, 1


def _slots_of_a_job(storage: Storage) -> int:
    """The number of values of a row that are guaranteed to be consecutive."""
    layout = storage.layout
    job = layout.schedule.job if layout.schedule is not None else None
    return job.slots if isinstance(job, BlockJob) else layout.block_slots


def _rows_of_a_unit(storage: Storage) -> tuple[int, int]:
    """The consecutive values of a row in a unit, and the number of such adjacent rows."""
    values = 1
    for digit in reversed(units_of(storage.layout, storage.shape).digits):
        if digit.dimension is MatrixDimension.ROWS and digit.extent > 1:
            return values, digit.extent if digit.stride == 1 else 1
        values *= digit.extent
    return values, 1


def combined_of(schedule: ProductSchedule, machines: int, continuous: bool) -> bool:
    """Whether machines are combined; checks all ``combine_reduction``."""
    definition = schedule.definition
    inner = {
        tile.inners[0] for tile in schedule.tiles.values() if tile.loops[0] == definition.position
    }
    combined = False
    for loop, directive in schedule.combined.items():
        if loop in inner and directive.target is Target.SAME:
            continue  # the adder tree
        if loop == definition.machine and not continuous:
            _needs_continuous(schedule, directive)
        if loop == definition.machine and machines == 2 and not combined:
            combined = directive.target is Target.MAYBE_DIFFERENT
        if not combined:
            unsupported(
                directive.location,
                f"{directive.text} is not possible here",
                f"SameTarget for the elements of a block, MaybeDifferentTarget for"
                f" {definition.machine} over two machines",
                f"{machines} machines",
            )
    return combined


def _needs_continuous(schedule: ProductSchedule, directive: Directive) -> NoReturn:
    """Refuse sharing between machines whose values are not grouped by row: only final sums can
    be added.
    """
    definition = schedule.definition
    unsupported(
        directive.location,
        f"{directive.text} on {definition.func.name} needs consecutive values of each row",
        "a chain of rows, or is_continuous_reduction where the matrix allows it",
        repr(definition.matrix.chain),
    )


def fused_of(schedule: ProductSchedule, machines: int, combined: bool, continuous: bool) -> int:
    """Lanes of one reduction circuit, from a tile of the machines."""
    definition = schedule.definition
    directive = schedule.tiles.get(definition.func.name)
    if directive is None or directive.loops[0] != definition.machine:
        return 1
    (inner,), (factor,) = directive.inners, directive.factors
    if machines % factor or combined:
        raise UserError(
            f"{directive.text} on {definition.func.name} does not divide the machines",
            location=directive.location,
            expected=f"a divisor of {machines}, without combining machines",
            given=str(factor),
        )
    if inner in schedule.unrolled.get(definition.func.name, set()):
        return 1
    if not continuous:
        _needs_continuous(schedule, directive)
    return factor


def check_structure(schedule: ProductSchedule) -> None:
    """Check that exactly the parts of the structure that the decoder reads are loaded."""
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
            if schedule.duties.get(name) is not Duty.LOAD_MATRIX:
                schedule.structure[part] = NodeName(name=name, location=directive.location)
    missing = [part for part in needed if part not in loaded]
    if loaded and missing:
        last = schedule.loads[-1][1]
        raise UserError(
            f"nothing loads {missing[0]}, which the inverse map of {matrix.name} needs",
            location=last.location,
            expected=f"load_structure({', '.join(needed)})",
            given=last.text,
        )


def check_unrolled(schedule: ProductSchedule) -> None:
    """Check that the loop over machines of a part with directives is in space: machines are
    hardware.
    """
    definition = schedule.definition
    for duty in (Duty.LOAD_MATRIX, Duty.MULTIPLY):
        part = schedule.parts.get(duty)
        if part is None or definition.machine in schedule.unrolled.get(part.name, set()):
            continue
        if duty is Duty.MULTIPLY or Duty.MULTIPLY not in schedule.parts:
            raise UserError(
                f"{part.name} is one unit for all machines",
                location=part.location,
                expected=f"{part.name}.unroll({definition.machine}): a unit for each machine",
                given=f"no unroll({definition.machine}) on {part.name}",
            )

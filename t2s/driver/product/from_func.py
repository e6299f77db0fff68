"""From a Func and a matrix to the ``Product``, to its graph, and to numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from t2s.core.arrays import ArraySpec, check_inputs
from t2s.core.errors import UserError
from t2s.core.expr import evaluate
from t2s.core.location import user_location
from t2s.core.names import NameSupply
from t2s.core.types import Type
from t2s.driver.product.product_schedule import Duty, ProductSchedule, keep_promises, schedule_of
from t2s.driver.product.sizes import (
    banks_of,
    block_of,
    check_size,
    check_structure,
    check_unrolled,
    combined_of,
    fused_of,
)
from t2s.func.symbols import ImageParam
from t2s.graph.graph import Graph, ScalarParameter
from t2s.reduction.circuits import Circuit, LinearArray
from t2s.sparse_repr.representation import parameter as sparse
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
from t2s.sparse_repr.representation.product_definition import ProductDefinition, definition_of
from t2s.sparse_repr.representation.start_value import environment_of, extents_of, start_values
from t2s.sparse_repr.representation.storage import Storage
from t2s.spatial.schedule import ScheduledFunc

Array = np.ndarray[Any, Any]

LINE_BYTES = 64
"""Bytes of a line of memory: what a load or store unit moves in a cycle."""


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


def _operand(symbol: sparse.Parameter | ImageParam) -> ProductOperand:
    return ProductOperand(name=symbol.name, type=symbol.type, location=symbol.location)


def _circuit(schedule: ProductSchedule, type: Type) -> Circuit:
    """The reduction circuit that is asked for, or one that hides the latency of an addition.

    That is on the devices that we know; integers have none.
    """
    wanted = schedule.circuit
    if wanted is not None:
        structure, levels, location = wanted.structure, wanted.levels, wanted.location
        return Circuit(structure=structure, levels=levels, type=type, location=location)
    levels = 0 if not type.is_float else 3 if type.bits == 64 else 2
    location = schedule.definition.location
    return Circuit(structure=LinearArray, levels=levels, type=type, location=location)


def _origin(
    definition: ProductDefinition, storage: Storage, names: NameSupply
) -> ResultStart | None:
    """The start value for the sizes of a matrix, with names of its loaders."""
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
    """Parts by their names; those that were not isolated get names of their own."""
    definition, parts = schedule.definition, schedule.parts
    result, matrix, vector = definition.func.name, definition.matrix.name, definition.vector.name
    here = definition.location

    def part(duty: Duty | None, name: str) -> NodeName:
        made = parts.get(duty) if duty is not None else None
        return made or NodeName(name=names.fresh(name), location=here)

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
    """Bytes of the matrix, its structure, the operand and the result: each is moved once."""
    arrays = sum(array.nbytes for array in product_arrays(product).values())
    rows, columns = product.storage.shape
    operand, result = product.vector.type.bytes, product.result.type.bytes
    for read in product.start.loaders if product.start is not None else ():
        arrays += product.width * rows * read.type.bytes
    return arrays + product.width * (columns * operand + rows * result)


def interpret_product(design: ScheduledFunc, inputs: Mapping[str, Any]) -> Array:
    """The product with numpy, value by value in the order of the matrix.

    Zeros that are stored, in dense blocks for instance, are multiplied as all other values.
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
    given = check_inputs(specs, others)
    scalars = {each.name: given[each.name] for each in definition.scalars}
    dense = given[vector.name]
    rows, columns = storage.decode()
    kept = np.flatnonzero(rows >= 0)
    kept = kept[np.lexsort((columns.flat[kept], rows.flat[kept]))]
    values = storage.values.flat[kept] if not sides else storage.values.flat[kept][:, None]
    elements = (
        dense[columns.flat[kept]][..., : definition.width] if sides else dense[columns.flat[kept]]
    )
    term = definition.sized(definition.term, storage)
    result = np.zeros(shape, design.type.strengthened().numpy)
    with np.errstate(all="ignore"):
        terms = evaluate(*environment_of(term, {MATRIX: values, VECTOR: elements}, scalars))
        if origin is not None and definition.start is not None:
            start = replace(definition.start, value=origin.value)
            result[...] = start_values(start, shape, given, scalars)
        np.add.at(result, rows.flat[kept], terms)
    return result

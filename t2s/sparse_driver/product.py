"""From a Func and a matrix to the ``Product``, to its graph, and to numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from t2s.core.arrays import ArraySpec, check_inputs
from t2s.core.expr import evaluate
from t2s.core.names import NameSupply
from t2s.graph.graph import Graph
from t2s.reduction.circuits import Circuit, LinearArray, Structure
from t2s.sparse_driver.designs import split_inputs
from t2s.sparse_driver.directives import Schedule, schedule_of
from t2s.sparse_driver.promises import keep_promises
from t2s.sparse_driver.shape import (
    banks_of,
    block_of,
    check_size,
    check_structure,
    check_unrolled,
    combined_of,
    fused_of,
)
from t2s.sparse_repr.representation.definition import definition_of
from t2s.sparse_repr.representation.hardware.design import product_arrays, product_graph
from t2s.sparse_repr.representation.hardware.product import (
    MATRIX,
    VECTOR,
    Nodes,
    Operand,
    Part,
    Product,
)
from t2s.spatial.schedule import ScheduledFunc

Array = np.ndarray[Any, Any]


LINE_BYTES = 64
"""Bytes of a line of memory: what a load or store unit moves in a cycle."""


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
        rows_at_once=rows_at_once,
        fused=fused_of(schedule, mapping.machines, combined, continuous),
        combined=combined,
        distinct=distinct and not combined,
        continuous=continuous,
        circuit=Circuit(structure=structure, levels=levels, type=type, location=location),
        nodes=_nodes(schedule),
        structure_loaders=schedule.structure,
        words=min(line, max(1, width * max(rows, columns))),
        banks=banks_of(schedule, mapping.machines, block),
        location=definition.location,
    )


def _levels(bits: int) -> int:
    """Levels that hide the latency of an addition on the devices that we know."""
    return 0 if not bits else 3 if bits == 64 else 2


def _nodes(schedule: Schedule) -> Nodes:
    """Parts by their names; those that were not isolated get names of their own."""
    definition, parts = schedule.definition, schedule.parts
    result, matrix, vector = definition.func.name, definition.matrix.name, definition.vector.name
    here = definition.location
    names = NameSupply(known.name for known in (*parts.values(), *schedule.structure.values()))

    def part(role: str, name: str) -> Part:
        return parts[role] if role in parts else Part(name=names.fresh(name), location=here)

    return Nodes(
        matrix_loader=part("loader", f"{matrix}_loader"),
        vector_loader=part("vector_loader", f"{vector}_loader"),
        vector_feeder=part("feeder", f"{vector}_feeder"),
        multiplier=part("multiplier", f"{result}_multiplier"),
        adder=part("adder", f"{result}_adder"),
        combiner=part("combiner", f"{result}_combiner"),
        decoder=part("decoder", f"{matrix}_decoder"),
        reduction=parts["reduction"],
        unloader=part("unloader", f"{result}_unloader"),
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
    return arrays + product.width * (columns * operand + rows * result)


def interpret_product(design: ScheduledFunc, inputs: Mapping[str, Any]) -> Array:
    """The product with numpy, value by value in the order of the matrix.

    Zeros that are stored, in dense blocks for instance, are multiplied as all other values.
    """
    definition = definition_of(design)
    matrix, others = split_inputs(design, inputs)
    storage, vector = definition.matrix.store(matrix), definition.vector
    sides = () if definition.side is None else (definition.width,)
    shape = (storage.shape[1], *sides)
    spec = ArraySpec(name=vector.name, type=vector.type, shape=shape, location=vector.location)
    dense = check_inputs((spec,), others)[vector.name]
    rows, columns = storage.decode()
    kept = np.flatnonzero(rows >= 0)
    kept = kept[np.lexsort((columns.flat[kept], rows.flat[kept]))]
    values = storage.values.flat[kept] if not sides else storage.values.flat[kept][:, None]
    with np.errstate(all="ignore"):
        terms = evaluate(definition.term, {MATRIX: values, VECTOR: dense[columns.flat[kept]]})
        result = np.zeros((storage.shape[0], *sides), design.type.strengthened().numpy)
        np.add.at(result, rows.flat[kept], terms)
    return result

"""The complete graph of a product, and its input arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from t2s.core.arrays import made_array
from t2s.core.expr import Index, Local
from t2s.core.names import NameSupply
from t2s.core.types import INT32
from t2s.core.walk import Term, distinct, rewrite
from t2s.graph.body import Let, Load, Receive, Register, RegisterRead, RegisterWrite, SpaceDimension
from t2s.graph.build import GraphParts
from t2s.graph.graph import Graph, ScalarParameter
from t2s.graph.nodes import Head, Loop
from t2s.reduction.circuits import reduce_lanes
from t2s.sparse_repr.representation.hardware.banks import load_banks, look_up
from t2s.sparse_repr.representation.hardware.decoders import decode_coordinates, decode_fibers
from t2s.sparse_repr.representation.hardware.loaders import (
    feed_vector,
    load_slots,
    load_vector,
    relay_to_feeders,
)
from t2s.sparse_repr.representation.hardware.multiply import (
    both_lanes,
    combine,
    lanes_of,
    multiply,
)
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.result_buffer import scatter, unload

Array = np.ndarray[Any, Any]


def product_graph(product: Product) -> Graph:
    """The graph of a product, with nodes in the order of the data flow."""
    parts, nodes = GraphParts(), product.nodes
    # first, because memory serves simultaneous requests in the order of nodes
    lines = load_vector(parts, product)
    into = load_banks if product.banks else relay_to_feeders
    words = into(parts, product, lines)
    load_slots(
        parts, product, product.values_name, product.matrix.type, nodes.matrix_loader.name,
        nodes.multiplier.name, product.values_wire,
    )  # fmt: skip
    if product.direct:
        unit = product.mapping.unit
        assert unit is not None
        load_slots(
            parts, product, product.stream_name(unit), INT32, f"{nodes.matrix_loader.name}_{unit}",
            product.place_taker, product.places_wire,
        )  # fmt: skip
    find = look_up if product.banks else feed_vector
    find(parts, product, words)
    if product.direct:
        decode_fibers(parts, product, product.rows_node, product.row_wires)
    else:
        decode_coordinates(parts, product)
    if product.continuous:
        _reduce(parts, product)
    else:  # rows are not grouped, so each machine keeps a memory of sums
        multiply(parts, product, nodes.reduction.name, 1)
        scatter(parts, product)
    graph = parts.graph(product.result.name, product.location)
    return with_scalars(graph, product.scalars)


def _reduce(parts: GraphParts, product: Product) -> None:
    """Rows are grouped: a reduction circuit for each lane."""
    nodes, circuit = product.nodes, product.circuit
    names = tuple(
        nodes.reduction.name if not level else f"{nodes.reduction.name}_level_{level}"
        for level in range(circuit.node_count)
    )
    if product.combined:
        multiply(parts, product, nodes.combiner.name, 2)
        combine(parts, product, names[0])
        lanes = both_lanes(product, names[0])
    else:
        multiply(parts, product, names[0], product.fused)
        lanes = replace(lanes_of(product, names[0]), fused=product.fused)
    leaving = reduce_lanes(parts, circuit, lanes, names, nodes.unloader.name, lanes.count)
    unload(parts, product, leaving)


def product_arrays(product: Product) -> dict[str, Array]:
    """The arrays of the matrix, by the names of the graph's tensors."""
    storage, mapping = product.storage, product.mapping
    positions = product.steps * product.block
    slots = positions if product.direct else product.slots
    arrays = {product.values_name: _widened(storage.values, positions, 0)}
    for name in mapping.streams():
        if name == mapping.job_index and mapping.fiber is not None:
            continue  # rows are numbered already
        data = storage.streams[name].data
        if name == mapping.unit or (name == mapping.fiber and mapping.fiber_by_slot):
            data = _widened(data, slots, -1)
        arrays[product.stream_name(name)] = _not_empty(data)
    return {name: made_array(array, product.origin) for name, array in arrays.items()}


def _widened(data: Array, positions: int, empty: int) -> Array:
    missing = positions - data.shape[1]
    return np.pad(data, ((0, 0), (0, missing)), constant_values=empty) if missing else data


def _not_empty(data: Array) -> Array:
    missing = [(0, int(not extent)) for extent in data.shape]
    return np.pad(data, missing) if any(after for _, after in missing) else data


def with_scalars(graph: Graph, scalars: tuple[ScalarParameter, ...]) -> Graph:
    """The graph with its parameters; locals of the same names are renamed.

    ``Let(a = ...), Send(a * Parameter a)`` becomes ``Let(a_2 = ...), Send(a_2 * Parameter a)``.
    """
    if not scalars:
        return replace(graph, parameters=())
    taken = {name for node in distinct(graph) for name in _names(node)}
    clashes = sorted(taken & {scalar.name for scalar in scalars})
    names = NameSupply({*taken, *(scalar.name for scalar in scalars)})
    fresh = {name: names.fresh(name) for name in clashes}
    renamed = rewrite(graph, lambda node: _renamed(node, fresh)) if fresh else graph
    return replace(renamed, parameters=scalars)


def _names(node: Term) -> tuple[str, ...]:
    """The names that a term uses or binds within a node."""
    match node:
        case Local(name=name) | Index(name=name) | Loop(name=name):
            return (name,)
        case SpaceDimension(name=name) | Register(name=name) | Head(value=name):
            return (name,)
        case Let(target=name) | Load(target=name) | Receive(target=name):
            return (name,)
        case RegisterRead(target=name, register=register):
            return (name, register)
    return ()


def _renamed(node: Term, fresh: dict[str, str]) -> Term | None:
    match node:
        case Local(name=name) | Index(name=name) | Loop(name=name) if name in fresh:
            return replace(node, name=fresh[name])
        case SpaceDimension(name=name) | Register(name=name) if name in fresh:
            return replace(node, name=fresh[name])
        case Head(value=value) if value in fresh:
            return replace(node, value=fresh[value])
        case Let(target=name) | Load(target=name) | Receive(target=name) if name in fresh:
            return replace(node, target=fresh[name])
        case RegisterRead(target=name, register=register) if fresh.keys() & {name, register}:
            return replace(
                node, target=fresh.get(name, name), register=fresh.get(register, register)
            )
        case RegisterWrite(register=register) if register in fresh:
            return replace(node, register=fresh[register])
    return None

"""Multipliers, the adder tree of a block, and the combiner of two machines."""

from __future__ import annotations

from t2s.core.expr import Expr, const, equals, select, zero
from t2s.graph.body import Role, SpaceDimension
from t2s.graph.build import GraphParts, Out, index, local
from t2s.reduction.circuits import LANE, SIDE, Lanes, receive_lanes, send_lanes, step_loops
from t2s.sparse_repr.representation.hardware.product import (
    ELEMENT,
    MATRIX,
    VECTOR,
    NodeName,
    Product,
)
from t2s.sparse_repr.representation.hardware.wires import ArrayDraft, link, wire


def multiply(parts: GraphParts, product: Product, sink: str, fused: int) -> None:
    """Add the multipliers, and the adder tree over the products of a block; the lanes go to
    ``sink``.
    """
    multiplier, type = product.nodes.multiplier, product.result.type
    unit = _compute(product, multiplier, product.places)
    once_a_step(unit, product, MATRIX, product.values_wire)
    unit.receive(product.vector_wire, VECTOR)
    value = product.term
    if product.padded:
        value = select(unit.receive(product.valid_wire, "valid"), value, zero(type))
    if product.block == 1:
        _row(unit, product)
        unit.let("out_value_0", value)
        unit.statements += send_lanes(parts, lanes_of(product, multiplier.name), sink, fused)
        parts.nodes.append(unit.node())
        return
    products = [
        wire(f"{product.nodes.adder.name}_product_{element}", type)
        for element in range(product.block)
    ]
    _to_adder(parts, unit, product, unit.let("product", value), products)
    parts.nodes.append(unit.node())
    _adder(parts, product, products, sink, fused)


def lanes_of(product: Product, node: str, fused: int = 1) -> Lanes:
    """The lanes of a node: one for each machine and each row that it handles at once."""
    return Lanes(
        node=node,
        count=product.machines * fused,
        fused=fused,
        steps=product.steps,
        width=product.width,
        type=product.result.type,
    )


def _compute(product: Product, part: NodeName, space: tuple[SpaceDimension, ...]) -> ArrayDraft:
    loops = step_loops(product.steps, product.width)
    return ArrayDraft(part.name, Role.COMPUTE, space, loops, part.location)


def once_a_step(unit: ArrayDraft, product: Product, target: str, source: Out) -> None:
    """Receive a token for all right-hand sides of a step, as the local ``target``."""
    if product.width == 1:
        unit.receive(source, target)
        return
    register = unit.register(f"{target}_register", source.type)
    start = equals(index(SIDE), 0)
    first = unit.receive(source, f"{target}_first", start)
    before = unit.read(register, f"{target}_kept")
    unit.write(register, unit.let(target, select(start, first, before)))


def _row(unit: ArrayDraft, product: Product) -> None:
    """Receive the row of a step as the local ``out_target_0``.

    It comes from this machine's decoder, or from one decoder with a wire to each machine.
    """
    target, wires = "out_target_0", product.row_wires
    if not product.dealt or product.machines == 1:
        once_a_step(unit, product, target, wires[0])
        return
    value: Expr = const(0)
    first = equals(index(SIDE), 0) if product.width > 1 else None
    for machine, source in enumerate(wires):
        mine = equals(index(LANE), machine)
        row = unit.receive(source, f"row_{machine}", mine if first is None else mine & first)
        value = select(mine, row, value)
    if first is None:
        unit.let(target, value)
        return
    register = unit.register("target_register")
    before = unit.read(register, "target_kept")
    unit.write(register, unit.let(target, select(first, value, before)))


def _to_adder(
    parts: GraphParts, unit: ArrayDraft, product: Product, value: Expr, products: list[Out]
) -> None:
    """Each multiplier of a block sends to its own input of the adder tree."""
    nodes = product.nodes
    for element, out in enumerate(products):
        unit.send(out, value, equals(index(ELEMENT), element))
        link(parts, out, nodes.multiplier.name, nodes.adder.name, product.lanes)


def _adder(parts: GraphParts, product: Product, products: list[Out], sink: str, fused: int) -> None:
    """The adder trees of each machine: the sum of the products of a block, or of each of its rows.

    Rows that are handled at once are in as many lanes of each machine.
    """
    adder, rows = product.nodes.adder, product.rows_at_once
    unit = _compute(product, adder, product.lanes)
    values = product.block // rows
    for row in range(rows):
        if rows == 1:
            _row(unit, product)
        else:
            once_a_step(unit, product, f"out_target_{row}", product.row_wires[row])
        terms: list[Expr] = [
            unit.receive(products[element], f"product_{element}")
            for element in range(row * values, (row + 1) * values)
        ]
        unit.let(f"out_value_{row}", tree(terms))
    to_each = rows if rows > 1 else fused
    unit.statements += send_lanes(parts, lanes_of(product, adder.name, rows), sink, to_each)
    parts.nodes.append(unit.node())


def tree(terms: list[Expr]) -> Expr:
    """A balanced tree of additions."""
    while len(terms) > 1:
        pairs = [left + right for left, right in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + ([terms[-1]] if len(terms) % 2 else [])
    return terms[0]


def combine(parts: GraphParts, product: Product, sink: str) -> None:
    """Combine the sums of two machines into one if they belong to the same row.

    The first output lane has the row of the first machine in every step; the second has the row of
    the second machine if it differs.
    """
    combiner, type = product.nodes.combiner, product.result.type
    lanes = both_lanes(product, combiner.name)
    unit = _compute(product, combiner, ())
    for copy in range(2):
        unit.statements += receive_lanes(lanes, copy, steps=lanes.steps)
    targets = [local(f"target_{copy}") for copy in range(2)]
    values = [local(f"value_{copy}", type) for copy in range(2)]
    same = unit.let("same", equals(targets[0], targets[1]))
    unit.let("out_target_0", targets[0])
    unit.let("out_value_0", select(same, values[0] + values[1], values[0]))
    unit.let("out_target_1", select(same, 0, targets[1]))
    unit.let("out_value_1", values[1])
    unit.statements += send_lanes(parts, lanes, sink, 2)
    parts.nodes.append(unit.node())


def both_lanes(product: Product, node: str) -> Lanes:
    """Two combined machines, as two lanes of one PE."""
    return Lanes(
        node=node, count=2, fused=2, steps=product.steps, width=product.width,
        type=product.result.type,
    )  # fmt: skip

"""Multipliers, the adder tree of a block, and the combiner of two machines."""

from __future__ import annotations

from t2s.core.expr import Expr
from t2s.core.types import BOOL, INT32, Type
from t2s.graph.body import Let, Receive, RegisterRead, RegisterWrite, Send, Statement
from t2s.graph.construct import Parts, add, equal, index, local, register, select, space, zero
from t2s.graph.nodes import PEArray
from t2s.graph.parts import Register, Role
from t2s.reduction.circuits import LANE, SIDE, Lanes, receive_lanes, send_lanes, step_loops
from t2s.sparse_repr.representation.hardware.loaders import ELEMENT, places
from t2s.sparse_repr.representation.hardware.product import MATRIX, VECTOR, Product


def multiply(parts: Parts, product: Product, sink: str, fused: int) -> None:
    """The multipliers, and what sums the products of a block; the lanes go to ``sink``."""
    nodes, type = product.nodes, product.result.type
    registers: list[Register] = []
    body = once_a_step(
        product, registers, MATRIX, f"{nodes.multiplier.name}_matrix", product.matrix.type
    )
    body.append(
        Receive(target=VECTOR, channel=f"{nodes.multiplier.name}_vector", type=product.vector.type)
    )
    value = product.term
    if product.padded:
        body.append(Receive(target="valid", channel=f"{nodes.multiplier.name}_valid", type=BOOL))
        value = select(local("valid", BOOL), value, zero(type))
    if product.block == 1:
        body += once_a_step(product, registers, "out_target_0", rows_channel(product), INT32)
        body.append(Let(target="out_value_0", value=value))
        body += send_lanes(parts, _lanes(product, nodes.multiplier.name), sink, fused)
    else:
        body.append(Let(target="product", value=value))
        body += _to_adder(parts, product)
    parts.nodes.append(
        PEArray(
            name=nodes.multiplier.name,
            role=Role.COMPUTE,
            space=places(product),
            loops=step_loops(product.steps, product.width),
            registers=tuple(registers),
            body=tuple(body),
            location=nodes.multiplier.location,
        )
    )
    if product.rows_at_once > 1:
        add_rows(parts, product, sink)
    elif product.block > 1:
        _add_block(parts, product, sink, fused)


def rows_channel(product: Product) -> str:
    """The channel that brings the rows of the steps, one for each machine."""
    return f"{rows_node(product)}_row"


def rows_channels(product: Product) -> tuple[str, ...]:
    """The channels that bring the rows of a step: one for each that is handled at once."""
    first = rows_channel(product)
    return (first, *(f"{first}_{row}" for row in range(1, product.rows_at_once)))


def rows_node(product: Product) -> str:
    """The node that takes the rows of the steps."""
    nodes = product.nodes
    return nodes.multiplier.name if product.block == 1 else nodes.adder.name


def _lanes(product: Product, node: str) -> Lanes:
    return Lanes(
        node=node,
        count=product.machines,
        fused=1,
        steps=product.steps,
        width=product.width,
        type=product.result.type,
    )


def once_a_step(
    product: Product, registers: list[Register], target: str, channel: str, type: Type
) -> list[Statement]:
    """Receive a token for all right-hand sides of a step, as the local ``target``."""
    if product.width == 1:
        return [Receive(target=target, channel=channel, type=type)]
    first, kept = local(f"{target}_first", type), local(f"{target}_kept", type)
    registers.append(register(f"{target}_register", type))
    start = equal(index(SIDE), 0)
    return [
        Receive(target=first.name, channel=channel, type=type, condition=start),
        RegisterRead(target=kept.name, register=f"{target}_register", indices=(), type=type),
        Let(target=target, value=select(start, first, kept)),
        RegisterWrite(register=f"{target}_register", indices=(), value=local(target, type)),
    ]


def _to_adder(parts: Parts, product: Product) -> list[Statement]:
    """Each multiplier of a block sends to its own input of the adder tree."""
    nodes, type = product.nodes, product.result.type
    statements: list[Statement] = []
    for element in range(product.block):
        name = f"{nodes.adder.name}_product_{element}"
        statements.append(
            Send(
                channel=name, value=local("product", type), condition=equal(index(ELEMENT), element)
            )
        )
        parts.link(
            name,
            type,
            nodes.multiplier.name,
            nodes.adder.name,
            shape=(product.machines,),
            source_index=(index(LANE),),
            sink_index=(index(LANE),),
        )
    return statements


def _add_block(parts: Parts, product: Product, sink: str, fused: int) -> None:
    """The adder tree of each machine: the sum of the products of a block."""
    adder, type = product.nodes.adder, product.result.type
    registers: list[Register] = []
    body = once_a_step(product, registers, "out_target_0", rows_channel(product), INT32)
    terms: list[Expr] = []
    for element in range(product.block):
        name = f"product_{element}"
        body.append(Receive(target=name, channel=f"{adder.name}_{name}", type=type))
        terms.append(local(name, type))
    body.append(Let(target="out_value_0", value=_tree(terms)))
    body += send_lanes(parts, _lanes(product, adder.name), sink, fused)
    parts.nodes.append(
        PEArray(
            name=adder.name,
            role=Role.COMPUTE,
            space=(space(LANE, product.machines),),
            loops=step_loops(product.steps, product.width),
            registers=tuple(registers),
            body=tuple(body),
            location=adder.location,
        )
    )


def _tree(terms: list[Expr]) -> Expr:
    """A balanced tree of additions."""
    while len(terms) > 1:
        pairs = [add(left, right) for left, right in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + ([terms[-1]] if len(terms) % 2 else [])
    return terms[0]


def add_rows(parts: Parts, product: Product, sink: str) -> None:
    """Adder trees for the rows of a step, which are in as many lanes of each machine."""
    adder, type, rows = product.nodes.adder, product.result.type, product.rows_at_once
    registers: list[Register] = []
    body: list[Statement] = []
    values = product.block // rows
    for row, channel in enumerate(rows_channels(product)):
        body += once_a_step(product, registers, f"out_target_{row}", channel, INT32)
        terms: list[Expr] = []
        for element in range(row * values, (row + 1) * values):
            name = f"product_{element}"
            body.append(Receive(target=name, channel=f"{adder.name}_{name}", type=type))
            terms.append(local(name, type))
        body.append(Let(target=f"out_value_{row}", value=_tree(terms)))
    lanes = Lanes(
        node=adder.name, count=product.machines * rows, fused=rows, steps=product.steps,
        width=product.width, type=type,
    )  # fmt: skip
    body += send_lanes(parts, lanes, sink, rows)
    parts.nodes.append(
        PEArray(
            name=adder.name,
            role=Role.COMPUTE,
            space=(space(LANE, product.machines),),
            loops=step_loops(product.steps, product.width),
            registers=tuple(registers),
            body=tuple(body),
            location=adder.location,
        )
    )


def combine(parts: Parts, product: Product, sink: str) -> Lanes:
    """Combine the sums of two machines: into one if they are of one row.

    The first lane that leaves has the row of the first machine in every step; the second one has
    the row of the second machine where it is another one.
    """
    combiner, type = product.nodes.combiner, product.result.type
    lanes = Lanes(
        node=combiner.name,
        count=2,
        fused=2,
        steps=product.steps,
        width=product.width,
        type=type,
    )
    targets = [local(f"target_{copy}") for copy in range(2)]
    values = [local(f"value_{copy}", type) for copy in range(2)]
    body = [
        *receive_lanes(lanes, 0, steps=lanes.steps),
        *receive_lanes(lanes, 1, steps=lanes.steps),
        Let(target="same", value=equal(targets[0], targets[1])),
    ]
    same = local("same", BOOL)
    body += [
        Let(target="out_target_0", value=targets[0]),
        Let(target="out_value_0", value=select(same, add(values[0], values[1]), values[0])),
        Let(target="out_target_1", value=select(same, 0, targets[1])),
        Let(target="out_value_1", value=values[1]),
    ]
    body += send_lanes(parts, lanes, sink, 2)
    parts.nodes.append(
        PEArray(
            name=combiner.name,
            role=Role.COMPUTE,
            space=(),
            loops=step_loops(lanes.steps, lanes.width),
            body=tuple(body),
            location=combiner.location,
        )
    )
    return lanes

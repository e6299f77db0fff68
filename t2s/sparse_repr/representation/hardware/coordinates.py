"""From the fibre and the unit of a slot to the row and the column of each of its values.

This is the last part of the inverse map, and the only one that is arithmetic: a value is at some
place in its unit, a unit at some place in its fibre, and a diagonal begins at some column.  A slot
that is padding, and an element of a unit beyond the edge of the matrix, have no row (0) and no
column (-1).
"""

from __future__ import annotations

from t2s.core.expr import Expr, const
from t2s.core.types import BOOL, INT32
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement
from t2s.graph.construct import (
    Parts,
    add,
    both,
    equal,
    index,
    less,
    local,
    loop,
    quotient,
    register,
    remainder,
    select,
    space,
    subtract,
    times,
)
from t2s.graph.graph import StreamKind
from t2s.graph.nodes import Loop, PEArray
from t2s.graph.parts import Register, Role
from t2s.reduction.circuits import LANE
from t2s.sparse_repr.representation.hardware.decoders import Sink, decode_fibres
from t2s.sparse_repr.representation.hardware.loaders import (
    ELEMENT,
    input_tensor,
    place,
    place_shape,
    places,
)
from t2s.sparse_repr.representation.hardware.multiply import rows_channels, rows_node
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.runs import loader_name
from t2s.sparse_repr.representation.inverse_map import Order
from t2s.sparse_repr.representation.vocabulary import Dimension

SLOT, JOB, UNIT, PART = "slot", "job", "unit", "part"
"""Loops: slots of a machine (or jobs, and units of a job, where all are stored), parts of a unit
that are handled in one step."""


def decode_coordinates(parts: Parts, product: Product, columns: str) -> None:
    """Send the rows of every step to ``rows_node`` and the column of every value to ``columns``.

    ``columns`` is a channel to the feeders of the dense operand.  Adds the decoder, and what loads
    the structure.
    """
    node, mapping = f"{product.nodes.decoder.name}_coordinates", product.mapping
    if mapping.unit is not None:
        channels = _channels(product, node, "unit")
        _load_units(parts, product, node, mapping.unit, channels)
        if mapping.fibre is not None or mapping.order is not Order.FREE:
            sink = Sink(node=node, channels=_channels(product, node, "fibre"))
            decode_fibres(parts, product, sink)
    registers: list[Register] = []
    body = [*_slot(product, node, registers), *_arithmetic(product)]
    values = product.block // product.rows_at_once
    for row, channel in enumerate(rows_channels(product)):
        first = equal(index(ELEMENT), row * values) if product.block > 1 else None
        body.append(Send(channel=channel, value=local("target"), condition=first))
    body.append(Send(channel=columns, value=local("place")))
    parts.nodes.append(
        PEArray(
            name=node,
            role=Role.RELAY,
            space=places(product),
            loops=(*_slot_loops(product), *_part_loops(product)),
            registers=tuple(registers),
            body=tuple(body),
            location=product.nodes.decoder.location,
        )
    )
    for channel, sink_node, shape, at in (
        *(
            (channel, rows_node(product), (product.machines,), (index(LANE),))
            for channel in rows_channels(product)
        ),
        (columns, product.place_taker, place_shape(product), place(product)),
    ):
        parts.link(
            channel, INT32, node, sink_node,
            shape=shape, source_index=at, sink_index=at, capacity=64 + product.slack,
            kind=StreamKind.COORDINATE,
        )  # fmt: skip


def _channels(product: Product, node: str, what: str) -> tuple[str, ...]:
    """A channel for each multiplier of a machine."""
    return tuple(f"{node}_{what}_{element}" for element in range(product.block))


def _slot_loops(product: Product) -> tuple[Loop, ...]:
    if product.mapping.unit is not None:
        return (loop(SLOT, product.slots),)
    units = product.units.count(product.mapping.minor) if product.storage.slots else 1
    return loop(JOB, product.slots // units), loop(UNIT, units)


def _part_loops(product: Product) -> tuple[Loop, ...]:
    count = _parts_of_a_unit(product)
    return (loop(PART, count),) if count > 1 else ()


def _parts_of_a_unit(product: Product) -> int:
    return product.storage.unit // product.block


def _load_units(
    parts: Parts, product: Product, sink: str, unit: str, channels: tuple[str, ...]
) -> None:
    """A load unit for each machine: where the unit of each slot is in its fibre."""
    tensor, node = product.stream_name(unit), loader_name(product, unit)
    input_tensor(parts, product, tensor, INT32, (product.machines, product.slots))
    loaded = Load(target="loaded", tensor=tensor, indices=(index(LANE), index(SLOT)), type=INT32)
    parts.nodes.append(
        PEArray(
            name=node,
            role=Role.LOAD,
            space=(space(LANE, product.machines),),
            loops=(loop(SLOT, product.slots),),
            body=(loaded, *(Send(channel=name, value=local("loaded")) for name in channels)),
            location=product.nodes.matrix_loader.location,
        )
    )
    for name in channels:
        parts.link(
            name, INT32, node, sink, shape=(product.machines,), source_index=(index(LANE),),
            sink_index=(index(LANE),), capacity=32, kind=StreamKind.COORDINATE,
        )  # fmt: skip


def _slot(product: Product, node: str, registers: list[Register]) -> list[Statement]:
    """Bind the locals ``fibre`` and ``unit_place``; both are negative in padding."""
    mapping = product.mapping
    if mapping.unit is None:
        job = add(times(index(JOB), product.machines), index(LANE))
        return [Let(target="fibre", value=job), Let(target="unit_place", value=index(UNIT))]
    body = _once_a_slot(product, node, "unit", registers)
    body.append(Let(target="unit_place", value=local("unit_now")))
    if mapping.fibre is None and mapping.order is Order.FREE:
        return [*body, Let(target="fibre", value=const(0))]
    body += _once_a_slot(product, node, "fibre", registers)
    body.append(Let(target="fibre", value=subtract(local("fibre_now"), 1)))
    return body


def _once_a_slot(
    product: Product, node: str, what: str, registers: list[Register]
) -> list[Statement]:
    """Receive a token for all parts of a unit, as the local ``<what>_now``."""
    several = _parts_of_a_unit(product) > 1
    start = equal(index(PART), 0)
    body: list[Statement] = []
    value: Expr | None = None
    for element, channel in enumerate(_channels(product, node, what)):
        here = equal(index(ELEMENT), element)
        conditions = ([start] if several else []) + ([here] if product.block > 1 else [])
        condition = both(*conditions) if len(conditions) == 2 else next(iter(conditions), None)
        name = f"{what}_{element}"
        body.append(Receive(target=name, channel=channel, type=INT32, condition=condition))
        value = local(name) if value is None else select(here, local(name), value)
    assert value is not None
    if not several:
        return [*body, Let(target=f"{what}_now", value=value)]
    registers.append(register(f"{what}_register"))
    kept = local(f"{what}_kept")
    return [
        *body,
        RegisterRead(target=kept.name, register=f"{what}_register", indices=(), type=INT32),
        Let(target=f"{what}_now", value=select(start, value, kept)),
        RegisterWrite(register=f"{what}_register", indices=(), value=local(f"{what}_now")),
    ]


def _arithmetic(product: Product) -> list[Statement]:
    """Bind ``target``, the row from 1, and ``place``, the column, from the fibre and the unit.

    The target is that of the values of a row that begin here: 0 if all of them are outside.
    """
    mapping, (rows, columns) = product.mapping, product.storage.shape
    found = {
        mapping.major: _coordinate(product, mapping.major, local("fibre")),
        mapping.minor: _coordinate(product, mapping.minor, local("unit_place")),
    }
    column = found.get(Dimension.COLUMNS)
    row = local("row")
    if column is None:
        column = add(row, subtract(found[Dimension.DIAGONALS], rows - 1))
    exists = both(less(-1, local("fibre")), less(-1, local("unit_place")))
    starts = both(both(exists, less(row, rows)), less(local("column"), columns))
    valid, values = local("valid", BOOL), product.block // product.rows_at_once
    return [
        Let(target="row", value=found[Dimension.ROWS]),
        Let(target="column", value=column),
        Let(target="starts", value=starts),
        Let(target="valid", value=both(local("starts", BOOL), less(-1, local("column")))),
        Let(target="touches", value=both(local("starts", BOOL), less(-values, local("column")))),
        Let(target="target", value=select(local("touches", BOOL), add(row, 1), 0)),
        Let(target="place", value=select(valid, local("column"), -1)),
    ]


def _coordinate(product: Product, dimension: Dimension, outer: Expr) -> Expr:
    """The coordinate of a value: that of its unit, and how far it is from there."""
    units = product.units
    at: Expr = index(PART) if _parts_of_a_unit(product) > 1 else const(0)
    if product.block > 1:
        at = add(times(at, product.block), index(ELEMENT))
    result, weight = times(outer, units.factor(dimension)), units.size
    for digit in units.digits:
        weight //= digit.extent
        if digit.dimension is dimension and digit.extent > 1:
            step = remainder(quotient(at, weight), digit.extent)
            result = add(result, times(step, digit.stride))
    return result

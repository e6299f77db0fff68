"""From the fibre and the unit of a slot to the row and the column of each of its values.

This is the last part of the inverse map, and the only one that is arithmetic: a value is at some
place in its unit, a unit at some place in its fibre, and a diagonal begins at some column.  A slot
that is padding, and an element of a unit beyond the edge of the matrix, have no row (0) and no
column (-1).
"""

from __future__ import annotations

from t2s.core.expr import Expr, const
from t2s.core.types import INT32
from t2s.graph.body import Role
from t2s.graph.construct import (
    Parts,
    add,
    both,
    equal,
    index,
    less,
    loop,
    quotient,
    remainder,
    select,
    subtract,
    times,
)
from t2s.graph.graph import StreamKind
from t2s.graph.nodes import Loop
from t2s.reduction.circuits import LANE
from t2s.sparse_repr.representation.hardware.decoders import decode_fibres
from t2s.sparse_repr.representation.hardware.loaders import input_tensor
from t2s.sparse_repr.representation.hardware.product import ELEMENT, Product
from t2s.sparse_repr.representation.hardware.runs import loader_name
from t2s.sparse_repr.representation.hardware.wires import ArrayDraft, Wire, link, wire
from t2s.sparse_repr.representation.inverse_map import Order
from t2s.sparse_repr.representation.vocabulary import Dimension

SLOT, JOB, UNIT, PART = "slot", "job", "unit", "part"
"""Loops: slots of a machine (or jobs, and units of a job, where all are stored), parts of a unit
that are handled in one step."""


def decode_coordinates(parts: Parts, product: Product) -> None:
    """Send the rows of every step to what takes them, and the column of every value to the feeders.

    Adds the decoder, and what loads the structure.
    """
    decoder, mapping = product.nodes.decoder, product.mapping
    node = f"{decoder.name}_coordinates"
    units, fibres = _taken(product, node, "unit"), _taken(product, node, "fibre")
    if mapping.unit is not None:
        _load_units(parts, product, node, mapping.unit, units)
        if _has_fibres(product):
            decode_fibres(parts, product, node, fibres)
    loops = (*_slot_loops(product), *_part_loops(product))
    unit = ArrayDraft(node, Role.RELAY, product.places, loops, decoder.location)
    fibre, place = _slot(unit, product, units, fibres)
    row, column = _arithmetic(unit, product, fibre, place)
    values = product.block // product.rows_at_once
    for number, out in enumerate(product.row_wires):
        unit.send(out, row, equal(index(ELEMENT), number * values) if product.block > 1 else None)
    unit.send(product.places_wire, column)
    parts.nodes.append(unit.node())
    capacity = 64 + product.slack
    for out in product.row_wires:
        link(parts, out, node, product.rows_node, product.lanes, capacity=capacity)
    to = product.place_taker
    link(parts, product.places_wire, node, to, product.places, capacity=capacity)


def _has_fibres(product: Product) -> bool:
    """Whether there is more than one fibre."""
    return product.mapping.fibre is not None or product.mapping.order is not Order.FREE


def _taken(product: Product, node: str, what: str) -> tuple[Wire, ...]:
    """A wire for each multiplier of a machine."""
    names = (f"{node}_{what}_{element}" for element in range(product.block))
    return tuple(wire(name, INT32, StreamKind.COORDINATE) for name in names)


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
    parts: Parts, product: Product, sink: str, structure: str, outs: tuple[Wire, ...]
) -> None:
    """A load unit for each machine: where the unit of each slot is in its fibre."""
    tensor, node = product.stream_name(structure), loader_name(product, structure)
    input_tensor(parts, product, tensor, INT32, (product.machines, product.slots))
    slots, location = (loop(SLOT, product.slots),), product.nodes.matrix_loader.location
    unit = ArrayDraft(node, Role.LOAD, product.lanes, slots, location)
    loaded = unit.load("loaded", tensor, (index(LANE), index(SLOT)), INT32)
    for out in outs:
        unit.send(out, loaded)
    parts.nodes.append(unit.node())
    for out in outs:
        link(parts, out, node, sink, product.lanes, capacity=32)


def _slot(
    unit: ArrayDraft, product: Product, units: tuple[Wire, ...], fibres: tuple[Wire, ...]
) -> tuple[Expr, Expr]:
    """The fibre of a slot and the place of its unit there; both are negative in padding."""
    if product.mapping.unit is None:
        job = add(times(index(JOB), product.machines), index(LANE))
        return unit.let("fibre", job), unit.let("unit_place", index(UNIT))
    place = unit.let("unit_place", _once_a_slot(unit, product, units, "unit"))
    if not _has_fibres(product):
        return unit.let("fibre", const(0)), place
    number = subtract(_once_a_slot(unit, product, fibres, "fibre"), 1)
    return unit.let("fibre", number), place


def _once_a_slot(unit: ArrayDraft, product: Product, wires: tuple[Wire, ...], what: str) -> Expr:
    """Receive a token for all parts of a unit."""
    several = _parts_of_a_unit(product) > 1
    start = equal(index(PART), 0)
    value: Expr | None = None
    for element, taken in enumerate(wires):
        here = equal(index(ELEMENT), element)
        conditions = ([start] if several else []) + ([here] if product.block > 1 else [])
        condition = both(*conditions) if len(conditions) == 2 else next(iter(conditions), None)
        new = unit.receive(taken, f"{what}_{element}", condition)
        value = new if value is None else select(here, new, value)
    assert value is not None
    if not several:
        return unit.let(f"{what}_now", value)
    kept = unit.file(f"{what}_register")
    before = unit.read(kept, f"{what}_kept")
    now = unit.let(f"{what}_now", select(start, value, before))
    unit.write(kept, now)
    return now


def _arithmetic(unit: ArrayDraft, product: Product, fibre: Expr, place: Expr) -> tuple[Expr, Expr]:
    """The row from 1, and the column, of the fibre and the unit.

    The row is that of the values of a row that begin here: 0 if all of them are outside.
    """
    mapping, (rows, columns) = product.mapping, product.storage.shape
    found = {
        mapping.major: _coordinate(product, mapping.major, fibre),
        mapping.minor: _coordinate(product, mapping.minor, place),
    }
    row = unit.let("row", found[Dimension.ROWS])
    if Dimension.COLUMNS in found:
        column = unit.let("column", found[Dimension.COLUMNS])
    else:
        column = unit.let("column", add(row, subtract(found[Dimension.DIAGONALS], rows - 1)))
    exists = both(less(-1, fibre), less(-1, place))
    starts = unit.let("starts", both(both(exists, less(row, rows)), less(column, columns)))
    valid = unit.let("valid", both(starts, less(-1, column)))
    values = product.block // product.rows_at_once
    touches = unit.let("touches", both(starts, less(-values, column)))
    target = unit.let("target", select(touches, add(row, 1), 0))
    return target, unit.let("place", select(valid, column, -1))


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

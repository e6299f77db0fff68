"""Decoders: the inverse map in hardware, which gives every slot its fibre.

A *run* is a fibre and a number of slots.  Machines take their runs one after the other and send the
fibre of every slot, counted from 1; behind their last run they send 0.  Where fibres are rows and
slots are values that is the row of every step; else ``coordinates`` computes it from the fibre.
Where the runs come from depends on the order of jobs:

* ``FREE``: every slot has its fibre in memory, or there is one fibre only; nothing is decoded.
* ``STRIDED``, ``RECORDED`` fibres: each machine loads the lengths of its own fibres.
* ``STRIDED`` blocks: all machines see the lengths of all fibres, and each finds out how many blocks
  of a fibre are its own.
* Single rows whose schedule is repeated, and blocks of such rows: ``dealing``, without runs.
* ``REPLAYED``: one machine repeats the schedule: it keeps the end of every machine's stream, gives
  the next fibre to the first machine to end, and passes it down the line of decoders.
"""

from __future__ import annotations

from t2s.core.types import INT32
from t2s.graph.body import Role
from t2s.graph.construct import Parts, add, equal, index, less, loop, subtract, times
from t2s.reduction.circuits import LANE, STEP
from t2s.sparse_repr.blocks.draft import count_up, put, rule, when, write
from t2s.sparse_repr.representation.hardware.dealing import deal_rows
from t2s.sparse_repr.representation.hardware.dealt_blocks import runs_of_blocks
from t2s.sparse_repr.representation.hardware.loaders import input_tensor
from t2s.sparse_repr.representation.hardware.own_runs import runs_of_machines
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.replay import runs_replayed
from t2s.sparse_repr.representation.hardware.runs import loader_name, run_wires
from t2s.sparse_repr.representation.hardware.wires import ArrayDraft, MachineDraft, Wire, link
from t2s.sparse_repr.representation.inverse_map import Order
from t2s.sparse_repr.representation.layout import BlockJob


def decode_fibres(parts: Parts, product: Product, sink: str, outs: tuple[Wire, ...]) -> None:
    """Add what sends the fibre of every slot to ``sink``, the same into all of ``outs``.

    Where rows are dealt, the wires are those of the machines.
    """
    mapping = product.mapping
    if mapping.order is Order.FREE:
        _load_fibres(parts, product, sink, outs)
        return
    if product.dealt:
        deal_rows(parts, product, sink, outs)
        return
    if isinstance(mapping.job, BlockJob):
        runs_of_blocks(parts, product)
    elif mapping.order is Order.REPLAYED:
        runs_replayed(parts, product)
    else:
        runs_of_machines(parts, product)
    _decoder(parts, product, sink, outs)


def _link_all(
    parts: Parts, product: Product, source: str, sink: str, outs: tuple[Wire, ...]
) -> None:
    for out in outs:
        link(parts, out, source, sink, product.lanes, capacity=64 + product.slack)


def _load_fibres(parts: Parts, product: Product, sink: str, outs: tuple[Wire, ...]) -> None:
    """Fibres are in memory: that of a block of slots is the one of its first slot."""
    name = product.mapping.fibre
    assert name is not None
    tensor, node = product.stream_name(name), loader_name(product, name)
    together = product.slots_decoded_at_once
    input_tensor(parts, product, tensor, INT32, (product.machines, product.decoded * together))
    steps, location = (loop(STEP, product.decoded),), product.nodes.decoder.location
    unit = ArrayDraft(node, Role.LOAD, product.lanes, steps, location)
    at = (index(LANE), times(index(STEP), together))
    loaded = unit.load("loaded", tensor, at, INT32)
    for out in outs:
        unit.send(out, add(loaded, 1))
    parts.nodes.append(unit.node())
    _link_all(parts, product, node, sink, outs)


def _decoder(parts: Parts, product: Product, sink: str, outs: tuple[Wire, ...]) -> None:
    """From runs to the fibres of slots, one in each firing."""
    decoder, (row_wire, length_wire) = product.nodes.decoder, run_wires(product)
    machine = MachineDraft(decoder.name, Role.RELAY, product.lanes, decoder.location)
    runs = [machine.input(row_wire, "next_row"), machine.input(length_wire, "length")]
    following, length = runs[0].value, runs[1].value
    row, left, sent = (machine.register(name) for name in ("row", "left", "sent"))
    count, keep = count_up(sent), write(row, following)
    rest, down = write(left, subtract(length, 1)), write(left, subtract(left, 1))
    first, again = [put(out, following) for out in outs], [put(out, row) for out in outs]
    nothing = [put(out) for out in outs]
    begins = rule("row begins", "row", takes=runs, puts=first, body=[count, keep, rest])
    machine.mode(
        "run",
        when(equal(length, 1), rule("row of one", "run", takes=runs, puts=first, body=[count])),
        when(less(1, length), begins),
        when(equal(length, 0), rule("empty row", "run", takes=runs)),
        when(equal(sent, product.decoded), rule("end", None, takes=runs)),
        when(None, rule("padding begins", "pad", takes=runs)),
        needs=runs,
    )
    machine.mode(
        "row",
        when(equal(left, 1), rule("row ends", "run", puts=again, body=[count])),
        when(None, rule("row", "row", puts=again, body=[count, down])),
    )
    machine.mode(
        "pad",
        when(equal(sent, product.decoded - 1), rule("last padding", None, puts=nothing)),
        when(None, rule("padding", "pad", puts=nothing, body=[count])),
    )
    parts.nodes.append(machine.node())
    _link_all(parts, product, decoder.name, sink, outs)
